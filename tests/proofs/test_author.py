"""Derivations as a researcher writes them are read, and nothing that is right is accused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from otimes.proofs.documents.check import check_document

HERE = Path(__file__).parent / "author"
# How many claims are proved at least, and errors that are found where they are planted.
DERIVATIONS = {
    "induction.md": (12, r"= T (W_E C B^\top W_E^\top)", r"= T (W_E C B W_E^\top)"),
    "layer_norm.md": (11, r"$W'' x = W \Gamma C x$", r"$W'' x = W C \Gamma x$"),
    "rotary.tex": (8, r"= (U\T q_i)\T c_j", r"= (U q_i)\T c_j"),
    "lora.ipynb": (18, r"(B G^{-1})(G A)", r"(B G)(G A)"),
}

SLOW = ("rotary.tex", "lora.ipynb")  # a second each


@pytest.mark.parametrize("name", DERIVATIONS)
def test_a_derivation_is_green_until_an_error_is_planted(tmp_path: Path, name: str) -> None:
    least, right, wrong = DERIVATIONS[name]
    report = check_document(HERE / name)
    counts = report.counts()
    assert not {"refuted", "shape", "unread"} & counts.keys(), str(report)
    assert counts["proved"] >= least
    if name in SLOW and not os.environ.get("OTIMES_LONG"):
        return
    text = (HERE / name).read_text()
    assert right in text
    (tmp_path / name).write_text(text.replace(right, wrong))
    assert not check_document(tmp_path / name).passed
