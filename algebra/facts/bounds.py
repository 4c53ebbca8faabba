"""Arithmetic of rank bounds, row sums and the signs of coefficients.

A bound is a polynomial in the sizes, or the minimum of several. All sizes are at least 1, so p ≥ q
if p - q has no negative coefficient after substituting n = 1 + t for every size n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import sympy

LARGEST_DEGREE = 6  # of polynomials that are compared by substituting n = 1 + t
MOST_CANDIDATES = 8  # dropping candidates of a minimum leaves a valid, weaker bound


class Numbers:
    """Arithmetic under assumptions: which symbols are sizes, signs, and scalar equations."""

    def __init__(
        self,
        sizes: Iterable[sympy.Symbol],
        nonnegative: Sequence[sympy.Expr] = (),
        equations: Sequence[tuple[sympy.Expr, sympy.Expr]] = (),
    ) -> None:
        self.sizes = frozenset(sizes)
        self._nonnegative = tuple(nonnegative)
        self._equal: dict[tuple[sympy.Expr, sympy.Expr], bool] = {}
        self._solved: list[tuple[sympy.Symbol, sympy.Expr]] = []
        for lhs, rhs in equations:
            self._solve(lhs, rhs)

    # -- bounds ------------------------------------------------------------------------------------

    def least(self, *bounds: sympy.Expr) -> sympy.Expr:
        """Return the minimum of several bounds, without redundant ones."""
        kept: list[sympy.Expr] = []
        for candidate in dict.fromkeys(c for bound in bounds for c in _candidates(bound)):
            if any(_never_less(candidate, other, self.sizes) for other in kept):
                continue
            kept = [o for o in kept if not _never_less(o, candidate, self.sizes)] + [candidate]
        kept = kept[:MOST_CANDIDATES]
        return kept[0] if len(kept) == 1 else sympy.Min(*kept, evaluate=False)

    def never_exceeds(self, bound: sympy.Expr, other: sympy.Expr) -> bool:
        """Return whether the first bound is known to be at most the other for all sizes."""
        return all(
            any(_never_less(candidate, least, self.sizes) for least in _candidates(bound))
            for candidate in _candidates(other)
        )

    def times(self, *bounds: sympy.Expr) -> sympy.Expr:
        """Return the product of bounds."""
        return self._joined(sympy.Mul, bounds)

    def plus(self, *bounds: sympy.Expr) -> sympy.Expr:
        """Return the sum of bounds."""
        return self._joined(sympy.Add, bounds)

    def _joined(self, operation: type[sympy.Expr], bounds: Iterable[sympy.Expr]) -> sympy.Expr:
        result = operation()
        for bound in bounds:
            pairs = product(_candidates(result), _candidates(bound))
            result = self.least(*[sympy.expand(operation(*pair)) for pair in pairs])
        return result

    def tidy(self, value: sympy.Expr) -> sympy.Expr:
        """Return a simplified scalar; 1 where it is known to be 1."""
        if isinstance(value, sympy.Rational) or value.has(sympy.Trace):
            return value
        return sympy.S.One if self.equal(value, sympy.S.One) else sympy.cancel(value)

    # -- scalars -----------------------------------------------------------------------------------

    def equal(self, a: sympy.Expr, b: sympy.Expr) -> bool:
        """Return whether two scalars are known to be equal wherever both are defined."""
        key = (a, b)
        if key not in self._equal:
            rest = a - b
            for symbol, value in self._solved:
                rest = rest.subs(symbol, value)
            self._equal[key] = _vanishes(rest)
        return self._equal[key]

    def nonnegative(self, c: Any) -> bool:
        """Return whether a scalar is known to be nonnegative."""
        if isinstance(c, sympy.Rational):
            return bool(c >= 0)
        if c in self.sizes or any(sympy.expand(c - given) == 0 for given in self._nonnegative):
            return True
        if isinstance(c, sympy.Symbol):
            return bool(c.is_nonnegative)
        if isinstance(c, sympy.Add):
            return all(self.nonnegative(a) for a in c.args) or _never_less(
                sympy.expand(c), sympy.S.Zero, self.sizes
            )
        if isinstance(c, sympy.Mul):
            return all(self.nonnegative(a) for a in c.args)
        if isinstance(c, sympy.Pow):
            base, exponent = c.args
            even = isinstance(exponent, sympy.Integer) and exponent % 2 == 0
            real = all(isinstance(p.exp, sympy.Integer) for p in base.atoms(sympy.Pow))
            return (even and real) or (
                isinstance(exponent, sympy.Rational) and self.nonnegative(base)
            )
        return False

    def positive(self, c: Any) -> bool:
        """Return whether a scalar is known to be positive."""
        if isinstance(c, sympy.Rational):
            return bool(c > 0)
        if isinstance(c, sympy.Symbol):
            return c in self.sizes or bool(c.is_positive)
        if isinstance(c, sympy.Mul):
            return all(self.positive(a) for a in c.args)
        if isinstance(c, sympy.Pow):
            return isinstance(c.exp, sympy.Rational) and self.positive(c.base)
        return False

    def _solve(self, lhs: sympy.Expr, rhs: sympy.Expr) -> None:
        """Store a scalar equation as `symbol = value` if it can be solved for a symbol."""
        rest = sympy.expand(lhs - rhs)
        for symbol, value in self._solved:
            rest = sympy.expand(rest.subs(symbol, value))
        symbols = {s for s in rest.free_symbols if isinstance(s, sympy.Symbol)} - self.sizes
        for symbol in sorted(symbols, key=str):
            factor = rest.coeff(symbol)
            others = sympy.expand(rest - factor * symbol)
            linear = isinstance(factor, sympy.Rational) and symbol not in others.free_symbols
            if linear and factor != 0:
                self._solved.append((symbol, -others / factor))
                return


def _candidates(bound: sympy.Expr) -> tuple[sympy.Expr, ...]:
    return tuple(bound.args) if isinstance(bound, sympy.Min) else (bound,)


def _vanishes(scalar: sympy.Expr) -> bool:
    """Return whether a rational function is zero; incomplete for functions of traces."""
    expanded = sympy.expand(scalar)
    if expanded == 0 or expanded.is_polynomial() or expanded.has(sympy.Trace):
        return bool(expanded == 0)
    return bool(sympy.cancel(expanded) == 0)


@lru_cache(maxsize=20_000)
def _never_less(p: sympy.Expr, q: sympy.Expr, sizes: frozenset[sympy.Symbol]) -> bool:
    """Return whether p ≥ q for all sizes ≥ 1 and all other symbols, which are ranks, ≥ 0."""
    if p == q:
        return True
    rest = sympy.expand(p - q)
    if isinstance(rest, sympy.Rational):
        return bool(rest >= 0)
    symbols = rest.free_symbols
    if not symbols <= sizes or not rest.is_polynomial(*symbols):
        return False
    if not (isinstance(p, sympy.Add) or isinstance(q, sympy.Add)):  # two monomials
        factor, powers = (p / q if q != 0 else p).as_coeff_Mul()
        return bool(factor >= (1 if q != 0 else 0) and powers.is_polynomial(*symbols))
    if sympy.Poly(rest).total_degree() > LARGEST_DEGREE:  # unknown: both stay candidates
        return False
    shifted = sympy.expand(rest.subs({s: s + 1 for s in symbols}, simultaneous=True))
    return all(c >= 0 for c in sympy.Poly(shifted, *sorted(symbols, key=str)).coeffs())
