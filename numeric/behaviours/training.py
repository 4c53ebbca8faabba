r"""Fine-tuning by a few gradient steps, and how much of a circuit is the same afterwards.

The gradients are those of the reference reverse pass, so that fine-tuning needs no other library.
A step moves all weights of attention and MLPs together by a share of their norm, against the
gradient of the mean loss of the last tokens of the prompts.

Source: Prakash et al. 2024, “Fine-Tuning Enhances Existing Mechanisms: A Case Study on Entity
Tracking”; Jain et al. 2024, “Mechanistically analyzing the effects of fine-tuning on procedurally
defined tasks”; Ferrando et al. 2024, “A Primer on the Inner Workings of Transformer-based Language
Models”, “Emergent Behaviors”.
"""

from typing import Any, NamedTuple

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.reverse import Goal, reverse_pass
from otimes.numeric.config import check_settings
from otimes.numeric.forward import Places
from otimes.numeric.interventions.patching import activation_patching
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import Prompts, read_prompts

ALSO = (
    "attn_scale",
    "score_cap",
    "windows",
    "local_base",
    "unrotated_layers",
    "sinks",
    "alibi_slopes",
    "embed_scale",
)


def fine_tune(model: ModelSource, prompts: Prompts, *, steps: int = 3, size: float = 0.02) -> Model:
    """Return the model after some gradient steps on the last token of each prompt.

    `prompts` have one length; the loss is that of predicting their last token. Each step moves
    `W_Q`, `W_K`, `W_V`, `W_O`, `W_in` and `W_out` of all layers, as one vector, by `size` times its
    norm. Nothing is random.

    >>> prompts = ["x = 1", "x = 1"]
    >>> last_loss(fine_tune("two_layer", prompts), prompts) < last_loss("two_layer", prompts)
    True

    Raises: OtimesError for a model with rotary positions, experts, gates, latent or normed queries,
    for prompts of fewer than two tokens, and for steps or a size that are not positive.
    """
    loaded = load_model(model)
    _check(loaded, steps, size)
    rows = read_prompts(loaded, prompts)
    if rows.shape[1] < 2:
        raise OtimesError("fine-tuning needs prompts of at least two tokens, got one")
    for _ in range(steps):
        gradients = weight_gradients(loaded, rows)
        weights = {name: loaded.part(name) for name in gradients}
        length, slope = (np.sqrt(sum(float(np.square(each).sum()) for each in some.values()))
                         for some in (weights, gradients))  # fmt: skip
        if not slope:
            break
        by = size * length / slope
        loaded = loaded.changed({name: weights[name] - by * gradients[name] for name in gradients})
    return loaded


def _check(model: Model, steps: int, size: float) -> None:
    config = model.config
    check_settings(config, "fine-tuning", ALSO)
    if config.positions == "rotary" or config.gated or not config.n_layers:
        raise OtimesError(
            f"fine-tuning: not for {model.name}, which has "
            + ("no layers" if not config.n_layers else "rotary positions or a gated MLP")
        )
    if model.weights["W_K"].shape[1] != config.n_heads:
        raise OtimesError(f"fine-tuning: not for {model.name}, whose heads share keys and values")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise OtimesError(f"steps must be an integer of at least 1, got {steps!r}")
    if not isinstance(size, int | float) or not 0 < size < 1:
        raise OtimesError(f"size must be a share of the norm between 0 and 1, got {size!r}")


def last_loss(model: ModelSource, prompts: Prompts) -> float:
    """Return the mean loss of predicting the last token of each prompt, in nats.

    >>> round(last_loss("zero_layer", ["x = 1", "y = 2"]), 2)
    4.88

    Raises: OtimesError for an invalid prompt.
    """
    loaded = load_model(model)
    rows = read_prompts(loaded, prompts)
    logits = loaded.forward(rows[:, :-1], ["logits"])["logits"][:, -1]
    return float(-np.log(_weights(logits)[np.arange(len(rows)), rows[:, -1]]).mean())


def _weights(logits: np.ndarray) -> np.ndarray:
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True))


def weight_gradients(model: Model, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Return the gradient of `last_loss` at each weight, of its shape, by name.

    `rows` are prompts as token ids [prompt, pos].
    """
    places = model.forward(rows[:, :-1])
    gap = _weights(places["logits"][:, -1])
    gap[np.arange(len(rows)), rows[:, -1]] -= 1
    goal = Goal(rows.shape[1] - 2, gap @ model.part("W_U").T / len(rows), 0.0)
    back = reverse_pass(model, places, goal)
    layers = [_of_layer(model, places, back, layer) for layer in range(model.n_layers)]
    return {name: np.stack([each[name] for each in layers]) for name in layers[0]}


def _of_layer(model: Model, places: Places, back: Places, layer: int) -> dict[str, np.ndarray]:
    def at(name: str, of: Places = places) -> np.ndarray:
        return of[f"{name}.{layer}"]

    normed = model.config.norms_before
    read = at("ln1" if normed else "resid_pre")
    found = {
        "W_Q": np.einsum("bid,bhik->hdk", at("qk_in"), at("q", back)),
        "W_K": np.einsum("bid,bhik->hdk", at("qk_in"), at("k", back)),
        "W_V": np.einsum("bid,bhik->hdk", read, at("v", back)),
        "W_O": np.einsum("bhik,bid->hkd", at("z"), at("attn_out", back)),
    }
    if model.config.d_mlp:
        source = "resid_pre" if model.config.parallel else "resid_mid"
        entered = at("ln2" if normed else source)
        found["W_in"] = np.einsum("bid,bim->dm", entered, at("mlp_pre", back))
        found["W_out"] = np.einsum("bim,bid->md", at("mlp_post"), at("mlp_out", back))
    return found


class Overlap(NamedTuple):
    """How alike two circuits are: shared heads among the k largest, and a cosine of all effects."""

    shared: float
    cosine: float


def circuit_overlap(
    model: ModelSource, other: ModelSource, clean: Any, corrupt: Any, k: int = 4
) -> Overlap:
    """Return how alike the circuits of two models of one shape are on a pair of prompts.

    The effects are those of patching each head's `z` from the clean into the corrupt prompt
    (`activation_patching`), the target is the top token of each model on the clean prompt. `shared`
    is the share of the k heads with the largest absolute effects that both have in common.

    >>> same = circuit_overlap("induction", "induction", "a b c a b", "d b c a b")
    >>> same.shared, round(same.cosine, 9)
    (1.0, 1.0)

    Raises: OtimesError for k that is not 1 to the number of heads, models of different shapes, or
    what `activation_patching` raises.
    """
    pair = [load_model(each) for each in (model, other)]
    heads = [(each.n_layers, each.n_heads) for each in pair]
    if heads[0] != heads[1]:
        raise OtimesError(
            f"the models have (layers, heads) {heads[0]} and {heads[1]}, not the same"
        )
    count = heads[0][0] * heads[0][1]
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= count:
        raise OtimesError(f"k must be 1 to {count}, the number of heads, got {k!r}")
    first, second = (
        activation_patching(each, clean, corrupt, normalised=False).values.ravel() for each in pair
    )
    top = [{*np.argsort(-np.abs(each), kind="stable")[:k].tolist()} for each in (first, second)]
    sizes = float(np.linalg.norm(first) * np.linalg.norm(second))
    cosine = float(first @ second) / sizes if sizes else 0.0
    return Overlap(len(top[0] & top[1]) / k, cosine)
