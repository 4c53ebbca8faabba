"""Norms, cosines, sinks, rounding and ranks: planted models and loops."""

import numpy as np
import pytest

import otimes as ot
from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model

ROWS = np.random.default_rng(1).standard_normal((6, 7))


def sink_model(value: float) -> Model:
    """Return a model with one head that attends to the token 0, whose value has a given size."""
    d = 4
    W_E = np.eye(5, d)
    W_E[4] = W_E[3]
    W_Q, W_K = np.zeros((1, 1, d, 1)), np.zeros((1, 1, d, 1))
    W_Q[..., 0] = 30.0  # every token asks the same
    W_K[0, 0, 0, 0] = 30.0  # only token 0 answers
    W_V = np.ones((1, 1, d, 1))
    W_V[0, 0, 0] = value
    weights = {"W_E": W_E, "W_Q": W_Q, "W_K": W_K, "W_V": W_V, "W_O": np.ones((1, 1, 1, d))}
    return ot.load_model(weights, {"positions": "none"})


def test_a_planted_sink_has_the_scores_one_and_its_value() -> None:
    attention, value, update = ot.attention_sinks(sink_model(0.25), [0, 1, 2, 3]).values[:, 0, 0]
    assert attention == pytest.approx(1.0, abs=1e-12)
    assert value == pytest.approx(0.25, abs=1e-12)
    assert update == pytest.approx(0.25, abs=1e-12)  # all that is written is the sink's value
    silent = ot.attention_sinks(sink_model(0.0), [[0, 1, 2, 3], [0, 3, 1, 1]]).values[1:, 0, 0]
    assert np.abs(silent).max() < 1e-12  # a head that does nothing
    with pytest.raises(OtimesError, match="no position of the prompt comes after position 3"):
        ot.attention_sinks(sink_model(0.0), [0, 1, 2, 3], key=-1)


def test_the_scores_of_a_sink_are_means_over_later_positions() -> None:
    model, prompt, at = random_model(n_layers=1, d_head=5), [3, 1, 4, 1, 5], 1
    places = model.forward(prompt)
    for head in range(model.n_heads):
        pattern, W_O = places["pattern.0"][head], model.W_O[0, head]
        sizes = [np.linalg.norm(row @ W_O) for row in places["v.0"][head]]
        writes = [np.linalg.norm(row) for row in places["head_out.0"][head]]
        usual = (sizes[0] + sizes[2] + sizes[3] + sizes[4]) / 4
        found = ot.attention_sinks(model, prompt, key=at).values[:, 0, head]
        attention = (pattern[2, 1] + pattern[3, 1] + pattern[4, 1]) / 3
        plain = attention, sizes[1] / usual, sum(writes[2:]) / 3 / usual
        assert found == pytest.approx(plain, rel=1e-12)


def test_stream_norms_are_those_of_the_recorded_streams() -> None:
    model = random_model(n_layers=3)
    prompts = [[1, 2, 3], [4, 5, 6]]
    found = ot.stream_norms(model, prompts)
    assert list(found.labels["activation"]) == [
        "resid_pre.0",
        "resid_pre.1",
        "resid_pre.2",
        "final",
    ]
    for value, name in zip(found.values, found.labels["activation"], strict=True):
        lengths = [
            sum(x * x for x in row) ** 0.5 for p in prompts for row in model.forward(p)[name]
        ]
        assert value == pytest.approx(sum(lengths) / 6, rel=1e-12)


def test_growth_tells_an_exponential_from_a_root() -> None:
    grown, root = (
        ot.norm_growth([2.0 * 1.5**l for l in range(9)]),  # noqa: E741
        ot.norm_growth([(4 + 3 * l) ** 0.5 for l in range(9)]),  # noqa: E741
    )
    assert grown.rate == pytest.approx(np.log(1.5), rel=1e-12)
    assert grown.exponential == pytest.approx(1, abs=1e-12)
    assert root.square_root == pytest.approx(1, abs=1e-12)
    assert grown.square_root < 0.9
    assert root.exponential < 0.95
    for bad in ([1.0, 2.0], [1.0, 0.0, 2.0], [1.0, 1.0, 1.0]):
        with pytest.raises(OtimesError, match="norms"):
            ot.norm_growth(bad)


def test_anisotropy_is_the_mean_over_pairs_and_sums_over_dimensions() -> None:
    pairs = [
        ROWS[i] @ ROWS[j] / np.linalg.norm(ROWS[i]) / np.linalg.norm(ROWS[j])
        for i in range(6)
        for j in range(6)
        if i != j
    ]
    assert ot.anisotropy(ROWS) == pytest.approx(np.mean(pairs), abs=1e-14)
    assert ot.cosine_by_dimension(ROWS).sum() == pytest.approx(np.mean(pairs), abs=1e-14)
    assert ot.anisotropy(np.outer([1.0, 2.0, 5.0], [3.0, -1.0])) == pytest.approx(1, abs=1e-14)
    wild = ROWS + 1000 * np.eye(7)[2]  # one rogue dimension makes all cosines near one
    assert ot.cosine_by_dimension(wild)[2] > 0.999 * ot.anisotropy(wild) > 0.99
    assert ot.rogue_dimensions(wild).top(1)[0][0] == {"dimension": 2}
    with pytest.raises(OtimesError, match="row of zeros"):
        ot.anisotropy([[1.0, 0.0], [0.0, 0.0]])


def test_weight_norms_see_the_gain_that_is_folded() -> None:
    model = random_model(norm="layer", final_norm=True, d_mlp=8, activation="gelu")
    found = ot.weight_norms(model)
    gain, W = model.ln1_gain[1], model.W_Q[1]
    plain = sum((gain[i] * W[h, i, k]) ** 2 for h, i, k in np.ndindex(W.shape)) ** 0.5
    assert found.at(weight="W_Q", layer=1).values == pytest.approx(plain, rel=1e-12)
    with pytest.raises(OtimesError, match="has no layers"):
        ot.weight_norms("zero_layer")


def test_rounding_moves_no_entry_by_more_than_half_a_step() -> None:
    for bits in (2, 5, 8):
        found = ot.quantise(ROWS, bits)
        step = np.abs(ROWS).max() / (2 ** (bits - 1) - 1)
        assert np.abs(found - ROWS).max() <= step / 2 * (1 + 1e-12)
        assert np.abs(found / step - np.rint(found / step)).max() < 1e-9
    rows = np.abs(ot.quantise(ROWS, 4, axis=1)).max(axis=1)
    assert rows == pytest.approx(np.abs(ROWS).max(axis=1))  # a step for each row
    with pytest.raises(OtimesError, match="bits must be an integer from 2 to 32, got 1"):
        ot.quantise(ROWS, 1)


def test_a_planted_outlier_raises_the_error_and_keeping_it_restores_it() -> None:
    wild = ROWS.copy()
    wild[:, 3] *= 500
    plain, lost, kept = (
        ot.quantisation_rmse(np.delete(ROWS, 3, axis=1)),
        ot.quantisation_rmse(wild),
        ot.quantisation_rmse(wild, keep=[3]),
    )
    assert kept == pytest.approx(plain * (6 / 7) ** 0.5, rel=1e-9)
    assert lost > 50 * kept
    with pytest.raises(OtimesError, match="keep must be some of the dimensions 0 to 6"):
        ot.quantisation_rmse(ROWS, keep=[7])


def test_a_weight_of_smaller_rank_is_the_nearest() -> None:
    model = random_model(d_mlp=12, activation="relu", norm="none")
    W = model.W_out[1]
    found = ot.with_rank(model, "W_out", 1, 3)
    values = np.linalg.svd(W, compute_uv=False)
    assert np.linalg.norm(found.W_out[1] - W) == pytest.approx(np.linalg.norm(values[3:]), rel=1e-9)
    assert (found.W_out[0] == model.W_out[0]).all()
    heads = ot.with_rank(model, "W_V", 0, 1).W_V[0]
    assert [np.linalg.matrix_rank(head) for head in heads] == [1] * model.n_heads
    with pytest.raises(ShapeError, match="rank must be 0 to 12"):
        ot.with_rank(model, "W_out", 1, 13)
    with pytest.raises(OtimesError, match="no weight matrix of a layer called 'W_E'"):
        ot.with_rank(model, "W_E", 0, 1)
