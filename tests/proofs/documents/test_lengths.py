r"""Vectors of which no length is said, beside a number that may be their length."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

STATE = r"Let $x \in \mathbb{R}^d$ be a state. "
UNIT = STATE + r"Let $v$ be a unit vector, $v^\top v = 1$, and $P = I - v v^\top$. "
ONES = STATE + r"Let $u = \mathbf 1/\sqrt d$ and $C = I - u u^\top$. "


def last(text: str) -> tuple[str, str]:
    found = check_text(text).equations[-1]
    return found.verdict, found.why


def test_a_trace_says_how_long_a_vector_is() -> None:
    verdict, why = last(UNIT + r"Then $\mathrm{tr}(P) = d - 1$.")
    assert (verdict, "v has d entries" in why) == ("needs-hypothesis", True)


@pytest.mark.parametrize("claim", [r"C\mathbf 1 = 0", "CC = C", "C^2 = C"])
def test_a_column_of_ones_is_as_long_as_the_number_that_divides_it(claim: str) -> None:
    verdict, why = last(ONES + f"Then ${claim}$.")
    assert (verdict, "has d entries" in why) == ("needs-hypothesis", True)


def test_a_letter_that_is_no_size_yet_may_be_the_length() -> None:
    text = r"With $C = I - \frac{1}{n} \mathbf 1 \mathbf 1^\top$ we have $C \mathbf{1} = 0$."
    assert "has n entries" in last(text)[1]


@pytest.mark.parametrize(
    "claim", [r"\mathrm{tr}(P) = d - 2", "P v = v", r"\mathrm{tr}(P) = d + 1", "P P = 2 P"]
)
def test_no_length_makes_a_false_claim_true(claim: str) -> None:
    assert last(UNIT + f"Then ${claim}$.")[0] == "refuted"


def test_declared_lengths_are_what_they_are() -> None:
    text = STATE + r"Let $v \in \mathbb{R}^m$ with $v^\top v = 1$ and $P = I - v v^\top$. "
    assert last(text + r"Then $\mathrm{tr}(P) = d - 1$.")[0] == "refuted"
    assert last(text + r"Then $\mathrm{tr}(P) = m - 1$.")[0] == "proved"
