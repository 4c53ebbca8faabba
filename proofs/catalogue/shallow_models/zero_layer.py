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
    """A transformer without layers is one table: it embeds a token and unembeds it, so its logits
    after token t are column t of the fixed table W_U W_E (vocabulary × vocabulary). The best that
    it can learn is which token follows which (bigrams).

    In a model with layers the same product is a term of the logits, called the direct path.

    I_n on the left of ⊗ says that positions do not influence each other. T (n × V) has the one-hot
    tokens as rows.
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
    """In the row convention the logits of a transformer without layers are T W_E W_U: one row of
    the table W_E W_U (V × V) for each token, where T has the one-hot tokens as rows.

    Writing W_U W_E with row weights gives a d × d product, which sums over the vocabulary and is no
    table of tokens. This slip occurs where a text changes its convention.
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
    """A transformer without layers does not connect positions: as a matrix on all positions it is
    block diagonal. Block (i, j) of I_n ⊗ W_U W_E is the bigram table W_U W_E if i = j and zero
    otherwise. In the formula e_i and e_j pick the block.

    Blocks off the diagonal appear only with attention.
    """
    table = matmul(column.W_U, column.W_E)
    to, at = kron(Transpose(OneHot(i, n)), Identity(V)), kron(OneHot(j, n), Identity(V))
    return Statement(
        matmul(to, kron(Identity(n), table), at),
        kron(matmul(Transpose(OneHot(i, n)), OneHot(j, n)), table),
        places={"logits": matmul(kron(Identity(n), table), vec_rows(T))},
        depth=0,
    )


@theorem(
    title="A zero-layer model moves nothing between positions",
    chapter=5,
    convention="row",
    source=f"{FRAMEWORK}, “Zero-layer transformers”",
    covers=("S0-39",),
)
def zero_layer_moves_nothing() -> Statement:
    """In a model without attention the logits at one position do not depend on the token at
    another. Row e picks position i, column f picks position j, and e f = 0 says that they differ;
    replacing the token at j by adding f delta changes nothing at i.

    So attention is needed for one token to matter to the prediction after another.
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
    """The logarithm of bigram counts is the best set of logits for a model that sees only the
    current token. If token b follows token a N_ab times and the logits after a are log N_ab plus
    any constant c_a, the softmax predicts exactly the observed frequencies N_ab/Σ_b N_ab. With
    counts 3 and 1 it predicts 3/4 and 1/4. In the formula L is log N, so exp(L) is N, and the
    equation is multiplied by the row sums.

    That these logits minimise the loss follows from two facts: its gradient vanishes there
    (`cross_entropy_gradient`), and it is convex (`softmax_jacobian_is_a_variance`).
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
    """The gradient of the cross-entropy loss in the logits t (1 × V) is the predicted distribution
    minus the true one, softmax(t) − P. For one correct token P is one-hot: its logit is pushed up
    by 1 − p and every other logit down by its probability.

    All training of language models begins with this gradient. It vanishes exactly where the
    prediction equals P.

    The left side is the gradient of −Σ_b P_b log softmax(t)_b itself, entry by entry.
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
    """A model whose logits come from a stream of d dimensions can make only tables of
    log-probabilities of rank at most d + 1. For a model without layers the table is W_E W_U minus
    one number c for each row, the logarithm of the softmax's sum.

    If the true bigram table has a logarithm of higher rank, no choice of weights reproduces it.
    With d much smaller than the vocabulary the model can only approximate it.
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
    """Does the trained model without layers come close to what a table of bigrams can do? Its model
    card records three losses in nats: that of a uniform guess, the entropy of a token given the
    previous one in the training text, below which no such model can go there, and the loss that
    training reached.

    In the bundled sample, the tokens that really follow should also be among those the model
    expects.
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
