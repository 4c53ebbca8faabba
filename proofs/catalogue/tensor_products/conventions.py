"""Chapter 1: rows or columns, one-hot tokens, shared weights, one map in many forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sympy import HadamardProduct, Identity, MatrixSymbol, Transpose, symbols
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.evaluate.arrays import evaluate
from otimes.algebra.language.linear import HeadSum, OneHot, kron, matmul, vec_cols, vec_rows
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.verdict import decide
from otimes.numeric.binding import Source
from otimes.numeric.model import Model
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import A, V, X, any_head, column, d, n, row
from otimes.proofs.claims import Definition, Method, Statement, Trial
from otimes.proofs.theorem import theorem

i, j, k, t = symbols("i j k t", integer=True)
T = MatrixSymbol("T", n, V)
UNIT = 2.0**-53


@theorem(
    title="A vector times a matrix is a weighted sum of the rows of the matrix",
    chapter=1,
    convention="row",
    source=f"{PRIMER}, “The transformer layer”",
    covers=("S0-01",),
)
def row_of_product() -> Statement:
    """A row vector times a matrix is a weighted sum of the rows of the matrix, with the entries of
    the vector as weights. For example, (2, 3) times `[[1, 0], [1, 1]]` is 2 (1, 0) + 3 (1, 1) = (5,
    3). In the equation the vector is x_i = e_iᵀ X, the residual stream at position i, and the
    matrix is W_V.

    So in the row convention, where weights act on the right, the rows of W are the vectors that a
    product can be made of, and its columns are the directions whose dot products with x_i are
    taken.

    In the column convention W x is a weighted sum of the columns of W. Before reading “row k of
    W_out is the vector that neuron k writes”, find out which of the two a text uses.
    """
    W_V = row.W_V
    weighted = matmul(MatrixElement(X, i, k), Transpose(OneHot(k, d)), W_V)
    return Statement(
        matmul(Transpose(OneHot(i, n)), X, W_V),
        HeadSum(weighted, (k, d)),
    )


@theorem(
    title="From the row to the column convention: transpose every matrix and reverse every product",
    chapter=1,
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, “Notation”",
    covers=("S0-02",),
)
def row_to_column() -> Statement:
    """A formula of the row convention, where weights act on the right of the stream, becomes one of
    the column convention by a transpose: (A X W_V W_O)ᵀ = W_Oᵀ W_Vᵀ Xᵀ Aᵀ. Each weight is
    transposed and each product is reversed. What is W_V W_O on the right of the stream in one text
    is W_O W_V on its left in the other, with the transposed weights under the same names.

    The attention pattern A stands on the left in the row convention and, transposed, on the right
    in the column convention. It is the same pattern in both, with queries as rows.

    Do not combine a formula from one text with weights from the other. W_OV is d × d either way, so
    shapes fit and the result means nothing.
    """
    W_V, W_O, head = row.W_V, row.W_O, any_head
    return Statement(
        Transpose(matmul(head.A, head.X, matmul(W_V, W_O))),
        matmul(matmul(Transpose(W_O), Transpose(W_V)), Transpose(head.X), Transpose(head.A)),
        places={"head_out": matmul(head.A, head.X, matmul(W_V, W_O))},
    )


@theorem(
    title="From the row to the column convention W_OV is transposed, and W_QK is not",
    chapter=1,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, “Observations about attention heads”",
    covers=("S0-02",),
)
def row_to_column_scores() -> Statement:
    """The matrix W_QK of a head, which compares a query's vector with a key's vector, is the same
    in both conventions: the row formula W_Q W_Kᵀ and the column formula W_Qᵀ W_K give one matrix,
    since the weights are transposed between the two. Its rows belong to queries in both, and so do
    those of the scores and of the pattern.

    W_OV is different: that of one convention is the transpose of that of the other
    (`row_to_column`).

    So a formula for the composition of two heads cannot be copied as it is. W_OV W_QK in one text
    is (W_OV)ᵀ W_QK in the other.
    """
    W_Q, W_K = Transpose(row.W_Q), Transpose(row.W_K)  # as in the column convention
    queries, keys = matmul(W_Q, Transpose(X)), matmul(W_K, Transpose(X))
    return Statement(
        matmul(Transpose(Transpose(X)), matmul(Transpose(W_Q), W_K), Transpose(X)),
        matmul(X, matmul(row.W_Q, Transpose(row.W_K)), Transpose(X)),
        places={"q": queries, "k": keys},
        bind=({"X": Source("qk_in")},),
    )


def _looked_up(W_E: Any, T: Any, **_: Any) -> np.ndarray:
    """Return the sum of the rows of W_E, as much as T has of each token."""
    return np.array(
        [
            [sum(T[p, v] * W_E[v, f] for v in range(T.shape[1])) for f in range(W_E.shape[1])]
            for p in range(T.shape[0])
        ],
        dtype=W_E.dtype,
    ).reshape(T.shape[0], W_E.shape[1])


@theorem(
    title="The token embedding: a one-hot row for each position, times W_E",
    chapter=1,
    convention="row",
    source=f"{PRIMER}, “The transformer layer”",
    covers=("S0-14",),
)
def token_embedding() -> Definition:
    """The embedding turns each token of a prompt into a vector of d numbers, its row of the matrix
    W_E. As a product it is X = T W_E, where T has one row for each position, with a 1 in the column
    of the token there and zeros elsewhere.

    Programs look the rows up and never build T. On paper T makes the whole model a product of
    matrices that begins at the tokens.
    """
    return Definition(
        "the embedded tokens",
        matmul(T, row.W_E),
        _looked_up,
        places=("embed",),
        obeys=("one_hot_selects_row", "embedding_then_reader"),
    )


@theorem(
    title="The token embedding in the column convention",
    chapter=1,
    convention="column",
    source=f"{FRAMEWORK}, “Transformer overview”",
    covers=("S4-06",),
)
def token_embedding_column() -> Definition:
    """In the column convention the embedding stands on the left: x = W_E t, where W_E is d × V and
    the token t is a one-hot column. All positions together are W_E Tᵀ, one column for each
    position.

    The stored weights are the same as in the row convention (`token_embedding`), read as the
    transpose.
    """

    def plain(W_E: Any, T: Any, **rest: Any) -> np.ndarray:
        return _looked_up(W_E.T, T, **rest).T

    return Definition(
        "the embedded tokens, as columns",
        matmul(column.W_E, Transpose(T)),
        plain,
        places=("embed",),
        obeys=("one_hot_selects_row",),
    )


@theorem(
    title="A one-hot row selects a row",
    chapter=1,
    convention="row",
    source=f"{PRIMER}, “The transformer layer”",
    covers=("S0-14", "S4-06"),
)
def one_hot_selects_row() -> Statement:
    """Multiplying a matrix by a one-hot row selects one of its rows: e_tᵀ W_E is row t of W_E, the
    embedding of token t. In the equation e_j then picks one entry of that row.

    This is why a lookup table is a linear map. All that holds for products of matrices, such as the
    expansion of a model into paths, therefore begins at the tokens themselves and not only at their
    embeddings.
    """
    e_t, e_j = OneHot(t, V), OneHot(j, d)
    return Statement(
        matmul(Transpose(e_t), row.W_E, e_j),
        matmul(MatrixElement(row.W_E, t, j), Identity(1)),
    )


def _rows_up_to(X: Any, i: int, **_: Any) -> np.ndarray:
    kept = np.zeros_like(X)
    for position in range(i + 1):
        kept[position] = X[position]
    return kept


@theorem(
    title="What a causal position can attend to: the rows of the stream up to its own",
    chapter=1,
    convention="row",
    source=f"{PRIMER}, “The transformer layer”",
    covers=("S0-16",),
)
def stream_up_to() -> Definition:
    """A position in a language model may only use itself and the positions before it. X_≤i is what
    position i can use: the residual stream X (n positions × d features) with all rows after row i
    set to zero. In the formula, row i of the causal mask M_n has ones up to place i, and diag makes
    these ones keep the rows.

    Papers need this notation to say what an attention head at position i is a function of
    (`causal_head_reads_up_to`).

    In papers x_i alone often means the embedding at position i, before any layer, and x_i^l the
    stream there after l layers. Some texts count positions from 1; counts in Python begin at 0.
    """
    seen = DiagMatrix(matmul(Transpose(CausalMask(n)), OneHot(i, n)))
    return Definition(
        "the stream up to position i",
        matmul(seen, X),
        _rows_up_to,
        obeys=("causal_head_reads_up_to",),
    )


@theorem(
    title="A causal head at position i reads X_≤i, and nothing else",
    chapter=1,
    convention="row",
    source=f"{PRIMER}, “The transformer layer”",
    covers=("S0-16",),
)
def causal_head_reads_up_to() -> Statement:
    """What an attention head writes at position i depends only on the rows of the stream up to and
    including row i, if its pattern is zero wherever the causal mask is. Give it the whole stream X
    or only X_≤i (`stream_up_to`): the result at position i is the same, with the pattern given.

    This is what Attn(X_≤i) means in papers, and it is why a model can be trained on all positions
    at once.

    Two slips are common. “Up to i” includes i, since a position can always attend to itself. And
    the head is no function of x_i alone: that would be one term only, a_ii x_i W_OV. Without the
    mask the two sides differ.
    """
    causal = HadamardProduct(A, CausalMask(n), evaluate=False)
    e_i = OneHot(i, n)
    seen = DiagMatrix(matmul(Transpose(CausalMask(n)), e_i))
    W_OV = matmul(row.W_V, row.W_O)
    written = matmul(Transpose(e_i), causal, X, W_OV)
    return Statement(
        written,
        matmul(Transpose(e_i), A, matmul(seen, X), W_OV),
        printed={"E18": (written, matmul(MatrixElement(A, i, i), Transpose(e_i), X, W_OV))},
        places={"head_out": matmul(A, X, W_OV)},
    )


@theorem(
    title="Weights are shared over positions: Id ⊗ W",
    chapter=1,
    convention="row",
    source=f"{FRAMEWORK}, “Tensor product / Kronecker product notation”",
    covers=("S0-47",),
)
def weights_are_shared() -> Statement:
    """A layer of a transformer applies the same weights at every position: the queries are X W_Q,
    one row for each position. Written for the stream as one long column, this is the matrix Id ⊗
    W_Qᵀ, with the same block at each position and zeros elsewhere.

    It follows that weights commute with anything that acts on positions: P(XW) = (PX)W, so
    shuffling positions before or after makes no difference. The order of tokens enters a
    transformer through position information and the causal mask only.
    """
    here = matmul(OneHot(i, n), Transpose(OneHot(i, n)))
    blocks = HeadSum(kron(here, Transpose(row.W_Q)), (i, n))
    return Statement(
        vec_rows(matmul(X, row.W_Q)),
        matmul(blocks, vec_rows(X)),
        bind=({"X": Source("qk_in")},),
        places={"q": matmul(X, row.W_Q)},
    )


@theorem(
    title="An attention head in many forms has one normal form",
    chapter=1,
    convention="row",
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S1-03",),
)
def one_head_in_many_forms() -> Method:
    """The same attention head can be written in many ways: as three steps, as one tensor product on
    the stacked stream, with rows or with columns stacked, with W_OV multiplied out or not. Two such
    expressions are the same function, for all sizes and values, exactly when they have the same
    normal form; `ot.decide` answers in this way.

    Here it is tried on four forms that are equal and on two that look alike and are not: one lacks
    a transpose on W_OV, one has a transpose too many on A. On a model, each form is compared with
    plain loops over positions and features. In floating point the equal forms differ by rounding,
    and the bound says by how much.
    """
    return Method(
        "decide",
        ("head_is_kron", "head_is_kron_row", "vec_rows_mul", "vec_cols_mul", "kron_mul_kron"),
        _forms_of_a_head,
        law=r"\text{equal for all sizes and values} \iff \text{equal normal forms}",
    )


def _forms_of_a_head(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    if not model.n_layers or not model.config.bare:
        return
    W_V, W_O = row.W_V, row.W_O
    W_OV = matmul(W_V, W_O)
    by_rows = matmul(kron(A, Transpose(W_OV)), vec_rows(X))
    by_columns = matmul(kron(Transpose(W_OV), A), vec_cols(X))
    forms = {
        "A X W_V W_O": matmul(A, X, W_V, W_O),
        "A (X W_OV)": matmul(A, matmul(X, W_OV)),
        "(A ⊗ W_OVᵀ) on stacked rows": by_rows,
        "(W_OVᵀ ⊗ A) on stacked columns": by_columns,
    }
    stacked = {
        "rows stacked": (by_rows, vec_rows(forms["A X W_V W_O"]), True),
        "columns stacked": (by_columns, vec_cols(forms["A (X W_OV)"]), True),
        "without the transpose": (matmul(kron(A, W_OV), vec_rows(X)), by_rows, False),
        "each row of A turned": (
            matmul(kron(Transpose(A), Transpose(W_OV)), vec_rows(X)),
            by_rows,
            False,
        ),
    }
    for name, (form, other, same) in stacked.items():
        proved = decide(form, other).status == "proved"
        yield Trial(f"decided: {name}", float(proved), float(same), 0.0)
    places = model.forward(tokens)
    arrays = {
        "A": places["pattern.0"][0],
        "X": places["resid_pre.0"],
        "W_V": model.W_V[0, 0],
        "W_O": model.W_O[0, 0],
    }
    looped, size = _head_by_loops(**arrays)
    n_pos, d_model = looped.shape
    products = n_pos + d_model + model.d_head + 3  # roundings on the longest way to an entry
    bound = 2 * products * UNIT / (1 - products * UNIT) * size
    for name, form in forms.items():
        value = evaluate(form, arrays)
        order = "F" if "columns" in name else "C"
        yield Trial(name, value.reshape(looped.shape, order=order), looped, bound)


def _head_by_loops(
    A: np.ndarray, X: np.ndarray, W_V: np.ndarray, W_O: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return what a head writes, step by step, and the same with all numbers positive."""
    found = []
    for a, x, v, o in ((A, X, W_V, W_O), tuple(map(np.abs, (A, X, W_V, W_O)))):
        out = np.zeros((len(x), o.shape[1]))
        for position in range(len(x)):
            mixed = np.zeros(v.shape[1])
            for source in range(len(x)):
                mixed += a[position, source] * (x[source] @ v)
            out[position] = mixed @ o
        found.append(out)
    return found[0], found[1]
