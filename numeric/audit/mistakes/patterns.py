"""Mistakes in the causal mask, and in the softmax."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.special import expit

from otimes.numeric.audit.reference.edits import (
    moved,
    moved_after,
    other_place,
    scaled,
    with_inputs,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation, makes_act
from otimes.numeric.config import Config
from otimes.numeric.functions import causal_mask
from otimes.numeric.rounding.activations import At, all_scores
from otimes.numeric.rounding.functions import softmax, softmax_with_sink
from otimes.numeric.rounding.linear import Array, Near

PREFIXES = (2, 3, 4, 5, 8)
FILLS = (0.0, -1.0, -5.0, -10.0, -20.0, -50.0, -100.0, -1e3, -1e4)

Visible = Callable[[Array, Array], Array]
"""Which keys j each query i sees, as a 0/1 array."""

OWN_KEY_HIDDEN = "a causal mask off by one: no query sees its own key"
MASKS: tuple[tuple[str, Visible, int], ...] = (
    ("a softmax without the causal mask", lambda i, j: (i >= 0) & (j >= 0), 0),
    ("a causal mask off by one: each query sees the key after it", lambda i, j: j <= i + 1, 0),
    (f"{OWN_KEY_HIDDEN} (the first sees itself)", lambda i, j: (j < i) | (i + j == 0), 0),
    (f"{OWN_KEY_HIDDEN} (the first sees all)", lambda i, j: (j < i) | (i == 0), 1),
    (
        "a causal mask the wrong way round: each query sees itself and all after it",
        lambda i, j: j >= i,
        1,
    ),
    ("a causal mask off by two", lambda i, j: j <= i + 2, 1),
    ("an attention to itself only", lambda i, j: i == j, 1),
    (
        "a causal mask that hides the first key from all later queries",
        lambda i, j: (j <= i) & ((j > 0) | (i == 0)),
        1,
    ),
)


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of masks and of the softmax."""
    for says, act, rank in _acts(config) if config.n_layers else ():
        yield Mistake(says, {"pattern": act}, rank)


def _acts(config: Config) -> Iterator[tuple[str, Act, int]]:
    for says, visible, rank in MASKS:
        yield says, _masked(visible), rank
    for size in PREFIXES:
        if size < config.n_ctx:
            says = f"a prefix mask: all queries see the first {size} keys"
            yield says, _masked(partial(_prefix, size)), 2
    for window in range(1, min(65, config.n_ctx)):
        says = f"a sliding window of {window}: each query sees the last {window} keys only"
        yield says, _masked(partial(_window, window)), 2
    for fill in FILLS:
        says = "a causal mask that is not -∞:"
        yield f"{says} {fill:g} is added to masked scores", _softly_masked(fill), 1
        yield f"{says} masked scores are set to {fill:g}", _softly_masked(fill, put=True), 1
    if config.score_cap:
        says = f"a soft cap after the mask: masked scores are -{config.score_cap:g} and not -∞"
        yield says, _softly_masked(-config.score_cap, put=True), 1
    if config.n_heads > 1:
        says = "a pattern averaged over the heads: all of them mix with the mean"
        yield says, moved_after(lambda A: np.broadcast_to(A.mean(axis=0), A.shape)), 1
    root = config.d_head**0.5
    yield "scores divided by √d_head once more before the softmax", _tempered(1 / root), 1
    yield "without the scale 1/√d_head in the softmax", _tempered(root), 1
    says = (
        "softmax before the scale 1/√d_head: the pattern is divided by √d_head, and not the scores"
    )
    yield says, _scaled_after(root), 1
    yield "a softmax of base 2 without rescaling", _tempered(float(np.log(2))), 1
    yield from SOFTMAXES


def _prefix(size: int, i: Array, j: Array) -> Array:
    return np.asarray((j <= i) | (j < size))


def _window(width: int, i: Array, j: Array) -> Array:
    return np.asarray((j <= i) & (i - j < width))


def whole_scores(at: At) -> Near:
    """Return the scores of all pairs, also masked ones, from recorded or computed q and k."""
    q, k = other_place(at, "q"), other_place(at, "k")
    every = all_scores(replace(at, inputs={"q": q, "k": k}))
    own, seen = at.only(), at.visible
    return Near(np.where(seen, own.value, every.value), np.where(seen, own.error, every.error))


def attends(at: At, scores: Near, seen: Array) -> Near:
    """Return the softmax over some keys, with the sinks of a model that has them."""
    if at.config.sinks:
        return softmax_with_sink(scores, seen, at.weights["sinks"], at.p, True)
    return softmax(scores, seen, at.p, online=True)


@makes_act
def _masked(at: At, operation: Operation, visible: Visible) -> Near:
    i, j = np.ogrid[: at.n_pos, : at.n_pos]
    seen = visible(i, j)
    if at.config.window:
        seen = seen & (i - j < at.config.window)
    return attends(at, whole_scores(at), seen)


@makes_act
def _softly_masked(at: At, operation: Operation, fill: float, put: bool = False) -> Near:
    """Act: set masked scores to a number, or add a number to them, and not -∞."""
    scores, seen = whole_scores(at), at.visible
    value = fill if put else scores.value + fill
    error = 0.0 if put else scores.error + at.p.unit * abs(fill)
    mixed = Near(np.where(seen, scores.value, value), np.where(seen, scores.error, error))
    return _over_all(mixed, at)


def _over_all(scores: Near, at: At) -> Near:
    """Return the softmax over all keys, later ones too."""
    return softmax(scores, np.ones((at.n_pos, at.n_pos), bool), at.p, online=True)


_own_key_hidden = _masked(MASKS[2][1])


def _first_blind(at: At, operation: Operation) -> Near:
    return scaled(_own_key_hidden(at, operation), np.arange(at.n_pos)[:, None] > 0)


def _first_even(at: At, operation: Operation) -> Near:
    """Return a softmax with a finite number for -∞: a fully masked row is uniform."""
    near = _own_key_hidden(at, operation)
    value, error = near.value.copy(), np.broadcast_to(near.error, near.value.shape).copy()
    value[:, 0], error[:, 0] = 1 / at.n_pos, at.p.within(at.n_pos + 4) / at.n_pos
    return Near(value, error)


def _mask_after(at: At, operation: Operation) -> Near:
    return scaled(_over_all(whole_scores(at), at), at.visible)


@makes_act
def _softmax_over(at: At, operation: Operation, axis: int | tuple[int, int]) -> Near:
    """Act: take the softmax over other axes; one over heads is masked afterwards."""
    scores, seen = whole_scores(at), at.visible
    shape = scores.value.shape

    def last(array: Array) -> Array:
        if isinstance(axis, tuple):
            return array.reshape(array.shape[0], 1, -1)
        return np.moveaxis(array, axis, -1)

    kept = np.ones_like(seen) if axis == 0 else seen
    near = softmax(moved(scores, last), last(np.broadcast_to(kept, shape)), at.p, online=True)
    if isinstance(axis, tuple):
        return moved(near, lambda array: array.reshape(shape))
    near = moved(near, lambda array: np.moveaxis(array, -1, axis))
    return scaled(near, seen) if axis == 0 else near


def _over_masked_heads(at: At, operation: Operation) -> Near:
    """Return a softmax over heads that is uniform where all scores are masked."""
    near = _softmax_over(0)(at, operation)
    hidden = ~at.visible
    return Near(near.value + hidden / at.config.n_heads, near.error + 4 * at.p.inner)


def _sink(at: At, operation: Operation) -> Near:
    scores = at.only()
    heads, n_pos, _ = scores.value.shape
    none = np.zeros((heads, n_pos, 1))
    wide = Near(
        np.concatenate([none, scores.value], axis=-1), np.concatenate([none, scores.error], axis=-1)
    )
    seen = np.concatenate([np.ones((n_pos, 1), bool), causal_mask(n_pos)], axis=1)
    return moved(softmax(wide, seen, at.p, online=True), lambda array: array[..., 1:])


def _twice_normalised(at: At, operation: Operation) -> Near:
    return softmax(operation(at), at.visible, at.p, online=True)


def _relu(at: At, operation: Operation) -> Near:
    scores, seen = at.only(), at.visible
    kept = np.where(seen, np.maximum(scores.value, 0.0), 0.0)
    error = np.where(seen, scores.error, 0)
    total = kept.sum(-1, keepdims=True) + 1e-9  # it may be zero
    off = error.sum(-1, keepdims=True) + at.p.within(at.n_pos + 4) * total
    return Near(kept / total, (error + kept * off / total) / total + at.p.inner)


def _sigmoid(at: At, operation: Operation) -> Near:
    scores = at.only()
    value = np.where(at.visible, expit(scores.value), 0.0)
    return Near(value, value * (scores.error + 20 * at.p.inner))


@makes_act
def _scaled_after(at: At, operation: Operation, root: float) -> Near:
    """Act: take the softmax of scores that are not divided by a root, and divide the pattern."""
    near = _tempered(root)(at, operation)
    return Near(near.value / root, (near.error + 2 * at.p.unit * np.abs(near.value)) / root)


@makes_act
def _tempered(at: At, operation: Operation, factor: float) -> Near:
    near = scaled(at.only(), factor)
    rounded = Near(near.value, near.error + 3 * at.p.unit * np.abs(near.value))
    return operation(with_inputs(at, scores=rounded))


WRONG_AXIS = "a softmax over the wrong axis: over the"
SOFTMAXES: tuple[tuple[str, Act, int], ...] = (
    (f"{OWN_KEY_HIDDEN} (the first attends to nothing)", _first_blind, 1),
    (
        f"{OWN_KEY_HIDDEN} (the first, which sees nothing, attends to all alike)",
        _first_even,
        1,
    ),
    ("a causal mask applied after the softmax, without normalising again", _mask_after, 0),
    (f"{WRONG_AXIS} queries and not the keys", _softmax_over(-2), 0),
    (f"{WRONG_AXIS} heads", _softmax_over(0), 0),
    (f"{WRONG_AXIS} heads, of scores that were masked before", _over_masked_heads, 1),
    ("a softmax over the wrong axes: over queries and keys together", _softmax_over((-2, -1)), 1),
    ("a softmax with 1 added to its denominator", _sink, 1),
    (
        "no softmax: the masked scores themselves",
        lambda at, operation: scaled(at.only(), at.visible),
        1,
    ),
    ("a softmax of the softmax", _twice_normalised, 1),
    (
        "a softmax of the softmax, taken over masked keys as well",
        lambda at, operation: _over_all(operation(at), at),
        1,
    ),
    ("a ReLU for the exponential of the softmax: positive scores, each over their sum", _relu, 1),
    ("a sigmoid for the softmax", _sigmoid, 1),
)
