"""Single heads, virtual heads and triples against every path by itself."""

from __future__ import annotations

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.paths.ensemble import paths
from tests.numeric.paths.cases import NAMES, case, close, enumeration, on_case


@pytest.mark.parametrize("position", [0, 4, -1])
@pytest.mark.parametrize("name", NAMES)
def test_terms_are_their_paths(name: str, position: int) -> None:
    model, _ = case(name)
    on_prompt = on_case(name)
    one = np.zeros((model.n_layers, model.n_heads))
    two = np.zeros((model.n_layers, model.n_heads) * 2)
    three = np.zeros((model.n_layers, model.n_heads) * 3)
    for path, value in enumeration(name).values(position, 7).items():
        place = tuple(index for head in reversed(path) for index in head)
        if 1 <= len(path) <= 3:
            (one, two, three)[len(path) - 1][place] = value
    close(on_prompt.heads(position, 7), one)
    close(on_prompt.virtual_heads(position, 7), two)
    found = np.zeros_like(three)
    for (latest, middle, earliest), block in on_prompt.triples(position, 7):
        found[latest, :, middle, :, earliest] = block.transpose(0, 1, 2)
    close(found, three)


@pytest.mark.parametrize("order", range(4))
def test_all_paths_up_to_an_order(order: int) -> None:
    every = enumeration("deep everything").values(4, 7)
    expected = {path: value for path, value in every.items() if len(path) <= order}
    found = on_case("deep everything").up_to(order, 4, 7)
    assert {path.heads for path in found} == set(expected)
    assert len(found) == len(expected)
    close([path.value for path in found], [expected[path.heads] for path in found])
    assert [*found] == sorted(found, key=lambda path: -abs(path.value))
    assert f"{len(found)} path{'s' if order else ''} of order" in str(found)


@pytest.mark.parametrize("order", [-1, 4, 1.5])
def test_orders_that_are_not_listed(order: int) -> None:
    with pytest.raises(OtimesError, match=r"order 0, 1, 2 or 3 can be listed, got order .*top\(k"):
        on_case("deep everything").up_to(order, 4, 7)


def test_a_difference_of_logits_and_any_direction() -> None:
    on_prompt = paths(*case("deep everything"))
    difference = on_prompt.virtual_heads(3, 4) - on_prompt.virtual_heads(3, 9)
    close(on_prompt.virtual_heads(3, (4, 9)), difference)
    row = on_prompt.model.W_U[:, 4] - on_prompt.model.W_U[:, 9]
    close(on_prompt.virtual_heads(3, row), difference)
    close(on_prompt.path((), 3, (4, 9)), on_prompt.path((), 3, 4) - on_prompt.path((), 3, 9))
