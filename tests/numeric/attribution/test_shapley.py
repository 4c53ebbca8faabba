"""Shapley values by orders and by KernelSHAP's least squares, in exact numbers; refusals."""

from fractions import Fraction
from itertools import permutations
from math import comb

import numpy as np
import pytest
import sympy

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.occlusion import occlusion
from otimes.numeric.attribution.shapley import coalitions, shapley_of_game, shapley_values

GAME = [Fraction(n) for n in (2, 3, -1, 7, 4, 0, 5, 12, 1, 1, 6, -3, 8, 2, 9, 30)]


def by_orders(game: list[Fraction]) -> list[Fraction]:
    count = len(game).bit_length() - 1
    orders = [*permutations(range(count))]
    total = [Fraction(0)] * count
    for order in orders:
        there = 0
        for player in order:
            total[player] += game[there | 1 << player] - game[there]
            there |= 1 << player
    return [each / len(orders) for each in total]


def by_least_squares(game: list[Fraction]) -> list[Fraction]:
    """Return KernelSHAP's solution: weights (M - 1)/(C(M, s) s (M - s)), the sum constrained."""
    count = len(game).bit_length() - 1
    rows, weights, values = [], [], []
    for number, members in enumerate(coalitions(count).tolist()):
        size = sum(members)
        if 0 < size < count:
            rows.append(members)
            weights.append(Fraction(count - 1, comb(count, size) * size * (count - size)))
            values.append(game[number] - game[0])
    Z, W = sympy.Matrix(rows), sympy.diag(*[sympy.Rational(str(each)) for each in weights])
    y = sympy.Matrix([sympy.Rational(str(each)) for each in values])
    ones = sympy.ones(count, 1)
    top = (Z.T * W * Z).row_join(ones)
    bottom = ones.T.row_join(sympy.zeros(1, 1))
    whole = sympy.Rational(str(game[-1] - game[0]))
    solved = top.col_join(bottom).solve((Z.T * W * y).col_join(sympy.Matrix([whole])))
    return [Fraction(str(each)) for each in solved[:count]]


def test_orders_coalitions_and_least_squares_agree() -> None:
    exact = by_orders(GAME)
    assert by_least_squares(GAME) == exact
    found = shapley_of_game(np.array(GAME, dtype=float))
    assert np.abs(found - np.array(exact, dtype=float)).max() <= 64 * 2.0**-53 * 33
    assert sum(exact) == GAME[-1] - GAME[0]


def test_baseline_and_foil() -> None:
    found = shapley_values("one_layer", "for i in range", "(", ")", baseline=" x")
    assert abs(found.missing) <= 2.0**-40 * (1 + abs(found.whole))
    other = shapley_values("one_layer", "for i in range", "(", ")")
    assert np.abs(found.values - other.values).max() > 1e-3
    # Without layers the logit is linear, and occlusion is the Shapley value.
    linear = shapley_values("zero_layer", "x = 1", ")")
    plain = occlusion("zero_layer", "x = 1", ")")
    assert np.abs(linear.values - plain.values).max() <= 2.0**-44


def test_refusals() -> None:
    with pytest.raises(OtimesError, match="all 2\\^M coalitions of M tokens, and M = 20"):
        shapley_values("one_layer", [3] * 20)
    with pytest.raises(OtimesError, match="one value for each of 2\\^M coalitions"):
        shapley_of_game(np.zeros(3))
