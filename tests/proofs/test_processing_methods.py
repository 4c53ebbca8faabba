"""The functions that rewrite a model, held against plain loops: every mistake in one is noticed."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from otimes.numeric import processing
from otimes.numeric.model import Model
from otimes.proofs.catalogue import find
from otimes.proofs.checks.measured import worst_ratio
from tests.numeric.random_models import FULL, TINY_TOKENS, random_model

MODEL = random_model(replace(FULL, tied=True), seed=5)
GATED = random_model(replace(FULL, gated=True, parallel=True, activation="silu"), seed=6)
NAMES = [
    *("fold_norm_biases", "fold_norm_gains", "centre_readers", "centre_writers"),
    *("fold_value_biases", "drop_key_biases", "centre_unembedding", "untie"),
]


def worst(name: str, model: Model) -> float:
    """Return the worst error/bound of the trials of a function, as the catalogue declares them."""
    trials = [*find(f"{name}_is_right").claim().trials(model, TINY_TOKENS)]
    assert trials
    return max(worst_ratio(t.value, t.plain, t.bound) for t in trials)


@pytest.mark.parametrize("model", [MODEL, GATED], ids=["gpt2", "gated"])
@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_with_loops(name: str, model: Model) -> None:
    assert worst(name, model) <= 1


def _slightly(tensor: str) -> Callable[[Model], Model]:
    """Return a mistake: one tensor of the new model off by a part in a billion."""
    return lambda new: new.changed({tensor: np.asarray(new.weights[tensor]) * (1 + 1e-9)})


def _put_back(tensor: str) -> Callable[[Model], Model]:
    """Return a mistake: one tensor left as it was."""
    return lambda new: new.changed({tensor: getattr(MODEL, tensor)})


MISTAKES: dict[str, tuple[str, Callable[[Model], Model]]] = {
    "a bias of queries left out": ("fold_norm_biases", _put_back("b_Q")),
    "the bias of the unembedding left out": (
        "fold_norm_biases",
        lambda new: new.changed({"b_U": 0 * new.b_U}),
    ),
    "the gain of the MLP left out": ("fold_norm_gains", _put_back("W_in")),
    "values folded a little wrong": ("fold_norm_gains", _slightly("W_V")),
    "readers centred along the wrong axis": (
        "centre_readers",
        lambda new: new.changed({"W_K": new.W_K - new.W_K.mean(axis=-1, keepdims=True)}),
    ),
    "an output bias not centred": ("centre_writers", _put_back("b_O")),
    "positions not centred": ("centre_writers", _put_back("W_pos")),
    "LayerNorm left": (
        "centre_writers",
        lambda new: new.changed(
            {f"{n}_bias": 0 * getattr(new, f"{n}_gain") + 1 for n in ("ln1", "ln2", "ln_final")},
            replace(new.config, norm="layer"),
        ),
    ),
    "a value bias kept": (
        "fold_value_biases",
        lambda new: new.changed({"b_O": new.b_O + new.b_O}),
    ),
    "keys dropped with their bias": ("drop_key_biases", _slightly("W_K")),
    "centred over the stream": (
        "centre_unembedding",
        lambda new: new.changed({"W_U": MODEL.W_U - MODEL.W_U.mean(axis=0)}),
    ),
    "untied a little wrong": ("untie", _slightly("W_U")),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_function_that_changes_nothing_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps every reading, every pattern and every probability."""
    monkeypatch.setattr(processing, name, lambda model: model)
    assert worst(name, MODEL) > 1


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_noticed(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, wrong = MISTAKES[mistake]
    right = getattr(processing, name)
    monkeypatch.setattr(processing, name, lambda model: wrong(right(model)))
    assert worst(name, MODEL) > 1
