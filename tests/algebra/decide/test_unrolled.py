"""Verdicts on claims over depths, positions and real sizes: each true one has its near-miss."""

from __future__ import annotations

from typing import Any

from otimes.algebra.verdict import decide
from tests.algebra.decide import unrolled_depths, unrolled_free, unrolled_positions
from tests.algebra.decide.attack import rejected
from tests.algebra.decide.shorthand import some

SUITES = {"depths": unrolled_depths.SUITE, "positions": unrolled_positions.SUITE}
SUITES["free"] = unrolled_free.SUITE
TRUE = {f"{of}: {name}": each for of, s in SUITES.items() for name, each in s.true.items()}
FALSE = {f"{of}: {name}": each for of, s in SUITES.items() for name, each in s.false.items()}


def decided(claim: Any) -> Any:
    lhs, rhs, given, lemma = claim
    return decide(lhs, rhs, given, lemma=lemma)


@some(TRUE)
def test_what_is_true_is_proved(name: str) -> None:
    verdict = decided(TRUE[name])
    assert verdict.status == "proved", verdict.reason
    assert rejected(verdict) is None


@some(FALSE)
def test_its_near_miss_is_refuted(name: str) -> None:
    assert decided(FALSE[name]).status == "refuted"


def test_there_is_enough_of_both() -> None:
    assert len(TRUE) > 110
    assert len(FALSE) > 110
