# ruff: noqa: E501 (a text is one line)
"""Claims about orthonormal vectors, singular values, norms, differentials and powers of numbers."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_cell, check_text

EIGEN = r"Let $M \in \mathbb{R}^{m \times m}$ be symmetric with eigenvectors $u_1, \dots, u_m$, orthonormal, and eigenvalues $\lambda_1 \ge \dots \ge \lambda_m$. Then $M = \sum_{i=1}^{m} \lambda_i u_i u_i^\top$. "
SINGULAR = r"Let $A \in \mathbb{R}^{m \times n}$ have the singular value decomposition $A = \sum_{i=1}^{r} \sigma_i u_i v_i^\top$. "
VALUES = r"Let $\sigma > 0$, and write $A = U S V^\top$. For $A \in \mathbb{R}^{m \times n}$ with singular values $\sigma_1 \ge \dots \ge \sigma_r > 0$ we have "
LEFT = r"Let $M = \sum_{i=1}^{r} \lambda_i w_i u_i^\top$ be the eigendecomposition of $M \in \mathbb{R}^{m \times m}$. "
VECTOR = r"Let $x = \begin{pmatrix} 1 \\ 3 \end{pmatrix}$. "
TURN = r"Let $R \in \mathbb{R}^{d \times d}$ with $R^\top R = I$ and $x, y \in \mathbb{R}^d$. "
LORA = r"Let $y = (W + s B A) x$ with $W \in \mathbb{R}^{m \times d}$, $B \in \mathbb{R}^{m \times r}$ and $A \in \mathbb{R}^{r \times d}$. "
KEYS = r"Let $Q, K \in \mathbb{R}^{n \times k}$. "
CLAIMS = [
    (EIGEN + r"$\operatorname{tr}(M) = \sum_i \lambda_i$", "proved"),
    (EIGEN + r"$M^2 = \sum_i \lambda_i^2 u_i u_i^\top$", "proved"),
    (EIGEN + r"$M^2 = \sum_i \lambda_i u_i u_i^\top$", "refuted"),
    (EIGEN + r"$M^2 u_j = \lambda_j u_j$", "refuted"),
    (EIGEN + r"$\sum_{i=1}^m u_i u_i^\top = I$", "needs-hypothesis"),  # true, and not read as such
    (SINGULAR + r"$\|A\|_F^2 = \sum_i \sigma_i^2$", "proved"),
    (SINGULAR + r"$A v_j = \sigma_j u_j$", "proved"),
    (SINGULAR + r"$A u_j = \sigma_j v_j$", "shape"),
    (VALUES + r"$\operatorname{tr}(A^\top A) = \sum_i \sigma_i^2$", "undecided"),
    (
        LEFT + r"$M^2 = \sum_i \lambda_i^2 w_i u_i^\top$",
        "needs-hypothesis",
    ),  # they are biorthogonal
    (VECTOR + r"Then $\|x\| = \sqrt{10}$", "proved"),
    (VECTOR + r"Then $\|x\| = 10^{1/2}$", "proved"),
    (VECTOR + r"Then $\|x\| = \sqrt{11}$", "refuted"),
    (VECTOR + r"Then $\|x\|_1 = 4$", "undecided"),
    (TURN + r"$\|R x\| = \|x\|$", "proved"),
    (TURN + r"$\|R x\| = 2 \|x\|$", "refuted"),
    (TURN + r"$\|x + y\| = \|x\|$", "refuted"),
    (
        r"The rotations $R_m \in \mathbb{R}^{k \times k}$ keep norms: for $q \in \mathbb{R}^k$, $\|R_m q\| = \|q\|$",
        "needs-hypothesis",
    ),
    (LORA + r"So $dy = dW x + s \, dB \, A x + s B \, dA \, x$", "undecided"),
    (LORA + r"So $dy = dW x + s \, dB \, A x$", "undecided"),
    (r"For square $X$ and $Y$, $d(XY) = dX \, Y + X \, dY$", "proved"),
    (KEYS + r"$(k^{-1/4} Q)(k^{-1/4} K)^\top = k^{-1/2} Q K^\top$", "proved"),
    (KEYS + r"$(k^{-1/4} Q)(k^{-1/4} K)^\top = k^{-1/4} Q K^\top$", "refuted"),
]


@pytest.mark.parametrize(("text", "verdict"), CLAIMS)
def test_claims(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict


CELL = r"""Let $A, B \in \mathbb{R}^{n \times n}$.

$$
\begin{aligned}
(A B)^T &= B^T A^T \\
 &= A^T B^T
\end{aligned}
$$
"""


def test_a_cell_of_a_notebook_counts_its_magic_as_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    check_cell("", CELL)
    assert "text:7:5: refuted: B^T A^T = A^T B^T\n" in capsys.readouterr().out


def test_a_later_link_may_say_that_matrices_commute() -> None:
    assert check_text(f"They commute. {CELL}").equations[-1].verdict == "needs-hypothesis"


INVERSE = r"""
Let $\mathbf A \in \mathbb{R}^{m \times n}$ have the SVD $\mathbf A = \mathbf U \mathbf \Sigma \mathbf V^\top$, so that
$\mathbf A^\top \mathbf A = \mathbf V \mathbf \Sigma^\top \mathbf \Sigma \mathbf V^\top$ is invertible.

We take $\mathbf A^{+} = \mathbf V \mathbf \Sigma^+ \mathbf U^\top$. Since $\mathbf \Sigma$ is tall,
$\mathbf \Sigma^+ = (\mathbf \Sigma^\top \mathbf \Sigma)^{-1} \mathbf \Sigma^\top$. Thus,
$(\mathbf A^\top \mathbf A)^{-1} \mathbf A^\top = \mathbf V \mathbf \Sigma^+ \mathbf U^\top$.
"""


def test_the_factors_of_a_decomposition_are_orthonormal_in_what_is_refuted() -> None:
    assert check_text(INVERSE).equations[-1].verdict == "undecided"
