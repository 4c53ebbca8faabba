"""The search index: a short entry for each theorem and for each term of the glossary.

The whole text of the pages would be most of the site. An entry has the title, the name, the claim
as text, the prose, and the synonyms of its words, so that "rotary" finds what says "RoPE".
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

import glossary
import prose
from otimes._catalogue import SYNONYMS
from otimes.algebra.errors import OtimesError

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

    from otimes.proofs.theorem import Theorem
    from theorem_pages import Book

LONGEST = 300
"""Characters of prose in an entry."""

MORE_SYNONYMS = (
    ("ov", "w_ov", "w_o w_v", "output value", "value output"),
    ("qk", "w_qk", "query key"),
    ("rope", "rotary"),
    ("ln", "layernorm", "layer norm", "norm"),
    ("dla", "direct logit attribution"),
    ("sae", "sparse autoencoder"),
    ("shift", "translation", "previous token"),
    ("fold", "folding", "absorb"),
)
"""Abbreviations of the field, beside the synonyms of `otimes search`."""


def add(config: MkDocsConfig, book: Book) -> None:
    """Add an entry for each theorem to the index of the search plugin."""
    index = next(
        (p.search_index for p in config.plugins.values() if hasattr(p, "search_index")), None
    )
    if index is None:
        return
    index.entries += glossary.search_entries()
    for chapter in book:
        for each in chapter.entries:
            index.entries.append(entry(each.number, each.theorem, chapter.title))


def entry(number: str, theorem: Theorem, chapter: str) -> dict[str, Any]:
    """Return the entry of one theorem."""
    said = theorem.prose if len(theorem.prose) <= LONGEST else _cut(theorem.prose)
    words = f"{theorem.name} {theorem.title} {said} {chapter}"
    parts = [_claim(theorem), said, theorem.name, theorem.name.replace("_", " ")]
    if also := synonyms(words):
        parts.append(f"Also: {', '.join(also)}")
    return {
        "location": f"theorems/{theorem.name}.html",
        "title": f"{number} {prose.heading(theorem.title)}",
        "text": "<p>" + "</p><p>".join(escape(part) for part in parts if part) + "</p>",
        "boost": 2,
    }


def _claim(theorem: Theorem) -> str:
    try:
        return theorem.text()[:300]
    except OtimesError:
        return ""


def _cut(text: str) -> str:
    return text[:LONGEST].rsplit(" ", 1)[0] + " …"


def synonyms(text: str) -> list[str]:
    """Return words that mean the same as some in a text, and are not in it.

    Words that are only related to one of these do not make it a synonym of the others.

    >>> synonyms("RoPE turns queries and keys")[:2], "rope" in synonyms("rotation of a stream")
    (['rotary', 'rotation'], False)
    """
    known = f" {' '.join(re.findall(r'[a-z_]+', text.lower()))} "
    found: list[str] = []
    for same, related in (*SYNONYMS, *((each, ()) for each in MORE_SYNONYMS)):
        if any(f" {word} " in known or f" {word}s " in known for word in same):
            found += [word for word in (*same, *related) if f" {word} " not in known]
    return list(dict.fromkeys(found))
