"""Mistakes in the norms: their statistics, gain, bias and ε."""

from collections.abc import Callable, Iterator

import numpy as np

from otimes.numeric.audit.reference.edits import (
    affine_to,
    config_to,
    only,
    with_config,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import NORMS, Act, Mistake, Operation, makes_act
from otimes.numeric.block import kind_of, place_names
from otimes.numeric.config import Config
from otimes.numeric.functions import centred
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Array, Near, added

EPSILONS = (0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)

Divisor = Callable[[Array, Array, float], Array]
"""What rows are divided by, from the rows, the (centred) rows, and ε."""


def _mean_square(rows: Array) -> Array:
    return np.asarray((rows**2).mean(-1, keepdims=True))


def _unbiased(rows: Array) -> Array:
    return np.asarray((rows**2).sum(-1, keepdims=True) / (rows.shape[-1] - 1))


DIVISORS: dict[str, Divisor] = {
    "with the sum of squares for their mean (an L2 norm)": lambda x, c, eps: np.sqrt(
        (c**2).sum(-1, keepdims=True) + eps
    ),
    "that divides by the variance and not by its root": lambda x, c, eps: _mean_square(c) + eps,
    "whose variance is averaged over all positions: one divisor for the prompt": (
        lambda x, c, eps: np.sqrt((c**2).mean() + eps)
    ),
}
LAYER_DIVISORS: dict[str, Divisor] = {
    "whose variance is taken about zero and not about the mean": (
        lambda x, c, eps: np.sqrt(_mean_square(x) + eps)
    ),
    "with the unbiased variance, divided by d - 1 and not by d": (
        lambda x, c, eps: np.sqrt(_unbiased(c) + eps)
    ),
    "with the unbiased deviation (divided by d - 1), and ε added to it outside the root": (
        lambda x, c, eps: np.sqrt(_unbiased(c)) + eps
    ),
}
RMS_DIVISORS: dict[str, Divisor] = {
    "that divides by the deviation about the mean": (
        lambda x, c, eps: np.sqrt(x.var(-1, keepdims=True) + eps)
    ),
    "whose mean square is divided by d - 1 and not by d": (
        lambda x, c, eps: np.sqrt(_unbiased(c) + eps)
    ),
}


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of norms."""
    if config.norm == "none":
        return
    kinds = {kind_of(place) for place in place_names(config)}
    norms = tuple(norm for norm in NORMS if norm in kinds)
    layered = config.norm == "layer"
    named = "a LayerNorm" if layered else "an RMSNorm"

    def everywhere(says: str, act: Act, rank: int = 1) -> Mistake:
        return Mistake(says, dict.fromkeys(norms, act), rank)

    def affine(says: str, rank: int = 1, **parts: Callable[[Array], Array]) -> Mistake:
        return everywhere(f"{named} {says}", affine_to(**parts), rank)

    without = f"without the {named.split()[1]}: the stream is passed on"
    yield everywhere(without, lambda at, operation: at.only(), 0)
    yield affine("without its gain", 0, gain=np.ones_like)
    yield affine("whose gain is applied twice", gain=np.square)
    yield affine("with gain 1 + g for g", gain=lambda g: 1 + g)
    if layered:
        yield affine("without its bias", 0, bias=np.zeros_like)
        yield affine("without its gain and bias", 0, gain=np.ones_like, bias=np.zeros_like)
        yield affine("whose bias is added twice", bias=lambda b: 2 * b)
        yield everywhere("a LayerNorm whose bias is added before the gain multiplies", _bias_first)
        rms = "an RMSNorm for the LayerNorm: nothing is centred"
        yield everywhere(rms, _rms_and_bias)
        yield everywhere(f"{rms}, and no bias added", config_to(norm="rms"))
    else:
        says = "a LayerNorm for the RMSNorm: the mean is subtracted"
        yield everywhere(says, config_to(norm="layer"))
    for says, divisor in (DIVISORS | (LAYER_DIVISORS if layered else RMS_DIVISORS)).items():
        yield everywhere(f"{named} {says}", _divided_by(divisor))
    over = f"{named} over the wrong"
    yield everywhere(f"{over} axis: over the positions", _normalised_over(-2))
    says = f"{over} axes: over positions and features together"
    yield everywhere(says, _normalised_over((-2, -1)))
    if config.final_norm:
        says = "the final norm applied twice"
        yield Mistake(says, {"ln_final": lambda at, op: op(only(at, op(at)))})
    yield from other_eps(config, norms)


def other_eps(config: Config, norms: tuple[str, ...]) -> Iterator[Mistake]:
    """Yield mistakes of norms with another ε, or with ε added to the root."""
    named = "a LayerNorm" if config.norm == "layer" else "an RMSNorm"
    outside = _divided_by(lambda x, c, eps: np.sqrt(_mean_square(c)) + eps)
    yield Mistake(f"{named} whose ε is added outside the root", dict.fromkeys(norms, outside))
    for eps in EPSILONS:
        if eps != config.norm_eps:
            says = f"{named} with ε = {eps:g} and not {config.norm_eps:g}"
            yield Mistake(says, dict.fromkeys(norms, config_to(norm_eps=eps)))


def _rms_and_bias(at: At, operation: Operation) -> Near:
    return added(at.p, operation(with_config(at, norm="rms")), Near.exactly(_bias(at)))


@makes_act
def _divided_by(at: At, operation: Operation, divisor: Divisor) -> Near:
    """Act: divide the (centred) rows by something else."""
    right, rows, eps = operation(at), at.only().value, at.config.norm_eps
    c, bias = centred(rows, at.config.norm), _bias(at)
    factor = np.sqrt(_mean_square(c) + eps) / divisor(rows, c, eps)
    value = (right.value - bias) * factor + bias
    grown = np.maximum(np.abs(factor), 1.0)
    again = 4 * at.p.unit * (np.abs(value) + 2 * np.abs(bias) + np.abs(right.value) * grown)
    return Near(value, right.error * grown + again)


def _bias(at: At) -> Array:
    name = f"{at.weights.kind}_bias"
    return at.weights[name] if at.config.has(name) else np.zeros(1)


def _bias_first(at: At, operation: Operation) -> Near:
    norm = at.weights.kind
    gain, bias = at.weights[f"{norm}_gain"], at.weights[f"{norm}_bias"]
    return operation(with_weights(at, **{f"{norm}_bias": gain * bias}))


@makes_act
def _normalised_over(at: At, operation: Operation, axis: int | tuple[int, int]) -> Near:
    """Act: take the statistics of a norm over another axis."""
    rows = at.only().value
    c = rows - rows.mean(axis=axis, keepdims=True) if at.config.norm == "layer" else rows
    scale = np.sqrt((c**2).mean(axis=axis, keepdims=True) + at.config.norm_eps)
    scaled = c / scale * at.weights[f"{at.weights.kind}_gain"]
    value = scaled + _bias(at)
    if at.p.exact:
        return Near.exactly(value)
    terms = rows.shape[-1] + len(rows) + 8
    return Near(value, at.p.within(terms) * (3 * np.abs(scaled).max() + np.abs(value)))
