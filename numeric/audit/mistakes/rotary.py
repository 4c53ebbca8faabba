"""Mistakes in rotary positions."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from otimes.numeric.audit.precision.lower_precision import in_type
from otimes.numeric.audit.reference.edits import config_to, not_turned, with_inputs
from otimes.numeric.audit.reference.evaluator import Act, Mistake, Operation, makes_act
from otimes.numeric.config import LAYOUTS, Config
from otimes.numeric.functions import rotary_frequencies, rotary_scale
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.linear import Array, Near

BASES = (1e2, 5e2, 1e3, 5e3, 1e4, 2.5e4, 4e4, 5e4, 1e5, 1.6e5, 2.5e5, 5e5, 1e6, 5e6, 1e7)

BOTH = ("q", "k")
SIDES = {BOTH: "", ("q",): ", of queries only", ("k",): ", of keys only"}


def mistakes(config: Config) -> Iterator[Mistake]:
    """Yield the mistakes of rotary positions."""
    if config.positions != "rotary" or not config.n_layers:
        return
    yield Mistake("without rotary positions", dict.fromkeys(BOTH, not_turned), 0)
    says = "rotary positions of {} only: {} are not turned"
    yield Mistake(says.format("keys", "queries"), {"q": not_turned})
    yield Mistake(says.format("queries", "keys"), {"k": not_turned})
    yield Mistake("rotary positions applied to values as well", {"v": _turned(_Turn())})
    says = "rotary positions applied to values as well, after they are recorded"
    yield Mistake(says, {"z": _values_turned}, 2)
    says = "rotary positions over the wrong axis: each head is turned by its own number"
    share = config.n_heads // config.kv_heads
    acts = {"q": _turned(partial(_by_head, 1)), "k": _turned(partial(_by_head, share))}
    yield Mistake(says, acts)
    for dtype in ("float16", "bfloat16"):
        for what, turn in _half_precision(dtype).items():
            says = f"rotary {what} in half precision: they are rounded to {dtype}"
            yield Mistake(says, dict.fromkeys(BOTH, _turned(turn)))
    turns = {**TURNS, **_of_another_width(config)}
    settings = [(*each, 1) for each in _settings(config)]
    if config.rotary_stretch:
        stretch = ", ".join(
            each if isinstance(each, str) else f"{each:g}" for each in config.rotary_stretch
        )
        says = f"rotary frequencies not stretched: their scaling, {stretch}, is ignored"
        settings.append((says, config_to(rotary_stretch=()), 0))
    acting = [(says, _turned(turn), 1) for says, turn in turns.items()]
    for says, act, rank in (*acting, *settings):
        for side, which in SIDES.items():
            yield Mistake(says + which, dict.fromkeys(side, act), rank)


def _settings(config: Config) -> Iterator[tuple[str, Act]]:
    """Yield the mistakes of rotations with other settings."""
    (layout,) = (each for each in LAYOUTS if each != config.rotary_layout)
    says = f"rotary positions in the wrong layout, {layout!r} for {config.rotary_layout!r}"
    yield says, config_to(rotary_layout=layout)
    stretch = () if config.rotary_by_length else config.rotary_stretch
    if config.rotary_by_length:
        yield from _by_length(config)
    if len(stretch) > 4:
        unscaled = config_to(rotary_stretch=(*stretch[:4], 1.0))
        yield "rotary positions without the scale of YaRN", unscaled
    if len(stretch) > 1:
        says = f"rotary frequencies all divided by {stretch[0]:g}: a linear scaling (stretch)"
        yield f"{says} for one by parts", config_to(rotary_stretch=stretch[:1])
        yield from _by_parts(config)
    for base in BASES:
        if base != config.rotary_base:
            says = f"rotary base {base:g} for {config.rotary_base:g}"
            yield says, config_to(rotary_base=base)
    step = 2 if config.d_head <= 16 else 8
    for dims in range(step, config.d_head + 1, step):
        if dims != config.rotary_dims:
            yield f"rotary width {dims} for {config.rotary_dims}", config_to(rotary_dims=dims)


Turn = Callable[[Array, Config], Array]
"""A rotation of the rows [head, pos, d_head]."""


@makes_act
def _turned(at: At, operation: Operation, turn: Turn) -> Near:
    """Act: rotate in another way, where anything is rotated."""
    if at.config.positions != "rotary":
        return operation(at)
    return _turned_rows(at, not_turned(at, operation), turn)


def _turned_rows(at: At, plain: Near, turn: Turn) -> Near:
    value = turn(plain.value, at.config)
    pairs = 2 * np.abs(plain.value).max(axis=-1, keepdims=True)
    spread = np.array(plain.error).max(axis=-1, keepdims=True) * 2
    error = spread + at.p.inner * pairs * (8 + 4 * value.shape[-2])
    return Near(value, np.broadcast_to(error, value.shape))


def _values_turned(at: At, operation: Operation) -> Near:
    """Act: mix values that are rotated."""
    if at.config.positions != "rotary" or at.config.kv_rank:
        return operation(at)
    return operation(with_inputs(at, v=_turned_rows(at, at.inputs["v"], _Turn())))


PARTS = ("factor", "low", "high", "context", "scale")
"""The numbers of a stretch by parts, as of Llama 3.1 and YaRN."""


def _by_parts(config: Config) -> Iterator[tuple[str, Act]]:
    """Yield the mistakes of a stretch by parts (YaRN, Llama 3.1): another number, another ramp."""
    own = config.rotary_stretch
    of_yarn = len(own) > 4
    called = "YaRN's settings" if of_yarn else "the settings of Llama 3's scaling"
    usual: dict[int, tuple[float, ...]] = {
        1: (1.0,),
        2: (32.0, 4.0),
        3: (float(config.n_ctx),),
        4: (1.0, 0.1 * math.log(max(own[0], 1.0)) + 1.0, own[min(4, len(own) - 1)] ** 2),
    }
    for number, name in enumerate(PARTS[: len(own)]):
        others = [*usual.get(number, ()), *(own[number] * by for by in (2.0, 0.5, 4.0, 0.25))]
        for other in dict.fromkeys(others):
            changed = (*own[:number], other, *own[number + 1 :])
            if other != own[number] and changed[1] < changed[2]:
                says = f"{called}: {name} {other:.5g} for {own[number]:g}"
                yield says, config_to(rotary_stretch=changed)
    if of_yarn:
        says, changed = "ends of the ramp not rounded", (*own[:5], 0)
        if len(own) > 5:
            says, changed = "ends of the ramp rounded", own[:5]
        yield f"{called}: {says}", config_to(rotary_stretch=changed)
    if not of_yarn:
        ramp = "the ramp not clamped: it goes on below 0 and above 1"
        yield f"{called}: {ramp}", _turned(_Turn(frequencies=_unclamped))
    between = "the ramp inverted between its ends only"
    yield f"{called}: {between}", _turned(_Turn(frequencies=_inverted_between))
    ramp = "the ramp inverted: fast pairs are stretched, and slow ones are left alone"
    yield f"{called}: {ramp}", _turned(_Turn(frequencies=_inverted))


def _inverted(config: Config) -> Array:
    """Return frequencies of which those are stretched that should not be."""
    plain = rotary_frequencies(config.rotary_dims, config.rotary_base)
    if not config.rotary_stretch:  # a layer with a base of its own
        return plain
    return plain + plain / config.rotary_stretch[0] - _frequencies(config)


def _inverted_between(config: Config) -> Array:
    """Return frequencies that are interpolated the wrong way round where they are interpolated."""
    plain, right = rotary_frequencies(config.rotary_dims, config.rotary_base), _frequencies(config)
    if not config.rotary_stretch:  # a layer with a base of its own
        return plain
    slow = plain / config.rotary_stretch[0]
    inside = (right > slow * (1 + 1e-9)) & (right < plain * (1 - 1e-9))
    return np.where(inside, plain + slow - right, right)


def _unclamped(config: Config) -> Array:
    """Return the frequencies of Llama 3's scaling with a ramp that is continued beyond its ends."""
    plain = rotary_frequencies(config.rotary_dims, config.rotary_base)
    if not config.rotary_stretch:  # a layer with a base of its own
        return plain
    factor, low, high, context = config.rotary_stretch
    kept = (context * plain / (2 * np.pi) - low) / (high - low)
    return np.asarray((1 - kept) * plain / factor + kept * plain)


def _by_length(config: Config) -> Iterator[tuple[str, Act]]:
    """Yield the mistakes of frequencies that depend on the length of the prompt."""
    kind, *numbers = config.rotary_stretch
    if kind == "longrope":
        context, _, *divisors = numbers
        unscaled = (kind, context, 1.0, *divisors)
        yield "rotary positions without the scale of LongRoPE", config_to(rotary_stretch=unscaled)
        half = len(divisors) // 2
        short, long = divisors[:half], divisors[half:]
        swapped = (kind, *numbers[:2], *long, *short)
        yield "the short divisors of LongRoPE for the long ones", config_to(rotary_stretch=swapped)


def _frequencies(config: Config, exponent: float = 1.0) -> Array:
    dims, base, _, stretch = config.rotation
    return rotary_frequencies(dims, base**exponent, stretch)


def _cos_and_sin(angles: Array) -> tuple[Array, Array]:
    return np.cos(angles), np.sin(angles)


def _pairs(config: Config) -> tuple[Array, Array]:
    pair = np.arange(config.rotary_dims // 2)
    if config.rotary_layout == "interleaved":
        return 2 * pair, 2 * pair + 1
    return pair, pair + config.rotary_dims // 2


@dataclass(frozen=True, slots=True)
class _Turn:
    """A rotation with some steps changed; without changes it is the right one.

    `positions` are made from 0, 1, 2, …, `tables` (cosines and sines) from the angles. `signs` are
    those of the two cosines and the two sines.
    """

    positions: Callable[[Array], Array] = lambda positions: positions
    frequencies: Callable[[Config], Array] = _frequencies
    tables: Callable[[Array], tuple[Array, Array]] = _cos_and_sin
    signs: tuple[float, float, float, float] = (1.0, 1.0, -1.0, 1.0)

    def __call__(self, rows: Array, config: Config) -> Array:
        """Return the rotated rows."""
        positions = self.positions(np.arange(rows.shape[-2]))
        return self.by(positions[:, None] * self.frequencies(config), rows, config)

    def by(self, angles: Array, rows: Array, config: Config) -> Array:
        """Return the rows rotated by these angles."""
        first, second = _pairs(config)
        a, b, turned = rows[..., first], rows[..., second], rows.copy()
        scale = rotary_scale(config.rotary_stretch)
        cos, sin = (scale * table for table in self.tables(angles))
        signs = self.signs
        turned[..., first] = signs[0] * a * cos + signs[2] * b * sin
        turned[..., second] = signs[3] * a * sin + signs[1] * b * cos
        return turned


def _by_head(share: int, rows: Array, config: Config) -> Array:
    heads = np.arange(len(rows)) // share
    return _Turn().by(heads[:, None, None] * _frequencies(config), rows, config)


def _mixed(rows: Array, config: Config) -> Array:
    """Return the rows with pairs of one layout rotated by tables for the other layout."""
    angles = np.arange(rows.shape[-2])[:, None] * _frequencies(config)
    halves = config.rotary_layout == "half"
    table = np.repeat(angles, 2, axis=-1) if halves else np.concatenate([angles] * 2, axis=-1)
    turned = rows.copy()
    for own in _pairs(config):
        turned[..., own] = _Turn().by(table[:, own], rows, config)[..., own]
    return turned


def _other_layout(config: Config) -> str:
    return "half" if config.rotary_layout == "interleaved" else "interleaved"


def _last_dimensions(rows: Array, config: Config) -> Array:
    kept = rows.shape[-1] - config.rotary_dims
    return np.concatenate([rows[..., :kept], _Turn()(rows[..., kept:], config)], axis=-1)


def _half_precision(dtype: str) -> dict[str, Turn]:
    """Return the rotations of which a step is rounded to half precision."""
    rounded = partial(in_type, dtype=dtype)
    return {
        "frequencies": _Turn(frequencies=lambda config: rounded(_frequencies(config))),
        "angles": _Turn(tables=lambda angles: _cos_and_sin(rounded(angles))),
        "sines and cosines": _Turn(
            tables=lambda angles: (rounded(np.cos(angles)), rounded(np.sin(angles)))
        ),
    }


def _of_another_width(config: Config) -> dict[str, Turn]:
    """Return rotations of other dimensions, or with the frequencies of another width."""
    turns: dict[str, Turn] = {}
    spread = "rotary frequencies spread over {} and not over the turned dimensions"
    if config.rotary_dims != config.d_head:
        turns[spread.format("d_head")] = _exponent(config.rotary_dims / config.d_head)
        says = "rotary positions that turn the last dimensions of a head, not the first"
        turns[says] = _last_dimensions
    if config.d_model not in (config.rotary_dims, config.d_head):
        width = spread.format("the width d_model")
        turns[width] = _exponent(config.rotary_dims / config.d_model)
    return turns


def _exponent(factor: float) -> Turn:
    return _Turn(frequencies=partial(_frequencies, exponent=factor))


TURNS: dict[str, Turn] = {
    "rotary positions turned in the wrong direction": _Turn(np.negative),
    "rotary positions off by one (they begin at 1)": _Turn(lambda p: p + 1),
    "rotary positions off by one (they begin at -1)": _Turn(lambda p: p - 1),
    "rotary positions that begin at 2": _Turn(lambda p: p + 2),
    "rotary positions applied twice": _Turn(lambda p: 2 * p),
    **{
        f"rotary positions, or frequencies, divided by {by:g} (linear interpolation)": (
            _Turn(partial(np.multiply, 1 / by))
        )
        for by in (2.0, 4.0, 8.0)
    },
    "rotary positions counted from the end": _Turn(lambda p: p[::-1]),
    "rotary positions off by one at the end: the last is turned as the one before": (
        _Turn(lambda p: np.minimum(p, max(len(p) - 2, 0)))
    ),
    "rotary positions that start again in the middle of the prompt": (
        _Turn(lambda p: np.where(p < len(p) // 2, p, p - len(p) // 2))
    ),
    "rotary positions with the sine's sign wrong in the first half": (
        _Turn(signs=(1.0, 1.0, 1.0, 1.0))
    ),
    "rotary positions with the sine's sign wrong in the second half": (
        _Turn(signs=(1.0, 1.0, -1.0, -1.0))
    ),
    "rotary positions with the cosine's sign wrong in the first half": (
        _Turn(signs=(-1.0, 1.0, -1.0, 1.0))
    ),
    "rotary positions with the cosine's sign wrong in the second half (a reflection)": (
        _Turn(signs=(1.0, -1.0, -1.0, 1.0))
    ),
    "rotary positions with sine and cosine swapped": _Turn(tables=lambda a: _cos_and_sin(a)[::-1]),
    "rotary frequencies with a wrong exponent (i/d for 2i/d)": _exponent(0.5),
    "rotary frequencies with a wrong exponent (4i/d for 2i/d)": _exponent(2.0),
    "rotary frequencies off by one: exponents 2(i + 1)/d for 2i/d": _Turn(
        frequencies=lambda c: _frequencies(c) * c.rotary_base ** (-2 / c.rotary_dims)
    ),
    "rotary frequencies in reverse order": _Turn(frequencies=lambda c: _frequencies(c)[::-1]),
    "rotary positions that mix two layouts: the pairs of one, turned by tables for the other": (
        _mixed
    ),
    "rotary positions that mix two layouts: the right tables turn the pairs of the other": (
        lambda rows, config: _mixed(rows, replace(config, rotary_layout=_other_layout(config)))
    ),
}
