# ruff: noqa: E501 (a text is one line here)
"""Forms of published notes: other marks around formulas, usual macros, arrows, tensor notation."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text


def found(text: str) -> list[tuple[str, str]]:
    """Return the equations of a text with their verdicts."""
    return [(each.tex, each.verdict) for each in check_text(text).equations]


def test_backticks_inside_dollars_are_no_part_of_a_formula() -> None:
    text = r"Let $`A \in \mathbb{R}^{n \times n}`$. Then $`(A^T)^T = A`$ and $`(A A)^T = A`$."
    assert [verdict for _, verdict in found(text)] == ["definition", "proved", "needs-hypothesis"]


def test_usual_macros_are_known_unless_a_document_defines_them() -> None:
    text = r"Let $A \in \mathbb{R}^{n \times n}$ and $x \in \mathbb{R}^n$. $\norm{A x}^2 = x^T A^T A x$"
    assert found(text)[-1][1] == "proved"
    assert found(r"\newcommand{\norm}[1]{N(#1)}" + f"\n\n{text}")[-1][1] != "proved"
    assert found(r"$\vect{x} + \vect{y} = \vect{y} + \vect{x}$")[-1][1] == "proved"


def test_an_arrow_joins_statements_with_space_around_it_or_at_the_beginning() -> None:
    text = r"Let $A, B \in \mathbb{R}^{n \times n}$. $(A B)^T = B^T A^T \quad \implies \quad (B A)^T = A^T B^T$"
    assert [verdict for _, verdict in found(text)[1:]] == ["proved", "proved"]
    assert found(r"$\Rightarrow 2 + 2 = 4$") == [("2 + 2 = 4", "proved")]


def test_the_space_between_rows_of_a_matrix_is_no_entry() -> None:
    rows = r"\begin{bmatrix} 1 & 2 \\[0.5em] 3 & 4 \end{bmatrix}"
    assert found(rf"${rows} = \begin{{bmatrix}} 1 & 2 \\ 3 & 4 \end{{bmatrix}}$")[0][1] == "proved"
    assert found(rf"${rows} = \begin{{bmatrix}} 1 & 2 \\ 3 & 5 \end{{bmatrix}}$")[0][1] == "refuted"


@pytest.mark.parametrize(
    "text",
    [
        r"Let $Id \in \mathbb{R}^{n \times n}$, $A \in \mathbb{R}^{n \times n}$ and $W \in \mathbb{R}^{d \times d}$. $T = Id + A \otimes W$",
        r"Let $x \in \mathbb{R}^{n \times d}$. The gate is $g(x) = x \cdot \mathrm{sigmoid}(x)$.",
        r"Let $a, e, f \in \mathbb{R}^n$. In the orthonormal basis, $a = \langle e, a \rangle e + \langle f, a \rangle f$.",
        r"With repeated indices, $\delta_{ij} \delta_{kl} v_l = \delta_{ij} v_k$.",
        r"The derivative is one: $\bar{y} = \bar{z} \odot 1$.",
    ],
)
def test_what_is_right_in_its_notation_is_not_accused(text: str) -> None:
    assert not {"refuted", "shape"} & {verdict for _, verdict in found(text)}


def test_a_dot_and_an_identity_are_still_read_where_they_have_one_meaning() -> None:
    assert found(r"Let $Q, K \in \mathbb{R}^{n \times d}$. $S = Q \cdot K$")[-1][1] == "shape"
    sizes = r"Let $A \in \mathbb{R}^{n \times n}$ and $W \in \mathbb{R}^{d \times d}$. "
    assert found(sizes + r"$T = A + I_n W$")[-1][1] == "shape"


def test_a_symbol_with_a_number_has_the_shape_of_its_definition() -> None:
    text = r"Let $B \in \mathbb{R}^{n \times n}$ and $u \in \mathbb{R}^n$. With $B_2 = B u$ we get $u^T B_2 = u^T B u$."
    assert found(text)[-1][1] == "proved"
    parts = r"Let $X, C \in \mathbb{R}^{n \times n}$. With $X_1 = X + C X$ we get $X_1 - C X = X$ and $X_1 - X = C$."
    assert [verdict for _, verdict in found(parts)[-2:]] == ["proved", "refuted"]


def test_a_letter_that_is_let_anew_is_another_one() -> None:
    text = (
        "We write $B = A^T$ for it.\n\n"
        r"Let $A$ and $B$ be $m \times n$ matrices. With $E = (A + B)^T$ we have $E = A^T + B^T$."
    )
    assert not {"refuted", "shape"} & {verdict for _, verdict in found(text)}


def test_what_is_zero_in_one_sentence_is_not_zero_elsewhere() -> None:
    text = (
        r"There is equality iff $\mathbf{v} = \mathbf{0}$. "
        "\n\n"
        r"Then $u^T W \mathbf{v} = \langle u, \mathbf{v} \rangle$."
    )
    assert found(text)[-1][1] != "proved"
    assert found(r"We set $p = 1$. Later, $p = 1$.") == [("p = 1", "definition")] * 2
