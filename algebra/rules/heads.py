"""Rules for sums over heads, concatenated and stacked heads, one-hot vectors, and vec."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import sympy
from sympy import (
    Identity,
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
from otimes.algebra.language.linear import (
    ConcatHeads,
    HeadSum,
    OneHot,
    StackHeads,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.rules.rule import (
    BINDERS,
    bound,
    elementwise,
    equation,
    is_matrix,
    mentions,
    of_type,
    pairs,
    product,
    relation,
    renamed,
    rule,
    same_size,
    split_scalars,
    tensor,
    total,
    with_argument,
    with_pair,
    without,
)
from otimes.algebra.rules.symbols import A, Ags, As, B, Bs, C, Cs, G, H, c, d, g, h, n, row, u, w

SIDE_BY_SIDE = (ConcatHeads, StackHeads)


# -- sums over heads ----------------------------------------------------------------------------


@rule(MatMul, example=product(A, HeadSum(Bs[h], (h, H))))
def head_sum_mul(e: Any) -> Iterator[Any]:
    """Move the other matrices of a product into the sum; scalars stay in front of it."""
    numbers, factors = split_scalars(e)
    for k, x in enumerate(factors):
        others = factors[:k] + factors[k + 1 :]
        if type(x) is HeadSum and others and not any(mentions(y, bound(x)) for y in others):
            inside = product(*factors[:k], x.body, *factors[k + 1 :])
            yield product(*numbers, HeadSum(inside, *x.limits))


def _into_the_sum(e: Any) -> Iterator[Any]:
    for k, x in of_type(e, HeadSum):
        if not any(mentions(y, bound(x)) for y in without(e, k)):
            yield HeadSum(with_argument(e, k, x.body), *x.limits)


for _name, _make in {"head_sum_kron": tensor, "head_sum_hadamard": elementwise}.items():
    _example = _make(A, HeadSum(Bs[h], (h, H)))
    rule(type(_example), example=_example, name=_name)(_into_the_sum)


for _name, _sum, _turned in (
    ("head_sum_transpose", HeadSum, HeadSum),
    ("concat_transpose", ConcatHeads, StackHeads),
    ("stack_transpose", StackHeads, ConcatHeads),
):
    equation(
        _name,
        Transpose(_sum(As[h], (h, H))),
        lambda x, turned=_turned: turned(Transpose(x.body), *x.limits),
    )


@rule(HeadSum, of=MatAdd, example=HeadSum(total(As[h], Bs[h]), (h, H)))
def head_sum_add(e: Any) -> Iterator[Any]:
    yield total(*[HeadSum(x, *e.limits) for x in e.body.args])


@rule(HeadSum, of=MatMul, example=HeadSum(product(c, As[h]), (h, H)))
def head_sum_smul(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e.body)
    out = [c for c in numbers if not mentions(c, bound(e))]
    inside = [c for c in numbers if mentions(c, bound(e))]
    if out:
        yield product(*out, HeadSum(product(*inside, *matrices), *e.limits))


def _up_to(mask: Any, body: Any) -> Any:
    return HeadSum(product(MatrixElement(mask, row, h), body), (h, n))


@rule(HeadSum, of=MatMul, example=_up_to(CausalMask(n), Cs[h]))
def head_sum_last(e: Any) -> Iterator[Any]:
    """Take the last term out of a sum up to an index: that before it is left."""
    first, *rest = e.body.args
    if len(e.limits) != 1 or type(first) is not MatrixElement or not rest:
        return
    ((index, count),) = e.limits
    mask, last, other = first.args
    if type(mask) is CausalMask and other == index != last and last.is_Symbol:
        before = total(mask, product(-1, Identity(count)))
        if not any(last in bound(x) for x in e.body.atoms(*BINDERS)):
            left = HeadSum(product(MatrixElement(before, last, index), *rest), (index, count))
            yield total(left, substituted(product(*rest), {index: last}))


equation("head_sum_zero", HeadSum(ZeroMatrix(n, n), (h, H)), lambda body, *_: body)


@rule(HeadSum, example=HeadSum(A, (h, H)))
def head_sum_const(e: Any) -> Iterator[Any]:
    for k, (index, count) in enumerate(e.limits):
        rest = e.limits[:k] + e.limits[k + 1 :]
        if not mentions(e.body, [index]):
            yield product(count, HeadSum(e.body, *rest) if rest else e.body)


@rule(HeadSum, of=HeadSum, example=HeadSum(HeadSum(Ags[g, h], (h, H)), (g, G)), bookkeeping=True)
def head_sum_nested(e: Any) -> Iterator[Any]:
    if not set(bound(e)) & set(bound(e.body)):
        yield HeadSum(e.body.body, *e.limits, *e.body.limits)


@rule(HeadSum, example=HeadSum(Ags[g, h], (g, G), (h, H)), bookkeeping=True)
def head_sum_comm(e: Any) -> Iterator[Any]:
    if len(set(bound(e))) == len(e.limits) <= 4:
        for limits in permutations(e.limits):
            if limits != e.limits:
                yield HeadSum(e.body, *limits)


@relation(
    HeadSum,
    ConcatHeads,
    StackHeads,
    example=(HeadSum(As[g], (g, H)), HeadSum(As[h], (h, H))),
    bookkeeping=True,
)
def index_rename(before: Any, after: Any) -> bool:
    """Relate two sums that differ only in the names of their bound indices."""
    if type(after) is not type(before) or len(before.limits) != len(after.limits):
        return False
    return bool(renamed(before, bound(after)) == after)


@rule(MatMul, example=product(Trace(HeadSum(As[h], (h, H))), B))
def trace_head_sum_smul(e: Any) -> Iterator[Any]:
    for k, x in of_type(e, Trace):
        inner = x.args[0]
        if type(inner) is HeadSum and not any(mentions(y, bound(inner)) for y in without(e, k)):
            yield HeadSum(with_argument(e, k, Trace(inner.body)), *inner.limits)


# -- concatenated heads, and stacked heads ------------------------------------------------------


@rule(MatMul, example=product(ConcatHeads(As[h], (h, H)), StackHeads(Bs[h], (h, H))))
def concat_mul_stack(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, ConcatHeads, StackHeads):
        if len(x.limits) == len(y.limits):
            same = all(same_size(a[1], b[1]) for a, b in zip(x.limits, y.limits, strict=True))
            if same and same_size(x.body.shape[1], y.body.shape[0]):
                other = y if bound(x) == bound(y) else renamed(y, bound(x))
                if other is not None and not mentions(y, bound(x)):
                    yield with_pair(e, k, HeadSum(product(x.body, other.body), *x.limits))


@rule(MatMul, example=product(B, ConcatHeads(As[h], (h, H))))
def mul_concat(e: Any) -> Iterator[Any]:
    if type(e.args[-1]) is ConcatHeads and len(e.args) > 1:
        x, others = e.args[-1], e.args[:-1]
        if not any(mentions(y, bound(x)) for y in others):
            yield ConcatHeads(product(*others, x.body), *x.limits)


@rule(MatMul, example=product(StackHeads(As[h], (h, H)), B))
def stack_mul(e: Any) -> Iterator[Any]:
    k = next(k for k, x in enumerate(e.args) if is_matrix(x) or k == len(e.args) - 1)
    x, others = e.args[k], without(e, k)
    if type(x) is StackHeads and others and not any(mentions(y, bound(x)) for y in others):
        yield StackHeads(with_argument(e, k, x.body), *x.limits)


@rule(ConcatHeads, example=ConcatHeads(StackHeads(Ags[g, h], (g, G)), (h, H)))
def concat_stack(e: Any) -> Iterator[Any]:
    inner = e.body
    apart = type(inner) is StackHeads and not set(bound(e)) & set(bound(inner))
    counts = [count for _, count in inner.limits] if apart else []
    if apart and not any(index in count.free_symbols for index in bound(e) for count in counts):
        yield StackHeads(ConcatHeads(inner.body, *e.limits), *inner.limits)


@rule(MatAdd, example=total(ConcatHeads(As[h], (h, H)), ConcatHeads(Bs[h], (h, H))))
def concat_add(e: Any) -> Iterator[Any]:
    """Add concatenated heads, or stacked heads, head by head."""
    kind, limits = type(e.args[0]), getattr(e.args[0], "limits", None)
    alike = all(type(x) is kind and x.limits == limits for x in e.args if kind in SIDE_BY_SIDE)
    if limits is not None and kind in SIDE_BY_SIDE and alike:
        yield kind(total(*[x.body for x in e.args]), *limits)


@rule(MatMul, example=product(ConcatHeads(As[h], (h, H)), tensor(Identity(H), B)))
def concat_mul_one_kron(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, ConcatHeads, KroneckerProduct):
        if type(y.args[0]) is Identity:
            heads = sympy.Mul(*[count for _, count in x.limits])
            right = tensor(*y.args[1:])
            if same_size(heads, y.args[0].shape[0]) and not mentions(y, bound(x)):
                yield with_pair(e, k, ConcatHeads(product(x.body, right), *x.limits))


@rule(MatMul, example=product(tensor(Identity(H), B), StackHeads(As[h], (h, H))))
def one_kron_mul_stack(e: Any) -> Iterator[Any]:
    for k, y, x in pairs(e, KroneckerProduct, StackHeads):
        if type(y.args[0]) is Identity:
            heads = sympy.Mul(*[count for _, count in x.limits])
            left = tensor(*y.args[1:])
            if same_size(heads, y.args[0].shape[0]) and not mentions(y, bound(x)):
                yield with_pair(e, k, StackHeads(product(left, x.body), *x.limits))


# -- one-hot vectors ----------------------------------------------------------------------------


@rule(HeadSum, example=HeadSum(product(A, OneHot(row, n), Transpose(OneHot(row, n)), B), (row, n)))
def one_hot_sum(e: Any) -> Iterator[Any]:
    """Replace the sum of e_i e_iᵀ over all i by the identity."""
    if len(e.limits) != 1 or type(e.body) is not MatMul:
        return
    (index, count), body = e.limits[0], e.body
    for k, x, y in pairs(body):
        others = body.args[:k] + body.args[k + 2 :]
        column = type(x) is OneHot and x.args[0] == index and same_size(x.args[1], count)
        if column and y == Transpose(x) and not any(mentions(z, [index]) for z in others):
            yield (
                product(*others)
                if any(map(is_matrix, others))
                else with_pair(body, k, Identity(count))
            )


@rule(OneHot, example=OneHot(row, 1), bookkeeping=True)
def one_hot_one(e: Any) -> Iterator[Any]:
    """Replace a one-hot vector of length 1 by I₁."""
    if e.shape[0] == 1:
        yield Identity(1)


@rule(MatMul, example=product(Transpose(OneHot(row, n)), OneHot(row, n)))
def one_hot_mul(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, Transpose, OneHot):
        if x.args[0] == y:
            yield with_pair(e, k, Identity(1))


# -- vec ----------------------------------------------------------------------------------------


@rule(MatMul, example=product(tensor(A, B), vec_rows(C)))
def vec_rows_mul(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, KroneckerProduct, vec_rows):
        if len(x.args) == 2:
            (left, right), inner = x.args, y.args[0]
            if same_size(left.shape[1], inner.shape[0]):
                factors = inner.args if type(inner) is MatMul else (inner,)
                turned = right.args[0] if type(right) is Transpose else Transpose(right)
                yield with_pair(e, k, vec_rows(product(left, inner, Transpose(right))))
                yield with_pair(e, k, vec_rows(product(left, inner, turned)))
                yield with_pair(e, k, vec_rows(product(left, *factors, Transpose(right))))


@rule(MatMul, example=product(Transpose(vec_rows(A)), vec_rows(B)))
def vec_dot(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, Transpose):
        if type(y) in (vec_rows, vec_cols) and type(y) is type(x.args[0]):
            inner = product(Transpose(x.args[0].args[0]), y.args[0])
            yield with_pair(e, k, Trace(inner), Identity(1))


@rule(MatMul, example=product(tensor(Transpose(B), A), vec_cols(C)))
def vec_cols_mul(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, KroneckerProduct, vec_cols):
        if len(x.args) == 2:
            (left, right), inner = x.args, y.args[0]
            if same_size(left.shape[1], inner.shape[1]):
                turned = left.args[0] if type(left) is Transpose else Transpose(left)
                yield with_pair(e, k, vec_cols(product(right, inner, turned)))
                yield with_pair(e, k, vec_cols(product(right, inner, Transpose(left))))


@rule(vec_cols, example=vec_cols(A))
def vec_cols_vec_rows(e: Any) -> Iterator[Any]:
    inner = e.args[0]
    yield vec_rows(Transpose(inner))
    if type(inner) is Transpose:
        yield vec_rows(inner.args[0])


def _vec_of_each(e: Any) -> Iterator[Any]:
    yield rebuilt(e.args[0], map(type(e), e.args[0].args))


def _vec_of_constant(e: Any) -> Iterator[Any]:
    yield type(e.args[0])(*e.shape)


for _name, _example, _results in (
    ("vec_add", total(A, B), _vec_of_each),
    ("vec_hadamard", elementwise(A, B), _vec_of_each),
    ("vec_ones", OneMatrix(n, d), _vec_of_constant),
    ("vec_zero", ZeroMatrix(n, d), _vec_of_constant),
):
    rule(vec_rows, vec_cols, of=type(_example), example=vec_rows(_example), name=_name)(_results)


@rule(vec_rows, vec_cols, of=MatMul, example=vec_rows(product(c, A)))
def vec_smul(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e.args[0])
    if numbers:
        yield product(*numbers, type(e)(product(*matrices)))


@rule(vec_rows, vec_cols, of=HeadSum, example=vec_rows(HeadSum(As[h], (h, H))))
def vec_head_sum(e: Any) -> Iterator[Any]:
    yield HeadSum(type(e)(e.args[0].body), *e.args[0].limits)


@rule(vec_rows, of=MatMul, example=vec_rows(product(u, w)))
def vec_rows_outer(e: Any) -> Iterator[Any]:
    """Write the vec of an outer product as a Kronecker product of columns."""
    factors = e.args[0].args
    for k, x, _ in pairs(e.args[0]):
        if x.shape[1] == 1 and all(map(is_matrix, factors)):
            yield tensor(product(*factors[: k + 1]), Transpose(product(*factors[k + 1 :])))


@rule(vec_rows, vec_cols, example=vec_rows(u))
def vec_column(e: Any) -> Iterator[Any]:
    if e.args[0].shape[1] == 1:
        yield e.args[0]


@rule(vec_rows, vec_cols, example=vec_rows(w))
def vec_row(e: Any) -> Iterator[Any]:
    if e.args[0].shape[0] == 1 and e.args[0].shape[1] != 1:
        yield Transpose(e.args[0])


@rule(KroneckerProduct, example=tensor(u, w))
def kron_column_row(e: Any) -> Iterator[Any]:
    """Write a column ⊗ a row, in either order, as their outer product."""
    if len(e.args) == 2:
        x, y = e.args
        if x.shape[1] == 1 and y.shape[0] == 1:
            yield product(x, y)
        elif x.shape[0] == 1 and y.shape[1] == 1:
            yield product(y, x)
