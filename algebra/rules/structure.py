"""Rules of block matrices, inverses and diagonal matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy
from sympy import (
    BlockDiagMatrix,
    BlockMatrix,
    HadamardPower,
    HadamardProduct,
    Identity,
    Inverse,
    KroneckerProduct,
    MatMul,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf

from otimes.algebra.rules.rule import (
    MAKE,
    elementwise,
    equation,
    pairs,
    product,
    rule,
    same_size,
    scalar_product,
    split_scalars,
    tensor,
    total,
    with_pair,
)
from otimes.algebra.rules.symbols import A, B, C, D, X, c, d, n, u

Rows = list[list[Any]]


def rows_of(e: Any) -> Rows:
    """Return the blocks of a block matrix as a list of rows."""
    rows: Rows = e.args[0].tolist()
    return rows


def blocks(rows: Rows) -> Any:
    """Return the block matrix with these rows of blocks; a single block is returned as it is."""
    return rows[0][0] if len(rows) == len(rows[0]) == 1 else BlockMatrix(rows)


# -- blocks -------------------------------------------------------------------------------------


@rule(MatMul, example=product(BlockMatrix([[A, B]]), BlockMatrix([[C], [D]])))
def block_mul(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, BlockMatrix, BlockMatrix):
        left, right = rows_of(x), rows_of(y)
        inner = [(a.shape[1], row[0].shape[0]) for a, row in zip(left[0], right, strict=False)]
        if len(left[0]) == len(right) and all(same_size(a, b) for a, b in inner):
            columns = list(zip(*right, strict=True))
            made = [[_dot(row, column) for column in columns] for row in left]
            yield with_pair(e, k, blocks(made))


def _dot(row: Any, column: Any) -> Any:
    return total(*[product(a, b) for a, b in zip(row, column, strict=True)])


@rule(MatMul, example=product(A, BlockMatrix([[B, X]])))
def mul_block(e: Any) -> Iterator[Any]:
    """Also with scalars, and with a column of blocks on the left: [B; C] A = [B A; C A]."""
    numbers, matrices = split_scalars(e)
    first, last = matrices[0], matrices[-1]
    if (
        type(last) is BlockMatrix
        and len(e.args) > 1
        and (len(rows_of(last)) == 1 or len(matrices) == 1)
    ):
        others = matrices[:-1]
        yield blocks([[product(*numbers, *others, x) for x in row] for row in rows_of(last)])
    elif type(first) is BlockMatrix and len(matrices) > 1 and len(rows_of(first)[0]) == 1:
        yield blocks([[product(*numbers, x, *matrices[1:]) for x in row] for row in rows_of(first)])


def _block_by_block(e: Any) -> Iterator[Any]:
    if all(type(x) is BlockMatrix for x in e.args):
        first, *rest = tables = [rows_of(x) for x in e.args]
        if all(_alike(first, other) for other in rest):
            lines = [zip(*line, strict=True) for line in zip(*tables, strict=True)]
            yield blocks([[MAKE[type(e)](*parts) for parts in line] for line in lines])


for _name, _make in {"block_add": total, "block_hadamard": elementwise}.items():
    _example = _make(BlockMatrix([[A, B]]), BlockMatrix([[C, D]]))
    rule(type(_example), example=_example, name=_name)(_block_by_block)


@rule(
    BlockMatrix, example=blocks([[Identity(n), ZeroMatrix(n, d)], [ZeroMatrix(d, n), Identity(d)]])
)
def block_one(e: Any) -> Iterator[Any]:
    rows = rows_of(e)
    if len(rows) == len(rows[0]) and all(
        type(x) is (Identity if i == j else ZeroMatrix)
        for i, row in enumerate(rows)
        for j, x in enumerate(row)
    ):
        yield Identity(e.shape[0])


@rule(BlockMatrix, example=BlockMatrix([[ZeroMatrix(n, n), ZeroMatrix(n, d)]]))
def block_zero(e: Any) -> Iterator[Any]:
    if all(type(x) is ZeroMatrix for row in rows_of(e) for x in row):
        yield ZeroMatrix(*e.shape)


@rule(BlockMatrix, example=BlockMatrix([[OneMatrix(n, n), OneMatrix(n, d)]]))
def block_ones(e: Any) -> Iterator[Any]:
    if all(type(x) is OneMatrix for row in rows_of(e) for x in row):
        yield OneMatrix(*e.shape)


@rule(BlockMatrix, example=BlockMatrix([[BlockMatrix([[A, B]]), C]]), bookkeeping=True)
def block_nested(e: Any) -> Iterator[Any]:
    rows = rows_of(e)
    tables = [[rows_of(x) if type(x) is BlockMatrix else [[x]] for x in row] for row in rows]
    heights = [{len(table) for table in row} for row in tables]
    widths = [{len(row[j][0]) for row in tables} for j in range(len(rows[0]))]
    fits = all(len(sizes) == 1 for sizes in [*heights, *widths])
    if fits and any(type(x) is BlockMatrix for row in rows for x in row):
        yield blocks(
            [[x for table in row for x in table[k]] for row in tables for k in range(len(row[0]))]
        )


@rule(Inverse, of=BlockDiagMatrix, example=Inverse(BlockDiagMatrix(A, B)))
def block_diag_inv(e: Any) -> Iterator[Any]:
    if all(same_size(*x.shape) for x in e.args[0].args):
        yield BlockDiagMatrix(*[Inverse(x) for x in e.args[0].args])


def _alike(a: Rows, b: Rows) -> bool:
    return (len(a), len(a[0])) == (len(b), len(b[0])) and all(
        same_size(x.shape[0], y.shape[0]) and same_size(x.shape[1], y.shape[1])
        for p, q in zip(a, b, strict=True)
        for x, y in zip(p, q, strict=True)
    )


equation(
    "block_transpose",
    Transpose(BlockMatrix([[A, B]])),
    lambda x: blocks([[Transpose(y) for y in column] for column in zip(*rows_of(x), strict=True)]),
)


@rule(Trace, of=BlockMatrix, example=Trace(BlockMatrix([[A, B], [C, D]])))
def trace_block(e: Any) -> Iterator[Any]:
    rows = rows_of(e.args[0])
    diagonal = [row[k] for k, row in enumerate(rows) if k < len(row)]
    if len(rows) == len(rows[0]) and all(same_size(*x.shape) for x in diagonal):
        yield sympy.Add(*[Trace(x) for x in diagonal], evaluate=False)


equation(
    "block_kron",
    tensor(BlockMatrix([[A, B]]), C),
    lambda x, *rest: blocks([[tensor(y, *rest) for y in line] for line in rows_of(x)]),
)


@rule(BlockDiagMatrix, example=BlockDiagMatrix(A, B))
def block_diag(e: Any) -> Iterator[Any]:
    parts = e.args
    yield blocks(
        [
            [x if i == j else ZeroMatrix(x.shape[0], y.shape[1]) for j, y in enumerate(parts)]
            for i, x in enumerate(parts)
        ]
    )


# -- inverses -----------------------------------------------------------------------------------


@rule(MatMul, example=product(A, Inverse(A)))
def mul_inv(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, None, Inverse):
        if y.args[0] == x:
            yield with_pair(e, k, Identity(x.shape[0]))


@rule(MatMul, example=product(Inverse(A), A))
def inv_mul(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, Inverse):
        if x.args[0] == y:
            yield with_pair(e, k, Identity(y.shape[0]))


@rule(Inverse, of=MatMul, example=Inverse(product(A, B)))
def mul_inv_rev(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e.args[0])
    if len(matrices) > 1 and all(same_size(*x.shape) for x in matrices):
        inverted = [sympy.Pow(c, -1, evaluate=False) for c in numbers]
        yield product(*inverted, *[Inverse(x) for x in reversed(matrices)])


@rule(Inverse, of=MatMul, example=Inverse(product(c, A)))
def smul_inv(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e.args[0])
    if numbers and len(matrices) == 1:
        yield product(sympy.Pow(scalar_product(*numbers), -1), Inverse(matrices[0]))


equation("inv_inv", Inverse(Inverse(A)), lambda x, _: x.args[0])
equation("one_inv", Inverse(Identity(n)), lambda x, _: x, bookkeeping=True)


@rule(Inverse, of=KroneckerProduct, example=Inverse(tensor(A, B)))
def kron_inv(e: Any) -> Iterator[Any]:
    if all(same_size(*x.shape) for x in e.args[0].args):
        yield tensor(*[Inverse(x) for x in e.args[0].args])


equation("transpose_inv", Transpose(Inverse(A)), lambda x: Inverse(Transpose(x.args[0])))


# -- diagonal matrices --------------------------------------------------------------------------


@rule(DiagMatrix, example=DiagMatrix(u))
def diag_hadamard(e: Any) -> Iterator[Any]:
    column = e.args[0]
    if column.shape[1] == 1:
        size = column.shape[0]
        yield elementwise(Identity(size), product(column, OneMatrix(1, size)))


equation("diagonal_hadamard", DiagonalMatrix(A), lambda x: elementwise(Identity(x.shape[0]), x))
equation(
    "diagonal_of_ones",
    DiagonalOf(A),
    lambda x: product(elementwise(Identity(x.shape[0]), x), OneMatrix(x.shape[0], 1)),
)


@rule(MatMul, example=product(elementwise(Identity(n), product(u, OneMatrix(1, n))), A))
def diagonal_mul(e: Any) -> Iterator[Any]:
    """Scale the rows by a diagonal matrix on the left, or the columns by one on the right."""
    for k, x, y in pairs(e):
        for diagonal, other, left in ((x, y, True), (y, x, False)):
            column = _diagonal_column(diagonal)
            if column is not None:
                rows, cols = other.shape
                scale = product(column, OneMatrix(1, cols))
                if not left:
                    scale = product(OneMatrix(rows, 1), Transpose(column))
                yield with_pair(e, k, elementwise(scale, other))


def _diagonal_column(e: Any) -> Any:
    """Return x when e is I ∘ x 1ᵀ."""
    if type(e) is HadamardProduct and len(e.args) == 2 and type(e.args[0]) is Identity:
        other = e.args[1]
        if type(other) is MatMul and len(other.args) == 2:
            column, row = other.args
            if (
                type(row) is OneMatrix
                and row.shape[0] == 1
                and not isinstance(column, sympy.Rational)
            ):
                return column
    return None


@rule(HadamardPower, example=HadamardPower(A, 3))
def hadamard_pow_succ(e: Any) -> Iterator[Any]:
    base, exponent = e.args
    if isinstance(exponent, sympy.Integer) and exponent > 1:
        less = HadamardPower(base, exponent - 1) if exponent > 2 else base
        yield elementwise(less, base)
