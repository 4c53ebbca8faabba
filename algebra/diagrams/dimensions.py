"""Sizes (symbols, numbers, their products and sums), and the legs into which they split.

A leg of size `n*d` is one wire until an operation needs its factors. Then the table records
`n*d -> (n, d)`, and the expressions are read again, so that every leaf has its legs split from the
start. Soundness does not depend on the table: any split is a bijection of indices.
"""

from __future__ import annotations

from functools import lru_cache

import sympy

from otimes.algebra.diagrams.diagram import Sort
from otimes.algebra.diagrams.legs import Blocks, Legs, beside, stacked
from otimes.algebra.errors import Undecided
from otimes.algebra.language import coefficients
from otimes.algebra.language.sizes import normal_size, same_size


class Resplit(Exception):
    """Raised when a new split was recorded; the expressions must be read again."""


class Clash(Undecided):
    """Raised when one size is cut in two ways, and no split makes them agree."""


class Dimensions:
    """The sizes in one call, numbered, with the splits recorded so far."""

    def __init__(self) -> None:
        self.expressions: list[sympy.Expr] = []
        self._sort: dict[sympy.Expr, Sort] = {}
        self._sizes: list[coefficients.Coefficient] = []
        self._split: dict[Sort, Legs] = {}
        self._legs: dict[sympy.Expr, Legs] = {}
        self.aliases: dict[sympy.Symbol, sympy.Expr] = {}  # symbols that stand for a size

    def legs(self, dimension: sympy.Expr) -> Legs:
        """Return the legs of a size; none for size 1."""
        known = self._legs.get(dimension)
        if known is None:
            known = self._legs[dimension] = self._expand(self._intern(normal_size(dimension)))
        return known

    def size(self, sort: Sort) -> coefficients.Coefficient:
        """Return the size of a sort as a coefficient."""
        return self._sizes[sort]

    def fit(self, left: Legs, right: Legs) -> None:
        """Check that two leg lists of equal size agree; else record a split and raise Resplit.

        Raises Clash if no split makes them agree: `n*p` as (n, p) and as (p, n), or d+1 in
        blocks (d | 1) and (1 | d).
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
        raise Clash(
            f"legs of sizes {self.show(left)} meet legs of sizes {self.show(right)}: the sizes are "
            "equal, but the indices are read in different orders, which only numeric sizes can "
            "settle"
        )

    def _divide(self, a: Sort, b: Sort) -> None:
        """Record one size as the product of the other and a quotient, if it is one.

        Two sorts of one size are the same where one is that of an alias.
        """
        if self.expressions[a] == self.expressions[b]:
            alias = {self._sort.get(symbol) for symbol in self.aliases}
            self._learn(*((a, (b,)) if a in alias else (b, (a,))))
        for whole, part in ((a, b), (b, a)):
            rest = _quotient(self.expressions[whole], self.expressions[part])
            if rest is not None:
                self._learn(whole, (part, self._intern(rest)))

    def _cut(self, legs: Legs, blocks: Blocks) -> None:
        """Record that the first leg splits into blocks, each followed by the other legs."""
        whole, rest = legs[0], legs[1:]
        fits = all(
            len(block) >= len(rest) and block[len(block) - len(rest) :] == rest for block in blocks
        )
        if isinstance(whole, int) and fits:
            inner = Blocks(block[: len(block) - len(rest)] for block in blocks)
            if same_size(self.total((inner,)), self.expressions[whole]):
                self._learn(whole, (inner,))

    def _fit_blocks(self, left: Blocks, right: Blocks) -> None:
        """Record a split that makes the first differing blocks agree."""
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
        """Return the size of a leg list: the product of its sorts and the sum of its blocks."""
        parts = [
            sympy.Add(*map(self.total, leg)) if isinstance(leg, Blocks) else self.expressions[leg]
            for leg in legs
        ]
        return sympy.Mul(*parts)

    def show(self, legs: Legs) -> str:
        """Return the sizes of a leg list for a message."""

        def one(leg: Sort | Blocks) -> str:
            if isinstance(leg, Blocks):
                return " | ".join(map(part, leg))
            return str(self.expressions[leg])

        def part(block: Legs) -> str:
            return one(block[0]) if len(block) == 1 else self.show(block) if block else "1"

        inside = [one(leg) for leg in legs]
        if len(legs) > 1 and isinstance(legs[-1], Blocks):
            inside[-1] = f"[{inside[-1]}]"
        return "(" + ", ".join(inside) + ")"

    def _intern(self, size: sympy.Expr) -> Sort:
        sort = self._sort.get(size)
        if sort is None:
            sort = self._sort[size] = len(self.expressions)
            self.expressions.append(self.aliases.get(size, size))
            self._sizes.append(coefficients.from_sympy(self.expressions[sort]))
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


def _certainly_positive(size: sympy.Expr) -> bool:
    """Return whether a polynomial in sizes has no negative coefficient, and so is positive."""
    return size != 0 and all(term.as_coeff_Mul()[0] > 0 for term in sympy.Add.make_args(size))


@lru_cache(maxsize=4096)
def _quotient(whole: sympy.Expr, part: sympy.Expr) -> sympy.Expr | None:
    """Return whole/part if it is a size other than 1, else None."""
    quotient = sympy.expand(sympy.cancel(whole / part))
    _, denominator = quotient.as_numer_denom()
    return quotient if denominator == 1 and quotient != 1 else None
