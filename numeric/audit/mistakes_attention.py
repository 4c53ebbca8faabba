"""Mistakes of attention: queries, keys and values; scale, mask and softmax; what is mixed."""

from collections.abc import Callable, Iterator

import numpy as np

from numeric.audit.change import (
    config_to,
    moved,
    other_place,
    scaled,
    with_config,
    with_inputs,
    with_weights,
)
from numeric.audit.evaluate import Act, Mistake, Operation
from numeric.config import LAYOUTS, Config
from numeric.functions import causal_mask, rotary_frequencies
from numeric.rounding.functions import rotated, softmax
from numeric.rounding.linear import Array, Near, added, linear
from numeric.rounding.places import At

LETTERS = {"q": "Q", "k": "K", "v": "V"}
BASES: tuple[float, ...] = (
    100.0,
    500.0,
    1000.0,
    5000.0,
    10000.0,
    25000.0,
    40000.0,
    50000.0,
    100000.0,
    160000.0,
)
BASES += (250000.0, 500000.0, 1000000.0, 5000000.0, 10000000.0)
CAPS = (20.0, 30.0, 50.0)
FILLS = (0.0, -1.0, -5.0, -10.0, -20.0, -50.0, -100.0, -1e3, -1e4)


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of attention."""
    if not config.n_layers:
        return
    yield from _projections(config)
    if config.positions == "rotary":
        yield from _rotary(config)
    yield from _scores(config)
    yield from _pattern(config)
    yield from _mixing(config)


def _projections(config: Config) -> Iterator[Mistake]:
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
        if config.norm != "none":
            yield Mistake(
                f"unnormalised_{''.join(kinds)}",
                f"attention reads the stream and not the norm of it: {which}",
                dict.fromkeys(kinds, _from_place("resid_pre")),
                0,
            )
    for kind in ("k", "v"):
        yield Mistake(
            f"stale_{kind}",
            f"stale {names[kind]}: each position has those of the position before",
            {kind: _shifted(1)},
        )
        yield Mistake(
            f"stale_last_{kind}",
            f"stale {names[kind]}: the last position has those of the one before",
            {kind: _last_stale},
        )
        yield Mistake(
            f"early_{kind}",
            f"{names[kind]} of the position after",
            {kind: _shifted(-1)},
        )


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
    (
        "heads_reversed",
        "heads in reverse order",
        lambda flat: flat[..., ::-1, :],
    ),
    (
        "heads_rolled",
        "heads off by one",
        lambda flat: np.roll(flat, 1, axis=-2),
    ),
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
    """Return the act of cutting what the projection gives into heads in another way.

    What is cut is [..., head, d_head] side by side, before any rotation, and the bias with it if
    it is added before (`biased`).
    """

    def act(at: At, operation: Operation) -> Near:
        letter = LETTERS[at.weights.kind]
        weight = np.moveaxis(at.weights[f"W_{letter}"], 0, 1)  # [d_model, head, d_head]
        changed = {f"W_{letter}": np.moveaxis(order(weight), 1, 0)}
        if biased and f"b_{letter}" in at.config.biases:
            changed[f"b_{letter}"] = order(at.weights[f"b_{letter}"])
        return operation(with_weights(at, **changed))

    return act


def _viewed(biased: bool) -> Act:
    """Return the act of reading [pos, head, d_head] as if it were [head, pos, d_head]."""

    def view(array: Array) -> Array:
        return np.moveaxis(array, 0, 1).reshape(array.shape)

    def act(at: At, operation: Operation) -> Near:
        letter = LETTERS[at.weights.kind]
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
    """Return the act of reading a fused matrix, made in one layout, by another.

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


def _shifted(by: int) -> Act:
    def shift(array: Array) -> Array:
        rows = np.clip(np.arange(array.shape[-2]) - by, 0, array.shape[-2] - 1)
        return array[..., rows, :]

    return lambda at, operation: moved(operation(at), shift)


def _last_stale(at: At, operation: Operation) -> Near:
    def stale(array: Array) -> Array:
        rows = np.arange(array.shape[-2])
        rows[-1] = max(len(rows) - 2, 0)
        return array[..., rows, :]

    return moved(operation(at), stale)


# -- rotation --------------------------------------------------------------------------------------


def _rotary(config: Config) -> Iterator[Mistake]:
    both = ("q", "k")
    sides = (both, ("q",), ("k",))
    names = {both: "", ("q",): ", of queries only", ("k",): ", of keys only"}

    def each(name: str, says: str, act: Act, rank: int = 1) -> Iterator[Mistake]:
        for side in sides:
            yield Mistake(
                f"{name}_{''.join(side)}", says + names[side], dict.fromkeys(side, act), rank
            )

    yield Mistake("rotary_missing", "without rotary positions", dict.fromkeys(both, _unturned), 0)
    yield Mistake(
        "rotary_k_only", "rotary positions of keys only: queries are not turned", {"q": _unturned}
    )
    yield Mistake(
        "rotary_q_only", "rotary positions of queries only: keys are not turned", {"k": _unturned}
    )
    (layout,) = [each_ for each_ in LAYOUTS if each_ != config.rotary_layout]
    yield from each(
        "rotary_layout",
        f"rotary positions in the wrong layout, {layout!r} for {config.rotary_layout!r}",
        config_to(rotary_layout=layout),
    )
    yield from each(
        "rotary_direction", "rotary positions turned in the wrong direction", _turned(_backwards)
    )
    for by in (1, -1, 2):
        yield from each(
            f"rotary_offset_{by}",
            f"rotary positions off by one (they begin at {by})"
            if by != 2
            else "rotary positions that begin at 2",
            _turned(_offset(by)),
        )
    yield from each("rotary_twice", "rotary positions applied twice", _turned(_twice))
    for name, first, second in (("first", -1.0, 1.0), ("second", 1.0, -1.0)):
        yield from each(
            f"rotary_sine_sign_{name}",
            f"rotary positions with the sine's sign wrong in the {name} half",
            _turned(_one_sign(first, second)),
        )
    yield from each(
        "rotary_swapped", "rotary positions with sine and cosine swapped", _turned(_swapped)
    )
    yield from each(
        "rotary_exponent",
        "rotary frequencies with a wrong exponent (i/d for 2i/d)",
        _turned(_exponent(0.5)),
    )
    yield from each(
        "rotary_exponent_double",
        "rotary frequencies with a wrong exponent (4i/d for 2i/d)",
        _turned(_exponent(2.0)),
    )
    if config.rotary_dims != config.d_head:
        yield from each(
            "rotary_frequencies_of_head",
            "rotary frequencies spread over d_head and not over the turned dimensions",
            _turned(_exponent(config.rotary_dims / config.d_head)),
        )
    for base in BASES:
        if base != config.rotary_base:
            yield from each(
                f"rotary_base_{base:g}",
                f"rotary base {base:g} for {config.rotary_base:g}",
                config_to(rotary_base=base),
            )
    step = 2 if config.d_head <= 16 else 8
    for dims in range(step, config.d_head + 1, step):
        if dims != config.rotary_dims:
            yield from each(
                f"rotary_width_{dims}",
                f"rotary width {dims} for {config.rotary_dims}",
                config_to(rotary_dims=dims),
            )
    if config.rotary_dims != config.d_head:
        yield from each(
            "rotary_last",
            "rotary positions that turn the last dimensions of a head, not the first",
            _turned(_last_dimensions),
        )
    yield from each(
        "rotary_reversed", "rotary positions counted from the end", _turned(_reversed_positions)
    )
    yield from each(
        "rotary_scaled", "rotary positions divided by 2 (interpolated)", _turned(_stretched(0.5))
    )
    yield Mistake("rotary_v", "rotary positions applied to values as well", {"v": _values_turned})
    for fraction in (2.0, 4.0, 8.0):
        yield from each(
            f"rotary_stretched_{fraction:g}",
            f"rotary frequencies divided by {fraction:g} (linear scaling)",
            _turned(_stretched(1 / fraction)),
        )


Turn = Callable[[Array, Array, Array, Array], tuple[Array, Array]]


def _unturned(at: At, operation: Operation) -> Near:
    return operation(with_config(at, positions="none", rotary_dims=0))


def _turned(turn: Callable[[Array, Config], Array]) -> Act:
    """Return the act of turning the rows [head, pos, d_head] in another way."""

    def act(at: At, operation: Operation) -> Near:
        plain = _unturned(at, operation)
        value = turn(plain.value, at.config)
        pairs = 2 * np.abs(plain.value).max(axis=-1, keepdims=True)
        spread = np.array(plain.error).max(axis=-1, keepdims=True) * 2
        error = spread + at.p.inner * pairs * (8 + 4 * value.shape[-2])
        return Near(value, np.broadcast_to(error, value.shape))

    return act


def _pairs(config: Config) -> tuple[Array, Array]:
    pair = np.arange(config.rotary_dims // 2)
    if config.rotary_layout == "interleaved":
        return 2 * pair, 2 * pair + 1
    return pair, pair + config.rotary_dims // 2


def _angles(config: Config, positions: Array, exponent: float = 1.0) -> Array:
    dims, base, _, stretch = config.rotation
    frequencies = rotary_frequencies(dims, base**exponent, stretch)
    angles: Array = positions[:, None] * frequencies
    return angles


def _turn(
    rows: Array, config: Config, cos: Array, sin: Array, signs: tuple[float, float] = (1.0, 1.0)
) -> Array:
    first, second = _pairs(config)
    turned = rows.copy()
    a, b = rows[..., first], rows[..., second]
    turned[..., first] = a * cos - signs[0] * b * sin
    turned[..., second] = signs[1] * a * sin + b * cos
    return turned


def _by(rows: Array, config: Config, angles: Array) -> Array:
    return _turn(rows, config, np.cos(angles), np.sin(angles))


def _backwards(rows: Array, config: Config) -> Array:
    return _by(rows, config, -_angles(config, np.arange(rows.shape[-2])))


def _twice(rows: Array, config: Config) -> Array:
    return _by(rows, config, 2 * _angles(config, np.arange(rows.shape[-2])))


def _one_sign(first: float, second: float) -> Callable[[Array, Config], Array]:
    def turn(rows: Array, config: Config) -> Array:
        angles = _angles(config, np.arange(rows.shape[-2]))
        return _turn(rows, config, np.cos(angles), np.sin(angles), (first, second))

    return turn


def _swapped(rows: Array, config: Config) -> Array:
    angles = _angles(config, np.arange(rows.shape[-2]))
    return _turn(rows, config, np.sin(angles), np.cos(angles))


def _reversed_positions(rows: Array, config: Config) -> Array:
    return _by(rows, config, _angles(config, np.arange(rows.shape[-2])[::-1]))


def _offset(by: int) -> Callable[[Array, Config], Array]:
    return lambda rows, config: _by(rows, config, _angles(config, np.arange(rows.shape[-2]) + by))


def _stretched(factor: float) -> Callable[[Array, Config], Array]:
    return lambda rows, config: _by(
        rows, config, _angles(config, np.arange(rows.shape[-2]) * factor)
    )


def _exponent(factor: float) -> Callable[[Array, Config], Array]:
    return lambda rows, config: _by(
        rows, config, _angles(config, np.arange(rows.shape[-2]), factor)
    )


def _last_dimensions(rows: Array, config: Config) -> Array:
    kept = rows.shape[-1] - config.rotary_dims
    turned = rows.copy()
    angles = _angles(config, np.arange(rows.shape[-2]))
    turned[..., kept:] = _by(rows[..., kept:], config, angles)
    return turned


def _values_turned(at: At, operation: Operation) -> Near:
    plain = operation(at)
    value = _by(plain.value, at.config, _angles(at.config, np.arange(at.n_pos)))
    pairs = np.abs(plain.value).max(axis=-1, keepdims=True)
    error = 2 * np.array(plain.error).max(axis=-1, keepdims=True)
    return Near(value, np.broadcast_to(error + at.p.inner * pairs * (8 + at.n_pos), value.shape))


# -- scores ----------------------------------------------------------------------------------------


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
    seen: set[float] = {1.0}
    for name, (says, factor) in factors.items():
        if round(factor, 12) not in seen:
            seen.add(round(factor, 12))
            act = _times(factor)
            yield Mistake(name, says, {"scores": act}, 0 if name == "scale_missing" else 1)
    yield Mistake(
        "scale_by_layer",
        "scores divided by the number of the layer as well (as scale_attn_by_inverse_layer_idx)",
        {"scores": lambda at, op: scaled(op(at), 1 / ((at.weights.layer or 0) + 1))},
    )
    yield Mistake(
        "scores_transposed",
        "scores transposed: K Qᵀ for Q Kᵀ",
        {"scores": _queries_and_keys_swapped},
    )
    for cap in CAPS:
        yield Mistake(
            f"scores_capped_{cap:g}",
            f"scores soft-capped at {cap:g}",
            {"scores": lambda at, op, cap=cap: capped(op(at), cap)},  # type: ignore[misc]  # a default binds
        )
    yield Mistake(
        "scores_of_queries", "scores of queries with queries", {"scores": _self_scores("q")}
    )
    yield Mistake("scores_of_keys", "scores of keys with keys", {"scores": _self_scores("k")})
    yield Mistake("scores_of_values", "scores with values for keys", {"scores": _value_scores})
    if config.n_heads > 1:
        yield Mistake(
            "keys_of_next_head",
            "each head's queries meet the keys of another head (off by one)",
            {"scores": _keys_of(lambda k: np.roll(k, 1, axis=0))},
        )
        yield Mistake(
            "keys_of_next_head_back",
            "each head's queries meet the keys of another head (off by one, the other way)",
            {"scores": _keys_of(lambda k: np.roll(k, -1, axis=0))},
        )
    yield Mistake(
        "distance_bias",
        "scores with a bias for distance (ALiBi)",
        {"scores": _alibi},
    )


def _times(factor: float) -> Act:
    return lambda at, operation: scaled(operation(at), factor)


def capped(near: Near, cap: float) -> Near:
    """Return cap · tanh(x / cap); its slope is at most 1."""
    value = cap * np.tanh(near.value / cap)
    return Near(value, near.error * 2)


def _queries_and_keys_swapped(at: At, operation: Operation) -> Near:
    return operation(with_inputs(at, q=at.inputs["k"], k=at.inputs["q"]))


def _self_scores(kind: str) -> Act:
    return lambda at, operation: operation(with_inputs(at, q=at.inputs[kind], k=at.inputs[kind]))


def _value_scores(at: At, operation: Operation) -> Near:
    return operation(with_inputs(at, k=other_place(at, "v")))


def _keys_of(order: Callable[[Array], Array]) -> Act:
    return lambda at, operation: operation(with_inputs(at, k=moved(at.inputs["k"], order)))


def _alibi(at: At, operation: Operation) -> Near:
    near = operation(at)
    heads, n_pos = at.config.n_heads, at.n_pos
    slopes = 2.0 ** (-8 * (np.arange(heads) + 1) / heads)
    distance = np.arange(n_pos)[:, None] - np.arange(n_pos)
    return Near(near.value - slopes[:, None, None] * distance, near.error * 2)


# -- pattern ---------------------------------------------------------------------------------------


def _pattern(config: Config) -> Iterator[Mistake]:
    def mask(name: str, says: str, visible: Callable[[int], Array], rank: int = 1) -> Mistake:
        return Mistake(name, says, {"pattern": _masked(visible)}, rank)

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
    yield Mistake(
        "mask_one_less_all",
        "a causal mask off by one: no query sees its own key (the first sees all)",
        {"pattern": _masked(_strict_all)},
    )
    yield Mistake(
        "mask_one_less_none",
        "a causal mask off by one: no query sees its own key (the first attends to nothing)",
        {"pattern": _first_blind},
    )
    yield mask(
        "mask_reversed",
        "a causal mask the wrong way round: each query sees itself and all after it",
        lambda n: np.tri(n, dtype=bool).T,
    )
    yield mask(
        "mask_two_more",
        "a causal mask off by two",
        lambda n: np.tri(n, k=2, dtype=bool),
    )
    yield mask("own_key_only", "an attention to itself only", lambda n: np.eye(n, dtype=bool))
    yield Mistake(
        "mask_after_softmax",
        "a causal mask applied after the softmax, without normalising again",
        {"pattern": _mask_after},
        0,
    )
    yield Mistake(
        "mask_multiplied",
        "a causal mask multiplied into the scores: masked scores are 0 and not -∞",
        {"pattern": _softly_masked(None)},
    )
    for fill in FILLS:
        yield Mistake(
            f"mask_fill_{fill:g}",
            f"a causal mask that is not -∞: {fill:g} is added to masked scores",
            {"pattern": _softly_masked(fill)},
        )
        yield Mistake(
            f"mask_set_{fill:g}",
            f"a causal mask that is not -∞: masked scores are set to {fill:g}",
            {"pattern": _softly_masked(fill, put=True)},
        )
    for axis, says in ((-2, "over the queries and not the keys"), (0, "over the heads")):
        yield Mistake(
            f"softmax_axis_{axis}",
            f"a softmax over the wrong axis: {says}",
            {"pattern": _softmax_over(axis)},
            0,
        )
    yield Mistake(
        "softmax_axis_all",
        "a softmax over the wrong axes: over queries and keys together",
        {"pattern": _softmax_over((-2, -1))},
    )
    yield Mistake(
        "softmax_plus_one",
        "a softmax with 1 added to its denominator",
        {"pattern": _sink},
    )
    yield Mistake("softmax_missing", "no softmax: the masked scores themselves", {"pattern": _bare})
    yield Mistake("softmax_twice", "a softmax of the softmax", {"pattern": _twice_normalised})
    yield Mistake(
        "softmax_twice_over_all",
        "a softmax of the softmax, taken over masked keys as well",
        {"pattern": _normalised_over_all},
    )
    yield Mistake("sigmoid_for_softmax", "a sigmoid for the softmax", {"pattern": _sigmoid})
    yield Mistake(
        "pattern_rescaled",
        "scores divided by √d_head once more before the softmax",
        {"pattern": _tempered(config.d_head**-0.5)},
    )
    yield Mistake(
        "pattern_unscaled",
        "without the scale 1/√d_head in the softmax",
        {"pattern": _tempered(config.d_head**0.5)},
    )
    yield Mistake(
        "pattern_other_base",
        "a softmax of base 2 without rescaling",
        {"pattern": _tempered(float(np.log(2)))},
    )
    for window in range(1, 65):
        if window < config.n_ctx:
            yield Mistake(
                f"window_{window}",
                f"a sliding window of {window}: each query sees the last {window} keys only",
                {"pattern": _masked(_window(window))},
                2,
            )
    yield Mistake(
        "first_key_hidden",
        "a causal mask that hides the first key from all later queries",
        {"pattern": _masked(_without_first)},
    )


def _strict(by: int) -> Callable[[int], Array]:
    def visible(n: int) -> Array:
        seen = np.tri(n, k=-by, dtype=bool)
        seen[0, 0] = True
        return seen

    return visible


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
    """Return the scores of all pairs, masked or not, from what is shown or computed of q and k."""
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


def _mask_after(at: At, operation: Operation) -> Near:
    near = softmax(whole_scores(at), np.ones((at.n_pos, at.n_pos), bool), at.p, online=True)
    return scaled(near, causal_mask(at.n_pos).astype(np.float64))


def _softmax_over(axis: int | tuple[int, int]) -> Act:
    def act(at: At, operation: Operation) -> Near:
        scores = whole_scores(at)
        seen = causal_mask(at.n_pos)

        def last(array: Array) -> Array:
            if isinstance(axis, tuple):
                return array.reshape(array.shape[0], 1, -1)
            return np.moveaxis(array, axis, -1)

        shape = scores.value.shape
        near = softmax(moved(scores, last), last(np.broadcast_to(seen, shape)), at.p, online=True)
        if isinstance(axis, tuple):
            return moved(near, lambda array: array.reshape(shape))
        return moved(near, lambda array: np.moveaxis(array, -1, axis))

    def hidden_too(at: At, operation: Operation) -> Near:
        if axis != 0:
            return act(at, operation)
        scores = whole_scores(at)
        near = softmax(
            moved(scores, lambda a: np.moveaxis(a, 0, -1)),
            np.ones((1, 1, 1), bool),
            at.p,
            online=True,
        )
        near = moved(near, lambda a: np.moveaxis(a, -1, 0))
        return scaled(near, causal_mask(at.n_pos).astype(np.float64))

    return hidden_too


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


# -- what is mixed ---------------------------------------------------------------------------------


def _mixing(config: Config) -> Iterator[Mistake]:
    def mix(name: str, says: str, act: Act, rank: int = 1) -> Mistake:
        return Mistake(name, says, {"z": act}, rank)

    yield mix("pattern_transposed", "values mixed with the pattern transposed", _transposed)
    for kind, name in (("k", "keys"), ("q", "queries")):
        yield mix(f"mixes_{name}", f"{name} mixed and not values", _mixes(kind))
    for by in (1, -1):
        yield mix(
            f"values_of_next_head_{by}",
            "each head mixes the values of another head (off by one)",
            lambda at, op, by=by: op(  # type: ignore[misc]  # a default binds
                with_inputs(at, v=moved(at.inputs["v"], lambda v: np.roll(v, by, axis=0)))
            ),
        )
    yield mix("values_unmixed", "values passed on: nothing is mixed", lambda at, op: at.inputs["v"])
    for by in (1, -1):
        yield mix(
            f"values_shifted_{by}",
            "values of the position before" if by == 1 else "values of the position after",
            lambda at, op, by=by: op(  # type: ignore[misc]  # a default binds
                with_inputs(at, v=moved(at.inputs["v"], lambda v: np.roll(v, by, axis=1)))
            ),
        )
    for rate in (0.1, 0.05, 0.2, 0.5):
        yield mix(
            f"mixed_scaled_{rate:g}",
            f"what is mixed divided by {1 - rate:g}, as dropout of {rate:g} does",
            lambda at, op, rate=rate: scaled(op(at), 1 / (1 - rate)),  # type: ignore[misc]
        )


def _transposed(at: At, operation: Operation) -> Near:
    pattern = moved(at.inputs["pattern"], lambda a: np.swapaxes(a, -1, -2))
    return operation(with_inputs(at, pattern=pattern))


def _mixes(kind: str) -> Act:
    return lambda at, operation: operation(with_inputs(at, v=other_place(at, kind)))
