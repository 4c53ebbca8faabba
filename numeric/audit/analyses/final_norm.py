"""The final norm in attributions and logit lenses, and known mistakes in computing it.

The steps that a mistake may replace: the kind of "norm", "eps", the "axes" of its statistics (of
the mean and of the variance), whether rows are "centred", the "scale" as a function of statistics,
"gain" and "bias", and the matrix "unembed" after it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from otimes.algebra.mutations import Swap
from otimes.numeric.audit.analyses.question import Array, Asked, Replaced

Scale = Callable[[Array, Array, float, int], Any]
"""The divisor of rows, from the variance, the mean square about zero, ε and d_model."""


def normed(asked: Asked, rows: Array, by: Array, replaced: Replaced, bias: float = 0) -> Array:
    """Return rows after the final norm, with the statistics of `by` and `bias` times its bias."""
    model, config = asked.model, asked.model.config
    if not config.final_norm or replaced.get("norm") == "none":
        return rows
    layered = (config.norm == "layer") != (replaced.get("norm") == "other")
    eps = replaced.get("eps", config.norm_eps)
    about, axis = replaced.get("axes", (-1, -1))
    spread = by - by.mean(about, keepdims=True) if layered else by
    if layered and replaced.get("centred") != "no":
        rows = rows - rows.mean(about, keepdims=True)
    variance, square = ((each**2).mean(axis, keepdims=True) for each in (spread, by))
    scale: Scale = replaced.get("scale", lambda variance, square, eps, d: np.sqrt(variance + eps))
    with np.errstate(all="ignore"):
        rows = rows / scale(variance, square, eps, model.d_model)
        gain, b = _affine(asked, replaced.get("gain"), rows.shape)
    if replaced.get("bias") == "before gain":
        return np.asarray((rows + model.part("ln_final_bias")) * gain)
    return np.asarray(rows * gain + replaced.get("bias", bias) * b)


def _affine(asked: Asked, made: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the gain and bias of the final norm, or those of another norm."""
    model = asked.model
    g, b = model.part("ln_final_gain"), model.part("ln_final_bias")
    if isinstance(made, tuple):
        norm, layer = made
        return model.part(f"{norm}_gain", layer), model.part(f"{norm}_bias", layer)
    if isinstance(made, str):
        own, biases = model.part(f"{made}_gain"), model.part(f"{made}_bias")
        wide = (len(own), *(1,) * (len(shape) - 2), -1)
        if shape[0] == len(own) + 1:  # the rows of a lens: the last one by the final norm
            return (
                np.concatenate([own, g[None]])[:, None],
                np.concatenate([biases, b[None]])[:, None],
            )
        return own.reshape(wide), biases.reshape(wide)
    return (made(g) if made else g), b


NORMS: dict[str, Replaced] = {
    "no final norm": {"norm": "none"},
    "no gain of the final norm": {"gain": np.ones_like},
    "the gain 1 + g for g": {"gain": lambda g: 1 + g},
    "the gain of the final norm twice (squared)": {"gain": np.square},
    "the gain of the final norm divided out": {"gain": np.reciprocal},
    "the variance and not its root as the scale of the norm": {
        "scale": lambda variance, square, eps, d: variance + eps
    },
    "an unbiased variance in the norm: divided by d - 1": {
        "scale": lambda variance, square, eps, d: np.sqrt(variance * d / (d - 1) + eps)
    },
    "ε added to the standard deviation and not to the variance": {
        "scale": lambda variance, square, eps, d: np.sqrt(variance) + eps
    },
    "rows divided by their length and not by √mean: the norm's √d_model is lost": {
        "scale": lambda variance, square, eps, d: np.sqrt(variance * d)
    },
    "the norm's scale about zero, RMS for LayerNorm, of centred rows": {
        "scale": lambda variance, square, eps, d: np.sqrt(square + eps)
    },
    "the mean of the scales of all positions at every position": {
        "scale": lambda variance, square, eps, d: np.sqrt(variance + eps).mean(-2, keepdims=True)
    },
    "no ε in the norm": {"eps": 0.0},
    **{f"ε = {eps:g} in the norm": {"eps": eps} for eps in (1e-5, 1e-6, 1e-12)},
    "statistics of the norm over positions, the wrong axis": {"axes": (-2, -2)},
    "statistics of the norm over positions and features together": {"axes": (-1, (-2, -1))},
    "statistics of the norm over everything: layers, positions and features": {
        "axes": (None, None)
    },
    "a variance over everything, positions included, of rows that are centred": {
        "axes": (-1, None)
    },
    "the final norm twice": {"twice": True},
    "W_Eᵀ for W_U (as if tied)": {"unembed": "W_E"},
    "W_U with each token's vector normalised": {"unembed": "normalised"},
    "W_U with each token's vector centred": {"unembed": "centred"},
}


def norm_mistakes(asked: Asked) -> Iterator[Swap]:
    """Yield the mistakes in the final norm and the unembedding."""
    layers, config = asked.model.n_layers, asked.model.config
    yield from (Swap(says, steps) for says, steps in NORMS.items())
    other = "RMSNorm for LayerNorm: no mean is subtracted"
    if config.norm == "rms":
        other = "LayerNorm for RMSNorm: the mean is subtracted (centred)"
    yield Swap(other, {"norm": "other"})
    for norm in ("ln1", "ln2"):
        if config.has(f"{norm}_gain") and layers:
            says, instead = f"gain and bias of each layer's {norm}", "for those of the final norm"
            yield Swap(f"{says} {instead}", {"gain": norm})
            for layer in range(layers):
                says = f"gain and bias of {norm} of layer {layer}"
                yield Swap(f"{says} {instead}", {"gain": (norm, layer)})
