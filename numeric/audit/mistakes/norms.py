"""Mistakes in the norms: their statistics, gain, bias and ε."""

from collections.abc import Callable, Iterator

import numpy as np

from otimes.numeric.audit.reference.edits import (
    config_to,
    has_bias,
    only,
    weights_to,
    with_config,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import Config
from otimes.numeric.functions import centred
from otimes.numeric.rounding.linear import Array, Near, added
from otimes.numeric.rounding.places import At
from otimes.numeric.rounding.precision import Precision

EPSILONS = (0.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
NORMS = ("ln1", "ln2", "ln_final")


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of norms."""
    if config.norm == "none":
        return
    norms = _norms(config)
    layered = config.norm == "layer"
    named = "a LayerNorm" if layered else "an RMSNorm"

    def everywhere(name: str, says: str, act: Act, rank: int = 1) -> Mistake:
        return Mistake(name, says, dict.fromkeys(norms, act), rank)

    def affine(name: str, says: str, rank: int = 1, **parts: Callable[[Array], Array]) -> Mistake:
        acts = {n: weights_to(**{f"{n}_{part}": f for part, f in parts.items()}) for n in norms}
        return Mistake(name, f"{named} {says}", acts, rank)

    yield everywhere(
        "norm_missing", f"without the {named.split()[1]}: the stream is passed on", _skip, 0
    )
    yield affine("gain_missing", "without its gain", 0, gain=np.ones_like)
    yield affine("gain_twice", "whose gain is applied twice", gain=np.square)
    yield affine("gain_plus_one", "with gain 1 + g for g", gain=lambda g: 1 + g)
    if layered:
        none = {"gain": np.ones_like, "bias": np.zeros_like}
        yield affine("norm_bias_missing", "without its bias", 0, bias=np.zeros_like)
        yield affine("norm_affine_missing", "without its gain and bias", 0, **none)
        yield affine("norm_bias_twice", "whose bias is added twice", bias=lambda b: 2 * b)
        says = "a LayerNorm whose bias is added before the gain multiplies"
        yield Mistake("norm_bias_first", says, {norm: _bias_first(norm) for norm in norms})
        yield everywhere(
            "rms_for_layer", "an RMSNorm for the LayerNorm: nothing is centred", _rms_and_bias
        )
        yield everywhere(
            "rms_for_layer_without_bias",
            "an RMSNorm for the LayerNorm: nothing is centred, and no bias added",
            _rms,
        )
        yield everywhere(
            "variance_about_zero",
            "a LayerNorm whose variance is taken about zero and not about the mean",
            _other_scale(lambda x: np.sqrt((x**2).mean(-1, keepdims=True))),
        )
        yield everywhere(
            "unbiased_variance",
            "a LayerNorm with the unbiased variance, divided by d - 1 and not by d",
            _statistic(lambda c, eps, d: np.sqrt((c**2).sum(-1, keepdims=True) / (d - 1) + eps)),
        )
        yield everywhere(
            "unbiased_std_eps_outside",
            "a LayerNorm with the unbiased deviation (divided by d - 1), and ε added to it outside "
            "the root",
            _statistic(lambda c, eps, d: np.sqrt((c**2).sum(-1, keepdims=True) / (d - 1)) + eps),
        )
    else:
        yield everywhere(
            "layer_for_rms", "a LayerNorm for the RMSNorm: the mean is subtracted", _layer
        )
        yield everywhere(
            "variance_for_square",
            "an RMSNorm that divides by the deviation about the mean",
            _other_scale(lambda x: x.std(-1, keepdims=True)),
        )
        yield everywhere(
            "unbiased_square",
            "an RMSNorm whose mean square is divided by d - 1 and not by d",
            _statistic(lambda c, eps, d: np.sqrt((c**2).sum(-1, keepdims=True) / (d - 1) + eps)),
        )
    yield everywhere(
        "sum_for_mean",
        f"{named} with the sum of squares for their mean (an L2 norm)",
        _statistic(lambda c, eps, d: np.sqrt((c**2).sum(-1, keepdims=True) + eps)),
    )
    yield everywhere(
        "eps_outside",
        f"{named} whose ε is added outside the root",
        _statistic(lambda c, eps, d: np.sqrt((c**2).mean(-1, keepdims=True)) + eps),
    )
    yield everywhere(
        "variance_for_deviation",
        f"{named} that divides by the variance and not by its root",
        _statistic(lambda c, eps, d: (c**2).mean(-1, keepdims=True) + eps),
    )
    yield everywhere(
        "positions_normalised", f"{named} over the wrong axis: over the positions", _over_positions
    )
    yield everywhere(
        "whole_normalised",
        f"{named} over the wrong axes: over positions and features together",
        _over_all,
    )
    yield everywhere(
        "variance_of_all_positions",
        f"{named} whose variance is averaged over all positions: one divisor for the prompt",
        _statistic(lambda c, eps, d: np.sqrt((c**2).mean() + eps)),
    )
    if config.final_norm:
        yield Mistake(
            "final_norm_twice", "the final norm applied twice", {"ln_final": _twice_normalised}
        )
    for eps in EPSILONS:
        if eps != config.norm_eps:
            yield everywhere(
                f"eps_{eps:g}",
                f"{named} with ε = {eps:g} and not {config.norm_eps:g}",
                config_to(norm_eps=eps),
            )


def _norms(config: Config) -> tuple[str, ...]:
    has = {"ln1": config.n_layers > 0, "ln2": config.d_mlp > 0, "ln_final": config.final_norm}
    return tuple(norm for norm in NORMS if has[norm])


def _skip(at: At, operation: Operation) -> Near:
    return at.only()


def _twice_normalised(at: At, operation: Operation) -> Near:
    return operation(only(at, operation(at)))


def _rms(at: At, operation: Operation) -> Near:
    return operation(with_config(at, norm="rms"))


def _rms_and_bias(at: At, operation: Operation) -> Near:
    return added(at.p, _rms(at, operation), Near.exactly(_bias(at)))


def _layer(at: At, operation: Operation) -> Near:
    return operation(with_config(at, norm="layer"))


def _statistic(scale: Callable[[Array, float, int], Array]) -> Act:
    """Return the change of the divisor of the (centred) rows."""

    def act(at: At, operation: Operation) -> Near:
        right = operation(at)
        rows, eps, kind = at.only().value, at.config.norm_eps, at.config.norm
        c = centred(rows, kind)
        usual = np.sqrt((c**2).mean(-1, keepdims=True) + eps)
        other = scale(c, eps, rows.shape[-1])
        return _rescaled(at, right, usual / other)

    return act


def _other_scale(scale: Callable[[Array], Array]) -> Act:
    """Return the change of the divisor to another statistic of the uncentred rows, with ε."""

    def act(at: At, operation: Operation) -> Near:
        right = operation(at)
        rows, eps = at.only().value, at.config.norm_eps
        usual = np.sqrt((centred(rows, at.config.norm) ** 2).mean(-1, keepdims=True) + eps)
        other = np.sqrt(scale(rows) ** 2 + eps)
        return _rescaled(at, right, usual / other)

    return act


def _rescaled(at: At, right: Near, factor: np.ndarray) -> Near:
    """Return the output of a norm with its rows, before the bias, multiplied by a factor."""
    bias = _bias(at)
    value = (right.value - bias) * factor + bias
    grown = np.maximum(np.abs(factor), 1.0)
    again = 4 * at.p.unit * (np.abs(value) + 2 * np.abs(bias) + np.abs(right.value) * grown)
    return Near(value, right.error * grown + again)


def _bias(at: At) -> np.ndarray:
    name = _name(at)
    return at.weights[f"{name}_bias"] if has_bias(at, f"{name}_bias") else np.zeros(1)


def _name(at: At) -> str:
    if at.weights.layer is None:
        return "ln_final"
    return at.weights.kind


def _bias_first(norm: str) -> Act:
    def act(at: At, operation: Operation) -> Near:
        gain, bias = at.weights[f"{norm}_gain"], at.weights[f"{norm}_bias"]
        return operation(with_weights(at, **{f"{norm}_bias": gain * bias}))

    return act


def _over_positions(at: At, operation: Operation) -> Near:
    return _normalised_by(at, operation, -2)


def _over_all(at: At, operation: Operation) -> Near:
    return _normalised_by(at, operation, (-2, -1))


def _normalised_by(at: At, operation: Operation, axis: int | tuple[int, int]) -> Near:
    """Return the norm with its statistics over another axis."""
    rows = at.only().value
    c = rows - rows.mean(axis=axis, keepdims=True) if at.config.norm == "layer" else rows
    scale = np.sqrt((c**2).mean(axis=axis, keepdims=True) + at.config.norm_eps)
    name = _name(at)
    scaled = c / scale * at.weights[f"{name}_gain"]
    value = scaled + _bias(at)
    if at.p.exact:
        return Near.exactly(value)
    p: Precision = at.p
    terms = rows.shape[-1] + len(rows) + 8
    return Near(value, p.within(terms) * (3 * np.abs(scaled).max() + np.abs(value)))
