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
    """All heads of a layer read the same stream, and each adds what it has to say. Whether one
    sums the results or the factors A X W_V before the common W_O is a matter of brackets.

    Nothing is overwritten: what a later layer finds is the sum of everything written before it.
    And nothing is bypassed: what a layer writes is always added. That the sum holds X as it was
    does not mean that a model could choose to skip a layer for some inputs.
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
    """To the stream x, as one long column, each head adds A ⊗ W_O W_V times it: x + Σ h(x). Taken
    together that is one matrix, Id + Σ A ⊗ W_O W_V: the identity for the stream that goes on as it
    is, and one tensor product for each head.

    The paper counts sub-layers, so that x_{i+1} is the stream after attention and x_{i+2} the one
    after the MLP; elsewhere in this catalogue one layer is both.
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
    """Like a head, an MLP reads the stream, and what it makes of that is added: each neuron reads
    one number from what the norm made of the stream (Y; without norms Y is the stream X), passes
    it through the activation, and writes a multiple of its own vector.

    Here positions are columns and weights stand on the left. The activation written here is the
    gelu of GPT-2; with any other the same holds.
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
    """Let layer l add F_l to the stream, whatever F_l was computed from. After L layers the stream
    is X + F_0 + … + F_{L−1}. X stands in the sum by itself, for every depth: that is the identity
    path.

    To say so of every depth, the identity is written below the stream, and adding F_l becomes a
    matrix, Id + U F_l Wᵀ: W picks the identity, U puts F_l into the stream. That is a shear, as in
    homogeneous coordinates. The product of all layers is then proved by induction. A layer sees the
    sum of all earlier writes: not those of the last layer only, and not each of them on its own.
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
    """Layer by layer or component by component, the sum is the same: the embedding, the result of
    each head of each layer, the output bias of each attention layer, and the result of each MLP.

    The embedding (with the positions added to it) is a component like the others. A sum that begins
    with the first layer leaves it out, and does not give the stream.
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
    """f(x) = x_n^L W_U. W_U is d × V: column w is the direction that token w is read from, and the
    logit of w is the product of the stream with it. Each position has its own logits; those of the
    last position predict what comes next.

    W_E (V × d, into the stream) and W_U (d × V, out of it) are the two places where a model meets
    its vocabulary. A model with a final norm applies it first: then X_L here is what the norm
    returned, and leaving the norm out is no small error.
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
    """T(t) = W_U x_{−1}: here W_U is V × d and the stream has its positions as columns; x_{−1} is
    the last state of the stream, as in Python, and not the last position.
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
    """P(w | x) = softmax(x_n^L W_U)_w: the exponentials of the logits, divided by their sum over
    the vocabulary. Position i predicts token i + 1.

    Only differences of logits matter. Whatever adds the same number to the logits of all tokens
    changes nothing in what the model predicts.
    """
    return Definition(
        "the probabilities of the next token",
        RowSoftmax(matmul(X, row.W_U)),
        _probabilities,
        bind=({"X": Source("ln_final")}, {"X": Source("final")}),
        obeys=("next_token_probabilities_sum_to_one",),
    )


@theorem(
    title="The probabilities of the next token sum to one",
    chapter=2,
    convention="row",
    source=f"{PRIMER}, “Prediction head and transformer decompositions”",
    covers=("S3-001",),
)
def next_token_probabilities_sum_to_one() -> Statement:
    """Each row of softmax(X W_U) sums to one, whatever the logits are. So the softmax couples all
    tokens: if one becomes more probable, others become less so, although nothing was done to them.

    A logit is no measure of anything by itself. “The logit of this token rose” says little before
    one has seen what the others did.
    """
    return Statement(
        matmul(RowSoftmax(matmul(X, row.W_U)), OneMatrix(V, 1)),
        OneMatrix(n, 1),
        bind=({"X": Source("ln_final")}, {"X": Source("final")}),
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
    """Looking up the row of W_E for each token is the product T W_E, with one one-hot row for each
    position. So anything that reads the embedding linearly can be applied to the whole vocabulary
    first and looked up after: T (W_E W_Q), here for queries, takes rows of one fixed table. With
    W_U as the reader it is the table of a model without layers (`zero_layer_logits_row`).
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
    """If the vocabulary is read out with the same vectors it was read in with, W_U = W_Eᵀ, then the
    direct path W_E W_U scores “b after a” exactly as “a after b”, and no bigram is.

    So a tied model has to make its bigrams elsewhere, and the two interfaces of a model that is not
    tied are two different things: what a token is as input, and what it is as output.
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
    """Put W_O = 0 in all heads and W_out = 0 in the MLP, and the layer passes the stream on as it
    is, for every input. This is all that “bypass” can mean.

    It is a property of weights, not of inputs: no gate looks at the input and skips the layer.
    Both are needed: with either of them alone something is still written.
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
