"""Rules about any matrices whose letters a text declares with other shapes, and ones as a 1."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SHAPES = r"Let $A, B \in \mathbb{R}^{n \times n}$, $X \in \mathbb{R}^{n \times d}$. "


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"The rule $\mathrm{vec}(A X B) = (B^T \otimes A) \mathrm{vec}(X)$ helps.", "undecided"),
        (r"The rule $\mathrm{vec}(A X B) = (B \otimes A) \mathrm{vec}(X)$ helps.", "shape"),
        (r"Recall that $(X A B)^T = B^T A^T X^T$.", "undecided"),
        (r"Recall that $(X A B)^T = A^T B^T X^T$.", "shape"),
        (r"We have $(X A B)^T = B^T A^T X^T$.", "proved"),  # X may be declared wrongly
    ],
)
def test_a_rule_is_about_any_matrices(text: str, verdict: str) -> None:
    assert check_text(SHAPES + text).equations[-1].verdict == verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"If all rows are equal, $X = 1 b^\top$ with $b \in \mathbb{R}^d$.", "definition"),
        (r"If all rows are equal, $X = 1 b^\top$ with $b \in \mathbb{R}^n$.", "shape"),
    ],
)
def test_a_factor_1_is_a_column_of_ones_where_it_conforms_only_so(text: str, verdict: str) -> None:
    found = check_text(SHAPES + text).equations
    (equation,) = [each for each in found if each.tex.startswith("X =")]
    assert equation.verdict == verdict, equation.why


def test_a_zero_matrix_leaves_the_other_terms_of_a_sum() -> None:
    text = (
        r"Let $P \in \mathbb{R}^{n \times d}$ and $Y = X + P$. Without positions, $P = 0$, we have "
        r"$Y Y^\top = X X^\top$, and $Y^\top Y = X X^\top$."
    )
    found = check_text(SHAPES + text).equations
    assert [each.verdict for each in found[-2:]] == ["proved", "shape"]
