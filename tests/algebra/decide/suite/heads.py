"""Heads of attention as Elhage et al. write them, and as code writes them: rows are positions."""

from sympy import BlockMatrix, HadamardProduct, Identity, Inverse, MatrixSymbol, Rational, Sum, sqrt

from otimes.algebra.language.linear import ConcatHeads, Family, HeadSum, StackHeads
from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    A,
    B,
    H,
    I_d,
    I_n,
    Kron,
    Ones,
    U,
    V,
    W,
    X,
    a,
    add,
    d,
    h,
    i,
    j,
    k,
    kron,
    l,
    minus,
    mul,
    n,
    one,
    one_d,
    t,
    tr,
    u,
    x,
)  # fmt: skip

HEAD = Kind("head")
true, false = HEAD.true, HEAD.false

W_O, W_O2 = MatrixSymbol("W_O", d, k), MatrixSymbol("W_O2", d, k)
W_V, W_V2 = MatrixSymbol("W_V", k, d), MatrixSymbol("W_V2", k, d)
W_Q, W_K = MatrixSymbol("W_Q", d, k), MatrixSymbol("W_K", d, k)
V_1, V_2 = MatrixSymbol("V1", d, k), MatrixSymbol("V2", d, k)
O_1, O_2 = MatrixSymbol("O1", k, d), MatrixSymbol("O2", k, d)
R, S, T = (MatrixSymbol(name, k, k) for name in "RST")
xs = MatrixSymbol("x", n * d, 1)
row, bias_of_v = MatrixSymbol("b_O", 1, d), MatrixSymbol("b_V", 1, k)
bias_of_q, bias_of_k = MatrixSymbol("b_Q", 1, k), MatrixSymbol("b_K", 1, k)
I_k = Identity(k)
pattern, W_OV = Family("A", (H,), n, n), Family("W", (H,), d, d)
value, out = Family("V", (H,), d, k), Family("O", (H,), k, d)
centre = I_d - Ones(d, d) / d

true(
    "a head in three steps",
    mul(kron(I_n, W_O), kron(A, I_k), kron(I_n, W_V), xs),
    mul(kron(A, W_O * W_V), xs),
)
true(
    "values before or after the pattern",
    Kron(A, I_k) * Kron(I_n, W_V),
    Kron(I_n, W_V) * Kron(A, I_d),
)
true(
    "virtual head", Kron(A, W_O * W_V) * Kron(B, W_O2 * W_V2), Kron(A * B, W_O * W_V * W_O2 * W_V2)
)
true("scores through the QK circuit", mul(X, W_Q, t(mul(X, W_K))), X * (W_Q * W_K.T) * X.T)
true("scores transposed", t(mul(X, W_Q, t(W_K), t(X))), X * W_K * W_Q.T * X.T)
true("gauge of queries and keys", mul(W_Q, R, t(mul(W_K, t(Inverse(R))))), W_Q * W_K.T)
true("gauge of values and output", mul(W_O, S, Inverse(S), W_V), W_O * W_V)
true(
    "two heads side by side",
    mul(BlockMatrix([[A * X * V_1, B * X * V_2]]), BlockMatrix([[O_1], [O_2]])),
    A * X * V_1 * O_1 + B * X * V_2 * O_2,
)
true(
    "concatenated heads, a symbol for their number",
    mul(ConcatHeads(X * value[h], (h, H)), StackHeads(out[h], (h, H))),
    HeadSum(X * value[h] * out[h], (h, H)),
)
true(
    "sum of heads on a row after another",
    HeadSum(Kron(pattern[h], W_OV[h]), (h, H)) * Kron(B, U),
    HeadSum(Kron(pattern[h] * B, W_OV[h] * U), (h, H)),
)
true(
    "two layers of heads",
    HeadSum(Kron(pattern[h], W_OV[h]), (h, H)) ** 2,
    HeadSum(Kron(pattern[h] * pattern[l], W_OV[h] * W_OV[l]), (h, H), (l, H)),
)
root = k ** Rational(-1, 4)
true(
    "scale of the scores split",
    mul(mul(root, X, W_Q), t(mul(root, X, W_K))),
    X * W_Q * W_K.T * X.T / sqrt(k),
)
true(
    "scale moved to the keys",
    mul(X, W_Q, t(mul(X, W_K / sqrt(k)))),
    mul(X, W_Q / sqrt(k), t(W_K), t(X)),
)
true(
    "bias of values under a uniform pattern",
    mul(Ones(n, n) / n, add(mul(X, V_1), mul(one, bias_of_v))),
    Ones(n, n) * X * V_1 / n + one * bias_of_v,
)
true(
    "biases of queries and keys, four terms",
    mul(add(X * W_Q, one * bias_of_q), t(add(X * W_K, one * bias_of_k))),
    X * W_Q * W_K.T * X.T
    + X * W_Q * bias_of_k.T * one.T
    + one * bias_of_q * W_K.T * X.T
    + one * bias_of_q * bias_of_k.T * one.T,
)
true(
    "bias as one more column",
    BlockMatrix([[X, one]]) * BlockMatrix([[V_1], [bias_of_v]]),
    X * V_1 + one * bias_of_v,
)
true("centring removes a constant", mul(minus(I_d, Ones(d, d) / d), one_d), 0 * one_d)
true("centred weights read centred rows", X * centre * centre * W_Q, X * centre * W_Q)
true("centred rows do not see a shift", (X + x * one_d.T) * centre, X * centre)
true("trace of an OV circuit", tr(W_O * W_V), tr(mul(W_V, W_O)))
true("trace of a head", tr(Kron(A, W_O * W_V)), tr(A) * tr(W_V * W_O))
true("norm of a virtual weight", tr(mul(W_O, W_V, t(mul(W_O, W_V)))), tr(W_O.T * W_O * W_V * W_V.T))
true("K-composition", mul(X, W, t(add(X, A * X * V))), X * W * X.T + X * W * V.T * X.T * A.T)
true(
    "Q- and K-composition",
    (X + A * X * V) * W * (X + A * X * V).T,
    X * W * X.T + A * X * V * W * X.T + X * W * V.T * X.T * A.T + A * X * V * W * V.T * X.T * A.T,
)
true(
    "one entry of the scores",
    mul(X, W_Q, t(W_K), t(X))[i, j],
    Sum(X[i, l] * W_Q[l, u] * W_K[h, u] * X[j, h], (l, 0, d - 1), (u, 0, k - 1), (h, 0, d - 1)),
)
true("residual stream, one column a position", t(add(X, mul(A, X, W))), X.T + W.T * X.T * A.T)
true("identity head copies", mul(kron(I_n, I_d), xs), xs)
true(
    "heads that share a pattern",
    Kron(A, W_O * W_V) + Kron(A, W_O2 * W_V2),
    Kron(A, BlockMatrix([[W_O, W_O2]]) * BlockMatrix([[W_V], [W_V2]])),
)
true("mask as an entrywise factor", HadamardProduct(A, I_n) * one, HadamardProduct(A.T, I_n) * one)

false(
    "OV circuit transposed", Kron(I_n, W_O) * Kron(A, I_k) * Kron(I_n, W_V), Kron(A, (W_O * W_V).T)
)
false("virtual head in the wrong order", Kron(A, W) * Kron(B, V), Kron(A * B, V * W))
false("scores are symmetric", X * W_Q * W_K.T * X.T, X * W_K * W_Q.T * X.T)
false("gauge with the transpose forgotten", mul(W_Q, R, t(mul(W_K, Inverse(R)))), W_Q * W_K.T)
false("gauge applied twice the same way", mul(W_Q, R, t(mul(W_K, R))), W_Q * W_K.T)
false(
    "bias through a pattern that need not sum to one",
    A * (X * V_1 + one * bias_of_v),
    A * X * V_1 + one * bias_of_v,
)
false(
    "scale taken twice",
    (X * W_Q / sqrt(k)) * (X * W_K / sqrt(k)).T,
    X * W_Q * W_K.T * X.T / sqrt(k),
)
false(
    "sum of heads squared without the cross terms",
    HeadSum(Kron(pattern[h], W_OV[h]), (h, H)) ** 2,
    HeadSum(Kron(pattern[h] ** 2, W_OV[h] ** 2), (h, H)),
)
false(
    "outputs of two heads crossed",
    BlockMatrix([[X * V_1, X * V_2]]) * BlockMatrix([[O_2], [O_1]]),
    X * V_1 * O_1 + X * V_2 * O_2,
)
false("one pattern for two heads", Kron(A, W) + Kron(B, V), Kron(A + B, W + V) / 2)
false(
    "K-composition without the transpose of the pattern",
    X * W * (A * X * V).T,
    X * W * V.T * X.T * A,
)
false("centring over the wrong number", (I_d - Ones(d, d) / n) * one_d, 0 * one_d)
false("trace of a head is a sum", tr(Kron(A, W)), d * tr(A) + n * tr(W))
false("pattern forgotten", A * X * W + X, X * W + X)
false(
    "bias broadcast over columns",
    BlockMatrix([[X, one]]) * BlockMatrix([[V_1], [bias_of_v]]),
    X * V_1 + a * one * bias_of_v,
)
