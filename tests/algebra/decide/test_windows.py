"""Products over a window of positions or layers, A[i - 1] … A[j], and sums with powers between."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from sympy import MatPow, MatrixSymbol, ZeroMatrix

import otimes as ot
from otimes.algebra.decide import satisfy
from otimes.algebra.decide.claim import Claim
from otimes.algebra.errors import LanguageError
from otimes.algebra.evaluate.exact import exact_value
from otimes.algebra.language.index_arithmetic import elaborated
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import proof_alone, rejected
from tests.algebra.decide.unrolled import W, d, ga, i, j, k, m, n, s, t, tot

A, u = ot.Family("A", (n,), d, d), ot.Family("u", (n,), d, 1)
x, C = ot.Family("x", (n + 1,), d, 1), MatrixSymbol("C", m, d)


def window(end: Any, first: Any) -> Any:
    """Return A[end - 1] … A[first]."""
    return ot.LayerProduct(A[first + s], (s, end - first))


def before(base: Any) -> Any:
    """Return the sum of u[j] with powers of a base, for the positions before i."""
    power = (lambda e: base**e) if base == ga else (lambda e: MatPow(base, e))
    return tot(power(i - 1 - j) * u[j], j, i)


def upto(base: Any) -> Any:
    """Return the sum of u[j] with powers of a base, for the positions up to i."""
    power = (lambda e: base**e) if base == ga else (lambda e: MatPow(base, e))
    return ot.HeadSum(power(i - j) * u[j], (j, 0, i))


def added(first: Any, reverse: bool = False) -> Any:
    """Return the sum over positions before i of u[j] times the layers from `first` on."""
    layers = ot.LayerProduct(A[first + s], (s, i - 1 - j), reverse)
    return tot(layers * u[j], j, i)


gated = [(x[t + 1], A[t] * x[t] + u[t])]
from_zero = [*gated, (x[0], ZeroMatrix(d, 1))]
TRUE: dict[str, Any] = {
    "gated state from zero": (x[i], added(j + 1), from_zero),
    "gated state": (x[i], window(i, 0) * x[0] + added(j + 1), gated),
    "gated by rows": (
        x[i].T,
        tot(u[j].T * ot.LayerProduct(A[j + 1 + s].T, (s, i - 1 - j), True), j, i),
        from_zero,
    ),
    "cut at a position": (window(i, j) * window(j, 0), window(i, 0)),
    "cut between two": (window(i, k) * window(k, j), window(i, j)),
    "one more": (window(i + 1, j), A[i] * window(i, j)),
    "decay by a matrix": (upto(W), W * before(W) + u[i]),
    "decay by a number": (upto(ga), ga * before(ga) + u[i]),
    "what is read of a state": (
        C * x[i],
        tot(C * MatPow(W, i - 1 - j) * u[j], j, i),
        [(x[t + 1], W * x[t] + u[t]), (x[0], ZeroMatrix(d, 1))],
    ),
    "decayed state": (x[i], MatPow(W, i) * x[0] + before(W), [(x[t + 1], W * x[t] + u[t])]),
}
FALSE: dict[str, Any] = {
    "gated a position early": (x[i], added(j), from_zero),
    "gated in the other order": (x[i], added(j + 1, True), from_zero),
    "gated with two states": (x[i], window(i, 0) * x[0] + added(j + 1), from_zero[1:]),
    "cut in the wrong order": (window(k, j) * window(i, k), window(i, j)),
    "one more on the right": (window(i + 1, j), window(i, j) * A[i]),
    "another first position": (window(i, j), window(i, 0)),
    "decay without the last": (upto(W), W * before(W)),
    "decay of the first": (upto(ga), ga * before(ga) + u[0]),
    "what is read a step late": (
        C * x[i],
        tot(C * MatPow(W, i - j) * u[j], j, i),
        [(x[t + 1], W * x[t] + u[t]), (x[0], ZeroMatrix(d, 1))],
    ),
    "a state with one power more": (
        x[i],
        MatPow(W, i) * x[0] + upto(W) - u[i],
        [(x[t + 1], W * x[t] + u[t])],
    ),
}


@pytest.mark.parametrize("claim", TRUE.values(), ids=TRUE)
def test_it_is_proved_with_a_certificate(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "proved"
    assert rejected(verdict) is None


@pytest.mark.parametrize("claim", FALSE.values(), ids=FALSE)
def test_a_near_miss_is_refuted(claim: Any) -> None:
    verdict = decide(*claim)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    assert found is not None
    assert {*found.arrays} <= {"A", "C", "W", "u", "x"}


def test_no_window_is_proved_to_be_another() -> None:
    with proof_alone():
        assert decide(*FALSE["gated a position early"], budget=0.1).status == "undecided"


def test_the_numbers_of_a_gated_state_are_those_of_loops() -> None:
    found = decide(*FALSE["gated a position early"]).counterexample
    assert found is not None
    gates, states, inputs = (found.arrays[name] for name in ("A", "x", "u"))
    at = found.indices[i]
    total = 0 * inputs[0]
    for first in range(at):
        moved = inputs[first]
        for layer in range(first, at - 1):
            moved = gates[layer] @ moved
        total = total + moved
    assert (found.lhs, found.rhs) == (states[at][found.entry], total[found.entry])


@pytest.mark.parametrize("reverse", [False, True])
def test_what_a_claim_with_windows_is_read_as_has_the_values_of_loops(reverse: bool) -> None:
    """The members of the family of windows are those of its definition, which is evaluated here."""
    claim = Claim(added(j + 1, reverse), 2 * added(j + 1, reverse))
    compared = 0
    for seed in range(20):
        found = claim.draw(claim.signature, random.Random(seed), 4, 3, {})
        assert found is not None
        wide = claim.signature.tensors["A"]
        gates, inputs = found.arrays["A"], found.arrays["u"]
        at, start = found.indices["i"], -found.size(wide.firsts[0])
        rows = range(found.sizes["d"])
        total = [0 for _ in rows]
        for first in range(at):
            column = [inputs[first][b, 0] for b in rows]
            layers = range(first + 1, at)
            for layer in reversed(layers) if reverse else layers:
                gate = gates[start + layer]
                column = [sum(gate[b, c] * column[c] for c in rows) for b in rows]
            total = [x + y for x, y in zip(total, column, strict=True)]
        value = exact_value(claim.lhs, found)
        assert [value[b, 0] for b in rows] == total
        compared += any(total) and at > 1
    assert compared >= 4


def test_a_window_with_layers_that_do_not_exist_is_refused() -> None:
    assert len(elaborated([added(j + 2)])[1]) == 2  # no layer at all is left for j = i - 1
    with pytest.raises(LanguageError, match="all layers"):
        elaborated([added(j + 3)])


def test_what_recurrences_define_is_computed_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """In most draws no equations are solved for a state: its members are computed one by one."""
    solved: list[str] = []
    affine = satisfy._Solver.affine

    def noted(self: Any, name: str, *rest: Any) -> Any:
        solved.append(name)
        return affine(self, name, *rest)

    monkeypatch.setattr(satisfy._Solver, "affine", noted)
    numbers = Claim(x[n], x[0], [(x[t + 1], W * x[t] + u[t])])
    drawn = []
    for seed in range(20):
        found = numbers.draw(numbers.signature, random.Random(seed), 3, 3, {})
        assert found is not None
        w, states, inputs = (found.arrays[name].tolist() for name in ("W", "x", "u"))
        size = range(len(w))
        for before, after, added in zip(states, states[1:], inputs, strict=False):
            turned = [sum(w[a][b] * before[b][0] for b in size) + added[a][0] for a in size]
            assert turned == [after[a][0] for a in size]
        drawn.append(len(solved))
    assert sum(a == b for a, b in pairwise([0, *drawn])) >= 10


def test_a_state_that_is_known_at_its_end_is_solved_for() -> None:
    y = MatrixSymbol("y", d, 1)
    given = [(x[t + 1], W * x[t]), (x[n], y), (W * W, W)]
    assert decide(x[n], x[0], given).status == "refuted"
