"""Conditions that say what is done or meant, and words that mean no shape."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

WEIGHTS = (
    "Let $W_Q, W_K \\in \\mathbb{R}^{d \\times k}$ and $N, M \\in \\mathbb{R}^{d \\times d}$. "
)
STATES = WEIGHTS + "Let $x_i \\in \\mathbb{R}^d$ be the state at $i$. "
HEAD = "Let $A, D \\in \\mathbb{R}^{n \\times n}$ and $W \\in \\mathbb{R}^{d \\times d}$. "
PERMUTED = (
    "Let $X \\in \\mathbb{R}^{n \\times d}$, $W_1 \\in \\mathbb{R}^{d \\times m}$ and "
    "$W_2 \\in \\mathbb{R}^{m \\times d}$. For a permutation matrix $P$ of size "
    "$m \\times m$ and an entrywise function $\\phi$, "
)
GRADIENT = (
    "Let $X \\in \\mathbb{R}^{n \\times d}$ and $Y = X W$ with $W \\in \\mathbb{R}^{d \\times m}$ "
    "and $G = \\partial L / \\partial Y$. Then $\\frac{\\partial L}{\\partial W} = X^\\top G$.\n\n"
)
CIRCUIT = WEIGHTS + "We set $W_{QK} = W_K W_Q^\\top$. "


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (
            STATES + "If the query instead reads another head, with $u = x_i + M x_j$,\n\n"
            "$u^\\top N x_j = x_i^\\top N x_j + x_j^\\top M N x_j$.",
            "refuted",
        ),
        (
            HEAD + "Let $X \\in \\mathbb{R}^{d \\times n}$. With column-stacking vec, "
            "$\\mathrm{vec}(W X A) = (W \\otimes A^\\top) \\mathrm{vec}(X)$.",
            "shape",
        ),
        (
            STATES + "If $y_i = x_i + M x_{i'}$ is the state after the layer, then "
            "$(x_i + M x_{i'})^\\top N x_j = x_i^\\top N x_j + x_{i'}^\\top N M^\\top x_j$.",
            "refuted",
        ),
        (
            HEAD + "If we freeze the scales, a head becomes "
            "$(A \\otimes W)(D \\otimes I_d) = (D A) \\otimes W$.",
            "refuted",
        ),
        (HEAD + "If $A$ is symmetric, $A D = A^\\top D$.", "needs-hypothesis"),
        (HEAD + "If $A$ and $D$ commute, $A D = D A$.", "needs-hypothesis"),
        (HEAD + "If we assume that $A$ and $D$ commute, $A D = D A$.", "needs-hypothesis"),
        (
            WEIGHTS + "Scores are divided by the square root of the width of $W_K$. "
            "Then $N W_K + W_K^\\top = W_K$.",
            "shape",
        ),
        (
            WEIGHTS + "Let $G$ be an invertible $k \\times k$ matrix. "
            "Then $W_Q G G^{-\\top} W_K^\\top = W_Q W_K^\\top$.",
            "refuted",
        ),
        (
            PERMUTED + "$\\phi(X W_1 P) P^\\top W_2 = \\phi(X W_1) P P^\\top W_2$.",
            "needs-hypothesis",
        ),
        (PERMUTED + "$\\phi(X W_1 P) P W_2 = \\phi(X W_1) P P^\\top W_2$.", "refuted"),
        (
            GRADIENT
            + "For $F = X W X^\\top$ with a square $W$ and $D = \\partial L/\\partial F$, we "
            "have $\\partial L/\\partial W = X^\\top D X$.",
            "undecided",
        ),
        (CIRCUIT + "Then $W_Q W_K^\\top = W_{QK}$.", "refuted"),
        (CIRCUIT + "Then $W_Q W_K^\\top = W_{QK}^\\top$.", "proved"),
    ],
)
def test_an_equation_in_these_words_has_the_verdict(text: str, verdict: str) -> None:
    last = check_text(text).equations[-1]
    assert last.verdict == verdict, last.why


FACTORS = r"Let $B \in \mathbb{R}^{p \times r}$ and $A \in \mathbb{R}^{r \times d}$. "


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (r"One usually starts with $B = 0$. Then $B A = 2 B A$.", "needs-hypothesis"),
        (r"In the first step, $B = 0$." + "\n\n" + "$B A = 3 B A$", "needs-hypothesis"),
        (r"At initialization $B = 0$, so that $B A = 0$.", "proved"),
        (r"Let $B = 0$. Then $B A = 2 B A$.", "proved"),
    ],
)
def test_a_value_at_one_moment_is_none_for_the_sentences_after_it(text: str, verdict: str) -> None:
    last = check_text(FACTORS + text).equations[-1]
    assert last.verdict == verdict, last.why


VALUES = r"Let $V \in \mathbb{R}^{k \times d}$ and $O \in \mathbb{R}^{d \times k}$. "
CHANGED = r"If an invertible matrix $R \in \mathbb{R}^{d \times d}$ changes the basis, $%s = V O$."


def test_a_matrix_of_a_counterexample_is_invertible_where_the_text_says_so() -> None:
    for product, verdict in (("(V R^{-1})(R O)", "proved"), ("(V R)(R O)", "refuted")):
        found = check_text(VALUES + CHANGED % product).equations[-1]
        assert found.verdict == verdict, found.why
    assert "R = np.array([[2]])" in str(found.counterexample)


@pytest.mark.parametrize(
    "said",
    [
        "Let $s > 0$ be a number.",
        "Let $s > 0$.",
        "Here $s$ is the norm of $x$.",
        "The frozen scale $s$ divides the state.",
    ],
)
def test_a_letter_is_a_number_where_the_text_says_so(said: str) -> None:
    text = r"Let $M \in \mathbb{R}^{d \times d}$ and $x \in \mathbb{R}^d$. "
    right, wrong = r"$M (\frac{1}{s} x) = \frac{1}{s} M x$", r"$M (\frac{1}{s} x) = s M x$"
    found = check_text(f"{text} {said} Then {right} and {wrong}.").equations[-2:]
    assert [each.verdict for each in found] == ["proved", "refuted"]


def test_an_index_that_is_positive_is_no_number() -> None:
    text = r"Let $x_i, s \in \mathbb{R}^d$. For $s > 0$ the head copies $x_{i-s}$. "
    assert check_text(text + r"Then $s^\top s = s^\top s$.").equations[-1].verdict == "proved"


EIGEN = r"Let $M \in \mathbb{R}^{d \times d}$, $u \in \mathbb{R}^d$ and $\lambda \in \mathbb{R}$. "


def test_what_is_false_with_its_condition_is_refuted() -> None:
    for value, verdict in ((r"\lambda^2 u", "proved"), (r"2 \lambda u", "refuted")):
        text = rf"If $M u = \lambda u$, two applications give $M M u = {value}$."
        last = check_text(EIGEN + text).equations[-1]
        assert last.verdict == verdict, last.why


def test_numbers_of_an_example_do_not_count_in_the_sections_after_it() -> None:
    example = r"Take $M = \begin{bmatrix} 1 & 2 \\ 2 & 4 \end{bmatrix}$."
    for heading, verdict in (("## Two\n\n", "refuted"), ("", "undecided")):
        text = f"## One\n\n{EIGEN}\n\n{example}\n\n{heading}"
        claim = r"Let $B, C \in \mathbb{R}^{d \times d}$. Then $M (B C)^\top = M B^\top C^\top$."
        assert check_text(text + claim).equations[-1].verdict == verdict
