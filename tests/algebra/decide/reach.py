"""Claims of papers on transformers about depth, indices, blocks, entailment and functions.

They were written from the papers and not from what can be decided. Each is (left side, right side)
or (left side, right side, hypotheses).
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import (
    BlockDiagMatrix,
    HadamardPower,
    Identity,
    Inverse,
    KroneckerProduct,
    MatrixSymbol,
    Ne,
    OneMatrix,
    Sum,
    Trace,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.language.defined import (
    CrossEntropy,
    LogSoftmax,
    LogSumExp,
    Quotient,
    Rotation,
)
from otimes.algebra.language.derivative import gradient, jacobian
from otimes.algebra.language.expectation import expectation
from otimes.algebra.language.layers import OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    vec_rows,
)
from otimes.algebra.language.named_matrices import full_column_rank, permutation
from otimes.algebra.language.nonlinear import (
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
)
from otimes.algebra.language.positions import OneHotLast, Positions, Shift
from tests.algebra.decide.shorthand import f, had, layers, rows, total

n, m, d, k, L, H, r = sympy.symbols("n m d k L H r", integer=True, positive=True)
i, j, l, h, t = sympy.symbols("i j l h t", integer=True)  # noqa: E741 (the layer)
a, b = sympy.symbols("a b", real=True)
c = sympy.symbols("c", positive=True)
A, B, C, S, T, P = (MatrixSymbol(name, n, n) for name in "ABCSTP")
X, Y, V = (MatrixSymbol(name, n, d) for name in "XYV")
Q, K, W, U, G = (MatrixSymbol(name, d, d) for name in "QKWUG")
x, y, v, u = (MatrixSymbol(name, n, 1) for name in "xyvu")
q, g, mu = (MatrixSymbol(name, d, 1) for name in ("q", "g", "mu"))
z = MatrixSymbol("z", 1, d)
F, E = Family("F", (L,), d, d), Family("E", (L,), d, d)
N = Family("N", (L,), n, n)
D = Family("D", (L + 1,), d, d)
Z, M_ = Family("Z", (n + 1,), d, d), Family("M", (n + 1,), d, d)
KK, VV = Family("K", (n,), d, 1), Family("V", (n,), d, 1)
WQ, WK, WV, WO = (
    Family(name, (H,), *shape)
    for name, shape in (("WQ", (d, k)), ("WK", (d, k)), ("WV", (d, k)), ("WO", (k, d)))
)
AH = Family("A", (H,), n, n)
M, N1, p, last, first = CausalMask(n), Shift(n), Positions(n), OneHotLast(n), OneHot(0, n)
one, I_n, I_d, J = OneMatrix(n, 1), Identity(n), Identity(d), OneMatrix(n, n)
centre = I_n - J / n
O_d, O_n = ZeroMatrix(d, d), ZeroMatrix(n, n)

Claim = tuple[Any, ...]
TRUE: dict[str, Claim] = {}
FALSE: dict[str, Claim] = {}
UNDECIDED = {"scaled layers"}  # true, and not yet proved


def pair(name: str, lhs: Any, right: Any, wrong: Any, *given: Any) -> None:
    """State an equation and what it is easily taken for."""
    TRUE[name] = (lhs, right, [*given])
    FALSE[name] = (lhs, wrong, [*given])


def true(name: str, lhs: Any, rhs: Any, *given: Any) -> None:
    TRUE[name] = (lhs, rhs, [*given])


def false(name: str, lhs: Any, rhs: Any, *given: Any) -> None:
    FALSE[name] = (lhs, rhs, [*given])


# -- depth -----------------------------------------------------------------------------------------

pair("two stacks", layers(F[l] * E[l]).T, layers(E[l].T * F[l].T, L, True), layers(E[l].T * F[l].T))
pair("orthogonal layers", layers(F[l]).T * layers(F[l]), I_d, layers(F[l]), (F[l].T * F[l], I_d))
pair("rows that sum to one through depth", layers(N[l]) * one, one, n * one, (N[l] * one, one))
pair(
    "centred depth",
    centre * layers(N[l]) * centre,
    centre * layers(N[l]),
    layers(N[l]) * centre,
    (N[l] * one, one),
)
pair("one gauge", layers(W.I * F[l] * W), W.I * layers(F[l]) * W, W * layers(F[l]) * W.I)
pair("tied layers commute", layers(W) * W, W * layers(W), layers(W) * W * W)
pair("residual of nothing", layers(I_d + 0 * F[l]), I_d, 2 * I_d)
pair(
    "one more layer",
    layers(I_d + D[l], L + 1),
    (I_d + D[L]) * layers(I_d + D[l]),
    layers(I_d + D[l]) * (I_d + D[L]),
)
pair("scaled layers", layers(F[l] / 2), layers(F[l]) / 2**L, layers(F[l]) / 2)
pair(
    "trace of a stack",
    Trace(layers(F[l]) * W),
    Trace(W * layers(F[l])),
    Trace(W * layers(F[l], L, True)),
)
pair("paths of order one", OrderSum(F[l], (l, L), 1), total(F[l]), layers(F[l]))
pair(
    "gauged paths",
    OrderSum(W.I * F[l] * W, (l, L), r),
    W.I * OrderSum(F[l], (l, L), r) * W,
    W * OrderSum(F[l], (l, L), r) * W.I,
)
pair(
    "a head at each layer",
    layers(KroneckerProduct(N[l], F[l])),
    KroneckerProduct(layers(N[l]), layers(F[l])),
    KroneckerProduct(layers(N[l]), layers(F[l], L, True)),
)
pair(
    "a projection that all layers keep",
    W * layers(F[l]) * W,
    layers(F[l]) * W,
    layers(F[l]),
    (W * F[l], F[l] * W),
    (W * W, W),
)
pair("what layers annihilate", layers(F[l]) * q, ZeroMatrix(d, 1), q, (F[l] * q, ZeroMatrix(d, 1)))
pair("an eigenvector of all layers", layers(F[l]) * q, a**L * q, a * q, (F[l] * q, a * q))
pair(
    "residual eigenvector",
    layers(I_d + F[l]) * q,
    (1 + a) ** L * q,
    (1 + a * L) * q,
    (F[l] * q, a * q),
)
pair("streams telescope", total(D[l + 1] - D[l]), D[L] - D[0], D[L])
pair("inverse stack", layers(F[l]) * layers(F[l].I, L, True), I_d, layers(F[l]))
pair("equal writes", total(F[l]), L * W, W, (F[l], W))
pair(
    "symmetric stack",
    (layers(F[l]) * layers(F[l]).T).T,
    layers(F[l]) * layers(F[l]).T,
    layers(F[l]).T * layers(F[l]),
)

# -- indices ---------------------------------------------------------------------------------------

pair("prefix sums", Sum(x[j, 0], (j, 0, i)), (M * x)[i, 0], (M.T * x)[i, 0])
pair("prefix differences", Sum(x[j, 0], (j, 0, i)) - Sum(x[j, 0], (j, 0, i - 1)), x[i, 0], x[0, 0])
pair(
    "exchange",
    Sum(A[i, j], (j, 0, i), (i, 0, n - 1)),
    Sum(A[i, j], (i, j, n - 1), (j, 0, n - 1)),
    Sum(A[j, i], (j, 0, i), (i, 0, n - 1)),
)
pair(
    "all pairs",
    Sum(x[i, 0] * x[j, 0], (j, 0, n - 1), (i, 0, n - 1)),
    Trace(x * x.T * J),
    Trace(x * x.T),
)
pair(
    "state",
    Z[n],
    Z[0] + HeadSum(KK[l] * VV[l].T, (l, n)),
    Z[0] + HeadSum(VV[l] * KK[l].T, (l, n)),
    (Z[l + 1], Z[l] + KK[l] * VV[l].T),
)
pair("state of nothing", Z[n], Z[0], Z[0] + Z[0], (Z[l + 1], Z[l]))
pair("state that is gated", Z[n], W**n * Z[0], Z[0] * W**n, (Z[l + 1], W * Z[l]))
pair(
    "two recurrences",
    Z[n],
    M_[n],
    2 * M_[n],
    (Z[l + 1], W * Z[l]),
    (M_[l + 1], W * M_[l]),
    (Z[0], M_[0]),
)
pair(
    "positions of a previous token",
    (N1 * p)[i, 0],
    p[i, 0] - one[i, 0] + first[i, 0],
    p[i, 0] - one[i, 0],
)
pair("positions add", Sum(p[j, 0], (j, 0, n - 1)), n * (n - 1) / 2, n * (n + 1) / 2)
pair("odd numbers add to a square", Sum((2 * j + 1) * one[j, 0], (j, 0, n - 1)), n**2, n**2 + n)
pair("causal mean of ones", Sum(M[i, j], (j, 0, n - 1)), (i + 1) * one[i, 0], i * one[i, 0])
pair("powers", A**m * A**2, A ** (m + 2), A ** (2 * m))
pair("power of two powers", A**m * A**k, A ** (m + k), A ** (m * k))
pair("power of a conjugate", (P.I * A * P) ** m, P.I * A**m * P, P * A**m * P.I)
pair("power of a multiple", (2 * A) ** m, 2**m * A**m, 2 * A**m)
pair("powers of commuting matrices", (A * B) ** m, A**m * B**m, A ** (m + 1) * B**m, (A * B, B * A))
pair("power of a transpose", (A.T) ** m, (A**m).T, A**m)
pair(
    "power of a Kronecker product",
    KroneckerProduct(A, W) ** m,
    KroneckerProduct(A**m, W**m),
    KroneckerProduct(A**m, W),
)
pair("power of an involution", A ** (2 * m), I_n, A, (A * A, I_n))
pair("mask of the last row", last.T * M, one.T, last.T)
pair("mask of the first column", M * first, one, first)
pair("shift to the diagonal", DiagonalOf(N1), ZeroMatrix(n, 1), one)
pair(
    "sum over distances",
    Sum((i - j) * A[i, j], (i, 0, n - 1), (j, 0, n - 1)),
    Trace(DiagMatrix(p) * A * J) - Trace(DiagMatrix(p) * J * A),
    Trace(DiagMatrix(p) * J * A) - Trace(DiagMatrix(p) * A * J),
)
pair(
    "a slope for each head",
    RowSoftmax(S - c * (p * one.T - one * p.T), M),
    RowSoftmax(S + c * one * p.T, M),
    RowSoftmax(S - c * one * p.T, M),
)

# -- blocks ----------------------------------------------------------------------------------------

R_ = MatrixSymbol("R", m, d)
stack = rows([X], [R_])
top, bottom = rows([I_n, ZeroMatrix(n, m)]), rows([ZeroMatrix(m, n), Identity(m)])
scores = stack * W * stack.T
pair(
    "prefix causality",
    top * RowSoftmax(scores, CausalMask(n + m)) * stack,
    RowSoftmax(X * W * X.T, M) * X,
    RowSoftmax(X * W * X.T) * X,
)
pair("first position", first.T * RowSoftmax(S, M) * X, first.T * X, last.T * X)
pair("blocks of norms", RMSNorm(stack), rows([RMSNorm(X)], [RMSNorm(R_)]), rows([RMSNorm(X)], [R_]))
pair(
    "mask in blocks",
    CausalMask(n + m),
    rows([M, ZeroMatrix(n, m)], [OneMatrix(m, n), CausalMask(m)]),
    BlockDiagMatrix(M, CausalMask(m)),
)
pair("identity in blocks", top.T * top + bottom.T * bottom, Identity(n + m), 2 * Identity(n + m))
pair("a bias as one more column", rows([X, one]) * rows([W], [z]), X * W + one * z, X * W)
pair(
    "a bias as the first column",
    rows([one, X]) * rows([z], [W]),
    X * W + one * z,
    X * W + z[0, 0] * J * X,
)
pair("uniform softmax", RowSoftmax(ZeroMatrix(n, n)), J / n, J)
pair("uniform heads mean", RowSoftmax(x * one.T) * X, J * X / n, X)
pair(
    "heads concatenated",
    ConcatHeads(AH[h] * X * WV[h], (h, H)) * StackHeads(WO[h], (h, H)),
    HeadSum(AH[h] * X * WV[h] * WO[h], (h, H)),
    HeadSum(AH[h].T * X * WV[h] * WO[h], (h, H)),
)
pair(
    "square of an upper block",
    rows([I_n, A], [O_n, I_n]) ** 2,
    rows([I_n, 2 * A], [O_n, I_n]),
    rows([I_n, A * A], [O_n, I_n]),
)
pair(
    "inverse of a block",
    rows([I_n, A], [O_n, I_n]) * rows([I_n, -A], [O_n, I_n]),
    Identity(2 * n),
    rows([I_n, A], [O_n, I_n]),
)

# -- entailment ------------------------------------------------------------------------------------

pair("Gram", X * W, Y * 0, X, (X.T * X * W, O_d))
pair("scalar cancelled", X, Y, 2 * Y, (a * X, a * Y), Ne(a, 0))
false("scalar not cancelled", X, Y, (a * X, a * Y))
pair("one-sided inverse", W, U, U.T, (X * W, X * U), *full_column_rank(X))
false("no one-sided inverse", W, U, (X * W, X * U))
pair("left inverse is right", W * U, I_d, W, (U * W, I_d))
pair("inverses are unique", U, G, G.T, (W * U, I_d), (W * G, I_d))
pair("idempotent complement", (I_n - A) * (I_n - A), I_n - A, I_n, (A * A, A))
pair("functions of equals", f("g", X * W), f("g", Y), f("g", X), (X * W, Y))
pair(
    "permuted positions",
    RowSoftmax(P * X * W * X.T * P.T) * P * X,
    P * RowSoftmax(X * W * X.T) * X,
    P.T * RowSoftmax(X * W * X.T) * X,
    *permutation(P),
)
pair("push-through", (I_n + X * Y.T).I * X, X * (I_d + Y.T * X).I, X * (I_d + X.T * Y).I)
pair("orthogonal gauge of scores", (X * U) * (X * U).T, X * X.T, X * U * X.T, (U * U.T, I_d))
pair("sum of squares", A, O_n, I_n, (A.T * A + B.T * B, O_n))
pair("relu of a square", f("relu", HadamardPower(X, 2)), had(X, X), X)
pair("symmetric part", Trace(A * (B - B.T)), sympy.S.Zero, 2 * Trace(A * B), (A, A.T))

# -- functions -------------------------------------------------------------------------------------

pair("softmax shift", RowSoftmax(S + v * one.T), RowSoftmax(S), RowSoftmax(S + v * one.T + I_n))
pair("log softmax shift", LogSoftmax(S + v * one.T), LogSoftmax(S), LogSoftmax(S) + v * one.T)
pair("logsumexp shift", LogSumExp(S + v * one.T), LogSumExp(S) + v, LogSumExp(S))
pair(
    "cross-entropy of a token",
    CrossEntropy(S, one * OneHot(0, n).T),
    LogSumExp(S) - S * first,
    S * first - LogSumExp(S),
)
pair("temperature", RowSoftmax(c * LogSoftmax(S)), RowSoftmax(c * S), RowSoftmax(S))
pair("log odds", f("log", f("sigmoid", X)) - f("log", f("sigmoid", -X)), X, -X)
pair("logit", f("log", f("sigmoid", X)) - f("log", OneMatrix(n, d) - f("sigmoid", X)), X, 2 * X)
pair("sigmoid as softmax", f("sigmoid", -X), OneMatrix(n, d) - f("sigmoid", X), f("sigmoid", X))
pair("silu", f("silu", X), had(X, f("sigmoid", X)), f("sigmoid", X))
pair(
    "ratio of exps", Quotient(f("exp", X), f("exp", Y)), f("exp", X - Y), f("exp", X) - f("exp", Y)
)
pair(
    "product of weights",
    had(RowSoftmax(S), f("exp", T)),
    Quotient(had(f("exp", S + T)), f("exp", S) * J),
    RowSoftmax(S + T),
)
pair("rms scale", RMSNorm(c * X), RMSNorm(X), c * RMSNorm(X))
pair(
    "layer norm shift",
    LayerNorm(X + x * OneMatrix(1, d)),
    LayerNorm(X),
    LayerNorm(X) + x * OneMatrix(1, d),
)
pair("layer norm idempotent mean", LayerNorm(X) * OneMatrix(d, 1), ZeroMatrix(n, 1), one)
pair("rms rotation", RMSNorm(X * U), RMSNorm(X) * U, RMSNorm(X), (U * U.T, I_d))
pair("quadratic gradient", gradient(q.T * W * q, q), (W + W.T) * q, 2 * W * q)
pair(
    "softmax jacobian",
    jacobian(RowSoftmax(q.T).T, q),
    DiagMatrix(RowSoftmax(q.T).T) - RowSoftmax(q.T).T * RowSoftmax(q.T),
    DiagMatrix(RowSoftmax(q.T).T),
)
pair(
    "jacobian of an mlp",
    jacobian(U * f("tanh", W * q), q),
    U * jacobian(f("tanh", W * q), q),
    jacobian(f("tanh", W * q), q),
)
pair("gradient of a score", gradient(Trace(X * W * X.T * S), W), X.T * S.T * X, X.T * S * X)
pair("rotations", Rotation(a).T * Rotation(b), Rotation(b - a), Rotation(a - b))
pair("rotation twice", Rotation(2 * q), Rotation(q) * Rotation(q), 2 * Rotation(q))
pair("second moments", expectation(W * q * (U * q).T, q, mu, G), W * G * U.T, W * mu * mu.T * U.T)
pair("a mean", expectation(W * q + g, q, mu, G), W * mu + g, W * mu)
pair(
    "variance of logits",
    expectation(Trace(W * (q - mu) * (q - mu).T * W.T), q, mu, G),
    Trace(W * (G - mu * mu.T) * W.T),
    Trace(W * G * W.T),
)
pair(
    "double angle",
    f("cos", 2 * X),
    2 * had(f("cos", X), f("cos", X)) - OneMatrix(n, d),
    2 * f("cos", X),
)
pair("roots", had(f("sqrt", X), f("sqrt", X)), X, had(X, X))
pair(
    "K-FAC",
    Inverse(KroneckerProduct(A, W)) * vec_rows(X),
    vec_rows(A.I * X * W.I.T),
    vec_rows(A.I * X * W),
)
