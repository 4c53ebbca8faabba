# ruff: noqa: E501 (a document is one line of a table here)
"""Two derivations, in both conventions: right as they stand, and every planted error is found.

An error may only be reported where it was planted, and on the link that goes on from a wrong term.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from otimes.proofs.documents.check import check_document
from otimes.proofs.documents.reporting.report import WRONG

ROW = r"""\documentclass{article}
\newcommand{\R}{\mathbb{R}}
\begin{document}
\section{Notation}
The residual stream is $X \in \R^{n \times d}$. Weights are $W_Q, W_K, W_V \in \R^{d \times d_h}$ and
$W_O \in \R^{d_h \times d}$, the embedding $W_E \in \R^{v \times d}$, the unembedding $W_U \in \R^{d \times v}$.
A pattern is $A \in \R^{n \times n}$.
\section{Heads}
We define $W_{QK} = W_Q W_K^\top$ and $W_{OV} = W_V W_O$.
The scores are $S = X W_Q (X W_K)^\top$.
They are $X W_Q (X W_K)^\top = X W_{QK} X^\top$.
\[ (X W_Q)(X W_K)^\top = X W_Q W_K^\top X^\top \]
A head is $h(X) = A X W_V W_O$.
Hence $h(X) = A X W_{OV}$.
\begin{align}
  (A X W_V) W_O &= A (X W_V W_O) \\
                &= (A X) W_{OV}
\end{align}
Transposed, $(A X W_{OV})^\top = W_{OV}^\top X^\top A^\top$.
Also $W_{OV}^\top = W_O^\top W_V^\top$.
And $W_{QK}^\top = W_K W_Q^\top$.
\section{Many heads}
A layer is $\sum_{h=1}^H A^h X W_V^h W_O^h = \sum_{h=1}^H (A^h X) (W_V^h W_O^h)$.
Its logits are $(\sum_{h=1}^H A^h X W_V^h W_O^h) W_U = \sum_{h=1}^H A^h X W_V^h W_O^h W_U$.
Heads compose: $(A^2 \otimes W_{OV}^2)(A^1 \otimes W_{OV}^1) = A^2 A^1 \otimes W_{OV}^2 W_{OV}^1$.
$(I + A^2 \otimes B^2)(I + A^1 \otimes B^1) = I + A^1 \otimes B^1 + A^2 \otimes B^2 + A^2 A^1 \otimes B^2 B^1$.
Copying is $\mathrm{tr}(W_E W_{OV} W_U) = \mathrm{tr}(W_{OV} W_U W_E)$.
The norm is $\| W_V W_O \|_F^2 = \mathrm{tr}(W_V^\top W_V W_O W_O^\top)$.
The logits are $(X + A X W_{OV}) W_U = X W_U + A X W_{OV} W_U$.
In indices, $(A X)_{ij} = \sum_{k=1}^n A_{ik} X_{kj}$.
As a vector, $\mathrm{vec}_r(A X W_{OV}) = (A \otimes W_{OV}^\top) \mathrm{vec}_r(X)$.
\end{document}
"""
IN_ROW = [
    (r"X W_{QK} X^\top$.", r"X W_{QK}^\top X^\top$."),
    (r"X W_Q W_K^\top X^\top", r"X W_K W_Q^\top X^\top"),
    (r"h(X) = A X W_{OV}$.", r"h(X) = A^\top X W_{OV}$."),
    (r"h(X) = A X W_{OV}$.", r"h(X) = X W_{OV}$."),
    (r"&= (A X) W_{OV}", r"&= (X A) W_{OV}"),
    (r"&= A (X W_V W_O)", r"&= A (X W_O W_V)"),
    (r"W_{OV}^\top X^\top A^\top$", r"A^\top X^\top W_{OV}^\top$"),
    (r"= W_O^\top W_V^\top$", r"= W_V^\top W_O^\top$"),
    (r"= W_K W_Q^\top$", r"= W_Q W_K^\top$"),
    (r"(A^h X) (W_V^h W_O^h)$", r"(A^h X) (W_O^h W_V^h)$"),
    (r"(A^h X) (W_V^h W_O^h)$", r"(X A^h) (W_V^h W_O^h)$"),
    (r"\sum_{h=1}^H A^h X W_V^h W_O^h W_U$", r"\sum_{h=1}^H A^h X W_V^h W_U$"),
    (r"A^2 A^1 \otimes W_{OV}^2 W_{OV}^1$", r"A^1 A^2 \otimes W_{OV}^2 W_{OV}^1$"),
    (r"A^2 A^1 \otimes W_{OV}^2 W_{OV}^1$", r"A^2 A^1 \otimes W_{OV}^1 W_{OV}^2$"),
    (r" + A^2 A^1 \otimes B^2 B^1$", "$"),
    (r"A^2 A^1 \otimes B^2 B^1$", r"A^2 A^1 \otimes B^1 B^2$"),
    (r"\mathrm{tr}(W_{OV} W_U W_E)$", r"\mathrm{tr}(W_U W_{OV} W_E)$"),
    (r"\mathrm{tr}(W_V^\top W_V W_O W_O^\top)$", r"\mathrm{tr}(W_V W_V^\top W_O W_O^\top)$"),
    (r"= X W_U + A X W_{OV} W_U$", r"= X W_U + A X W_{OV}$"),
    (r"= X W_U + A X W_{OV} W_U$", r"= W_U + A X W_{OV} W_U$"),
    (r"A_{ik} X_{kj}$", r"A_{ki} X_{kj}$"),
    (r"A_{ik} X_{kj}$", r"A_{ik} X_{jk}$"),
    (r"(A \otimes W_{OV}^\top) \mathrm", r"(A \otimes W_{OV}) \mathrm"),
    (r"(A \otimes W_{OV}^\top) \mathrm", r"(W_{OV}^\top \otimes A) \mathrm"),
    (r"A X W_V W_O$.", "A X W_O W_V$."),
    (r"S = X W_Q (X W_K)^\top", r"S = X W_Q (W_K X)^\top"),
]  # fmt: skip

COLUMN = r"""# Attention heads as tensor products

| symbol | shape | meaning |
|---|---|---|
| $A$ | $n \times n$ | pattern |
| $W_V$ | $d_h \times d$ | values |
| $W_O$ | $d \times d_h$ | output |
| $W_E$ | $d \times v$ | embedding |
| $W_U$ | $v \times d$ | unembedding |
| $x$ | $nd \times 1$ | residual stream |

## One head

A head is $h(x) = (I \otimes W_O)(A \otimes I)(I \otimes W_V) x$.

By the mixed product, $h(x) = (A \otimes W_O W_V) x$.

$$
\begin{aligned}
(I \otimes W_U)(A \otimes W_O W_V)(I \otimes W_E) &= A \otimes W_U W_O W_V W_E \\
&= (A \otimes W_U W_O)(I \otimes W_V W_E)
\end{aligned}
$$

Its transpose is $(A \otimes W_O W_V)^T = A^T \otimes W_V^T W_O^T$.

We write $W_{OV} = W_O W_V$. Then $(I + A \otimes W_{OV}) x = x + (A \otimes W_{OV}) x$.

## Two heads

$$(A^{h_2} \otimes W_{OV}^{h_2})(A^{h_1} \otimes W_{OV}^{h_1}) = A^{h_2} A^{h_1} \otimes W_{OV}^{h_2} W_{OV}^{h_1}$$

Traces multiply: $\mathrm{tr}(A \otimes W_O W_V) = \mathrm{tr}(A)\,\mathrm{tr}(W_V W_O)$.

Rows of powers sum to one, too: <!-- otimes: given: A 1 = 1 --> $A A \mathbf{1} = \mathbf{1}$.

The sum over heads: $\sum_{h=1}^H (A^h \otimes W_O^h)(I \otimes W_V^h) = \sum_{h=1}^H A^h \otimes W_O^h W_V^h$.
"""
IN_COLUMN = [
    (r"h(x) = (A \otimes W_O W_V) x$.", r"h(x) = (A \otimes W_V W_O) x$."),
    (r"h(x) = (A \otimes W_O W_V) x$.", r"h(x) = (A^T \otimes W_O W_V) x$."),
    (r"&= A \otimes W_U W_O W_V W_E", r"&= A \otimes W_U W_V W_O W_E"),
    (r"&= (A \otimes W_U W_O)(I \otimes W_V W_E)", r"&= (A \otimes W_U W_O)(A \otimes W_V W_E)"),
    (r"A^T \otimes W_V^T W_O^T$", r"A^T \otimes W_O^T W_V^T$"),
    (r"A^T \otimes W_V^T W_O^T$", r"A \otimes W_V^T W_O^T$"),
    (r"= x + (A \otimes W_{OV}) x$", r"= (A \otimes W_{OV}) x$"),
    (r"= A^{h_2} A^{h_1} \otimes", r"= A^{h_1} A^{h_2} \otimes"),
    (r"W_{OV}^{h_2} W_{OV}^{h_1}$", r"W_{OV}^{h_1} W_{OV}^{h_2}$"),
    (r"\mathrm{tr}(A)\,\mathrm{tr}(W_V W_O)$", r"\mathrm{tr}(A) + \mathrm{tr}(W_V W_O)$"),
    (r"$A A \mathbf{1} = \mathbf{1}$", r"$A A^T \mathbf{1} = A A \mathbf{1}$"),
    (r"\sum_{h=1}^H A^h \otimes W_O^h W_V^h$", r"\sum_{h=1}^H A^h \otimes W_V^h W_O^h$"),
    (r"= \sum_{h=1}^H A^h \otimes W_O^h W_V^h$", r"= (\sum_{h=1}^H A^h) \otimes (\sum_{h=1}^H W_O^h W_V^h)$"),
]  # fmt: skip


def wrong_lines(path: Path, text: str) -> dict[int, str]:
    path.write_text(text)
    found = check_document(path).equations
    return {each.line: f"{each.verdict}: {each.why}" for each in found if each.verdict in WRONG}


def found_at(line: int, found: dict[int, str]) -> bool:
    """Return whether an error is reported on its line, and else on the next link of its chain."""
    return line in found and not found.keys() - {line, line + 1}


@pytest.mark.parametrize(("name", "text"), [("row.tex", ROW), ("column.md", COLUMN)])
def test_the_derivations_are_right_and_all_claims_are_proved(
    tmp_path: Path, name: str, text: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    report = check_document(path)
    assert set(report.counts()) == {"proved", "definition"}, str(report)
    assert report.counts()["proved"] >= 8


@pytest.mark.parametrize(("right", "wrong"), IN_ROW)
def test_an_error_is_found_in_the_row_convention(tmp_path: Path, right: str, wrong: str) -> None:
    line = ROW[: ROW.index(right)].count("\n") + 1
    assert found_at(line, wrong_lines(tmp_path / "a.tex", ROW.replace(right, wrong, 1)))


@pytest.mark.parametrize(("right", "wrong"), IN_COLUMN)
def test_an_error_is_found_in_the_column_convention(tmp_path: Path, right: str, wrong: str) -> None:
    line = COLUMN[: COLUMN.index(right)].count("\n") + 1
    assert found_at(line, wrong_lines(tmp_path / "a.md", COLUMN.replace(right, wrong, 1)))


def test_a_declaration_that_is_the_wrong_way_round_is_blamed(tmp_path: Path) -> None:
    text = ROW.replace(r"$W_O \in \R^{d_h \times d}$", r"$W_O \in \R^{d \times d_h}$")
    assert 6 in wrong_lines(tmp_path / "a.tex", text)
