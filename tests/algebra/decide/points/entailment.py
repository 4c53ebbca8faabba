"""Entailment: what follows from hypotheses, and what is easily taken to follow."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import HadamardPower, Inverse, Ne, Rational, Trace, pi, sqrt

from otimes.algebra.language.linear import HeadSum
from otimes.algebra.language.named_matrices import full_column_rank, full_row_rank
from otimes.algebra.language.nonlinear import LayerNorm, RMSNorm, RowSoftmax
from tests.algebra.decide.points.symbols import (
    P_,
    Q1,
    Q_,
    W2,
    A,
    Ah,
    Bd,
    Bm,
    C,
    Cd,
    Claims,
    G,
    Gk,
    H,
    On,
    Rr,
    V,
    W,
    Wd,
    X,
    Xr,
    Yk,
    a,
    b,
    c,
    d,
    eye,
    g,
    h,
    hat,
    i,
    j,
    k,
    n,
    ones,
    orth,
    pi1,
    pi2,
    xd,
    xn,
    zeros,
)
from tests.algebra.decide.shorthand import f, had

CLAIMS = Claims()
pair, true, false = CLAIMS.pair, CLAIMS.holds, CLAIMS.fails

pair("gram kills", G * Bd, zeros(n, k), ones(n, k), given=[(G.T * G * Bd, zeros(d, k))])
false("gram kills too much", Bd, zeros(d, k), (G.T * G * Bd, zeros(d, k)))
pair("gram cancels", G * Bd, G * Cd, 2 * G * Cd, given=[(G.T * G * Bd, G.T * G * Cd)])
false("gram cancels too much", Bd, Cd, (G.T * G * Bd, G.T * G * Cd))
true("gram on the right", Bd.T * G.T, zeros(k, n), (Bd.T * G.T * G, zeros(k, d)))
true("gram zero", G, zeros(n, d), (G.T * G, zeros(d, d)))
false("square zero", A, On, (A * A, On))
true("frobenius zero", G, zeros(n, d), (Trace(G.T * G), sympy.S.Zero))
false("trace zero", A, On, (Trace(A), sympy.S.Zero))
true("symmetric nilpotent", A, On, (A, A.T), (A * A, On))
true("skew nilpotent", A, On, (A, -A.T), (A * A, On))
true("normal nilpotent gram", A * A.T, On, (A.T * A, On))
true("two grams", G, zeros(n, d), (G.T * G + X.T * X, zeros(d, d)))
false("gram difference", G, X, (G.T * G, X.T * X))
pair("cancel nonzero scalar", A, Bm, -Bm, given=[(a * A, a * Bm), Ne(a, 0)])
false("cancel any scalar", A, Bm, (a * A, a * Bm))
true("cancel by reciprocal", A, Bm, (a * A, a * Bm), (a * b, sympy.S.One))
true("cancel difference", A, On, (a * A, b * A), Ne(a, b))
false("cancel difference wrong", A, On, (a * A, b * A), Ne(a, 0))
true("cancel 1+a^2", A, Bm, ((1 + a**2) * A, (1 + a**2) * Bm))
false("cancel 1-a^2", A, Bm, ((1 - a**2) * A, (1 - a**2) * Bm))
true("cancel a^2", A, On, (a**2 * A, On), a > 0)
true("ordered scalars", A, Bm, ((a - b) * A, (a - b) * Bm), a > b)
false("ordered weakly", A, Bm, ((a - b) * A, (a - b) * Bm), a >= b)
pair(
    "orthogonal family",
    HeadSum(Q_[h].T * Q_[h], (h, H)),
    H * eye(d),
    eye(d),
    given=[(Q_[g].T * Q_[g], eye(d))],
)
pair(
    "family renamed",
    HeadSum(P_[h] * Q_[h] * X.T, (h, H)),
    zeros(d, n),
    HeadSum(Q_[h] * P_[h] * X.T, (h, H)),
    given=[(P_[i] * Q_[i], zeros(d, d))],
)
pair(
    "family commutes",
    W * HeadSum(P_[h], (h, H)),
    HeadSum(P_[h], (h, H)) * W,
    HeadSum(P_[h], (h, H)),
    given=[(W * P_[i], P_[i] * W)],
)
pair(
    "mean of patterns",
    HeadSum(Ah[h], (h, H)) * ones(n, 1) / H,
    ones(n, 1),
    H * ones(n, 1),
    given=[(Ah[i] * ones(n, 1), ones(n, 1))],
)
pair(
    "orthogonal projections add up",
    HeadSum(P_[h], (h, H)) * P_[g],
    P_[g] * HeadSum(P_[h], (h, H)),
    eye(d),
    given=[(P_[i] * P_[j], P_[j] * P_[i])],
)
pair(
    "congruence relu",
    f("relu", X * W),
    f("relu", X * V),
    f("relu", X * W) * W,
    given=[(X * W, X * V)],
)
pair(
    "congruence softmax",
    RowSoftmax(X * W * X.T) * X,
    RowSoftmax(X * V * X.T) * X,
    RowSoftmax(X * V.T * X.T) * X,
    given=[(X * W, X * V)],
)
pair(
    "congruence norm",
    LayerNorm(X + Xr) * W2,
    LayerNorm(2 * X) * W2,
    LayerNorm(X + X * W) * W2,
    given=[(Xr, X)],
)
pair("fixed point", f("g", f("g", f("g", X))), X, -X, given=[(f("g", X), X)])
pair(
    "function of a period two",
    f("g", f("g", f("g", X))),
    f("g", X),
    X,
    given=[(f("g", f("g", X)), X)],
)
true("softmax recurs", RowSoftmax(RowSoftmax(A)), RowSoftmax(A), (RowSoftmax(A), A))
false("softmax twice", RowSoftmax(RowSoftmax(A)), RowSoftmax(A))
true("right inverse cancels", X, Xr, (X * Wd, Xr * Wd), (Wd * Rr, eye(d)))
false("left inverse does not", X, Xr, (X * Wd, Xr * Wd), (Rr * Wd, eye(k)))
true("full row rank", X, Xr, (X * Wd, Xr * Wd), *full_row_rank(Wd))
false("full column rank cancels wrong side", X, Xr, (X * Wd, Xr * Wd), *full_column_rank(Wd))
true("full column rank", Bd, Cd, (G * Bd, G * Cd), *full_column_rank(G))
true("orthogonal both sides", Q1 * Q1.T, eye(d), *orth)
pair("rmsnorm rotates", RMSNorm(X * Q1), RMSNorm(X) * Q1, RMSNorm(X), given=orth)
false("layernorm rotates", LayerNorm(X * Q1), LayerNorm(X) * Q1, *orth)
true(
    "layernorm rotates about ones",
    LayerNorm(X * Q1),
    LayerNorm(X) * Q1,
    *orth,
    (Q1 * ones(d, 1), ones(d, 1)),
)
false("norm rotates without orthogonality", RMSNorm(X * Q1), RMSNorm(X) * Q1)
pair(
    "reflection of a projection",
    (eye(d) - 2 * W) * (eye(d) - 2 * W).T,
    eye(d),
    eye(d) - 2 * W,
    given=[(W * W, W), (W, W.T)],
)
pair("complement projects", (eye(d) - W) ** 2, eye(d) - W, W, given=[(W * W, W)])
pair(
    "commuting binomial",
    (A + Bm) ** 2,
    A**2 + 2 * A * Bm + Bm**2,
    A**2 + Bm**2,
    given=[(A * Bm, Bm * A)],
)
false("binomial", (A + Bm) ** 2, A**2 + 2 * A * Bm + Bm**2)
pair("inverse commutes", A.I * Bm, Bm * A.I, Bm * A, given=[(A * Bm, Bm * A)])
pair("nilpotent inverse", Inverse(eye(n) - A), eye(n) + A + A**2, eye(n) + A, given=[(A**3, On)])
pair("nilpotent power", (eye(n) + A) ** 5, eye(n) + 5 * A, eye(n) + A, given=[(A**2, On)])
pair("involution", Inverse(A), A, -A, given=[(A * A, eye(n))])
true("inverses agree", Bm, C, (A * Bm, eye(n)), (C * A, eye(n)))
true("one-sided square", Bm * A, eye(n), (A * Bm, eye(n)))
false("one-sided rectangle", Gk * G, eye(d), (G * Gk, eye(n)))
pair("skew form", xn.T * A * xn, zeros(1, 1), xn.T * xn, given=[(A.T, -A)])
true("orthogonal projections", Bm * A, On, (A * Bm, On), (A, A.T), (Bm, Bm.T))
false("products in the other order", Bm * A, On, (A * Bm, On))
pair(
    "relu square sum",
    f("relu", had(X, X) + had(Xr, Xr)),
    had(X, X) + had(Xr, Xr),
    had(X, X) - had(Xr, Xr),
)
false("relu of product", f("relu", had(X, Xr)), had(X, Xr))
pair(
    "relu of gram diagonal",
    f("relu", HadamardPower(X * W, 2)),
    HadamardPower(X * W, 2),
    HadamardPower(X * W, 1),
)
pair("silu gate", f("silu", X * W), had(X * W, f("sigmoid", X * W)), had(X, f("sigmoid", X * W)))
pair("silu odd part", f("silu", X) - f("silu", -X), X, 2 * X)
pair("gelu odd part", f("gelu", X) - f("gelu", -X), X, -X)
pair(
    "sigmoid by tanh",
    f("sigmoid", X),
    (ones(n, d) + f("tanh", X / 2)) / 2,
    (ones(n, d) + f("tanh", X)) / 2,
)
pair(
    "silu by tanh",
    f("silu", X),
    had(X, ones(n, d) + f("tanh", X / 2)) / 2,
    had(X, ones(n, d) - f("tanh", X / 2)) / 2,
)
pair(
    "swiglu",
    had(f("silu", X * W), X * V) * W2,
    had(X * W, f("sigmoid", X * W), X * V) * W2,
    had(X * W, f("sigmoid", X * V), X * V) * W2,
)
pair(
    "quick gelu",
    f("quick_gelu", X),
    had(X, f("sigmoid", Rational(851, 500) * X)),
    had(X, f("sigmoid", Rational(17, 10) * X)),
)
pair(
    "gelu tanh form",
    f("gelu_tanh", X),
    had(
        X,
        ones(n, d) + f("tanh", sqrt(2 / pi) * (X + Rational(44715, 1000000) * HadamardPower(X, 3))),
    )
    / 2,
    had(
        X,
        ones(n, d) + f("tanh", sqrt(2 / pi) * (X + Rational(44715, 100000) * HadamardPower(X, 3))),
    )
    / 2,
)
pair("relu homogeneous", f("relu", c * X), c * f("relu", X), f("relu", X))
false("relu homogeneous negative", f("relu", a * X), a * f("relu", X))
true("relu homogeneous by hypothesis", f("relu", a * X), a * f("relu", X), a >= 0)
pair("relu times itself", had(f("relu", X), f("relu", X)), had(X, f("relu", X)), had(X, X))
pair("relu parts", f("relu", X) - f("relu", -X), X, f("relu", X))
pair(
    "leaky relu",
    f("relu", X) - c * f("relu", -X),
    (1 - c) * f("relu", X) + c * X,
    (1 + c) * f("relu", X) + c * X,
)


def penrose(inverse: Any) -> list[tuple[Any, Any]]:
    """Return the equations of Penrose for an inverse of G."""
    left, right = G * inverse, inverse * G
    return [(left * G, G), (inverse * left, inverse), (left.T, left), (right.T, right)]


pair("pseudo-inverse normal equation", G.T * G * pi1, G.T, pi1, given=penrose(pi1))
true("pseudo-inverse unique", pi1, pi2, *penrose(pi1), *penrose(pi2))
false("generalised inverse not unique", pi1, pi2, (G * pi1 * G, G), (G * pi2 * G, G))
pair("residual orthogonal", X.T * (Yk - X * (X.T * X).I * X.T * Yk), zeros(d, k), X.T * Yk)
pair("hat idempotent", hat * hat, hat, eye(n))
pair("ablation", (eye(d) - xd * xd.T) * xd, zeros(d, 1), xd, given=[(xd.T * xd, eye(1))])
false("ablation without unit", (eye(d) - xd * xd.T) * xd, zeros(d, 1))
pair(
    "householder",
    (eye(d) - 2 * xd * xd.T) ** 2,
    eye(d),
    eye(d) - xd * xd.T,
    given=[(xd.T * xd, eye(1))],
)
pair("inverse of a multiple", Inverse(c * A), A.I / c, c * A.I)
pair(
    "woodbury",
    Inverse(eye(n) + G * Gk),
    eye(n) - G * Inverse(eye(d) + Gk * G) * Gk,
    eye(n) - G * Gk,
)
pair(
    "push-through",
    G * Inverse(eye(d) + Gk * G),
    Inverse(eye(n) + G * Gk) * G,
    Inverse(eye(n) + G * Gk) * G * Gk * G,
)
pair("nilpotent commuting", (A * Bm) ** 2, On, A * Bm, given=[(A**2, On), (A * Bm, Bm * A)])
false("nilpotent not commuting", (A * Bm) ** 2, On, (A**2, On))
pair("resolvent", A.I - Bm.I, A.I * (Bm - A) * Bm.I, A.I * (A - Bm) * Bm.I)
pair("similar squares", (W * V * W.I) ** 3, W * V**3 * W.I, W**3 * V**3 * W.I**3)
pair("orthonormal columns", (G * G.T) ** 2, G * G.T, eye(n), given=[(G.T * G, eye(d))])
pair("zero ablated head", X + had(X, X) * W, X, had(X, X), given=[(W, zeros(d, d))])
false("function equal arguments", X, Xr, (f("relu", X), f("relu", Xr)))
true("exp is injective by log", X, Xr, (f("exp", X), f("exp", Xr)))
true("tied scalar", b * A, On, (a * A, On), Ne(a, 0))
