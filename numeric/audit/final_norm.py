"""The final norm of rows that attributions and lenses read, and what people compute instead.

Ingredients: the kind, statistics, scale, gain and bias of the norm, and the unembedding behind it.
"""

from collections.abc import Iterator

import numpy as np

from numeric.audit.asked import Array, Asked, Replaced


def normed(asked: Asked, rows: Array, by: Array, replaced: Replaced, bias: bool = False) -> Array:
    """Return rows behind the final norm, with the statistics of `by`; its bias where asked for."""
    model, config = asked.model, asked.model.config
    if not config.final_norm or replaced.get("norm") == "none":
        return rows
    layered = config.norm == "layer"
    if replaced.get("norm") == "other":
        layered = not layered
    eps = 0.0 if replaced.get("eps") == "none" else replaced.get("eps", config.norm_eps)
    statistics = replaced.get("statistics", "")
    axes = {"positions": (-2,), "all": None, "both": (-2, -1), "variance_of_all": None}
    axis = axes.get(statistics, (-1,))
    about = axis if statistics in ("positions", "all") else (-1,)
    spread = by - by.mean(about, keepdims=True) if layered else by
    if layered and replaced.get("centred") != "no":
        rows = rows - rows.mean(about, keepdims=True)
    variance = (spread**2).mean(axis, keepdims=True)
    d = model.d_model
    scale = {
        "none": lambda: np.ones_like(variance),
        "squared": lambda: variance + eps,
        "unbiased": lambda: np.sqrt(variance * d / (d - 1) + eps),
        "outside": lambda: np.sqrt(variance) + eps,
        "length": lambda: np.sqrt(variance * d),
        "mean": lambda: np.sqrt(variance + eps).mean(-2, keepdims=True),
        "about_zero": lambda: np.sqrt((by**2).mean(axis, keepdims=True) + eps),
    }.get(replaced.get("scale", ""), lambda: np.sqrt(variance + eps))()
    with np.errstate(all="ignore"):
        rows = rows / scale
    b = model.part("ln_final_bias")
    if replaced.get("bias") == "before_gain":
        rows = rows + b
    gain, b = _affine(asked, replaced, rows.shape)
    rows = rows * gain
    wanted = bias if replaced.get("bias") is None else replaced["bias"]
    if wanted == "twice":
        return np.asarray(rows + 2 * b)
    if wanted == "shared":
        return np.asarray(rows + b / (model.n_layers * model.n_heads))
    return np.asarray(rows + b if wanted is True or wanted == "added" else rows)


def _affine(asked: Asked, replaced: Replaced, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the gain and bias of the norm, or those of another."""
    model, gain = asked.model, replaced.get("gain", "")
    g, b = model.part("ln_final_gain"), model.part("ln_final_bias")
    if isinstance(gain, tuple):
        norm, layer = gain
        return model.part(f"{norm}_gain", layer), model.part(f"{norm}_bias", layer)
    if gain in ("ln1", "ln2"):
        own, biases = model.part(f"{gain}_gain"), model.part(f"{gain}_bias")
        wide = (len(own), *(1,) * (len(shape) - 2), -1)
        if shape[0] == len(own) + 1:  # the rows of a lens: the last one by the final norm
            return (
                np.concatenate([own, g[None]])[:, None],
                np.concatenate([biases, b[None]])[:, None],
            )
        return own.reshape(wide), biases.reshape(wide)
    made = {"none": np.ones_like(g), "plus_one": 1 + g, "squared": g**2}
    if gain == "divided":
        with np.errstate(all="ignore"):
            return 1 / g, b
    return made.get(gain, g), b


NORMS: dict[str, Replaced] = {
    "no final norm": {"norm": "none"},
    "no gain of the final norm": {"gain": "none"},
    "the gain 1 + g for g": {"gain": "plus_one"},
    "the gain of the final norm twice (squared)": {"gain": "squared"},
    "the gain of the final norm divided out": {"gain": "divided"},
    "the variance and not its root as the scale of the norm": {"scale": "squared"},
    "an unbiased variance in the norm: divided by d - 1": {"scale": "unbiased"},
    "ε added to the standard deviation and not to the variance": {"scale": "outside"},
    "rows divided by their length and not by √mean: the norm's √d_model is lost": {
        "scale": "length"
    },
    "the norm's scale about zero, RMS for LayerNorm, of centred rows": {"scale": "about_zero"},
    "the mean of the scales of all positions at every position": {"scale": "mean"},
    "no ε in the norm": {"eps": "none"},
    "ε = 1e-05 in the norm": {"eps": 1e-5},
    "ε = 1e-06 in the norm": {"eps": 1e-6},
    "ε = 1e-12 in the norm": {"eps": 1e-12},
    "statistics of the norm over positions, the wrong axis": {"statistics": "positions"},
    "statistics of the norm over positions and features together": {"statistics": "both"},
    "statistics of the norm over everything: layers, positions and features": {"statistics": "all"},
    "a variance over everything, positions included, of rows that are centred": {
        "statistics": "variance_of_all"
    },
    "the final norm twice": {"twice": True},
    "W_Eᵀ for W_U (as if tied)": {"unembed": "W_E"},
    "W_U with each token's vector normalised": {"unembed": "normalised"},
    "W_U with each token's vector centred": {"unembed": "centred"},
}


def norm_mistakes(asked: Asked) -> Iterator[tuple[str, Replaced]]:
    """Yield what is done wrongly in the final norm and behind it."""
    layers, config = asked.model.n_layers, asked.model.config
    yield from NORMS.items()
    other = "RMSNorm for LayerNorm: no mean is subtracted"
    if config.norm == "rms":
        other = "LayerNorm for RMSNorm: the mean is subtracted (centred)"
    yield other, {"norm": "other"}
    for norm in ("ln1", "ln2"):
        if not config.has(f"{norm}_gain") or not layers:
            continue
        yield f"gain and bias of each layer's {norm} for those of the final norm", {"gain": norm}
        for layer in range(layers):
            yield (
                f"gain and bias of {norm} of layer {layer} for those of the final norm",
                {"gain": (norm, layer)},
            )
