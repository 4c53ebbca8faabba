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
T, t = size("T"), symbols("t", integer=True)
R = Family("R", (T,), d, d)
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
    """The dot product of a fixed vector u with a random direction v is not zero: its mean square is
    ‖u‖²/d. “Random” means here that no direction is favoured, so that the mean of vvᵀ is Id/d, as
    for the uniform distribution on the sphere.

    For d = 768 the root mean square is 0.036 for unit vectors. A similarity of this size between
    two directions in a model is what chance gives, and no sign of a relation.

    The vectors v[g] are G samples. The d coordinate axes, for example, satisfy the hypothesis
    exactly.
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
    """In d dimensions there is room for a number of nearly orthogonal vectors that grows
    exponentially with d. The chance that two random vectors with entries ±1/√d have a dot product
    of ε or more falls about by the factor e^{−I(ε)} with each dimension, where I(ε) = (1+ε)/2
    log(1+ε) + (1−ε)/2 log(1−ε) ≈ ε²/2. So about e^{I(ε) d/2} vectors can be chosen with no pair
    beyond ε.

    It is why a residual stream can hold far more features than dimensions, if they are sparse.

    The claim that is measured is the rate: P_d is the chance of a product of 1/2 or more, computed
    exactly, and its decay from d to 2d dimensions approaches I(1/2) like 1/d. This shows that so
    many vectors are possible. That not many more are is another theorem (Alon 2003).
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
    """If vectors are seen only through k random directions, their dot products are right on average
    and wrong by a mean square of (‖u‖²‖v‖² + ⟨u, v⟩²)/k. In the formula y[g, a] is the a-th of k
    random rows in case g, and the estimate is the mean over a of ⟨u, y⟩⟨y, v⟩.

    A head reads d_head of the d dimensions of the stream, as such a projection does. Features that
    are orthogonal in the stream then overlap by about 1/√d_head, 0.125 for d_head = 64.

    The hypotheses ask for entries of mean square one that are uncorrelated, for fourth moments as
    in a normal distribution, and for rows that are independent as far as fourth moments can tell.
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
    """A random projection to k dimensions keeps dot products up to an error whose mean square falls
    like 1/k. Here the rows of the projection Φ have entries ±1, and the distribution of ⟨Φu, Φv⟩ −
    ⟨u, v⟩ is computed exactly for k = 1, 2, 4, ….

    `projection_interference` has the exact constant for rows like those of a normal distribution.
    Entries ±1 have other fourth moments, so the constant changes (`interference_of_signs`) and the
    power of k does not.
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
    """The overlap of two subspaces counts how many dimensions they share. Let the columns of B_1 (d
    × r) and B_2 (d × s) be orthonormal bases; the overlap is the sum of all squared entries of
    B_1ᵀB_2. It is between 0, for orthogonal subspaces, and min(r, s), when one contains the other.
    Two lines in the plane at 60° have overlap 1/4.

    It is also the sum of the squared cosines of the principal angles, which are the singular values
    of B_1ᵀB_2. It is used to ask whether what one head writes can be read by another.

    Overlap says what could be read. Two heads may overlap and never attend to each other.
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
        bind=({"B_1": Source("W_V", example=True), "B_2": Source("W_Q", example=True)},),
    )


@theorem(
    title="Principal vectors: orthonormal bases in which two subspaces meet pair by pair",
    chapter=2,
    source="Björck and Golub 1973",
    covers=("S1-07",),
)
def principal_vectors() -> Statement:
    """Any two subspaces have orthonormal bases that meet in pairs: each vector of the first basis
    makes an angle with one vector of the second and is orthogonal to all others. To find them, take
    the singular value decomposition B_1ᵀB_2 = U diag(c) Vᵀ of any two orthonormal bases; the new
    bases are B_1 U and B_2 V, and c holds the cosines of the angles, called principal angles.

    They show which directions two heads or layers have in common, and how nearly.
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
    """The principal angles between two subspaces do not depend on the bases that describe them.
    Rotate the bases B_1 and B_2 by orthogonal R_1 and R_2: with M = B_1ᵀB_2, the matrix MᵀM becomes
    R_2ᵀ (MᵀM) R_2, which has the same eigenvalues. These are the squared cosines of the angles.

    So they can be compared between models, while the single entries of B_1ᵀB_2 cannot.
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
    """The cosine of an angle between two subspaces is at most one. For unit vectors B_1 u and B_2 v
    of the two, uᵀ B_1ᵀ B_2 v ≤ 1, since one minus it is ½ ‖B_1 u − B_2 v‖². Equality means that the
    subspaces share this direction.

    The largest singular value of B_1ᵀB_2 is such a product, so all of them lie between 0 and 1 if
    the columns of B_1 and of B_2 are orthonormal. A computed value above 1 by more than rounding
    means that one of the bases is not.
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
    title="The second moments of random rotations follow from their invariance",
    chapter=2,
    source=WEINGARTEN,
    covers=("S3-020",),
)
def moments_of_random_rotations() -> Statement:
    """For uniformly random rotations Q the mean of Q_ab Q_ce is 1/d if a = c and b = e, and zero
    otherwise. This follows from what “uniformly random” (the Haar measure) means: a further
    rotation R changes no mean. In the hypotheses the first equation says that the mean of Q ⊗ Q
    stays the same if each Q[g] is multiplied by an R[t], averaged over t.

    For R it is enough to take permutations of the features with changes of sign. These have the
    stated moments, as a feature is as likely to go to any place, with either sign; the second
    hypothesis says so. The third says that each Q[g] is orthogonal.

    The means of ‖BQA‖² (`composition_by_chance`) and of Q M Qᵀ (`mean_of_rotated`) need nothing
    else of the rotations.
    """
    both = matmul(Q[g], R[t])
    moments = matmul(1 / d, FLAT, Transpose(FLAT))

    def over_t(body: Any) -> Any:
        return matmul(1 / T, HeadSum(body, (t, T)))

    turns = QUATERNIONS.numbers["Q"]
    return Statement(
        _mean(kron(Q[g], Q[g])),
        moments,
        given=(
            (_mean(kron(Q[g], Q[g])), _mean(over_t(kron(both, both)))),
            (over_t(kron(R[t], R[t])), moments),
            (matmul(Q[g], Transpose(Q[g])), Identity(d)),
            Example({"Q": turns, "R": turns}),
            Example({"Q": [[[1]]], "R": [[[-1]]]}),
            Example({"Q": [[[1, 0], [0, 1]]], "R": turns}),
            Example({"Q": [[[1, 0], [0, 1]]], "R": [[[1, 0], [0, 1]]]}),
            Example({"Q": [[[2]]], "R": [[[1]]]}),
        ),
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
    """The composition score ‖BA‖/(‖B‖‖A‖) measures how much a later component B reads of what an
    earlier component A writes (norms are roots of sums of squares). For unrelated components it is
    not zero: with a uniformly random rotation Q between them, the mean of ‖BQA‖² is exactly
    ‖A‖²‖B‖²/d. So the root mean square of the score is 1/√d, which is 0.0361 for d = 768.

    A score therefore means something only by its distance from 1/√d. Ranks and singular values do
    not enter. Two unrelated subspaces of 64 dimensions in a stream of 768 have overlap 64 · 64/768
    = 5.3 on average.

    The hypothesis is about second moments of the rotations only, which a uniformly random rotation
    has (`moments_of_random_rotations`); A is d × p and B is q × d. In the row convention the same
    holds for W_1 Q W_2.
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
    """Where a LayerNorm subtracts the mean, the residual stream has d − 1 dimensions in effect, and
    the composition score of unrelated components is 1/√(d − 1) in root mean square instead of 1/√d
    (`composition_by_chance`). The writer A has no mean (1ᵀA = 0), the reader B ignores it (B1 = 0),
    and the random rotations are those that keep the direction (1, …, 1). The rotations are Q[g].

    The hypothesis gives the second moments of such rotations. The d! permutations of the features
    are an example.
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
