"""What attribution is tried on: every kind of random model, and the bundled ones."""

from dataclasses import replace
from functools import cache

import numpy as np

from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model

TARGET, FOIL, POSITION = 3, 5, 4
BUNDLED = ("zero_layer", "one_layer", "two_layer", "induction", "gpt2_tiny")


@cache
def case(name: str) -> tuple[Model, list[int]]:
    if name in BUNDLED:
        return load_model(name), [5, 300, 7, 8, 5, 300]
    return random_model(KINDS[name]), TINY_TOKENS


def near(found, expected, relative: float = 1e-12) -> bool:
    """Whether every entry agrees, relative to the largest.

    Sums here have at most a few hundred terms of one size, and errors of a few hundred times 1e-16.
    """
    expected = np.asarray(expected)
    assert np.shape(found) == expected.shape, (np.shape(found), expected.shape)
    size = np.abs(expected).max(initial=0.0) or 1.0
    return bool(np.abs(found - expected).max(initial=0.0) <= relative * size)


def with_rows(model: Model, rows: np.ndarray) -> tuple[Model, list[int]]:
    """Return a model that has these rows as tokens of their own, and the prompt of them.

    The new tokens stand behind the others, so that no logit of the old ones changes.
    """
    more = len(rows)
    weights = {"W_E": np.concatenate([model.W_E, rows])}
    if not model.config.tied:
        weights["W_U"] = np.concatenate([model.W_U, np.zeros((model.d_model, more))], axis=1)
    if "b_U" in model.weights:
        weights["b_U"] = np.concatenate([model.b_U, np.zeros(more)])
    config = replace(model.config, d_vocab=model.d_vocab + more)
    return model.changed(weights, config), list(range(model.d_vocab, model.d_vocab + more))
