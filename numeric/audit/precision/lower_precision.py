"""Whether an activation is wrong because a step was computed in lower precision.

A small error is no evidence: an entry that is wrong by 1 % is within the bound of bfloat16. One of
three things must hold. The step, made in the reference, gives the recorded entries, except for the
few that lie so close to the midpoint of two bfloat16 numbers that they are rounded the other way.
Or all entries are numbers of the coarser dtype, within its bound. Or they lie on a uniform grid.
"""

from collections.abc import Iterator

import numpy as np

from otimes.numeric.audit.reference.comparison import Comparison
from otimes.numeric.audit.reference.edits import (
    after,
    unturned,
    with_inputs,
    with_weights,
)
from otimes.numeric.audit.reference.evaluator import NORMS, Act, Mistake, Operation, makes_act
from otimes.numeric.block import WEIGHTS, kind_of
from otimes.numeric.config import Config
from otimes.numeric.rounding.activations import At
from otimes.numeric.rounding.functions import rotated
from otimes.numeric.rounding.linear import Array, Near
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF, Precision, precision, stored_as

COARSER = ("float32", "bfloat16", "float16")

EXPLAINED = 0.9
"""The share of the entries changed by a step that must match; the others are rounding ties."""

MOVED = 8
"""A step that changes fewer entries than this cannot be told from another cause."""

LEVELS = 2**12
"""A grid has at most this many levels."""


def coarser_step(compared: Comparison, place: str) -> str:
    """Return the step in lower precision that explains an activation, as "matches …", or ""."""
    types = [dtype for dtype in COARSER if UNIT_ROUNDOFF[dtype] > compared.unit]
    for dtype in types:
        for step in _steps(compared.model.config, kind_of(place), dtype):
            if explained(compared, place, step):
                return f"matches {step.says}"
    for dtype in types:
        if _computed_in(compared, place, dtype):
            return (
                f"matches a {size(dtype)}-precision step: it is right as computed in {dtype}, and "
                f"all its entries are numbers of that type"
            )
    return _on_a_grid(compared, place)


def explained(compared: Comparison, place: str, step: Mistake) -> bool:
    """Return whether a step, made in the reference, gives the recorded entries."""
    rights = compared.expected(place)
    moved = agree = others = 0
    for number, (prompt, right) in enumerate(zip(compared.prompts, rights, strict=True)):
        shown = prompt.places[place].value
        made = compared.quick(place, step, number)
        bound = np.broadcast_to(np.asarray(right.error), shown.shape)
        here = np.isfinite(bound)
        with np.errstate(all="ignore"):
            by, off = np.abs(made.value - right.value)[here], np.abs(shown - made.value)[here]
        bound = bound[here]
        if not (off <= bound + 4 * by.max(initial=0.0)).all():
            return False
        far, same = by > 2 * bound, off <= bound
        moved, agree = moved + int(far.sum()), agree + int((far & same).sum())
        others += int((~far & ~same).sum())
    return moved >= MOVED and agree >= EXPLAINED * moved and others <= (1 - EXPLAINED) * moved


def in_type(array: Array, dtype: str) -> Array:
    """Return an array rounded to float32 and then to a dtype, as PyTorch does."""
    return stored_as(stored_as(array, "float32"), dtype)


def size(dtype: str) -> str:
    """Return the name of a dtype of lower precision: single or half."""
    return "single" if dtype == "float32" else "half"


def rounded_after(dtype: str) -> Act:
    """Return the act of rounding the output of an operation to a dtype."""
    return after(lambda at, near: Near(in_type(near.value, dtype), near.error))


@makes_act
def rounded_before(at: At, operation: Operation, dtype: str, *kinds: str) -> Near:
    """Act: round the inputs of an operation to a dtype: all, or some kinds."""
    chosen = kinds or tuple(at.inputs)
    stored = {
        kind: Near(in_type(at.inputs[kind].value, dtype), at.inputs[kind].error) for kind in chosen
    }
    return operation(with_inputs(at, **stored))


@makes_act
def _with_rounded_weights(
    at: At, operation: Operation, dtype: str, prefixes: tuple[str, ...]
) -> Near:
    every = (name for name in WEIGHTS.get(at.weights.kind, ()) if at.config.has(name))
    names = [name for name in every if name.startswith(prefixes)]
    return operation(with_weights(at, **{name: in_type(at.weights[name], dtype) for name in names}))


def _both(first: Act, second: Act) -> Act:
    """Return the composition of two acts, the second around the first."""
    return lambda at, operation: second(at, lambda inner: first(inner, operation))


def computed_in(dtype: str) -> Act:
    """Return the act of rounding the inputs and the output of an operation to a dtype."""
    return _both(rounded_before(dtype), rounded_after(dtype))


@makes_act
def rounded_rows(at: At, operation: Operation, dtype: str) -> Near:
    """Act: round normalised rows to a dtype before gain and bias."""
    norm = at.weights.kind
    gain = at.weights[f"{norm}_gain"]
    plain = {f"{norm}_gain": np.ones_like(gain)}
    biased = at.config.has(f"{norm}_bias")
    bias = at.weights[f"{norm}_bias"] if biased else np.zeros_like(gain)
    if biased:
        plain[f"{norm}_bias"] = np.zeros_like(bias)
    near = operation(with_weights(at, **plain))
    return Near(in_type(near.value, dtype) * gain + bias, near.error * np.abs(gain))


@makes_act
def _turned_in(at: At, operation: Operation, dtype: str) -> Near:
    """Act: round queries or keys to a dtype before the rotary embedding."""
    plain = operation(unturned(at))
    stored = Near(in_type(plain.value, dtype), plain.error)
    return rotated(stored, *at.config.rotation, p=at.p)


CALLED = {
    "pattern": "the softmax",
    "mlp_post": "the activation",
    **dict.fromkeys(NORMS, "the norm"),
}


def _steps(config: Config, kind: str, dtype: str) -> Iterator[Mistake]:
    """Yield the steps of one operation that may be computed in a dtype, the simplest first."""
    called, what = size(dtype), CALLED.get(kind, kind)

    def step(says: str, act: Act) -> Mistake:
        return Mistake(f"a {called}-precision step: {says}", {kind: act})

    whole = computed_in(dtype)
    yield step(f"it is rounded to {dtype}", rounded_after(dtype))
    if kind == "embed":
        return
    yield step(f"what {what} reads is rounded to {dtype}", rounded_before(dtype))
    yield step(f"{what} is computed in {dtype}", whole)
    reads: dict[str, tuple[str, ...]] = {"scores": ("q", "k"), "z": ("pattern", "v")}
    if config.gated:
        reads["mlp_post"] = ("mlp_pre",)  # and not what up is made of
    for read in reads.get(kind, ()):
        yield step(f"{read} is rounded to {dtype} where it is read", rounded_before(dtype, read))
    if kind in NORMS:
        says = f"normalised rows are rounded to {dtype} before the gain"
        yield step(says, rounded_rows(dtype))
    if kind in ("q", "k") and config.positions == "rotary":
        yield step(f"it is rounded to {dtype} before it is turned", _turned_in(dtype))
    for which, prefixes in (("weights", ("W_",)), ("weights and biases", ("W_", "b_", "ln"))):
        if not any(n.startswith(prefixes) and config.has(n) for n in WEIGHTS.get(kind, ())):
            continue
        weights = _with_rounded_weights(dtype, prefixes)
        yield step(f"its {which} are rounded to {dtype}", weights)
        yield step(f"it is computed in {dtype}, {which} and all", _both(weights, whole))
        reads_too = _both(weights, rounded_before(dtype))
        yield step(f"{which} and what they meet are rounded to {dtype}", reads_too)


def _computed_in(compared: Comparison, place: str, dtype: str) -> bool:
    """Return whether all entries are numbers of a dtype, and within its bounds."""
    for prompt, near in zip(compared.prompts, compared.expected(place), strict=True):
        claimed = np.isfinite(np.broadcast_to(np.asarray(near.error), near.value.shape))
        shown = prompt.places[place].value[claimed]
        if np.count_nonzero(shown) < MOVED or (stored_as(shown, dtype) != shown).any():
            return False
    u = UNIT_ROUNDOFF[dtype]
    return compared.ratio(place, p=Precision(u, u, precision(dtype).tiny, likely=True)) <= 1


def _on_a_grid(compared: Comparison, place: str) -> str:
    """Return the diagnosis that all entries lie on a uniform grid (integer quantisation), or ""."""
    said = ""
    for prompt, near in zip(compared.prompts, compared.expected(place), strict=True):
        error = np.broadcast_to(np.asarray(near.error), near.value.shape)
        claimed = np.isfinite(error)
        shown, ours = prompt.places[place].value[claimed], near.value[claimed]
        largest = np.abs(shown).max(initial=0.0)
        values = np.unique(shown)
        gaps = np.diff(values)
        gaps = gaps[gaps > largest / LEVELS]
        if not len(gaps) or len(values) > min(LEVELS, len(shown) / 2):
            return ""
        step = float(gaps.min())
        step = float(np.median(gaps[gaps < 1.5 * step]))
        if largest / step > LEVELS or len(values) < MOVED:
            return ""
        step = largest / round(largest / step)
        nearest = np.round(shown / step) * step
        if (np.abs(shown - nearest) > 64 * compared.unit * largest).any():
            return ""
        if (np.abs(shown - ours) > 0.51 * step + error[claimed]).any():
            return ""
        levels = round(largest / step)
        kind = ", as of int8" if levels <= 128 else ""
        said = (
            f"matches values that are quantised: rounded to a grid of step {step:.4g}, with "
            f"{levels} levels to either side{kind}"
        )
    return said
