"""Sizes that are equal in a paragraph, and differ elsewhere."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SHAPES = r"Let $A \in \mathbb{R}^{m \times k}$ and $B \in \mathbb{R}^{k \times n}$." + "\n\n"
TRACES = r"$\mathrm{tr}(AB) = \mathrm{tr}(BA)$"


def last(text: str) -> tuple[str, str]:
    found = check_text(SHAPES + text).equations[-1]
    return found.verdict, found.why


@pytest.mark.parametrize(
    "said",
    ["If $m = n$, then {}.", "The eigenvalues of $AB$ and $BA$ (for $m = n$) agree, and {}.",
     "For $n = m$ we have {}."],
)  # fmt: skip
def test_sizes_are_equal_where_the_paragraph_says_so(said: str) -> None:
    verdict, why = last(said.format(TRACES))
    assert (verdict, "where " in why) == ("proved", True)


def test_products_of_square_matrices_are_no_shape_errors() -> None:
    found = check_text(SHAPES + "The products $AB$ and $BA$ exist for $m = n$.").equations
    assert [each.verdict for each in found] == ["definition"] * 3


@pytest.mark.parametrize(
    "said", ["If $k = n$, then {}.", "If $m = n$, all is well.\n\nWe have {}.", "We have {}."]
)
def test_sizes_differ_where_nothing_says_that_they_are_equal(said: str) -> None:
    assert last(said.format(TRACES))[0] == "shape"


def test_what_is_false_of_equal_sizes_is_refuted() -> None:
    assert last(r"If $m = n$, then $\mathrm{tr}(AB) = 2 \mathrm{tr}(BA)$.")[0] == "refuted"
