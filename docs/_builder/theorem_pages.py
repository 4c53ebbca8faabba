"""The pages of the theorems, as Markdown, generated from the verification report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import bodies
import evidence_words
import prose
import references
from derived import derivations
from evidence import Kept
from evidence_words import outcome
from otimes.proofs.catalogue import CHAPTERS
from otimes.proofs.evidence import Report, TheoremReport
from otimes.proofs.theorem import Theorem
from relations import Graph, Relations, graph
from runnable import file_of
from words import code, count, figure, table

CONVENTIONS = {
    "row": "Row convention: a position is a row of $X$, and weights act on the right.",
    "column": "Column convention: weights act on the left, and in $A \\otimes W$ the pattern $A$ "
    "acts on the slow index, the position.",
    "either": "Holds as it stands in the row and in the column convention.",
}

UNWRITTEN = ("method", "approximation")
"""Kinds of entries that are no equation between matrices."""

NAME = re.compile(r"`([a-zA-Z]\w*)`")

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
    def label(self) -> str:
        """The title, with the number if it has one."""
        return f"{self.number} {self.title}" if self.number else self.title

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
            chapter_title(number),
            tuple(
                Entry(f"{number}.{place}" if number else str(place), each)
                for place, each in enumerate(members, 1)
            ),
        )
        for number, members in chapters.items()
    )


def chapter_title(number: int) -> str:
    """Return the title of a chapter; theorems of a user are mostly in none."""
    return CHAPTERS[number][0] if number in CHAPTERS else "Theorems"


def entries(book: Book) -> list[Entry]:
    """Return all entries in reading order."""
    return [entry for chapter in book for entry in chapter.entries]


def pages(report: Report) -> list[tuple[str, str]]:
    """Return the path and the Markdown of every page: the index, then the theorems."""
    book = numbered(report)
    made = bodies.bodies(report)
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


def place_in(nav: list[Any], book: Book) -> None:
    """Put the pages under "Theorems" in the navigation: chapters, and topics within them.

    A page shows the entries of its own topic, and leads to the other topics and chapters.
    """
    section = next(item for item in nav if isinstance(item, dict) and "Theorems" in item)
    section["Theorems"] = ["theorems/index.md"] + [
        {
            chapter.label: [
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
    theorem = entry.theorem
    module = theorem.state.__module__.rpartition(".")[2]
    name = (Path(file_of(theorem)).stem if theorem.own else module).replace("_", " ")
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
            f"[{chapter.label}](chapter-{chapter.number}/index.md)",
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
    parts = [f"# {chapter.label}"]
    for each in chapter.entries:
        title = prose.heading(each.theorem.title)
        said = f"**{each.number}** [{title}](../{each.theorem.name}.md) {outcome(each.report)}"
        claim = "" if each.report.proof.status == "error" else each.theorem.text()
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
        f"{outcome(entry.report)} · {chapter_title(theorem.chapter)}\n{{ .small }}",
        named(prose.markdown(theorem.prose), by_name),
        made["sections"],
        "## Evidence",
        evidence_words.text(entry.report),
        related(entry, links, by_name),
        source(theorem),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def named(text: str, by_name: Mapping[str, Entry]) -> str:
    """Return prose with links for the names of entries, which say nothing to a reader of the site.

    A link has the number, and the title where the pointer rests.
    """

    def link(match: re.Match[str]) -> str:
        entry = by_name.get(match.group(1))
        if entry is None:
            return match.group()
        called = CALLED.get(entry.report.kind, "Theorem")
        title = entry.theorem.title.replace('"', "”")
        return f'[{called} {entry.number}]({entry.theorem.name}.md "{title}")'

    return NAME.sub(link, text)


def statement(report: TheoremReport, made: str) -> str:
    """Return what an entry says in its box, with the convention where it has formulas; or nothing.

    An observation has no formula, and a function and a law of errors mostly hold in both.
    """
    chosen = report.theorem.convention
    left_out = (
        report.kind == "observation"
        or report.proof.status == "error"
        or (chosen == "either" and report.kind in UNWRITTEN)
    )
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


def source(theorem: Theorem) -> str:
    """Return the source of the theorem, and its name in the catalogue."""
    cited = f"{references.text(theorem.source)}\n\n" if theorem.source else ""
    return f"## Source\n\n{cited}Name: {code(theorem.name)}.\n{{ .small }}"
