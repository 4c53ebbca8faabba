"""Chapter 5: a model with no layer: one table, and what the best one is."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
from sympy import (
    Identity,
    MatrixSymbol,
    Min,
    OneMatrix,
    Symbol,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.facts import Fact
from otimes.algebra.language.defined import CrossEntropy
from otimes.algebra.language.derivative import gradient
from otimes.algebra.language.linear import OneHot, kron, matadd, matmul, vec_rows
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.sources import FRAMEWORK
from otimes.proofs.catalogue.symbols import V, column, d, n, row
from otimes.proofs.claims import Load, Observation, Observed, Property, Statement
from otimes.proofs.theorem import theorem

BOTTLENECK = "Yang et al. 2018, “Breaking the Softmax Bottleneck”"
T = MatrixSymbol("T", n, V)  # one-hot rows: the tokens of a prompt
i, j = Symbol("i", integer=True), Symbol("j", integer=True)


@theorem(
    title="A zero-layer transformer is one table, W_U W_E",
    chapter=5,
    convention="column",
    source=f"{FRAMEWORK}, “Zero-layer transformers”",
    covers=("S0-38", "S4-16"),
)
def zero_layer_logits() -> Statement:
    """Embed, then unembed: at each position the logits are a row of one fixed table of vocabulary
    by vocabulary, looked up by the token there. The best such a model can do is to learn which
    token follows which.

    The identity on the left of ⊗ says that positions do not hear of each other. On a model with
    layers the same product is the direct path, one term of its logits.
    """
    embedded = matmul(kron(Identity(n), column.W_E), vec_rows(T))
    logits = matmul(kron(Identity(n), column.W_U), kron(Identity(n), column.W_E), vec_rows(T))
    return Statement(
        logits,
        matmul(kron(Identity(n), matmul(column.W_U, column.W_E)), vec_rows(T)),
        places={"embed": embedded, "logits": logits},
        depth=0,
    )


@theorem(
    title="A zero-layer transformer in the row convention: T W_E W_U",
    chapter=5,
    convention="row",
    source=f"{FRAMEWORK}, “Zero-layer transformers”",
    covers=("S0-38", "S4-16"),
)
def zero_layer_logits_row() -> Statement:
    """With positions as rows the same table is W_E W_U, of vocabulary by vocabulary again. Writing
    W_U W_E with row weights gives a product that exists, d × d: it sums over the vocabulary, and is
    no table of tokens. Where a text changes its convention on the way, this is what slips in.
    """
    logits = matmul(matmul(T, row.W_E), row.W_U)
    return Statement(
        logits,
        matmul(T, matmul(row.W_E, row.W_U)),
        places={"logits": logits},
        depth=0,
        printed={"E11": (matmul(row.W_E, row.W_U), matmul(row.W_U, row.W_E))},
    )


@theorem(
    title="A zero-layer model is block diagonal over positions",
    chapter=5,
    convention="column",
    source=f"{FRAMEWORK}, “Zero-layer transformers”",
    covers=("S0-39",),
)
def zero_layer_is_block_diagonal() -> Statement:
    """Cut the matrix Id ⊗ W_U W_E into blocks of vocabulary by vocabulary, one for each pair of
    positions. Block (i, j) is δ_ij W_U W_E: the table on the diagonal, and zero everywhere else.
    """
    table = matmul(column.W_U, column.W_E)
    to, at = kron(Transpose(OneHot(i, n)), Identity(V)), kron(OneHot(j, n), Identity(V))
    return Statement(
        matmul(to, kron(Identity(n), table), at),
        kron(matmul(Transpose(OneHot(i, n)), OneHot(j, n)), table),
        on_models=False,
    )


@theorem(
    title="A zero-layer model moves nothing between positions",
    chapter=5,
    convention="row",
    source=f"{FRAMEWORK}, “Zero-layer transformers”",
    covers=("S0-39",),
)
def zero_layer_moves_nothing() -> Statement:
    """Put anything in place of the token at position j, and the logits at every other position i
    are what they were. Here e picks out position i and f position j, and e f = 0 says that the two
    are different. A model has to have attention for one token to matter to another.
    """
    here, there = MatrixSymbol("e", 1, n), MatrixSymbol("f", n, 1)
    change = matmul(there, MatrixSymbol("delta", 1, V))
    return Statement(
        matmul(here, matadd(T, change), row.W_E, row.W_U),
        matmul(here, T, row.W_E, row.W_U),
        given=((matmul(here, there), ZeroMatrix(1, 1)),),
        on_models=False,
    )


@theorem(
    title="The best zero-layer model is the logarithm of the bigram counts",
    chapter=5,
    source=f"{FRAMEWORK}, “Zero-layer transformers”",
    covers=("S2-01", "S2-02"),
)
def softmax_of_log_counts() -> Statement:
    """Let N_ab be how often token b follows token a, and L its logarithm, so that N = exp L. A
    model whose logits after a are L_a, plus any number c_a, predicts P_ab = N_ab / Σ_b N_ab: the
    row sums times its predictions are the counts. The numbers c are free, because logits count only
    up to a constant of each row; with c = -log Σ_b N_ab the logits are the logarithms of P
    themselves.

    That these logits are the best ones: the gradient of the cross-entropy, softmax less P, is zero
    there (`cross_entropy_gradient`), and the loss is convex (`softmax_jacobian_is_a_variance`).
    """
    logs, shift = MatrixSymbol("L", V, V), MatrixSymbol("c", V, 1)
    counts = Activation("exp", logs)
    predicted = RowSoftmax(matadd(logs, matmul(shift, OneMatrix(1, V))))
    return Statement(
        matmul(DiagMatrix(matmul(counts, OneMatrix(V, 1))), predicted),
        counts,
        on_models=False,
    )


@theorem(
    title="The gradient of the cross-entropy is prediction less target",
    chapter=5,
    source="Bridle 1990, “Probabilistic interpretation of feedforward classification network "
    f"outputs”; {FRAMEWORK}, “Zero-layer transformers”",
    covers=("S2-01",),
)
def cross_entropy_gradient() -> Statement:
    """Let t be the logits at one position and P the true distribution of the next token, a row that
    sums to one. The loss −Σ_b P_b log softmax(t)_b has the gradient softmax(t) − P in the logits:
    what the model predicts, less what is right. So the loss is stationary exactly where the
    prediction is P, at the logarithm of P plus a constant.

    For one right token P is one-hot: its logit is pushed up by 1 less its probability, and every
    other logit down by its own. The left side is the gradient of the loss itself, entry by entry.
    """
    t, target = MatrixSymbol("t", 1, V), MatrixSymbol("P", 1, V)
    return Statement(
        gradient(CrossEntropy(t, target), t),
        matadd(RowSoftmax(t), matmul(-1, target)),
        given=[(matmul(target, OneMatrix(V, 1)), Identity(1))],
        on_models=False,
    )


@theorem(
    title="The softmax bottleneck: log-probabilities of rank at most d + 1",
    chapter=5,
    convention="row",
    source=BOTTLENECK,
    covers=("S2-02",),
)
def softmax_bottleneck() -> Property:
    """The table of log-probabilities that a zero-layer model makes is W_E W_U less one number in
    each row, the logarithm of the sum that softmax divides by (softmax_of_log_counts). So its rank
    is at most d + 1, and no choice of weights gives a bigram table whose logarithm has a higher
    rank. With d much smaller than the vocabulary the best model is an approximation of the bigram
    table.
    """
    sums = MatrixSymbol("c", V, 1)
    logs = matadd(matmul(row.W_E, row.W_U), matmul(-1, sums, OneMatrix(1, V)))
    return Property(Fact("rank_at_most", logs, Min(V, d + 1)), on_models=False)


@theorem(
    title="The trained zero-layer model knows bigrams",
    chapter=5,
    convention="row",
    source=f"{FRAMEWORK}, “Zero-layer transformers”",
    covers=("S4-16", "S2-01"),
)
def zero_layer_model_learns_bigrams() -> Observation:
    """Trained on text, the bundled zero-layer model should come near to what a table of bigrams can
    do. Its card records, in nats: the loss of a uniform guess, the entropy of a token given the one
    before it in the training text, which no such model can go below there, and the loss that
    training reached. In the bundled sample, too, the tokens that follow should be among those that
    it expects.
    """
    return Observation(
        "on the sample text, each pair of neighbours that occurs is given more than the uniform "
        "probability in at least three cases of four, and the mean loss is below that of a uniform "
        "guess by 2 nats or more",
        _expects_bigrams,
        {"share of likely pairs": 0.75, "nats below uniform": 2.0},
    )


def _expects_bigrams(load: Load) -> Observed:
    model, tokens = load("zero_layer"), sample_tokens()
    seen = Counter(pairwise(tokens))
    loss, expected = 0.0, 0
    for (before, after), times in seen.items():
        logits = model.W_E[before].astype(float) @ model.W_U.astype(float)
        surprise = float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[after])
        loss += times * surprise
        expected += surprise < np.log(model.d_vocab)
    loss /= sum(seen.values())
    share = expected / len(seen)
    figure = (
        f"{expected} of {len(seen)} neighbours of the sample above 1/{model.d_vocab}; loss "
        f"{loss:.2f} nats, uniform {np.log(model.d_vocab):.2f}"
    )
    saved = float(np.log(model.d_vocab)) - loss
    return Observed(figure, {"share of likely pairs": share, "nats below uniform": saved})
