"""The report on a document: its equations with their verdicts, as text, JSON or SARIF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from otimes.proofs.documents.reporting.found import VERDICTS
from otimes.proofs.documents.reporting.html import Mark, page

SCHEMA = 1
WRONG = ("refuted", "shape")
LEVELS = {
    "refuted": "error",
    "shape": "error",
    "needs-hypothesis": "warning",
    "undecided": "note",
    "unread": "note",
}
RULES = {
    "refuted": "The equation is false; a counterexample is given.",
    "shape": "The shapes of the parts do not conform.",
    "needs-hypothesis": "The equation holds only under a hypothesis that is not declared.",
    "undecided": "The equation was read, and neither proved nor refuted.",
    "unread": "The formula was not read.",
}


@dataclass(slots=True)
class Equation:
    """One equation, or one link of a chain, with its verdict.

    `line` and `column` (from 1) are where it stands in the file, `cell` its cell in a notebook.
    `ignored` is the reason of a comment that suppresses it; `reading` the statement that was
    decided, in Unicode; `span` its offsets in the document. `related` are the cells and lines of
    definitions that may be wrong in the place of an equation that is called wrong. `facts` are the
    laws of ranks and norms by which an inequality is proved; of it there is no certificate.
    """

    file: str
    line: int
    column: int
    tex: str
    verdict: str
    why: str = ""
    counterexample: Any = None
    suggestion: str = ""
    reading: str = ""
    hypotheses: tuple[str, ...] = ()
    ignored: str = ""
    cell: int | None = None
    span: tuple[int, int] = (0, 0)
    facts: tuple[str, ...] = ()
    related: tuple[tuple[int | None, int], ...] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether the equation is accused and not ignored."""
        return self.verdict in WRONG and not self.ignored

    def to_json(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "cell": self.cell,
            "tex": self.tex,
            "verdict": self.verdict,
            "why": self.why,
            "reading": self.reading,
            "hypotheses": list(self.hypotheses),
            "facts": list(self.facts),
            "related": [{"cell": cell, "line": line} for cell, line in self.related],
            "counterexample": None if self.counterexample is None else str(self.counterexample),
            "suggestion": self.suggestion or None,
            "ignored": self.ignored or None,
        }


@dataclass(slots=True)
class DocumentReport:
    """The equations of a document with their verdicts.

    `formulas` counts every formula, also those that state nothing; `undeclared` are the symbols
    whose shapes are not known, with how often they occur; `notes` is what concerns the whole text.
    """

    path: str
    equations: list[Equation] = field(default_factory=list)
    formulas: int = 0
    undeclared: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    text: str = ""

    @property
    def passed(self) -> bool:
        """Whether no equation is refuted or has shapes that do not conform."""
        return not any(equation.is_wrong for equation in self.equations)

    def __bool__(self) -> bool:
        """Return `passed`, so that `assert check_document(…)` fails where an equation does."""
        return self.passed

    def counts(self) -> dict[str, int]:
        """Return how many equations have each verdict."""
        found = Counter(equation.verdict for equation in self.equations)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}

    def summary(self) -> str:
        """Return the counts as one sentence."""
        total = len(self.equations)
        counts = ", ".join(f"{n} {verdict}" for verdict, n in self.counts().items())
        ignored = sum(bool(equation.ignored) for equation in self.equations)
        text = f"{self.path}: {total} equation{'s' * (total != 1)}"
        text += f": {counts}" if counts else ""
        return text + (f" ({ignored} ignored)" if ignored else "")

    def to_json(self) -> dict[str, Any]:
        """Return the report as data for JSON."""
        return {
            "path": self.path,
            "passed": self.passed,
            "counts": self.counts(),
            "formulas": self.formulas,
            "undeclared": self.undeclared,
            "notes": self.notes,
            "equations": [equation.to_json() for equation in self.equations],
        }

    def html(self) -> str:
        """Return the document with a mark at each equation, as one HTML file."""
        marks = [
            Mark(
                each.verdict,
                each.span,
                each.line,
                [*([each.reading] if each.reading else []), *details(each)],
                each.ignored,
                each.is_wrong or each.verdict == "needs-hypothesis",
            )
            for each in self.equations
        ]
        return page(self.path, self.text, marks, self.counts(), self.notes)

    def __str__(self) -> str:
        """Return one line for each equation, and what was found below it."""
        return "\n".join([*lines(self), self.summary()])


def lines(report: DocumentReport) -> list[str]:
    """Return the report as lines of plain text."""
    found = []
    for each in report.equations:
        cell = f"cell {each.cell}, " if each.cell else ""
        verdict = f"{each.verdict} (ignored: {each.ignored})" if each.ignored else each.verdict
        found.append(f"{each.file}:{each.line}:{each.column}: {cell}{verdict}: {each.tex}")
        if each.verdict not in ("proved", "definition") or each.hypotheses or each.facts:
            found += [f"    {line}" for line in details(each)]
    found += [f"note: {note}" for note in report.notes]
    if report.undeclared:
        named = ", ".join(f"{key} ({n})" for key, n in report.undeclared.items())
        found.append(f"not declared: {named}")
    return found


def details(equation: Equation) -> list[str]:
    """Return the reason, the counterexample and the suggestion as lines."""
    found = [equation.why] if equation.why else []
    if equation.counterexample is not None:
        found += str(equation.counterexample).splitlines()
    if equation.suggestion:
        found.append(f"did you mean: {equation.suggestion}")
    return found


def to_json(reports: Sequence[DocumentReport]) -> dict[str, Any]:
    """Return reports as one JSON object with the version of its schema."""
    return {
        "schema": SCHEMA,
        "passed": all(report.passed for report in reports),
        "documents": [report.to_json() for report in reports],
    }


def to_sarif(reports: Iterable[DocumentReport], version: str) -> dict[str, Any]:
    """Return reports in the Static Analysis Results Interchange Format, version 2.1.0."""
    rules = [
        {
            "id": rule,
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": LEVELS[rule]},
        }
        for rule, text in RULES.items()
    ]
    results = [
        _result(equation)
        for report in reports
        for equation in report.equations
        if equation.verdict in RULES
    ]
    driver = {"name": "otimes", "version": version, "rules": rules}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(equation: Equation) -> dict[str, Any]:
    region = {"startLine": equation.line, "startColumn": equation.column}
    found: dict[str, Any] = {
        "ruleId": equation.verdict,
        "ruleIndex": [*RULES].index(equation.verdict),
        "level": LEVELS[equation.verdict],
        "message": {"text": "\n".join([equation.tex, *details(equation)])},
        "locations": [{"physicalLocation": _place(equation, region)}],
    }
    if equation.related:
        found["relatedLocations"] = [
            {
                "id": number,
                "message": {"text": "the definition that may be wrong"},
                "physicalLocation": _place(equation, {"startLine": line}),
            }
            for number, (_, line) in enumerate(equation.related)
        ]
    if equation.ignored:
        found["suppressions"] = [{"kind": "inSource", "justification": equation.ignored}]
    return found


def _place(equation: Equation, region: dict[str, int]) -> dict[str, Any]:
    return {"artifactLocation": {"uri": equation.file.replace("\\", "/")}, "region": region}


def github_annotations(reports: Iterable[DocumentReport]) -> list[str]:
    """Return workflow commands of GitHub Actions, which it shows beside the lines of a change."""
    found = []
    for report in reports:
        for each in report.equations:
            level = LEVELS.get(each.verdict)
            if level in (None, "note") or each.ignored:
                continue
            message = _escaped("\n".join([each.tex, *details(each)]))
            file = _escaped(each.file).replace(":", "%3A").replace(",", "%2C")
            place = f"file={file},line={each.line},col={each.column}"
            found.append(f"::{level} {place},title=otimes {each.verdict}::{message}")
    return found


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
