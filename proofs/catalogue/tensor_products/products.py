"""Chapter 1: what ⊗ is, and how it meets products, sums, transposes and stacked matrices."""

from __future__ import annotations

from sympy import MatrixSymbol, Transpose

from algebra.language import kron, matadd, matmul, vec_cols, vec_rows
from numeric.binding import Source
from proofs.catalogue.symbols import alpha, beta, d, m, n, p, q, r, s, size
from proofs.claims import Statement
from proofs.theorem import theorem

KRON = "Van Loan 2000, “The ubiquitous Kronecker product”, §1"
FRAMEWORK = "Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”"


@theorem(
    title="Kronecker products multiply factor by factor",
    chapter=1,
    source=f"{KRON}; {FRAMEWORK}, “Tensor products”",
    covers=("S0-37",),
)
def kron_mul_kron() -> Statement:
    """The mixed-product property: what happens on the positions and what happens on the features
    do not see each other, so each side multiplies on its own.

    Everything in the tensor form of a transformer rests on this line. People go wrong by swapping
    the factors of the right-hand side: matrices on the same side of ⊗ keep their order. The four
    matrices need not be square; only the inner sizes of A, C and of B, D must fit.
    """
    A, C = MatrixSymbol("A", n, m), MatrixSymbol("C", m, p)
    B, D = MatrixSymbol("B", q, r), MatrixSymbol("D", r, s)
    return Statement(
        matmul(kron(A, B), kron(C, D)),
        kron(matmul(A, C), matmul(B, D)),
        bind=(
            {
                "A": Source("pattern"),
                "C": Source("resid_pre", cols=5),
                "B": Source("W_V", rows=6),
                "D": Source("W_O", cols=7),
            },
            {
                "A": Source("embed"),
                "C": Source("W_U", cols=5),
                "B": Source("W_E", rows=6),
                "D": Source("W_U", cols=7),
            },
        ),
    )


@theorem(
    title="The Kronecker product is linear in each factor",
    chapter=1,
    source=KRON,
)
def kron_bilinear() -> Statement:
    """A sum in either factor comes out as a sum, and a scalar comes out of either factor.

    This is why a layer with many heads is a *sum* of tensor products. It is not additive in both
    factors at once: A ⊗ B + C ⊗ D is in general not (A + C) ⊗ (B + D), which has four terms.
    """
    A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", n, m)
    C, D = MatrixSymbol("C", p, q), MatrixSymbol("D", p, q)
    return Statement(
        kron(matadd(matmul(alpha, A), B), matadd(C, matmul(beta, D))),
        matadd(
            matmul(alpha, kron(A, C)),
            matmul(alpha, beta, kron(A, D)),
            kron(B, C),
            matmul(beta, kron(B, D)),
        ),
        bind=(
            {
                "A": Source("pattern"),
                "B": Source("scores"),
                "C": Source("W_Q", rows=9),
                "D": Source("W_K", rows=9),
            },
            {
                "A": Source("embed"),
                "B": Source("final"),
                "C": Source("W_E", rows=9),
                "D": Source("W_U", cols=9, transposed=True),
            },
        ),
    )


@theorem(
    title="The transpose goes into both factors",
    chapter=1,
    source=KRON,
)
def kron_transpose() -> Statement:
    """Transposing a Kronecker product transposes each factor and keeps their order.

    Only a product of matrices turns its order round, (AB)ᵀ = BᵀAᵀ; a Kronecker product does not,
    and writing Bᵀ ⊗ Aᵀ here is the usual slip. It is what carries the row convention into the
    column convention and back.
    """
    A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", p, q)
    return Statement(
        Transpose(kron(A, B)),
        kron(Transpose(A), Transpose(B)),
        bind=(
            {"A": Source("pattern"), "B": Source("W_V")},
            {"A": Source("embed"), "B": Source("W_E", rows=40)},
        ),
    )


@theorem(
    title="How A ⊗ W acts on a stream stacked row by row",
    chapter=1,
    convention="column",
    source=f"{FRAMEWORK}, “Tensor products”; Magnus and Neudecker 2019, ch. 2",
    covers=("S0-36",),
)
def vec_rows_mul() -> Statement:
    """In the column convention the stream is one long column: the vector of the first position,
    then of the second, and so on. On it A ⊗ W mixes positions by A and features by W, which on the
    matrix with positions as rows reads A X Wᵀ.

    The transpose on W is the whole difference between the conventions. The left factor of ⊗ is the
    slow index, so it belongs to what is stacked: positions.
    """
    k = size("k")
    A, X, W = MatrixSymbol("A", m, n), MatrixSymbol("X", n, d), MatrixSymbol("W", k, d)
    return Statement(
        matmul(kron(A, W), vec_rows(X)),
        vec_rows(matmul(A, X, Transpose(W))),
        bind=(
            {"A": Source("pattern"), "X": Source("resid_pre"), "W": Source("W_O")},
            {
                "A": Source("embed", cols=9),
                "X": Source("W_E", rows=9),
                "W": Source("W_U", cols=9, transposed=True),
            },
        ),
    )


@theorem(
    title="How a product of three acts on a matrix stacked column by column",
    chapter=1,
    convention="row",
    source="Magnus and Neudecker 2019, “Matrix Differential Calculus”, ch. 2",
    covers=("S0-36",),
)
def vec_cols_mul() -> Statement:
    """The bridge of the row convention, where weights act on the right: stacking the columns of
    A X B multiplies the stacked X by Bᵀ ⊗ A.

    Textbooks write this one and call it vec; the column convention of circuits papers stacks rows
    instead. A bare “vec” is half of all confusion about ⊗, so both have a name of their own here.
    """
    A, X, B = MatrixSymbol("A", m, n), MatrixSymbol("X", n, d), MatrixSymbol("B", d, p)
    return Statement(
        vec_cols(matmul(A, X, B)),
        matmul(kron(Transpose(B), A), vec_cols(X)),
        bind=(
            {"A": Source("pattern"), "X": Source("resid_pre"), "B": Source("W_V")},
            {"A": Source("embed", cols=9), "X": Source("W_E", rows=9), "B": Source("W_U", cols=9)},
        ),
    )
