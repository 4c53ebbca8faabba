"""The equations of our own pages are checked by what they describe."""

from __future__ import annotations

from pathlib import Path

import pytest

from otimes.proofs.documents.check import check_document

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_equation_of_our_pages_is_wrong(page: Path) -> None:
    report = check_document(page)
    assert report.passed, "\n".join(
        f"{each.line}: {each.tex}: {each.why}" for each in report.equations if each.is_wrong
    )


def test_the_equations_of_our_pages_are_read() -> None:
    verdicts = [each.verdict for page in PAGES for each in check_document(page).equations]
    assert verdicts.count("proved") >= 10
    assert verdicts.count("unread") <= len(verdicts) // 10
