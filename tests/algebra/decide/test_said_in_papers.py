"""The verdicts on what papers say: none is wrong, and those that are not reached are listed."""

from __future__ import annotations

from otimes.algebra.errors import LanguageError
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import rejected
from tests.algebra.decide.said_in_papers import FALSE, TRUE
from tests.algebra.decide.shorthand import some

OPEN = {  # true, and why they are not proved
    "indices: triangle exchanged": "a range ends at n - j",
}


@some(TRUE, OPEN)
def test_what_is_true_is_proved(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict.reason
    assert rejected(verdict) is None


@some(FALSE)
def test_what_is_false_is_refuted(name: str) -> None:
    assert decide(*FALSE[name]).status == "refuted"


@some(OPEN)
def test_what_is_not_reached_is_listed(name: str) -> None:
    lhs, rhs, *given = TRUE[name]
    try:
        verdict = decide(lhs, rhs, *given, budget=2)
    except LanguageError:
        return
    assert verdict.status == "undecided"


def test_there_is_enough_of_both() -> None:
    assert len(TRUE) >= 120
    assert len(FALSE) >= 90
    assert len(OPEN) < 0.1 * len(TRUE)
