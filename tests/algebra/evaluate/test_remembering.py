"""Values of subexpressions that are kept with the numbers at which they were computed."""

import random
from dataclasses import replace
from fractions import Fraction

import pytest
import sympy
from mpmath import iv
from sympy import MatrixSymbol, Symbol, Transpose

from otimes.algebra.evaluate.exact import Assignment, exact_value
from otimes.algebra.evaluate.exact_arrays import as_exact, from_rows
from otimes.algebra.language.intervals import PRECISION, Interval
from otimes.algebra.language.linear import Family, HeadSum, matmul

n, H = (Symbol(name, integer=True, positive=True) for name in "nH")
h, g = (Symbol(name, integer=True, nonnegative=True) for name in "hg")
A, S = MatrixSymbol("A", n, n), Family("S", (H,), n, n)
SUM = HeadSum(matmul(S[h], A, Transpose(S[h])), (h, H))
TWICE = HeadSum(matmul(S[h], A, S[g]), (h, H), (g, H))


def numbers() -> Assignment:
    rng = random.Random(7)
    heads = [[[rng.randint(-3, 3) for _ in range(2)] for _ in range(2)] for _ in range(3)]
    a = from_rows([[1, 2], [3, 5]], 2)
    return Assignment({"n": 2, "H": 3}, {"A": a, "S": as_exact(heads)}).in_exact_arrays()


def test_values_within_sums_are_those_of_each_index() -> None:
    plain, kept = numbers(), numbers().remembering()
    for expression in (SUM, TWICE, SUM, matmul(SUM, A), TWICE):
        assert exact_value(expression, kept).flat == exact_value(expression, plain).flat


def test_other_numbers_do_not_get_the_values() -> None:
    kept = numbers().remembering()
    before = exact_value(matmul(A, A), kept)
    other = replace(kept, arrays={**kept.arrays, "A": from_rows([[0, 1], [1, 0]], 2)})
    assert exact_value(matmul(A, A), other).flat == [1, 0, 0, 1]
    assert exact_value(matmul(A, A), kept).flat == before.flat == [7, 12, 18, 31]
    assert exact_value(sympy.Trace(A), other.remembering()) == 0


@pytest.mark.parametrize("other", [3, -(10**70), Fraction(-7, 3), Interval(iv.sqrt(iv.mpf(2)))])
def test_intervals_are_those_of_mpmath(other: object) -> None:
    iv.prec = PRECISION
    x = Interval(iv.exp(iv.mpf(1)))
    y = other.bounds if isinstance(other, Interval) else iv.mpf(Fraction(other).numerator)  # type: ignore[arg-type]
    y = y / iv.mpf(Fraction(other).denominator) if isinstance(other, Fraction) else y
    pairs = [
        (x + other, x.bounds + y),
        (x - other, x.bounds - y),
        (other - x, y - x.bounds),
        (x * other, x.bounds * y),
        (x / other, x.bounds / y),
        (other / x, y / x.bounds),
    ]
    assert [ours.bounds._mpi_ for ours, _ in pairs] == [theirs._mpi_ for _, theirs in pairs]
