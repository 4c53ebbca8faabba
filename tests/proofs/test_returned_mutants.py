"""Each part of what the function of a Method returns is compared: a change of it fails a trial."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.proofs.catalogue import catalogue, find
from otimes.proofs.claims import Method, Trial
from otimes.proofs.method_mutants import Case
from otimes.proofs.returned_mutants import is_red, parts_seen

TOKENS = [5, 17, 3, 8, 5, 17, 21, 3, 11, 0, 5, 26]
SIZES: Any = {"n_heads": 3, "d_model": 12, "d_head": 5, "d_vocab": 29, "n_ctx": 16}
SMALL: list[Case] = [
    (random_model(n_layers=2, **SIZES), TOKENS),
    (random_model(kind="gpt2", n_layers=2, **SIZES), TOKENS),
    (random_model(n_layers=1, **SIZES), TOKENS),
    (random_model(n_layers=0, **SIZES), TOKENS),
]
METHODS = [each.name for each in catalogue() if isinstance(each.claim(), Method)]

OF_TRAINED = {
    "sae_method": "the bundled autoencoder is of gpt2_tiny",
    "feature_density_method": "the bundled autoencoder is of gpt2_tiny",
    "feature_attribution_method": "the bundled autoencoder is of gpt2_tiny",
}
"""The Methods that have no trials on small models, with the reasons."""

NO_PARTS = {"one_head_in_many_forms": "it returns a verdict, whose status is a word"}
"""The Methods whose functions return no numbers, with the reasons."""


@pytest.mark.parametrize("name", METHODS)
def test_a_change_of_any_part_that_a_function_returns_fails_a_trial(name: str) -> None:
    claim = find(name).claim()
    assert isinstance(claim, Method)
    found = parts_seen(claim, SMALL)
    if name in OF_TRAINED:
        assert not found
        found = parts_seen(claim, [(load_model("gpt2_tiny"), TOKENS)])
    assert bool(found) == (name not in NO_PARTS)
    assert {part for part, seen in found.items() if not seen} == set(claim.not_compared)
    assert all(claim.not_compared.values()), "a reason for each part that is not compared"


def test_a_wrong_verdict_fails_the_trials_of_the_forms_of_a_head() -> None:
    def undecided(verdict: Any) -> Any:
        wrong = copy(verdict)
        wrong.status = "undecided"
        return wrong

    claim = find("one_head_in_many_forms").claim()
    assert isinstance(claim, Method)
    assert is_red(claim, *SMALL[0], undecided)
    assert not is_red(claim, *SMALL[0], copy)


@dataclass(frozen=True)
class Sums:
    """The sums of an array by columns, their number, and whether there are any."""

    by_column: np.ndarray
    count: int
    more: dict[str, np.ndarray]


class Tables:
    def sums(self, model: Model) -> Sums:
        return sums(model)


def sums(model: Model) -> Sums:
    W = model.W_U[:, :4]
    return Sums(W.sum(axis=0), W.shape[1], {"rows": W.sum(axis=1)})


def tables(model: Model) -> Tables:
    return Tables()


def of_all(function: Any, model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    yield from of_columns(function, model, tokens)
    yield Trial("count", float(function(model).count), 4.0, 0.0)
    plain = np.array([sum(row) for row in model.W_U[:, :4]])
    yield Trial("rows", function(model).more["rows"], plain, 1e-12)


def of_columns(function: Any, model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    plain = np.array([sum(column) for column in model.W_U[:, :4].T])
    yield Trial("columns", function(model).by_column, plain, 1e-12)


def of_table(function: Any, model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
    yield from of_columns(function(model).sums, model, tokens)


def seen(trials: Any, function: Any) -> dict[str, bool]:
    method = Method(f"{__name__}.{function.__name__}", (), partial(trials, function))
    return parts_seen(method, SMALL[:1])


def test_what_is_not_compared_is_found() -> None:
    assert seen(of_all, sums) == {"by_column": True, "count": True, "more.rows": True}
    assert seen(of_columns, sums) == {"by_column": True, "count": False, "more.rows": False}
    assert seen(of_table, tables) == {"sums()": True}
    assert seen(lambda function, model, tokens: iter([function(model)][:0]), tables) == {
        "sums()": False
    }
