"""A document with a mark at each equation, as one HTML file that opens offline and prints well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

SIGNS = {
    "proved": "✓",
    "refuted": "✗",
    "shape": "✗",
    "definition": "≔",
    "needs-hypothesis": "!",
    "undecided": "?",
    "unread": "–",
}
STYLE = """
:root { --ink: #1c1c1c; --dim: #6b6b6b; --line: #ddd; color-scheme: light; }
body { font: 16px/1.55 Georgia, 'DejaVu Serif', serif; color: var(--ink); margin: 2rem auto;
  max-width: 74rem; padding: 0 1rem; }
h1 { font-size: 1.35rem; margin: 0 0 .2rem; }
.summary { color: var(--dim); margin: 0 0 1.2rem; }
.doc { border-top: 1px solid var(--line); }
.line { display: grid; grid-template-columns: 3rem minmax(0, 1fr) 24rem; column-gap: 1rem; }
.line:nth-child(even) { background: #fafafa; }
.number { color: #9a9a9a; text-align: right; font: 12px/2 monospace; user-select: none; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; font: 14px/1.65 'DejaVu Sans Mono',
  Menlo, Consolas, monospace; }
.notes { font: 13px/1.5 system-ui, sans-serif; padding: .2rem 0; }
mark { background: none; border-bottom: 2px solid; padding-bottom: 1px; color: inherit; }
.proved { border-color: #2e7d32; } .definition { border-color: #9e9e9e; }
.refuted, .shape { border-color: #c62828; background: #fdecea !important; }
.needs-hypothesis { border-color: #ef6c00; } .undecided { border-color: #0277bd; }
.unread { border-color: #8e24aa; }
details { border-left: 4px solid; padding: 0 .5rem; margin: .1rem 0 .3rem; }
summary { cursor: pointer; } summary b { font-weight: 600; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; font-size: 12px; }
.legend span { margin-right: 1rem; }
@media (max-width: 60rem) { .line { grid-template-columns: 2.2rem minmax(0, 1fr); }
  .notes { grid-column: 2; } }
@media print { body { margin: 0; max-width: none; font-size: 11pt; }
  details > * { display: block; } .line { break-inside: avoid; } }
"""


class Mark(NamedTuple):
    """A verdict on a span of the text, or on a line if the span is empty.

    `lines` are shown beside it, at once if `opened`; `ignored` is why it does not count.
    """

    verdict: str
    span: tuple[int, int]
    line: int
    lines: Sequence[str] = ()
    ignored: str = ""
    opened: bool = False


def page(
    title: str, text: str, marks: Sequence[Mark], counts: Mapping[str, int], notes: Sequence[str]
) -> str:
    """Return the HTML of a text with its marks, and the reasons beside the lines.

    >>> "<mark" in page("a.md", "$A = A$", [Mark("proved", (1, 6), 1)], {"proved": 1}, [])
    True
    """
    legend = " ".join(
        f"<span><b>{SIGNS[verdict]}</b> {n} {verdict}</span>" for verdict, n in counts.items()
    )
    name = escape(title)
    paragraphs = "".join(f"<p>{escape(note)}</p>" for note in notes)
    rows = "\n".join(_rows(text, marks))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body>\n<h1>{name}</h1>\n"
        f'<p class="summary legend">{legend}</p>\n{paragraphs}\n<div class="doc">\n{rows}\n</div>\n'
        "</body></html>\n"
    )


def _rows(text: str, marks: Sequence[Mark]) -> Iterator[str]:
    spans = sorted((m for m in marks if m.span[1] > m.span[0]), key=lambda m: m.span)
    at = first = 0
    for number, line in enumerate(text.split("\n"), 1):
        end = at + len(line)
        while first < len(spans) and spans[first].span[1] <= at:
            first += 1
        inside = []
        for mark in spans[first:]:
            if mark.span[0] >= end:
                break
            inside.append(mark)
        beside = [m for m in inside if at <= m.span[0]]
        beside += [m for m in marks if m.span[1] <= m.span[0] and m.line == number]
        yield (
            f'<div class="line"><div class="number">{number}</div>'
            f'<div class="text">{_marked(text, at, end, inside)}</div>'
            f'<div class="notes">{"".join(map(_note, beside))}</div></div>'
        )
        at = end + 1


def _marked(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    """Return a line with its spans marked; overlapping spans are split."""
    pieces, at = [], start
    for mark in marks:
        begin, stop = max(mark.span[0], at), min(mark.span[1], end)
        if stop <= begin:
            continue
        title = escape("\n".join([mark.verdict, *mark.lines]))
        pieces += [
            escape(text[at:begin]),
            f'<mark class="{mark.verdict}" title="{title}">{escape(text[begin:stop])}</mark>',
        ]
        at = stop
    return "".join([*pieces, escape(text[at:end])])


def _note(mark: Mark) -> str:
    inner = f"<pre>{escape(chr(10).join(mark.lines))}</pre>" if mark.lines else ""
    ignored = f" (ignored: {escape(mark.ignored)})" if mark.ignored else ""
    return (
        f'<details class="{mark.verdict}"{" open" * mark.opened}><summary>'
        f"<b>{SIGNS[mark.verdict]} {mark.verdict}</b>{ignored}</summary>{inner}</details>"
    )
