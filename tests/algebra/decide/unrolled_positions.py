"""Claims over positions: recurrences, index arithmetic, sums up to an index."""

from __future__ import annotations

from sympy import BlockMatrix, Identity, Inverse, MatPow, MatrixSymbol, Sum, Trace, ZeroMatrix

import otimes as ot
from otimes.algebra.language.linear import kron
from tests.algebra.decide.unrolled import (
    MASK,
    ONE,
    R_,
    A,
    B,
    F,
    G,
    I,
    Id,
    L,
    St,
    Suite,
    W,
    X,
    Y,
    Z,
    a,
    be,
    claim,
    d,
    f,
    ga,
    had,
    i,
    j,
    k,
    key,
    l,
    m,
    n,
    one,
    p,
    paths,
    prod,
    pw,
    qq,
    s,
    soft,
    t,
    tot,
    upto,
    val,
    w,
    z,
)

SUITE = Suite()
xs = ot.Family("xs", (n + 1,), d, 1)
us = ot.Family("us", (n,), m, 1)
Bm = MatrixSymbol("Bm", d, m)
ssm = [(xs[t + 1], W * xs[t] + Bm * us[t])]
At = ot.Family("At", (n,), d, d)
lin = [(St[t + 1], St[t] + key[t] * val[t].T), (St[0], ZeroMatrix(d, d))]
ret = [(St[t + 1], ga * St[t] + key[t] * val[t].T), (St[0], ZeroMatrix(d, d))]
g1 = ot.Family("g1", (n,), 1, 1)
m1 = ot.Family("m1", (n + 1,), 1, 1)
a1 = ot.Family("a1", (n + 1,), 1, d)
v1 = ot.Family("v1", (n,), 1, d)
Xm = MatrixSymbol("Xp", m, d)
xr = MatrixSymbol("xr", 1, d)
lastm = ot.OneHotLast(m + 1)
Xall = BlockMatrix([[Xm], [xr]])
th = MatrixSymbol("th", m, 1)
Rr = ot.Family("Rr", ((1 - n, n - 1),), d, d)
rel = [(Rr[i].T * Rr[j], Rr[j - i])]
qv, kv = (MatrixSymbol("qv", d, 1), MatrixSymbol("kv", d, 1))
zz = ot.Family("zz", (n + 1,), n, d)
E3 = ot.Family("E3", (n + m,), d, d)
SUITE.both(
    "geometric",
    claim((I - A) * tot(pw(A, k), k, i + 1), I - pw(A, i + 1)),
    claim((I - A) * tot(pw(A, k), k, i + 1), I - pw(A, i)),
)
SUITE.both(
    "geometric inverse",
    claim(tot(pw(A, k), k, m), Inverse(I - A) * (I - pw(A, m))),
    claim(tot(pw(A, k), k, m), Inverse(I - A) * (I - pw(A, m + 1))),
)
SUITE.both(
    "power of power", claim(pw(pw(A, m), p), pw(A, m * p)), claim(pw(pw(A, m), p), pw(A, m + p))
)
SUITE.both(
    "powers add at positions",
    claim(pw(A, i) * pw(A, j), pw(A, i + j)),
    claim(pw(A, i) * pw(B, j), pw(A * B, i + j)),
)
SUITE.both(
    "ssm unrolled",
    claim(xs[i], pw(W, i) * xs[0] + tot(pw(W, i - 1 - j) * Bm * us[j], j, i), ssm),
    claim(xs[i], pw(W, i) * xs[0] + tot(pw(W, i - j) * Bm * us[j], j, i), ssm),
)
SUITE.both(
    "ssm from zero",
    claim(xs[n], tot(pw(W, n - 1 - j) * Bm * us[j], j, n), [*ssm, (xs[0], ZeroMatrix(d, 1))]),
    claim(xs[n], tot(pw(W, j) * Bm * us[j], j, n), [*ssm, (xs[0], ZeroMatrix(d, 1))]),
)
SUITE.both(
    "homogeneous",
    claim(xs[i], ot.LayerProduct(At[s], (s, i)) * xs[0], [(xs[t + 1], At[t] * xs[t])]),
    claim(
        xs[i], ot.LayerProduct(At[s], (s, i), reverse=True) * xs[0], [(xs[t + 1], At[t] * xs[t])]
    ),
)
SUITE.both(
    "linear attention",
    claim(qq[i].T * St[i + 1], upto(qq[i].T * key[j] * val[j].T, j, i), lin),
    claim(qq[i].T * St[i], upto(qq[i].T * key[j] * val[j].T, j, i), lin),
)
SUITE.both(
    "retention",
    claim(St[i], tot(ga ** (i - 1 - j) * key[j] * val[j].T, j, i), ret),
    claim(St[i], tot(ga ** (i - j) * key[j] * val[j].T, j, i), ret),
)
SUITE.both(
    "delta rule stores",
    claim(
        St[t + 1] * key[t],
        val[t],
        [
            (St[t + 1], St[t] * (Id - key[t] * key[t].T) + val[t] * key[t].T),
            (key[t].T * key[t], one),
        ],
    ),
    claim(
        St[t] * key[t],
        val[t],
        [
            (St[t + 1], St[t] * (Id - key[t] * key[t].T) + val[t] * key[t].T),
            (key[t].T * key[t], one),
        ],
    ),
)
SUITE.both(
    "delta rule error form",
    claim(
        St[t] * (Id - be * key[t] * key[t].T) + be * val[t] * key[t].T,
        St[t] - be * (St[t] * key[t] - val[t]) * key[t].T,
    ),
    claim(
        St[t] * (Id - be * key[t] * key[t].T) + be * val[t] * key[t].T,
        St[t] + be * (St[t] * key[t] - val[t]) * key[t].T,
    ),
)
SUITE.both(
    "delta unrolled",
    claim(
        St[i],
        St[0] * ot.LayerProduct(Id - key[s] * key[s].T, (s, i), reverse=True),
        [(St[t + 1], St[t] * (Id - key[t] * key[t].T))],
    ),
    claim(
        St[i],
        St[0] * ot.LayerProduct(Id - key[s] * key[s].T, (s, i)),
        [(St[t + 1], St[t] * (Id - key[t] * key[t].T))],
    ),
)
SUITE.both(
    "rwkv numerator",
    claim(
        a1[i],
        tot(be ** (i - 1 - j) * f("exp", g1[j]) * v1[j], j, i),
        [(a1[t + 1], be * a1[t] + f("exp", g1[t]) * v1[t]), (a1[0], ZeroMatrix(1, d))],
    ),
    None,
)
SUITE.both(
    "online softmax numerator",
    claim(
        a1[i],
        tot(f("exp", g1[j] - m1[i]) * v1[j], j, i),
        [
            (a1[t + 1], f("exp", m1[t] - m1[t + 1]) * a1[t] + f("exp", g1[t] - m1[t + 1]) * v1[t]),
            (a1[0], ZeroMatrix(1, d)),
        ],
    ),
    claim(
        a1[i],
        tot(f("exp", g1[j] - m1[0]) * v1[j], j, i),
        [
            (a1[t + 1], f("exp", m1[t] - m1[t + 1]) * a1[t] + f("exp", g1[t] - m1[t + 1]) * v1[t]),
            (a1[0], ZeroMatrix(1, d)),
        ],
    ),
)
SUITE.both(
    "last row of scores under the mask",
    claim(ot.OneHotLast(n).T * had(X * W * Y.T, MASK) * Z, ot.OneHotLast(n).T * X * W * Y.T * Z),
    claim(ot.OneHotLast(n).T * had(X * W * Y.T, MASK.T) * Z, ot.OneHotLast(n).T * X * W * Y.T * Z),
)
SUITE.both(
    "kv cache last row",
    claim(
        ot.OneHotLast(n).T * soft(X * W * X.T, MASK) * X, soft(ot.OneHotLast(n).T * X * W * X.T) * X
    ),
    claim(
        ot.OneHot(0, n).T * soft(X * W * X.T, MASK) * X, soft(ot.OneHot(0, n).T * X * W * X.T) * X
    ),
)
SUITE.both(
    "kv cache block",
    claim(
        lastm.T * soft(Xall * W * Xall.T, ot.CausalMask(m + 1)) * Xall,
        soft(BlockMatrix([[xr * W * Xm.T, xr * W * xr.T]])) * Xall,
    ),
    claim(lastm.T * soft(Xall * W * Xall.T, ot.CausalMask(m + 1)) * Xall, soft(xr * W * Xm.T) * Xm),
)
SUITE.both(
    "row of mask",
    claim(ot.OneHot(i, n).T * MASK * X, upto(ot.OneHot(j, n).T * X, j, i)),
    claim(ot.OneHot(i, n).T * MASK * X, tot(ot.OneHot(j, n).T * X, j, i)),
)
SUITE.both(
    "difference of prefix sums",
    claim((I - ot.Shift(n)) * MASK, I),
    claim((I - ot.Shift(n).T) * MASK, I),
)
SUITE.both("inverse of shift", None, claim(Inverse(I - ot.Shift(n)), MASK.T))
SUITE.both(
    "shift of mask", claim(ot.Shift(n) * MASK + I, MASK), claim(ot.Shift(n) * MASK - I, MASK)
)
SUITE.both(
    "triangle exchanged",
    claim(
        Sum(Sum(A[i, j], (j, 0, i)), (i, 0, n - 1)), Sum(Sum(A[i, j], (i, j, n - 1)), (j, 0, n - 1))
    ),
    claim(Sum(Sum(A[i, j], (j, 0, i)), (i, 0, n - 1)), Sum(Sum(A[i, j], (i, 0, j)), (j, 0, n - 1))),
)
SUITE.both(
    "triangle as trace",
    claim(Sum(Sum(A[i, j], (j, 0, i)), (i, 0, n - 1)), Trace(A * MASK.T)),
    claim(Sum(Sum(A[i, j], (j, 0, i)), (i, 0, n - 1)), Trace(A * MASK)),
)
SUITE.both("count", claim(Sum(1, (j, 0, i)) * A, (i + 1) * A), claim(Sum(1, (j, 0, i)) * A, i * A))
SUITE.both(
    "gauss",
    claim(Sum(j, (j, 0, n - 1)) * A, n * (n - 1) / 2 * A),
    claim(Sum(j, (j, 0, n - 1)) * A, n * (n + 1) / 2 * A),
)
SUITE.both(
    "positions summed",
    claim(ONE.T * ot.Positions(n), n * (n - 1) / 2 * one),
    claim(ONE.T * ot.Positions(n), n * (n + 1) / 2 * one),
)
SUITE.both(
    "alibi",
    claim(
        soft(X * W * X.T + a * (ONE * ot.Positions(n).T - ot.Positions(n) * ONE.T), MASK) * X,
        soft(X * W * X.T + a * ONE * ot.Positions(n).T, MASK) * X,
    ),
    claim(
        soft(X * W * X.T + a * (ONE * ot.Positions(n).T - ot.Positions(n) * ONE.T), MASK) * X,
        soft(X * W * X.T - a * ONE * ot.Positions(n).T, MASK) * X,
    ),
)
SUITE.both(
    "sinusoid",
    claim(ot.Rotation(i * th).T * ot.Rotation(j * th), ot.Rotation((j - i) * th)),
    claim(ot.Rotation(i * th).T * ot.Rotation(j * th), ot.Rotation((i - j) * th)),
)
SUITE.both(
    "sinusoid shift",
    claim(ot.Rotation((i + k) * th), ot.Rotation(k * th) * ot.Rotation(i * th)),
    claim(ot.Rotation((i + k) * th), ot.Rotation(k * th) + ot.Rotation(i * th)),
)
SUITE.both(
    "rotary values",
    claim(
        tot(A[i, j] * qv.T * Rr[i].T * Rr[j] * kv, j, n),
        tot(A[i, j] * qv.T * Rr[j - i] * kv, j, n),
        rel,
    ),
    claim(
        tot(A[i, j] * qv.T * Rr[i].T * Rr[j] * kv, j, n),
        tot(A[i, j] * qv.T * Rr[i - j] * kv, j, n),
        rel,
    ),
)
SUITE.both(
    "rotary by powers",
    claim((pw(R_, i) * qv).T * pw(R_, i + s) * kv, qv.T * pw(R_, s) * kv, [(R_.T * R_, Id)]),
    claim((pw(R_, i) * qv).T * pw(R_, i + s) * kv, qv.T * pw(R_, s).T * kv, [(R_.T * R_, Id)]),
)
SUITE.both(
    "last one hot",
    claim(ot.OneHot(n - 1, n), ot.OneHotLast(n)),
    claim(ot.OneHot(n - 1, n), ot.Shift(n) * ot.OneHotLast(n)),
)
SUITE.both(
    "last term",
    claim(upto(val[j], j, i), tot(val[j], j, i) + val[i]),
    claim(upto(val[j], j, i), tot(val[j], j, i) + val[i + 1]),
)
SUITE.both(
    "sum to i+1",
    claim(upto(val[j], j, i + 1), upto(val[j], j, i) + val[i + 1]),
    claim(upto(val[j], j, i + 1), upto(val[j], j, i) + val[i]),
)
SUITE.both(
    "sum from one",
    claim(Sum(A[j, k], (j, 1, n - 1)), Sum(A[j, k], (j, 0, n - 1)) - A[0, k]),
    claim(Sum(A[j, k], (j, 1, n - 1)), Sum(A[j, k], (j, 0, n - 1)) - A[1, k]),
)
SUITE.both("telescoping to i", None, claim(upto(zz[j + 1] - zz[j], j, i), zz[i] - zz[0]))
SUITE.both(
    "abel",
    claim(
        tot(w[l] * (z[l + 1] - z[l])), w[L] * z[L] - w[0] * z[0] - tot((w[l + 1] - w[l]) * z[l + 1])
    ),
    claim(tot(w[l] * (z[l + 1] - z[l])), w[L] * z[L] - w[0] * z[0] - tot((w[l + 1] - w[l]) * z[l])),
)
SUITE.both(
    "causal linear attention row",
    claim(
        ot.OneHot(i, n).T * had(X * Y.T, MASK) * Z,
        upto(ot.OneHot(i, n).T * X * Y.T * ot.OneHot(j, n) * ot.OneHot(j, n).T * Z, j, i),
    ),
    claim(
        ot.OneHot(i, n).T * had(X * Y.T, MASK) * Z,
        tot(ot.OneHot(i, n).T * X * Y.T * ot.OneHot(j, n) * ot.OneHot(j, n).T * Z, j, n),
    ),
)
SUITE.both("two chunks", claim(tot(E3[j], j, n + m), tot(E3[j], j, n) + tot(E3[n + j], j, m)), None)
SUITE.both(
    "difference of powers",
    claim(pw(A, m) - pw(B, m), tot(pw(A, m - 1 - k) * (A - B) * pw(B, k), k, m)),
    claim(pw(A, m) - pw(B, m), tot(pw(A, m - 1 - k) * (B - A) * pw(B, k), k, m)),
)
SUITE.both(
    "momentum",
    claim(
        xs[i],
        (1 - be**i) * qv,
        [(xs[t + 1], be * xs[t] + (1 - be) * qv), (xs[0], ZeroMatrix(d, 1))],
    ),
    claim(
        xs[i],
        (1 - be ** (i + 1)) * qv,
        [(xs[t + 1], be * xs[t] + (1 - be) * qv), (xs[0], ZeroMatrix(d, 1))],
    ),
)
SUITE.both("arithmetic", None, claim(xs[i], xs[0] + (i + 1) * qv, [(xs[t + 1], xs[t] + qv)]))
SUITE.both(
    "fixed point",
    claim(xs[i] - qv, pw(W, i) * (xs[0] - qv), [(xs[t + 1], W * xs[t]), (W * qv, qv)]),
    claim(xs[i] - qv, pw(W, i) * (xs[0] - qv), [(xs[t + 1], W * xs[t]), (W * qv, kv)]),
)
SUITE.both(
    "conserved",
    claim(qv.T * xs[i], qv.T * xs[0], [(xs[t + 1], W * xs[t]), (qv.T * W, qv.T)]),
    claim(qv.T * xs[i], qv.T * xs[0], [(xs[t + 1], W * xs[t]), (W * qv, qv)]),
)
SUITE.both(
    "inverse power",
    claim(pw(Inverse(A), m), Inverse(pw(A, m))),
    claim(pw(Inverse(A), m), Inverse(pw(A, m + 1))),
)
SUITE.both("negative power", claim(pw(A, -m) * pw(A, m), I), claim(pw(A, -m) * pw(A, m + 1), I))
SUITE.both(
    "row gauge",
    claim(
        prod(Inverse(w[l]) * F[l] * w[l + 1], reverse=True),
        Inverse(w[0]) * prod(F[l], reverse=True) * w[L],
    ),
    claim(
        prod(Inverse(w[l]) * F[l] * w[l + 1], reverse=True),
        Inverse(w[L]) * prod(F[l], reverse=True) * w[0],
    ),
)
SUITE.both(
    "orthogonal gauges",
    claim(prod(w[l + 1].T * F[l] * w[l]), w[L].T * prod(F[l]) * w[0], [(w[l] * w[l].T, I)]),
    None,
)
SUITE.both(
    "state in a gauge",
    claim(
        w[l + 1] * z[l + 1],
        w[l + 1] * F[l] * Inverse(w[l]) * (w[l] * z[l]),
        [(z[l + 1], F[l] * z[l])],
    ),
    claim(
        w[l] * z[l + 1], w[l + 1] * F[l] * Inverse(w[l]) * (w[l] * z[l]), [(z[l + 1], F[l] * z[l])]
    ),
)
SUITE.both(
    "deep logit lens",
    claim(z[L] * W, z[0] * W + tot((z[l + 1] - z[l]) * W)),
    claim(z[L] * W, tot((z[l + 1] - z[l]) * W)),
)
SUITE.both(
    "residual unrolled at a layer",
    claim(z[i], z[0] + tot(F[l] * z[l], l, i), [(z[l + 1], z[l] + F[l] * z[l])]),
    claim(z[i], z[0] + upto(F[l] * z[l], l, i), [(z[l + 1], z[l] + F[l] * z[l])]),
)
SUITE.both(
    "residual by paths",
    claim(z[L], tot(paths(F[l], k), k, L + 1) * z[0], [(z[l + 1], (I + F[l]) * z[l])]),
    claim(z[L], tot(paths(F[l], k), k, L) * z[0], [(z[l + 1], (I + F[l]) * z[l])]),
)
SUITE.both(
    "inverse at an index",
    claim(Inverse(kron(F[i], W)), kron(Inverse(F[i]), Inverse(W))),
    claim(Inverse(kron(F[i], W)), kron(Inverse(F[i]), W)),
)
us = ot.Family("us", (n,), d, 1)
Cm = MatrixSymbol("Cm", m, d)
vv = MatrixSymbol("vv", 2 * m, 1)
ww = MatrixSymbol("ww", 2 * m, 1)
SUITE.both(
    "ssm output",
    None,
    claim(
        Cm * xs[i],
        tot(Cm * pw(W, i - 1 - j) * us[j], j, i),
        [(xs[t + 1], W * xs[t] + us[t]), (xs[0], qq[0])],
    ),
)
SUITE.both(
    "ema",
    claim(
        xs[i],
        be**i * xs[0] + tot((1 - be) * be ** (i - 1 - j) * us[j], j, i),
        [(xs[t + 1], be * xs[t] + (1 - be) * us[t])],
    ),
    claim(
        xs[i],
        be**i * xs[0] + tot(be ** (i - 1 - j) * us[j], j, i),
        [(xs[t + 1], be * xs[t] + (1 - be) * us[t])],
    ),
)
SUITE.both(
    "retention at the end",
    claim(
        qq[0].T * St[n],
        tot(ga ** (n - 1 - j) * (qq[0].T * key[j]) * val[j].T, j, n),
        [(St[t + 1], ga * St[t] + key[t] * val[t].T), (St[0], ZeroMatrix(d, d))],
    ),
    claim(
        qq[0].T * St[n],
        tot(ga**j * (qq[0].T * key[j]) * val[j].T, j, n),
        [(St[t + 1], ga * St[t] + key[t] * val[t].T), (St[0], ZeroMatrix(d, d))],
    ),
)
SUITE.both(
    "convolution turned",
    claim(tot(pw(W, n - 1 - j) * us[j], j, n), tot(pw(W, j) * us[n - 1 - j], j, n)),
    claim(tot(pw(W, n - 1 - j) * us[j], j, n), tot(pw(W, j) * us[j], j, n)),
)
SUITE.both(
    "geometric inverse, again",
    claim(tot(pw(A, k), k, m) * (A - I), pw(A, m) - I),
    claim(tot(pw(A, k), k, m + 1) * (A - I), pw(A, m) - I),
)
SUITE.both(
    "cumulative state",
    claim(St[n] - St[0], tot(key[t] * val[t].T, t, n), [(St[t + 1], St[t] + key[t] * val[t].T)]),
    claim(St[n] + St[0], tot(key[t] * val[t].T, t, n), [(St[t + 1], St[t] + key[t] * val[t].T)]),
)
SUITE.both(
    "prefix of all",
    claim(ot.OneHot(i, n).T * MASK * ONE, (i + 1) * Identity(1)),
    claim(ot.OneHot(i, n).T * MASK * ONE, i * Identity(1)),
)
SUITE.both(
    "masked row sums",
    claim(Sum(A[i, j], (j, 0, i)) + Sum(A[i, j], (j, i + 1, n - 1)), (A * ONE)[i, 0]),
    claim(Sum(A[i, j], (j, 0, i)) + Sum(A[i, j], (j, i, n - 1)), (A * ONE)[i, 0]),
)
SUITE.both(
    "shift twice",
    claim(ot.OneHot(0, n).T * ot.Shift(n) * ot.Shift(n), ZeroMatrix(1, n)),
    claim(ot.OneHotLast(n).T * ot.Shift(n) * ot.Shift(n), ZeroMatrix(1, n)),
)
SUITE.both(
    "shift out",
    claim(A * MatPow(ot.Shift(n), n + t), ZeroMatrix(n, n)),
    claim(MatPow(ot.Shift(n + 1), n), ZeroMatrix(n + 1, n + 1)),
)
SUITE.both(
    "rotary dot",
    claim(
        (ot.Rotation(i * th) * vv).T * (ot.Rotation(j * th) * ww),
        vv.T * ot.Rotation((j - i) * th) * ww,
    ),
    claim(
        (ot.Rotation(i * th) * vv).T * (ot.Rotation(j * th) * ww),
        vv.T * ot.Rotation((j + i) * th) * ww,
    ),
)
SUITE.both(
    "two states",
    claim(xs[i], tot(us[j], j, i) + xs[0], [(xs[t + 1], us[t] + xs[t])]),
    claim(xs[i], upto(us[j], j, i) + xs[0], [(xs[t + 1], us[t] + xs[t])]),
)
SUITE.both(
    "inverse of members",
    claim(Inverse(F[i] * G[i]), Inverse(G[i]) * Inverse(F[i])),
    claim(Inverse(F[i] * G[i]), Inverse(F[i]) * Inverse(G[i])),
)
