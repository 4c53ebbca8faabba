"""Mistakes in scores, and in the mixing of values by the pattern."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations

import numpy as np

from otimes.numeric.audit.reference.edits import (
    after,
    given,
    other_place,
    scaled,
    times,
    with_inputs,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import Config
from otimes.numeric.rounding.linear import Array, Near
from otimes.numeric.rounding.places import At

CAPS = (20.0, 30.0, 50.0)


def _at_scores(name: str, says: str, act: Act, rank: int = 1) -> Mistake:
    return Mistake(name, says, {"scores": act}, rank)


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of scores, and of the values that the pattern mixes."""
    if not config.n_layers:
        return
    yield from _scores(config)
    yield from _mixing(config)


def _scores(config: Config) -> Iterator[Mistake]:
    root = np.sqrt(config.d_head)
    factors = {
        "scale_missing": ("without the scale 1/√d_head", root),
        "scale_by_d_head": ("scores divided by d_head and not by its root", 1 / root),
        "scale_by_d_model": (
            "scores divided by √d_model and not by √d_head",
            root / np.sqrt(config.d_model),
        ),
        "scale_times": ("scores multiplied by √d_head and not divided", root**2),
        "scale_by_heads": ("scores divided by √n_heads", root / np.sqrt(config.n_heads)),
        "scale_fourth_root": ("scores divided by the fourth root of d_head", root**0.5),
        "scale_of_width": (
            "scores divided by √(n_heads · d_head) and not by √d_head",
            1 / np.sqrt(config.n_heads),
        ),
        "scores_negative": ("scores of the wrong sign", -1.0),
    }
    if config.positions == "rotary" and config.rotary_dims != config.d_head:
        factors["scale_by_rotary"] = (
            "scores divided by the root of the rotary width",
            root / np.sqrt(config.rotary_dims),
        )
    if config.kv_heads != config.n_heads:
        share = config.n_heads / config.kv_heads
        factors["scale_by_share"] = ("scores divided by √(heads per group) more", share**-0.5)
    alike: dict[float, list[str]] = {}
    for name, (_, factor) in factors.items():
        alike.setdefault(round(factor, 12), []).append(name)
    for value, names in alike.items():
        if value != 1:
            says = "; or ".join(factors[name][0] for name in names)
            act = times(factors[names[0]][1])
            yield _at_scores(names[0], says, act, 0 if "scale_missing" in names else 1)
    yield _at_scores(
        "scale_by_layer",
        "scores divided by the number of the layer as well (as scale_attn_by_inverse_layer_idx)",
        lambda at, op: scaled(op(at), 1 / ((at.weights.layer or 0) + 1)),
    )
    yield _at_scores(
        "scores_transposed", "scores transposed: K Qᵀ for Q Kᵀ", _queries_and_keys_swapped
    )
    for cap in CAPS:
        yield _at_scores(f"scores_capped_{cap:g}", f"scores soft-capped at {cap:g}", capped_at(cap))
    yield _at_scores("scores_of_queries", "scores of queries with queries", _self_scores("q"))
    yield _at_scores("scores_of_keys", "scores of keys with keys", _self_scores("k"))
    yield _at_scores("scores_of_values", "scores with values for keys", _value_scores)
    if config.n_heads > 1:
        yield _at_scores(
            "keys_of_next_head",
            "each head's queries meet the keys of another head (off by one)",
            _keys_of(lambda k: np.roll(k, 1, axis=0)),
        )
        yield _at_scores(
            "keys_of_next_head_back",
            "each head's queries meet the keys of another head (off by one, the other way)",
            _keys_of(lambda k: np.roll(k, -1, axis=0)),
        )
    yield _at_scores("distance_bias", "scores with a bias for distance (ALiBi)", _alibi)


def capped(near: Near, cap: float) -> Near:
    """Return cap · tanh(x / cap); its slope is at most 1."""
    value = cap * np.tanh(near.value / cap)
    return Near(value, near.error * 2)


def capped_at(cap: float) -> Act:
    """Return the change to soft-capped scores or logits."""
    return after(lambda at, near: capped(near, cap))


def _queries_and_keys_swapped(at: At, operation: Operation) -> Near:
    return operation(with_inputs(at, q=at.inputs["k"], k=at.inputs["q"]))


def _self_scores(kind: str) -> Act:
    return lambda at, operation: operation(with_inputs(at, q=at.inputs[kind], k=at.inputs[kind]))


def _value_scores(at: At, operation: Operation) -> Near:
    return operation(with_inputs(at, k=other_place(at, "v")))


def _keys_of(order: Callable[[Array], Array]) -> Act:
    return given(k=order)


def _alibi(at: At, operation: Operation) -> Near:
    near = operation(at)
    heads, n_pos = at.config.n_heads, at.n_pos
    slopes = 2.0 ** (-8 * (np.arange(heads) + 1) / heads)
    distance = np.arange(n_pos)[:, None] - np.arange(n_pos)
    return Near(near.value - slopes[:, None, None] * distance, near.error * 2)


# -- what is mixed ---------------------------------------------------------------------------------


def _mixing(config: Config) -> Iterator[Mistake]:
    def mix(name: str, says: str, act: Act, rank: int = 1) -> Mistake:
        return Mistake(name, says, {"z": act}, rank)

    yield mix(
        "pattern_transposed", "values mixed with the pattern transposed", given(pattern=_transposed)
    )
    for which, says in ((-1, "last"), (0, "first")):
        yield mix(
            f"{says}_key_unmixed",
            f"values mixed without that of the {says} key: a slice that is one short",
            given(pattern=partial(_without_key, which)),
        )
    for kind, name in (("k", "keys"), ("q", "queries")):
        yield mix(f"mixes_{name}", f"{name} mixed and not values", _mixes(kind))
    for by in (1, -1):
        yield mix(
            f"values_of_next_head_{by}",
            "each head mixes the values of another head (off by one)",
            given(v=partial(np.roll, shift=by, axis=0)),
        )
    yield mix("values_unmixed", "values passed on: nothing is mixed", lambda at, op: at.inputs["v"])
    for by in (1, -1):
        yield mix(
            f"values_shifted_{by}",
            "values of the position before" if by == 1 else "values of the position after",
            given(v=partial(np.roll, shift=by, axis=1)),
        )
    if config.n_heads <= PAIRED:
        for first, second in combinations(range(config.n_heads), 2):
            yield Mistake(
                f"heads_swapped_{first}_{second}",
                f"heads {first} and {second} in the wrong order: each stands for the other",
                dict.fromkeys(("head_out", "attn_out"), given(z=partial(_swapped, first, second))),
                3,
            )
    if config.kv_heads != config.n_heads:
        yield from _groups(config)
    for rate in (0.1, 0.05, 0.2, 0.5):
        yield mix(
            f"mixed_scaled_{rate:g}",
            f"what is mixed divided by {1 - rate:g}, as dropout of {rate:g} does",
            times(1 / (1 - rate)),
        )


PAIRED = 8
"""Up to so many heads, each pair is tried for having changed places."""


def _groups(config: Config) -> Iterator[Mistake]:
    """Yield heads that read the wrong groups of keys and values."""
    share, groups = config.n_heads // config.kv_heads, config.kv_heads
    every = np.arange(config.n_heads)
    orders: dict[str, tuple[str, Callable[[Array], Array]]] = {
        "tiled": (
            f"in the wrong order: tiled (head h reads group h mod {groups}), not interleaved",
            lambda a: a[every % groups * share],
        ),
        "first": ("of the first group used by all heads", lambda a: a[0 * every]),
        "mean": ("averaged over the groups, for all heads", _averaged),
    }
    for name, (says, order) in orders.items():
        acts: dict[str, Act] = {"scores": given(k=order), "z": given(v=order)}
        both = f"grouped keys and values {says}"
        yield Mistake(f"groups_{name}_read", both, acts)
        for kind, read in (("scores", "keys"), ("z", "values")):
            said = f"grouped {read} {says}"
            yield Mistake(f"groups_{name}_read_{read}", said, {kind: acts[kind]})


def _averaged(array: Array) -> Array:
    return np.broadcast_to(array.mean(axis=0), array.shape)


def _swapped(first: int, second: int, z: Array) -> Array:
    order = np.arange(len(z))
    order[[first, second]] = second, first
    return np.asarray(z[order])


def _without_key(which: int, pattern: Array) -> Array:
    kept = pattern.copy()
    kept[..., which] = 0
    return kept


def _mixes(kind: str) -> Act:
    return lambda at, operation: operation(with_inputs(at, v=other_place(at, kind)))


def _transposed(pattern: Array) -> Array:
    return np.swapaxes(pattern, -1, -2)
