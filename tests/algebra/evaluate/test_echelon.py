"""Elimination over the rationals, compared with SymPy's."""

from __future__ import annotations

import random
from fractions import Fraction

import sympy

from otimes.algebra.evaluate.echelon import reduce_rows


def test_rows_of_integers_and_fractions_are_reduced_as_by_sympy() -> None:
    draw = random.Random(0)
    numbers = [0, 0, 1, -2, 3, Fraction(0), Fraction(1, 2), Fraction(-5, 3), Fraction(4)]
    for _ in range(60):
        height, width = draw.randint(1, 5), draw.randint(1, 6)
        rows = [[draw.choice(numbers) for _ in range(width)] for _ in range(height)]
        exact = [[sympy.Rational(x.numerator, x.denominator) for x in row] for row in rows]
        reduced, pivots = sympy.Matrix(exact).rref()
        assert reduce_rows(rows, width) == list(pivots)
        assert sympy.Matrix(rows) == reduced
        assert {type(x) for row in rows for x in row} <= {int, Fraction}
