"""Correct code never exceeds a bound, however it computes; the truth comes from 40 digits.

`OTIMES_LONG=1` draws over ten thousand cases, an ordinary run a few hundred.
"""

import os
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from otimes.numeric.rounding import Precision, gamma, precision, stored_as, worst_ratio
from otimes.numeric.rounding.functions import CONDITION, activated, normalised, rotated, softmax
from otimes.numeric.rounding.linear import Near, linear, over_heads
from tests.numeric.rounding import exactly, implementations, seen

CASES = 100 if os.environ.get("OTIMES_LONG") == "1" else 3
SEED = 7

near = Near.exactly


def _draws(what: str, dtype: str):
    """Yield a random generator for each case; the long profile begins with the short one's."""
    for number in range(CASES):
        yield np.random.default_rng([SEED, number, zlib.crc32(what.encode()), len(dtype)])


def _matrix(draw: np.random.Generator, dtype: str, *shape: int, spread: float = 1.0) -> np.ndarray:
    """Return a matrix that the dtype can hold, its entries of different magnitudes."""
    scale = 10.0 ** draw.uniform(-spread, spread, shape) * 10.0 ** draw.uniform(-1, 0.5)
    return stored_as(draw.standard_normal(shape) * scale, dtype)


def _holds(found: np.ndarray, true: np.ndarray, bounded: Near, dtype: str) -> None:
    """Assert that the implementation and our own value are as near the truth as is claimed."""
    error = exactly.distance(found, true)
    ratio = worst_ratio(error, np.zeros_like(error), bounded.error)
    assert ratio <= 1, f"error/bound {ratio}"
    seen.note(dtype, ratio)
    # Our own value is a float64 computation: its error is the bound of that precision.
    share = precision(dtype).doubled - 1
    assert np.all(exactly.distance(bounded.value, true) <= bounded.error * share)


@pytest.mark.parametrize("name", implementations.PRODUCTS)
def test_products(name: str) -> None:
    dtype, compute = implementations.PRODUCTS[name]
    for draw in _draws("product", dtype):
        n_terms = int(draw.choice([1, 2, 3, 17, 64]))
        rows = _matrix(draw, dtype, 2, n_terms)
        weight = _matrix(draw, dtype, n_terms, 3)
        bias = _matrix(draw, dtype, 3) if draw.random() < 0.7 else None
        if draw.random() < 0.3 and n_terms > 1:  # what cancels
            weight[n_terms // 2] = -weight[0]
            rows[:, n_terms // 2] = rows[:, 0]
        bounded = linear(near(rows), near(weight), bias, precision(dtype))
        _holds(compute(rows, weight, bias), exactly.linear(rows, weight, bias), bounded, dtype)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("name", implementations.norms("rms", 1e-5))
def test_norms(kind: str, name: str) -> None:
    eps = 1e-5
    known = implementations.norms(kind, eps)
    if name not in known:
        pytest.skip("an implementation of the other norm")
    dtype, compute = known[name]
    for draw in _draws(kind, dtype):
        width = int(draw.choice([2, 3, 8, 33, 64]))
        rows = _matrix(draw, dtype, 3, width, spread=0.5)
        rows = stored_as(rows + draw.choice([0.0, 1.0, 30.0]) * draw.random(), dtype)
        gain = _matrix(draw, dtype, width, spread=0.3)
        bias = _matrix(draw, dtype, width, spread=0.3) if kind == "layer" else None
        bounded = normalised(near(rows), kind, eps, near(gain), bias, precision(dtype))
        true = exactly.norm(kind, eps, rows, gain, bias)
        _holds(compute(rows, gain, bias), true, bounded, dtype)


@pytest.mark.parametrize("name", implementations.SOFTMAXES)
def test_softmax(name: str) -> None:
    dtype, compute = implementations.SOFTMAXES[name]
    for draw in _draws("softmax", dtype):
        n_pos = int(draw.choice([1, 2, 5, 12]))
        scores = stored_as(draw.standard_normal((n_pos, n_pos)) * draw.choice([0.1, 2, 10]), dtype)
        bounded = softmax(near(scores), np.tri(n_pos, dtype=bool), precision(dtype))
        _holds(compute(scores), exactly.softmax(scores), bounded, dtype)


@pytest.mark.parametrize("name", implementations.ATTENTIONS)
def test_attention_that_shows_only_z(name: str) -> None:
    """Scores and patterns are hidden, and their errors carried along."""
    dtype, compute = implementations.ATTENTIONS[name]
    p = precision(dtype)
    for draw in _draws("attention", dtype):
        n_pos, d_head = int(draw.choice([1, 2, 7])), int(draw.choice([2, 4, 6]))
        q, k, v = (
            stored_as(draw.standard_normal((n_pos, d_head)) * draw.uniform(0.3, 2), dtype)
            for _ in range(3)
        )
        raw = linear(near(q), near(k.T), None, p, rescaled=2)
        root = np.sqrt(d_head)
        rounding = (p.stored() + 2 * p.inner) * raw.size / root
        scores = Near(raw.value / root, raw.error / root + rounding)
        pattern = softmax(scores, np.tri(n_pos, dtype=bool), p, online=True)
        bounded = linear(pattern, near(v), None, p, rescaled=1, sums=3 * n_pos + 1)
        _holds(compute(q, k, v), exactly.attention(q, k, v), bounded, dtype)


OF_ACTIVATIONS = [
    (name, implementation)
    for name in CONDITION
    for implementation in implementations.activations(name)
]


@pytest.mark.parametrize(("name", "implementation"), OF_ACTIVATIONS)
def test_activations(name: str, implementation: str) -> None:
    dtype, compute = implementations.activations(name)[implementation]
    for draw in _draws(name, dtype):
        x = stored_as(draw.standard_normal((4, 3)) * 10.0 ** draw.uniform(-2, 1), dtype)
        x = np.clip(np.abs(x) + 2.0**-10 if name == "rsqrt" else x, -9, 9)
        bounded = activated(name, near(x), precision(dtype))
        _holds(compute(x), exactly.activation(name, x), bounded, dtype)


@pytest.mark.parametrize("name", CONDITION)
def test_an_error_of_the_argument_is_carried(name: str) -> None:
    """What is moved by E before an activation lies within the bound that knows of E."""
    p = precision("float64")
    for draw in _draws("carried", name):
        x = draw.standard_normal((5, 5)) * draw.uniform(0.1, 5)
        x = np.abs(x) + 0.3 if name == "rsqrt" else x
        error = np.full_like(x, 10.0 ** draw.uniform(-6, -0.6))
        bounded = activated(name, Near(x, error), p)
        for moved in (x - error, x + error, x + error * draw.uniform(-1, 1, x.shape)):
            distance = exactly.distance(bounded.value, exactly.activation(name, moved))
            assert np.all(distance <= bounded.error + 2.0**-47)  # the move itself was rounded
            # and the bound is no more than a few times that where the function is steep
        assert np.median(bounded.error) <= 3 * error[0, 0] * max(
            1, np.abs(bounded.value).max() ** 3
        )


WEIGHT = np.random.default_rng(SEED).standard_normal((5, 5))
CARRYING: dict[str, Callable[[Near, Precision], Near]] = {
    "softmax": lambda rows, p: softmax(rows, np.tri(5, dtype=bool), p),
    "layer": lambda rows, p: normalised(rows, "layer", 1e-5, near(WEIGHT[0]), WEIGHT[1], p),
    "rms": lambda rows, p: normalised(rows, "rms", 1e-5, near(WEIGHT[0]), None, p),
    "product": lambda rows, p: linear(rows, near(WEIGHT), WEIGHT[0], p),
    "half": lambda rows, p: rotated(rows, 4, 100.0, "half", p=p),
    "yarn": lambda rows, p: rotated(rows, 4, 100.0, "half", (2.0, 0.1, 3.0, 20.0, 1.5), p=p),
    "interleaved": lambda rows, p: rotated(rows, 2, 100.0, "interleaved", p=p),
}


@pytest.mark.parametrize("name", CARRYING)
def test_errors_of_inputs_are_carried(name: str) -> None:
    p = precision("float64")
    for draw in _draws(name, "carried"):
        x = draw.standard_normal((5, 5)) * 2
        error = np.abs(draw.standard_normal((5, 5))) * 10.0 ** draw.uniform(-6, -1)
        bounded = CARRYING[name](Near(x, error), p)
        for direction in (1.0, -1.0, draw.choice([-1.0, 1.0], x.shape)):
            moved = CARRYING[name](near(x + direction * error), p).value
            assert np.all(np.abs(moved - bounded.value) <= bounded.error + 2.0**-47)


def test_what_is_computed_step_by_step_has_a_precision_of_its_own() -> None:
    """Sums kept in float16, as no library does: within the bound that says so, and not without."""
    rng = np.random.default_rng(SEED)
    rows, weight = (stored_as(rng.random(shape), "float16") for shape in ((2, 200), (200, 3)))
    found = implementations.in_numpy("float16", implementations.one_by_one)(rows, weight, None)
    error = exactly.distance(found, exactly.linear(rows, weight, None))
    stepwise, usual = (
        linear(near(rows), near(weight), None, precision("float16", inner)).error
        for inner in ("float16", None)
    )
    assert np.all(error <= stepwise)
    assert np.any(error > usual)


def test_the_check_can_fail() -> None:
    """Products that are wrong by four parts in a million exceed the bound of float32."""
    dtype, compute = implementations.PRODUCTS["library float32"]
    rng = np.random.default_rng(SEED)
    rows, weight = (stored_as(rng.random(shape), dtype) for shape in ((2, 8), (8, 3)))
    bounded = linear(near(rows), near(weight), None, precision(dtype))
    wrong = compute(rows, weight, None) * (1 + 2.0**-18)
    with pytest.raises(AssertionError, match="error/bound"):
        _holds(wrong, exactly.linear(rows, weight, None), bounded, dtype)


@pytest.mark.parametrize("outlier", [1.0, 1e4])
def test_a_sampled_bound_is_less_than_what_is_likely_and_not_much(outlier: float) -> None:
    """What a fraction of the terms acquits must be acquitted by all of them."""
    rng = np.random.default_rng(0)
    likely = precision("float32").supposed_likely()
    less = likely.supposed_less()
    rows, weight = rng.standard_normal((9, 768)), rng.standard_normal((768, 30))
    rows[:, 5] *= outlier  # then nearly all of the sum is in one term
    heads = rows.reshape(9, 12, 64).transpose(1, 0, 2)
    bias = rng.standard_normal(30)
    # 768 products and a bias, summed in float64 in two orders: each off by γ of all of them
    either = 2 * gamma(769, 2.0**-53) * (np.abs(rows) @ np.abs(weight) + np.abs(bias))
    made = {
        p.sampled: (
            linear(Near.exactly(rows), Near.exactly(weight), bias, p),
            over_heads(Near.exactly(heads), Near.exactly(weight.reshape(12, 64, 30)), bias, p),
        )
        for p in (likely, less)
    }
    for whole, part in zip(made[False], made[True], strict=True):
        assert (part.error <= whole.error).all()
        assert (part.error > whole.error / 5).all()
        assert worst_ratio(part.value, whole.value, either) <= 1
