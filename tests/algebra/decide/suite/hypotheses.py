"""What follows from what is given, and what people conclude one time too often."""

from sympy import (
    BlockMatrix,
    HadamardProduct,
    Identity,
    Integer,
    Inverse,
    MatrixSymbol,
    Sum,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import Family, HeadSum
from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    P2,
    A,
    B,
    C,
    D,
    E,
    H,
    I_d,
    I_m,
    I_n,
    Kron,
    Ones,
    P,
    Q,
    V,
    W,
    X,
    Y,
    Zero,
    a,
    b,
    commutator,
    d,
    h,
    i,
    j,
    m,
    mul,
    n,
    one,
    one_m,
    t,
    tr,
    x,
    y,
)

HYPOTHESES = Kind("hypotheses")
true, false = HYPOTHESES.true, HYPOTHESES.false

O_n = Zero(n, n)
stochastic, stochastic_too = (A * one, one), (B * one, one)
commute = (A * B, B * A)
orthogonal = (A.T * A, I_n)
symmetric, symmetric_too = (A.T, A), (B.T, B)
antisymmetric, antisymmetric_too = (A.T, -A), (B.T, -B)
square_zero = (A**2, O_n)
involution = (A * A, I_n)
bias = MatrixSymbol("b", 1, d)
pattern, weight = Family("S", (H,), n, n), Family("T", (H,), d, d)
W_E, W_U = MatrixSymbol("W_E", m, d), MatrixSymbol("W_U", d, m)

true("product of stochastic matrices", A * B * one, one, stochastic, stochastic_too)
true("power of a stochastic matrix", A**3 * one, one, stochastic)
true("average of stochastic matrices", (A + B) * one / 2, one, stochastic, stochastic_too)
true("mixture of stochastic matrices", (a * A + (1 - a) * B) * one, one, stochastic, stochastic_too)
true(
    "bias through a stochastic pattern",
    A * (X * W + one * bias),
    A * X * W + one * bias,
    stochastic,
)
true(
    "bias through two patterns",
    A * (B * (X + one * bias)),
    A * B * X + one * bias,
    stochastic,
    stochastic_too,
)
true("stochastic rectangle keeps a constant", P * one_m * bias, one * bias, (P * one_m, one))
true(
    "Kronecker product of stochastic matrices",
    Kron(A, W) * Ones(n * d, 1),
    Ones(n * d, 1),
    stochastic,
    (W * Ones(d, 1), Ones(d, 1)),
)
true(
    "centring after a stochastic pattern",
    A * (I_n - Ones(n, n) / n),
    A - Ones(n, n) / n,
    stochastic,
)
true(
    "doubly stochastic meets the mean",
    A * Ones(n, n),
    Ones(n, n) * A,
    stochastic,
    (one.T * A, one.T),
)
true(
    "heads with stochastic patterns",
    HeadSum(pattern[h] * one, (h, H)),
    H * one,
    (pattern[h] * one, one),
)
true(
    "weights of heads with a given sum",
    HeadSum(Kron(B, weight[h]), (h, H)),
    Kron(B, V),
    (HeadSum(weight[h], (h, H)), V),
)
true(
    "biases of heads with stochastic patterns",
    HeadSum(pattern[h] * one * bias * weight[h], (h, H)),
    HeadSum(one * bias * weight[h], (h, H)),
    (pattern[h] * one, one),
)
true("powers commute", A**2 * B**2, B**2 * A**2, commute)
true("square of a sum", (A + B) ** 2, A**2 + 2 * A * B + B**2, commute)
true("cube of a sum", (A + B) ** 3, A**3 + 3 * A**2 * B + 3 * A * B**2 + B**3, commute)
true("difference of squares", (A - B) * (A + B), A**2 - B**2, commute)
true("transposes commute", A.T * B.T, B.T * A.T, commute)
true("polynomials commute", (A**2 + a * A) * (B - I_n), (B - I_n) * (A**2 + a * A), commute)
true("commutes with a product", C * A * B, A * B * C, (C * A, A * C), (C * B, B * C))
true(
    "commuting under a Kronecker product", Kron(A, W) * Kron(B, W), Kron(B, W) * Kron(A, W), commute
)
true("anticommuting squares", (A + B) ** 2, A**2 + B**2, (A * B, -B * A))
true("anticommuting square commutes", A**2 * B, B * A**2, (A * B, -B * A))
true("q-commuting", A * A * B, a**2 * B * A * A, (A * B, a * B * A))
true("orthogonal keeps inner products", (A * x).T * (A * y), x.T * y, orthogonal)
true("orthogonal on the other side", A * A.T, I_n, orthogonal)
true("orthogonal product", (A * B).T * (A * B), I_n, orthogonal, (B.T * B, I_n))
true("orthogonal keeps a trace", tr(A.T * C * A), tr(C), orthogonal)
true("orthogonal keeps a norm", tr((A * C).T * (A * C)), tr(C * C.T), orthogonal)
true("rotated scores", X * W * V * (X * W * V).T, X * W * (X * W).T, (V * V.T, I_d))
true("rotated weights undo rotated rows", (X * V) * (V.T * W), X * W, (V.T * V, I_d))
true(
    "Kronecker product of orthogonal matrices",
    Kron(A, W).T * Kron(A, W),
    Identity(n * d),
    orthogonal,
    (W.T * W, I_d),
)
true("product of symmetric matrices turned", t(mul(A, B)), B * A, symmetric, symmetric_too)
true("symmetric product when they commute", t(mul(A, B)), A * B, symmetric, symmetric_too, commute)
true(
    "commutator of symmetric matrices is antisymmetric",
    t(commutator(A, B)),
    -commutator(A, B),
    symmetric,
    symmetric_too,
)
true("congruence of a symmetric matrix", t(mul(t(C), A, C)), C.T * A * C, symmetric)
true("antisymmetric form vanishes on a vector", x.T * A * x, Zero(1, 1), antisymmetric)
true("trace of an antisymmetric matrix", tr(A), Integer(0), antisymmetric)
true("trace of an odd power", tr(A**3), Integer(0), antisymmetric)
true("square of an antisymmetric matrix is symmetric", t(mul(A, A)), A * A, antisymmetric)
true("symmetric against antisymmetric", tr(mul(A, B)), Integer(0), symmetric, antisymmetric_too)
true("square zero", (I_n + A) * (I_n - A), I_n, square_zero)
true("power of a unipotent matrix", (I_n + A) ** 3, I_n + 3 * A, square_zero)
true("cube zero, geometric series", (I_n - A) * (I_n + A + A**2), I_n, (A**3, O_n))
true("nilpotent pattern ends the paths", (I_n + A) ** 4, I_n + 4 * A + 6 * A**2, (A**3, O_n))
true("left inverse cancels", P.T * Y.T, I_m, (Y * P, I_m))
true("left inverse on a product", mul(Y, P, Q), Q, (Y * P, I_m))
true("left inverse gives a projection", (P * Y) ** 2, P * Y, (Y * P, I_m))
true("square left inverse is a right inverse", B * A, I_n, (A * B, I_n))
true("left and right inverse agree", B, C, (B * A, I_n), (A * C, I_n))
true("cancellation from the left", B, C, (A * B, A * C), (D * A, I_n))
true("orthogonal subspaces turned", P2.T * P, Zero(m, m), (P.T * P2, Zero(m, m)))
true(
    "orthogonal subspaces, norm of a sum",
    (P + P2).T * (P + P2),
    P.T * P + P2.T * P2,
    (P.T * P2, Zero(m, m)),
)
true("orthogonal subspaces do not read each other", P2 * P.T * P2, 0 * P2, (P.T * P2, Zero(m, m)))
true("embedding undone", W_E * W_U * W_E, W_E, (W_U * W_E, I_d))
true("given by a product", A * C * A, A**3, (C, A))
true("given by a scaled matrix", tr(B * C), 2 * tr(A * C), (B, 2 * A))
true("scalar that is given", a * A + b * A, A, (a + b, Integer(1)))
true("scalar times a matrix", a * B * A, b * B, (a * A, b * I_n))
true("eigenvector of a power", A**3 * x, a**3 * x, (A * x, a * x))
true("eigenvector of a polynomial", (A**2 + 2 * A + I_n) * x, (a + 1) ** 2 * x, (A * x, a * x))
true(
    "eigenvectors of two values",
    (a - b) * y.T * x,
    Zero(1, 1),
    (A * x, a * x),
    (A * y, b * y),
    symmetric,
)
true(
    "eigenvalue of a Kronecker product",
    Kron(A, B) * Kron(x, y),
    a * b * Kron(x, y),
    (A * x, a * x),
    (B * y, b * y),
)
true("involution of an odd power", A**5, A, involution)
true("real matrices of norm zero", P, 0 * P, (P.T * P, Zero(m, m)))
true("unit vector, outer product squared", (x * x.T) ** 2, x * x.T, (x.T * x, Identity(1)))
true("intertwining passes to powers", A**2 * P, P * E**2, (A * P, P * E))
true(
    "block with given corners",
    BlockMatrix([[A, B], [O_n, A]]) ** 2,
    BlockMatrix([[I_n, A * B + B * A], [O_n, I_n]]),
    involution,
)
true(
    "traceless, second moment of a shift",
    tr((A + a * I_n) ** 2),
    tr(A**2) + a**2 * n,
    (tr(A), Integer(0)),
)
true(
    "entrywise idempotent mask",
    HadamardProduct(A, A, B),
    HadamardProduct(A, B),
    (HadamardProduct(A, A), A),
)
true(
    "masked twice",
    HadamardProduct(B, A) + HadamardProduct(B, Ones(n, n) - A),
    B,
    (HadamardProduct(A, A), A),
)
true("canonical commutation", A * B**2 - B**2 * A, 2 * B, (A * B - B * A, I_n))
true(
    "a commutator against what commutes with a part of it",
    tr(commutator(A, B) * C),
    Integer(0),
    (A * C, C * A),
)
true("eigenvalue of a rotation", a**2 * x.T * x, x.T * x, orthogonal, (A * x, a * x))
true("trace of what is a commutator", tr(C), Integer(0), (A * B - B * A, C))

false("commuting is transitive", A * C, C * A, commute, (B * C, C * B))
false("zero product the other way", B * A, O_n, (A * B, O_n))
false("zero product means a zero factor", A, O_n, (A * B, O_n))
false("cancelling without an inverse", B, C, (A * B, A * C))
false("stochastic columns", one.T * A, one.T, stochastic)
false("sum of stochastic matrices", (A + B) * one, one, stochastic, stochastic_too)
false("transpose of a stochastic matrix", A.T * one, one, stochastic)
false("bias through a pattern used twice", A * (X + one * bias), A * X + 2 * one * bias, stochastic)
false(
    "bias through a stochastic pattern, weights left out",
    A * (X + one * bias) * W,
    A * X * W + one * bias,
    stochastic,
)
false("orthogonal is an involution", A * A, I_n, orthogonal)
false("sum of orthogonal matrices", (A + B).T * (A + B), I_n, orthogonal, (B.T * B, I_n))
false("orthogonal commutes", A * B, B * A, orthogonal)
false("orthogonal keeps a trace from one side", tr(A * C), tr(C), orthogonal)
false("square zero is zero", A, O_n, square_zero)
false("square zero shift", (I_n + A) ** 2, I_n + A, square_zero)
false("sum of square-zero matrices", (A + B) ** 2, O_n, square_zero, (B**2, O_n))
false("product of square-zero matrices", A * B * A * B, O_n, square_zero, (B**2, O_n))
false("product of symmetric matrices", t(mul(A, B)), A * B, symmetric, symmetric_too)
false("product of antisymmetric matrices", t(mul(A, B)), -A * B, antisymmetric, antisymmetric_too)
false("antisymmetric form of two vectors", x.T * A * y, Zero(1, 1), antisymmetric)
false("square of an antisymmetric matrix", t(mul(A, A)), -A * A, antisymmetric)
false("trace of an even power", tr(A**2), Integer(0), antisymmetric)
false("right inverse is a left inverse", P * Y, I_n, (Y * P, I_m))
false("involution is the identity", A, I_n, involution)
false("product of involutions", (A * B) ** 2, I_n, involution, (B * B, I_n))
false("square of a sum with one commutator", (A + B) * (A + C), A**2 + 2 * A * B + B * C, commute)
false("commutes with a transpose", A * B.T, B.T * A, commute)
false(
    "anticommuting means commuting squares of the sum",
    (A + B) ** 2,
    A**2 + 2 * A * B + B**2,
    (A * B, -B * A),
)
false("eigenvector of the transpose", A.T * x, a * x, (A * x, a * x))
false("eigenvalues add", (A + B) * y, (a + b) * y, (A * x, a * x), (B * y, b * y))
false("eigenvalue of a power counted once", A**2 * x, a * x, (A * x, a * x))
false("a scalar that may vanish", A, O_n, (a * A, O_n))
false("equal scaled matrices", A, B, (a * A, a * B))
false("equal traces", A, B, (tr(A), tr(B)))
false("traceless is zero", A, O_n, (tr(A), Integer(0)))
false("orthogonal subspaces on the other side", P * P2.T, O_n, (P.T * P2, Zero(m, m)))
false(
    "heads that sum to one each do", pattern[h] * one, one, (HeadSum(pattern[h], (h, H)) * one, one)
)
false(
    "heads with stochastic patterns counted once",
    HeadSum(pattern[h] * one, (h, H)),
    one,
    (pattern[h] * one, one),
)
false("intertwining backwards", Y * A, E * Y, (A * P, P * E))
false("square of a unit vector", x * x.T, I_n, (x.T * x, Identity(1)))
false("mixture that is none", (a * A + b * B) * one, one, stochastic, stochastic_too)
false("given for one member only", A * B * A, A * A * B, (C * B, B * C))
false("q-commuting counted once", A * A * B, a * B * A * A, (A * B, a * B * A))

pseudo = ((A * B * A, A), (B * A * B, B))
true("pseudoinverse, least squares", A.T * A * B, A.T, *pseudo, (t(mul(A, B)), A * B))
true("pseudoinverse, projection", (A * B) ** 2, A * B, *pseudo)
true("braid", A * B * A * B, B * A * B * B, (A * B * A, B * A * B))
true(
    "Clifford", (a * A + b * B) ** 2, (a**2 + b**2) * I_n, involution, (B * B, I_n), (A * B, -B * A)
)
true("inverse of three", C * A * B, I_n, (A * B * C, I_n))
true("diagonalised", A**3, C * D**3 * Inverse(C), (A, C * D * Inverse(C)))
true("partition of the identity", A * B, O_n, (A * A, A), (A + B, I_n))
true(
    "row sums by entries",
    A * B * one,
    one,
    (Sum(A[i, j], (j, 0, n - 1)), Integer(1)),
    (B * one, one),
)
true("diagonal matrices commute", A * B, B * A, (A, DiagMatrix(x)), (B, DiagMatrix(y)))
false("pseudoinverse commutes", A * B, B * A, *pseudo)
false("weak pseudoinverse", B * A * B, B, pseudo[0])
false("nilpotent of degree three", A**2, O_n, (A**3, O_n))
false(
    "normal sum", (A + B) * (A + B).T, (A + B).T * (A + B), (A * A.T, A.T * A), (B * B.T, B.T * B)
)
false("equal Kronecker products", A, B, (Kron(A, W), Kron(B, W)))
false("equal squares", A, B, (A * A, B * B))
false("idempotent traces", tr(A) ** 2, tr(A), (A * A, A))
false("isotropic", A, O_n, (x.T * A * x, Zero(1, 1)))

true("fifth power by the golden ratio", A**5, 5 * A + 3 * I_n, (A**2, A + I_n))
true("inverse from a quadratic", Inverse(A), A - I_n, (A**2, A + I_n))
true("read-out undone twice", (I_d - W_E.T * W_U.T) ** 2, I_d - W_E.T * W_U.T, (W_U * W_E, I_d))
true(
    "heads that commute with a map",
    HeadSum(pattern[h], (h, H)) * A,
    A * HeadSum(pattern[h], (h, H)),
    (pattern[h] * A, A * pattern[h]),
)
false(
    "sum of heads that project",
    HeadSum(pattern[h], (h, H)) ** 2,
    HeadSum(pattern[h], (h, H)),
    (pattern[h] ** 2, pattern[h]),
)
false(
    "heads that commute with a map, squared",
    HeadSum(pattern[h], (h, H)) ** 2,
    HeadSum(pattern[h] ** 2, (h, H)),
    (pattern[h] * A, A * pattern[h]),
)
false("one head is their sum", pattern[h], A, (HeadSum(pattern[h], (h, H)), A))
false("fifth power counted wrongly", A**5, 5 * A + 5 * I_n, (A**2, A + I_n))

BEYOND = Kind("hypotheses")  # true for reasons that are no equations: eigenvalues, order, rank
true = BEYOND.true
true("trace of a nilpotent matrix", tr(A), Integer(0), square_zero)
true("trace of a nilpotent matrix of degree three", tr(A**2), Integer(0), (A**3, O_n))
true("normal nilpotent matrices vanish", A, O_n, square_zero, (A.T * A, A * A.T))
true("no norm is negative", P, 0 * P, (tr(P.T * P), Integer(0)))
true("sum of norms that vanishes", P, 0 * P, (P.T * P + P2.T * P2, Zero(m, m)))
true("identity is no commutator", C, O_n, (A * B - B * A, I_n))
true("nilpotent matrix of two rows", A**2, O_n, (A**4, O_n), (n, Integer(2)))
true("cube root of zero of a symmetric matrix", A, O_n, symmetric, (A**3, O_n))
