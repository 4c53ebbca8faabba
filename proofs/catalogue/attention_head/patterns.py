"""Chapter 3: patterns: what softmax makes of scores, and what every pattern has."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import sympy
from sympy import (
    HadamardProduct,
    MatrixSymbol,
    OneMatrix,
    Transpose,
    sqrt,
)

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, RowSoftmax
from otimes.numeric.binding import Source
from otimes.proofs.catalogue.attention_head.scores import READS
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER, VASWANI
from otimes.proofs.catalogue.symbols import X, column, d, d_head, m, n, p, row
from otimes.proofs.claims import Definition, ErrorLaw, NonIdentity, Property, Statement
from otimes.proofs.theorem import theorem

SOFTMAX = "Blanchard, Higham and Higham 2021, “Accurately computing the log-sum-exp and softmax"
SOFTMAX += " functions”"
BAHDANAU = (
    "Bahdanau, Cho and Bengio 2015, “Neural Machine Translation by Jointly Learning to Align and "
    "Translate”, §3.1"
)

i, j, k = sympy.symbols("i j k", integer=True)
SHORT = {"S": Source("q", cols=6)}  # any table of moderate numbers will do for scores
S = MatrixSymbol("S", n, m)
S_n = MatrixSymbol("S", n, n)
MASK = CausalMask(n)
W_QK = matmul(row.W_Q, Transpose(row.W_K))
SCORES = matmul(1 / sqrt(d_head), matmul(X, row.W_Q), Transpose(matmul(X, row.W_K)))
PATTERN = RowSoftmax(SCORES, MASK)


def entrywise(*factors: Any) -> Any:
    """Return the entrywise product as stated."""
    return HadamardProduct(*factors, evaluate=False)


def _softmax_plainly(S: Any, n: int, m: int) -> Any:
    weights = [[math.exp(S[a, b]) for b in range(m)] for a in range(n)]
    return [[weights[a][b] / sum(weights[a]) for b in range(m)] for a in range(n)]


@theorem(
    title="Softmax: exp of each score, divided by the sum along the row",
    chapter=3,
    source=f"{BAHDANAU}; {SOFTMAX}",
    covers=("S4-02",),
)
def softmax_of_rows() -> Definition:
    """Softmax turns each row of scores into weights that are positive and sum to one: take exp of
    each score and divide by the sum along the row. A row with the scores 0 and log 3 becomes (1/4,
    3/4). S (n × m) is the table of scores.

    In attention row i belongs to query i, and the sum runs over its keys. Along the other axis the
    columns would sum to one, and no query would have a distribution over what it reads.
    """
    return Definition(
        "softmax",
        RowSoftmax(S),
        _softmax_plainly,
        bind=(SHORT,),
        obeys=("softmax_ratio", "softmax_ignores_row_constants", "pattern_is_stochastic"),
    )


def _pattern_plainly(X: Any, W_Q: Any, W_K: Any, n: int, d: int, d_head: int) -> Any:
    found = np.zeros((n, n))
    for query in range(n):
        scores = []
        for key in range(query + 1):
            total = 0.0
            for c in range(d_head):
                q = sum(X[query, a] * W_Q[a, c] for a in range(d))
                total += q * sum(X[key, a] * W_K[a, c] for a in range(d))
            scores.append(total / math.sqrt(d_head))
        most = max(scores)
        weights = [math.exp(score - most) for score in scores]
        for key, weight in enumerate(weights):
            found[query, key] = weight / sum(weights)
    return found


@theorem(
    title="The pattern of a causal head",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {VASWANI}, §3.2.1",
    covers=("S0-23", "S1-15", "S2-24"),
)
def attention_pattern_of_head() -> Definition:
    """The attention pattern of a head says how much each position attends to each earlier one: row
    i holds the weights of query i, which sum to one. It is the softmax of the scores x_i W_Q (x_j
    W_K)ᵀ/√d_head over the positions j ≤ i, which the causal mask M_n keeps.

    Each of four things that texts leave out gives another function: the mask, the factor 1/√d_head,
    the axis of the softmax, and the norm that X has been through.
    """
    return Definition(
        "A",
        PATTERN,
        _pattern_plainly,
        places=("pattern",),
        bind=(READS,),
        obeys=("pattern_is_stochastic", "pattern_through_W_QK"),
    )


@theorem(
    title="A pattern depends on W_Q and W_K only through W_QK",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”; {FRAMEWORK}, “Observations about attention heads”",
    covers=("S3-009", "S0-23"),
)
def pattern_through_W_QK() -> Statement:
    """The attention pattern depends on the query and key weights only through their product W_QK =
    W_Q W_Kᵀ, since equal scores have equal softmax.

    So all there is to know about where a head can attend is in this one matrix (d × d, rank at most
    d_head).
    """
    scores = matmul(1 / sqrt(d_head), X, W_QK, Transpose(X))
    return Statement(PATTERN, RowSoftmax(scores, MASK), places={"pattern": PATTERN}, bind=(READS,))


@theorem(
    title="One row of a pattern depends on one row of scores only",
    chapter=3,
    convention="row",
    source=f"{PRIMER}, “Attention block”",
    covers=("S3-009", "S0-23"),
)
def pattern_row_by_row() -> Statement:
    """Row i of an attention pattern can be computed from query i alone: it is the softmax of the
    one row x_i W_QK Xᵀ/√d_head under row i of the causal mask. Softmax acts on each row by itself.

    This is the form in which papers write a_i, and the one that is used when text is generated
    token by token. The mask's row is what “X_≤i” stands for: later keys do not count
    (`prefix_sees_no_later_keys`).
    """
    here = Transpose(OneHot(i, n))
    scores = matmul(1 / sqrt(d_head), here, X, W_QK, Transpose(X))
    return Statement(
        matmul(here, PATTERN),
        RowSoftmax(scores, matmul(here, MASK)),
        bind=(READS,),
        places={"pattern": PATTERN},
    )


@theorem(
    title="The pattern from the QK form, with positions as columns",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-43", "S1-25", "S2-24"),
)
def pattern_through_W_QK_column() -> Statement:
    """In the column convention, with positions as the columns of X, the attention pattern is the
    softmax of Xᵀ W_Qᵀ W_K X/√d_head under the causal mask.

    The framework paper writes softmax*(xᵀ W_Qᵀ W_K x). The star stands for the mask, for the
    softmax along rows, and for the factor 1/√d_head. Copied without the star the formula lets
    positions attend to later ones.
    """
    x = MatrixSymbol("X", d, n)
    W_Q, W_K = column.W_Q, column.W_K
    queries_keys = matmul(Transpose(matmul(W_Q, x)), matmul(W_K, x))
    form = matmul(Transpose(x), matmul(Transpose(W_Q), W_K), x)
    pattern = RowSoftmax(matmul(1 / sqrt(d_head), queries_keys), MASK)
    return Statement(
        pattern,
        RowSoftmax(matmul(1 / sqrt(d_head), form), MASK),
        places={"pattern": pattern},
        bind=(READS,),
        printed={"E10": (pattern, RowSoftmax(form))},
    )


def _attention_plainly(Q: Any, K: Any, V: Any, n: int, d_head: int) -> Any:
    found = np.zeros((n, d_head))
    for query in range(n):
        visible = range(query + 1)
        scores = [sum(Q[query, c] * K[key, c] for c in range(d_head)) for key in visible]
        scores = [score / math.sqrt(d_head) for score in scores]
        weights = [math.exp(score - max(scores)) for score in scores]
        for key in visible:
            for c in range(d_head):
                found[query, c] += weights[key] / sum(weights) * V[key, c]
    return found


@theorem(
    title="Scaled dot-product attention: Attention(Q, K, V)",
    chapter=3,
    source=f"{VASWANI}, §3.2.1 and §3.2.3",
    covers=("S2-21", "S3-007", "S4-12"),
)
def scaled_dot_product_attention() -> Definition:
    """Attention(Q, K, V) = softmax(QKᵀ/√d_head) V: each query takes a weighted mean of the values,
    weighted by how well their keys match it. Here it is under the causal mask, as in a language
    model; libraries apply the mask only if asked.

    It is the part of a head between its three reading matrices and W_O, and what optimised kernels
    compute. Where Q, K and V come from is left open, so biases, norms and rotations are allowed.
    """
    Q, K, V = (MatrixSymbol(name, n, d_head) for name in "QKV")
    scores = matmul(1 / sqrt(d_head), Q, Transpose(K))
    return Definition(
        "Attention",
        matmul(RowSoftmax(scores, MASK), V),
        _attention_plainly,
        places=("z",),
        bind=({"Q": Source("q"), "K": Source("k"), "V": Source("v")},),
        bare=False,
        obeys=("attention_moves_values",),
    )


def _unmasked_plainly(Q: Any, K: Any, V: Any, n: int, m: int, p: int, d_head: int) -> Any:
    found = np.zeros((n, p))
    for query in range(n):
        scores = [sum(Q[query, c] * K[key, c] for c in range(d_head)) for key in range(m)]
        weights = [math.exp(score / math.sqrt(d_head)) for score in scores]
        for key, c in product(range(m), range(p)):
            found[query, c] += weights[key] / sum(weights) * V[key, c]
    return found


@theorem(
    title="Attention without a mask, from one sequence to another",
    chapter=3,
    source=f"{VASWANI}, §3.2.1, equation 1",
    covers=("S2-21", "S3-007"),
)
def attention_without_mask() -> Definition:
    """Without a mask, each of n queries takes a weighted mean of all m values: softmax(QKᵀ/√d_head)
    V. Queries may come from another sequence than keys and values, as in translation, and the
    values may have any width. The rows of Q, K and V are queries, keys and values.

    This is the formula of the original paper. An encoder uses it as it stands; a language model
    adds the causal mask (`scaled_dot_product_attention`).

    The softmax runs along the keys, which are the columns of QKᵀ.
    """
    Q, K = MatrixSymbol("Q", n, d_head), MatrixSymbol("K", m, d_head)
    return Definition(
        "Attention",
        matmul(RowSoftmax(matmul(1 / sqrt(d_head), Q, Transpose(K))), MatrixSymbol("V", m, p)),
        _unmasked_plainly,
        bind=(
            {
                "Q": Source("q", rows=5),
                "K": Source("k", rows=4),
                "V": Source("v", rows=4, cols=6),
            },
        ),
        obeys=("softmax_of_rows", "context_vector"),
    )


@theorem(
    title="A pattern is non-negative and its rows sum to one",
    chapter=3,
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-26", "S0-27", "S1-15"),
)
def pattern_is_stochastic() -> Property:
    """Every row of an attention pattern is a probability distribution over positions: no weight is
    negative, and they sum to one. With the causal mask it is a distribution over the positions so
    far. S (n × n) are arbitrary scores.

    So a pattern can be read as “how much of what arrives at i comes from j”, and a head takes
    weighted means.

    Columns are not restricted in this way. A position may be attended to by all others or by none.
    """
    return Property(
        Fact("row_stochastic", RowSoftmax(S_n, MASK)),
        bind=({"S": Source("scores")},),
        places={"pattern": RowSoftmax(S_n, MASK)},
        bare=False,
    )


@theorem(
    title="An attention pattern is not symmetric",
    chapter=3,
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-27",),
)
def pattern_is_not_symmetric() -> NonIdentity:
    """That position i attends to j does not mean that j attends to i: patterns are not symmetric,
    even if the scores are. Each row is divided by a sum of its own. The inequality shows it for
    scores S + Sᵀ without a mask.

    Under the causal mask the identity is the only symmetric pattern.
    """
    pattern = RowSoftmax(matadd(S_n, Transpose(S_n)))
    return NonIdentity(pattern, Transpose(pattern))


@theorem(
    title="Softmax is unchanged when the same number is added to all scores of a query",
    chapter=3,
    source=SOFTMAX,
    covers=("S0-26",),
)
def softmax_ignores_row_constants() -> Statement:
    """Adding the same number to all scores of one query changes none of its attention weights,
    because the factor exp(v) cancels in the softmax. In the formula v holds one number for each row
    of S.

    So a score of 7 means nothing by itself; only differences within a row count. It is why code
    subtracts the largest score before taking exp, which avoids overflow.

    In floating point a weight may round to 0 or 1. In exact arithmetic neither occurs if two keys
    are visible.
    """
    v = MatrixSymbol("v", n, 1)
    return Statement(
        RowSoftmax(matadd(S_n, matmul(v, OneMatrix(1, n))), MASK),
        RowSoftmax(S_n, MASK),
        bind=({"S": Source("scores"), "v": Source("resid_pre", cols=1, example=True)},),
        places={"pattern": RowSoftmax(S_n, MASK)},
        bare=False,
    )


@theorem(
    title=(
        "The ratio of two attention weights of one query is exp of the difference of their scores"
    ),
    chapter=3,
    source=f"{SOFTMAX}; class notes on the formulation of transformers",
    covers=("S0-24", "S2-23", "B20"),
)
def softmax_ratio() -> Statement:
    """The ratio of two attention weights of one query is exp of the difference of their scores:
    a_ij/a_ik = exp(s_ij − s_ik). A difference of log 2 ≈ 0.69 makes one weight twice the other. The
    equation is written without division. S is the table of scores, with entries s_ij.

    So the odds of two tokens do not depend on the rest of the prompt, and can be read from W_QK.
    The weights themselves depend on everything in the prompt.

    This holds within one row. Across rows, a score of 0 may have weight 1 and a score of 10 weight
    1/2.
    """
    weight, power = RowSoftmax(S), Activation("exp", S)
    return Statement(
        weight[i, j] * power[i, k],
        weight[i, k] * power[i, j],
        bind=(SHORT,),
        printed={"E34": (weight[i, j] * power[k, j], weight[k, j] * power[i, j])},
    )


@theorem(
    title="Attention weights lie between zero and one",
    chapter=3,
    source=f"{BAHDANAU}; {SOFTMAX}",
    covers=("S0-26", "S4-02"),
)
def weights_lie_between_zero_and_one() -> Statement:
    """An attention weight from a softmax is never exactly zero, and exactly one only if a single
    key is visible. The equation a_ij Σ_k exp(s_ik) = exp(s_ij) shows it: the right side is
    positive, and the sum on the left exceeds exp(s_ij) as soon as there is a second key. S is the
    table of scores, with entries s_ij.

    So “the head ignores this token” is never exactly true of a visible token. No finite score can
    do what the mask does.
    """
    weight, power = RowSoftmax(S), Activation("exp", S)
    return Statement(
        weight[i, j] * matmul(power, OneMatrix(m, 1))[i, 0],
        power[i, j],
        bind=(SHORT,),
    )


@theorem(
    title="Within a row the higher score has the higher weight",
    chapter=3,
    convention="row",
    source=f"{SOFTMAX}; class notes on the formulation of transformers",
    covers=("S0-24",),
)
def weights_order_as_scores() -> Statement:
    """Within a row the key with the higher score gets the higher attention weight. In the equation
    exp(s_ik) and a_ik are positive, so a_ij − a_ik and exp(s_ij) − exp(s_ik) have the same sign. S
    is the table of scores, with entries s_ij, and a_ij is the weight of key j for query i.

    Softmax keeps the order of a row. How much larger a weight is depends on the difference of the
    scores, and how large it is on the whole row.
    """
    weight, power = RowSoftmax(S), Activation("exp", S)
    return Statement(
        (weight[i, j] - weight[i, k]) * power[i, k],
        weight[i, k] * (power[i, j] - power[i, k]),
        bind=(SHORT,),
    )


@theorem(
    title="With equal scores attention is the mean over the keys",
    chapter=3,
    source=SOFTMAX,
    covers=("S2-23", "S2-25"),
)
def softmax_of_equal_scores() -> Statement:
    """If a query gives all m keys the same score, each gets the weight 1/m, and the head takes the
    plain mean of the values. In the formula v (n × 1) holds the one score of each query.

    It is the limit of high temperature, and what heads do at the start of training, when all scores
    are small.
    """
    v = MatrixSymbol("v", n, 1)
    return Statement(
        RowSoftmax(matmul(v, OneMatrix(1, m))),
        matmul(1 / m, OneMatrix(n, m)),
        on_models=False,
    )


_SPREAD = np.array([0.3, 2.1, -0.7, 1.1, 0.0])


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@theorem(
    title="At high temperature τ attention weights approach 1/m, at the rate 1/τ",
    chapter=3,
    source=SOFTMAX,
    covers=("S2-23",),
)
def softmax_at_high_temperature() -> ErrorLaw:
    """Divide all scores by a temperature τ. As τ grows, the attention weights approach equal
    weights 1/m, and the difference falls like 1/τ. The law is written with the step h = 1/τ: when h
    is halved, the distance is halved.

    This is the regime of small scores, as at the start of training, where attention is nearly a
    plain mean.
    """
    return ErrorLaw(
        r"\lVert \operatorname{softmax}(h s) - \tfrac1m \mathbf 1 \rVert",
        lambda h: float(np.linalg.norm(_softmax(h * _SPREAD) - 1 / len(_SPREAD))),
        order=1.0,
    )


@theorem(
    title="At low temperature softmax picks the key with the highest score",
    chapter=3,
    source=f"{SOFTMAX}; attention as a soft dictionary look-up",
    covers=("S2-23",),
)
def softmax_at_low_temperature() -> ErrorLaw:
    """Divide all scores by a temperature τ. As τ falls to zero, all weight goes to the key with the
    highest score: the soft lookup becomes a hard one. The remaining weight falls like exp(−gap/τ),
    where gap is the difference between the two highest scores, here 1.

    Constructions of heads by hand use this: large scores make a head attend to exactly one key, up
    to a small error.

    The highest score must be unique. Of two equal highest scores, each keeps weight one half at
    every temperature.
    """
    picked = np.eye(len(_SPREAD))[int(_SPREAD.argmax())]
    return ErrorLaw(
        r"\lVert \operatorname{softmax}(s / \tau) - e_{\arg\max s} \rVert",
        lambda h: float(np.linalg.norm(_softmax(_SPREAD * math.log(1 / h)) - picked)),
        order=1.0,
        start=2.0**-8,
        small=r"e^{-1/\tau}",
    )
