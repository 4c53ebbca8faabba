"""Information by counting, and analogies on planted sums."""

import numpy as np
import pytest

import otimes as ot
from otimes.algebra.errors import OtimesError, ShapeError


def test_information_is_that_of_a_table() -> None:
    joint = {("a", 0): 3, ("a", 1): 1, ("b", 1): 4}
    first = [one for (one, _), count in joint.items() for _ in range(count)]
    second = [two for (_, two), count in joint.items() for _ in range(count)]
    ones, twos = {"a": 0.5, "b": 0.5}, {0: 3 / 8, 1: 5 / 8}
    bits = sum(n / 8 * np.log2(n / 8 / ones[a] / twos[b]) for (a, b), n in joint.items())
    assert ot.mutual_information(first, second) == pytest.approx(bits, abs=1e-14)
    assert ot.mutual_information(second, first) == pytest.approx(bits, abs=1e-14)


def test_no_control_function_says_more_than_the_features() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        labels, features = rng.integers(3, size=60), rng.integers(6, size=60)
        control = rng.integers(3, size=6)[features]
        found = ot.information_gain(labels, features, control)
        assert found.gain >= -1e-14
        assert found.features == ot.mutual_information(labels, features)
    known = ot.information_gain([0, 1, 0, 1], [5, 6, 5, 6], [7, 7, 7, 7])
    assert (known.features, known.control, known.gain) == (1.0, 0.0, 1.0)
    with pytest.raises(OtimesError, match="not a function of the features"):
        ot.information_gain([0, 1], ["a", "a"], [1, 2])
    with pytest.raises(ShapeError, match="2 features and 3 control values"):
        ot.information_gain([0, 1], ["a", "a"], [1, 2, 3])


def test_planted_sums_of_two_features_are_analogies() -> None:
    rng = np.random.default_rng(0)
    stems, forms = rng.standard_normal((5, 8)), rng.standard_normal((2, 8))
    vectors = np.concatenate([stems + form for form in forms])
    quadruples = [(i, 5 + i, j, 5 + j) for i in range(5) for j in range(5) if i != j]
    assert (ot.analogies(vectors, quadruples) == 0).all()
    near = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.3, 0.5]]  # c is nearest, and is left out
    assert ot.analogies(near, [(0, 1, 2, 3)])[0] == 0
    broken = vectors.copy()
    broken[6] = -broken[6]  # the furthest of all
    assert ot.analogies(broken, [(0, 5, 1, 6)])[0] > 0
    for bad, error in (([[0, 1, 2, 99]], OtimesError), ([[0, 1, 2]], ShapeError)):
        with pytest.raises(error):
            ot.analogies(vectors, bad)
    with pytest.raises(OtimesError, match="d must be another vector"):
        ot.analogies(vectors, [(0, 1, 2, 2)])
