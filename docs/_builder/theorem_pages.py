"""The pages of the theorems, as Markdown, generated from the verification report.

The content of a page comes from the declaration of its theorem and from the evidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import controls
import in_browser
import prose
import symbols
from equations import aligned, equation, lines_of, split_sum
from evidence import kept
from otimes.algebra.language.latex import latex
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.normal_form import NormalForm, normal_form
from otimes.proofs.catalogue import CHAPTERS
from otimes.proofs.claims import (
    Bound,
    Definition,
    ErrorLaw,
    Method,
    NonIdentity,
    Observation,
    Property,
    Statement,
)
from otimes.proofs.evidence import FALLEN_SHORT, Report, TheoremReport
from otimes.proofs.mutants import MutantEvidence
from otimes.proofs.render import TEX, hypotheses, named, said_of
from otimes.proofs.theorem import Theorem
from words import block, code, count, figure, plain, table

CONVENTIONS = {
    "row": "Row convention: a position is a row of $X$, and weights act on the right.",
    "column": "Column convention: weights act on the left, and in $A \\otimes W$ the pattern $A$ "
    "acts on the slow index, the position.",
    "either": "Holds as it stands in the row and in the column convention.",
}

# What the first line of the evidence is, for claims that are not proved like an equation.
FIRST_CHECK = {
    "counterexample": "told apart by exact numbers",
    "definition": "definition",
    "approximation": "the measured power of the step",
    "method": "the function, by its theorems",
    "observation": "looked at on the trained models",
}

# The names of kinds of entries; the others are theorems.
CALLED = {
    "counterexample": "Counterexample",
    "definition": "Definition",
    "approximation": "Approximation",
    "method": "Method",
    "observation": "Observation",
}

# Normal forms with more diagrams than this are not printed.
MOST_DIAGRAMS = 12


@dataclass(frozen=True, slots=True)
class Entry:
    """A theorem with its number in this build."""

    number: str
    report: TheoremReport

    @property
    def theorem(self) -> Theorem:
        """The declaration."""
        return self.report.theorem

    @property
    def path(self) -> str:
        """Where its page lies in the site's sources."""
        return f"theorems/{self.theorem.name}.md"


@dataclass(frozen=True, slots=True)
class Chapter:
    """The theorems of one chapter, in the order of the catalogue."""

    number: int
    title: str
    entries: tuple[Entry, ...]


Book = tuple[Chapter, ...]


def numbered(report: Report) -> Book:
    """Number the theorems within their chapters, in the order of the catalogue."""
    chapters: dict[int, list[TheoremReport]] = {}
    for each in report.theorems:
        chapters.setdefault(each.theorem.chapter, []).append(each)
    return tuple(
        Chapter(
            number,
            CHAPTERS[number][0],
            tuple(Entry(f"{number}.{place}", each) for place, each in enumerate(members, 1)),
        )
        for number, members in chapters.items()
    )


def pages(report: Report) -> list[tuple[str, str]]:
    """Return the path and the Markdown of every page: the index, then the theorems."""
    book = numbered(report)
    made = [("theorems/index.md", index(report, book))]
    for entry in (entry for chapter in book for entry in chapter.entries):
        text = kept(entry.report, entry.number, partial(theorem_page, entry))
        made.append((entry.path, text))
    return made


def place_in(nav: list[Any], book: Book) -> None:
    """Put the pages under "Theorems" in the navigation, a section for each chapter."""
    section = next(item for item in nav if isinstance(item, dict) and "Theorems" in item)
    section["Theorems"] = ["theorems/index.md"] + [
        {
            f"{chapter.number} {chapter.title}": [
                {f"{e.number} {prose.heading(e.theorem.title)}": e.path} for e in chapter.entries
            ]
        }
        for chapter in book
    ]


def shortcomings(report: Report) -> list[str]:
    """Return a line for each theorem and each definition with a failed check."""
    theorems = [
        f"the theorem {each.theorem.name} did not pass its checks: see its page"
        for each in report.theorems
        if not each.passed
    ]
    return theorems + [
        f"the patterns recorded on {each.model} are not the softmax of the scores"
        for each in report.definitions
        if not each.passed
    ]


def index(report: Report, book: Book) -> str:
    """Return the list of theorems by chapter, each with its equation."""
    parts = [
        "# Theorems",
        f"{count(len(report.theorems), 'theorem')}: {report.states()}.",
    ]
    for chapter in book:
        parts.append(f"## {chapter.number} {chapter.title}")
        parts.append('<div class="theorem-list" markdown>')
        for entry in chapter.entries:
            name = entry.path.removeprefix("theorems/")
            parts.append(
                f"**{entry.number}** [{prose.heading(entry.theorem.title)}]({name})"
                f" {outcome(entry.report)}\n\n{displayed(entry.theorem)}"
            )
        parts.append("</div>")
    if report.definitions:
        parts += ["## What they stand on", definitions(report)]
    return "\n\n".join(parts) + "\n"


def definitions(report: Report) -> str:
    """Return the section on the definition of recorded patterns, and its check."""
    rows = [
        [code(each.model), verdict(each.passed), figure(each.ratio), _place(each.where)]
        for each in report.definitions
    ]
    return (
        "The theorems take attention patterns as given matrices. That a pattern is the softmax of"
        " the unmasked scores is a definition; the recorded patterns are compared with an"
        " independent computation of it.\n\n"
        + table(["model", "outcome", "error/bound", "worst at"], rows, right=(2,))
    )


def theorem_page(entry: Entry) -> str:
    """Return the page of one theorem."""
    theorem = entry.theorem
    called = CALLED.get(entry.report.kind, "Theorem")
    table_of_symbols = symbols.text(theorem)
    parts = [
        f'# <span class="number">{called} {entry.number}</span> {prose.heading(theorem.title)}',
        '<div class="statement" markdown>',
        displayed(theorem),
        f"{CONVENTIONS[theorem.convention]}\n{{ .convention }}",
        "</div>",
        prose.markdown(theorem.prose),
        f"## Symbols\n\n{table_of_symbols}" if table_of_symbols else "",
        steps(theorem),
        diagrams(entry.report),
        in_browser.text(theorem),
        "## Evidence",
        evidence(entry.report),
        "## Source",
        source(theorem),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def displayed(theorem: Theorem) -> str:
    """Return the displayed formula, with its hypotheses below."""
    claim = theorem.claim()
    match claim:
        case Statement():
            shown = equation(latex(claim.lhs), latex(claim.rhs))
        case NonIdentity():
            shown = equation(latex(claim.lhs), latex(claim.rhs), sign=TEX["≠"])
        case Bound():
            shown = equation(latex(claim.smaller), latex(claim.larger), sign=TEX["≤"])
        case Definition():
            shown = equation(named(claim.name, TEX), latex(claim.value), sign=TEX[":="])
        case Property():
            shown = said_of(claim.fact, latex, TEX)
        case ErrorLaw() | Method():
            shown = claim.law
        case Observation():
            return f"Criterion: {prose.markdown(claim.criterion)}."
    parts = [f"$$\n{shown}\n$$"] if shown else []
    if under := hypotheses(claim, latex, TEX):
        assumed = ", ".join(f"${each}$" for each in under)
        parts.append(f"where {assumed}\n{{ .hypotheses }}")
    return "\n\n".join(parts)


LONGEST = 4_000
"""A chain with a line of more characters of TeX is left out."""


def steps(theorem: Theorem) -> str:
    """Return the chain of named rules from one side to the other, if there is one."""
    chain = theorem.steps()
    if chain is None:
        return ""
    if max((len(latex(line.expression)) for line in chain.lines), default=0) > LONGEST:
        return ""  # nobody reads it; the certificate has the proof
    preface = chain.preface(lambda e: f"${latex(e)}$")
    shown = ["## Step by step", preface, f"$$\n{_in_lines(latex(chain.lhs))}\n$$"]
    for line in chain.lines:
        # `A[h][i, j]` is no link of Markdown.
        reading = prose.markdown(line.readings).replace("][", "]\\[")
        shown.append(f"by {code(line.rules)}: {reading}\n{{ .rule }}")
        shown.append(f"$$\n= {_in_lines(latex(line.expression))}\n$$")
    return "\n\n".join(filter(None, shown))


def _in_lines(tex: str) -> str:
    first, *more = lines_of(tex)
    return first if not more else aligned([f"& {first}", *[f"& {line}" for line in more]])


def diagrams(report: TheoremReport) -> str:
    """Return the normal form in index notation: one for both sides, as the proof found.

    A product over any number of layers has none.
    """
    statement = report.theorem.claim()
    if not isinstance(statement, Statement) or statement.given:
        return ""
    if statement.lhs.has(LayerProduct, OrderSum) or statement.rhs.has(LayerProduct, OrderSum):
        return ""
    left = normal_form(statement.lhs)
    heading = "## In index notation"
    link = "[normal form](../normal-form.md)"
    if report.proof.status == "proved":
        size = count(len(left), "diagram")
        return f"{heading}\n\nBoth sides have the same {link}, {size}.\n\n{_indexed(left)}"
    right = normal_form(statement.rhs)
    return (
        f"{heading}\n\nThe {link} of the left side, then that of the right.\n\n"
        f"{_indexed(left)}\n\n{_indexed(right)}"
    )


def _indexed(form: NormalForm) -> str:
    """Return a sum of diagrams, one a line; a long one is only counted."""
    if len(form) > MOST_DIAGRAMS:
        return f"({count(len(form), 'diagram')}: too many to print.)"
    return f"$$\n{aligned(f'& {term}' for term in split_sum(form.latex()))}\n$$"


def evidence(report: TheoremReport) -> str:
    """Return the results of the four checks."""
    proof, exact, mutants = report.proof, report.exact, report.mutants
    applied = [model for model in report.models if model.applies]
    fine = proof.status not in FALLEN_SHORT
    first = FIRST_CHECK.get(report.kind, "proof, for every size")
    uses = f"uses {', '.join(code(name) for name in proof.used)}" if proof.used else ""
    checks = [[first, mark(proof.status, fine), uses]]
    if exact is not None:
        checks.append(
            [
                "exact, on random sizes and numbers",
                verdict(exact.passed),
                count(exact.examples, "example"),
            ]
        )
    if applied:
        worst = max(model.ratio for model in applied)
        checks.append(
            [
                "trained models",
                verdict(all(model.passed for model in applied)),
                f"{count(len(applied), 'model')}, worst error/bound {figure(worst)}",
            ]
        )
    if mutants is not None:
        checks.append(
            [
                "mutants",
                verdict(not mutants.escaped),
                f"{mutants.refuted} refuted, {len(mutants.still_true)} still true"
                + (f", {len(mutants.escaped)} escaped" if mutants.escaped else ""),
            ]
        )
    checks += [[prose.markdown(check.name), verdict(check.passed), ""] for check in report.more]
    parts = [table(["check", "outcome", ""], checks)]
    if proof.status != "proved" or report.kind == "property":
        parts.append(plain(proof.detail) if report.kind == "observation" else block(proof.detail))
    parts.append(controls.plots(report.criteria))
    parts += [block(f"{check.name}: {check.seen}") for check in report.more if check.seen]
    if exact is not None and not exact.passed:
        parts.append(block(exact.detail))
    if report.models:
        parts += ["### On trained models", models(report)]
    if mutants is not None and (mutants.still_true or mutants.escaped):
        parts += ["### Mutants", mutant_lists(mutants)]
    return "\n\n".join(filter(None, parts))


def models(report: TheoremReport) -> str:
    """Return the table of the comparisons with recorded activations."""
    rows = []
    for model in report.models:
        if model.applies:
            where = _place(model.where) if model.passed else model.why
            rows.append([code(model.model), figure(model.ratio), figure(model.sensitivity), where])
        else:
            rows.append([code(model.model), "", "", f"does not apply: {model.why}"])
    head = ["model", "error/bound", "sensitivity", "worst at"]
    return (
        table(head, rows, right=(1, 2))
        + "\n\nAn error/bound of at most 1 is what equality looks like in floating point; the"
        " sensitivity is the smallest detectable relative change of any one factor."
        " See [Rounding](../rounding.md)."
    )


def _place(where: str) -> str:
    """Return a place with its loops as equations: `recorded z, layer = 1, head = 3`."""
    return re.sub(r" (\d+)(?=,|$)", r" = \1", where)


def mutant_lists(mutants: MutantEvidence) -> str:
    """Return the lists of mutants that were not refuted, with explanations."""
    parts = []
    if still_true := mutants.still_true:
        parts.append("Still true: here the damage says the same thing in another way.")
        parts.append("\n".join(f"- {code(mutant)}" for mutant in still_true))
    if escaped := mutants.escaped:
        parts.append("Escaped: neither refuted nor confirmed.")
        parts.append("\n".join(f"- {code(mutant)}" for mutant in escaped))
    return "\n\n".join(parts)


def source(theorem: Theorem) -> str:
    """Return the source of the theorem, and the inventory entries that it covers."""
    name = f"Name: {code(theorem.name)}."
    covers = f" Inventory: {', '.join(theorem.covers)}." if theorem.covers else ""
    return f"{theorem.source}\n\n{name}{covers}\n{{ .small }}"


def outcome(report: TheoremReport) -> str:
    """Return the outcome of a theorem: the verdict of the proof, or that a check failed."""
    status = report.proof.status
    if report.passed or status in FALLEN_SHORT:
        return mark(status, report.passed)
    return mark(f"{status}, but a check failed", False)


def mark(word: str, good: bool) -> str:
    """Return a word in the colour of good or bad news."""
    return f'<span class="mark {"good" if good else "bad"}">{word}</span>'


def verdict(passed: bool) -> str:
    """Return "passed" or "failed" in its colour."""
    return mark("passed" if passed else "failed", passed)
