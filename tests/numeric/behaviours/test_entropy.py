"""Effects on the entropy, against a model with other weights, and for a neuron in a null space."""

from __future__ import annotations

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.behaviours.entropy import entropy, entropy_effects
from otimes.numeric.model import Model, make_model
from otimes.numeric.random_weights import random_model

TOKENS = np.array([[1, 2, 3, 1], [4, 0, 5, 4]])


def changed(model: Model, **weights: np.ndarray) -> Model:
    return make_model("changed", model.config, {**model.weights, **weights})


def plain_entropy(logits: np.ndarray) -> list[float]:
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return [-sum(p * np.log(p) for p in row) for row in shares.tolist()]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_the_whole_effect_is_that_of_a_model_with_a_constant_neuron(kind: str) -> None:
    """The neuron's row of W_out moves into b_out, times its mean."""
    model = random_model(kind=kind, d_vocab=9, biases=("b_in", "b_out"))
    mean = np.mean([model.forward(row)["mlp_post.0"][:, 5] for row in TOKENS])
    W_out, b_out = np.array(model.weights["W_out"]), np.array(model.weights["b_out"])
    b_out[0] += mean * W_out[0, 5]
    W_out[0, 5] = 0.0
    other = changed(model, W_out=W_out, b_out=b_out)
    found = entropy_effects(model, TOKENS, 0, [5]).at(effect="whole", neuron="0.5").values
    expected = [
        np.subtract(*(plain_entropy(m.forward(row)["logits"]) for m in (other, model)))
        for row in TOKENS
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_neuron_in_the_null_space_acts_through_the_scale_alone() -> None:
    model = random_model(kind="llama", d_vocab=9)
    W_out, W_U = np.array(model.weights["W_out"]), np.array(model.weights["W_U"])
    unseen = np.linalg.svd(model.ln_final_gain[:, None] * W_U)[0][:, -1]
    W_out[1, 3] = 9.0 * unseen
    entropic = changed(model, W_out=W_out)
    effects = entropy_effects(entropic, TOKENS, 1, [3, 4])
    whole, frozen = (np.abs(effects.at(effect=name).values) for name in ("whole", "scale frozen"))
    assert frozen[0].max() < 1e-12 < 1e-3 < whole[0].max()
    assert frozen[1].max() > 1e-3
    zeroed = W_out.copy()
    zeroed[1, 3] = 0.0
    without = changed(model, W_out=zeroed)
    for row in TOKENS:
        ratio = entropic.forward(row)["logits"] / without.forward(row)["logits"]
        np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(9), rtol=1e-9)
        assert (ratio > 0).all()


def test_entropy_is_that_of_the_softmax() -> None:
    logits = np.random.default_rng(0).standard_normal((3, 5))
    np.testing.assert_allclose(entropy(logits), plain_entropy(logits), rtol=1e-13)
    assert entropy(np.array([0.0, 1000.0])) == 0.0


def test_bad_input_is_refused() -> None:
    model = random_model(kind="gpt2")
    with pytest.raises(OtimesError, match="need an MLP and a final norm"):
        entropy_effects("one_layer", [1, 2], 0, [0])
    with pytest.raises(OtimesError, match="layer 2 is out of range"):
        entropy_effects(model, [1, 2], 2, [0])
    with pytest.raises(OtimesError, match=r"from 0 to 47, got \[48\]"):
        entropy_effects(model, [1, 2], 0, [48])
