"""Further claims on all three, written after the first were decided."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import BlockDiagMatrix, HadamardPower, Inverse, MatrixSymbol, Rational, Trace
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.defined import CrossEntropy, LogSoftmax, LogSumExp, Quotient, Rotation
from otimes.algebra.language.derivative import differential, gradient
from otimes.algebra.language.expectation import expectation
from otimes.algebra.language.linear import ConcatHeads, Family, HeadSum, OneHot, StackHeads
from otimes.algebra.language.named_matrices import permutation
from otimes.algebra.language.nonlinear import CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.positions import OneHotLast
from tests.algebra.decide.points.symbols import (
    E_,
    F_,
    M2,
    PE,
    S11,
    S12,
    S21,
    S22,
    V1,
    V2,
    W2,
    WO,
    A,
    Bd,
    Bm,
    Claims,
    G,
    H,
    Pm,
    Rr,
    S,
    T,
    Tt,
    V,
    W,
    Wd,
    X,
    Y,
    a,
    b,
    c,
    col,
    d,
    eye,
    gg,
    h,
    i,
    k,
    m,
    mu,
    n,
    ones,
    pv,
    qv,
    row,
    rs1,
    s0,
    s1,
    table,
    tau,
    th,
    v_,
    xd,
    xn,
    xv,
    ym,
    z,
    zeros,
)
from tests.algebra.decide.shorthand import f, had


def expected(e: Any) -> Any:
    return expectation(e, xd, mu, M2)


CLAIMS = Claims()
pair, true, false = CLAIMS.pair, CLAIMS.holds, CLAIMS.fails

U, Z = (MatrixSymbol("U", n, d), MatrixSymbol("Zq", n, d))
Wq, Wk, Wv, Wo = (MatrixSymbol(x, d, k) for x in ("Wq", "Wk", "Wv", "Wo"))
Wo = MatrixSymbol("Wo", k, d)
mixed = table([[S11, S12], [S21, S22]])
Fh, Gh = (Family("F", (H,), d, k), Family("G", (H,), k, d))
pair(
    "encoder-decoder mask",
    RowSoftmax(row(S, MatrixSymbol("R", n, n)), row(ones(n, m), CausalMask(n))) * col(V1, X),
    Quotient(
        f("exp", S) * V1 + had(f("exp", MatrixSymbol("R", n, n)), CausalMask(n)) * X,
        (
            f("exp", S) * ones(m, 1)
            + had(f("exp", MatrixSymbol("R", n, n)), CausalMask(n)) * ones(n, 1)
        )
        * ones(1, d),
    ),
    RowSoftmax(S) * V1 + RowSoftmax(MatrixSymbol("R", n, n), CausalMask(n)) * X,
)
pair(
    "two heads as blocks",
    row(A * X * Wv, Bm * X * Wv) * col(Wo, Wo),
    (A + Bm) * X * Wv * Wo,
    A * Bm * X * Wv * Wo,
)
pair(
    "swiglu halves",
    had(
        f("silu", X * row(W, V) * col(eye(d), zeros(d, d))),
        X * row(W, V) * col(zeros(d, d), eye(d)),
    ),
    had(f("silu", X * W), X * V),
    had(f("silu", X * V), X * W),
)
pair(
    "suffix sees prefix",
    s1 * RowSoftmax(mixed, CausalMask(n + m)),
    RowSoftmax(row(S21, S22), row(ones(m, n), CausalMask(m))),
    row(RowSoftmax(S21), RowSoftmax(S22, CausalMask(m))),
)
pair(
    "schur inverse corner",
    s0 * Inverse(table([[A, S], [zeros(m, n), S22]])) * s1.T,
    -A.I * S * S22.I,
    A.I * S * S22.I,
)
pair(
    "augmented least squares",
    Trace(row(X, ones(n, 1)).T * row(X, ones(n, 1))),
    Trace(X.T * X) + n,
    Trace(X.T * X) + 1,
)
pair(
    "lora as blocks",
    X * (W + Wq * Wo),
    X * row(W, Wq) * col(eye(d), Wo),
    X * row(W, Wq) * col(eye(d), -Wo),
)
pair(
    "diagonal blocks power",
    BlockDiagMatrix(A, S22) ** 3,
    BlockDiagMatrix(A**3, S22**3),
    BlockDiagMatrix(A**3, S22),
)
pair(
    "mask difference",
    CausalMask(n + m) - BlockDiagMatrix(CausalMask(n), CausalMask(m)),
    table([[zeros(n, n), zeros(n, m)], [ones(m, n), zeros(m, m)]]),
    table([[zeros(n, n), ones(n, m)], [zeros(m, n), zeros(m, m)]]),
)
pair(
    "masked keys in front",
    RowSoftmax(row(T, S), row(zeros(n, k), ones(n, m))) * col(V2, V1),
    RowSoftmax(S) * V1,
    RowSoftmax(row(T, S)) * col(V2, V1),
)
pair(
    "stacked layernorm and mlp",
    f("relu", LayerNorm(col(X, Y)) * W2) * W2.T,
    col(f("relu", LayerNorm(X) * W2) * W2.T, f("relu", LayerNorm(Y) * W2) * W2.T),
    col(f("relu", LayerNorm(X) * W2), f("relu", LayerNorm(Y) * W2)) * W2.T + col(X, Y),
)
pair(
    "whitened",
    W.T * X.T * X * W * V,
    V,
    W * V,
    given=[(X.T * X, MatrixSymbol("Cv", d, d)), (W.T * MatrixSymbol("Cv", d, d) * W, eye(d))],
)
pair(
    "gauge of qk",
    X * Wq * MatrixSymbol("Gq", k, k) * (X * Wk * MatrixSymbol("Gk2", k, k)).T,
    X * Wq * Wk.T * X.T,
    X * Wk * Wq.T * X.T,
    given=[(MatrixSymbol("Gq", k, k) * MatrixSymbol("Gk2", k, k).T, eye(k))],
)
true("null space of a head", X * Wv * Wo, zeros(n, d), (Wv * Wo, zeros(d, d)))
pair("composition vanishes", W * V, zeros(d, d), V * W, given=[(V.T * W.T, zeros(d, d))])
true("double gram", G * Bd, zeros(n, k), (Bd.T * G.T * G * Bd, zeros(k, k)))
false("double gram'", G.T * G, zeros(d, d), (Bd.T * G.T * G * Bd, zeros(k, k)))
true(
    "three squares",
    X,
    zeros(n, d),
    (Trace(X.T * X) + Trace(U.T * U) + 2 * Trace(Z.T * Z), sympy.S.Zero),
)
false(
    "three squares'",
    X,
    zeros(n, d),
    (Trace(X.T * X) + Trace(U.T * U) - 2 * Trace(Z.T * Z), sympy.S.Zero),
)
pair("scaled congruence", f("relu", 2 * X), 2 * f("relu", U), f("relu", U), given=[(X, U)])
true("positive difference", A, Bm, ((c - a) * A, (c - a) * Bm), c > a)
false("positive difference'", A, Bm, ((c - a) * A, (c - a) * Bm), c >= a)
pair("commuting inverse both", A.I * Bm.I, Bm.I * A.I, A * Bm, given=[(A * Bm, Bm * A)])
pair("projection onto a feature", (eye(d) - W) * (xd + W * v_), xd - W * xd, xd, given=[(W * W, W)])
pair(
    "rank-one edit",
    (eye(d) - xd * v_.T) ** 2,
    eye(d) - xd * v_.T,
    eye(d),
    given=[(v_.T * xd, eye(1))],
)
pair(
    "sherman-morrison",
    Inverse(eye(d) + xd * v_.T) * xd * ones(1, 1),
    Quotient(xd, ones(d, 1) * (eye(1) + v_.T * xd)),
    xd,
)
true("gelu and erf free", f("gelu", X) + f("gelu", -X), 2 * f("gelu", X) - X)
false("gelu and erf free'", f("gelu", X) + f("gelu", -X), 2 * f("gelu", X) + X)
pair("relu of absolute", f("relu", X) + f("relu", -X), 2 * f("relu", X) - X, 2 * f("relu", X) + X)
pair("max by relu", X + f("relu", U - X), U + f("relu", X - U), f("relu", U - X))
true("abs as root", HadamardPower(had(X, X), Rational(1, 2)), f("relu", X) + f("relu", -X))
false("abs as root'", HadamardPower(had(X, X), Rational(1, 2)), f("relu", X) - f("relu", -X))
pair(
    "tanh of half", f("tanh", X / 2), 2 * f("sigmoid", X) - ones(n, d), f("sigmoid", X) - ones(n, d)
)
pair("silu sum", f("silu", X) + f("silu", -X), had(X, f("tanh", X / 2)), had(X, f("tanh", X)))
pair(
    "orthonormal heads",
    Trace(HeadSum(Fh[h] * Gh[h], (h, H))),
    H * k,
    k,
    given=[(Gh[i] * Fh[i], eye(k))],
)
true(
    "every head kills W",
    W * HeadSum(Fh[h] * Gh[h], (h, H)) * V,
    zeros(d, d),
    (W * Fh[i], zeros(d, k)),
)
false(
    "some head kills W",
    W * HeadSum(Fh[h] * Gh[h], (h, H)) * V,
    zeros(d, d),
    (W * Fh[0], zeros(d, k)),
)
pair("kl of equal", had(PE, f("log", PE) - f("log", PE)) * ones(m, 1), zeros(n, 1), ones(n, 1))
pair(
    "log odds",
    LogSoftmax(E_) * (OneHot(0, m) - OneHotLast(m)),
    E_ * (OneHot(0, m) - OneHotLast(m)),
    RowSoftmax(E_) * (OneHot(0, m) - OneHotLast(m)),
)
pair(
    "odds",
    Quotient(PE * OneHot(0, m), PE * OneHotLast(m)),
    f("exp", E_ * (OneHot(0, m) - OneHotLast(m))),
    f("exp", E_ * (OneHotLast(m) - OneHot(0, m))),
)
pair(
    "temperature logsumexp",
    tau * LogSumExp((E_ + xn * ones(1, m)) / tau),
    tau * LogSumExp(E_ / tau) + xn,
    LogSumExp(E_ / tau) + xn,
)
pair("softmax of log probabilities", RowSoftmax(LogSoftmax(E_)), RowSoftmax(E_), E_)
pair(
    "softmax product of experts",
    RowSoftmax(E_ + F_),
    Quotient(had(PE, RowSoftmax(F_)), had(PE, RowSoftmax(F_)) * ones(m, m)),
    had(PE, RowSoftmax(F_)),
)
pair("logsoftmax of a sum of logs", LogSoftmax(LogSoftmax(E_)), LogSoftmax(E_), E_)
pair("softmax jacobian twice", (DiagMatrix(pv) - pv * pv.T) * ones(m, 1), zeros(m, 1), pv)
pair(
    "sigmoid differential",
    differential(f("sigmoid", E_), E_, F_),
    had(F_, f("sigmoid", E_), f("sigmoid", -E_)),
    had(F_, f("sigmoid", E_)),
)
pair(
    "softplus derivative",
    differential(f("log", ones(n, m) + f("exp", E_)), E_, F_),
    had(F_, f("sigmoid", E_)),
    had(F_, f("sigmoid", -E_)),
)
pair(
    "swiglu derivative in the gate's values",
    differential(had(f("silu", X * W), X * V), V, Wd * Rr),
    had(f("silu", X * W), X * Wd * Rr),
    had(f("sigmoid", X * W), X * Wd * Rr),
)
pair(
    "attention scores gradient",
    differential(X * W * X.T, X, U),
    U * W * X.T + X * W * U.T,
    2 * X * W * U.T,
)
pair("rmsnorm gradient scale", differential(RMSNorm(xd.T), xd, xd), zeros(1, d), RMSNorm(xd.T))
pair(
    "gradient of a log-likelihood",
    gradient(Trace(LogSoftmax(xv.T) * OneHot(0, m)), xv),
    OneHot(0, m) - pv,
    pv - OneHot(0, m),
)
pair(
    "gradient through the unembedding",
    gradient(CrossEntropy(xd.T * Wd, OneHot(0, k).T), xd),
    Wd * (RowSoftmax(xd.T * Wd).T - OneHot(0, k)),
    Wd * (OneHot(0, k) - RowSoftmax(xd.T * Wd).T),
)
pair(
    "rope keeps norms",
    (Rotation(th) * qv).T * Rotation(th) * qv,
    qv.T * qv,
    qv.T * Rotation(th) * qv,
)
pair("rope thrice", Rotation(3 * th), Rotation(th) ** 3, Rotation(th) ** 2)
pair(
    "rotation of a plane",
    Rotation(a) * col(f("cos", b * eye(1)), f("sin", b * eye(1))),
    col(f("cos", (a + b) * eye(1)), f("sin", (a + b) * eye(1))),
    col(f("sin", (a + b) * eye(1)), f("cos", (a + b) * eye(1))),
)
pair(
    "centred second moment",
    expected((eye(d) - ones(d, d) / d) * xd * ((eye(d) - ones(d, d) / d) * xd).T),
    (eye(d) - ones(d, d) / d) * M2 * (eye(d) - ones(d, d) / d),
    M2 - ones(d, d) / d,
)
pair("expected logits", expected(xd.T * Wd), mu.T * Wd, 2 * mu.T * Wd)
pair(
    "variance of a projection",
    expected(v_.T * (xd - mu) * (xd - mu).T * v_),
    v_.T * M2 * v_ - (v_.T * mu) ** 2,
    v_.T * M2 * v_,
)
pair(
    "unigram loss",
    CrossEntropy(ones(n, 1) * f("log", ym).T, Tt),
    LogSumExp(ones(n, 1) * f("log", ym).T) - Tt * f("log", ym),
    -Tt * f("log", ym),
    given=rs1,
)
pair(
    "normalised logs",
    CrossEntropy(f("log", E_), Tt),
    -had(Tt, f("log", E_)) * ones(m, 1),
    had(Tt, f("log", E_)) * ones(m, 1),
    given=[(E_ * ones(m, 1), ones(n, 1))],
)
pair(
    "layernorm gain bias fold",
    (LayerNorm(X) * DiagMatrix(gg) + ones(n, 1) * mu.T) * W2,
    LayerNorm(X) * (DiagMatrix(gg) * W2) + ones(n, 1) * (mu.T * W2),
    LayerNorm(X) * W2 + ones(n, 1) * mu.T * W2,
)
pair(
    "layernorm centred weights",
    LayerNorm(X) * W2,
    LayerNorm(X) * (W2 - ones(d, d) * W2 / d),
    LayerNorm(X) * (W2 - ones(d, d) * W2 / d) * 2,
)
pair(
    "rmsnorm of a scaled row",
    RMSNorm(DiagMatrix(f("exp", xn)) * X),
    RMSNorm(X),
    DiagMatrix(f("exp", xn)) * RMSNorm(X),
)
pair(
    "harmonic",
    Quotient(ones(n, m), Quotient(ones(n, m), E_) + Quotient(ones(n, m), F_)),
    Quotient(had(E_, F_), E_ + F_),
    Quotient(E_ + F_, had(E_, F_)),
)
pair(
    "geometric mean",
    f("exp", (f("log", E_) + f("log", F_)) / 2),
    f("sqrt", had(E_, F_)),
    (E_ + F_) / 2,
)
pair(
    "log base",
    f("log", HadamardPower(E_, 2)) - f("log", had(E_, F_)),
    f("log", E_) - f("log", F_),
    f("log", E_) + f("log", F_),
)
pair(
    "permutation of heads",
    ConcatHeads(z[h], (h, H)) * StackHeads(WO[h], (h, H)),
    HeadSum(z[h] * WO[h], (h, H)),
    H * z[0] * WO[0],
)
pair(
    "permuted one-hot", Pm.T * Pm * OneHot(0, m), OneHot(0, m), OneHotLast(m), given=permutation(Pm)
)
pair(
    "permuted embedding",
    RowSoftmax(X * Bd * MatrixSymbol("Pk", k, k)) * MatrixSymbol("Pk", k, k).T,
    RowSoftmax(X * Bd),
    RowSoftmax(X * Bd) * MatrixSymbol("Pk", k, k),
    given=permutation(MatrixSymbol("Pk", k, k)),
)
