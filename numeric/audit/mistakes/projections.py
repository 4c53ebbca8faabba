"""Mistakes in the projections to queries, keys and values: order, heads, inputs."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.reference.edits import (
    after,
    given,
    moved,
    moved_after,
    reading,
    scaled,
    unturned,
    weights_from,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation, makes_act
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.functions import normalised, rotated
from otimes.numeric.rounding.linear import Array, Near, added

LETTERS = {"q": "Q", "k": "K", "v": "V"}
NAMES = {"q": "queries", "k": "keys", "v": "values"}
Change = Callable[[Array], Array]

SPLITS: dict[str, Change] = {
    "a wrong head stride (features split as d_head × heads and not heads × d_head)": (
        lambda flat: flat.reshape(*flat.shape[:-2], *flat.shape[:-3:-1]).swapaxes(-1, -2)
    ),
    "a wrong head stride (heads × d_head laid out as d_head × heads)": (
        lambda flat: flat.swapaxes(-1, -2).reshape(flat.shape)
    ),
    "heads in reverse order": lambda flat: flat[..., ::-1, :],
    "heads off by one": partial(np.roll, shift=1, axis=-2),
    "heads off by one, the other way": partial(np.roll, shift=-1, axis=-2),
    "the features of each head in reverse order": lambda flat: flat[..., ::-1],
}
"""What becomes of features [..., head, d_head] that are split wrongly into heads."""

FUSED: dict[str, Change] = {
    "its heads' q, k and v lie together, and it is cut in thirds": (
        lambda columns: columns.swapaxes(-3, -2).reshape(columns.shape)
    ),
    "q, k and v lie in thirds, and it is cut head by head": (
        lambda columns: columns.reshape(
            *columns.shape[:-3], columns.shape[-2], 3, columns.shape[-1]
        ).swapaxes(-3, -2)
    ),
}
"""What becomes of the columns [..., q k v, head, d_head] of a fused matrix that is cut wrongly."""

BEFORE = "each position has those of the position before"
STALE: dict[str, Change] = {
    BEFORE: lambda array: np.append(array[..., :1, :], array[..., :-1, :], axis=-2),
    "the last position has those of the one before": (
        lambda array: np.append(array[..., :-1, :], array[..., -2:, :][..., :1, :], axis=-2)
    ),
    f"{BEFORE}, and the first has zeros": (
        lambda array: np.append(0 * array[..., :1, :], array[..., :-1, :], axis=-2)
    ),
    f"{BEFORE}, and the first those of the last": partial(np.roll, shift=1, axis=-2),
}

ROOT_MEAN_SQUARE = "each divided by its root mean square"
NORMALISED: dict[str, Callable[[At, Near], Near]] = {
    ROOT_MEAN_SQUARE: lambda at, near: _normalised(at, near, 0.0),
    f"{ROOT_MEAN_SQUARE}, with ε = 1e-06": lambda at, near: _normalised(at, near, 1e-6),
    "each divided by its length": (
        lambda at, near: scaled(_normalised(at, near, 0.0), at.config.d_head**-0.5)
    ),
}
"""How queries or keys are normalised by mistake; a rotation preserves their lengths."""


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of queries, keys and values."""
    if not config.n_layers:
        return
    if not config.kv_rank:  # which has no matrices of one shape to confuse
        yield from _orders()
    several = (("q", "k", "v"), ("q",), ("k",), ("v",), ("q", "k"))
    for kinds in several:
        which = " and ".join(NAMES[kind] for kind in kinds)
        if config.n_heads > 1:
            for says, act in _splits(config):
                yield Mistake(f"{says}: {which}", dict.fromkeys(kinds, act))
        if config.norm != "none" and not config.post_norm:
            says = f"attention reads the stream and not the norm of it: {which}"
            yield Mistake(says, dict.fromkeys(kinds, reading("resid_pre")), 0)
    if config.kv_heads == config.n_heads > 1 and not config.kv_rank:
        for says, order in FUSED.items():
            says = f"a fused q, k, v matrix interleaved wrongly: {says}"
            yield Mistake(says, dict.fromkeys(NAMES, _fused(order)))
    if config.kv_heads < config.n_heads:
        yield from _groups(config)
    for kinds in (("k",), ("v",), ("k", "v")):
        which = " and ".join(NAMES[kind] for kind in kinds)
        for says, change in STALE.items():
            yield Mistake(f"stale {which}: {says}", dict.fromkeys(kinds, moved_after(change)))
        yield Mistake(f"{which} of the position after", dict.fromkeys(kinds, moved_after(_after)))
    for says, normal in NORMALISED.items():
        acts = dict.fromkeys(("q", "k"), after(normal))
        yield Mistake(f"queries and keys normalised: {says}", acts)


def _after(array: Array) -> Array:
    return np.append(array[..., 1:, :], array[..., -1:, :], axis=-2)


def _orders() -> Iterator[Mistake]:
    """Yield the mistakes of exchanged weights of queries, keys and values."""
    wrong = "q, k and v in the wrong order:"
    for kind, name in NAMES.items():
        for other in LETTERS.values():
            if other != LETTERS[kind]:
                yield Mistake(
                    f"{wrong} {name} made with W_{other}", {kind: _made_with(kind, other)}
                )
    for order in ("qvk", "kqv", "kvq", "vqk", "vkq"):
        pairs = zip(NAMES, order, strict=True)
        acts = {kind: _made_with(kind, LETTERS[by]) for kind, by in pairs if kind != by}
        yield Mistake(f"{wrong} the fused matrix is split as {', '.join(order)}", acts)


def _made_with(kind: str, other: str) -> Act:
    return weights_from(**{f"W_{LETTERS[kind]}": f"W_{other}"})


def _splits(config: Config) -> Iterator[tuple[str, Act]]:
    """Yield the wrong splits of a projection into heads, after or before the bias is added."""
    view = "a wrong head stride (a view as [heads, positions] where a transpose is needed)"
    for biased in (True, False) if config.biases else (True,):
        before = "" if biased else ", before the bias is added"
        for says, order in SPLITS.items():
            yield f"{says}{before}", _heads_split(order, biased)
        yield f"{view}{before}", _viewed(biased)


def _share(at: At) -> int:
    """Return the number of heads in a group, which share weights."""
    return 1 if at.weights.kind == "q" else at.config.n_heads // at.config.kv_heads


@makes_act
def _heads_split(at: At, operation: Operation, order: Change, biased: bool) -> Near:
    """Act: split the projection into heads in another way.

    The projection is split before any rotation, and after the bias is added if `biased`.
    """
    letter, share = LETTERS[at.weights.kind], _share(at)
    weight = at.weights[f"W_{letter}"][::share]  # of each group once
    weight = np.moveaxis(order(np.moveaxis(weight, 0, 1)), 1, 0)
    changed = {f"W_{letter}": np.repeat(weight, share, axis=0)}
    if biased and f"b_{letter}" in at.config.biases:
        bias = order(at.weights[f"b_{letter}"][::share])
        changed[f"b_{letter}"] = np.repeat(bias, share, axis=0)
    return operation(with_weights(at, **changed))


@makes_act
def _viewed(at: At, operation: Operation, biased: bool) -> Near:
    """Act: reshape [pos, head, d_head] to [head, pos, d_head]."""
    share, config, bias = _share(at), at.config, f"b_{LETTERS[at.weights.kind]}"

    def view(array: Array) -> Array:
        once = array[::share]
        return np.repeat(np.moveaxis(once, 0, 1).reshape(once.shape), share, axis=0)

    if biased or bias not in config.biases:
        made = moved(operation(unturned(at)), view)
    else:
        without = with_weights(unturned(at), **{bias: np.zeros_like(at.weights[bias])})
        made = moved(operation(without), view)
        made = added(at.p, made, Near.exactly(np.array(at.weights[bias][:, None])))
    if config.positions != "rotary" or at.weights.kind == "v":
        return made
    return rotated(made, *config.rotation, p=at.p)


@makes_act
def _fused(at: At, operation: Operation, order: Change) -> Near:
    """Act: read a fused matrix of one layout in another."""
    kind = at.weights.kind

    def read(name: str) -> Array:
        fused = np.stack([at.weights[f"{name}_{letter}"] for letter in LETTERS.values()])
        columns = order(np.moveaxis(fused, (0, 1), (-3, -2)))
        return np.moveaxis(columns[..., "qkv".index(kind), :, :], -2, 0)

    names = [name for name in "Wb" if at.config.has(f"{name}_{LETTERS[kind]}")]
    return operation(with_weights(at, **{f"{n}_{LETTERS[kind]}": read(n) for n in names}))


def _groups(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of wrong groups of keys and values: when repeated, or when read."""
    share, groups = config.n_heads // config.kv_heads, config.kv_heads
    every = np.arange(config.n_heads)
    tiled = f"in the wrong order: tiled (head h reads group h mod {groups}) and not interleaved"
    orders: dict[str, Change] = {
        tiled: lambda a: a[every % groups * share],
        "of the first group used by all heads": lambda a: a[0 * every],
        "in reverse order of the groups": lambda a: a[::-1],
        "averaged over the groups, for all heads": (
            lambda a: np.broadcast_to(a.mean(axis=0), a.shape)
        ),
    }
    for says, order in orders.items():
        stored: dict[str, Act] = dict.fromkeys(("k", "v"), moved_after(order))
        read: dict[str, Act] = {"scores": given(k=order), "z": given(v=order)}
        for how, acts in ((", as they are repeated", stored), ("", read)):
            yield Mistake(f"grouped keys and values {says}{how}", acts)
            for name, (kind, act) in zip(("keys", "values"), acts.items(), strict=True):
                yield Mistake(f"grouped {name} {says}{how}", {kind: act})


def _normalised(at: At, near: Near, eps: float) -> Near:
    ones = Near.exactly(np.ones(at.config.d_head))
    return normalised(near, "rms", eps, ones, None, at.p)
