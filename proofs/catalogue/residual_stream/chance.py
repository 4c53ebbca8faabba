"""Chapter 2: what random directions, projections and rotations of the stream do on average.

A mean over random matrices is written as the mean over G of them, and what is known of their
distribution as an equation between such means. So all of it is exact, and holds for every ensemble
with these moments: finite groups as well as the uniform distribution on rotations.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product
from math import comb, log
from typing import Any

from sympy import (
    HadamardProduct,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
    symbols,
)
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul, vec_rows
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import d, p, q, r, s, size
from otimes.proofs.claims import Bound, Definition, ErrorLaw, Example, Square, Statement
from otimes.proofs.theorem import theorem

TOY = "Elhage et al. 2022, “Toy Models of Superposition”"
LINDENSTRAUSS = (
    "Johnson and Lindenstrauss 1984; Vershynin 2018, “High-Dimensional Probability”, §5.3"
)
WEINGARTEN = "Collins and Śniady 2006, “Integration with respect to the Haar measure”"
G, K = size("G"), size("k")
g, i, j = symbols("g i j", integer=True)
a, b = symbols("a b", integer=True)
A, B = MatrixSymbol("A", d, p), MatrixSymbol("B", q, d)
B_1, B_2 = MatrixSymbol("B_1", d, r), MatrixSymbol("B_2", d, s)
Q = Family("Q", (G,), d, d)
FLAT = vec_rows(Identity(d))


def _mean(body: Any) -> Any:
    return matmul(1 / G, HeadSum(body, (g, G)))


def _squared(matrix: Any) -> Any:
    """Return the sum of the squares of all entries, 1 × 1."""
    rows, cols = matrix.shape
    squares = HadamardProduct(matrix, matrix, evaluate=False)
    return matmul(OneMatrix(1, rows), squares, OneMatrix(cols, 1))


UNIFORM = (_mean(kron(Q[g], Q[g])), matmul(1 / d, FLAT, Transpose(FLAT)))
"""The second moments of a uniformly random rotation: the mean of Q_ab Q_ce is δ_ac δ_be / d."""
QUATERNIONS = Example(
    {"Q": [[[1, 0], [0, 1]], [[1, 0], [0, -1]], [[0, 1], [1, 0]], [[0, 1], [-1, 0]]]}
)


@theorem(
    title="The product with a random direction has mean square 1/d",
    chapter=2,
    source=LINDENSTRAUSS,
    covers=("S0-69",),
)
def random_direction() -> Statement:
    """Let v be drawn from directions that favour none: the mean of vvᵀ is Id/d. Then for every
    fixed u the mean of ⟨u, v⟩² is ‖u‖²/d. Random directions are not orthogonal: two of them have a
    product of about 1/√d, and at d = 768 that is 0.036.

    The uniform distribution on the sphere is one such, but so are the d axes themselves.
    """
    u, v = MatrixSymbol("u", d, 1), Family("v", (G,), d, 1)
    products = matmul(Transpose(u), v[g], Transpose(v[g]), u)
    return Statement(
        _mean(products),
        matmul(1 / d, Transpose(u), u),
        given=((_mean(matmul(v[g], Transpose(v[g]))), matmul(1 / d, Identity(d))),),
        on_models=False,
    )


@lru_cache(maxsize=64)
def _log_chance(dimension: int) -> float:
    """Return log of the chance that two vectors of ±1 have a product of at least half of d."""
    ways = sum(comb(dimension, minus) for minus in range(dimension // 4 + 1))
    return log(ways) - dimension * log(2)


RATE = 0.75 * log(1.5) + 0.25 * log(0.5)  # (1+ε)/2 log(1+ε) + (1-ε)/2 log(1-ε) at ε = 1/2


def _off_rate(step: float) -> float:
    dimension = round(1 / step)
    return abs((_log_chance(dimension) - _log_chance(2 * dimension)) / dimension - RATE)


@theorem(
    title="There is room for exponentially many nearly orthogonal directions",
    chapter=2,
    source=f"{LINDENSTRAUSS}; Cramér 1938",
    covers=("S0-69",),
)
def many_nearly_orthogonal() -> ErrorLaw:
    """The chance that two random vectors of ±1/√d have a product of ε or more falls by the factor
    e^{−I(ε)} with each dimension, I(ε) = (1+ε)/2 log(1+ε) + (1−ε)/2 log(1−ε) = ε²/2 + O(ε⁴). As
    long as the N²/2 pairs times twice that chance are less than one, some choice of N vectors has
    no pair beyond ε: N may be e^{I(ε) d/2}, exponential in ε² d.

    P_d is the chance that the dot product of two such directions is one half or more. Measured here
    at ε = 1/2 with exact binomial sums: the rate from d to 2d dimensions differs from
    I by a multiple of 1/d. That as many are possible is what this shows; that not many more are is
    a theorem of its own (Alon 2003), with a factor log(1/ε) in the exponent.
    """
    return ErrorLaw(
        r"\frac{\log P_d - \log P_{2d}}{d} - I(\tfrac12)",
        _off_rate,
        order=1,
        start=1 / 8,
        small="1/d",
    )


# Pairs of numbers, each of mean square 1 and mean fourth power 3 as a normal variable has them, and
# of mean x² y² 1.
PAIRS = ((2, 1), (2, 1), (1, 2), *3 * [(1, 0)], (0, 2), *2 * [(0, 1)], *3 * [(0, 0)])


@theorem(
    title="A random projection to k dimensions changes inner products with variance of order 1/k",
    chapter=2,
    source=LINDENSTRAUSS,
    covers=("S1-11",),
)
def projection_interference() -> Statement:
    """Read u and v through k random rows y_r and take the mean of the products. On average that is
    ⟨u, v⟩, and it is off by a mean square of (‖u‖²‖v‖² + ⟨u, v⟩²)/k, exactly. Fewer dimensions,
    more interference: a head that reads d_head of d dimensions sees features overlap by 1/√d_head
    that were orthogonal in the stream.

    What is asked of the rows: entries of mean square one and uncorrelated, fourth moments as of a
    normal distribution within a row, and different rows independent as far as fourth moments see.
    """
    u, v = MatrixSymbol("u", d, 1), MatrixSymbol("v", d, 1)
    y = Family("y", (G, K), d, 1)
    outer_a, outer_b = (matmul(y[g, e], Transpose(y[g, e])) for e in (a, b))
    e_i, e_j = OneHot(i, d), OneHot(j, d)
    swap = HeadSum(kron(matmul(e_i, Transpose(e_j)), matmul(e_j, Transpose(e_i))), (i, d), (j, d))
    same = MatrixElement(Identity(K), a, b)
    within = matadd(matmul(same, FLAT, Transpose(FLAT)), matmul(same, swap))
    seen = matmul(1 / K, HeadSum(matmul(Transpose(u), outer_a, v), (a, K)))
    off = matadd(seen, matmul(-1, Transpose(u), v))
    u_v = matmul(Transpose(u), v)
    lengths = matmul(Transpose(u), u, Transpose(v), v)
    return Statement(
        _mean(matmul(off, off)),
        matmul(1 / K, matadd(lengths, matmul(u_v, u_v))),
        given=(
            (_mean(outer_a), Identity(d)),
            (_mean(kron(outer_a, outer_b)), matadd(kron(Identity(d), Identity(d)), within)),
            Example({"y": [[[[x]], [[y]]] for x, y in PAIRS]}),
            Example({"y": [[[[x], [sign * y]]] for x, y in PAIRS for sign in (1, -1)]}),
            Example({"y": 3 * [[[[2]]]] + 13 * [[[[0]]]]}),  # mean square 3/4
        ),
        on_models=False,
    )


def _times(u: tuple[int, ...], v: tuple[int, ...]) -> int:
    return sum(x * y for x, y in zip(u, v, strict=True))


def _off_by(step: float) -> float:
    """Return the mean square error of a product seen through 1/step random rows of ±1, exactly."""
    u, v = (1, 2, 0), (2, 1, 1)
    rows = list(product((1, -1), repeat=3))
    one_row = [_times(u, row) * _times(v, row) for row in rows]
    shares: dict[int, Fraction] = {0: Fraction(1)}
    k = round(1 / step)
    for _ in range(k):
        longer: dict[int, Fraction] = {}
        for total, share in shares.items():
            for value in one_row:
                longer[total + value] = longer.get(total + value, Fraction(0)) + share / len(rows)
        shares = longer
    true = _times(u, v)
    return float(sum(share * (Fraction(total, k) - true) ** 2 for total, share in shares.items()))


@theorem(
    title="The error of a random projection falls with its dimension",
    chapter=2,
    source=LINDENSTRAUSS,
    covers=("S1-11",),
)
def projection_error_law() -> ErrorLaw:
    """The whole distribution of a product seen through k rows of ±1, computed exactly for k = 1, 2,
    4, …: its mean square error falls like 1/k. Rows of ±1 have other fourth moments than those of a
    normal distribution; the constant changes with them, the power does not.
    """
    return ErrorLaw(
        r"E\big[(\langle \Phi u, \Phi v\rangle - \langle u, v\rangle)^2\big]",
        _off_by,
        order=1,
        start=1,
        halvings=5,
        small="1/k",
    )


def _sum_of_squares(B_1: Any, B_2: Any, **_: Any) -> Any:
    total = 0
    for first in range(B_1.shape[1]):
        for second in range(B_2.shape[1]):
            met = sum(B_1[k, first] * B_2[k, second] for k in range(B_1.shape[0]))
            total += met * met
    return total


@theorem(
    title="The overlap of two subspaces",
    chapter=2,
    source="Björck and Golub 1973, “Numerical methods for computing angles”",
    covers=("S1-07",),
)
def subspace_overlap() -> Definition:
    """Write the subspaces with orthonormal columns B_1 and B_2. The singular values of B_1ᵀB_2 are
    the cosines of the principal angles between them: 1 for a direction that both have, 0 for what
    is orthogonal. The sum of their squares is ‖B_1ᵀB_2‖², the overlap: how many dimensions are
    shared, as it were.

    It says what could be read, not what is: two heads may overlap and never attend to each other.
    """
    met = matmul(Transpose(B_1), B_2)
    return Definition(
        "the overlap of two subspaces",
        _squared(met),
        _sum_of_squares,
        obeys=(
            "principal_vectors",
            "principal_angles_are_basis_free",
            "principal_cosine_at_most_one",
            "composition_by_chance",
        ),
        bind=({"B_1": Source("W_V"), "B_2": Source("W_Q")},),
    )


@theorem(
    title="Principal vectors: orthonormal bases in which two subspaces meet pair by pair",
    chapter=2,
    source="Björck and Golub 1973",
    covers=("S1-07",),
)
def principal_vectors() -> Statement:
    """Take the singular value decomposition B_1ᵀB_2 = U diag(c) Vᵀ and turn both bases by it. Then
    each new direction of the one meets one direction of the other, at an angle of cosine c_k, and
    is orthogonal to the rest: (B_1U)ᵀ(B_2V) = diag(c).
    """
    C = MatrixSymbol("c", r, 1)
    U, V = MatrixSymbol("U", r, r), MatrixSymbol("V", s, r)
    return Statement(
        matmul(Transpose(matmul(B_1, U)), matmul(B_2, V)),
        DiagMatrix(C),
        given=(
            (matmul(Transpose(B_1), B_2), matmul(U, DiagMatrix(C), Transpose(V))),
            (matmul(Transpose(U), U), Identity(r)),
            (matmul(Transpose(V), V), Identity(r)),
        ),
        on_models=False,
    )


@theorem(
    title="Principal angles do not depend on the bases",
    chapter=2,
    source="Björck and Golub 1973",
    covers=("S1-07",),
)
def principal_angles_are_basis_free() -> Statement:
    """Turn both bases by rotations R_1 and R_2, and MᵀM with M = B_1ᵀB_2 becomes R_2ᵀ(MᵀM)R_2: the
    same eigenvalues, so the same singular values of M. The angles belong to the subspaces and not
    to the columns that were chosen to write them down.
    """
    R_1, R_2 = MatrixSymbol("R_1", r, r), MatrixSymbol("R_2", s, s)
    met = matmul(Transpose(B_1), B_2)
    turned = matmul(Transpose(matmul(B_1, R_1)), matmul(B_2, R_2))
    return Statement(
        matmul(Transpose(turned), turned),
        matmul(Transpose(R_2), matmul(Transpose(met), met), R_2),
        given=((matmul(R_1, Transpose(R_1)), Identity(r)),),
        on_models=False,
    )


@theorem(
    title="No cosine of a principal angle is larger than one",
    chapter=2,
    source="Björck and Golub 1973",
    covers=("S1-07",),
)
def principal_cosine_at_most_one() -> Bound:
    """For unit vectors B_1u and B_2v of the two subspaces, uᵀB_1ᵀB_2v ≤ 1: what is left to one is
    half of ‖B_1u − B_2v‖². The largest singular value of B_1ᵀB_2 is such a number, so cosines lie
    between 0 and 1, and one is reached just when the subspaces share a direction.
    """
    u, v = MatrixSymbol("u", r, 1), MatrixSymbol("v", s, 1)
    one = Identity(1)
    return Bound(
        Trace(matmul(Transpose(matmul(B_1, u)), matmul(B_2, v))),
        Trace(one),
        because=(Square(matadd(matmul(B_1, u), matmul(-1, B_2, v)), Fraction(1, 2)),),
        given=(
            (matmul(Transpose(matmul(B_1, u)), matmul(B_1, u)), one),
            (matmul(Transpose(matmul(B_2, v)), matmul(B_2, v)), one),
        ),
        tight={
            "B_1": [[1, 0], [0, 1], [0, 0]],
            "B_2": [[1], [0], [0]],
            "u": [[1], [0]],
            "v": [[1]],
        },
        on_models=False,
    )


@theorem(
    title="The composition score at random is 1/√d, for all ranks and spectra",
    chapter=2,
    convention="column",
    source=f"{WEINGARTEN}; {FRAMEWORK}, “Three kinds of composition”",
    covers=("B5", "S1-07", "S3-020"),
)
def composition_by_chance() -> Statement:
    """The composition score of a writer A and a reader B is ‖BA‖ / ‖B‖‖A‖. Put a uniformly random
    rotation Q between them: the mean of ‖BQA‖² is ‖A‖²‖B‖²/d. So the root mean square of the score
    is exactly 1/√d by chance, 0.0361 at d = 768, and not zero.

    In the row convention the same is said of W_1 Q W_2, as a transpose changes no norm. Ranks and
    singular values do not enter. A score means something only by how far it is above (or below)
    this. For orthonormal bases of two subspaces of r and s dimensions, of squared lengths r
    and s, it says that their overlap is r s/d on average: two heads of 64 dimensions in a stream of
    768 share 5.3 without meaning anything by it. Of the rotations only second moments are used.
    """
    turned = matmul(B, Q[g], A)
    return Statement(
        _mean(_squared(turned)),
        matmul(1 / d, _squared(A), _squared(B)),
        given=(UNIFORM, QUATERNIONS),
        on_models=False,
    )


@theorem(
    title="The composition score at random is 1/√(d − 1) where the mean is subtracted",
    chapter=2,
    convention="column",
    source=f"{WEINGARTEN}; {FRAMEWORK}, “Three kinds of composition”",
    covers=("B5", "S3-020"),
)
def composition_by_chance_centred() -> Statement:
    """Where a LayerNorm takes the mean off, writers have no mean (1ᵀA = 0) and readers hear none
    (B1 = 0). The rotations to compare with are those that keep 1, and turn the d − 1 other
    dimensions uniformly: the mean of ‖BQA‖² is then ‖A‖²‖B‖²/(d − 1).

    The moments of such rotations are those of P = Id − 11ᵀ/d on what is turned, and 1 on what is
    kept. The permutations of d features are an example, all d! of them.
    """
    ones, centre = OneMatrix(d, d), matadd(Identity(d), matmul(-1 / d, OneMatrix(d, d)))
    flat = vec_rows(centre)
    moments = matadd(matmul(1 / (d - 1), flat, Transpose(flat)), matmul(1 / d**2, kron(ones, ones)))
    turned = matmul(B, Q[g], A)
    shuffles = [
        [[int(k == to[n]) for k in range(3)] for n in range(3)] for to in permutations((0, 1, 2))
    ]
    writer, reader = [[1, 2, 0], [-1, 0, 3], [0, -2, -3]], [[1, 0, -1], [2, -1, -1], [0, 1, -1]]
    two = [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]
    return Statement(
        _mean(_squared(turned)),
        matmul(1 / (d - 1), _squared(A), _squared(B)),
        given=(
            (_mean(kron(Q[g], Q[g])), moments),
            (matmul(OneMatrix(1, d), A), ZeroMatrix(1, p)),
            (matmul(B, OneMatrix(d, 1)), ZeroMatrix(q, 1)),
            Example({"Q": shuffles, "A": writer, "B": reader}),
            Example({"Q": two, "B": [[1, -1], [2, -2]]}),
            Example({"Q": two, "A": [[1, 3], [-1, -3]]}),
        ),
        on_models=False,
    )
