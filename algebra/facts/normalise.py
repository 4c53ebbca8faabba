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
from otimes.algebra.language.linear import ConcatHeads, HeadSum, StackHeads, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax

LARGEST_HADAMARD_POWER = 8


@lru_cache(maxsize=20_000)
def normalise(e: Any) -> Any:
    """Return an equal expression: transposes at the leaves, flat products and sums, no A⁰ or A¹."""
    rebuild = _SETTLED.get(type(e))
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
        return matrices[0] if len(matrices) == 1 else matmul(*matrices)
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
        return kind(e.shape[1], e.shape[0])
    if kind is sympy.MatMul:
        scalar, matrices = split(e)
        return product(scalar, tuple(transposed(m) for m in reversed(matrices)))
    if kind is sympy.MatAdd:
        return matadd(*[transposed(a) for a in e.args])
    if kind is sympy.KroneckerProduct:
        return kron(*[transposed(a) for a in e.args])
    if kind is sympy.HadamardProduct:
        return sympy.HadamardProduct(*[transposed(a) for a in e.args], evaluate=False)
    if kind is sympy.MatPow:
        return sympy.MatPow(transposed(e.base), e.exp, evaluate=False)
    if kind is sympy.Inverse:
        return sympy.Inverse(transposed(e.args[0]))
    if kind in _TURNED_HEADS:
        return _TURNED_HEADS[kind](transposed(e.body), *e.limits)
    if kind is LayerProduct:
        return LayerProduct(transposed(e.body), (e.index, e.count), not e.reverse)
    if kind is Activation:
        return Activation(e.name, transposed(e.argument))
    if kind is sympy.ImmutableDenseMatrix:
        return e.T
    return sympy.Transpose(e)


_TURNED_HEADS = {HeadSum: HeadSum, ConcatHeads: StackHeads, StackHeads: ConcatHeads}


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
    if not all(_is_matrix(a) for a in e.args):
        return e
    terms: list[Any] = []
    for argument in e.args:
        normalised = normalise(argument)
        terms += normalised.args if isinstance(normalised, sympy.MatAdd) else [normalised]
    return terms[0] if len(terms) == 1 else matadd(*terms)


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


def _kron(e: Any) -> Any:
    factors: list[Any] = []
    for argument in e.args:
        normalised = normalise(argument)
        factors += (
            normalised.args if isinstance(normalised, sympy.KroneckerProduct) else [normalised]
        )
    return factors[0] if len(factors) == 1 else kron(*factors)


def _hadamard(e: Any) -> Any:
    factors: list[Any] = []
    for argument in e.args:
        normalised = normalise(argument)
        factors += (
            normalised.args if isinstance(normalised, sympy.HadamardProduct) else [normalised]
        )
    return factors[0] if len(factors) == 1 else sympy.HadamardProduct(*factors, evaluate=False)


def _hadamard_power(e: Any) -> Any:
    base, exponent = e.args
    if not (isinstance(exponent, sympy.Integer) and 1 <= exponent <= LARGEST_HADAMARD_POWER):
        return e
    return _hadamard(sympy.HadamardProduct(*[base] * int(exponent), evaluate=False))


def _over_heads(e: Any) -> Any:
    return type(e)(normalise(e.body), *e.limits)


def _function(e: Any) -> Any:
    return type(e)(*[normalise(a) if _is_matrix(a) else a for a in e.args])


def _layers(e: Any) -> Any:
    return LayerProduct(normalise(e.body), (e.index, e.count), e.reverse)


_SETTLED: dict[type, Callable[[Any], Any]] = {
    sympy.Transpose: _transpose,
    sympy.Adjoint: _transpose,
    sympy.MatMul: _product,
    sympy.Mul: _product,
    sympy.MatAdd: _sum,
    sympy.Add: _sum,
    sympy.MatPow: _power,
    sympy.Inverse: _inverse,
    sympy.KroneckerProduct: _kron,
    sympy.HadamardProduct: _hadamard,
    sympy.HadamardPower: _hadamard_power,
    LayerProduct: _layers,
    HeadSum: _over_heads,
    ConcatHeads: _over_heads,
    StackHeads: _over_heads,
    RowSoftmax: _function,
    Activation: _function,
    RMSNorm: _function,
    LayerNorm: _function,
}
