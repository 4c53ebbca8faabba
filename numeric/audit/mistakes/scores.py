"""Mistakes in scores, and in the mixing of values by the pattern."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations

import numpy as np

from otimes.numeric.audit.reference.edits import (
    after,
    config_to,
    given,
    inputs_from,
    scaled,
    times,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Array, Near

PAIRED = 8
"""The most heads for which every swap of two is tried."""

UNSCALED = "without the scale 1/√d_head"


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of scores, and of the values that the pattern mixes."""
    if not config.n_layers:
        return
    yield from _factors(config)
    for says, act in _scores(config):
        yield Mistake(says, {"scores": act})
    for says, act in _mixing():
        yield Mistake(says, {"z": act})
    if config.n_heads <= PAIRED:
        for first, second in combinations(range(config.n_heads), 2):
            says = f"heads {first} and {second} in the wrong order: each stands for the other"
            act = given(z=partial(_swapped, first, second))
            yield Mistake(says, dict.fromkeys(("head_out", "attn_out"), act), 3)


def _factors(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of scores with another scale, each scale once."""
    d_head, heads, own = config.d_head, config.n_heads, config.score_scale
    scales = {
        UNSCALED: 1.0,
        "scores divided by d_head and not by its root": 1 / d_head,
        "scores divided by √d_model and not by √d_head": config.d_model**-0.5,
        "scores multiplied by √d_head and not divided": d_head**0.5,
        "scores divided by √n_heads": heads**-0.5,
        "scores divided by the fourth root of d_head": d_head**-0.25,
        "scores divided by √(n_heads · d_head) and not by √d_head": (heads * d_head) ** -0.5,
        "scores of the wrong sign": -own,
    }
    if config.attn_scale and not config.kv_rank:
        scales[f"scores divided by √d_head and not multiplied by {own:.4g}"] = d_head**-0.5
    if config.positions == "rotary" and config.rotary_dims != config.d_head:
        says = "scores divided by the root of the rotary width"
        scales[says] = config.rotary_dims**-0.5
    if config.kv_heads != config.n_heads:
        share = config.n_heads / config.kv_heads
        scales["scores divided by √(heads per group) more"] = own * share**-0.5
    alike: dict[float, list[str]] = {}
    for says, scale in scales.items():
        alike.setdefault(round(scale / own, 12), []).append(says)
    for value, names in alike.items():
        if value != 1:
            rank = 0 if UNSCALED in names else 1
            yield Mistake(
                "; or ".join(names), {"scores": _scaled_by(config, scales[names[0]])}, rank
            )


def _scaled_by(config: Config, scale: float) -> Act:
    """Return the act of another scale, before a cap and the distances of ALiBi."""
    if scale > 0 and (config.score_cap or config.positions == "alibi"):
        return config_to(attn_scale=scale)
    return times(scale / config.score_scale)


def _scores(config: Config) -> Iterator[tuple[str, Act]]:
    says = "scores divided by the number of the layer as well (as scale_attn_by_inverse_layer_idx)"
    yield says, after(lambda at, near: scaled(near, 1 / ((at.weights.layer or 0) + 1)))
    yield "scores transposed: K Qᵀ for Q Kᵀ", inputs_from(q="k", k="q")
    for cap in (20.0, 30.0, 50.0):
        yield f"scores soft-capped at {cap:g}", capped_at(cap)
    yield "scores of queries with queries", inputs_from(k="q")
    yield "scores of keys with keys", inputs_from(q="k")
    yield "scores with values for keys", inputs_from(k="v")
    if config.n_heads > 1:
        says = "each head's queries meet the keys of another head (off by one"
        yield f"{says})", given(k=partial(np.roll, shift=1, axis=0))
        yield f"{says}, the other way)", given(k=partial(np.roll, shift=-1, axis=0))
    yield "scores with a bias for distance (ALiBi)", _alibi


def capped_at(cap: float) -> Act:
    """Return the change to soft-capped scores or logits, cap · tanh(x / cap); its slope ≤ 1."""
    return after(lambda at, near: Near(cap * np.tanh(near.value / cap), near.error * 2))


def _alibi(at: At, operation: Operation) -> Near:
    near = operation(at)
    heads, n_pos = at.config.n_heads, at.n_pos
    slopes = 2.0 ** (-8 * (np.arange(heads) + 1) / heads)
    distance = np.arange(n_pos)[:, None] - np.arange(n_pos)
    return Near(near.value - slopes[:, None, None] * distance, near.error * 2)


def _mixing() -> Iterator[tuple[str, Act]]:
    transposed = given(pattern=partial(np.swapaxes, axis1=-1, axis2=-2))
    yield "values mixed with the pattern transposed", transposed
    for which, name in ((-1, "last"), (0, "first")):
        says = f"values mixed without that of the {name} key: a slice that is one short"
        yield says, given(pattern=partial(_without_key, which))
    yield "keys mixed and not values", inputs_from(v="k")
    yield "queries mixed and not values", inputs_from(v="q")
    says = "each head mixes the values of another head (off by one"
    yield f"{says})", given(v=partial(np.roll, shift=1, axis=0))
    yield f"{says}, the other way)", given(v=partial(np.roll, shift=-1, axis=0))
    yield "values passed on: nothing is mixed", lambda at, operation: at.inputs["v"]
    yield "values mixed of the position before", given(v=partial(np.roll, shift=1, axis=1))
    yield "values mixed of the position after", given(v=partial(np.roll, shift=-1, axis=1))
    for rate in (0.1, 0.05, 0.2, 0.5):
        says = f"what is mixed divided by {1 - rate:g}, as dropout of {rate:g} does"
        yield says, times(1 / (1 - rate))


def _swapped(first: int, second: int, z: Array) -> Array:
    order = np.arange(len(z))
    order[[first, second]] = second, first
    return np.asarray(z[order])


def _without_key(which: int, pattern: Array) -> Array:
    kept = pattern.copy()
    kept[..., which] = 0
    return kept
