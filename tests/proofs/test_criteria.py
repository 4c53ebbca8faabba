"""The thresholds of observations are those that the words of their criteria name."""

from __future__ import annotations

import pytest

from otimes.proofs.checks.criteria import unsaid
from otimes.proofs.claims import Observation

SAID: dict[str, tuple[str, str, float]] = {
    "a half": ("more than half of the heads", "share", 0.5),
    "tenths": ("more than nine tenths of the tokens", "share", 0.9),
    "a decimal": ("a mean cosine of more than 0.2", "cosine", 0.2),
    "per cent": ("for at least 1 % of the neurons", "share", 0.01),
    "a share": ("in at least three cases of four", "share", 0.75),
    "whole numbers": ("at least 7 of 9 digits", "digits", 6.5),
    "below": ("some neuron has a skewness below −1", "minus the least skewness", 1.0),
    "within": ("the transpose is within 0.1 of it", "1 minus the distance", 0.9),
    "a multiple": ("at least twice that on shuffled words", "ratio", 2.0),
    "a comparison": ("the trained one more than the others", "trained minus others", 0.0),
}


@pytest.mark.parametrize("name", SAID)
def test_a_threshold_is_named_by_the_words_and_a_lower_one_is_not(name: str) -> None:
    words, value, above = SAID[name]
    assert not unsaid(Observation(words, above={value: above}))
    for looser in (above - 0.07, 0.6 * above - 0.001, -0.5, -5.0):
        assert value in unsaid(Observation(words, above={value: looser})), looser


def test_zero_is_a_threshold_for_differences_only() -> None:
    words = "the quarter of the heads has more than half of the costs"
    assert "share of a quarter" in unsaid(Observation(words, above={"share of a quarter": 0.0}))
