"""Block matrices: products block by block, concatenation, and sizes that are sums."""

from sympy import BlockDiagMatrix, BlockMatrix, HadamardProduct, Identity, MatrixSymbol

from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    P2,
    A,
    B,
    C,
    D,
    E,
    F,
    I_m,
    I_n,
    Kron,
    Ones,
    P,
    V,
    W,
    X,
    Y,
    Zero,
    a,
    d,
    e,
    k,
    kron,
    m,
    mul,
    n,
    one,
    one_d,
    one_m,
    p,
    t,
    tr,
    x,
    y,
)

BLOCK = Kind("block")
true, false = BLOCK.true, BLOCK.false


def rows(*lines):
    return BlockMatrix(list(lines))


Y2 = MatrixSymbol("Y2", m, n)
W_1, W_2 = MatrixSymbol("W1", d, k), MatrixSymbol("W2", d, e)
O_1, O_2 = MatrixSymbol("O1", k, d), MatrixSymbol("O2", e, d)
b_1 = MatrixSymbol("b", 1, k)
Z = MatrixSymbol("Z", m + p, n)
top, below = MatrixSymbol("S", n, m + p), MatrixSymbol("T", m + p, n)
whole = rows([A, P], [Y, E])
O_nm, O_mn = Zero(n, m), Zero(m, n)

true(
    "product of two by two",
    whole * rows([B, P2], [Y2, F]),
    rows([A * B + P * Y2, A * P2 + P * F], [Y * B + E * Y2, Y * P2 + E * F]),
)
true("transpose", t(whole), rows([A.T, Y.T], [P.T, E.T]))
true("trace", tr(whole), tr(A) + tr(E))
true("sum", whole + rows([B, P2], [Y2, F]), rows([A + B, P + P2], [Y + Y2, E + F]))
true("scalar", a * whole, rows([a * A, a * P], [a * Y, a * E]))
true("row times column", rows([W_1, W_2]) * rows([O_1], [O_2]), W_1 * O_1 + W_2 * O_2)
true(
    "column times row",
    rows([O_1], [O_2]) * rows([W_1, W_2]),
    rows([O_1 * W_1, O_1 * W_2], [O_2 * W_1, O_2 * W_2]),
)
true("shared left factor", X * rows([W_1, W_2]), rows([X * W_1, X * W_2]))
true("shared right factor", rows([O_1], [O_2]) * X.T, rows([O_1 * X.T], [O_2 * X.T]))
true(
    "affine map as one matrix",
    rows([A, x], [Zero(1, n), Identity(1)]) * rows([y], [Identity(1)]),
    rows([A * y + x], [Identity(1)]),
)
true(
    "affine maps compose",
    rows([A, x], [Zero(1, n), Identity(1)]) * rows([B, y], [Zero(1, n), Identity(1)]),
    rows([A * B, A * y + x], [Zero(1, n), Identity(1)]),
)
true("block diagonal powers", BlockDiagMatrix(A, E) ** 3, BlockDiagMatrix(A**3, E**3))
true("block diagonal as a block matrix", BlockDiagMatrix(A, E), rows([A, O_nm], [O_mn, E]))
true(
    "triangular product",
    rows([A, P], [O_mn, E]) * rows([B, P2], [O_mn, F]),
    rows([A * B, A * P2 + P * F], [O_mn, E * F]),
)
true("identity", rows([I_n, O_nm], [O_mn, I_m]), Identity(n + m))
true("ones", rows([Ones(n, m), Ones(n, p)]), Ones(n, m + p))
true(
    "shear adds",
    rows([I_n, P], [O_mn, I_m]) * rows([I_n, P2], [O_mn, I_m]),
    rows([I_n, P + P2], [O_mn, I_m]),
)
true("shear undone", rows([I_n, P], [O_mn, I_m]) * rows([I_n, -P], [O_mn, I_m]), Identity(n + m))
true("nested", rows([rows([A, B]), C]), rows([A, B, C]))
true("nested, two by two", rows([rows([A, B], [C, D]), rows([x], [y])]), rows([A, B, x], [C, D, y]))
true(
    "left factor of a Kronecker product in blocks",
    Kron(rows([A, P]), W),
    rows([Kron(A, W), Kron(P, W)]),
)
true(
    "entrywise",
    HadamardProduct(whole, rows([B, P2], [Y2, F])),
    rows(
        [HadamardProduct(A, B), HadamardProduct(P, P2)],
        [HadamardProduct(Y, Y2), HadamardProduct(E, F)],
    ),
)
true("Gram matrix of a concatenation", rows([P, P2]) * rows([P, P2]).T, P * P.T + P2 * P2.T)
true(
    "trace of a product of concatenations",
    tr(rows([P, P2]) * rows([Y], [Y2])),
    tr(Y * P) + tr(Y2 * P2),
)
true("row sums of a concatenation", rows([P, P2]) * Ones(2 * m, 1), (P + P2) * one_m)
true(
    "swap by blocks of identities",
    rows([O_nm, I_n], [I_m, O_mn]) * rows([E, Y], [P, A]) * rows([O_mn, I_m], [I_n, O_nm]),
    whole,
)
true("selecting a block", rows([I_n, O_nm]) * whole * rows([O_nm], [I_m]), P)
true(
    "a matrix of d + 1 columns against blocks",
    MatrixSymbol("M", n, d + 1) * rows([W_1], [b_1]),
    MatrixSymbol("M", n, d + 1) * rows([W_1], [0 * b_1])
    + MatrixSymbol("M", n, d + 1) * rows([Zero(d, k)], [b_1]),
)
true("equal blocks are a Kronecker product", rows([A, A], [A, A]), kron(Ones(2, 2), A))
true(
    "complex numbers as matrices",
    rows([A, -B], [B, A]) * rows([C, -D], [D, C]),
    rows([A * C - B * D, -(A * D + B * C)], [B * C + A * D, A * C - B * D]),
)
true(
    "square of an off-diagonal matrix",
    rows([Zero(n, n), P], [Y, Zero(m, m)]) ** 2,
    BlockDiagMatrix(P * Y, Y * P),
)
true(
    "three heads concatenated",
    rows([X * W, X * V, X]) * rows([W], [V], [W * V]),
    X * (W * W + V * V + W * V),
)

false(
    "product entry by entry of blocks", rows([A, B], [C, D]) ** 2, rows([A**2, B**2], [C**2, D**2])
)
false("product with the order of blocks swapped", rows([A, B]) * rows([C], [D]), C * A + D * B)
false("transpose leaves the corners", t(rows([A, B], [C, D])), rows([A.T, B.T], [C.T, D.T]))
false("transpose leaves the blocks", t(rows([A, B], [C, D])), rows([A, C], [B, D]))
false("trace counts all blocks", tr(rows([A, B], [C, D])), tr(A) + tr(B) + tr(C) + tr(D))
false("concatenation swapped", rows([P, P2]), rows([P2, P]))
false("concatenation crossed with outputs", rows([W_1, W]) * rows([O_1], [V]), W_1 * O_1 + V * W)
false("bias scaled by the input", rows([X, one]) * rows([W_1], [b_1]), X * (W_1 + one_d * b_1))
false(
    "triangular product without the corner",
    rows([A, P], [O_mn, E]) * rows([B, P2], [O_mn, F]),
    rows([A * B, P + P2], [O_mn, E * F]),
)
false(
    "affine maps compose the other way",
    rows([A, x], [Zero(1, n), Identity(1)]) * rows([B, y], [Zero(1, n), Identity(1)]),
    rows([A * B, B * x + y], [Zero(1, n), Identity(1)]),
)
false(
    "shears multiply",
    rows([I_n, A], [Zero(n, n), I_n]) * rows([I_n, B], [Zero(n, n), I_n]),
    rows([I_n, A * B], [Zero(n, n), I_n]),
)
false(
    "right factor of a Kronecker product in blocks",
    Kron(W, rows([A, B])),
    rows([Kron(W, A), Kron(W, B)]),
)
false(
    "square of an off-diagonal matrix is a square",
    rows([Zero(n, n), A], [B, Zero(n, n)]) ** 2,
    BlockDiagMatrix(A * B, A * B),
)
false("Gram matrix with cross terms", rows([P, P2]) * rows([P, P2]).T, (P + P2) * (P + P2).T)

true(
    "blocks under identities of a sum of sizes",
    Kron(Identity(n + m), W),
    BlockDiagMatrix(Kron(I_n, W), Kron(I_m, W)),
)
true("column of ones cut in two adds", rows([A, B]) * kron(Ones(2, 1), I_n), A + B)
true(
    "permutation of rows of blocks", rows([O_mn, I_m], [I_n, O_nm]) * rows([A], [Y]), rows([Y], [A])
)
true(
    "trace after swapping blocks of rows",
    tr(rows([Zero(n, n), I_n], [I_n, Zero(n, n)]) * rows([A, B], [C, D])),
    tr(B) + tr(C),
)
true("nested block diagonal", BlockDiagMatrix(A, BlockDiagMatrix(E, W)), BlockDiagMatrix(A, E, W))
true("ones of d + 1 meet", mul(Ones(n, d + 1), Ones(d + 1, m)), (d + 1) * Ones(n, m))
false("column of ones on the other side", rows([A, B]) * kron(I_n, Ones(2, 1)), A + B)
false("trace of a square without the corners", tr(rows([A, B], [C, D]) ** 2), tr(A**2) + tr(D**2))
