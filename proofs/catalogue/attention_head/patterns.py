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
    """Each row of a table of scores becomes weights: exp makes every score positive, and the sum
    over the row makes them add to one. Row i is query i's; the sum runs over keys. Along the other
    axis the columns would add to one, and no query would have a distribution over what it reads.
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
    """a_i = softmax over j ≤ i of x_i W_Q (x_j W_K)ᵀ / √d_head: dot product of query and key,
    scale, mask, softmax over the keys that the query may see, itself among them. In matrices: one
    softmax of all scores under the mask. Row i is the destination, column j the source.

    Four things are left out of many texts, and each one makes it another function: the mask, the
    scale, the axis of the softmax, and the norm that X has been through.
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
    """The pattern from queries and keys on the left, and from W_QK = W_Q W_Kᵀ on the right: row i
    is the softmax of x_i W_QK Xᵀ / √d_head over the keys that i may see. Equal scores have equal
    softmax, so whatever is true of W_QK is all there is to know about where a head looks.
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
    """The primer writes a_i = softmax(x_i W_QK Xᵀ / √d_head), one query at a time: softmax acts on
    each row by itself, so row i of the pattern is the softmax of row i of the scores under row i of
    the mask. That row of the mask is what X_≤i says: keys after i count for nothing
    (`prefix_sees_no_later_keys`).
    """
    here = Transpose(OneHot(i, n))
    scores = matmul(1 / sqrt(d_head), here, X, W_QK, Transpose(X))
    return Statement(matmul(here, PATTERN), RowSoftmax(scores, matmul(here, MASK)), bind=(READS,))


@theorem(
    title="The pattern from the QK form, with positions as columns",
    chapter=3,
    convention="column",
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-43", "S1-25", "S2-24"),
)
def pattern_through_W_QK_column() -> Statement:
    """The framework writes A = softmax*(xᵀ W_Qᵀ W_K x). Its x has positions as columns, and its
    star stands for the causal mask, the softmax along rows, and the scale 1/√d_head. Without the
    star, as it is often copied, a position would attend to later ones, and the weights differ.
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
    """softmax(Q Kᵀ / √d_head) V under the causal mask: scaled dot product attention as a decoder
    uses it (in libraries the mask is an option, off unless it is asked for), and the part of a head
    between its three reading matrices and W_O. At each position a head reads a query, a key and a
    value, decides by query and keys how much of each visible position to take, gathers their
    values, and leaves the result z for W_O to write.

    It is nowhere said here where Q, K and V come from: biases, norms and rotations are in them.
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
    """softmax(Q Kᵀ / √d_head) V for n queries and m keys, each key with a value of any width: the
    formula of the paper. Queries may come from another sequence than keys and values, as in
    translation, and every query sees every key. An encoder uses it so; a decoder adds the causal
    mask (`scaled_dot_product_attention`).

    The softmax runs along the keys, the columns of Q Kᵀ. Each row of the result is a weighted mean
    of the rows of V.
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
    """Whatever the scores are, each row of a pattern is a distribution over positions: no weight is
    negative and they add up to one. With the mask it is a distribution over the positions so far.
    Read as a graph, a pattern has an edge from each source to each destination, with the weight on
    it, and what flows into each position adds up to one.

    Nothing of the sort holds down the columns: a source may be read by everybody or by nobody.
    """
    return Property(Fact("row_stochastic", RowSoftmax(S_n, MASK)), bind=({"S": Source("scores")},))


@theorem(
    title="An attention pattern is not symmetric",
    chapter=3,
    source=f"{FRAMEWORK}, “Attention heads as information movement”",
    covers=("S0-27",),
)
def pattern_is_not_symmetric() -> NonIdentity:
    """That i reads from j does not mean that j reads from i: as a graph a pattern is directed.
    Under the mask only the identity pattern is symmetric. Without the mask even symmetric scores do
    not help, since each row is divided by its own sum.
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
    """A number added to a whole row of scores cancels between exp and the sum. So only differences
    of scores within a row mean anything: a score of 7 says nothing by itself. It is also why code
    subtracts the largest score first, so that exp cannot overflow. In finite precision a weight can
    then round to 0 or to 1; the softmax itself never reaches either where two keys are visible.
    """
    v = MatrixSymbol("v", n, 1)
    return Statement(
        RowSoftmax(matadd(S_n, matmul(v, OneMatrix(1, n))), MASK),
        RowSoftmax(S_n, MASK),
        bind=({"S": Source("scores"), "v": Source("resid_pre", cols=1)},),
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
    """a_ij exp(s_ik) = a_ik exp(s_ij): the ratio of two weights in a row is exp(s_ij - s_ik). As
    exp increases, the key with the higher score gets the higher weight, and equal scores equal
    weights. A difference of log 2 in the scores is a factor of two in the weights.

    The sum that both are divided by falls out, so no third token changes these odds: they can be
    read from the QK circuit, while the weights themselves depend on all that is in the prompt.

    Within one row. Across rows the sums differ, and a score of 0 may have weight 1 in one row while
    a score of 10 has weight a half in another: weights of two queries say nothing about scores.
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
    """a_ij Σ_k exp(s_ik) = exp(s_ij). Both the sum and the right side are positive, so no weight is
    ever zero: 0 < a_ij. And the sum has a term for every visible key, so it is larger than
    exp(s_ij) alone as soon as there are two: then a_ij < 1. With one visible key, as at the first
    position under the causal mask, the weight is 1.

    Both are strict whatever the scores are. “The head ignores this token” is never exactly true
    of a visible token, and what a mask does, a weight of zero, no finite score can do.
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
    """(a_ij - a_ik) exp(s_ik) = a_ik (exp(s_ij) - exp(s_ik)). The factors exp(s_ik) and a_ik are
    positive, so the two differences have the same sign, and exp increases: a_ij > a_ik exactly when
    s_ij > s_ik. Softmax keeps the order of a row, and only the order: how much larger a weight is
    depends on the difference of scores, and how large it is on the whole row.
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
    """When a query scores all keys the same, softmax is 1/m for each: the head takes the plain
    mean. This is the limit of infinite temperature, where scores are divided by more and more until
    no difference is left; and it is what a head does at initialisation, when all scores are small.
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
    """softmax(s/τ) differs from the even weights 1/m by a term in 1/τ. With step h = 1/τ the
    distance is measured as h is halved: it halves too.
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
    """As τ falls to zero softmax(s/τ) becomes the unit vector at the highest score: the soft
    look-up becomes a look-up. It does so exponentially, like exp(-gap/τ), with the gap from the
    highest score to the next. With h = exp(-1/τ) that is a power law of order gap, here one.

    The highest score must be alone. Of two equal ones each keeps a half at every temperature.
    """
    picked = np.eye(len(_SPREAD))[int(_SPREAD.argmax())]
    return ErrorLaw(
        r"\lVert \operatorname{softmax}(s / \tau) - e_{\arg\max s} \rVert",
        lambda h: float(np.linalg.norm(_softmax(_SPREAD * math.log(1 / h)) - picked)),
        order=1.0,
        start=2.0**-8,
        small=r"e^{-1/\tau}",
    )
