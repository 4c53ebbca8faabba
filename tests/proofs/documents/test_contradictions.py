"""A definition and a later equation of which one must be wrong."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SCORE = r"""Let $W_Q, W_K \in \mathbb{R}^{k \times d}$ and $x_i \in \mathbb{R}^d$. %s

The score is $$(W_Q x_i)^\top (W_K x_j) = x_i^\top M x_j .$$"""
WHERE = r"""Let $W_Q, W_K \in \mathbb{R}^{k \times d}$ and $x_i \in \mathbb{R}^d$. The score is
$$q_i^\top k_j = x_i^\top M x_j,$$ where $q_i = W_Q x_i$, $k_j = W_K x_j$ and $M = %s$."""
FOLDED = r"""Let $U \in \mathbb{R}^{v \times d}$. The norm is $\frac{1}{\rho} D C$ up to its bias,
where $C = \mathrm{Id} - \frac{1}{d} \mathbf{1} \mathbf{1}^\top$, $D = \operatorname{diag}(\gamma)$
and $\rho > 0$. We fold it into the unembedding, $F = %s$. It ignores the mean,
$F \mathbf{1} = 0$."""
EDIT = r"""Let $W \in \mathbb{R}^{m \times d}$, $k \in \mathbb{R}^d$ and $v \in \mathbb{R}^m$. Let
$C \in \mathbb{R}^{d \times d}$ be symmetric and invertible. The edit is
$$\Lambda = \frac{%s}{(C^{-1} k)^\top k}, \qquad \hat W = W + \Lambda (C^{-1} k)^\top .$$
Then $\hat W k = v$."""
ROWS = r"""Let $X \in \mathbb{R}^{n \times d}$ have the rows $x_i^\top$, and let
$A \in \mathbb{R}^{n \times n}$ and $W \in \mathbb{R}^{d \times d}$. The head is $H = %s X W$,
that is $$H_{i,:} = \sum_j A_{ij} x_j^\top W .$$"""
PARTS = r"""Let $G \in \mathbb{R}^{d \times d}$. We put $S = \frac12 (G + G^\top)$ and
$T = \frac12 (%s)$. Then $G = S + T$."""


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (FOLDED, "U D C", "U C D"),
        (EDIT, "v - W k", "W k - v"),
    ],
)
def test_a_definition_is_wrong_that_one_later_equation_contradicts(
    text: str, right: str, wrong: str
) -> None:
    assert not [each for each in check_text(text % right).equations if each.is_wrong]
    found = [each for each in check_text(text % wrong).equations if each.is_wrong]
    (accused,) = [each for each in found if "contradict" in each.why and wrong in each.tex]
    assert accused.verdict == "refuted"
    assert len(accused.related) == 1


def test_an_equation_that_one_edit_mends_names_the_definition_and_is_wrong_itself() -> None:
    for text in (SCORE % r"We write $M = W_K^\top W_Q$.", WHERE % r"W_K^\top W_Q"):
        (accused,) = [each for each in check_text(text).equations if each.is_wrong]
        assert len(accused.related) == 1
    for text in (ROWS % r"A^\top", PARTS % r"G^\top - G"):
        (accused,) = [each for each in check_text(text).equations if each.is_wrong]
        assert "definition on line" in accused.why


KEY = r"""Let $W \in \mathbb{R}^{d \times m}$, $k \in \mathbb{R}^m$, $v \in \mathbb{R}^d$, and let
$C \in \mathbb{R}^{m \times m}$ be symmetric and invertible. The edit is $\hat W = W + v a^\top$,
with $a = C^{-1} k$. A key $u \in \mathbb{R}^m$ with %s is not disturbed: $\hat W u = W u$."""


@pytest.mark.parametrize("condition", [r"$a^\top u = 0$", r"$k^\top C^{-1} u = 0$"])
def test_what_is_assumed_of_a_defined_symbol_is_assumed_of_its_definition(condition: str) -> None:
    *_, assumed, last = check_text(KEY % condition).equations
    assert (assumed.verdict, last.verdict) == ("needs-hypothesis", "needs-hypothesis"), last.why
    assert last.why.startswith("true given")


def test_an_equation_is_no_hypothesis_of_its_own() -> None:
    text = FOLDED % "U C D"
    last = check_text(text).equations[-1]
    assert "true given F" not in last.why


CHAIN = r"""Let $W_Q, W_K \in \mathbb{R}^{k \times d}$, $X \in \mathbb{R}^{d \times n}$,
$Q = W_Q X$ and $K = W_K X$. The scores are
$$S = Q^\top K = X^\top W_Q^\top W_K X .$$
We write $M = W_K^\top W_Q$. Then $S = X^\top M X$ and $S^\top = X^\top M^\top X$."""


def test_a_definition_with_a_proved_chain_is_not_called_wrong() -> None:
    verdicts = {each.tex: each.verdict for each in check_text(CHAIN).equations}
    assert verdicts[r"S = Q^\top K"] == "definition"


TRACE = r"""Let $B \in \mathbb{R}^{p \times r}$ and $A \in \mathbb{R}^{r \times d}$.

Take $B = \begin{pmatrix} 1 \\ 2 \end{pmatrix}$, $A = \begin{pmatrix} 3 & -1 \end{pmatrix}$.
Then $\mathrm{tr}(B A) = %d$ and $\mathrm{tr}(B A) = \mathrm{tr}(A B)$."""


@pytest.mark.parametrize(("trace", "verdict"), [(1, "proved"), (2, "refuted")])
def test_a_trace_of_an_example_is_computed(trace: int, verdict: str) -> None:
    *_, first, second = check_text(TRACE % trace).equations
    assert (first.verdict, second.verdict) == (verdict, "proved")
