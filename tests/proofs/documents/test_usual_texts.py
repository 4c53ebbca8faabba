# ruff: noqa: E501 (a text is one line)
"""Correct equations of the usual texts about probes, graphs and attention, and slips beside them.

Each was called wrong once: the reading assumed what the text does not say.
"""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text


def verdicts(text: str) -> list[str]:
    return [equation.verdict for equation in check_text(text).equations]


def last(text: str) -> str:
    return verdicts(text)[-1]


WRONG = ("refuted", "shape")

LISTED = (
    r"We collect $x_1, \dots, x_N \in \mathbb{R}^D$, the rows of $X \in \mathbb{R}^{N \times D}$."
)
ROWS = r"Let $X \in \mathbb{R}^{N \times D}$ have the rows $x_i$."
TURNED = r"Let $X \in \mathbb{R}^{N \times D}$ have the rows $x_i^\top$."
MULTIPLIED = r"With $W \in \mathbb{R}^{k \times D}$ we have $y_i = W x_i$."
AS_ROWS = r"With $W \in \mathbb{R}^{D \times k}$ we have $y_i = x_i W$."
OUTER, INNER = r"\sum_i x_i x_i^\top", r"\sum_i x_i^\top x_i"


@pytest.mark.parametrize(
    ("said", "gram", "verdict"),
    [
        (LISTED, OUTER, "proved"),
        (f"{ROWS} {MULTIPLIED}", OUTER, "proved"),
        (f"{ROWS} {MULTIPLIED}", INNER, "undecided"),
        (ROWS, OUTER, "undecided"),  # rows or columns: not said
        (ROWS, INNER, "proved"),
        (f"{ROWS} {AS_ROWS}", OUTER, "shape"),
        (TURNED, OUTER, "proved"),
        (TURNED, INNER, "shape"),
    ],
)
def test_rows_are_columns_where_a_text_uses_them_so(said: str, gram: str, verdict: str) -> None:
    assert last(rf"{said} Then $X^\top X = {gram}$.") == verdict


@pytest.mark.parametrize(
    ("entry", "verdict"), [(r"x_i^\top W x_j", "proved"), (r"x_j^\top W x_i", "refuted")]
)
def test_scores_of_rows_that_are_columns(entry: str, verdict: str) -> None:
    said = r"Tokens are rows $x_i \in \mathbb{R}^d$ of $X \in \mathbb{R}^{n \times d}$."
    assert last(rf"{said} The scores are $S = X W X^\top$, and so $S_{{ij}} = {entry}$.") == verdict


def test_columns_are_no_rows() -> None:
    said = r"Let $X \in \mathbb{R}^{D \times N}$ have the columns $x_i$."
    assert last(rf"{said} Then $X X^\top = {OUTER}$.") == "proved"
    assert last(rf"{said} Then $X X^\top = {INNER}$.") == "shape"


SIZES = r"Let $X$ be $n \times d$ and $P$ be $m \times m$."


def test_numbered_weights_have_shapes_of_their_own() -> None:
    assert last(rf"{SIZES} Then $(X W_1 P) P^\top W_2 = X W_1 (P P^\top W_2)$.") == "proved"
    assert last(rf"{SIZES} Then $(X W_1 P) P^\top W_2 = X W_1 (P^\top P W_2)$.") == "refuted"
    said = r"$W_1, W_2 \in \mathbb{R}^{d \times d}$."  # declared: of one shape
    assert last(rf"{SIZES} {said} Then $X W_1 P W_2 = X W_1 (P W_2)$.") == "shape"


PERMUTATION = r"Let $P$ be a permutation matrix. Then $P^\top P = I$."


def test_what_is_called_a_permutation_is_square() -> None:
    assert last(rf"{PERMUTATION} Then $X P P^\top = X$.") == "needs-hypothesis"
    assert last(rf"{PERMUTATION} Then $X P P = X$.") in (*WRONG, "undecided")
    tall = r"Let $U \in \mathbb{R}^{d \times k}$ be orthogonal, $U^\top U = I$."
    assert last(rf"{tall} Then $X U U^\top = X$.") == "undecided"


def test_a_start_counts_for_both_sides_of_a_chain() -> None:
    start = r"Start from $m_0 = v_0 = 0$ and iterate $v_t = b v_{t-1} + (1 - b) g_t \odot g_t$."
    unrolled = r"Unrolled, $v_t = (1 - b) \sum_{s=1}^t b^{t-s} g_s \odot g_s$."
    assert last(f"{start} {unrolled}") == "proved"
    assert last(f"{start} {unrolled.replace('b^{t-s}', 'b^{t-s+1}')}") in WRONG


STATIONARY = r"""Let $A \in \mathbb{R}^{n \times n}$ be symmetric with degrees $d_i = \sum_j A_{ij}$ and
$D = \mathrm{diag}(d_1, \dots, d_n)$. Put $P = D^{-1} A$ and $L = D - A$. """


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("L 1 = 0", "proved"),
        ("P 1 = 1", "proved"),
        (r"1^\top P = 1^\top", "refuted"),
        (r"1^\top A = 1^\top D", "needs-hypothesis"),  # A is symmetric
    ],
)
def test_degrees_are_row_sums(claim: str, verdict: str) -> None:
    assert last(f"{STATIONARY}Then ${claim}$.") == verdict


def test_entries_that_are_defined_are_not_any_entries() -> None:
    roots = STATIONARY.replace(r"\sum_j A_{ij}", r"\sqrt{\sum_j A_{ij}}")
    assert last(rf"{roots}Then $1^\top A = 1^\top D$.") == "undecided"


def test_pi_that_is_transposed_is_a_vector() -> None:
    said = r"Let $P \in \mathbb{R}^{n \times n}$ be row-stochastic."
    assert last(rf"{said} A distribution $\pi$ obeys $\pi^\top P = \pi^\top$.") == (
        "needs-hypothesis"
    )
    assert last(r"The area is $\pi r^2 = \pi r r$.") == "proved"


def test_a_fixed_point_is_an_assumption() -> None:
    said = r"Let $P \in \mathbb{R}^{n \times n}$ and $x \in \mathbb{R}^n$."
    assert last(f"{said} A fixed point obeys $P x = x$.") == "needs-hypothesis"
    assert last(f"{said} Then $P P x = P x x$.") in WRONG
    centred = r"Let $C = I - \frac{1}{n} 1 1^\top$ be the $n \times n$ centering matrix."
    assert last(rf"{centred} For $x \in \mathbb{{R}}^n$ we have $C x = x$.") in WRONG


STATE = r"""Let $k, q, v \in \mathbb{R}^d$ and $\phi : \mathbb{R}^d \to \mathbb{R}^m$. The state $S$ is a
$d \times m$ matrix."""
UPDATE = r"$(S + v k^\top) q = S q + v (k^\top q)$"


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        (r"Without a feature map, $\phi(x) = x$,", "undecided"),
        ("In the special case $m = d$", "undecided"),
        ("In an example with $m = d = 4$", "undecided"),
        ("As $k = q$", "shape"),
    ],
)
def test_sizes_are_equal_where_the_text_says_so(case: str, verdict: str) -> None:
    assert last(f"{STATE}\n\n{case} the update is {UPDATE}.") == verdict


def test_a_pattern_of_a_head_is_no_entry_of_that_of_a_layer() -> None:
    said = r"""Let $A \in \mathbb{R}^{n \times n}$ be symmetric.

# Attention

"""
    mean = r"With heads, $A_l = \frac1H \sum_{h=1}^H A_{l,h}$."
    assert last(f"{said}{mean}") == "definition"
    assert (
        last(r"Let $W \in \mathbb{R}^{n \times n}$. Then $s_i = \sum_{j=1}^m W_{ij}$.") == "shape"
    )


MEMORY = r"""# Memories

Take $F(x) = V f(K x)$ with $K \in \mathbb{R}^{m \times d}$; $f$ is applied to each entry.

# Autoencoders

With $W_e \in \mathbb{R}^{M \times d}$, $W_d \in \mathbb{R}^{d \times M}$ and $x \in \mathbb{R}^d$, """


def test_a_function_of_another_section_acts_on_no_entry() -> None:
    composed = r"$f(x) = \mathrm{ReLU}(W_e x)$ and $\hat x = W_d f(x)$."
    assert last(f"{MEMORY}{composed}") == "definition"
    assert last(rf"{MEMORY}$\hat x = W_d f(x)$.") == "shape"


def test_a_code_that_is_not_negative_is_a_vector() -> None:
    said = r"Let $W \in \mathbb{R}^{d \times m}$. A code $c \ge 0$ is decoded as $W c$."
    assert last(rf"{said} So $\mathrm{{ReLU}}(W^\top W c) = c$.") == "undecided"
    number = r"For $c \ge 0$ we have $\mathrm{ReLU}(c x) = c\, \mathrm{ReLU}(x)$."
    assert last(number) == "proved"


def test_a_letter_in_sans_serif_is_another_letter() -> None:
    said = r"Let $X \in \mathbb{R}^{d \times n}$, $W \in \mathbb{R}^{k \times d}$ and $Q = W X$."
    rows = r"Put $\mathsf X = X^\top$ and $\mathsf Q = Q^\top$."
    assert last(rf"{said} {rows} Then $\mathsf Q = \mathsf X W^\top$.") == "proved"
    assert last(rf"{said} {rows} Then $\mathsf Q = W \mathsf X$.") in WRONG
    assert last(r"Then $(A B)^{\mathsf T} = B^{\mathsf T} A^{\mathsf{T}}$.") == "proved"


PROJECTED = r"Let $X \in \mathbb{R}^{n \times d}$. "


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (r"For a projection $P = P^\top = P^2$,", "needs-hypothesis"),
        (r"If $P = P^\top$,", "undecided"),
        (r"Then $P^\top = P$. So", "refuted"),
    ],
)
def test_what_a_sentence_says_of_one_matrix_is_a_hypothesis(said: str, verdict: str) -> None:
    assert last(rf"{PROJECTED}{said} $\|X P\|_F^2 = \operatorname{{tr}}(X P P X^\top)$.") == verdict
