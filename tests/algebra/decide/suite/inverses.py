"""Inverses: of products, transposes and sums, Woodbury, push-through and Schur complements."""

from sympy import BlockDiagMatrix, BlockMatrix, Identity, Inverse, MatPow, MatrixSymbol

from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    A,
    B,
    C,
    D,
    E,
    I_d,
    I_m,
    I_n,
    Kron,
    P,
    W,
    Y,
    Zero,
    a,
    b,
    d,
    kron,
    m,
    minus,
    mul,
    n,
    t,
    tr,
    x,
    y,
)  # fmt: skip

INVERSE = Kind("inverse")
true, false = INVERSE.true, INVERSE.false
inv = Inverse
K = MatrixSymbol("K", m, m)
O_n = Zero(n, n)

true("cancels in the middle", mul(P.T, A, inv(A), P), P.T * P)
true("product", inv(mul(A, B)), mul(inv(B), inv(A)))
true("product of three", inv(mul(A, B, C)), mul(inv(C), inv(B), inv(A)))
true("transpose", inv(t(A)), t(inv(A)))
true("twice", inv(inv(mul(A, B))), A * B)
true("scalar", inv(mul(2, A)), inv(A) / 2)
true("power of minus two", MatPow(A, -2), mul(inv(A), inv(A)))
true("powers add", mul(A**3, MatPow(A, -2)), A)
true("Kronecker product", inv(kron(A, W)), kron(inv(A), inv(W)))
true("Kronecker product solves", mul(kron(inv(A), inv(W)), kron(A, W)), Identity(n * d))
true("one side of a Kronecker product", mul(kron(inv(A), I_d), kron(A, W)), Kron(I_n, W))
true("similar matrices have one trace", tr(mul(inv(A), B, A)), tr(B))
true("similar products", mul(inv(A), B, A, inv(A), C, A), inv(A) * B * C * A)
true("power of a similar matrix", (mul(inv(A), B, A)) ** 3, mul(inv(A), B**3, A))
true("resolvent", inv(A) - inv(B), mul(inv(A), B - A, inv(B)))
true("second resolvent form", inv(A) - inv(B), mul(inv(B), minus(B, A), inv(A)))
true("push-through", mul(inv(I_n + P * Y), P), mul(P, inv(I_m + Y * P)))
true("push-through with a square", mul(A, inv(I_n + A)), mul(inv(I_n + A), A))
true("one minus the resolvent", mul(inv(I_n + A), A), I_n - inv(I_n + A))
true("Woodbury with identities", inv(I_n + P * Y), I_n - mul(P, inv(I_m + Y * P), Y))
true(
    "Woodbury", inv(A + P * K * Y), inv(A) - inv(A) * P * inv(inv(K) + Y * inv(A) * P) * Y * inv(A)
)
true(
    "Woodbury without the middle",
    inv(A + P * Y),
    inv(A) - inv(A) * P * inv(I_m + Y * inv(A) * P) * Y * inv(A),
)
true(
    "Sherman-Morrison",
    inv(A + x * y.T),
    inv(A) - inv(A) * x * inv(Identity(1) + y.T * inv(A) * x) * y.T * inv(A),
)
true(
    "ridge regression in two forms",
    mul(inv(P.T * P + a * I_m), P.T),
    mul(P.T, inv(P * P.T + a * I_n)),
)
true("sum of inverses", inv(A) + inv(B), mul(inv(A), A + B, inv(B)))
true("parallel sum", inv(inv(A) + inv(B)), mul(A, inv(A + B), B))
true("parallel sum is symmetric in its parts", mul(A, inv(A + B), B), mul(B, inv(A + B), A))
true("Cayley transform commutes", mul(I_n - A, inv(I_n + A)), mul(inv(I_n + A), I_n - A))
true("block diagonal", inv(BlockDiagMatrix(A, E)), BlockDiagMatrix(inv(A), inv(E)))
true(
    "triangular blocks",
    mul(
        BlockMatrix([[A, P], [Zero(m, n), E]]),
        BlockMatrix([[inv(A), -inv(A) * P * inv(E)], [Zero(m, n), inv(E)]]),
    ),
    Identity(n + m),
)
true(
    "inverse of triangular blocks",
    inv(BlockMatrix([[A, P], [Zero(m, n), E]])),
    BlockMatrix([[inv(A), -inv(A) * P * inv(E)], [Zero(m, n), inv(E)]]),
)
true(
    "block elimination",
    mul(BlockMatrix([[I_n, Zero(n, m)], [-Y * inv(A), I_m]]), BlockMatrix([[A, P], [Y, E]])),
    BlockMatrix([[A, P], [Zero(m, n), E - Y * inv(A) * P]]),
)
true(
    "factors of a block matrix",
    BlockMatrix([[A, P], [Y, E]]),
    BlockMatrix([[I_n, Zero(n, m)], [Y * inv(A), I_m]])
    * BlockDiagMatrix(A, E - Y * inv(A) * P)
    * BlockMatrix([[I_n, inv(A) * P], [Zero(m, n), I_m]]),
)
true(
    "a Schur complement inverts",
    mul(
        BlockMatrix([[A, P], [Y, E]]),
        BlockMatrix([[-inv(A) * P * inv(E - Y * inv(A) * P)], [inv(E - Y * inv(A) * P)]]),
    ),
    BlockMatrix([[Zero(n, m)], [I_m]]),
)
true("whitening", mul(inv(A), mul(A, t(A)), t(inv(A))), I_n)
true("gauge in the middle of three", mul(A, B, inv(B), C, inv(C), D), A * D)
true("trace of a ratio", tr(mul(A, inv(B))), tr(mul(inv(B), A)))
true("inverse of a commuting product", inv(mul(A, A, B)), inv(B) * MatPow(A, -2))
true("scalar and its inverse", mul(a, inv(A), b * A), a * b * I_n)
true("commutes with what its matrix commutes with", mul(inv(A), B), mul(B, inv(A)), (A * B, B * A))
true("inverse of a symmetric matrix", t(inv(A)), inv(A), (A.T, A))
true("inverse of an orthogonal matrix", inv(A), A.T, (A.T * A, I_n))
true("inverse of an involution", inv(A), A, (A * A, I_n))
true("inverse of a unipotent matrix", inv(I_n - A), I_n + A, (A**2, O_n))
true(
    "Cayley transform is orthogonal",
    mul(t(mul(I_n - A, inv(I_n + A))), mul(I_n - A, inv(I_n + A))),
    I_n,
    (A.T, -A),
)

false("product without reversing", inv(mul(A, B)), mul(inv(A), inv(B)))
false("sum", inv(A + B), inv(A) + inv(B))
false("trace of an inverse", mul(tr(A), tr(inv(A))), n)
false("transpose is the inverse", inv(A), t(A))
false("scalar moves out as it is", inv(mul(2, A)), mul(2, inv(A)))
false("similar matrices are equal", mul(inv(A), B, A), B)
false("inverse on the other side", mul(inv(A), B), mul(B, inv(A)))
false("Kronecker product with only one inverse", inv(kron(A, W)), kron(inv(A), W))
false("Kronecker product swapped", inv(kron(A, B)), kron(inv(B), inv(A)))
false("resolvent with the wrong sign", inv(A) - inv(B), mul(inv(A), A - B, inv(B)))
false("Woodbury with the wrong sign", inv(I_n + P * Y), I_n + mul(P, inv(I_m + Y * P), Y))
false("Woodbury without the middle inverse", inv(I_n + P * Y), I_n - P * Y)
false("push-through on the same side", mul(inv(I_n + A * B), A), mul(A, inv(I_n + A * B)))
false("power of minus two is minus twice", MatPow(A, -2), -2 * inv(A))
false("gauge with a transposed inverse", mul(A, B, t(inv(B)), C), A * C)
false("geometric series cut", inv(I_n - A), I_n + A + A**2)
false(
    "block inverse block by block",
    inv(BlockMatrix([[A, B], [Zero(n, n), C]])),
    BlockMatrix([[inv(A), inv(B)], [Zero(n, n), inv(C)]]),
)
false(
    "triangular blocks without a sign",
    mul(
        BlockMatrix([[A, P], [Zero(m, n), E]]),
        BlockMatrix([[inv(A), inv(A) * P * inv(E)], [Zero(m, n), inv(E)]]),
    ),
    Identity(n + m),
)
false(
    "Schur complement with the wrong corner",
    BlockMatrix([[I_n, Zero(n, n)], [-C * inv(A), I_n]]) * BlockMatrix([[A, B], [C, D]]),
    BlockMatrix([[A, B], [Zero(n, n), D - B * inv(A) * C]]),
)
false("parallel sum without a factor", inv(inv(A) + inv(B)), inv(A + B))

true(
    "Sherman-Morrison with a scalar",
    inv(I_n + x * y.T),
    I_n - x * y.T / (1 + tr(x * y.T)),
)
true(
    "Sherman-Morrison with a bilinear form",
    inv(A + x * y.T),
    inv(A) - inv(A) * x * y.T * inv(A) / (1 + tr(y.T * inv(A) * x)),
)
true("Hua", inv(inv(A) + inv(inv(B) - A)), A - A * B * A)
true("inverse of an inverse in a sum", inv(I_n + inv(A)), A * inv(A + I_n))
true("scaled to trace one", tr(A / tr(A)), tr(I_n) / n)
schur = inv(E - Y * inv(A) * P)
true(
    "block inverse",
    inv(BlockMatrix([[A, P], [Y, E]])),
    BlockMatrix(
        [
            [inv(A) + inv(A) * P * schur * Y * inv(A), -inv(A) * P * schur],
            [-schur * Y * inv(A), schur],
        ]
    ),
)
false(
    "Sherman-Morrison with the sign of the scalar lost",
    inv(I_n + x * y.T),
    I_n - x * y.T / (1 - tr(x * y.T)),
)
false("Sherman-Morrison without the scalar", inv(I_n + x * y.T), I_n - x * y.T)
false("Hua with the factors swapped", inv(inv(A) + inv(inv(B) - A)), A - B * A * B)
