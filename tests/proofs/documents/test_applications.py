"""Functions of other arguments, cases for one paragraph, and claims in terms of what is defined."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

AFFINE = r"""Let $W \in \mathbb{R}^{d \times d}$ and $x, y, b \in \mathbb{R}^d$, and let
$X \in \mathbb{R}^{n \times d}$. We define $f(x) = W x + b$.

"""
HEAD = r"""Let $X, Y \in \mathbb{R}^{n \times d}$, $A, P \in \mathbb{R}^{n \times n}$ and
$W \in \mathbb{R}^{d \times d}$. We define $h(X) = A X W$.

"""
ADAPTED = r"""Let $W, X \in \mathbb{R}^{d \times d}$, $B \in \mathbb{R}^{d \times r}$ and
$C \in \mathbb{R}^{r \times d}$. The adapted weight is $W' = W + \alpha B C$.

"""
SUBSPACE = r"""Let $U \in \mathbb{R}^{d \times r}$ with $U^\top U = I$, and $P = U U^\top$. Then """


def last(text: str) -> str:
    return check_text(text).equations[-1].verdict


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        ("f(y) = W y + b", "proved"),
        ("f(y) = W y", "refuted"),
        ("f(W x) = W^2 x + b", "proved"),
        ("f(W x) = W f(x)", "refuted"),
        ("f(x + y) = f(x) + f(y)", "refuted"),
        ("f(X) = X W^\\top + 1 b^\\top", "definition"),  # of all rows: another function
    ],
)
def test_a_function_is_applied_to_other_arguments(equation: str, verdict: str) -> None:
    assert last(f"{AFFINE}Then ${equation}$.") == verdict


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        ("h(X + Y) = A X W + A Y W", "proved"),
        ("h(P X) = P h(X)", "undecided"),  # A may be computed from X
    ],
)
def test_a_pattern_may_depend_on_the_argument(equation: str, verdict: str) -> None:
    assert last(f"{HEAD}Then ${equation}$.") == verdict


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        ("W' X = W X + \\alpha B C X", "proved"),
        ("W' X = W X + B C X", "refuted"),
        ("(W')^2 = W^2 + 2 \\alpha W B C + \\alpha^2 B C B C", "refuted"),
        ("W'' = W + \\alpha C B", "shape"),
        ("V = W + \\mu", "definition"),  # a vector for each row is possible
    ],
)
def test_a_greek_factor_is_a_number(equation: str, verdict: str) -> None:
    assert last(f"{ADAPTED}Then ${equation}$.") == verdict


def test_it_is_said_where_a_greek_letter_may_be_a_vector() -> None:
    found = check_text(r"Then $v_1^\top \lambda_2 v_2 = \lambda_2 v_1^\top v_2$.").equations[-1]
    assert found.verdict == "proved"
    assert "is a number" in found.why


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        ("P^2 = P", "proved"),
        ("(I - P) U = 0", "proved"),
        ("(I - P) U = U", "refuted"),
        ("P^2 = 0", "refuted"),
    ],
)
def test_what_a_sentence_lets_be_is_assumed(equation: str, verdict: str) -> None:
    assert last(f"{SUBSPACE}${equation}$.") == verdict


def test_an_equation_that_holds_at_an_optimum_is_not_refuted() -> None:
    text = r"Let $X \in \mathbb{R}^{n \times d}$, $y \in \mathbb{R}^n$, $b \in \mathbb{R}^d$ and "
    text += r"$r = y - X b$. "
    assert last(text + r"At the optimum $X^\top r = 0$.") == "needs-hypothesis"
    assert last(text + r"Then $X^\top r = 0$.") == "refuted"  # nothing says what b is


def test_a_case_counts_for_its_paragraph() -> None:
    text = r"""Let $A \in \mathbb{R}^{n \times n}$ and $X \in \mathbb{R}^{n \times d}$.

For a stream of rank one $X = u v^\top$ we get $A X = A u v^\top$.

The Gram matrix is $X X^\top = v^\top v u u^\top$."""
    verdicts = [each.verdict for each in check_text(text).equations]
    assert verdicts[-2] == "proved"
    assert verdicts[-1] != "proved"


def test_what_each_of_several_has_is_meant_from_there_on() -> None:
    text = r"""Let $X \in \mathbb{R}^{n \times d}$. There are $H$ heads, each with
$W_Q^h \in \mathbb{R}^{d \times k}$.

The queries are $Q^h = W_Q^h X$."""
    assert last(text) == "shape"


@pytest.mark.parametrize(
    ("equation", "verdict"),
    [
        ("\\sum_j f_j = f_i + \\sum_{j \\neq i} f_j", "proved"),
        ("\\sum_j f_j = \\sum_{j \\neq i} f_j", "refuted"),
        (
            "\\sum_j a_j f_i^\\top f_j = a_i f_i^\\top f_i + \\sum_{j \\ne i} a_j f_i^\\top f_j",
            "proved",
        ),
        ("\\sum_j a_j f_i^\\top f_j = a_i f_i^\\top f_i + \\sum_{j} a_j f_i^\\top f_j", "refuted"),
    ],
)
def test_a_sum_leaves_out_an_index(equation: str, verdict: str) -> None:
    text = "Let $f_i \\in \\mathbb{R}^d$ and $a_i \\in \\mathbb{R}$ for each $i$."
    assert last(f"{text} Then ${equation}$.") == verdict


def test_what_can_be_written_is_claimed() -> None:
    text = r"""Let $X \in \mathbb{R}^{n \times d}$ and $W, V \in \mathbb{R}^{d \times k}$.
The scores are $S = X W V^\top X^\top$."""
    assert last(text + r" With $M = W V^\top$ we can write $S = X M^\top X^\top$.") == "refuted"
    assert last(text + r" From here on we write $S = X X^\top$.") == "definition"


@pytest.mark.parametrize(
    ("pattern", "verdict"), [("A", "needs-hypothesis"), (r"A^\top", "refuted")]
)
@pytest.mark.parametrize("rows", ["", r"$h(X)_i = \sum_j A_{ij} W x_j$, so that "])
def test_a_head_under_vec_is_what_the_text_defines(rows: str, pattern: str, verdict: str) -> None:
    """Neither does a symbol without a shape of its own keep the others from being decided."""
    said = (
        r"Let $x_j \in \mathbb{R}^d$ be the columns of $X \in \mathbb{R}^{d \times n}$, "
        r"$A \in \mathbb{R}^{n \times n}$ and $W \in \mathbb{R}^{d \times d}$. "
    )
    claim = rf"$\mathrm{{vec}}(h(X)) = ({pattern} \otimes W) \mathrm{{vec}}(X)$."
    assert last(f"{said}{rows}$h(X) = W X A^\\top$. Then {claim}") == verdict


LAYER = r"""Let $X \in \mathbb{R}^{n \times d}$, $W \in \mathbb{R}^{d \times m}$ and
$V \in \mathbb{R}^{m \times d}$. Let $\Pi \in \mathbb{R}^{m \times m}$ be a permutation. """


@pytest.mark.parametrize(
    "words", ["acts on each entry", "is applied to every coordinate", "acts entry by entry"]
)
def test_a_function_acts_entry_by_entry_where_words_say_so(words: str) -> None:
    right, wrong = (rf"$g(X W \Pi) {p} V = g(X W) V$." for p in (r"\Pi^\top", r"\Pi"))
    assert last(f"{LAYER}Here $g$ {words}. Then {right}") == "needs-hypothesis"
    assert last(f"{LAYER}Here $g$ {words}. Then {wrong}") == "refuted"
    assert last(f"{LAYER}Then {wrong}") == "undecided"
