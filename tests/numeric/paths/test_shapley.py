"""Shapley values against the definition over all coalitions, and what the nodes are for."""

from __future__ import annotations

import numpy as np
import pytest

from otimes.numeric.paths.shapley import shapley_values
from tests.numeric.paths.cases import NAMES, case, close, enumeration, on_case
from tests.numeric.paths.enumeration import shapley_by_coalitions


@pytest.mark.parametrize(
    "name", ["induction", "deep attention only", "everything", "deep biases only"]
)
def test_the_definition_over_all_coalitions(name: str) -> None:
    model, _ = case(name)
    players = [(layer, head) for layer in range(model.n_layers) for head in range(model.n_heads)]
    shares = shapley_by_coalitions(enumeration(name).values(4, 7), players)
    close(on_case(name).shapley(4, 7), by_head(model, shares))


@pytest.mark.parametrize("name", NAMES)
def test_a_path_is_shared_equally_by_its_heads(name: str) -> None:
    model, _ = case(name)
    shares: dict = {}
    for path, value in enumeration(name).values(-1, 3).items():
        for head in path:
            shares[head] = shares.get(head, 0.0) + value / len(path)
    close(on_case(name).shapley(-1, 3), by_head(model, shares))


@pytest.mark.parametrize("name", ["deep gpt2", "two_layer"])
def test_one_node_less_is_not_exact_and_one_more_changes_nothing(name: str) -> None:
    frozen = on_case(name).frozen
    direction = frozen.direction(-1, 3)
    exact = shapley_values(frozen, direction)
    enough = (frozen.model.n_layers + 1) // 2
    close(shapley_values(frozen, direction, enough + 1), exact)
    if enough > 1:
        off = np.abs(shapley_values(frozen, direction, enough - 1) - exact).max()
        assert off > 1e-4 * np.abs(exact).max()


def by_head(model, shares: dict) -> np.ndarray:
    table = np.zeros((model.n_layers, model.n_heads))
    for head, share in shares.items():
        table[head] = share
    return table
