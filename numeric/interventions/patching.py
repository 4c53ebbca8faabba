r"""Activation patching: an activation of one prompt in the pass of another.

    denoise   the corrupt pass with one activation of the clean one: what restores the behaviour
    noise     the clean pass with one activation of the corrupt one: what breaks it

The normalised score of a metric m is $(m - m_{corrupt}) / (m_{clean} - m_{corrupt})$ in both
directions: 1 is the clean behaviour and 0 the corrupt one. Where m is linear in the activation the
two changes of m are opposite; where two activations are needed together, or either suffices, they
differ.

Source: Vig et al. 2020; Meng et al. 2022, “Locating and Editing Factual Associations in GPT”;
Heimersheim and Nanda 2024, “How to use and interpret activation patching”.
"""

from itertools import product
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.block import OF_HEADS, kind_of, place_names
from otimes.numeric.circuits.result import Named
from otimes.numeric.interventions.contrast import Contrast, Metric, contrast
from otimes.numeric.interventions.hooks import Hook, changeable_hook
from otimes.numeric.interventions.passes import Parts, Pass
from otimes.numeric.load import ModelSource
from otimes.numeric.progress import tracked


def activation_patching(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    kind: str = "z",
    by_position: bool = False,
    direction: str = "denoise",
    metric: Metric | None = None,
    normalised: bool = True,
) -> Named:
    """Return how much of a metric each patched activation restores, or with "noise" leaves.

    Activations recorded on one prompt are put into the pass on the other, one at a time, where
    the metric m is then computed. The score is (m − m_corrupt) / (m_clean − m_corrupt): 0 as on
    the corrupt prompt, 1 as on the clean one.

    `kind` is a hook point without its layer: `z`, `q`, `pattern`, `resid_pre`, `mlp_out`, …. For
    hook points of heads the axes are layer and head, with `by_position` also position; for others
    layer and position. `direction` is "denoise" (clean activations in the corrupt pass) or "noise".
    The metric is the logit of `target`, less that of `foil`, at `position`, or a function `metric`
    of the logits there. `normalised` False gives the change of the metric instead of the score.

    Proved by: noising_and_denoising_agree_when_linear.

    >>> found = activation_patching("two_layer", "x = 1", "y = 2", kind="resid_pre")
    >>> found.axes, (100 * found.values).round().astype(int).tolist()  # percent
    (('layer', 'position'), [[-11, 0, 96], [0, -3, 94]])

    Raises: OtimesError for an unknown kind, an invalid prompt or token, or a metric that is the
    same on both prompts; ShapeError for prompts of different lengths.
    """
    of = contrast(model, clean, corrupt, target, foil, position, metric)
    kinds = {kind_of(name): None for name in place_names(of.model.config) if "." in name}
    if not isinstance(kind, str) or kind not in kinds:
        raise OtimesError(
            f"kind must be a hook point without its layer, one of {', '.join(kinds)}; got {kind!r}"
        )
    hooks, axes, shape = _hooks(of, kind, by_position)
    for each in hooks[:1]:
        changeable_hook(of.model, each)
    first, second = of.base_and_source(direction)
    tokens = of.other if direction == "denoise" else of.tokens
    run = Pass(of.model, tokens, Parts(of.model))
    values = np.empty(len(hooks))
    for number, each in enumerate(tracked(hooks, "patching")):
        values[number] = of.of_edited(run, {each: second[each.name]})
    changed = of.score(values) if normalised else values - of.of_places(first)
    names = [of.prompt.strings[at] for at in range(len(of.tokens))]
    labels = {"position": names} if "position" in axes else {}
    about = f"{kind}, {direction}: {of.about}"
    return Named("activation patching", changed.reshape(shape), axes, labels, about=about)


def _hooks(
    of: Contrast, kind: str, by_position: bool
) -> tuple[list[Hook], tuple[str, ...], tuple[int, ...]]:
    layers, positions = range(of.model.n_layers), range(len(of.tokens))
    if kind not in OF_HEADS:
        pairs = product(layers, positions)
        hooks = [Hook(f"{kind}.{layer}", positions=(at,)) for layer, at in pairs]
        return hooks, ("layer", "position"), (len(layers), len(positions))
    heads = range(of.model.n_heads)
    if not by_position:
        hooks = [Hook(f"{kind}.{layer}", (head,)) for layer, head in product(layers, heads)]
        return hooks, ("layer", "head"), (len(layers), len(heads))
    each = product(layers, heads, positions)
    hooks = [Hook(f"{kind}.{layer}", (head,), (at,)) for layer, head, at in each]
    return hooks, ("layer", "head", "position"), (len(layers), len(heads), len(positions))
