"""Chapter 2: every component adds to the stream, and the logits add up the same way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sympy import BlockMatrix, Identity, MatrixSymbol, OneMatrix, Transpose, ZeroMatrix

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul, vec_rows
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.sources import FRAMEWORK, PRESS_WOLF, PRIMER
from otimes.proofs.catalogue.symbols import (
    H,
    L,
    V,
    X,
    column,
    d,
    d_head,
    h,
    heads,
    l,
    n,
    row,
    size,
)
from otimes.proofs.claims import Definition, Statement
from otimes.proofs.theorem import theorem

d_mlp = size("d_mlp")
T = MatrixSymbol("T", n, V)
SUMMED = {
    f"{name} of another {of}": "all layers and heads are summed"
    for name, of in (
        ("head_out", "layer"),
        ("head_out", "head"),
        ("b_O", "layer"),
        ("mlp_out", "layer"),
    )
}
W_in, W_out = MatrixSymbol("W_in", d, d_mlp), MatrixSymbol("W_out", d_mlp, d)


@theorem(
    title="The residual stream after an attention layer: its input and the output of each head",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “The transformer layer”; {FRAMEWORK}, "
    "“Virtual weights and the residual stream as a communication channel”",
    covers=("S1-01", "S3-010", "S0-18"),
)
def residual_update() -> Statement:
    """An attention layer adds the output of each of its heads to the residual stream, the matrix X
    that has one vector for each position. Head h takes values X W_V, mixes them over positions by
    its pattern A, and maps the result back with W_O. All heads read the same X, so the layer is a
    sum, and brackets do not matter: (A X W_V) W_O is A X (W_V W_O).

    Nothing in the stream is overwritten. What a later layer reads is the sum of everything that was
    written before it.

    This does not mean that a model can choose to skip a layer for some inputs: what a layer
    computes is always added (`zeroed_layer_is_identity`).
    """
    A, W_V, W_O = heads.A[h], heads.row.W_V[h], heads.row.W_O[h]
    after = matadd(X, HeadSum(matmul(matmul(A, matmul(X, W_V)), W_O), (h, H)))
    return Statement(
        after,
        matadd(X, HeadSum(matmul(A, X, matmul(W_V, W_O)), (h, H))),
        places={"resid_mid": after, "resid_post": after},
        printed={"E49": (after, X)},
    )


@theorem(
    title="The update by attention in the column convention: Id + Σ A ⊗ W_O W_V",
    chapter=2,
    convention="column",
    source=f"{FRAMEWORK}, “Attention heads are independent and additive”",
    covers=("S4-07",),
)
def residual_update_column() -> Statement:
    """Written for the residual stream as one long column x, an attention layer is a single matrix:
    Id + Σ A ⊗ W_O W_V. The identity carries the stream on unchanged, and each head adds one tensor
    product, of its pattern and its output-value matrix.

    This is the form in which models with several layers are multiplied out into paths.

    The source counts sub-layers, so that x_{i+1} is the stream after attention and x_{i+2} the one
    after the MLP. Elsewhere in this catalogue one layer is both.
    """
    A, W_V, W_O = heads.A[h], heads.column.W_V[h], heads.column.W_O[h]
    x = vec_rows(X)
    steps = matmul(kron(Identity(n), W_O), kron(A, Identity(d_head)), kron(Identity(n), W_V), x)
    after = matadd(x, HeadSum(steps, (h, H)))
    whole = matadd(kron(Identity(n), Identity(d)), HeadSum(kron(A, matmul(W_O, W_V)), (h, H)))
    return Statement(after, matmul(whole, x), places={"resid_mid": after})


def _mlp_by_loops(
    X: Any, Y: Any, W_in: Any, W_out: Any, b_in: Any, b_out: Any, **_: Any
) -> np.ndarray:
    """Return the stream with what each neuron writes added, with one position in each column."""
    after = np.array(X, dtype=np.float64)
    for position in range(X.shape[1]):
        after[:, position] += b_out[:, 0]
        for neuron in range(W_in.shape[0]):
            reads = float(W_in[neuron] @ Y[:, position]) + float(b_in[neuron, 0])
            inner = math.sqrt(2 / math.pi) * (reads + 0.044715 * reads**3)
            after[:, position] += 0.5 * reads * (1 + math.tanh(inner)) * W_out[:, neuron]
    return after


@theorem(
    title="The update by an MLP: x + m(x)",
    chapter=2,
    convention="column",
    source=f"{FRAMEWORK}, “Transformer overview”",
    covers=("S4-08",),
)
def mlp_update() -> Definition:
    """An MLP layer adds to the residual stream what its neurons write. Each neuron takes the dot
    product of its input with a row of W_in, adds a bias, applies the activation function to that
    one number, and writes the result times its own vector, a column of W_out.

    Here positions are the columns of X and weights stand on the left. Y is what the MLP reads: the
    normalised stream, or X itself in a model without norms.

    The formula is written with GELU in GPT-2's tanh form. Any other activation may stand in its
    place.
    """
    W_in, W_out = MatrixSymbol("W_in", d_mlp, d), MatrixSymbol("W_out", d, d_mlp)
    b_in, b_out = MatrixSymbol("b_in", d_mlp, 1), MatrixSymbol("b_out", d, 1)
    X, Y = MatrixSymbol("X", d, n), MatrixSymbol("Y", d, n)
    ones = OneMatrix(1, n)
    read = Activation("gelu_tanh", matadd(matmul(W_in, Y), matmul(b_in, ones)))
    return Definition(
        "the stream after an MLP",
        matadd(X, matadd(matmul(W_out, read), matmul(b_out, ones))),
        _mlp_by_loops,
        places=("resid_post",),
        bind=(
            {
                "X": Source("resid_mid", transposed=True),
                "Y": Source("ln2", transposed=True),
            },
        ),
        bare=False,
        config={"gated": False, "activation": "gelu_tanh"},
        obeys=("mlp_is_positionwise", "everything_else_is_positionwise"),
    )


@theorem(
    title="The residual stream is the embedding plus everything that was written to it",
    chapter=2,
    source=f"{FRAMEWORK}, “Virtual weights and the residual stream as a communication channel”; "
    f"{PRIMER}, “The transformer layer”",
    covers=("S0-10", "S1-01", "S1-02", "S2-08"),
)
def stream_is_sum_of_writes() -> Statement:
    """The residual stream after L layers is the embedding plus everything that any layer added: X +
    F_0 + … + F_{L−1}, where F_l (n × d) is what layer l wrote, however it was computed. So the
    embedding X is a term of the final stream at every depth; this term is called the identity path.

    It is the reason why logits can be split into the contributions of layers.

    To state this for every depth, adding F_l is written as a matrix that acts on the stream with an
    identity stacked below it, as homogeneous coordinates turn a shift into a matrix. The product
    over all layers is then proved by induction on L. A layer reads the sum of all earlier writes:
    not the last one only, and not each of them by itself.
    """
    F = Family("F", (L,), n, d)
    U = BlockMatrix([[Identity(n)], [ZeroMatrix(d, n)]])
    W = BlockMatrix([[ZeroMatrix(n, d)], [Identity(d)]])
    adds = matadd(Identity(n + d), matmul(U, F[l], Transpose(W)))
    after = matadd(X, HeadSum(F[l], (l, L)))
    return Statement(
        matmul(LayerProduct(adds, (l, L)), matadd(matmul(U, X), W)),
        matadd(matmul(U, after), W),
        places={"final": after},
        bind=({"X": Source("resid_pre", layer=0), "F": Source("attn_out")},),
        unchanged_by={"attn_out of another layer": "all layers are summed"},
    )


@theorem(
    title="The final stream: embedding, heads, biases and MLPs",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “Prediction as a sum of component outputs”, equation 10",
    covers=("S0-10",),
)
def stream_is_sum_of_components() -> Statement:
    """The final residual stream is a sum over components: the embedding X_0, the output of each
    head of each layer, the output bias of each attention layer, and the output of each MLP. Adding
    layer by layer or component by component gives the same sum. In the formula H_out[l, h] is the
    output of head h in layer l and M_out[l] that of the MLP, each n × d.

    Direct logit attribution multiplies each of these terms by the unembedding.

    The embedding, with the position vectors added to it, is a component like the others. A sum that
    begins with the first layer leaves it out and is not the stream.
    """
    x_0 = MatrixSymbol("X_0", n, d)
    out, mlp = Family("H_out", (L, H), n, d), Family("M_out", (L,), n, d)
    bias = matmul(OneMatrix(n, 1), Family("b_O", (L,), 1, d)[l])
    layer = matadd(HeadSum(out[l, h], (h, H)), bias, mlp[l])
    by_layer = matadd(x_0, HeadSum(layer, (l, L)))
    heads_only = HeadSum(out[l, h], (l, L), (h, H))
    others = (HeadSum(bias, (l, L)), HeadSum(mlp[l], (l, L)))
    bind = {
        "X_0": Source("resid_pre", layer=0),
        "H_out": Source("head_out"),
        "M_out": Source("mlp_out"),
    }
    return Statement(
        by_layer,
        matadd(x_0, heads_only, *others),
        places={"final": by_layer},
        bind=(bind,),
        unchanged_by=SUMMED,
        bare=False,
        printed={"E33": (by_layer, matadd(heads_only, *others))},
    )


def _unembedded(X_L: Any, W_U: Any, **_: Any) -> np.ndarray:
    """Return the product of each row of the stream with each column of W_U."""
    logits = np.zeros((X_L.shape[0], W_U.shape[1]), dtype=X_L.dtype)
    for position in range(X_L.shape[0]):
        for token in range(W_U.shape[1]):
            for feature in range(X_L.shape[1]):
                logits[position, token] += X_L[position, feature] * W_U[feature, token]
    return logits


@theorem(
    title="Logits are the final residual stream times the unembedding",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “Prediction head and transformer decompositions”",
    covers=("S0-09", "S0-15", "S3-086"),
)
def logits() -> Definition:
    """The logits are the model's scores for the next token: the final residual stream times the
    unembedding matrix W_U, which is d × V. The logit of token w at a position is the dot product of
    the stream there with column w of W_U. Every position has its own logits; those of the last one
    predict what comes next.

    W_E (V × d) and W_U (d × V) are the two places where a model meets its vocabulary.

    A model with a final norm applies it first. Then X_L stands for the output of that norm, and
    leaving the norm out is no small error.
    """
    return Definition(
        "the logits",
        matmul(MatrixSymbol("X_L", n, d), row.W_U),
        _unembedded,
        places=("logits",),
        bind=({"X_L": Source("final")},),
        obeys=("logits_are_sum_of_components", "embedding_then_reader"),
    )


@theorem(
    title="Logits in the column convention: W_U on the left",
    chapter=2,
    convention="column",
    source=f"{FRAMEWORK}, “Transformer overview”",
    covers=("S4-09",),
)
def logits_column() -> Definition:
    """In the column convention the unembedding stands on the left: the logits are W_U X_L, where
    W_U is V × d and each position is a column of the final residual stream X_L. It is the transpose
    of `logits`.

    Papers write T(t) = W_U x_{−1}. The index −1 means the last state of the stream, after all
    layers, as in Python; it does not mean the last position.
    """

    def plain(X_L: Any, W_U: Any, **_: Any) -> np.ndarray:
        return _unembedded(X_L.T, W_U.T).T

    return Definition(
        "the logits, as columns",
        matmul(column.W_U, MatrixSymbol("X_L", d, n)),
        plain,
        places=("logits",),
        bind=({"X_L": Source("final")},),
        obeys=("logits_are_sum_of_components",),
    )


def _probabilities(X: Any, W_U: Any, **_: Any) -> np.ndarray:
    """Return exp(logit) over the sum of the exp of all logits, position by position."""
    found = _unembedded(np.asarray(X, float), np.asarray(W_U, float))
    for line in found:
        weights = np.exp(line - line.max())
        line[:] = weights / weights.sum()
    return found


@theorem(
    title="The distribution of the next token",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “Prediction head and transformer decompositions”",
    covers=("S3-001",),
)
def next_token_distribution() -> Definition:
    """The model's prediction of the next token is the softmax of its logits: the exponential of
    each logit, divided by the sum of the exponentials over the vocabulary. Row i of softmax(X W_U)
    is a probability distribution over V tokens, the prediction for position i + 1. X is the final
    residual stream, n × d. Logits log 3 and 0, for example, give probabilities 3/4 and 1/4.

    Only differences of logits matter. Adding the same number to the logits of all tokens changes no
    probability.
    """
    return Definition(
        "the probabilities of the next token",
        RowSoftmax(matmul(X, row.W_U)),
        _probabilities,
        bind=({"X": Source("ln_final")}, {"X": Source("final")}),
        obeys=("next_token_probabilities_sum_to_one",),
        places={"logits": matmul(X, row.W_U)},
        bare=False,
    )


@theorem(
    title="The probabilities of the next token sum to one",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “Prediction head and transformer decompositions”",
    covers=("S3-001",),
)
def next_token_probabilities_sum_to_one() -> Statement:
    """The probabilities of the next token sum to one at every position, whatever the logits are. So
    the softmax couples all tokens: if one becomes more probable, others become less probable, even
    if their logits have not changed.

    For this reason a single logit means little. “The logit of this token rose by 2” tells nothing
    about its probability before one knows what the other logits did. Logit differences and log
    probabilities do not have this problem.
    """
    return Statement(
        matmul(RowSoftmax(matmul(X, row.W_U)), OneMatrix(V, 1)),
        OneMatrix(n, 1),
        bind=({"X": Source("ln_final")}, {"X": Source("final")}),
        places={"logits": matmul(X, row.W_U)},
        bare=False,
    )


@theorem(
    title="A linear map of the embedding is a table over the vocabulary",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “Prediction head and transformer decompositions”; {FRAMEWORK}, "
    "“Zero-layer transformers”",
    covers=("S3-086",),
)
def embedding_then_reader() -> Statement:
    """Any linear map of the embeddings can be computed once for the whole vocabulary: (T W_E) W_Q =
    T (W_E W_Q), where T has one one-hot row for each position. The matrix W_E W_Q is a table with
    one row for each token, and T looks rows up in it.

    So what the first layer reads of a token can be computed before any prompt is seen, apart from
    its position. With W_U in place of W_Q the table is a complete model without layers
    (`zero_layer_logits_row`).
    """
    return Statement(
        matmul(matmul(T, row.W_E), row.W_Q),
        matmul(T, matmul(row.W_E, row.W_Q)),
        places={"embed": matmul(T, row.W_E)},
        unchanged_by=dict.fromkeys(
            (
                "W_K for W_Q",
                "W_V for W_Q",
                "W_Q of another head",
                "W_Q of another layer",
                "W_Q with its columns shifted",
            ),
            "any matrix can be the reader: W_Q is an example",
        ),
    )


@theorem(
    title="With tied embeddings the direct path is symmetric",
    chapter=2,
    convention="row",
    source=f"{FRAMEWORK}, “Zero-layer transformers”; {PRESS_WOLF}",
    covers=("S3-086",),
)
def tied_direct_path_is_symmetric() -> Statement:
    """If a model uses the same matrix to read tokens in and to read them out, W_U = W_Eᵀ (“tied
    embeddings”), then the path that goes straight from the input token to the logits, W_E W_U, is
    symmetric: it scores “b after a” exactly as “a after b”.

    Real bigrams are not symmetric; “of the” is common and “the of” is not. A tied model has to
    compute the difference in its layers.

    Where the matrices are not tied, a token has two unrelated vectors: one for what it is as input,
    one for what it is as output.
    """
    return Statement(
        Transpose(matmul(row.W_E, row.W_U)),
        matmul(row.W_E, row.W_U),
        given=((row.W_U, Transpose(row.W_E)),),
    )


@theorem(
    title="A residual layer that writes zero is the identity",
    chapter=2,
    convention="row",
    source=f"{FRAMEWORK}, “Virtual weights and the residual stream as a communication channel”",
    covers=("S1-02",),
)
def zeroed_layer_is_identity() -> Statement:
    """A layer whose output weights are all zero passes the residual stream on unchanged, for every
    input. In the equation W_O is zero in all heads and W_out is zero in the MLP, and Y is the
    stream between the two.

    This is all that “a layer can be bypassed” can mean: it is a property of the weights. No gate
    looks at the input and skips the layer. Both conditions are needed, since with only one of them
    the other part still writes.
    """
    W_V, W_O = heads.row.W_V[h], heads.row.W_O[h]
    Y = MatrixSymbol("Y", n, d)  # the stream between attention and the MLP
    return Statement(
        matadd(Y, matmul(Activation("g", matmul(Y, W_in)), W_out)),
        X,
        given=(
            (Y, matadd(X, HeadSum(matmul(heads.A[h], X, W_V, W_O), (h, H)))),
            (W_O, ZeroMatrix(d_head, d)),
            (W_out, ZeroMatrix(d_mlp, d)),
        ),
        on_models=False,
    )
