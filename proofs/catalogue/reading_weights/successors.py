"""Chapter 7: successor heads: how often a head raises the next item of a sequence most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import pi, sqrt, tanh

import numpy as np

from otimes.numeric.circuits.successor import successor_scores
from otimes.numeric.model import Model
from otimes.proofs.catalogue.reading_weights.eigenvalues import GOULD, ROUNDOFF
from otimes.proofs.claims import Load, Method, Observation, Observed, Trial
from otimes.proofs.theorem import theorem


@theorem(
    title="successor_scores: how often a head raises the next item of a sequence most",
    chapter=7,
    source=GOULD,
    covers=("S3-110",),
)
def successor_scores_method() -> Method:
    """The successor score of a head says for how many items of a sequence, such as the digits or
    the days of the week, the head raises the next item most. Row t of the effective OV circuit
    (`effective_ov`) is looked at among the items only, and the score is the share of rows whose
    largest entry is at the item after t. One row in n is right by chance, for n items.

    `ot.successor_scores` computes it for all heads after the first layer. With a head that is
    planted to take each item to the next the score is 1; the tests do this.

    Only the order of the entries counts, so the scale of the final norm does not matter. Its gain,
    and the mean that a LayerNorm subtracts, do.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        config = model.config
        plain = (config.norm, config.activation, config.gated) == ("layer", "gelu_tanh", False)
        if not plain or config.n_layers < 2 or not config.norms_before:
            return
        tokens = list(dict.fromkeys(tokens))
        for items in zip(tokens[:2], tokens[1:3], tokens[2:4], strict=True):
            share = [_by_loops(model, layer, items) for layer in range(1, model.n_layers)]
            scores = successor_scores(model, items)
            yield Trial("share of items", scores.values[1:], np.array(share), ROUNDOFF)
            first = np.isnan(scores.values[0]).astype(float)
            yield Trial("none in the first layer", first, np.ones(model.n_heads), 0.0)
            yield Trial("by chance", scores.baseline or 0.0, 1 / len(items), ROUNDOFF)

    return Method(
        "ot.successor_scores",
        ("effective_ov",),
        trials,
        law=r"\mathrm{argmax}_s\, (\mathrm{MLP}_0(W_E) W_{OV} W_U)_{ts} = t + 1",
    )


def _by_loops(model: Model, layer: int, items: Sequence[int]) -> np.ndarray:
    """Return for each head the share of items whose next one has the largest entry."""
    made = [_first_mlp_by_loops(model, item) for item in items[:-1]]
    right = [_right(model, layer, head, made, items) for head in range(model.n_heads)]
    return np.array(right) / len(made)


def _first_mlp_by_loops(model: Model, item: int) -> list[float]:
    gains = model.ln2_gain[0], model.ln2_bias[0], model.config.norm_eps
    inner = _times(_normed(model.W_E[item].tolist(), *gains), model.W_in[0], model.b_in[0])
    neurons = [0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x))) for x in inner]
    return _times(neurons, model.W_out[0], model.b_out[0])


def _right(
    model: Model, layer: int, head: int, made: Sequence[list[float]], items: Sequence[int]
) -> int:
    right, gains = 0, (model.ln1_gain[layer], model.ln1_bias[layer], model.config.norm_eps)
    for row, after in zip(made, items[1:], strict=True):
        value = _times(_normed(row, *gains), model.W_V[layer, head])
        wrote = _times(value, model.W_O[layer, head])
        mean = sum(wrote) / len(wrote)
        read = [(x - mean) * gain for x, gain in zip(wrote, model.ln_final_gain, strict=True)]
        logits = dict(zip(items, _times(read, model.W_U[:, list(items)]), strict=True))
        right += max(logits, key=lambda each: logits[each]) == after
    return right


def _normed(row: list[float], gain: np.ndarray, bias: np.ndarray, eps: float) -> list[float]:
    mean = sum(row) / len(row)
    scale = sqrt(sum((x - mean) ** 2 for x in row) / len(row) + eps)
    return [(x - mean) / scale * g + b for x, g, b in zip(row, gain, bias, strict=True)]


def _times(row: list[float], matrix: np.ndarray, bias: np.ndarray | None = None) -> list[float]:
    start = np.zeros(matrix.shape[1]) if bias is None else bias
    return [
        b + sum(x * w for x, w in zip(row, column, strict=True))
        for b, column in zip(start.tolist(), matrix.T.tolist(), strict=True)
    ]


@theorem(
    title="Successor heads in a small model with LayerNorm and MLPs",
    chapter=7,
    source=GOULD,
    covers=("S3-110",),
)
def successors_seen() -> Observation:
    """Does `gpt2_tiny` have a successor head? GPT-2 small has one that maps Monday to Tuesday and
    one to two. In `gpt2_tiny` the tokens with an order are digits: for how many of 0
    to 8 is the next digit the one that the effective OV circuit (`effective_ov`) of some head
    raises most among the digits?
    """

    def observe(load: Load) -> Observed:
        scores = successor_scores(load("gpt2_tiny"), "0123456789")
        ((where, share),) = scores.top(1)
        best = round(9 * share), f"{where['layer']}.{where['head']}"
        figure = f"the best head, {best[1]}, raises the next digit most for {best[0]} of 9"
        return Observed(figure, {"digits": best[0]})

    return Observation(
        "some head raises the next digit most for at least 7 of 9 digits",
        observe,
        {"digits": 6.5},
        outcome="not seen",
    )
