r"""Shift matrices: what they make of the state before, in rows and columns, right and wrong."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text

ROWS = r"""
Let $X \in \mathbb{R}^{n \times d}$ with rows $x_1^\top, \dots, x_n^\top$, and let
$P \in \mathbb{R}^{n \times n}$ be the shift, $P_{i,i-1} = 1$ and zero elsewhere.
Let $M, W \in \mathbb{R}^{d \times d}$.

+ For $i > 1$, $(P X)_{i,:} = x_{i-1}^\top$.
- For $i > 1$, $(P X)_{i,:} = x_{i+1}^\top$.
+ It copies the token before: $Y = X + P X M^\top$.
+ That is, $y_i = x_i + M x_{i-1}$ for $i > 1$.
- $y_i = x_i + M^\top x_{i-1}$ for $i > 1$.
+ $(X W X^\top P^\top)_{ij} = x_i^\top W x_{j-1}$ for $j > 1$.
- $(X W X^\top P^\top)_{ij} = x_{i-1}^\top W x_j$ for $i, j > 1$.
+ $(P P X W X^\top)_{ij} = x_{i-2}^\top W x_j$.
"""

COLUMNS = r"""
Write $Z = [z_1, \dots, z_n]$ with $z_i \in \mathbb{R}^d$, and let $S_{ij} = \delta_{i,j+1}$.
Further $G, M \in \mathbb{R}^{d \times d}$ and $a \in \mathbb{R}^d$.

+ $(Z^\top M Z S^\top)_{ij} = z_i^\top M z_{j-1}$
- $(Z^\top M Z S)_{ij} = z_i^\top M z_{j-1}$
- $(Z^\top M Z S^\top)_{ij} = z_i^\top M z_j$
- $a^\top (Z S)_{:,i} = a^\top z_{i-1}$
- $(S Z^\top M Z)_{ij} = z_i^\top M z_{j-1}$
+ $(G Z S^\top)_{:,i} = G z_{i-1}$
- $(G Z S^\top)_{:,i} = G^\top z_{i-1}$
"""

OPEN = ("undecided", "needs-hypothesis")

WORDS = r"""
Let $R \in \mathbb{R}^{T \times T}$ have ones just below the diagonal and zeros elsewhere.
Row $t$ of $U \in \mathbb{R}^{T \times d}$ is $u_t$, and $A, B \in \mathbb{R}^{d \times d}$.

+ $(R U A B)_{t,:} = u_{t-1} A B$
- $(R U A B)_{t,:} = u_{t+1} A B$ for $1 < t$
+ $(R^\top U)_{t,:} = u_{t+1}$ for $t < T$
+ $(R R U)_{t,:} = u_{t-2}$ for $t > 2$
+ $(R U A U^\top)_{st} = u_{s-1} A u_t^\top$
- $(R U A U^\top)_{st} = u_s A u_{t-1}^\top$
- $(U A U^\top R^\top)_{st} = u_s A^\top u_{t-1}^\top$ for $t > 1$
"""


@pytest.mark.parametrize("text", [ROWS, COLUMNS, WORDS], ids=["rows", "columns", "words"])
def test_right_equations_are_proved_and_wrong_ones_found(text: str) -> None:
    said, *claims = text.strip().replace("\n- ", "\n+ - ").split("\n+ ")
    found = check_text("\n\n".join([said, *(claim.removeprefix("- ") for claim in claims)]))
    mine = [e for e in found.equations if e.line > said.count("\n") + 2 and " = " in e.tex]
    for claim, each in zip(claims, mine, strict=True):
        wrong = claim.startswith("- ")
        assert each.verdict in (("refuted",) if wrong else ("proved", "definition")), claim


def test_what_fails_at_an_end_only_is_not_called_wrong() -> None:
    said = (
        r"Let $R \in \mathbb{R}^{T \times T}$ with $R_{t,t-1} = 1$. The rows of "
        r"$U \in \mathbb{R}^{T \times d}$ are $u_1, \dots, u_T$."
    )
    for claim in (r"(R^\top R U)_{t,:} = u_t", r"(R R^\top U)_{t,:} = u_t"):
        assert check_text(rf"{said} Then ${claim}$.").equations[-1].verdict in OPEN


def test_what_a_matrix_makes_of_states_refutes_nothing() -> None:
    text = (
        r"The rows of $X \in \mathbb{R}^{n \times d}$ are $x_i$. With "
        r"$S \in \mathbb{R}^{n \times n}$, $(S X)_i = x_{i-1}$. Then "
        r"$(S X X^\top)_{ij} = x_{i-1} x_j^\top$, or is $(S X X^\top)_{ij} = x_{i+1} x_j^\top$?"
    )
    *_, right, other = check_text(text).equations
    assert right.verdict == "proved"
    assert not other.is_wrong
