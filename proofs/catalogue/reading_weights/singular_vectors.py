"""Chapter 7: weights by their singular vectors: what they read, what they write, and bands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import fsum
from typing import Any

import numpy as np
from sympy import (
    Identity,
    MatrixExpr,
    MatrixSymbol,
    Min,
    Symbol,
    Trace,
    Transpose,
    symbols,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.numeric.circuits.heads import ov_circuit
from otimes.numeric.circuits.lens import spectral_bands
from otimes.numeric.model import Model
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import V, X, d, d_head, m, n, p, q, r, row, s, size
from otimes.proofs.claims import (
    Bound,
    Entries,
    Method,
    NonIdentity,
    Property,
    Square,
    Statement,
    Trial,
)
from otimes.proofs.theorem import theorem

GOLUB = "Golub and Van Loan, §2.4"
MILLIDGE = (
    "Millidge and Black 2022, “The Singular Value Decompositions of Transformer Weight Matrices "
    "are Highly Interpretable”"
)
BACKWARD = "Katz et al. 2024, “Backward Lens”"
SPECTRUM = "Cancedda 2024, “Spectral filters, dark signals, and attention sinks”"
ROUNDOFF = np.finfo(float).eps / 2

# W = U diag(σ) Vᵀ: columns of U on the side that is read, columns of V on the side that is written.
U, V_r, sigma = MatrixSymbol("U", p, r), MatrixSymbol("V_r", q, r), MatrixSymbol("sigma", r, 1)
SVD = matmul(U, DiagMatrix(sigma), Transpose(V_r))
i = Symbol("i", integer=True)
_direction = OneHot(i, r)
_sigma_i = matmul(Transpose(_direction), sigma)
ORTHONORMAL_U = (matmul(Transpose(U), U), Identity(r))
ORTHONORMAL_V = (matmul(Transpose(V_r), V_r), Identity(r))


def _squared(matrix: Any) -> Any:
    return Trace(matmul(matrix, Transpose(matrix)))


@theorem(
    title="A matrix is a sum of directions that are read, scaled and written",
    chapter=7,
    convention="row",
    source=f"{GOLUB}; {PRIMER}, “Decoding in vocabulary space”",
    covers=("S3-091", "S3-092"),
)
def svd_applied() -> Statement:
    """A matrix acts by reading directions, scaling, and writing directions: with the singular value
    decomposition W = U Σ Vᵀ, z W = Σ_i (z·u_i) σ_i v_iᵀ. Column u_i of U is what the input z is
    compared with, σ_i is a weight, and v_i, column i of V, is what is written. In the formula σ (r
    × 1) holds the singular values, and V is V_r.

    So a head's circuit can be read one singular direction at a time.

    Libraries return the third factor already transposed, so the v_i are the rows of `Vh`. Taking
    its columns is the usual mistake, and for a square matrix no shape shows it.
    """
    z = MatrixSymbol("z", m, p)
    terms = matmul(z, U, _direction, _sigma_i, Transpose(matmul(V_r, _direction)))
    return Statement(matmul(z, SVD), HeadSum(terms, (i, r)), on_models=False)


@theorem(
    title="The two sides of a singular value decomposition cannot be exchanged",
    chapter=7,
    convention="row",
    source=GOLUB,
)
def svd_sides_are_not_exchanged() -> NonIdentity:
    """Exchanging U and V in a singular value decomposition gives the transposed matrix, which is a
    different one in general. In the row convention U holds what is read and V what is written. In
    the formula V is V_r, and σ holds the singular values.

    For a square matrix the exchange raises no error.
    """
    A, B = MatrixSymbol("U", d, r), MatrixSymbol("V_r", d, r)
    return NonIdentity(
        matmul(A, DiagMatrix(sigma), Transpose(B)),
        matmul(B, DiagMatrix(sigma), Transpose(A)),
        given=(
            (matmul(Transpose(A), A), Identity(r)),
            (matmul(Transpose(B), B), Identity(r)),
        ),
    )


@theorem(
    title="Singular vectors come in pairs: W v = σ u",
    chapter=7,
    source=GOLUB,
    covers=("S3-091",),
)
def svd_pairs() -> Statement:
    """Singular vectors come in pairs: W v_i = σ_i u_i, and u_iᵀ W = σ_i v_iᵀ. It follows from the
    columns of V being orthonormal. W is U diag(σ) V_rᵀ, with the u_i and v_i as columns of U and
    V_r.

    So from a direction that a component writes one finds the direction that it reads for it.
    """
    return Statement(
        matmul(SVD, V_r, _direction),
        matmul(U, _direction, _sigma_i),
        given=(ORTHONORMAL_V,),
        on_models=False,
    )


@theorem(
    title="The Frobenius norm is the norm of the singular values",
    chapter=7,
    source=GOLUB,
    covers=("S3-091",),
)
def norm_is_singular_values() -> Statement:
    """The squared Frobenius norm of a matrix, the sum of its squared entries, is the sum of its
    squared singular values. So σ_i² divided by that sum is the share of direction i in the matrix.
    The matrix is U diag(σ) V_rᵀ, with the singular values σ.

    It requires both sets of singular vectors to be orthonormal.
    """
    return Statement(
        _squared(SVD),
        Trace(matmul(Transpose(sigma), sigma)),
        given=(ORTHONORMAL_U, ORTHONORMAL_V),
        on_models=False,
    )


@theorem(
    title="The norm of a product from the Gram matrices of its factors",
    chapter=7,
    source=f"{FRAMEWORK}, “Working with low-rank matrices”",
    covers=("B13",),
)
def norm_of_factored() -> Statement:
    """The norm of a product AB can be computed from the two small Gram matrices AᵀA and BBᵀ: ‖AB‖²
    = tr((AᵀA)(BBᵀ)). For a head these are d_head × d_head. A is p × r and B is r × q, with r small.

    For the full circuit of a large vocabulary that means two matrices of a few thousand entries
    instead of one with billions.
    """
    A, B = MatrixSymbol("A", p, d_head), MatrixSymbol("B", d_head, q)
    return Statement(
        _squared(matmul(A, B)),
        Trace(matmul(matmul(Transpose(A), A), matmul(B, Transpose(B)))),
        on_models=False,
    )


@theorem(
    title="The singular values of a low-rank product from its small core",
    chapter=7,
    source=f"{FRAMEWORK}, “Working with low-rank matrices”; Golub and Van Loan, §5.2",
    covers=("B13", "S3-091"),
)
def svd_of_factored() -> Statement:
    """The singular values of a product of two thin matrices can be found from a small core. With A
    = Q_A R_A and Bᵀ = Q_B R_B (QR decompositions), decompose R_A R_Bᵀ = U_c S V_cᵀ, which is d_head
    × d_head. Then AB = (Q_A U_c) S (Q_B V_c)ᵀ.

    So the d × d or V × V matrix is never decomposed. `thin_product_is_orthonormal` completes the
    argument.
    """
    k = d_head
    Q_A, R_A = MatrixSymbol("Q_A", p, k), MatrixSymbol("R_A", k, k)
    Q_B, R_B = MatrixSymbol("Q_B", q, k), MatrixSymbol("R_B", k, k)
    U_c, S, V_c = MatrixSymbol("U_c", k, r), MatrixSymbol("S", r, r), MatrixSymbol("V_c", k, r)
    return Statement(
        matmul(matmul(Q_A, R_A), Transpose(matmul(Q_B, R_B))),
        matmul(matmul(Q_A, U_c), S, Transpose(matmul(Q_B, V_c))),
        given=((matmul(R_A, Transpose(R_B)), matmul(U_c, S, Transpose(V_c))),),
        on_models=False,
    )


@theorem(
    title="Products of matrices with orthonormal columns have orthonormal columns",
    chapter=7,
    source="Golub and Van Loan, §5.2",
    covers=("B13",),
)
def thin_product_is_orthonormal() -> Property:
    """If Q_A and U_c have orthonormal columns, so has their product Q_A U_c.

    This is what makes the factorisation in `svd_of_factored` a singular value decomposition and not
    just a product of matrices.
    """
    Q_A, U_c = MatrixSymbol("Q_A", p, d_head), MatrixSymbol("U_c", d_head, r)
    return Property(
        Fact("orthonormal_columns", matmul(Q_A, U_c)),
        given=(Fact("orthonormal_columns", Q_A), Fact("orthonormal_columns", U_c)),
        on_models=False,
    )


@theorem(
    title="Singular vectors that live in the stream, expressed over the vocabulary",
    chapter=7,
    convention="row",
    source=f"{MILLIDGE}; {PRIMER}, “Decoding in vocabulary space”",
    covers=("S3-093",),
)
def writer_in_vocabulary() -> Statement:
    """What a matrix that writes to the stream adds to the logits is a sum over its singular
    directions: z W W_U = Σ_i (z·u_i) σ_i (v_iᵀ W_U). The vectors v_i of W_OV, W_O or W_out have d
    entries, so each has a logit for every token. W is U diag(σ) V_rᵀ, with the u_i and v_i as
    columns of U and V_r.

    Listing the top tokens of v_iᵀ W_U is a common way to interpret heads and MLPs.

    For a matrix that reads the stream, such as W_V or W_in, the left vectors u_i have d entries,
    and the right ones do not. Projecting “right singular vectors” for all matrices, as in print,
    does not fit.
    """
    z, written = MatrixSymbol("z", m, p), MatrixSymbol("V_r", d, r)
    reader, reads = MatrixSymbol("V_r", d_head, r), MatrixSymbol("U", d, r)
    tokens = matmul(Transpose(matmul(written, _direction)), row.W_U)
    terms = matmul(z, U, _direction, _sigma_i, tokens)

    def of_a_reader() -> tuple[Any, Any]:
        W_V = matmul(reads, DiagMatrix(sigma), Transpose(reader))
        return matmul(W_V, row.W_U), matmul(reads, DiagMatrix(sigma), Transpose(reader), row.W_U)

    return Statement(
        matmul(z, matmul(U, DiagMatrix(sigma), Transpose(written)), row.W_U),
        HeadSum(terms, (i, r)),
        on_models=False,
        printed={"E47": of_a_reader},
    )


@theorem(
    title="Singular vectors of a head, computed from its factors",
    chapter=7,
    source=MILLIDGE,
    covers=("S3-093", "S3-091", "B13"),
)
def singular_vectors_method() -> Method:
    """`ot.ov_circuit(…).svd()` decomposes a head's d × d circuit through its d_head × d_head core.
    Checked: the singular values are those of the full matrix, and U Σ VᵀW_U is the circuit over the
    vocabulary. `V.T @ W_U` lists the written directions as tokens.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers or model.config.norm != "none":
            return
        found = ov_circuit(model, 0, 0).svd()
        W_V, W_O = model.W_V[0, 0], model.W_O[0, 0]
        # Singular values move by the norm of a perturbation at most (Weyl).
        size = np.linalg.norm(W_V) * np.linalg.norm(W_O)
        bound = 16 * model.d_model * ROUNDOFF * size
        dense = np.linalg.svd(W_V @ W_O, compute_uv=False)[: model.d_head]
        yield Trial(
            "singular values", found.S, np.pad(dense, (0, len(found.S) - len(dense))), bound
        )
        few, columns = 4, model.W_U[:, :4]
        table = (found.U[:few] * found.S) @ (found.V.T @ columns)
        plain = [
            [
                fsum(
                    fsum(a * b for a, b in zip(line, W_O[:, e].tolist(), strict=True)) * each
                    for e, each in enumerate(column)
                )
                for column in columns.T.tolist()
            ]
            for line in W_V[:few].tolist()
        ]
        yield Trial("U Σ Vᵀ W_U", table, np.array(plain), bound * np.linalg.norm(columns))

    return Method(
        "ot.ov_circuit",
        ("svd_of_factored", "thin_product_is_orthonormal", "writer_in_vocabulary"),
        trials,
        law=r"v_i^\top W_U",
    )


# The first r singular directions, and the rest.
U_1, U_2 = MatrixSymbol("U_1", p, r), MatrixSymbol("U_2", p, s)
V_1, V_2 = MatrixSymbol("V_1", q, r), MatrixSymbol("V_2", q, s)
S_1, S_2 = MatrixSymbol("S_1", r, r), MatrixSymbol("S_2", s, s)
KEPT, REST = matmul(U_1, S_1, Transpose(V_1)), matmul(U_2, S_2, Transpose(V_2))


@theorem(
    title="The error of keeping the first singular directions",
    chapter=7,
    source="Eckart and Young 1936; Golub and Van Loan, §2.4",
    covers=("S3-094",),
)
def truncation_error() -> Statement:
    """Keeping only the first r singular directions of a matrix makes a squared error equal to the
    sum of the squares of the other singular values. In the formula index 1 marks what is kept and
    index 2 what is left out. The two parts are U_1 S_1 V_1ᵀ and U_2 S_2 V_2ᵀ.

    So the singular values say how many directions have to be looked at.
    """
    return Statement(
        _squared(matadd(matadd(KEPT, REST), matmul(-1, KEPT))),
        _squared(S_2),
        given=(
            (matmul(Transpose(U_2), U_2), Identity(s)),
            (matmul(Transpose(V_2), V_2), Identity(s)),
        ),
        on_models=False,
    )


@theorem(
    title="The nearest matrix with a given column space",
    chapter=7,
    source="Eckart and Young 1936; Golub and Van Loan, §2.4 and §5.3",
    covers=("S3-094",),
)
def nearest_with_given_columns() -> Bound:
    """Among all matrices whose columns lie in a given space (the span of the orthonormal columns of
    C), the nearest to W is its projection CCᵀW: every C R misses W by at least ‖W‖² − ‖CᵀW‖², and R
    = CᵀW reaches this.

    So finding the best matrix of rank r means finding the r columns that catch most of W
    (`first_directions_catch_most`).
    """
    W, C, R = MatrixSymbol("W", p, q), MatrixSymbol("C", p, r), MatrixSymbol("R", r, q)
    return Bound(
        _squared(W) - _squared(matmul(Transpose(C), W)),
        _squared(matadd(W, matmul(-1, C, R))),
        because=(Square(matadd(matmul(Transpose(C), W), matmul(-1, R))),),
        given=((matmul(Transpose(C), C), Identity(r)),),
        tight={"W": [[1, 2], [3, 4]], "C": [[1], [0]], "R": [[1, 2]]},
        on_models=False,
    )


@theorem(
    title="r orthonormal directions catch at most the r largest squared singular values",
    chapter=7,
    source="Fan 1949; Golub and Van Loan, §2.4",
    covers=("S3-094",),
)
def first_directions_catch_most() -> Bound:
    """How much of a matrix W can r orthonormal columns C catch? At most the sum of its r largest
    squared singular values: tr CᵀWWᵀC ≤ σ_1² + … + σ_r². The first r left singular vectors reach
    it.

    For c between σ_r² and σ_{r+1}², WWᵀ is written as cI + AAᵀ − BBᵀ. Column i of A is the left
    singular vector u_i times √(σ_i² − c) for i ≤ r, and the columns of B are the others times √(c −
    σ_i²). Then σ_1² + … + σ_r² is r c + ‖A‖², and what is missing from it is a sum of squares.

    It is the main step to `eckart_young`.
    """
    C, c = MatrixSymbol("C", p, r), Symbol("c", real=True)
    A, B = MatrixSymbol("A", p, r), MatrixSymbol("B", p, s)
    outside = matadd(Identity(p), matmul(-1, C, Transpose(C)))
    spectrum = matadd(matmul(c, Identity(p)), matmul(A, Transpose(A)), matmul(-1, B, Transpose(B)))
    return Bound(
        Trace(matmul(Transpose(C), spectrum, C)),
        r * c + _squared(A),
        because=(Square(matmul(outside, A)), Square(matmul(Transpose(C), B))),
        given=((matmul(Transpose(C), C), Identity(r)),),
        tight={"A": [[2], [0]], "B": [[0], [1]], "c": 3, "C": [[1], [0]]},
        on_models=False,
    )


@theorem(
    title="Eckart–Young: the first singular vectors give the nearest matrix of that rank",
    chapter=7,
    source="Eckart and Young 1936; Golub and Van Loan, §2.4",
    covers=("S3-094",),
)
def eckart_young() -> Bound:
    """No matrix of rank r is nearer to W, in sum of squares, than the one made of its first r
    singular directions; this is the Eckart–Young theorem. Every matrix of rank r is C R with r
    orthonormal columns C, and ‖W − C R‖² is at least ‖W‖² − σ_1² − … − σ_r², the sum of the squares
    of the other singular values. `truncation_error` reaches it.

    It justifies low-rank summaries of circuits. In the formula σ holds the r largest singular
    values of W. All that is used of them is that no r orthonormal columns catch more of W than the
    sum of their squares (`first_directions_catch_most`), which is the last hypothesis.
    """
    W, C, R = MatrixSymbol("W", p, q), MatrixSymbol("C", p, r), MatrixSymbol("R", r, q)
    largest = MatrixSymbol("sigma", r, 1)
    caught = matmul(Transpose(C), W)
    left = Trace(matmul(Transpose(largest), largest)) - _squared(caught)
    slack = matmul(left, Identity(1))
    return Bound(
        _squared(W) - Trace(matmul(Transpose(largest), largest)),
        _squared(matadd(W, matmul(-1, C, R))),
        because=(Square(matadd(caught, matmul(-1, R))), Entries(slack)),
        given=((matmul(Transpose(C), C), Identity(r)), Fact("nonnegative", slack)),
        tight={"W": [[3, 0], [0, 1]], "C": [[1], [0]], "R": [[3, 0]], "sigma": [[3]]},
        on_models=False,
    )


@theorem(
    title=(
        "The gradient of a weight is an outer product of its input and the gradient of its output"
    ),
    chapter=7,
    convention="row",
    source=f"{BACKWARD}; Rumelhart, Hinton and Williams 1986",
    covers=("S3-095",),
)
def gradient_of_weight() -> Statement:
    """The gradient of a loss with respect to a weight matrix is XᵀΔ, where X is what the weight
    multiplies and Δ the gradient with respect to the result X W. A change D of W changes the loss,
    to first order, by ⟨Δ, X D⟩ = ⟨XᵀΔ, D⟩.

    So gradients are made of inputs and of gradients that come back, and both can be read in the
    vocabulary.

    The equation is exact because X W is linear in W.
    """
    change, arrived = MatrixSymbol("D", d, q), MatrixSymbol("Delta", n, q)
    W = MatrixSymbol("W", d, q)

    def loss(weight: MatrixExpr) -> Any:
        return Trace(matmul(Transpose(arrived), X, weight))

    gradient = matmul(Transpose(X), arrived)
    return Statement(
        loss(matadd(W, change)) - loss(W),
        Trace(matmul(Transpose(gradient), change)),
        on_models=False,
    )


@theorem(
    title="The gradient of a weight is a sum over positions",
    chapter=7,
    convention="row",
    source=BACKWARD,
    covers=("S3-095",),
)
def gradient_by_position() -> Statement:
    """The gradient of a weight is a sum over positions of outer products x_iᵀ δ_i: what was read at
    position i, times the gradient that came back there. x_i and δ_i are the rows of X and Δ.

    The backward lens reads the δ_i or the x_i in the vocabulary. These are parts of gradients; in
    print it is sometimes said that weights are projected.
    """
    at, arrived = Symbol("i", integer=True), MatrixSymbol("Delta", n, q)
    position = OneHot(at, n)
    return Statement(
        matmul(Transpose(X), arrived),
        HeadSum(
            matmul(Transpose(matmul(Transpose(position), X)), matmul(Transpose(position), arrived)),
            (at, n),
        ),
        on_models=False,
        printed={"E62": (matmul(Transpose(X), arrived), MatrixSymbol("W", d, q))},
    )


@theorem(
    title="The rank of the gradient of a weight is at most the number of positions",
    chapter=7,
    source=BACKWARD,
    covers=("S3-095",),
)
def gradient_rank() -> Property:
    """A prompt of n tokens gives a gradient of rank at most n, for a weight of any size. As before
    it is XᵀΔ, with n rows in X and in Δ.

    So an update from one prompt can be read as at most n pairs of vectors, one read and one written
    for each position.
    """
    arrived = MatrixSymbol("Delta", n, q)
    return Property(
        Fact("rank_at_most", matmul(Transpose(X), arrived), Min(n, d, q)), on_models=False
    )


# W_U = U_d S V_dᵀ, with all left singular vectors; D chooses the directions of a band.
U_d, V_d = MatrixSymbol("U_d", d, d), MatrixSymbol("V_d", V, d)
S_d, D = MatrixSymbol("S_d", d, d), MatrixSymbol("D", d, d)


@theorem(
    title="A spectral band of the stream is a spectral band of the logits",
    chapter=7,
    convention="row",
    source=f"{SPECTRUM}; {PRIMER}, “Decoding in vocabulary space”",
    covers=("S3-096",),
)
def bands_intertwine() -> Statement:
    """Removing some directions from the final stream has the same effect as removing some
    directions from the logits, if the directions are singular vectors of the unembedding W_U = U S
    Vᵀ. The diagonal matrix D of zeros and ones selects which: X (U D Uᵀ) W_U = X W_U (V D Vᵀ). In
    the formula U, S and V have the index d.

    Such groups of singular directions are called spectral bands, and are used to study what the
    stream holds beside predictions.

    The stream is filtered with the left vectors U, which have d entries. In print one finds the
    right ones, which have V entries and do not fit.
    """
    unembed = matmul(U_d, S_d, Transpose(V_d))
    kept = matmul(X, matmul(U_d, D, Transpose(U_d)), unembed)

    def by_right_vectors() -> tuple[Any, Any]:
        return kept, matmul(X, matmul(V_d, D, Transpose(V_d)), unembed)

    return Statement(
        kept,
        matmul(X, unembed, matmul(V_d, D, Transpose(V_d))),
        given=(
            (matmul(Transpose(U_d), U_d), Identity(d)),
            (matmul(Transpose(V_d), V_d), Identity(d)),
            (matmul(S_d, D), matmul(D, S_d)),
        ),
        on_models=False,
        printed={"E09": by_right_vectors},
    )


@theorem(
    title="All spectral bands together are the identity",
    chapter=7,
    source=SPECTRUM,
    covers=("S3-096",),
)
def bands_resolve_identity() -> Statement:
    """If the singular directions of the unembedding are divided into bands, the parts of a stream
    in all bands add up to the stream. D[b] selects the directions of band b, and the bands together
    select each once. The columns of U_d (d × d) are the left singular vectors.

    So suppressing one band keeps all others. Directions that reach no logit form a band of their
    own.
    """
    bands, b = size("B"), symbols("b", integer=True)
    D_of = Family("D", (bands,), d, d)
    return Statement(
        HeadSum(matmul(X, U_d, D_of[b], Transpose(U_d)), (b, bands)),
        X,
        given=(
            (matmul(U_d, Transpose(U_d)), Identity(d)),
            (HeadSum(D_of[b], (b, bands)), Identity(d)),
        ),
        on_models=False,
    )


@theorem(
    title="Suppressing a spectral band is a projection",
    chapter=7,
    source=SPECTRUM,
    covers=("S3-096",),
)
def suppressing_is_projecting() -> Property:
    """Removing a spectral band from the stream, x (I − U_b U_bᵀ), is an orthogonal projection,
    because the vectors of the band (columns of U_b) are orthonormal. What is removed is orthogonal
    to what stays, and removing it twice changes nothing more.
    """
    U_b = MatrixSymbol("U_b", d, r)
    removed = matadd(Identity(d), matmul(-1, U_b, Transpose(U_b)))
    return Property(
        Fact("projection", removed), given=(Fact("orthonormal_columns", U_b),), on_models=False
    )


@theorem(
    title="spectral_bands: parts of the stream by singular values of W_U",
    chapter=7,
    source=SPECTRUM,
    covers=("S3-096",),
)
def spectral_bands_method() -> Method:
    """`ot.spectral_bands` divides the stream into parts by the singular values of the unembedding,
    whose left singular vectors it finds without forming the V × V side. Checked: unembedding what a
    band keeps of the stream gives what NumPy's decomposition keeps of the logits
    (`bands_intertwine`).
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.n_layers > 1 or model.config.norm != "none":  # one decomposition is enough
            return
        rows = model.forward(tokens, ["final"])["final"]
        bands = spectral_bands(model, 4)
        edges = [int((model.d_model * band / 4) + 0.5) for band in range(5)]
        if all(model.d_model * band % 4 != 2 for band in range(5)):  # no edge is halfway
            yield Trial("edges", np.array(bands.edges), np.array(edges), 0.0)
        total = sum(bands.keep(rows, band) for band in range(4))
        size = float(np.linalg.norm(rows))
        bound = 16 * model.d_model * ROUNDOFF * size
        yield Trial("all bands", np.asarray(total), rows, bound)
        # Each column is orthonormal to within rounding, whatever the gaps between singular values.
        gram = bands.U.T @ bands.U
        yield Trial("UᵀU", gram, np.eye(model.d_model), 16 * model.d_model * ROUNDOFF)
        values = np.linalg.norm(bands.U.T @ model.W_U, axis=1)
        spread = 16 * model.d_vocab * ROUNDOFF * float(np.linalg.norm(model.W_U))
        yield Trial("‖u_iᵀ W_U‖", values, bands.S, spread)

    return Method(
        "ot.spectral_bands",
        ("bands_intertwine", "bands_resolve_identity"),
        trials,
        law=r"x U_b U_b^\top W_U = x W_U V_b V_b^\top",
        unchanged_by={
            "W_U with its columns shifted": "left singular vectors and singular values are those "
            "of W_U W_Uᵀ, which the order of the tokens does not change"
        },
    )
