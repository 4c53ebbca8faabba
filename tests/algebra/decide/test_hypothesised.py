"""Counterexamples under hypotheses that are hard to meet: each meets all of them."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
import sympy
from sympy import HadamardProduct, MatrixSymbol

from otimes.algebra.language.linear import Family, HeadSum, OneHot
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import Claim, fault, fault_of, judged
from tests.algebra.decide.hypothesised import Hypothesised

LONG = bool(os.environ.get("OTIMES_LONG"))
MANY = 10_000 if LONG else 30
N = 40
h, i, j = sympy.symbols("h i j", integer=True)
A, B = (MatrixSymbol(name, N, N) for name in "AB")
X, Y = (MatrixSymbol(name, N, 4) for name in "XY")
G = Family("G", (3,), N, N)
s, t = sympy.Symbol("s", nonnegative=True), sympy.Symbol("t")
FREE = {h: 3, i: N, j: N}
TRUE: dict[str, tuple[Any, Any, list[Any]]] = {
    "an entry": (X[5, 0], Y[5, 0], [(X[i, 0], Y[i, 0])]),
    "all entries": (A, B, [(A[i, j], B[i, j])]),
    "a column": (A * OneHot(7, N), B * OneHot(7, N), [(A * OneHot(j, N), B * OneHot(j, N))]),
    "a sum": (HeadSum(G[h] * X, (h, 3)), 3 * A * X, [(G[h] * X, A * X)]),
}


@pytest.mark.parametrize("claim", TRUE.values(), ids=TRUE)
def test_a_hypothesis_at_a_large_size_holds_for_all_its_indices(claim: Any) -> None:
    """Trials once asked for it at one value of the index only, and refuted these."""
    assert decide(*claim).status == "proved"


def test_what_differs_for_a_few_indices_is_refuted_at_a_large_size() -> None:
    claim = Claim(G[0] * X, A * Y, [(G[h] * X, A * X)], free=FREE)
    found = decide(claim.lhs, claim.rhs, claim.given).counterexample
    assert found is not None
    assert fault_of(claim, found) is None


def test_an_inequality_is_met_at_a_large_size() -> None:
    """A claim without symbols of sizes raised KeyError: its numbers were not drawn."""
    claim = Claim(s * A, t * A, [s < t])
    found = decide(claim.lhs, claim.rhs, claim.given).counterexample
    assert found is not None
    assert fault_of(claim, found) is None


def test_a_function_that_only_a_hypothesis_names_is_stated() -> None:
    n = sympy.Symbol("n", integer=True, positive=True)
    X, Y = MatrixSymbol("X", n, 2), MatrixSymbol("Y", n, 2)
    found = decide(X, Y, [(HadamardProduct(Activation("g", X), Y), X)]).counterexample
    assert found is not None
    assert list(found.functions) == ["g"]


def test_the_root_of_zero_is_zero() -> None:
    claim = Claim(A, 0 * A, [(s * t * A, 0 * A), sympy.Pow(s**4, sympy.Rational(1, 4)) < 1])
    assert fault(claim, 0) is None


def test_numbers_that_break_a_hypothesis_refute_nothing(monkeypatch: Any) -> None:
    """Whatever draws them: they are checked before they are shown."""
    monkeypatch.setattr("otimes.algebra.decide.claim.Claim.allows", lambda *_: False)
    n = sympy.Symbol("n", integer=True, positive=True)
    M = MatrixSymbol("M", n, n)
    assert decide(M, M.T).status == "undecided"


def test_no_counterexample_breaks_a_hypothesis() -> None:
    wrong, said = [], Counter[str]()
    for seed in range(MANY):
        claim = Hypothesised(seed).claim()
        verdict, why = judged(claim, seed)
        said[verdict.status if verdict is not None else "refused"] += 1
        wrong += [f"seed {seed}: {why}\n{claim}"] * bool(why)
    assert not wrong, "\n".join(wrong)
    assert min(said["proved"], said["refuted"]) > 0, said
