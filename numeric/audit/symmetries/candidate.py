"""The class `Rewrite`, a transformation that leaves the logits unchanged, and helpers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from otimes.numeric.audit.reference.comparison import Comparison
from otimes.numeric.audit.reference.evaluator import Act, Mistake, layer_of
from otimes.numeric.block import kind_of
from otimes.numeric.rounding.linear import Array, Near

Replaced = list[dict[str, Near]]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A named transformation, the transformed activations, and how it is confirmed.

    `touches`: the hook points that it concerns. `by_itself`: the logits are unchanged in any case,
    and no confirmation is needed. `must_change`: a confirming activation must have been wrong
    without it. `confirms`: it can confirm an earlier rewrite; one with a free vector cannot.
    `unless_right`: only a later activation that is right without the rewrite refutes it.
    """

    says: str
    places: Replaced
    touches: frozenset[str]
    by_itself: bool = False
    must_change: bool = False
    confirms: bool = True
    unless_right: bool = False


def hidden(compared: Comparison, *names: str) -> Replaced:
    """Return the activations without the given ones, which then count as not recorded."""
    return [{n: v for n, v in p.places.items() if n not in names} for p in compared.prompts]


def hiding(compared: Comparison, says: str, *names: str, **options: bool) -> Rewrite:
    """Return the rewrite under which the given activations count as not recorded."""
    return Rewrite(says, hidden(compared, *names), frozenset(names), **options)


def unseen(compared: Comparison, says: str, place: str, **options: bool) -> Rewrite:
    """Return the rewrite that affects an activation only, and none after it."""
    return Rewrite(says, hidden(compared), frozenset({place}), by_itself=True, **options)


def changed(compared: Comparison, changes: Mapping[str, Callable[[Near], Near]]) -> Replaced:
    """Return the activations with some of them transformed."""
    return [
        {n: changes[n](near) if n in changes else near for n, near in p.places.items()}
        for p in compared.prompts
    ]


def explains(compared: Comparison, place: str, act: Act, made_at: str = "") -> bool:
    """Return whether an act, a change of its operation, explains an activation.

    The operation is that of `made_at`, by default its own. That of other layers is right: there
    the logits are unchanged too.
    """
    made = made_at or place
    mistake = Mistake("", {kind_of(made): act}, layer=layer_of(made))
    return compared.ratio(place, (mistake,)) <= 1


def here(compared: Comparison, place: str, kinds: tuple[str, ...]) -> list[str]:
    """Return the recorded hook points of some kinds in the layer of a hook point."""
    shown = compared.recorded
    return [f"{k}.{layer_of(place)}" for k in kinds if f"{k}.{layer_of(place)}" in shown]


def in_a_basis(compared: Comparison, place: str, ours: list[Near], moved_on: bool = False) -> bool:
    """Return whether each head's rows are those of the reference times one matrix.

    True where there are too few rows to tell. `moved_on`: up to a constant row, added later.
    """
    shown = [prompt.places[place] for prompt in compared.prompts]
    rows = sum(near.value.shape[1] for near in ours)
    width = ours[0].value.shape[2]
    if rows < width + 4:
        return True  # underdetermined: something else must confirm it
    for head in range(ours[0].value.shape[0]):
        a = np.concatenate([near.value[head] for near in ours])
        b = np.concatenate([near.value[head] for near in shown])
        if moved_on:
            a = np.concatenate([a, np.ones((len(a), 1))], axis=1)
        moved = np.linalg.lstsq(a, b, rcond=None)[0]
        if not np.isfinite(moved).all():
            return False
        bound = np.concatenate([np.asarray(near.error[head]) for near in ours])
        spread = np.sqrt(bound**2 @ moved[: bound.shape[1]] ** 2)
        # What a fit leaves of the errors of a column is no longer than these are together.
        stored = np.linalg.norm(np.concatenate([near.error[head] for near in shown]), axis=0)
        granted = 4 * (spread + bound.mean() + _own(a, moved, compared)) + stored
        if (np.abs(a @ moved - b) > granted).any():
            return False
    return True


def _own(a: Array, b: Array, compared: Comparison) -> Array:
    return np.asarray(6 * compared.unit * np.sqrt(len(b)) * np.sqrt(a**2 @ b**2))


def resolved(shift: Array, right: Array, unit: float) -> bool:
    """Return whether rows shifted by one number each can still be compared.

    A large shift loses the digits below its rounding error. It must be no larger than the rows, or
    the differences within the rows must exceed 4 roundings of it: otherwise any row would fit.
    Entries that are not compared are NaN.
    """
    off = right - np.nanmean(right, axis=-1, keepdims=True)
    spread = np.sqrt(np.nanmean(off**2))
    largest = np.abs(shift).max()
    return bool(largest <= 4 * np.nanmax(np.abs(right)) or 4 * unit * largest <= spread / 2)
