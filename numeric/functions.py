"""What a transformer computes besides matrix products: softmax, norms, activations, rotation.

Each is the formula of its paper, in float64 NumPy, for arrays whose last axis is the one of the
formula. Nothing here knows of a model.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit, ndtr

from algebra.errors import OtimesError

Array = np.ndarray


def causal_mask(n_pos: int) -> Bool[Array, "pos pos"]:
    """Return which key each query sees: itself and all before it.

    >>> causal_mask(2).tolist()
    [[True, False], [True, True]]
    """
    return np.tri(n_pos, dtype=bool)


def masked_softmax(
    scores: Float[Array, "query key"], visible: Bool[Array, "query key"]
) -> Float[Array, "query key"]:
    """Return the softmax of each row over its visible entries; the others are exactly 0.

    The row maximum is taken over the visible entries only: a large hidden score would otherwise
    make the whole row underflow. Raises: OtimesError if a query sees no key.
    """
    blind = np.flatnonzero(~visible.any(axis=1))
    if blind.size:
        raise OtimesError(f"query {blind[0]} sees no key: the softmax of nothing is not defined")
    row_max = np.where(visible, scores, -np.inf).max(axis=1, keepdims=True)
    # A hidden entry is put to the maximum before exp, which then cannot overflow, and to 0 after.
    raised = np.exp(np.where(visible, scores, row_max) - row_max)
    weights = np.where(visible, raised, 0.0)
    pattern: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return pattern


def norm_scale(rows: Float[Array, "*rows d_model"], kind: str, eps: float) -> Array:
    r"""Return what a norm divides each row by, [*rows, 1]: $\sqrt{mean(x^2) + ε}$.

    For "layer" x is taken off its mean first, for "rms" it is not; without a norm it is 1.
    """
    if kind == "none":
        return np.ones((*rows.shape[:-1], 1))
    scale: np.ndarray = np.sqrt(np.mean(centred(rows, kind) ** 2, axis=-1, keepdims=True) + eps)
    return scale


def centred(rows: Float[Array, "*rows d_model"], kind: str) -> Float[Array, "*rows d_model"]:
    """Return the rows without their means for a LayerNorm, and as they are for any other norm."""
    if kind != "layer":
        return rows
    return rows - rows.mean(axis=-1, keepdims=True)


def normalise(
    rows: Float[Array, "*rows d_model"],
    kind: str,
    eps: float,
    gain: Float[Array, " d_model"],
    bias: Float[Array, " d_model"],
) -> Float[Array, "*rows d_model"]:
    r"""Return $g · x / \sqrt{mean(x^2) + ε} + b$ for each row x, centred first in a LayerNorm.

    Source: Ba, Kiros and Hinton 2016 ("layer"); Zhang and Sennrich 2019 ("rms").

    >>> normalise(np.array([1.0, 3.0]), "layer", 0.0, np.ones(2), np.zeros(2)).tolist()
    [-1.0, 1.0]
    """
    scaled: np.ndarray = centred(rows, kind) / norm_scale(rows, kind, eps) * gain + bias
    return scaled


def gelu_gate(x: Array) -> Array:
    r"""Return $Φ(x)$, the normal distribution function."""
    gate: np.ndarray = ndtr(x)
    return gate


def gelu_tanh_gate(x: Array) -> Array:
    r"""Return $\frac{1}{2} (1 + \tanh(\sqrt{2/π} (x + 0.044715 x^3)))$."""
    gate: np.ndarray = 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))
    return gate


def relu_gate(x: Array) -> Array:
    """Return 1 where x is positive, else 0."""
    return np.where(x > 0, 1.0, 0.0)


def silu_gate(x: Array) -> Array:
    """Return $1 / (1 + e^{-x})$; the exponent is never positive, so that nothing overflows."""
    small = np.exp(-np.abs(x))
    gate: np.ndarray = np.where(x >= 0, 1.0, small) / (1 + small)
    return gate


def quick_gelu_gate(x: Array) -> Array:
    """Return $1 / (1 + e^{-1.702 x})$."""
    return silu_gate(1.702 * x)


GATE: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu_gate,
    "gelu_tanh": gelu_tanh_gate,
    "relu": relu_gate,
    "silu": silu_gate,
    "quick_gelu": quick_gelu_gate,
}
"""What each activation multiplies its argument with, $act(x) = x · gate(x)$."""


def gelu(x: Array) -> Array:
    r"""Return $x · Φ(x)$, Φ the normal distribution function (Hendrycks and Gimpel 2016)."""
    return x * gelu_gate(x)


def gelu_tanh(x: Array) -> Array:
    r"""Return $\frac{x}{2} (1 + \tanh(\sqrt{2/π} (x + 0.044715 x^3)))$, as GPT-2 computes it."""
    return x * gelu_tanh_gate(x)


def relu(x: Array) -> Array:
    """Return $max(x, 0)$."""
    return x * relu_gate(x)


def silu(x: Array) -> Array:
    """Return $x / (1 + e^{-x})$."""
    return x * silu_gate(x)


def quick_gelu(x: Array) -> Array:
    r"""Return $x / (1 + e^{-1.702 x})$, the GELU of a logistic function (ibid., §2)."""
    return x * quick_gelu_gate(x)


ACTIVATION: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "quick_gelu": quick_gelu,
}


def gelu_slope(x: Array) -> Array:
    r"""Return $Φ(x) + x φ(x)$, φ the normal density."""
    density = np.exp(-(np.minimum(np.abs(x), 40.0) ** 2) / 2) / np.sqrt(2 * np.pi)
    slope: np.ndarray = ndtr(x) + x * density
    return slope


def gelu_tanh_slope(x: Array) -> Array:
    """Return the derivative of `gelu_tanh`."""
    x = np.clip(x, -20.0, 20.0)  # beyond, the slope is 0 or 1 to the last digit
    inner = np.sqrt(2 / np.pi)
    t = np.tanh(inner * (x + 0.044715 * x * x * x))
    slope: np.ndarray = 0.5 * (1 + t) + 0.5 * x * (1 - t**2) * inner * (1 + 3 * 0.044715 * x**2)
    return slope


def relu_slope(x: Array) -> Array:
    """Return 1 where x is positive and 0 elsewhere, at 0 too."""
    return np.where(x > 0, 1.0, 0.0)


def silu_slope(x: Array) -> Array:
    r"""Return $s (1 + x (1 - s))$ with $s = 1 / (1 + e^{-x})$."""
    s = expit(x)
    slope: np.ndarray = s * (1 + x * (1 - s))
    return slope


def quick_gelu_slope(x: Array) -> Array:
    """Return the derivative of `quick_gelu`, which is silu(1.702 x) / 1.702."""
    return silu_slope(1.702 * x)


DERIVATIVE: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu_slope,
    "gelu_tanh": gelu_tanh_slope,
    "relu": relu_slope,
    "silu": silu_slope,
    "quick_gelu": quick_gelu_slope,
}
"""The derivative of each activation."""


def rotary_frequencies(
    dims: int, base: float, stretch: Sequence[float] = ()
) -> Float[Array, " pairs"]:
    r"""Return by how much each pair turns from one position to the next, $base^{-2i/dims}$.

    A `stretch` of one number divides all of them (Chen et al. 2023, “position interpolation”). One
    of four, (factor, low, high, context), is that of Llama 3.1: a pair that turns fewer than `low`
    times in `context` positions is divided by the factor, one that turns more than `high` times is
    left alone, and those between are mixed of both. One of five, (factor, low, high, context,
    scale), is YaRN (Peng et al. 2023): the same with the shares of those between by the number of
    the pair, from the last one above `high` to the first one below `low`; what the `scale` does is
    up to `rotate`.

    >>> rotary_frequencies(4, 100.0, (2.0,)).tolist()
    [0.5, 0.05]
    """
    frequency: np.ndarray = base ** (-2 * np.arange(dims // 2) / dims)
    if not stretch:
        return frequency
    factor, *bands = stretch
    if not bands:
        return frequency / factor
    low, high, context, *scale = bands
    if scale:
        most = dims * np.log(context / (2 * np.pi * np.array([high, low]))) / (2 * np.log(base))
        first, last = max(np.floor(most[0]), 0.0), min(np.ceil(most[1]), dims - 1.0)
        width = last - first or 0.001  # as its authors have it, where one pair is both
        kept = 1 - np.clip((np.arange(dims // 2) - first) / width, 0.0, 1.0)
    else:
        turns = context * frequency / (2 * np.pi)
        kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    mixed: np.ndarray = (1 - kept) * frequency / factor + kept * frequency
    return mixed


def rotary_scale(stretch: Sequence[float]) -> float:
    """Return what turned entries are multiplied by: the fifth number of a stretch (YaRN), else 1.

    >>> rotary_scale((8.0, 1.0, 32.0, 2048.0, 1.25)), rotary_scale((2.0,))
    (1.25, 1.0)
    """
    return stretch[4] if len(stretch) > 4 else 1.0


def rotate(
    rows: Float[Array, "pos d_head"],
    dims: int,
    base: float,
    layout: str,
    stretch: Sequence[float] = (),
    sign: int = 1,
) -> Float[Array, "pos d_head"]:
    r"""Return each row turned by its position: pair i of row p by the angle $p · base^{-2i/dims}$.

    With a `stretch` the frequencies are those of `rotary_frequencies`, and what was turned is
    multiplied by `rotary_scale`. Only the first `dims` entries take part. A pair is (2i, 2i + 1) in
    the layout "interleaved" (GPT-J) and (i, i + dims/2) in "half" (GPT-NeoX, Llama). The product of
    a turned query and a turned key depends on their distance alone. With `sign` -1 rows are turned
    the other way, which is the transpose.
    Source: Su et al. 2021, “RoFormer”, §3.2.
    """
    pair = np.arange(dims // 2)
    first, second = (
        (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + dims // 2)
    )
    angle = sign * np.arange(len(rows))[:, None] * rotary_frequencies(dims, base, stretch)
    scale = rotary_scale(stretch)
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    turned = rows.copy()
    turned[:, first] = rows[:, first] * cos - rows[:, second] * sin
    turned[:, second] = rows[:, first] * sin + rows[:, second] * cos
    return turned
