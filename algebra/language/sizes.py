"""Sizes of matrices: polynomials with integer coefficients in symbols for positive integers.

SymPy is slow to expand a product, and most products are only compared with one of the same factors:
the size of a Kronecker product stays a tuple of factors until its value is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import sympy

from otimes.algebra.errors import LanguageError, ShapeError


@lru_cache(maxsize=4096)
def normal_size(dimension: sympy.Expr) -> sympy.Expr:
    """Return a size in expanded form. Raises LanguageError or ShapeError if it is no size."""
    if isinstance(dimension, sympy.Symbol):
        return dimension
    if isinstance(dimension, sympy.Integer):
        if dimension < 1:
            raise ShapeError(f"a size is {dimension}: sizes are positive")
        return dimension
    expanded = sympy.expand(dimension)
    polynomial = expanded.is_polynomial(*expanded.free_symbols)
    if not polynomial or not all(
        isinstance(a, sympy.Integer) for a in expanded.atoms(sympy.Number)
    ):
        raise LanguageError(
            f"the size {dimension} is not in the language: symbols, integers, their sums and "
            "products are"
        )
    return expanded


def check_range(index: Any, count: Any, owner: str) -> None:
    """Raise ShapeError for an integer index that is not among 0 … count - 1."""
    if index.is_Integer and (index < 0 or (count.is_Integer and index >= count)):
        raise ShapeError(f"index {index} of {owner} is out of range: it runs from 0 to {count - 1}")


def same_size(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Return whether two sizes are equal as polynomials."""
    return bool(a is b or a == b or normal_size(a) == normal_size(b))


def product_of(sizes: Iterable[Any]) -> Any:
    """Return the product of sizes: the only factor, or a tuple of several."""
    factors: list[sympy.Expr] = []
    for size in sizes:
        if type(size) is tuple:
            factors += size
        elif size is not sympy.S.One:
            factors.append(size)
    return factors[0] if len(factors) == 1 else tuple(factors)


def whole(size: Any) -> sympy.Expr:
    """Return a size, possibly a tuple of factors, as one expression."""
    return sympy.Mul(*size) if type(size) is tuple else size


def same_product(a: Any, b: Any) -> bool:
    """Return whether two sizes (possibly tuples of factors) are equal."""
    return a is b or (type(a) is type(b) and a == b) or same_size(whole(a), whole(b))
