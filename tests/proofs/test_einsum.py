"""Calls of einsum in text are read as what they compute, and nothing else of code is."""

from __future__ import annotations

import pytest

from otimes.proofs.documents.check import check_text
from otimes.proofs.documents.containers.einsum import in_latex

SHAPES = (
    "$Q, K, V \\in \\mathbb{R}^{n \\times d}$, $A \\in \\mathbb{R}^{n \\times n}$, "
    "$W_O \\in \\mathbb{R}^{d \\times m}$.\n\n"
)


@pytest.mark.parametrize(
    ("code", "tex"),
    [
        ("S = torch.einsum('bqhd,bkhd->bhqk', Q, K)", r"S = Q K^\top"),
        ('Z = einsum("qk, kd -> qd", A, V)', "Z = A V"),
        ("y = einsum('b q head, b k head -> b q k', Q, K)", r"y = Q K^\top"),
        ("out = einsum(Z, self.W_O, 'q d, d m -> q m')", r"\mathrm{out} = Z W_{\mathrm{O}}"),
        ("y = np.einsum('ij,kj,kl->il', A, B, C)", r"y = A B^\top C"),
        ("B = einsum('ij->ji', A)", r"B = A^\top"),
        ("t = einsum('ii->', A)", ""),
        ("t = einsum('ij,ij->', A, B)", r"t = \sum_{i} \sum_{j} A_{i,j} B_{i,j}"),
        ("C = einsum('ij,ij->ij', A, B)", ""),
        ("x = einsum('ij,jk->ik', f(A), B)", ""),
        ("x = einsum('ij,jk->ik', A)", ""),
        ("einsum('ij,jk->ik', A, B)", ""),
    ],
)
def test_calls_as_formulas(code: str, tex: str) -> None:
    assert in_latex(code) == tex


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("`S = einsum('qd,kd->qk', Q, K)`, so $S = Q K^\\top$.", "proved"),
        ("`S = einsum('qd,kd->qk', Q, K)`, so $S = K Q^\\top$.", "refuted"),
        ("`torch.einsum('qk,kd->qd', A, V)` is $A V$.", "proved"),
        ("`torch.einsum('kq,kd->qd', A, V)` is $A V$.", "refuted"),
        ("`torch.einsum('qk,dk->qd', A, V)` is $A V$.", "shape"),
    ],
)
def test_calls_in_text_are_checked(text: str, verdict: str) -> None:
    verdicts = [each.verdict for each in check_text(SHAPES + text).equations]
    assert verdict in verdicts[3:]
