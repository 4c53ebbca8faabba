"""Comments at the ends of rows, unit vectors, and values of examples in other sections."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SQUARE = r"Let $A, B \in \mathbb{R}^{n \times n}$."


@pytest.mark.parametrize(
    "comment",
    [
        r"&& \text{reverse}",
        r"&& \text{(by the rule for products)}",
        r"&& \text{since } A A = A A",
        r"& \text{reverse}.",
        r"\quad \text{(reverse)}",
        r"\tag{3}",
        r"&& \text{reverse} \tag{4}",
    ],
)
def test_a_chain_goes_on_after_a_comment(comment: str) -> None:
    rows = rf"(A B)^\top &= B^\top A^\top {comment} \\ &= A^\top B^\top {comment}"
    text = f"{SQUARE}\n\n$$\n\\begin{{aligned}}\n{rows}\n\\end{{aligned}}\n$$\n"
    first, second = check_text(text + text).equations[-2:]
    assert (first.verdict, second.verdict) == ("proved", "refuted"), second.why


def test_words_that_join_are_no_comment() -> None:
    rows = r"A^\top &= A \quad \text{if symmetric} \\ A + B &= B + A"
    text = f"{SQUARE}\n\n$$\n\\begin{{aligned}}\n{rows}\n\\end{{aligned}}\n$$\n"
    assert not any(each.is_wrong for each in check_text(text).equations)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"\|u - v\|^2 = 2 - 2 u^\top v", "needs-hypothesis"),
        (r"\|u - v\|^2 = 2 + 2 u^\top v", "refuted"),
    ],
)
def test_vectors_of_length_one_are_offered(claim: str, verdict: str) -> None:
    text = rf"Let $u, v \in \mathbb{{R}}^d$ be unit vectors. Then ${claim}$."
    last = check_text(text).equations[-1]
    assert last.verdict == verdict, last.why


def test_an_example_of_another_section_proves_nothing() -> None:
    example = "## Example\n\nTake $n = 1$ and $B = 2$."
    text = f"## One\n\n{SQUARE}\n\n{example}\n\n## Two\n\n$$(A B)^\\top = A^\\top B^\\top$$"
    assert check_text(text).equations[-1].verdict == "refuted"


def test_claims_about_all_matrices_are_no_assumptions() -> None:
    text = rf"{SQUARE} For all such matrices $A B = B A$ and $(A B)^\top = A^\top B^\top$."
    *_, first, second = check_text(text).equations
    assert (first.verdict, second.verdict) == ("needs-hypothesis", "refuted")


def test_all_hypotheses_about_the_factors_of_a_product_are_offered() -> None:
    text = (
        r"Let $P \in \mathbb{R}^{d \times k}$, $Q \in \mathbb{R}^{k \times d}$ and "
        r"$M = P Q = U S Y^\top$, where $U, Y \in \mathbb{R}^{d \times k}$ have orthonormal "
        r"columns, $U^\top U = I$ and $Y^\top Y = I$, and $S \in \mathbb{R}^{k \times k}$. Then "
    )
    for claim, wrong in ((r"S^\top S", False), (r"2 S^\top S", True)):
        last = check_text(rf"{text} $\mathrm{{tr}}(M^\top M) = \mathrm{{tr}}({claim})$.").equations
        assert last[-1].is_wrong == wrong, last[-1].why
