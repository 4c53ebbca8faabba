"""Losses without a component, against models whose weights are zero."""

from __future__ import annotations

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.behaviours.ablation import ablation_losses
from otimes.numeric.induction_by_hand import induction_by_hand
from otimes.numeric.model import Model, make_model
from otimes.numeric.random_weights import random_model

MODEL = random_model(kind="gpt2", d_vocab=12, n_ctx=8)
TOKENS = np.array([[1, 2, 3, 1], [4, 0, 11, 4]])


def loss(model: Model, tokens: np.ndarray) -> list[float]:
    shares = np.exp(model.forward(tokens)["logits"])
    shares /= shares.sum(axis=1, keepdims=True)
    return [-np.log(shares[i, tokens[i + 1]]) for i in range(len(tokens) - 1)]


def test_a_zeroed_component_is_a_model_with_zero_weights() -> None:
    found = ablation_losses(MODEL, TOKENS, by="zero")
    assert found.values.shape == (2 * 4 + 2, 2, 3)
    for name, (tensors, index) in {
        "head 1.2": (["W_O"], (1, 2)),
        "mlp 0": (["W_out", "b_out"], (0,)),
    }.items():
        weights = {key: np.array(value) for key, value in MODEL.weights.items()}
        for tensor in tensors:
            weights[tensor][index] = 0.0
        without = make_model("without", MODEL.config, weights)
        expected = [np.subtract(loss(without, row), loss(MODEL, row)) for row in TOKENS]
        np.testing.assert_allclose(found.at(component=name).values, expected, atol=1e-12)


def test_a_mean_is_taken_over_prompts_and_positions() -> None:
    outs = np.concatenate([MODEL.forward(row)["mlp_out.1"] for row in TOKENS])
    weights = {key: np.array(value) for key, value in MODEL.weights.items()}
    weights["W_out"][1], weights["b_out"][1] = 0.0, outs.mean(axis=0)
    constant = make_model("constant", MODEL.config, weights)
    found = ablation_losses(MODEL, TOKENS, {"last": ["mlp_out.1"]})
    expected = [np.subtract(loss(constant, row), loss(MODEL, row)) for row in TOKENS]
    np.testing.assert_allclose(found.values[0], expected, atol=1e-12)


def test_without_its_second_head_an_induction_model_guesses_uniformly() -> None:
    model = induction_by_hand(6, 8)
    found = ablation_losses(model, [0, 1, 2, 3, 1, 2, 3], by="zero").at(component="head 1.0")
    before = -np.log(np.exp(1) / (np.exp(1) + 5))
    np.testing.assert_allclose(found.values[0, 4:], np.log(6) - before, atol=1e-6)


def test_bad_input_is_refused() -> None:
    with pytest.raises(OtimesError, match="'mean' or 'zero', got 'noise'"):
        ablation_losses(MODEL, TOKENS, by="noise")
    with pytest.raises(OtimesError, match="at least two tokens"):
        ablation_losses(MODEL, [1])
    with pytest.raises(OtimesError, match="has no hook point 'mlp_out.7'"):
        ablation_losses(MODEL, TOKENS, {"far": ["mlp_out.7"]})
