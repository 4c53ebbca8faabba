"""Chapter 1: what ⊗ is, and how it meets products, sums, transposes and stacked matrices."""

from __future__ import annotations

from sympy import Identity, MatrixSymbol, Transpose, symbols
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.linear import (
    ConcatHeads,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import A, X, alpha, beta, d, m, n, p, q, r, s, size
from otimes.proofs.claims import Statement
from otimes.proofs.theorem import theorem

KRON = "Van Loan 2000, “The ubiquitous Kronecker product”, §1"
i, j, k, l = symbols("i j k l", integer=True)  # noqa: E741 (rows and columns, as in the papers)


@theorem(
    title="The entries of a Kronecker product",
    chapter=1,
    source=KRON,
    covers=("S0-35",),
)
def kron_entry() -> Statement:
    """A row of A ⊗ B is a pair: a row of A and a row of B; a column likewise. The entry at such a
    pair of pairs is the product of the two entries.

    The row of the left factor counts slowly, that of the right factor quickly: the pair (i, k) is
    row i · p + k where B has p rows. A text that counts the other way round means B ⊗ A.
    """
    A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", p, q)
    row = kron(Transpose(OneHot(i, n)), Transpose(OneHot(k, p)))
    column = kron(OneHot(j, m), OneHot(l, q))
    return Statement(
        matmul(row, kron(A, B), column),
        matmul(MatrixElement(A, i, j), MatrixElement(B, k, l), Identity(1)),
        bind=({"A": Source("W_E", rows=7), "B": Source("W_V", rows=9)},),
    )


@theorem(
    title="A ⊗ B as a block matrix: a copy of B for each entry of A",
    chapter=1,
    source=KRON,
    covers=("S0-35",),
)
def kron_blocks() -> Statement:
    """Put the block a_ij B where A has the entry a_ij. If A is a pattern of attention and B a
    weight matrix, the block at (i, j) says what position i gets from position j: B, as much as i
    attends to j.

    This is what `numpy.kron` builds, and what nobody should build for a model: with n positions and
    d features it has (n d)² entries, all of which are products of n² and d² numbers.
    """
    A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", p, q)
    block = matmul(MatrixElement(A, i, j), B)
    return Statement(
        kron(A, B),
        StackHeads(ConcatHeads(block, (j, m)), (i, n)),
        bind=({"A": Source("pattern"), "B": Source("W_V", rows=9)},),
    )


@theorem(
    title="The Kronecker product of two vectors is their outer product, vectorised",
    chapter=1,
    source=f"{KRON}; {FRAMEWORK}, “Tensor product / Kronecker product notation”",
)
def kron_of_columns_is_outer_product() -> Statement:
    """Two kinds of things are written with ⊗. With columns, a ⊗ b is a vector: the matrix a bᵀ of
    all products, row after row. With matrices, A ⊗ W is a linear map on such vectors. Both are the
    same operation on arrays, and A ⊗ W takes a ⊗ b to Aa ⊗ Wb, by the mixed product.

    So a stream with one feature vector b at one position (a = e_i) is e_i ⊗ b, and “A ⊗ W, an
    element of the tensor product” and “A ⊗ W, a matrix” are no contradiction.
    """
    a, b = MatrixSymbol("a", n, 1), MatrixSymbol("b", d, 1)
    feature = {"a": Source("pattern", cols=1), "b": Source("W_E", rows=1, transposed=True)}
    return Statement(kron(a, b), vec_rows(matmul(a, Transpose(b))), bind=(feature,))


@theorem(
    title="The residual stream is a sum of pure tensors, one for each position",
    chapter=1,
    convention="column",
    source=f"{FRAMEWORK}, “Tensor product / Kronecker product notation”",
)
def stream_is_sum_of_tensors() -> Statement:
    """The stream of n positions, as one long column, is the sum over positions of e_i ⊗ x_i: the
    vector x_i, put at place i. It is no pure tensor unless all its vectors are multiples of one.

    A ⊗ W is applied term by term, to A e_i ⊗ W x_i: column i of the pattern says where the vector
    goes, and W what becomes of it.
    """
    moved = kron(matmul(A, OneHot(i, n)), matmul(Transpose(X), OneHot(i, n)))
    return Statement(
        matmul(kron(A, Identity(d)), vec_rows(X)),
        HeadSum(moved, (i, n)),
    )


@theorem(
    title="Kronecker products multiply factor by factor (the mixed-product property)",
    chapter=1,
    source=f"{KRON}; {FRAMEWORK}, “Tensor product / Kronecker product notation”",
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
    title="The transpose of a Kronecker product is taken in both factors",
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
    title="A ⊗ W acts on the residual stream, vectorised row by row, as A X Wᵀ",
    chapter=1,
    convention="column",
    source=f"{FRAMEWORK}, “Tensor product / Kronecker product notation”; "
    "Magnus and Neudecker 2019, ch. 2",
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
        printed={
            "E37": (
                matmul(kron(A, W), vec_cols(X)),
                vec_cols(matmul(A, X, Transpose(W))),
            )
        },
    )


@theorem(
    title="Column-major vectorisation is row-major vectorisation of the transpose",
    chapter=1,
    source="Magnus and Neudecker 2019, ch. 3, §7",
)
def vec_cols_is_vec_rows_of_transpose() -> Statement:
    """The two ways to write a matrix as one column have the same entries in another order. For a
    stream with positions as rows, stacking rows keeps each position together; stacking columns
    keeps each feature together.

    NumPy's `reshape(-1)` stacks rows; Magnus and Neudecker, MATLAB's `X(:)` and SymPy's `vec` stack
    columns. A formula copied from one to the other has its two factors of ⊗ in the wrong order.
    """
    return Statement(vec_cols(X), vec_rows(Transpose(X)))


@theorem(
    title="Vectorised column by column, A X B is (Bᵀ ⊗ A) times X",
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
