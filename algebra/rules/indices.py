"""Rules of index notation: entries of matrices, sums over indices, and the Kronecker delta."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import sympy
from sympy import (
    Identity,
    KroneckerDelta,
    MatMul,
    OneMatrix,
    Sum,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.binders import substituted
from otimes.algebra.language.linear import HeadSum, OneHot
from otimes.algebra.language.trees import stated
from otimes.algebra.rules.rule import (
    BINDERS,
    MATRICES,
    OF_MATRICES,
    bound,
    elementwise,
    equation,
    fresh,
    limits_of,
    mentions,
    product,
    relation,
    renamed,
    rule,
    same_size,
    scalar_product,
    split_scalars,
    total,
    without,
)
from otimes.algebra.rules.symbols import A2, A, As, B, H, c, col, h, n, other, row

Limit = tuple[Any, Any]  # an index, and the number of its values


def entry(matrix: Any, row: Any, col: Any) -> Any:
    """Return an entry of a matrix, unevaluated."""
    return stated(MatrixElement, matrix, row, col)


def index_sum(body: Any, *limits: Limit) -> Any:
    """Return the unevaluated sum over indices with full ranges; the body if there are none."""
    if not limits:
        return body
    return stated(Sum, body, *[sympy.Tuple(k, 0, count - 1) for k, count in limits])


def delta(i: Any, j: Any, size: Any) -> Any:
    """Return the Kronecker delta of two indices in range(size); 1 where they are the same."""
    return KroneckerDelta(i, j, (0, size - 1))


def along(size: Any, names: list[Any], limits: list[Limit]) -> Any:
    """Return an index for an axis: 0 for size 1, else a new one, which is added to `limits`."""
    if size == 1:
        return sympy.S.Zero
    limits.append((names.pop(0), size))
    return limits[-1][0]


# -- entries ------------------------------------------------------------------------------------


@rule(MatrixElement, of=MatMul, example=entry(product(A, B), row, col), binds=True)
def entry_mul(e: Any) -> Iterator[Any]:
    """Expand all the factors of a product at once; scalars stay in front."""
    matrix, i, j = e.args
    numbers, factors = split_scalars(matrix)
    names = fresh(len(factors), e)
    limits: list[Limit] = []
    places = [i, *[along(x.shape[1], names, limits) for x in factors[:-1]], j]
    parts = [entry(x, places[k], places[k + 1]) for k, x in enumerate(factors)]
    if len(parts) > 1 or numbers:
        yield scalar_product(*numbers, index_sum(scalar_product(*parts), *limits))


equation(
    "entry_add",
    entry(total(A, B), row, col),
    lambda x, i, j: sympy.Add(*[entry(y, i, j) for y in x.args], evaluate=False),
)
equation("entry_transpose", entry(Transpose(A), row, col), lambda x, i, j: entry(x.args[0], j, i))
equation(
    "entry_hadamard",
    entry(elementwise(A, B), row, col),
    lambda x, i, j: scalar_product(*[entry(y, i, j) for y in x.args]),
)
equation("entry_one", entry(Identity(n), row, col), lambda x, i, j: delta(i, j, x.shape[0]))
equation("entry_ones", entry(OneMatrix(n, n), row, col), lambda *_: sympy.S.One, bookkeeping=True)
equation("entry_zero", entry(ZeroMatrix(n, n), row, col), lambda *_: sympy.S.Zero, bookkeeping=True)
equation(
    "entry_one_hot",
    entry(OneHot(other, n), row, sympy.S.Zero),
    lambda x, i, _: delta(x.args[0], i, x.args[1]),
)


@rule(MatrixElement, of=HeadSum, example=entry(HeadSum(As[h], (h, H)), row, col))
def entry_head_sum(e: Any) -> Iterator[Any]:
    matrix, i, j = e.args
    if not {i, j} & set(bound(matrix)):
        yield index_sum(entry(matrix.body, i, j), *matrix.limits)


@rule(Trace, example=Trace(A), binds=True)
def trace_sum(e: Any) -> Iterator[Any]:
    limits: list[Limit] = []
    i = along(e.args[0].shape[0], fresh(1, e), limits)
    yield index_sum(entry(e.args[0], i, i), *limits)


@rule(*MATRICES, example=A, binds=True)
def matrix_of_entries(e: Any) -> Iterator[Any]:
    """Write a matrix as the sum of its entries times matrix units e_i e_jᵀ."""
    names = fresh(2, e)
    limits: list[Limit] = []
    i, j = (along(size, names, limits) for size in e.shape)
    column, row = OneHot(i, e.shape[0]), Transpose(OneHot(j, e.shape[1]))
    units = [unit for unit, size in zip((column, row), e.shape, strict=True) if size != 1]
    whole = product(entry(e, i, j), *(units or [Identity(1)]))
    yield HeadSum(whole, *limits) if limits else whole


# -- sums ---------------------------------------------------------------------------------------


equation(
    "sum_add",
    index_sum(A[row, col] + B[row, col], (col, n)),
    lambda body, *limits: sympy.Add(*[stated(Sum, x, *limits) for x in body.args], evaluate=False),
)


@rule(Sum, example=index_sum(c * A[row, col], (col, n)))
def sum_smul(e: Any) -> Iterator[Any]:
    """Take scalars, or all factors that do not depend on the indices, out of a sum."""
    body = e.args[0]
    factors = list(body.args) if type(body) is sympy.Mul else [body]
    loose = [x for x in factors if not mentions(x, bound(e)) and x != 1]
    for out in ([x for x in loose if not x.has(*OF_MATRICES)], loose):
        inside = scalar_product(*[x for x in factors if x not in out])
        if out:
            yield scalar_product(*out, stated(Sum, inside, *e.args[1:]))


@rule(sympy.Mul, example=scalar_product(B[row, row], index_sum(A[row, col], (col, n))))
def mul_sum(e: Any) -> Iterator[Any]:
    """Move the other entries and sums of a product into a sum; scalars stay in front."""
    for k, x in enumerate(e.args):
        if type(x) is Sum:
            others = without(e, k)
            stay = [y for y in others if not y.has(*OF_MATRICES)]
            go = [y for y in others if y.has(*OF_MATRICES)]
            if go and not any(mentions(y, bound(x)) for y in go):
                inside = x.args[0].args if type(x.args[0]) is sympy.Mul else (x.args[0],)
                yield scalar_product(*stay, stated(Sum, scalar_product(*go, *inside), *x.args[1:]))


@rule(Sum, example=index_sum(index_sum(A[row, col], (col, n)), (row, n)), bookkeeping=True)
def sum_nested(e: Any) -> Iterator[Any]:
    body = e.args[0]
    if type(body) is Sum and not set(bound(e)) & set(bound(body)):
        yield stated(Sum, body.args[0], *body.args[1:], *e.args[1:])


@rule(Sum, example=index_sum(A[row, col], (row, n), (col, n)), bookkeeping=True)
def sum_comm(e: Any) -> Iterator[Any]:
    if len(set(bound(e))) == len(e.limits) <= 5:
        for limits in permutations(e.args[1:]):
            if limits != e.args[1:]:
                yield stated(Sum, e.args[0], *limits)


@relation(
    Sum,
    example=(index_sum(A[row, col], (col, n)), index_sum(A[row, other], (other, n))),
    bookkeeping=True,
)
def sum_rename(before: Any, after: Any) -> bool:
    """Relate two sums that differ only in the names of their bound indices."""
    if type(after) is not Sum or len(before.limits) != len(after.limits):
        return False
    return bool(renamed(before, bound(after)) == after)


@rule(Sum, example=index_sum(A[row, row], (col, n)))
def sum_const(e: Any) -> Iterator[Any]:
    for k, (index, count) in enumerate(limits_of(e)):
        if not mentions(e.args[0], [index]):
            rest = e.args[1 : k + 1] + e.args[k + 2 :]
            inner = stated(Sum, e.args[0], *rest) if rest else e.args[0]
            yield count if inner == 1 else scalar_product(count, inner)


@rule(Sum, example=index_sum(scalar_product(delta(row, col, n), A[col, other]), (col, n)))
def sum_delta(e: Any) -> Iterator[Any]:
    body = e.args[0]
    factors = list(body.args) if type(body) is sympy.Mul else [body]
    for place, x in enumerate(factors):
        for k, (index, count) in enumerate(limits_of(e)):
            other = _other(x, index)
            if other is None or not same_size(x.args[2][1] + 1, count):
                continue
            rest = factors[:place] + factors[place + 1 :]
            if _clash(body, [index, other]):
                continue
            inside = scalar_product(*[substituted(y, {index: other}) for y in rest])
            limits = e.args[1 : k + 1] + e.args[k + 2 :]
            yield stated(Sum, inside, *limits) if limits else inside


def _other(x: Any, index: Any) -> Any:
    """Return the other index of a Kronecker delta; None if this index is not in it."""
    if type(x) is not KroneckerDelta or len(x.args) < 3 or index not in x.args[:2]:
        return None
    return x.args[1] if x.args[0] == index else x.args[0]


def _clash(e: Any, names: list[Any]) -> bool:
    return any(set(names) & set(bound(x)) for x in e.atoms(*BINDERS))


@rule(sympy.Mul, example=scalar_product(delta(row, col, n), A[col, other]))
def delta_mul(e: Any) -> Iterator[Any]:
    for k, x in enumerate(e.args):
        if type(x) is KroneckerDelta:
            kept, gone = x.args[:2]
            for new, old in ((kept, gone), (gone, kept)):
                others = [y for j, y in enumerate(e.args) if j != k and mentions(y, [old])]
                if others and old.is_Symbol and not any(_clash(y, [old, new]) for y in others):
                    yield scalar_product(
                        *[y if j == k else substituted(y, {old: new}) for j, y in enumerate(e.args)]
                    )


@rule(Sum, example=index_sum(A2[row, col], (col, sympy.Integer(2))))
def sum_written_out(e: Any) -> Iterator[Any]:
    """Expand a sum over at most 9 values, term by term."""
    for k, (index, count) in enumerate(limits_of(e)):
        if count.is_Integer and count <= 9 and not _clash(e.args[0], [index]):
            rest = e.args[1 : k + 1] + e.args[k + 2 :]
            terms = [
                substituted(e.args[0], {index: sympy.Integer(value)}) for value in range(count)
            ]
            made = [stated(Sum, x, *rest) if rest else x for x in terms]
            yield sympy.Add(*made, evaluate=False) if len(made) > 1 else made[0]


def apart(e: Any, other: Any) -> Any:
    """Return a sum with its bound indices renamed so that none occurs in the other expression."""
    names = iter(fresh(len(e.limits), e, other))
    taken = other.atoms(sympy.Symbol)
    return renamed(e, [next(names) if x in taken else x for x in bound(e)])
