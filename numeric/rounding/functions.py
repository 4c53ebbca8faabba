r"""What is not multilinear: activations, softmax, norms and rotation, with their rounding errors.

An error E of the argument x carries over as |g(x ± E) - g(x)|: exactly where g is monotone, else
|g'(x)| E + ½ max|g''| E². To that comes what computing g adds, whichever of its usual algorithms
is used. Two things are taken on trust and stated here: exp, erf, tanh, sine, cosine and powers of
a library are wrong by at most `LIBRARY` ulp (SLEEF and glibc promise 1, Intel's SVML 4), and terms
of second order in the unit roundoff are covered by constants that were rounded up.

Written for what follows: S the scores of a row, p its pattern, T the number of keys, x a row of a
stream, μ its mean, c = x - μ.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from algebra.errors import OtimesError
from algebra.functions import on_floats
from numeric.functions import (
    DERIVATIVE,
    centred,
    masked_softmax,
    norm_scale,
    rotary_frequencies,
    rotary_scale,
)
from numeric.rounding.linear import Array, Near
from numeric.rounding.precision import Precision

LIBRARY = 4  # ulp, each 2 u
GATE = 9
"""A gate x · s(x), 0 ≤ s ≤ 1, is wrong by at most 9 u |x|, and two roundings of the result.

For s = ½ (1 + erf(x/√2)): 8 u from erf, halved; 1 u from the addition, 2 u t erf'(t) ≤ 0.9 u from
the argument, both halved. For tanh the argument is wrong by 6 u relative, which moves tanh by at
most 6 · 0.45 u, and so (8 + 2.7 + 2) / 2. For 1/(1 + e^-x): 8 (1 - s) + 2 relative to s ≤ 1; a
factor of x in it is wrong by 2 u, which moves s by 2 · 0.23 u.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """How a function moves, and what computing it adds, in units of u.

    `slope` is g' and `curve` a bound of |g''|; a function without a slope is monotone, and moves as
    it moves. `relative` is a multiple of |g(x)|, `absolute` of |x| (`gate`) or of 1; `stored` says
    how often a library stores a number on the way, the result included.
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
    """Return an activation of every entry.

    Raises: OtimesError for a function that is not known, which has no value on numbers either.
    """
    if name not in CONDITION:
        raise OtimesError(
            f"there is no rounding bound for the activation {name}; known are "
            f"{', '.join(CONDITION)}"
        )
    known = CONDITION[name]
    value = on_floats(name, x.value)
    if p.exact:
        return Near.exactly(value)
    carried = _moved(name, known, x, value)
    absolute = known.absolute * (x.size if known.gate else 1.0)
    own = p.inner * (known.relative * (np.abs(value) + carried) + absolute)
    own = own + p.stored(known.stored) * (np.abs(value) + carried)
    return Near(value, carried + own + p.tiny * known.stored)


def _moved(name: str, known: Condition, x: Near, value: Array) -> Array:
    """Return how far the function may be moved by the errors of its argument."""
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
    elif name == "tanh":  # the slope nowhere more than where the argument comes closest to 0
        moved = x.error / np.cosh(np.clip(np.abs(x.value) - x.error, 0.0, 300.0)) ** 2
    else:
        nearest = expit(np.maximum(np.abs(x.value) - x.error, 0.0))
        moved = x.error * nearest * (1 - nearest)
    return moved


def _root_moved(square: Array, error: Array) -> Array:
    """Return how far x^(-1/2) moves, without bound where x may be zero.

    The difference of two close roots is written so that nothing cancels.
    """
    least = square - error
    with np.errstate(divide="ignore", invalid="ignore"):
        high, low = np.sqrt(square), np.sqrt(np.maximum(least, 0.0))
        moved = error / (high * low * (high + low))
    return np.where(least > 0, moved, np.inf)


def softmax(scores: Near, visible: Array, p: Precision, online: bool = False) -> Near:
    r"""Return the softmax of the visible entries of each row, [..., query, key].

    $|δ \log p_j| ≤ E_j + \log Σ p e^E$ carries over. Its own: 8 u from exp, above and below; T + 1
    from sum and division; 3 u (gap_j + Σ p gap), the gap to the maximum, from shifting; 2 u
    (max|S| + log T) for algorithms that do not shift, use powers of two or the logarithm of the
    sum. `online`: computed block by block, each rescaling what went before. What no bound reaches
    is still a share, between 0 and 1.
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
    # A share of a sum, whatever the scores: between 0 and 1, but for the roundings of both.
    most = 1 + p.within(roundings) + p.stored(2)
    return Near(value, np.fmin(bound, most) + p.tiny)


def normalised(
    rows: Near, kind: str, eps: float, gain: Near, bias: Array | None, p: Precision
) -> Near:
    r"""Return a norm of each row: $g c / \sqrt{mean(c^2) + ε} + b$; without centring if "rms".

    Its own: the mean is wrong by γ_{d+4} mean|x|, and the mean square by γ_{d+4} (mean x² + 2 |μ|
    mean|x|), which covers the difference of mean x² and μ² in one pass as well as Welford's
    updates; that is carried through the root exactly. In half precision, where sums are wider, each
    step may be stored: the mean, what is centred, its square, their mean, ε added, the root, one
    over it. Without bound where the mean square may be zero.
    """
    x, width = rows.value, rows.value.shape[-1]
    if p.exact:
        plain = centred(x, kind) / norm_scale(x, kind, eps) * gain.value
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
        # Σ c = 0, so that a wrong mean moves the mean square in second order only.
        square_error = square_error + 2 * mean(rows.error * np.abs(mu_error)) + mu_error**2
    square_error = square_error + sums * (mean(rows.size**2) + 2 * np.abs(mu) * mean(rows.size))
    square = mean(c**2) + eps
    # What is centred counts twice in its square; then the square, the mean and the sum with ε.
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
    stretch: Sequence[float] = (),
    *,
    p: Precision,
) -> Near:
    """Return queries or keys [..., pos, d_head] turned by their positions.

    An angle p · base^(-2i/dims) made inside an operation is wrong by its share of the rounding of
    exponent, power and product; each sine and cosine by the library and by being stored, and by
    being stored again where it is multiplied by a scale.
    """
    pair = np.arange(dims // 2)
    first, second = (
        (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + dims // 2)
    )
    exponent = 2 * pair / dims * np.log(base)
    angle = np.arange(rows.value.shape[-2])[:, None] * rotary_frequencies(dims, base, stretch)
    scale = rotary_scale(stretch)
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    relative = 2 * LIBRARY + 2 + 3 * np.abs(exponent)
    angle_error = p.inner * angle * _after_stretch(relative, dims, base, stretch)
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


def _after_stretch(relative: Array, dims: int, base: float, stretch: Sequence[float]) -> Array:
    """Return how many units of rounding a frequency is wrong by after a stretch.

    A factor alone is one division more. By bands, the share s = (turns - low)/(high - low) of the
    plain frequency f is wrong by what f is and 3 roundings, times turns/(high - low), and 2 more;
    and f' = f/factor + s f (1 - 1/factor) by f (1 - 1/factor) times that, and 4 of its own. The
    shares of YaRN are s and 1 - s of whole numbers, by 2 roundings and 3.
    """
    if len(stretch) < 2:
        return relative + len(stretch)
    factor, low, high, context, *scale = stretch
    plain = rotary_frequencies(dims, base)
    if scale:
        shared = rotary_frequencies(dims, base, stretch)
        both = (shared < 0.999999 * plain) & (shared > 1.000001 * plain / factor)
        return np.asarray(relative + 4 + np.where(both, 5 * plain / shared, 0.0))
    turns = context * plain / (2 * np.pi)
    mixed = (turns > 0.999 * low) & (turns < 1.001 * high)  # rounding may decide for either side
    share = (relative + 3) * turns / (high - low) + 2
    moved = share * (1 - 1 / factor) * plain / rotary_frequencies(dims, base, stretch)
    wrong: Array = relative + 4 + np.where(mixed, np.abs(moved), 0.0)
    return wrong
