"""Second definitions of a symbol: those of another case, and those that contradict the first."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

HEAD = (
    r"Let $X \in \mathbb{R}^{n \times d}$, $A \in \mathbb{R}^{n \times n}$, "
    r"$W_V \in \mathbb{R}^{d \times k}$ and $W_O \in \mathbb{R}^{k \times d}$. "
    r"A head returns $h(X) = A X W_V W_O$."
)
STATES = (
    r"Let $x_i \in \mathbb{R}^{d}$ be the states, $A \in \mathbb{R}^{n \times n}$ and "
    r"$W \in \mathbb{R}^{d \times d}$. Position $i$ receives $y_i = \sum_j A_{ij} W x_j$."
)


@pytest.mark.parametrize(
    "text",
    [
        rf"{HEAD} Without attention it is $h(X) = X W_V W_O$.",
        rf"{HEAD} For $n = 1$ this is $h(X) = X W_V W_O$.",
        rf"{HEAD} An MLP has $h(X) = X W_V W_O$ instead.",
        rf"{HEAD} Some write the transposed layout $h(X) = W_O^\top W_V^\top X A$ in other papers.",
        rf"{STATES} With uniform attention $y_i = \frac{{1}}{{n}} \sum_j W x_j$.",
        rf"{STATES} Suppose the attention is on position $s$. Then $y_i = W x_s$.",
        f"{STATES}\n\n## Layer two\n\nThe state is now $y_i = x_i + W x_i$.",
    ],
)
def test_another_case_is_not_accused(text: str) -> None:
    assert not any(each.is_wrong for each in check_text(text).equations)


@pytest.mark.parametrize(
    "text",
    [
        rf"{HEAD} With $W_{{OV}} = W_V W_O$ this reads $h(X) = X W_{{OV}}$.",
        rf"{STATES} In words, $y_i = \sum_j A_{{ji}} W x_j$.",
        rf"{STATES} If nothing happens in between, $W y_i = \sum_j A_{{ji}} W W x_j$.",
    ],
)
def test_a_definition_that_contradicts_the_first_is_refuted(text: str) -> None:
    last = check_text(text).equations[-1]
    assert last.verdict == "refuted", last.why


def test_a_product_of_two_columns_is_wrong_whatever_another_section_says() -> None:
    text = (
        "# Notation\n\n"
        r"The states are $X \in \mathbb{R}^{n \times d}$. "
        "\n\n# Ablation\n\n"
        r"Let $p \in \mathbb{R}^d$ be a column. Then $X - X (p p^\top) = X - X p p$."
    )
    assert check_text(text).equations[-1].verdict == "shape"


def test_a_vector_that_should_be_transposed_is_a_shape_error() -> None:
    text = (
        r"Let $W \in \mathbb{R}^{d \times d}$ and $M \in \mathbb{R}^{d \times d}$. For states, "
        r"$x_i^\top W (x_j + M x_j) = x_i W x_j + x_i^\top W M x_j$."
    )
    last = check_text(text).equations[-1]
    assert last.verdict == "shape", last.why
    assert r"= x_i^\top W x_j" in (last.suggestion or "")


def test_what_one_sentence_declares_is_declared() -> None:
    text = r"For $W \in \mathbb{R}^{m \times d}$ and $x \in \mathbb{R}^d$, $2 W x = W x + W x$."
    assert check_text(text).undeclared == {}
