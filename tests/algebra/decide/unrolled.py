"""Symbols and short names for the suites `unrolled_depths` and `unrolled_positions`.

These were written from the statements alone, before it was known which of them are decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy import HadamardProduct, Identity, MatPow, MatrixSymbol, OneMatrix, ZeroMatrix

import otimes as ot

n, d, m, p, q, r, L, H = sympy.symbols("n d m p q r L H", integer=True, positive=True)
i, j, l, t, s, u, h, k = sympy.symbols("i j l t s u h k", integer=True)  # noqa: E741 (the layer)
a, b, be, ga = sympy.symbols("a b beta gamma", real=True)
A, B, P, S, U = (MatrixSymbol(name, n, n) for name in "ABPSU")
W, R_ = MatrixSymbol("W", d, d), MatrixSymbol("R", d, d)
X, Y, Z = (MatrixSymbol(name, n, d) for name in "XYZ")
x = MatrixSymbol("x", n, 1)
F, G, N = (ot.Family(name, (L,), n, n) for name in "FGN")
K = ot.Family("K", (L,), d, d)
w, z = ot.Family("w", (L + 1,), n, n), ot.Family("z", (L + 1,), n, d)
key, val, qq = (ot.Family(name, (n,), d, 1) for name in ("key", "val", "qq"))
St = ot.Family("St", (n + 1,), d, d)
I, Id, one = Identity(n), Identity(d), Identity(1)  # noqa: E741
ONE, J, O, MASK = OneMatrix(n, 1), OneMatrix(n, n), ZeroMatrix(n, n), ot.CausalMask(n)  # noqa: E741
soft = ot.RowSoftmax
Claim = tuple[Any, Any, list[Any], Any]


class Suite:
    """True claims by name, and false ones that are easily taken for them."""

    def __init__(self) -> None:
        self.true: dict[str, Claim] = {}
        self.false: dict[str, Claim] = {}

    def both(self, name: str, true: Claim | None, false: Claim | None) -> None:
        """Add a true claim and a false one of one name; one of them may be left out."""
        self.true |= {} if true is None else {name: true}
        self.false |= {} if false is None else {name: false}


def claim(lhs: Any, rhs: Any, given: Sequence[Any] = (), lemma: Any = ()) -> Claim:
    """Return both sides of a claim, its hypotheses and its lemmas."""
    return lhs, rhs, list(given), lemma


def prod(body: Any, count: Any = L, reverse: bool = False, ix: Any = l) -> Any:
    """Return a product over layers."""
    return ot.LayerProduct(body, (ix, count), reverse=reverse)


def paths(body: Any, order: Any, count: Any = L, reverse: bool = False) -> Any:
    """Return a sum over paths."""
    return ot.OrderSum(body, (l, count), order, reverse=reverse)


def tot(body: Any, ix: Any = l, count: Any = L) -> Any:
    """Return a sum over an index."""
    return ot.HeadSum(body, (ix, count))


def upto(body: Any, ix: Any, last: Any) -> Any:
    """Return a sum up to an index, which is included."""
    return ot.HeadSum(body, (ix, 0, last))


def pw(base: Any, exponent: Any) -> Any:
    """Return a power."""
    return MatPow(base, exponent)


def had(*factors: Any) -> Any:
    """Return an entrywise product."""
    return HadamardProduct(*factors)


def f(name: str, argument: Any) -> Any:
    """Return a function of each entry."""
    return ot.Activation(name, argument)
