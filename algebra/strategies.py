"""Strategies: the orders in which a search for steps tries its moves.

A strategy is a list of moves: the first that applies anywhere is made, and then the search begins
again. A tier is a list of strategies that are tried together.
"""

from __future__ import annotations

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

from algebra.function_moves import by_premises, row_outside, transpose_inside
from algebra.index_moves import (
    apart_inside,
    by_delta,
    flat_product,
    numbers_out,
    open_power,
    ordered_index_sum,
)
from algebra.language import FamilyMember, HeadSum
from algebra.moves import (
    Change,
    Move,
    Scope,
    apart,
    arithmetic,
    beside_one,
    blocks_together,
    by_hypothesis,
    concat_first,
    diagonal_way,
    join_ones,
    least_rotation,
    ones_in_blocks,
    open_hypothesis,
    ordered,
    ordered_sum,
    split_in_hadamard,
    split_ones,
    split_special,
)
from algebra.rules import RULES
from algebra.rules.nonlinear import ROWWISE

MOVES: list[tuple[tuple[type, ...], Move]] = []
SWEEPING: set[int] = set()  # moves that, once begun, are made everywhere before another


def _by(name: str, last: bool = False) -> int:
    """Add the move that uses a rule from left to right, and return its number."""
    rule = RULES[name]

    def move(part: Any, _: Scope) -> list[Change] | None:
        results = rule.results(part)
        new = next(results, None)
        if last:
            new = [new, *results][-1]
        return None if new is None else [Change(name, (), False, new)]

    number = _add(rule.kinds, move)
    SWEEPING.add(number)
    return number


def _add(kinds: tuple[type, ...], move: Move) -> int:
    MOVES.append((kinds, move))
    return len(MOVES) - 1


ZEROS = [
    *map(_by, ["mul_zero", "add_zero", "kron_zero", "hadamard_zero", "head_sum_zero"]),
    *map(_by, ["trace_zero", "zero_transpose", "vec_zero"]),
]
UNITS = list(map(_by, ["one_transpose", "ones_transpose", "one_mul", "mul_one", "one_smul"]))
UNITS += list(map(_by, ["hadamard_ones", "kron_one", "ones_one", "one_hot_one"]))
POWERS = list(map(_by, ["adjoint_transpose", "pow_zero", "pow_succ"]))
POWERS += list(map(_by, ["pow_neg", "hadamard_pow_succ", "diag_hadamard", "diagonal_hadamard"]))
POWERS += list(map(_by, ["diagonal_of_ones", "block_diag"]))
TRANSPOSES = [
    *map(_by, ["transpose_transpose", "transpose_mul", "transpose_smul", "transpose_add"]),
    *map(_by, ["kron_transpose", "hadamard_transpose", "head_sum_transpose", "concat_transpose"]),
    *map(_by, ["stack_transpose", "transpose_pow", "transpose_one_by_one"]),
]
GIVEN = [_add((), by_hypothesis)]
AXIOMS = [
    *map(_by, ["activation_zero", "activation_ones", "softmax_constant", "softmax_shift"]),
    *map(_by, ["softmax_sum", "causal_mask_is_mask", "causal_mask_diagonal", "causal_mask_order"]),
    *map(_by, ["activation_reflected", "activation_odd", "sigmoid_reflected", "exp_reflected"]),
    *map(_by, ["relu_idempotent", "relu_parts", "rsqrt_square", "norm_scale"]),
    _by("softmax_exp"),
    _add((*ROWWISE, HadamardProduct), by_premises),
]
FUNCTIONS = [
    *map(_by, ["activation_repeat", "relu_scale", "rsqrt_scale"]),
    *map(_by, ["activation_block", "function_stack", "softmax_unseen_columns"]),
    *map(_by, ["activation_vec"]),
    *map(_by, ["activation_row", "softmax_row", "norm_row"]),
]
TRANSPOSES.append(_add((Transpose,), transpose_inside))
NORMS = list(map(_by, ["layer_norm_definition", "rms_norm_definition"]))
INVERSES = list(map(_by, ["one_inv", "inv_inv", "mul_inv_rev", "smul_inv", "kron_inv"]))
INVERSES.append(_by("transpose_inv"))
CANCEL = list(map(_by, ["mul_inv", "inv_mul"]))
BLOCKS = list(map(_by, ["block_transpose", "block_mul", "block_add", "trace_block", "block_kron"]))
BLOCKS += list(map(_by, ["mul_block", "block_hadamard", "block_one", "block_zero", "block_ones"]))
BLOCKS += [_by("block_nested"), _by("block_diag_inv"), _add((MatMul,), ones_in_blocks)]
BLOCKS += [_add((MatAdd,), blocks_together)]
BRACKETS = [_by("mul_assoc", last=True), _by("hadamard_assoc")]
TENSORS = [_by("kron_one_one"), _by("kron_mul_kron"), _by("ones_mul_ones")]
NUMBERS = list(map(_by, ["mul_smul", "kron_smul", "hadamard_smul", "trace_smul", "vec_smul"]))
NUMBERS.append(_by("head_sum_smul"))
SUMS = [_by("add_assoc", last=True)]
SUMS += list(map(_by, ["mul_add", "add_mul", "smul_add", "kron_add", "hadamard_add", "trace_add"]))
SUMS += list(map(_by, ["head_sum_add", "vec_add"]))
HEADS = list(map(_by, ["one_hot_sum", "one_hot_mul", "concat_mul_stack", "concat_mul_one_kron"]))
HEADS += [_add((Trace,), concat_first)]
HEADS += list(
    map(_by, ["one_kron_mul_stack", "mul_concat", "stack_mul", "concat_stack", "concat_add"])
)
HEADS += [_add((MatMul, KroneckerProduct, HadamardProduct), apart)]
HEADS += list(map(_by, ["head_sum_mul", "head_sum_kron", "head_sum_hadamard", "vec_head_sum"]))
HEADS += list(map(_by, ["head_sum_nested", "head_sum_const", "trace_head_sum_smul"]))
VECTORS = list(
    map(
        _by,
        [
            "vec_dot",
            "vec_hadamard",
            "vec_rows_mul",
            "vec_cols_mul",
            "vec_ones",
            "vec_column",
            "vec_row",
        ],
    )
)
VECTORS += list(map(_by, ["vec_rows_outer", "kron_column_row", "kron_ones_ones"]))
ELEMENTWISE = list(map(_by, ["hadamard_one_one", "kron_hadamard_kron", "trace_hadamard_one"]))
ELEMENTWISE += [_add((HadamardProduct,), split_in_hadamard), _by("diagonal_mul_diagonal")]
TRACES = list(map(_by, ["trace_one", "trace_ones", "trace_kron"]))
NUMBER = _by("one_by_one")
OUTSIDE_TRACE = {NUMBER}  # moves that are not made of what a trace is taken of: it is there already
LATE = [
    _add((MatMul,), split_special),
    _add((MatMul,), beside_one),
    _add((MatMul,), join_ones),
    _add((MatMul,), split_ones),
    _by("one_by_one_mul"),
    _by("diagonal_mul"),
    _by("trace_transpose"),
    _by("kron_assoc"),
    _by("vec_cols_vec_rows"),
    _add((HadamardProduct,), diagonal_way),
    _add((HadamardProduct,), ordered("hadamard_comm")),
    _add((Trace,), least_rotation),
    NUMBER,
    _by("smul_smul"),
    _add((), arithmetic),
    _add((HeadSum,), ordered_sum),
    _add((MatAdd,), ordered("add_comm")),
    _by("add_neg"),
    _by("add_collect"),
]

ENTRIES = [
    *map(_by, ["entry_one", "entry_ones", "entry_zero", "entry_one_hot", "entry_transpose"]),
    *map(_by, ["entry_add", "entry_hadamard", "entry_mul", "entry_head_sum", "explicit_entry"]),
    _by("trace_sum"),
]
INDEX_SUMS = [
    _add((sympy.Mul,), flat_product),
    *map(_by, ["sum_add", "sum_delta"]),
    _add((Sum,), apart_inside),
    *map(_by, ["sum_nested", "sum_const"]),
    _add((sympy.Pow,), open_power),
    _add((sympy.Mul,), apart),
    _by("mul_sum"),
    _add((sympy.Mul,), by_delta),
    _add((Sum,), numbers_out),
    _add((), arithmetic),
    _add((Sum,), ordered_index_sum),
]
OPENED = list(map(_by, ["head_sum_written_out", "layers_written_out", "sum_written_out"]))
EXPLICIT = [
    _by("matrix_written_out"),
    _by("kron_blocks"),
    _by("explicit_transpose"),
    _by("explicit_trace"),
]
EXPLICIT += list(map(_by, ["explicit_mul", "explicit_hadamard", "explicit_kron", "kron_number"]))
EXPLICIT += [_add((), arithmetic), _by("explicit_smul"), _by("explicit_add")]

EARLY = [*ZEROS, *UNITS, *AXIOMS, *POWERS]
PLAIN: list[list[int]] = [
    EARLY
    + TRANSPOSES
    + INVERSES
    + CANCEL
    + BRACKETS
    + GIVEN
    + FUNCTIONS
    + BLOCKS
    + TENSORS
    + NUMBERS
    + SUMS
    + HEADS
    + TRACES
    + ELEMENTWISE
    + VECTORS
    + LATE,
    EARLY
    + TENSORS
    + INVERSES
    + CANCEL
    + BLOCKS
    + SUMS
    + TRANSPOSES
    + HEADS
    + NUMBERS
    + BRACKETS
    + GIVEN
    + FUNCTIONS
    + VECTORS
    + TRACES
    + ELEMENTWISE
    + LATE,
]
ROWS_OUT = _add(ROWWISE, row_outside)
INDEXWISE = [*EARLY, ROWS_OUT, *TRANSPOSES, *BRACKETS, *NUMBERS, _by("add_assoc", last=True)]
INDEXWISE += [*ENTRIES, *INDEX_SUMS, _by("smul_smul"), _add((HeadSum,), ordered_sum)]
ENTRYWISE = list(INDEXWISE)  # the same, but a matrix is first opened into its entries
FIXED = [*ZEROS, *POWERS, *TRANSPOSES, *BRACKETS, *NUMBERS, *OPENED, *BLOCKS, *EXPLICIT]
FIXED += [*ENTRIES, *INDEX_SUMS]
# The same, but diagonal matrices, powers, and what functions are taken of are left as they are.
OUTSIDE = [*NORMS, *[move for move in PLAIN[0] if move not in POWERS]]
BY_DEFINITION = [[[NORMS[0], *PLAIN[0]]], [OUTSIDE], [PLAIN[0] + NORMS]]  # where norms occur
DIAGONALS = [[_by("hadamard_mul_ones"), *PLAIN[0]]]  # where matrices are multiplied elementwise
OPEN_GIVEN = [[_add((MatrixSymbol, FamilyMember, MatMul), open_hypothesis)]]
OPEN_GIVEN[0] += [move for move in PLAIN[0] if move not in GIVEN]
TIERS = [PLAIN, [PLAIN[0] + OPENED], [OPENED + PLAIN[0]], [INDEXWISE], [ENTRYWISE], [FIXED]]
# The same without the cancelling of inverses, and without axioms: between two uses of E E⁻¹ = I, or
# of what an axiom says, they stay as they are.
_USED = {*CANCEL, *AXIOMS}
LINKS = [
    [[k for k in moves if k not in _USED] + NORMS] for moves in (PLAIN[0], INDEXWISE, ENTRYWISE)
]
LINKS_OUTSIDE = [[list(moves) for moves in tier] for tier in LINKS]
OPENING = (ENTRYWISE, LINKS[2][0], LINKS_OUTSIDE[2][0])  # that first open a matrix into its entries
OPAQUE = (OUTSIDE, *[moves for tier in LINKS_OUTSIDE for moves in tier])
