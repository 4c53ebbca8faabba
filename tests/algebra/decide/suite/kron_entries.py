"""Kronecker products: the mixed product, its units and its scalars, and what people swap."""

from sympy import BlockMatrix, HadamardProduct, Identity, Matrix, MatrixSymbol
from sympy.matrices.expressions.diagonal import DiagonalOf

from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    A,
    B,
    C,
    D,
    E,
    F,
    I_d,
    I_m,
    I_n,
    Kron,
    Ones,
    P,
    Q,
    R,
    V,
    W,
    Zero,
    a,
    b,
    c,
    commutator,
    d,
    had,
    kron,
    m,
    mul,
    n,
    p,
    q,
    s,
    t,
    tr,
    w,
    x,
    y,
)

KRON = Kind("kron")
two, three, I_3 = MatrixSymbol("K", 2, 2), MatrixSymbol("G", 3, 3), Identity(3)
stream = MatrixSymbol("X", n * d, 1)
true, false = KRON.true, KRON.false

true("mixed product", Kron(A, W) * Kron(B, V), Kron(A * B, W * V))
true("mixed product, rectangular", mul(kron(P, R), kron(Q, t(R))), kron(P * Q, mul(R, t(R))))
true("mixed product of three factors", Kron(A, E, W) * Kron(B, F, V), Kron(A * B, E * F, W * V))
true("nested to the left and to the right", kron(kron(A, W), E), kron(A, kron(W, E)))
true(
    "nested mixed product", mul(kron(kron(A, E), W), kron(B, kron(F, V))), Kron(A * B, E * F, W * V)
)
true("sides commute", Kron(A, I_d) * Kron(I_n, W), Kron(I_n, W) * Kron(A, I_d))
true("identities", kron(I_n, I_d), Identity(n * d))
true("identity of three sizes", kron(I_n, kron(I_d, I_m)), Identity(n * d * m))
true("ones", kron(Ones(n, m), Ones(p, q)), Ones(n * p, m * q))
true("zero", kron(P, Zero(d, d)), Zero(n * d, m * d))
true("both sides of a sum", Kron(A + B, W + V), Kron(A, W) + Kron(A, V) + Kron(B, W) + Kron(B, V))
true("scalars move out", Kron(a * A, (b - c) * W), a * b * Kron(A, W) - a * c * Kron(A, W))
true("scalar of one side to the other", Kron(A / n, W), Kron(A, W / n))
true("transpose", t(kron(P, W)), kron(t(P), t(W)))
true("third power", Kron(A, W) ** 3, Kron(A**3, W**3))
true(
    "square of a Kronecker sum",
    (Kron(A, I_d) + Kron(I_n, W)) ** 2,
    Kron(A**2, I_d) + 2 * Kron(A, W) + Kron(I_n, W**2),
)
true(
    "commutator of Kronecker sums",
    commutator(Kron(A, I_d) + Kron(I_n, W), Kron(B, I_d) + Kron(I_n, V)),
    Kron(commutator(A, B), I_d) + Kron(I_n, commutator(W, V)),
)
true("column beside a row is an outer product", kron(x, t(s)), x * s.T)
true("row beside a column", kron(t(x), s), s * x.T)
true("vectors meet factor by factor", Kron(x, s).T * Kron(y, w), (x.T * y) * (s.T * w))
true("a matrix of one entry is a factor", Kron(x.T * y, W), tr(x * y.T) * W)
true("on a product vector", Kron(A, W) * Kron(x, s), Kron(A * x, W * s))
true("column inserted on the right", Kron(I_n, s) * x, Kron(x, s))
true("column inserted on the left", Kron(s, A) * B, Kron(s, A * B))
true(
    "entrywise product of two",
    HadamardProduct(Kron(A, W), Kron(B, V)),
    Kron(HadamardProduct(A, B), HadamardProduct(W, V)),
)
true("commutator by one side", commutator(Kron(A, W), Kron(B, W)), Kron(commutator(A, B), W**2))
true(
    "identity of two is a block diagonal",
    kron(Identity(2), A),
    BlockMatrix([[A, Zero(n, n)], [Zero(n, n), A]]),
)
true(
    "explicit left factor",
    Kron(Matrix([[1, 2], [0, -1]]), P),
    BlockMatrix([[P, 2 * P], [Zero(n, m), -P]]),
)
true("size that is a sum", tr(Kron(A, Identity(d + 1))), d * tr(A) + tr(A))
true("outer products of product vectors", Kron(x, s) * Kron(y, w).T, Kron(x * y.T, s * w.T))

false("factors swapped", kron(A, B), kron(B, A))
false("factors of different sizes swapped", Kron(A, W), Kron(W, A))
false("transpose reverses", t(kron(A, B)), kron(t(B), t(A)))
false("mixed product crossed", Kron(A, B) * Kron(C, D), Kron(A * D, B * C))
false("mixed product turned on the left", Kron(A, W) * Kron(B, V), Kron(B * A, W * V))
false("sum taken factor by factor", Kron(A + B, W + V), Kron(A, W) + Kron(B, V))
false("scalar counted once", Kron(a * A, a * W), a * Kron(A, W))
false("identity on the wrong side", kron(I_n, A), kron(A, I_n))
false(
    "Kronecker sum squared like a sum of numbers",
    (Kron(A, I_d) + Kron(I_n, W)) ** 2,
    Kron(A**2, I_d) + Kron(A, W) + Kron(I_n, W**2),
)
false("product vectors swapped", Kron(x, y), Kron(y, x))
false(
    "commutators factor by factor",
    commutator(Kron(A, W), Kron(B, V)),
    Kron(commutator(A, B), commutator(W, V)),
)
false(
    "entrywise product distributes into a factor", Kron(A, had(W, V)), had(Kron(A, W), Kron(A, V))
)
false("last two of three swapped", kron(A, E, W), kron(A, kron(W, E)))
false("outer product transposed", kron(x, t(y)), y * x.T)
false("each matrix to the other vector", Kron(A, B) * Kron(x, y), Kron(B * x, A * y))
false("ones mistaken for the identity", Kron(A, Ones(d, d)), Kron(A, I_d))
false("matrix of one entry dropped", Kron(x.T * y, W), W)
false("difference of squares", Kron(A - B, A + B), Kron(A, A) - Kron(B, B))
false(
    "right factor distributes over blocks",
    Kron(A, Matrix([[1, 1], [0, 1]])),
    BlockMatrix([[A, A], [Zero(n, n), A]]),
)

true("trace does not see the order", tr(Kron(A, W) * Kron(B, V)), tr(Kron(V, B) * Kron(W, A)))
true("ones in either order", Ones(n * d, 1), kron(Ones(d, 1), Ones(n, 1)))
true("identity in either order", Identity(n * d), kron(I_d, I_n))
true("diagonals", DiagonalOf(Kron(A, W)), Kron(DiagonalOf(A), DiagonalOf(W)))
true("numbers as sizes", Kron(two, I_3) * Kron(Identity(2), three), Kron(two, three))
false(
    "numbers as sizes, swapped",
    Kron(two, MatrixSymbol("L", 2, 2)),
    Kron(MatrixSymbol("L", 2, 2), two),
)
false("both orders on one stream", Kron(A, I_d) * stream, Kron(I_d, A) * stream)
