"""Interventions on latent attention, beside passes with other weights."""

from __future__ import annotations

import numpy as np
import pytest

import otimes as ot
from tests.numeric.interventions.test_passes import close
from tests.numeric.random_models import MODERN, TINY_TOKENS, random_model

KINDS = ["deepseek", "latents of keys only"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_replaced_latent_is_a_pass_with_other_weights(kind: str) -> None:
    model = random_model(MODERN[kind], seed=1)
    weights = {"kv_latent.1": "W_DKV"} | ({"q_latent.1": "W_DQ"} if model.config.q_rank else {})
    for place, name in weights.items():
        # The norm of a row of zeros is a row of zeros.
        without = np.array(model.weights[name])
        without[1] = 0.0
        expected = model.changed({name: without}).forward(TINY_TOKENS)
        found = ot.intervene(model, TINY_TOKENS, {place: "zero"})
        assert close(found, expected), place
        assert np.abs(found["logits"] - model.forward(TINY_TOKENS)["logits"]).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_is_made_of_a_latent_moves_with_it(kind: str) -> None:
    """The latent of another prompt gives its values, and its keys but for the rotary part."""
    model, dims = random_model(MODERN[kind], seed=1), MODERN[kind].rotary_dims
    other = [*reversed(TINY_TOKENS)]
    ours, theirs = model.forward(TINY_TOKENS), model.forward(other)
    found = ot.intervene(model, TINY_TOKENS, {"kv_latent.0": "resample"}, source=other)
    assert np.array_equal(found["v.0"], theirs["v.0"])
    assert np.array_equal(found["k.0"][..., dims:], theirs["k.0"][..., dims:])
    assert np.array_equal(found["k.0"][..., :dims], ours["k.0"][..., :dims])
    assert np.array_equal(found["q.0"], ours["q.0"])
    # A stream that is wholly replaced gives the other prompt's logits.
    whole = ot.intervene(model, TINY_TOKENS, {"resid_pre.0": "resample"}, source=other)
    assert close({"logits": whole["logits"]}, {"logits": theirs["logits"]})


@pytest.mark.parametrize("kind", KINDS)
def test_activation_patching_is_one_intervention_after_another(kind: str) -> None:
    model = random_model(MODERN[kind], seed=1)
    clean, corrupt = TINY_TOKENS, [*reversed(TINY_TOKENS)]
    found = ot.activation_patching(model, clean, corrupt, 3, 5, kind="kv_latent", normalised=False)
    part = ot.hook("kv_latent.1", positions=2)
    after = ot.intervene(model, corrupt, {part: "resample"}, source=clean)["logits"][-1]
    before = model.forward(corrupt)["logits"][-1]
    change = (after[3] - after[5]) - (before[3] - before[5])
    assert found.axes == ("layer", "position")
    assert abs(found.values[1, 2] - change) < 1e-12
