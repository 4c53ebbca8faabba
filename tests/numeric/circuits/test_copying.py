"""Eigenvalues of OV circuits and copying scores."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, RuleError
from otimes.numeric.circuits.copying import copying_scores, ov_eigenvalues
from otimes.numeric.load import load_model
from otimes.numeric.random_weights import random_model as drawn
from tests.numeric.circuits.plainly import MODELS, heads, mul, near, ov, table, trace
from tests.numeric.random_models import KINDS, random_model


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("circuit", ["full", "bare"])
def test_power_sums_are_those_of_the_whole_circuit(model, circuit: str) -> None:
    found = ov_eigenvalues(model, circuit).values
    assert found.shape == (model.n_layers, model.n_heads, model.d_head)
    for layer, head in heads(model):
        whole = ov(model, layer, head)
        if circuit == "full":
            whole = mul(table(model, "W_E"), whole, table(model, "W_U"))
        power, size = whole, np.abs(found[layer, head]).max()
        for p in range(1, model.d_head + 1):
            # To the size of what is summed: the sum may cancel.
            assert abs((found[layer, head] ** p).sum() - trace(power)) < 1e-10 * size**p * p
            power = mul(power, whole)


def test_the_score_is_by_the_trace_what_tokens_add_to_themselves() -> None:
    model = MODELS["attention only"]
    scores = copying_scores(model).values
    for layer, head in heads(model):
        whole = np.array(mul(table(model, "W_E"), ov(model, layer, head), table(model, "W_U")))
        expected = np.diag(whole).sum() / np.abs(np.linalg.eigvals(whole)).sum()
        # Zero eigenvalues of the whole come out near √u: they may be defective.
        assert scores[layer, head] == pytest.approx(expected, abs=1e-6)


def test_full_and_bare_are_told_apart() -> None:
    """They can have opposite signs: here by construction."""
    model = drawn(n_layers=1, n_heads=1, d_model=4, d_head=4, d_vocab=4)
    eye = np.eye(4)
    ones = {"W_V": eye[None, None], "W_O": eye[None, None]}
    opposite = model.changed({**ones, "W_E": eye, "W_U": -eye})
    assert copying_scores(opposite, "bare").values.tolist() == [[1.0]]
    assert copying_scores(opposite, "full").values.tolist() == [[-1.0]]
    assert "W_E" in copying_scores(opposite, "full").kind
    assert "W_E" not in copying_scores(opposite, "bare").kind


def test_a_rotation_neither_copies_nor_lowers_and_a_silent_head_scores_zero() -> None:
    model = drawn(n_layers=1, n_heads=2, d_model=2, d_head=2, d_vocab=2)
    quarter = np.array([[0.0, 1], [-1, 0]])
    silent = np.zeros((2, 2))
    changed = model.changed(
        {"W_V": np.eye(2)[None, None] * np.ones((1, 2, 1, 1)), "W_O": np.array([[quarter, silent]]),
         "W_E": np.eye(2), "W_U": np.eye(2)}
    )  # fmt: skip
    for circuit in ("full", "bare"):
        assert copying_scores(changed, circuit).values.tolist() == [[0.0, 0.0]]


def test_gauge_and_rotation_and_order_of_tokens_do_not_matter() -> None:
    model = MODELS["attention only"]
    rng = np.random.default_rng(0)
    G = rng.standard_normal((model.d_head, model.d_head))
    Q, _ = np.linalg.qr(rng.standard_normal((model.d_model, model.d_model)))
    order = rng.permutation(model.d_vocab)
    others = {
        "gauge": {"W_V": model.W_V @ G, "W_O": np.linalg.inv(G) @ model.W_O},
        "rotation": {
            "W_E": model.W_E @ Q, "W_V": Q.T @ model.W_V,
            "W_O": model.W_O @ Q, "W_U": Q.T @ model.W_U,
        },
        "tokens": {"W_E": model.W_E[order], "W_U": model.W_U[:, order]},
    }  # fmt: skip
    for name, weights in others.items():
        for circuit in ("full", "bare"):
            before, after = (
                copying_scores(m, circuit).values for m in (model, model.changed(weights))
            )
            assert near(after, before), name
    swapped = model.changed({"W_V": model.W_V[:, ::-1], "W_O": model.W_O[:, ::-1]})
    assert near(copying_scores(swapped).values, copying_scores(model).values[:, ::-1], 1e-13)


def test_single_precision_is_near_double() -> None:
    model = load_model("one_layer")
    single = copying_scores(model, dtype=np.float32)
    assert single.values.dtype == np.float32
    assert np.abs(single.values - copying_scores(model).values).max() < 1e-3


def test_wrong_use() -> None:
    with pytest.raises(OtimesError, match="circuit must be 'full' or 'bare', got 'whole'"):
        copying_scores(MODELS["gpt2"], "whole")
    with pytest.raises(
        RuleError, match="a full OV circuit needs norm gains of 1, and ln1_gain of random is not"
    ):
        copying_scores(random_model(KINDS["llama"]))
    assert copying_scores(random_model(KINDS["without layers"])).values.shape == (0, 3)
