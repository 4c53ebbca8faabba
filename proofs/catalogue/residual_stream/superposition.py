"""Chapter 2: more features than dimensions, and what they cost each other at least."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from sympy import (
    HadamardProduct,
    Identity,
    MatrixSymbol,
    Min,
    OneMatrix,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import matadd, matmul
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.symbols import d, size
from otimes.proofs.claims import Bound, Definition, Entries, Example, Property, Square, Statement
from otimes.proofs.theorem import theorem

TOY = "Elhage et al. 2022, “Toy Models of Superposition”"
WELCH = "Welch 1974, “Lower bounds on the maximum cross correlation of signals”"
N, G = size("N"), size("G")
F, z = MatrixSymbol("F", N, d), MatrixSymbol("z", 1, N)
GRAM = matmul(F, Transpose(F))  # the products of all features with each other
UNIT = (HadamardProduct(GRAM, Identity(N), evaluate=False), Identity(N))
EMBEDDED = {"F": Source("W_E", rows=48)}
Z = MatrixSymbol("Z", G, N)


def _had(*factors: Any) -> Any:
    return HadamardProduct(*factors, evaluate=False)


def _others() -> Any:
    """Return the matrix with a one for each pair of different features."""
    return matadd(OneMatrix(N, N), matmul(-1, Identity(N)))


def _mean(matrix: Any) -> Any:
    """Return the mean over the rows of a matrix, one row for each of G cases."""
    return matmul(1 / G, OneMatrix(1, G), matrix)


def _variance(matrix: Any) -> Any:
    mean = _mean(matrix)
    return matadd(_mean(_had(matrix, matrix)), matmul(-1, _had(mean, mean)))


def _weighted(z: Any, F: Any, **_: Any) -> np.ndarray:
    """Return the sum of the features, each as much as it is present."""
    x = np.zeros((1, F.shape[1]), dtype=F.dtype)
    for feature in range(F.shape[0]):
        for k in range(F.shape[1]):
            x[0, k] += z[0, feature] * F[feature, k]
    return x


@theorem(
    title="Superposition: a vector holds more features than it has dimensions",
    chapter=2,
    convention="row",
    source=TOY,
    covers=("S1-08",),
)
def superposition() -> Definition:
    """Superposition means that a vector stores more features than it has dimensions. In x = Σ_k z_k
    f_k, feature k is present to the degree z_k (an entry of z) and has the direction f_k (row k of
    F, which is N × d), with N > d.

    It is the leading explanation of why single neurons and coordinates are hard to interpret.

    With N > d the directions cannot all be orthogonal. They can be nearly orthogonal, and then
    features can be read with little error as long as few of them are present at once
    (`reading_a_feature`).
    """
    return Definition(
        "the features in superposition",
        matmul(z, F),
        _weighted,
        obeys=("features_gram_rank", "orthogonal_features_at_most_d", "welch_bound"),
        bind=({"z": Source("one_hot", rows=1), "F": Source("W_E", example=True)},),
    )


@theorem(
    title="The Gram matrix of N vectors in d dimensions has rank at most d",
    chapter=2,
    convention="row",
    source=TOY,
    covers=("S0-67", "S1-08"),
)
def features_gram_rank() -> Property:
    """The table of dot products of N vectors with d entries, F Fᵀ, is N × N and has rank at most d.
    If all N vectors were orthogonal and nonzero, the table would be diagonal with rank N.

    So with N > d they are not all orthogonal. This holds for the token embeddings of every model
    whose vocabulary is larger than its residual stream.
    """
    more_than_d = {"F": Source("W_E", rows=160)}
    return Property(Fact("rank_at_most", GRAM, Min(N, d)), bind=(more_than_d,))


@theorem(
    title="At most d nonzero vectors in d dimensions are orthogonal to each other",
    chapter=2,
    convention="row",
    source=f"{TOY}; any text on linear algebra",
    covers=("S0-67",),
)
def orthogonal_features_at_most_d() -> Bound:
    """In d dimensions there are at most d nonzero vectors that are orthogonal to each other. In the
    hypotheses F Fᵀ = diag(c) says that the N rows of F are orthogonal, and c ∘ r = 1 that none is
    zero. The proof writes d − N as a sum of squares: the squared entries of Id − Fᵀ diag(r) F, the
    projection onto what is orthogonal to all of them.

    The bound says nothing about sets that contain a zero vector, and nothing about nearly
    orthogonal vectors: of those there can be far more than d (`many_nearly_orthogonal`).
    """
    c, r = MatrixSymbol("c", N, 1), MatrixSymbol("r", N, 1)
    touched = matmul(Transpose(F), DiagMatrix(r), F)
    return Bound(
        N,
        d,
        because=(Square(matadd(Identity(d), matmul(-1, touched))),),
        given=((GRAM, DiagMatrix(c)), (_had(c, r), OneMatrix(N, 1))),
        tight={
            "F": [[2, 0], [0, 3]],
            "c": [[4], [9]],
            "r": [[Fraction(1, 4)], [Fraction(1, 9)]],
            "N": 2,
            "d": 2,
        },
        on_models=False,
    )


@theorem(
    title="The Welch bound: how much N vectors in d dimensions must overlap",
    chapter=2,
    convention="row",
    source=WELCH,
    covers=("S0-68",),
)
def welch_bound() -> Bound:
    """If N vectors share d < N dimensions, their dot products cannot all be small: the sum of ⟨f_i,
    f_j⟩² over all pairs is at least (Σ ‖f_i‖²)²/d. For unit vectors the pairs i ≠ j therefore have
    squares that add up to at least N (N − d)/d.

    It is a lower limit on interference in superposition, which no training can beat. Three unit
    vectors in the plane at angles of 120° reach it: six ordered pairs with squared product 1/4
    each, and 3 (3 − 2)/2 = 3/2.

    Equality holds exactly for vectors that are spread evenly over all directions, FᵀF = (N/d) Id
    for unit vectors, called a tight frame.
    """
    total = Trace(GRAM)
    spread = matadd(matmul(Transpose(F), F), matmul(-total / d, Identity(d)))
    cosine, sine = Fraction(3, 5), Fraction(4, 5)
    return Bound(
        total**2 / d,
        Trace(matmul(GRAM, Transpose(GRAM))),
        because=(Square(spread),),
        tight={"F": [[1, 0], [0, 1], [cosine, sine], [-sine, cosine]]},
        bind=(EMBEDDED,),
    )


@theorem(
    title="The Welch bound on the largest overlap",
    chapter=2,
    convention="row",
    source=WELCH,
    covers=("S0-68",),
)
def welch_bound_on_largest() -> Bound:
    """Among N > d unit vectors in d dimensions, some two have a squared dot product of at least (N
    − d)/(d (N − 1)). The claim is written without the division: if c is at least every squared
    product of two different vectors, then N (N − d)/d ≤ N (N − 1) c. The second hypothesis says
    what c is, the first that the vectors have length one. The rows of F (N × d) are the vectors.

    It follows from the bound on the sum (`welch_bound`), as the largest is at least the mean. When
    N is much larger than d the bound tends to 1/√d for the product itself. That is the typical
    overlap of random directions, so random directions are nearly as good as any on average.
    """
    c = Symbol("c", real=True)
    overlap = _had(GRAM, _others())
    room = matadd(matmul(c, _others()), matmul(-1, _had(overlap, overlap)))
    spread = matadd(matmul(Transpose(F), F), matmul(-N / d, Identity(d)))
    return Bound(
        N * (N - d) / d,
        N * (N - 1) * c,
        because=(Square(spread), Entries(room)),
        given=(UNIT, Fact("nonnegative", room)),
        tight={"F": [[1], [-1], [1]], "c": 1, "N": 3, "d": 1},
        on_models=False,
    )


@theorem(
    title="Reading a feature returns it plus interference from all others",
    chapter=2,
    convention="row",
    source=TOY,
    covers=("S1-09",),
)
def reading_a_feature() -> Statement:
    """Reading one feature out of a superposition gives its value plus interference from the others.
    Take the dot product of x = Σ_m z_m f_m with the unit vector f_k: the result is z_k plus, for
    every other feature, z_m times the overlap ⟨f_m, f_k⟩. In the equation z (1 × N) holds the
    values and the rows of F the directions.

    Interference is zero when the other features are absent or orthogonal.

    The hypothesis says that each direction has length one. Otherwise even z_k is read with a wrong
    factor.
    """
    overlap = _had(GRAM, _others())
    return Statement(
        matmul(matmul(z, F), Transpose(F)),
        matadd(z, matmul(z, overlap)),
        given=(UNIT,),
        on_models=False,
    )


@theorem(
    title="The variance of interference: a term for each feature and one for each pair",
    chapter=2,
    source=TOY,
    covers=("S1-12",),
)
def interference_variance() -> Statement:
    """The interference on a feature in superposition is a weighted sum of the other features, so
    its variance has one term for each feature and one for each pair: Σ_m Var(z_m) o_mk² plus
    Cov(z_m, z_m') o_mk o_m'k for each ordered pair of different features. In the formula the rows
    of Z are G cases, column k of O holds the overlaps o_mk, and means over cases stand for
    expectations. It holds for every distribution.

    So features that occur together increase interference when their overlaps have the same sign,
    and decrease it when the signs differ. “Co-occurrence makes interference worse” is true of the
    first kind only.
    """
    overlap = MatrixSymbol("O", N, N)
    mean = _mean(Z)
    covariance = matadd(matmul(1 / G, Transpose(Z), Z), matmul(-1, Transpose(mean), mean))
    own = matmul(Transpose(DiagonalOf(covariance)), _had(overlap, overlap))
    of_pairs = matmul(Transpose(overlap), _had(covariance, _others()), overlap)
    return Statement(
        _variance(matmul(Z, overlap)),
        matadd(own, Transpose(DiagonalOf(of_pairs))),
        on_models=False,
    )


@theorem(
    title="Sparser features interfere less",
    chapter=2,
    source=TOY,
    covers=("S1-10",),
)
def sparsity_lowers_interference() -> Statement:
    """The rarer features are, the less they interfere. Let feature m be present with probability
    p_m, and have mean square s_m when it is. If features are uncorrelated with mean zero, the
    interference on feature k has variance Σ_m p_m s_m o_mk², where o_mk is the overlap of features
    m and k. If all features become ten times rarer, overlaps may be √10 times larger at the same
    variance. Column k of O (N × N) holds the overlaps with feature k.

    This is the reason why superposition pays for sparse features.

    In the equation B (G × N) has a 1 where a feature is present in one of G cases, and S its size.
    Independence is used only through the two means that are written below it.
    """
    B, S = MatrixSymbol("B", G, N), MatrixSymbol("S", G, N)
    p, s, overlap = MatrixSymbol("p", N, 1), MatrixSymbol("s", N, 1), MatrixSymbol("O", N, N)
    present = _had(B, S)
    sizes = DiagonalOf(matmul(1 / G, Transpose(B), _had(S, S)))
    pairs = _had(matmul(Transpose(present), present), _others())
    return Statement(
        _mean(_had(matmul(present, overlap), matmul(present, overlap))),
        matmul(Transpose(_had(p, s)), _had(overlap, overlap)),
        given=(
            (_had(B, B), B),
            (sizes, _had(p, s)),
            (pairs, ZeroMatrix(N, N)),
            Example(
                {
                    "B": [[1, 0], [1, 0], [0, 1], [0, 1]],
                    "S": [[2, 1], [-2, 1], [5, 3], [1, -3]],
                    "p": [[Fraction(1, 2)], [Fraction(1, 2)]],
                    "s": [[4], [9]],
                }
            ),
            Example(
                {
                    "B": [[1, 1], [1, 1]],
                    "S": [[1, 1], [-1, -1]],
                    "p": [[1], [1]],
                    "s": [[1], [1]],
                }
            ),
        ),
        on_models=False,
    )
