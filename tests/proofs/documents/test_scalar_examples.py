"""Statements about ranks, determinants and norms that are false at exact numbers."""

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


SHAPES = (
    r"Let $A, B \in \mathbb{R}^{n \times n}$, $W \in \mathbb{R}^{d \times d}$, "
    r"$x, y \in \mathbb{R}^n$. "
)


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"\det(A \otimes W) = \det(A)^n \det(W)^d", "refuted"),
        (r"\det(A \otimes W) = \det(A)^d \det(W)^n", "undecided"),
        (r"\det(2 A) = 2 \det A", "refuted"),
        (r"\det(2 A) = 2^n \det A", "undecided"),
        (r"\det(A + B) = \det A + \det B", "refuted"),
        (r"\log\det(A B) = \log\det A \log\det B", "refuted"),
        (r"\log\det(A B) = \log\det A + \log\det B", "undecided"),
        (r"\det(I + x y^T) = 1 - y^T x", "refuted"),
        (r"\det(I + x y^T) = 1 + y^T x", "undecided"),
        (r"\det(A^{-1}) = 1 / \det(A)", "undecided"),
        (r"\mathrm{rank}(A B) = \mathrm{rank}(A)", "undecided"),  # it is true of most matrices
        (r"\|x\|_1 \le \|x\|_2", "refuted"),
        (r"\|x\|_1 \le \sqrt{n} \|x\|_2", "undecided"),
        (r"\|A\|_F \le \|A\|_2", "refuted"),
        (r"\|A\|_F \le \sqrt{n} \|A\|_2", "undecided"),
        (r"\|A x\| \ge \|A\|_2 \|x\|", "refuted"),
        (r"|x^T y| \ge \|x\| \|y\|", "refuted"),
        (r"\mathrm{tr}(A) \le \mathrm{rank}(A)", "refuted"),
        (r"|\mathrm{tr}(A^T B)| < \frac{1}{2} \|A\|_F \|B\|_F", "refuted"),
        (r"\|x\| = \|y\|", "undecided"),  # it says what they are
        (r"\|x\| \le 1", "undecided"),
    ],
)
def test_statements_about_any_matrices(claim: str, verdict: str) -> None:
    last = check_text(f"{SHAPES}\n\nNow ${claim}$.").equations[-1]
    assert last.verdict == verdict, last.why


@pytest.mark.parametrize(
    "words",
    [
        r"If $%s$, we are done.",
        r"Suppose that $%s$.",
        r"Let $A$ be symmetric. Then $%s$.",
        r"This does not imply $%s$.",
    ],
)
def test_what_is_supposed_or_said_of_a_matrix_refutes_nothing(words: str) -> None:
    last = check_text(SHAPES + words % r"\|A\|_F \le \|A\|_2").equations[-1]
    assert last.verdict == "undecided", last.why


@pytest.mark.parametrize(
    "said",
    [
        (
            "\n\n| symbol | meaning |\n|---|---|\n| $P$ | a pattern; its rows sum to one |\n"
            "| $A$ | any matrix |\n\n"
        ),
        r"With heads, $A^h \mathbf{1} = \mathbf{1}$. ",
        r"As a map, $(A \otimes W) x = A x W^\top$ for $x \in \mathbb{R}^{n \times d}$. ",
    ],
)
def test_what_is_said_of_other_symbols_binds_no_matrix(said: str) -> None:
    claim = r"$\det(A \otimes W) = \det(A)^n \det(W)^d$"
    last = check_text(f"{SHAPES}{said}Now {claim}.").equations[-1]
    assert last.verdict == "refuted", last.why


@pytest.mark.parametrize(
    "said",
    [
        r"Let $M \in \mathbb{R}^{n \times n}$ have rank one.",
        "\n\n## Norms\n\nLet $M$ have rank one.",
    ],
)
def test_a_definition_of_another_matrix_of_the_name_refutes_nothing(said: str) -> None:
    text = f"{SHAPES}Let $M = A + B$.\n{said} Then $\\|M\\|_F \\le \\|M\\|_2$."
    assert check_text(text).equations[-1].verdict == "undecided"


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        (r"\|\phi(x)\|_2 \le \|x\|_2", "undecided"),  # phi may be 1-Lipschitz
        (r"\|\phi(A)\|_F \le \|A\|_F", "undecided"),
        (r"\|\mathrm{ReLU}(x)\|_2 \le \|x\|_2", "undecided"),
        (r"\|\mathrm{ReLU}(x)\|_2 \ge \|x\|_2", "refuted"),
        (r"\|\mathrm{ReLU}(A)\|_F \ge \|A\|_F", "refuted"),
        (r"\|\tanh(x)\|_2 \le \|x\|_2", "undecided"),
    ],
)
def test_a_function_that_may_be_any_refutes_nothing(claim: str, verdict: str) -> None:
    text = rf"{SHAPES}Let $\phi$ be a function that acts on each entry. Then ${claim}$."
    assert check_text(text).equations[-1].verdict == verdict


def test_a_power_of_a_matrix_that_is_said_to_vanish_binds_it() -> None:
    text = rf"{SHAPES}If $A^2 = 0$, then $A$ is nilpotent.\n\nSo $\mathrm{{rank}}(A) \le n / 2$."
    assert check_text(text).equations[-1].verdict == "undecided"
