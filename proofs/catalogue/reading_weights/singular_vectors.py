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
from otimes.proofs.claims import Bound, Method, NonIdentity, Property, Square, Statement, Trial
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
    """With W = U Σ Vᵀ, z W = Σ_i (z u_i) σ_i v_iᵀ: column u_i is a key that the input is compared
    with, σ_i a weight, and v_iᵀ what is written. For z = I that is W itself, a sum of rank-one
    matrices.

    Libraries return the third factor transposed: rows of `Vh` are the v_iᵀ. To take columns of `Vh`
    for them is the usual mistake, and no shape tells where the matrix is square.
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
    """Exchanging U and V, even of a square matrix, is its transpose: the v_i would be compared with
    the input and the u_i written.
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
    """W v_i = σ_i u_i, as the v are orthonormal; and turned round, u_iᵀ W = σ_i v_iᵀ. That is how a
    direction that is read is found from the one that is written.
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
    """‖W‖² = Σ σ_i²: the share of a direction in a matrix is σ_i² over the sum. It needs both sets
    of directions to be orthonormal.
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
    """‖AB‖² = tr (AᵀA)(BBᵀ): for a head two matrices of d_head × d_head, whatever the sizes
    outside. For the full circuit of a large vocabulary that is the difference between a matrix of
    billions of entries and two of a few thousand.
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
    """Let A = Q_A R_A and Bᵀ = Q_B R_B, and R_A R_Bᵀ = U Σ Vᵀ, which is d_head × d_head. Then
    AB = (Q_A U) Σ (Q_B V)ᵀ: the singular values are those of the core, and the vectors are had by
    one thin product. Nothing large is decomposed.
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
    """Q_A U has orthonormal columns where Q_A and U have, so what is put together from the core is
    a singular value decomposition and not merely a product.
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
    """What a writer adds to the logits, direction by direction: z W W_U = Σ_i (z u_i) σ_i (v_iᵀ
    W_U). The v_iᵀ of W_OV, W_O or W_out live in the stream and have a logit for each token. Those
    of a reader, W_V or W_in, do not; of a reader it is the u_i.

    In print “right singular vectors are projected” stands for all matrices. For a reader that does
    not fit: its right vectors have d_head or d_mlp entries and W_U has d rows.
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
    """`ot.ov_circuit(…).svd()` decomposes a circuit of d × d through its d_head × d_head core. Its
    singular values are those of the matrix multiplied out, and U Σ VᵀW_U is the circuit over the
    vocabulary again. `V.T @ W_U` are the directions that are written, as tokens.
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
    """Cut off a matrix after its first r singular directions: the squared error is the sum of the
    squares of the singular values that were left out.
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
    """Every matrix of rank r is C R with r orthonormal columns C. Whatever R, it misses of W at
    least what lies outside the span of C, ‖W‖² − ‖CᵀW‖², and that exactly for R = CᵀW. So the
    question of the best matrix of rank r is which r columns catch most of W.
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
    title="Eckart–Young: the first singular vectors give the nearest matrix of that rank",
    chapter=7,
    source="Eckart and Young 1936; Fan 1949; Golub and Van Loan, §2.4",
    covers=("S3-094",),
)
def eckart_young() -> Bound:
    """Let c be a number between the squares of σ_r and σ_{r+1}. Then WWᵀ = c I + AAᵀ − BBᵀ, where
    the columns of A are the first r left singular vectors times the root of σ_i² − c, and those of
    B the others times the root of c − σ_i². Any r orthonormal columns C catch tr CᵀWWᵀC of W, at
    most r c + ‖A‖², which is the sum of the first r squares: what is missing is what of A lies
    outside C and what of B lies inside.

    With the theorem before this is Eckart and Young's: no matrix of rank r is nearer to W than its
    first r singular directions, and what they miss is the sum of the other squares.
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
    title=(
        "The gradient of a weight is an outer product of its input and the gradient of its output"
    ),
    chapter=7,
    convention="row",
    source=f"{BACKWARD}; Rumelhart, Hinton and Williams 1986",
    covers=("S3-095",),
)
def gradient_of_weight() -> Statement:
    """Let Δ be the gradient of the loss with respect to X W. A change D of W changes the loss, to
    first order, by ⟨Δ, X D⟩ = ⟨XᵀΔ, D⟩: the gradient of W is XᵀΔ. It is exact here, as X W is
    linear in W.
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
    """XᵀΔ = Σ_i x_iᵀ δ_i: for each position an outer product of what was read and what came back.
    The backward lens reads the δ_i, or the x_i, in the vocabulary: it is gradients that are
    projected, not weights, as one finds in print.
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
    """A prompt of n tokens changes a weight in n directions at most, however large the weight. That
    is why an edit from one prompt can be read as a few pairs of vectors.
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
    """Keep of the stream what lies along some of the left singular vectors of W_U, x U_b U_bᵀ with
    U_b U_bᵀ = U D Uᵀ and D a diagonal of ones and zeros: unembedded, that is the same as keeping of
    the whole logits what lies along the right ones, x W_U V_b V_bᵀ. All that is needed of D is that
    it commutes with the singular values.

    The stream is filtered by the *left* vectors, which are d long. In print one finds the right
    ones, which live in the vocabulary; with a W_U that is d × V that does not fit.
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
    """The left singular vectors are a basis, and each belongs to one band: what a stream has in
    each band adds up to the stream, and suppressing one, x (I − U_b U_bᵀ), keeps the others.
    Directions that no token hears are a band of their own.
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
    """I − U_b U_bᵀ is a projection, as the vectors of a band are orthonormal. What it takes away is
    orthogonal to what is left.
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
    """`ot.spectral_bands` finds the left singular vectors of W_U from its triangle, a block of
    tokens at a time. Unembedding what a band keeps of a stream gives what NumPy's decomposition
    keeps of its logits.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if model.n_layers > 1 or model.config.norm != "none":  # one decomposition is enough
            return
        rows = model.forward(tokens, ["final"])["final"]
        bands = spectral_bands(model, 4)
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
