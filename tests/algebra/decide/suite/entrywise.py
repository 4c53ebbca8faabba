"""Entrywise products, diagonals, and matrices of ones."""

from sympy import HadamardPower, HadamardProduct, Identity, Matrix, MatrixSymbol
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf

from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    P2,
    A,
    B,
    C,
    I_n,
    Kron,
    Ones,
    P,
    Q,
    W,
    Y,
    a,
    add,
    had,
    m,
    mul,
    n,
    one,
    one_m,
    r,
    t,
    tr,
    x,
    y,
    z,
)  # fmt: skip

HADAMARD = Kind("Hadamard")
true, false = HADAMARD.true, HADAMARD.false
P3 = MatrixSymbol("P3", n, m)
K = MatrixSymbol("K", 2, 2)

true("commutes", had(P, P2), HadamardProduct(P2, P))
true("nested", had(P, had(P2, P3)), had(had(P3, P), P2))
true("over a sum", had(P, add(P2, P3)), had(P, P2) + had(P, P3))
true("transpose", t(had(P, P2)), had(t(P2), t(P)))
true("ones are its unit", had(P, Ones(n, m)), P)
true("scalars", had(mul(a, P), mul(2, P2)), 2 * a * HadamardProduct(P, P2))
true("identity keeps the diagonal", had(A, I_n), DiagMatrix(DiagonalOf(A)))
true("diagonal matrix of a square one", DiagonalMatrix(A), had(I_n, A))
true("outer products", had(mul(x, t(r)), mul(y, t(one_m))), HadamardProduct(x, y) * r.T)
true("diagonal on the left scales rows", DiagMatrix(x) * P, had(P, x * one_m.T))
true("diagonal on both sides", mul(DiagMatrix(x), P, DiagMatrix(r)), had(P, mul(x, t(r))))
true("diagonals multiply entrywise", DiagMatrix(x) * DiagMatrix(y), DiagMatrix(had(x, y)))
true("diagonal on a column", mul(DiagMatrix(x), y), had(y, x))
true("diagonal of ones", DiagMatrix(one), I_n)
true("trace of a product is the sum of entries", tr(t(P) * P2), tr(one.T * had(P, P2) * one_m))
true(
    "quadratic form of an entrywise product",
    t(x) * had(P, P2) * r,
    tr(mul(DiagMatrix(x), P, DiagMatrix(r), t(P2))) * Identity(1),
)
true("row sums of an entrywise product", had(P, P2) * one_m, DiagonalOf(mul(P, t(P2))))
true("diagonal of a product", DiagonalOf(P * Y), had(P, t(Y)) * one_m)
true("diagonal scaling moves through", mul(DiagMatrix(x), had(P, P2)), had(DiagMatrix(x) * P, P2))
true("trace moves one factor over", tr(mul(had(A, B), C)), tr(A * had(t(B), C)))
true("elementwise power", HadamardPower(P, 3), had(P, P, P))
true(
    "elementwise square of a sum",
    HadamardPower(P + P2, 2),
    HadamardPower(P, 2) + 2 * had(P, P2) + HadamardPower(P2, 2),
)
true(
    "elementwise power of a Kronecker product",
    HadamardPower(Kron(A, W), 2),
    Kron(HadamardPower(A, 2), HadamardPower(W, 2)),
)
true(
    "elementwise power of an outer product",
    HadamardPower(x * r.T, 2),
    HadamardPower(x, 2) * HadamardPower(r, 2).T,
)
true("trace of a diagonal", tr(DiagMatrix(x)), tr(x * one.T))
true("diagonal part twice", had(had(A, I_n), I_n), DiagonalMatrix(A))
true("diagonal parts commute", mul(had(A, I_n), had(B, I_n)), had(B, I_n) * had(A, I_n))
true(
    "explicit mask",
    had(K, Matrix([[1, 0], [1, 1]])),
    K - Matrix([[1], [0]]) * Matrix([[1, 0]]) * K * Matrix([[0], [1]]) * Matrix([[0, 1]]),
)
true("entrywise with a rank one", had(P, mul(x, t(r))) * one_m, had(x, P * r))
true("square of a mask of a column", HadamardPower(DiagMatrix(x), 2), DiagMatrix(x) ** 2)

false("is the matrix product", had(A, B), A * B)
false("product of sums entry by entry", mul(had(A, B), C), had(A * C, B * C))
false("distributes over a product", had(A, mul(B, C)), mul(had(A, B), had(A, C)))
false("identity is its unit", had(A, I_n), A)
false("trace factors", tr(had(A, B)), tr(A) * tr(B))
false("trace is the trace of the product", tr(had(A, B)), tr(A * B))
false("sum of entries with the wrong side turned", tr(one.T * had(A, B) * one), tr(A * B))
false("diagonal on the right scales rows", had(A, x * one.T), A * DiagMatrix(x))
false("diagonal commutes with everything", DiagMatrix(x) * A, A * DiagMatrix(x))
false("elementwise square is the square", HadamardPower(A, 2), A**2)
false(
    "elementwise square of a sum without the middle",
    HadamardPower(P + P2, 2),
    HadamardPower(P, 2) + HadamardPower(P2, 2),
)
false(
    "elementwise square of a product",
    HadamardPower(P * Q, 2),
    HadamardPower(P, 2) * HadamardPower(Q, 2),
)
false(
    "diagonal of a product is the product of diagonals",
    DiagonalOf(A * B),
    had(DiagonalOf(A), DiagonalOf(B)),
)
false("outer product of entrywise products", had(x, y) * z.T, x * had(y, z).T)
false(
    "quadratic form of an entrywise product splits",
    t(x) * had(A, B) * x,
    (x.T * A * x) * (x.T * B * x),
)
false("diagonal of a matrix loses nothing", DiagMatrix(DiagonalOf(A)), A)
