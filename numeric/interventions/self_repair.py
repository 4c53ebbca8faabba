r"""Self-repair: what later components make of the loss of one.

When the output f of a component is replaced by f̃, a logit changes by

    total        $m(\text{pass with } f̃) - m$                    the pass is computed again
    direct       $m(x_{final} - f + f̃) - m(x_{final})$           only the last stream changes
    self-repair  total - direct                                   what later components do

The final norm is computed anew in both. Later components repair the loss where the direct effect
and the self-repair have opposite signs; where the signs are equal they add to it. Without
components in between, self-repair is zero.

Source: McGrath et al. 2023, “The Hydra Effect: Emergent Self-repair in Language Model
Computations”; Rushing and Nanda 2024, “Explorations of Self-Repair in Language Models”.
"""

from typing import Any

import numpy as np

from otimes.numeric.attribution.target import Tokens
from otimes.numeric.circuits.result import Named
from otimes.numeric.interventions.contrast import Contrast, Metric, contrast
from otimes.numeric.interventions.graph import Node, graph
from otimes.numeric.interventions.hooks import Hook, Replacement, replaced
from otimes.numeric.interventions.passes import Pass, resolved
from otimes.numeric.interventions.subgraph import of_sender
from otimes.numeric.load import ModelSource
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import Prompts

EFFECTS = ("total", "direct", "self-repair")


def self_repair(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    by: Replacement = "zero",
    source: Prompts | None = None,
    prompts: Prompts | None = None,
    noise: float = 1.0,
    seed: int = 0,
    metric: Metric | None = None,
) -> Named:
    """Return the total and direct effects of replacing each head and MLP, and the self-repair.

    The axes are component and effect ("total", "direct", "self-repair"); components have the names
    of `graph(model)`. `by` replaces what a component writes, and is a replacement of `intervene`,
    with its `source`, `prompts`, `noise` and `seed`. Effects are changes of the logit of `target`,
    less that of `foil`, at `position`, or of a function `metric` of the logits there.

    Proved by: compensation_is_what_later_layers_add.
    Source: McGrath et al. 2023; Rushing and Nanda 2024.

    >>> found = self_repair("two_layer", "for i in range")
    >>> found.axes, found.values.shape
    (('component', 'effect'), (8, 3))
    >>> last = found.at(component="head_out.1[3]", effect="self-repair").values
    >>> bool(abs(last) < 1e-12)  # nothing reads the last layer but the unembedding
    True

    Raises: OtimesError for an invalid prompt, an unknown replacement, or a model whose residual
    stream is not the sum of what heads and MLPs write; ShapeError for a value of the wrong shape.
    """
    of = contrast(model, prompt, prompt, target, foil, position, metric)
    senders = [each for each in graph(of.model).senders if each.kind in ("head_out", "mlp_out")]
    hooks = {each: _hook(each) for each in senders}
    tokens = of.prompt.tokens
    values = resolved(
        of.model,
        tokens,
        dict.fromkeys(hooks.values(), by),
        source=source,
        prompts=prompts,
        noise=noise,
        seed=seed,
    )
    run = Pass(of.model, tokens)
    before = of.of_places(run.places)
    found = np.zeros((len(senders), len(EFFECTS)))
    for number, node in enumerate(tracked(senders, "replacing components")):
        hook = hooks[node]
        new = replaced(hook, run.places[hook.name], values[hook])
        total = of.of_edited(run, {hook: new}) - before
        direct = _direct(of, run, node, new) - before
        found[number] = total, direct, total - direct
    labels = {"component": [str(each) for each in senders], "effect": list(EFFECTS)}
    return Named("self-repair", found, ("component", "effect"), labels, about=of.about)


def _hook(node: Node) -> Hook:
    heads = (node.head,) if node.kind == "head_out" else None
    return Hook(f"{node.kind}.{node.layer}", heads)


def _direct(of: Contrast, run: Pass, node: Node, new: np.ndarray) -> float:
    """Return the metric where only the last residual stream has the new output."""
    at = of.position
    written = new[node.head] if node.kind == "head_out" else new
    row = run.places["final"][at] + written[at] - of_sender(node, run.places)[at]
    return float(of.of_streams(row[None])[0])
