"""Blocks: masks, softmaxes and norms cut at symbolic sizes, one size cut in two ways."""

from __future__ import annotations

from typing import Any

from sympy import BlockDiagMatrix, Inverse, MatrixSymbol, Trace
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.defined import CrossEntropy, LogSumExp, Quotient
from otimes.algebra.language.linear import (
    ConcatHeads,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.named_matrices import selection
from otimes.algebra.language.nonlinear import CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.positions import OneHotLast, Positions, Shift
from tests.algebra.decide.points.symbols import (
    K1,
    K2,
    S11,
    S12,
    S21,
    S22,
    SB,
    T2,
    TT,
    V1,
    V2,
    W2,
    WO,
    X01,
    X1,
    XX,
    Z1,
    A,
    Claims,
    H,
    P,
    S,
    St,
    T,
    V,
    W,
    Wd1,
    X,
    Xk,
    Xr,
    Y,
    aff1,
    aff2,
    bb,
    bias,
    col,
    d,
    eps,
    eye,
    h,
    k,
    m,
    masked,
    n,
    nd,
    ones,
    qq,
    row,
    s0,
    s1,
    sc_,
    sl,
    slast,
    table,
    v_,
    w_,
    x0,
    xd,
    xn,
    xx,
    yk,
    z,
    zeros,
)
from tests.algebra.decide.shorthand import f, had

CLAIMS = Claims()
pair, true, false = CLAIMS.pair, CLAIMS.holds, CLAIMS.fails

pair(
    "mask n+m",
    CausalMask(n + m),
    table([[CausalMask(n), zeros(n, m)], [ones(m, n), CausalMask(m)]]),
    table([[CausalMask(n), ones(n, m)], [zeros(m, n), CausalMask(m)]]),
    table([[CausalMask(n), zeros(n, m)], [ones(m, n), eye(m)]]),
)
pair(
    "mask n+1",
    CausalMask(n + 1),
    table([[CausalMask(n), zeros(n, 1)], [ones(1, n), eye(1)]]),
    table([[CausalMask(n), zeros(n, 1)], [ones(1, n), zeros(1, 1)]]),
)
pair(
    "mask 1+n",
    CausalMask(1 + n),
    table([[ones(1, 1), zeros(1, n)], [ones(n, 1), CausalMask(n)]]),
    table([[ones(1, 1), zeros(1, n)], [zeros(n, 1), CausalMask(n)]]),
)
pair(
    "mask three",
    CausalMask(n + m + k),
    table(
        [
            [CausalMask(n), zeros(n, m), zeros(n, k)],
            [ones(m, n), CausalMask(m), zeros(m, k)],
            [ones(k, n), ones(k, m), CausalMask(k)],
        ]
    ),
    table(
        [
            [CausalMask(n), zeros(n, m), zeros(n, k)],
            [ones(m, n), CausalMask(m), zeros(m, k)],
            [zeros(k, n), ones(k, m), CausalMask(k)],
        ]
    ),
)
pair(
    "softmax prefix corner",
    s0 * RowSoftmax(SB, CausalMask(n + m)) * s0.T,
    RowSoftmax(S11, CausalMask(n)),
    RowSoftmax(S11),
)
pair(
    "softmax prefix zero",
    s0 * RowSoftmax(SB, CausalMask(n + m)) * s1.T,
    zeros(n, m),
    RowSoftmax(S12),
)
pair(
    "prefix causality head",
    s0 * RowSoftmax(XX * W * XX.T, CausalMask(n + m)) * XX * V,
    RowSoftmax(X1 * W * X1.T, CausalMask(n)) * X1 * V,
    RowSoftmax(X1 * W * X1.T) * X1 * V,
)
false("prefix without mask", s0 * RowSoftmax(XX * W * XX.T) * XX, RowSoftmax(X1 * W * X1.T) * X1)
pair(
    "first token keeps itself",
    selection((1, n), 0) * RowSoftmax(X01 * W * X01.T, CausalMask(1 + n)) * X01 * V,
    x0 * V,
    ones(1, n) * Xr * V,
)
pair(
    "softmax of two key blocks",
    RowSoftmax(row(S, T)) * col(V1, V2),
    Quotient(
        f("exp", S) * V1 + f("exp", T) * V2,
        (f("exp", S) * ones(m, 1) + f("exp", T) * ones(k, 1)) * ones(1, d),
    ),
    RowSoftmax(S) * V1 + RowSoftmax(T) * V2,
)
pair(
    "padding mask",
    RowSoftmax(row(S, T), row(ones(n, m), zeros(n, k))),
    row(RowSoftmax(S), zeros(n, k)),
    row(RowSoftmax(S), RowSoftmax(T)),
)
pair(
    "packed documents",
    RowSoftmax(SB, BlockDiagMatrix(CausalMask(n), CausalMask(m))),
    BlockDiagMatrix(RowSoftmax(S11, CausalMask(n)), RowSoftmax(S22, CausalMask(m))),
    BlockDiagMatrix(RowSoftmax(S11, CausalMask(n)), RowSoftmax(S22)),
)
pair(
    "identity d|1",
    BlockDiagMatrix(eye(d), eye(1)),
    BlockDiagMatrix(eye(1), eye(d)),
    table([[zeros(d, 1), eye(d)], [eye(1), zeros(1, d)]]),
)
pair(
    "affine d|1 against 1|d", row(w_, bb) * col(xx, eye(1)), row(bb, w_) * col(eye(1), xx), w_ * xx
)
pair(
    "bias as a column of ones",
    row(X, ones(n, 1)) * col(W2, bias.T),
    X * W2 + ones(n, 1) * bias.T,
    X * W2 + ones(n, k),
)
pair(
    "affine maps compose",
    aff1 * aff2,
    table([[W * V, W * v_ + xx], [zeros(1, d), eye(1)]]),
    table([[W * V, V * xx + v_], [zeros(1, d), eye(1)]]),
)
pair(
    "ones two cuts",
    col(ones(d, 1), ones(1, 1)),
    col(ones(1, 1), ones(d, 1)),
    col(ones(1, 1), zeros(d, 1)),
)
pair(
    "sum of rows two cuts",
    ones(1, d + 1) * col(xx, eye(1)),
    ones(1, d + 1) * col(eye(1), xx),
    ones(1, d) * xx,
)
pair(
    "triangular inverse",
    Inverse(table([[A, S], [zeros(m, n), S22]])),
    table([[A.I, -A.I * S * S22.I], [zeros(m, n), S22.I]]),
    table([[A.I, A.I * S * S22.I], [zeros(m, n), S22.I]]),
    given=[(A * A.I, eye(n)), (S22 * S22.I, eye(m))],
)
pair(
    "triangular inverse as product",
    table([[A, S], [zeros(m, n), S22]]) * table([[A.I, -A.I * S * S22.I], [zeros(m, n), S22.I]]),
    eye(n + m),
    table([[eye(n), S], [zeros(m, n), eye(m)]]),
)
pair("identity nd", kron(eye(n), eye(d)), kron(eye(d), eye(n)), n * eye(n * d))
pair(
    "ones nd",
    kron(ones(n, 1), ones(d, 1)),
    kron(ones(d, 1), ones(n, 1)),
    kron(ones(n, 1), OneHot(0, d)),
)
pair(
    "trace of kron both orders",
    Trace(kron(A, W) * kron(W, A)),
    Trace(kron(W, A) * kron(A, W)),
    Trace(kron(A * A, W * W)),
)
pair("traces swap", Trace(kron(A, W)), Trace(kron(W, A)), Trace(A) + Trace(W))
pair(
    "ones row kron",
    ones(1, n * d) * kron(A, W) * ones(n * d, 1),
    ones(1, d * n) * kron(W, A) * ones(d * n, 1),
    kron(ones(1, n) * A * ones(n, 1), ones(1, d) * ones(d, 1)),
)
pair(
    "concat by stack",
    ConcatHeads(z[h], (h, H)) * StackHeads(WO[h], (h, H)),
    HeadSum(z[h] * WO[h], (h, H)),
    HeadSum(z[h], (h, H)) * HeadSum(WO[h], (h, H)),
)
pair("kron I2", kron(eye(2), A), BlockDiagMatrix(A, A), table([[A, A], [A, A]]))
pair(
    "order of key blocks",
    RowSoftmax(qq * col(K1, K2).T) * col(V1, V2),
    RowSoftmax(qq * col(K2, K1).T) * col(V2, V1),
    RowSoftmax(qq * col(K1, K2).T) * col(V1, -V2),
)
pair(
    "last row sees all",
    selection((n, 1), 1) * RowSoftmax(table([[St, sc_], [sl, slast]]), CausalMask(n + 1)),
    RowSoftmax(row(sl, slast)),
    row(RowSoftmax(sl), zeros(1, 1)),
)
pair("rmsnorm of stacked rows", RMSNorm(col(X, Y)), col(RMSNorm(X), RMSNorm(Y)), col(RMSNorm(X), Y))
pair(
    "layernorm of stacked rows",
    LayerNorm(col(X, Y), eps),
    col(LayerNorm(X, eps), LayerNorm(Y, eps)),
    col(LayerNorm(X, eps), LayerNorm(Y)),
)
pair(
    "relu of blocks", f("relu", row(X, Xk)), row(f("relu", X), f("relu", Xk)), row(f("relu", X), Xk)
)
pair(
    "gelu of blocks through output",
    f("gelu", X * row(W, W2)) * col(V, W2.T),
    f("gelu", X * W) * V + f("gelu", X * W2) * W2.T,
    f("gelu", X * W * V + X * W2 * W2.T),
)
pair(
    "rmsnorm of doubled features",
    RMSNorm(row(X, X)),
    row(RMSNorm(X), RMSNorm(X)),
    2 * row(RMSNorm(X), RMSNorm(X)),
)
false("rmsnorm of concatenated features", RMSNorm(row(X, Xk)), row(RMSNorm(X), RMSNorm(Xk)))
pair(
    "diag of stacked",
    DiagMatrix(col(xd, yk)),
    BlockDiagMatrix(DiagMatrix(xd), DiagMatrix(yk)),
    table([[DiagMatrix(xd), xd * yk.T], [zeros(k, d), DiagMatrix(yk)]]),
)
pair(
    "trace of blocks",
    Trace(SB),
    Trace(S11) + Trace(S22),
    Trace(S11) + Trace(S22) + Trace(S12 * S21),
)
pair(
    "nilpotent block",
    (eye(n + m) + table([[zeros(n, n), S], [zeros(m, n), zeros(m, m)]])) ** 3,
    table([[eye(n), 3 * S], [zeros(m, n), eye(m)]]),
    table([[eye(n), S], [zeros(m, n), eye(m)]]),
)
pair(
    "unipotent inverse",
    Inverse(table([[eye(n), S], [zeros(m, n), eye(m)]])),
    table([[eye(n), -S], [zeros(m, n), eye(m)]]),
    table([[eye(n), S], [zeros(m, n), eye(m)]]),
)
pair("slices make the whole", s0.T * s0 * Z1 + s1.T * s1 * Z1, Z1, 2 * Z1)
pair("onehot first", OneHot(0, n + 1), col(eye(1), zeros(n, 1)), col(zeros(n, 1), eye(1)))
pair("onehot last", OneHotLast(n + 1), col(zeros(n, 1), eye(1)), col(eye(1), zeros(n, 1)))
pair(
    "shift cut two ways",
    Shift(n + 1),
    table([[zeros(1, n), zeros(1, 1)], [eye(n), zeros(n, 1)]]),
    table([[zeros(1, 1), zeros(1, n)], [zeros(n, 1), eye(n)]]),
)
pair(
    "positions cut",
    Positions(n + m),
    col(Positions(n), n * ones(m, 1) + Positions(m)),
    col(Positions(n), Positions(m)),
)
pair(
    "prefix sums",
    CausalMask(n + m) * col(X, Y),
    col(CausalMask(n) * X, ones(m, n) * X + CausalMask(m) * Y),
    col(CausalMask(n) * X, CausalMask(m) * Y),
)
pair(
    "logsumexp of two blocks",
    LogSumExp(row(S, T)),
    f("log", f("exp", LogSumExp(S)) + f("exp", LogSumExp(T))),
    LogSumExp(S) + LogSumExp(T),
)
pair(
    "cross-entropy of a batch",
    CrossEntropy(col(X, Y), col(TT, T2)),
    col(CrossEntropy(X, TT), CrossEntropy(Y, T2)),
    col(CrossEntropy(X, TT), -CrossEntropy(Y, T2)),
)
pair(
    "softmax off by one",
    RowSoftmax(row(zeros(n, 1), S)) * col(zeros(1, d), V1),
    Quotient(f("exp", S) * V1, (ones(n, 1) + f("exp", S) * ones(m, 1)) * ones(1, d)),
    RowSoftmax(S) * V1,
)
pair(
    "prefix LM mask",
    RowSoftmax(SB, table([[ones(n, n), zeros(n, m)], [ones(m, n), CausalMask(m)]])) * s0.T,
    col(RowSoftmax(S11), s1 * RowSoftmax(SB, CausalMask(n + m)) * s0.T),
    col(RowSoftmax(S11, CausalMask(n)), s1 * RowSoftmax(SB, CausalMask(n + m)) * s0.T),
)
pair(
    "two-layer prefix",
    s0 * CausalMask(n + m) * CausalMask(n + m) * XX,
    CausalMask(n) * CausalMask(n) * X1,
    CausalMask(n) * X1,
)
pair(
    "masked pattern in blocks",
    masked,
    table([[had(CausalMask(n), S11), zeros(n, m)], [S21, had(CausalMask(m), S22)]]),
    table([[had(CausalMask(n), S11), S12], [zeros(m, n), had(CausalMask(m), S22)]]),
)
pair("cyc moves", P * col(xd, eye(1)), col(eye(1), xd), col(xd, eye(1)))
pair("cyc orth", P * P.T, eye(d + 1), P)
pair(
    "cyc conj",
    P * BlockDiagMatrix(W, eye(1)) * P.T,
    BlockDiagMatrix(eye(1), W),
    BlockDiagMatrix(W, eye(1)),
)
pair("cyc trace", Trace(P * BlockDiagMatrix(W, eye(1)) * P.T), Trace(W) + 1, Trace(W))
pair(
    "swap blocks",
    table([[zeros(m, n), eye(m)], [eye(n), zeros(n, m)]])
    * SB
    * table([[zeros(m, n), eye(m)], [eye(n), zeros(n, m)]]).T,
    table([[S22, S21], [S12, S11]]),
    table([[S22, S21], [zeros(n, m), S11]]),
)
pair(
    "softmax swap",
    RowSoftmax(row(S, T) * table([[zeros(m, k), eye(m)], [eye(k), zeros(k, m)]])),
    row(
        RowSoftmax(row(S, T)) * selection((m, k), 1).T,
        RowSoftmax(row(S, T)) * selection((m, k), 0).T,
    ),
    row(RowSoftmax(T), RowSoftmax(S)),
)
pair(
    "rmsnorm swap",
    RMSNorm(row(X, Xk)) * col(W, W2.T),
    RMSNorm(row(Xk, X)) * col(W2.T, W),
    RMSNorm(row(Xk, X)) * col(W2.T, -W),
)
pair(
    "layernorm swap",
    LayerNorm(row(X, Xk)) * col(W, W2.T),
    LayerNorm(row(Xk, X)) * col(W2.T, W),
    LayerNorm(row(Xk, X)) * col(W2.T, 2 * W),
)
pair(
    "cross-entropy swap",
    CrossEntropy(row(X, Xk), row(TT, MatrixSymbol("Q", n, k))),
    CrossEntropy(row(Xk, X), row(MatrixSymbol("Q", n, k), TT)),
    CrossEntropy(row(Xk, X), row(MatrixSymbol("Q", n, k), 2 * TT)),
)
pair("lse swap", LogSumExp(row(X, Xk)), LogSumExp(row(Xk, X)), LogSumExp(X) + LogSumExp(Xk))
pair(
    "head d+1: bias inside",
    row(ones(n, 1), X) * col(bias.T, W2),
    row(X, ones(n, 1)) * col(W2, bias.T),
    X * W2,
)
pair(
    "qk with bias both cuts",
    (row(X, ones(n, 1)) * col(W2, bias.T)) * (row(ones(n, 1), X) * col(bias.T, W2)).T,
    (X * W2 + ones(n, 1) * bias.T) * (X * W2 + ones(n, 1) * bias.T).T,
    X * W2 * W2.T * X.T,
)
pair(
    "gram with bias coordinate",
    row(X, ones(n, 1)) * row(X, ones(n, 1)).T,
    row(ones(n, 1), X) * row(ones(n, 1), X).T,
    X * X.T,
)
pair(
    "frob of augmented",
    Trace(row(X, ones(n, 1)).T * row(X, ones(n, 1))),
    Trace(row(ones(n, 1), X).T * row(ones(n, 1), X)),
    Trace(X.T * X),
)
pair(
    "symbol cut both ways",
    W2.T * selection((1, d), 1) * Wd1,
    row(zeros(k, 1), W2.T) * Wd1,
    row(W2.T, zeros(k, 1)) * Wd1,
)
pair(
    "first d and last d",
    selection((1, d), 1) * Wd1,
    selection((d, 1), 0) * Shift(d + 1).T * Wd1,
    selection((d, 1), 0) * Wd1,
)
pair(
    "first and last of d+1",
    ones(1, d + 1) * Wd1,
    OneHot(0, d + 1).T * Wd1 + ones(1, d) * selection((1, d), 1) * Wd1,
    ones(1, d) * selection((1, d), 1) * Wd1,
)
pair(
    "sum cut both ways",
    OneHot(0, d + 1).T * Wd1 + ones(1, d) * selection((1, d), 1) * Wd1,
    OneHotLast(d + 1).T * Wd1 + ones(1, d) * selection((d, 1), 0) * Wd1,
    ones(1, d) * selection((d, 1), 0) * Wd1,
)
pair(
    "gram cut both ways",
    Wd1.T * selection((d, 1), 0).T * selection((d, 1), 0) * Wd1
    + Wd1.T * selection((d, 1), 1).T * selection((d, 1), 1) * Wd1,
    Wd1.T * selection((1, d), 0).T * selection((1, d), 0) * Wd1
    + Wd1.T * selection((1, d), 1).T * selection((1, d), 1) * Wd1,
    Wd1.T * selection((1, d), 1).T * selection((1, d), 1) * Wd1,
)
pair(
    "identity cut both ways",
    Wd1.T * Wd1,
    Wd1.T * BlockDiagMatrix(eye(1), eye(d)) * BlockDiagMatrix(eye(d), eye(1)) * Wd1,
    Wd1.T * BlockDiagMatrix(eye(1), zeros(d, d)) * Wd1,
)
pair(
    "nd both: ones",
    ones(1, n * d) * nd,
    kron(ones(1, n), ones(1, d)) * nd,
    kron(ones(1, n), OneHot(0, d).T) * nd,
)
pair(
    "nd both: ones, sum",
    kron(ones(1, n), ones(1, d)) * nd + kron(ones(1, d), ones(1, n)) * nd,
    2 * ones(1, n * d) * nd,
    ones(1, n * d) * nd,
)
true(
    "nd kron both",
    Trace(kron(A, W)) * kron(eye(n), eye(d)),
    Trace(kron(W, A)) * kron(eye(d), eye(n)),
)
true("nd gram", Trace((kron(A, W)) ** 2), Trace(kron(W * W, A * A)))
true("nd vec", vec_rows(X).T * kron(A, W) * vec_rows(X), vec_cols(X).T * kron(W, A) * vec_cols(X))
false(
    "nd vec'", vec_rows(X).T * kron(A, W) * vec_rows(X), vec_cols(X).T * kron(W.T, A) * vec_cols(X)
)
false("kron order", kron(A, W), kron(W, A))
true("kron both frob", Trace(kron(A, W) * kron(A, W).T), Trace(A * A.T) * Trace(W * W.T))
true("kron inverse both", Trace(kron(A, W) * kron(W, A).T), Trace(kron(W, A) * kron(A, W).T))
false("kron inverse both'", Trace(kron(A, W) * kron(W, A).T), Trace(kron(A, W) * kron(A, W).T))
true(
    "kron sum eigen",
    (kron(A, eye(d)) + kron(eye(n), W)) * kron(xn, xd),
    kron(A * xn, xd) + kron(xn, W * xd),
)
true(
    "mask nd",
    CausalMask(n * d),
    kron(CausalMask(n) - eye(n), ones(d, d)) + kron(eye(n), CausalMask(d)),
)
true(
    "mask dn both",
    had(CausalMask(n * d), CausalMask(n * d)),
    kron(CausalMask(d) - eye(d), ones(n, n)) + kron(eye(d), CausalMask(n)),
)
false("mask dn both'", CausalMask(n * d), kron(CausalMask(n), CausalMask(d)))
true(
    "mask block times",
    CausalMask(n + m) * CausalMask(n + m),
    table(
        [
            [CausalMask(n) * CausalMask(n), zeros(n, m)],
            [
                ones(m, n) * CausalMask(n) + CausalMask(m) * ones(m, n),
                CausalMask(m) * CausalMask(m),
            ],
        ]
    ),
)
true(
    "mask n|m and m|n",
    s0 * CausalMask(n + m) * ones(n + m, 1),
    selection((n, m), 0)
    * table([[CausalMask(m), zeros(m, n)], [ones(n, m), CausalMask(n)]])
    * ones(n + m, 1),
)
true(
    "softmax first of n+1",
    OneHot(0, n + 1).T * RowSoftmax(MatrixSymbol("SS", n + 1, n + 1), CausalMask(n + 1)),
    row(eye(1), zeros(1, n)),
)
true(
    "softmax last of n+1",
    OneHotLast(n + 1).T * RowSoftmax(MatrixSymbol("SS", n + 1, n + 1), CausalMask(n + 1)),
    RowSoftmax(OneHotLast(n + 1).T * MatrixSymbol("SS", n + 1, n + 1)),
)
true(
    "softmax last", OneHotLast(n).T * RowSoftmax(A, CausalMask(n)), RowSoftmax(OneHotLast(n).T * A)
)
true(
    "causal first row mixes", OneHot(0, n).T * RowSoftmax(A, CausalMask(n)) * X, OneHot(0, n).T * X
)
true(
    "two layers prefix",
    s0
    * RowSoftmax(XX * W * XX.T, CausalMask(n + m))
    * RowSoftmax(XX * V * XX.T, CausalMask(n + m))
    * XX,
    RowSoftmax(X1 * W * X1.T, CausalMask(n)) * RowSoftmax(X1 * V * X1.T, CausalMask(n)) * X1,
)


def att(stream: Any, size: Any) -> Any:
    return stream + RowSoftmax(stream * W * stream.T, CausalMask(size)) * stream * V


true("prefix of two residual layers", s0 * att(att(XX, n + m), n + m), att(att(X1, n), n))
false("prefix of two residual layers'", s0 * (XX + RowSoftmax(XX * W * XX.T) * XX * V), att(X1, n))


def mlp(stream: Any) -> Any:
    return stream + f("gelu", LayerNorm(stream) * W) * V


true("prefix with mlp", s0 * mlp(att(XX, n + m)), mlp(att(X1, n)))
