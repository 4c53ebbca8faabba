"""Rules of transposes, traces, the elementwise product and matrices of ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import sympy
from sympy import (
    Adjoint,
    HadamardProduct,
    Identity,
    KroneckerProduct,
    MatMul,
    MatPow,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
)

from otimes.algebra.language.linear import HeadSum
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.rules.rule import (
    elementwise,
    equation,
    is_matrix,
    of_type,
    pairs,
    product,
    relation,
    rule,
    same_size,
    scalar_product,
    split_scalars,
    tensor,
    total,
    with_argument,
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


for _name, _make in {
    "transpose_add": total,
    "kron_transpose": tensor,
    "hadamard_transpose": elementwise,
}.items():
    equation(_name, Transpose(_make(A, B)), lambda x: rebuilt(x, map(Transpose, x.args)))
equation("transpose_transpose", Transpose(Transpose(A)), lambda x: x.args[0])
for _name, _of in {"zero_transpose": ZeroMatrix, "ones_transpose": OneMatrix}.items():
    equation(_name, Transpose(_of(n, d)), lambda x: type(x)(*reversed(x.shape)), bookkeeping=True)
equation("one_transpose", Transpose(Identity(n)), lambda x: x, bookkeeping=True)
equation("adjoint_transpose", Adjoint(A), Transpose, bookkeeping=True)


@rule(Transpose, of=MatPow, example=Transpose(MatPow(A, 2, evaluate=False)))
def transpose_pow(e: Any) -> Iterator[Any]:
    yield MatPow(Transpose(e.args[0].base), e.args[0].exp, evaluate=False)


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


equation("trace_add", Trace(total(A, B)), lambda x: sympy.Add(*map(Trace, x.args), evaluate=False))


@rule(Trace, of=MatMul, example=Trace(product(c, A)))
def trace_smul(e: Any) -> Iterator[Any]:
    numbers, matrices = split_scalars(e.args[0])
    if numbers and matrices:
        yield scalar_product(*numbers, Trace(product(*matrices)))


equation("trace_one", Trace(Identity(n)), lambda x: x.shape[0])
equation("trace_ones", Trace(OneMatrix(n, n)), lambda x: x.shape[0])
equation("trace_zero", Trace(ZeroMatrix(n, n)), lambda _: sympy.S.Zero)


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
    for k, _ in of_type(e.args[0], Identity):
        yield Trace(with_argument(e.args[0], k))


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


@rule(HadamardProduct, example=elementwise(A, OneMatrix(n, n)), bookkeeping=True)
def hadamard_ones(e: Any) -> Iterator[Any]:
    for k, _ in of_type(e, OneMatrix):
        if len(e.args) > 1:
            yield with_argument(e, k)


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
    for k, x, y in pairs(e, HadamardProduct, OneMatrix):
        if y.shape[1] == 1 and len(x.args) == 2 and Identity not in map(type, x.args):
            rows = x.shape[0]
            diagonal = elementwise(Identity(rows), product(x.args[0], Transpose(x.args[1])))
            yield with_pair(e, k, diagonal, OneMatrix(rows, 1))


@rule(HadamardProduct, example=elementwise(Identity(n), Identity(n)))
def hadamard_one_one(e: Any) -> Iterator[Any]:
    for k, _ in islice(of_type(e, Identity), 1, 2):
        yield with_argument(e, k)


@rule(HadamardProduct, example=elementwise(Identity(n), A))
def hadamard_one_transpose(e: Any) -> Iterator[Any]:
    if any(type(x) is Identity for x in e.args):
        for k, x in enumerate(e.args):
            if type(x) is not Identity:
                yield with_argument(e, k, Transpose(x))


@rule(MatMul, example=product(elementwise(Identity(n), A), elementwise(Identity(n), B)))
def diagonal_mul_diagonal(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, HadamardProduct, HadamardProduct):
        if any(of_type(x, Identity)):
            for j, _ in islice(of_type(y, Identity), 1):
                yield with_pair(e, k, elementwise(*x.args, *without(y, j)))


# -- ones ---------------------------------------------------------------------------------------


@rule(MatMul, example=product(OneMatrix(n, d), OneMatrix(d, n)))
def ones_mul_ones(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, OneMatrix, OneMatrix):
        if x.shape[1] != 1:
            yield with_pair(e, k, x.shape[1], OneMatrix(x.shape[0], y.shape[1]))


@rule(OneMatrix, example=OneMatrix(n, d))
def ones_outer(e: Any) -> Iterator[Any]:
    rows, cols = e.shape
    if rows != 1 and cols != 1:
        yield product(OneMatrix(rows, 1), OneMatrix(1, cols))


@rule(KroneckerProduct, example=tensor(OneMatrix(n, 1), OneMatrix(d, 1)))
def kron_ones_ones(e: Any) -> Iterator[Any]:
    for k, x, y in pairs(e, OneMatrix, OneMatrix):
        yield with_pair(e, k, OneMatrix(x.shape[0] * y.shape[0], x.shape[1] * y.shape[1]))


@rule(OneMatrix, example=OneMatrix(1, 1), bookkeeping=True)
def ones_one(e: Any) -> Iterator[Any]:
    if e.shape == (1, 1):
        yield Identity(1)
