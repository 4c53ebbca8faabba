"""A symbol that is declared again may be another one; columns of ones that words name."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

DEFINED = (
    "Let $A \\in \\mathbb{R}^{n \\times n}$, $P = I_n - \\frac1n 1 1^\\top$. "
    "Then $P A = A - \\frac1n 1 1^\\top A$."
)
SUPPOSED = "Let $P \\in \\mathbb{R}^{n \\times n}$ with $P P = P$. Then $P P P = P$."
NEW = "Let $P \\in \\mathbb{R}^{n \\times n}$ be a matrix. Then $P P P = P P$."
ANY = "For any matrix $P \\in \\mathbb{R}^{n \\times n}$, $P P P = P P$."
SAME = "Then $P P P = P P$."


@pytest.mark.parametrize("said", [DEFINED, SUPPOSED])
@pytest.mark.parametrize(
    ("later", "verdict"),
    [
        (f"# Two\n\n{NEW}", "needs-hypothesis"),
        (f"# Two\n\n{SAME}", "proved"),
        (SAME, "proved"),
        (ANY, "needs-hypothesis"),
        (f"# Two\n\n{NEW.replace('P P P = P P', '(P P) P = P (P P)')}", "proved"),
    ],
)
def test_what_was_said_of_another_one_is_asked_for(said: str, later: str, verdict: str) -> None:
    *_, last = check_text(f"# One\n\n{said}\n\n{later}").equations
    assert last.verdict == verdict
    assert verdict == "proved" or "line 3" in last.why


@pytest.mark.parametrize(
    "words",
    [
        "Let $e \\in \\mathbb{R}^d$ be the column of ones.",
        "Let $e \\in \\mathbb{R}^d$ denote the all-ones vector.",
        "where $e \\in \\mathbb{R}^d$ is the vector of\nall ones.",
        "Let $e \\in \\mathbb{R}^d$ be the column of ones, $e^\\top e = d$.",
    ],
)
def test_a_column_of_ones_has_ones(words: str) -> None:
    claims = {
        "C e = 0": "proved",
        "\\frac{1}{d^2} e e^\\top e e^\\top = \\frac{1}{d} e e^\\top": "proved",
        "e e^\\top = I_d": "refuted",
    }
    text = f"{words} Let $C = I_d - \\frac{{1}}{{d}} e e^\\top$. Then ${'$ and $'.join(claims)}$."
    found = {each.tex: each.verdict for each in check_text(text).equations}
    assert {claim: found[claim] for claim in claims} == claims


def test_a_column_of_other_entries_is_none_of_ones() -> None:
    text = "Let $e \\in \\mathbb{R}^d$ be a column, and $C = I_d - \\frac1d e e^\\top$. $C e = 0$."
    assert check_text(text).equations[-1].verdict != "proved"


def test_the_axis_of_a_softmax_counts_in_all_sections() -> None:
    said = "Let $S \\in \\mathbb{R}^{n \\times n}$, where the softmax is taken\nrow by row."
    claim = "For every column $c \\in \\mathbb{R}^n$, $\\operatorname{softmax}(S + 1 c^\\top)"
    text = f"# A\n\n{said}\n\n# B\n\n{claim} = \\operatorname{{softmax}}(S)$."
    assert check_text(text).equations[-1].verdict == "refuted"


def test_a_letter_that_another_section_defines_has_the_shape_of_its_definition() -> None:
    first = "# Sizes\n\nLet $A \\in \\mathbb{R}^{n \\times n}$.\n\n"
    sums = (
        "# Sums\n\nGiven $X, Y \\in \\mathbb{R}^{3 \\times 2}$ let $Z = X + Y \\in "
        "\\mathbb{R}^{3 \\times 2}$.\n\n"
    )
    turned = "# Transpose\n\nLet $X \\in \\mathbb{R}^{3 \\times 2}$. Let $Z = X^\\top$."
    assert check_text(first + sums + turned).equations[-1].verdict in ("definition", "undecided")


def test_a_worked_number_is_none_of_a_general_claim() -> None:
    said = "Let $P \\in \\mathbb{R}^{n \\times n}$ with $P P = P$.\n\n"
    example = "Take $P = \\begin{bmatrix} 1 & 1 \\\\ 0 & 1 \\end{bmatrix}$.\n\n"
    claim = "The projection satisfies $P (I - P) = 0$."
    assert check_text(said + example + claim).equations[-1].verdict != "refuted"


def test_a_term_of_letters_that_another_section_declares_is_not_accused() -> None:
    text = (
        "# Rows\n\n"
        r"Let $X \in \mathbb{R}^{n \times d}$."
        "\n\n# SVD\n\n"
        r"Let $U, R \in \mathbb{R}^{d \times r}$."
        "\n\n# RoPE\n\n"
        r"Let $B \in \mathbb{R}^{h \times d}$. There is one circuit, $B^\top R_{n-m} B$."
    )
    assert not [e for e in check_text(text).equations if e.is_wrong]


def test_a_map_is_no_equation() -> None:
    text = (
        r"Let $W \in \mathbb{R}^{m \times d}$, $x \in \mathbb{R}^d$. The map $x \mapsto W x$, or "
    )
    found = check_text(text + r"$x \mapsto W W x$.").equations[-2:]
    assert [each.verdict for each in found] == ["definition", "shape"]


@pytest.mark.parametrize(
    ("right", "verdict"),
    [(r"\|G\|_F^2 - \mathrm{tr}(G)", "undecided"), (r"\sum_{i} G_{ij}^2 + G_{jj}^2", "refuted")],
)
def test_a_sum_over_unequal_indices_may_be_over_pairs(right: str, verdict: str) -> None:
    text = r"Let $G \in \mathbb{R}^{n \times n}$. Then $\sum_{i \ne j} G_{ij}^2 = "
    assert check_text(f"{text}{right}$.").equations[-1].verdict == verdict
