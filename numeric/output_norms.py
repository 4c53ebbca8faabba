r"""What attention and MLPs write where their output is normalised before it is added.

The norm of a recorded output y is linear with its scale s held constant, $C(y) · g / s + b$. So
what a head or a neuron writes is that of the weight $C(W) · g$, divided by s at its position, and
paths and direct attributions add up as in a pre-norm model. Without such norms the weight is W, s
is 1 and b is 0.

Proved by: norm_with_one_scale_is_linear, output_norm_folds_into_heads. Source: Elhage et al. 2021,
“Handling layer normalization”; Gemma Team 2024, “Gemma 2” (norms of outputs).
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from otimes.numeric.functions import centred, norm_scale
from otimes.numeric.model import Model

NORM_OF = {"attn_out": "ln1_post", "mlp_out": "ln2_post"}
WRITES = {
    **dict.fromkeys(("W_O", "b_O"), "attn_out"),
    **dict.fromkeys(("W_out", "b_out", "b_experts"), "mlp_out"),
}


def added_place(model: Model, place: str) -> str:
    """Return the hook point that is added to the stream: that of an output, or of its norm."""
    return NORM_OF[place] if model.config.norms_output else place


def written(model: Model, name: str, layer: int) -> np.ndarray:
    """Return W_O, W_out or a bias of these, centred and times the gain of the norm after."""
    weight = model.part(name, layer)
    if not model.config.norms_output:
        return weight
    gain = model.part(f"{NORM_OF[WRITES[name]]}_gain", layer)
    return np.asarray(centred(weight, model.config.norm) * gain)


def written_size(model: Model, name: str, layer: int) -> np.ndarray:
    """Return what `written` sums, on absolute values."""
    size = np.abs(model.part(name, layer))
    if not model.config.norms_output:
        return size
    mean = size.mean(axis=-1, keepdims=True) if model.config.norm == "layer" else 0.0
    return np.asarray((size + mean) * np.abs(model.part(f"{NORM_OF[WRITES[name]]}_gain", layer)))


def output_bias(model: Model, place: str, layer: int) -> Float[np.ndarray, " d_model"]:
    """Return the bias of the norm of an output; zeros without one."""
    return model.part(f"{NORM_OF[place]}_bias", layer)


def output_scale(
    model: Model, place: str, rows: Float[np.ndarray, "pos d_model"]
) -> Float[np.ndarray, "pos 1"]:
    """Return the scale of the norm of a recorded output at each position; ones without one."""
    config = model.config
    return norm_scale(rows, config.norm if config.norms_output else "none", config.norm_eps)


def recorded(model: Model, place: str) -> tuple[str, ...]:
    """Return the hook points of every layer that `output_scales` needs."""
    if not model.config.norms_output:
        return ()
    return tuple(f"{place}.{layer}" for layer in range(model.n_layers))


def output_scales(
    model: Model, place: str, places: Mapping[str, np.ndarray], n_pos: int
) -> list[Float[np.ndarray, "pos 1"]]:
    """Return the scale of the norm of an output in each layer."""
    if not model.config.norms_output:
        return [np.ones((n_pos, 1))] * model.n_layers
    return [
        output_scale(model, place, places[f"{place}.{layer}"]) for layer in range(model.n_layers)
    ]
