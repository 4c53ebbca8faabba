"""Successor scores: a planted shift is found, and the formula holds with loops."""

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.successor import successor_scores
from otimes.numeric.load import load_model
from otimes.numeric.random_weights import random_model as drawn

ITEMS = [4, 1, 3, 0]


def planted(cyclic: bool = True):
    """Return a model whose head 1.1 takes each item to the next, and whose 1.0 takes it back."""
    model = drawn(n_layers=2, n_heads=2, d_model=8, d_head=8, d_vocab=6, d_mlp=8, activation="relu")
    eye = np.eye(8)
    after = np.zeros((8, 8))
    for item, other in zip(ITEMS, [*ITEMS[1:], ITEMS[0]], strict=True):
        after[item, other] = 1
    if not cyclic:
        after[ITEMS[-1], ITEMS[0]] = -1
    W_V = np.array([[eye, eye], [after.T, after]])
    written = {"W_E": 2 * eye[:6], "W_U": eye[:, :6], "W_in": eye[None] * np.ones((2, 1, 1))}
    whole = {"W_out": 3 * eye[None] * np.ones((2, 1, 1)), "W_V": W_V, "W_O": W_V * 0 + eye}
    return model.changed({**written, **whole})


def test_a_planted_shift_is_found() -> None:
    scores = successor_scores(planted(), ITEMS, cyclic=True)
    assert np.isnan(scores.values[0]).all()
    assert scores.values[1].tolist() == [0.0, 1.0]
    assert scores.baseline == 1 / 4
    assert successor_scores(planted(), ITEMS[::-1], cyclic=True).values[1].tolist() == [1.0, 0.0]


def test_the_last_item_has_no_successor_unless_the_sequence_is_cyclic() -> None:
    model = planted(cyclic=False)
    assert successor_scores(model, ITEMS).values[1, 1] == 1.0
    assert successor_scores(model, ITEMS, cyclic=True).values[1, 1] == 3 / 4


@pytest.mark.parametrize("name", ["gpt2_tiny", "llama_tiny"])
def test_text_and_ids_give_the_same_scores_between_zero_and_one(name: str) -> None:
    model = load_model(name)
    scores = successor_scores(model, "0123456789").values
    assert scores.shape == (model.n_layers, model.n_heads)
    assert ((scores[1:] >= 0) & (scores[1:] <= 1)).all()
    assert np.isin(scores[1:], np.arange(10) / 9).all()


def test_wrong_use() -> None:
    with pytest.raises(OtimesError, match="at least two items, got 1"):
        successor_scores(planted(), [1])
    with pytest.raises(OtimesError, match="3 is twice among the items"):
        successor_scores(planted(), [1, 3, 3])
    with pytest.raises(OtimesError, match="two_layer has no MLP"):
        successor_scores("two_layer", "012")
    with pytest.raises(OtimesError, match="token 6 is not in the vocabulary"):
        successor_scores(planted(), [5, 6])
