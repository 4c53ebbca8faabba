"""Projections: centring, averaging, spans, reflections, with what is given about them."""

from sympy import HadamardProduct, Identity, Inverse

from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import (
    A,
    B,
    I_d,
    I_m,
    I_n,
    Kron,
    Ones,
    P,
    W,
    X,
    Zero,
    a,
    d,
    m,
    minus,
    mul,
    n,
    one,
    t,
    tr,
    x,
)  # fmt: skip

PROJECTION = Kind("projection")
true, false = PROJECTION.true, PROJECTION.false

mean = Ones(n, n) / n
centre = I_n - mean
centre_d = I_d - Ones(d, d) / d
idempotent, other = (A * A, A), (B * B, B)
symmetric = (A.T, A)
O_n = Zero(n, n)
orthonormal = (P.T * P, I_m)
gram_inverse = Inverse(P.T * P)
hat = P * gram_inverse * P.T

true("averaging twice", mul(Ones(n, n) / n, Ones(n, n) / n), mean)
true("centring twice", mul(centre, centre), centre)
true("centring three times", centre**3, minus(I_n, mean))
true("centring is symmetric", t(minus(I_n, mul(one, t(one)) / n)), centre)
true("centring removes constants", mul(centre, one), 0 * one)
true("nothing is left of constants on the left", one.T * centre, Zero(1, n))
true("trace of a centring", tr(centre), n - 1)
true("mean and centring exclude each other", mul(mean, centre), O_n)
true(
    "centred Gram matrix",
    mul(t(mul(centre, X)), mul(centre, X)),
    X.T * X - X.T * Ones(n, n) * X / n,
)
true("sum of centred squares", tr(mul(t(x), centre, x)), tr(x * x.T) - tr(x.T * mean * x))
true("double centring", mul(centre, A, centre), A - mean * A - A * mean + mean * A * mean)
true(
    "centring both sides of a Kronecker product",
    Kron(centre, centre_d) ** 2,
    Kron(centre, centre_d),
)
true(
    "centring features leaves patterns alone",
    Kron(A, I_d) * Kron(I_n, centre_d),
    Kron(I_n, centre_d) * Kron(A, I_d),
)
true(
    "centring rows through a weight",
    X * centre_d * W * centre_d,
    mul(X, minus(W, mul(Ones(d, d) / d, W)), centre_d),
)
true("complement", mul(I_n - A, I_n - A), I_n - A, idempotent)
true("complement excludes", A * (I_n - A), O_n, idempotent)
true("fourth power", A**4, A, idempotent)
true("reflection squared", (2 * A - I_n) ** 2, I_n, idempotent)
true("binomial of a projection", (I_n + A) ** 3, I_n + 7 * A, idempotent)
true("scaled projection", (a * A) ** 2, a**2 * A, idempotent)
true(
    "sandwiched by a projection and its complement",
    A * B * (I_n - A) + A * B * A,
    A * B,
    idempotent,
)
true("Kronecker product of projections", Kron(A, B) ** 2, Kron(A, B), idempotent, other)
true("transpose of a projection", A.T * A.T * A.T, A.T, idempotent)
true("product of commuting projections", (A * B) ** 2, A * B, idempotent, other, (A * B, B * A))
true(
    "union of commuting projections",
    (A + B - A * B) ** 2,
    A + B - A * B,
    idempotent,
    other,
    (A * B, B * A),
)
true(
    "sum of projections that exclude each other",
    (A + B) ** 2,
    A + B,
    idempotent,
    other,
    (A * B, O_n),
    (B * A, O_n),
)
true(
    "difference of nested projections",
    (A - B) ** 2,
    A - B,
    idempotent,
    other,
    (A * B, B),
    (B * A, B),
)
true("orthogonal projection splits a norm", tr(B.T * A * B) + tr(B.T * (I_n - A) * B), tr(B.T * B))
true(
    "orthogonal projection of a vector, length",
    (A * x).T * (A * x),
    x.T * A * x,
    idempotent,
    symmetric,
)
true("Pythagoras", (A * x).T * ((I_n - A) * x), Zero(1, 1), idempotent, symmetric)
true("onto the span of orthonormal columns", (P * P.T) ** 2, P * P.T, orthonormal)
true("complement of orthonormal columns", (I_n - P * P.T) * P, 0 * P, orthonormal)
true("onto a span", hat * hat, hat)
true("a span is kept", mul(P, gram_inverse, t(P), P), P)
true("residuals are orthogonal", P.T * (I_n - hat), Zero(m, n))
true("hat matrix is symmetric", t(hat), hat)
true("reflection in a unit vector", (I_n - 2 * x * x.T) ** 2, I_n, (x.T * x, Identity(1)))
true(
    "Pierce decomposition",
    A * B * A + A * B * (I_n - A) + (I_n - A) * B * A + (I_n - A) * B * (I_n - A),
    B,
)
true("onto a vector", (x * x.T / tr(x * x.T)) ** 2, x * x.T / tr(x.T * x))
true("reflection in a vector", (I_n - 2 * x * x.T / tr(x * x.T)) ** 2, I_n)

false("centring over the wrong size", (I_n - Ones(n, n)) ** 2, I_n - Ones(n, n))
false("trace of a centring is the size", tr(centre), n)
false("sum of projections", (A + B) ** 2, A + B, idempotent, other)
false("product of projections", (A * B) ** 2, A * B, idempotent, other)
false("projections are symmetric", A.T, A, idempotent)
false("symmetric is enough", A**2, A, symmetric)
false("projections commute", A * B, B * A, idempotent, other)
false("excluded on one side", (A + B) ** 2, A + B, idempotent, other, (A * B, O_n))
false("projection is invertible", A, I_n, idempotent)
false("length of a skew projection", (A * x).T * (A * x), x.T * A * x, idempotent)
false("scaled projection is one", (a * A) ** 2, a * A, idempotent)
false("projection entry by entry", HadamardProduct(A, A), A, idempotent)
false("columns that are not orthonormal", (P * P.T) ** 2, P * P.T)
false("rows of orthonormal columns", P * P.T, I_n, orthonormal)
false("reflection without the two", (I_n - A) ** 2, I_n, idempotent)
false("span on the other side", P.T * hat, P.T * P * P.T)
false("compressed to a projection", A * B * A, A * B, idempotent)
false("difference of projections", (A - B) ** 2, A - B, idempotent, other, (A * B, B))
false("reflection in a vector without the two", (I_n - x * x.T / tr(x * x.T)) ** 2, I_n)
false("orthogonal projections commute", A * B, B * A, idempotent, other, symmetric, (B.T, B))
