"""Every place of the pass: the twin stays within its bound in four types, and mistakes do not."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.block import place_names
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model as generic_model
from otimes.numeric.rounding import (
    LocalBounds,
    in_dtype,
    inputs_of,
    precision,
    stored_as,
    worst_ratio,
)
from otimes.numeric.torch_model import TorchModel
from tests.numeric.random_models import ALL, KINDS, TINY_TOKENS, random_model
from tests.numeric.rounding import seen
from tests.numeric.rounding.mistakes import MISTAKES, kind_of, over_bound

SEEDS = range(10 if os.environ.get("OTIMES_LONG") == "1" else 1)
DTYPES = ("float64", "float32", "float16", "bfloat16")


def recorded(model: Model, dtype: str, tokens: list[int]) -> dict[str, np.ndarray]:
    record: dict[str, torch.Tensor] = {}
    with torch.no_grad():
        TorchModel.of_model(model, getattr(torch, dtype))(torch.tensor([tokens]), record)
    places = {place: value[0].double().numpy() for place, value in record.items()}
    return {**places, "tokens": np.array(tokens)}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ALL)
def test_the_twin_stays_within_every_bound(kind: str, dtype: str) -> None:
    for seed in SEEDS:
        make = generic_model if seed % 2 else random_model
        model = in_dtype(make(ALL[kind], seed=seed), dtype)
        places = recorded(model, dtype, TINY_TOKENS)
        bounds = LocalBounds(model, dtype)
        for place in place_names(model.config):
            judged = bounds.place(place, places)
            ratio = worst_ratio(places[place], judged.value, judged.bound)
            assert ratio <= 1, place
            seen.note(dtype, ratio)
            assert np.all(judged.likely <= judged.bound)


@pytest.mark.parametrize("kind", ALL)
def test_the_reference_is_its_own_correct_implementation(kind: str) -> None:
    model = random_model(ALL[kind], seed=2)
    places = {**model.forward(TINY_TOKENS), "tokens": np.array(TINY_TOKENS)}
    bounds = LocalBounds(model, "float64")
    for place in place_names(model.config):
        judged = bounds.place(place, places)
        assert worst_ratio(places[place], judged.value, judged.bound) <= 1, place
        entry = np.unravel_index(np.argmax(np.abs(judged.value)), judged.value.shape)
        disturbed = places[place].copy()
        disturbed[entry] *= 1 + 1e-9
        if np.isfinite(judged.bound[entry]):
            assert worst_ratio(disturbed, judged.value, judged.bound) > 1, place


@pytest.mark.parametrize("hidden", [["scores", "pattern"], ["q", "k"], ["ln1", "qk_in"], ["ln2"]])
def test_a_place_that_is_hidden_is_computed_with_its_error(hidden: list[str]) -> None:
    for kind in ("gpt2", "llama", "everything"):
        model = in_dtype(random_model(ALL[kind], seed=1), "float32")
        places = recorded(model, "float32", TINY_TOKENS)
        shown = {n: v for n, v in places.items() if n.partition(".")[0] not in hidden}
        bounds = LocalBounds(model, "float32")
        for place in shown:
            if place != "tokens" and any(r not in shown for r in inputs_of(model.config, place)):
                judged, direct = bounds.place(place, shown), bounds.place(place, places)
                assert worst_ratio(places[place], judged.value, judged.bound) <= 1, place
                assert np.median(judged.bound) >= np.median(direct.bound)
                assert np.median(judged.bound) <= 1e-4 * np.abs(judged.value).max()


FLOAT32 = "float32"


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed_in_float32(name: str) -> None:
    assert over_bound(MISTAKES[name], FLOAT32, 32)[0] > 1


def test_what_bfloat16_cannot_show() -> None:
    """Another ε or base, or n − 1 for n, moves numbers by less than a rounding; all else shows."""
    ratios = {name: over_bound(mistake, "bfloat16", 32)[0] for name, mistake in MISTAKES.items()}
    unseen = {name for name, ratio in ratios.items() if ratio <= 1}
    small = {name for name in MISTAKES if name.startswith("ε")}
    assert unseen == small | {"weights in bfloat16", "another rotary base", "unbiased variance"}


def test_sensitivity_is_what_breaks_the_check() -> None:
    """Four times the change that is said to be noticed is; a quarter of it is not."""
    model = in_dtype(generic_model(kind_of("gpt2", 32)), FLOAT32)
    places = recorded(model, FLOAT32, [1, 2, 3, 4, 5])
    bounds = LocalBounds(model, FLOAT32)
    for place in ("q.0", "pattern.0", "ln1.0", "mlp_post.0", "logits"):
        right = bounds.place(place, places)
        for factor, change in bounds.sensitivity(place, places).items():
            for times, over in ((4, True), (0.2, False)):
                if change > 0.01:  # no longer little: softmax and norms are not linear in it
                    continue
                moved, seen = model, dict(places)
                if factor in seen:
                    seen[factor] = seen[factor] * (1 + times * change)
                else:
                    weight = model.weights[factor] * (1 + times * change)
                    moved = model.changed({factor: weight})
                value = LocalBounds(moved, "float64").place(place, seen).value
                assert (worst_ratio(value, right.value, right.bound) > 1) == over, (place, factor)


def test_the_sum_over_heads_may_be_stored_head_by_head() -> None:
    model = in_dtype(random_model(KINDS["gpt2"], seed=4), "bfloat16")
    places = recorded(model, "bfloat16", TINY_TOKENS)
    total = np.zeros_like(places["attn_out.0"])
    for head in places["head_out.0"]:
        total = stored_as(total + head, "bfloat16")
    total = stored_as(total + model.part("b_O", 0), "bfloat16")
    judged = LocalBounds(model, "bfloat16").place("attn_out.0", places)
    assert worst_ratio(total, judged.value, judged.bound) <= 1


def test_queries_may_be_scaled_before_the_product() -> None:
    """By a fourth root on each side, stored in bfloat16, as fused kernels do."""
    model = in_dtype(random_model(KINDS["gpt2"], seed=4), "bfloat16")
    places = recorded(model, "bfloat16", TINY_TOKENS)
    q, k = (stored_as(places[f"{p}.0"] * 6**-0.25, "bfloat16") for p in "qk")
    scores = stored_as(q @ np.swapaxes(k, 1, 2), "bfloat16")
    judged = LocalBounds(model, "bfloat16").place("scores.0", places)
    assert worst_ratio(scores, judged.value, judged.bound) <= 1
    pushed = np.where(np.tri(6, dtype=bool), scores, -np.inf)  # what is masked is ignored
    assert worst_ratio(pushed, judged.value, judged.bound) <= 1


def test_stored_numbers_are_torch_s() -> None:
    draw = np.random.default_rng(0)
    numbers = np.concatenate([draw.standard_normal(1000), [0.0, 1e-30, 3.0e38, -1e-40, 1 + 2**-8]])
    for dtype in DTYPES:
        theirs = torch.tensor(numbers).float().to(getattr(torch, dtype)).double().numpy()
        with np.errstate(over="ignore"):
            ours = stored_as(numbers.astype(np.float32), dtype)
        assert np.array_equal(ours, theirs), dtype


def test_what_is_missing_or_misshapen_is_said() -> None:
    model = random_model(KINDS["gpt2"])
    bounds = LocalBounds(model, FLOAT32)
    with pytest.raises(OtimesError, match=r"random has no activation scores\.9"):
        bounds.place("scores.9", {})
    with pytest.raises(OtimesError, match="computed from the tokens: record them as 'tokens'"):
        bounds.place("z.0", {})
    with pytest.raises(
        ShapeError, match=r"computed from v, which must have shape \(4, 5, 6\) for 5 pos"
    ):
        bounds.place("z.0", {"pattern.0": np.ones((4, 5, 5)), "v.0": np.ones((4, 6, 6))})
    with pytest.raises(
        OtimesError, match="no rounding bound for the dtype float8; the dtypes are float64"
    ):
        LocalBounds(model, "float8")


def test_a_row_without_variance_has_no_bound() -> None:
    model = random_model(replace(KINDS["gpt2"], norm_eps=0.0))
    flat = np.ones((3, 9)) * np.array([[1.0], [0.3], [0.0]])
    judged = LocalBounds(model, FLOAT32).place("ln1.0", {"resid_pre.0": flat})
    assert np.all(np.isinf(judged.bound))


def test_a_precision_of_one_s_own() -> None:
    model = random_model(KINDS["gpt2"])
    q = {"qk_in.0": np.ones((3, 9))}
    stepwise = LocalBounds(model, precision("bfloat16", "bfloat16")).place("q.0", q).bound
    usual = LocalBounds(model, "bfloat16").place("q.0", q).bound
    assert np.all(stepwise > usual)
