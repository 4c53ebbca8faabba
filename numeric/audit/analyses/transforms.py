"""The mutants of an array: another scale, other axes, a function of it, or a part of it."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from otimes.algebra.mutations import Mutant
from otimes.numeric.audit.analyses.question import Array
from otimes.numeric.model import Model

RIGHT_VALUE = "the right value"
NUMBERS = {"1": 1.0, "2": 2.0, "100, percent": 100.0}
NUMBERS["ln 2, another base of logarithms"] = float(np.log(2))


def altered(model: Model, right: Array, shown: Array) -> Iterator[Mutant]:
    """Yield the mutants of the right value that have the shape of the audited value.

    >>> from otimes.numeric.random_weights import random_model
    >>> right = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> [says for says, made in altered(random_model(), right, right.T) if (made == right.T).all()]
    ['the right value with its axes transposed (1, 0)']
    """
    forms = _same_shape(model, right, shown) if right.shape == shown.shape else ()
    for says, form in (*forms, *_layouts(right)):
        if form.shape == shown.shape:
            yield Mutant(says, form)


def _same_shape(model: Model, right: Array, shown: Array) -> Iterator[tuple[str, Array]]:
    """Yield forms of the same shape: another scale, another order, a function of every entry."""
    yield "zeros everywhere", np.zeros_like(right)
    claimed = np.isfinite(right)
    square = float((right[claimed] ** 2).sum())
    factor = float((shown[claimed] * right[claimed]).sum()) / max(square, 1e-300)
    sizes = {"d_head": model.d_head, "d_model": model.d_model, "n_heads": model.n_heads}
    names = {f"{size}": n for size, n in sizes.items()} | {
        f"√{s}": n**0.5 for s, n in sizes.items()
    }
    inverse = {f"1/{name}": 1 / n for name, n in (names | NUMBERS).items() if n != 1}
    named = {**NUMBERS, **names, **inverse}
    called = {name: n for name, n in named.items() if abs(abs(factor) / n - 1) < 1e-5}
    if factor and (called or right.size > 1):
        by = f"{factor:.4g}" + (f" ({', '.join(called)})" if called else "")
        exactly = np.sign(factor) * next(iter(called.values()), abs(factor))
        says = f"{RIGHT_VALUE} multiplied by {by}: another scale (a factor)"
        yield says + (", the sign negated" if factor < 0 else ""), exactly * right
    for axis in range(right.ndim if right.size else 0):
        yield f"the right value in reverse order along axis {axis}", np.flip(right, axis)
        for by_one in (1, -1):
            yield f"the right value off by one along axis {axis}", np.roll(right, by_one, axis)
    with np.errstate(all="ignore"):
        yield "the square of the right value", right**2
        yield "the root of the right value", np.sqrt(right)
        yield "the sizes (absolute values) of the right value", np.abs(right)
        yield "the reciprocal of the right value", 1 / right
        yield "the logarithm of the right value", np.log(right)
        yield "the exponential of the right value", np.exp(right)
        yield "one less the right value", 1 - right
        yield "the right value with negative entries set to zero", np.maximum(right, 0)
        for axis in range(right.ndim if right.size else 0):
            along = "" if axis == right.ndim - 1 else f" along axis {axis}, another than the last"
            powers = np.exp(right - right.max(axis, keepdims=True))
            softmax = powers / powers.sum(axis, keepdims=True)
            yield f"a softmax of the right value{along}", softmax
            yield f"a log-softmax of the right value{along}", np.log(softmax)
            yield f"a log-softmax of the right value{along}, to base 2", np.log2(softmax)
            yield f"the running sum of the right value along axis {axis}", right.cumsum(axis)
            lengths = np.linalg.norm(right, axis=axis, keepdims=True)
            yield f"the right value normalised to length one along axis {axis}", right / lengths
            largest = np.abs(right).max(axis, keepdims=True)
            yield f"the right value divided by its largest along axis {axis}", right / largest
            centred = right - right.mean(axis, keepdims=True)
            yield f"the right value less its mean along axis {axis} (centred)", centred
            for says, one in (
                ("first entry", right.take([0], axis)),
                ("last entry", right.take([-1], axis)),
                ("sum", right.sum(axis, keepdims=True)),
                ("mean", right.mean(axis, keepdims=True)),
                ("largest", right.max(axis, keepdims=True)),
            ):
                made = np.broadcast_to(one, right.shape)
                yield f"the {says} of the right value along axis {axis}, in the place of all", made
            spread = right.std(axis, keepdims=True)
            yield f"the right value standardised along axis {axis}", centred / spread
        yield "the right value less its mean", right - right[claimed].mean()
    if right.ndim >= 2 and right.shape[-1] == right.shape[-2]:
        turned = right.swapaxes(-1, -2)
        yield "the right value and its transpose added (symmetrised)", right + turned
        yield "the right value less its transpose (antisymmetric)", right - turned
        yield "half the right value less its transpose (antisymmetric)", (right - turned) / 2
        yield "the lower triangle of the right value", np.tril(right)
        yield "the upper triangle of the right value", np.triu(right)


def _layouts(right: Array) -> Iterator[tuple[str, Array]]:
    """Yield other layouts and parts of the right value, of any shape."""
    for order in permutations(range(right.ndim)):
        if order != tuple(range(right.ndim)):
            said = ", ".join(map(str, order))
            yield f"the right value with its axes transposed ({said})", right.transpose(order)
    yield "the right value flattened", right.reshape(-1)
    for axis, length in enumerate(right.shape):
        if not length:
            continue
        yield f"the right value summed over axis {axis}", right.sum(axis)
        yield f"the mean of the right value over axis {axis}", right.mean(axis)
        yield f"the last entry of the right value along axis {axis} only", right.take(-1, axis)
        yield f"the first entry of the right value along axis {axis} only", right.take(0, axis)
        without = np.delete(right, -1, axis)
        yield f"the right value without its last entry along axis {axis}", without
        without = np.delete(right, 0, axis)
        yield f"the right value without its first entry along axis {axis}", without
    if right.ndim == 2 and right.shape[0] == right.shape[1]:
        yield "the diagonal of the right value", np.diag(right)
        yield "the trace of the right value", np.asarray(np.trace(right))
