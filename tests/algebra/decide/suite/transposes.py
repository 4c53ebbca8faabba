"""Transposes and traces: what turns, what is cyclic, and what only looks so."""

from sympy import BlockMatrix, Identity, Integer, Matrix, MatrixSymbol, Rational

from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    P2,
    A,
    B,
    C,
    D,
    I_d,
    I_n,
    Kron,
    Ones,
    P,
    Q,
    R,
    Y,
    a,
    add,
    b,
    commutator,
    d,
    kron,
    m,
    minus,
    mul,
    n,
    one,
    one_m,
    r,
    t,
    tr,
    x,
    y,
)  # fmt: skip

TRANSPOSE = Kind("transpose")
true, false = TRANSPOSE.true, TRANSPOSE.false
K = MatrixSymbol("K", 2, 2)

true("product", t(mul(P, Q)), Q.T * P.T)
true("product of four", t(mul(P, Q, R, t(R))), R * R.T * Q.T * P.T)
true("sum with scalars", t(add(mul(a, P), mul(b, P2))), a * P.T + b * P2.T)
true("twice", t(t(mul(P, Q))), P * Q)
true("Gram matrix", t(mul(t(P), P)), P.T * P)
true("sandwich", t(mul(P, t(P), A, P)), P.T * A.T * P * P.T)
true("power", t(mul(A, A, A)), A.T**3)
true("symmetric part", t(add(A, t(A)) / 2), (A + A.T) / 2)
true("antisymmetric part", t(minus(A, t(A))), A.T - A)
true("commutator of transposes", t(commutator(A, B)), commutator(B.T, A.T))
true("symmetric and antisymmetric parts", mul(2, A), add(A, t(A), minus(A, t(A))))
true("bilinear form of one entry", mul(t(x), A, y), mul(t(y), t(A), x))
true("outer product", t(mul(x, t(r))), r * x.T)
true("ones", t(Ones(n, m)), one_m * one.T)
true("of a product of brackets", t(mul(add(A, B), minus(C, D))), (C.T - D.T) * (A.T + B.T))
true("quadratic form sees the symmetric part", mul(t(x), A, x), x.T * (A + A.T) * x / 2)
true(
    "product of symmetric parts, turned", t(mul(add(A, t(A)), add(B, t(B)))), (B + B.T) * (A + A.T)
)
true("brackets within brackets", t(mul(P, t(mul(t(R), t(Q))))), t(R) * t(Q) * P.T)
true(
    "anticommutator of symmetric parts is symmetric",
    t(add(mul(add(A, t(A)), B + B.T), mul(B + B.T, add(A, t(A))))),
    (A + A.T) * (B + B.T) + (B + B.T) * (A + A.T),
)
true("explicit factor", t(mul(Matrix([[1, 2], [3, 4]]), K)), K.T * Matrix([[1, 3], [2, 4]]))

false("product without reversing", t(mul(A, B)), A.T * B.T)
false("rectangular chain, one transpose dropped", t(mul(A, t(B), C)), C.T * B.T * A.T)
false("Gram matrices of rows and columns", A.T * A, A * A.T)
false("every matrix is symmetric", A + B, A.T + B)
false("every product of symmetric matrices is", t(mul(A + A.T, B + B.T)), (A + A.T) * (B + B.T))
false("bilinear form turned without the transpose", x.T * A * y, y.T * A * x)
false("antisymmetric part keeps its sign", t(minus(A, t(A))), A - A.T)
false("commutator keeps its order", t(commutator(A, B)), commutator(A.T, B.T))
false("half forgotten", add(A, t(A)), A)
false("middle factor of three not turned", t(mul(A, B, C)), C.T * B * A.T)
false("square of a symmetric part", (A + A.T) ** 2, A**2 + 2 * A * A.T + A.T**2)
false("quadratic form sees the antisymmetric part", x.T * (A - A.T) * y, 0 * x.T * y)

TRACE = Kind("trace")
true, false = TRACE.true, TRACE.false

true("cyclic in three", tr(P * Y * A), tr(mul(Y, A, P)))
true("cyclic in four", tr(A * B * C * D), tr(mul(C, D, A, B)))
true("cyclic around a rectangle", tr(mul(P, Q, t(Q), t(P))), tr(Q * Q.T * P.T * P))
true("linear", tr(add(mul(a, A), mul(-3, B))), a * tr(A) - 3 * tr(B))
true("transpose", tr(t(mul(A, B))), tr(A * B))
true("of a Gram matrix is a norm", tr(mul(t(P), P)), tr(P * P.T))
true("commutator", tr(commutator(A, B)), Integer(0))
true("commutator times one of its factors", tr(mul(commutator(A, B), A)), Integer(0))
true(
    "Jacobi",
    commutator(A, commutator(B, C))
    + commutator(B, commutator(C, A))
    + commutator(C, commutator(A, B)),
    0 * A,
)
true("invariant form", tr(commutator(A, B) * C), tr(A * commutator(B, C)))
true("of an outer product", tr(mul(x, t(y))), tr(y * x.T))
true("quadratic form", mul(t(x), A, x), tr(A * x * x.T) * Identity(1))
true("identity", tr(I_n), n)
true("identity of a sum of sizes", tr(Identity(n + d)), tr(I_n) + tr(I_d))
true("identity of a product of sizes", tr(kron(I_n, I_d)), n * d)
true("ones", tr(Ones(n, n)), n)
true("sum of all entries", tr(A * Ones(n, n)), tr(one.T * A * one))
true("traces as factors of a matrix", mul(tr(A), B, tr(C)), tr(A) * tr(C) * B)
true("trace of a trace times a matrix", tr(mul(tr(A), B)), tr(A) * tr(B))
true("trace of trace times identity", tr(tr(A) * I_n / n), tr(A))
true("traceless part", tr(minus(A, tr(A) * I_n / n)), Integer(0))
true("norm of the traceless part", tr((A - tr(A) * I_n / n) ** 2), tr(A**2) - tr(A) ** 2 / n)
true("norm of a sum", tr((P + P2).T * (P + P2)), tr(P.T * P) + 2 * tr(P.T * P2) + tr(P2.T * P2))
true("symmetric against antisymmetric", tr((A + A.T) * (B - B.T)), Integer(0))
true(
    "parallelogram",
    tr((A + B) * (A + B).T) + tr((A - B) * (A - B).T),
    2 * tr(A * A.T) + 2 * tr(B * B.T),
)
true(
    "polarisation",
    Rational(1, 4) * (tr((A + B) * (A + B).T) - tr((A - B) * (A - B).T)),
    tr(A * B.T),
)
true("of a block diagonal", tr(BlockMatrix([[A, P], [Y, P.T * P]])), tr(A) + tr(P * P.T))
true("cube of a sum", tr((A + B) ** 3), tr(A**3) + 3 * tr(A**2 * B) + 3 * tr(A * B**2) + tr(B**3))
true(
    "second elementary function of a sum",
    tr(A + B) ** 2 - tr((A + B) ** 2),
    tr(A) ** 2 - tr(A**2) + tr(B) ** 2 - tr(B**2) + 2 * tr(A) * tr(B) - 2 * tr(A * B),
)
true("of a Kronecker square", tr(Kron(A, A) * Kron(B, B)), tr(A * B) ** 2)

false("turned in three", tr(A * B * C), tr(A * C * B))
false("multiplicative", tr(A * B), tr(A) * tr(B))
false("square of a trace", tr(A**2), tr(A) ** 2)
false("transpose of one factor", tr(A * B), tr(A * B.T))
false("transpose in three", tr(A * B * C), tr(A.T * B.T * C.T))
false("scalar identity has trace one", tr(tr(A) * I_n), tr(A))
false("commutator against a third", tr(commutator(A, B) * C), Integer(0))
false("norm of a sum without the cross terms", tr((A + B).T * (A + B)), tr(A.T * A) + tr(B.T * B))
false("ones have a square as trace", tr(Ones(n, n)), n**2)
false("cyclic shift is any rearrangement", tr(A * B * A.T * C), tr(A * A.T * B * C))
false("identity of a product of sizes is a sum", tr(Identity(n * d)), n + d)
false("powers", tr(A * B * A * B), tr(A**2 * B**2))
false("traceless without dividing", tr(A - tr(A) * I_n), Integer(0))
false("sum of all entries is the trace", tr(A * Ones(n, n)), n * tr(A))
false(
    "cube of a sum with a rearranged word",
    tr((A + B) ** 4),
    tr(A**4) + 4 * tr(A**3 * B) + 6 * tr(A**2 * B**2) + 4 * tr(A * B**3) + tr(B**4),
)
