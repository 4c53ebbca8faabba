"""Softmax over two blocks of keys, put together from that over each, and divisions by sums."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import sympy
from sympy import BlockMatrix, MatrixSymbol, OneMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.algebra.verdict import decide
from otimes.proofs.replay import check

n, d, p, q = sympy.symbols("n d p q", integer=True, positive=True)
S, T = MatrixSymbol("S", n, p), MatrixSymbol("T", n, q)
V, W = MatrixSymbol("V", p, d), MatrixSymbol("W", q, d)
x, y, z = (MatrixSymbol(name, n, 1) for name in "xyz")
A, B = MatrixSymbol("A", n, d), MatrixSymbol("B", n, d)


def exp(e: Any) -> Any:
    return Activation("exp", e)


def over(e: Any) -> Any:
    return Activation("reciprocal", e)


def diag(e: Any) -> Any:
    return DiagMatrix(e)


def had(*factors: Any) -> Any:
    return sympy.HadamardProduct(*factors, evaluate=False)


def shifted(scores: Any, by: Any) -> Any:
    """Return the exponentials of scores less the running maximum of a row."""
    return exp(matadd(scores, matmul(-1, by, OneMatrix(1, scores.shape[1]))))


def total(weights: Any) -> Any:
    return matmul(weights, OneMatrix(weights.shape[1], 1))


def lse(scores: Any) -> Any:
    return Activation("log", total(exp(scores)))


WHOLE = matmul(RowSoftmax(BlockMatrix([[S, T]])), BlockMatrix([[V], [W]]))
ONE, TWO = matmul(RowSoftmax(S), V), matmul(RowSoftmax(T), W)
l_1, l_2 = total(shifted(S, x)), total(shifted(T, y))
e_1, e_2 = exp(matadd(x, matmul(-1, z))), exp(matadd(y, matmul(-1, z)))
SUM = matadd(had(e_1, l_1), had(e_2, l_2))
GATE = Activation("sigmoid", matadd(lse(T), matmul(-1, lse(S))))
TRUE = {
    "averages at a running maximum": matmul(
        diag(over(SUM)), matadd(matmul(diag(had(e_1, l_1)), ONE), matmul(diag(had(e_2, l_2)), TWO))
    ),
    "sums at a running maximum": matmul(
        diag(over(SUM)),
        matadd(matmul(diag(e_1), shifted(S, x), V), matmul(diag(e_2), shifted(T, y), W)),
    ),
    "a gate of two logarithms": matadd(ONE, matmul(-1, diag(GATE), matadd(ONE, matmul(-1, TWO)))),
}
FALSE = {
    "averages weighed by the other": matmul(
        diag(over(SUM)), matadd(matmul(diag(had(e_2, l_2)), ONE), matmul(diag(had(e_1, l_1)), TWO))
    ),
    "sums that are not rescaled": matmul(
        diag(over(matadd(l_1, l_2))), matadd(matmul(shifted(S, x), V), matmul(shifted(T, y), W))
    ),
    "a gate of the other": matadd(TWO, matmul(-1, diag(GATE), matadd(TWO, matmul(-1, ONE)))),
}


@pytest.mark.parametrize("name", TRUE)
def test_two_blocks_of_keys_are_put_together(name: str) -> None:
    verdict = decide(WHOLE, TRUE[name])
    assert verdict.status == "proved", verdict
    assert "product_cancel" in verdict.reason
    check(verdict.certificate)


@pytest.mark.parametrize("name", FALSE)
def test_a_near_miss_is_refuted(name: str) -> None:
    assert decide(WHOLE, FALSE[name]).status == "refuted"


def average(scores: list[int], values: list[int]) -> tuple[Fraction, Fraction]:
    """Return the sum of the weights 2ˢ, in the place of exponentials, and the average of values."""
    weights = [Fraction(2) ** score for score in scores]
    whole = sum(weights, Fraction(0))
    return whole, sum(w * v for w, v in zip(weights, values, strict=True)) / whole


def test_the_averages_are_put_together_in_numbers() -> None:
    draw = random.Random(6)

    def some() -> list[int]:
        return [draw.randint(-3, 3) for _ in range(3)]

    apart: list[Callable[..., Fraction]] = [
        lambda a, b, u, v: (a * u + b * v) / (a + b),
        lambda a, b, u, v: u - b / (a + b) * (u - v),
        lambda a, b, u, v: (b * u + a * v) / (a + b),
    ]
    same = [0, 0, 0]
    for _ in range(20):
        (s, t), (v, w) = (some(), some()), (some(), some())
        maxima = max(s), max(t), max(s + t)
        (a, one), (b, two) = (
            average([score - top for score in scores], values)
            for scores, values, top in ((s, v, maxima[0]), (t, w, maxima[1]))
        )
        a, b = (
            a * Fraction(2) ** (maxima[0] - maxima[2]),
            b * Fraction(2) ** (maxima[1] - maxima[2]),
        )
        whole = average(s + t, v + w)[1]
        same = [k + (made(a, b, one, two) == whole) for k, made in zip(same, apart, strict=True)]
    assert same[:2] == [20, 20]
    assert same[2] < 20


def test_what_may_be_zero_is_not_divided_by() -> None:
    """A statement with a reciprocal is about what has one; another one is about all numbers."""
    total = matadd(x, y)
    verdict = decide(A, matmul(diag(over(total)), diag(total), A))
    assert verdict.status == "proved"
    check(verdict.certificate)
    for factor, status in ((total, "refuted"), (matadd(exp(x), exp(y)), "proved")):
        equal = matmul(diag(factor), A), matmul(diag(factor), B)
        assert decide(A, B, [equal]).status == status
