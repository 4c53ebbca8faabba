"""Rules for expressions of numeric size: matrices entry by entry, sums term by term."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as every
from typing import Any

import sympy
from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    ImmutableDenseMatrix,
    KroneckerProduct,
    MatAdd,
    MatMul,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.binders import substituted
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import ConcatHeads, FamilyMember, HeadSum, OneHot, StackHeads
from otimes.algebra.rules.indices import delta, entry
from otimes.algebra.rules.rule import (
    BINDERS,
    bound,
    pairs,
    product,
    rule,
    split_scalars,
    tensor,
    total,
    with_pair,
    without,
)
from otimes.algebra.rules.symbols import A2, A, As, H, a, b, c, h, p, pair, q, row_ab, row_pq

LARGEST = 16  # a matrix of more entries, or a sum of more terms, is not expanded


def matrix(rows: Any, cols: Any, entries: list[Any]) -> Any:
    """Return the explicit matrix with these entries, in row-major order."""
    return ImmutableDenseMatrix(int(rows), int(cols), entries)


def is_explicit(e: Any) -> bool:
    """Return whether an expression is an explicit matrix."""
    return type(e) is ImmutableDenseMatrix


def _places(e: Any) -> Iterator[tuple[int, int]]:
    return every(range(int(e.shape[0])), range(int(e.shape[1])))


# -- matrices -----------------------------------------------------------------------------------


@rule(sympy.MatrixSymbol, FamilyMember, Identity, OneMatrix, ZeroMatrix, OneHot, example=A2)
def matrix_written_out(e: Any) -> Iterator[Any]:
    rows, cols = e.shape
    if rows.is_Integer and cols.is_Integer and rows * cols <= LARGEST:
        yield matrix(rows, cols, [_entry(e, i, j) for i, j in _places(e)])


def _entry(e: Any, i: int, j: int) -> Any:
    known = {Identity: int(i == j), OneMatrix: 1, ZeroMatrix: 0}
    if type(e) in known:
        return sympy.Integer(known[type(e)])
    if type(e) is OneHot:
        return delta(e.args[0], sympy.Integer(i), e.args[1])
    return entry(e, sympy.Integer(i), sympy.Integer(j))


@rule(MatMul, example=product(row_ab, row_pq.T))
def explicit_mul(e: Any) -> Iterator[Any]:
    """Multiply two explicit matrices."""
    for k, x, y in pairs(e, ImmutableDenseMatrix, ImmutableDenseMatrix):
        made = [
            sympy.Add(*[x[i, s] * y[s, j] for s in range(x.cols)])
            for i, j in every(range(x.rows), range(y.cols))
        ]
        yield with_pair(e, k, matrix(x.rows, y.cols, made))


@rule(MatMul, example=product(c, row_ab))
def explicit_smul(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e)
    if numbers and len(matrices) == 1 and is_explicit(matrices[0]):
        (x,) = matrices
        yield matrix(x.rows, x.cols, [sympy.Mul(*numbers, y) for y in x])


def _entry_by_entry(e: Any) -> Iterator[Any]:
    make = sympy.Add if type(e) is MatAdd else sympy.Mul
    if all(map(is_explicit, e.args)):
        columns = zip(*e.args, strict=True)
        yield matrix(e.args[0].rows, e.args[0].cols, [make(*entries) for entries in columns])


rule(MatAdd, example=total(row_ab, row_pq), name="explicit_add")(_entry_by_entry)
rule(HadamardProduct, example=HadamardProduct(row_ab, row_pq), name="explicit_hadamard")(
    _entry_by_entry
)


@rule(Transpose, example=Transpose(row_ab))
def explicit_transpose(e: Any) -> Iterator[Any]:
    x = e.args[0]
    if is_explicit(x):
        yield matrix(x.cols, x.rows, [x[j, i] for i, j in every(range(x.cols), range(x.rows))])


@rule(Trace, example=Trace(matrix(2, 2, [a, b, p, q])))
def explicit_trace(e: Any) -> Iterator[Any]:
    x = e.args[0]
    if is_explicit(x):
        yield sympy.Add(*[x[i, i] for i in range(x.rows)])


@rule(KroneckerProduct, example=tensor(row_ab, row_pq))
def explicit_kron(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, ImmutableDenseMatrix, ImmutableDenseMatrix):
        if len(x) * len(y) <= LARGEST:
            made = [
                x[i, j] * y[s, t]
                for i, s, j, t in every(*map(range, (x.rows, y.rows, x.cols, y.cols)))
            ]
            whole = matrix(x.rows * y.rows, x.cols * y.cols, made)
            yield with_pair(e, k, whole)


@rule(KroneckerProduct, example=tensor(matrix(1, 1, [a]), A))
def kron_number(e: Any) -> Iterator[Any]:
    for k, x in enumerate(e.args):
        if is_explicit(x) and x.shape == (1, 1):
            yield product(x[0, 0], tensor(*without(e, k)))


@rule(KroneckerProduct, example=tensor(row_ab, A))
def kron_blocks(e: Any) -> Iterator[Any]:
    x, rest = e.args[0], tensor(*e.args[1:])
    if is_explicit(x) and len(e.args) > 1 and len(x) > 1 and not all(map(_numeric, rest.shape)):
        yield BlockMatrix([[_times(x[i, j], rest) for j in range(x.cols)] for i in range(x.rows)])


def _numeric(size: Any) -> bool:
    return isinstance(size, int | sympy.Integer)  # explicit matrices have plain integers


def _times(number: Any, e: Any) -> Any:
    if number == 0:
        return ZeroMatrix(*e.shape)
    return e if number == 1 else product(number, e)


@rule(MatrixElement, example=entry(row_ab, sympy.S.Zero, sympy.S.One))
def explicit_entry(e: Any) -> Iterator[Any]:
    x, i, j = e.args
    if is_explicit(x) and i.is_Integer and j.is_Integer:
        yield x[int(i), int(j)]


# -- heads and layers ---------------------------------------------------------------------------


def _terms(e: Any) -> list[Any]:
    """Return the terms over the first index of a sum; none where its range is not numeric."""
    (index, count), *inner = e.limits
    if not (count.is_Integer and 1 <= count <= LARGEST) or _clash(e.body, index):
        return []
    bodies = [substituted(e.body, {index: sympy.Integer(k)}) for k in range(int(count))]
    return [type(e)(x, *inner) if inner else x for x in bodies]


def _clash(e: Any, index: Any) -> bool:
    return any(index in bound(x) for x in e.atoms(*BINDERS))


@rule(HeadSum, example=HeadSum(pair[h], (h, 2)))
def head_sum_written_out(e: Any) -> Iterator[Any]:
    terms = _terms(e)
    if terms:
        yield total(*terms)


@rule(ConcatHeads, StackHeads, example=ConcatHeads(As[h], (h, H)))
def concat_kron(e: Any) -> Iterator[Any]:
    """Write concatenated heads with unit rows e_hᵀ, and stacked heads with unit columns e_h."""
    units = [OneHot(index, count) for index, count in e.limits]
    if type(e) is ConcatHeads:
        units = [Transpose(x) for x in units]
    yield HeadSum(tensor(*units, e.body), *e.limits)


@rule(LayerProduct, example=LayerProduct(pair[h], (h, 2)))
def layers_written_out(e: Any) -> Iterator[Any]:
    if e.count.is_Integer and e.count <= LARGEST and not _clash(e.body, e.index):
        order = [substituted(e.body, {e.index: sympy.Integer(k)}) for k in range(int(e.count))]
        factors = order if e.reverse else order[::-1]
        yield product(*factors) if factors else Identity(e.shape[0])
