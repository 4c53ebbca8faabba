"""What neurons respond to, against counting, and for neurons that respond to one thing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.behaviours.activations import (
    label_variance,
    neuron_activations,
    neuron_correlations,
    neuron_examples,
    neuron_information,
)
from otimes.numeric.model import Model, make_model
from otimes.numeric.random_weights import random_model

MODEL = random_model(kind="gpt2", d_vocab=9, n_ctx=12)
TOKENS = np.array([[1, 2, 3, 1, 8, 8], [4, 0, 5, 4, 2, 1]])


def detector(token: int) -> Model:
    """Return a model whose neuron 0 of layer 0 is active on one token, and neuron 1 on others."""
    model = random_model(
        n_layers=1, d_model=9, d_vocab=9, d_mlp=3, activation="relu", n_ctx=12, n_heads=1
    )
    weights = {name: np.array(value) for name, value in model.weights.items()}
    weights["W_E"], weights["W_O"][:] = np.eye(9), 0.0
    weights["W_in"][0] = 0.0
    weights["W_in"][0, token, 0] = 2.0
    weights["W_in"][0, :, 1] = 1.0 - np.eye(9)[token]
    return make_model("detector", model.config, weights)


def test_activations_are_recorded_ones() -> None:
    found = neuron_activations(MODEL, TOKENS)
    assert found.shape == (2, 2, 6, 48)
    for row, tokens in enumerate(TOKENS):
        np.testing.assert_allclose(found[1, row], MODEL.forward(tokens)["mlp_post.1"], atol=1e-13)


def test_information_is_that_of_counting() -> None:
    labels = np.array([0, 0, 1, 1, 2, 2])
    found = neuron_information(MODEL, TOKENS, labels, threshold=0.1)
    active = neuron_activations(MODEL, TOKENS) > 0.1
    for layer, neuron in ((0, 0), (1, 17)):
        pairs = [
            (bool(active[layer, p, i, neuron]), int(labels[i])) for p in (0, 1) for i in range(6)
        ]
        bits = 0.0
        for pair in set(pairs):
            both = pairs.count(pair) / 12
            fires = sum(a == pair[0] for a, _ in pairs) / 12
            share = sum(y == pair[1] for _, y in pairs) / 12
            bits += both * math.log2(both / fires / share)
        assert found.values[layer, neuron] == pytest.approx(bits, abs=1e-12)
    assert found.baseline == pytest.approx(2 / (24 * math.log(2)))


def test_a_detector_tells_all_of_its_label() -> None:
    model = detector(1)
    is_one = (TOKENS == 1).astype(int)
    share = is_one.mean()
    entropy = -(share * math.log2(share) + (1 - share) * math.log2(1 - share))
    bits = neuron_information(model, TOKENS, {"token": is_one, "half": np.arange(6) // 3})
    np.testing.assert_allclose(bits.at(label="token").values, [[entropy, entropy, 0]], atol=1e-12)
    assert bits.at(label="half").values[0, 0] < 0.2
    examples = neuron_examples(model, TOKENS, 0, 0)
    assert [(each.prompt, each.position, each.value) for each in examples] == [
        *((0, 0, 2.0), (0, 3, 2.0), (1, 5, 2.0))
    ]
    assert examples[0].text == "1"
    assert len(neuron_examples(model, TOKENS, 0, 0, 2)) == 2


def test_variance_explained_by_tokens_is_that_of_loops() -> None:
    found = label_variance(MODEL, TOKENS).values
    rows = neuron_activations(MODEL, TOKENS)[1].reshape(12, -1)
    flat = TOKENS.ravel()
    for neuron in (0, 30):
        x = rows[:, neuron]
        within = sum(
            float(((x[flat == token] - x[flat == token].mean()) ** 2).sum()) for token in set(flat)
        )
        whole = float(((x - x.mean()) ** 2).sum())
        expected = 1 - within / (12 - len(set(flat))) / (whole / 11)
        assert found[1, neuron] == pytest.approx(expected, rel=1e-10)
    by_token = label_variance(detector(1), TOKENS).values
    np.testing.assert_allclose(by_token[0, :2], 1.0, rtol=1e-12)
    assert np.isnan(by_token[0, 2])


def test_a_neuron_of_a_shuffled_model_is_found() -> None:
    weights = {name: np.array(value) for name, value in MODEL.weights.items()}
    order = np.random.default_rng(1).permutation(48)
    weights["W_in"][1], weights["W_out"][1] = (
        weights["W_in"][1][:, order],
        weights["W_out"][1][order],
    )
    weights["b_in"][1] = weights["b_in"][1][order]
    shuffled = make_model("shuffled", MODEL.config, weights)
    found = neuron_correlations(MODEL, shuffled, TOKENS)
    np.testing.assert_allclose(found.at(control="neurons").values, 1.0, rtol=1e-10)
    assert found.at(control="random directions").values.mean() < 0.9
    other = random_model(kind="gpt2", d_vocab=9, n_ctx=12, seed=3, n_layers=1)
    best = neuron_correlations(MODEL, other, TOKENS).at(control="neurons").values
    mine, theirs = (neuron_activations(m, TOKENS).reshape(-1, 12, 48) for m in (MODEL, other))
    expected = max(np.corrcoef(mine[1][:, 7], theirs[0][:, v])[0, 1] for v in range(48))
    assert best[1, 7] == pytest.approx(expected, rel=1e-10)


def test_bad_input_is_refused() -> None:
    with pytest.raises(OtimesError, match="has no MLP"):
        neuron_activations("one_layer", [1, 2])
    with pytest.raises(OtimesError, match="neuron 2.0 is out of range"):
        neuron_examples(MODEL, TOKENS, 2, 0)
    with pytest.raises(ShapeError, match=r"shape \(2, 6\) or \(6,\), one for each token"):
        neuron_information(MODEL, TOKENS, [1, 2])
    with pytest.raises(OtimesError, match="labels must be integers, got float64"):
        neuron_information(MODEL, TOKENS, np.arange(6) / 2)
    with pytest.raises(OtimesError, match="all labels are the same"):
        label_variance(MODEL, TOKENS, np.ones((2, 6), dtype=int))
    with pytest.raises(OtimesError, match="each of 3 positions has a label of its own"):
        label_variance(MODEL, [1, 2, 3])
    with pytest.raises(OtimesError, match="at least three positions, got 2"):
        neuron_correlations(MODEL, MODEL, [1, 2])
