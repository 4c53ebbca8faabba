"""Whether a place is wrong as a step in a coarser type makes it, and not only by as much.

That a deviation is below what bfloat16 would make says nothing: an entry that is off by a hundredth
is. So evidence is asked for. Either the step itself, made in the reference, gives what was shown
(but for the few entries that lie so near to the middle between two numbers of the coarser type that
they are rounded the other way); or all that was shown are numbers of the coarser type, and within
its bounds; or they lie on a grid.
"""

from collections.abc import Iterator

import numpy as np

from numeric.audit.change import after, with_config, with_inputs, with_weights
from numeric.audit.evaluate import Act, Mistake, Operation
from numeric.audit.judge import Judge
from numeric.config import Config
from numeric.rounding.functions import rotated
from numeric.rounding.linear import Array, Near
from numeric.rounding.places import WEIGHTS, At, kind_of
from numeric.rounding.precision import UNIT_ROUNDOFF, Precision, precision, stored_as

COARSER = ("float32", "bfloat16", "float16")

EXPLAINED = 0.9
"""So many of the entries that a step moves must be where it moves them; the others are ties."""

MOVED = 8
"""A step that moves fewer entries than this is not told from something else."""

LEVELS = 2**12
"""Values on a grid of more levels than this are taken for none of a grid."""


def coarser_step(judge: Judge, place: str) -> str:
    """Return which step in a coarser type explains a place, as "matches …", or nothing."""
    types = [dtype for dtype in COARSER if UNIT_ROUNDOFF[dtype] > judge.unit]
    for dtype in types:
        for step in _steps(judge.model.config, kind_of(place), dtype):
            if explained(judge, place, step):
                return f"matches {step.says}"
    for dtype in types:
        if _computed_in(judge, place, dtype):
            return (
                f"matches a {size(dtype)}-precision step: it is right as computed in {dtype}, and "
                f"all its entries are numbers of that type"
            )
    return _on_a_grid(judge, place)


def explained(judge: Judge, place: str, step: Mistake) -> bool:
    """Return whether a step, made in the reference, moves the entries to what was shown."""
    rights = judge.expected(place)
    moved = agree = others = 0
    for number, (prompt, right) in enumerate(zip(judge.prompts, rights, strict=True)):
        shown = prompt.places[place].value
        made = judge.quick(place, step, number)
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
    """Return numbers rounded to a type, by way of float32 as in PyTorch."""
    return stored_as(stored_as(array, "float32"), dtype)


def size(dtype: str) -> str:
    """Return what a type that is coarser than that of a place is called: single or half."""
    return "single" if dtype == "float32" else "half"


def rounded_after(dtype: str) -> Act:
    """Return the act of storing what an operation gives in a type, and taking it up again."""
    return after(lambda at, near: Near(in_type(near.value, dtype), near.error))


def rounded_before(dtype: str, *kinds: str) -> Act:
    """Return the act of storing what an operation reads in a type: all of it, or some kinds."""

    def act(at: At, operation: Operation) -> Near:
        chosen = kinds or tuple(at.inputs)
        stored = {
            kind: Near(in_type(at.inputs[kind].value, dtype), at.inputs[kind].error)
            for kind in chosen
        }
        return operation(with_inputs(at, **stored))

    return act


def _with_rounded_weights(dtype: str, prefixes: tuple[str, ...]) -> Act:
    def act(at: At, operation: Operation) -> Near:
        every = (name for name in WEIGHTS.get(at.weights.kind, ()) if at.config.has(name))
        names = [name for name in every if name.startswith(prefixes)]
        return operation(
            with_weights(at, **{name: in_type(at.weights[name], dtype) for name in names})
        )

    return act


def _both(first: Act, second: Act) -> Act:
    """Return the act of doing the second around the first."""
    return lambda at, operation: second(at, lambda inner: first(inner, operation))


def computed_in(dtype: str) -> Act:
    """Return the act of storing what an operation reads, and what it gives, in a type."""
    return _both(rounded_before(dtype), rounded_after(dtype))


def rounded_rows(dtype: str, norm: str) -> Act:
    """Return the act of storing the rows of a norm in a type before gain and bias."""

    def act(at: At, operation: Operation) -> Near:
        gain = at.weights[f"{norm}_gain"]
        plain = {f"{norm}_gain": np.ones_like(gain)}
        biased = at.config.has(f"{norm}_bias")
        bias = at.weights[f"{norm}_bias"] if biased else np.zeros_like(gain)
        if biased:
            plain[f"{norm}_bias"] = np.zeros_like(bias)
        near = operation(with_weights(at, **plain))
        return Near(in_type(near.value, dtype) * gain + bias, near.error * np.abs(gain))

    return act


def _turned_in(dtype: str) -> Act:
    """Return the act of storing queries or keys in a type before they are turned."""

    def act(at: At, operation: Operation) -> Near:
        plain = operation(with_config(at, positions="none", rotary_dims=0))
        stored = Near(in_type(plain.value, dtype), plain.error)
        return rotated(stored, *at.config.rotation, p=at.p)

    return act


NORMS = ("ln1", "ln2", "ln_final")
CALLED = {
    "pattern": "the softmax",
    "mlp_post": "the activation",
    **dict.fromkeys(NORMS, "the norm"),
}


def _steps(config: Config, kind: str, dtype: str) -> Iterator[Mistake]:
    """Yield the steps of one operation that may be made in a type, the plainest first."""
    called, what = size(dtype), CALLED.get(kind, kind)

    def step(says: str, act: Act) -> Mistake:
        return Mistake("coarser", f"a {called}-precision step: {says}", {kind: act})

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
        yield step(says, rounded_rows(dtype, kind))
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


def _computed_in(judge: Judge, place: str, dtype: str) -> bool:
    """Return whether all entries are numbers of a type, and within its bounds."""
    for prompt, near in zip(judge.prompts, judge.expected(place), strict=True):
        claimed = np.isfinite(np.broadcast_to(np.asarray(near.error), near.value.shape))
        shown = prompt.places[place].value[claimed]
        if np.count_nonzero(shown) < MOVED or (stored_as(shown, dtype) != shown).any():
            return False
    u = UNIT_ROUNDOFF[dtype]
    return judge.ratio(place, p=Precision(u, u, precision(dtype).tiny, likely=True)) <= 1


def _on_a_grid(judge: Judge, place: str) -> str:
    """Return that all entries are the right ones rounded to a grid, as of integers with a scale."""
    said = ""
    for prompt, near in zip(judge.prompts, judge.expected(place), strict=True):
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
        if (np.abs(shown - nearest) > 64 * judge.unit * largest).any():
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
