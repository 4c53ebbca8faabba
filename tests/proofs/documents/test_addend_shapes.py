"""Biases and errors without a declaration have the shape of what they are added to."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

AUTOENCODER = (
    r"An activation $x \in \mathbb{R}^d$ is encoded, $f = \mathrm{ReLU}(W_e (x - b_d) + b_e)$, and "
    r"decoded, $\hat x = W_d f + b_d$, with $W_e \in \mathbb{R}^{m \times d}$ and "
    r"$W_d \in \mathbb{R}^{d \times m}$. The error is $\epsilon = x - \hat x$."
)
TRANSCODER = (
    r"Let $u \in \mathbb{R}^{p}$, $E \in \mathbb{R}^{r \times p}$ and "
    r"$D \in \mathbb{R}^{q \times r}$. The code is $z = \mathrm{ReLU}(E u + c_{in})$, and "
    r"what is written is $y = D z + c_{out}$."
)


@pytest.mark.parametrize(
    ("said", "claim", "verdict"),
    [
        (AUTOENCODER, r"x = W_d f + b_d + \epsilon", "proved"),
        (AUTOENCODER, r"x = W_d f + b_e + \epsilon", "shape"),
        (AUTOENCODER, r"x - b_d = W_d f + \epsilon", "proved"),
        (TRANSCODER, r"y - c_{out} = D\, \mathrm{ReLU}(E u + c_{in})", "proved"),
        (TRANSCODER, r"y - c_{out} = D\, \mathrm{ReLU}(E u) + c_{out}", "refuted"),
    ],
)
def test_a_bias_is_as_long_as_what_it_is_added_to(said: str, claim: str, verdict: str) -> None:
    *before, found = check_text(f"{said} Hence ${claim}$.").equations
    assert found.verdict == verdict
    assert not any(each.is_wrong for each in before)


def test_a_bias_beside_a_matrix_may_be_a_row() -> None:
    text = (
        r"Let $X \in \mathbb{R}^{n \times d}$, $W \in \mathbb{R}^{d \times k}$ and $Y = X W + b$. "
        r"With $b \in \mathbb{R}^{k}$, $b^\top b$ is a number, $y = b^\top b$."
    )
    assert not any(each.is_wrong for each in check_text(text).equations)
