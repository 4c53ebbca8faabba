"""Mistakes in rotary positions."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from otimes.numeric.audit.precision.lower_precision import in_type
from otimes.numeric.audit.reference.edits import config_to, with_config
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation
from otimes.numeric.config import LAYOUTS, Config
from otimes.numeric.functions import rotary_frequencies, rotary_scale
from otimes.numeric.rounding.linear import Array, Near
from otimes.numeric.rounding.places import At

BASES = (1e2, 5e2, 1e3, 5e3, 1e4, 2.5e4, 4e4, 5e4, 1e5, 1.6e5, 2.5e5, 5e5, 1e6, 5e6, 1e7)


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of rotary positions."""
    if config.positions != "rotary" or not config.n_layers:
        return
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
        "rotary_direction",
        "rotary positions turned in the wrong direction",
        _at_positions(lambda p: -p),
    )
    for by in (1, -1, 2):
        yield from each(
            f"rotary_offset_{by}",
            f"rotary positions off by one (they begin at {by})"
            if by != 2
            else "rotary positions that begin at 2",
            _at_positions(partial(np.add, by)),
        )
    yield from each(
        "rotary_twice", "rotary positions applied twice", _at_positions(lambda p: 2 * p)
    )
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
    if len(config.rotary_stretch) > 4:
        unscaled = (*config.rotary_stretch[:4], 1.0)
        yield from each(
            "rotary_unscaled",
            "rotary positions without the scale of YaRN",
            config_to(rotary_stretch=unscaled),
        )
    if config.rotary_stretch:
        yield from each(
            "rotary_plain",
            "rotary frequencies not stretched: their scaling, "
            f"{', '.join(f'{number:g}' for number in config.rotary_stretch)}, is ignored",
            config_to(rotary_stretch=()),
            0,
        )
        if len(config.rotary_stretch) > 1:
            yield from each(
                "rotary_stretch_linear",
                f"rotary frequencies all divided by {config.rotary_stretch[0]:g}: a linear scaling "
                "(stretch) for one by parts",
                config_to(rotary_stretch=config.rotary_stretch[:1]),
            )
    if config.rotary_dims != config.d_head:
        yield from each(
            "rotary_frequencies_of_head",
            "rotary frequencies spread over d_head and not over the turned dimensions",
            _turned(_exponent(config.rotary_dims / config.d_head)),
        )
    if config.d_model not in (config.rotary_dims, config.d_head):
        yield from each(
            "rotary_frequencies_of_stream",
            "rotary frequencies spread over the width d_model and not over the turned dimensions",
            _turned(_exponent(config.rotary_dims / config.d_model)),
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
        "rotary_reversed", "rotary positions counted from the end", _at_positions(lambda p: p[::-1])
    )
    yield Mistake("rotary_v", "rotary positions applied to values as well", {"v": _values_turned})
    for fraction in (2.0, 4.0, 8.0):
        yield from each(
            f"rotary_stretched_{fraction:g}",
            f"rotary positions, or frequencies, divided by {fraction:g} (linear interpolation)",
            _at_positions(partial(np.multiply, 1 / fraction)),
        )
    yield Mistake(
        "rotary_by_head",
        "rotary positions over the wrong axis: each head is turned by its own number",
        {kind: _turned(partial(_by_head, kind)) for kind in both},
    )
    for name, says, act in STRANGE:
        yield from each(name, says, _turned(act))
    for dtype in ("float16", "bfloat16"):
        for what, turn in (
            ("frequencies", _of_rounded_frequencies),
            ("angles", _of_rounded_angles),
            ("sines and cosines", _by_rounded_tables),
        ):
            yield Mistake(
                f"rotary_{what}_{dtype}",
                f"rotary {what} in half precision: they are rounded to {dtype}",
                dict.fromkeys(both, _turned(partial(turn, dtype))),
            )


def _unturned(at: At, operation: Operation) -> Near:
    return operation(with_config(at, positions="none", rotary_dims=0))


def _turned(turn: Callable[[Array, Config], Array]) -> Act:
    """Return the change to another rotation of the rows [head, pos, d_head]."""

    def act(at: At, operation: Operation) -> Near:
        plain = _unturned(at, operation)
        value = turn(plain.value, at.config)
        pairs = 2 * np.abs(plain.value).max(axis=-1, keepdims=True)
        spread = np.array(plain.error).max(axis=-1, keepdims=True) * 2
        error = spread + at.p.inner * pairs * (8 + 4 * value.shape[-2])
        return Near(value, np.broadcast_to(error, value.shape))

    return act


def _at_positions(change: Callable[[Array], Array]) -> Act:
    """Return the change to other positions."""
    return _turned(partial(_other_positions, change))


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
    rows: Array, config: Config, cos: Array, sin: Array, signs: tuple[float, ...] = (1.0, 1.0)
) -> Array:
    """Return rotated rows; `signs` of the two sines and, where given, of the two cosines."""
    first, second = _pairs(config)
    turned = rows.copy()
    a, b = rows[..., first], rows[..., second]
    scale = rotary_scale(config.rotary_stretch)
    cos, sin = scale * cos, scale * sin
    cosines = signs[2:] or (1.0, 1.0)
    turned[..., first] = cosines[0] * a * cos - signs[0] * b * sin
    turned[..., second] = signs[1] * a * sin + cosines[1] * b * cos
    return turned


def _by(rows: Array, config: Config, angles: Array) -> Array:
    return _turn(rows, config, np.cos(angles), np.sin(angles))


def _one_sign(first: float, second: float) -> Callable[[Array, Config], Array]:
    def turn(rows: Array, config: Config) -> Array:
        angles = _angles(config, np.arange(rows.shape[-2]))
        return _turn(rows, config, np.cos(angles), np.sin(angles), (first, second))

    return turn


def _cosine_sign(first: float, second: float, rows: Array, config: Config) -> Array:
    angles = _angles(config, np.arange(rows.shape[-2]))
    return _turn(rows, config, np.cos(angles), np.sin(angles), (1.0, 1.0, first, second))


def _mixed(rows: Array, config: Config) -> Array:
    """Turn pairs of one layout by tables that were made for the other."""
    angles = _angles(config, np.arange(rows.shape[-2]))
    first, second = _pairs(config)
    halves = config.rotary_layout == "half"
    table = np.repeat(angles, 2, axis=-1) if halves else np.concatenate([angles] * 2, axis=-1)
    a, b = rows[..., first], rows[..., second]
    turned = rows.copy()
    turned[..., first] = a * np.cos(table[:, first]) - b * np.sin(table[:, first])
    turned[..., second] = b * np.cos(table[:, second]) + a * np.sin(table[:, second])
    return turned


def _other_frequencies(
    change: Callable[[Array, float], Array], rows: Array, config: Config
) -> Array:
    step = config.rotary_base ** (-2 / config.rotary_dims)
    frequencies = change(_angles(config, np.ones(1)), step)
    return _by(rows, config, np.arange(rows.shape[-2])[:, None] * frequencies)


def _other_positions(change: Callable[[Array], Array], rows: Array, config: Config) -> Array:
    return _by(rows, config, _angles(config, change(np.arange(rows.shape[-2]))))


def _by_head(kind: str, rows: Array, config: Config) -> Array:
    share = config.n_heads // config.kv_heads if kind == "k" else 1
    return _by(rows, config, _angles(config, np.arange(len(rows)) // share)[:, None])


STRANGE: tuple[tuple[str, str, Callable[[Array, Config], Array]], ...] = (
    (
        "rotary_mixed",
        "rotary positions that mix two layouts: the pairs of one, turned by tables for the other",
        _mixed,
    ),
    (
        "rotary_cosine_sign_first",
        "rotary positions with the cosine's sign wrong in the first half",
        partial(_cosine_sign, -1.0, 1.0),
    ),
    (
        "rotary_cosine_sign_second",
        "rotary positions with the cosine's sign wrong in the second half (a reflection)",
        partial(_cosine_sign, 1.0, -1.0),
    ),
    (
        "rotary_frequencies_late",
        "rotary frequencies off by one: exponents 2(i + 1)/d for 2i/d",
        partial(_other_frequencies, lambda f, step: f * step),
    ),
    (
        "rotary_frequencies_reversed",
        "rotary frequencies in reverse order",
        partial(_other_frequencies, lambda f, step: f[:, ::-1]),
    ),
    (
        "rotary_last_stale",
        "rotary positions off by one at the end: the last is turned as the one before",
        partial(_other_positions, lambda p: np.minimum(p, max(len(p) - 2, 0))),
    ),
    (
        "rotary_restart",
        "rotary positions that start again in the middle of the prompt",
        partial(_other_positions, lambda p: np.where(p < len(p) // 2, p, p - len(p) // 2)),
    ),
)


def _swapped(rows: Array, config: Config) -> Array:
    angles = _angles(config, np.arange(rows.shape[-2]))
    return _turn(rows, config, np.sin(angles), np.cos(angles))


def _of_rounded_frequencies(dtype: str, rows: Array, config: Config) -> Array:
    frequencies = in_type(_angles(config, np.ones(1)), dtype)
    return _by(rows, config, np.arange(rows.shape[-2])[:, None] * frequencies)


def _of_rounded_angles(dtype: str, rows: Array, config: Config) -> Array:
    return _by(rows, config, in_type(_angles(config, np.arange(rows.shape[-2])), dtype))


def _by_rounded_tables(dtype: str, rows: Array, config: Config) -> Array:
    angles = _angles(config, np.arange(rows.shape[-2]))
    cos, sin = (in_type(table, dtype) for table in (np.cos(angles), np.sin(angles)))
    return _turn(rows, config, cos, sin)


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
