"""Chapter 9: self-repair of models, measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from otimes.numeric.forward import Places
from otimes.numeric.functions import normalise
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import Pass
from otimes.numeric.interventions.self_repair import self_repair
from otimes.numeric.model import Model
from otimes.proofs.catalogue.interventions.edges import PlainPass, prompt_pair, rounding_doubt
from otimes.proofs.catalogue.text import prompts
from otimes.proofs.claims import Load, Method, Observation, Observed, Trial
from otimes.proofs.theorem import theorem

MCGRATH = "McGrath et al. 2023, “The Hydra Effect: Emergent Self-repair in Language Model "
MCGRATH += "Computations”"
RUSHING = "Rushing and Nanda 2024, “Explorations of Self-Repair in Language Models”"
LENGTH = 24  # positions of each prompt


@theorem(
    title="self_repair: the total and the direct effect of a head",
    chapter=9,
    convention="row",
    source=f"{MCGRATH}; {RUSHING}",
    covers=("S3-109",),
)
def self_repair_method() -> Method:
    """`ot.self_repair` replaces the output of each head and MLP, by zeros or by its value on
    another prompt, and gives the change of a logit, the part of it that the changed output makes by
    itself in the last residual stream, and the difference, which is what later components do about
    it. In attention-only models the heads of the last two layers are compared with sums by
    loops, in which the last layer reads the changed stream.

    For a head of the last layer the difference is zero, as nothing reads it but the unembedding.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare or not model.n_layers:
            return
        clean, corrupt = prompt_pair(model, tokens)
        ours, theirs = model.forward(clean), model.forward(corrupt)
        found = {
            "zeros": self_repair(model, clean, 3),
            "another prompt": self_repair(model, clean, 3, by="resample", source=corrupt),
        }
        layers = range(max(0, model.n_layers - 2), model.n_layers)
        for by, effects in found.items():
            values, plainly, bounds = [], [], []
            for layer, head in product(layers, range(model.n_heads)):
                wrote = ours[f"head_out.{layer}"][head]
                new = theirs[f"head_out.{layer}"][head] if by == "another prompt" else 0.0
                expected, doubt = _by_loops(model, clean, ours, layer, new - wrote)
                values.append(effects.at(component=f"head_out.{layer}[{head}]").values)
                plainly.append(expected)
                bounds.append([4 * doubt] * 3)
            yield Trial(by, np.array(values), np.array(plainly), np.array(bounds))

    return Method("ot.self_repair", ("compensation_is_what_later_layers_add",), trials)


def _by_loops(
    model: Model, tokens: Sequence[int], ours: Places, layer: int, gap: np.ndarray
) -> tuple[list[float], float]:
    """Return the effects of a change of what a head of one of the last two layers writes."""
    last, column = model.n_layers - 1, model.W_U[:, 3]
    stream = ours[f"resid_pre.{last}"]
    direct, later = float(gap[-1] @ column), 0.0
    doubt = rounding_doubt(model, last, np.abs(stream) + np.abs(gap))
    if layer < last:
        plain, changed = PlainPass(model, tokens), stream + gap
        outs = [plain.head(last, head, *[changed] * 3) for head in range(model.n_heads)]
        change = sum(outs) - ours[f"head_out.{last}"].sum(axis=0)
        later = float(change[-1] @ column)
    return [direct + later, direct, later], doubt


def _effects(model: Model, tokens: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return direct effects and self-repair of all heads but the last layer's [head, position].

    The logit is that of the top token at each position, and what a head writes becomes zero.
    """
    config, run = model.config, Pass(model, tokens)
    gain, bias = model.part("ln_final_gain"), model.part("ln_final_bias")
    top = run.places["logits"].argmax(axis=1)
    columns = model.part("W_U")[:, top].T

    def read(stream: np.ndarray) -> np.ndarray:
        rows = normalise(stream, config.norm, config.norm_eps, gain, bias)
        return np.asarray((rows * columns).sum(axis=1))

    final = run.places["final"]
    before, directs, repairs = read(final), [], []
    for layer in range(model.n_layers - 1):
        for head in range(model.n_heads):
            alone = read(final - run.places[f"head_out.{layer}"][head]) - before
            changed = run.only({Hook(f"head_out.{layer}", (head,)): 0.0}, "final")
            directs.append(alone)
            repairs.append(read(changed) - before - alone)
    return np.array(directs), np.array(repairs)


def _see_repair(load: Load) -> Observed:
    model = load("gpt2_tiny")
    found = [_effects(model, tokens[:LENGTH]) for tokens in prompts()]
    direct, repair = (np.concatenate(each, axis=1) for each in zip(*found, strict=True))
    important = direct < np.quantile(direct, 0.1)
    opposite = float((repair[important] > 0).mean())
    share = float(-repair[important].sum() / direct[important].sum())
    figure = (
        f"gpt2_tiny: later components act against {opposite:.0%} of the largest losses of a logit, "
        f"and make up for {share:.0%} of them"
    )
    return Observed(figure, {"losses that are repaired": opposite, "share made up for": share})


@theorem(
    title="Do later layers repair the loss of a head?",
    chapter=9,
    source=f"{MCGRATH}; {RUSHING}",
    covers=("S3-109",),
)
def later_layers_repair() -> Observation:
    """When a head is removed, do later components make up for what it wrote? In `gpt2_tiny` the
    output of each head before the last layer is set to zero, and the tenth of all cases is looked
    at in which the top token loses most directly, over heads and positions of four prompts. Repair
    means that the later components raise the logit of the token when the head is gone.

    Later components raise it in a little more than half of the cases, and make up for hardly
    anything together. The published models are far larger. Random weights are not tried, since the
    criterion is not met. The final norm is computed anew, so that what it makes up for is a part of
    the direct effect.
    """
    return Observation(
        "in more than 50% of the cases in which the top token loses most directly, later "
        "components raise it, and together they make up for more than 10% of what is lost",
        _see_repair,
        {"losses that are repaired": 0.5, "share made up for": 0.1},
        outcome="not seen",
        control=False,
    )
