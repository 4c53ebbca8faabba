"""What a referee who knows the papers would ask, on depth, indices, blocks, entailment, functions.

Written before it was known what can be decided. Each is (left side, right side, hypotheses).
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import (
    HadamardPower,
    Identity,
    KroneckerProduct,
    MatrixSymbol,
    Ne,
    OneMatrix,
    Sum,
    Trace,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.defined import CrossEntropy, LogSoftmax, LogSumExp, Quotient, Rotation
from otimes.algebra.language.derivative import gradient, jacobian
from otimes.algebra.language.expectation import expectation
from otimes.algebra.language.layers import OrderSum
from otimes.algebra.language.linear import ConcatHeads, Family, HeadSum, OneHot, StackHeads
from otimes.algebra.language.named_matrices import full_column_rank, permutation
from otimes.algebra.language.nonlinear import CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.positions import OneHotLast, Positions, Shift
from tests.algebra.decide.shorthand import f, had, layers, rows, total

n, m, d, k, L, H, r, s = sympy.symbols("n m d k L H r s", integer=True, positive=True)
i, j, l, h, t = sympy.symbols("i j l h t", integer=True)  # noqa: E741 (the layer)
a, b = sympy.symbols("a b", real=True)
c = sympy.symbols("c", positive=True)
A, B, C, P = (MatrixSymbol(name, n, n) for name in "ABCP")
X, Y = (MatrixSymbol(name, n, d) for name in "XY")
W, U, G, D_ = (MatrixSymbol(name, d, d) for name in ("W", "U", "G", "D"))
V = MatrixSymbol("V", d, k)
S = MatrixSymbol("S", n, n)
x, y = (MatrixSymbol(name, n, 1) for name in "xy")
q, p, mu = (MatrixSymbol(name, d, 1) for name in ("q", "p", "mu"))
F, E, R = (Family(name, (L,), d, d) for name in "FER")
T = Family("T", (L + 1,), d, d)
Z, Y_ = Family("Z", (n + 1,), d, k), Family("Q", (n + 1,), d, d)
u, v, w = Family("u", (n,), d, 1), Family("v", (n,), k, 1), Family("w", (n,), d, 1)
e, o, ref = Family("e", (n + 1,), 1, 1), Family("o", (n + 1,), 1, k), Family("b", (n + 1,), 1, 1)
sc = Family("s", (n,), 1, 1)
rot = Family("R", ((1 - n, n - 1),), d, d)
turn = Family("Z", (n,), d, d)
AH, WH = Family("A", (H,), n, n), Family("W", (H,), d, d)
M, N1, pos, last, first = CausalMask(n), Shift(n), Positions(n), OneHotLast(n), OneHot(0, n)
one, I_n, I_d, J = OneMatrix(n, 1), Identity(n), Identity(d), OneMatrix(n, n)
O_d = ZeroMatrix(d, d)

TRUE: dict[str, tuple[Any, ...]] = {}
FALSE: dict[str, tuple[Any, ...]] = {}


def pair(name: str, lhs: Any, right: Any, wrong: Any, *given: Any) -> None:
    """State an equation and what it is easily taken for."""
    assert name not in TRUE
    TRUE[name] = (lhs, right, [*given])
    FALSE[name] = (lhs, wrong, [*given])


def true(name: str, lhs: Any, rhs: Any, *given: Any) -> None:
    assert name not in TRUE
    TRUE[name] = (lhs, rhs, [*given])


def before(body: Any, end: Any) -> Any:
    return HeadSum(body, (j, end))


# -- depth -----------------------------------------------------------------------------------------

pair(
    "layers that leave a subspace alone",
    W * layers(I_d + F[l]),
    W,
    layers(I_d + F[l]) * W,
    (W * F[l], O_d),
)
pair(
    "nilpotent writes add",
    layers(I_d + F[l]),
    I_d + total(F[l]),
    I_d - total(F[l]),
    (F[l] * F[h], O_d),
)
pair(
    "stack undone layer by layer",
    layers(F[l], L, True) * layers(E[l]),
    I_d,
    layers(E[l]),
    (F[l] * E[l], I_d),
)
pair("sign of every layer", layers(-F[l]), (-1) ** L * layers(F[l]), -layers(F[l]))
pair(
    "two scalars per layer",
    layers(a * b * F[l]),
    a**L * b**L * layers(F[l]),
    (a + b) ** L * layers(F[l]),
)
pair(
    "last layer commutes",
    W * layers(F[l]),
    layers(F[l]) * W,
    layers(F[l]).T * W,
    (W * F[l], F[l] * W),
)
pair(
    "transposed paths",
    OrderSum(F[l], (l, L), r).T,
    OrderSum(F[l].T, (l, L), r, True),
    OrderSum(F[l].T, (l, L), r),
)
pair(
    "paths of two scalings",
    OrderSum(a * F[l], (l, L), r),
    a**r * OrderSum(F[l], (l, L), r),
    a * OrderSum(F[l], (l, L), r),
)
pair(
    "expanded stream",
    layers(I_d + F[l]),
    HeadSum(OrderSum(F[l], (l, L), h), (h, L + 1)),
    HeadSum(OrderSum(F[l], (l, L), h), (h, L)),
)
pair(
    "gauge between layers",
    layers(T[l + 1].I * F[l] * T[l]),
    T[L].I * layers(F[l]) * T[0],
    T[0].I * layers(F[l]) * T[L],
)
pair("first layer of more", layers(T[l], L + 1), layers(T[l + 1]) * T[0], T[0] * layers(T[l + 1]))
pair(
    "trace turns",
    Trace(layers(F[l]) * layers(E[l])),
    Trace(layers(E[l]) * layers(F[l])),
    Trace(layers(F[l] * E[l])),
)
pair(
    "symmetric layers",
    layers(F[l]).T,
    layers(F[l], L, True),
    layers(F[l]),
    (F[l].T, F[l]),
)
pair("depth of projections", layers(F[l]), W, W * W + W, (F[l], W), (W * W, W))
pair(
    "attention stack on constant rows",
    layers(KroneckerProduct(A, F[l])) * KroneckerProduct(one, q),
    KroneckerProduct(one, layers(F[l]) * q),
    KroneckerProduct(one, q),
    (A * one, one),
)
true("inverse of a stack", layers(F[l]).I * layers(F[l]), I_d)
true("zero layer ends it", layers(F[l] * W), O_d, (F[l], O_d))
true("residual of commuting", layers(I_d + F[l]) * W, W * layers(I_d + F[l]), (W * F[l], F[l] * W))
true("unit of paths", OrderSum(F[l], (l, L), 0), I_d)
true("one path through all", OrderSum(F[l], (l, L), L), layers(F[l]))

# -- indices ---------------------------------------------------------------------------------------

step = (Z[l + 1], Z[l] + u[l] * v[l].T)
nothing = (Z[0], ZeroMatrix(d, k))
pair(
    "state of linear attention",
    Z[i],
    before(u[j] * v[j].T, i),
    before(u[j] * v[j].T, i + 1),
    step,
    nothing,
)
pair(
    "state after a position",
    Z[i + 1],
    before(u[j] * v[j].T, i + 1),
    before(u[j] * v[j].T, i),
    step,
    nothing,
)
pair(
    "what a query reads",
    w[i].T * Z[i + 1],
    before(w[i].T * u[j] * v[j].T, i + 1),
    before(w[i].T * u[j] * v[j].T, i),
    step,
    nothing,
)
pair(
    "state that starts somewhere",
    Z[i],
    Z[0] + before(u[j] * v[j].T, i),
    Z[0] - before(u[j] * v[j].T, i),
    step,
)
pair("decay by one matrix", Y_[i], W**i * Y_[0], Y_[0] * W**i, (Y_[l + 1], W * Y_[l]))
pair("decay by a number", Z[i], a**i * Z[0], a * Z[0], (Z[l + 1], a * Z[l]))
pair("what never changes", Y_[i], W, W * W, (Y_[l + 1], Y_[l]), (Y_[0], W))
pair(
    "what stays orthogonal",
    Y_[i].T * Y_[i],
    I_d,
    Y_[i],
    (Y_[l + 1], Y_[l] * W),
    (W.T * W, I_d),
    (Y_[0], I_d),
)
pair(
    "what is conserved",
    q.T * Z[i],
    q.T * Z[0],
    q.T * Z[i] + q.T * Z[0],
    (Z[l + 1], W * Z[l]),
    (q.T * W, q.T),
)
pair(
    "normaliser of the online softmax",
    e[i],
    before(f("exp", sc[j] - ref[i]), i),
    before(f("exp", sc[j] + ref[i]), i),
    (e[l + 1], had(f("exp", ref[l] - ref[l + 1]), e[l]) + f("exp", sc[l] - ref[l + 1])),
    (e[0], ZeroMatrix(1, 1)),
)
pair(
    "output of the online softmax",
    o[i],
    before(f("exp", sc[j] - ref[i]) * v[j].T, i),
    before(f("exp", sc[j]) * v[j].T, i),
    (o[l + 1], f("exp", ref[l] - ref[l + 1]) * o[l] + f("exp", sc[l] - ref[l + 1]) * v[l].T),
    (o[0], ZeroMatrix(1, k)),
)
pair("last state", Z[n], before(u[j] * v[j].T, n), before(u[j] * v[j].T, n - 1), step, nothing)
pair(
    "two states with one step",
    Z[i],
    a * Y_[i] * V,
    Y_[i] * V,
    (Z[l + 1], Z[l] + a * u[l] * u[l].T * V),
    (Y_[l + 1], Y_[l] + u[l] * u[l].T),
    (Z[0], a * Y_[0] * V),
)
pair(
    "relative rotation",
    (turn[i] * q).T * turn[j] * p,
    q.T * rot[j - i] * p,
    q.T * rot[i - j] * p,
    (turn[i].T * turn[j], rot[j - i]),
)
pair(
    "slope of a key",
    Sum((j - i) * A[i, j], (j, 0, n - 1)),
    (A * pos)[i, 0] - i * (A * one)[i, 0],
    (A * pos)[i, 0],
)
pair(
    "sum after a position",
    Sum(x[j, 0], (j, i + 1, n - 1)),
    (one.T * x)[0, 0] - (M * x)[i, 0],
    (one.T * x)[0, 0],
)
pair(
    "pairs in order",
    Sum(A[i, j], (j, 0, i - 1), (i, 0, n - 1)),
    Sum(A[i, j], (i, j + 1, n - 1), (j, 0, n - 1)),
    Sum(A[i, j], (i, j, n - 1), (j, 0, n - 1)),
)
pair("previous token head", (N1 * X)[0, h], 0 * a, X[0, h])
pair("powers add", W**k * W**s, W ** (k + s), W ** (k * s))
pair("power of a power", (W**k) ** s, W ** (k * s), W ** (k + s))
pair(
    "mean of a prefix",
    (i + 1) * (DiagMatrix(M * one).I * M * x)[i, 0],
    Sum(x[j, 0], (j, 0, i)),
    Sum(x[j, 0], (j, 0, n - 1)),
)
true("triangular number", Sum(j * one[j, 0], (j, 0, n - 1)), n * (n - 1) / 2)
true("difference of states", Z[i + 1] - Z[i], u[i] * v[i].T, step)
true("mask counts", (M * one)[i, 0], (i + 1) * one[i, 0])
true("sum of nothing yet", before(u[j] * v[j].T, i + 1) - before(u[j] * v[j].T, i), u[i] * v[i].T)
true("last of a mask", (M * x)[n - 1, 0], Sum(x[j, 0], (j, 0, n - 1)))

# -- blocks ----------------------------------------------------------------------------------------

X_2, Y_2 = MatrixSymbol("X_2", m, d), MatrixSymbol("x", 1, d)
two, more = rows([X], [X_2]), rows([X], [Y_2])
pair(
    "attention of a prompt and its continuation",
    rows([I_n, ZeroMatrix(n, m)]) * RowSoftmax(two * W * two.T, CausalMask(n + m)) * two * V,
    RowSoftmax(X * W * X.T, M) * X * V,
    RowSoftmax(X * W * X.T) * X * V,
)
pair(
    "mask of two blocks",
    CausalMask(n + m),
    rows([M, ZeroMatrix(n, m)], [OneMatrix(m, n), CausalMask(m)]),
    rows([M, OneMatrix(n, m)], [ZeroMatrix(m, n), CausalMask(m)]),
)
pair("first token sees itself", first.T * RowSoftmax(S, M), first.T, one.T / n)
pair(
    "last row sees all",
    last.T * RowSoftmax(S, M),
    RowSoftmax(last.T * S),
    last.T,
)
pair(
    "one more row on top or below",
    rows([Y_2], [X]).T * rows([Y_2], [X]),
    more.T * more,
    X.T * X,
)
pair(
    "blocks of keys",
    RowSoftmax(rows([A, S])) * rows([X], [Y]),
    RowSoftmax(rows([S, A])) * rows([Y], [X]),
    RowSoftmax(rows([A, S])) * rows([Y], [X]),
)
pair(
    "identity in two cuts",
    rows([I_n, ZeroMatrix(n, 1)], [ZeroMatrix(1, n), Identity(1)]),
    Identity(n + 1),
    OneMatrix(n + 1, n + 1),
)
pair(
    "ones in two cuts",
    rows([one], [OneMatrix(m, 1)]),
    OneMatrix(n + m, 1),
    rows([one], [ZeroMatrix(m, 1)]),
)
pair("norm of each row", RMSNorm(two), rows([RMSNorm(X)], [RMSNorm(X_2)]), two)
pair(
    "heads side by side",
    ConcatHeads(AH[h] * X, (h, H)) * StackHeads(WH[h], (h, H)),
    HeadSum(AH[h] * X * WH[h], (h, H)),
    HeadSum(AH[h], (h, H)) * X * HeadSum(WH[h], (h, H)),
)
pair(
    "Schur complement",
    rows([I_n, ZeroMatrix(n, m)], [MatrixSymbol("K", m, n), Identity(m)])
    * rows([I_n, ZeroMatrix(n, m)], [-MatrixSymbol("K", m, n), Identity(m)]),
    Identity(n + m),
    rows([I_n, ZeroMatrix(n, m)], [MatrixSymbol("K", m, n), Identity(m)]),
)
true("trace of blocks", Trace(rows([A, B], [C, P])), Trace(A) + Trace(P))
true("swap of sizes", Trace(KroneckerProduct(A, W)), Trace(KroneckerProduct(W, A)))
true("mask of one more", last.T * M * one, one.T * one)

# -- entailment ------------------------------------------------------------------------------------

pair("gram that vanishes", X * W, ZeroMatrix(n, d), X, (X.T * X * W, O_d))
pair("a number that is not zero", W, U, U.T, (a * W, a * U), Ne(a, 0))
pair("an inverse number", W, U, W * U, (a * W, a * U), (a * b, 1))
pair("one-sided inverse", W, U, U.T, (X * W, X * U), *full_column_rank(X))
pair(
    "permuted attention",
    RowSoftmax(P * S * P.T),
    P * RowSoftmax(S) * P.T,
    RowSoftmax(S),
    *permutation(P),
)
pair("orthogonal frame", (X * W) * (X * W).T, X * X.T, X * W * X.T, (W.T * W, I_d))
pair("members alike", total(F[l]), total(E[l]), total(E[l].T), (F[l], E[l]))
pair("renamed hypothesis", total(F[l] * W), L * U, U, (F[h] * W, U))
pair("inside a function", f("gelu", X * W), f("gelu", Y), f("gelu", X), (X * W, Y))
pair("inside itself", f("relu", f("relu", X)), Y, X + Y, (f("relu", X), X), (X, Y))
pair("push-through", (I_d + W * U).I * W, W * (I_d + U * W).I, (I_d + U * W).I * W)
pair("projection and rest", W * (I_d - W), O_d, W, (W * W, W))
pair("positive number", f("relu", c * X), c * f("relu", X), f("relu", X))
pair("nonnegative square", f("relu", HadamardPower(X, 2)), HadamardPower(X, 2), X)
pair("commuting inverse", W.I * U, U * W.I, U * W, (W * U, U * W))
pair("skew quadratic", q.T * W * q, ZeroMatrix(1, 1), q.T * q, (W.T, -W))
pair("constant rows", A * one * q.T, a * one * q.T, one * q.T, (A * one, a * one))
true("square root of zero", X, ZeroMatrix(n, d), (X * X.T, ZeroMatrix(n, n)))
true("inverse from one side", U * W, I_d, (W * U, I_d))
true("sum of squares", X, ZeroMatrix(n, d), (X.T * X + Y.T * Y, O_d))
true("unique inverse", U, G, (W * U, I_d), (G * W, I_d))
true("transposed hypothesis", A.T * B.T, B.T * A.T, (A * B, B * A))

# -- functions -------------------------------------------------------------------------------------

pair("silu", f("silu", X), had(X, f("sigmoid", X)), f("sigmoid", X))
pair("log of a product", f("log", c * f("exp", X)), f("log", c * OneMatrix(n, d)) + X, c * X)
pair("log-softmax", LogSoftmax(S), S - LogSumExp(S) * one.T, S - one * LogSumExp(S).T)
pair("softmax of a shift", RowSoftmax(S + x * one.T), RowSoftmax(S), RowSoftmax(S) + x * one.T)
pair("exp of log-softmax", f("exp", LogSoftmax(S)), RowSoftmax(S), S)
pair(
    "gradient of a loss",
    gradient(Trace((X * W - Y).T * (X * W - Y)), W),
    2 * X.T * (X * W - Y),
    X.T * (X * W - Y),
)
pair(
    "jacobian of a layer",
    jacobian(W * f("tanh", U * q), q),
    W * DiagMatrix(OneMatrix(d, 1) - HadamardPower(f("tanh", U * q), 2)) * U,
    W * U,
)
pair(
    "differential of softmax",
    jacobian(RowSoftmax((W * q).T).T, q),
    (DiagMatrix(RowSoftmax((W * q).T).T) - RowSoftmax((W * q).T).T * RowSoftmax((W * q).T)) * W,
    DiagMatrix(RowSoftmax((W * q).T).T) * W,
)
pair("rotations compose", Rotation(a) * Rotation(b), Rotation(a + b), Rotation(a * b))
pair("rotations keep lengths", Rotation(a).T * Rotation(a), Identity(2), Rotation(2 * a))
pair(
    "expected score", expectation(Trace(q * q.T * W), q, mu, G), Trace(G * W), Trace(mu * mu.T * W)
)
pair(
    "covariance of a layer",
    expectation(W * (q - mu) * (q - mu).T * W.T, q, mu, G),
    W * (G - mu * mu.T) * W.T,
    W * G * W.T,
)
pair("RMSNorm of a multiple", RMSNorm(c * X), RMSNorm(X), c * RMSNorm(X))
pair(
    "LayerNorm of a shift",
    LayerNorm(X + x * OneMatrix(1, d)),
    LayerNorm(X),
    LayerNorm(X) + x * OneMatrix(1, d),
)
true("weights add to one", RowSoftmax(S, M) * one, one)
true("sigmoid and its mirror", f("sigmoid", X) + f("sigmoid", -X), OneMatrix(n, d))
true("quotient", had(Quotient(f("exp", X), f("exp", Y)), f("exp", Y)), f("exp", X))
true("root of a square", HadamardPower(f("sqrt", f("exp", X)), 2), f("exp", X))
true("loss of one answer", CrossEntropy(S, one * first.T), LogSumExp(S) - S * first)
true("tanh by sigmoid", f("tanh", X), 2 * f("sigmoid", 2 * X) - OneMatrix(n, d))
