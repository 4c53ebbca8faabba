# ruff: noqa: E501 (a text is one line)
"""Worked examples: matrices in numbers, of symbols that are declared with other sizes."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

DECLARED = (
    "# States\n\nLet $X \\in \\mathbb{R}^{n \\times d}$ and $N \\in \\mathbb{R}^{d \\times d}$."
)
EXAMPLE = (
    "# Example\n\nTake $X = \\begin{bmatrix} 1 & 0 \\\\ 1 & 2 \\end{bmatrix}$ and "
    "$N = \\begin{bmatrix} 1 & 1 \\\\ 0 & 1 \\end{bmatrix}$."
)
ANOTHER = "Now take $X = \\begin{bmatrix} 2 & 0 \\\\ 0 & 1 \\end{bmatrix}$."


def grid(*entries: object) -> str:
    a, b, c, d = entries
    return f"\\begin{{bmatrix}} {a} & {b} \\\\ {c} & {d} \\end{{bmatrix}}"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"Then $X N = {grid(1, 1, 1, 3)}$.", "proved"),
        (f"Then $X N = {grid(1, 1, 1, 4)}$.", "refuted"),
        (f"Then $N X = {grid(2, 2, 1, 2)}$.", "proved"),
        ("Take $w = \\begin{pmatrix} 1 & 2 \\end{pmatrix}$. Then $w X w^\\top = 11$.", "proved"),
        ("Take $w = \\begin{pmatrix} 1 & 2 \\end{pmatrix}$. Then $w X w^\\top = 9$.", "refuted"),
        (f"Then $N^{{-1}} = {grid(1, -1, 0, 1)}$.", "proved"),
        (f"Then $N^{{-1}} = {grid(1, 1, 0, 1)}$.", "refuted"),
        (f"Then $N^2 = {grid(1, 2, 0, 1)}$.", "proved"),
        (f"Then $N^2 = {grid(1, 1, 0, 1)}$.", "refuted"),
        (f"Take $N = {grid(1, 1, 0, 1)}$. Then $N^3 = 3 N - 2 I$.", "proved"),
        (f"Take $N = {grid(1, 1, 0, 1)}$. Then $N^3 = N$.", "refuted"),
        ("Then $N^3 = N$.", "needs-hypothesis"),  # of any matrix, perhaps
        (f"{ANOTHER} Then $X N = {grid(2, 2, 0, 1)}$.", "proved"),
        (f"{ANOTHER} Then $X N = {grid(1, 1, 1, 3)}$.", "refuted"),
        (f"Let $T = X N$. Then $T = {grid(1, 1, 1, 3)}$.", "proved"),
        (f"Let $T = X N$. Then $T = {grid(1, 1, 1, 4)}$.", "refuted"),
        (f"Rounded, $X N = {grid(1, '1.0', 1, '2.9')}$.", "undecided"),
        (f"# Other\n\nHere $X N = {grid(7, 2, 0, 1)}$.", "undecided"),
    ],
)
def test_an_example_is_computed_in_its_section(text: str, verdict: str) -> None:
    *_, last = check_text(f"{DECLARED}\n\n{EXAMPLE}\n\n{text}").equations
    assert last.verdict == verdict, last.why


def test_an_example_may_be_of_a_matrix_that_another_section_defines() -> None:
    said = "# Weights\n\nLet $W, X \\in \\mathbb{R}^{d \\times n}$ and $N = W X^\\top$."
    example = f"# Example\n\nLet $N = {grid(1, 1, 0, 1)}$."
    for value, verdict in ((2, "proved"), (3, "refuted")):
        text = f"{said}\n\n{example}\n\nThen $N N = {grid(1, value, 0, 1)}$."
        assert check_text(text).equations[-1].verdict == verdict


def test_a_comment_may_set_the_order_of_vec_after_given() -> None:
    said = "Let $A, X \\in \\mathbb{R}^{n \\times n}$."
    claim = f"{said} $\\mathrm{{vec}}(A X) = (A \\otimes I)\\mathrm{{vec}}(X)$."
    for comment, verdict in (("given: vec: rows", "proved"), ("given: vec: cols", "refuted")):
        report = check_text(f"<!-- otimes: {comment} -->\n{claim}")
        assert [each.verdict for each in report.equations][-1] == verdict


TALL = "Let $B \\in \\mathbb{R}^{p \\times r}$ and $A \\in \\mathbb{R}^{r \\times d}$."
SMALL = "Put $B = \\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}$ and $A = \\begin{pmatrix} 3 & -1 \\end{pmatrix}$."


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("\\mathrm{tr}(B A) = \\mathrm{tr}(A B)", "proved"),
        ("\\mathrm{tr}(B A) = 1", "proved"),
        ("\\mathrm{tr}(B A) = 2", "refuted"),
        ("\\det(B A) = 0", "proved"),
        ("\\det(B A) = 1", "refuted"),
        ("(B A)^2 = B A", "proved"),
        ("B A B = B", "proved"),
        ("A B A = B", "shape"),
    ],
)
def test_numbers_are_square_or_not_whatever_was_declared(claim: str, verdict: str) -> None:
    *_, last = check_text(f"{TALL}\n\n# Example\n\n{SMALL} We get ${claim}$.").equations
    assert last.verdict == verdict, last.why


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"Take $X = {grid(1, 3, 2, 0)}$ and $A = {grid(1, 0, 1, 1)}$. So $X A^T = {grid(1, 4, 2, 2)}$.", "proved"),
        (f"Take $X = {grid(1, 3, 2, 0)}$ and $A = {grid(1, 0, 1, 1)}$. So $X A^T = {grid(4, 3, 2, 0)}$.", "refuted"),
        (f"Take $X = {grid(1, 2, 0, 1)}$. Then $G = {grid(5, 2, 2, 1)}$.", "proved"),
        (f"Take $X = {grid(1, 2, 0, 1)}$. Then $G = {grid(1, 2, 2, 5)}$.", "refuted"),
        (f"Take $X = {grid(1, 2, 0, 1)}$.\n\n# Another\n\nLet $G = {grid(1, 2, 2, 5)}$.", "definition"),
        (f"Take $X = {grid(1, 2, 0, 1)}$.\n\nNow let $G = {grid(1, 2, 2, 5)}$.", "definition"),
        (f"Take $X = {grid(1, 2, 0, 1)}$. Such a matrix of full rank is $G = {grid(1, 2, 2, 5)}$.", "refuted"),
        (f"Take $X = {grid(1, 2, 0, 1)}$. A matrix of full rank is $G = {grid(1, 2, 2, 5)}$.", "definition"),
        (f"Let $p = (1, 2)^T$ and $N = p 1^T - 1 p^T$. Then $N = {grid(0, -1, 1, 0)}$.", "proved"),
        (f"Let $p = (1, 2)^T$ and $N = p 1^T - 1 p^T$. Then $N = {grid(0, 1, -1, 0)}$.", "refuted"),
        (f"Take $X = {grid(2, 1, 1, 1)}$. Then $X X^{{-1}} = I$.", "proved"),
        (f"Take $X = {grid(2, 1, 1, 1)}$. Then $X X^{{-1}} = I_3$.", "shape"),
    ],
)  # fmt: skip
def test_numbers_are_put_in_for_what_a_definition_says_in_general(text: str, verdict: str) -> None:
    said = "Let $X \\in \\mathbb{R}^{d \\times n}$, $X = [x_1, \\dots, x_n]$, $A = \\mathrm{softmax}(S)$ and $G = X X^T$."
    *_, last = check_text(f"{said}\n\n# Example\n\n{text}").equations
    assert last.verdict == verdict, last.why
