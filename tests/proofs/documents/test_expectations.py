r"""Expectations: E is a function of what is random, and no factor of a product."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

RANDOM = r"""Let $x \in \mathbb{R}^d$ be a random column and $A \in \mathbb{R}^{d \times d}$,
with the mean $\mu = {E}[x]$ and the covariance $\Sigma = {E}[(x - \mu)(x - \mu)^\top]$.

"""
LETTERS = [r"\mathbb{E}", r"\mathbb E", r"\operatorname{E}", r"\mathrm{E}", "E"]


def verdicts(text: str) -> list[str]:
    return [each.verdict for each in check_text(text).equations]


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(
    "equation",
    [
        r"${E}[x x^\top] = {E}[x] x^\top$",
        r"${E}\left[ x x^\top \right] = {E}\left[ x \right] x^\top$",
        r"${E}_{x}[x x^\top] = {E}_{x}[x] x^\top$",
    ],
)
def test_an_expectation_is_no_factor(letter: str, equation: str) -> None:
    text = (RANDOM + f"We have {equation}.").replace("{E}", letter)
    assert verdicts(text)[-1] == "undecided"


def test_an_expectation_without_brackets_is_of_all_that_follows() -> None:
    text = RANDOM + r"We have $\mathbb{E} x x^\top = (\mathbb{E} x) x^\top$."
    assert verdicts(text.replace("{E}", r"\mathbb{E}"))[-1] == "undecided"


@pytest.mark.parametrize("letter", LETTERS)
def test_numbers_say_nothing_of_an_expectation(letter: str) -> None:
    text = RANDOM + r"Then $\Sigma = {E}[x x^\top] - \mu\mu^\top$ and ${E}[A x] = A \mu$."
    found = verdicts(text.replace("{E}", letter))
    assert not {"refuted", "shape"} & {*found}


@pytest.mark.parametrize("letter", LETTERS)
def test_equal_terms_have_equal_expectations(letter: str) -> None:
    text = (
        RANDOM + r"Then ${E}[A (x + x)] = {E}[A x + A x]$ and ${E}[A x]^\top = {E}[x^\top A^\top]$."
    )
    assert verdicts(text.replace("{E}", letter))[-2:] == ["proved", "proved"]


def test_an_equation_for_one_expectation_defines_no_other() -> None:
    text = RANDOM + r"Let $y \in \mathbb{R}^d$ be random. ${E}[x] = \mu$, so ${E}[y] = \mu$."
    assert verdicts(text.replace("{E}", r"\mathbb{E}"))[-2:] == ["proved", "undecided"]


def test_a_matrix_e_is_a_factor() -> None:
    text = r"""Let $E \in \mathbb{R}^{v \times d}$ and $x \in \mathbb{R}^d$ be a column.
    Then $E[x x^\top] = (E x) x^\top$ and $\mathrm{tr}(E^\top E) = \|E\|_F^2$."""
    assert verdicts(text)[-2:] == ["proved", "proved"]


def test_variances_and_probabilities_are_not_decided() -> None:
    text = r"""Let $x, y \in \mathbb{R}^d$ be random columns.
    Then $\mathbb{V}[x + y] = \mathbb{V}[x] + \mathbb{V}[y]$ and
    $\mathbb{P}(x y) = \mathbb{P}(x) y$."""
    assert verdicts(text)[-2:] == ["undecided", "undecided"]
