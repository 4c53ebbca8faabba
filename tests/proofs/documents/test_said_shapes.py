"""Shapes that sentences say of products."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SAID = r"Let $Q, K \in \mathbb{R}^{n \times r}$ and $V \in \mathbb{R}^{n \times d}$. "


@pytest.mark.parametrize(
    ("sentence", "wrong"),
    [
        (r"Its state $K^\top V$ is $r \times d$.", False),
        (r"Its state $K^\top V$ is $d \times r$.", True),
        (r"The $d \times r$ matrix $K^\top V$ is kept.", True),
        (r"The state $K^\top V$, a $d \times r$ matrix, is kept.", True),
        (r"The pattern $Q K^\top$ has the shape $n \times r$.", True),
        (r"The state $K^\top V$ is $d \times r$ or $r \times d$.", False),
        (r"If it is turned, $K^\top V$ is $d \times r$.", False),
        (r"The state $K^\top V$ is not $d \times r$.", False),
        (r"The state $K^\top V$ is $d_1 \times r$.", False),  # another name of d, perhaps
    ],
)
def test_a_product_has_the_shape_of_its_factors(sentence: str, wrong: bool) -> None:
    verdicts = {each.verdict for each in check_text(SAID + sentence).equations}
    assert verdicts == ({"definition", "shape"} if wrong else {"definition"})


def test_a_list_with_a_transposed_symbol_declares_this() -> None:
    text = r"Let $A, B^\top$ be $d \times k$ and $x \in \mathbb{R}^d$. Then "
    assert check_text(text + r"$A B x = x^\top B^\top A^\top$.").equations[-1].verdict == "shape"
    trace = check_text(text + r"$\mathrm{tr}(A B) = \mathrm{tr}(B A)$.").equations[-1]
    assert trace.verdict == "proved"
    rank = check_text(text + r"Its rank is $\operatorname{rank}(A B) \ge k$.").equations[-1]
    assert rank.verdict == "refuted"
