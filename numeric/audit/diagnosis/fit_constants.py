"""Fit one constant of the model to a wrong activation whose inputs were not recorded.

If only logits were recorded, many mistakes amount to one number: another ε, another rotary base, a
factor at one kind of hook point. The number is fitted by a secant method on the error along its
derivative, and reported only if the reference with it gives the recorded activation within the
tolerance of correct code. This distinguishes an ε that is wrong by 10 % from a step in single
precision.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from otimes.numeric.audit.diagnosis.fit import number_of
from otimes.numeric.audit.diagnosis.screening import cut
from otimes.numeric.audit.mistakes.scores import capped_at
from otimes.numeric.audit.reference.comparison import Comparison, Recording, compare
from otimes.numeric.audit.reference.edits import (
    CUBE,
    ROOT,
    after,
    config_to,
    sigmoid_with,
    tanh_gelu_with,
    times,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake
from otimes.numeric.block import kind_of
from otimes.numeric.config import Config
from otimes.numeric.progress import tracked
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Array, Near

STEPS = 12
"""The largest number of steps; a secant method that converges needs fewer."""

GAINED = 0.9
"""A step along the derivative must leave less than this share of the error."""

FIRST_STEP = 2.0**-12
"""The first step, relative to the right number."""

SINGLE = 2.0**-23
"""A number with a smaller relative error is the right one in single precision."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A constant to be fitted, as a factor times the right value.

    `says` has {} for the fitted number, which is the factor times `right`.
    """

    says: str
    kinds: tuple[str, ...]
    act: Callable[[float], Act]
    right: float = 1.0
    value: Callable[[float], float] | None = None
    """The fitted number as a function of the factor, where it is no product."""

    def mistake(self, factor: float, layer: int | None = None) -> Mistake:
        """Return the mistake with that factor, in one layer or in all."""
        acts = dict.fromkeys(self.kinds, self.act(factor))
        return Mistake(self.says, acts, layer=layer)


FACTORED = {
    "embed": "the embedding",
    "scores": "the scores",
    "attn_out": "the output of attention",
    "mlp_out": "the output of the MLP",
    "logits": "the logits",
    "resid_post": "the stream after a layer",
    "v": "the values",
}
ROOT_SAYS = "tanh GELU with {} for √(2/π)"


def unknowns(config: Config, hidden: set[str]) -> Iterator[Unknown]:
    """Yield the constants of a model that act at some kinds of hook points, by size of effect."""
    norms = tuple(kind for kind in ("ln1", "ln2", "ln_final") if kind in hidden)
    if config.norm_eps:
        for kinds in dict.fromkeys((norms, *((kind,) for kind in norms))):
            only = "" if kinds == norms else f" (in {kinds[0]} only)"
            says = f"a norm with ε = {{}} and not {config.norm_eps:g}{only}"
            if kinds:
                yield Unknown(says, kinds, partial(_setting, config, "norm_eps"), config.norm_eps)
    if config.positions == "rotary":
        says = f"rotary angles of base {{}} and not {config.rotary_base:g}"
        base = partial(_setting, config, "rotary_base")
        yield Unknown(says, ("q", "k"), base, config.rotary_base)
        yield from _stretches(config)
    if "mlp_post" in hidden:
        yield from _of_activation(config)
    if "scores" in hidden:
        yield Unknown("scores soft-capped at {}: c tanh(x / c)", ("scores",), _capped, value=_cap)
        says = "scores with a bias for distance (ALiBi), {} for each position"
        yield Unknown(says, ("scores",), _less_far_away, value=lambda factor: 1 - factor)
    for kind, called in FACTORED.items():
        if kind in hidden:
            yield Unknown(f"{called} multiplied by {{}}: another scale", (kind,), times)


def _stretches(config: Config) -> Iterator[Unknown]:
    """Yield the numbers that scale rotary frequencies, named as in their configurations."""
    stretch = config.rotary_stretch
    if config.rotary_by_length:
        return
    kind, names = YARN if len(stretch) > 4 else LLAMA if len(stretch) > 1 else LINEAR
    for index, (name, right) in enumerate(zip(names, stretch, strict=False)):
        says = f"{kind} scaling of rotary frequencies with {name} = {{}} and not {right:g}"
        yield Unknown(says, ("q", "k"), partial(_stretched, config, index), right)


LINEAR = "linear", ("factor",)
LLAMA = "Llama 3", ("factor", "low_freq_factor", "high_freq_factor", "the original length")
YARN = "YaRN", ("factor", "beta_slow", "beta_fast", "the original length", "attention factor")


NARROW = 1 - 2.0**-20
"""The largest quotient of the ends of a ramp that is tried."""


def _stretched(config: Config, index: int, factor: float) -> Act:
    stretch = [*config.rotary_stretch]
    stretch[index] *= factor
    if len(stretch) > 1:  # the ends of a ramp keep their order
        low, high = stretch[1:3]
        stretch[index] = {1: min(low, high * NARROW), 2: max(high, low / NARROW)}.get(
            index, stretch[index]
        )
    return config_to(rotary_stretch=tuple(stretch))


def _of_activation(config: Config) -> Iterator[Unknown]:
    """Yield the constants of an activation function."""
    kind = ("mlp_post",)
    if config.activation == "gelu_tanh":
        says = f"tanh GELU with {{}} for {CUBE}"
        yield Unknown(says, kind, lambda factor: tanh_gelu_with(cube=factor), CUBE)
        yield Unknown(ROOT_SAYS, kind, lambda factor: tanh_gelu_with(root=factor), ROOT)
    steep = {"silu": 1.0, "quick_gelu": 1.702}.get(config.activation or "", 0.0)
    if steep:
        says = f"x σ(β x) with β = {{}} and not {steep:g} for the activation"
        yield Unknown(says, kind, lambda factor: sigmoid_with(steep * factor), steep)


def _cap(factor: float) -> float:
    """Return the c of c tanh(x / c) for the factor 1 + 1 / c²."""
    return float((factor - 1) ** -0.5) if factor > 1 else np.inf


def _capped(factor: float) -> Act:
    return capped_at(_cap(factor)) if factor > 1 else times(1.0)


def _less_far_away(factor: float) -> Act:
    def biased(at: At, near: Near) -> Near:
        positions = np.arange(at.n_pos)
        value = near.value + (1 - factor) * (positions[:, None] - positions)
        return Near(value, near.error + 3 * at.p.unit * np.abs(value))

    return after(biased)


def _setting(config: Config, name: str, factor: float) -> Act:
    return config_to(**{name: factor * getattr(config, name)})


def another_number(compared: Comparison, place: str, hidden: set[str], layers: list[int]) -> str:
    """Return the diagnosis that another constant explains an activation, or ""."""
    if hidden == {kind_of(place)} - {"scores", "mlp_post"}:
        return ""  # the place itself is fitted elsewhere
    config, n_pos = compared.model.config, len(compared.prompts[0].tokens)
    first = _first_tokens(compared, place)
    tried = [(each, layer) for each in unknowns(config, hidden) for layer in _layers(each, layers)]
    found: list[str] = []
    fitted: tuple[tuple[str, ...], int | None] | None = None
    for unknown, layer in tracked(tried, "looking for another number"):
        # Other numbers of the same operations may fit as well: then all are named.
        if fitted not in (None, (unknown.kinds, layer)):
            continue
        # The first tokens are cheaper, and must be explained as well.
        if first is not None and _solved(first, place, unknown, layer) is None:
            continue
        factor = _solved(compared, place, unknown, layer)
        if factor is None or abs(factor - 1) <= SINGLE:
            continue
        if compared.ratio(place, (unknown.mistake(factor, layer),)) <= 1:
            value = _said(unknown, factor, config, n_pos)
            where = "" if layer is None else f" (in layer {layer})"
            found.append(f"{unknown.says.format(value)}{where}")
            fitted = unknown.kinds, layer
    return f"matches {'; or '.join(found)}" if found else ""


def _said(unknown: Unknown, factor: float, config: Config, n_pos: int) -> str:
    if unknown.value is not None:
        return f"{unknown.value(factor):.6g}"
    if unknown.right == 1:
        return number_of(config, n_pos, factor)
    return f"{factor * unknown.right:.8g}"


FEWEST = 4
"""The smallest number of tokens to fit a constant to."""


def _first_tokens(compared: Comparison, place: str) -> Comparison | None:
    """Return the comparison on the tokens up to the first error, or None if that is all of them."""
    (prompt, *_), near = compared.prompts, compared.expected(place)[0]
    wrong = np.abs(prompt.places[place].value - near.value) > near.error
    rows = np.flatnonzero(np.moveaxis(wrong, -2, 0).reshape(len(prompt.tokens), -1).any(axis=1))
    length = max(FEWEST, int(rows[0]) + 1) if rows.size else len(prompt.tokens)
    if length >= len(prompt.tokens):
        return None
    places = {name: cut(near, name, length) for name, near in prompt.places.items()}
    return compare(compared.model, [Recording(prompt.tokens[:length], places)], compared.dtype)


def _layers(unknown: Unknown, layers: list[int]) -> list[int | None]:
    """Return the layers in which a constant may be wrong; None stands for all layers."""
    everywhere = len(layers) < 2 or set(unknown.kinds) <= {"embed", "ln_final", "logits"}
    return [None] if everywhere else [None, *layers]


def _solved(compared: Comparison, place: str, unknown: Unknown, layer: int | None) -> float | None:
    """Return the factor at which the error of an activation along the derivative vanishes.

    None if the error has another direction, or no factor is found.
    """
    right = compared.expected(place)[0]
    claimed = np.isfinite(np.broadcast_to(np.asarray(right.error), right.value.shape))
    shown = compared.recorded[place].value[claimed]

    def off(factor: float) -> Array:
        value = compared.quick(place, unknown.mistake(factor, layer)).value[claimed]
        return np.asarray(shown - value)

    here, there = 1.0, 1 + FIRST_STEP
    before, after = shown - right.value[claimed], off(there)
    for _ in range(STEPS):
        slope = (after - before) / (there - here)
        steep, size = float(slope @ slope), float(np.linalg.norm(after))
        if not (np.isfinite(steep) and steep and np.isfinite(size)):
            return None
        step = -float(after @ slope) / steep
        # An error that hardly decreases along the derivative has another cause.
        if np.linalg.norm(after + step * slope) > GAINED * size:
            return there if size < 1e-3 * np.linalg.norm(shown - right.value[claimed]) else None
        here, before = there, after
        there = float(np.clip(there + step, there / 4, there * 4))
        if there == here:
            break
        after = off(there)
    return there
