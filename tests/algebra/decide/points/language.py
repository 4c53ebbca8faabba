"""Functions: division, logarithms, derivatives, permutations, rotations, moments, norms."""

from __future__ import annotations

from typing import Any

from sympy import HadamardPower, Inverse, MatrixSymbol, Ne, Rational, Trace
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.language.defined import CrossEntropy, LogSoftmax, LogSumExp, Quotient, Rotation
from otimes.algebra.language.derivative import differential, gradient, jacobian
from otimes.algebra.language.expectation import expectation
from otimes.algebra.language.linear import OneHot, kron
from otimes.algebra.language.named_matrices import permutation, selection
from otimes.algebra.language.nonlinear import CausalMask, LayerNorm, RMSNorm, RowSoftmax
from tests.algebra.decide.points.symbols import (
    E_,
    F_,
    K_,
    M2,
    PE,
    S11,
    W2,
    A,
    Claims,
    Pd,
    Pm,
    Pn,
    Tt,
    Us,
    V,
    W,
    X,
    Xr,
    Xs,
    a,
    b,
    bb,
    c,
    col,
    d,
    eps,
    eye,
    gg,
    k,
    kl,
    kv,
    m,
    mu,
    n,
    ones,
    ph,
    pv,
    qv,
    row,
    rr,
    rs1,
    tau,
    th,
    tv,
    v_,
    w_,
    x1,
    xd,
    xn,
    xv,
    y1,
    ym,
    zeros,
)
from tests.algebra.decide.shorthand import f, had

CLAIMS = Claims()
pair, true, false = CLAIMS.pair, CLAIMS.holds, CLAIMS.fails

pair("quotient self", Quotient(E_, E_), ones(n, m), E_)
pair("quotient cancels", Quotient(had(E_, F_), F_), E_, F_)
pair(
    "quotient adds",
    Quotient(E_, F_) + Quotient(K_, F_),
    Quotient(E_ + K_, F_),
    Quotient(E_ + K_, 2 * F_),
)
false("quotient of sums", Quotient(E_, F_) + Quotient(E_, K_), Quotient(E_, F_ + K_))
pair(
    "quotient twice",
    Quotient(Quotient(E_, F_), K_),
    Quotient(E_, had(F_, K_)),
    Quotient(had(E_, K_), F_),
)
pair(
    "quotient of quotient",
    Quotient(E_, Quotient(F_, K_)),
    Quotient(had(E_, K_), F_),
    Quotient(E_, had(F_, K_)),
)
pair(
    "common denominator",
    Quotient(E_, F_) + Quotient(F_, E_),
    Quotient(had(E_, E_) + had(F_, F_), had(E_, F_)),
    Quotient(E_ + F_, had(E_, F_)),
)
pair("root squares", HadamardPower(HadamardPower(E_, Rational(1, 2)), 2), E_, HadamardPower(E_, 2))
false("root of square", HadamardPower(HadamardPower(E_, 2), Rational(1, 2)), E_)
pair(
    "root product",
    f("sqrt", had(f("exp", E_), f("exp", F_))),
    f("exp", (E_ + F_) / 2),
    f("exp", E_ + F_),
)
pair(
    "negative powers",
    HadamardPower(E_, -2),
    Quotient(ones(n, m), had(E_, E_)),
    Quotient(ones(n, m), E_),
)
pair("rsqrt by division", f("rsqrt", E_), Quotient(ones(n, m), f("sqrt", E_)), f("sqrt", E_))
pair("three halves", HadamardPower(E_, Rational(3, 2)), had(E_, f("sqrt", E_)), f("sqrt", E_))
pair(
    "log of quotient",
    f("log", Quotient(E_, F_)),
    f("log", E_) - f("log", F_),
    Quotient(f("log", E_), f("log", F_)),
)
pair(
    "log of power", f("log", HadamardPower(E_, 3)), 3 * f("log", E_), HadamardPower(f("log", E_), 3)
)
pair("log of exponentials", f("log", had(f("exp", E_), f("exp", F_))), E_ + F_, had(E_, F_))
pair(
    "exp difference",
    f("exp", E_ - F_),
    Quotient(f("exp", E_), f("exp", F_)),
    f("exp", E_) - f("exp", F_),
)
pair("exp double", f("exp", 2 * E_), had(f("exp", E_), f("exp", E_)), 2 * f("exp", E_))
pair("exp -log", f("exp", -f("log", E_)), Quotient(ones(n, m), E_), -E_)
pair(
    "logsoftmax is log of softmax",
    LogSoftmax(E_),
    f("log", RowSoftmax(E_)),
    RowSoftmax(f("log", E_)),
)
pair("exp logsoftmax", f("exp", LogSoftmax(E_)), RowSoftmax(E_), f("exp", E_))
pair(
    "logsoftmax by log",
    LogSoftmax(E_),
    E_ - f("log", f("exp", E_) * ones(m, m)),
    E_ - f("exp", E_) * ones(m, m),
)
pair(
    "logsoftmax shift",
    LogSoftmax(E_ + xn * ones(1, m)),
    LogSoftmax(E_),
    LogSoftmax(E_) + xn * ones(1, m),
)
false("softmax shift of columns", RowSoftmax(E_ + ones(n, 1) * ym.T), RowSoftmax(E_))
true("softmax shift of rows", RowSoftmax(E_ + xn * ones(1, m)), RowSoftmax(E_))
pair("logsumexp shift", LogSumExp(E_ + xn * ones(1, m)), LogSumExp(E_) + xn, LogSumExp(E_))
pair(
    "logsumexp constant",
    LogSumExp(E_ - c * ones(n, m)),
    LogSumExp(E_) - c * ones(n, 1),
    LogSumExp(E_) - m * c * ones(n, 1),
)
pair(
    "softmax by division",
    RowSoftmax(E_),
    Quotient(f("exp", E_), f("exp", E_) * ones(m, m)),
    Quotient(f("exp", E_), ones(n, n) * f("exp", E_)),
)
pair(
    "softmax as exp of difference",
    RowSoftmax(E_),
    f("exp", E_ - LogSumExp(E_) * ones(1, m)),
    f("exp", E_) - LogSumExp(E_) * ones(1, m),
)
pair(
    "cross-entropy by logsumexp",
    CrossEntropy(E_, Tt),
    LogSumExp(E_) - had(Tt, E_) * ones(m, 1),
    LogSumExp(E_) + had(Tt, E_) * ones(m, 1),
    given=rs1,
)
false(
    "cross-entropy by logsumexp no distribution",
    CrossEntropy(E_, Tt),
    LogSumExp(E_) - had(Tt, E_) * ones(m, 1),
)
pair(
    "cross-entropy gradient",
    gradient(CrossEntropy(xv.T, tv.T), xv),
    pv - tv,
    tv - pv,
    given=[(tv.T * ones(m, 1), eye(1))],
)
false("cross-entropy gradient no distribution", gradient(CrossEntropy(xv.T, tv.T), xv), pv - tv)
pair(
    "cross-entropy one-hot",
    CrossEntropy(xv.T, OneHot(0, m).T),
    LogSumExp(xv.T) - xv.T * OneHot(0, m),
    LogSumExp(xv.T) + xv.T * OneHot(0, m),
)
pair(
    "cross-entropy shift",
    CrossEntropy(E_ + xn * ones(1, m), Tt),
    CrossEntropy(E_, Tt),
    CrossEntropy(E_, Tt) + xn,
)
pair(
    "cross-entropy in targets",
    CrossEntropy(E_, Tt + F_),
    CrossEntropy(E_, Tt) + CrossEntropy(E_, F_),
    CrossEntropy(E_, had(Tt, F_)),
)
pair(
    "kl by cross-entropies",
    kl,
    CrossEntropy(F_, PE) - CrossEntropy(E_, PE),
    CrossEntropy(E_, PE) - CrossEntropy(F_, PE),
)
pair(
    "entropy of softmax",
    -had(PE, f("log", PE)) * ones(m, 1),
    LogSumExp(E_) - had(PE, E_) * ones(m, 1),
    LogSumExp(E_) + had(PE, E_) * ones(m, 1),
)
pair(
    "kl by logits",
    kl,
    had(PE, E_ - F_) * ones(m, 1) - LogSumExp(E_) + LogSumExp(F_),
    had(PE, E_ - F_) * ones(m, 1) + LogSumExp(E_) - LogSumExp(F_),
)
pair("jacobian linear", jacobian(w_ * xd, xd), w_, w_ * W)
pair("gradient quadratic", gradient(xd.T * W * xd, xd), (W + W.T) * xd, 2 * W * xd)
pair("gradient trace square", gradient(Trace(X.T * X), X), 2 * X, X)
pair(
    "gradient trace product",
    gradient(Trace(W * X.T * MatrixSymbol("N", n, d)), X),
    MatrixSymbol("N", n, d) * W,
    MatrixSymbol("N", n, d) * W.T,
)
pair("jacobian AXB", jacobian(A * X * W2, X), kron(A, W2.T), kron(A.T, W2.T))
pair(
    "jacobian of tanh",
    jacobian(f("tanh", xd), xd),
    eye(d) - DiagMatrix(f("tanh", xd)) ** 2,
    eye(d) - DiagMatrix(f("tanh", xd)),
)
pair(
    "jacobian of sigmoid",
    jacobian(f("sigmoid", w_ * xd), xd),
    DiagMatrix(had(f("sigmoid", w_ * xd), f("sigmoid", -w_ * xd))) * w_,
    DiagMatrix(f("sigmoid", w_ * xd)) * w_,
)
pair(
    "jacobian of silu",
    jacobian(f("silu", xd), xd),
    DiagMatrix(f("sigmoid", xd) + had(f("silu", xd), ones(d, 1) - f("sigmoid", xd))),
    DiagMatrix(f("sigmoid", xd) + had(f("silu", xd), f("sigmoid", xd))),
)
pair(
    "jacobian of rmsnorm",
    jacobian(RMSNorm(xd.T).T, xd),
    kron(rr, eye(d)) - xd * HadamardPower(rr, 3) * xd.T / d,
    kron(rr, eye(d)) + xd * HadamardPower(rr, 3) * xd.T / d,
)
pair("rmsnorm jacobian kills x", jacobian(RMSNorm(xd.T).T, xd) * xd, zeros(d, 1), xd)
pair(
    "layernorm jacobian kills ones",
    jacobian(LayerNorm(xd.T).T, xd) * ones(d, 1),
    zeros(d, 1),
    ones(d, 1),
)
pair("gradient of logsumexp", gradient(LogSumExp(xv.T), xv), pv, xv)
pair(
    "jacobian of softmax", jacobian(pv, xv), DiagMatrix(pv) - pv * pv.T, DiagMatrix(pv) + pv * pv.T
)
pair("softmax jacobian kills ones", jacobian(pv, xv) * ones(m, 1), zeros(m, 1), pv)
pair(
    "jacobian of logsoftmax",
    jacobian(LogSoftmax(xv.T).T, xv),
    eye(m) - ones(m, 1) * pv.T,
    eye(m) - pv * ones(1, m),
)
pair("differential of inverse", differential(Xs.I, Xs, Us), -Xs.I * Us * Xs.I, -Xs.I * Us)
pair("differential of log", differential(f("log", E_), E_, F_), Quotient(F_, E_), Quotient(E_, F_))
pair(
    "differential of root",
    differential(f("sqrt", E_), E_, F_),
    Quotient(F_, 2 * f("sqrt", E_)),
    Quotient(F_, f("sqrt", E_)),
)
pair(
    "differential of a head in its values",
    differential(RowSoftmax(S11) * X * W, X, Xr),
    RowSoftmax(S11) * Xr * W,
    RowSoftmax(Xr * X.T) * X * W,
)
pair(
    "differential of a quotient",
    differential(Quotient(F_, E_), E_, K_),
    -Quotient(had(F_, K_), had(E_, E_)),
    Quotient(had(F_, K_), had(E_, E_)),
)
pair(
    "differential of cubes",
    differential(Trace(Xs**3), Xs, Us),
    3 * Trace(Xs * Xs * Us),
    Trace(Xs * Xs * Us),
)
pair(
    "softmax of permuted keys",
    RowSoftmax(E_ * Pm),
    RowSoftmax(E_) * Pm,
    RowSoftmax(E_) * Pm.T,
    given=permutation(Pm),
)
pair(
    "layernorm of permuted features",
    LayerNorm(X * Pd),
    LayerNorm(X) * Pd,
    LayerNorm(X),
    given=permutation(Pd),
)
pair(
    "permuted neurons",
    f("gelu", X * W * Pd) * Pd.T * V,
    f("gelu", X * W) * V,
    f("gelu", X * W) * Pd * V,
    given=permutation(Pd),
)
pair(
    "attention is equivariant",
    RowSoftmax(Pn * X * W * X.T * Pn.T) * Pn * X,
    Pn * RowSoftmax(X * W * X.T) * X,
    RowSoftmax(X * W * X.T) * X,
    given=permutation(Pn),
)
false(
    "causal attention is not",
    RowSoftmax(Pn * X * W * X.T * Pn.T, CausalMask(n)) * Pn * X,
    Pn * RowSoftmax(X * W * X.T, CausalMask(n)) * X,
    *permutation(Pn),
)
pair(
    "logsoftmax of permuted keys",
    LogSoftmax(E_ * Pm),
    LogSoftmax(E_) * Pm,
    LogSoftmax(E_),
    given=permutation(Pm),
)
pair(
    "cross-entropy of permuted vocabulary",
    CrossEntropy(E_ * Pm, Tt * Pm),
    CrossEntropy(E_, Tt),
    CrossEntropy(E_ * Pm, Tt),
    given=permutation(Pm),
)
pair("permutation cubed is orthogonal", (Pn**3) * (Pn**3).T, eye(n), Pn, given=permutation(Pn))
pair("rotations add", Rotation(th) * Rotation(ph), Rotation(th + ph), Rotation(had(th, ph)))
pair("rotation transposed", Rotation(th).T * Rotation(ph), Rotation(ph - th), Rotation(th - ph))
pair("rotation inverse", Inverse(Rotation(th)), Rotation(-th), Rotation(th))
pair("rotation orthogonal", Rotation(th) * Rotation(th).T, eye(2 * m), Rotation(th))
pair(
    "rope relative",
    (Rotation(a * th) * qv).T * (Rotation(b * th) * kv),
    qv.T * Rotation((b - a) * th) * kv,
    qv.T * Rotation((a - b) * th) * kv,
)
pair("rotation zero", Rotation(zeros(m, 1)), eye(2 * m), -eye(2 * m))
pair("rotation doubled", Rotation(2 * th), Rotation(th) ** 2, 2 * Rotation(th))
pair("plane rotation", Rotation(a) * Rotation(b) * Rotation(-a - b), eye(2), Rotation(a))
pair(
    "rotation trace",
    Trace(Rotation(th)),
    2 * Trace(f("cos", th).T * ones(m, 1)),
    2 * Trace(f("sin", th).T * ones(m, 1)),
)
pair(
    "double angle",
    f("cos", 2 * th),
    had(f("cos", th), f("cos", th)) - had(f("sin", th), f("sin", th)),
    had(f("cos", th), f("cos", th)) + had(f("sin", th), f("sin", th)),
)
pair(
    "sine of double",
    f("sin", 2 * th),
    2 * had(f("sin", th), f("cos", th)),
    had(f("sin", th), f("cos", th)),
)
pair(
    "cosine product",
    had(f("cos", th), f("cos", ph)),
    (f("cos", th - ph) + f("cos", th + ph)) / 2,
    (f("cos", th - ph) - f("cos", th + ph)) / 2,
)


def ex(e: Any) -> Any:
    return expectation(e, xd, mu, M2)


pair("covariance", ex((xd - mu) * (xd - mu).T), M2 - mu * mu.T, M2 + mu * mu.T)
pair("expected linear", ex(w_ * xd + bb), w_ * mu + bb, w_ * mu)
pair(
    "expected quadratic form",
    ex(xd.T * W * xd),
    Trace(W * M2) * eye(1),
    Trace(W * W * M2) * eye(1),
    given=[(M2, M2.T)],
)
pair(
    "covariance of affine",
    ex((w_ * xd + bb - w_ * mu - bb) * (w_ * xd + bb - w_ * mu - bb).T),
    w_ * (M2 - mu * mu.T) * w_.T,
    w_ * M2 * w_.T,
)
pair("expected squares", ex(had(xd, xd)), DiagonalOf(M2), had(mu, mu))
pair(
    "bias variance",
    ex((xd - v_).T * (xd - v_)),
    Trace(M2 - mu * mu.T) * eye(1) + (mu - v_).T * (mu - v_),
    Trace(M2) * eye(1) + (mu - v_).T * (mu - v_),
)
pair("rmsnorm scale", RMSNorm(c * X), RMSNorm(X), c * RMSNorm(X))
false("rmsnorm scale sign", RMSNorm(a * X), RMSNorm(X), Ne(a, 0))
pair("rmsnorm negative", RMSNorm(-X), -RMSNorm(X), RMSNorm(X))
pair("rmsnorm eps scale", RMSNorm(c * X, c**2 * eps), RMSNorm(X, eps), RMSNorm(X, c * eps))
pair(
    "layernorm shift", LayerNorm(X + xn * ones(1, d)), LayerNorm(X), LayerNorm(X) + xn * ones(1, d)
)
pair("layernorm affine", LayerNorm(c * X + xn * ones(1, d)), LayerNorm(X), c * LayerNorm(X))
false("layernorm shift by features", LayerNorm(X + ones(n, 1) * mu.T), LayerNorm(X))
pair("layernorm idempotent", LayerNorm(LayerNorm(X)), LayerNorm(X), X)
pair("rmsnorm idempotent", RMSNorm(RMSNorm(X)), RMSNorm(X), X)
false("rmsnorm idempotent with eps", RMSNorm(RMSNorm(X, eps), eps), RMSNorm(X, eps))
pair(
    "layernorm is rmsnorm of centred",
    LayerNorm(X, eps),
    RMSNorm(X - X * ones(d, d) / d, eps),
    RMSNorm(X - X * ones(d, d), eps),
)
pair("layernorm sums to zero", LayerNorm(X) * ones(d, 1), zeros(n, 1), ones(n, 1))
pair(
    "rmsnorm lies on a sphere",
    HadamardPower(RMSNorm(X), 2) * ones(d, 1),
    d * ones(n, 1),
    ones(n, 1),
)
false("rmsnorm sphere with eps", HadamardPower(RMSNorm(X, eps), 2) * ones(d, 1), d * ones(n, 1))
pair(
    "rmsnorm by division",
    RMSNorm(X),
    Quotient(X, f("sqrt", had(X, X) * ones(d, d) / d)),
    Quotient(X, f("sqrt", had(X, X) * ones(d, d))),
)
pair(
    "fold gain",
    RMSNorm(X, eps) * DiagMatrix(gg) * W2,
    RMSNorm(X, eps) * (DiagMatrix(gg) * W2),
    RMSNorm(X * DiagMatrix(gg), eps) * W2,
)
pair(
    "temperature",
    RowSoftmax(E_ / tau),
    Quotient(f("exp", E_ / tau), f("exp", E_ / tau) * ones(m, m)),
    Quotient(f("exp", E_), f("exp", E_) * ones(m, m)) / tau,
)
pair(
    "softmax of doubled scores",
    RowSoftmax(2 * E_),
    Quotient(had(PE, PE), had(PE, PE) * ones(m, m)),
    had(PE, PE),
)
pair(
    "two classes",
    RowSoftmax(row(x1, y1)) * col(eye(1), zeros(1, 1)),
    f("sigmoid", x1 - y1),
    f("sigmoid", y1 - x1),
)
pair(
    "sigmoid by exp",
    f("sigmoid", E_),
    Quotient(ones(n, m), ones(n, m) + f("exp", -E_)),
    Quotient(ones(n, m), ones(n, m) + f("exp", E_)),
)
pair(
    "tanh by exp",
    f("tanh", E_),
    Quotient(f("exp", E_) - f("exp", -E_), f("exp", E_) + f("exp", -E_)),
    Quotient(f("exp", E_) + f("exp", -E_), f("exp", E_) - f("exp", -E_)),
)
pair("sigmoid complement", ones(n, m) - f("sigmoid", E_), f("sigmoid", -E_), -f("sigmoid", E_))
pair(
    "softplus",
    f("log", ones(n, m) + f("exp", E_)) - f("log", ones(n, m) + f("exp", -E_)),
    E_,
    2 * E_,
)
pair(
    "log sigmoid",
    f("log", f("sigmoid", E_)),
    -f("log", ones(n, m) + f("exp", -E_)),
    f("log", ones(n, m) + f("exp", -E_)),
)
pair("squared log", f("log", had(E_, E_)), 2 * f("log", E_), had(f("log", E_), f("log", E_)))
pair(
    "logit of sigmoid", f("log", Quotient(f("sigmoid", E_), ones(n, m) - f("sigmoid", E_))), E_, -E_
)
pair(
    "softmax gradient of expected value",
    gradient(Trace(RowSoftmax(xv.T) * ym), xv),
    had(pv, ym) - pv * pv.T * ym,
    had(pv, ym),
)
pair(
    "hessian of logsumexp",
    jacobian(gradient(LogSumExp(xv.T), xv), xv),
    DiagMatrix(pv) - pv * pv.T,
    DiagMatrix(pv),
)
pair("slice of stacked weights", selection((d, k), 1) * col(W, W2.T) * xd, W2.T * xd, 2 * W2.T * xd)
pair("absolute value", f("abs", X), f("relu", X) + f("relu", -X), f("relu", X) - f("relu", -X))
pair("relu by the absolute value", f("relu", X), (X + f("abs", X)) / 2, f("abs", X))
pair("softplus turned", f("softplus", X) - f("softplus", -X), X, f("relu", X) - f("softplus", -X))
pair(
    "gelu by erf",
    f("gelu", X),
    had(X / 2, ones(n, d) + f("erf", Rational(1, 2) ** Rational(1, 2) * X)),
    had(X / 2, ones(n, d) + f("erf", X)),
)
pair("erf is odd", f("erf", -X * W), -f("erf", X * W), f("erf", X * W))
