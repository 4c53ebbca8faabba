"""Sizes: symbols, numbers, products and sums of them, and how a size splits into legs.

A leg of size `n*d` is one wire until something asks for its factors; then the table learns
`n*d -> (n, d)` and the reading of the expressions starts again, so that every leaf is made with
its legs already split. Soundness never rests on the table: any split is a bijection of indices.
"""

from __future__ import annotations

from functools import lru_cache

import sympy

from algebra import scalars
from algebra.diagram import Sort
from algebra.errors import LanguageError, ShapeError, Undecided


class Resplit(Exception):
    """Raised after the table learned how a size splits; the reading starts again."""


class Dimensions:
    """The sizes met in one question, numbered, with the splits learned so far."""

    def __init__(self) -> None:
        self.expressions: list[sympy.Expr] = []
        self._sort: dict[sympy.Expr, Sort] = {}
        self._sizes: list[scalars.Coefficient] = []
        self._split: dict[Sort, tuple[Sort, ...]] = {}
        self._legs: dict[sympy.Expr, tuple[Sort, ...]] = {}

    def legs(self, dimension: sympy.Expr) -> tuple[Sort, ...]:
        """Return the sorts of the legs that a size stands for: none for size 1."""
        known = self._legs.get(dimension)
        if known is None:
            known = self._legs[dimension] = self._expand(self._intern(normal_size(dimension)))
        return known

    def size(self, sort: Sort) -> scalars.Coefficient:
        """Return the size of a sort as a coefficient."""
        return self._sizes[sort]

    def fit(self, left: tuple[Sort, ...], right: tuple[Sort, ...]) -> None:
        """Return if two leg lists of equal size agree; else learn a split and raise Resplit.

        Raises Undecided when no split makes them agree: `n*p` read as (n, p) and as (p, n).
        """
        if left == right:
            return
        for a, b in zip(left, right, strict=False):
            if a == b:
                continue
            for whole, part in ((a, b), (b, a)):
                rest = _quotient(self.expressions[whole], self.expressions[part])
                if rest is not None:
                    self._split[whole] = (part, self._intern(rest))
                    self._legs.clear()
                    raise Resplit
            break
        raise Undecided(
            f"legs of sizes {self.show(left)} meet legs of sizes {self.show(right)}: the sizes are "
            "equal as products, but the indices are read in different orders, which only numeric "
            "sizes can settle"
        )

    def show(self, sorts: tuple[Sort, ...]) -> str:
        """Return the sizes of a leg list for a message."""
        return "(" + ", ".join(str(self.expressions[s]) for s in sorts) + ")"

    def _intern(self, size: sympy.Expr) -> Sort:
        sort = self._sort.get(size)
        if sort is None:
            sort = self._sort[size] = len(self.expressions)
            self.expressions.append(size)
            self._sizes.append(scalars.from_sympy(size))
        return sort

    def _expand(self, sort: Sort) -> tuple[Sort, ...]:
        if self.expressions[sort] == 1:
            return ()
        parts = self._split.get(sort)
        if parts is None:
            return (sort,)
        return tuple(leg for part in parts for leg in self._expand(part))


@lru_cache(maxsize=4096)
def normal_size(dimension: sympy.Expr) -> sympy.Expr:
    """Return a size in expanded form, or refuse what cannot be one."""
    if isinstance(dimension, sympy.Symbol):
        return dimension
    if isinstance(dimension, sympy.Integer):
        if dimension < 0:
            raise ShapeError(f"a size is {dimension}: sizes are not negative")
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


@lru_cache(maxsize=4096)
def same_size(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Return whether two sizes are equal as polynomials."""
    return bool(a == b or normal_size(a) == normal_size(b))


@lru_cache(maxsize=4096)
def _quotient(whole: sympy.Expr, part: sympy.Expr) -> sympy.Expr | None:
    """Return whole/part if it is a size other than 1."""
    quotient = sympy.expand(sympy.cancel(whole / part))
    _, denominator = quotient.as_numer_denom()
    return quotient if denominator == 1 and quotient != 1 else None
