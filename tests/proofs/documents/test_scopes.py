# ruff: noqa: E501, ISC001 (a text is one line here)
"""What is supposed, solved or given in numbers in one place does not count in another."""

from __future__ import annotations

from otimes.proofs.documents.check import check_text


def found(text: str) -> list[tuple[str, str]]:
    """Return the equations of a text with their verdicts."""
    return [(each.tex, each.verdict) for each in check_text(text).equations]


def test_a_supposition_proves_nothing_in_another_section() -> None:
    text = "# All\n\nLet $m = 2$.\n\n## One\n\nSuppose that $A X = I$ holds.\n\nThen $A X B = B$.\n\n## Two\n\nWe study $A X B = B$.\n"
    assert [verdict for _, verdict in found(text)[2:]] == ["proved", "needs-hypothesis"]
    before = "# All\n\nLet $m = 2$.\n\n## One\n\nWe study $A X B = B$.\n\n## Two\n\nSuppose that $A X = I$ holds.\n"
    assert found(before)[1][1] == "needs-hypothesis"


def test_a_system_does_not_say_what_its_right_side_is() -> None:
    text = (
        r"When a system $A x = b$ has no solution, we minimise. The minimum has $A^T A y = A^T b$."
    )
    assert [verdict for _, verdict in found(text)] == ["definition", "needs-hypothesis"]
    text = (
        r"Let $A, B \in \mathbb{R}^{m \times n}$. We solve the normal equations $A^T A x = B A x$."
    )
    assert found(text)[-1][1] == "shape"


def test_numbers_of_two_examples_are_not_compared() -> None:
    text = (
        "# One\n\n" r"Let $P = U V$ be a product." "\n\n"
        r"For $P = \begin{pmatrix} 1 & 2 \\ 3 & 5 \end{pmatrix}$ and $U = \begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}$ this is easy." "\n\n"
        r"For the matrix $P = \begin{pmatrix} 2 & 2 \\ 2 & 2 \end{pmatrix}$ it is not."
    )  # fmt: skip
    assert not {"refuted", "shape"} & {verdict for _, verdict in found(text)}
    computed = r"Let $p = (1, 2)^T$ and $N = p 1^T - 1 p^T$. Then $N = \begin{pmatrix} 0 & 1 \\ 1 & 0 \end{pmatrix}$."
    assert found(computed)[-1][1] == "refuted"


def test_a_case_in_words_is_a_condition() -> None:
    text = r"For positive definite matrices, $U \Sigma V^T = Q \Lambda Q^T$ and $\Sigma = \Lambda$."
    assert "refuted" not in [verdict for _, verdict in found(text)]


def test_a_term_that_is_called_undefined_is_not_accused() -> None:
    wide = r"\begin{pmatrix} 1 & 2 \end{pmatrix} \begin{pmatrix} 3 & 4 \end{pmatrix}"
    assert [v for _, v in found(f"Explain why the product\n\n$${wide}$$\n\nis not defined.")] == [
        "undecided"
    ]
    asked = f"In this order, ${wide}$ may not even be defined."
    assert [v for _, v in found(asked)] == ["undecided"]
    assert [v for _, v in found(f"The product is\n\n$${wide}$$\n\nand it is short.")] == ["shape"]


def test_a_row_with_a_left_side_of_its_own_begins_anew() -> None:
    text = (
        r"Let $S \in \mathbb{R}^{d \times d}$ and $w \in \mathbb{R}^d$." "\n"
        r"$$\begin{aligned} g &= -2 S w + 2 w \\ -2 S w + 2 w &= 0 \end{aligned}$$" "\n"
        r"$$\begin{aligned} h &= S w \\ & - w \\ &= (S - I) w \end{aligned}$$"
    )  # fmt: skip
    texts = [tex for tex, _ in found(text)]
    assert r"g = -2 S w + 2 w" in texts
    assert found(text)[-1] == (r"S w - w = (S - I) w", "proved")


def test_an_identity_without_a_size_may_be_any() -> None:
    assert found(r"Let $I = I_4$ in what follows.")[0][1] != "refuted"
