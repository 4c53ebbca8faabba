"""Rules of index notation: entries of matrices, sums over indices, and Kronecker's delta."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import sympy
from sympy import (
    HadamardProduct,
    Identity,
    KroneckerDelta,
    MatAdd,
    MatMul,
    OneMatrix,
    Sum,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra.binders import substituted
from algebra.language import HeadSum, OneHot, stated
from algebra.rules.rule import (
    BINDERS,
    MATRICES,
    OF_MATRICES,
    bound,
    fresh,
    mentions,
    product,
    relation,
    renamed,
    rule,
    same_size,
    scalar_product,
    split_scalars,
    without,
)

Limit = tuple[Any, Any]  # an index, and how many values it has


def entry(matrix: Any, row: Any, col: Any) -> Any:
    """Return the entry of a matrix, as stated."""
    return stated(MatrixElement, matrix, row, col)


def index_sum(body: Any, *limits: Limit) -> Any:
    """Return the sum over full ranges of indices, as stated; over none it is the body."""
    if not limits:
        return body
    return stated(Sum, body, *[sympy.Tuple(k, 0, count - 1) for k, count in limits])


def counts(e: Any) -> list[Limit]:
    """Return the indices of a sum, each with the number of its values."""
    return [(index, last + 1) for index, _, last in e.limits]


def delta(i: Any, j: Any, size: Any) -> Any:
    """Return Kronecker's delta; of one index twice it is one."""
    return KroneckerDelta(i, j, (0, size - 1))


def along(size: Any, names: list[Any], limits: list[Limit]) -> Any:
    """Return an index for an axis, which is summed over unless it has one value only."""
    if size == 1:
        return sympy.S.Zero
    limits.append((names.pop(0), size))
    return limits[-1][0]


# -- entries ------------------------------------------------------------------------------------


@rule(MatrixElement, binds=True)
def entry_mul(e: Any) -> Iterator[Any]:
    """(A B)_ij = Σ_k A_ik B_kj

    All the factors of a product at once; numbers stay in front.
    """
    matrix, i, j = e.args
    if type(matrix) is MatMul:
        numbers, factors = split_scalars(matrix)
        names = fresh(len(factors), e)
        limits: list[Limit] = []
        places = [i, *[along(x.shape[1], names, limits) for x in factors[:-1]], j]
        parts = [entry(x, places[k], places[k + 1]) for k, x in enumerate(factors)]
        if len(parts) > 1 or numbers:
            yield scalar_product(*numbers, index_sum(scalar_product(*parts), *limits))


@rule(MatrixElement)
def entry_add(e: Any) -> Iterator[Any]:
    """(A + B)_ij = A_ij + B_ij"""
    matrix, i, j = e.args
    if type(matrix) is MatAdd:
        yield sympy.Add(*[entry(x, i, j) for x in matrix.args], evaluate=False)


@rule(MatrixElement)
def entry_transpose(e: Any) -> Iterator[Any]:
    """(Aᵀ)_ij = A_ji"""
    matrix, i, j = e.args
    if type(matrix) is Transpose:
        yield entry(matrix.args[0], j, i)


@rule(MatrixElement)
def entry_hadamard(e: Any) -> Iterator[Any]:
    """(A ∘ B)_ij = A_ij B_ij"""
    matrix, i, j = e.args
    if type(matrix) is HadamardProduct:
        yield scalar_product(*[entry(x, i, j) for x in matrix.args])


@rule(MatrixElement)
def entry_one(e: Any) -> Iterator[Any]:
    """I_ij = δ_ij"""
    matrix, i, j = e.args
    if type(matrix) is Identity:
        yield delta(i, j, matrix.shape[0])


@rule(MatrixElement, bookkeeping=True)
def entry_ones(e: Any) -> Iterator[Any]:
    """1_ij = 1

    Every entry of a matrix of ones is one.
    """
    if type(e.args[0]) is OneMatrix:
        yield sympy.S.One


@rule(MatrixElement, bookkeeping=True)
def entry_zero(e: Any) -> Iterator[Any]:
    """0_ij = 0"""
    if type(e.args[0]) is ZeroMatrix:
        yield sympy.S.Zero


@rule(MatrixElement)
def entry_one_hot(e: Any) -> Iterator[Any]:
    """(e_k)_i = δ_ik"""
    matrix, i, _ = e.args
    if type(matrix) is OneHot:
        yield delta(matrix.args[0], i, matrix.args[1])


@rule(MatrixElement)
def entry_head_sum(e: Any) -> Iterator[Any]:
    """(Σ_h A_h)_ij = Σ_h (A_h)_ij"""
    matrix, i, j = e.args
    if type(matrix) is HeadSum and not {i, j} & set(bound(matrix)):
        yield index_sum(entry(matrix.body, i, j), *matrix.limits)


@rule(Trace, binds=True)
def trace_sum(e: Any) -> Iterator[Any]:
    """tr(A) = Σ_i A_ii"""
    limits: list[Limit] = []
    i = along(e.args[0].shape[0], fresh(1, e), limits)
    yield index_sum(entry(e.args[0], i, i), *limits)


@rule(*MATRICES, binds=True)
def matrix_of_entries(e: Any) -> Iterator[Any]:
    """A = Σ_i Σ_j A_ij e_i e_jᵀ

    A matrix is the sum of its entries times unit columns and rows.
    """
    names = fresh(2, e)
    limits: list[Limit] = []
    i, j = (along(size, names, limits) for size in e.shape)
    column, row = OneHot(i, e.shape[0]), Transpose(OneHot(j, e.shape[1]))
    units = [unit for unit, size in zip((column, row), e.shape, strict=True) if size != 1]
    whole = product(entry(e, i, j), *(units or [Identity(1)]))
    yield HeadSum(whole, *limits) if limits else whole


# -- sums ---------------------------------------------------------------------------------------


@rule(Sum)
def sum_add(e: Any) -> Iterator[Any]:
    """Σ (x + y) = Σ x + Σ y"""
    if type(e.args[0]) is sympy.Add:
        terms = [stated(Sum, x, *e.args[1:]) for x in e.args[0].args]
        yield sympy.Add(*terms, evaluate=False)


@rule(Sum)
def sum_smul(e: Any) -> Iterator[Any]:
    """Σ c x = c Σ x

    Take numbers out of a sum; also whatever else does not have its indices.
    """
    body = e.args[0]
    factors = list(body.args) if type(body) is sympy.Mul else [body]
    loose = [x for x in factors if not mentions(x, bound(e)) and x != 1]
    for out in ([x for x in loose if not x.has(*OF_MATRICES)], loose):
        inside = scalar_product(*[x for x in factors if x not in out])
        if out:
            yield scalar_product(*out, stated(Sum, inside, *e.args[1:]))


@rule(sympy.Mul)
def mul_sum(e: Any) -> Iterator[Any]:
    """X Σ y = Σ x y

    The other entries and sums of a product go into a sum; plain numbers stay in front.
    """
    for k, x in enumerate(e.args):
        if type(x) is Sum:
            others = without(e, k)
            stay = [y for y in others if not y.has(*OF_MATRICES)]
            go = [y for y in others if y.has(*OF_MATRICES)]
            if go and not any(mentions(y, bound(x)) for y in go):
                inside = x.args[0].args if type(x.args[0]) is sympy.Mul else (x.args[0],)
                yield scalar_product(*stay, stated(Sum, scalar_product(*go, *inside), *x.args[1:]))


@rule(Sum, bookkeeping=True)
def sum_nested(e: Any) -> Iterator[Any]:
    """Σ_i (Σ_j x) = Σ_i Σ_j x

    Also where a product stands before the inner sum.
    """
    body = e.args[0]
    if type(body) is Sum and not set(bound(e)) & set(bound(body)):
        yield stated(Sum, body.args[0], *body.args[1:], *e.args[1:])


@rule(Sum, bookkeeping=True)
def sum_comm(e: Any) -> Iterator[Any]:
    """Σ_i Σ_j x = Σ_j Σ_i x"""
    if len(set(bound(e))) == len(e.limits) <= 5:
        for limits in permutations(e.args[1:]):
            if limits != e.args[1:]:
                yield stated(Sum, e.args[0], *limits)


@relation(Sum, bookkeeping=True)
def sum_rename(before: Any, after: Any) -> bool:
    """The name of an index that is summed over does not matter

    Relate two sums over indices that differ in the names of their indices only.
    """
    if type(after) is not Sum or len(before.limits) != len(after.limits):
        return False
    return bool(renamed(before, bound(after)) == after)


@rule(Sum)
def sum_const(e: Any) -> Iterator[Any]:
    """Σ_i x = n x where x does not have i"""
    for k, (index, count) in enumerate(counts(e)):
        if not mentions(e.args[0], [index]):
            rest = e.args[1 : k + 1] + e.args[k + 2 :]
            inner = stated(Sum, e.args[0], *rest) if rest else e.args[0]
            yield count if inner == 1 else scalar_product(count, inner)


@rule(Sum)
def sum_delta(e: Any) -> Iterator[Any]:
    """Σ_j δ_ij x_j = x_i"""
    body = e.args[0]
    factors = list(body.args) if type(body) is sympy.Mul else [body]
    for place, x in enumerate(factors):
        for k, (index, count) in enumerate(counts(e)):
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
    """Return the index that a delta sets equal to this one."""
    if type(x) is not KroneckerDelta or len(x.args) < 3 or index not in x.args[:2]:
        return None
    return x.args[1] if x.args[0] == index else x.args[0]


def _clash(e: Any, names: list[Any]) -> bool:
    return any(set(names) & set(bound(x)) for x in e.atoms(*BINDERS))


@rule(sympy.Mul)
def delta_mul(e: Any) -> Iterator[Any]:
    """δ_ij x_j = δ_ij x_i"""
    for k, x in enumerate(e.args):
        if type(x) is KroneckerDelta:
            kept, gone = x.args[:2]
            for new, old in ((kept, gone), (gone, kept)):
                others = [y for j, y in enumerate(e.args) if j != k and mentions(y, [old])]
                if others and old.is_Symbol and not any(_clash(y, [old, new]) for y in others):
                    yield scalar_product(
                        *[y if j == k else substituted(y, {old: new}) for j, y in enumerate(e.args)]
                    )


@rule(Sum)
def sum_written_out(e: Any) -> Iterator[Any]:
    """Σ_{i<2} x_i = x_0 + x_1

    Write out a sum over a number of values, term by term.
    """
    for k, (index, count) in enumerate(counts(e)):
        if count.is_Integer and count <= 9 and not _clash(e.args[0], [index]):
            rest = e.args[1 : k + 1] + e.args[k + 2 :]
            terms = [
                substituted(e.args[0], {index: sympy.Integer(value)}) for value in range(count)
            ]
            made = [stated(Sum, x, *rest) if rest else x for x in terms]
            yield sympy.Add(*made, evaluate=False) if len(made) > 1 else made[0]


def apart(e: Any, other: Any) -> Any:
    """Return a sum with its indices renamed so that none occurs in the other expression."""
    names = iter(fresh(len(e.limits), e, other))
    taken = other.atoms(sympy.Symbol)
    return renamed(e, [next(names) if x in taken else x for x in bound(e)])
