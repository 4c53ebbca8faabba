"""p + q log 2 against 50 digits of mpmath, and functions of it that are exact."""

from __future__ import annotations

import operator
import random
from fractions import Fraction

import mpmath
import pytest

from otimes.algebra.language.functions import value_of
from otimes.algebra.language.intervals import Interval, bounds
from otimes.algebra.language.logarithms import LOG2, OF_POWERS, Logarithm

OPERATIONS = [operator.add, operator.sub, operator.mul, operator.truediv]
COMPARED = [operator.lt, operator.gt, operator.le, operator.ge, operator.eq, operator.ne]


def digits(x: object) -> object:
    """Return a number with 50 digits."""
    if isinstance(x, Logarithm):
        return digits(x.rational) + digits(x.factor) * mpmath.log(2)
    if isinstance(x, Interval):
        return mpmath.mpf(x.bounds.mid)
    return mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator


def drawn(draw: random.Random) -> object:
    p, q = (Fraction(draw.randint(-4, 4), draw.randint(1, 3)) for _ in "pq")
    return p + q * LOG2 if draw.random() < 0.8 else p


def test_arithmetic_is_that_of_the_numbers() -> None:
    draw = random.Random(3)
    with mpmath.workdps(50):
        for _ in range(400):
            x, y = drawn(draw), drawn(draw)
            for join in OPERATIONS:
                if join is operator.truediv and y == 0:
                    continue
                found = join(x, y)
                assert abs(digits(found) - join(digits(x), digits(y))) < mpmath.mpf("1e-40")
                if isinstance(found, Interval):
                    assert bounds(found).delta < 1e-40
            for how in COMPARED:
                # equal ones are equal exactly, and others differ by far more than the digits say
                near = abs(digits(x) - digits(y)) < mpmath.mpf("1e-40")
                assert how(x, y) == how(0 if near else digits(x) - digits(y), 0)


@pytest.mark.parametrize("name", [*OF_POWERS, "log", "relu", "abs"])
def test_functions_are_exact_at_multiples_of_log_2(name: str) -> None:
    with mpmath.workdps(50):
        for k in range(-5, 6):
            x = Fraction(2) ** k if name == "log" else k * LOG2
            found = value_of(name, x)
            assert not isinstance(found, Interval) or isinstance(found, Logarithm)
            by_interval = value_of(name, Interval(bounds(x)))
            assert abs(digits(found) - digits(by_interval)) < mpmath.mpf("1e-40")


@pytest.mark.parametrize("x", [LOG2 / 2, LOG2 + 1, 3 * LOG2 - Fraction(1, 2)])
def test_another_exponential_is_an_interval(x: Logarithm) -> None:
    found = value_of("exp", x)
    assert type(found) is Interval
    assert abs(float(found) - float(mpmath.exp(digits(x)))) < 1e-12
