"""Rules of transposes, traces and the elementwise product."""

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

from algebra.language import HeadSum
from algebra.rules.rule import (
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

# -- transposes ---------------------------------------------------------------------------------


@rule(Transpose)
def transpose_mul(e: Any) -> Iterator[Any]:
    """(A B)ᵀ = Bᵀ Aᵀ"""
    if type(e.args[0]) is MatMul:
        numbers, matrices = split_scalars(e.args[0])
        if len(matrices) > 1:
            yield product(*numbers, *[Transpose(x) for x in reversed(matrices)])


@rule(Transpose)
def transpose_smul(e: Any) -> Iterator[Any]:
    """(c A)ᵀ = c Aᵀ"""
    if type(e.args[0]) is MatMul:
        numbers, matrices = split_scalars(e.args[0])
        if numbers and len(matrices) == 1:
            yield product(*numbers, Transpose(matrices[0]))


@rule(Transpose)
def transpose_add(e: Any) -> Iterator[Any]:
    """(A + B)ᵀ = Aᵀ + Bᵀ"""
    if type(e.args[0]) is MatAdd:
        yield total(*[Transpose(x) for x in e.args[0].args])


@rule(Transpose)
def transpose_transpose(e: Any) -> Iterator[Any]:
    """(Aᵀ)ᵀ = A"""
    if type(e.args[0]) is Transpose:
        yield e.args[0].args[0]


@rule(Transpose)
def kron_transpose(e: Any) -> Iterator[Any]:
    """(A ⊗ B)ᵀ = Aᵀ ⊗ Bᵀ"""
    if type(e.args[0]) is KroneckerProduct:
        yield tensor(*[Transpose(x) for x in e.args[0].args])


@rule(Transpose)
def hadamard_transpose(e: Any) -> Iterator[Any]:
    """(A ∘ B)ᵀ = Aᵀ ∘ Bᵀ"""
    if type(e.args[0]) is HadamardProduct:
        yield elementwise(*[Transpose(x) for x in e.args[0].args])


@rule(Transpose, bookkeeping=True)
def one_transpose(e: Any) -> Iterator[Any]:
    """Iᵀ = I"""
    if type(e.args[0]) is Identity:
        yield e.args[0]


@rule(Transpose, bookkeeping=True)
def zero_transpose(e: Any) -> Iterator[Any]:
    """0ᵀ = 0"""
    if type(e.args[0]) is ZeroMatrix:
        yield ZeroMatrix(*reversed(e.args[0].shape))


@rule(Transpose, bookkeeping=True)
def ones_transpose(e: Any) -> Iterator[Any]:
    """1ᵀ = 1

    The transpose of a matrix of ones is a matrix of ones, of the turned shape.
    """
    if type(e.args[0]) is OneMatrix:
        yield OneMatrix(*reversed(e.args[0].shape))


@rule(Transpose)
def transpose_pow(e: Any) -> Iterator[Any]:
    """(Aᵏ)ᵀ = (Aᵀ)ᵏ"""
    if type(e.args[0]) is MatPow:
        yield MatPow(Transpose(e.args[0].base), e.args[0].exp, evaluate=False)


@rule(Adjoint, bookkeeping=True)
def adjoint_transpose(e: Any) -> Iterator[Any]:
    """A* = Aᵀ, over the reals"""
    yield Transpose(e.args[0])


@rule(Transpose)
def transpose_one_by_one(e: Any) -> Iterator[Any]:
    """A 1 × 1 matrix is its own transpose"""
    if e.shape == (1, 1):
        yield e.args[0]


# -- traces -------------------------------------------------------------------------------------


@rule(Trace)
def trace_cyclic(e: Any) -> Iterator[Any]:
    """tr(A B) = tr(B A)"""
    body, again = _under_sum(e.args[0])
    if type(body) is MatMul:
        numbers, factors = split_scalars(body)
        for k in range(1, len(factors)):
            yield Trace(again(product(*numbers, *factors[k:], *factors[:k])))


def _under_sum(e: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Return the body of a sum over heads, and how to sum again; a trace acts on each term."""
    if type(e) is HeadSum:
        return e.body, lambda body: HeadSum(body, *e.limits)
    return e, lambda body: body


@rule(Trace)
def trace_transpose(e: Any) -> Iterator[Any]:
    """tr(Aᵀ) = tr(A)"""
    body, again = _under_sum(e.args[0])
    if type(body) is Transpose:
        yield Trace(again(body.args[0]))


@rule(Trace)
def trace_kron(e: Any) -> Iterator[Any]:
    """tr(A ⊗ B) = tr(A) tr(B)"""
    if type(e.args[0]) is KroneckerProduct:
        factors = e.args[0].args
        if all(same_size(*x.shape) for x in factors):
            yield scalar_product(*[Trace(x) for x in factors])


@rule(Trace)
def trace_add(e: Any) -> Iterator[Any]:
    """tr(A + B) = tr(A) + tr(B)"""
    if type(e.args[0]) is MatAdd:
        yield sympy.Add(*[Trace(x) for x in e.args[0].args], evaluate=False)


@rule(Trace)
def trace_smul(e: Any) -> Iterator[Any]:
    """tr(c A) = c tr(A)"""
    if type(e.args[0]) is MatMul:
        numbers, matrices = split_scalars(e.args[0])
        if numbers and matrices:
            yield scalar_product(*numbers, Trace(product(*matrices)))


@rule(Trace)
def trace_one(e: Any) -> Iterator[Any]:
    """tr(I) = n"""
    if type(e.args[0]) is Identity:
        yield e.args[0].shape[0]


@rule(Trace)
def trace_ones(e: Any) -> Iterator[Any]:
    """tr(1) = n

    The trace of a square matrix of ones is its size.
    """
    if type(e.args[0]) is OneMatrix:
        yield e.args[0].shape[0]


@rule(Trace)
def trace_zero(e: Any) -> Iterator[Any]:
    """tr(0) = 0"""
    if type(e.args[0]) is ZeroMatrix:
        yield sympy.S.Zero


@rule(MatMul)
def one_by_one_mul(e: Any) -> Iterator[Any]:
    """A 1 × 1 factor is a number, its trace

    Take the factors that make a 1 × 1 matrix out of a longer product, as their trace.
    """
    for i, x in enumerate(e.args):
        if not is_matrix(x) or x.shape[0] != 1:
            continue
        for j in range(i, len(e.args)):
            if is_matrix(e.args[j]) and e.args[j].shape[1] == 1:
                rest = e.args[:i] + e.args[j + 1 :]
                if any(is_matrix(y) for y in rest):
                    yield product(Trace(product(*e.args[i : j + 1])), *rest)
                break


@rule(MatMul)
def one_by_one(e: Any) -> Iterator[Any]:
    """A 1 × 1 product is its trace times I₁"""
    numbers, matrices = split_scalars(e)
    if e.shape == (1, 1) and len(matrices) > 1:
        yield product(*numbers, Trace(product(*matrices)), Identity(1))


@rule(Trace)
def trace_hadamard_one(e: Any) -> Iterator[Any]:
    """tr(A ∘ I) = tr(A)"""
    if type(e.args[0]) is HadamardProduct:
        for k, x in enumerate(e.args[0].args):
            if type(x) is Identity:
                yield Trace(elementwise(*without(e.args[0], k)))


@rule(Trace)
def trace_hadamard_mul(e: Any) -> Iterator[Any]:
    """tr((A ∘ B) C) = tr(A (Bᵀ ∘ C))"""
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


@relation(HadamardProduct, bookkeeping=True)
def hadamard_comm(before: Any, after: Any) -> bool:
    """A ∘ B = B ∘ A"""
    return type(after) is HadamardProduct and Counter(before.args) == Counter(after.args)


@rule(HadamardProduct, bookkeeping=True)
def hadamard_assoc(e: Any) -> Iterator[Any]:
    """(A ∘ B) ∘ C = A ∘ B ∘ C"""
    for k, x in enumerate(e.args):
        if type(x) is HadamardProduct:
            yield elementwise(*e.args[:k], *x.args, *e.args[k + 1 :])


@rule(HadamardProduct)
def hadamard_add(e: Any) -> Iterator[Any]:
    """A ∘ (B + C) = A ∘ B + A ∘ C"""
    for k, x in enumerate(e.args):
        if type(x) is MatAdd:
            yield total(*[elementwise(*e.args[:k], t, *e.args[k + 1 :]) for t in x.args])


@rule(HadamardProduct)
def hadamard_smul(e: Any) -> Iterator[Any]:
    """A ∘ c B = c (A ∘ B)

    Take the numbers out of all the factors.
    """
    scaled = [split_scalars(x) if type(x) is MatMul else ([], [x]) for x in e.args]
    numbers = [c for found, _ in scaled for c in found]
    if numbers:
        yield product(*numbers, elementwise(*[product(*matrices) for _, matrices in scaled]))


@rule(HadamardProduct, bookkeeping=True)
def hadamard_ones(e: Any) -> Iterator[Any]:
    """A ∘ 1 = A

    A matrix of ones is the unit of the elementwise product.
    """
    for k, x in enumerate(e.args):
        if type(x) is OneMatrix and len(e.args) > 1:
            yield elementwise(*without(e, k))


@rule(HadamardProduct)
def hadamard_zero(e: Any) -> Iterator[Any]:
    """A ∘ 0 = 0"""
    if any(type(x) is ZeroMatrix for x in e.args):
        yield ZeroMatrix(*e.shape)


@rule(HadamardProduct)
def kron_hadamard_kron(e: Any) -> Iterator[Any]:
    """(A ⊗ B) ∘ (C ⊗ D) = (A ∘ C) ⊗ (B ∘ D)

    Multiply two Kronecker products elementwise, factor by factor.
    """
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


@rule(MatMul)
def hadamard_mul_ones(e: Any) -> Iterator[Any]:
    """(A ∘ B) 1 = (I ∘ A Bᵀ) 1

    Sums over the rows of an elementwise product are the diagonal of a product.
    """
    for k, x, y in pairs(e):
        if type(x) is not HadamardProduct or type(y) is not OneMatrix or y.shape[1] != 1:
            continue
        if len(x.args) == 2 and Identity not in map(type, x.args):
            rows = x.shape[0]
            diagonal = elementwise(Identity(rows), product(x.args[0], Transpose(x.args[1])))
            yield with_pair(e, k, diagonal, OneMatrix(rows, 1))


@rule(HadamardProduct)
def hadamard_one_one(e: Any) -> Iterator[Any]:
    """I ∘ I = I"""
    ones = [k for k, x in enumerate(e.args) if type(x) is Identity]
    if len(ones) > 1:
        yield elementwise(*without(e, ones[1]))


@rule(HadamardProduct)
def hadamard_one_transpose(e: Any) -> Iterator[Any]:
    """I ∘ A = I ∘ Aᵀ

    The diagonal of a matrix is that of its transpose.
    """
    if any(type(x) is Identity for x in e.args):
        for k, x in enumerate(e.args):
            if type(x) is not Identity:
                yield elementwise(*e.args[:k], Transpose(x), *e.args[k + 1 :])


@rule(MatMul)
def diagonal_mul_diagonal(e: Any) -> Iterator[Any]:
    """(I ∘ A)(I ∘ B) = I ∘ A ∘ B"""
    for k, x, y in pairs(e):
        if type(x) is HadamardProduct and type(y) is HadamardProduct:
            ones = [j for j, z in enumerate(y.args) if type(z) is Identity]
            if ones and any(type(z) is Identity for z in x.args):
                yield with_pair(e, k, elementwise(*x.args, *without(y, ones[0])))


# -- ones ---------------------------------------------------------------------------------------


@rule(MatMul)
def ones_mul_ones(e: Any) -> Iterator[Any]:
    """1 1ᵀ 1 = n 1 1ᵀ

    Multiply two matrices of ones: the inner size comes out as a number.
    """
    for k, x, y in pairs(e):
        if type(x) is OneMatrix and type(y) is OneMatrix and x.shape[1] != 1:
            yield with_pair(e, k, x.shape[1], OneMatrix(x.shape[0], y.shape[1]))


@rule(OneMatrix)
def ones_outer(e: Any) -> Iterator[Any]:
    """A matrix of ones is a column of ones times a row of ones"""
    rows, cols = e.shape
    if rows != 1 and cols != 1:
        yield product(OneMatrix(rows, 1), OneMatrix(1, cols))


@rule(KroneckerProduct)
def kron_ones_ones(e: Any) -> Iterator[Any]:
    """1 ⊗ 1 = 1

    The Kronecker product of matrices of ones is a matrix of ones.
    """
    for k in range(len(e.args) - 1):
        x, y = e.args[k : k + 2]
        if type(x) is OneMatrix and type(y) is OneMatrix:
            sizes = [a * b for a, b in zip(x.shape, y.shape, strict=True)]
            yield tensor(*e.args[:k], OneMatrix(*sizes), *e.args[k + 2 :])


@rule(OneMatrix, bookkeeping=True)
def ones_one(e: Any) -> Iterator[Any]:
    """The 1 × 1 matrix of ones is I₁"""
    if e.shape == (1, 1):
        yield Identity(1)
