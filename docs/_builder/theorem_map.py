"""The map: the entries of the catalogue by chapter, and which uses which, as data for map.js."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import evidence_words
import prose
import theorem_pages
from otimes.proofs.evidence import Report
from words import count, table

MOST_USED = 15


def text(report: Report) -> str:
    """Return the map's place on its page, and the entries that are used most, as Markdown."""
    links = theorem_pages.links_of(report)
    entries = {e.theorem.name: e for e in theorem_pages.entries(theorem_pages.numbered(report))}
    times = Counter(name for used in links.uses.values() for name in used)
    rows = [
        [
            (
                f"{entries[name].number} [{prose.heading(entries[name].theorem.title)}]"
                f"({entries[name].path})"
            ),
            str(number),
        ]
        for name, number in times.most_common(MOST_USED)
    ]
    edges = sum(map(len, links.uses.values()))
    most = table(["entry", "used by"], rows, right=(1,))
    return (
        f"{len(entries)} entries, {count(edges, 'recorded use')}.\n\n"
        '<div class="theorem-map" data-search-exclude>'
        '<p><label>Find <input type="search" autocomplete="off" spellcheck="false"></label></p>'
        '<p class="map-said" role="status" aria-live="polite">The map needs JavaScript; the list of'
        ' <a href="theorems/index.html">theorems</a> does not.</p>'
        '<div class="map-drawing"></div></div>\n\n' + (f"## Used most\n\n{most}" if rows else "")
    )


def data(report: Report) -> dict[str, Any]:
    """Return the chapters with their entries, and the uses as pairs of places in the order."""
    book = theorem_pages.numbered(report)
    links = theorem_pages.links_of(report)
    entries = theorem_pages.entries(book)
    place = {entry.theorem.name: k for k, entry in enumerate(entries)}
    return {
        "chapters": [
            {
                "title": chapter.label,
                "entries": [
                    [
                        entry.theorem.name,
                        entry.number,
                        prose.heading(entry.theorem.title),
                        entry.report.kind,
                        evidence_words.SAID[entry.report.proof.status][0],
                    ]
                    for entry in chapter.entries
                ],
            }
            for chapter in book
        ],
        "uses": [
            [place[name], place[used]] for name, all_used in links.uses.items() for used in all_used
        ],
    }


def write(site: Path, report: Report) -> None:
    """Write the data beside the script; a script itself, so that the map works from disk."""
    folder = site / "assets" / "map"
    folder.mkdir(parents=True, exist_ok=True)
    shown = json.dumps(data(report), ensure_ascii=False, separators=(",", ":"))
    (folder / "data.js").write_text(f"window.otimesMap = {shown};\n", "utf-8")
