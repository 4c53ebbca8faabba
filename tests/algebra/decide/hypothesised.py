"""Claims whose hypotheses are hard to meet, or to check: a counterexample must meet them all.

`Hypothesised(seed).claim()` draws hypotheses with free indices, functions that are not defined
everywhere, norms, roots, ratios, inverses and inequalities, at sizes that are symbols, small or
large numbers. The claim is one that follows from some of them, or nearly does. What it claims need
not be true: wrong is a counterexample that a second evaluator does not confirm.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import sympy
from sympy import HadamardPower, HadamardProduct, MatrixSymbol, Trace, Transpose, ZeroMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.defined import Quotient
from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from tests.algebra.decide.adversarial_plain import SIGNS, inequality, mul
from tests.algebra.decide.attack import Claim

n, H = sympy.symbols("n H", integer=True, positive=True)
h, i, j = sympy.symbols("h i j", integer=True)
LARGE = (32, 40)
Pair = tuple[Any, Any]
FUNCTIONS = ("relu", "log", "sqrt", "rsqrt", "reciprocal", "exp", "g", "sigmoid")


class Hypothesised:
    """Draws of one seed."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        self.size = size = draw.choice((n, n, 2, 3, *LARGE))
        self.heads = heads = draw.choice((H, 2, 3))
        self.A, self.B = (MatrixSymbol(name, size, size) for name in "AB")
        self.X, self.Y = (MatrixSymbol(name, size, 2) for name in "XY")
        self.G = Family("G", (heads,), size, size)
        self.s, self.t = (sympy.Symbol(name, **draw.choice(SIGNS[:7])) for name in "st")

    def claim(self) -> Claim:
        """Return a claim under one to three hypotheses."""
        draw = self.draw
        given: list[Any] = [self.hypothesis() for _ in range(draw.choice((1, 1, 2)))]
        lhs, rhs = self.follows(*draw.choice(given))
        if draw.random() < 0.4:
            given.append(inequality(draw, self.s, self.t))
            lhs, rhs = (mul(self.s, side) if not side.is_Matrix else side for side in (lhs, rhs))
        small = {} if isinstance(self.size, int) else {"dims": [n]}
        counts = {"counts": [H]} if self.heads == H else {}
        free = {h: self.heads, i: self.size, j: self.size}
        return Claim(lhs, rhs, given, free=free, kind=f"{self.size}", **small, **counts)

    def hypothesis(self) -> Pair:
        """Return an equation of matrices, of entries or of numbers, often for all indices."""
        A, B, X, Y, G, s, t, size = self._parts()
        name = self.draw.choice(FUNCTIONS)
        f = partial(Activation, name)
        row, column = Transpose(OneHot(i, size)), OneHot(j, size)
        return self.draw.choice(
            (
                (X[i, 0], Y[i, 0]),
                (X[i, 1], X[i, 0]),
                (A[i, j], B[j, i]),
                (A[i, 0], sympy.S.Zero),
                (A[i, i], B[i, i]),
                (s * A[i, 1], t * B[i, 1]),
                (matmul(row, X), matmul(row, Y)),
                (matmul(A, column), matmul(B, column)),
                (matmul(G[h], X), matmul(A, X)),
                (matmul(G[h], X), ZeroMatrix(size, 2)),
                (G[h], Transpose(G[h])),
                (MatrixElement(G[h], 0, i), MatrixElement(A, 0, i)),
                (f(X), f(Y)),
                (f(X), X),
                (f(A), B),
                (HadamardProduct(f(X), Y), X),
                (RMSNorm(X), RMSNorm(Y)),
                (LayerNorm(X), X),
                (RowSoftmax(A), RowSoftmax(B)),
                (Quotient(X, Y), Quotient(Y, X)),
                (HadamardPower(X, 2), HadamardPower(Y, 2)),
                (Trace(A) * Trace(A), Trace(B) * Trace(B)),
                (matmul(Transpose(A), A), sympy.Identity(size)),
                (matmul(A, X), matmul(B, X)),
                (matmul(s, A), matmul(t, B)),
                (s**2, t**2),
                (sympy.Pow(s, 2) * t, t),
            )
        )

    def _parts(self) -> tuple[Any, ...]:
        return self.A, self.B, self.X, self.Y, self.G, self.s, self.t, self.size

    def follows(self, x: Any, y: Any) -> Pair:
        """Return what follows from x = y: at one index, or in a context; or what nearly does."""
        draw = self.draw
        at = {i: draw.randrange(2), j: draw.randrange(2), h: draw.randrange(2)}
        if draw.random() < 0.2:
            at[i] = int(self.size) - 1 if isinstance(self.size, int) else 1
        kept = {index: number for index, number in at.items() if draw.random() < 0.6}
        x, y = (side.xreplace({k: sympy.Integer(v) for k, v in kept.items()}) for side in (x, y))
        if not x.is_Matrix:
            return draw.choice(((x, y), (y, x), (x * x, y * y), (2 * x - y, y)))
        rows, cols = x.shape
        closed = [(HeadSum(x, (h, self.heads)), HeadSum(y, (h, self.heads)))]
        square = [(Trace(x), Trace(y)), (matmul(x, x), matmul(y, y))] if rows == cols else []
        parts = [(self.X, self.Y), (self.A, self.B), (x, Transpose(y) if rows == cols else y)]
        return draw.choice(
            (
                (x, y),
                (matadd(x, y), matmul(2, y)),
                (matmul(Transpose(x), x), matmul(Transpose(y), y)),
                (x[0, 0], y[0, 0]),
                (Activation("relu", x), Activation("relu", y)),
                *(closed if x.has(h) or y.has(h) else []),
                *square,
                *parts,
            )
        )
