"""Claims of papers: nearly all are decided, none wrongly, and each proof is checked."""

from __future__ import annotations

import json
import os

import pytest

from otimes.algebra.decide.certificate import to_json
from otimes.algebra.verdict import decide
from otimes.proofs import replay
from tests.algebra.decide.reach import FALSE, TRUE, UNDECIDED

LONG = os.environ.get("OTIMES_LONG") == "1"
BUDGET = 5.0  # units of work, of which the slowest takes fewer
SOME_TRUE = [name for name in TRUE if name not in UNDECIDED][:: 1 if LONG else 2]
SOME_FALSE = [*FALSE][1 :: 1 if LONG else 2]


@pytest.mark.parametrize("name", SOME_TRUE)
def test_what_is_true_is_proved_and_checked(name: str) -> None:
    lhs, rhs, given = TRUE[name]
    verdict = decide(lhs, rhs, given, BUDGET)
    assert verdict.status == "proved", verdict.reason
    assert replay.check(json.loads(to_json(verdict.certificate)))


@pytest.mark.parametrize("name", SOME_FALSE)
def test_what_is_false_is_refuted(name: str) -> None:
    lhs, rhs, given = FALSE[name]
    verdict = decide(lhs, rhs, given, BUDGET)
    assert verdict.status == "refuted", verdict.reason
    assert verdict.counterexample is not None


def test_the_suite_is_large_and_few_are_undecided() -> None:
    assert len(TRUE) >= 90
    assert len(FALSE) >= 90
    assert len(UNDECIDED) <= 5
    assert TRUE.keys() >= UNDECIDED


@pytest.mark.parametrize("name", sorted(UNDECIDED))
def test_what_is_undecided_is_not_refuted(name: str) -> None:
    assert decide(*TRUE[name], 0.5).status == "undecided"
