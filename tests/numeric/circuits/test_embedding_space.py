"""Weights over the vocabulary: nothing of the model is changed; Gram matrices; stitching."""

from dataclasses import replace

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError, RuleError
from otimes.numeric.circuits.embedding_space import (
    align_layers,
    correlations,
    inverse_defects,
    projected,
    right_inverse,
    stitching_map,
    vocabulary,
)
from otimes.numeric.load import load_model
from otimes.numeric.random_weights import random_model as drawn
from tests.numeric.circuits.plainly import MODELS, near, ov, qk
from tests.numeric.random_models import KINDS, random_model

every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
every_inverse = pytest.mark.parametrize("inverse", ["pseudo", "basis"])
every_table = pytest.mark.parametrize("table", ["W_U", "W_E"])


@every_model
@every_inverse
@every_table
def test_through_the_vocabulary_nothing_is_changed(model, inverse: str, table: str) -> None:
    E = vocabulary(model, table)
    X = np.random.default_rng(0).standard_normal((3, model.d_model))
    XE = X @ E
    given = {"inverse": inverse, "table": table}
    distance = 2 if model.positions == "rotary" else None
    assert near(E @ right_inverse(model, inverse, table).dense(), np.eye(model.d_model))
    for name in ("W_Q", "W_K", "W_V"):
        W = getattr(model, name)[1, 2]
        assert near(XE @ projected(model, name, 1, 2, **given).dense(), X @ W)
    if model.config.d_mlp:
        W_in = projected(model, "W_in", 0, **given)
        assert near(XE @ W_in.dense(), X @ model.W_in[0])
        assert near(projected(model, "W_out", 0, **given).dense(), model.W_out[0] @ E)
    assert near(projected(model, "W_O", 0, 1, **given).dense(), model.W_O[0, 1] @ E)
    OV = projected(model, "W_OV", 1, 0, **given).dense()
    assert near(XE @ OV, X @ np.array(ov(model, 1, 0)) @ E)
    QK = projected(model, "W_QK", 1, 0, distance=distance, **given).dense()
    assert near(XE @ QK @ XE.T, X @ np.array(qk(model, 1, 0, distance)) @ X.T)


def test_the_pseudo_inverse_is_numpy_s() -> None:
    model = MODELS["attention only"]
    assert near(right_inverse(model).dense(), np.linalg.pinv(model.W_U))
    assert near(right_inverse(model, table="W_E").dense(), np.linalg.pinv(model.W_E.T))


def test_a_basis_uses_as_many_tokens_as_there_are_directions() -> None:
    model = MODELS["attention only"]
    found = right_inverse(model, "basis").dense()
    assert (np.abs(found).sum(axis=1) > 0).sum() == model.d_model


def test_defects_are_measured() -> None:
    model = MODELS["attention only"]
    pseudo, basis, transpose, best = inverse_defects(model).values
    gram = model.W_U @ model.W_U.T
    size = np.linalg.norm(np.eye(5))
    assert max(pseudo, basis) < 1e-13
    assert near(transpose, np.linalg.norm(gram - np.eye(5)) / size)
    others = [np.linalg.norm(c * gram - np.eye(5)) / size for c in np.linspace(0, 1, 101)]
    assert best <= min(others)
    orthogonal = model.changed({"W_U": np.linalg.qr(model.W_U.T)[0].T})
    assert inverse_defects(orthogonal).values.max() < 1e-13


def test_the_transpose_is_far_from_an_inverse_in_the_bundled_models() -> None:
    pseudo, basis, transpose, best = inverse_defects(load_model("two_layer")).values
    assert max(pseudo, basis) < 1e-10
    assert transpose > 0.5
    assert 0.05 < best < 1


def test_correlations_need_no_table_over_the_vocabulary() -> None:
    rng = np.random.default_rng(0)
    A, E_A = rng.standard_normal((4, 3)), rng.standard_normal((3, 20)) + 5
    B, E_B = rng.standard_normal((6, 2)), rng.standard_normal((2, 20)) - 7
    found = correlations(A, E_A, B, E_B)
    for i, a in enumerate((A @ E_A).tolist()):
        for j, b in enumerate((B @ E_B).tolist()):
            assert abs(found[i, j] - np.corrcoef(a, b)[0, 1]) < 1e-13
    assert not correlations(np.zeros((1, 3)), E_A, B, E_B).any()


@pytest.mark.parametrize("names", [("W_OV",), ("W_O",), ("W_Q", "W_V"), ("W_in", "W_out")])
def test_layers_are_found_again_shuffled_rotated_and_in_another_gauge(names) -> None:
    config = replace(KINDS["mlp without norms"], n_layers=4, d_model=9, d_vocab=60)
    model = random_model(config, seed=5)
    rng = np.random.default_rng(1)
    order = [2, 0, 3, 1]
    Q, _ = np.linalg.qr(rng.standard_normal((9, 9)))
    neurons, heads = rng.permutation(config.d_mlp), rng.permutation(config.n_heads)
    gauge = np.linalg.qr(rng.standard_normal((6, 6)))[0] if names == ("W_OV",) else np.eye(6)
    other = model.changed(
        {
            "W_E": model.W_E @ Q, "W_U": Q.T @ model.W_U, "W_pos": model.W_pos @ Q,
            "W_Q": (Q.T @ model.W_Q)[order][:, heads], "W_K": (Q.T @ model.W_K)[order][:, heads],
            "W_V": (Q.T @ model.W_V @ gauge)[order][:, heads],
            "W_O": (gauge.T @ model.W_O @ Q)[order][:, heads],
            "W_in": (Q.T @ model.W_in)[order][..., neurons],
            "W_out": (model.W_out @ Q)[order][:, neurons],
        }
    )  # fmt: skip
    found = align_layers(model, other, names)
    assert found.pairs == tuple((layer, order.index(layer)) for layer in range(4))
    for i, j in found.pairs:
        assert found.similarity.values[i, j] == pytest.approx(1, abs=1e-7)


def test_stitching_a_model_to_itself_and_to_its_rotation() -> None:
    model = MODELS["attention only"]
    itself = stitching_map(model, model)
    assert near(itself.K, np.eye(5))
    assert itself.residual < 1e-14
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))
    rotated = model.changed({"W_U": Q.T @ model.W_U})
    assert near(stitching_map(model, rotated).K, Q)


def test_stitching_is_the_least_squares_solution() -> None:
    A, B = drawn(d_model=8, d_vocab=30), drawn(d_model=6, d_vocab=30, n_heads=3, d_head=2)
    found = stitching_map(A, B)
    assert near(found.K, A.W_U @ np.linalg.pinv(B.W_U))
    missed = np.linalg.norm(found.K @ B.W_U - A.W_U) / np.linalg.norm(A.W_U)
    assert near(found.residual, missed)
    wider = stitching_map(B, drawn(d_model=30, d_vocab=30))
    assert wider.residual < 1e-12


def test_wrong_use() -> None:
    plain = MODELS["attention only"]
    for name, head, said in (
        ("W_pos", 0, "unknown weight 'W_pos'; the weights are W_Q, W_K, W_V, W_in, W_gate,"),
        ("W_Q", None, "W_Q is a weight of a head: give head="),
        ("W_in", 0, "W_in is a weight of a layer, not of a head"),
        ("W_in", None, "there is no MLP 0 in random"),
        ("W_Q", 7, r"head 0\.7 is out of range: random has 3 layers of 3 heads, both counted"),
    ):
        with pytest.raises(OtimesError, match=said):
            projected(plain, name, 0, head)
    with pytest.raises(
        OtimesError, match="inverse must be one of pseudo, basis, transpose, got 'inverse'"
    ):
        right_inverse(plain, "inverse")
    with pytest.raises(OtimesError, match="table must be 'W_U' or 'W_E', got 'W_pos'"):
        vocabulary(plain, "W_pos")
    few = drawn(d_vocab=10)
    with pytest.raises(RuleError, match="W_U of random has rank 10, less than d_model=32"):
        right_inverse(few)
    with pytest.raises(RuleError, match="has rank 10"):
        stitching_map(few, few)
    with pytest.raises(OtimesError, match="random has 11 tokens and random has 10"):
        stitching_map(plain, few)
    with pytest.raises(OtimesError, match="both models must have the same tokenizer"):
        align_layers(plain, few)
    with pytest.raises(OtimesError, match="names must be out of"):
        align_layers(plain, plain, ["W_QK"])
    with pytest.raises(RuleError, match="ln_final_gain"):
        stitching_map(random_model(KINDS["gpt2"]), plain)
