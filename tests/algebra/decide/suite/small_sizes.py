"""Facts of matrices with at most two rows: true at sizes 1 and 2, false for a size that is free."""

from itertools import permutations
from typing import Any

from sympy import Identity, Integer, Matrix, MatrixSymbol, Rational
from sympy.combinatorics import Permutation

from tests.algebra.decide.suite.identity import Kind
from tests.algebra.decide.suite.symbols import Ones, Zero, a, commutator, had, mul, n, t, tr

SMALL_SIZE = Kind("small size")
half = Rational(1, 2)


def second(K: Any) -> Any:
    """The second elementary function of the eigenvalues, at two rows the determinant."""
    return half * (tr(K) ** 2 - tr(K * K))


def standard(*matrices: Any) -> Any:
    """Σ sign · product over all orders."""
    return sum(
        (
            Permutation(order).signature() * mul(*[matrices[k] for k in order])
            for order in permutations(range(len(matrices)))
        ),
        Zero(*matrices[0].shape),
    )


def facts(n: Any) -> dict[str, tuple[Any, ...]]:
    A, B, C, D = (MatrixSymbol(name, n, n) for name in "ABCD")
    x, y, z = (MatrixSymbol(name, n, 1) for name in "xyz")
    eye, J, null = Identity(n), Ones(n, n), Zero(n, n)

    def adjugate(K: Any) -> Any:
        return tr(K) * eye - K

    skew, skew_B = A - A.T, B - B.T
    A_0, B_0 = A - tr(A) * eye / n, B - tr(B) * eye / n
    off = had(A, J - eye)
    return {
        "Cayley-Hamilton": (A**2 - tr(A) * A + second(A) * eye, null),
        "Cayley-Hamilton, solved for the square": (A**2, tr(A) * A - second(A) * eye),
        "Cayley-Hamilton for a Gram matrix": (
            (A * A.T) ** 2,
            tr(A * A.T) * A * A.T - second(A * A.T) * eye,
        ),
        "Cayley-Hamilton, cubed": (A**3, (tr(A) ** 2 - second(A)) * A - tr(A) * second(A) * eye),
        "Cayley-Hamilton with two matrices": (
            A * B + B * A,
            tr(A) * B + tr(B) * A - (tr(A) * tr(B) - tr(A * B)) * eye,
        ),
        "Hall": (commutator(commutator(A, B) ** 2, C), null),
        "square of a commutator is scalar": (
            commutator(A, B) ** 2,
            half * tr(commutator(A, B) ** 2) * eye,
        ),
        "standard identity of four": (standard(A, B, C, D), null),
        "trace identity of degree three": (
            tr(A * B * C) + tr(A * C * B) + tr(A) * tr(B) * tr(C),
            tr(A) * tr(B * C) + tr(B) * tr(A * C) + tr(C) * tr(A * B),
        ),
        "power sum of degree three": (tr(A**3), 3 * half * tr(A) * tr(A**2) - half * tr(A) ** 3),
        "adjugate": (A * adjugate(A), second(A) * eye),
        "adjugate of a product": (adjugate(A * B), adjugate(B) * adjugate(A)),
        "determinant of a product": (second(A * B), second(A) * second(B)),
        "determinant of a transpose product": (second(A.T * A), second(A) ** 2),
        "commutator with a square": (commutator(A**2, B), tr(A) * commutator(A, B)),
        "sandwich": (A * B * A, tr(A * B) * A - second(A) * adjugate(B)),
        "cube of a commutator has no trace": (tr(commutator(A, B) ** 3), Integer(0)),
        "antisymmetric matrices commute": (skew * skew_B, skew_B * skew),
        "square of an antisymmetric matrix is scalar": (skew**2, half * tr(skew**2) * eye),
        "antisymmetric congruence": (A * skew_B * A.T, second(A) * skew_B),
        "square of a traceless matrix": (A_0**2, half * tr(A_0**2) * eye),
        "traceless matrices anticommute up to a scalar": (
            A_0 * B_0 + B_0 * A_0,
            tr(A_0 * B_0) * eye,
        ),
        "square of an off-diagonal matrix is diagonal": (had(off * off, J - eye), null),
        "three vectors": (
            tr(x * x.T) * (tr(y * y.T) * tr(z * z.T) - tr(y * z.T) ** 2)
            - tr(x * y.T) * (tr(x * y.T) * tr(z * z.T) - tr(y * z.T) * tr(x * z.T))
            + tr(x * z.T) * (tr(x * y.T) * tr(y * z.T) - tr(y * y.T) * tr(x * z.T)),
            Integer(0),
        ),
        "rotations of two pairs of vectors": (
            commutator(x * y.T - y * x.T, x * z.T - z * x.T),
            null,
        ),
        "traceless, given": (A**2, half * tr(A**2) * eye, (tr(A), Integer(0))),
        "traceless pair, given": (
            A * B + B * A,
            tr(A * B) * eye,
            (tr(A), Integer(0)),
            (tr(B), Integer(0)),
        ),
        "odd power of a traceless matrix, given": (tr(A**3), Integer(0), (tr(A), Integer(0))),
        "singular of trace one is a projection, given": (
            A**2,
            A,
            (tr(A), Integer(1)),
            (tr(A) ** 2, tr(A**2)),
        ),
    }


for name, (lhs, rhs, *given) in facts(n).items():
    SMALL_SIZE.false(f"{name}, at every size", lhs, rhs, *given)
for size, word in ((2, "two rows"), (1, "one row")):
    for name, (lhs, rhs, *given) in facts(Integer(size)).items():
        SMALL_SIZE.true(f"{name}, {word}", lhs, rhs, *given)

A, B = MatrixSymbol("A", 2, 2), MatrixSymbol("B", 2, 2)
J = Matrix([[0, 1], [-1, 0]])
SMALL_SIZE.true("determinant by entries", second(A), A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0])
SMALL_SIZE.true("quarter turn gives the adjugate", mul(J, t(A), J.T), tr(A) * Identity(2) - A)
SMALL_SIZE.true(
    "adjugate by entries",
    Matrix([[A[1, 1], -A[0, 1]], [-A[1, 0], A[0, 0]]]) * A,
    (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]) * Identity(2),
)
SMALL_SIZE.true("symplectic", mul(t(A), J, A), (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]) * J)
SMALL_SIZE.true(
    "one row commutes",
    MatrixSymbol("A", 1, 1) * MatrixSymbol("B", 1, 1),
    MatrixSymbol("B", 1, 1) * MatrixSymbol("A", 1, 1),
)
SMALL_SIZE.false("two rows commute", A * B, B * A)
SMALL_SIZE.false(
    "determinant by entries with a sign lost", second(A), A[0, 0] * A[1, 1] + A[0, 1] * A[1, 0]
)
SMALL_SIZE.false(
    "adjugate of a product without reversing",
    tr(A * B) * Identity(2) - A * B,
    (tr(A) * Identity(2) - A) * (tr(B) * Identity(2) - B),
)
SMALL_SIZE.false(
    "half forgotten in Cayley-Hamilton", A**2, tr(A) * A - (tr(A) ** 2 - tr(A**2)) * Identity(2)
)
SMALL_SIZE.false("standard identity of three", standard(A, B, a * Identity(2) + B * B), 0 * A)
SMALL_SIZE.false(
    "half forgotten for a traceless matrix, given",
    A**2,
    tr(A**2) * Identity(2),
    (tr(A), Integer(0)),
)
SMALL_SIZE.false(
    "traceless matrices anticommute, given", A * B, -B * A, (tr(A), Integer(0)), (tr(B), Integer(0))
)
SMALL_SIZE.false(
    "even power of a traceless matrix, given", tr(A**4), Integer(0), (tr(A), Integer(0))
)
SMALL_SIZE.false("trace one is a projection, given", A**2, A, (tr(A), Integer(1)))
