r"""Sums of parts that the text then defines by what they are parts of."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SQUARE = r"Let $W_Q, W_K \in \mathbb{R}^{d \times k}$ and $M = W_Q W_K^\top$. "
HALVES = r"$M_s = \frac12 (M + M^\top)$ and $M_a = \frac12 (M - M^\top)$."


def verdicts(text: str) -> list[str]:
    return [each.verdict for each in check_text(text).equations]


@pytest.mark.parametrize("heading", ["", "\n\n## Parts\n\n"])
@pytest.mark.parametrize("word", ["with", "where"])
def test_the_parts_of_a_sum_are_defined_by_it(heading: str, word: str) -> None:
    text = SQUARE + heading + f"Write $M = M_s + M_a$ {word} {HALVES}"
    claims = r" Then $M_s^\top = M_s$ and $\|M\|_F^2 = \|M_s\|_F^2 + \|M_a\|_F^2$."
    assert verdicts(text + claims)[-5:] == [
        "proved",
        "definition",
        "definition",
        "proved",
        "proved",
    ]


def test_a_vector_is_the_sum_of_its_projections() -> None:
    text = r"""Let $P \in \mathbb{R}^{d \times d}$ and $y \in \mathbb{R}^d$, a column. Each
    $y = y_1 + y_2$ where $y_1 = P y$ and $y_2 = (I - P) y$."""
    assert verdicts(text)[-3:] == ["proved", "definition", "definition"]


def test_a_remainder_is_what_is_left() -> None:
    text = r"Let $Z \in \mathbb{R}^{d \times d}$. Then $Z = Y + E$ with $E = Z - Y$."
    assert verdicts(text)[-1] == "definition"
    assert verdicts(text)[-2] == "proved"


def test_parts_that_do_not_add_up_are_refuted() -> None:
    wrong = SQUARE + f"Write $M = M_s + M_a$ with {HALVES}".replace("M - M", "M + M")
    assert "refuted" in verdicts(wrong)


def test_an_equation_that_is_solved_for_another_symbol_still_defines() -> None:
    text = r"""Let $x \in \mathbb{R}^d$ be a column, $W \in \mathbb{R}^{d \times d}$. The code is
    $f = W x$, and $g = f + x$, so that $x = g - f$."""
    assert verdicts(text)[-3:] == ["definition", "definition", "proved"]


def test_a_label_below_a_symbol_is_no_index_of_its_definition() -> None:
    assert verdicts(SQUARE + f"Let {HALVES}")[-2:] == ["definition", "definition"]


def test_an_index_counts_for_other_letters() -> None:
    text = r"""Let $x_i \in \mathbb{R}^d$ be columns, $W \in \mathbb{R}^{d \times d}$.
    Let $y_i = W x_i$. Then $y_j = W x_j$, and $y_k = W^\top x_k$."""
    assert verdicts(text)[-2:] == ["proved", "refuted"]
