# ruff: noqa: E501 (a text is one line)
"""Functions of numbers, and conditions that only declare a symbol."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SCORES = r"Let $Q, K \in \mathbb{R}^{N \times k}$ and $T = Q K^\top$. If every query is shifted by the same row $u \in \mathbb{R}^{1 \times k}$, then "
CLAIMS = [
    (r"$\mathrm{ReLU}(a) = \max(0, a)$", "proved"),
    (r"$\mathrm{ReLU}(a) - \mathrm{ReLU}(-a) = a$", "proved"),
    (r"$\mathrm{ReLU}(a) + \mathrm{ReLU}(-a) = a$", "refuted"),
    (r"Let $a \in \mathbb{R}$. $\mathrm{ReLU}(2 a) = 2 \max(a, 0)$", "proved"),
    (r"Let $a \in \mathbb{R}$. $\mathrm{GELU}(a) + \mathrm{GELU}(-a) = a$", "refuted"),
    (r"Let $a \in \mathbb{R}$. $\mathrm{ReLU}(a) + \mathrm{ReLU}(-a) = |a|$", "proved"),
    (r"Let $a \in \mathbb{R}$. $\mathrm{ReLU}(a) - \mathrm{ReLU}(-a) = |a|$", "refuted"),
    (SCORES + r"$(Q + \mathbf{1} u) K^\top = T + \mathbf{1} (K u^\top)^\top$.", "proved"),
    (SCORES + r"$(Q + \mathbf{1} u) K^\top = T + (K u^\top) \mathbf{1}^\top$.", "refuted"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "verdict"), CLAIMS)
def test_an_equation_of_numbers_has_the_verdict(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict
