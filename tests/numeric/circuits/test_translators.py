"""Translators: the best affine map, found where there is one, and never worse than another."""

import numpy as np
import pytest

from otimes.algebra.errors import ShapeError
from otimes.numeric.circuits.translators import fit_translator
from tests.numeric.circuits.plainly import near


def test_a_planted_map_is_found() -> None:
    rng = np.random.default_rng(0)
    X, A, b = rng.standard_normal((30, 5)), rng.standard_normal((5, 4)), rng.standard_normal(4)
    found, bias = fit_translator(X, X @ A + b)
    assert near(found, A)
    assert near(bias, b)


def test_no_other_map_is_better() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.standard_normal((20, 3)), rng.standard_normal((20, 3))
    A, b = fit_translator(X, Y)
    best = np.linalg.norm(X @ A + b - Y)
    assert best < np.linalg.norm(X - Y)  # the identity: the logit lens
    for _ in range(20):
        other = np.linalg.norm(X @ (A + 0.1 * rng.standard_normal(A.shape)) + b - Y)
        assert best < other


def test_rows_and_targets_must_be_as_many() -> None:
    with pytest.raises(ShapeError, match="the numbers of rows and targets differ: 3 and 2"):
        fit_translator(np.ones((3, 2)), np.ones((2, 2)))
