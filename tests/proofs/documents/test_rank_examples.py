"""Inequalities of ranks and norms that are false, with exact numbers, and quotients of norms."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

SAID = r"""Let $W_O \in \mathbb{R}^{d \times k}$, $W_V \in \mathbb{R}^{k \times d}$,
$M, N \in \mathbb{R}^{d \times d}$ and $u, v \in \mathbb{R}^d$. We set $C = M + W_O W_V$. """


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"\mathrm{rank}(M + u v^\top) \le 1", "refuted"),
        (r"\mathrm{rank}(M N) \ge \mathrm{rank}(M)", "refuted"),
        (r"\mathrm{rank}(C) \le k", "refuted"),
        (r"\mathrm{rank}(C) \le \mathrm{rank}(M) + k", "proved"),
        (r"\mathrm{rank}(C) \ge \mathrm{rank}(M) - k", "undecided"),  # it is true
        (r"\frac{\|M N\|_F}{\|M\|_F \|N\|_F} \le 1", "proved"),
        (r"\frac{\|M N\|_F}{\|M\|_F \|N\|_F} \ge 1", "refuted"),
        (r"0 \le \frac{\|M N\|_F}{\|M\|_F \|N\|_F}", "proved"),
    ],
)
def test_inequalities(claim: str, verdict: str) -> None:
    last = check_text(f"{SAID}\n\nNow ${claim}$.").equations[-1]
    assert last.verdict == verdict, last.why


@pytest.mark.parametrize(
    "words",
    [r"For generic matrices, $%s$.", r"If $N$ is invertible, $%s$.", r"With full rank, $%s$."],
)
def test_what_is_said_of_ranks_refutes_nothing(words: str) -> None:
    claim = words % r"\mathrm{rank}(M N) \ge \mathrm{rank}(M)"
    last = check_text(f"{SAID}\n\n{claim}").equations[-1]
    assert last.verdict == "undecided", last.why


def test_a_rectangular_matrix_near_the_word_invertible_is_free() -> None:
    text = (
        r"We have $\mathrm{rank}(W_O W_V) \ge k$. For an invertible $k \times k$ matrix $B$ we "
        r"replace $W_O$ by $W_O B$."
    )
    found = check_text(SAID + text).equations
    (rank,) = [each for each in found if "rank" in each.tex]
    assert rank.verdict == "refuted"


def test_a_claim_in_the_section_of_an_example_has_its_numbers() -> None:
    text = r"""## One

Let $B \in \mathbb{R}^{p \times r}$ and $A \in \mathbb{R}^{r \times d}$.

## Two

Take $B = \begin{pmatrix} 1 \\ 2 \end{pmatrix}$, $A = \begin{pmatrix} 3 & -1 \end{pmatrix}$.

This is no coincidence: $\mathrm{tr}(B A) = \mathrm{tr}(A B)$."""
    assert check_text(text).equations[-1].verdict == "proved"
    other = text.replace("## Two", "We have $\\mathrm{tr}(B A) = \\mathrm{tr}(A B)$.\n\n## Two")
    verdicts = [each.verdict for each in check_text(other).equations if "mathrm{tr}" in each.tex]
    assert verdicts == ["shape", "proved"]
