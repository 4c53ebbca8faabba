"""Products of layers and the paths that they are the sum of."""

from sympy import Identity, MatrixSymbol

from otimes.algebra.language.linear import Family, HeadSum
from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    A,
    B,
    C,
    D,
    H,
    I_d,
    I_n,
    Kron,
    L,
    Ones,
    V,
    W,
    X,
    a,
    add,
    commutator,
    d,
    h,
    kron,
    l,
    m,
    minus,
    mul,
    n,
    t,
    tr,
)  # fmt: skip

PATH = Kind("path")
true, false = PATH.true, PATH.false

skip = Identity(n * d)
H_1, H_2, H_3 = (MatrixSymbol(f"H{layer}", n * d, n * d) for layer in (1, 2, 3))
W_E, W_U = MatrixSymbol("W_E", m, d), MatrixSymbol("W_U", d, m)
tokens = MatrixSymbol("T", n, m)
A1, A2, A3, A4 = (MatrixSymbol(f"A{j}", n, n) for j in (1, 2, 3, 4))
W1, W2, W3, W4 = (MatrixSymbol(f"W{j}", d, d) for j in (1, 2, 3, 4))
E_1, E_2 = Kron(A1, W1), Kron(A2, W2)
pattern, W_OV = Family("A", (H,), n, n), Family("W", (H,), d, d)
later, W_later = Family("B", (L,), n, n), Family("V", (L,), d, d)
stream = MatrixSymbol("x", n * d, 1)

true("two layers", (skip + H_2) * (skip + H_1), skip + H_1 + H_2 + H_2 * H_1)
true(
    "three layers",
    mul(add(skip, H_3), add(skip, H_2), add(skip, H_1)),
    skip + H_1 + H_2 + H_3 + H_2 * H_1 + H_3 * H_1 + H_3 * H_2 + H_3 * H_2 * H_1,
)
true(
    "two layers of one head",
    (skip + E_2) * (skip + E_1),
    add(kron(I_n, I_d), E_1, E_2, Kron(A2 * A1, W2 * W1)),
)
true(
    "one layer of two heads, then one",
    (skip + Kron(A3, W3)) * (skip + E_1 + E_2),
    skip + E_1 + E_2 + Kron(A3, W3) + Kron(A3 * A1, W3 * W1) + Kron(A3 * A2, W3 * W2),
)
true(
    "two layers of two heads",
    (skip + Kron(A3, W3) + Kron(A4, W4)) * (skip + E_1 + E_2),
    skip
    + E_1
    + E_2
    + Kron(A3, W3)
    + Kron(A4, W4)
    + Kron(A3 * A1, W3 * W1)
    + Kron(A3 * A2, W3 * W2)
    + Kron(A4 * A1, W4 * W1)
    + Kron(A4 * A2, W4 * W2),
)
true(
    "direct path and one head, to logits",
    Kron(I_n, W_U.T) * (skip + E_1) * Kron(I_n, W_E.T),
    Kron(I_n, W_U.T * W_E.T) + Kron(A1, W_U.T * W1 * W_E.T),
)
true(
    "logits of a model in rows",
    mul(add(mul(tokens, W_E), mul(A, tokens, W_E, W)), W_U),
    tokens * W_E * W_U + A * tokens * W_E * W * W_U,
)
true(
    "skip of rows, two layers",
    (X + A1 * X * W1) + A2 * (X + A1 * X * W1) * W2,
    X + A1 * X * W1 + A2 * X * W2 + A2 * A1 * X * W1 * W2,
)
true("what the second layer adds", (skip + H_2) * (skip + H_1) - (skip + H_1), H_2 + H_2 * H_1)
true("only what composes", (skip + H_2) * (skip + H_1) - (skip + H_1 + H_2), H_2 * H_1)
true(
    "order does not matter where heads do not meet",
    commutator(skip + Kron(A, I_d), skip + Kron(I_n, W)),
    0 * skip,
)
true("commutator of two layers", commutator(skip + H_2, skip + H_1), commutator(H_2, H_1))
true("a layer and its mirror", (skip + H_1) * (skip - H_1), minus(skip, H_1**2))
true("telescope", mul(minus(I_n, A), add(I_n, A, A**2, A**3)), I_n - A**4)
true("the same layer three times", (I_n + A) ** 3, I_n + 3 * A + 3 * A**2 + A**3)
true("scaled skip", (a * skip + H_2) * (a * skip + H_1), a**2 * skip + a * (H_1 + H_2) + H_2 * H_1)
true(
    "layers of sums of heads, symbols for their numbers",
    (skip + HeadSum(Kron(later[l], W_later[l]), (l, L)))
    * (skip + HeadSum(Kron(pattern[h], W_OV[h]), (h, H))),
    skip
    + HeadSum(Kron(pattern[h], W_OV[h]), (h, H))
    + HeadSum(Kron(later[l], W_later[l]), (l, L))
    + HeadSum(Kron(later[l] * pattern[h], W_later[l] * W_OV[h]), (l, L), (h, H)),
)
true(
    "transpose reads the layers backwards",
    t(mul(add(skip, H_2), add(skip, H_1))),
    (skip + H_1.T) * (skip + H_2.T),
)
true(
    "trace of two layers",
    tr(mul(add(skip, H_2), add(skip, H_1))),
    n * d + tr(H_1) + tr(H_2) + tr(H_1 * H_2),
)
true(
    "trace over paths of heads",
    tr((skip + E_2) * (skip + E_1)),
    n * d + tr(A1) * tr(W1) + tr(A2) * tr(W2) + tr(A1 * A2) * tr(W1 * W2),
)
true(
    "uniform patterns compose to one",
    Kron(Ones(n, n) / n, W2) * Kron(Ones(n, n) / n, W1),
    Kron(Ones(n, n) / n, W2 * W1),
)
true(
    "an ablated head",
    (skip + H_2) * (skip + H_1) - (skip + 0 * H_2) * (skip + H_1),
    H_2 * (skip + H_1),
)
true(
    "stream applied layer by layer",
    mul(add(skip, H_2), add(stream, mul(H_1, stream))),
    stream + H_1 * stream + H_2 * stream + H_2 * H_1 * stream,
)
true(
    "paths through a position-wise layer",
    (skip + Kron(I_n, V)) * (skip + Kron(A, W)),
    skip + Kron(I_n, V) + Kron(A, W + V * W),
)
true(
    "binomial in commuting factors",
    (Kron(A, I_d) + Kron(I_n, W)) ** 3,
    Kron(A**3, I_d) + 3 * Kron(A**2, W) + 3 * Kron(A, W**2) + Kron(I_n, W**3),
)
true("difference of two products", A * B - C * D, (A - C) * B + C * (B - D))

false("two layers without the virtual head", (skip + H_2) * (skip + H_1), skip + H_1 + H_2)
false("virtual head reversed", (skip + H_2) * (skip + H_1), skip + H_1 + H_2 + H_1 * H_2)
false("skip lost", (skip + E_2) * (skip + E_1), E_1 + E_2 + Kron(A2 * A1, W2 * W1))
false(
    "one path too few in three layers",
    (skip + H_3) * (skip + H_2) * (skip + H_1),
    skip + H_1 + H_2 + H_3 + H_2 * H_1 + H_3 * H_2 + H_3 * H_2 * H_1,
)
false("layers commute", (skip + H_2) * (skip + H_1), (skip + H_1) * (skip + H_2))
false(
    "weights of two heads crossed",
    (skip + E_2) * (skip + E_1),
    skip + E_1 + E_2 + Kron(A2 * A1, W1 * W2),
)
false(
    "rows read as columns",
    X + A1 * X * W1 + A2 * (X + A1 * X * W1) * W2,
    X + A1 * X * W1 + A2 * X * W2 + A2 * A1 * X * W2 * W1,
)
false("square counted once", (I_n + A) ** 2, I_n + A + A**2)
false("square of a sum of layers", (H_1 + H_2) ** 2, H_1**2 + 2 * H_1 * H_2 + H_2**2)
false("difference of squares", (H_1 - H_2) * (H_1 + H_2), H_1**2 - H_2**2)
false(
    "transpose without reversing",
    t(mul(add(skip, H_2), add(skip, H_1))),
    (skip + H_2.T) * (skip + H_1.T),
)
false(
    "trace of the skip is one size",
    tr((skip + H_2) * (skip + H_1)),
    n + tr(H_1) + tr(H_2) + tr(H_1 * H_2),
)
false("telescope one short", (I_n - A) * (I_n + A + A**2), I_n - A**2)
false("ablating is subtracting", (skip + H_2) * (skip + H_1) - H_2, skip + H_1)
false(
    "uniform patterns without their scale",
    Kron(Ones(n, n), W2) * Kron(Ones(n, n), W1),
    Kron(Ones(n, n), W2 * W1),
)
