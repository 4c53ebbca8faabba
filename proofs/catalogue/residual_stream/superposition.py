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
    """In x = Σ_k z_k f_k, feature k is present to the degree z_k and has the direction f_k, row k
    of F. Superposition is when there are more features than dimensions, N > d. Then the directions
    cannot all be orthogonal; they are nearly so, and it works as long as few features are present
    at once.
    """
    return Definition(
        "the features in superposition",
        matmul(z, F),
        _weighted,
        obeys=("features_gram_rank", "orthogonal_features_at_most_d", "welch_bound"),
        bind=({"z": Source("one_hot", rows=1), "F": Source("W_E")},),
    )


@theorem(
    title="The Gram matrix of N vectors in d dimensions has rank at most d",
    chapter=2,
    convention="row",
    source=TOY,
    covers=("S0-67", "S1-08"),
)
def features_gram_rank() -> Property:
    """The table of all products of features with each other is F Fᵀ, N × N of rank at most d. If
    all features were orthogonal and none zero, this table would be diagonal of rank N. With N > d
    it cannot be: embeddings of a vocabulary larger than d are never all orthogonal.
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
    """Let the features be orthogonal, F Fᵀ = diag(c), none of them zero (r are the reciprocals of
    c). Then N ≤ d, and d − N is a sum of squares: the squared size of Id − Fᵀ diag(r) F, the
    projection on what no feature touches.

    It says nothing of sets that contain a zero vector, and nothing of nearly orthogonal ones: of
    those there are far more than d.
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
    """The squares of all products, Σ ⟨f_i, f_j⟩² over all pairs, are at least (Σ ‖f_i‖²)² / d: what
    is above it is the squared size of FᵀF − (t/d) Id, with t the sum of squared lengths. For unit
    vectors t = N, so the pairs i ≠ j share at least N²/d − N = N (N − d)/d.

    They share exactly that much when the vectors are a tight frame, FᵀF = (N/d) Id: spread evenly
    over all directions. No cleverness of training gets below it.
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
    """Among N unit vectors in d dimensions some two have a squared product of at least (N − d) / (d
    (N − 1)). Written without the division: if no squared product of two different ones is larger
    than c, then N (N − d)/d ≤ N (N − 1) c.

    The difference is a square, that of the bound on the sum, plus what the single products leave
    below c. With many more vectors than dimensions the bound tends to 1/√d, the overlap of random
    directions: below it one cannot stay, and random vectors are near it on average.
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
    """Read x = Σ z_m f_m along each unit direction f_k: what is found is z_k itself, plus each
    other feature times its product with f_k. That sum is the interference. It vanishes when the
    others are absent or orthogonal, and no other reader is needed then.

    Only the length of f_k is normalised here. If it is not one, even z_k is read wrong.
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
    """In G cases (rows of Z) features are present to various degrees, and reading feature k picks
    up Σ_m z_m o_mk, where o are the overlaps. Its variance is Σ_m Var(z_m) o_mk², and for each pair
    of different features their covariance times both overlaps.

    Features that come together make it worse when their overlaps have the same sign, and better
    when the signs differ: “co-occurrence makes interference worse” holds for the first kind only.
    The equation holds for every table of overlaps and whatever the distribution is.
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
    """Let feature m be present (b = 1) with probability p_m, and then of size a_m with mean square
    s_m; let sizes be independent of presence, and different features uncorrelated, with means zero.
    Then the interference at feature k has mean zero, and its variance, its mean square, is Σ_m p_m
    s_m o_mk²: proportional to how often the others are there.

    That is the reason why superposition pays: ten times rarer features may overlap √10 times more.
    Probabilities are shares of G cases, so all of this is exact. Of independence only what is
    written is used: the mean of b a² is p s, and the mean of z_m z_m' is 0.
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
