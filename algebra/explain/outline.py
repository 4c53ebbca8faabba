"""The chain of steps for reading: few lines, each named by its idea.

Steps are grouped by the idea behind their rules (“multiply out”, “mixed product”). Steps that only
move brackets, units and names join the line next to them, and long expressions on the way are left
out, so that a chain of fifty steps is read in at most eight lines. Nothing is added: each line is
an expression of the full chain, reached by the steps that the line has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol

from sympy import Identity

from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.rules import RULES

MOST_LINES = 8
WIDEST = 160  # characters of an expression between the two sides, where they are no longer
NAMED = 3  # ideas that a line names; others are counted

IDEAS: dict[str, str] = {
    "mixed product": "kron_mul_kron kron_hadamard_kron kron_column_row concat_kron",
    "multiply out": """
        mul_add add_mul smul_add kron_add hadamard_add head_sum_mul head_sum_kron head_sum_add
        head_sum_hadamard trace_head_sum_smul mul_sum sum_add trace_add vec_add vec_head_sum
    """,
    "heads are summed": """
        concat_mul_stack concat_mul_one_kron one_kron_mul_stack mul_concat stack_mul concat_stack
        concat_add head_sum_last head_sum_const
    """,
    "block by block": """
        block_mul mul_block block_add block_hadamard block_one block_zero block_ones block_diag_inv
        block_transpose trace_block block_kron block_diag kron_blocks function_stack
        activation_block
    """,
    "transpose": """
        transpose_mul transpose_add kron_transpose hadamard_transpose
        transpose_transpose transpose_pow transpose_one_by_one head_sum_transpose concat_transpose
        stack_transpose activation_transpose rotation_transpose hadamard_one_transpose
    """,
    "stack rows or columns": """
        vec_rows_mul vec_cols_mul vec_dot vec_cols_vec_rows vec_hadamard vec_ones vec_zero
        vec_rows_outer vec_column vec_row activation_vec kron_ones_ones
    """,
    "entry by entry": """
        entry_mul entry_add entry_transpose entry_hadamard entry_one entry_one_hot entry_head_sum
        trace_sum matrix_of_entries sum_const sum_delta delta_mul one_hot_sum one_hot_mul
        explicit_entry
    """,
    "write out": """
        sum_written_out matrix_written_out head_sum_written_out layers_written_out explicit_mul
        explicit_smul explicit_add explicit_hadamard explicit_transpose explicit_trace explicit_kron
        kron_number pow_succ pow_zero pow_neg hadamard_pow_succ
    """,
    "an inverse cancels": "mul_inv inv_mul",
    "inverse": "mul_inv_rev smul_inv inv_inv kron_inv transpose_inv",
    "rotate under the trace": "trace_cyclic trace_transpose trace_hadamard_mul",
    "trace": "trace_kron trace_one trace_ones trace_hadamard_one",
    "a 1 × 1 matrix is a number": "one_by_one one_by_one_mul",
    "diagonal matrices": """
        diag_hadamard diagonal_hadamard diagonal_of_ones diagonal_mul diagonal_mul_diagonal
        hadamard_one_one hadamard_mul_ones last_position
    """,
    "sums of ones": "ones_mul_ones ones_outer",
    "terms cancel": "add_neg mul_zero kron_zero hadamard_zero trace_zero head_sum_zero",
    "collect terms": "add_collect",
    "definition of the norm": "rms_norm_definition layer_norm_definition norm_scale norm_row",
    "softmax of a row": """
        softmax_shift softmax_constant softmax_row softmax_sum softmax_exp softmax_mask
        softmax_quotient softmax_two softmax_product
        softmax_permute_columns softmax_unseen_columns softmax_alone log_softmax
    """,
    "the causal mask": """
        causal_mask_product causal_mask_is_mask causal_mask_diagonal causal_mask_order
        causal_mask_first causal_softmax_first causal_softmax_last
    """,
    "a function acts on each row or entry": """
        activation_row activation_repeat activation_zero activation_ones activation_choose_columns
        function_choose_rows
    """,
    "positive factors pass": """
        relu_scale relu_scale_columns relu_scale_rows norm_scale_rows rsqrt_scale relu_nonnegative
    """,
    "what the activation satisfies": """
        activation_reflected activation_odd sigmoid_reflected sigmoid_gate sigmoid_tanh
        abs_relu abs_product softplus_log gelu_erf gelu_tanh tanh_exp tanh_sum sigmoid_difference
        relu_idempotent relu_square relu_parts sigmoid_exp
    """,
    "exponentials and logarithms": """
        exp_sum exp_reflected root_exp exp_half_log softplus_reflected exp_log log_exp log_product
        log_reciprocal log_root log_sigmoid logsumexp_shift softplus_difference
    """,
    "reciprocals and roots": """
        reciprocal_twice reciprocal_product reciprocal_exp reciprocal_sqrt reciprocal_cancel
        rsqrt_square rsqrt_sqrt sqrt_square sqrt_product root_square
    """,
    "rotations by angles": "rotation_mul cos_even circle angle_sum",
    "shifts and positions": """
        shift_entries shift_back shift_power shift_mask shift_positions position_ends position_sums
        position_counts
    """,
    "compare normal forms": "same_normal_form",
}
QUIET = frozenset(
    ("trace_smul", "transpose_smul", "vec_smul", "kron_smul", "hadamard_smul", "head_sum_smul")
) | {"sum_smul", "kron_one_one"}
"""Rules that move a number, or join identities: they have no idea, like those of bookkeeping."""
OF_RULE = {rule: idea for idea, rules in IDEAS.items() for rule in rules.split()}


class AStep(Protocol):
    """The part of a step that is needed to group it."""

    @property
    def rule(self) -> str:
        """The name of its rule."""

    @property
    def after(self) -> Any:
        """The expression that it leads to."""


class Group(NamedTuple):
    """Steps that are read as one, and what they do."""

    steps: tuple[Any, ...]
    ideas: tuple[str, ...]

    @property
    def label(self) -> str:
        """The ideas in words; “rearrange” where the steps only move things."""
        named = list(self.ideas[:NAMED])
        if (more := len(self.ideas) - NAMED) > 0:
            named[-1] += f" and {more} more"
        return ", ".join(named) or "rearrange"


def idea_of(rule: str) -> str:
    """Return what a rule does, in words; empty if it only moves brackets, units and names.

    >>> idea_of("kron_mul_kron"), idea_of("given_2"), idea_of("mul_assoc"), idea_of("exp_sum")
    ('mixed product', 'hypothesis 2', '', 'exponentials and logarithms')
    """
    if rule.startswith("given_"):
        return f"hypothesis {rule.removeprefix('given_')}"
    if rule in QUIET or (rule in RULES and RULES[rule].bookkeeping):
        return ""
    return OF_RULE.get(rule) or rule.replace("_", " ")


def outlined(steps: Sequence[AStep]) -> tuple[Group, ...]:
    """Return the steps in few groups: by idea, and without long expressions on the way."""
    groups = list(_by_idea(steps))
    if not groups:
        return ()
    ends = max(len(unicode_text(steps[-1].after)), WIDEST)
    while len(groups) > 1:
        lengths = [_length(group.steps[-1].after) for group in groups[:-1]]
        longest = max(range(len(lengths)), key=lengths.__getitem__)
        if len(groups) <= MOST_LINES and lengths[longest] <= ends:
            break
        groups[longest : longest + 2] = [_joined(*groups[longest : longest + 2])]
    return tuple(groups)


def _length(e: Any) -> float:
    """Return the length of a line; infinite with an identity of n d, for that is I_n ⊗ I_d."""
    folded = any(each.shape[0].is_Mul for each in e.atoms(Identity))
    return inf if folded else len(unicode_text(e))


def _by_idea(steps: Sequence[AStep]) -> Iterator[Group]:
    """Yield runs of steps of one idea; those that only move things belong to the run before."""
    run: list[AStep] = []
    idea = ""
    for step in steps:
        own = idea_of(step.rule)
        if own and idea and own != idea:
            yield Group(tuple(run), (idea,))
            run, idea = [], ""
        run.append(step)
        idea = idea or own
    if run:
        yield Group(tuple(run), (idea,) if idea else ())


def _joined(one: Group, other: Group) -> Group:
    return Group(one.steps + other.steps, tuple(dict.fromkeys(one.ideas + other.ideas)))
