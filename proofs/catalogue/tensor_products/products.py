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
    """An entry of A ⊗ B is one entry of A times one entry of B. A row of A ⊗ B is numbered by a
    pair (i, k), a row i of A and a row k of B, and a column by a pair (j, l); the entry there is
    a_ij b_kl. The one-hot vectors in the equation pick this entry.

    The index of the left factor is the slow one: where B has p rows and counting starts at 0, the
    pair (i, k) is row i · p + k. Every formula with ⊗ on these pages uses this order. A text in
    which the left index is the fast one writes B ⊗ A for the same matrix.
    """
    A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", p, q)
    row = kron(Transpose(OneHot(i, n)), Transpose(OneHot(k, p)))
    column = kron(OneHot(j, m), OneHot(l, q))
    return Statement(
        matmul(row, kron(A, B), column),
        matmul(MatrixElement(A, i, j), MatrixElement(B, k, l), Identity(1)),
        bind=(
            {"A": Source("W_E", rows=7, example=True), "B": Source("W_V", rows=9, example=True)},
        ),
    )


@theorem(
    title="A ⊗ B as a block matrix: a copy of B for each entry of A",
    chapter=1,
    source=KRON,
    covers=("S0-35",),
)
def kron_blocks() -> Statement:
    """A ⊗ B is a matrix of blocks: where A has the entry a_ij, it has the block a_ij B. For
    example, `[[1, 2], [0, 3]]` ⊗ B is `[[B, 2B], [0, 3B]]`.

    If A is an attention pattern and B a matrix of weights, block (i, j) says what position i
    receives from position j: the map B, weighted by the attention a_ij.

    `numpy.kron` builds this matrix. Do not build it for a model: with n positions and d features it
    has (n d)² entries, and all of them are products of the n² and the d² numbers in the two
    factors.
    """
    A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", p, q)
    block = matmul(MatrixElement(A, i, j), B)
    return Statement(
        kron(A, B),
        StackHeads(ConcatHeads(block, (j, m)), (i, n)),
        bind=({"A": Source("pattern", example=True), "B": Source("W_V", rows=9, example=True)},),
    )


@theorem(
    title="The Kronecker product of two vectors is their outer product, vectorised",
    chapter=1,
    source=f"{KRON}; {FRAMEWORK}, “Tensor product / Kronecker product notation”",
)
def kron_of_columns_is_outer_product() -> Statement:
    """For two columns a and b, the vector a ⊗ b lists all products a_i b_j: it is the matrix a bᵀ,
    its rows stacked to one column. With a = (1, 2) and b = (3, 4) it is (3, 4, 6, 8).

    So the sign ⊗ is used for two kinds of objects. Of two vectors it makes a vector, an element of
    the tensor product; of two matrices it makes a matrix that acts on such vectors, and A ⊗ W takes
    a ⊗ b to Aa ⊗ Wb (`kron_mul_kron`). Both are the same operation on arrays.

    A stream that holds one feature vector b, at position i only, is e_i ⊗ b.
    """
    a, b = MatrixSymbol("a", n, 1), MatrixSymbol("b", d, 1)
    feature = {
        "a": Source("pattern", cols=1, example=True),
        "b": Source("W_E", rows=1, transposed=True, example=True),
    }
    return Statement(kron(a, b), vec_rows(matmul(a, Transpose(b))), bind=(feature,))


@theorem(
    title="The residual stream is a sum of pure tensors, one for each position",
    chapter=1,
    convention="column",
    source=f"{FRAMEWORK}, “Tensor product / Kronecker product notation”",
)
def stream_is_sum_of_tensors() -> Statement:
    """The residual stream, the matrix X with the vector x_i of position i as its row i, can be
    written as one long column: the sum over positions of e_i ⊗ x_i. Each term says “the vector x_i,
    at position i”. The sum is a single product a ⊗ b only if all x_i are multiples of one vector.

    A pattern A acts on each term by itself and takes e_i ⊗ x_i to A e_i ⊗ x_i. Column i of A says
    how much of x_i arrives at every position.
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
    """The product of two Kronecker products is taken factor by factor: (A ⊗ B)(C ⊗ D) = A C ⊗ B D.
    In a transformer the left factors act on positions and the right factors on features, and
    neither changes what the other does.

    The tensor form of a transformer rests on this line, called the mixed-product property: it is
    how an attention head becomes one product A ⊗ W_OV (`head_is_kron`).

    The usual slip is to swap factors on the right-hand side. Matrices on the same side of ⊗ keep
    their order. The four matrices need not be square; only A must fit C and B must fit D.
    """
    A, C = MatrixSymbol("A", n, m), MatrixSymbol("C", m, p)
    B, D = MatrixSymbol("B", q, r), MatrixSymbol("D", r, s)
    return Statement(
        matmul(kron(A, B), kron(C, D)),
        kron(matmul(A, C), matmul(B, D)),
        bind=(
            {
                "A": Source("pattern", example=True),
                "C": Source("resid_pre", cols=5, example=True),
                "B": Source("W_V", rows=6, example=True),
                "D": Source("W_O", cols=7, example=True),
            },
            {
                "A": Source("embed", example=True),
                "C": Source("W_U", cols=5, example=True),
                "B": Source("W_E", rows=6, example=True),
                "D": Source("W_U", cols=7, example=True),
            },
        ),
    )


@theorem(
    title="The Kronecker product is linear in each factor",
    chapter=1,
    source=KRON,
)
def kron_bilinear() -> Statement:
    """The Kronecker product is linear in each of its two factors: a sum in one factor becomes a sum
    of products, and a number can be taken out of either factor. In the formula α and β are numbers.

    This is why an attention layer with many heads is a sum of tensor products, one for each head.

    Linear in each factor is not linear in both at once. A ⊗ B + C ⊗ D is in general not (A + C) ⊗
    (B + D): the latter, multiplied out, has four terms.
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
                "A": Source("pattern", example=True),
                "B": Source("scores", example=True),
                "C": Source("W_Q", rows=9, example=True),
                "D": Source("W_K", rows=9, example=True),
            },
            {
                "A": Source("embed", example=True),
                "B": Source("final", example=True),
                "C": Source("W_E", rows=9, example=True),
                "D": Source("W_U", cols=9, transposed=True, example=True),
            },
        ),
    )


@theorem(
    title="The transpose of a Kronecker product is taken in both factors",
    chapter=1,
    source=KRON,
)
def kron_transpose() -> Statement:
    """The transpose of a Kronecker product is the product of the transposes, in the same order: (A
    ⊗ B)ᵀ = Aᵀ ⊗ Bᵀ. It carries formulas between the convention in which weights act on the right
    and the one in which they act on the left.

    The usual slip is to write Bᵀ ⊗ Aᵀ. Only the ordinary matrix product turns its order round under
    a transpose, (AB)ᵀ = BᵀAᵀ.
    """
    A, B = MatrixSymbol("A", n, m), MatrixSymbol("B", p, q)
    return Statement(
        Transpose(kron(A, B)),
        kron(Transpose(A), Transpose(B)),
        bind=(
            {"A": Source("pattern", example=True), "B": Source("W_V", example=True)},
            {"A": Source("embed", example=True), "B": Source("W_E", rows=40, example=True)},
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
    """Multiplying a matrix X by A on the left and by Wᵀ on the right is one linear map on the
    entries of X: stack its rows to one column, and the map is A ⊗ W. For the residual stream, whose
    rows are positions, A mixes positions and W mixes the features of each position.

    Papers in the column convention write attention heads in this way.

    Mind the transpose on W: it is the whole difference to the row convention, where weights act on
    the right. The left factor of ⊗ is the slow index, so it belongs to what is stacked, here to
    positions.
    """
    k = size("k")
    A, X, W = MatrixSymbol("A", m, n), MatrixSymbol("X", n, d), MatrixSymbol("W", k, d)
    return Statement(
        matmul(kron(A, W), vec_rows(X)),
        vec_rows(matmul(A, X, Transpose(W))),
        bind=(
            {
                "A": Source("pattern", example=True),
                "X": Source("resid_pre", example=True),
                "W": Source("W_O", example=True),
            },
            {
                "A": Source("embed", cols=9, example=True),
                "X": Source("W_E", rows=9, example=True),
                "W": Source("W_U", cols=9, transposed=True, example=True),
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
    """There are two ways to write a matrix as one column, row after row or column after column.
    They hold the same entries in another order, and one is the other applied to the transpose. For
    `[[1, 2], [3, 4]]` the first is (1, 2, 3, 4) and the second (1, 3, 2, 4).

    For a stream with positions as rows, stacking rows keeps the numbers of each position together,
    and stacking columns keeps those of each feature together.

    NumPy's `reshape(-1)` stacks rows. Magnus and Neudecker, MATLAB's `X(:)` and SymPy's `vec` stack
    columns. A formula that is copied from one to the other has its two factors of ⊗ in the wrong
    order.
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
    """If a matrix is written as one column by stacking its columns, multiplying it by A on the left
    and by B on the right is multiplying that column by Bᵀ ⊗ A.

    This is the rule for the row convention, where weights act on the right of the stream. Textbooks
    of matrix calculus mean it when they write vec.

    Papers on transformer circuits stack rows instead (`vec_rows_mul`), and then the two factors
    change places. So “vec” alone is ambiguous, and each of the two has a name of its own here.
    """
    A, X, B = MatrixSymbol("A", m, n), MatrixSymbol("X", n, d), MatrixSymbol("B", d, p)
    return Statement(
        vec_cols(matmul(A, X, B)),
        matmul(kron(Transpose(B), A), vec_cols(X)),
        bind=(
            {
                "A": Source("pattern", example=True),
                "X": Source("resid_pre", example=True),
                "B": Source("W_V", example=True),
            },
            {
                "A": Source("embed", cols=9, example=True),
                "X": Source("W_E", rows=9, example=True),
                "B": Source("W_U", cols=9, example=True),
            },
        ),
    )
