"""Products that a text factors, and claims about them."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SHAPES = r"""Let $A \in \mathbb{R}^{d \times k}$ and $B \in \mathbb{R}^{k \times d}$, and let
$U, Z \in \mathbb{R}^{d \times k}$ and $\Sigma \in \mathbb{R}^{k \times k}$. """
SAID = [
    r"We decompose $A B = U \Sigma Z^\top$. ",
    r"The SVD of the product is $AB=U\Sigma Z^\top$. ",
]


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        (r"U A B Z = U U \Sigma Z^\top Z", "shape"),
        (r"A B A B = U \Sigma Z^\top U \Sigma Z^\top", "proved"),
        (r"A B A B = U \Sigma Z U \Sigma Z", "shape"),
        (r"B^\top A^\top = Z \Sigma^\top U^\top", "proved"),
        (r"A B (A B)^\top = Z \Sigma Z^\top Z \Sigma^\top Z^\top", "refuted"),
        (r"A B A = Z \Sigma Z^\top A", "needs-hypothesis"),  # of A nothing else is said
    ],
)
def test_a_product_that_is_factored_is_put_in(said: str, equation: str, verdict: str) -> None:
    assert check_text(f"{SHAPES}{said}Then ${equation}$.").equations[-1].verdict == verdict


def test_a_product_is_not_factored_without_such_a_word() -> None:
    found = check_text(
        rf"{SHAPES}Hence $A B = U \Sigma Z^\top$. Then $B^\top A^\top = Z$."
    ).equations
    assert [each.verdict for each in found[-2:]] == ["needs-hypothesis", "shape"]


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [(r"B^\top B Q = Q \Lambda", "proved"), (r"B^\top B Q = \Lambda Q", "refuted")],
)
def test_a_gram_matrix_may_be_factored(equation: str, verdict: str) -> None:
    said = (
        r"Let $B, Q, \Lambda \in \mathbb{R}^{d \times d}$ with $Q^\top Q = I$. "
        r"Diagonalise $B^\top B = Q \Lambda Q^\top$. "
    )
    assert check_text(f"{said}Then ${equation}$.").equations[-1].verdict == verdict


def test_what_does_not_conform_is_put_in_for_no_product() -> None:
    said = (
        r"Let $A, \Sigma \in \mathbb{R}^{m \times n}$ and $V \in \mathbb{R}^{n \times n}$. "
        r"There is an eigendecomposition $A^\top A = V \Sigma^2 V^\top$. "
    )
    found = check_text(rf"{said}Then $A^\top A = A^\top A V V^\top$.").equations
    assert [each.verdict == "shape" for each in found[-2:]] == [True, False]


def test_a_claim_that_is_false_in_general_may_be_true_with_a_factorisation() -> None:
    text = r"""Let $B \in \mathbb{R}^{d \times r}$ and $A \in \mathbb{R}^{r \times k}$. From the SVD
    $BA = U S V^\top$ we take $C = US^{1/2}$ and $D = S^{1/2}V^\top$. Then """
    assert check_text(text + "$C D = BA$.").equations[-1].verdict == "proved"
    assert check_text(text + "$C D = 2 BA$.").equations[-1].verdict == "refuted"
