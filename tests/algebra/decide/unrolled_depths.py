"""Claims over products and sums over layers, and at the sizes of real models."""

from __future__ import annotations

from sympy import (
    BlockDiagMatrix,
    BlockMatrix,
    Identity,
    Integer,
    Inverse,
    MatrixSymbol,
    OneMatrix,
    Trace,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

import otimes as ot
from otimes.algebra.language.linear import kron
from tests.algebra.decide.unrolled import (
    ONE,
    A,
    B,
    F,
    G,
    H,
    I,
    Id,
    J,
    K,
    L,
    N,
    O,
    P,
    S,
    Suite,
    U,
    W,
    X,
    a,
    b,
    claim,
    d,
    h,
    had,
    k,
    l,
    n,
    one,
    p,
    paths,
    prod,
    pw,
    q,
    soft,
    tot,
    u,
    w,
    x,
    z,
)

SUITE = Suite()
comm = [(w[l] * w[u], w[u] * w[l])]
rowy = ot.Family("yr", (L,), 1, n)
E2 = ot.Family("E2", (p + q,), n, n)
Pc = I - J / n
bias = MatrixSymbol("bv", 1, d)
LH = ot.Family("Ch", (L, H), n, n)
F2 = ot.Family("F2", (2 * L,), n, n)
sc = ot.Family("sc", (L,), 1, 1)
d7 = 768
M7, N7 = (MatrixSymbol("M7", d7, d7), MatrixSymbol("N7", d7, d7))
I7 = Identity(d7)
Fh = ot.Family("Fh", (12,), d7, 64)
Oh = ot.Family("Oh", (12,), 64, d7)
F96 = ot.Family("F96", (96,), n, n)
w97 = ot.Family("w97", (97,), n, n)
F96s = ot.Family("F96s", (96,), 768, 768)
WE, WU = (MatrixSymbol("WE", 50257, 768), MatrixSymbol("WU", 768, 50257))
Ag = MatrixSymbol("Ag", 1024, 1024)
SUITE.both(
    "transpose residual",
    claim(prod(I + F[l]).T, prod(I + F[l].T, reverse=True)),
    claim(prod(I + F[l]).T, prod(I + F[l].T)),
)
SUITE.both(
    "inverse product",
    claim(Inverse(prod(F[l])), prod(Inverse(F[l]), reverse=True)),
    claim(Inverse(prod(F[l])), prod(Inverse(F[l]))),
)
SUITE.both(
    "inverse of pairs",
    claim(Inverse(prod(F[l] * G[l])), prod(Inverse(G[l]) * Inverse(F[l]), reverse=True)),
    claim(Inverse(prod(F[l] * G[l])), prod(Inverse(F[l]) * Inverse(G[l]), reverse=True)),
)
SUITE.both(
    "inverse cancels",
    claim(prod(F[l]) * prod(Inverse(F[l]), reverse=True), I),
    claim(prod(F[l]) * prod(Inverse(F[l])), I),
)
SUITE.both(
    "orthogonal gauge of paths",
    claim(paths(U.T * F[l] * U, p), U.T * paths(F[l], p) * U, [(U * U.T, I)]),
    claim(paths(U.T * F[l] * U, p), U * paths(F[l], p) * U.T, [(U * U.T, I)]),
)
SUITE.both(
    "pascal of paths",
    claim(paths(w[l], p + 1, L + 1), paths(w[l], p + 1) + w[L] * paths(w[l], p)),
    claim(paths(w[l], p + 1, L + 1), paths(w[l], p + 1) + paths(w[l], p) * w[L]),
)
SUITE.both(
    "nonempty paths",
    claim(tot(paths(F[l], k + 1), k, L), prod(I + F[l]) - I),
    claim(tot(paths(F[l], k), k, L), prod(I + F[l]) - I),
)
SUITE.both(
    "reversed paths transpose",
    claim(paths(F[l], q, reverse=True).T, paths(F[l].T, q)),
    claim(paths(F[l], q, reverse=True).T, paths(F[l].T, q, reverse=True)),
)
SUITE.both(
    "orders of both signs",
    claim(prod(I - F[l]), tot((-1) ** k * paths(F[l], k), k, L + 1)),
    claim(prod(I - F[l]), tot((-1) ** k * paths(F[l], k), k, L)),
)
SUITE.both(
    "orders weighed",
    claim(prod(I + a * b * F[l]), tot(a**k * (b**k * paths(F[l], k)), k, L + 1)),
    claim(prod(I + a * b * F[l]), tot(a**k * (b * paths(F[l], k)), k, L + 1)),
)
SUITE.both(
    "orders with a scaled skip",
    claim(A * prod(a * I + F[l]), A * tot(a ** (L - k) * paths(F[l], k), k, L + 1)),
    claim(A * prod(a * I + F[l]), A * tot(a**k * paths(F[l], k), k, L + 1)),
)
SUITE.both(
    "the last of 96 layers",
    claim(prod(I7 + F96s[l], 96), prod(I7 + F96s[l], 95) + F96s[95] * prod(I7 + F96s[l], 95)),
    claim(prod(I7 + F96s[l], 96), prod(I7 + F96s[l], 95) * (I7 + F96s[95])),
)
SUITE.both(
    "96 layers in two parts",
    claim(prod(I7 + F96s[l], 96), prod(I7 + F96s[56 + l], 40) * prod(I7 + F96s[l], 56)),
    claim(prod(I7 + F96s[l], 96), prod(I7 + F96s[l], 56) * prod(I7 + F96s[56 + l], 40)),
)
SUITE.both("last commutes", claim(w[L] * prod(w[l]), prod(w[l]) * w[L], comm), None)
SUITE.both(
    "commuting product with lemma",
    claim(
        Trace(prod(F[l]) * A),
        Trace(prod(F[l], reverse=True) * A),
        [(F[l] * F[u], F[u] * F[l])],
        [(prod(F[l]), prod(F[l], reverse=True))],
    ),
    claim(Trace(prod(F[l]) * A), Trace(prod(F[l], reverse=True) * A), [(F[l] * A, A * F[l])]),
)
SUITE.both(
    "telescoping quotients",
    claim(prod(w[l + 1] * Inverse(w[l])), w[L] * Inverse(w[0])),
    claim(prod(w[l + 1] * Inverse(w[l])), Inverse(w[0]) * w[L]),
)
SUITE.both(
    "kron",
    claim(prod(kron(F[l], K[l])), kron(prod(F[l]), prod(K[l]))),
    claim(prod(kron(F[l], K[l])), kron(prod(F[l]), prod(K[l], reverse=True))),
)
SUITE.both(
    "trace in a gauge",
    claim(Trace(prod(S * F[l] * Inverse(S))), Trace(prod(F[l]))),
    claim(
        Trace(prod(S * F[l] * Inverse(S))),
        Trace(prod(F[l]).T * prod(I)) * L / L
        + 0 * Trace(A)
        + Trace(prod(F[l], reverse=True))
        - Trace(prod(F[l])),
    ),
)
SUITE.both(
    "block diagonal",
    claim(prod(BlockDiagMatrix(F[l], K[l])), BlockDiagMatrix(prod(F[l]), prod(K[l]))),
    claim(prod(BlockDiagMatrix(F[l], K[l])), BlockDiagMatrix(prod(F[l]), prod(K[l], reverse=True))),
)
SUITE.both(
    "unitriangular",
    claim(prod(BlockMatrix([[I, N[l]], [O, I]])), BlockMatrix([[I, tot(N[l])], [O, I]])),
    claim(prod(BlockMatrix([[I, N[l]], [O, I]])), BlockMatrix([[I, prod(N[l])], [O, I]])),
)
SUITE.both(
    "one direction",
    claim(prod(I + x * rowy[l]), I + x * tot(rowy[l]), [(rowy[l] * x, ZeroMatrix(1, 1))]),
    claim(prod(I + x * rowy[l]), I + x * tot(rowy[l])),
)
SUITE.both(
    "norm kept",
    claim((prod(F[l]) * X).T * prod(F[l]) * X, X.T * X, [(F[l].T * F[l], I)]),
    claim((prod(F[l]) * X).T * prod(F[l]) * X, X.T * X, [(F[l] * F[l], I)]),
)
SUITE.both(
    "scaled residual",
    None,
    claim(prod(a * I + b * F[l]), tot(a**k * b ** (L - k) * paths(F[l], k), k, L + 1)),
)
SUITE.both(
    "split at a layer",
    claim(prod(E2[l], p + q), prod(E2[p + l], q) * prod(E2[l], p)),
    claim(prod(E2[l], p + q), prod(E2[l], p) * prod(E2[p + l], q)),
)
SUITE.both("equal layers", None, claim(paths(A, 2), L * (L + 1) / 2 * A * A))
SUITE.both(
    "rank collapse",
    claim(Pc * prod(F[l]), prod(Pc * F[l]), [(F[l] * ONE, ONE)]),
    claim(Pc * prod(F[l]), prod(F[l] * Pc), [(F[l] * ONE, ONE)]),
)
SUITE.both(
    "bias passes",
    claim(prod(F[l]) * (X + ONE * bias), prod(F[l]) * X + ONE * bias, [(F[l] * ONE, ONE)]),
    claim(prod(I + F[l]) * (X + ONE * bias), prod(I + F[l]) * X + ONE * bias, [(F[l] * ONE, ONE)]),
)
SUITE.both(
    "heads in layers",
    claim(prod(I + tot(LH[l, h], h, H)).T, prod(I + tot(LH[l, h].T, h, H), reverse=True)),
    claim(prod(I + tot(LH[l, h], h, H)), prod(prod(I + LH[l, h], H, ix=h))),
)
SUITE.both(
    "kron residual",
    claim(
        prod(Identity(n * d) + kron(F[l], K[l])).T,
        prod(Identity(n * d) + kron(F[l].T, K[l].T), reverse=True),
    ),
    claim(prod(Identity(n * d) + kron(F[l], K[l])), kron(prod(I + F[l]), prod(Id + K[l]))),
)
SUITE.both(
    "symplectic",
    claim(prod(F[l]).T * A * prod(F[l]), A, [(F[l].T * A * F[l], A)]),
    claim(prod(F[l]) * A * prod(F[l]).T, A, [(F[l].T * A * F[l], A)]),
)
SUITE.both(
    "intertwined",
    claim(A * prod(F[l]), prod(G[l]) * A, [(A * F[l], G[l] * A)]),
    claim(A * prod(F[l]), prod(G[l], reverse=True) * A, [(A * F[l], G[l] * A)]),
)
SUITE.both(
    "intertwined by layers",
    claim(w[L] * prod(F[l]), prod(G[l]) * w[0], [(w[l + 1] * F[l], G[l] * w[l])]),
    claim(w[0] * prod(F[l]), prod(G[l]) * w[L], [(w[l + 1] * F[l], G[l] * w[l])]),
)
SUITE.both(
    "projections around",
    claim(prod(P * F[l] * P), P * prod(F[l]), [(P * P, P), (P * F[l], F[l] * P)]),
    claim(prod(P * F[l] * P), P * prod(F[l]), [(P * P, P)]),
)
SUITE.both(
    "cyclic trace",
    claim(Trace(w[L] * prod(w[l])), Trace(prod(w[l]) * w[L])),
    claim(Trace(prod(w[l], L + 1)), Trace(prod(w[l], L + 1, reverse=True))),
)
SUITE.both(
    "pairs of layers",
    claim(prod(F2[l], 2 * L), prod(F2[2 * l + 1] * F2[2 * l])),
    claim(prod(F2[l], 2 * L), prod(F2[2 * l] * F2[2 * l + 1])),
)
SUITE.both(
    "nilpotent inverse",
    claim(prod(I - N[l]) * prod(I + N[l]), I, [(N[l] * N[u], O)]),
    claim(prod(I - N[l]) * prod(I + N[l]), I, [(N[l] * N[l], O)]),
)
SUITE.both(
    "lemma with inverse",
    claim(
        Trace(prod(S * F[l] * Inverse(S)) * A),
        Trace(prod(F[l]) * Inverse(S) * A * S),
        [],
        [(prod(S * F[l] * Inverse(S)), S * prod(F[l]) * Inverse(S))],
    ),
    claim(Trace(prod(S * F[l] * Inverse(S)) * A), Trace(prod(F[l]) * S * A * Inverse(S))),
)
SUITE.both(
    "scalars out",
    claim(prod(kron(sc[l], F[l])), kron(prod(sc[l]), prod(F[l]))),
    claim(prod(kron(sc[l], F[l])), kron(tot(sc[l]), prod(F[l]))),
)
SUITE.both(
    "diagonal layers",
    claim(
        prod(DiagMatrix(ot.Family("dg", (L,), n, 1)[l]))
        * prod(DiagMatrix(ot.Family("eg", (L,), n, 1)[l])),
        prod(DiagMatrix(had(ot.Family("dg", (L,), n, 1)[l], ot.Family("eg", (L,), n, 1)[l]))),
    ),
    claim(
        prod(
            DiagMatrix(ot.Family("dg", (L,), n, 1)[l]) + DiagMatrix(ot.Family("eg", (L,), n, 1)[l])
        ),
        prod(DiagMatrix(ot.Family("dg", (L,), n, 1)[l]))
        + prod(DiagMatrix(ot.Family("eg", (L,), n, 1)[l])),
    ),
)
SUITE.both(
    "product over L+1 gauge",
    claim(prod(S * w[l] * Inverse(S), L + 1), S * w[L] * prod(w[l]) * Inverse(S)),
    claim(prod(S * w[l] * Inverse(S), L + 1), S * prod(w[l]) * w[L] * Inverse(S)),
)
SUITE.both(
    "layer norm free",
    claim(prod(F[l] * A) * Inverse(A), Inverse(A) * prod(A * F[l])),
    claim(prod(F[l] * A) * Inverse(A), prod(A * F[l]) * Inverse(A)),
)
SUITE.both(
    "trace 768", claim(Trace(M7 * N7), Trace(N7 * M7)), claim(Trace(M7 * N7), Trace(M7 * N7.T))
)
SUITE.both(
    "squares 768",
    claim((I7 + M7) * (I7 - M7), I7 - M7 * M7),
    claim((I7 + M7) * (I7 - N7), I7 - M7 * N7),
)
SUITE.both(
    "heads 768",
    claim(
        ot.ConcatHeads(Fh[h], (h, 12)) * ot.StackHeads(Oh[h], (h, 12)), tot(Fh[h] * Oh[h], h, 12)
    ),
    claim(
        ot.ConcatHeads(Fh[h], (h, 12)) * ot.StackHeads(Oh[h], (h, 12)),
        tot(Fh[h], h, 12) * tot(Oh[h], h, 12),
    ),
)
SUITE.both(
    "96 inverse",
    claim(Inverse(prod(F96[l], 96)), prod(Inverse(F96[l]), 96, True)),
    claim(Inverse(prod(F96[l], 96)), prod(Inverse(F96[l]), 96)),
)
SUITE.both(
    "96 gauges",
    claim(prod(S * F96[l] * Inverse(S), 96), S * prod(F96[l], 96) * Inverse(S)),
    claim(prod(S * F96[l] * Inverse(S), 96), Inverse(S) * prod(F96[l], 96) * S),
)
SUITE.both(
    "96 gauges by layer",
    claim(
        prod(Inverse(w97[l + 1]) * F96[l] * w97[l], 96),
        Inverse(w97[96]) * prod(F96[l], 96) * w97[0],
    ),
    None,
)
SUITE.both("96 telescope", None, claim(tot(w97[l + 1] - w97[l], l, 96), w97[95] - w97[0]))
SUITE.both(
    "96 x 768",
    claim(prod(Identity(768) + F96s[l], 96).T, prod(Identity(768) + F96s[l].T, 96, True)),
    claim(prod(Identity(768) + F96s[l], 96), Identity(768) + tot(F96s[l], l, 96)),
)
SUITE.both(
    "gpt2 direct path",
    claim(kron(Ag, WE * WU) * kron(Ag, WE * WU), kron(Ag * Ag, WE * (WU * WE) * WU)),
    claim(kron(Ag, WE * WU) * kron(Ag, WE * WU), kron(Ag * Ag, WE * WU)),
)
SUITE.both(
    "gpt2 softmax bias",
    claim(
        soft(Ag + MatrixSymbol("bg", 1024, 1) * OneMatrix(1, 1024), ot.CausalMask(1024)),
        soft(Ag, ot.CausalMask(1024)),
    ),
    claim(
        soft(Ag + OneMatrix(1024, 1) * MatrixSymbol("bg", 1024, 1).T, ot.CausalMask(1024)),
        soft(Ag, ot.CausalMask(1024)),
    ),
)
SUITE.both(
    "mask 1024",
    claim((Identity(1024) - ot.Shift(1024)) * ot.CausalMask(1024), Identity(1024)),
    None,
)
SUITE.both(
    "qk 12 heads",
    claim(Trace(tot(Fh[h] * Oh[h], h, 12)), tot(Trace(Oh[h] * Fh[h]) * one, h, 12)[0, 0]),
    claim(Trace(tot(Fh[h] * Oh[h], h, 12)), 12 * Trace(Oh[0] * Fh[0])),
)
SUITE.both(
    "residual 96 by recurrence",
    claim(w97[96], prod(I + F96[l], 96) * w97[0], [(w97[l + 1], w97[l] + F96[l] * w97[l])]),
    None,
)
M7, N7 = (MatrixSymbol("M7", 768, 768), MatrixSymbol("N7", 768, 768))
SUITE.both(
    "adjoint pairing",
    claim(Trace((prod(F[l]) * A).T * B), Trace(A.T * prod(F[l].T, reverse=True) * B)),
    claim(Trace((prod(F[l]) * A).T * B), Trace(A.T * prod(F[l].T) * B)),
)
SUITE.both(
    "negated layers",
    claim(prod(-1 * F[l]), (-1) ** L * prod(F[l])),
    claim(prod(-1 * F[l]), -1 * prod(F[l])),
)
SUITE.both(
    "residual eigenvector",
    claim(prod(I + F[l]) * x, (1 + a) ** L * x, [(F[l] * x, a * x)]),
    claim(prod(I + F[l]) * x, (1 + L * a) * x, [(F[l] * x, a * x)]),
)
SUITE.both(
    "layers annihilate",
    claim(prod(I + F[l]) * x, x, [(F[l] * x, ZeroMatrix(n, 1))]),
    claim(prod(I + F[l]) * x, x, [(x.T * F[l], ZeroMatrix(1, n))]),
)
SUITE.both(
    "inverse of residual layers", None, claim(Inverse(prod(I + F[l])), prod(I - F[l], reverse=True))
)
SUITE.both(
    "transposed gauge paths",
    claim(paths(S * F[l] * Inverse(S), p).T, Inverse(S).T * paths(F[l].T, p, reverse=True) * S.T),
    claim(paths(S * F[l] * Inverse(S), p).T, S.T * paths(F[l].T, p, reverse=True) * Inverse(S).T),
)
SUITE.both(
    "first order of scaled",
    claim(paths(a * F[l], 1), a * tot(F[l])),
    claim(paths(a * F[l], 2), a * paths(F[l], 2)),
)
SUITE.both(
    "symmetric by lemma",
    claim(
        prod(F[l]).T * A,
        prod(F[l]) * A,
        [(F[l].T, F[l]), (F[l] * F[u], F[u] * F[l])],
        [(prod(F[l]), prod(F[l], reverse=True))],
    ),
    claim(prod(F[l]).T * A, prod(F[l]) * A, [(F[l].T, F[l])]),
)
SUITE.both(
    "sum in two depths",
    claim(tot(E2[l], l, p + q).T, tot(E2[l].T, l, p) + tot(E2[p + l].T, l, q)),
    claim(tot(E2[l], l, p + q).T, tot(E2[l].T, l, p) + tot(E2[l].T, l, q)),
)
SUITE.both(
    "residual in two depths",
    claim(prod(I + E2[l], p + q), prod(I + E2[p + l], q) * prod(I + E2[l], p)),
    claim(prod(I + E2[l], p + q), prod(E2[p + l], q) * prod(I + E2[l], p)),
)
SUITE.both(
    "attention then mlp",
    claim(prod(I + F2[l], 2 * L), prod((I + F2[2 * l + 1]) * (I + F2[2 * l]))),
    claim(prod(I + F2[l], 2 * L), prod(I + F2[2 * l + 1] + F2[2 * l])),
)
SUITE.both(
    "bias accumulates",
    claim(z[L], z[0] + tot(G[l] * X), [(z[l + 1], z[l] + G[l] * X)]),
    claim(z[L], z[0] + L * G[0] * X, [(z[l + 1], z[l] + G[l] * X)]),
)
SUITE.both(
    "96 scaled",
    claim(prod(a * F96[l], 96), a**96 * prod(F96[l], 96)),
    claim(prod(a * F96[l], 96), a**95 * prod(F96[l], 96)),
)
SUITE.both(
    "96 fixed vector",
    claim(prod(I + F96[l], 96) * x, x, [(F96[l] * x, ZeroMatrix(n, 1))]),
    claim(prod(I + F96[l], 96) * x, 2 * x, [(F96[l] * x, ZeroMatrix(n, 1))]),
)
SUITE.both(
    "vec 768",
    claim(ot.vec_rows(M7 * N7), kron(M7, Identity(768)) * ot.vec_rows(N7)),
    claim(ot.vec_rows(M7 * N7), kron(Identity(768), M7) * ot.vec_rows(N7)),
)
SUITE.both(
    "commutator trace",
    claim(Trace(M7 * N7) - Trace(N7 * M7), Integer(0)),
    claim(Trace(M7 * N7 * M7) - Trace(N7 * M7 * N7), Integer(0)),
)
SUITE.both(
    "96 kron",
    claim(prod(kron(F96[l], W), 96), kron(prod(F96[l], 96), pw(W, 96))),
    claim(prod(kron(F96[l], W), 96), kron(prod(F96[l], 96), pw(W, 95))),
)
