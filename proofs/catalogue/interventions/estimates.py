"""Chapter 9: first-order estimates of patching, and how wrong they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import DiagMatrix, MatrixSymbol, Rational, Transpose, ZeroMatrix, symbols

from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.algebra.language.nonlinear import RowSoftmax
from otimes.numeric.interventions.edges import edge_patching
from otimes.numeric.interventions.estimates import attribution_patching, edge_attribution
from otimes.numeric.interventions.graph import graph
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import Pass
from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.attribution.gradients import square, square_slope
from otimes.proofs.catalogue.interventions.edges import CIRCUITS, PlainPass
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.symbols import d, d_head, m, n, size
from otimes.proofs.claims import ErrorLaw, Method, Statement, Trial
from otimes.proofs.theorem import theorem

SYED = "Syed, Rager and Conmy 2023, “Attribution Patching Outperforms Automated Circuit Discovery”"
HANNA = "Hanna, Pezzelle and Belinkov 2024, “Have Faith in Faithfulness”"
KRAMAR = (
    "Kramár et al. 2024, “AtP*: An efficient and scalable method for localizing LLM behaviour to "
    "components”"
)
UNIT = 2.0**-53
x, y, delta = (MatrixSymbol(name, d, 1) for name in ("x", "y", "delta"))
quadric = MatrixSymbol("Q", d, d)
half = Rational(1, 2)
C = size("C")
c, i = symbols("c i", integer=True)


@theorem(
    title=(
        "The error of edge attribution is of second order in the patch, and "
        "zero for a linear metric"
    ),
    chapter=9,
    source=f"{CIRCUITS}; {SYED}",
    covers=("S3-059",),
)
def edge_attribution_is_exact_when_linear() -> Statement:
    """Edge attribution estimates the effect of replacing what one component passes to another by a
    gradient, ∇m(x)·δ, where m is the metric, x the receiver's input and δ the change. For a
    quadratic metric m(x) = xᵀQx + bx the error is exactly δᵀQδ, of second order in δ; for a linear
    metric it is zero. b is a row and Q a square matrix.

    One backward pass then replaces one forward pass for each edge. The estimate is exact for edges
    to the unembedding without a final norm, and for edges to values with patterns kept.
    """
    exact = minus(square(matadd(x, delta)), square(x))
    return Statement(
        minus(exact, matmul(square_slope(x), delta)),
        matmul(Transpose(delta), quadric, delta),
        on_models=False,
    )


@lru_cache(maxsize=1)
def _patched_model() -> tuple[Pass, np.ndarray, np.ndarray, int]:
    """Return a pass of gpt2_tiny, another prompt's rows of a head, the gradient there, a token."""
    model = load_model("gpt2_tiny")
    tokens = np.array(sample_tokens(8))
    corrupt = tokens.copy()
    corrupt[[2, 7]] = (tokens[[2, 7]] + 5) % model.d_vocab
    run = Pass(model, tokens)
    token = int(run.places["logits"][-1].argmax())
    source = model.forward(corrupt, ["z.1"])["z.1"][[1]]
    found = attribution_patching(model, tokens, corrupt, token, kind="z")
    return run, source, np.array(found.values[1, 1]), token


@theorem(
    title="Attribution patching is wrong to second order",
    chapter=9,
    source=f"{CIRCUITS}; {SYED}; {KRAMAR}",
    covers=("S3-059", "S3-061"),
)
def attribution_patching_error() -> ErrorLaw:
    """Attribution patching estimates the effect of replacing an activation by a gradient instead of
    a forward pass, and its error is of second order in the size of the patch. A head's output in
    `gpt2_tiny` is moved by the fraction h towards its value on another prompt; the error of the
    estimate falls like h².

    A full patch has h = 1, and then the error is small only if the change is.
    """

    def error(step: float) -> float:
        run, source, estimate, token = _patched_model()

        def part(value: np.ndarray) -> np.ndarray:
            return value + step * (source - value)

        changed = run.edited({Hook("z.1", (1,)): part})["logits"][-1, token]
        return float(abs(changed - run.places["logits"][-1, token] - step * estimate))

    return ErrorLaw(
        r"m(f + h(\tilde f - f)) - m(f) - h (\tilde f - f) \cdot \nabla m = O(h^2)",
        error,
        order=2,
        start=0.1,
    )


@theorem(
    title="EAP-IG with one midpoint is complete for a quadratic metric",
    chapter=9,
    source=f"{CIRCUITS}; {HANNA}",
    covers=("S3-060",),
)
def eap_ig_is_complete_for_quadratics() -> Statement:
    """Edge attribution patching with integrated gradients (EAP-IG) estimates how much each
    component (sender) that writes to the input of another (receiver) matters, by gradients along
    the line from the receiver's input x on one prompt to its input y on the other. For a quadratic
    metric one gradient, at the midpoint, is enough: the scores δ_c · ∇m((x + y)/2) of the C
    senders, whose parts δ_c sum to y − x, sum exactly to m(y) − m(x). The metric is xᵀQx + bx.

    With the gradient at x alone, as in plain EAP, (y − x)ᵀQ(y − x) is missing.

    The right-hand rule of the paper, with K steps, is off by 1/K of that amount.
    """
    parts = Family("delta", (C,), d, 1)
    middle = matadd(matmul(half, x), matmul(half, y))
    scores = HeadSum(matmul(square_slope(middle), parts[c]), (c, C))
    return Statement(
        scores,
        minus(square(y), square(x)),
        given=((HeadSum(parts[c], (c, C)), minus(y, x)),),
        on_models=False,
    )


@theorem(
    title="The QK fix of AtP* is exact where what follows the pattern is linear",
    chapter=9,
    convention="row",
    source=f"{CIRCUITS}; {KRAMAR}, §3.1",
    covers=("S3-061",),
)
def qk_fix_is_exact_when_linear() -> Statement:
    """Estimating by a gradient what happens when the queries of a head are replaced is inaccurate,
    because of the softmax. The QK fix of the method AtP* computes the new pattern exactly and uses
    linearity only behind it: the effect on a direction u is (Ã − A) V W_O u, with Ã = softmax(R Kᵀ)
    for the new queries R. Q are the old queries, K the keys, V_h the values.

    There is no error if what follows the pattern is linear. In a real model the gradient of the
    rest stands in the place of u.
    """
    query, other = MatrixSymbol("Q", n, d_head), MatrixSymbol("R", n, d_head)
    keys, values = MatrixSymbol("K", m, d_head), MatrixSymbol("V_h", m, d_head)
    W_O, u = MatrixSymbol("W_O", d_head, d), MatrixSymbol("u", d, 1)

    def pattern(queries: Any) -> Any:
        return RowSoftmax(matmul(queries, Transpose(keys)))

    def logit(queries: Any) -> Any:
        return matmul(pattern(queries), values, W_O, u)

    return Statement(
        minus(logit(other), logit(query)),
        matmul(minus(pattern(other), pattern(query)), values, W_O, u),
        on_models=False,
    )


@theorem(
    title="A saturated pattern has no gradient",
    chapter=9,
    source=f"{KRAMAR}, §3.1",
    covers=("S3-061",),
)
def saturated_pattern_has_no_gradient() -> Statement:
    """If a query gives all its attention to one key, the derivative of its softmax is zero: diag(a)
    − aᵀa vanishes for a one-hot row a. Gradient-based patching (AtP) then gives queries and keys
    the score zero, even if replacing them would change everything.

    It is the failure that the QK fix corrects (`qk_fix_is_exact_when_linear`).
    """
    one = OneHot(i, n)
    return Statement(
        minus(DiagMatrix(one), matmul(one, Transpose(one))),
        ZeroMatrix(n, n),
        on_models=False,
    )


def _edges_by_differences(
    model: Model, clean: Sequence[int], corrupt: Sequence[int]
) -> Iterator[Trial]:
    """Yield the estimate of every edge, beside the slope of passes with a little of its change.

    The slope is a difference of fourth order; that with twice the step is wrong by 16 times as
    much, so that their difference bounds the error.
    """
    table = edge_attribution(model, clean, corrupt, 3)
    plain, theirs = PlainPass(model, clean), PlainPass(model, corrupt).run()
    ours, step = plain.run(), 1e-2

    def logit(edge: tuple[str, str], share: float) -> float:
        moved = {edge[0]: ours[edge[0]] + share * (theirs[edge[0]] - ours[edge[0]])}
        return float(plain.run({edge}, moved)["logits"][3])

    def slope(edge: tuple[str, str], h: float) -> float:
        near = logit(edge, h) - logit(edge, -h)
        return (8 * near - (logit(edge, 2 * h) - logit(edge, -2 * h))) / (12 * h)

    found, slopes, doubts = [], [], []
    for edge in graph(model).edges:
        found.append(float(table.at(sender=edge[0], receiver=edge[1]).values))
        slopes.append(slope(edge, step))
        doubts.append(abs(slope(edge, 2 * step) - slopes[-1]))
    size = float(np.abs(ours["logits"]).max()) + float(np.abs(theirs["logits"]).max())
    rounding = 1e3 * UNIT * size / step
    yield Trial("every edge", np.array(found), np.array(slopes), np.array(doubts) + rounding)
    there = float((~np.isnan(table.values)).sum())
    yield Trial("how many edges there are", there, float(len(found)), 0.0)


@theorem(
    title="edge_attribution and attribution_patching: exact where the model is linear",
    chapter=9,
    convention="row",
    source=f"{CIRCUITS}; {SYED}; {HANNA}; {KRAMAR}",
    covers=("S3-059", "S3-060", "S3-061"),
)
def edge_attribution_method() -> Method:
    """`edge_attribution` and `attribution_patching` estimate the effects of patching by gradients.
    In an attention-only model without norms, edges to the unembedding and to the values of the last
    layer act linearly; there EAP, EAP-IG and AtP must equal the exact effects of patching, and also
    sums formed by hand from the recorded activations.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare or not model.n_layers:
            return
        clean = list(tokens[:8])
        corrupt = [*clean[:-1], (clean[-1] + 5) % model.d_vocab]
        ours, theirs = model.forward(clean), model.forward(corrupt)
        column, layer = model.W_U[:, 3], model.n_layers - 1
        gaps = theirs[f"head_out.{layer}"][:, -1] - ours[f"head_out.{layer}"][:, -1]
        plain = np.array([sum(float(a * b) for a, b in zip(gap, column, strict=True))
                          for gap in gaps])  # fmt: skip
        names = [f"head_out.{layer}[{head}]" for head in range(model.n_heads)]
        sizes = np.abs(theirs["final"][-1]) + np.abs(ours["final"][-1])
        sizes = sizes + np.abs(gaps).sum(axis=0)
        bound = gamma(8 * (model.d_model + 8), UNIT) * float(sizes @ np.abs(column))
        found = edge_attribution(model, clean, corrupt, 3).at(receiver="final")
        steps = edge_attribution(model, clean, corrupt, 3, n_steps=3).at(receiver="final")
        exact = edge_patching(model, clean, corrupt, 3, senders=names, receivers="final")
        heads = attribution_patching(model, clean, corrupt, 3, kind="head_out").values[layer]
        by_name = np.array([float(found.at(sender=name).values) for name in names])
        yield Trial("EAP to the unembedding", by_name, plain, bound)
        by_steps = np.array([float(steps.at(sender=name).values) for name in names])
        yield Trial("EAP-IG to the unembedding", by_steps, plain, bound)
        yield Trial("edges to the unembedding", exact.values[:, 0], plain, bound)
        yield Trial("AtP of the last layer", heads, plain, bound)
        if model.n_layers == 1 and model.d_model <= 32:  # passes of larger models take seconds
            yield from _edges_by_differences(model, clean, corrupt)

    rests = (
        "edge_attribution_is_exact_when_linear",
        "eap_ig_is_complete_for_quadratics",
        "qk_fix_is_exact_when_linear",
    )
    return Method("ot.edge_attribution", rests, trials)
