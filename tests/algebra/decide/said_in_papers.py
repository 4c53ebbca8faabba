"""A suite over what transformer papers say of depths, indices, blocks, hypotheses and functions.

`TRUE` and `FALSE` have claims as (left side, right side, hypotheses), by topic and name. They were
written from the statements alone, before it was known which of them are decided.
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import (
    BlockDiagMatrix,
    BlockMatrix,
    HadamardPower,
    HadamardProduct,
    Identity,
    Inverse,
    MatPow,
    MatrixSymbol,
    Ne,
    OneMatrix,
    Trace,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

import otimes as ot
from otimes.algebra.language.linear import kron

n, d, m, p, q, L, H, V = sympy.symbols("n d m p q L H V", integer=True, positive=True)
h, i, j, k, l, t, u = sympy.symbols("h i j k l t u", integer=True)  # noqa: E741 (as on paper)
a, b, c, e = sympy.symbols("a b c e")
pos, pos2 = sympy.symbols("alpha beta", positive=True)
A, B, C, D, P, Q, S = (MatrixSymbol(name, n, n) for name in "ABCDPQS")
W, U = MatrixSymbol("W", d, d), MatrixSymbol("U", d, d)
X, Y, Z = (MatrixSymbol(name, n, d) for name in "XYZ")
x, y, g, s = (MatrixSymbol(name, n, 1) for name in "xygs")
T = MatrixSymbol("T", n, V)
E, O = MatrixSymbol("E", n, m), MatrixSymbol("O", m, n)  # noqa: E741
M = MatrixSymbol("M", m, m)
F, G, N = (ot.Family(name, (L,), n, n) for name in "FGN")
K = ot.Family("K", (L,), d, d)
F3 = ot.Family("F", (3,), n, n)
F96 = ot.Family("F", (96,), n, n)
R = ot.Family("R", ((1 - n, n - 1),), d, d)
I, ONE, J = Identity(n), OneMatrix(n, 1), OneMatrix(n, n)  # noqa: E741
O_n = ZeroMatrix(n, n)
MASK = ot.CausalMask(n)
Claim = tuple[Any, ...]


def prod(body: Any, count: Any = L, reverse: bool = False) -> Any:
    return ot.LayerProduct(body, (l, count), reverse=reverse)


def paths(body: Any, order: Any, reverse: bool = False) -> Any:
    return ot.OrderSum(body, (l, L), order, reverse=reverse)


def total(body: Any, index: Any = l, count: Any = L) -> Any:
    return ot.HeadSum(body, (index, count))


def f(name: str, of: Any) -> Any:
    return ot.Activation(name, of)


def up_to(body: Any, index: Any, last: Any) -> Any:
    return ot.HeadSum(body, (index, 0, last))


def soft(of: Any, mask: Any = None) -> Any:
    return ot.RowSoftmax(of) if mask is None else ot.RowSoftmax(of, mask)


def pw(base: Any, exponent: Any) -> Any:
    return MatPow(base, exponent)


def had(*of: Any) -> Any:
    return HadamardProduct(*of)


all_commute = [(F[l] * F[u], F[u] * F[l])]
DEPTH: dict[str, Claim] = {
    "transpose": (prod(F[l]).T, prod(F[l].T, reverse=True)),
    "scaled": (prod(a * F[l]), a**L * prod(F[l])),
    "trace of tensor": (Trace(prod(kron(F[l], K[l]))), Trace(prod(F[l])) * Trace(prod(K[l]))),
    "one gauge": (prod(S * F[l] * S.inverse()), S * prod(F[l]) * S.inverse()),
    "identities": (prod(I), I),
    "passes": (A * prod(F[l]), prod(F[l]) * A, [(A * F[l], F[l] * A)]),
    "vec": (ot.vec_rows(prod(F[l]) * X), kron(prod(F[l]), Identity(d)) * ot.vec_rows(X)),
    "beside": (kron(prod(F[l]), Identity(d)), prod(kron(F[l], Identity(d)))),
    "stochastic": (prod(F[l]) * ONE, ONE, [(F[l] * ONE, ONE)]),
    "orthogonal": (prod(F[l]).T * prod(F[l]), I, [(F[l].T * F[l], I)]),
    "all paths": (prod(I + F[l]), total(paths(F[l], k), k, L + 1)),
    "no paths of two": (prod(I + N[l]), I + total(N[l]), [(N[l] * N[u], O_n)]),
    "one path": (paths(F[l], 1), total(F[l])),
    "no path": (paths(F[l], 0), I),
    "paths turned": (paths(F[l], p).T, paths(F[l].T, p, reverse=True)),
    "paths in a gauge": (
        paths(S * F[l] * S.inverse(), p),
        S * paths(F[l], p) * S.inverse(),
    ),
    "paths scaled": (paths(a * F[l], p), a**p * paths(F[l], p)),
    "one layer": (prod(A), pw(A, L)),
    "commuting, reversed": (prod(F[l]), prod(F[l], reverse=True), all_commute),
    "pattern passes weights": (
        kron(A, Identity(d)) * prod(kron(I, K[l])),
        prod(kron(I, K[l])) * kron(A, Identity(d)),
    ),
    "inverse layers": (prod(F[l]) * prod(G[l], reverse=True), I, [(F[l] * G[l], I)]),
    "96 layers": (
        ot.LayerProduct(I + F96[l], (l, 96)),
        ot.HeadSum(ot.OrderSum(F96[l], (l, 96), k), (k, 97)),
    ),
    "three layers": (
        ot.LayerProduct(I + F3[l], (l, 3)),
        (I + F3[2]) * (I + F3[1]) * (I + F3[0]),
    ),
    "a projection goes in": (
        P * prod(F[l]) * P,
        P * prod(F[l]),
        [(P * F[l] * P, P * F[l]), (P * P, P)],
    ),
    "a projection is kept": (prod(F[l]) * P, P, [(F[l] * P, P)]),
    "two stacks": (
        prod(F[l] * G[l]),
        prod(F[l]) * prod(G[l]),
        [(F[l] * G[u], G[u] * F[l])],
    ),
    "symmetric, turned": (prod(F[l]).T, prod(F[l], reverse=True), [(F[l].T, F[l])]),
    "last layer": (ot.LayerProduct(F[l], (l, L)) * A, A * prod(F[l]), [(A, I)]),
    "trace turned": (Trace(prod(F[l])), Trace(prod(F[l].T, reverse=True))),
    "zero column sums": (ONE.T * prod(F[l]), ONE.T, [(ONE.T * F[l], ONE.T)]),
    "layers are one": (prod(F[l]), pw(A, L), [(F[l], A)]),
    "a fixed vector": (prod(F[l]) * x, x, [(F[l] * x, x)]),
    "an eigenvector": (prod(F[l]) * x, a**L * x, [(F[l] * x, a * x)]),
}
POWERS: dict[str, Claim] = {
    "one more": (pw(A, m + 1), A * pw(A, m)),
    "one more, right": (pw(A, m + 1), pw(A, m) * A),
    "sum of exponents": (pw(A, m) * pw(A, p), pw(A, m + p)),
    "power of a power": (pw(pw(A, m), p), pw(A, m * p)),
    "square of a power": (pw(A, m) * pw(A, m), pw(A, 2 * m)),
    "turned": (pw(A.T, m), pw(A, m).T),
    "of a product": (pw(A * B, m), pw(A, m) * pw(B, m), [(A * B, B * A)]),
    "passes": (pw(A, m) * B, B * pw(A, m), [(A * B, B * A)]),
    "powers pass": (pw(A, m) * pw(B, p), pw(B, p) * pw(A, m), [(A * B, B * A)]),
    "conjugated": (pw(S * A * S.inverse(), m), S * pw(A, m) * S.inverse()),
    "of a tensor": (pw(kron(A, W), m), kron(pw(A, m), pw(W, m))),
    "cyclic": (Trace(pw(A * B, m)), Trace(pw(B * A, m))),
    "of one": (pw(I, m), I),
    "of a projection": (pw(P, m), P, [(P * P, P)]),
    "of an involution": (pw(A, 2 * m), I, [(A * A, I)]),
    "scaled": (pw(a * A, m), a**m * pw(A, m)),
    "stochastic": (pw(A, m) * ONE, ONE, [(A * ONE, ONE)]),
    "inverse": (pw(A, m) * pw(B, m), I, [(A * B, I)]),
    "geometric": ((I - A) * total(pw(A, k), k, m), I - pw(A, m)),
    "diagonal": (pw(DiagMatrix(x), m) * pw(DiagMatrix(y), m), pw(DiagMatrix(had(x, y)), m)),
    "pushed through": (A * pw(B * A, m), pw(A * B, m) * A),
}
z = ot.Family("z", (L + 1,), n, d)
w = ot.Family("w", (L + 1,), n, n)
v = ot.Family("v", (n,), d, 1)
key = ot.Family("key", (n,), d, 1)
val = ot.Family("val", (n,), d, 1)
St = ot.Family("St", (n + 1,), d, d)
dn = ot.Family("dn", (n + 1,), 1, 1)
w2 = ot.Family("w2", (n,), 1, 1)
nm = ot.Family("nm", (n + 1,), 1, d)
vt = ot.Family("vt", (n,), 1, d)
state = [(St[t + 1], St[t] + key[t] * val[t].T), (St[0], ZeroMatrix(d, d))]
INDICES: dict[str, Claim] = {
    "gauge per layer": (
        prod(Inverse(w[l + 1]) * F[l] * w[l]),
        Inverse(w[L]) * prod(F[l]) * w[0],
    ),
    "telescope": (total(z[l + 1] - z[l]), z[L] - z[0]),
    "one more term": (up_to(v[j], j, i + 1), up_to(v[j], j, i) + v[i + 1]),
    "residual stream": (z[L], prod(I + F[l]) * z[0], [(z[l + 1], z[l] + F[l] * z[l])]),
    "unrolled": (z[L], z[0] + total(F[l] * z[l]), [(z[l + 1], z[l] + F[l] * z[l])]),
    "state": (St[n], ot.HeadSum(key[t] * val[t].T, (t, n)), state),
    "state at a position": (St[i], ot.HeadSum(key[t] * val[t].T, (t, i)), state),
    "causal readout": (
        St[i + 1] * x[0, 0],
        up_to(key[t] * val[t].T, t, i) * x[0, 0],
        state,
    ),
    "softmax normaliser": (
        dn[n],
        ot.HeadSum(w2[t], (t, n)),
        [(dn[t + 1], dn[t] + w2[t]), (dn[0], ZeroMatrix(1, 1))],
    ),
    "softmax numerator": (
        nm[n],
        ot.HeadSum(w2[t] * vt[t], (t, n)),
        [(nm[t + 1], nm[t] + w2[t] * vt[t]), (nm[0], ZeroMatrix(1, d))],
    ),
    "rotary": (
        (R[i] * v[i]).T * (R[j] * v[j]),
        v[i].T * R[j - i] * v[j],
        [(R[i].T * R[j], R[j - i])],
    ),
    "reversed": (total(F[L - 1 - l]), total(F[l])),
    "shifted": (total(w[l + 1]), total(w[l]) - w[0] + w[L]),
    "split off": (ot.HeadSum(w[l], (l, L + 1)), total(w[l]) + w[L]),
    "last factor": (ot.LayerProduct(w[l], (l, L + 1)), w[L] * ot.LayerProduct(w[l], (l, L))),
    "first factor": (
        ot.LayerProduct(w[l], (l, L + 1)),
        ot.LayerProduct(w[l + 1], (l, L)) * w[0],
    ),
    "inverse at an index": (Inverse(F[i]) * F[i], I),
    "inverses, summed": (total(Inverse(F[l]) * F[l]), L * I),
    "inverse of a product": (Inverse(F[i] * A), Inverse(A) * Inverse(F[i])),
    "inverse turned": (Inverse(F[i]).T, Inverse(F[i].T)),
    "shift": (ot.Shift(n) * ONE, ONE - ot.OneHot(0, n)),
    "shift back": (ot.Shift(n).T * ot.Shift(n), I - ot.OneHotLast(n) * ot.OneHotLast(n).T),
    "position": ((ot.OneHot(i, n).T * ot.Positions(n))[0, 0], i),
    "ALiBi": (
        soft(A + a * (ONE * ot.Positions(n).T - ot.Positions(n) * ONE.T), MASK),
        soft(A + a * ONE * ot.Positions(n).T, MASK),
    ),
    "masked sum": (
        sympy.Sum(A[i, j], (j, 0, i)),
        (had(A, MASK) * ONE)[i, 0],
    ),
    "triangle exchanged": (
        ot.HeadSum(ot.HeadSum(v[i] * v[j].T, (j, 0, i)), (i, n)),
        ot.HeadSum(ot.HeadSum(v[j + u] * v[j].T, (u, n - j)), (j, n)),
    ),
    "decay": (z[L], a**L * z[0], [(z[l + 1], a * z[l])]),
    "one pattern": (z[L], pw(A, L) * z[0], [(z[l + 1], A * z[l])]),
}
A11, A12, A21, A22 = (
    MatrixSymbol("S11", n, n),
    MatrixSymbol("S12", n, m),
    MatrixSymbol("S21", m, n),
    MatrixSymbol("S22", m, m),
)
whole = BlockMatrix([[A11, A12], [A21, A22]])
first = ot.selection((n, m), 0)
BLOCKS: dict[str, Claim] = {
    "mask": (
        ot.CausalMask(n + m),
        BlockMatrix([[MASK, ZeroMatrix(n, m)], [OneMatrix(m, n), ot.CausalMask(m)]]),
    ),
    "prefix": (
        first * soft(whole, ot.CausalMask(n + m)),
        BlockMatrix([[soft(A11, MASK), ZeroMatrix(n, m)]]),
    ),
    "first position": (ot.OneHot(0, n).T * soft(A, MASK), ot.OneHot(0, n).T),
    "identity": (Identity(n + m), BlockDiagMatrix(I, Identity(m))),
    "ones": (OneMatrix(n + m, 1), BlockMatrix([[ONE], [OneMatrix(m, 1)]])),
    "one more": (
        BlockDiagMatrix(Identity(d), Identity(1)),
        BlockDiagMatrix(Identity(1), Identity(d)),
    ),
    "triangular inverse": (
        BlockMatrix([[A11, A12], [ZeroMatrix(m, n), A22]])
        * BlockMatrix(
            [
                [A11.inverse(), -1 * A11.inverse() * A12 * A22.inverse()],
                [ZeroMatrix(m, n), A22.inverse()],
            ]
        ),
        Identity(n + m),
    ),
    "trace": (Trace(whole), Trace(A11) + Trace(A22)),
    "tensor": (
        kron(whole, W),
        BlockMatrix([[kron(A11, W), kron(A12, W)], [kron(A21, W), kron(A22, W)]]),
    ),
    "bias": (
        BlockMatrix([[X, ONE]]) * BlockMatrix([[W], [OneMatrix(1, d)]]),
        X * W + ONE * OneMatrix(1, d),
    ),
    "turned": (whole.T, BlockMatrix([[A11.T, A21.T], [A12.T, A22.T]])),
    "heads": (BlockMatrix([[A, E]]) * BlockMatrix([[B], [O]]), A * B + E * O),
    "causal product": (
        had(A * B, MASK),
        A * B,
        [(had(A, MASK), A), (had(B, MASK), B)],
    ),
    "trace of two orders": (Trace(kron(A, W)), Trace(kron(W, A))),
    "softmax of rows": (
        first * soft(whole),
        soft(BlockMatrix([[A11, A12]])),
    ),
    "relu of blocks": (
        f("relu", whole),
        BlockMatrix([[f("relu", A11), f("relu", A12)], [f("relu", A21), f("relu", A22)]]),
    ),
    "shifted scores": (
        soft(BlockMatrix([[A, E]]) + a * OneMatrix(n, n + m)),
        soft(BlockMatrix([[A, E]])),
    ),
    "norm of blocks": (
        Trace(whole.T * whole),
        Trace(A11.T * A11) + Trace(A12.T * A12) + Trace(A21.T * A21) + Trace(A22.T * A22),
    ),
}
col = ot.full_column_rank(E)
ENTAILED: dict[str, Claim] = {
    "Gram": (A * B, O_n, [(A.T * A * B, O_n)]),
    "cancelled": (A, B, [(a * A, a * B), (a * b, sympy.S.One)]),
    "divided": (A, B, [(a * A, a * B), Ne(a, 0)]),
    "full rank": (M, MatrixSymbol("M2", m, m), [(E * M, E * MatrixSymbol("M2", m, m)), *col]),
    "zero norm": (A, O_n, [(Trace(A.T * A), sympy.S.Zero)]),
    "silu": (f("silu", X), had(X, f("sigmoid", X))),
    "rest of a projection": ((I - P) * (I - P), I - P, [(P * P, P)]),
    "norm kept": (Trace((Q * X).T * Q * X), Trace(X.T * X), [(Q.T * Q, I)]),
    "scores in a gauge": (
        soft(X * W * (Y * W).T),
        soft(X * Y.T),
        [(W * W.T, Identity(d))],
    ),
    "relu scaled": (f("relu", pos * X), pos * f("relu", X)),
    "two-sided": (B * A, I, [(A * B, I)]),
    "push through": (
        Inverse(I + E * O) * E,
        E * Inverse(Identity(m) + O * E),
    ),
    "Woodbury": (
        Inverse(I + E * O),
        I - E * Inverse(Identity(m) + O * E) * O,
    ),
    "same squares": (pos * A, pos2 * A, [(pos**2, pos2**2)]),
    "relu split": (f("relu", X) - f("relu", -1 * X), X),
    "relu squares": (
        had(f("relu", X), f("relu", X)) + had(f("relu", -1 * X), f("relu", -1 * X)),
        had(X, X),
    ),
    "relu of a square": (f("relu", had(X, X)), had(X, X)),
    "sigmoid": (f("sigmoid", X) + f("sigmoid", -1 * X), OneMatrix(n, d)),
    "tanh is odd": (f("tanh", -1 * X), -1 * f("tanh", X)),
    "tanh and sigmoid": (f("tanh", X), 2 * f("sigmoid", 2 * X) - OneMatrix(n, d)),
    "gelu": (f("gelu", X) - f("gelu", -1 * X), X),
    "norm in a gauge": (
        ot.RMSNorm(X * W),
        ot.RMSNorm(X) * W,
        [(W * W.T, Identity(d))],
    ),
    "norm scaled": (ot.RMSNorm(pos * X), ot.RMSNorm(X)),
    "norm shifted": (ot.LayerNorm(X + x * OneMatrix(1, d)), ot.LayerNorm(X)),
    "norm centred": (ot.LayerNorm(X) * OneMatrix(d, 1), ZeroMatrix(n, 1)),
    "congruence": (f("g", A) * B, f("g", C) * B, [(A, C)]),
    "commuting inverse": (Inverse(A) * B, B * Inverse(A), [(A * B, B * A)]),
    "family": (total(F[l] * A), total(A * F[l]), [(F[l] * A, A * F[l])]),
    "permuted": (
        soft(P * A * P.T),
        P * soft(A) * P.T,
        ot.permutation(P),
    ),
    "orthogonal sum": (A * A, A + B, [(A * A, A), (B, O_n)]),
    "symmetric square": ((A * A).T, A * A, [(A.T, A)]),
    "projections add": (
        (P + Q) * (P + Q),
        P + Q,
        [(P * P, P), (Q * Q, Q), (P * Q, O_n), (Q * P, O_n)],
    ),
}
angle, angle2 = MatrixSymbol("theta", m, 1), MatrixSymbol("phi", m, 1)
target = MatrixSymbol("target", n, V)
sq = MatrixSymbol("Sigma", n, n)
mu = MatrixSymbol("mu", n, 1)
LANGUAGE: dict[str, Claim] = {
    "quotient": (ot.Quotient(had(X, Y), Y), X),
    "softmax is a quotient": (ot.Quotient(f("exp", A), f("exp", A) * J), soft(A)),
    "log softmax": (ot.LogSoftmax(T), f("log", soft(T))),
    "log softmax, shifted": (ot.LogSoftmax(T + x * OneMatrix(1, V)), ot.LogSoftmax(T)),
    "log-sum-exp, shifted": (ot.LogSumExp(T + x * OneMatrix(1, V)), ot.LogSumExp(T) + x),
    "exp of a sum": (f("exp", X + Y), had(f("exp", X), f("exp", Y))),
    "exp of log": (f("exp", f("log", X)), X),
    "log of exp": (f("log", f("exp", X)), X),
    "exp of minus": (had(f("exp", -1 * X), f("exp", X)), OneMatrix(n, d)),
    "softmax Jacobian": (
        ot.jacobian(soft(x.T).T, x),
        DiagMatrix(soft(x.T).T) - soft(x.T).T * soft(x.T),
    ),
    "product rule": (ot.differential(X.T * A * X, X, Y), Y.T * A * X + X.T * A * Y),
    "squared norm": (
        ot.differential(Trace(X.T * X), X, Y),
        2 * Trace(X.T * Y),
    ),
    "gradient": (ot.gradient(Trace(X.T * A * X), X), (A + A.T) * X),
    "linear layer": (ot.gradient(Trace(Y.T * X * W), W), X.T * Y),
    "rotations add": (
        ot.Rotation(angle) * ot.Rotation(angle2),
        ot.Rotation(angle + angle2),
    ),
    "rotation turned": (ot.Rotation(angle).T, ot.Rotation(-1 * angle)),
    "rotation is orthogonal": (
        ot.Rotation(angle).T * ot.Rotation(angle),
        BlockDiagMatrix(Identity(m), Identity(m)),
    ),
    "relative rotation": (
        ot.Rotation(angle).T * ot.Rotation(angle2),
        ot.Rotation(angle2 - angle),
    ),
    "root": (had(f("sqrt", X), f("sqrt", X)), X),
    "quadratic form": (
        ot.expectation(x.T * A * x, x, mu, sq),
        Trace(A * sq) * Identity(1),
        [(sq.T, sq)],
    ),
    "covariance": (
        ot.expectation((A * x - A * mu) * (A * x - A * mu).T, x, mu, sq),
        A * (sq - mu * mu.T) * A.T,
    ),
    "K-FAC": (
        kron(g * g.T, s * s.T),
        kron(g, s) * kron(g, s).T,
    ),
    "LoRA": (ot.vec_rows(X * (W + U)), kron(I, (W + U).T) * ot.vec_rows(X)),
    "cross-entropy, shifted": (
        ot.CrossEntropy(T + x * OneMatrix(1, V), target),
        ot.CrossEntropy(T, target),
        [(target * OneMatrix(V, 1), ONE)],
    ),
    "MLA absorption": (X * W * (Y * U).T, X * (W * U.T) * Y.T),
    "quotients multiply": (
        had(ot.Quotient(X, Y), ot.Quotient(Y, Z)),
        ot.Quotient(X, Z),
    ),
    "log of a product": (
        f("log", had(f("exp", X), f("exp", Y))),
        X + Y,
    ),
    "softmax rows": (soft(T) * OneMatrix(V, 1), ONE),
    "key bias": (soft(X * (Y + ONE * OneMatrix(1, d) * W).T), soft(X * Y.T)),
    "derivative of softmax": (
        ot.differential(soft(A), A, B) * ONE,
        ZeroMatrix(n, 1),
    ),
    "square of a quotient": (
        HadamardPower(ot.Quotient(X, Y), 2),
        ot.Quotient(had(X, X), had(Y, Y)),
    ),
}

TRUE: dict[str, Claim] = {
    f"{topic}: {name}": claim
    for topic, claims in (
        ("depth", DEPTH),
        ("powers", POWERS),
        ("indices", INDICES),
        ("blocks", BLOCKS),
        ("entailed", ENTAILED),
        ("language", LANGUAGE),
    )
    for name, claim in claims.items()
}

FALSE: dict[str, Claim] = {
    # depths
    "transpose keeps the order": (prod(F[l]).T, prod(F[l].T)),
    "scaled once": (prod(a * F[l]), a * prod(F[l])),
    "gauge from the other side": (
        prod(S * F[l] * S.inverse()),
        S.inverse() * prod(F[l]) * S,
    ),
    "passes none": (A * prod(F[l]), prod(F[l]) * A),
    "passes the first layer": (A * prod(F[l]), prod(F[l]) * A, [(A * F[0], F[0] * A)]),
    "order of tensors": (kron(prod(F[l]), I), prod(kron(I, F[l]))),
    "rows for columns": (prod(F[l]) * ONE, ONE, [(ONE.T * F[l], ONE.T)]),
    "all but the longest path": (prod(I + F[l]), total(paths(F[l], k), k, L)),
    "no squares": (prod(I + N[l]), I + total(N[l]), [(N[l] * N[l], O_n)]),
    "paths keep the order": (paths(F[l], p).T, paths(F[l].T, p)),
    "paths scaled like products": (paths(a * F[l], p), a**L * paths(F[l], p)),
    "two paths": (paths(F[l], 2), total(F[l]) * total(F[l])),
    "neighbours commute with one": (prod(F[l]), prod(F[l], reverse=True), [(F[l] * A, A * F[l])]),
    "inverse in the same order": (prod(F[l]) * prod(G[l]), I, [(F[l] * G[l], I)]),
    "projection on the other side": (
        P * prod(F[l]) * P,
        prod(F[l]) * P,
        [(P * F[l] * P, P * F[l]), (P * P, P)],
    ),
    "stacks in one order": (
        prod(F[l] * G[l]),
        prod(G[l]) * prod(F[l]),
        [(F[l] * A, A * F[l])],
    ),
    "symmetric product": (prod(F[l]).T, prod(F[l]), [(F[l].T, F[l])]),
    "eigenvalue once": (prod(F[l]) * x, a * x, [(F[l] * x, a * x)]),
    "three layers, reversed": (
        ot.LayerProduct(I + F3[l], (l, 3)),
        (I + F3[0]) * (I + F3[1]) * (I + F3[2]),
    ),
    "layers mixed": (prod(F[l] + G[l]), prod(F[l]) + prod(G[l])),
    "traces multiply": (Trace(prod(F[l])), Trace(prod(F[l], reverse=True))),
    "96 layers, 95 orders": (
        ot.LayerProduct(I + F96[l], (l, 96)),
        ot.HeadSum(ot.OrderSum(F96[l], (l, 96), k), (k, 96)),
    ),
    # powers
    "exponents multiply": (pw(A, m) * pw(A, p), pw(A, m * p)),
    "exponents add": (pw(pw(A, m), p), pw(A, m + p)),
    "of any product": (pw(A * B, m), pw(A, m) * pw(B, m)),
    "of a sum": (pw(A + B, m), pw(A, m) + pw(B, m)),
    "other powers": (pw(A, m) * B, B * pw(A, p), [(A * B, B * A)]),
    "odd power of an involution": (pw(A, 2 * m + 1), I, [(A * A, I)]),
    "scaled by one": (pw(a * A, m), a * pw(A, m)),
    "geometric, one too many": ((I - A) * total(pw(A, k), k, m + 1), I - pw(A, m)),
    "cyclic without trace": (pw(A * B, m), pw(B * A, m)),
    "one fewer": (pw(A, m + 1), A * pw(A, m + 2)),
    "conjugated wrongly": (pw(S * A * S.inverse(), m), pw(A, m)),
    "turned not": (pw(A.T, m), pw(A, m)),
    # indices
    "gauge at the wrong end": (
        prod(Inverse(w[l + 1]) * F[l] * w[l]),
        Inverse(w[0]) * prod(F[l]) * w[L],
    ),
    "telescope backwards": (total(z[l + 1] - z[l]), z[0] - z[L]),
    "one more term, the old one": (up_to(v[j], j, i + 1), up_to(v[j], j, i) + v[i]),
    "residual without skip": (z[L], prod(F[l]) * z[0], [(z[l + 1], z[l] + F[l] * z[l])]),
    "unrolled from one": (z[L], z[1] + total(F[l] * z[l]), [(z[l + 1], z[l] + F[l] * z[l])]),
    "state turned": (St[n], ot.HeadSum(val[t] * key[t].T, (t, n)), state),
    "state without a start": (St[n], ot.HeadSum(key[t] * val[t].T, (t, n)), state[:1]),
    "state one too far": (St[i], up_to(key[t] * val[t].T, t, i), state),
    "rotary by the sum": (
        (R[i] * v[i]).T * (R[j] * v[j]),
        v[i].T * R[i - j] * v[j],
        [(R[i].T * R[j], R[j - i])],
    ),
    "shifted, without ends": (total(w[l + 1]), total(w[l])),
    "shifted by the wrong end": (total(w[l + 1]), total(w[l]) - w[L] + w[0]),
    "last factor on the right": (
        ot.LayerProduct(w[l], (l, L + 1)),
        ot.LayerProduct(w[l], (l, L)) * w[L],
    ),
    "inverse in order": (Inverse(F[i] * A), Inverse(F[i]) * Inverse(A)),
    "inverses once": (total(Inverse(F[l]) * F[l]), I),
    "shift is orthogonal": (ot.Shift(n).T * ot.Shift(n), I),
    "shift keeps the first": (ot.Shift(n) * ONE, ONE - ot.OneHotLast(n)),
    "ALiBi on queries alone": (
        soft(A + a * (ONE * ot.Positions(n).T - ot.Positions(n) * ONE.T), MASK),
        soft(A, MASK),
    ),
    "position from one": ((ot.OneHot(i, n).T * ot.Positions(n))[0, 0], i + 1),
    "masked sum, strictly": (sympy.Sum(A[i, j], (j, 0, i)), (A * ONE)[i, 0]),
    "decay of one more": (z[L], a ** (L + 1) * z[0], [(z[l + 1], a * z[l])]),
    # blocks
    "mask from above": (
        ot.CausalMask(n + m),
        BlockMatrix([[MASK, OneMatrix(n, m)], [ZeroMatrix(m, n), ot.CausalMask(m)]]),
    ),
    "suffix alone": (
        ot.selection((n, m), 1) * soft(whole, ot.CausalMask(n + m)),
        BlockMatrix([[ZeroMatrix(m, n), soft(A22, ot.CausalMask(m))]]),
    ),
    "last position": (ot.OneHotLast(n).T * soft(A, MASK), ot.OneHotLast(n).T),
    "block transpose": (whole.T, BlockMatrix([[A11, A21.T], [A12.T, A22]])),
    "triangular inverse, no sign": (
        BlockMatrix([[A11, A12], [ZeroMatrix(m, n), A22]])
        * BlockMatrix(
            [
                [A11.inverse(), A11.inverse() * A12 * A22.inverse()],
                [ZeroMatrix(m, n), A22.inverse()],
            ]
        ),
        Identity(n + m),
    ),
    "softmax by blocks": (
        first * soft(whole),
        BlockMatrix([[soft(A11), soft(A12)]]),
    ),
    "tensor by blocks": (
        kron(W, whole),
        BlockMatrix([[kron(A11, W), kron(A12, W)], [kron(A21, W), kron(A22, W)]]),
    )[::-1],
    "causal, one factor": (had(A * B, MASK), A * B, [(had(A, MASK), A)]),
    "tensors commute": (kron(A, B), kron(B, A)),
    "trace of corners": (Trace(whole), Trace(A11)),
    # hypotheses
    "Gram of the other": (A * B, O_n, [(A * A.T * B, O_n)]),
    "cancelled a zero": (A, B, [(a * A, a * B)]),
    "full rank on the right": (
        M,
        MatrixSymbol("M2", m, m),
        [(E * M, E * MatrixSymbol("M2", m, m))],
    ),
    "zero trace": (A, O_n, [(Trace(A), sympy.S.Zero)]),
    "not orthogonal": (Trace((Q * X).T * Q * X), Trace(X.T * X)),
    "any gauge": (soft(X * W * (Y * W).T), soft(X * Y.T)),
    "relu of a negative multiple": (f("relu", a * X), a * f("relu", X)),
    "one-sided": (O * E, Identity(m), [(E * O, I)]),
    "same squares, any sign": (a * A, b * A, [(a**2, b**2)]),
    "relu merged": (f("relu", X + Y), f("relu", X) + f("relu", Y)),
    "sigmoid is odd": (f("sigmoid", -1 * X), -1 * f("sigmoid", X)),
    "tanh doubled": (f("tanh", X), 2 * f("sigmoid", X) - OneMatrix(n, d)),
    "norm in any gauge": (ot.RMSNorm(X * W), ot.RMSNorm(X) * W),
    "norm negated": (ot.RMSNorm(a * X), ot.RMSNorm(X), [Ne(a, 0)]),
    "RMS shifted": (ot.RMSNorm(X + x * OneMatrix(1, d)), ot.RMSNorm(X)),
    "projections that overlap": ((P + Q) * (P + Q), P + Q, [(P * P, P), (Q * Q, Q)]),
    "symmetric product of two": ((A * B).T, A * B, [(A.T, A), (B.T, B)]),
    "permuted rows only": (soft(P * A * P.T), P * soft(A), ot.permutation(P)),
    # functions
    "quotient upside down": (ot.Quotient(had(X, Y), Y), Y),
    "softmax scaled": (soft(2 * A), soft(A)),
    "log softmax is log": (ot.LogSoftmax(T), f("log", T)),
    "exp of a product": (f("exp", had(X, Y)), had(f("exp", X), f("exp", Y))),
    "softmax Jacobian, no cross terms": (ot.jacobian(soft(x.T).T, x), DiagMatrix(soft(x.T).T)),
    "gradient of a symmetric form": (ot.gradient(Trace(X.T * A * X), X), 2 * A * X),
    "rotations cancel": (ot.Rotation(angle) * ot.Rotation(angle2), ot.Rotation(angle - angle2)),
    "rotation turned back": (ot.Rotation(angle).T, ot.Rotation(angle)),
    "moment for covariance": (
        ot.expectation((A * x - A * mu) * (A * x - A * mu).T, x, mu, sq),
        A * sq * A.T,
    ),
    "K-FAC apart": (kron(g * g.T, s * s.T), kron(s, g) * kron(s, g).T),
    "query bias": (soft((X + ONE * OneMatrix(1, d) * W) * Y.T), soft(X * Y.T)),
    "log-sum-exp kept": (ot.LogSumExp(T + x * OneMatrix(1, V)), ot.LogSumExp(T)),
    "root of a square": (f("sqrt", had(X, X)), X),
    "columns of softmax": (OneMatrix(1, n) * soft(T), OneMatrix(1, V)),
    "absorbed turned": (X * W * (Y * U).T, X * (W * U) * Y.T),
    "silu is relu": (f("silu", X), f("relu", X)),
}
