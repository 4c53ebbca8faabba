# ruff: noqa: E501 (a text is one line)
"""False equations that one edit makes true, rows and columns by name, and what excuses an equation."""

from __future__ import annotations

import pytest

from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import Symbols
from otimes.proofs.documents.check import check_text
from otimes.proofs.documents.verdicts.suggestions import suggestion

MAP = r"Let $M \in \mathbb{R}^{d \times d}$. "
HEAD = r"Let $X \in \mathbb{R}^{n \times d}$, $A \in \mathbb{R}^{n \times n}$, $W_V \in \mathbb{R}^{d \times k}$, $W_O \in \mathbb{R}^{k \times d}$. We set $Z = A X W_V W_O$. "
COLUMNS = r"The vectors $f_1, \dots, f_m$ are the columns of $F \in \mathbb{R}^{d \times m}$, and $c \in \mathbb{R}^m$. "
ROWS = r"Let $X \in \mathbb{R}^{n \times d}$ and $x_i$ for its $i$-th row, $A \in \mathbb{R}^{n \times n}$, $B \in \mathbb{R}^{d \times d}$. "
TOKENS = r"Let $T \in \mathbb{R}^{s \times V}$, $E \in \mathbb{R}^{V \times d}$, $W_V \in \mathbb{R}^{d \times k}$, $A \in \mathbb{R}^{s \times s}$. We embed $x = T E$ and $v = x W_V$. "
CLAIMS = [
    # not declared, and one edit away from the truth
    (r"If we replace $z$ by $z'$, the effect is $M z' - M z = M (z' - z)$.", "proved"),
    (MAP + r"Then $M z' - M z = M (z - z')$.", "refuted"),
    (MAP + r"For a skew $M$ we have $M z' - M z = M (z - z')$.", "undecided"),
    # a symbol that is defined is on one side only
    (HEAD + r"Then $X + Z = X + A X W_V W_O$.", "proved"),
    (HEAD + r"Then $X + Z = X + X W_V W_O$.", "refuted"),
    # sizes are no symbols that an equation may define
    (r"Let $P = I - \frac{1}{d} \mathbf{1} \mathbf{1}^\top$ and $Q \in \mathbb{R}^{d \times k}$. Then $\mathrm{tr}(Q^\top Q) = k$.", "needs-hypothesis"),
    # rows and columns
    (COLUMNS + r"Then $F c = \sum_{i=1}^{m} c_i f_i$.", "proved"),
    (COLUMNS + r"Then $(F^\top F)_{ij} = f_i^\top f_j$.", "proved"),
    (COLUMNS + r"We set $G = F^\top F$. Its entries are $G_{ij} = f_i^\top f_j$.", "proved"),
    (COLUMNS + r"We set $G = F^\top F$. Its entries are $G_{ij} = f_i f_j^\top$.", "shape"),
    (ROWS + r"Then $(A X B)_{i,:} = \sum_j A_{ij} x_j B$.", "proved"),
    (ROWS + r"Then $(A X B)_{i,:} = \sum_j A_{ji} x_j B$.", "refuted"),
    (ROWS + r"We set $S = X B X^\top$. Then $S_{ij} = x_i B x_j^\top$.", "proved"),
    (ROWS + r"We set $S = X B X^\top$. Then $S_{ij} = x_j B x_i^\top$.", "refuted"),
    # a small letter is a matrix by its definition
    (TOKENS + r"The result is $r = A v$.", "definition"),
    (TOKENS + r"The result is $A x W_V = A v$.", "proved"),
    (TOKENS + r"The result is $A x W_V = v A$.", "shape"),
    # d·n entries are n·d entries
    (r"Let $x \in \mathbb{R}^{d n}$, $A \in \mathbb{R}^{n \times n}$, $W \in \mathbb{R}^{d \times d}$. Then $(A \otimes I_d)(I_n \otimes W) x = (A \otimes W) x$.", "proved"),
    # 1 is a column of ones where only that conforms
    (r"Let $A \in \mathbb{R}^{n \times n}$ and $b \in \mathbb{R}^d$. Then $(A 1) b^\top = A (1 b^\top)$.", "proved"),
    (r"Let $A \in \mathbb{R}^{n \times n}$ and $b \in \mathbb{R}^d$. Then $A (1 b^\top) = b 1^\top$.", "shape"),
    # units, and what does not hold in general
    (r"It takes \(24 \times 10^9 \times 2 \times 16 = 768\) GB.", "undecided"),
    (r"It takes \(24 \times 2 \times 16 = 760\) heads.", "refuted"),
    (r"Let $A, B \in \mathbb{R}^{d \times k}$. The rank obeys $\mathrm{rank}(A B^\top) \ge k$.", "refuted"),
    (r"Let $A, B \in \mathbb{R}^{d \times k}$ have full rank. The rank is $\mathrm{rank}(A B^\top) \ge k$.", "undecided"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "verdict"), CLAIMS)
def test_the_last_equation_has_the_verdict(text: str, verdict: str) -> None:
    assert check_text(text).equations[-1].verdict == verdict


def test_no_equation_is_accused_for_what_is_defined_after_it() -> None:
    text = r"Let $M, P \in \mathbb{R}^{d \times d}$. Then $M^2 + M = M P$ where $P = M + I$."
    assert [each.verdict for each in check_text(text).equations] == [
        "definition",
        "proved",
        "definition",
    ]


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        (r"(A B)^\top = A^\top B^\top", "swap"),
        (r"A (B - C) = A C - A B", "sign"),
        (r"(A B)_{ij} = \sum_{k} A_{ik} B_{jk}", "index"),
        (r"A B C = A C", "factor"),
        (r"A (B + C) + D = A B + A C", "term"),
        (r"\mathrm{tr}(A^\top A) = \|A\|_F", "power"),
        (r"A + B + B = A + B", "number"),
    ],
)
def test_an_edit_says_what_was_edited(claim: str, kind: str) -> None:
    (statement,) = parse_formula(claim)
    edit = suggestion(*statement.terms, Symbols())
    assert edit is not None
    assert edit.kind == kind
