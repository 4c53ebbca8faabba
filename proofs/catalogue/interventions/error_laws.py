"""Chapter 9: how fast the errors of first-order estimates fall, against exact patching."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from otimes.numeric.attribution.reverse import reverse_pass
from otimes.numeric.interventions.contrast import Contrast, contrast
from otimes.numeric.interventions.estimates import edge_attribution
from otimes.numeric.interventions.graph import graph
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import Pass
from otimes.numeric.interventions.subgraph import final_streams, written
from otimes.numeric.tokenizer import sample_tokens
from otimes.proofs.catalogue.interventions.edges import CIRCUITS
from otimes.proofs.catalogue.interventions.estimates import HANNA, KRAMAR, SYED
from otimes.proofs.claims import ErrorLaw
from otimes.proofs.theorem import theorem

EDGE = ("head_out.0[1]", "k.1[2]")
QUERIES = Hook("q.1", (1,))
LEFT_OVER = r"\sum_r \mathrm{EAP\text{-}IG}_{embed \to r} - (m(\tilde x) - m(x))"


@lru_cache(maxsize=1)
def _asked() -> Contrast:
    """Return two prompts of llama_tiny that differ in two tokens, and a logit."""
    tokens = np.array(sample_tokens(8))
    corrupt = tokens.copy()
    corrupt[[2, 7]] = (tokens[[2, 7]] + 5) % 1024
    return contrast("llama_tiny", tokens, corrupt, 3, None, -1)


@lru_cache(maxsize=1)
def _score() -> float:
    of = _asked()
    found = edge_attribution(of.model, of.tokens, of.other, 3)
    return float(found.at(sender=EDGE[0], receiver=EDGE[1]).values)


@theorem(
    title="Edge attribution is wrong to second order",
    chapter=9,
    source=f"{CIRCUITS}; {SYED}",
    covers=("S3-059",),
)
def edge_attribution_error() -> ErrorLaw:
    """Edge attribution patching (EAP) estimates the effect of replacing what one component passes
    to another by a gradient, and its error is of second order in the size of the patch. What a head
    of the first layer of `llama_tiny` passes to the keys of one of the second is moved by the
    fraction h towards its value on another prompt; the error against exact edge patching falls like
    h².

    A full patch has h = 1. The error there depends on the second derivative along the whole way.
    """

    def error(step: float) -> float:
        of = _asked()
        nodes = graph(of.model)
        ours, theirs = (written(nodes, places) for places in (of.clean, of.corrupt))
        edges = np.zeros((2, *nodes.mask.shape), dtype=bool)
        sender, receiver = nodes.edge(*EDGE)
        edges[1, nodes.receivers.index(receiver), nodes.senders.index(sender)] = True
        partly = ours + step * (theirs - ours)
        before, after = of.of_streams(final_streams(of.model, nodes, of.clean, partly, edges))
        return float(abs(after - before - step * _score()))

    return ErrorLaw(
        r"m(x + h\,\delta) - m(x) - h\,\delta \cdot \nabla_{x_{in}} m",
        error,
        order=2,
    )


def _left_over(step: float, rule: str) -> float:
    """Return what the EAP-IG scores of the embedding miss of the difference of the metric."""
    of = _asked()
    n_steps = round(1 / step)
    found = edge_attribution(of.model, of.tokens, of.other, 3, n_steps=n_steps, rule=rule)
    whole = of.corrupt_value - of.clean_value
    return abs(float(np.nansum(found.at(sender="embed").values)) - whole)


@theorem(
    title="EAP-IG with the right-hand rule misses completeness to first order",
    chapter=9,
    source=f"{CIRCUITS}; {HANNA}",
    covers=("S3-060",),
)
def eap_ig_right_error() -> ErrorLaw:
    """The scores that edge attribution with integrated gradients (EAP-IG) gives to all edges from
    the embedding should sum to the difference of the metric on the two prompts. With gradients at
    the right ends of K steps, as in the original paper, they miss it by an error that falls in
    proportion to the step h = 1/K. Measured on `llama_tiny`.

    So the usual five steps leave an error that can be computed: compare the sum with the
    difference.
    """
    return ErrorLaw(
        LEFT_OVER,
        lambda step: _left_over(step, "right"),
        order=1,
        start=1 / 4,
        halvings=3,
    )


@theorem(
    title="EAP-IG with midpoints misses completeness to second order",
    chapter=9,
    source=f"{CIRCUITS}; {HANNA}",
    covers=("S3-060",),
)
def eap_ig_midpoint_error() -> ErrorLaw:
    """With the gradients of edge attribution (EAP-IG) at the middle of each of K steps, the scores
    of the edges from the embedding sum to the difference of the metric up to an error that falls
    like the square of the step, h = 1/K. That costs the same as the right-hand rule of the original
    paper (`eap_ig_right_error`). Measured on `llama_tiny`.
    """
    return ErrorLaw(
        LEFT_OVER,
        lambda step: _left_over(step, "midpoint"),
        order=2,
        start=1 / 4,
        halvings=4,
    )


@theorem(
    title="AtP* is wrong to second order in the change of the pattern",
    chapter=9,
    source=f"{CIRCUITS}; {KRAMAR}, §3.1",
    covers=("S3-061",),
)
def qk_fix_error() -> ErrorLaw:
    """The QK fix of the method AtP* computes the pattern with the patched queries exactly and uses
    a gradient only behind it, so its error is of second order in the change of the pattern. The
    queries of a head in the last layer of `llama_tiny` are moved by the fraction h towards their
    values on another prompt, and the error against exact patching falls like h².

    Plain AtP has an error of the same order, and the softmax adds its own second derivative to it.
    For a saturated pattern the fix is right where the gradient is zero
    (`saturated_pattern_has_no_gradient`).
    """

    def error(step: float) -> float:
        of = _asked()
        run = Pass(of.model, of.tokens)
        name = f"pattern.{QUERIES.name.partition('.')[2]}"
        gradient = reverse_pass(of.model, of.clean, of.goal)[name]
        source = of.corrupt[QUERIES.name][list(QUERIES.heads or ())]

        def part(value: np.ndarray) -> np.ndarray:
            return value + step * (source - value)

        places = run.edited({QUERIES: part})
        estimate = float(((places[name] - run.places[name]) * gradient).sum())
        return abs(of.of_places(places) - of.of_places(run.places) - estimate)

    return ErrorLaw(
        r"m(\tilde A_h) - m(A) - (\tilde A_h - A) \cdot \nabla_A m",
        error,
        order=2,
    )
