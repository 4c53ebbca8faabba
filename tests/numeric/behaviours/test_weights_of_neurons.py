"""Measures of the weights of neurons, against loops and on neurons made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.behaviours.weights_of_neurons import (
    frequency_correlations,
    neuron_cosines,
    neuron_moments,
    null_space_shares,
)
from otimes.numeric.model import Model, make_model
from otimes.numeric.random_weights import random_model

KINDS = {kind: random_model(kind=kind, d_vocab=21) for kind in ("gpt2", "llama", "gemma2", "neox")}


def effect(model: Model, layer: int, neuron: int) -> list[float]:
    """Return what one unit of activation adds to the logits before the scale of the norm."""
    row = model.W_out[layer, neuron].tolist()
    if model.config.norm_order == "both":
        gain = model.weights["ln2_post_gain"][layer] + (1 if model.config.gain_offset else 0)
        row = [x * g for x, g in zip(row, gain, strict=True)]
    if model.config.norm == "layer":
        row = [x - math.fsum(row) / len(row) for x in row]
    row = [x * g for x, g in zip(row, model.ln_final_gain.tolist(), strict=True)]
    return [math.fsum(x * w for x, w in zip(row, column, strict=True)) for column in model.W_U.T]


@pytest.mark.parametrize("kind", KINDS)
def test_moments_and_correlations_are_those_of_loops(kind: str) -> None:
    model, counts = KINDS[kind], np.arange(3, 24) ** 2
    moments, along = neuron_moments(model), frequency_correlations(model, counts)
    for layer, neuron in ((0, 0), (1, 47)):
        logits = effect(model, layer, neuron)
        mean = math.fsum(logits) / 21
        second, third, fourth = (math.fsum((x - mean) ** k for x in logits) / 21 for k in (2, 3, 4))
        expected = [mean, second, third / second**1.5, fourth / second**2]
        np.testing.assert_allclose(moments.values[:, layer, neuron], expected, rtol=1e-10)
        expected_correlation = np.corrcoef(logits, np.log(counts))[0, 1]
        assert along.values[layer, neuron] == pytest.approx(expected_correlation, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_cosines_are_those_of_loops(kind: str) -> None:
    model = KINDS[kind]
    for reader in ("in", "gate") if model.config.gated else ("in",):
        found = neuron_cosines(model, reader).values
        for layer, neuron in ((0, 3), (1, 20)):
            weight = model.W_in if reader == "in" else model.W_gate
            reads = weight[layer, :, neuron] * model.ln2_gain[layer]
            writes = model.W_out[layer, neuron].copy()
            if model.config.norm_order == "both":
                writes *= model.part("ln2_post_gain", layer)
            if model.config.norm == "layer":
                reads, writes = reads - reads.mean(), writes - writes.mean()
            expected = reads @ writes / math.sqrt(reads @ reads) / math.sqrt(writes @ writes)
            assert found[layer, neuron] == pytest.approx(expected, rel=1e-10)


def planted(**changed: np.ndarray) -> Model:
    """Return a model without norms and with an unembedding that reads 20 of 32 dimensions."""
    config = replace(random_model(kind="gpt2").config, norm="none", final_norm=False, tied=False)
    model = random_model(config, d_vocab=21)
    weights = {name: np.array(value) for name, value in model.weights.items()}
    weights["W_U"][20:] = 0.0
    for name, value in changed.items():
        weights[name][:] = value
    return make_model("planted", config=model.config, weights=weights)


def test_a_neuron_that_writes_the_opposite_of_what_it_reads_has_the_cosine_minus_one() -> None:
    model = planted()
    W_in = model.W_in.copy()
    W_in[1, :, 5] = -3 * model.W_out[1, 5]
    W_in[0, :, 2] = 2 * model.W_out[0, 2]
    W_in[0, :, 0] = 0.0
    cosines = neuron_cosines(planted(W_in=W_in)).values
    assert cosines[1, 5] == pytest.approx(-1)
    assert cosines[0, 2] == pytest.approx(1)
    assert np.isnan(cosines[0, 0])
    assert np.isnan(cosines).sum() == 1
    assert np.sort(np.abs(cosines), axis=None)[-4] < 0.9


def test_a_neuron_that_writes_where_nothing_reads_has_the_share_one() -> None:
    W_out = planted().W_out.copy()
    W_out[1, 4, :20], W_out[0, 9, 20:] = 0.0, 0.0
    shares = null_space_shares(planted(W_out=W_out), 12)
    assert shares.values[1, 4] == pytest.approx(1)
    assert shares.baseline == 12 / 32
    assert shares.values[0, 9] == pytest.approx(0, abs=1e-20)
    dims = (W_out[1, 0, 20:] ** 2).sum() / (W_out[1, 0] ** 2).sum()
    assert shares.values[1, 0] == pytest.approx(dims, rel=1e-10)


def test_the_mean_is_no_direction_behind_a_layer_norm() -> None:
    """Of 32 dimensions 21 tokens span 20, so 12 are not read, and the mean is one of them."""
    model = KINDS["gpt2"]
    rows = model.W_out[0] - model.W_out[0].mean(axis=1, keepdims=True)
    seen = (model.W_U * model.ln_final_gain[:, None]).T
    seen = seen - seen.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.cov(seen.T, bias=True))
    assert np.isclose(values, 0).sum() == 12
    lowest = ((rows @ vectors[:, :14]) ** 2).sum(axis=1) / (rows**2).sum(axis=1)
    found = null_space_shares(model, 13)  # 11 that are not read, and the next two
    np.testing.assert_allclose(found.values[0], lowest, rtol=1e-8)
    assert found.baseline == 13 / 31


def test_a_neuron_along_the_log_frequencies_correlates_with_them() -> None:
    model, counts = planted(), np.arange(1, 22)
    logs = np.log(counts)
    W_out = model.W_out.copy()
    W_out[0, 7] = np.linalg.lstsq(model.W_U.T, logs - logs.mean(), rcond=None)[0]
    with_planted = frequency_correlations(planted(W_out=W_out), counts).values
    exact = np.corrcoef(W_out[0, 7] @ model.W_U, logs)[0, 1]
    assert with_planted[0, 7] == pytest.approx(exact, rel=1e-10)
    assert exact > 0.95
    W_out[0, 7] *= -1
    assert frequency_correlations(planted(W_out=W_out), counts).values[0, 7] < -0.95


def test_bad_input_is_refused() -> None:
    gpt2 = KINDS["gpt2"]
    with pytest.raises(OtimesError, match="has no MLP, and so no neurons"):
        neuron_cosines("one_layer")
    with pytest.raises(OtimesError, match="reader must be 'in' for random, got 'gate'"):
        neuron_cosines(gpt2, "gate")
    with pytest.raises(OtimesError, match="from 1 to d_model - 2 = 30, got 31"):
        null_space_shares(gpt2, 31)
    with pytest.raises(ShapeError, match=r"shape \(21,\), one for each token, got \(3,\)"):
        frequency_correlations(gpt2, [1, 2, 3])
    with pytest.raises(OtimesError, match="positive and not all equal"):
        frequency_correlations(gpt2, np.arange(21))
    with pytest.raises(OtimesError, match="norm_order='post'"):
        neuron_moments(random_model(kind="gpt2", norm_order="post", final_norm=False))
