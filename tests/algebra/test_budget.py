"""Budgets: steps are counted, limits are kept, and every phase counts what it does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Identity, MatrixSymbol, Symbol, Trace, Transpose

from otimes.algebra.budget import (
    STEPS,
    Budget,
    Exhausted,
    limited,
    spend,
    steps_done,
    steps_left,
    weight,
)
from otimes.algebra.decide.counterexample import search
from otimes.algebra.decide.decide import decided
from otimes.algebra.decide.entailment import entail, relations_of
from otimes.algebra.decide.layers_as_matrices import LAWS_PROVED, law
from otimes.algebra.decide.satisfy import satisfying
from otimes.algebra.diagrams.canonical import canonical
from otimes.algebra.diagrams.diagram import Diagram
from otimes.algebra.diagrams.sums import difference
from otimes.algebra.evaluate.exact import Assignment, exact_array, exact_inverse, tree_value
from otimes.algebra.evaluate.polynomials import follows_as_polynomials
from otimes.algebra.explain.search import explain
from otimes.algebra.language.coefficients import generator
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, matadd, matmul
from otimes.algebra.language.shapes import inspect
from otimes.algebra.reading.read import read
from otimes.algebra.verdict import decide

n = Symbol("n", integer=True, positive=True)
k = Symbol("k", integer=True)
A, B, C = (MatrixSymbol(name, n, n) for name in "ABC")


# -- counting -------------------------------------------------------------------------------------


def test_steps_are_counted_up_to_the_limit() -> None:
    with Budget(0.001) as budget:
        spend(999)
        assert budget.left == 1
        spend(1)
        assert budget.spent_out
        with pytest.raises(Exhausted):
            spend(1)
    assert budget.spent == 1000


def test_what_would_pass_a_limit_is_not_done_and_does_not_count_in_the_whole() -> None:
    with Budget(1) as budget:
        with pytest.raises(Exhausted), limited(100):
            spend(10**9)
        assert budget.spent == 100
        assert steps_left() == STEPS - 100


def test_a_part_is_never_more_than_the_whole() -> None:
    with Budget(0.001), limited(10**6):
        assert steps_left() == 1000


def test_a_part_without_a_whole_is_a_budget() -> None:
    with pytest.raises(Exhausted), limited(100):
        spend(101)
    spend(10**12)
    assert steps_left() == float("inf")


def test_a_budget_within_another_is_its_own() -> None:
    with Budget(1) as outer:
        with Budget(1) as inner:
            spend(5)
        spend(7)
    assert (outer.spent, inner.spent) == (7, 5)


def test_every_thread_has_its_own() -> None:
    with Budget(1) as budget:
        thread = threading.Thread(target=lambda: spend(500))
        thread.start()
        thread.join()
    assert budget.spent == 0


def test_the_guard_strikes_once_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(0, 10**6, 100))
    monkeypatch.setattr(time, "thread_time", lambda: next(now))
    with Budget(1) as budget:
        spend(1_000)
        with pytest.raises(Exhausted), limited(200_000):
            spend(60_000)
        assert budget.struck
        assert budget.left == 0
        with pytest.raises(Exhausted):
            spend(1)


def test_long_numbers_weigh_more() -> None:
    weights = [weight(x) for x in (1, 10**30, 10**300, 10**3000)]
    assert weights == sorted(weights)
    assert weight(Fraction(1, 3)) > weight(3)
    assert weight(Fraction(10**300, 10**299 + 1)) > weight(Fraction(1, 3))


# -- every phase counts ---------------------------------------------------------------------------

CYCLE = Diagram((), (), (), tuple((0, w, (w + 1) % 9) for w in range(9)), (0,) * 9)
SMALL = exact_array(np.array([[2, 1], [1, 3]]))
TWO = [MatrixSymbol(name, 2, 2) for name in "AB"]


def elimination() -> None:
    signature = inspect(A, B)
    reading, ((left, right), pair) = read(signature, (matmul(A, B, A), A), (matmul(A, B), A))
    relations = list(relations_of(("given", 0), *pair))
    before = steps_left()
    entail(difference(left.terms, right.terms), relations, reading.dimensions, {"n"})
    assert steps_left() < before


def satisfaction() -> None:
    import random

    signature = inspect(matmul(A, A), A)
    satisfying([(matmul(A, A), A)], signature, random.Random(1), 2, 3, {})


PHASES: dict[str, Callable[[], Any]] = {
    "labelling": lambda: canonical(CYCLE),
    "expansion": lambda: read(inspect(A, B), (matmul(matadd(A, B), A), A)),
    "elimination": elimination,
    "polynomials": lambda: (generator("a") * generator("b") + 1) * generator("c"),
    "exact evaluation": lambda: tree_value(matmul(A, A), Assignment({"n": 2}, {"A": SMALL})),
    "inverses": lambda: exact_inverse(SMALL),
    "fixed sizes": lambda: follows_as_polynomials(
        matmul(*TWO), TWO[0], [(TWO[1], Identity(2), ())], (), inspect(*TWO)
    ),
    "search": lambda: search(matmul(A, B), matmul(B, A), inspect(A, B), 3),
    "satisfying hypotheses": satisfaction,
}


@pytest.mark.parametrize("phase", PHASES)
def test_every_phase_counts(phase: str) -> None:
    with Budget(10) as budget:
        PHASES[phase]()
    assert budget.spent > 0


@pytest.mark.parametrize("phase", PHASES)
def test_more_work_counts_more(phase: str) -> None:
    with Budget(10) as once:
        PHASES[phase]()
    with Budget(10) as twice:
        PHASES[phase]()
        PHASES[phase]()
    assert twice.spent == 2 * once.spent


def test_the_work_of_a_verdict_is_told() -> None:
    small, large = (decide(sympy.MatPow(matadd(A, B), p), sympy.MatPow(A, p)).work for p in (2, 6))
    assert 0 < small < large < STEPS


def test_answers_that_are_remembered_count_as_much() -> None:
    """The same search twice: the second time most parts are known, and it ends alike."""
    sides = (
        matmul(matadd(A, B), C, Transpose(A)),
        matadd(matmul(A, C, Transpose(A)), matmul(B, C, Transpose(A))),
    )
    for units in (0.001, 0.01, 0.1):
        first, second = explain(*sides, budget=units), explain(*sides, budget=units)
        assert str(first) == str(second)


# -- what is made in another order is the same ----------------------------------------------------


@pytest.mark.parametrize("count", [15, 16, 17, 40])
def test_long_products_are_the_same_by_halves(count: int) -> None:
    W = Family("W", (count,), n, n)
    left: Any = W[0]
    for number in range(1, count):
        left = matmul(left, W[number])  # one factor at a time
    assert decide(LayerProduct(W[k], (k, count), True), left).status == "proved"
    assert decide(LayerProduct(W[k], (k, count)), left).status == "refuted"
    power = sympy.MatPow(A, count, evaluate=False)
    assert decide(power, matmul(*[A] * count)).status == "proved"
    assert decide(Trace(power), Trace(matmul(*[A] * (count - 1)))).status == "refuted"


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", range(7))
def test_sums_over_orders_are_the_sums_of_their_products(order: int, reverse: bool) -> None:
    W = Family("W", (5,), n, n)
    terms = []
    for chosen in combinations(range(5), order):
        factors = [W[number] for number in (chosen if reverse else chosen[::-1])]
        terms.append(matmul(Identity(n), *factors))
    whole = matadd(sympy.ZeroMatrix(n, n), *terms)
    assert decide(OrderSum(W[k], (k, 5), order, reverse), whole).status == "proved"
    if terms:
        less = matadd(sympy.ZeroMatrix(n, n), *terms[1:])
        assert decide(OrderSum(W[k], (k, 5), order, reverse), less).status == "refuted"


def test_the_steps_done_do_not_depend_on_laws_that_are_kept() -> None:
    LAWS_PROVED.clear()
    begun = steps_done()
    assert law("what passes each layer", False, False, decided) is not None
    assert steps_done() == begun
    with Budget(1):
        spend(10)
    assert steps_done() == begun + 10
