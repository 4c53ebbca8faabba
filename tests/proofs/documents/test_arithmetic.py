# ruff: noqa: E501 (a text is one line)
"""Inverses and determinants of matrices that are given in numbers."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

GIVEN = r"Take $M = \begin{bmatrix} 2 & 1 \\ 0 & 3 \end{bmatrix}$ and $L = \begin{bmatrix} 1 & -1 \\ 4 & 2 \end{bmatrix}$. "
CLAIMS = [
    (r"$M^{-1} = \frac{1}{6} \begin{bmatrix} 3 & -1 \\ 0 & 2 \end{bmatrix}$", "proved"),
    (r"$M^{-1} = \frac{1}{6} \begin{bmatrix} 3 & 1 \\ 0 & 2 \end{bmatrix}$", "refuted"),
    (r"$\det(M) = 6$", "proved"),
    (r"$\det(L) = 5$", "refuted"),
    (r"$\det(M L) = \det(M) \det(L)$", "proved"),
    (r"$\det(M + L) = \det(M) + \det(L)$", "refuted"),
    (r"$\det(M) = 6.02$", "undecided"),  # it may be rounded
    (r"$\det(N) = 5$", "undecided"),
]


@pytest.mark.parametrize(("claim", "verdict"), CLAIMS)
def test_an_equation_of_given_numbers_has_the_verdict(claim: str, verdict: str) -> None:
    assert check_text(GIVEN + claim + ".").equations[-1].verdict == verdict


@pytest.mark.parametrize(("entry", "verdict"), [("4", "proved"), ("-4", "refuted")])
def test_an_equation_of_numbers_has_no_condition(entry: str, verdict: str) -> None:
    text = rf"If the weight is a turn, $\begin{{bmatrix}} 1 & 2 \end{{bmatrix}} \otimes \begin{{bmatrix}} 3 \\ 4 \end{{bmatrix}} = \begin{{bmatrix}} 3 & 6 \\ {entry} & 8 \end{{bmatrix}}$."
    assert check_text(text).equations[-1].verdict == verdict
