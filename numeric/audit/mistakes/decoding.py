"""Mistakes of cached decoding: a cache that is stale or has holes, and shifted positions.

The first tokens of a prompt are run together; each later one is run alone, and attends to cached
keys and values. A mistake shows from the first decoded token on.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from otimes.numeric.audit.mistakes.patterns import attends
from otimes.numeric.audit.reference.evaluator import Mistake, Operation, makes_act
from otimes.numeric.config import Config
from otimes.numeric.functions import rotary_scale, rotate
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Array, Near

Hidden = Callable[[Array, Array, int], Array]
"""Which cached keys j a decoded query i does not see; the third argument is the prefill."""

HIDDEN: dict[str, Hidden] = {
    "a stale cache: no decoded token is added, each sees the prefill and itself": (
        lambda i, j, first: (j >= first) & (j < i)
    ),
    "a dropped cache: each decoded token sees itself only": lambda i, j, first: j < i,
    "a stale cache: each decoded token overwrites the one before, and the last of the prefill": (
        lambda i, j, first: (j >= first - 1) & (j < i)
    ),
    "a cache that lags by one: no decoded token sees the one before it": (
        lambda i, j, first: j == i - 1
    ),
    "a decoded token that does not see itself": lambda i, j, first: j == i,
    "a cache with a hole: the last token of the prefill is missing": (
        lambda i, j, first: j == first - 1
    ),
    "a cache with a hole: the first decoded token is missing": (
        lambda i, j, first: (j == first) & (j < i)
    ),
    "a cache with a hole: the first token of the prompt is missing": lambda i, j, first: j == 0,
    "a dropped prefill: decoded tokens see decoded tokens only": lambda i, j, first: j < first,
    "a causal mask aligned at the top left: a decoded token sees the first key only": (
        lambda i, j, first: j > 0
    ),
}

Slots = Callable[[int, int], list[int]]
"""The token in each slot of the cache that query i reads, -1 for zeros; then the prefill."""


def _right(i: int, first: int) -> list[int]:
    return [*range(i + 1)]


def _zeros(i: int, first: int) -> list[int]:
    return [*range(first), *[-1] * (i + 1 - first)]


def _earlier(i: int, first: int) -> list[int]:
    return [*range(first - 1), *range(first, i + 1), -1]


def _later(i: int, first: int) -> list[int]:
    return [*range(first), -1, *range(first, i)]


def _in_first_slot(i: int, first: int) -> list[int]:
    return [i, *range(1, first), *[-1] * (i + 1 - first)]


def _newest_first(i: int, first: int) -> list[int]:
    return [*range(i, first - 1, -1), *range(first)]


SLOTS: dict[str, Slots] = {
    "a stale cache: {} of decoded tokens are not written, and zeros are read": _zeros,
    "a cache written one slot too early: {} overwrite those of the token before": _earlier,
    "a cache written one slot too late: zeros are read before {} of decoded tokens": _later,
    "a cache whose first slot is overwritten by {} of each decoded token": _in_first_slot,
    "a cache in another order: {} of decoded tokens come before the others": _newest_first,
}
WRITTEN = {"keys and values": (True, True), "keys": (True, False), "values": (False, True)}

Place = Callable[[Array, int], Array]
"""The position that a decoded token has by mistake, from its own."""

PLACES: dict[str, Place] = {
    "shifted by one: one too far": lambda p, first: p + 1,
    "shifted by one: that of the token before": lambda p, first: p - 1,
    "that begin at 0 again": lambda p, first: p - first,
    "that begin at 1 again": lambda p, first: p - first + 1,
    "that are all 0": lambda p, first: 0 * p,
    "that count the prefill twice": lambda p, first: p + first,
    "that count the prefill twice after the first decoded token": (
        lambda p, first: p + first * (p > first)
    ),
    "that are all that of the first decoded token": lambda p, first: 0 * p + first,
}


BY_LENGTH = (
    "rotary frequencies of the length at each step: cached keys keep those of a shorter prompt, and"
    " are not rotated anew where the frequencies change with the length"
)


def mistakes(config: Config, first: int) -> Iterator[Mistake]:
    """Yield the mistakes of decoding after a prefill of `first` tokens."""
    if not config.n_layers:
        return
    for says, hidden in HIDDEN.items():
        yield Mistake(says, {"pattern": _unseen(hidden, first)})
    for says, slots in SLOTS.items():
        for which, (keys, values) in WRITTEN.items():
            if not (keys and values and slots is _newest_first):  # which is right: sums commute
                act = _through(slots if keys else _right, slots if values else _right, first)
                yield Mistake(says.format(which), {"pattern": act})
            if not keys and slots is not _newest_first:  # where the pattern is known, and right
                yield Mistake(says.format(which), {"z": _mixed_from(slots, first)})
    says = "a cache with holes: keys and values of decoded tokens are zeros"
    yield Mistake(says, {"pattern": _zero_scores(first), "z": _zero_values(first)})
    if config.positions == "rotary":
        for says, place in PLACES.items():
            act = _turned_at(place, first)
            for kinds, which in ((("q", "k"), ""), (("q",), " (queries)"), (("k",), " (keys)")):
                said = f"decoding at positions {says}{which}"
                yield Mistake(said, dict.fromkeys(kinds, act))
                # Where queries and keys were recorded, the rotation itself was not.
                yield Mistake(said, {"scores": _turned_further(place, first, kinds)})
        if config.rotary_by_length:
            act = _turned_by_length(first)
            yield Mistake(BY_LENGTH, {"q": act, "k": act})
            yield Mistake(BY_LENGTH, {"scores": _scores_by_length(first)})
    if config.positions == "learned" and not config.embed_norm:
        for says, place in PLACES.items():
            yield Mistake(f"decoding at positions {says}", {"resid_pre": _added_at(place, first)})


@makes_act
def _unseen(at: At, operation: Operation, hidden: Hidden, first: int) -> Near:
    """Act: hide cached keys from decoded queries."""
    i, j = np.ogrid[: at.n_pos, : at.n_pos]
    seen = at.visible & ~((i >= first) & hidden(i, j, first))
    return attends(at, at.only(), seen | (~seen.any(axis=1, keepdims=True) & (i == j)))


@makes_act
def _through(at: At, operation: Operation, keys: Slots, values: Slots, first: int) -> Near:
    """Act: decoded queries attend to slots of the cache, which hold keys and values of tokens.

    The weights of slots with the values of one token are added; those of zeros are lost. A score
    with zeros is 0.
    """
    scores, plain = at.only(), operation(at)
    value, error = plain.value.copy(), np.broadcast_to(plain.error, plain.value.shape).copy()
    for i in range(first, at.n_pos):
        held, mixed = (np.array(slots(i, first)) for slots in (keys, values))
        off = np.broadcast_to(scores.error, scores.value.shape)
        here = (np.where(held < 0, 0.0, each[:, i : i + 1, held]) for each in (scores.value, off))
        window = at.config.window or at.n_pos
        near = attends(at, Near(*here), i - np.arange(len(held))[None] < window)
        value[:, i], error[:, i] = 0.0, 0.0
        for slot in np.flatnonzero(mixed >= 0):
            value[:, i, mixed[slot]] += near.value[:, 0, slot]
            error[:, i, mixed[slot]] += np.broadcast_to(near.error, near.value.shape)[:, 0, slot]
    return Near(value, error)


@makes_act
def _mixed_from(at: At, operation: Operation, slots: Slots, first: int) -> Near:
    """Act: mix by the right pattern what the slots of the cache hold, which is lost for zeros."""
    pattern = at.inputs["pattern"]
    kept = [pattern.value.copy(), np.broadcast_to(pattern.error, pattern.value.shape).copy()]
    for array in kept:
        for i in range(first, at.n_pos):
            row, held = array[:, i].copy(), slots(i, first)
            array[:, i] = 0.0
            for slot, token in enumerate(held[: i + 1]):
                if token >= 0:
                    array[:, i, token] += row[:, slot]
    return operation(replace(at, inputs={**at.inputs, "pattern": Near(*kept)}))


def _hole(at: At, first: int) -> Array:
    """Return the keys that decoded tokens wrote before each query."""
    i, j = np.ogrid[: at.n_pos, : at.n_pos]
    return np.asarray((j >= first) & (j < i))


@makes_act
def _zero_scores(at: At, operation: Operation, first: int) -> Near:
    """Act: scores of 0 with keys that were never written to the cache."""
    scores, hole = at.only(), _hole(at, first)
    error = np.where(hole, 0.0, scores.error)
    return attends(at, Near(np.where(hole, 0.0, scores.value), error), at.visible)


@makes_act
def _zero_values(at: At, operation: Operation, first: int) -> Near:
    """Act: mix without values that were never written to the cache."""
    pattern, hole = at.inputs["pattern"], _hole(at, first)
    kept = Near(np.where(hole, 0.0, pattern.value), np.where(hole, 0.0, pattern.error))
    return operation(replace(at, inputs={**at.inputs, "pattern": kept}))


def _moved(n_pos: int, place: Place, first: int) -> Array:
    """Return the positions of all tokens, those of decoded ones by mistake."""
    own = np.arange(n_pos)
    return np.asarray(np.where(own < first, own, np.maximum(place(own, first), 0)))


@makes_act
def _turned_at(at: At, operation: Operation, place: Place, first: int) -> Near:
    """Act: rotate queries or keys of decoded tokens by other positions."""
    return _further(operation(at), at, _moved(at.n_pos, place, first))


@makes_act
def _turned_further(
    at: At, operation: Operation, place: Place, first: int, kinds: tuple[str, ...]
) -> Near:
    """Act: scores of recorded queries or keys that are rotated on to other positions."""
    places = _moved(at.n_pos, place, first)
    inputs = {kind: _further(at.inputs[kind], at, places) for kind in kinds}
    return operation(replace(at, inputs={**at.inputs, **inputs}))


@makes_act
def _turned_by_length(at: At, operation: Operation, first: int) -> Near:
    """Act: rotate queries or keys by the frequencies of the length when they were computed."""
    return _anew(operation(at), at, first)


@makes_act
def _scores_by_length(at: At, operation: Operation, first: int) -> Near:
    """Act: scores of recorded queries and keys that are rotated by frequencies of other lengths."""
    inputs = {kind: _anew(at.inputs[kind], at, first) for kind in ("q", "k")}
    return operation(replace(at, inputs={**at.inputs, **inputs}))


def _anew(near: Near, at: At, first: int) -> Near:
    """Return rotated rows, each rotated by the frequencies of the prompt up to it instead."""
    value = near.value.copy()
    scale = rotary_scale(at.config.rotary_stretch)
    for own in range(at.n_pos):
        rows = np.zeros((*value.shape[:-2], own + 1, value.shape[-1]))
        rows[..., -1, :] = near.value[..., own, :]
        for sign, length in ((-1, at.n_pos), (1, max(first, own + 1))):
            rows = rotate(rows, *at.config.rotation, sign=sign, n_pos=length)
            rows[..., : at.config.rotary_dims] /= scale
        value[..., own, :] = rows[..., -1, :]
    return Near(value, near.error)


@makes_act
def rotated_on(at: At, operation: Operation, places: Array) -> Near:
    """Act: rotate queries or keys to other positions, one for each token."""
    if at.config.positions != "rotary":
        return operation(at)
    return _further(operation(at), at, places)


def _further(near: Near, at: At, places: Array) -> Near:
    """Return rotated rows, rotated on from their own positions to others."""
    value = near.value.copy()
    for own, other in enumerate(places):
        if own != other:
            value[..., own, :] = _turned_by(near.value[..., own, :], int(other) - own, at)
    return Near(value, near.error)


def _turned_by(row: Array, places: int, at: At) -> Array:
    """Return a row rotated by a number of positions, which may be negative."""
    rows = np.zeros((*row.shape[:-1], abs(places) + 1, row.shape[-1]))
    rows[..., -1, :] = row
    sign = 1 if places > 0 else -1
    turned = rotate(rows, *at.config.rotation, sign=sign, n_pos=at.n_pos)[..., -1, :]
    dims = at.config.rotary_dims
    turned[..., :dims] /= rotary_scale(at.config.rotary_stretch)
    return np.asarray(turned)


@makes_act
def _added_at(at: At, operation: Operation, place: Place, first: int) -> Near:
    """Act: add the learned vectors of other positions to decoded tokens."""
    near = operation(at)
    if "embed" not in at.inputs:
        return near
    model: Any = at.weights.model
    moved = np.minimum(_moved(at.n_pos, place, first), at.config.n_ctx - 1)
    value = at.inputs["embed"].value + model.part("W_pos", moved)
    return Near(value, near.error)
