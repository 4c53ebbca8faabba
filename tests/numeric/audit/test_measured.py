"""The measured distance: all moved runs at once are what they are one after the other."""

import numpy as np
import pytest

from otimes.numeric.audit.precision.tolerated import TOLERATED
from otimes.numeric.audit.reference import error_estimates
from otimes.numeric.audit.reference.evaluator import Evaluator, Mistake
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import GPT2, KINDS, LLAMA

TOKENS = [3, 0, 10, 3, 7, 7, 28, 1, 5]
UNIT = 2.0**-24  # so that rounding in float64 is nothing beside it


def _by_itself(model, mistakes: tuple[Mistake, ...], monkeypatch) -> tuple[np.ndarray, ...]:
    """Return the measured bounds, made with differences in float32 and run by run in float64."""
    found = []
    for products in (error_estimates.PRODUCTS, {}):
        monkeypatch.setattr(error_estimates, "PRODUCTS", products)
        evaluator = Evaluator(model, np.array(TOKENS), {}, mistakes=mistakes)
        found.append(error_estimates.measured(evaluator, "logits", UNIT))
    assert np.array_equal(found[0].value, found[1].value)
    assert np.array_equal(found[0].value, evaluator.near("logits").value)
    return found[0].error, found[1].error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mistakes", [(), TOLERATED["float64"]], ids=["right", "coarse"])
def test_moved_runs_at_once_deviate_as_they_do_one_by_one(kind, mistakes, monkeypatch) -> None:
    at_once, one_by_one = _by_itself(random_model(KINDS[kind], seed=3), mistakes, monkeypatch)
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-5)  # float32, of differences


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_where_float32_does_not_reach_the_runs_are_made_in_float64(scale, monkeypatch) -> None:
    model = random_model(GPT2, seed=3)
    grown = model.changed({"W_E": model.part("W_E") * scale, "W_pos": model.part("W_pos") * scale})
    at_once, one_by_one = _by_itself(grown, (), monkeypatch)
    assert np.isfinite(at_once).all()
    assert at_once.min() > 0
    np.testing.assert_allclose(at_once, one_by_one, rtol=1e-5)


def test_the_distance_is_that_of_every_operation_moved_by_one_unit() -> None:
    """Of a stream and its unembedding alone: three operations, moved by hand."""
    model = random_model(LLAMA, seed=3)
    shown = {
        name: Evaluator(model, np.array(TOKENS), {}).near(name)
        for name in (f"resid_post.{model.n_layers - 1}",)
    }
    near = error_estimates.measured(Evaluator(model, np.array(TOKENS), shown), "logits", UNIT)
    rng, largest = np.random.default_rng(8), []
    (stream,) = (each.value for each in shown.values())
    value = _ended(model, stream, lambda x: x)
    for _ in range(64):
        moved = _ended(model, stream, lambda x: x * (1 + 2 * UNIT * rng.choice([-1, 1], x.shape)))
        largest.append(np.abs(moved - value).max())
    granted = near.error.max() / error_estimates.GRANTED
    assert min(largest) < granted < 1.5 * max(largest)


def _ended(model, stream, move):
    scale = np.sqrt((stream**2).mean(axis=-1, keepdims=True) + model.config.norm_eps)
    normed = move(stream / scale * model.part("ln_final_gain"))
    return move(normed @ model.part("W_U"))


def test_the_distance_is_that_of_the_run_that_deviates_most(monkeypatch) -> None:
    model, distances = random_model(GPT2, seed=3), []
    for runs in range(1, 9):  # the same first runs, and one more
        monkeypatch.setattr(error_estimates, "RUNS", runs)
        near = error_estimates.measured(Evaluator(model, np.array(TOKENS), {}), "logits", UNIT)
        distances.append(near.error.min())
    assert distances == sorted(distances)
    assert distances[0] < distances[-1]
