r"""The change of the loss when heads or MLPs are ablated.

Source: Michel, Levy and Neubig 2019, “Are Sixteen Heads Really Better than One?”; Elhage et al.
2021 (heads are independent and additive); Ferrando et al. 2024, “Causal Interventions”.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.result import Named
from otimes.numeric.interventions.hooks import Hook, changeable_hook
from otimes.numeric.interventions.passes import Parts, Pass
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.metrics import losses_of_logits
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import Prompts, read_prompts

Ablated = Sequence[str | Hook]
"""Hook points that are ablated together, as names or `hook(name, heads, positions)`."""


def ablation_losses(
    model: ModelSource,
    prompts: Prompts,
    components: Mapping[str, Ablated] | None = None,
    by: str = "mean",
) -> Named:
    """Return the change of the loss, in nats, without each component [component, prompt, token].

    Entry [c, p, i] is the loss of token i + 1 of prompt p without component c minus that of the
    whole model: positive where the component helps. `components` maps names to the hook points that
    are replaced together; by default they are each head and each MLP. `by` is what replaces an
    activation: "mean", its mean over the prompts and positions, or "zero".

    >>> found = ablation_losses("induction", [[5, 6, 7, 5, 6, 7]])
    >>> found.axes, found.labels["component"][:2]
    (('component', 'prompt', 'token'), ['head 0.0', 'head 0.1'])

    Raises: OtimesError for an unknown hook point or `by`, or prompts of one token.
    """
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    if by not in ("mean", "zero"):
        raise OtimesError(f"by must be 'mean' or 'zero', got {by!r}")
    if tokens.shape[1] < 2:
        raise OtimesError("a loss needs prompts of at least two tokens, got one")
    parts = _each_component(model) if components is None else components
    hooks = {name: [changeable_hook(model, each) for each in some] for name, some in parts.items()}
    shared = Parts(model)
    passes = [Pass(model, row, shared) for row in tokens]
    means = {hook: _mean(passes, hook) if by == "mean" else 0.0 for hook in {*sum_of(hooks)}}
    found = np.empty((len(parts), *(np.array(tokens.shape) - [0, 1])))
    for number, some in enumerate(tracked(list(hooks.values()), "ablating")):
        for row, each in enumerate(passes):
            edited = each.only({hook: means[hook] for hook in some}, "logits")
            before = losses_of_logits(each.places["logits"], each.tokens)
            found[number, row] = losses_of_logits(edited, each.tokens) - before
    labels = {"component": list(parts)}
    return Named("change of the loss", found, ("component", "prompt", "token"), labels)


def sum_of(hooks: Mapping[str, Sequence[Hook]]) -> list[Hook]:
    """Return the hooks of all components in one list."""
    return [hook for some in hooks.values() for hook in some]


def _each_component(model: Model) -> dict[str, Ablated]:
    heads = {
        f"head {layer}.{head}": [Hook(f"head_out.{layer}", (head,))]
        for layer in range(model.n_layers)
        for head in range(model.n_heads)
    }
    mlps = {f"mlp {layer}": [f"mlp_out.{layer}"] for layer in range(model.n_layers)}
    return {**heads, **(mlps if model.config.d_mlp else {})}


def _mean(passes: Sequence[Pass], hook: Hook) -> Float[np.ndarray, "*heads 1 width"]:
    """Return the mean of what a hook names over the positions of all prompts."""
    parts = [each.places[hook.name][hook.index(len(each.tokens))] for each in passes]
    mean: np.ndarray = np.mean([part.mean(axis=-2, keepdims=True) for part in parts], axis=0)
    return mean
