"""The largest paths against all paths sorted; the bound against all that were not visited."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.paths.ensemble import paths
from otimes.numeric.paths.top_paths import deep_bounds, top_paths
from tests.numeric.paths.cases import DEEP, NAMES, case, close, enumeration, on_case
from tests.numeric.paths.enumeration import Enumeration
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model

MOST_PATHS = "gpt2_tiny, gates frozen"  # by far; the deep models have gates as well
CASES = [(name, k) for name in NAMES if name != MOST_PATHS for k in (1, 7, 1000)]


@pytest.mark.parametrize(("name", "k"), CASES)
def test_the_k_largest_of_all(name: str, k: int) -> None:
    every = enumeration(name).values(4, 7)
    found = on_case(name).top(k, 4, 7)
    expected = sorted(every.items(), key=lambda item: -abs(item[1]))[:k]
    assert found.proven
    assert len(found) == len(expected)
    close([path.value for path in found], [value for _, value in expected])
    assert [path.heads for path in found] == [heads for heads, _ in expected]
    assert found[0].order == len(found[0].heads)


@pytest.mark.parametrize("budget", [1, 2, 5, 9])
@pytest.mark.parametrize("name", DEEP)
def test_what_was_not_visited_is_within_the_bound(name: str, budget: int) -> None:
    """With k too large to prune by, what was visited is exactly what was found."""
    every = enumeration(name).values(4, 7)
    found = on_case(name).top(10**6, 4, 7, budget)
    seen = {path.heads: path.value for path in found}
    assert len(seen) == found.visited
    missed = [abs(value) for path, value in every.items() if path not in seen]
    assert max(missed, default=0.0) <= found.bound
    assert found.proven == (not missed)


@pytest.mark.parametrize("budget", [1, 3, 6, 12])
@pytest.mark.parametrize("name", DEEP)
def test_proven_is_never_wrong_however_soon_the_search_ends(name: str, budget: int) -> None:
    every = sorted((abs(v) for v in enumeration(name).values(4, 7).values()), reverse=True)
    found = on_case(name).top(3, 4, 7, budget)
    if found.proven:
        close([abs(path.value) for path in found], every[:3])
    elif abs(found[2].value) < every[2] * (1 - 1e-9):
        assert found.bound >= every[2]
    # Whatever was visited, the largest of the others is at least the next one down the list.
    assert found.bound >= [*every, 0.0][found.visited]


@pytest.mark.parametrize("name", DEEP)
def test_the_bound_holds_for_every_path_through_a_head(name: str) -> None:
    """D of a head is at least the size of z of every longer path that ends there."""
    every, frozen = enumeration(name), on_case(name).frozen
    deep = deep_bounds(frozen)
    tightest = np.inf
    for path in every.streams:
        if len(path) < 2:
            continue
        layer, head = path[-1]
        into = every.walk(path[:-1], until=layer)
        read = every.normed(into, every.places[f"resid_pre.{layer}"], "ln1", layer, False)
        group = head // (every.c.n_heads // every.c.kv_heads)
        z = every.places[f"pattern.{layer}"][head] @ read @ every.W["W_V"][layer, group]
        size = np.linalg.norm(z, axis=1)
        assert (size <= deep[layer][head]).all()
        tightest = min(tightest, (deep[layer][head] / size).min())
    assert tightest < 30  # a bound, and not just a large number


def test_a_search_that_is_cut_short_says_so() -> None:
    model = random_model(replace(KINDS["without positions"], n_layers=4), seed=2)
    found = paths(model, TINY_TOKENS).top(40, -1, 2, budget=2)
    assert not found.proven
    assert found.bound > abs(found[len(found) - 1].value)
    every = Enumeration(model, TINY_TOKENS).values(-1, 2)
    assert found.visited < len(every) == 4**4


def test_asking_for_nothing() -> None:
    frozen = paths(*case("attention only")).frozen
    with pytest.raises(
        OtimesError, match="k and budget must be integers of at least 1, got k=0 and budget=1024"
    ):
        top_paths(frozen, frozen.direction(0, 0), 0)
