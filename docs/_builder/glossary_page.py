"""The page of the glossary, as Markdown: the terms of `glossary` with their definitions."""

from __future__ import annotations

from itertools import groupby

import prose
import theorem_pages
from glossary import FILE, TERMS, Term
from otimes.proofs.evidence import Report


def text(report: Report) -> str:
    """Return the terms as lists of definitions with anchors, as Markdown, by letter."""
    listed = theorem_pages.entries(theorem_pages.numbered(report))
    titles = {entry.theorem.name: prose.heading(entry.theorem.title) for entry in listed}
    lessons = {name: _title(name) for term in TERMS for name in term.lessons}
    parts = [f"{len(TERMS)} terms."]
    for letter, terms in groupby(sorted(TERMS, key=_order), key=lambda term: _order(term)[0]):
        parts.append(f"## {letter.upper()}")
        parts += [_definition(term, titles, lessons) for term in terms]
    return "\n\n".join(parts)


def _order(term: Term) -> str:
    return term.name.lower()


def _title(lesson: str) -> str:
    page = FILE.parents[1] / "learn" / f"{lesson}.md"
    return page.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def _definition(term: Term, titles: dict[str, str], lessons: dict[str, str]) -> str:
    links = [f"[{lessons[name]}](learn/{name}.md)" for name in term.lessons]
    links += [f"[{titles[name]}](theorems/{name}.md)" for name in term.entries if name in titles]
    also = f" (also: {term.also})" if term.also else ""
    see = f"\n\n    {'; '.join(links)}\n    {{ .small }}" if links else ""
    return f'<span id="{term.anchor}"></span>**{term.name}**{also}\n\n:   {term.meaning}{see}'
