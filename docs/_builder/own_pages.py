"""The front page of a site of theorems of a user: `own_site`."""

from __future__ import annotations

from evidence_words import outcome
from otimes.proofs.evidence import Report
from prose import heading
from theorem_pages import entries, numbered


def front(report: Report) -> str:
    """Return the front page as Markdown: the theorems with their states."""
    rows = [
        f"- {each.number} [{heading(each.theorem.title)}]({each.path}) {outcome(each.report)}"
        for each in entries(numbered(report))
    ]
    says = (
        f"{report.states()}. Each page has the proof, which is checked in the page, and the"
        " evidence for the theorem."
    )
    serve = (
        "The pages are made by `otimes pages --html`. Serve them with `otimes docs --site FOLDER`:"
        " browsers start no judge from files."
    )
    return "\n\n".join(["# Theorems", says, "\n".join(rows), serve])
