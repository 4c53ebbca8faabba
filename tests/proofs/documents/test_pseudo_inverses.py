# ruff: noqa: E501 (a text is one line)
"""Pseudo-inverses: their shapes, and the four conditions of Penrose."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SVD = r"Let $B = U S V^\top$ be the thin SVD of $B \in \mathbb{R}^{m \times n}$, with $U \in \mathbb{R}^{m \times r}$, $V \in \mathbb{R}^{n \times r}$, $U^\top U = I_r$, $V^\top V = I_r$, and $S \in \mathbb{R}^{r \times r}$ diagonal with positive entries. The pseudo-inverse is "
RIGHT = SVD + r"$B^{+} = V S^{-1} U^\top$. "
TALL = r"Let $A \in \mathbb{R}^{m \times n}$ have full column rank, with the pseudoinverse "
CLAIMS = [
    (RIGHT, "proved"),
    (SVD + r"$B^{+} = V S U^\top$.", "refuted"),
    (SVD + r"$B^{+} = U S^{-1} V^\top$.", "shape"),
    (RIGHT + r"Then $B B^{+} B = B$.", "proved"),
    (RIGHT + r"Then $B B^{+} = U U^\top$.", "proved"),
    (RIGHT + r"Then $B B^{+} = V V^\top$.", "shape"),
    (TALL + r"$A^+ = (A^\top A)^{-1} A^\top$.", "proved"),
    (TALL + r"$A^+ = A^\top (A^\top A)^{-1}$.", "shape"),
    (TALL + r"$A^\dagger$. Then $(A A^\dagger)^2 = A A^\dagger$.", "proved"),
    (r"Let $A \in \mathbb{R}^{m \times n}$. Then $(A A^\dagger)^2 = A A^\dagger$.", "undecided"),  # perhaps an adjoint
]  # fmt: skip


@pytest.mark.parametrize(("text", "verdict"), CLAIMS)
def test_a_pseudo_inverse_has_the_verdict(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict
