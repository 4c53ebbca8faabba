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
    """In the row convention a vector stands on the left of its weights: x_i W. The result is the
    sum of the rows of W, each as much as the entry of x_i for it says. So the rows of W are what
    can be written, and its columns are what is asked of x_i.

    In the column convention W x is a weighted sum of the columns of W. Whoever reads “the k-th row
    of W_out is the vector of neuron k” has to know which of the two the text uses.
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
    """A head in the row convention, transposed, is the same head in the column convention. Each
    weight is transposed, (xW)ᵀ = Wᵀxᵀ, and each product turns round: W_V W_O on the right of the
    stream becomes W_Oᵀ W_Vᵀ on its left, which the other texts call W_O W_V.

    Positions turn too: the pattern, which stood on the left with its queries as rows, now stands on
    the right as Aᵀ; it is the same pattern, with queries as rows, in both. Take a formula from one
    text and a weight from another, and shapes may still fit while the result means nothing: d × d
    is square either way.
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
    """Put the row weights, transposed, into the formula of the column convention, Xᵀ (W_Qᵀ W_K) X,
    and it is the row formula, X (W_Q W_Kᵀ) Xᵀ, again: W_QK is the same matrix in both conventions,
    with queries as its rows, and so are the scores and the pattern. W_OV is another matter, see
    `row_to_column`: that of the one convention is the transpose of that of the other.

    So the composition of two heads needs care when a formula is carried over: W_OV W_QK in one
    text is (W_OV)ᵀ W_QK in the other.
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
    """X = T W_E: T has a row for each position and a column for each token of the vocabulary, with
    a one where the token is. Programs look rows of W_E up instead, and never write T down.

    T is what makes the whole model a product of matrices, from tokens to logits.
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
    """x_0 = W_E t: here W_E is d × V, tokens are one-hot columns, and embedding stands on the left.
    The file of the weights is the same in both conventions; this text reads it transposed.
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
    """Multiply W_E by the one-hot row of token t, and what is left is row t of W_E. In the column
    convention a one-hot column selects a column: the same equation, transposed.

    This is why a lookup table is a linear map, and why all that holds for linear maps (paths,
    products of circuits) begins at the tokens themselves and not only at their embeddings.
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
    """X^l is the stream after l layers, n × d; x_i^l is its row i, and x_i alone is x_i^0, the
    embedding. X_≤i stands for the rows up to and with row i. Written as a matrix of the same shape,
    it is X with all later rows zero; its rows are kept by row i of the causal mask.

    Some texts count positions from 1; here the first is 0.
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
    """Take a pattern that is zero wherever the mask is. What a head puts at position i is the same
    whether it is given the whole stream or only the rows up to i.

    So Attn(X_≤i), as papers write it, is no other function than Attn at position i. It is no
    function of x_i alone, as Attn(X_i) would have it: that is a_ii x_i W_OV only. “Up to i”
    includes i itself: a position always may attend to itself. The mask is what makes it true:
    without it the two sides differ.
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
    )


@theorem(
    title="Weights are shared over positions: Id ⊗ W",
    chapter=1,
    convention="row",
    source=f"{FRAMEWORK}, “Tensor product / Kronecker product notation”",
    covers=("S0-47",),
)
def weights_are_shared() -> Statement:
    """Queries, keys and values are X W_Q, X W_K and X W_V: the same weights at every position. On
    the stacked stream that is Id ⊗ Wᵀ, a matrix with the same block at each position and zeros
    elsewhere, as the sum over positions of e_i e_iᵀ ⊗ Wᵀ says.

    So what weights do and what patterns do (A ⊗ Id) commute, and rows may be permuted before or
    after: P(XW) = (PX)W. Order enters a transformer through positions and the mask only.
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
    """A head can be written as three steps, as one tensor product on the stacked stream, with
    rows or columns stacked, with or without W_OV multiplied out. Such expressions are the same
    function exactly when they have the same normal form, whatever the sizes; that is how
    `ot.decide` answers.

    Here it is asked of four forms of a head, and of two that look alike and are none: without the
    transpose on W_OV, and with one on A. On a model each form is evaluated, and compared
    with loops over positions and features. In exact arithmetic they agree; in floating point they
    differ by rounding, and the bound says by how much.
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
