"""What a reading of a place is, and what readings are found by: see `readings`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from numeric.audit.evaluate import Mistake, layer_of
from numeric.audit.judge import Judge
from numeric.audit.mistakes import known_mistakes
from numeric.rounding.linear import Array, Near

Replaced = list[dict[str, Near]]


@dataclass(frozen=True, slots=True)
class Reading:
    """A named transformation, the places as it has them, and what it needs to be believed.

    `touches`: the places that it speaks of. `by_itself`: the function is unchanged whatever reads
    the place, and nothing need confirm it. `must_change`: a confirming place must have been wrong
    without the reading. `confirms`: that a place can be read so confirms what stands before it; a
    vector that is free to be anything does not. `unless_right`: nothing but a reader that is right
    without the reading speaks against it; one that is wrong in any case does not.
    """

    says: str
    places: Replaced
    touches: frozenset[str]
    by_itself: bool = False
    must_change: bool = False
    confirms: bool = True
    unless_right: bool = False


def hidden(judge: Judge, *names: str) -> Replaced:
    """Return the places without some, which are then taken as not shown."""
    return [{n: v for n, v in p.places.items() if n not in names} for p in judge.prompts]


def changed(judge: Judge, name: str, change: Callable[[Near], Near]) -> Replaced:
    """Return the places with one of them put into our coordinates."""
    return [{**p.places, name: change(p.places[name])} for p in judge.prompts]


def named(judge: Judge, name: str) -> Mistake | None:
    """Return the known mistake of that name, if such a model can have it."""
    found = [m for m in known_mistakes(judge.model.config) if m.name == name]
    return found[0] if found else None


def explains(judge: Judge, place: str, name: str) -> bool:
    """Return whether a known mistake gives what a place was shown to be."""
    mistake = named(judge, name)
    return mistake is not None and judge.ratio(place, (mistake,)) <= 1


def here(judge: Judge, place: str, kinds: tuple[str, ...]) -> list[str]:
    """Return the shown places of some kinds in the layer of a place."""
    shown = judge.prompts[0].places
    return [f"{k}.{layer_of(place)}" for k in kinds if f"{k}.{layer_of(place)}" in shown]


def in_a_basis(judge: Judge, place: str, ours: list[Near], moved_on: bool = False) -> bool:
    """Return whether each head's rows are ours times one matrix, where there are rows enough.

    `moved_on`: a constant row may have been taken away, to be added later.
    """
    shown = [prompt.places[place] for prompt in judge.prompts]
    rows = sum(near.value.shape[1] for near in ours)
    width = ours[0].value.shape[2]
    if rows < width + 4:
        return True  # vacuous: whatever confirms it must do so alone
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
        granted = 4 * (spread + bound.mean() + _own(a, moved, judge)) + stored
        if (np.abs(a @ moved - b) > granted).any():
            return False
    return True


def _own(a: Array, b: Array, judge: Judge) -> Array:
    return np.asarray(6 * judge.unit * np.sqrt(len(b)) * np.sqrt(a**2 @ b**2))


def resolved(shift: Array, right: Array, unit: float) -> bool:
    """Return whether rows that are moved, each by one number, still tell what they were.

    A shift costs what lies below its rounding. It is no larger than what is moved, or leaves the
    differences in the rows standing out of 4 roundings of its own: else any row would fit. Entries
    that are not compared are NaN.
    """
    off = right - np.nanmean(right, axis=-1, keepdims=True)
    spread = np.sqrt(np.nanmean(off**2))
    largest = np.abs(shift).max()
    return bool(largest <= 4 * np.nanmax(np.abs(right)) or 4 * unit * largest <= spread / 2)
