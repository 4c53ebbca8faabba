"""Error estimates over many operations, where a propagated bound would be useless.

The reference is run once exactly, and `RUNS` times with the output of every operation perturbed by
one unit roundoff. The tolerance is `GRANTED` times the largest deviation.

The perturbed runs are computed together. Most of the work is products with a weight, which are
linear: they are applied to the differences from the exact run, for all perturbed runs at once and
in float32, since three digits of a deviation suffice. The exact run stays in float64.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np

from otimes.numeric.audit.reference.evaluator import FAR, Evaluator, layer_of, passed_on
from otimes.numeric.block import inputs_of, kind_of
from otimes.numeric.config import Config
from otimes.numeric.functions import causal_mask, visible_keys
from otimes.numeric.rounding.activations import COLUMNS, Weights
from otimes.numeric.rounding.functions import rotated
from otimes.numeric.rounding.linear import Array, Near
from otimes.numeric.rounding.precision import VALUES_ONLY

RUNS = 4
GRANTED = 16
"""The tolerance is 16 times the largest deviation of 4 perturbed runs."""


def expected(evaluator: Evaluator, place: str, unit: float) -> Near:
    """Return the expected activation and the tolerance of correct code.

    Up to `FAR` unrecorded operations it is a propagated bound; beyond, an estimate: `GRANTED` times
    the largest deviation of `RUNS` perturbed runs, or 8 roundings of the entry if that is more.
    """
    if evaluator.hidden(place) <= FAR:
        near = evaluator.near(place)
        return Near(near.value, near.error * evaluator.p.doubled)
    return measured(evaluator, place, unit)


def measured(evaluator: Evaluator, place: str, unit: float) -> Near:
    """Return the expected activation with an estimated tolerance, which is no bound."""
    runs = Runs(evaluator, 2 * unit)
    for name in runs.plain.needed(place):
        runs.go_on(name)
    value, largest = runs.deviation(place)
    bound = np.abs(value)
    bound *= 8 * unit
    np.maximum(bound, GRANTED * largest, out=bound)
    if kind_of(place) == "scores":
        seen = visible_keys(value.shape[-1], runs.config.of_layer(layer_of(place) or 0).window)
        bound = np.where(seen, bound, np.inf)
    return Near(value, bound)


class Runs:
    """The exact run of the reference and the perturbed ones, one hook point at a time."""

    def __init__(self, evaluator: Evaluator, unit: float) -> None:
        self.unit, self.config = unit, evaluator.config
        self.plain, *self.moved = (
            Evaluator(
                evaluator.model,
                evaluator.tokens,
                evaluator.shown,
                mistakes=evaluator.mistakes,
                parts=evaluator.parts,
            )
            for _ in range(RUNS + 1)
        )
        self.rngs = [np.random.default_rng(run) for run in range(RUNS)]
        for run, rng in zip(self.moved, self.rngs, strict=True):
            run.shown = _Moved(evaluator.shown, rng)

    def go_on(self, place: str) -> None:
        """Compute an activation in all runs, and drop those of earlier layers."""
        self.plain.near(place)
        for run, value in zip(self.moved, self._values(place), strict=True):
            run.computed[place] = Near.exactly(value)
        for run in (self.plain, *self.moved):
            run.forget(layer_of(place) or 0)

    def deviation(self, place: str) -> tuple[Array, float]:
        """Return an activation of the exact run, and the maximum deviation over perturbed runs."""
        value, largest = self.plain.near(place).value, 0.0
        columns = COLUMNS if kind_of(place) == "logits" else value.shape[-1]
        for start in range(0, value.shape[-1], columns):
            some = slice(start, start + columns)
            for other in self._values(place, some):
                deviation = _largest(other - value[..., some], kind_of(place))
                largest = float(np.maximum(largest, deviation))  # which keeps what is not a number
        return value, largest

    def _values(self, place: str, some: slice = slice(None)) -> Iterator[Array]:
        """Yield an activation in each perturbed run, at some entries of its last axis."""
        if passed_on(self.config, place):
            for run in self.moved:
                yield run.near(place).value[..., some]
            return
        unit, differences = self._unit(place), self._differences(place, some)
        for number, (run, rng) in enumerate(zip(self.moved, self.rngs, strict=True)):
            if differences is None:
                yield _moved(run.near(place).value[..., some], None, rng, unit)
            else:
                value = self.plain.near(place).value[..., some]
                yield _moved(value, differences[number], rng, unit)

    def _unit(self, place: str) -> float:
        """Return the relative perturbation of an output: larger after a step of lower precision."""
        # The error of rounded angles grows with the position.
        far = len(self.plain.tokens) / 8 if kind_of(place) in ("q", "k") else 1.0
        coarser = (mistake.coarse * max(far, 1.0) / 2 for mistake in self.plain.acting(place))
        return max([self.unit, *coarser])

    def _differences(self, place: str, some: slice) -> Array | None:
        """Return the differences of the perturbed runs after a product with a weight, in units.

        None for other operations, and where float32 overflows or underflows.
        """
        kind, n_pos = kind_of(place), len(self.plain.tokens)
        if kind not in PRODUCTS or self.plain.acting(place):
            return None
        normed = kind in ("q", "k") and self.config.qk_norm != "none"
        if normed or (kind == "logits" and self.config.logit_cap):
            return None  # not linear
        if kind == "mlp_out" and self.config.has("b_experts"):
            return None  # two products
        if kind == "k" and self.config.kv_rank:
            return None
        (read,) = inputs_of(self.config, place)
        before = self.plain.has(read).value
        rows = np.empty((RUNS, *before.shape), np.float32)
        name = "W_gate" if kind == "mlp_pre" and self.config.gated else PRODUCTS[kind]
        weights = Weights(self.plain.parts, place, n_pos)
        weight = weights.columns(name, some) if kind == "logits" else weights[name]
        with np.errstate(all="ignore"):
            for row, run in zip(rows, self.moved, strict=True):
                off = run.has(read).value - before
                np.multiply(off, 1 / self.unit, out=row, casting="same_kind")
            weight = weight.astype(np.float32)
            if kind == "attn_out":
                rows = rows.swapaxes(1, 2)  # its heads side by side
            if kind in ("q", "k", "v"):
                weight = weight.swapaxes(0, 1)
            if _vanishes(rows) or _vanishes(weight):
                return None
            rows = rows.reshape(RUNS * n_pos, -1)
            made = (rows @ weight.reshape(rows.shape[1], -1)).reshape(RUNS, n_pos, -1)
        if not np.isfinite(made).all():
            return None
        if kind in ("q", "k", "v"):
            made = made.reshape(RUNS, n_pos, self.config.n_heads, -1).swapaxes(1, 2)
        if kind in ("q", "k") and self.config.positions == "rotary":
            made = _turned(made, self.config.of_layer(layer_of(place) or 0))
        return made


class _Moved(Mapping[str, Near]):
    """Recorded activations, each entry perturbed up or down by its uncertainty."""

    def __init__(self, shown: Mapping[str, Near], rng: np.random.Generator) -> None:
        self.shown, self.rng, self.made = shown, rng, dict[str, Near]()

    def __getitem__(self, place: str) -> Near:
        near = self.shown[place]
        if near.exact:
            return near
        if place not in self.made:
            moved = near.value + near.error * self.rng.choice([-1.0, 1.0], near.value.shape)
            self.made[place] = Near.exactly(moved)
        return self.made[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self.shown)

    def __len__(self) -> int:
        return len(self.shown)

    def __contains__(self, place: object) -> bool:
        return place in self.shown


PRODUCTS = {
    "q": "W_Q",
    "k": "W_K",
    "v": "W_V",
    "attn_out": "W_O",
    "mlp_pre": "W_in",
    "mlp_out": "W_out",
    "logits": "W_U",
}
"""The operations that are a product with a weight, apart from a bias and a rotation."""


def _turned(rows: Array, config: Config) -> Array:
    return rotated(Near.exactly(rows), *config.rotation, p=VALUES_ONLY).value


def _vanishes(array: Array) -> bool:
    """Return whether an array may underflow in float32."""
    return not np.abs(array[0]).max() > 2.0**-100 and not np.abs(array).max() > 2.0**-100


def _largest(differences: Array, kind: str) -> float:
    """Return the largest compared entry, NaN if one is NaN."""
    sizes = np.abs(differences, out=differences)
    if kind == "scores":
        sizes = np.where(causal_mask(len(sizes[0])), sizes, 0.0)
    return float(sizes.max(initial=0.0))


def _moved(array: Array, difference: Array | None, rng: np.random.Generator, unit: float) -> Array:
    """Return an array plus differences in units, each entry perturbed by ± one unit."""
    moved, factors = np.empty(array.shape), _factors(unit)
    flat, entries = moved.reshape(-1), np.ascontiguousarray(array).reshape(-1)
    off = None if difference is None else np.ascontiguousarray(difference).reshape(-1)
    for start in range(0, len(flat), BLOCK):
        some = slice(start, start + BLOCK)
        block = flat[some]
        first = int(rng.integers(len(factors) - BLOCK))
        if off is None:
            block[:] = entries[some]
        else:
            np.multiply(off[some], unit, out=block)
            block += entries[some]
        block *= factors[first : first + len(block)]
    return moved


BLOCK, TABLE = 2**14, 2**17
"""Entries perturbed at a time, and the number of factors: both fit in the CPU cache."""


@lru_cache(maxsize=2)
def _factors(unit: float) -> Array:
    """Return many factors 1 ± unit: drawing one for each entry would be slower than the pass."""
    return 1 + unit * np.random.default_rng(0).choice([-1.0, 1.0], TABLE)
