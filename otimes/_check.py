"""The implementation of `otimes check` and `otimes prove`: options, and text output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import otimes as ot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.table import Table

    from otimes.algebra.verdict import Verdict
    from otimes.proofs.documents.reporting.report import DocumentReport

STYLES = {
    "proved": "green",
    "definition": "dim",
    "refuted": "bold red",
    "shape": "bold red",
    "needs-hypothesis": "yellow",
    "undecided": "cyan",
    "unread": "magenta",
}


def check_files(
    files: Sequence[str], notation: str | None, on_progress: Callable[[int, int, str], None]
) -> list[DocumentReport]:
    """Return the reports on files, in their order."""
    reports = []
    for k, file in enumerate(files):
        at = file if len(files) == 1 else f"{file} ({k + 1} of {len(files)})"
        on_progress(0, 1, at)
        reports.append(ot.check_document(file, notation, _told(on_progress, at)))
    return reports


def _told(on_progress: Callable[[int, int, str], None], at: str) -> Callable[[int, int], None]:
    return lambda done, total: on_progress(done, total, at)


def write(path: str, text: str) -> None:
    """Write a file that the user has asked for. Raises OtimesError when it cannot be written."""
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ot.OtimesError(f"cannot write {path}: {error.strerror}") from None


def write_sarif(reports: Sequence[DocumentReport], path: str) -> None:
    """Write the reports in the Static Analysis Results Interchange Format."""
    from otimes.proofs.documents.reporting.report import to_sarif

    write(path, json.dumps(to_sarif(reports, ot.__version__), indent=2, ensure_ascii=False) + "\n")


def table(report: DocumentReport) -> Table:
    """Return the equations of a report as a table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    from otimes.proofs.documents.reporting.report import details

    found = Table("line", "verdict", "equation", title=report.path, title_justify="left")
    for each in report.equations:
        place = f"{each.cell}:{each.line}" if each.cell else str(each.line)
        verdict = Text(each.verdict, style=STYLES[each.verdict])
        if each.ignored:
            verdict = Text(f"{each.verdict} (ignored)", style="dim")
        text = Text(each.tex)
        if each.verdict not in ("proved", "definition") or each.hypotheses or each.facts:
            text.append("".join(f"\n{line}" for line in details(each)), style="dim")
        found.add_row(place, verdict, text)
    return found


def fixes(reports: Sequence[DocumentReport]) -> list[str]:
    """Return the proposed edits, each with its place; none is applied."""
    found = []
    for report in reports:
        for each in report.equations:
            if each.suggestion and not each.ignored:
                found.append(f"{each.file}:{each.line}:{each.column}")
                found += [f"- {each.tex}", f"+ {each.suggestion}"]
    return found


def prove_text(
    equation: str, shapes: str | None, given: Sequence[str]
) -> tuple[Verdict, dict[str, Any]]:
    """Return the verdict on an equation, and the same as data for JSON."""
    from otimes.algebra.notation.text import read_claim, shown

    claim = read_claim(equation, None, given, shapes)
    verdict = ot.decide(claim.lhs, claim.rhs, claim.given)
    counterexample = verdict.counterexample
    return verdict, {
        "schema": 1,
        "equation": equation,
        "reading": f"{shown(claim.lhs)} = {shown(claim.rhs)}",
        "verdict": verdict.status,
        "why": verdict.reason,
        "counterexample": None if counterexample is None else str(counterexample),
        "would_need": [] if counterexample is None else [str(need) for need in verdict.would_need],
    }
