"""Claims up to a free layer or position, and convolutions: sums whose members need a mask."""

from __future__ import annotations

from typing import Any

from sympy import Inverse, MatrixSymbol, Sum, Trace, ZeroMatrix

import otimes as ot
from tests.algebra.decide.unrolled import (
    MASK,
    A,
    B,
    F,
    I,
    L,
    St,
    Suite,
    W,
    X,
    a,
    b,
    be,
    claim,
    d,
    ga,
    i,
    j,
    k,
    key,
    l,
    m,
    n,
    paths,
    prod,
    pw,
    qq,
    s,
    t,
    tot,
    upto,
    val,
    w,
    z,
)

SUITE = Suite()
Kf, us = ot.Family("Kf", (n,), d, d), ot.Family("us", (n,), d, 1)
av, bv, cv = (ot.Family(name, (n,), 1, 1) for name in ("av", "bv", "cv"))
zz = ot.Family("zz", (n + 1,), d, d)
Cm = ot.Family("Cm", (n,), m, d)
stream = [(z[t + 1], z[t] + F[t] * z[t])]
after = prod(I + F[l + 1 + i], L - 1 - i)
before = prod(I + F[l], i)
gauged = prod(Inverse(w[l + 1]) * F[l] * w[l], i)
turns = prod(w[l + 1] * Inverse(w[l]), i)
orthogonal = [(F[l].T * F[l], I)]
convolved = upto(Kf[i - j] * us[j], j, i)
triple = upto(upto(av[k] * bv[j - k], k, j) * cv[i - j], j, i)
SUITE.both(
    "gauges up to a layer",
    claim(gauged, Inverse(w[i]) * prod(F[l], i) * w[0]),
    claim(gauged, Inverse(w[i + 1]) * prod(F[l], i) * w[0]),
)
SUITE.both(
    "turns up to a layer",
    claim(turns, w[i] * Inverse(w[0])),
    claim(turns, Inverse(w[0]) * w[i]),
)
SUITE.both(
    "a number out of the first layers",
    claim(prod(a * F[l], i), a**i * prod(F[l], i)),
    claim(prod(a * F[l], i), a**L * prod(F[l], i)),
)
SUITE.both(
    "split at a layer",
    claim(prod(F[l]), prod(F[i + l], L - i) * prod(F[l], i)),
    claim(prod(F[l]), prod(F[l], i) * prod(F[i + l], L - i)),
)
SUITE.both(
    "the rest of the stream",
    claim(z[L], z[i] + tot(F[i + l] * z[i + l], l, L - i), stream),
    claim(z[L], z[i] + tot(F[l] * z[l], l, L - i), stream),
)
SUITE.both(
    "one layer taken out",
    claim(after * (I + F[i]) * before - after * before, after * F[i] * before),
    claim(after * (I + F[i]) * before - after * before, before * F[i] * after),
)
SUITE.both(
    "orthogonal up to a layer",
    claim(prod(F[l], i).T * prod(F[l], i), I, orthogonal),
    claim(prod(F[l], i) * prod(F[l], i), I, orthogonal),
)
SUITE.both(
    "paths through the first layers",
    claim(paths(F[l], 1, i).T, tot(F[l].T, l, i)),
    claim(paths(F[l], 1, i).T, tot(F[l], l, i)),
)
SUITE.both(
    "telescoping to a position",
    claim(tot(zz[j + 1] - zz[j], j, i), zz[i] - zz[0]),
    claim(tot(zz[j + 1] - zz[j], j, i), zz[i + 1] - zz[0]),
)
SUITE.both(
    "a power that may be the zeroth",
    claim(pw(A, i) * A, A * pw(A, i)),
    claim(pw(A, i) * A, pw(A, i)),
)
SUITE.both(
    "convolution, turned",
    claim(convolved, upto(Kf[j] * us[i - j], j, i)),
    claim(convolved, upto(Kf[j] * us[j], j, i)),
)
SUITE.both(
    "convolution of three",
    claim(triple, upto(av[k] * upto(bv[s] * cv[i - k - s], s, i - k), k, i)),
    claim(triple, upto(av[k] * upto(bv[s] * cv[i - s], s, i - k), k, i)),
)
SUITE.both(
    "powers as a kernel",
    claim(upto(pw(W, i - j) * us[j], j, i), upto(pw(W, j) * us[i - j], j, i)),
    claim(upto(pw(W, i - j) * us[j], j, i), upto(pw(W, i - j) * us[i - j], j, i)),
)
SUITE.both(
    "convolution read out",
    claim(Cm[0] * convolved, upto(Cm[0] * Kf[j] * us[i - j], j, i)),
    claim(Cm[0] * convolved, upto(Cm[0] * Kf[i - j] * us[i - j], j, i)),
)


# -- entries and unit columns at shifted indices ---------------------------------------------------


def e_(at: Any) -> Any:
    """Return a unit column."""
    return ot.OneHot(at, n)


SH, at = ot.Shift(n), e_(i).T
short = a * I + b * SH + be * SH * SH
SUITE.both(
    "previous token",
    claim(e_(i + 1).T * SH * X, at * X),
    claim(at * SH * X, e_(i + 1).T * X),
)
SUITE.both(
    "two tokens before",
    claim(e_(i + 2).T * SH * SH * X, at * X),
    claim(e_(i + 2).T * SH * X, at * X),
)
SUITE.both(
    "the token before, from it",
    claim(e_(i - 1).T * X, at * SH * X),
    claim(e_(i - 1).T * X, at * SH.T * X),
)
SUITE.both(
    "a short convolution",
    claim(e_(i + 2).T * short * X, a * e_(i + 2).T * X + b * e_(i + 1).T * X + be * at * X),
    claim(e_(i + 2).T * short * X, a * at * X + b * e_(i + 1).T * X + be * e_(i + 2).T * X),
)
SUITE.both(
    "rows from the second on",
    claim(Sum(A[j, k], (j, 1, n - 1)), Sum(A[j + 1, k], (j, 0, n - 2))),
    claim(Sum(A[j, k], (j, 1, n - 1)), Sum(A[j, k], (j, 0, n - 2))),
)
SUITE.both(
    "below the diagonal",
    claim(Sum(A[j + 1, j], (j, 0, n - 2)), Trace(SH.T * A)),
    claim(Sum(A[j + 1, j], (j, 0, n - 2)), Trace(SH * A)),
)
SUITE.both(
    "prefix sums, one further",
    claim(e_(i + 1).T * MASK * X, at * MASK * X + e_(i + 1).T * X),
    claim(e_(i + 1).T * MASK * X, at * MASK * X + at * X),
)
SUITE.both(
    "a sum of rows up to a position",
    claim(Sum(A[j + 1, k], (j, 0, i)), Sum((SH.T * A)[j, k], (j, 0, i))),
    claim(Sum(A[j + 1, k], (j, 0, i)), Sum(A[j, k], (j, 0, i))),
)
SUITE.both(
    "an entry and the members beside it",
    claim(A[i + 1, k] * av[i + 1] - A[i + 1, k] * av[i], A[i + 1, k] * (av[i + 1] - av[i])),
    claim(A[i + 1, k] * av[i + 1] - A[i + 1, k] * av[i], A[i, k] * (av[i + 1] - av[i])),
)


# -- what is read out of a state -------------------------------------------------------------------

ret = [(St[t + 1], ga * St[t] + key[t] * val[t].T), (St[0], ZeroMatrix(d, d))]
xs, C = ot.Family("xs", (n + 1,), d, 1), MatrixSymbol("C", m, d)
driven = [(xs[t + 1], W * xs[t] + us[t]), (xs[0], ZeroMatrix(d, 1))]
read = ga ** (i - j) * (qq[i].T * key[j]) * val[j].T
SUITE.both(
    "retention, read after the write",
    claim(qq[i].T * St[i + 1], upto(read, j, i), ret),
    claim(qq[i].T * St[i + 1], upto(ga * read, j, i), ret),
)
SUITE.both(
    "a driven state, read out",
    claim(C * xs[i + 1], upto(C * pw(W, i - j) * us[j], j, i), driven),
    claim(C * xs[i + 1], upto(C * pw(W, j) * us[j], j, i), driven),
)
SUITE.both(
    "a state, read out",
    claim(C * xs[i], C * pw(W, i) * xs[0], [(xs[t + 1], W * xs[t])]),
    claim(C * xs[i], C * pw(W, i + 1) * xs[0], [(xs[t + 1], W * xs[t])]),
)
SUITE.both(
    "logits of the stream",
    claim(z[L] * W, z[0] * W + tot(F[l] * z[l] * W), stream),
    claim(z[L] * W, z[0] * W + tot(F[l] * z[0] * W), stream),
)
SUITE.both(
    "inverses that commute",
    claim(Inverse(A) * Inverse(B), Inverse(B) * Inverse(A), [(A * B, B * A)]),
    claim(Inverse(A) * Inverse(B), Inverse(A) * Inverse(A), [(A * B, B * A)]),
)
