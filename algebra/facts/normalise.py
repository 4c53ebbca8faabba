"""A standard form of expressions, under which facts are stored.

`normalise` moves transposes to the leaves and flattens products and sums, `transposed` gives the
normalised transpose, `split` the scalar and the matrices of a product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    HeadSum,
    StackHeads,
    as_product,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.trees import rebuilt

LARGEST_HADAMARD_POWER = 8


@lru_cache(maxsize=20_000)
def normalise(e: Any) -> Any:
    """Return an equal expression: transposes at the leaves, flat products and sums, no A⁰ or A¹."""
    rebuild = _NORMALISED.get(type(e))
    return e if rebuild is None else rebuild(e)


def split(e: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the scalar factor and the matrix factors of a normalised expression."""
    if not isinstance(e, sympy.MatMul):
        return sympy.S.One, (e,)
    matrices = tuple(a for a in e.args if _is_matrix(a))
    return sympy.Mul(*[a for a in e.args if not _is_matrix(a)]), matrices


def product(scalar: Any, matrices: tuple[Any, ...]) -> Any:
    """Return the normalised product of a scalar and normalised factors, none a product."""
    if scalar == 1:
        return as_product(matrices)
    return matmul(scalar, *matrices)


def times(sign: int, e: Any) -> Any:
    """Return the normalised product of a sign and a normalised expression."""
    scalar, factors = split(e)
    return product(sign * scalar, factors)


# -- other operations ----------------------------------------------------------------------------


def transposed(e: Any) -> Any:
    """Return the normalised transpose of a normalised expression."""
    kind = type(e)
    if kind in (sympy.Transpose, sympy.Adjoint):
        return e.args[0]
    if kind in (sympy.Identity, DiagMatrix):
        return e
    if kind in (sympy.OneMatrix, sympy.ZeroMatrix):
        return kind(*reversed(e.shape))
    if kind is sympy.MatMul:
        scalar, matrices = split(e)
        return product(scalar, tuple(transposed(m) for m in reversed(matrices)))
    if kind in _TRANSPOSED_INSIDE:
        return rebuilt(e, [transposed(a) if _is_matrix(a) else a for a in e.args])
    if kind in _TRANSPOSED_HEADS:
        return _TRANSPOSED_HEADS[kind](transposed(e.body), *e.limits)
    if kind is LayerProduct:
        return LayerProduct(transposed(e.body), (e.index, e.count), not e.reverse)
    return e.T if kind is sympy.ImmutableDenseMatrix else sympy.Transpose(e)


_TRANSPOSED_INSIDE = (
    *(sympy.MatAdd, sympy.KroneckerProduct, sympy.HadamardProduct, sympy.MatPow, sympy.Inverse),
    *(HeadSum, Activation),
)
_TRANSPOSED_HEADS = {ConcatHeads: StackHeads, StackHeads: ConcatHeads}


def _is_matrix(e: Any) -> bool:
    return bool(getattr(e, "is_Matrix", False))


def _transpose(e: Any) -> Any:
    return transposed(normalise(e.args[0]))


def _product(e: Any) -> Any:
    scalars: list[Any] = []
    matrices: list[Any] = []
    for argument in e.args:
        if _is_matrix(argument):
            scalar, parts = split(normalise(argument))
            scalars.append(scalar)
            matrices += parts
        else:
            scalars.append(argument)
    if not matrices:  # a product of scalars
        return e
    kept = [m for m in matrices if not isinstance(m, sympy.Identity)] or matrices[:1]
    return product(sympy.Mul(*scalars), tuple(kept))


def _sum(e: Any) -> Any:
    return _flat(matadd(*e.args)) if all(map(_is_matrix, e.args)) else e


def _flat(e: Any) -> Any:
    """Normalise the operands of an associative operation, and flatten nested ones."""
    parts: list[Any] = []
    for argument in e.args:
        part = normalise(argument)
        parts += part.args if isinstance(part, type(e)) else [part]
    return parts[0] if len(parts) == 1 else rebuilt(e, parts)


def _power(e: Any) -> Any:
    if not isinstance(e.exp, sympy.Integer):
        return e
    if e.exp == 0:
        return sympy.Identity(e.shape[0])
    base = normalise(e.base)
    power = base if abs(e.exp) == 1 else sympy.MatPow(base, abs(e.exp), evaluate=False)
    return power if e.exp > 0 else _inverse(sympy.Inverse(power))


def _inverse(e: Any) -> Any:
    inner = normalise(e.args[0])
    return inner.args[0] if isinstance(inner, sympy.Inverse) else sympy.Inverse(inner)


def _hadamard_power(e: Any) -> Any:
    base, exponent = e.args
    if not (isinstance(exponent, sympy.Integer) and 1 <= exponent <= LARGEST_HADAMARD_POWER):
        return e
    return _flat(sympy.HadamardProduct(*[base] * int(exponent), evaluate=False))


def _inside(e: Any) -> Any:
    return rebuilt(e, [normalise(a) if _is_matrix(a) else a for a in e.args])


_NORMALISED: dict[type, Callable[[Any], Any]] = {
    sympy.Transpose: _transpose,
    sympy.Adjoint: _transpose,
    sympy.MatMul: _product,
    sympy.Mul: _product,
    sympy.MatAdd: _sum,
    sympy.Add: _sum,
    sympy.MatPow: _power,
    sympy.Inverse: _inverse,
    sympy.KroneckerProduct: _flat,
    sympy.HadamardProduct: _flat,
    sympy.HadamardPower: _hadamard_power,
    **dict.fromkeys((LayerProduct, HeadSum, ConcatHeads, StackHeads), _inside),
    **dict.fromkeys((RowSoftmax, Activation, RMSNorm, LayerNorm), _inside),
}
