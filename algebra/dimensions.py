"""Sizes: symbols, numbers, products and sums of them, and how a size splits into legs.

A leg of size `n*d` is one wire until something asks for its factors; then the table learns
`n*d -> (n, d)` and the reading of the expressions starts again, so that every leaf is made with
its legs already split. Soundness never rests on the table: any split is a bijection of indices.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import sympy

from algebra import scalars
from algebra.diagram import Sort
from algebra.errors import LanguageError, ShapeError, Undecided
from algebra.legs import Blocks, Legs, beside, stacked


class Resplit(Exception):
    """Raised after the table learned how a size splits; the reading starts again."""


class Dimensions:
    """The sizes met in one question, numbered, with the splits learned so far."""

    def __init__(self) -> None:
        self.expressions: list[sympy.Expr] = []
        self._sort: dict[sympy.Expr, Sort] = {}
        self._sizes: list[scalars.Coefficient] = []
        self._split: dict[Sort, Legs] = {}
        self._legs: dict[sympy.Expr, Legs] = {}

    def legs(self, dimension: sympy.Expr) -> Legs:
        """Return the legs that a size stands for: none for size 1."""
        known = self._legs.get(dimension)
        if known is None:
            known = self._legs[dimension] = self._expand(self._intern(normal_size(dimension)))
        return known

    def size(self, sort: Sort) -> scalars.Coefficient:
        """Return the size of a sort as a coefficient."""
        return self._sizes[sort]

    def fit(self, left: Legs, right: Legs) -> None:
        """Return if two leg lists of equal size agree; else learn a split and raise Resplit.

        Raises Undecided when no split makes them agree: `n*p` read as (n, p) and as (p, n), or d+1
        cut as (d | 1) and as (1 | d).
        """
        if left == right:
            return
        for position, (a, b) in enumerate(zip(left, right, strict=False)):
            if a == b:
                continue
            if isinstance(a, Blocks) and isinstance(b, Blocks):
                self._fit_blocks(a, b)
            elif isinstance(a, Blocks):
                self._cut(right[position:], a)
            elif isinstance(b, Blocks):
                self._cut(left[position:], b)
            else:
                self._divide(a, b)
            break
        raise Undecided(
            f"legs of sizes {self.show(left)} meet legs of sizes {self.show(right)}: the sizes are "
            "equal, but the indices are read in different orders, which only numeric sizes can "
            "settle"
        )

    def _divide(self, a: Sort, b: Sort) -> None:
        """Learn that one size is the product of the other and a rest, if it is."""
        for whole, part in ((a, b), (b, a)):
            rest = _quotient(self.expressions[whole], self.expressions[part])
            if rest is not None:
                self._learn(whole, (part, self._intern(rest)))

    def _cut(self, legs: Legs, blocks: Blocks) -> None:
        """Learn that the first of some legs is cut in blocks, each followed by the other legs."""
        whole, rest = legs[0], legs[1:]
        fits = all(
            len(block) >= len(rest) and block[len(block) - len(rest) :] == rest for block in blocks
        )
        if isinstance(whole, int) and fits:
            inner = Blocks(block[: len(block) - len(rest)] for block in blocks)
            if same_size(self.total((inner,)), self.expressions[whole]):
                self._learn(whole, (inner,))

    def _fit_blocks(self, left: Blocks, right: Blocks) -> None:
        """Learn how the first blocks that differ fit: split alike, or one cut further."""
        for a, b in zip(left, right, strict=False):
            if a == b:
                continue
            size, other = self.total(a), self.total(b)
            if same_size(size, other):
                self.fit(a, b)
            for whole, part, rest in ((a, b, size - other), (b, a, other - size)):
                rest = sympy.expand(rest)
                first = whole[0] if len(whole) == 1 else None
                if isinstance(first, int) and _certainly_positive(rest):
                    self._learn(first, (Blocks((part, self.legs(rest))),))
            return

    def _learn(self, whole: Sort, legs: Legs) -> None:
        self._split[whole] = legs
        self._legs.clear()
        raise Resplit

    def total(self, legs: Legs) -> sympy.Expr:
        """Return the size of a leg list: the product of its sorts and of the sum of its blocks."""
        parts = [
            sympy.Add(*map(self.total, leg)) if isinstance(leg, Blocks) else self.expressions[leg]
            for leg in legs
        ]
        return sympy.Mul(*parts)

    def show(self, legs: Legs) -> str:
        """Return the sizes of a leg list for a message."""

        def one(leg: Sort | Blocks) -> str:
            if isinstance(leg, Blocks):
                return "[" + " | ".join(map(self.show, leg)) + "]"
            return str(self.expressions[leg])

        return "(" + ", ".join(map(one, legs)) + ")"

    def _intern(self, size: sympy.Expr) -> Sort:
        sort = self._sort.get(size)
        if sort is None:
            sort = self._sort[size] = len(self.expressions)
            self.expressions.append(size)
            self._sizes.append(scalars.from_sympy(size))
        return sort

    def _expand(self, sort: Sort) -> Legs:
        if self.expressions[sort] == 1:
            return ()
        parts = self._split.get(sort)
        return (sort,) if parts is None else self._expand_all(parts)

    def _expand_all(self, legs: Legs) -> Legs:
        result: Legs = ()
        for leg in legs:
            if isinstance(leg, Blocks):
                inner, _ = stacked([self._expand_all(block) for block in leg])
                result = beside(result, inner)
            else:
                result = beside(result, self._expand(leg))
        return result


@lru_cache(maxsize=4096)
def normal_size(dimension: sympy.Expr) -> sympy.Expr:
    """Return a size in expanded form, or refuse what cannot be one."""
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


def same_size(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Return whether two sizes are equal as polynomials."""
    return bool(a is b or a == b or normal_size(a) == normal_size(b))


def _certainly_positive(size: sympy.Expr) -> bool:
    """Return whether a polynomial in sizes is positive for all sizes: no negative coefficient."""
    return size != 0 and all(term.as_coeff_Mul()[0] > 0 for term in sympy.Add.make_args(size))


@lru_cache(maxsize=4096)
def _quotient(whole: sympy.Expr, part: sympy.Expr) -> sympy.Expr | None:
    """Return whole/part if it is a size other than 1."""
    quotient = sympy.expand(sympy.cancel(whole / part))
    _, denominator = quotient.as_numer_denom()
    return quotient if denominator == 1 and quotient != 1 else None


# SymPy takes its time over a product, and most are only compared with one of the same factors: the
# size of a Kronecker product stays a tuple of factors until somebody asks for its value.


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
    """Return a size that may be a tuple of factors as one expression."""
    return sympy.Mul(*size) if type(size) is tuple else size


def same_product(a: Any, b: Any) -> bool:
    """Return whether two sizes, each of which may be a tuple of factors, are equal."""
    return a is b or (type(a) is type(b) and a == b) or same_size(whole(a), whole(b))
