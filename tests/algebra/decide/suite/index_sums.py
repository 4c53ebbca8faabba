"""Entries, sums over full ranges of indices, and deltas."""

from sympy import Dummy, HadamardProduct, Integer, KroneckerDelta, Matrix, MatrixSymbol, Sum, Symbol
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

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
    R,
    a,
    add,
    i,
    j,
    l,
    m,
    mul,
    n,
    one,
    one_m,
    p,
    r,
    t,
    tr,
    u,
    x,
    y,
)

INDEX_SUM = Kind("index sum")
true, false = INDEX_SUM.true, INDEX_SUM.false


def over(body, *ranges):
    """Σ body over full ranges, the pairs (index, size)."""
    return Sum(body, *[(index, 0, size - 1) for index, size in ranges])


first, second, third = Dummy("i", integer=True), Dummy("i", integer=True), Symbol("kappa")
K = MatrixSymbol("K", 2, 3)

true("entry of a product", mul(P, Q)[i, j], over(P[i, l] * Q[l, j], (l, m)))
true(
    "entry of a product of three",
    mul(P, Q, R)[i, j],
    over(P[i, l] * Q[l, u] * R[u, j], (l, m), (u, p)),
)
true("trace", over(A[i, i], (i, n)), tr(A))
true("trace of a product", over(A[i, j] * B[j, i], (i, n), (j, n)), tr(A * B))
true("trace of three", over(A[i, j] * B[j, l] * C[l, i], (i, n), (j, n), (l, n)), tr(B * C * A))
true("Frobenius product", over(P[i, j] * P2[i, j], (i, n), (j, m)), tr(P.T * P2))
true("sum of all entries", over(P[i, j], (j, m), (i, n)), tr(one.T * P * one_m))
true("entry of a transpose", MatrixElement(t(P), j, i), P[i, j])
true(
    "entry of an entrywise product", MatrixElement(HadamardProduct(P, P2), i, j), P[i, j] * P2[i, j]
)
true("entry of a sum", MatrixElement(add(P, mul(2, P2)), i, j), P[i, j] + 2 * P2[i, j])
true("row sum", MatrixElement(P * one_m, i, 0), over(P[i, j], (j, m)))
true(
    "order of summation",
    over(over(P[i, j] * x[i, 0], (i, n)), (j, m)),
    over(P[i, j] * x[i, 0], (j, m), (i, n)),
)
true("renamed index", over(A[i, i] * a, (i, n)), a * over(A[third, third], (third, n)))
true(
    "two dummies of one name",
    over(A[first, second] * B[first, second], (first, n), (second, n)),
    tr(A * B.T),
)
true("factors that do not see the index", over(A[j, l] * B[i, i], (i, n)), A[j, l] * tr(B))
true(
    "product of two sums",
    over(A[i, i], (i, n)) * over(B[i, i], (i, n)),
    over(A[i, i] * B[j, j], (i, n), (j, n)),
)
true("sum of a sum", over(A[i, j] + B[i, j], (i, n)), over(A[i, j], (i, n)) + over(B[l, j], (l, n)))
true("delta selects", over(I_n[i, j] * A[j, l], (j, n)), A[i, l])
true("delta on both indices", over(I_n[i, j] * A[i, j], (i, n), (j, n)), tr(A))
true("delta without a range", over(KroneckerDelta(i, j) * P[j, l], (j, n)), P[i, l])
true(
    "two deltas",
    over(KroneckerDelta(i, j) * KroneckerDelta(j, l) * A[l, u], (j, n), (l, n)),
    A[i, u],
)
true("deltas close a trace", over(KroneckerDelta(i, j) * KroneckerDelta(j, i), (i, n), (j, n)), n)
true("delta is symmetric", over(KroneckerDelta(j, i) * x[j, 0], (j, n)), x[i, 0])
true("constant summand", over(Integer(1), (i, n), (j, m)), n * m)
true("constant over a bracket", over(A[i, j] + a, (i, n), (j, n)), tr(A * Ones(n, n)) + a * n**2)
true("quadratic form", over(x[i, 0] * A[i, j] * x[j, 0], (i, n), (j, n)), tr(A * x * x.T))
true(
    "quadratic form as a product",
    mul(t(x), A, y)[0, 0],
    over(A[i, j] * x[i, 0] * y[j, 0], (i, n), (j, n)),
)
true("entry of a column", mul(A, x)[i, 0], over(A[i, j] * x[j, 0], (j, n)))
true("entry of an outer product", MatrixElement(mul(x, t(r)), i, j), x[i, 0] * r[j, 0])
true("diagonal entry", MatrixElement(DiagonalOf(A), i, 0), A[i, i])
true("scaled entry", mul(DiagMatrix(x), P)[i, j], x[i, 0] * P[i, j])
true(
    "partly summed product",
    over(P[i, l] * mul(Q, R)[l, j], (l, m)),
    over(mul(P, Q)[i, u] * R[u, j], (u, p)),
)
true(
    "square of a sum of entries",
    over(x[i, 0], (i, n)) ** 2,
    over(x[i, 0] * x[j, 0], (i, n), (j, n)),
)
true(
    "pairs that differ",
    over((1 - KroneckerDelta(i, j)) * A[i, j], (i, n), (j, n)),
    over(A[i, j], (i, n), (j, n)) - tr(A),
)
true(
    "symmetrised double sum",
    over((A[i, j] + A[j, i]) * B[i, j], (i, n), (j, n)),
    tr(A * B) + tr(A * B.T),
)
true(
    "sum of squared differences",
    over((x[i, 0] - x[j, 0]) ** 2, (i, n), (j, n)),
    2 * n * tr(x * x.T) - 2 * over(x[i, 0], (i, n)) ** 2,
)
true("sum over numbers written out", over(K[i, j], (i, 2), (j, 3)), sum(K))
true(
    "sum over numbers, a product",
    MatrixElement(mul(K, t(K)), 0, 1),
    sum(K[0, j] * K[1, j] for j in range(3)),
)
true(
    "an entry of an explicit matrix",
    Matrix([[1, 2], [3, 4]]) * K,
    Matrix(
        [[K[0, j] + 2 * K[1, j] for j in range(3)], [3 * K[0, j] + 4 * K[1, j] for j in range(3)]]
    ),
)
true("entry times a matrix", over(x[i, 0] * y[i, 0], (i, n)) * A, tr(x * y.T) * A)
true("mean of squares", over(x[i, 0] ** 2, (i, n)) / n, tr(x.T * x) / n)
true("commutator entry", (A * B - B * A)[i, j], over(A[i, l] * B[l, j] - B[i, l] * A[l, j], (l, n)))

false("row and column swapped", A[i, j], A[j, i])
false(
    "trace of a product is a sum of products of diagonals",
    over(A[i, i] * B[i, i], (i, n)),
    tr(A * B),
)
false(
    "Frobenius product with an index turned", over(A[i, j] * B[j, i], (i, n), (j, n)), tr(A.T * B)
)
false("entry of a product taken entrywise", mul(A, B)[i, j], A[i, j] * B[i, j])
false("inner index not summed with its partner", mul(A, B)[i, j], over(A[i, l] * B[j, l], (l, n)))
false(
    "product of sums is the sum of products",
    over(A[i, i], (i, n)) * over(B[i, i], (i, n)),
    over(A[i, i] * B[i, i], (i, n)),
)
false("delta selects the other index", over(I_n[i, j] * A[j, l], (j, n)), A[l, i])
false("trace of a delta", over(KroneckerDelta(i, j) * KroneckerDelta(j, i), (i, n), (j, n)), n**2)
false("ones instead of deltas", over(A[i, j], (i, n), (j, n)), tr(A))
false("constant counted once", over(A[i, i] + a, (i, n)), tr(A) + a)
false("row sums and column sums", over(A[i, j], (j, n)), over(A[j, i], (j, n)))
false(
    "three indices turned", over(A[i, j] * B[j, l] * C[l, i], (i, n), (j, n), (l, n)), tr(A * C * B)
)
false("square of a sum is the sum of squares", over(x[i, 0], (i, n)) ** 2, tr(x * x.T))
false(
    "sum of squared differences without a size",
    over((x[i, 0] - x[j, 0]) ** 2, (i, n), (j, n)),
    2 * tr(x * x.T) - 2 * over(x[i, 0], (i, n)) ** 2,
)
false("one index fixed", over(A[i, 0], (i, n)), tr(A))
false(
    "partly summed the wrong way",
    over(A[i, l] * mul(B, C)[l, j], (l, n)),
    over(mul(B, A)[i, l] * C[l, j], (l, n)),
)
false("diagonal of a product", mul(A, B)[i, i], A[i, i] * B[i, i])
false("antisymmetric double sum", over((A[i, j] - A[j, i]) * B[i, j], (i, n), (j, n)), Integer(0))

true("a delta makes indices equal", KroneckerDelta(i, j) * A[i, j], KroneckerDelta(i, j) * A[i, i])
true("a delta at a number", over(KroneckerDelta(i, 0) * x[i, 0], (i, n)), x[0, 0])
true(
    "deltas in nested sums",
    over(over(KroneckerDelta(i, j) * A[i, l] * B[j, l], (i, n)), (j, n)),
    over(A[i, l] * B[i, l], (i, n)),
)
true(
    "sum of squares of deviations",
    over((x[i, 0] - over(x[j, 0], (j, n)) / n) ** 2, (i, n)),
    over(x[i, 0] ** 2, (i, n)) - over(x[j, 0], (j, n)) ** 2 / n,
)
true("entry of a third power", (A**3)[i, j], over(A[i, l] * A[l, u] * A[u, j], (l, n), (u, n)))
true(
    "entry of a Kronecker product at numbers",
    MatrixElement(Kron(MatrixSymbol("K", 2, 2), MatrixSymbol("L", 2, 2)), 1, 2),
    MatrixSymbol("K", 2, 2)[0, 1] * MatrixSymbol("L", 2, 2)[1, 0],
)
false("entries at two places", A[0, 0], A[1, 1])
false(
    "deviations without the mean",
    over((x[i, 0] - over(x[j, 0], (j, n))) ** 2, (i, n)),
    over(x[i, 0] ** 2, (i, n)) - over(x[j, 0], (j, n)) ** 2,
)
