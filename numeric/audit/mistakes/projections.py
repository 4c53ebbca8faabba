"""Mistakes in the projections to queries, keys and values: order, heads, inputs."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.reference.edits import (
    moved,
    moved_after,
    other_place,
    scaled,
    with_config,
    with_inputs,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import Config
from otimes.numeric.rounding.functions import normalised, rotated
from otimes.numeric.rounding.linear import Array, Near, added
from otimes.numeric.rounding.places import At

LETTERS = {"q": "Q", "k": "K", "v": "V"}


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of queries, keys and values."""
    if not config.n_layers:
        return
    roles = ("Q", "K", "V")
    names = {"q": "queries", "k": "keys", "v": "values"}
    for kind, name in names.items():
        for other in roles:
            if other != LETTERS[kind]:
                yield Mistake(
                    f"{kind}_from_W_{other}",
                    f"q, k and v in the wrong order: {name} made with W_{other}",
                    {kind: _from_other(other)},
                )
    for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        said = ", ".join(roles[i].lower() for i in order)
        acts = {kind: _from_other(roles[order[i]]) for i, kind in enumerate(names) if order[i] != i}
        yield Mistake(
            f"order_{said.replace(', ', '')}",
            f"q, k and v in the wrong order: the fused matrix is split as {said}",
            acts,
        )
    share = config.n_heads // config.kv_heads
    if share == 1 and config.n_heads > 1:
        for name, says, source, target in (
            (
                "heads_in_thirds",
                "its heads' q, k and v lie together, and it is cut in thirds",
                1,
                0,
            ),
            ("thirds_in_heads", "q, k and v lie in thirds, and it is cut head by head", 0, 1),
        ):
            acts = {kind: _refused(kind, source, target) for kind in names}
            yield Mistake(name, f"a fused q, k, v matrix interleaved wrongly: {says}", acts)
    if config.n_heads > 1:
        for kinds in (("q", "k", "v"), ("q",), ("k",), ("v",), ("q", "k")):
            which = " and ".join(names[kind] for kind in kinds)
            for name, says, order_of in SPLITS:
                for biased in (True, False):
                    acts = {kind: _heads_split(order_of, biased) for kind in kinds}
                    which_bias = "" if biased else "_before_bias"
                    if biased or config.biases:
                        yield Mistake(
                            f"{name}_{''.join(kinds)}{which_bias}", f"{says}: {which}", acts
                        )
            for biased in (True, False):
                yield Mistake(
                    f"view_{''.join(kinds)}{'' if biased else '_before_bias'}",
                    "a wrong head stride (a view as [heads, positions] where a transpose is "
                    f"needed): {which}",
                    {kind: _viewed(biased) for kind in kinds},
                )
    if share > 1:
        yield Mistake(
            "groups_tiled",
            "grouped keys and values repeated in the wrong order: tiled (head h reads group h mod "
            f"{config.kv_heads}) and not interleaved",
            {kind: _regrouped(lambda h, share, groups: h % groups) for kind in ("k", "v")},
        )
        for kind in ("k", "v"):
            yield Mistake(
                f"groups_tiled_{kind}",
                f"grouped {names[kind]} repeated in the wrong order: tiled and not interleaved",
                {kind: _regrouped(lambda h, share, groups: h % groups)},
            )
        yield Mistake(
            "groups_first",
            "grouped keys and values of the first group used by all heads",
            {kind: _regrouped(lambda h, share, groups: 0) for kind in ("k", "v")},
        )
        yield Mistake(
            "groups_reversed",
            "groups of keys and values in reverse order",
            {kind: _regrouped(lambda h, share, groups: groups - 1 - h // share) for kind in "kv"},
        )
    for kinds in (("q", "k", "v"), ("q",), ("k",), ("v",), ("q", "k")):
        which = " and ".join(names[kind] for kind in kinds)
        if config.norm != "none" and not config.post_norm:
            yield Mistake(
                f"unnormalised_{''.join(kinds)}",
                f"attention reads the stream and not the norm of it: {which}",
                dict.fromkeys(kinds, _from_place("resid_pre")),
                0,
            )
    for kinds in (("k",), ("v",), ("k", "v")):
        which, key = " and ".join(names[kind] for kind in kinds), "".join(kinds)
        for name, says, act in STALE:
            made = dict.fromkeys(kinds, act)
            yield Mistake(f"{name}_{key}", f"stale {which}: {says}", made)
        made = dict.fromkeys(kinds, _shifted(-1))
        yield Mistake(f"early_{key}", f"{which} of the position after", made)
    for name, eps, says in NORMALISED:
        acts = dict.fromkeys(("q", "k"), _normalised(name, eps))
        yield Mistake(f"qk_norm_{name}_{eps:g}", f"queries and keys normalised: {says}", acts)


def _late(array: Array) -> Array:
    return np.concatenate([0 * array[..., :1, :], array[..., :-1, :]], axis=-2)


def _last_stale(array: Array) -> Array:
    rows = np.arange(array.shape[-2])
    rows[-1] = max(len(rows) - 2, 0)
    return array[..., rows, :]


def _shifted(by: int) -> Act:
    def shift(array: Array) -> Array:
        rows = np.clip(np.arange(array.shape[-2]) - by, 0, array.shape[-2] - 1)
        return array[..., rows, :]

    return moved_after(shift)


STALE: tuple[tuple[str, str, Act], ...] = (
    ("stale", "each position has those of the position before", _shifted(1)),
    ("stale_last", "the last position has those of the one before", moved_after(_last_stale)),
    (
        "late",
        "each position has those of the position before, and the first has zeros",
        moved_after(_late),
    ),
    (
        "rolled",
        "each position has those of the position before, and the first those of the last",
        moved_after(partial(np.roll, shift=1, axis=-2)),
    ),
)

NORMALISED = (
    ("rms", 0.0, "each divided by its root mean square"),
    ("rms", 1e-6, "each divided by its root mean square, with ε = 1e-06"),
    ("length", 0.0, "each divided by its length"),
)


def _normalised(name: str, eps: float) -> Act:
    """Return the change to normalised queries or keys; a rotation preserves their lengths."""

    def act(at: At, operation: Operation) -> Near:
        near = operation(at)
        ones = Near.exactly(np.ones(at.config.d_head))
        rows = normalised(near, "rms", eps, ones, None, at.p)
        return scaled(rows, at.config.d_head**-0.5) if name == "length" else rows

    return act


SPLITS: tuple[tuple[str, str, Callable[[Array], Array]], ...] = (
    (
        "head_stride",
        "a wrong head stride (features split as d_head × heads and not heads × d_head)",
        lambda flat: flat.reshape(*flat.shape[:-2], flat.shape[-1], flat.shape[-2]).swapaxes(
            -1, -2
        ),
    ),
    (
        "head_stride_back",
        "a wrong head stride (heads × d_head laid out as d_head × heads)",
        lambda flat: flat.swapaxes(-1, -2).reshape(flat.shape),
    ),
    ("heads_reversed", "heads in reverse order", lambda flat: flat[..., ::-1, :]),
    ("heads_rolled", "heads off by one", lambda flat: np.roll(flat, 1, axis=-2)),
    (
        "heads_rolled_back",
        "heads off by one, the other way",
        lambda flat: np.roll(flat, -1, axis=-2),
    ),
    (
        "head_features_reversed",
        "the features of each head in reverse order",
        lambda flat: flat[..., ::-1],
    ),
)


def _heads_split(order: Callable[[Array], Array], biased: bool) -> Act:
    """Return the change to another split of the projection into heads.

    What is cut is [..., head, d_head] side by side, before any rotation, and the bias with it if
    it is added before (`biased`).
    """

    def act(at: At, operation: Operation) -> Near:
        letter = LETTERS[at.weights.kind]
        share = 1 if letter == "Q" else at.config.n_heads // at.config.kv_heads
        weight = at.weights[f"W_{letter}"][::share]  # of each group once
        weight = np.moveaxis(order(np.moveaxis(weight, 0, 1)), 1, 0)
        changed = {f"W_{letter}": np.repeat(weight, share, axis=0)}
        if biased and f"b_{letter}" in at.config.biases:
            bias = order(at.weights[f"b_{letter}"][::share])
            changed[f"b_{letter}"] = np.repeat(bias, share, axis=0)
        return operation(with_weights(at, **changed))

    return act


def _viewed(biased: bool) -> Act:
    """Return the change to [pos, head, d_head] reshaped to [head, pos, d_head]."""

    def act(at: At, operation: Operation) -> Near:
        letter = LETTERS[at.weights.kind]
        share = 1 if letter == "Q" else at.config.n_heads // at.config.kv_heads

        def view(array: Array) -> Array:
            once = array[::share]
            return np.repeat(np.moveaxis(once, 0, 1).reshape(once.shape), share, axis=0)

        bias = f"b_{letter}"
        config = at.config
        bare = with_config(at, positions="none", rotary_dims=0)
        if biased or bias not in config.biases:
            made = moved(operation(bare), view)
        else:
            without = with_weights(bare, **{bias: np.zeros_like(at.weights[bias])})
            made = moved(operation(without), view)
            made = added(at.p, made, Near.exactly(np.array(at.weights[bias][:, None])))
        if config.positions != "rotary" or letter == "V":
            return made
        return rotated(made, *config.rotation, p=at.p)

    return act


def _from_other(other: str) -> Act:
    def act(at: At, operation: Operation) -> Near:
        letter = LETTERS[at.weights.kind]
        changed = {f"W_{letter}": at.weights[f"W_{other}"]}
        if f"b_{letter}" in at.config.biases:
            changed[f"b_{letter}"] = at.weights[f"b_{other}"]
        return operation(with_weights(at, **changed))

    return act


def _refused(kind: str, source: int, target: int) -> Act:
    """Return the change to a fused matrix of one layout read in another.

    The axes of the columns are (q k v, head, d_head) in layout 0 and (head, q k v, d_head) in 1.
    """
    number = "qkv".index(kind)

    def read(parts: list[Array]) -> Array:
        fused = np.stack(parts)  # [3, head, ..., d_head]
        heads, last = fused.shape[1], fused.shape[-1]
        columns = np.moveaxis(fused, (0, 1), (-3, -2))  # [..., 3, head, d_head]
        if source == 1:
            columns = columns.swapaxes(-3, -2)
        flat = columns.reshape(*columns.shape[:-3], 3 * heads * last)
        shape = (3, heads, last) if target == 0 else (heads, 3, last)
        cut = flat.reshape(*flat.shape[:-1], *shape)
        part = cut[..., number, :, :] if target == 0 else cut[..., :, number, :]
        return np.moveaxis(part, -2, 0)

    def act(at: At, operation: Operation) -> Near:
        letter = LETTERS[kind]
        changed = {f"W_{letter}": read([at.weights[f"W_{each}"] for each in "QKV"])}
        if f"b_{letter}" in at.config.biases:
            changed[f"b_{letter}"] = read([at.weights[f"b_{each}"] for each in "QKV"])
        return operation(with_weights(at, **changed))

    return act


def _regrouped(group: Callable[[int, int, int], int]) -> Act:
    def act(at: At, operation: Operation) -> Near:
        share = at.config.n_heads // at.config.kv_heads
        heads = [group(h, share, at.config.kv_heads) * share for h in range(at.config.n_heads)]
        return moved(operation(at), lambda array: array[heads])

    return act


def _from_place(kind: str) -> Act:
    def act(at: At, operation: Operation) -> Near:
        (name,) = at.inputs
        return operation(with_inputs(at, **{name: other_place(at, kind)}))

    return act
