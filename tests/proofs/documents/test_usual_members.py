"""Entries by rows and columns of which a text says nothing."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SCORES = (
    r"Let $X \in \mathbb{R}^{n \times d}$, $W, M \in \mathbb{R}^{d \times k}$, $Q = X W$ and "
    r"$K = X M$. The scores are $S = \frac{1}{\sqrt{k}} Q K^\top$. "
)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"So $S_{ij} = \frac{1}{\sqrt{k}} x_i W M^\top x_j^\top$.", "needs-hypothesis"),
        (r"So $S_{ij} = \frac{1}{k} x_i W M^\top x_j^\top$.", "refuted"),
        (r"So $S_{ij} = \frac{1}{\sqrt{k}} x_j W M^\top x_i^\top$.", "refuted"),
        (r"So $S_{ij} = \frac{1}{\sqrt{k}} q_i^\top k_j$.", "needs-hypothesis"),
        (r"So $S_{ij} = \frac{1}{\sqrt{k}} q_j^\top k_i$.", "refuted"),
        (r"If $k = 1$, $S_{ij} = \frac{1}{k} x_i W M^\top x_j^\top$.", "needs-hypothesis"),
        # What is not in the definition of S may say what other scores are.
        (r"With a bias, $S_{ij} = \frac{1}{\sqrt{k}} q_i^\top k_j + b_{i-j}$.", "definition"),
        (r"With positions, $S_{ij} = q_i^\top k_j + q_i^\top r_j$.", "definition"),
    ],
)
def test_an_entry_by_rows_that_nothing_declares(claim: str, verdict: str) -> None:
    last = check_text(SCORES + claim).equations[-1]
    assert last.verdict == verdict, last.why


def test_scores_of_another_section_are_other_ones() -> None:
    text = rf"{SCORES}" + "\n\n## Linear attention\n\n" + r"Now $S_{ij} = q_i^\top k_j$."
    assert not check_text(text).equations[-1].is_wrong
