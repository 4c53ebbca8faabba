"""True identities of twelve kinds, as textbooks and papers on transformers state them.

`IDENTITIES` maps a kind to pairs or triples (lhs, rhs, hypotheses). Some are built with evaluation,
as a newcomer writes SymPy, and some as stated.
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
    KroneckerDelta,
    KroneckerProduct,
    MatPow,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Sum,
    Trace,
    Transpose,
    ZeroMatrix,
    symbols,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra.language import (
    ConcatHeads,
    Family,
    HeadSum,
    LayerProduct,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)

n, m, d, k, p, H, L, K = symbols("n m d k p H L K", integer=True, positive=True)
h, g, i, j, q, r, s, l = symbols("h g i j q r s l", integer=True)  # noqa: E741
a, b, c = symbols("a b c")
A, B, C, D, E = (MatrixSymbol(name, n, n) for name in "ABCDE")
W, V, U = (MatrixSymbol(name, d, d) for name in "WVU")
R, S = MatrixSymbol("R", n, m), MatrixSymbol("S", m, p)
T = MatrixSymbol("T", p, n)
X, Y = MatrixSymbol("X", n, d), MatrixSymbol("Y", n, d)
x, y, z = (MatrixSymbol(name, n, 1) for name in "xyz")
W_Q, W_K, W_V = (MatrixSymbol(name, d, k) for name in ("W_Q", "W_K", "W_V"))
W_O = MatrixSymbol("W_O", k, d)
P, Q = Family("P", (H,), n, n), Family("Q", (H,), n, n)
O, F = Family("O", (H,), k, d), Family("F", (H,), d, k)  # noqa: E741
G = Family("G", (H,), d, d)
N = Family("N", (L,), n, n)
P2, Q2, G2 = Family("P2", (2,), n, n), Family("Q2", (2,), n, n), Family("G2", (2,), d, d)
P3 = Family("P3", (3,), n, n)
A2, B2, C2, D2 = (MatrixSymbol(f"{name}2", 2, 2) for name in "ABCD")
A1, B1 = MatrixSymbol("A1", 1, 1), MatrixSymbol("B1", 1, 1)
Z2 = MatrixSymbol("Z2", n, 2)
u2, v2 = MatrixSymbol("u2", 2, 1), MatrixSymbol("v2", 2, 1)
one, In, Id = OneMatrix(n, 1), Identity(n), Identity(d)


def inv(e: Any) -> Any:
    return Inverse(e)


def minus(e: Any) -> Any:
    return matmul(-1, e)


def commutator(e: Any, f: Any) -> Any:
    return matadd(matmul(e, f), minus(matmul(f, e)))


def total(f: Any, *indices: Any) -> Any:
    return Sum(f, *[(index, 0, count - 1) for index, count in indices])


def dlt(e: Any, f: Any, size: Any) -> Any:
    return KroneckerDelta(e, f, (0, size - 1))


KRON = [
    (matmul(kron(A, W), kron(B, V)), kron(matmul(A, B), matmul(W, V))),
    (KroneckerProduct(A, W) * KroneckerProduct(B, V), KroneckerProduct(A * B, W * V)),
    (kron(matadd(A, B), W), matadd(kron(A, W), kron(B, W))),
    (Transpose(kron(A, X)), kron(A.T, X.T)),
    (kron(kron(A, W), C), kron(A, kron(W, C))),
    (Trace(kron(A, W)), Trace(A) * Trace(W)),
    (kron(inv(A), inv(W)), inv(kron(A, W))),
    (vec_cols(matmul(A, X, W)), matmul(kron(W.T, A), vec_cols(X))),
    (vec_rows(matmul(A, X, W)), matmul(kron(A, W.T), vec_rows(X))),
    (matmul(kron(A, Id), kron(In, W)), matmul(kron(In, W), kron(A, Id))),
    (
        matmul(vec_cols(A).T, kron(B.T, C), vec_cols(D)),
        matmul(Trace(matmul(A.T, C, D, B)), Identity(1)),
    ),
    (matmul(vec_cols(A).T, vec_cols(B)), matmul(Trace(A.T * B), Identity(1))),
    (kron(x, y.T), matmul(x, y.T)),
    (kron(In, Id), Identity(n * d)),
    (MatPow(kron(A, W), 2), kron(A**2, W**2)),
    (kron(a * A, b * W), a * b * kron(A, W)),
    (
        matmul(matadd(kron(A, Id), kron(In, W)), kron(x, MatrixSymbol("w", d, 1))),
        matadd(kron(A * x, MatrixSymbol("w", d, 1)), kron(x, matmul(W, MatrixSymbol("w", d, 1)))),
    ),
    (Trace(matmul(kron(A, W), kron(B, V))), Trace(A * B) * Trace(W * V)),
]
HEADS = [
    (
        matmul(ConcatHeads(matmul(P[h], X, F[h]), (h, H)), StackHeads(O[h], (h, H))),
        HeadSum(matmul(P[h], X, F[h], O[h]), (h, H)),
    ),
    (matmul(HeadSum(P[h], (h, H)), X), HeadSum(matmul(P[h], X), (h, H))),
    (Transpose(HeadSum(kron(P[h], G[h]), (h, H))), HeadSum(kron(P[h].T, G[h].T), (h, H))),
    (Trace(HeadSum(P[h], (h, H))), Trace(HeadSum(P[g].T, (g, H)))),
    (HeadSum(P3[h], (h, 3)), P3[0] + P3[1] + P3[2]),
    (
        HeadSum(matmul(P2[h], X, G2[h]), (h, 2)),
        matadd(matmul(P2[0], X, G2[0]), matmul(P2[1], X, G2[1])),
    ),
    (
        matmul(HeadSum(P2[h], (h, 2)), HeadSum(Q2[h], (h, 2))),
        matadd(*[matmul(P2[u], Q2[v]) for u in range(2) for v in range(2)]),
    ),
    (
        matmul(kron(Identity(n), W_O.T), kron(A, Identity(k)), kron(Identity(n), W_V.T)),
        kron(A, matmul(W_O.T, W_V.T)),
    ),
    (
        HeadSum(matmul(matadd(X, Y), W_Q, W_K.T, matadd(X, Y).T), (h, H)),
        matmul(H, matadd(X, Y), W_Q, W_K.T, matadd(X, Y).T),
    ),
    (
        matmul(ConcatHeads(P2[h], (h, 2)), StackHeads(Q2[h], (h, 2))),
        matadd(matmul(P2[0], Q2[0]), matmul(P2[1], Q2[1])),
    ),
    (HeadSum(OneHot(h, H) * OneHot(h, H).T, (h, H)), Identity(H)),
    (
        ConcatHeads(P[h], (h, H)),
        HeadSum(kron(OneHot(h, H).T, P[h]), (h, H)),
    ),
    (
        matmul(matmul(X, W_Q), Transpose(matmul(Y, W_K))),
        matmul(X, matmul(W_Q, W_K.T), Y.T),
    ),
    (
        kron(HeadSum(P[h], (h, H)), HeadSum(G[h], (h, H))),
        HeadSum(kron(P[h], G[g]), (h, H), (g, H)),
    ),
]
PATHS = [
    (
        matmul(matadd(In, A), matadd(In, B)),
        matadd(In, A, B, matmul(A, B)),
    ),
    ((In + A) * (In + B) * (In + C), sympy.expand((In + A) * (In + B) * (In + C))),
    (
        matmul(matadd(kron(In, Id), kron(A, W)), matadd(kron(In, Id), kron(B, V))),
        matadd(kron(In, Id), kron(A, W), kron(B, V), kron(matmul(A, B), matmul(W, V))),
    ),
    (
        LayerProduct(N[l], (l, 3)).xreplace({L: sympy.Integer(3)}),
        matmul(*[Family("N", (3,), n, n)[t] for t in (2, 1, 0)]),
    ),
    (
        LayerProduct(matadd(In, Family("N", (2,), n, n)[l]), (l, 2)),
        matadd(
            In,
            Family("N", (2,), n, n)[0],
            Family("N", (2,), n, n)[1],
            matmul(Family("N", (2,), n, n)[1], Family("N", (2,), n, n)[0]),
        ),
    ),
    (
        LayerProduct(matadd(In, Family("N", (2,), n, n)[l]), (l, 2), reverse=True),
        matmul(matadd(In, Family("N", (2,), n, n)[0]), matadd(In, Family("N", (2,), n, n)[1])),
    ),
    (MatPow(matadd(In, A), 3), matadd(In, 3 * A, 3 * A**2, A**3)),
    (
        matmul(matadd(In, HeadSum(P[h], (h, H))), matadd(In, HeadSum(Q[h], (h, H)))),
        matadd(
            In,
            HeadSum(P[h], (h, H)),
            HeadSum(Q[h], (h, H)),
            HeadSum(matmul(P[h], Q[g]), (h, H), (g, H)),
        ),
    ),
    (matadd(matmul(matadd(A, B), C), minus(matmul(B, C))), matmul(A, C)),
    (
        matmul(X, matadd(Id, matmul(W_V, W_O))),
        matadd(X, matmul(matmul(X, W_V), W_O)),
    ),
    (matmul(matadd(In, A), matadd(In, minus(A))), matadd(In, minus(A**2))),
    (
        matadd(A**2, minus(B**2)),
        matadd(matmul(matadd(A, B), matadd(A, minus(B))), commutator(A, B)),
    ),
    (
        matadd(
            commutator(A, commutator(B, C)),
            commutator(B, commutator(C, A)),
            commutator(C, commutator(A, B)),
        ),
        ZeroMatrix(n, n),
    ),
    (commutator(A, matmul(B, C)), matadd(matmul(commutator(A, B), C), matmul(B, commutator(A, C)))),
]
TRANSPOSES = [
    (Transpose(matmul(A, B, C)), matmul(C.T, B.T, A.T)),
    (Transpose(matadd(A, 2 * B)), matadd(A.T, 2 * B.T)),
    (Transpose(matmul(X.T, A, X)), matmul(X.T, A.T, X)),
    (Transpose(matadd(A, A.T)), matadd(A, A.T)),
    (Transpose(MatPow(A, 3)), MatPow(A.T, 3)),
    (Transpose(inv(matmul(A, B))), matmul(inv(A.T), inv(B.T))),
    (
        matadd(
            matmul(Rational(1, 2), matadd(A, A.T)), matmul(Rational(1, 2), matadd(A, minus(A.T)))
        ),
        A,
    ),
    (Transpose(matmul(x, y.T)), matmul(y, x.T)),
    (Transpose(BlockMatrix([[A, X], [Y.T, W]])), BlockMatrix([[A.T, Y], [X.T, W.T]])),
    (Transpose(BlockDiagMatrix(A, W)), BlockDiagMatrix(A.T, W.T)),
    (Transpose(ConcatHeads(P[h], (h, H))), StackHeads(P[h].T, (h, H))),
    (matmul(x.T, A, y), matmul(y.T, A.T, x)),
    (Transpose(vec_rows(X)), Transpose(vec_cols(X.T))),
    (
        Transpose(LayerProduct(N[l], (l, 2))).xreplace({L: sympy.Integer(2)}),
        matmul(Family("N", (2,), n, n)[0].T, Family("N", (2,), n, n)[1].T),
    ),
]
TRACES = [
    (Trace(A * B), Trace(B * A)),
    (Trace(A * B * C), Trace(C * A * B)),
    (Trace(A + 2 * B), Trace(A) + 2 * Trace(B)),
    (Trace(matmul(A, B.T)), Trace(matmul(B, A.T))),
    (Trace(commutator(A, B)), sympy.S.Zero),
    (Trace(matmul(x, y.T)), Trace(matmul(y.T, x))),
    (Trace(In), n),
    (Trace(matmul(X.T, A, X)), Trace(matmul(A, X, X.T))),
    (Trace(matmul(commutator(A, B), C)), Trace(matmul(A, commutator(B, C)))),
    (Trace(matmul(inv(A), B, A)), Trace(B)),
    (Trace(HadamardProduct(A, B.T) * C), Trace(matmul(A, HadamardProduct(B, C)))),
    (Trace(matmul(A, OneMatrix(n, n))), Trace(matmul(OneMatrix(1, n), A, OneMatrix(n, 1)))),
    (Trace(matmul(DiagMatrix(x), A)), Trace(matmul(x.T, DiagonalOf(A)))),
    (Trace(BlockMatrix([[A, X], [Y.T, W]])), Trace(A) + Trace(W)),
    (Trace(matadd(A, B)) ** 2, Trace(A) ** 2 + 2 * Trace(A) * Trace(B) + Trace(B) ** 2),
]
HADAMARD = [
    (HadamardProduct(A, B), HadamardProduct(B, A)),
    (HadamardProduct(A, OneMatrix(n, n)), A),
    (HadamardProduct(A, matadd(B, C)), matadd(HadamardProduct(A, B), HadamardProduct(A, C))),
    (
        matmul(x.T, HadamardProduct(A, B), y),
        matmul(Trace(matmul(DiagMatrix(x), A, DiagMatrix(y), B.T)), Identity(1)),
    ),
    (HadamardProduct(A, matmul(x, y.T)), matmul(DiagMatrix(x), A, DiagMatrix(y))),
    (
        HadamardProduct(matmul(x, y.T), matmul(z, x.T)),
        matmul(HadamardProduct(x, z), HadamardProduct(y, x).T),
    ),
    (matmul(one.T, HadamardProduct(A, B), one), matmul(Trace(matmul(A, B.T)), Identity(1))),
    (DiagonalOf(matmul(A, B.T)), matmul(HadamardProduct(A, B), one)),
    (HadamardProduct(kron(A, W), kron(B, V)), kron(HadamardProduct(A, B), HadamardProduct(W, V))),
    (matmul(DiagMatrix(x), y), HadamardProduct(x, y)),
    (matmul(DiagMatrix(x), DiagMatrix(y)), DiagMatrix(HadamardProduct(x, y))),
    (HadamardPower(A, 2), HadamardProduct(A, A)),
    (DiagonalMatrix(A), HadamardProduct(A, In)),
    (matmul(DiagMatrix(x), one), x),
    (matmul(DiagMatrix(x), HadamardProduct(A, B)), HadamardProduct(matmul(DiagMatrix(x), A), B)),
    (HadamardProduct(In, matmul(A, DiagMatrix(x))), matmul(HadamardProduct(In, A), DiagMatrix(x))),
    (vec_rows(HadamardProduct(X, Y)), HadamardProduct(vec_rows(X), vec_rows(Y))),
    (Trace(HadamardProduct(A, In)), Trace(A)),
]
BLOCKS = [
    (
        matmul(BlockMatrix([[A, B]]), BlockMatrix([[C], [D]])),
        matadd(matmul(A, C), matmul(B, D)),
    ),
    (
        matmul(BlockMatrix([[A, X], [Y.T, W]]), BlockMatrix([[B], [X.T]])),
        BlockMatrix(
            [[matadd(matmul(A, B), matmul(X, X.T))], [matadd(matmul(Y.T, B), matmul(W, X.T))]]
        ),
    ),
    (matmul(BlockDiagMatrix(A, W), BlockDiagMatrix(B, V)), BlockDiagMatrix(A * B, W * V)),
    (matadd(BlockDiagMatrix(A, W), BlockDiagMatrix(B, V)), BlockDiagMatrix(A + B, W + V)),
    (matmul(A, BlockMatrix([[B, X]])), BlockMatrix([[matmul(A, B), matmul(A, X)]])),
    (kron(BlockMatrix([[A, B]]), W), BlockMatrix([[kron(A, W), kron(B, W)]])),
    (Trace(BlockDiagMatrix(A, W)), Trace(A) + Trace(W)),
    (
        matmul(BlockDiagMatrix(A, W), BlockMatrix([[X], [U]])),
        BlockMatrix([[matmul(A, X)], [matmul(W, U)]]),
    ),
    (BlockDiagMatrix(In, Id), Identity(n + d)),
    (
        matmul(
            BlockMatrix([[In, X], [ZeroMatrix(d, n), Id]]),
            BlockMatrix([[In, minus(X)], [ZeroMatrix(d, n), Id]]),
        ),
        Identity(n + d),
    ),
    (
        Trace(matmul(BlockMatrix([[A, B]]), BlockMatrix([[A, B]]).T)),
        Trace(A * A.T) + Trace(B * B.T),
    ),
    (
        matmul(BlockDiagMatrix(A, W), BlockDiagMatrix(A, W).T),
        BlockDiagMatrix(matmul(A, A.T), matmul(W, W.T)),
    ),
    (MatPow(BlockDiagMatrix(A, W), 2), BlockDiagMatrix(A**2, W**2)),
    (
        MatPow(BlockMatrix([[A, B], [ZeroMatrix(n, n), A]]), 2),
        BlockMatrix([[A**2, A * B + B * A], [ZeroMatrix(n, n), A**2]]),
    ),
    (
        HadamardProduct(BlockMatrix([[A, B]]), BlockMatrix([[C, D]])),
        BlockMatrix([[HadamardProduct(A, C), HadamardProduct(B, D)]]),
    ),
    (matmul(a, BlockMatrix([[A, B]])), BlockMatrix([[a * A, a * B]])),
]
HALF = Rational(1, 2)
PROJECTIONS = [
    (matmul(matadd(In, minus(A)), matadd(In, minus(A))), matadd(In, minus(A)), [(A * A, A)]),
    (matmul(A, matadd(In, minus(A))), ZeroMatrix(n, n), [(A**2, A)]),
    (MatPow(matadd(2 * A, minus(In)), 2), In, [(matmul(A, A), A)]),
    (MatPow(A, 4), A, [(A**2, A)]),
    (
        matmul(matmul(X, inv(X.T * X), X.T), matmul(X, inv(X.T * X), X.T)),
        matmul(X, inv(X.T * X), X.T),
    ),
    (matmul(X, inv(X.T * X), X.T, X), X),
    (Trace(matmul(X, inv(matmul(X.T, X)), X.T)), d),
    (MatPow(matmul(1 / n, OneMatrix(n, n)), 2), matmul(1 / n, OneMatrix(n, n))),
    (
        MatPow(matadd(In, matmul(-1 / n, OneMatrix(n, n))), 2),
        matadd(In, matmul(-1 / n, OneMatrix(n, n))),
    ),
    (matmul(matadd(In, matmul(-1 / n, one, one.T)), one), ZeroMatrix(n, 1)),
    (Trace(matadd(In, matmul(-1 / n, OneMatrix(n, n)))), n - 1),
    (MatPow(matmul(A, B), 2), matmul(A, B), [(A**2, A), (B**2, B), (A * B, B * A)]),
    (
        matmul(matadd(A, B), matadd(A, B)),
        matadd(A, B),
        [(A**2, A), (B**2, B), (A * B, ZeroMatrix(n, n)), (B * A, ZeroMatrix(n, n))],
    ),
    (kron(A, W) ** 2, kron(A, W), [(A * A, A), (W * W, W)]),
]
INVERSES = [
    (matmul(inv(A), A, X), X),
    (inv(A * B), inv(B) * inv(A)),
    (matmul(inv(matadd(In, matmul(A, B))), A), matmul(A, inv(matadd(In, matmul(B, A))))),
    (
        matmul(inv(matadd(In, matmul(R, R.T))), R),
        matmul(R, inv(matadd(Identity(m), matmul(R.T, R)))),
    ),
    (
        inv(matadd(A, matmul(R, R.T))),
        matadd(
            inv(A),
            minus(matmul(inv(A), R, inv(matadd(Identity(m), matmul(R.T, inv(A), R))), R.T, inv(A))),
        ),
    ),
    (matadd(inv(A), minus(inv(B))), matmul(inv(A), matadd(B, minus(A)), inv(B))),
    (matadd(inv(A), inv(B)), matmul(inv(A), matadd(A, B), inv(B))),
    (inv(kron(A, W)), kron(inv(A), inv(W))),
    (matmul(A, inv(matadd(A, B))), matadd(In, minus(matmul(B, inv(matadd(A, B)))))),
    (inv(matadd(In, A)), matadd(In, minus(matmul(A, inv(matadd(In, A)))))),
    (matmul(A, inv(matadd(In, A))), matmul(inv(matadd(In, A)), A)),
    (inv(matadd(inv(A), inv(B))), matmul(A, inv(matadd(A, B)), B)),
    (matmul(inv(A), inv(B)), inv(B * A)),
    (inv(2 * A), HALF * inv(A)),
    (Trace(matmul(A, B, inv(A))), Trace(B)),
    (inv(inv(A)), A),
    (matmul(A, MatPow(matmul(inv(A), B, A), 2), inv(A)), MatPow(B, 2)),
]
HYPOTHESES = [
    (
        matmul(A, matadd(X, matmul(one, MatrixSymbol("b", 1, d)))),
        matadd(matmul(A, X), matmul(one, MatrixSymbol("b", 1, d))),
        [(A * one, one)],
    ),
    (matmul(A, B, one), one, [(A * one, one), (B * one, one)]),
    (matmul(A, B, C), matmul(C, A, B), [(A * C, C * A), (B * C, C * B)]),
    (Transpose(matmul(A, A)), matmul(A, A), [(A.T, A)]),
    (matmul(A.T, A), In, [(A * A.T, In)]),
    (matmul(B, A), In, [(A * B, In)]),
    (inv(A), A.T, [(A.T * A, In)]),
    (MatPow(matadd(A, B), 2), matadd(A**2, 2 * A * B, B**2), [(A * B, B * A)]),
    (Trace(matmul(A, B)), Trace(B), [(A * B, B)]),
    (A, ZeroMatrix(n, n), [(A.T * A, ZeroMatrix(n, n))]),
    (B, C, [(A * B, In), (C * A, In)]),
    (matmul(inv(A), B), matmul(B, inv(A)), [(A * B, B * A)]),
    (matmul(A, B), matmul(B, A), [(A, matadd(matmul(c, In), matmul(2, B)))]),
    (MatPow(A, 3), ZeroMatrix(n, n), [(A**2, ZeroMatrix(n, n))]),
    (matmul(matadd(In, A), matadd(In, minus(A), A**2)), In, [(A**3, ZeroMatrix(n, n))]),
    (matmul(kron(A, W), kron(A, W).T), Identity(n * d), [(A * A.T, In), (W * W.T, Id)]),
    (Trace(matmul(A.T, B, A)), Trace(B), [(matmul(A, A.T), In)]),
    (matmul(A, x), matmul(a**2, x), [(B * x, a * x), (A, B * B)]),
    (matmul(x.T, y), ZeroMatrix(1, 1), [(A * x, ZeroMatrix(n, 1)), (matmul(A.T, z), y)]),
    (matmul(P[h], one, one.T), matmul(one, one.T), [(P[h] * one, one)]),
    (HeadSum(matmul(P[h], one), (h, H)), H * one, [(P[h] * one, one)]),
    (matmul(A, C), ZeroMatrix(n, n), [(matadd(A, B), C), (matmul(C, C), matmul(B, C))]),
]
INDICES = [
    (MatrixElement(A * B, i, q), total(A[i, j] * B[j, q], (j, n))),
    (MatrixElement(matmul(A, B, C), i, r), total(A[i, j] * B[j, q] * C[q, r], (j, n), (q, n))),
    (Trace(A), total(A[i, i], (i, n))),
    (Trace(A * B), total(A[i, j] * B[j, i], (i, n), (j, n))),
    (total(A[i, j], (i, n), (j, n)), total(A[i, j], (j, n), (i, n))),
    (total(A[i, j] * x[j, 0], (j, n)), MatrixElement(A * x, i, 0)),
    (total(dlt(i, j, n) * x[j, 0], (j, n)), x[i, 0]),
    (total(dlt(i, j, n) * A[j, q], (j, n)), A[i, q]),
    (total(dlt(i, i, n), (i, n)), n),
    (total(A[i, j] + B[i, j], (j, n)), total(A[i, j], (j, n)) + total(B[i, j], (j, n))),
    (total(a * A[i, j], (j, n)), a * total(A[i, q], (q, n))),
    (total(x[i, 0], (i, n)) * total(y[j, 0], (j, n)), total(x[i, 0] * y[j, 0], (i, n), (j, n))),
    (total(x[i, 0], (i, n)) ** 2, total(x[i, 0] * x[j, 0], (i, n), (j, n))),
    (MatrixElement(A.T, i, j), A[j, i]),
    (MatrixElement(HadamardProduct(A, B), i, j), A[i, j] * B[i, j]),
    (MatrixElement(In, i, j), dlt(i, j, n)),
    (total(A[i, j] * B[i, j], (i, n), (j, n)), Trace(matmul(A.T, B))),
    (
        MatrixElement(matmul(A, matadd(B, C)), i, q),
        total(A[i, j] * B[j, q], (j, n)) + total(A[i, j] * C[j, q], (j, n)),
    ),
    (MatrixElement(HeadSum(P[h], (h, H)), i, j), total(P[h][i, j], (h, H))),
    (
        total(total(A[i, j] * B[j, q], (j, n)) * C[q, r], (q, n)),
        MatrixElement(matmul(A, B, C), i, r),
    ),
    (total(A[i, j] * dlt(j, q, n) * dlt(i, r, n), (i, n), (j, n)), A[r, q]),
    (total(a, (i, n)), n * a),
    (
        total(matmul(OneMatrix(1, n), A, OneMatrix(n, 1))[0, 0], (i, m)),
        m * total(A[i, j], (i, n), (j, n)),
    ),
    (MatrixElement(matmul(DiagMatrix(x), A), i, j), x[i, 0] * A[i, j]),
    (MatrixElement(A**2, i, j), total(A[i, q] * A[q, j], (q, n))),
    ((A * B)[i, j], total(B[r, j] * A[i, r], (r, n))),
    (MatrixElement(matmul(x, y.T), i, j), x[i, 0] * y[j, 0]),
    (total(A[i, j] * x[j, 0] * x[i, 0], (i, n), (j, n)), MatrixElement(matmul(x.T, A, x), 0, 0)),
]
tr2 = Trace(A2)
FIXED = [
    (
        matadd(A2**2, matmul(-tr2, A2), matmul(HALF * (tr2**2 - Trace(A2**2)), Identity(2))),
        ZeroMatrix(2, 2),
    ),
    (A2 * A2, matadd(matmul(tr2, A2), matmul(HALF * (Trace(A2 * A2) - tr2**2), Identity(2)))),
    (matmul(A1, B1), matmul(B1, A1)),
    (matmul(Trace(A1), B1), matmul(A1, B1)),
    (commutator(matmul(commutator(A2, B2), commutator(A2, B2)), C2), ZeroMatrix(2, 2)),
    (
        matmul(Z2, A2, A2),
        matmul(Z2, matadd(matmul(tr2, A2), matmul(HALF * (Trace(A2**2) - tr2**2), Identity(2)))),
    ),
    (Trace(A2), A2[0, 0] + A2[1, 1]),
    (MatrixElement(A2 * B2, 0, 1), A2[0, 0] * B2[0, 1] + A2[0, 1] * B2[1, 1]),
    (Trace(A2**3), Rational(3, 2) * tr2 * Trace(A2**2) - HALF * tr2**3),
    (
        matmul(
            sympy.ImmutableDenseMatrix([[0, 1], [1, 0]]),
            sympy.ImmutableDenseMatrix([[0, 1], [1, 0]]),
        ),
        Identity(2),
    ),
    (
        matmul(
            sympy.ImmutableDenseMatrix([[1, a], [0, 1]]),
            sympy.ImmutableDenseMatrix([[1, b], [0, 1]]),
        ),
        sympy.ImmutableDenseMatrix([[1, a + b], [0, 1]]),
    ),
    (Trace(matmul(commutator(A2, B2), commutator(A2, B2), commutator(A2, B2))), sympy.S.Zero),
    (matmul(u2.T, v2), matmul(u2[0, 0] * v2[0, 0] + u2[1, 0] * v2[1, 0], Identity(1))),
    (HadamardProduct(A1, B1), matmul(A1, B1)),
    (kron(A1, A), matmul(Trace(A1), A)),
    (
        matadd(
            A2,
            minus(
                matmul(
                    sympy.ImmutableDenseMatrix([[0, 1], [-1, 0]]),
                    A2.T,
                    sympy.ImmutableDenseMatrix([[0, 1], [-1, 0]]),
                )
            ),
        ),
        matmul(tr2, Identity(2)),
    ),
]

IDENTITIES: dict[str, list[Any]] = {
    "kron": KRON,
    "head": HEADS,
    "path": PATHS,
    "transpose": TRANSPOSES,
    "trace": TRACES,
    "hadamard": HADAMARD,
    "block": BLOCKS,
    "projection": PROJECTIONS,
    "inverse": INVERSES,
    "hypotheses": HYPOTHESES,
    "index": INDICES,
    "fixed": FIXED,
}
