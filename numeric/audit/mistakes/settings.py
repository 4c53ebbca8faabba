"""Settings of open models that an implementation does not heed, or heeds elsewhere.

Soft caps, windows, two rotary bases, norms of queries and keys, gains stored minus 1, scaled
embeddings, sinks and ALiBi: each is left out, and some are applied in the wrong order, over the
wrong axis or in the wrong layers.
"""

from collections.abc import Callable, Iterator

import numpy as np

from otimes.numeric.audit.reference.edits import (
    affine_to,
    config_to,
    times,
    unturned,
    weights_to,
    with_config,
    with_inputs,
)
from otimes.numeric.audit.reference.evaluator import NORMS, Act, Mistake, Operation, makes_act
from otimes.numeric.block import kind_of, place_names
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import At, normed_heads
from otimes.numeric.rounding.functions import normalised, rotated
from otimes.numeric.rounding.linear import Near

READS = ("q", "k")


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of the settings that a model has."""
    yield from _embeddings(config)
    yield from _gains(config)
    if not config.n_layers:
        return
    yield from _scores(config)
    yield from _windows(config)
    yield from _bases(config)
    yield from _query_norms(config)


def _embeddings(config: Config) -> Iterator[Mistake]:
    if config.embed_scale != 1:
        says = f"embeddings without their scale, {config.embed_scale:g}"
        yield Mistake(says, {"embed": config_to(embed_scale=1.0)}, 0)
        yield Mistake("embeddings scaled twice", {"embed": times(config.embed_scale)})
    if config.write_scale != 1:
        act, says = times(1 / config.write_scale), f"without its scale, {config.write_scale:g}"
        yield Mistake(f"what attention writes {says}", {"attn_out": act}, 0)
        yield Mistake(f"what MLPs write {says}", {"mlp_out": act}, 0)
        sums = dict.fromkeys(("resid_mid", "resid_post"), _added_unscaled)
        yield Mistake(f"what attention and MLPs write is added {says}", sums, 0)
    if config.logit_scale != 1:
        says = f"logits without their scale, {config.logit_scale:g}"
        yield Mistake(says, {"logits": times(1 / config.logit_scale)}, 0)
    if config.logit_cap:
        act = config_to(logit_cap=0.0)
        yield Mistake(f"logits without their soft cap, {config.logit_cap:g}", {"logits": act}, 0)


def _gains(config: Config) -> Iterator[Mistake]:
    if not config.gain_offset:
        return
    kinds = {kind_of(place) for place in place_names(config)}
    acts = dict.fromkeys((each for each in NORMS if each in kinds), _stored_gain("gain"))
    if config.qk_norm != "none":
        acts |= {kind: _stored(f"{kind}_norm_gain") for kind in READS}
    acts |= {kind: _stored(f"{kind}_gain") for kind in ("q_latent", "kv_latent") if kind in kinds}
    yield Mistake("gains as they are stored, without the 1 that is added", acts, 0)


def _stored_gain(part: str) -> Act:
    return affine_to(**{part: lambda gain: gain - 1.0})


def _stored(name: str) -> Act:
    return weights_to(**{name: lambda gain: gain - 1.0})


def _scores(config: Config) -> Iterator[Mistake]:
    if config.score_cap:
        act = config_to(score_cap=0.0)
        yield Mistake(f"scores without their soft cap, {config.score_cap:g}", {"scores": act}, 0)
        yield Mistake("scores capped before they are scaled", {"scores": _capped_first})
    if config.sinks:
        yield Mistake("a softmax without its sinks", {"pattern": config_to(sinks=False)}, 0)
    if config.positions == "alibi":
        level = config_to(positions="none")
        yield Mistake("scores without the distances of ALiBi", {"scores": level}, 0)
        for says, slopes in {
            "distances of ALiBi that are added and not subtracted": _negative,
            "slopes of ALiBi in the wrong order of heads": lambda s: s[::-1],
            "one slope of ALiBi for all heads": lambda s: s[:1] * len(s),
        }.items():
            yield Mistake(says, {"scores": _with_slopes(slopes)})


def _negative(slopes: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(-each for each in slopes)


def _added_unscaled(at: At, operation: Operation) -> Near:
    """Act: add what is written without `write_scale`."""
    scale = at.config.write_scale
    written = {
        kind: Near(near.value / scale, near.error / scale)
        for kind, near in at.inputs.items()
        if not kind.startswith("resid")
    }
    return operation(with_inputs(at, **written))


@makes_act
def _with_slopes(
    at: At, operation: Operation, change: Callable[[tuple[float, ...]], tuple[float, ...]]
) -> Near:
    """Act: lower the scores with the distance by other slopes."""
    level = operation(with_config(at, positions="none"))
    slopes = np.array(change(at.config.alibi_slopes))[:, None, None]
    by = slopes * (np.arange(at.n_pos)[:, None] - np.arange(at.n_pos))
    value = level.value - by
    own = np.abs(level.value) + np.abs(slopes) * at.n_pos
    return Near(value, level.error + (0.0 if at.p.exact else at.p.stored(3) * own))


def _capped_first(at: At, operation: Operation) -> Near:
    """Act: cap the products of queries and keys, and scale them then."""
    scale = at.config.score_scale
    near = operation(with_config(at, attn_scale=1.0))
    return Near(near.value * scale, near.error * scale * 2)


def _windows(config: Config) -> Iterator[Mistake]:
    """Yield windows that are wrong by one, that are not there, or that are in other layers."""
    widths = {each for each in config.windows if each}
    if not widths:
        return
    one = widths.pop()
    changes: dict[str, Callable[[int], int]] = {
        "windows that are longer by one key": lambda w: w + 1 if w else 0,
        "windows that are shorter by one key": lambda w: max(w - 1, 1) if w else 0,
        "no windows: all layers see all earlier keys": lambda w: 0,
    }
    if 0 in config.windows:
        changes["windows in all layers"] = lambda w: w or one
        changes["windows in the other layers"] = lambda w: 0 if w else one
    for says, change in changes.items():
        yield Mistake(says, dict.fromkeys(("scores", "pattern"), _seen_through(change)), 0)


@makes_act
def _seen_through(at: At, operation: Operation, change: Callable[[int], int]) -> Near:
    """Act: see as many keys as another window lets through."""
    window = change(at.config.window)
    if window == at.config.window:
        return operation(at)
    return operation(with_config(at, windows=(window,) * at.config.n_layers, local_base=0.0))


def _bases(config: Config) -> Iterator[Mistake]:
    if not config.local_base:
        return
    whole = {"rotary_base": config.rotary_base, "rotary_stretch": config.rotary_stretch}
    local = {"rotary_base": config.local_base, "rotary_stretch": ()}
    for says, fields in {
        "layers with a window turned by the rotary base of the others": whole,
        "layers without a window turned by the rotary base of those with one": local,
    }.items():
        yield Mistake(says, dict.fromkeys(READS, config_to(**fields)), 0)


def _query_norms(config: Config) -> Iterator[Mistake]:
    """Yield norms of queries and keys that are missing, or over something else, or too late."""
    if config.qk_norm == "none":
        return
    other = "all" if config.qk_norm == "head" else "head"
    over = "all heads together" if other == "all" else "each head by itself"
    acts: dict[str, Act] = {
        "without their norm": config_to(qk_norm="none"),
        "without the gain of their norm": _without_gain,
        f"normalised over {over}": config_to(qk_norm=other),
        "normalised over the wrong axis: over the heads of a position": _over_axis(0),
        "normalised over the wrong axis: over the positions of a head": _over_axis(1),
    }
    if config.positions == "rotary":
        acts["normalised after the rotation and not before"] = _normed_late
    for says, act in acts.items():
        yield Mistake(f"queries and keys {says}", dict.fromkeys(READS, act), 0)
        yield Mistake(f"queries {says}", {"q": act}, 1)
        yield Mistake(f"keys {says}", {"k": act}, 1)


def _gain(at: At) -> Near:
    return at.weight(f"{at.weights.kind}_norm_gain")


def _without_gain(at: At, operation: Operation) -> Near:
    return weights_to(**{f"{at.weights.kind}_norm_gain": np.ones_like})(at, operation)


def _normed_late(at: At, operation: Operation) -> Near:
    """Act: normalise rotated queries or keys."""
    return normed_heads(at, operation(with_config(at, qk_norm="none")), _gain(at))


@makes_act
def _over_axis(at: At, operation: Operation, axis: int) -> Near:
    """Act: normalise queries or keys [head, pos, d_head] over another axis, and rotate them."""
    plain = operation(with_config(unturned(at), qk_norm="none"))

    def turned(array: np.ndarray) -> np.ndarray:
        return np.moveaxis(np.broadcast_to(array, plain.value.shape), axis, -1)

    gain = _gain(at)
    value, error = (turned(each[:, None]) for each in (gain.value, gain.error))
    rows = Near(turned(plain.value), turned(np.asarray(plain.error)))
    config = at.config
    near = normalised(rows, config.norm, config.norm_eps, Near(value, error), None, at.p)
    back = [
        np.moveaxis(np.broadcast_to(x, rows.value.shape), -1, axis)
        for x in (near.value, near.error)
    ]
    normed = Near(*back)
    return rotated(normed, *config.rotation, p=at.p) if config.positions == "rotary" else normed
