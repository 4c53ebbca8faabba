"""What hypotheses imply: squares that vanish, what can be cancelled, members of families."""

from __future__ import annotations

import sympy
from sympy import KroneckerDelta, MatrixSymbol, Ne, Trace

from otimes.algebra.language.linear import Family, HeadSum
from otimes.algebra.language.nonlinear import CausalMask, RowSoftmax
from tests.algebra.decide.points.symbols import (
    E_,
    F_,
    K_,
    A,
    Bm,
    Claims,
    G,
    H,
    On,
    X,
    a,
    b,
    c,
    eye,
    h,
    i,
    j,
    m,
    n,
    ones,
    table,
    x1,
    xn,
    y1,
    zeros,
)
from tests.algebra.decide.shorthand import f, had

CLAIMS = Claims()
pair, true, false = CLAIMS.pair, CLAIMS.holds, CLAIMS.fails
Fam = Family("B", (H,), n, n)
total = HeadSum(Fam[h], (h, H))
nothing, zero = zeros(n, m), sympy.S.Zero
centred = eye(m) - ones(m, m) / m
apart = Fam[i] * Fam[j], KroneckerDelta(i, j) * Fam[i]
S = MatrixSymbol("Sn", n, n)
projection = [(S * S, S), (S.T, S)]

# -- squares that vanish
true("no distance", X, G, (Trace((X - G).T * (X - G)), zero))
true("a square and a positive multiple", x1, zeros(n, 1), (x1.T * x1 + c * y1.T * y1, zeros(1, 1)))
false("a square less another", x1, zeros(n, 1), (x1.T * x1 - c * y1.T * y1, zeros(1, 1)))
true("no absolute value", E_, nothing, (f("abs", E_), nothing))
false("no relu", E_, nothing, (f("relu", E_), nothing))
true("a projection without trace", S, On, *projection, (Trace(S), zero))
false("a matrix without trace", S, On, (S.T, S), (Trace(S), zero))

# -- what can be cancelled
positive = RowSoftmax(E_)
true("weights of a softmax", F_, K_, (had(positive, F_), had(positive, K_)))
false("weights of a relu", F_, K_, (had(f("relu", E_), F_), had(f("relu", E_), K_)))
true("a sigmoid", F_, nothing, (had(f("sigmoid", E_), F_), nothing))
true("a positive number", A, Bm, (sympy.exp(a) * A, sympy.exp(a) * Bm))
false("a number", A, Bm, (sympy.sin(a) * A, sympy.sin(a) * Bm))
true("a difference", A, On, ((a - b) * A, On), Ne(a, b))

# -- equal functions
true("equal softmaxes", E_ * centred, F_ * centred, (RowSoftmax(E_), RowSoftmax(F_)))
false("equal softmaxes only", E_, F_, (RowSoftmax(E_), RowSoftmax(F_)))
true("logarithms of equals", f("log", RowSoftmax(E_)), f("log", positive), (E_, F_))
shifted = (E_, F_ + xn * ones(1, m))
true("equal up to a shift", RowSoftmax(E_), RowSoftmax(F_), shifted)
false("a shift of columns", RowSoftmax(A), RowSoftmax(Bm), (A, Bm + ones(n, 1) * xn.T))

# -- members of families
true("resolved", Fam[i] * Fam[i], Fam[i], (total, eye(n)), apart)
pair("one of its own", Fam[i] * total, Fam[i] * Fam[i], total, given=[apart])
false("not resolved", Fam[i] * Fam[i], Fam[i], (total, eye(n)))

# -- one constant, cut in two ways
first = table([[ones(1, 1), zeros(1, n)], [ones(n, 1), CausalMask(n)]])
last = table([[CausalMask(n), zeros(n, 1)], [ones(1, n), ones(1, 1)]])
longer = MatrixSymbol("long", n + 1, n + 1)
pair("a mask with one more", first, last, last.T)
true("a mask under a product", first * last * longer, last * first * longer)
true("a softmax under either", RowSoftmax(longer, first), RowSoftmax(longer, last))
three = table(
    [
        [CausalMask(n), zeros(n, m), zeros(n, 1)],
        [ones(m, n), CausalMask(m), zeros(m, 1)],
        [ones(1, n), ones(1, m), eye(1)],
    ]
)
pair("a mask in three blocks", three, CausalMask(n + m + 1), CausalMask(n + m + 1).T)
false("a column of zeros below", last, table([[ones(1, 1), zeros(1, n)], [zeros(n, 1), eye(n)]]))
