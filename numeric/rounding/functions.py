r"""Rounding errors of nonlinear functions: activation functions, softmax, norms, rotary embeddings.

An error E of the argument x is propagated as |g(x ± E) - g(x)|: exactly where g is monotone, else
as |g'(x)| E + ½ max|g''| E². The error of computing g is added, for any of its usual algorithms.
There are two assumptions: exp, erf, tanh, sine, cosine and powers of a library have an error of at
most `LIBRARY` ulp (SLEEF and glibc guarantee 1, Intel's SVML 4), and terms of second order in the
unit roundoff are covered by constants that were rounded up.

Notation: S the scores of a row, p its pattern, T the number of keys, x a row of the residual
stream, μ its mean, c = x - μ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.functions import on_floats
from otimes.numeric.functions import (
    ACTIVATION,
    DERIVATIVE,
    centred,
    dynamic_growth,
    masked_softmax,
    norm_scale,
    rotary_frequencies,
    rotary_scale,
    yarn_ramp,
)
from otimes.numeric.rounding.linear import Array, Near
from otimes.numeric.rounding.precision import Precision

LIBRARY = 4  # ulp, each 2 u
GATE = 9
"""The error of x · s(x), 0 ≤ s ≤ 1, is at most 9 u |x|, plus two roundings of the result.

For s = ½ (1 + erf(x/√2)): 8 u from erf, halved; 1 u from the addition, 2 u t erf'(t) ≤ 0.9 u from
the argument, both halved. For tanh the relative error of the argument is 6 u, which changes tanh by
at most 6 · 0.45 u, in all (8 + 2.7 + 2) / 2. For 1/(1 + e^-x): 8 (1 - s) + 2 relative to s ≤ 1; the
error of a factor of x in it is 2 u, which changes s by 2 · 0.23 u.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """The conditioning of a function g, and the error of computing it, in units of u.

    `slope` is g' and `curve` a bound on |g''|; without a slope g is monotone, and the propagated
    error is exact. The error of computing g is `relative` times |g(x)| plus `absolute` times |x|
    (with `gate`) or 1. `stored` is the number of roundings to the stored dtype, with the result's.
    """

    relative: float
    absolute: float = 0.0
    gate: bool = False
    slope: Callable[[Array], Array] | None = None
    curve: float = 0.0
    stored: int = 1


_OF_LIBRARY = 2.0 * LIBRARY
CONDITION: dict[str, Condition] = {
    "relu": Condition(0.0, stored=0),
    "relu2": Condition(1.0, slope=DERIVATIVE["relu2"], curve=2.0),
    "gelu": Condition(2.0, GATE, True, DERIVATIVE["gelu"], 0.8),
    "gelu_tanh": Condition(2.0, GATE, True, DERIVATIVE["gelu_tanh"], 0.85),
    "silu": Condition(2.0, GATE, True, DERIVATIVE["silu"], 0.5),
    "quick_gelu": Condition(2.0, GATE, True, DERIVATIVE["quick_gelu"], 0.86),
    "tanh": Condition(_OF_LIBRARY),
    "sigmoid": Condition(_OF_LIBRARY + 2, _OF_LIBRARY / 2 + 1),
    "exp": Condition(_OF_LIBRARY),
    "rsqrt": Condition(4.0, stored=2),
}


def activated(name: str, x: Near, p: Precision) -> Near:
    """Return an activation function of every entry, with its error.

    Raises: OtimesError for an unknown function.
    """
    if name not in CONDITION:
        raise OtimesError(
            f"there is no rounding bound for the function {name}; the functions are"
            f" {', '.join(CONDITION)}"
        )
    known = CONDITION[name]
    value = ACTIVATION["relu2"](x.value) if name == "relu2" else on_floats(name, x.value)
    if p.exact:
        return Near.exactly(value)
    carried = _moved(name, known, x, value)
    absolute = known.absolute * (x.size if known.gate else 1.0)
    own = p.inner * (known.relative * (np.abs(value) + carried) + absolute)
    own = own + p.stored(known.stored) * (np.abs(value) + carried)
    return Near(value, carried + own + p.tiny * known.stored)


def _moved(name: str, known: Condition, x: Near, value: Array) -> Array:
    """Return a bound on the change of the function by the errors of its argument."""
    if not x.error.any():
        return np.zeros_like(value)
    if known.slope is not None:
        return np.abs(known.slope(x.value)) * x.error + known.curve / 2 * x.error**2
    if name == "rsqrt":
        return _root_moved(x.value, x.error)
    if name == "exp":
        moved: Array = value * np.expm1(x.error)
    elif name == "relu":
        moved = np.where(x.value >= -x.error, x.error, 0.0)
    elif name == "tanh":  # the slope is largest where the argument is closest to 0
        moved = x.error / np.cosh(np.clip(np.abs(x.value) - x.error, 0.0, 300.0)) ** 2
    else:
        nearest = expit(np.maximum(np.abs(x.value) - x.error, 0.0))
        moved = x.error * nearest * (1 - nearest)
    return moved


def _root_moved(square: Array, error: Array) -> Array:
    """Return a bound on the change of x^(-1/2), infinite where x may be zero.

    The difference of two roots is computed without cancellation.
    """
    least = square - error
    with np.errstate(divide="ignore", invalid="ignore"):
        high, low = np.sqrt(square), np.sqrt(np.maximum(least, 0.0))
        moved = error / (high * low * (high + low))
    return np.where(least > 0, moved, np.inf)


def softmax(scores: Near, visible: Array, p: Precision, online: bool = False) -> Near:
    r"""Return the softmax of the unmasked entries of each row, [..., query, key], with its error.

    The propagated error is $|δ \log p_j| ≤ E_j + \log Σ p e^E$. The error of computing it: 8 u from
    exp, in numerator and denominator; T + 1 from sum and division; 3 u (gap_j + Σ p gap), with the
    gap to the maximum, from subtracting the maximum; 2 u (max|S| + log T) for algorithms that do
    not subtract it, or use powers of two or log-sum-exp. `online`: computed block by block with
    rescaling, as in FlashAttention. The bound is never more than 1, as entries are from 0 to 1.
    """
    shape = scores.value.shape
    mask = np.broadcast_to(visible, shape)
    flat = scores.value.reshape(-1, shape[-1])
    value = masked_softmax(flat, mask.reshape(-1, shape[-1])).reshape(shape)
    if p.exact:
        return Near.exactly(value)
    seen = np.where(mask, scores.value, -np.inf)
    highest = seen.max(axis=-1, keepdims=True)
    gap = np.where(mask, highest - scores.value, 0.0)
    mean_gap = (value * gap).sum(axis=-1, keepdims=True)
    largest = np.where(mask, np.abs(scores.value), 0.0).max(axis=-1, keepdims=True)
    error = np.where(mask, scores.error, 0.0)
    carried = error + np.log1p((value * np.expm1(error)).sum(axis=-1, keepdims=True))
    n_keys = shape[-1]
    roundings = (4 * n_keys if online else n_keys) + 4 * LIBRARY + 2
    shifts = 3 * (gap + mean_gap) + 2 * (largest + np.log(n_keys))
    relative = np.expm1(carried + p.within(roundings) + p.inner * shifts)
    bound = value * relative
    bound = bound + p.stored() * (value + bound)
    # Entries are from 0 to 1, up to the roundings of both sides.
    most = 1 + p.within(roundings) + p.stored(2)
    return Near(value, np.fmin(bound, most) + p.tiny)


def normalised(
    rows: Near, kind: str, eps: float, gain: Near, bias: Array | None, p: Precision
) -> Near:
    r"""Return a norm of each row: $g c / \sqrt{mean(c^2) + ε} + b$; without centring if "rms".

    The error of computing it: the mean has an error of γ_{d+4} mean|x|, and the mean square of
    γ_{d+4} (mean x² + 2 |μ| mean|x|), which covers one-pass variance (mean x² - μ²) and Welford's
    updates; it is propagated through the root exactly. In half precision, each step may be stored
    in that dtype: the mean, the centred entries, their squares, the mean square, the sum with ε,
    the root, its reciprocal. The bound is infinite where the mean square may be zero.
    """
    x, width = rows.value, rows.value.shape[-1]
    if p.exact:
        c = centred(x, kind)
        scale = norm_scale(c, "rms" if kind == "layer" else kind, eps)
        plain = c / scale * gain.value
        return Near.exactly(plain if bias is None else plain + bias)
    sums = p.within(width + 4)
    steps = p.stored() if p.unit > p.inner else 0.0

    def mean(array: Array) -> Array:
        return np.asarray(array.mean(axis=-1, keepdims=True))

    c = centred(x, kind)
    mu = mean(x) if kind == "layer" else np.zeros((*x.shape[:-1], 1))
    c_error = rows.error + 3 * p.inner * (np.abs(x) + np.abs(mu)) + steps * np.abs(c)
    square_error = 2 * mean(np.abs(c) * rows.error) + mean(rows.error**2)
    if kind == "layer":
        mu_error = sums * mean(rows.size) + mean(rows.error) + steps * np.abs(mu)
        c_error = c_error + mu_error
        # Σ c = 0, so that an error of the mean changes the mean square in second order only.
        square_error = square_error + 2 * mean(rows.error * np.abs(mu_error)) + mu_error**2
    square_error = square_error + sums * (mean(rows.size**2) + 2 * np.abs(mu) * mean(rows.size))
    square = mean(c**2) + eps
    # Two roundings for the centred factors; one each for the square, the mean, the sum with ε.
    square_error = square_error + 5 * steps * square
    scale = on_floats("rsqrt", square)
    scale_error = _root_moved(square, square_error + 3 * p.inner * square)
    scale_error = scale_error + (4 * p.inner + 2 * steps) * scale
    value = c * scale
    with np.errstate(invalid="ignore"):
        error = np.abs(c) * scale_error + c_error * (scale + scale_error)
    error = np.where(np.isnan(error), np.inf, error)
    error = error + 2 * p.inner * np.abs(value)
    value, size = value * gain.value, (np.abs(value) + error) * gain.size
    error = error * gain.size + np.abs(c * scale) * gain.error + p.stored(2) * size
    if bias is not None:
        value = value + bias
        error = error + p.stored() * (np.abs(value) + error)
    return Near(value, error + 3 * p.tiny)


def rotated(
    rows: Near,
    dims: int,
    base: float,
    layout: str,
    stretch: Sequence[Any] = (),
    *,
    p: Precision,
) -> Near:
    """Return queries or keys [..., pos, d_head] after rotary embeddings, with their errors.

    An angle p · base^(-2i/dims) has the rounding errors of exponent, power and product; each sine
    and cosine the error of the library and a rounding to the stored dtype, two with a scale.
    """
    half = dims // 2
    first, second = (
        (slice(0, dims, 2), slice(1, dims, 2))
        if layout == "interleaved"
        else (slice(half), slice(half, dims))
    )
    n_pos = rows.value.shape[-2]
    angle, scale, cos, sin = _angles(dims, base, tuple(stretch), n_pos)
    if p.exact:
        value = rows.value.copy()
        x, y = rows.value[..., first], rows.value[..., second]
        value[..., first], value[..., second] = x * cos - y * sin, x * sin + y * cos
        return Near.exactly(value)
    exponent = 2 * np.arange(half) / dims * np.log(base)
    relative = 2 * LIBRARY + 2 + 3 * np.abs(exponent)
    angle_error = p.inner * angle * _after_stretch(relative, dims, base, stretch, n_pos)
    angle_error = np.minimum(angle_error, 2.0)
    function_error = 2 * LIBRARY * p.inner + p.stored(1 if scale == 1 else 2)
    a, b = (Near(rows.value[..., i], rows.error[..., i]) for i in (first, second))
    value, error = rows.value.copy(), np.array(rows.error)
    for place, turned, along, across in (
        (first, a.value * cos - b.value * sin, (a, cos), (b, sin)),
        (second, a.value * sin + b.value * cos, (a, sin), (b, cos)),
    ):
        own = np.zeros_like(turned)
        for part, factor in (along, across):
            wrong = scale * np.minimum(angle_error + function_error, 2.0)
            own = own + part.error * np.abs(factor) + part.size * wrong
            own = own + p.stored() * part.size * (np.abs(factor) + wrong)
        value[..., place] = turned
        error[..., place] = own + p.stored() * (np.abs(turned) + own) + 4 * p.tiny
    return Near(value, error)


@lru_cache(maxsize=64)
def _angles(
    dims: int, base: float, stretch: tuple[Any, ...], n_pos: int
) -> tuple[Array, float, Array, Array]:
    """Return the angles [pos, pair], the scale of cosine and sine, and both with this scale."""
    angle = np.arange(n_pos)[:, None] * rotary_frequencies(dims, base, stretch, n_pos)
    scale = rotary_scale(stretch)
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    for array in (angle, cos, sin):
        array.flags.writeable = False
    return angle, scale, cos, sin


def _after_stretch(
    relative: Array, dims: int, base: float, stretch: Sequence[Any], n_pos: int
) -> Array:
    """Return the relative error of a stretched frequency, in units of the roundoff.

    A factor alone adds one division. With bands, the weight s = (turns - low)/(high - low) of the
    plain frequency f has the error of f plus 3 roundings, times turns/(high - low), plus 2; and
    f' = f/factor + s f (1 - 1/factor) has f (1 - 1/factor) times that, plus 4. The weights of YaRN
    are s and 1 - s of integers, with 2 and 3 roundings; where the ends of the ramp are not rounded,
    they and the differences have 3 roundings of at most `dims`, divided by the width of the ramp.
    LongRoPE multiplies and inverts: 3 roundings. A base that grows with the prompt has an error
    itself (`_of_growth`), of which an entry has the share of its exponent.
    """
    if stretch and stretch[0] == "dynamic":
        return relative + 2 * np.arange(dims // 2) / dims * _of_growth(dims, stretch, n_pos)
    if stretch and stretch[0] == "longrope":
        return relative + 3
    if len(stretch) < 2:
        return relative + len(stretch)
    factor, low, high, context, *scale = stretch
    plain = rotary_frequencies(dims, base)
    if scale:
        shared = rotary_frequencies(dims, base, stretch)
        both = (shared < 0.999999 * plain) & (shared > 1.000001 * plain / factor)
        first, last = yarn_ramp(dims, base, stretch)
        ends = 3 * dims / max(last - first, 0.001) if len(scale) > 1 else 0.0
        near_ends = both | (np.full(len(plain), len(scale) > 1))
        return np.asarray(relative + 4 + np.where(near_ends, (5 + ends) * plain / shared, 0.0))
    turns = context * plain / (2 * np.pi)
    mixed = (turns > 0.999 * low) & (turns < 1.001 * high)  # either side, up to rounding
    share = (relative + 3) * turns / (high - low) + 2
    moved = share * (1 - 1 / factor) * plain / rotary_frequencies(dims, base, stretch)
    wrong: Array = relative + 4 + np.where(mixed, np.abs(moved), 0.0)
    return wrong


def _of_growth(dims: int, stretch: Sequence[Any], n_pos: int) -> float:
    """Return the relative error of a dynamic rotary base, in units of the roundoff.

    g = factor · n/context - (factor - 1) has 4 roundings of numbers of at most factor · n/context;
    its power has e = dims/(dims - 2) times its error, that of the exponent times log g, and that of
    the library; the product has one more. The logarithm of the base adds to the exponent.
    """
    _, factor, context = stretch
    power = dims / (dims - 2)
    growth = dynamic_growth(dims, stretch, n_pos)
    terms = factor * max(n_pos, context) / context
    relative = power * 4 * terms / growth ** (1 / power) + 3 * abs(np.log(growth))
    return float(relative + 2 * LIBRARY + 1 + 3 * abs(np.log(growth)))


def limited(x: Near, limit: float, top: bool = False) -> Near:
    """Return every entry clipped to [-c, c], or with `top` to at most c; errors do not grow."""
    least = -np.inf if top else -limit
    return Near(np.clip(x.value, least, limit), x.error)


def soft_cap(x: Near, cap: float, p: Precision) -> Near:
    """Return c tanh(x/c) of every entry with its error; with c = 0 the argument itself.

    The quotient and the product have one rounding each, in the stored dtype.
    """
    if not cap:
        return x
    quotient = x.value / cap
    if p.exact:
        return Near.exactly(cap * np.tanh(quotient))
    error = x.error / cap
    inner = Near(quotient, error + p.stored() * (np.abs(quotient) + error) + p.tiny)
    bent = activated("tanh", inner, p)
    size = cap * (np.abs(bent.value) + bent.error)
    return Near(cap * bent.value, cap * bent.error + p.stored() * size + p.tiny)


def softmax_with_sink(
    scores: Near, visible: Array, sinks: Array, p: Precision, online: bool = False
) -> Near:
    """Return the softmax with one more score per head, [head], whose weights are left out.

    It is the softmax of rows with one more entry, which is dropped.
    """
    *rest, n_keys = scores.value.shape
    column = np.broadcast_to(sinks[:, None, None], (*rest, 1))
    value = np.concatenate([scores.value, column], axis=-1)
    error = np.concatenate([scores.error, np.zeros_like(column)], axis=-1)
    seen = np.concatenate([visible, np.ones((*visible.shape[:-1], 1), bool)], axis=-1)
    near = softmax(Near(value, error), seen, p, online)
    return Near(near.value[..., :n_keys], near.error[..., :n_keys])
