# ruff: noqa: E501 (a text is one line)
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


def test_the_definition_of_another_case_counts_in_its_section() -> None:
    said = r"With a bias $b \in \mathbb{R}^d$, $h(X) = A X W_V W_O + \mathbf{1} b^\top$."
    biased = f"{HEAD} {said}"
    claim = r"Then $h(X) - \mathbf{1} b^\top = A X W_V W_O$."
    for text in (f"{biased} {claim}", f"{biased}\n\n{claim}"):
        assert not any(each.is_wrong for each in check_text(text).equations)
    later = f"## One\n\n{biased}\n\n## Two\n\nIn words, $h(X) = W_V X A W_O$."
    assert check_text(later).equations[-1].is_wrong


def test_the_shape_of_a_defined_vector_accuses_a_new_definition() -> None:
    text = (
        r"Let $W \in \mathbb{R}^{m \times d}$, $k \in \mathbb{R}^{1 \times m}$ and "
        r"$v \in \mathbb{R}^{1 \times d}$. Put $\lambda = v - k W$. Then $$Z = W + %s .$$"
    )
    for update, verdict in ((r"k^\top \lambda", "definition"), (r"\lambda^\top k", "shape")):
        last = check_text(text % update).equations[-1]
        assert last.verdict == verdict, last.why


RUN = r"$X^{l+1} = X^l + F_l(X^l)$"
STATE = r"Let $S_t = S_{t-1} + v_t k_t^\top$ with $S_0 = 0$."
SQUARE = r"Let $A, B \in \mathbb{R}^{n \times n}$."
NUMBERS = r"For instance, $A = \begin{bmatrix} 1 & 0 \\ 1 & 0 \end{bmatrix}$."


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"If layer $l$ computes $F_l$, then {RUN}, and $X^L = X^0 + \\sum_{{l=0}}^L F_l(X^l)$.", "refuted"),
        (f"If layer $l$ computes $F_l$, then {RUN}, and $X^L = X^0 + \\sum_{{l=0}}^{{L-1}} F_l(X^l)$.", "definition"),
        (f"{STATE} So $S_t = S_{{t-1}} + k_t v_t^\\top$.", "refuted"),
        (f"{STATE} Some authors store the transpose, $S_t = S_{{t-1}} + k_t v_t^\\top$.", "undecided"),
        (f"{STATE} With columns for keys, $S_t = S_{{t-1}} + k_t v_t^\\top$.", "undecided"),
        (f"{SQUARE} A head that has not been trained has $(A B)^T = A^T B^T$.", "refuted"),
        (f"{SQUARE} A rule that has not been proved is $(A B)^T = A^T B^T$.", "undecided"),
        (f"{SQUARE} We write what is not correct, that $(A B)^T = A^T B^T$.", "undecided"),
        (f"{SQUARE}\n\n{NUMBERS}\n\n$(B A B)^T = B^T A B^T$.", "refuted"),
        (f"{SQUARE}\n\n{NUMBERS.replace('1 & 0', '1 & 1')}\n\n$(B A B)^T = B^T A B^T$.", "undecided"),
    ],
)  # fmt: skip
def test_an_excuse_explains_why_an_equation_is_false(text: str, verdict: str) -> None:
    last = check_text(text).equations[-1]
    assert last.verdict == verdict, last.why


CONTEXTS = r"""Let $A \in \mathbb{R}^{n \times n}$, $x \in \mathbb{R}^{n \times d}$,
$W \in \mathbb{R}^{d \times d}$
and $y \in \mathbb{R}^d$, a column. The scores are $S = x W x^\top$.

"""
ONE_CASE = [
    r"In particular, a context that repeats one token, $x = \mathbf 1_n y^\top$, is sent to $A x$.",
    r"For example, let $x = \mathbf 1_n y^\top$.",
    r"Take a context of one token, $x = \mathbf 1_n y^\top$.",
    r"Imagine $x = \mathbf 1_n y^\top$.",
]


@pytest.mark.parametrize("case", ONE_CASE)
@pytest.mark.parametrize("heading", ["", "## Later\n\n"])
@pytest.mark.parametrize(
    "claim", [r"x^\top x = n y y^\top", r"\mathrm{rank}(S) \le 1", r"x W = \mathbf 1_n y^\top W"]
)
def test_what_a_symbol_is_in_one_case_proves_nothing_elsewhere(
    case: str, heading: str, claim: str
) -> None:
    text = f"{CONTEXTS}{case}\n\n{heading}We have ${claim}$."
    assert check_text(text).equations[-1].verdict in ("needs-hypothesis", "undecided")


@pytest.mark.parametrize("case", ONE_CASE)
def test_what_a_symbol_is_in_one_case_counts_there(case: str) -> None:
    text = CONTEXTS + case + r" Then $x^\top x = n y y^\top$."
    assert check_text(text).equations[-1].verdict == "proved"


def test_a_definition_of_a_declared_symbol_counts_in_the_section() -> None:
    text = (
        CONTEXTS
        + "The context is $x = \\mathbf 1_n y^\\top$.\n\nWe have $x^\\top x = n y y^\\top$."
    )
    assert check_text(text).equations[-1].verdict == "proved"
