"""Addends of different lengths, whatever the symbols of a sum that are not declared stand for."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SAID = r"""Let $W \in \mathbb{R}^{k \times d}$, $U \in \mathbb{R}^{v \times d}$,
$\beta \in \mathbb{R}^d$, $b \in \mathbb{R}^k$ and $c \in \mathbb{R}^v$. """


@pytest.mark.parametrize(
    ("equation", "words", "wrong"),
    [
        (r"W \ell + b = \frac1\sigma W x + W \beta + b", "", False),
        (r"W \ell + b = \frac1\sigma W x + \beta + b", "", True),  # two vectors
        (r"W \ell + \rho = \frac1\sigma W x + c", "", True),  # neither size of W
        (r"W \ell + \rho = \frac1\sigma W x + \beta", "", False),  # if W is transposed
        (r"W \ell + \rho = \frac1\sigma W x + \beta", "Weights act from the left. ", True),
        (r"W (\ell + c) = W \ell + W c", "", True),
        (r"\ell U^\top + \rho = x U^\top + \tau c", "", False),  # no addend by itself
        (r"W \ell + 1 b^\top = x W + \rho", "", False),
    ],
)
def test_addends_have_one_length(equation: str, words: str, wrong: bool) -> None:
    found = check_text(f"{words}{SAID}Then ${equation}$.").equations[-1].verdict
    assert (found == "shape") == wrong
    assert found != "refuted"
