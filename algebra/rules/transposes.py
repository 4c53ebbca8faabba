"""Rules of transposes, traces, the elementwise product and matrices of ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from sympy import (
    Adjoint,
    HadamardProduct,
    Identity,
    KroneckerProduct,
    MatAdd,
    MatMul,
    MatPow,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
)

from otimes.algebra.language.linear import HeadSum
from otimes.algebra.rules.rule import (
    elementwise,
    is_matrix,
    pairs,
    product,
    relation,
    rule,
    same_size,
    scalar_product,
    split_scalars,
    tensor,
    total,
    with_pair,
    without,
)
from otimes.algebra.rules.symbols import A, B, C, D, c, d, n, u, v

# -- transposes ---------------------------------------------------------------------------------


@rule(Transpose, of=MatMul, example=Transpose(product(A, B)))
def transpose_mul(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e.args[0])
    if len(matrices) > 1:
        yield product(*numbers, *[Transpose(x) for x in reversed(matrices)])


@rule(Transpose, of=MatMul, example=Transpose(product(c, A)))
def transpose_smul(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e.args[0])
    if numbers and len(matrices) == 1:
        yield product(*numbers, Transpose(matrices[0]))


@rule(Transpose, of=MatAdd, example=Transpose(total(A, B)))
def transpose_add(e: Any) -> Iterator[Any]:
    yield total(*[Transpose(x) for x in e.args[0].args])


@rule(Transpose, of=Transpose, example=Transpose(Transpose(A)))
def transpose_transpose(e: Any) -> Iterator[Any]:
    yield e.args[0].args[0]


@rule(Transpose, of=KroneckerProduct, example=Transpose(tensor(A, B)))
def kron_transpose(e: Any) -> Iterator[Any]:
    yield tensor(*[Transpose(x) for x in e.args[0].args])


@rule(Transpose, of=HadamardProduct, example=Transpose(elementwise(A, B)))
def hadamard_transpose(e: Any) -> Iterator[Any]:
    yield elementwise(*[Transpose(x) for x in e.args[0].args])


@rule(Transpose, of=Identity, example=Transpose(Identity(n)), bookkeeping=True)
def one_transpose(e: Any) -> Iterator[Any]:
    yield e.args[0]


@rule(Transpose, of=ZeroMatrix, example=Transpose(ZeroMatrix(n, d)), bookkeeping=True)
def zero_transpose(e: Any) -> Iterator[Any]:
    yield ZeroMatrix(*reversed(e.args[0].shape))


@rule(Transpose, of=OneMatrix, example=Transpose(OneMatrix(n, d)), bookkeeping=True)
def ones_transpose(e: Any) -> Iterator[Any]:
    yield OneMatrix(*reversed(e.args[0].shape))


@rule(Transpose, of=MatPow, example=Transpose(MatPow(A, 2, evaluate=False)))
def transpose_pow(e: Any) -> Iterator[Any]:
    yield MatPow(Transpose(e.args[0].base), e.args[0].exp, evaluate=False)


@rule(Adjoint, example=Adjoint(A), bookkeeping=True)
def adjoint_transpose(e: Any) -> Iterator[Any]:
    yield Transpose(e.args[0])


@rule(Transpose, example=Transpose(product(Transpose(u), v)))
def transpose_one_by_one(e: Any) -> Iterator[Any]:
    """Drop the transpose of a 1 × 1 matrix."""
    if e.shape == (1, 1):
        yield e.args[0]


# -- traces -------------------------------------------------------------------------------------


@rule(Trace, example=Trace(product(A, B)))
def trace_cyclic(e: Any) -> Iterator[Any]:
    body, again = _under_sum(e.args[0])
    if type(body) is MatMul:
        numbers, factors = split_scalars(body)
        for k in range(1, len(factors)):
            yield Trace(again(product(*numbers, *factors[k:], *factors[:k])))


def _under_sum(e: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the body of a sum over heads, and a function that sums a new body again."""
    if type(e) is HeadSum:
        return e.body, lambda body: HeadSum(body, *e.limits)
    return e, lambda body: body


@rule(Trace, example=Trace(Transpose(A)))
def trace_transpose(e: Any) -> Iterator[Any]:
    body, again = _under_sum(e.args[0])
    if type(body) is Transpose:
        yield Trace(again(body.args[0]))


@rule(Trace, of=KroneckerProduct, example=Trace(tensor(A, B)))
def trace_kron(e: Any) -> Iterator[Any]:
    factors = e.args[0].args
    if all(same_size(*x.shape) for x in factors):
        yield scalar_product(*[Trace(x) for x in factors])


@rule(Trace, of=MatAdd, example=Trace(total(A, B)))
def trace_add(e: Any) -> Iterator[Any]:
    yield sympy.Add(*[Trace(x) for x in e.args[0].args], evaluate=False)


@rule(Trace, of=MatMul, example=Trace(product(c, A)))
def trace_smul(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e.args[0])
    if numbers and matrices:
        yield scalar_product(*numbers, Trace(product(*matrices)))


@rule(Trace, of=Identity, example=Trace(Identity(n)))
def trace_one(e: Any) -> Iterator[Any]:
    yield e.args[0].shape[0]


@rule(Trace, of=OneMatrix, example=Trace(OneMatrix(n, n)))
def trace_ones(e: Any) -> Iterator[Any]:
    yield e.args[0].shape[0]


@rule(Trace, of=ZeroMatrix, example=Trace(ZeroMatrix(n, n)))
def trace_zero(e: Any) -> Iterator[Any]:
    yield sympy.S.Zero


@rule(MatMul, example=product(Transpose(u), v, Transpose(u)))
def one_by_one_mul(e: Any) -> Iterator[Any]:
    """Replace adjacent factors whose product is 1 × 1 by their trace, a scalar in front."""
    for i, x in enumerate(e.args):
        if not is_matrix(x) or x.shape[0] != 1:
            continue
        for j in range(i, len(e.args)):
            if is_matrix(e.args[j]) and e.args[j].shape[1] == 1:
                rest = e.args[:i] + e.args[j + 1 :]
                if any(is_matrix(y) for y in rest):
                    yield product(Trace(product(*e.args[i : j + 1])), *rest)
                break


@rule(MatMul, example=product(Transpose(u), v))
def one_by_one(e: Any) -> Iterator[Any]:
    """Write a 1 × 1 product as its trace times I₁."""
    numbers, matrices = split_scalars(e)
    if e.shape == (1, 1) and len(matrices) > 1:
        yield product(*numbers, Trace(product(*matrices)), Identity(1))


@rule(Trace, of=HadamardProduct, example=Trace(elementwise(A, Identity(n))))
def trace_hadamard_one(e: Any) -> Iterator[Any]:
    for k, x in enumerate(e.args[0].args):
        if type(x) is Identity:
            yield Trace(elementwise(*without(e.args[0], k)))


@rule(Trace, example=Trace(product(elementwise(A, B), C)))
def trace_hadamard_mul(e: Any) -> Iterator[Any]:
    if type(e.args[0]) is not MatMul:
        return
    numbers, factors = split_scalars(e.args[0])
    if len(factors) < 2 or type(factors[0]) is not HadamardProduct:
        return
    x, rest = factors[0], product(*factors[1:])
    for k, y in enumerate(x.args):
        turned = Transpose(elementwise(*without(x, k)))
        yield Trace(product(*numbers, y, elementwise(turned, rest)))


# -- the elementwise product --------------------------------------------------------------------


@relation(HadamardProduct, example=(elementwise(A, B), elementwise(B, A)), bookkeeping=True)
def hadamard_comm(before: Any, after: Any) -> bool:
    return type(after) is HadamardProduct and Counter(before.args) == Counter(after.args)


@rule(HadamardProduct, example=elementwise(elementwise(A, B), C), bookkeeping=True)
def hadamard_assoc(e: Any) -> Iterator[Any]:
    for k, x in enumerate(e.args):
        if type(x) is HadamardProduct:
            yield elementwise(*e.args[:k], *x.args, *e.args[k + 1 :])


@rule(HadamardProduct, example=elementwise(A, total(B, C)))
def hadamard_add(e: Any) -> Iterator[Any]:
    for k, x in enumerate(e.args):
        if type(x) is MatAdd:
            yield total(*[elementwise(*e.args[:k], t, *e.args[k + 1 :]) for t in x.args])


@rule(HadamardProduct, example=elementwise(A, product(c, B)))
def hadamard_smul(e: Any) -> Iterator[Any]:
    """Take the scalars out of all the factors."""
    scaled = [split_scalars(x) if type(x) is MatMul else ([], [x]) for x in e.args]
    numbers = [c for found, _ in scaled for c in found]
    if numbers:
        yield product(*numbers, elementwise(*[product(*matrices) for _, matrices in scaled]))


@rule(HadamardProduct, example=elementwise(A, OneMatrix(n, n)), bookkeeping=True)
def hadamard_ones(e: Any) -> Iterator[Any]:
    for k, x in enumerate(e.args):
        if type(x) is OneMatrix and len(e.args) > 1:
            yield elementwise(*without(e, k))


@rule(HadamardProduct, example=elementwise(A, ZeroMatrix(n, n)))
def hadamard_zero(e: Any) -> Iterator[Any]:
    if any(type(x) is ZeroMatrix for x in e.args):
        yield ZeroMatrix(*e.shape)


@rule(HadamardProduct, example=elementwise(tensor(A, B), tensor(C, D)))
def kron_hadamard_kron(e: Any) -> Iterator[Any]:
    for i, x in enumerate(e.args):
        for j in range(i + 1, len(e.args)):
            y = e.args[j]
            if type(x) is type(y) is KroneckerProduct and _same_shapes(x, y):
                mixed = [elementwise(a, b) for a, b in zip(x.args, y.args, strict=True)]
                rest = [z for k, z in enumerate(e.args) if k not in (i, j)]
                yield elementwise(tensor(*mixed), *rest)


def _same_shapes(x: Any, y: Any) -> bool:
    return len(x.args) == len(y.args) and all(
        same_size(a.shape[0], b.shape[0]) and same_size(a.shape[1], b.shape[1])
        for a, b in zip(x.args, y.args, strict=True)
    )


@rule(MatMul, example=product(elementwise(A, B), OneMatrix(n, 1)))
def hadamard_mul_ones(e: Any) -> Iterator[Any]:
    """Write the row sums of A ∘ B as the diagonal of A Bᵀ."""
    for k, x, y in pairs(e):
        if type(x) is not HadamardProduct or type(y) is not OneMatrix or y.shape[1] != 1:
            continue
        if len(x.args) == 2 and Identity not in map(type, x.args):
            rows = x.shape[0]
            diagonal = elementwise(Identity(rows), product(x.args[0], Transpose(x.args[1])))
            yield with_pair(e, k, diagonal, OneMatrix(rows, 1))


@rule(HadamardProduct, example=elementwise(Identity(n), Identity(n)))
def hadamard_one_one(e: Any) -> Iterator[Any]:
    ones = [k for k, x in enumerate(e.args) if type(x) is Identity]
    if len(ones) > 1:
        yield elementwise(*without(e, ones[1]))


@rule(HadamardProduct, example=elementwise(Identity(n), A))
def hadamard_one_transpose(e: Any) -> Iterator[Any]:
    if any(type(x) is Identity for x in e.args):
        for k, x in enumerate(e.args):
            if type(x) is not Identity:
                yield elementwise(*e.args[:k], Transpose(x), *e.args[k + 1 :])


@rule(MatMul, example=product(elementwise(Identity(n), A), elementwise(Identity(n), B)))
def diagonal_mul_diagonal(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e):
        if type(x) is HadamardProduct and type(y) is HadamardProduct:
            ones = [j for j, z in enumerate(y.args) if type(z) is Identity]
            if ones and any(type(z) is Identity for z in x.args):
                yield with_pair(e, k, elementwise(*x.args, *without(y, ones[0])))


# -- ones ---------------------------------------------------------------------------------------


@rule(MatMul, example=product(OneMatrix(n, d), OneMatrix(d, n)))
def ones_mul_ones(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e):
        if type(x) is OneMatrix and type(y) is OneMatrix and x.shape[1] != 1:
            yield with_pair(e, k, x.shape[1], OneMatrix(x.shape[0], y.shape[1]))


@rule(OneMatrix, example=OneMatrix(n, d))
def ones_outer(e: Any) -> Iterator[Any]:
    rows, cols = e.shape
    if rows != 1 and cols != 1:
        yield product(OneMatrix(rows, 1), OneMatrix(1, cols))


@rule(KroneckerProduct, example=tensor(OneMatrix(n, 1), OneMatrix(d, 1)))
def kron_ones_ones(e: Any) -> Iterator[Any]:
    for k in range(len(e.args) - 1):
        x, y = e.args[k : k + 2]
        if type(x) is OneMatrix and type(y) is OneMatrix:
            sizes = [a * b for a, b in zip(x.shape, y.shape, strict=True)]
            yield tensor(*e.args[:k], OneMatrix(*sizes), *e.args[k + 2 :])


@rule(OneMatrix, example=OneMatrix(1, 1), bookkeeping=True)
def ones_one(e: Any) -> Iterator[Any]:
    if e.shape == (1, 1):
        yield Identity(1)
