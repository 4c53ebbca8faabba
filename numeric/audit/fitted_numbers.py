"""Which number of the model is another one, read off a place that lies behind much that is hidden.

Where only logits are shown, a mistake that is not in the table is seen from far away. Many of them
are one number: another ε, another base of the rotary angles, a factor at one kind of place. Such a
number is fitted (a secant method on the deviation along the place's derivative), and said only if
the reference with it gives what was shown within the distance that correct code is granted, which
no rounding of anything does. So another ε by a tenth is told from a step in single precision.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from numeric.audit.change import after, config_to, times
from numeric.audit.evaluate import Act, Mistake
from numeric.audit.fitted import number_of
from numeric.audit.judge import Judge, Shown
from numeric.audit.mistakes_mlp import CUBE, ROOT, tanh_gelu_with
from numeric.audit.mistakes_scores import capped_at
from numeric.audit.sieve import cut
from numeric.config import Config
from numeric.progress import tracked
from numeric.rounding.linear import Array, Near
from numeric.rounding.places import At, kind_of

STEPS = 12
"""A number that is not found in so many steps is none: a secant that converges needs fewer."""

GAINED = 0.9
"""A step along the derivative that leaves more than this of a deviation leads nowhere."""

FIRST_STEP = 2.0**-12
"""The first step from the right number, as a share of it."""

SINGLE = 2.0**-23
"""A number that is off by less than this is the right one, stored in single precision."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A number that the implementation may have otherwise: a factor 1 is the right one.

    `says` has {} where the number stands that a factor makes of the `right` one.
    """

    says: str
    kinds: tuple[str, ...]
    act: Callable[[float], Act]
    right: float = 1.0
    value: Callable[[float], float] | None = None
    """The number that a factor means, where it is not the factor times the right one."""

    def mistake(self, factor: float, layer: int | None = None) -> Mistake:
        """Return the mistake of having that factor, in one layer or in all."""
        acts = dict.fromkeys(self.kinds, self.act(factor))
        return Mistake(f"number_{self.kinds[0]}", self.says, acts, layer=layer)


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
    """Yield the numbers that such a model has behind a place, the smallest effects first."""
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
    if config.activation == "gelu_tanh" and not config.gated and "mlp_post" in hidden:
        says = f"tanh GELU with {{}} for {CUBE}"
        yield Unknown(says, ("mlp_post",), lambda c: tanh_gelu_with(cube=c), CUBE)
        yield Unknown(ROOT_SAYS, ("mlp_post",), lambda c: tanh_gelu_with(root=c), ROOT)
    if "scores" in hidden:
        yield Unknown("scores soft-capped at {}: c tanh(x / c)", ("scores",), _capped, value=_cap)
        says = "scores with a bias for distance (ALiBi), {} for each position"
        yield Unknown(says, ("scores",), _less_far_away, value=lambda factor: 1 - factor)
    for kind, called in FACTORED.items():
        if kind in hidden:
            yield Unknown(f"{called} multiplied by {{}}: another scale", (kind,), times)


def _cap(factor: float) -> float:
    """Return c of c tanh(x / c), of which 1 + 1 / c² is made in small steps from 1."""
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


def another_number(judge: Judge, place: str, hidden: set[str], layers: list[int]) -> str:
    """Return which one number explains a place that is far from what is shown, or nothing."""
    if hidden == {kind_of(place)} - {"scores"}:
        return ""  # it is read off the place itself
    config, n_pos = judge.model.config, len(judge.prompts[0].tokens)
    first = _first_tokens(judge, place)
    tried = [(each, layer) for each in unknowns(config, hidden) for layer in _layers(each, layers)]
    for unknown, layer in tracked(tried, "looking for another number"):
        # What does not explain the first tokens explains no prompt, and is seen there sooner.
        if first is not None and _solved(first, place, unknown, layer) is None:
            continue
        factor = _solved(judge, place, unknown, layer)
        if factor is None or abs(factor - 1) <= SINGLE:
            continue
        if judge.ratio(place, (unknown.mistake(factor, layer),)) <= 1:
            value = _said(unknown, factor, config, n_pos)
            where = "" if layer is None else f" (in layer {layer})"
            return f"matches {unknown.says.format(value)}{where}"
    return ""


def _said(unknown: Unknown, factor: float, config: Config, n_pos: int) -> str:
    if unknown.value is not None:
        return f"{unknown.value(factor):.6g}"
    if unknown.right == 1:
        return number_of(config, n_pos, factor)
    return f"{factor * unknown.right:.8g}"


FEWEST = 4
"""A number is not looked for on fewer tokens than these."""


def _first_tokens(judge: Judge, place: str) -> Judge | None:
    """Return a judge of the first tokens, up to one where the place is wrong, if there are more."""
    (prompt, *_), near = judge.prompts, judge.expected(place)[0]
    wrong = np.abs(prompt.places[place].value - near.value) > near.error
    rows = np.flatnonzero(np.moveaxis(wrong, -2, 0).reshape(len(prompt.tokens), -1).any(axis=1))
    length = max(FEWEST, int(rows[0]) + 1) if rows.size else len(prompt.tokens)
    if length >= len(prompt.tokens):
        return None
    places = {name: cut(near, name, length) for name, near in prompt.places.items()}
    return Judge(judge.model, [Shown(prompt.tokens[:length], places)], judge.dtype)


def _layers(unknown: Unknown, layers: list[int]) -> list[int | None]:
    """Return where a number may be wrong: everywhere, or in one layer."""
    everywhere = len(layers) < 2 or set(unknown.kinds) <= {"embed", "ln_final", "logits"}
    return [None] if everywhere else [None, *layers]


def _solved(judge: Judge, place: str, unknown: Unknown, layer: int | None) -> float | None:
    """Return the factor at which the deviation of a place, along its derivative, is none.

    None where the deviation has another direction, or where no factor is found.
    """
    right = judge.expected(place)[0]
    claimed = np.isfinite(np.broadcast_to(np.asarray(right.error), right.value.shape))
    shown = judge.prompts[0].places[place].value[claimed]

    def off(factor: float) -> Array:
        value = judge.quick(place, unknown.mistake(factor, layer)).value[claimed]
        return np.asarray(shown - value)

    here, there = 1.0, 1 + FIRST_STEP
    before, after = shown - right.value[claimed], off(there)
    for _ in range(STEPS):
        slope = (after - before) / (there - here)
        steep, size = float(slope @ slope), float(np.linalg.norm(after))
        if not (np.isfinite(steep) and steep and np.isfinite(size)):
            return None
        step = -float(after @ slope) / steep
        # Where hardly anything is gained along the derivative, the deviation is something else.
        if np.linalg.norm(after + step * slope) > GAINED * size:
            return there if size < 1e-3 * np.linalg.norm(shown - right.value[claimed]) else None
        here, before = there, after
        there = float(np.clip(there + step, there / 4, there * 4))
        if there == here:
            break
        after = off(there)
    return there
