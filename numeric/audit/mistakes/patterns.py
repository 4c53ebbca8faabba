"""Mistakes in the causal mask, and in the softmax."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.reference.edits import (
    moved,
    moved_after,
    other_place,
    scaled,
    with_inputs,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import Config
from otimes.numeric.functions import causal_mask
from otimes.numeric.rounding.functions import softmax
from otimes.numeric.rounding.linear import Array, Near, linear
from otimes.numeric.rounding.places import At

PREFIXES = (2, 3, 4, 5, 8)
FILLS = (0.0, -1.0, -5.0, -10.0, -20.0, -50.0, -100.0, -1e3, -1e4)


def _pattern(name: str, says: str, act: Act, rank: int = 1) -> Mistake:
    return Mistake(name, says, {"pattern": act}, rank)


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of masks and of the softmax."""
    if not config.n_layers:
        return

    def mask(name: str, says: str, visible: Callable[[int], Array], rank: int = 1) -> Mistake:
        return _pattern(name, says, _masked(visible), rank)

    yield mask(
        "mask_absent", "a softmax without the causal mask", lambda n: np.ones((n, n), bool), 0
    )
    yield mask(
        "mask_one_more",
        "a causal mask off by one: each query sees the key after it",
        lambda n: np.tri(n, k=1, dtype=bool),
        0,
    )
    yield mask(
        "mask_one_less",
        "a causal mask off by one: no query sees its own key (the first sees itself)",
        _strict(1),
        0,
    )
    yield _pattern(
        "mask_one_less_all",
        "a causal mask off by one: no query sees its own key (the first sees all)",
        _masked(_strict_all),
    )
    yield _pattern(
        "mask_one_less_none",
        "a causal mask off by one: no query sees its own key (the first attends to nothing)",
        _first_blind,
    )
    yield _pattern(
        "mask_one_less_even",
        "a causal mask off by one: no query sees its own key (the first, which sees nothing, "
        "attends to all alike)",
        _first_even,
    )
    for size in PREFIXES:
        if size < config.n_ctx:
            yield mask(
                f"mask_prefix_{size}",
                f"a prefix mask: all queries see the first {size} keys",
                partial(_prefix, size),
                2,
            )
    yield mask(
        "mask_reversed",
        "a causal mask the wrong way round: each query sees itself and all after it",
        lambda n: np.tri(n, dtype=bool).T,
    )
    yield mask("mask_two_more", "a causal mask off by two", lambda n: np.tri(n, k=2, dtype=bool))
    yield mask("own_key_only", "an attention to itself only", lambda n: np.eye(n, dtype=bool))
    yield _pattern(
        "mask_after_softmax",
        "a causal mask applied after the softmax, without normalising again",
        _mask_after,
        0,
    )
    yield _pattern(
        "mask_multiplied",
        "a causal mask multiplied into the scores: masked scores are 0 and not -∞",
        _softly_masked(None),
    )
    for fill in FILLS:
        yield _pattern(
            f"mask_fill_{fill:g}",
            f"a causal mask that is not -∞: {fill:g} is added to masked scores",
            _softly_masked(fill),
        )
        yield _pattern(
            f"mask_set_{fill:g}",
            f"a causal mask that is not -∞: masked scores are set to {fill:g}",
            _softly_masked(fill, put=True),
        )
    for axis, says in ((-2, "over the queries and not the keys"), (0, "over the heads")):
        yield _pattern(
            f"softmax_axis_{axis}", f"a softmax over the wrong axis: {says}", _softmax_over(axis), 0
        )
    yield _pattern(
        "softmax_heads_masked",
        "a softmax over the wrong axis: over the heads, of scores that were masked before",
        _over_masked_heads,
    )
    yield _pattern(
        "softmax_axis_all",
        "a softmax over the wrong axes: over queries and keys together",
        _softmax_over((-2, -1)),
    )
    yield _pattern("softmax_plus_one", "a softmax with 1 added to its denominator", _sink)
    if config.n_heads > 1:
        yield _pattern(
            "pattern_of_all_heads",
            "a pattern averaged over the heads: all of them mix with the mean",
            moved_after(_mean_of_heads),
        )
    yield _pattern("softmax_missing", "no softmax: the masked scores themselves", _bare)
    yield _pattern("softmax_twice", "a softmax of the softmax", _twice_normalised)
    yield _pattern(
        "softmax_twice_over_all",
        "a softmax of the softmax, taken over masked keys as well",
        _normalised_over_all,
    )
    yield _pattern(
        "relu_for_softmax",
        "a ReLU for the exponential of the softmax: positive scores, each over their sum",
        _relu,
    )
    yield _pattern("sigmoid_for_softmax", "a sigmoid for the softmax", _sigmoid)
    yield _pattern(
        "pattern_rescaled",
        "scores divided by √d_head once more before the softmax",
        _tempered(config.d_head**-0.5),
    )
    yield _pattern(
        "pattern_unscaled",
        "without the scale 1/√d_head in the softmax",
        _tempered(config.d_head**0.5),
    )
    yield _pattern(
        "pattern_other_base", "a softmax of base 2 without rescaling", _tempered(float(np.log(2)))
    )
    for window in range(1, 65):
        if window < config.n_ctx:
            yield _pattern(
                f"window_{window}",
                f"a sliding window of {window}: each query sees the last {window} keys only",
                _masked(_window(window)),
                2,
            )
    yield _pattern(
        "first_key_hidden",
        "a causal mask that hides the first key from all later queries",
        _masked(_without_first),
    )


def _strict(by: int) -> Callable[[int], Array]:
    def visible(n: int) -> Array:
        seen = np.tri(n, k=-by, dtype=bool)
        seen[0, 0] = True
        return seen

    return visible


def _prefix(size: int, n: int) -> Array:
    return np.tri(n, dtype=bool) | (np.arange(n) < size)


def _strict_all(n: int) -> Array:
    seen = np.tri(n, k=-1, dtype=bool)
    seen[0] = True
    return seen


def _without_first(n: int) -> Array:
    seen = np.tri(n, dtype=bool)
    seen[1:, 0] = False
    return seen


def _window(width: int) -> Callable[[int], Array]:
    return lambda n: np.tri(n, dtype=bool) & ~np.tri(n, k=-width, dtype=bool)


def whole_scores(at: At) -> Near:
    """Return the scores of all pairs, masked ones too, from recorded or computed q and k."""
    q, k = other_place(at, "q"), other_place(at, "k")
    keys = moved(k, lambda array: np.swapaxes(array, -1, -2))
    raw = linear(q, keys, None, at.p, rescaled=2)
    root = np.sqrt(at.config.d_head)
    error = raw.error / root + 4 * at.p.unit * np.abs(raw.value) / root
    own = at.only()
    seen = causal_mask(at.n_pos)
    return Near(np.where(seen, own.value, raw.value / root), np.where(seen, own.error, error))


def _masked(visible: Callable[[int], Array]) -> Act:
    def act(at: At, operation: Operation) -> Near:
        return softmax(whole_scores(at), visible(at.n_pos), at.p, online=True)

    return act


def _softly_masked(fill: float | None, put: bool = False) -> Act:
    def act(at: At, operation: Operation) -> Near:
        scores = whole_scores(at)
        seen = causal_mask(at.n_pos)
        other: Array
        error: Array
        if fill is None:
            other, error = np.zeros_like(scores.value), np.zeros_like(scores.value)
        elif put:
            other, error = np.full_like(scores.value, fill), np.zeros_like(scores.value)
        else:
            other, error = scores.value + fill, scores.error + at.p.unit * abs(fill)
        mixed = Near(np.where(seen, scores.value, other), np.where(seen, scores.error, error))
        return softmax(mixed, np.ones((at.n_pos, at.n_pos), bool), at.p, online=True)

    return act


def _first_blind(at: At, operation: Operation) -> Near:
    near = _masked(_strict(1))(at, operation)
    keep = np.ones((at.n_pos, 1))
    keep[0] = 0
    return scaled(near, keep)


def _first_even(at: At, operation: Operation) -> Near:
    """A finite number for -∞: where all is masked, all is alike."""
    near = _masked(_strict(1))(at, operation)
    value, error = near.value.copy(), np.broadcast_to(near.error, near.value.shape).copy()
    value[:, 0], error[:, 0] = 1 / at.n_pos, at.p.within(at.n_pos + 4) / at.n_pos
    return Near(value, error)


def _mask_after(at: At, operation: Operation) -> Near:
    near = softmax(whole_scores(at), np.ones((at.n_pos, at.n_pos), bool), at.p, online=True)
    return scaled(near, causal_mask(at.n_pos).astype(np.float64))


def _softmax_over(axis: int | tuple[int, int]) -> Act:
    """Return the change to a softmax over other axes; one over heads is masked afterwards."""

    def act(at: At, operation: Operation) -> Near:
        scores, seen = whole_scores(at), causal_mask(at.n_pos)
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
        return scaled(near, seen.astype(np.float64)) if axis == 0 else near

    return act


def _over_masked_heads(at: At, operation: Operation) -> Near:
    """Return a softmax over heads that is uniform where all scores are masked."""
    near = _softmax_over(0)(at, operation)
    hidden = ~causal_mask(at.n_pos)
    return Near(near.value + hidden / at.config.n_heads, near.error + 4 * at.p.inner)


def _mean_of_heads(pattern: Array) -> Array:
    return np.broadcast_to(pattern.mean(axis=0), pattern.shape)


def _sink(at: At, operation: Operation) -> Near:
    scores = at.only()
    heads, n_pos, _ = scores.value.shape
    none = np.zeros((heads, n_pos, 1))
    wide = Near(
        np.concatenate([none, scores.value], axis=-1), np.concatenate([none, scores.error], axis=-1)
    )
    seen = np.concatenate([np.ones((n_pos, 1), bool), causal_mask(n_pos)], axis=1)
    return moved(softmax(wide, seen, at.p, online=True), lambda array: array[..., 1:])


def _bare(at: At, operation: Operation) -> Near:
    return scaled(at.only(), causal_mask(at.n_pos).astype(np.float64))


def _twice_normalised(at: At, operation: Operation) -> Near:
    return softmax(operation(at), causal_mask(at.n_pos), at.p, online=True)


def _normalised_over_all(at: At, operation: Operation) -> Near:
    return softmax(operation(at), np.ones((at.n_pos, at.n_pos), bool), at.p, online=True)


def _relu(at: At, operation: Operation) -> Near:
    scores = at.only()
    seen = causal_mask(at.n_pos)
    kept, error = (
        np.where(seen, np.maximum(scores.value, 0.0), 0.0),
        np.where(seen, scores.error, 0),
    )
    total = kept.sum(-1, keepdims=True) + TINY
    off = error.sum(-1, keepdims=True) + at.p.within(at.n_pos + 4) * total
    return Near(kept / total, (error + kept * off / total) / total + at.p.inner)


TINY = 1e-9
"""Is added to a sum that may be zero."""


def _sigmoid(at: At, operation: Operation) -> Near:
    scores = at.only()
    value = np.where(causal_mask(at.n_pos), 1 / (1 + np.exp(-scores.value)), 0.0)
    return Near(value, value * (scores.error + 20 * at.p.inner))


def _tempered(factor: float) -> Act:
    return lambda at, operation: operation(
        with_inputs(at, scores=_rounded(scaled(at.only(), factor), at))
    )


def _rounded(near: Near, at: At) -> Near:
    return Near(near.value, near.error + 3 * at.p.unit * np.abs(near.value))
