"""Strategies: the orders in which the search for steps tries its moves.

A move applies the rule of its name, or is a function of `moves`, `index_moves` or `function_moves`.
A strategy makes the first move that applies anywhere, then starts again. A tier is a group of
strategies whose results share one graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import sympy
from sympy import (
    HadamardProduct,
    KroneckerProduct,
    MatAdd,
    MatMul,
    MatrixSymbol,
    Sum,
    Trace,
    Transpose,
)

from otimes.algebra.explain import function_moves, index_moves, moves
from otimes.algebra.explain.moves import Change, Move, Scope
from otimes.algebra.language.linear import FamilyMember, HeadSum
from otimes.algebra.rules import RULES, Rule
from otimes.algebra.rules.nonlinear import ROWWISE

LAST_RESULT = ("mul_assoc", "add_assoc")  # rules whose last result is used instead of the first


def _use(rule: Rule) -> Move:
    """Return the move that uses a rule from left to right."""

    def move(part: Any, _: Scope) -> list[Change] | None:
        results = rule.results(part)
        new = next(results, None)
        if rule.name in LAST_RESULT:
            new = [new, *results][-1]
        return None if new is None else [Change(rule.name, (), False, new)]

    return move


MOVES: dict[str, tuple[tuple[type, ...], Move]] = {
    **{name: (rule.kinds, _use(rule)) for name, rule in RULES.items()},
    "by_hypothesis": ((), moves.by_hypothesis),
    "open_hypothesis": ((MatrixSymbol, FamilyMember, MatMul), moves.open_hypothesis),
    "by_premises": ((*ROWWISE, HadamardProduct), function_moves.by_premises),
    "row_outside": (ROWWISE, function_moves.row_outside),
    "transpose_inside": ((Transpose,), function_moves.transpose_inside),
    "ones_in_blocks": ((MatMul,), moves.ones_in_blocks),
    "blocks_together": ((MatAdd,), moves.blocks_together),
    "concat_first": ((Trace,), moves.concat_first),
    "apart": ((MatMul, KroneckerProduct, HadamardProduct), moves.apart),
    "split_special": ((MatMul,), moves.split_special),
    "beside_one": ((MatMul,), moves.beside_one),
    "join_ones": ((MatMul,), moves.join_ones),
    "split_ones": ((MatMul,), moves.split_ones),
    "split_in_hadamard": ((HadamardProduct,), moves.split_in_hadamard),
    "diagonal_way": ((HadamardProduct,), moves.diagonal_way),
    "order_hadamard": ((HadamardProduct,), moves.ordered("hadamard_comm")),
    "order_addends": ((MatAdd,), moves.ordered("add_comm")),
    "least_rotation": ((Trace,), moves.least_rotation),
    "arithmetic": ((), moves.arithmetic),
    "ordered_sum": ((HeadSum,), moves.ordered_sum),
    "flat_product": ((sympy.Mul,), index_moves.flat_product),
    "apart_numbers": ((sympy.Mul,), moves.apart),
    "apart_inside": ((Sum,), index_moves.apart_inside),
    "open_power": ((sympy.Pow,), index_moves.open_power),
    "by_delta": ((sympy.Mul,), index_moves.by_delta),
    "numbers_out": ((Sum,), index_moves.numbers_out),
    "ordered_index_sum": ((Sum,), moves.ordered_sum),
}
"""The classes of expressions that a move looks at (none: all, but no number within a number)."""

NUMBER = "one_by_one"  # not applied directly under a trace, where another move would undo it


@dataclass(frozen=True, slots=True)
class Strategy:
    """A sequence of moves, in order of priority.

    `opaque`: arguments of functions are not rewritten. `opens`: a matrix is first replaced by the
    matrix of its entries.
    """

    name: str
    moves: tuple[str, ...]
    opaque: bool = False
    opens: bool = False

    def without(self, left_out: Iterable[str], *more: str) -> Strategy:
        """Return the strategy without some moves, and with further ones appended."""
        left_out = set(left_out)
        return replace(self, moves=(*[m for m in self.moves if m not in left_out], *more))


def _names(text: str) -> list[str]:
    return text.split()


ZEROS = _names("""
    mul_zero add_zero kron_zero hadamard_zero head_sum_zero trace_zero zero_transpose vec_zero
""")
UNITS = _names("""
    one_transpose ones_transpose one_mul mul_one one_smul hadamard_ones kron_one ones_one
    one_hot_one
""")
POWERS = _names("""
    adjoint_transpose pow_zero pow_succ pow_neg hadamard_pow_succ diag_hadamard
    diagonal_hadamard diagonal_of_ones block_diag
""")
TRANSPOSES = _names("""
    transpose_transpose transpose_mul transpose_smul transpose_add kron_transpose
    hadamard_transpose head_sum_transpose concat_transpose stack_transpose transpose_pow
    transpose_one_by_one transpose_inside rotation_transpose
""")
GIVEN = ["by_hypothesis"]
AXIOMS = _names("""
    activation_zero activation_ones softmax_constant softmax_shift softmax_sum
    causal_mask_is_mask causal_mask_diagonal causal_mask_order causal_mask_first
    causal_mask_product causal_softmax_first softmax_alone
    activation_reflected activation_odd sigmoid_reflected sigmoid_gate sigmoid_tanh
    abs_relu abs_product softplus_log gelu_erf gelu_tanh softmax_two causal_softmax_last root_exp
    exp_half_log softplus_reflected root_square relu_scale_rows norm_scale_rows tanh_exp exp_sum
    exp_reflected relu_idempotent relu_square relu_parts rsqrt_square norm_scale softmax_exp
    shift_entries shift_back shift_power shift_mask shift_positions position_ends position_sums
    position_counts last_position reciprocal_twice reciprocal_product reciprocal_exp
    tanh_sum softmax_product sigmoid_difference softplus_difference
    reciprocal_sqrt reciprocal_cancel log_exp log_reciprocal log_root log_sigmoid sigmoid_exp
    log_softmax logsumexp_shift cos_even circle angle_sum rsqrt_sqrt sqrt_square exp_log
    by_premises
""")
FUNCTIONS = _names("""
    activation_repeat relu_scale rsqrt_scale activation_block function_stack
    softmax_unseen_columns activation_vec activation_row softmax_row norm_row
""")
NORMS = ["layer_norm_definition", "rms_norm_definition"]
INVERSES = _names("one_inv inv_inv mul_inv_rev smul_inv kron_inv transpose_inv")
CANCEL = ["mul_inv", "inv_mul"]
BLOCKS = _names("""
    block_transpose block_mul block_add trace_block block_kron mul_block block_hadamard
    block_one block_zero block_ones block_nested block_diag_inv ones_in_blocks blocks_together
""")
BRACKETS = ["mul_assoc", "hadamard_assoc"]
TENSORS = ["kron_one_one", "kron_mul_kron", "ones_mul_ones", "rotation_mul"]
NUMBERS = _names("mul_smul kron_smul hadamard_smul trace_smul vec_smul head_sum_smul")
SUMS = _names("""
    add_assoc mul_add add_mul smul_add kron_add hadamard_add trace_add head_sum_add vec_add
""")
HEADS = _names("""
    one_hot_sum one_hot_mul concat_mul_stack concat_mul_one_kron concat_first one_kron_mul_stack
    mul_concat stack_mul concat_stack concat_add apart head_sum_mul head_sum_kron
    head_sum_hadamard vec_head_sum head_sum_nested head_sum_const trace_head_sum_smul
""")
VECTORS = _names("""
    vec_dot vec_hadamard vec_rows_mul vec_cols_mul vec_ones vec_column vec_row vec_rows_outer
    kron_column_row kron_ones_ones
""")
ELEMENTWISE = _names("""
    hadamard_one_one kron_hadamard_kron trace_hadamard_one split_in_hadamard
    diagonal_mul_diagonal
""")
TRACES = ["trace_one", "trace_ones", "trace_kron"]
LATE = _names(f"""
    split_special beside_one join_ones split_ones one_by_one_mul diagonal_mul trace_transpose
    kron_assoc vec_cols_vec_rows diagonal_way order_hadamard least_rotation {NUMBER} smul_smul
    arithmetic ordered_sum order_addends add_neg add_collect
""")
ENTRIES = _names("""
    entry_one entry_ones entry_zero entry_one_hot entry_transpose entry_add entry_hadamard
    entry_mul entry_head_sum explicit_entry trace_sum
""")
INDEX_SUMS = _names("""
    flat_product sum_add sum_delta apart_inside sum_nested sum_const open_power apart_numbers
    mul_sum by_delta numbers_out arithmetic ordered_index_sum
""")
OPENED = ["head_sum_written_out", "layers_written_out", "sum_written_out"]
EXPLICIT = _names("""
    matrix_written_out kron_blocks explicit_transpose explicit_trace explicit_mul
    explicit_hadamard explicit_kron kron_number arithmetic explicit_smul explicit_add
""")


def _strategy(name: str, *groups: list[str], opaque: bool = False) -> Strategy:
    return Strategy(name, tuple(move for group in groups for move in group), opaque)


EARLY = [*ZEROS, *UNITS, *AXIOMS, *POWERS]
PLAIN = _strategy(
    "transposes, products, sums",
    *(EARLY, TRANSPOSES, INVERSES, CANCEL, BRACKETS, GIVEN, FUNCTIONS, BLOCKS, TENSORS, NUMBERS),
    *(SUMS, HEADS, TRACES, ELEMENTWISE, VECTORS, LATE),
)
TENSORS_FIRST = _strategy(
    "Kronecker products, sums, transposes",
    *(EARLY, TENSORS, INVERSES, CANCEL, BLOCKS, SUMS, TRANSPOSES, HEADS, NUMBERS, BRACKETS),
    *(GIVEN, FUNCTIONS, VECTORS, TRACES, ELEMENTWISE, LATE),
)
INDEXWISE = _strategy(
    "indices",
    *(EARLY, ["row_outside"], TRANSPOSES, BRACKETS, NUMBERS, ["add_assoc"], ENTRIES, INDEX_SUMS),
    ["smul_smul", "ordered_sum"],
)
ENTRYWISE = replace(INDEXWISE, name="entries", opens=True)
FIXED = _strategy(
    "entries of explicit matrices",
    *(ZEROS, POWERS, TRANSPOSES, BRACKETS, NUMBERS, OPENED, BLOCKS, EXPLICIT, ENTRIES, INDEX_SUMS),
)
# Diagonal matrices, powers, and arguments of functions are not rewritten.
OUTSIDE = _strategy("outside of functions", NORMS, list(PLAIN.without(POWERS).moves), opaque=True)

Tier = tuple[Strategy, ...]
TIERS: tuple[Tier, ...] = (
    (PLAIN, TENSORS_FIRST),
    (_strategy("sums written out last", list(PLAIN.moves), OPENED),),
    (_strategy("sums written out first", OPENED, list(PLAIN.moves)),),
    (INDEXWISE,),
    (ENTRYWISE,),
    (FIXED,),
)
BY_DEFINITION: tuple[Tier, ...] = (  # where norms occur
    (_strategy("layer norms first", NORMS[:1], list(PLAIN.moves)),),
    (OUTSIDE,),
    (_strategy("norms last", list(PLAIN.moves), NORMS),),
)
# where matrices are multiplied elementwise
DIAGONALS: Tier = (_strategy("diagonal matrices", ["hadamard_mul_ones"], list(PLAIN.moves)),)
OPEN_GIVEN: Tier = (
    _strategy("hypotheses opened", ["open_hypothesis"], list(PLAIN.without(GIVEN).moves)),
)
# Without the axioms and E E⁻¹ = I, which are applied between these chains.
LINKS: tuple[Tier, ...] = tuple(
    (each.without([*CANCEL, *AXIOMS], *NORMS),) for each in (PLAIN, INDEXWISE, ENTRYWISE)
)
LINKS_OUTSIDE: tuple[Tier, ...] = tuple((replace(each, opaque=True),) for (each,) in LINKS)
