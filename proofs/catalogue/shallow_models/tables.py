"""Chapter 5: the log-probabilities of a zero-layer model, and the order of a head's outputs."""

from __future__ import annotations

from sympy import MatrixSymbol, OneMatrix, Symbol, Trace, Transpose

from otimes.algebra.facts import Fact
from otimes.algebra.language.defined import LogSoftmax
from otimes.algebra.language.linear import OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import Activation
from otimes.proofs.catalogue.shallow_models.skip_trigrams import BUGS
from otimes.proofs.catalogue.shallow_models.zero_layer import BOTTLENECK
from otimes.proofs.catalogue.symbols import V, row
from otimes.proofs.claims import Bound, Entries, Statement
from otimes.proofs.theorem import theorem


@theorem(
    title="The log-probabilities of a zero-layer model are W_E W_U less one number a row",
    chapter=5,
    convention="row",
    source=BOTTLENECK,
    covers=("S2-02",),
)
def log_probabilities_of_zero_layer() -> Statement:
    """The log-probabilities of a model without layers are its logits less one number for each row:
    log softmax(W_E W_U) = W_E W_U − c 1ᵀ, where c_a = log Σ_b exp of the logits after token a.

    The first part has rank at most d and the second rank one, so the table of log-probabilities has
    rank at most d + 1 (`softmax_bottleneck`): this is the step from the model to that bound.
    """
    logits = matmul(row.W_E, row.W_U)
    sums = Activation("log", matmul(Activation("exp", logits), OneMatrix(V, 1)))
    return Statement(
        LogSoftmax(logits), matadd(logits, matmul(-1, sums, OneMatrix(1, V))), on_models=False
    )


@theorem(
    title="At every destination one head prefers the output that the source's OV row prefers",
    chapter=5,
    convention="row",
    source=BUGS,
    covers=("S4-23",),
)
def one_head_keeps_the_order_everywhere() -> Bound:
    """If a head raises output o more than output p when it attends to a source token, it does so
    wherever it attends to that token. For a source token s let entry o of row s of W_E W_V W_O W_U
    be at least entry p. The effect on an output at destination i is the attention a_i ≥ 0 times
    that entry, so c(i, p) ≤ c(i, o) at every destination i.

    “keep … in → mind” above “keep … in → bay” forces the same order after “at”: one head cannot
    have both trigrams and neither of the crossed ones.
    """
    weights, s, o, p, i = MatrixSymbol("a", V, 1), *(Symbol(x, integer=True) for x in "sopi")
    source, here = Transpose(OneHot(s, V)), Transpose(OneHot(i, V))
    moved = matmul(source, row.W_E, row.W_V, row.W_O, row.W_U)
    share = matmul(here, weights)
    more, less = matmul(moved, OneHot(o, V)), matmul(moved, OneHot(p, V))
    gap = matadd(more, matmul(-1, less))
    unit = {"W_E": [[1], [0]], "W_V": [[1]], "W_O": [[1]], "W_U": [[1, 1]], "a": [[1], [0]]}
    return Bound(
        Trace(matmul(share, less)),
        Trace(matmul(share, more)),
        because=(Entries(matmul(share, gap)),),
        given=(Fact("nonnegative", weights), Fact("nonnegative", gap)),
        tight={**unit, "s": 0, "o": 0, "p": 1, "i": 0},
        on_models=False,
    )
