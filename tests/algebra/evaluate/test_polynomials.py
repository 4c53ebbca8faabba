"""Fixed sizes: what follows from hypotheses is a combination of them, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import Identity, Integer, Matrix, MatrixSymbol, Symbol, Trace, ZeroMatrix

from otimes.algebra.budget import Budget
from otimes.algebra.evaluate.polynomials import follows_as_polynomials
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.shapes import inspect
from otimes.algebra.verdict import decide

A, B = (MatrixSymbol(name, 2, 2) for name in "AB")
X = MatrixSymbol("X", 3, 3)
a, n = Symbol("a"), Symbol("n")
null, zero = ZeroMatrix(2, 2), Integer(0)


def follows(lhs: Any, rhs: Any, *given: tuple[Any, Any], units: float = 10) -> bool:
    signature = inspect(lhs, rhs, *[side for pair in given for side in pair])
    facts = [(*pair, ()) for pair in given]
    with Budget(units):
        return follows_as_polynomials(lhs, rhs, facts, (), signature) is not None


@pytest.mark.parametrize(
    ("lhs", "rhs", "given"),
    [
        (A * B, null, [(A, null)]),
        (A**3, A, [(A**2, A)]),
        (2 * A**2, Trace(A**2) * Identity(2), [(Trace(A), zero)]),
        (A**2, null, [(Trace(A), zero), (Trace(A**2), zero)]),
        (a**2 * Trace(A), a * Trace(A), [(a * A, A)]),
        (A * B * A, Trace(A * B) * A, [(Trace(A) ** 2, Trace(A**2))]),
    ],
)
def test_combinations_are_found(lhs: Any, rhs: Any, given: list[Any]) -> None:
    assert follows(lhs, rhs, *given)


@pytest.mark.parametrize(
    ("lhs", "rhs", "given"),
    [
        (B, null, [(A * B, null)]),
        (A, null, [(A**2, A)]),
        (A**2, Trace(A**2) * Identity(2), [(Trace(A), zero)]),
        (A * B, B * A, [(Trace(A), Trace(B))]),
        (Trace(A), zero, [(A**2, null)]),  # true, but its square follows
        (a, Integer(1), [(a * A, A)]),
        (X**2, Trace(X**2) * Identity(3) / 3, [(Trace(X), zero)]),
    ],
)
def test_nothing_else_is(lhs: Any, rhs: Any, given: list[Any]) -> None:
    assert not follows(lhs, rhs, *given)


def test_free_sizes_divisions_and_spent_budgets_are_left_alone() -> None:
    Y = MatrixSymbol("Y", n, n)
    assert not follows(Y**2, Y, (Y, Identity(n)))
    assert not follows(A / a, null, (A, null))
    assert not follows(A * B, null, (A, null), units=0)


@pytest.mark.parametrize("given", [[], [(A, B)]], ids=["alone", "beside a hypothesis"])
def test_what_needs_no_hypothesis_is_a_sum_of_none(given: list[Any]) -> None:
    """The mask is a box to the reader of diagrams, so only the numbers in it settle the claim."""
    mask = Matrix([[1, 0], [1, 1]])
    for lhs, rhs in ((CausalMask(2), mask), (CausalMask(2) * A, mask * A)):
        verdict = decide(lhs, rhs, given)
        assert verdict.status == "proved"
        assert verdict.reason == "at these sizes both sides are the same polynomials"
        assert verdict.used == ()
    assert decide(CausalMask(2), mask.T, given).status == "refuted"
