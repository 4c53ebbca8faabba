"""Scores of attention on prompts of one's own, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from otimes.numeric.circuits.behaviour import head_behaviour
from otimes.numeric.load import load_model

ONCE = [int(t) for t in np.random.default_rng(0).choice(1024, 12, replace=False)]


@pytest.mark.parametrize(
    "prompt",
    [ONCE * 2, ONCE * 3, ONCE + ONCE[:5], [0, *ONCE, *ONCE], [7, 7, 3, 7, 3, 9]],
    ids=["twice", "three times", "in part", "after a first token", "at any distance"],
)
def test_prefix_matching_is_found_by_the_tokens(prompt: list[int]) -> None:
    model = load_model("induction")
    activations = model.forward(prompt)
    total, repeated = np.zeros((model.n_layers, model.n_heads)), 0
    for i, token in enumerate(prompt):
        before = [j for j in range(i) if prompt[j] == token]
        repeated += bool(before)
        for layer in range(model.n_layers):
            for j in before:
                total[layer] += activations[f"pattern.{layer}"][:, i, j + 1]
    found = head_behaviour(model, prompt).at(score="prefix matching").values
    # both sum at most 36 · 3 numbers below one, in another order
    assert np.abs(found * repeated - total).max() <= 200 * 2.0**-53 * 36


def test_where_no_token_occurs_twice_there_is_no_score() -> None:
    scores = head_behaviour("induction", [1, 2, 3, 4, 5])
    assert np.isnan(scores.at(score="prefix matching").values).all()
    assert not np.isnan(scores.at(score="previous token").values).any()
