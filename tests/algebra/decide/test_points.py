"""The verdicts on what a referee asks about blocks, entailment and functions."""

from __future__ import annotations

from otimes.algebra.errors import LanguageError
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import proof_alone, rejected
from tests.algebra.decide.points import blocks, entailment, functions, further, implied, language
from tests.algebra.decide.shorthand import some

POINTS = (
    *(blocks.CLAIMS, entailment.CLAIMS, language.CLAIMS, further.CLAIMS),
    *(functions.CLAIMS, implied.CLAIMS),
)
TRUE = {name: claim for point in POINTS for name, claim in point.true.items()}
FALSE = {name: claim for point in POINTS for name, claim in point.false.items()}
OPEN = {  # true, and why they are not proved
    "shift cut two ways": "a shift is not cut otherwise for its rows than for its columns",
    "first d and last d": "as above",
    "sum cut both ways": "a matrix that is no constant is cut in two ways",
    "gram cut both ways": "as above",
    "odds": "too many ways to divide",
}
UNREFUTED = {  # false, and why no numbers show it
    "normalised logs'": "logarithms of what sums to one have no exact values",
}


@some(TRUE, OPEN)
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
        try:
            verdict = decide(*FALSE[name], budget=0.2)
        except LanguageError:
            return
        assert verdict.status == "undecided"


@some({**OPEN, **UNREFUTED})
def test_what_is_not_reached_is_listed(name: str) -> None:
    """An entry that is decided by now, or that is decided wrongly, does not stay in the list."""
    try:
        verdict = decide(*(TRUE if name in OPEN else FALSE)[name], budget=2)
    except LanguageError:
        return
    assert verdict.status == "undecided"


def test_there_is_enough_of_both() -> None:
    assert len(TRUE) >= 250
    assert len(FALSE) >= 250
    assert len(OPEN) < 0.03 * len(TRUE)
