# ruff: noqa: E501 (a text is one line)
"""Rows and columns that a text names, and rows and columns of a function that it defines."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

ROWS = r"""Let $A \in \mathbb{R}^{n \times n}$, $X \in \mathbb{R}^{n \times d}$ and
$W \in \mathbb{R}^{d \times d}$. The head is $h(X) = A X W$. """
COLUMNS = r"""Let $A \in \mathbb{R}^{n \times n}$, $W \in \mathbb{R}^{d \times d}$ and
$X = [x_1, \dots, x_n] \in \mathbb{R}^{d \times n}$. """
NEURONS = r"""Let $W_1 \in \mathbb{R}^{m \times d}$, $W_2 \in \mathbb{R}^{d \times m}$ and
$D \in \mathbb{R}^{m \times m}$ diagonal. """
SPARSE = r"""A decoder $D \in \mathbb{R}^{d \times f}$ maps $g \in \mathbb{R}^f$ to a sum of decoder
columns $\delta_k$. """


def last(text: str) -> str:
    return check_text(text).equations[-1].verdict


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"With $x_j$ the $j$-th row of $X$, $h(X)_{i,:} = \sum_j A_{ij} x_j W$.", "proved"),
        (r"With $x_j$ the $j$-th row of $X$, $h(X)_{i,:} = \sum_j A_{ji} x_j W$.", "refuted"),
        (r"With $x_j$ the $j$-th row of $X$, $h(X)_i = \sum_j A_{ji} x_j W$.", "refuted"),
        (r"Here $h(X)_i = y_i$.", "definition"),  # what y is may be said later
    ],
)
def test_a_row_of_a_function_is_that_of_its_definition(text: str, verdict: str) -> None:
    assert last(ROWS + text) == verdict


@pytest.mark.parametrize(
    ("entry", "whole", "verdict"),
    [
        ("A_{ij} W x_j", r"W X A^\top", "proved"),
        ("A_{ji} W x_j", r"W X A^\top", "refuted"),
        ("A_{ij} W x_j", "W X A", "refuted"),
    ],
)
def test_a_function_is_what_its_columns_are(entry: str, whole: str, verdict: str) -> None:
    said = rf"At $i$ we have $h(X)_i = \sum_{{j=1}}^n {entry}$. "
    assert last(f"{COLUMNS}{said}In all $h(X) = {whole}$.") == verdict


OF_TRANSPOSE = (
    r"Let $w_k$ be the $k$-th column of $W_1^\top$ and $v_k$ the $k$-th column of $W_2$. "
)
PAIRED = r"With rows $w_k^\top$ of $W_1$ and columns $v_k$ of $W_2$, "
OF_TWO = r"Let $u_k \in \mathbb{R}^d$ and $q_k \in \mathbb{R}^d$, the columns of $U$ and $Q$. "


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (rf"{OF_TRANSPOSE}Then $W_2 W_1 = \sum_k v_k w_k^\top$.", "proved"),
        (rf"{PAIRED}$W_2 D W_1 = \sum_k D_{{kk}} v_k w_k^\top$.", "needs-hypothesis"),  # diagonal
        (rf"{PAIRED}$W_2 D W_1 = \sum_k D_{{kk}} w_k v_k^\top$.", "refuted"),
        (rf"{OF_TWO}Then $U Q^\top = \sum_k u_k q_k^\top$.", "proved"),
        (rf"{OF_TWO}Then $U Q^\top = \sum_k q_k u_k^\top$.", "refuted"),
    ],
)
def test_members_are_of_the_matrix_that_the_sentence_names(text: str, verdict: str) -> None:
    assert last(NEURONS + text) == verdict


@pytest.mark.parametrize(("end", "verdict"), [("f", "proved"), ("d", "shape")])
def test_decoder_columns_are_those_of_the_decoder(end: str, verdict: str) -> None:
    assert last(rf"{SPARSE}So $D g = \sum_{{k=1}}^{end} g_k \delta_k$.") == verdict


def test_an_index_names_a_symbol_that_is_defined_without_it() -> None:
    centred = r"Let $X, M \in \mathbb{R}^{n \times d}$ and $X_c = X - M$. "
    assert last(rf"{centred}The covariance is $S = X_c^\top X_c$.") == "definition"
    assert last(r"Let $q_c = W x_c$. Then $s = q_c q_c$.") == "needs-hypothesis"


def test_a_definition_at_an_index_says_what_a_column_is() -> None:
    states = (
        r"Let $W_E \in \mathbb{R}^{d \times v}$ and $t_i \in \mathbb{R}^v$ with $x_i = W_E t_i$. "
    )
    claim = r"Then $W x_i + \sum_j A_{ij} W x_j = W W_E t_i + \sum_j A_{ij} W W_E t_j$."
    assert last(f"{COLUMNS}{states}{claim}") == "proved"


def test_a_state_is_the_sum_of_what_its_rows_say() -> None:
    rows = r"Let $K, V \in \mathbb{R}^{n \times h}$, and let $k_t$ and $v_t$ be the $t$-th rows of $K$ and $V$. "
    state = r"We set $S_t = \sum_{j=1}^{t} k_j^\top v_j$. "
    assert last(rf"{rows}{state}Then $S_t = S_{{t-1}} + k_t^\top v_t$.") == "proved"


@pytest.mark.parametrize(
    ("words", "value", "verdict"),
    [
        ("column $i$ of $H$ is", r"W \sum_j A_{ij} x_j", "proved"),
        ("the $i$-th column of $H$ is", r"W \sum_j A_{ij} x_j", "proved"),
        ("column $i$ of $H$ is", r"W \sum_j A_{ji} x_j", "refuted"),
        ("row $i$ of $H$ is", r"W \sum_j A_{ij} x_j", "definition"),  # says nothing that is decided
        ("it is not true that column $i$ of $H$ is", r"W \sum_j A_{ji} x_j", "definition"),
    ],
)
def test_words_say_what_a_column_is(words: str, value: str, verdict: str) -> None:
    assert last(f"{COLUMNS}The head is $H = W X A^\\top$, because {words} ${value}$.") == verdict


SUM = r"Let $X \in \mathbb{R}^{n \times d}$ and $G \in \mathbb{R}^{n \times m}$. "
EACH = r"where $x_i$ is the $i$-th row of $X$ and $g_i$ is the $i$-th row of $G$."


USED = r"So $y_i = x_i A$ and $h_i = g_i B$. "


@pytest.mark.parametrize(
    ("term", "verdict"), [(r"x_i^\top g_i", "proved"), (r"x_i g_i^\top", "shape")]
)
def test_rows_that_are_used_as_rows_are_no_columns(term: str, verdict: str) -> None:
    assert last(rf"{SUM}{USED}Then $X^\top G = \sum_{{i=1}}^n {term}$, {EACH}") == verdict


@pytest.mark.parametrize(
    ("term", "verdict"),
    [(r"x_i^\top g_i", "proved"), (r"x_i g_i^\top", "undecided"), (r"g_i x_i^\top", "shape")],
)
def test_each_of_two_symbols_is_a_member_of_its_own_matrix(term: str, verdict: str) -> None:
    assert last(rf"{SUM}Then $X^\top G = \sum_{{i=1}}^n {term}$, {EACH}") == verdict


STATES = r"""Let $K, V \in \mathbb{R}^{n \times k}$, where $k_j$ and $v_j$ are the $j$-th rows of
$K$ and $V$. Set $S_i = \sum_{j \le i} k_j^\top v_j$.

"""


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        (r"S_{i+1} = S_i + k_{i+1}^\top v_{i+1}", "proved"),
        (r"S_i = S_{i-1} + k_i^\top v_i", "proved"),
        (r"S_i = S_{i-1} + k_{i-1}^\top v_i", "refuted"),
        (r"S_{i+1} = S_i + k_i^\top v_i", "refuted"),
        (r"q_i S_i = \sum_{j \le i} (q_i k_j^\top) v_j", "proved"),
        (r"q_i S_i = \sum_{j \le i} (q_j k_i^\top) v_j", "refuted"),
    ],
)
def test_a_running_sum_of_rows_is_one_of_vectors(equation: str, verdict: str) -> None:
    """A family has a name of its own beside the size with its letter."""
    assert last(rf"{STATES}Then ${equation}$.") == verdict


ONE_BY_ONE = (
    r"""Let $M$ be $d \times d$ and $A$ be $n \times n$. Put $h_i = \sum_{j=1}^n A_{ij} M x_j$. """
)
STACKED = r"Let $X \in \mathbb{R}^{d \times n}$ have the columns $x_j$ and $H \in \mathbb{R}^{d \times n}$ the columns $h_i$. "
LISTED = r"Let $X = [x_1, \dots, x_n]$ be $d \times n$. "


@pytest.mark.parametrize(
    ("said", "value", "verdict"),
    [
        (STACKED, r"M X A^\top", "proved"),
        (STACKED, "M X A", "refuted"),
        (LISTED + r"Let $H = [h_1, \dots, h_n]$. ", r"M X A^\top", "proved"),
        (LISTED + r"Let $H = [h_1, \dots, h_n]$. ", "M X A", "refuted"),
        (LISTED + "The head is, ", "M X A", "refuted"),  # its letter says it, and a slip tells
        (LISTED + "The head is, ", "2 M X A^\\top", "needs-hypothesis"),  # H may be made of others
        (LISTED + "The head is, ", r"M X A^\top", "definition"),
    ],
)
def test_a_matrix_is_what_its_columns_are(said: str, value: str, verdict: str) -> None:
    assert last(f"{ONE_BY_ONE}{said}Then $H = {value}$.") == verdict


ELSEWHERE = r"""# States

The memory is $M_t = M_{t-1} + v_t k_t^\top$ with columns $k_t \in \mathbb{R}^r$ and
$v_t \in \mathbb{R}^d$.

# Rows

Let $K, V \in \mathbb{R}^{n \times d}$. """


@pytest.mark.parametrize(
    "words",
    [
        "Let $k_i$ and $v_i$ be the $i$-th rows of $K$ and $V$.",
        "Here $k_i$ is row $i$ of $K$, and $v_i$ is row $i$ of $V$.",
    ],
)
def test_rows_of_this_section_are_not_the_vectors_of_another(words: str) -> None:
    assert last(rf"{ELSEWHERE}{words} Then $K^\top V = \sum_i k_i^\top v_i$.") == "proved"
    assert last(rf"{ELSEWHERE}{words} Then $K^\top V = \sum_i v_i^\top k_i$.") == "refuted"


def test_rows_are_those_of_the_matrices_named_together() -> None:
    said = r"Let $K, V \in \mathbb{R}^{n \times d}$ and let $k_i$, $v_i$ denote their $i$-th rows. "
    assert last(rf"{said}Then $K^\top V = \sum_i k_i^\top v_i$.") == "proved"
    assert last(rf"{said}Then $K^\top V = \sum_i v_i^\top k_i$.") == "refuted"


SIZES = r"""Let $A \in \mathbb{R}^{n \times n}$, $M \in \mathbb{R}^{d \times d}$ and
$Q, K \in \mathbb{R}^{n \times k}$ with rows $q_i^\top$ and $k_i^\top$. """
SIDE_BY_SIDE = r"Let $A \in \mathbb{R}^{n \times n}$, $M \in \mathbb{R}^{d \times d}$ and $X = [x_1, \dots, x_n]$. "


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (SIZES + r"The scores are $S_{ij} = q_i^\top k_j$, so $S = %s$.", r"Q K^\top", r"K Q^\top"),
        (
            r"""Let $Q, K \in \mathbb{R}^{k \times n}$ have the columns $q_i$ and $k_j$. The scores
            are $S = %s$, with entries $S_{ij} = q_i^\top k_j$.""",
            r"Q^\top K",
            r"K^\top Q",
        ),
        (
            SIDE_BY_SIDE
            + r"""At position $i$, $y_i = x_i + \sum_j a_{ij} M x_j$, where $a_{ij}$ are the
            entries of $A$. In matrices, $Y = X + %s$.""",
            r"M X A^\top",
            "M X A",
        ),
        (
            r"""Let $X \in \mathbb{R}^{n \times d}$ have the rows $x_i^\top$, and let
            $A \in \mathbb{R}^{n \times n}$ and $M \in \mathbb{R}^{d \times d}$. Token $i$
            receives $h_i^\top = \sum_j A_{ij} x_j^\top M$. Then $H = %s$, with rows $h_i^\top$.""",
            "A X M",
            r"A^\top X M",
        ),
    ],
)
def test_a_matrix_is_what_its_entries_or_rows_are(text: str, right: str, wrong: str) -> None:
    assert not [each for each in check_text(text % right).equations if each.is_wrong]
    found = check_text(text % wrong).equations
    assert [each.verdict for each in found if each.tex.endswith(wrong)] == ["refuted"]


def test_entries_of_another_case_accuse_no_matrix() -> None:
    text = SIZES + (
        r"The scores are $S = Q K^\top$."
        "\n\n"
        r"ALiBi subtracts a distance, $S_{ij} = q_i^\top k_j - \mu (i - j)$. Let "
        r"$t \in \mathbb{R}^n$ be the positions. In matrices, "
        r"$S = Q K^\top - \mu (t \mathbf{1}^\top - \mathbf{1} t^\top)$."
    )
    assert not [each for each in check_text(text).equations if each.is_wrong]
