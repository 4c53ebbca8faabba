"""The verdicts on what a referee asks: none is wrong, and those that are not reached are listed."""

from __future__ import annotations

from otimes.algebra.errors import LanguageError
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import proof_alone, rejected
from tests.algebra.decide.refereed import FALSE, TRUE
from tests.algebra.decide.shorthand import some

UNREFUTED = {  # false, and why no numbers show it
    "relative rotation": "few numbers satisfy its hypotheses",
}


@some(TRUE)
def test_what_is_true_is_proved(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict.reason
    assert rejected(verdict) is None


@some(FALSE, UNREFUTED)
def test_what_is_false_is_refuted(name: str) -> None:
    assert decide(*FALSE[name]).status == "refuted"


@some(FALSE)
def test_without_trials_what_is_false_is_not_proved(name: str) -> None:
    with proof_alone():
        assert decide(*FALSE[name], budget=0.2).status == "undecided"


@some(UNREFUTED)
def test_what_is_not_reached_is_listed(name: str) -> None:
    """An entry that is decided by now, or that is decided wrongly, does not stay in the list."""
    try:
        verdict = decide(*FALSE[name], budget=2)
    except LanguageError:
        return
    assert verdict.status == "undecided"


def test_there_is_enough_of_both() -> None:
    assert len(TRUE) >= 100
    assert len(FALSE) >= 75
