"""Words near a false equation that assume nothing of what is false in it, and those that do."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

NORM = (
    r"Let $\beta, b \in \mathbb{R}^{1 \times d}$ and $W, D \in \mathbb{R}^{d \times d}$. "
    r"Let $\hat{x}$ be the normalized row. "
)
STREAM = (
    r"The state of a token after layer $l$ is $x^l \in \mathbb{R}^{d}$, and "
    r"$x \in \mathbb{R}^{nd}$ are the stacked states. Let $N, M \in \mathbb{R}^{d \times d}$ and "
    r"$y_i = x_i + M x_{i'}$. "
)
FROZEN = (
    r"Let $A \in \mathbb{R}^{n \times n}$. If we freeze the scale $\sigma_i > 0$ of each position, "
    r"the norm is a diagonal matrix $D = \operatorname{diag}(1/\sigma_1, \dots, 1/\sigma_n)$, and "
    r"a head becomes "
)
TURNED = (
    r"Let $R \in \mathbb{R}^{d \times d}$ be orthogonal, $R^\top R = I$. If we replace $W_O$ by "
    r"$R W_O$ and $W_V$ by $W_V R^\top$, the product stays: "
)
SINGULAR = (
    r"Let $W \in \mathbb{R}^{d \times m}$ and $W = P \Sigma R^\top$, where $P^\top P = I_k$, "
    r"$R^\top R = I_k$ and $\Sigma$ is diagonal. Then "
)
ROTATED = (
    r"Let $W_V \in \mathbb{R}^{k \times d}$ and $x \in \mathbb{R}^{d}$. When the stream is "
    r"rotated by an orthogonal matrix $R$, we have $R^\top R = I$ and "
)
FORM = r"Let $x, y \in \mathbb{R}^n$, $A \in \mathbb{R}^{n \times n}$. Every bilinear form is "
OPEN = r"Let $\hat{x}$ be the normalized row and $S$ be whitened. "
CLAIMS = [
    (NORM, r"(\hat{x} D + \beta) W + b = \hat{x} D W + \beta W + b", "proved"),
    (NORM, r"(\hat{x} D + \beta) W + b = \hat{x} D W + \beta D W + b", "refuted"),
    (NORM, r"(\hat{x} D + \beta) W + b = \hat{x} W + \beta W + b", "undecided"),  # of x̂ itself
    (STREAM, r"x_i^\top N y_j = x_i^\top N x_j + x_i^\top N M x_{j'}", "proved"),
    (STREAM, r"x_i^\top N (x_j + M x_{j'}) = x_i^\top N x_j + x_i^\top M N x_{j'}", "refuted"),
    (FROZEN, r"(A \otimes W_O)(D \otimes I_d) = (A D) \otimes W_O", "proved"),
    (FROZEN, r"(A \otimes W_O)(D \otimes I_d) = (D A) \otimes W_O", "refuted"),
    (TURNED, r"(W_V R^\top)(R W_O) = W_V W_O", "proved"),
    (TURNED, r"(W_V R)(R W_O) = W_V W_O", "refuted"),
    (SINGULAR, r"W R = P \Sigma", "proved"),
    (SINGULAR, r"W R = \Sigma P", "refuted"),
    (ROTATED, r"(W_V R^\top)(R x) = W_V x", "needs-hypothesis"),
    (ROTATED, r"(W_V R)(R x) = W_V x", "refuted"),
    (FORM, r"\langle x, y \rangle = x^\top A y", "needs-hypothesis"),
    (OPEN, r"\hat{x} W S = \hat{x} W", "undecided"),
]


@pytest.mark.parametrize(("words", "claim", "verdict"), CLAIMS)
def test_a_word_excuses_only_what_it_may_be_about(words: str, claim: str, verdict: str) -> None:
    *_, found = check_text(f"{words}${claim}$.").equations
    assert found.tex == claim
    assert found.verdict == verdict


def test_an_edit_that_holds_under_a_hypothesis_is_proposed() -> None:
    *_, found = check_text(f"{TURNED}$(W_V R)(R W_O) = W_V W_O$.").equations
    assert found.suggestion == "(W_V R^{T}) (R W_O) = W_V W_O"
