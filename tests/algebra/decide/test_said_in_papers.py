"""The verdicts on what papers say: all that is true is proved."""

from __future__ import annotations

from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import rejected
from tests.algebra.decide.said_in_papers import FALSE, TRUE
from tests.algebra.decide.shorthand import some


@some(TRUE)
def test_what_is_true_is_proved(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict.reason
    assert rejected(verdict) is None


@some(FALSE)
def test_what_is_false_is_refuted(name: str) -> None:
    assert decide(*FALSE[name]).status == "refuted"


def test_there_is_enough_of_both() -> None:
    assert len(TRUE) >= 120
    assert len(FALSE) >= 90
