"""The glossary: the terms of the field, and the links to them from all other pages.

glossary.yml has the terms. The first occurrence of a term in the running text of a page becomes a
link to the glossary, and each term has an entry in the search index.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("glossary.yml")
PAGE = "glossary.html"

TAG = re.compile(r"(<(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>)")
NAME = re.compile(r"</?([a-z][a-z0-9-]*)", re.IGNORECASE)
UNLINKED = frozenset(
    (
        "a",
        "button",
        "code",
        "dt",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "label",
        "pre",
        "script",
        "style",
        "summary",
        "svg",
        "tex-math",
        "textarea",
        "th",
    )
)
"""The elements in which no term is linked."""

SMALL = '<p class="small">'
"""A note, such as that on the chapter: no term is linked in it either."""

SOURCE = '<h2 id="source"'
"""Titles of papers follow: they stay as they are."""

ENDINGS = ("es", "s", "")
"""Of words in the plural, and in the singular."""

PLAIN = {
    r"\\otimes": "⊗",
    r"\^\{\\mathsf T\}": "ᵀ",
    r"\\sqrt ": "√",
    r"\\lambda": "λ",
    r"\\tanh": "tanh",
    r"\\max": "max",
    r"_\{\\mathrm\{(\w+)\}\}": r"_\1",
    r"\\mathrm\{(\w+)\}": r"\1",
    r"_\{(\w+)\}": r"_\1",
    r"[$`]": "",
}
"""The TeX of the definitions, and what stands for it in plain text."""


@dataclass(frozen=True, slots=True)
class Term:
    """A term, what it means, where to read about it, other names, and the words that are linked."""

    name: str
    meaning: str
    entries: Sequence[str] = ()
    lessons: Sequence[str] = ()
    also: str = ""
    words: Sequence[str] = ()

    @property
    def anchor(self) -> str:
        """The term in an address."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def plain(self) -> str:
        """What the term means, without TeX."""
        said = self.meaning
        for tex, sign in PLAIN.items():
            said = re.sub(tex, sign, said)
        return said


def _term(said: dict[str, Any]) -> Term:
    name = str(said["term"])
    own = name if name[1:] != name[1:].lower() else name[0].lower() + name[1:]
    return Term(
        name,
        str(said["means"]),
        tuple(said.get("entries", ())),
        tuple(said.get("lessons", ())),
        str(said.get("also", "")),
        tuple(said.get("words", (own,))),
    )


TERMS = tuple(_term(said) for said in yaml.safe_load(FILE.read_text("utf-8")))


def digest() -> str:
    """Return a digest of the terms, for what depends on them."""
    return hashlib.sha256(FILE.read_bytes()).hexdigest()


# -- the links -------------------------------------------------------------------------------------


def linked(html: str, page: str) -> str:
    """Return the content of a page with the first occurrence of each term linked to the glossary.

    `page` is its address in the site. In the glossary each definition links to the other terms.

    >>> linked("<p>The residual stream, and a residual stream.</p>", "learn/paths.html")
    '<p>The <a class="term" href="../glossary.html#residual-stream">residual stream</a>, and a \
residual stream.</p>'
    """
    if page == PAGE:
        return "".join(_each_definition(html))
    body, source, rest = html.partition(SOURCE)
    return _linked(body, "../" * page.count("/") + PAGE, ()) + source + rest


def _each_definition(html: str) -> Iterator[str]:
    for part in re.split(r"(?=<dt>)", html):
        own = re.match(r'<dt><span id="([^"]*)"', part)
        yield _linked(part, "", own.groups()) if own else part


def _linked(html: str, glossary: str, known: Collection[str]) -> str:
    """Return HTML with links to terms, other than those of the `known` anchors."""
    pattern, anchors = _pattern()
    done = set(known)

    def link(match: re.Match[str]) -> str:
        anchor = anchors[" ".join(match.group().lower().split())]
        if anchor in done:
            return match.group()
        done.add(anchor)
        return f'<a class="term" href="{glossary}#{anchor}">{match.group()}</a>'

    shown, inside, small = [], 0, False
    for piece in TAG.split(html):
        if piece.startswith("<"):
            name = NAME.match(piece)
            closes = piece.startswith("</")
            if name and name.group(1).lower() in UNLINKED:
                inside += -1 if closes else 1
            elif piece == SMALL or (small and closes and name and name.group(1) == "p"):
                small = not small
                inside += -1 if closes else 1
        elif not inside:
            piece = pattern.sub(link, piece)
        shown.append(piece)
    return "".join(shown)


@cache
def _pattern() -> tuple[re.Pattern[str], dict[str, str]]:
    """Return what finds the words of the terms, longest first, and the anchors of the words."""
    anchors = {
        f"{word.lower()}{ending}": term.anchor
        for term in TERMS
        for word in term.words
        for ending in ENDINGS
    }
    words = {word for term in TERMS for word in term.words}
    either = "|".join(map(_found, sorted(words, key=len, reverse=True)))
    return re.compile(rf"(?<![\w-])(?:{either})(?![\w-])"), anchors


def _found(word: str) -> str:
    """Return the pattern of a word: with a capital at the start of a sentence, and its plural."""
    spaced = r"\s+".join(map(re.escape, word.split()))
    first = word[0]
    if first.islower():
        spaced = f"[{first}{first.upper()}]{spaced[1:]}"
    return f"{spaced}(?:{'|'.join(ENDINGS)})" if word[-1].isalpha() else spaced


# -- search and hints ------------------------------------------------------------------------------


def search_entries() -> Iterator[dict[str, Any]]:
    """Yield an entry of the search index for each term."""
    for term in TERMS:
        also = f"<p>Also: {escape(term.also)}</p>" if term.also else ""
        yield {
            "location": f"{PAGE}#{term.anchor}",
            "title": term.name,
            "text": f"<p>{escape(term.plain)}</p>{also}",
            "boost": 4,
        }


def script() -> str:
    """Return a script with what the terms mean, for the hints that pages.js shows."""
    meanings = {term.anchor: term.plain for term in TERMS}
    shown = json.dumps(meanings, ensure_ascii=False, separators=(",", ":"))
    return f"window.otimesGlossary = {shown};\n"
