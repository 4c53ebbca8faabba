r"""Neurons that change the scale of the final norm, and with it the temperature of the prediction.

If what a neuron writes lies in the null space of W_U, it changes no logit before the division by
the scale of the norm, and all logits by one factor after it: the order of tokens stays, and the
entropy changes.

Source: Stolfo et al. 2024, “Confidence Regulation Neurons in Language Models”; Gurnee et al. 2024,
“Universal Neurons in GPT2 Language Models”.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.result import Named
from otimes.numeric.functions import centred, norm_scale
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import Parts, Pass
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import Prompts, read_prompts

EFFECTS = ("whole", "scale frozen")


def entropy_effects(
    model: ModelSource, prompts: Prompts, layer: int, neurons: Sequence[int]
) -> Named:
    r"""Return the change of the entropy without each neuron, in nats [effect, neuron, prompt, pos].

    The activation of a neuron is replaced by its mean over the prompts and positions, and the
    entropy of the predicted distribution is compared with that of the unchanged pass. "whole": the
    pass as it then is; "scale frozen": with the scale of the final norm of the unchanged pass. A
    neuron of which only the first is large acts through the norm.
    Proved by: null_space_sets_temperature.

    >>> found = entropy_effects("gpt2_tiny", [5, 6, 7], layer=3, neurons=[0, 9])
    >>> found.axes, found.values.shape
    (('effect', 'neuron', 'prompt', 'position'), (2, 2, 1, 3))

    Raises: OtimesError for a model without MLPs or final norm, a layer or neuron out of range, or
    a cap of the logits.
    """
    model = load_model(model)
    _check(model, layer, neurons)
    tokens = read_prompts(model, prompts)
    place, parts = f"mlp_post.{layer}", Parts(model)
    passes = [Pass(model, row, parts) for row in tokens]
    means = np.mean([each.places[place].mean(axis=0) for each in passes], axis=0)
    found = np.empty((len(EFFECTS), len(neurons), *tokens.shape))
    for row, each in enumerate(tracked(passes, "ablating neurons")):
        before = entropy(each.places["logits"])
        for number, neuron in enumerate(neurons):
            final = each.only({Hook(place): _replace(neuron, means[neuron])}, "final")
            for effect, scaled_by in enumerate((final, each.places["final"])):
                after = entropy(_logits(model, final, scaled_by))
                found[effect, number, row] = after - before
    labels = {"effect": EFFECTS, "neuron": [f"{layer}.{neuron}" for neuron in neurons]}
    axes = ("effect", "neuron", "prompt", "position")
    return Named("change of the entropy", found, axes, labels)


def entropy(logits: Float[np.ndarray, "*rows d_vocab"]) -> Float[np.ndarray, "*rows"]:
    """Return the entropy of the softmax of each row, in nats.

    >>> entropy(np.zeros(4)).round(4) == np.log(4).round(4)
    np.True_
    """
    shifted = logits - logits.max(axis=-1, keepdims=True)
    weights = np.exp(shifted)
    total = weights.sum(axis=-1)
    mean: np.ndarray = (weights * shifted).sum(axis=-1) / total
    return np.asarray(np.log(total) - mean)


def _replace(neuron: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def replaced(activations: np.ndarray) -> np.ndarray:
        activations[:, neuron] = value
        return activations

    return replaced


def _logits(model: Model, final: np.ndarray, scaled_by: np.ndarray) -> np.ndarray:
    """Return the logits of a final residual stream, with the scale of the norm of another one."""
    config = model.config
    rows = centred(final, config.norm) / norm_scale(scaled_by, config.norm, config.norm_eps)
    rows = rows * model.part("ln_final_gain") + model.part("ln_final_bias")
    return np.asarray(rows @ model.part("W_U") + model.part("b_U"))


def _check(model: Model, layer: int, neurons: Sequence[int]) -> None:
    config = model.config
    if not config.d_mlp or not config.final_norm or config.post_norm or config.logit_cap:
        raise OtimesError(
            f"entropy effects of neurons need an MLP and a final norm whose scale can be frozen:"
            f" {model.name} has d_mlp={config.d_mlp}, final_norm={config.final_norm},"
            f" norm_order={config.norm_order!r}, logit_cap={config.logit_cap}"
        )
    if not 0 <= layer < model.n_layers:
        raise OtimesError(f"layer {layer} is out of range: {model.name} has {model.n_layers}")
    wrong = [each for each in neurons if not 0 <= each < config.d_mlp]
    if wrong or not len(neurons):
        raise OtimesError(
            f"neurons are a list of numbers from 0 to {config.d_mlp - 1}, got {list(neurons)}"
        )
