"""The pages of the theorems, as Markdown, generated from the verification report.

What takes long (diagrams, derivations, certificates) is the body of an entry. It does not depend on
the entry's number or on other entries, and is kept between builds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import chains
import evidence_words
import in_browser
import pictures
import prose
import references
import runnable
import symbols
from derived import derivations
from equations import equation
from evidence import CACHE, Kept, builder, kept_all
from evidence_words import outcome
from otimes.algebra.language.latex import latex
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
from otimes.proofs.evidence import Report, TheoremReport
from otimes.proofs.render import TEX, hypotheses, named, said_of
from otimes.proofs.theorem import Theorem
from relations import Graph, Relations, graph
from words import code, count, figure, table

CONVENTIONS = {
    "row": "Row convention: a position is a row of $X$, and weights act on the right.",
    "column": "Column convention: weights act on the left, and in $A \\otimes W$ the pattern $A$ "
    "acts on the slow index, the position.",
    "either": "Holds as it stands in the row and in the column convention.",
}

UNWRITTEN = ("method", "approximation")
"""Kinds of entries that are no equation between matrices."""

SYMBOLS = re.compile(r"[A-Za-z](?:_\w+)?(?: [A-Za-z](?:_\w+)?)*")
"""What is defined, if it is a formula and not a word."""

LONGEST_CLAIM = 300
"""Characters of a claim in the list of its chapter."""

# The names of kinds of entries; the others are theorems.
CALLED = {
    "counterexample": "Counterexample",
    "definition": "Definition",
    "approximation": "Approximation",
    "method": "Method",
    "observation": "Observation",
}


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

    @property
    def path(self) -> str:
        """Where its page lies in the site's sources."""
        return f"theorems/chapter-{self.number}/index.md"


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


def entries(book: Book) -> list[Entry]:
    """Return all entries in reading order."""
    return [entry for chapter in book for entry in chapter.entries]


def pages(report: Report) -> list[tuple[str, str]]:
    """Return the path and the Markdown of every page: the index, then the theorems."""
    book = numbered(report)
    made = bodies(report)
    links = links_of(report)
    listed = entries(book)
    by_name = {entry.theorem.name: entry for entry in listed}
    shown = [
        (entry.path, theorem_page(entry, made[name], links.of(name), by_name))
        for name, entry in by_name.items()
    ]
    chapters = [(chapter.path, chapter_page(chapter)) for chapter in book]
    return [("theorems/index.md", index(report, book)), *shown, *chapters]


def links_of(report: Report) -> Graph:
    """Return the recorded uses of the entries of a report, with the rules of their derivations."""
    found = derivations(each.theorem for each in report.theorems)
    return graph(report.theorems, {name: each["rules"] for name, each in found.items()})


def bodies(report: Report) -> dict[str, Kept]:
    """Return the body of each entry by name."""
    chains_of = derivations(each.theorem for each in report.theorems)
    asked = {each.theorem.name: (each, chains_of[each.theorem.name]) for each in report.theorems}
    keys = {name: _key(each) for name, (each, _) in asked.items()}
    return kept_all("pages made", keys, body, asked)


def _key(each: TheoremReport) -> str:
    seen = {**each.to_json(), "seconds": None, "from_cache": None}
    return CACHE.key("body", builder(), seen, module=each.theorem.state.__module__)


def body(asked: tuple[TheoremReport, Kept]) -> Kept:
    """Return the parts of a page that take long, as Markdown, from a report and a derivation."""
    report, derivation = asked
    theorem = report.theorem
    drawn = pictures.sides(report)
    table_of_symbols = symbols.text(theorem)
    parts = [
        pictures.diagrams(drawn),
        chains.text(derivation, report.proof.status == "proved" and report.kind == "identity"),
        pictures.indexed(drawn),
        f"## Symbols\n\n{table_of_symbols}" if table_of_symbols else "",
        in_browser.text(theorem),
        runnable.text(theorem),
    ]
    return {
        "statement": displayed(theorem),
        "sections": "\n\n".join(filter(None, parts)),
    }


def place_in(nav: list[Any], book: Book) -> None:
    """Put the pages under "Theorems" in the navigation: chapters, and topics within them.

    A page shows the entries of its own topic, and leads to the other topics and chapters.
    """
    section = next(item for item in nav if isinstance(item, dict) and "Theorems" in item)
    section["Theorems"] = ["theorems/index.md"] + [
        {
            f"{chapter.number} {chapter.title}": [
                chapter.path,
                *[
                    {
                        topic: [
                            {f"{e.number} {prose.heading(e.theorem.title)}": e.path} for e in those
                        ]
                    }
                    for topic, those in groupby(chapter.entries, key=_topic)
                ],
            ]
        }
        for chapter in book
    ]


def _topic(entry: Entry) -> str:
    """Return what the file of an entry is about, by its name."""
    name = entry.theorem.state.__module__.rpartition(".")[2].replace("_", " ")
    return name[0].upper() + name[1:]


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
    """Return the list of the chapters, and what the theorems stand on."""
    parts = [
        "# Theorems",
        f"{count(len(report.theorems), 'theorem')}: {report.states()}.",
    ]
    rows = [
        [
            f"[{chapter.number} {chapter.title}](chapter-{chapter.number}/index.md)",
            str(len(chapter.entries)),
        ]
        for chapter in book
    ]
    parts.append(table(["chapter", "entries"], rows, right=(1,)))
    parts.append("[The map](../map.md) shows which entry uses which.")
    if report.definitions:
        parts += ["## What they stand on", definitions(report)]
    return "\n\n".join(parts) + "\n"


def chapter_page(chapter: Chapter) -> str:
    """Return the list of the entries of a chapter, each with its claim as text."""
    parts = [f"# {chapter.number} {chapter.title}"]
    for each in chapter.entries:
        title = prose.heading(each.theorem.title)
        said = f"**{each.number}** [{title}](../{each.theorem.name}.md) {outcome(each.report)}"
        claim = each.theorem.text()
        if claim and len(claim) <= LONGEST_CLAIM:
            said += f"  \n{code(claim)}"
        parts.append(said)
    return "\n\n".join(parts) + "\n"


def definitions(report: Report) -> str:
    """Return the section on the definition of recorded patterns, and its check."""
    rows = [
        [
            code(each.model),
            evidence_words.mark("passed" if each.passed else "failed", each.passed),
            figure(each.ratio),
            evidence_words.place(each.where),
        ]
        for each in report.definitions
    ]
    return (
        "The theorems take attention patterns as given matrices. That a pattern is the softmax of"
        " the unmasked scores is a definition; the recorded patterns are compared with an"
        " independent computation of it.\n\n"
        + table(["model", "outcome", "error/bound", "worst at"], rows, right=(2,))
    )


def theorem_page(entry: Entry, made: Kept, links: Relations, by_name: Mapping[str, Entry]) -> str:
    """Return the page of one theorem; `by_name` are the entries that it may link to."""
    theorem = entry.theorem
    called = CALLED.get(entry.report.kind, "Theorem")
    parts = [
        f'# <span class="number">{called} {entry.number}</span> {prose.heading(theorem.title)}',
        statement(entry.report, made["statement"]),
        f"{outcome(entry.report)} · {CHAPTERS[theorem.chapter][0]}\n{{ .small }}",
        prose.markdown(theorem.prose),
        made["sections"],
        "## Evidence",
        evidence_words.text(entry.report),
        related(entry, links, by_name),
        "## Source",
        source(theorem),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def statement(report: TheoremReport, made: str) -> str:
    """Return what an entry says in its box, with the convention where it has formulas; or nothing.

    An observation has no formula, and a function and a law of errors mostly hold in both.
    """
    chosen = report.theorem.convention
    left_out = report.kind == "observation" or (chosen == "either" and report.kind in UNWRITTEN)
    convention = "" if left_out else f"{CONVENTIONS[chosen]}\n{{ .convention }}"
    inside = list(filter(None, [made, convention]))
    return "\n\n".join(['<div class="statement" markdown>', *inside, "</div>"]) if inside else ""


def related(entry: Entry, links: Relations, by_name: Mapping[str, Entry]) -> str:
    """Return the section on other entries: uses, users, similar proofs, and the neighbours."""
    listed = list(by_name.values())
    place = listed.index(entry)
    beside = [each.theorem.name for each in (*listed[max(place - 2, 0) : place],
                                             *listed[place + 1 : place + 3])]  # fmt: skip
    rows = [
        ("Uses", links.uses),
        ("Used by", links.used_by),
        ("Proved by the same rules", links.alike),
        ("Beside it", beside),
    ]
    shown = [f"{said}\n:   {_listed(names, by_name)}" for said, names in rows if names]
    where = f"[On the map](../map.md#{entry.theorem.name}){{ .small }}"
    return "\n\n".join(["## Related", *shown, where]) if shown else ""


def _listed(names: Sequence[str], by_name: Mapping[str, Entry]) -> str:
    found = [by_name[name] for name in names]
    return "; ".join(
        f"{each.number} [{prose.heading(each.theorem.title)}]({each.theorem.name}.md)"
        for each in found
    )


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
            symbols_only = SYMBOLS.fullmatch(claim.name)
            name = prose.tex(claim.name) if symbols_only else named(claim.name, TEX)
            shown = equation(name, latex(claim.value), sign=TEX[":="])
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


def source(theorem: Theorem) -> str:
    """Return the source of the theorem, and the inventory entries that it covers."""
    name = f"Name: {code(theorem.name)}."
    covers = f" Inventory: {', '.join(theorem.covers)}." if theorem.covers else ""
    return f"{references.text(theorem.source)}\n\n{name}{covers}\n{{ .small }}"
