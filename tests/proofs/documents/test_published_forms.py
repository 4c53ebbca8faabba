r"""Forms of published notes that were read as something else: `X^t`, `\mu^+`, `1 - p`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otimes.proofs.documents.check import check_document

SIZES = r"Let $W, M \in \mathbb{R}^{d \times k}$ and $X \in \mathbb{R}^{n \times d}$. "
POINTS = r"Let $\mu_i \in \mathbb{R}^d$, $S_i, O_{ij} \in \mathbb{R}^{d \times d}$. "
LAYERS = (
    r"Let $A^h \in \mathbb{R}^{n \times n}$, $W^h \in \mathbb{R}^{d \times d}$. The heads of two "
    r"layers add $F = \sum_f A^f \otimes W^f$ and $G = \sum_g A^g \otimes W^g$: $"
)
LENGTHS = (
    r"Let $W_d \in \mathbb{R}^{p \times d}$, $W_U \in \mathbb{R}^{d \times v}$, $b_d, z \in "
    r"\mathbb{R}^{1 \times d}$, $W_e \in \mathbb{R}^{d \times p}$, and $w_i$ for the $i$-th "
    r"row of $W_d$. Let $f = \mathrm{ReLU}(z W_e)$ and $x = f W_d + b_d$. "
)
PATTERN = (
    r"Let $X \in \mathbb{R}^{N \times D}$; linear maps multiply from the right. "
    r"Let $s \in \mathbb{R}^{N}$ and "
)
SQUARES = r"Matrices $A \in \mathbb{R}^{m \times n}$ have a transpose $A^\top$. "

NOT_ACCUSED = {
    "an entry of a glossary": SQUARES + r"**Symmetric** $A = A^\top$; **normal**: $A^2 = A$.",
    "a function that is 1 where": r"With $z \in \mathbb{R}^m$: "
    r"$J = \mathrm{diag}(\mathbb{1}_{z > 0}) \in \mathbb{R}^{m \times m}$.",
    "a function of which nothing is said": r"Then $\sigma'(z) = \sigma(z) \odot (1 - \sigma(z))$.",
    "a residual with two indices": POINTS + r"The residual is $e_{ij} \equiv \mu_i - O_{ij}\mu_j$.",
    "a matrix with one more index": POINTS + r"Then $S_i^{-1} = \frac{1}{2} (S_{p,i}^{-1} + C)$.",
    "the next value of a vector": POINTS + r"Then $\mu_i^+ = 0.25 \mu_i + 0.75 \mu_i^\ast$.",
    "an entry that is called a number": SIZES
    + r"Differentiate each scalar $Y_{ij}$. Let $Y = X \odot X$.",
    "transposes by t": SIZES
    + r"Scores are $S = (X W)(X M)^t$. We write $B = W M^t$, $R = X B X^t$.",
    "an assumption about covariances": r"We assume $\Sigma_i = \Sigma_j = \sigma^2 I$. Then "
    r"$\mathrm{Tr}(\Sigma_j^{-1} \Sigma_i) = \mathrm{Tr}(I)$.",
    "the identity beside its columns": r"The columns of $I_3$ are orthonormal, and $I$ is a "
    r"diagonal matrix. $X^{-1} X = I_n$ and $M M^{-1} = I$.",
    "sizes joined by x": r"Let $B \in \mathbb{R}^{D x M}$ and $x_n \in \mathbb{R}^D$. "
    r"$z_n = B^T x_n \in \mathbb{R}^M$.",
    "a row and a column joined by a dot": r"Let $Q \in \mathbb{R}^{m \times n}$, "
    r"$R \in \mathbb{R}^{n \times q}$. $P_{i,j} = \sum_{k=1}^n {Q_{i,k} \times R_{k,j}}$, "
    r"so $P_{i,j} = Q_{i,*} \cdot R_{*,j}$.",
    "an update": r"Then $a = X w + b$. $$\Delta b = \eta g$$ $$b = b + \Delta b$$",
    "matrices with two indices": POINTS + r"Let $L \in \mathbb{R}^{d \times d}$ and "
    r"$\Omega_{ij}^\top \Omega_{ij} = I$. Then $\Omega_{ij}^{-\top} = L \Omega_{ij} S_j$.",
    "vectors with two indices": POINTS + r"We define $V_{ij} := O_{ij} \mu_j$.",
    "a Greek factor entry by entry": r"Let $B \in \mathbb{R}^{n \times n}$. Then $-(B \odot B) "
    r"\odot \zeta = \xi$.",
    "a matrix of one entry": r"Let $A \in \mathbb{R}^{n \times n}$. For $n = 1$ it holds with "
    r"$A = [a]$ and $A = \sum_{k=1}^n \lambda_k v_k v_k^T$.",
    "a conjugate transpose": r"For $u \in \mathbb{R}^n$ let $H_u = I - 2 u u^*$. "
    r"Then $H_u^* = H_u$.",
    "y_2 beside a defined y_1": r"Let $X \in \mathbb{R}^{n \times m}$ and $x \in \mathbb{R}^n$. "
    r"Let $y_1 = X \mathbf{1}_m$ and $y_2 = x \mathbf{1}_m^T$.",
    "columns of a set": r"Let $u_i \in \mathbb{R}^d$ be orthogonal with $\|u_i\| = 1$, and "
    r"$U = [u_1, \cdots, u_p]$. Then $U^T U = I$.",
    "a function without its arguments": r"Let $K(x, z) = F(x, z) - G(x, z)$. If $G$ is $2 F$, then "
    r"$z^T K z = - z^T F z$ for all $z \in \mathbb{R}^n$.",
    "a name at the end of a chain": "Let $C = B V$.\n\n"
    r"$\frac{\partial L}{\partial V} = B^T \frac{\partial L}{\partial C} = \zeta_1 \in "
    r"\mathbb{R}^{n \times h}$, $\frac{\partial L}{\partial B} = \frac{\partial L}{\partial C} V^T "
    r"= \zeta_2 \in \mathbb{R}^{n \times n}$",
    "rows that end in three backslashes": "$\\pmb{x} "
    "= \\begin{bmatrix} x_1 \\\\\\\n x_2 \\end{bmatrix}$",
    "the element of a group": r"A group has an element $e$ with $g \cdot g^{-1} = e$.",
    "another function of the name": r"The function $f(x) = x^2$ is smooth. The function "
    r"$f(x) = 2 x$ is linear. A counterexample is $f(x) = 3 x$.",
    "entries of a bold vector": r"$\mathbf{y}^T \begin{bmatrix} 7 & 0 \\ 0 & 2 \end{bmatrix} "
    r"\mathbf{y} = \begin{bmatrix} y_1 & y_2 \end{bmatrix} \begin{bmatrix} 7 & 0 \\ 0 & 2 "
    r"\end{bmatrix} \begin{bmatrix} y_1 \\ y_2 \end{bmatrix}$.",
    "a letter in bold and in plain": r"Let $\mathbf{x} = P \mathbf{y}$. Then $\mathbf{x}^T "
    r"\mathbf{A} \mathbf{x} = (\mathbf{P} \mathbf{y})^T \mathbf{A} (\mathbf{P} \mathbf{y})$.",
    "a rule after other shapes": "Let $Q$ and $R$ have the same size $m \\times n$."
    "\n\n## Products\n\nLet $Q$ have size $m \\times n$ and $R$ have size $n \\times q$. "
    "Products are distributive: $(Q + R) S = Q S + R S$.",
    "examples in numbers": "# One\n\n$$A b = C$$ with $A = \\begin{bmatrix} 1 & 2 \\end{bmatrix}$, "
    "$b = \\begin{bmatrix} 2 \\\\ 4 \\end{bmatrix}$.\n\n# Two\n\n"
    "$$C = \\begin{bmatrix} 4 \\\\ 3 \\end{bmatrix}$$",
}


def verdicts(text: str, folder: Path) -> list[str]:
    path = folder / "note.md"
    path.write_text(text)
    return [each.verdict for each in check_document(path).equations]


@pytest.mark.parametrize("text", NOT_ACCUSED.values(), ids=NOT_ACCUSED)
def test_a_form_of_published_notes_is_not_accused(text: str, tmp_path: Path) -> None:
    assert not {*verdicts(text, tmp_path)} & {"refuted", "shape", "unread"}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (SIZES + r"$(X W)(X M)^t = X W M^t X^t$", "proved"),
        (SIZES + r"$(X W)(X M)^t = X M W^t X^t$", "refuted"),
        (SIZES + r"$X \odot (1 - X) = X - X \odot X$", "proved"),
        (SIZES + r"$X \odot (1 - X) = X \odot X - X$", "refuted"),
        (LAYERS + r"(\mathrm{Id} + G)(\mathrm{Id} + F) = \mathrm{Id} + F + G + G F$", "proved"),
        (
            LAYERS + r"(\mathrm{Id} + G)(\mathrm{Id} + F) = \mathrm{Id} + F + G + F G$",
            "needs-hypothesis",
        ),
        (LENGTHS + r"$x W_U = \sum_{i=1}^{p} f_i w_i W_U + b_d W_U$", "proved"),
        (PATTERN + r"let $a = \mathrm{softmax}(s)$, so that $\mathbf{1}^\top a = 1$", "proved"),
        (r"Let $\Sigma_i \in \mathbb{R}^{d \times d}$. $\Sigma_i^{-1} \Sigma_i = I$", "proved"),
    ],
)
def test_what_it_states_is_decided(text: str, verdict: str, tmp_path: Path) -> None:
    assert verdicts(text, tmp_path)[-1] == verdict


def test_a_power_t_is_no_transpose_where_t_is_a_step(tmp_path: Path) -> None:
    text = r"After $t$ steps $x_t = (I - \eta H)^t x_0$, and $(A B)^t = B^t A^t$."
    assert "proved" not in verdicts(text, tmp_path)


def test_a_sum_beside_a_recurrence_of_the_same_letter_without_an_index(tmp_path: Path) -> None:
    text = r"$x^{l+1} = x^l + f(x^l)$, and $x = a + \sum_{j=1}^{n} b_j$ for the others."
    assert verdicts(text, tmp_path) == ["definition", "definition"]


def test_definitions_of_macros_are_no_equations(tmp_path: Path) -> None:
    text = "$$\n\\newcommand{\\Att}{\\mathrm{Att}}\n$$\n\nLet $A \\in \\mathbb{R}^{n \\times n}$."
    assert verdicts(text, tmp_path) == ["definition"]


def test_macros_of_one_cell_are_known_in_all_cells_of_a_notebook(tmp_path: Path) -> None:
    sources = [
        "$$\n\\newcommand\\bs[1]{\\boldsymbol{#1}}\n\\newcommand\\norm[1]{\\left\\lVert#1\\right\\rVert}\n$$",
        r"Let $\bs{A} \in \mathbb{R}^{n \times n}$, $u \in \mathbb{R}^n$.",
        r"$\bs{A}\bs{A}^T = (\bs{A}\bs{A}^T)^T$, $\norm u^2 = u^T u$.",
    ]
    cells = [{"cell_type": "markdown", "metadata": {}, "source": each} for each in sources]
    path = tmp_path / "note.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5}))
    found = [each.verdict for each in check_document(path).equations]
    assert found == ["definition", "definition", "proved", "proved"]


def test_the_letters_of_math_commands_are_bold(tmp_path: Path) -> None:
    path = tmp_path / "note.tex"
    path.write_text(
        "\\input{math_commands.tex}\n"
        r"Let $\mX \in \R^{n \times d}$, $\vy \in \R^n$: $(\mX^\top \vy)^\top = \vy^\top \mX$."
    )
    assert [e.verdict for e in check_document(path).equations] == ["definition"] * 2 + ["proved"]


def test_a_formula_may_have_spaces_inside_its_dollars(tmp_path: Path) -> None:
    text = r"Let $ A, B \in \mathbb{R}^{n \times n} $. Then $ (A B)^\top = B^\top A^\top $."
    assert verdicts(text, tmp_path) == ["definition", "proved"]
    assert verdicts("It costs $ 5 here and $ 6 there.", tmp_path) == []
