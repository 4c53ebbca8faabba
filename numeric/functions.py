"""The functions of a transformer besides matrix products: softmax, norms, activations, RoPE.

Each is the formula of its paper, in float64 NumPy, applied along the last axis.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit, ndtr

from otimes.algebra.errors import OtimesError

Array = np.ndarray


def causal_mask(n_pos: int) -> Bool[Array, "pos pos"]:
    """Return the boolean causal mask [query, key]: True where key ≤ query.

    >>> causal_mask(2).tolist()
    [[True, False], [True, True]]
    """
    return np.tri(n_pos, dtype=bool)


def linear(
    rows: Float[Array, "*rows inputs"], weight: Float[Array, "inputs outputs"]
) -> Float[Array, "*rows outputs"]:
    """Return $X W$ [*rows, outputs], as one matrix product whatever axes the rows have.

    `np.matmul` would multiply a stack of matrices by W one at a time.

    >>> linear(np.ones((5, 2, 3)), np.ones((3, 4))).shape
    (5, 2, 4)
    """
    if rows.ndim == 2:
        return rows @ weight
    product: np.ndarray = rows.reshape(-1, rows.shape[-1]) @ weight
    return product.reshape(*rows.shape[:-1], -1)


def visible_keys(n_pos: int, window: int = 0) -> Bool[Array, "pos pos"]:
    """Return the causal mask [query, key] with a window: of the last `window` keys, if not 0.

    >>> visible_keys(3, 2).tolist()
    [[True, False, False], [True, True, False], [False, True, True]]
    """
    causal = causal_mask(n_pos)
    return causal & ~np.tri(n_pos, k=-window, dtype=bool) if window else causal


def alibi(n_pos: int, slope: float) -> Float[Array, "pos pos"]:
    """Return what ALiBi adds to the scores [query, key]: slope · (key − query).

    Proved by: alibi_distances_are_key_slopes. Source: Press, Smith and Lewis 2022, “Train Short,
    Test Long”, §3.

    >>> alibi(2, 0.5).tolist()
    [[0.0, 0.5], [-0.5, 0.0]]
    """
    place = np.arange(n_pos)
    added: np.ndarray = slope * (place[None, :] - place[:, None])
    return added


def capped(x: Array, cap: float) -> Array:
    r"""Return the soft cap $c \tanh(x/c)$ of every entry; with c = 0 the array itself.

    Source: Gemma Team 2024, “Gemma 2”, §2.
    """
    return x if not cap else cap * np.tanh(x / cap)


def masked_softmax(
    scores: Float[Array, "*prompts query key"],
    visible: Bool[Array, "query key"],
    sink: float | None = None,
) -> Float[Array, "*prompts query key"]:
    """Return the softmax of each row over its unmasked entries; masked entries are exactly 0.

    A `sink` is one more score of every row, whose weight is left out: rows then sum to less than 1.

    `visible` is True where a query may attend to a key. The row maximum is taken over these entries
    only: a large masked score would otherwise make the whole row underflow. Raises: OtimesError if
    all keys of a query are masked.
    """
    blind = np.flatnonzero(~visible.any(axis=1))
    if blind.size:
        raise OtimesError(f"all keys of query {blind[0]} are masked: its softmax is undefined")
    row_max = np.where(visible, scores, -np.inf).max(axis=-1, keepdims=True)
    if sink is not None:
        row_max = np.maximum(row_max, sink)
    # Masked entries are set to the maximum before exp, which then cannot overflow, and to 0 after.
    raised = np.exp(np.where(visible, scores, row_max) - row_max)
    weights = np.where(visible, raised, 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    if sink is not None:
        total = total + np.exp(sink - row_max)
    pattern: np.ndarray = weights / total
    return pattern


def norm_scale(rows: Float[Array, "*rows d_model"], kind: str, eps: float) -> Array:
    r"""Return the scale by which a norm divides each row, [*rows, 1]: $\sqrt{mean(x^2) + ε}$.

    For "layer" the mean of x is subtracted first, for "rms" not; for "none" the scale is 1.
    """
    if kind == "none":
        return np.ones((*rows.shape[:-1], 1))
    scale: np.ndarray = np.sqrt(np.mean(centred(rows, kind) ** 2, axis=-1, keepdims=True) + eps)
    return scale


def centred(rows: Float[Array, "*rows d_model"], kind: str) -> Float[Array, "*rows d_model"]:
    """Return the rows with their means subtracted if `kind` is "layer", else unchanged."""
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
    r"""Return $Φ(x)$, the standard normal CDF."""
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
    """Return $1 / (1 + e^{-x})$, without overflow for large |x|."""
    small = np.exp(-np.abs(x))
    gate: np.ndarray = np.where(x >= 0, 1.0, small) / (1 + small)
    return gate


def quick_gelu_gate(x: Array) -> Array:
    """Return $1 / (1 + e^{-1.702 x})$."""
    return silu_gate(1.702 * x)


def relu2_gate(x: Array) -> Array:
    """Return $max(x, 0)$."""
    return x * relu_gate(x)


GATE: dict[str, Callable[[Array], Array]] = {
    "relu2": relu2_gate,
    "gelu": gelu_gate,
    "gelu_tanh": gelu_tanh_gate,
    "relu": relu_gate,
    "silu": silu_gate,
    "quick_gelu": quick_gelu_gate,
}
"""The gate of each activation function, $act(x) = x · gate(x)$."""


def gelu(x: Array) -> Array:
    r"""Return $x · Φ(x)$, Φ the standard normal CDF (Hendrycks and Gimpel 2016)."""
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
    r"""Return $x / (1 + e^{-1.702 x})$, the sigmoid approximation of GELU (ibid., §2)."""
    return x * quick_gelu_gate(x)


def relu2(x: Array) -> Array:
    """Return $max(x, 0)^2$ (So et al. 2021, “Primer”)."""
    return x * relu2_gate(x)


ACTIVATION: dict[str, Callable[[Array], Array]] = {
    "relu2": relu2,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "quick_gelu": quick_gelu,
}


def gelu_slope(x: Array) -> Array:
    r"""Return $Φ(x) + x φ(x)$, φ the standard normal density."""
    density = np.exp(-(np.minimum(np.abs(x), 40.0) ** 2) / 2) / np.sqrt(2 * np.pi)
    slope: np.ndarray = ndtr(x) + x * density
    return slope


def gelu_tanh_slope(x: Array) -> Array:
    """Return the derivative of `gelu_tanh`."""
    x = np.clip(x, -20.0, 20.0)  # beyond, the slope rounds to 0 or 1
    inner = np.sqrt(2 / np.pi)
    t = np.tanh(inner * (x + 0.044715 * x * x * x))
    slope: np.ndarray = 0.5 * (1 + t) + 0.5 * x * (1 - t**2) * inner * (1 + 3 * 0.044715 * x**2)
    return slope


def relu_slope(x: Array) -> Array:
    """Return 1 where x is positive and 0 elsewhere, also at 0."""
    return np.where(x > 0, 1.0, 0.0)


def silu_slope(x: Array) -> Array:
    r"""Return $s (1 + x (1 - s))$ with $s = 1 / (1 + e^{-x})$."""
    s = expit(x)
    slope: np.ndarray = s * (1 + x * (1 - s))
    return slope


def quick_gelu_slope(x: Array) -> Array:
    """Return the derivative of `quick_gelu`, which is silu(1.702 x) / 1.702."""
    return silu_slope(1.702 * x)


def relu2_slope(x: Array) -> Array:
    """Return $2 max(x, 0)$."""
    return 2 * x * relu_gate(x)


DERIVATIVE: dict[str, Callable[[Array], Array]] = {
    "relu2": relu2_slope,
    "gelu": gelu_slope,
    "gelu_tanh": gelu_tanh_slope,
    "relu": relu_slope,
    "silu": silu_slope,
    "quick_gelu": quick_gelu_slope,
}
"""The derivative of each activation."""


def rotary_frequencies(
    dims: int, base: float, stretch: Sequence[Any] = (), n_pos: int = 1
) -> Float[Array, " pairs"]:
    r"""Return the frequency of each pair in radians per position, $base^{-2i/dims}$ [dims // 2].

    `stretch` scales the frequencies for longer contexts. One number, (factor,), divides all of them
    (Chen et al. 2023, “position interpolation”). Four numbers, (factor, low, high, context), are
    those of Llama 3.1: the frequency of a pair with fewer than `low` rotations in `context`
    positions is divided by the factor, one with more than `high` is unchanged, and between them the
    two are interpolated linearly in the number of rotations. Five, (factor, low, high, context,
    scale), are YaRN (Peng et al. 2023): the interpolation is linear in the index of the pair; the
    `scale` is applied in `rotate`. With a sixth number, 0, the ends of the ramp are not rounded.

    Two kinds depend on the length of the prompt, `n_pos`. ("dynamic", factor, context): the base is
    multiplied by (factor · n_pos / context − factor + 1)^(dims / (dims − 2)) beyond the context.
    ("longrope", context, scale, *short, *long): each frequency has its own divisor, a short one up
    to the context and a long one beyond (Ding et al. 2024, “LongRoPE”).

    >>> rotary_frequencies(4, 100.0, (2.0,)).tolist()
    [0.5, 0.05]
    >>> rotary_frequencies(4, 100.0, ("longrope", 8, 1.0, 1, 1, 2, 5), n_pos=9).tolist()
    [0.5, 0.02]
    """
    if stretch and stretch[0] == "dynamic":
        base *= dynamic_growth(dims, stretch, n_pos)
    frequency: np.ndarray = base ** (-2 * np.arange(dims // 2) / dims)
    if not stretch or stretch[0] == "dynamic":
        return frequency
    if stretch[0] == "longrope":
        divisors = np.array(stretch[3:]).reshape(2, -1)[int(n_pos > stretch[1])]
        return np.asarray(frequency / divisors)
    factor, *bands = stretch
    if not bands:
        return frequency / factor
    low, high, context, *scale = bands
    if scale:
        first, last = yarn_ramp(dims, base, stretch)
        width = last - first or 0.001  # as in the authors' code, to avoid division by 0
        kept = 1 - np.clip((np.arange(dims // 2) - first) / width, 0.0, 1.0)
    else:
        turns = context * frequency / (2 * np.pi)
        kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    mixed: np.ndarray = (1 - kept) * frequency / factor + kept * frequency
    return mixed


def dynamic_growth(dims: int, stretch: Sequence[Any], n_pos: int) -> float:
    """Return the factor of the rotary base for a prompt of this length, 1 up to the context."""
    _, factor, context = stretch
    grown = factor * max(n_pos, context) / context - (factor - 1)
    return float(grown ** (dims / (dims - 2)))


def yarn_ramp(dims: int, base: float, stretch: Sequence[Any]) -> tuple[float, float]:
    """Return the indices of the pairs between which YaRN interpolates."""
    _, low, high, context, _, *unrounded = stretch
    ends = dims * np.log(context / (2 * np.pi * np.array([high, low]))) / (2 * np.log(base))
    if not unrounded:
        ends = np.array([np.floor(ends[0]), np.ceil(ends[1])])
    return max(float(ends[0]), 0.0), min(float(ends[1]), dims - 1.0)


def rotary_scale(stretch: Sequence[Any]) -> float:
    """Return the factor of rotated entries: that of YaRN or LongRoPE, else 1.

    >>> rotary_scale((8.0, 1.0, 32.0, 2048.0, 1.25)), rotary_scale((2.0,))
    (1.25, 1.0)
    """
    if stretch and stretch[0] == "longrope":
        return float(stretch[2])
    return float(stretch[4]) if len(stretch) > 4 else 1.0


def rotate(
    rows: Float[Array, "*prompts pos d_head"],
    dims: int,
    base: float,
    layout: str,
    stretch: Sequence[Any] = (),
    sign: int = 1,
    n_pos: int | None = None,
) -> Float[Array, "*prompts pos d_head"]:
    r"""Return rotary embeddings: pair i of row p is rotated by the angle $p · base^{-2i/dims}$.

    With a `stretch` the frequencies are those of `rotary_frequencies`, and rotated entries are
    multiplied by `rotary_scale`. Only the first `dims` entries are rotated. A pair is (2i, 2i + 1)
    in the layout "interleaved" (GPT-J) and (i, i + dims/2) in "half" (GPT-NeoX, Llama). The dot
    product of a rotated query and a rotated key depends on their positions only through the
    difference. `n_pos` is the length of the prompt, if the rows are only its beginning. `sign` -1
    rotates backwards: without a scale, the inverse and the transpose.
    Source: Su et al. 2021, “RoFormer”, §3.2.
    """
    pair = np.arange(dims // 2)
    first, second = (
        (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + dims // 2)
    )
    here = rows.shape[-2]
    frequency = rotary_frequencies(dims, base, stretch, here if n_pos is None else n_pos)
    angle = sign * np.arange(here)[:, None] * frequency
    scale = rotary_scale(stretch)
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    turned = rows.copy()
    turned[..., first] = rows[..., first] * cos - rows[..., second] * sin
    turned[..., second] = rows[..., first] * sin + rows[..., second] * cos
    return turned
