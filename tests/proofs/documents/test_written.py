"""Twelve documents by different hands: read, not accused, and errors are found where they stand.

`written/errors.json` has, for each document, what is replaced by what, and whether it is found.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from otimes.proofs.documents.check import check_document

HERE = Path(__file__).parent / "written"
ERRORS = json.loads((HERE / "errors.json").read_text())
LONG = bool(os.environ.get("OTIMES_LONG"))
QUICK = ("column.tex", "ln.md", "lora.tex", "mixed.md", "paper2.tex")


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_a_document_is_read_and_its_errors_are_found(tmp_path: Path, name: str) -> None:
    text = (HERE / name).read_text()
    counts = check_document(HERE / name).counts()
    assert not {"refuted", "shape", "unread"} & counts.keys(), counts
    assert counts["proved"] >= 10
    if name not in QUICK and not LONG:
        return
    found = [each for each in ERRORS[name] if each["found"]]
    for together in [[each] for each in found] if LONG else [found]:
        wrong = text
        for each in together:
            right, put = (_in(name, each[side]) for side in ("right", "wrong"))
            assert right in wrong
            wrong = wrong.replace(right, put, 1)
        (tmp_path / name).write_text(wrong)
        report = check_document(tmp_path / name)
        accused = {(each.cell, each.line) for each in report.equations if each.is_wrong}
        assert len(accused) >= len(together), (together, str(report))


def test_most_errors_are_found() -> None:
    every = [each["found"] for errors in ERRORS.values() for each in errors]
    assert sum(every) >= 0.85 * len(every)


def _in(name: str, text: str) -> str:
    return json.dumps(text)[1:-1] if name.endswith("ipynb") else text
