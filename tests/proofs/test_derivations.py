# ruff: noqa: E501 (an error is one line of a table here)
"""Derivations as people write them: read, right as they stand, and planted errors are found.

The documents were written for this test. An error may only be reported on the line where it was
planted, or on the link that goes on from there.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from otimes.proofs.documents.check import check_document
from otimes.proofs.documents.reporting.report import WRONG

DERIVATIONS = Path(__file__).parent / "derivations"
DOCUMENTS = sorted(path.name for path in DERIVATIONS.iterdir())
PLANTED = [
    ("lora.md", r"W_0 x + B A x = (W_0", r"W_0 x + A B x = (W_0"),  # order
    ("lora.md", r"(W_0 + B A) x.", r"(W_0 - B A) x."),  # sign
    ("lora.md", r"W x = W_0 x + s B (A x)", r"W x = W_0 x + B (A x)"),  # factor
    ("lora.md", r"W - s B A = W_0", r"W + s B A = W_0"),  # sign
    ("lora.md", r"s\, g (A x)^\top", r"s\, (A x) g^\top"),  # transpose
    ("lora.md", r"= B_1 A_1 + B_2 A_2 .", r"= B_1 A_2 + B_2 A_1 ."),  # index
    ("lora.md", r"(R^{-1} A) = B A", r"(R A) = B A"),  # inverse
    ("lora.md", r"A^\top (B^\top B) A$", r"A^\top (B B^\top) A$"),  # transpose, shape
    ("lora.md", r"\mathrm{tr}(B^\top B A A^\top)", r"\mathrm{tr}(B^\top B A^\top A)"),  # shape
    ("rope.tex", r"x_m\tr W_Q\tr R_m\tr R_n W_K x_n .", r"x_m\tr W_Q\tr R_m R_n W_K x_n ."),  # transpose
    ("rope.tex", r"x_m\tr W_Q\tr R_m\tr R_n W_K x_n .", r"x_m\tr W_K\tr R_m\tr R_n W_Q x_n ."),  # swap
    ("rope.tex", r"U V & 0 \\ 0 & S T \end", r"V U & 0 \\ 0 & S T \end"),  # order
    ("rope.tex", r"U V & 0 \\ 0 & S T \end", r"U V & 0 \\ 0 & S V \end"),  # shape
    ("rope.tex", r"&= X W_Q\tr W_K X\tr .", r"&= X W_Q W_K\tr X\tr ."),  # shape
    ("rope.tex", r"&= X W_Q\tr W_K X\tr .", r"&= X W_K\tr W_Q X\tr ."),  # swap
    ("rope.tex", r"(Q J)(K J)\tr = Q K\tr", r"(Q J)(K J) = Q K\tr"),  # transpose, shape
    ("rope.tex", r"M\tr = W_K\tr W_Q$", r"M\tr = W_Q\tr W_K$"),  # transpose
    ("rope.tex", r"\mathrm{tr}(W_K W_Q\tr)", r"\mathrm{tr}(W_K\tr W_K)"),  # wrong weight
    ("layernorm.md", r"X P = X - \frac{1}{d} X", r"X P = X - X"),  # scale
    ("layernorm.md", r"X P = X - \frac{1}{d} X", r"X P = X + \frac{1}{d} X"),  # sign
    ("layernorm.md", r"S X P (G W) + \mathbf{1} (c W + b)", r"S X P (G W) + \mathbf{1} b"),  # bias
    ("layernorm.md", r"S X P (G W) + \mathbf{1} (c W + b)", r"S P X (G W) + \mathbf{1} (c W + b)"),  # side
    ("layernorm.md", r"= S X \tilde{W} + \mathbf{1} \tilde{b}", r"= S X \tilde{W} + \mathbf{1} b"),  # bias
    ("layernorm.md", r"W_Q W_K^\top G^\top P^\top X^\top S^\top .", r"W_Q W_K^\top P^\top G^\top X^\top S^\top ."),  # order
    ("layernorm.md", r"P G W_Q W_K^\top G^\top P^\top$.", r"P G W_Q W_K^\top P G$."),  # order
    ("superposition.md", r"W^\top W x + b)$", r"W W^\top x + b)$"),  # shape
    ("superposition.md", r"x^\top x - 2 x^\top W^\top W x +", r"x^\top x - x^\top W^\top W x +"),  # factor
    ("superposition.md", r"x^\top W^\top W W^\top W x .", r"x^\top W^\top W x ."),  # factor
    ("superposition.md", r"(I - W^\top W) x .", r"(I - W W^\top) x ."),  # shape
    ("superposition.md", r"(W^\top W)^\top = W^\top W$", r"(W^\top W)^\top = W W^\top$"),  # shape
    ("superposition.md", r"W_{ki} W_{kj}", r"W_{ik} W_{kj}"),  # index, shape
    ("superposition.md", r"- h^\top W D x + h", r"+ h^\top W D x + h"),  # sign
    ("superposition.md", r"(R W)^\top (R W) = W^\top W", r"(R W) (R W)^\top = W^\top W"),  # transpose, shape
    ("attention.tex", r"= A^h X W_V^h W_O^h . \]", r"= A^h X W_O^h W_V^h . \]"),  # order
    ("attention.tex", r"Z_1 U_1 + Z_2 U_2 .", r"Z_1 U_2 + Z_2 U_1 ."),  # index
    ("attention.tex", r"\sum_{h=1}^{H} A^h X W_V^h W_O^h W_U .", r"\sum_{h=1}^{H} A^h X W_V^h W_O^h ."),  # shape
    ("attention.tex", r"Y W_U &= X W_U +", r"Y W_U &= X +"),  # shape
    ("attention.tex", r"A^h X W_V^h W_O^h &= A^h X W_{OV}^h", r"A^h X W_V^h W_O^h &= X A^h W_{OV}^h"),  # order
    ("attention.tex", r"X W_{QK}^h X^\top .", r"X (W_{QK}^h)^\top X^\top ."),  # transpose
    ("attention.tex", r"\operatorname{tr}(W_{OV}^h W_U W_E)$", r"\operatorname{tr}(W_U W_{OV}^h W_E)$"),  # order
    ("attention.tex", r"(A^h \otimes (W_{OV}^h)^\top)", r"(A^h \otimes W_{OV}^h)"),  # transpose
    ("attention.tex", r"(W_{OV}^h)^\top X^\top (A^h)^\top$", r"(A^h)^\top X^\top (W_{OV}^h)^\top$"),  # order
    ("attention.tex", r"(W_{OV}^h)^\top X^\top (A^h)^\top$", r"(W_{OV}^h)^\top X^\top A^h$"),  # transpose
    ("framework.md", r"&= (A \otimes W_O)(I \otimes W_V) \\", r"&= (A \otimes W_V)(I \otimes W_O) \\"),  # swap
    ("framework.md", r"&= A \otimes W_O W_V \\", r"&= W_O W_V \otimes A \\"),  # side of ⊗
    ("framework.md", r"+ A \otimes W_U W_{OV} W_E", r"+ A \otimes W_{OV}"),  # factors
    ("framework.md", r"I \otimes W_U W_E + A", r"I \otimes W_E W_U + A"),  # order
    ("framework.md", r"= W_E^T W_Q^T W_K W_E$", r"= W_E^T W_K^T W_Q W_E$"),  # swap
    ("framework.md", r"A_2 A_1 \otimes B_2 B_1", r"A_1 A_2 \otimes B_2 B_1"),  # order of composition
    ("framework.md", r"(A_2 A_1) \otimes (B_2 B_1)", r"(A_2 A_1) \otimes (B_1 B_2)"),  # order of composition
    ("framework.md", r"\sum_{h=1}^H A^h \otimes W_{OV}^h W_E", r"\sum_{h=1}^H A^h \otimes W_E W_{OV}^h"),  # order
    ("framework.md", r"= W_Q^T W_K W_O W_V$", r"= W_K^T W_Q W_O W_V$"),  # swap
    ("framework.md", r"= A^T \otimes W_V^T W_O^T$", r"= A \otimes W_V^T W_O^T$"),  # transpose
    ("framework.md", r"\mathrm{tr}(A)\, \mathrm{tr}(W_V W_O)", r"\mathrm{tr}(A) + \mathrm{tr}(W_V W_O)"),  # operation
    ("paths.md", r"+ A_2 A_1 X O_1 O_2." + "\n$$\n\nThe logits", r"." + "\n$$\n\nThe logits"),  # missing term
    ("paths.md", r"+ A_2 A_1 X O_1 O_2." + "\n$$\n\nThe logits", r"+ A_2 A_1 X O_2 O_1." + "\n$$\n\nThe logits"),  # order
    ("paths.md", r"+ A_2 (X + A_1 X O_1) O_2) W_U", r"+ A_2 (X + A_1 X) O_2) W_U"),  # missing factor
    ("paths.md", r"$X_2 - A_2 X_1 O_2 = X_1$", r"$X_2 - A_2 X_1 O_2 = X$"),  # wrong layer
    ("paths.md", r"D + E = (A_1 X O_1 +", r"D + E = (A_1 X O_2 +"),  # wrong head
    ("paths.md", r"Q K^\top (X + A_1 X O_1)^\top." + "\n$$\n\nThey", r"Q K^\top (X + X O_1)^\top." + "\n$$\n\nThey"),  # missing pattern
    ("paths.md", r"= (X + A_1 X O_1) Q K^\top (X + A_1 X O_1)^\top." + "\n$$\n\nQ-", r"= (X + A_1 X O_1) K Q^\top (X + A_1 X O_1)^\top." + "\n$$\n\nQ-"),  # swap
    ("paths.md", r"(A_1)_{ik} X_{kj}", r"(A_1)_{kj} X_{ik}"),  # index
    ("svd.tex", r"= V S S V^\top,", r"= V S V^\top,"),  # power
    ("svd.tex", r"M M^\top &= U S S U^\top", r"M M^\top &= V S S V^\top"),  # side
    ("svd.tex", r"$U^\top M = S V^\top$", r"$U^\top M = V S$"),  # transpose
    ("svd.tex", r"\mathrm{tr}(S S)$", r"\mathrm{tr}(S)$"),  # power
    ("svd.tex", r"$M V V^\top = M$", r"$V V^\top M = M$"),  # side
    ("svd.tex", r"(AB)^\top = B^\top A^\top$", r"(AB)^\top = A^\top B^\top$"),  # order
    ("svd.tex", r"\mathrm{tr}(A^\top A B B^\top) . \]", r"\mathrm{tr}(A^\top A B^\top B) . \]"),  # transpose
    ("svd.tex", r"\mathrm{tr}(A B - B A) = 0", r"\mathrm{tr}(A B + B A) = 0"),  # sign
    ("svd.tex", r"(B A B^{-1}) = B A A B^{-1}", r"(B A B^{-1}) = A A"),  # factor
    ("svd.tex", r"(AB)^{-1} = B^{-1} A^{-1}", r"(AB)^{-1} = A^{-1} B^{-1}"),  # order
    ("mlp.md", r"$\mathrm{FFN}(X) E = N (V E)$", r"$\mathrm{FFN}(X) E = N (E V)$"),  # shape
    ("mlp.md", r"= N_1 V_1 + N_2 V_2.", r"= N_1 V_2 + N_2 V_1."),  # index
    ("mlp.md", r"(X + N V) E = X E + N V E", r"(X + N V) E = X + N V E"),  # missing factor
    ("mlp.md", r"N_{iu} V_{uj}", r"N_{ui} V_{uj}"),  # index
    ("mlp.md", r"&= N V + (N k) r^\top.", r"&= N V + (N r) k^\top."),  # swap
    ("mlp.md", r"E = N V E + (N k)(r^\top E)", r"E = N V E + N k r^\top"),  # missing factor
    ("mlp.md", r"V^\top k r^\top + r k^\top V", r"V^\top k r^\top + k r^\top V"),  # transpose
    ("mlp.md", r"(g(X W_1) \odot (X W_2)) V +", r"(g(X W_1) (X W_2)) V +"),  # operation
    ("sae.ipynb", r"so $X = \\hat{X} + R$", r"so $X = \\hat{X} - R$"),  # sign
    ("sae.ipynb", r"X = F W_{dec} + \\mathbf{1} b_d + R.", r"X = F W_{dec} + R."),  # bias
    ("sae.ipynb", r"&= F W_{dec} W_U + \\mathbf{1} b_d W_U", r"&= F W_{dec} W_U + \\mathbf{1} b_d"),  # shape
    ("sae.ipynb", r"\\mathrm{tr}((X - \\hat{X})^\\top (X", r"\\mathrm{tr}((X + \\hat{X})^\\top (X"),  # sign
    ("sae.ipynb", r"= A F W_{dec} O + A \\mathbf{1} b_d O", r"= A F W_{dec} O + \\mathbf{1} b_d"),  # factors
    ("sae.ipynb", r"= A F W_{dec} O + \\mathbf{1} b_d O$", r"= F W_{dec} O + \\mathbf{1} b_d O$"),  # pattern
    ("sae.ipynb", r"(W_{dec} B W_{dec}^\\top) F^\\top$", r"(W_{dec}^\\top B W_{dec}) F^\\top$"),  # shape
    ("sae.ipynb", r"(F D)(D^{-1} W_{dec}) = F", r"(F D)(D W_{dec}) = F"),  # inverse
]  # fmt: skip


@cache
def equations_of(name: str) -> set[tuple[int | None, int, str]]:
    return {(e.cell, e.line, e.tex) for e in check_document(DERIVATIONS / name).equations}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_right_derivations_are_read_and_no_equation_is_accused(name: str) -> None:
    report = check_document(DERIVATIONS / name)
    wrong = [f"{e.line}: {e.tex}: {e.why}" for e in report.equations if e.verdict in WRONG]
    assert not wrong
    counts = report.counts()
    assert counts.get("unread", 0) == 0
    assert counts["proved"] >= 7
    assert report.notes == []


@pytest.mark.parametrize(("name", "old", "new"), PLANTED)
def test_a_planted_error_is_found_and_no_other_line_is_accused(
    name: str, old: str, new: str, tmp_path: Path
) -> None:
    text = (DERIVATIONS / name).read_text()
    assert text.count(old) == 1
    path = tmp_path / name
    path.write_text(text.replace(old, new))
    before = equations_of(name)
    wrong = [e for e in check_document(path).equations if e.verdict in WRONG]
    assert wrong, "not found"
    lines = {(e.cell, e.line) for e in wrong}
    assert len(lines) <= 2, [(e.line, e.tex, e.why) for e in wrong]
    assert any((e.cell, e.line, e.tex) not in before for e in wrong)
