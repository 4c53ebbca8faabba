"""The HTML view of a logit decomposed by paths: self-contained, for light and dark themes.

No script, no font, nothing fetched. Bars are SVG; a pattern is a small PNG whose opacity is the
attention, so that it reads on any background.
"""

import base64
import struct
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from html import escape

import numpy as np
from jaxtyping import Float

from otimes.numeric.paths.orders import path_name
from otimes.numeric.paths.summary import Summary, visible

ATTENDED_HEADS = 6
"""The number of heads whose attention is shown on the text of the prompt."""

BY_ORDER = (
    "The logit is {:+.3f}: the direct path, then all paths through one head, two heads and so on."
)
BY_HEAD = (
    "The contribution of each head by itself (order 1), and its Shapley value: its share of all"
    " paths through it."
)


def html_page(summary: Summary) -> str:
    """Return the view as a complete HTML page."""
    title = f"Paths of {summary.model.name}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>"
        "<style>:root{color-scheme:light dark}body{margin:2rem auto;max-width:60rem;"
        "padding:0 1rem}</style></head>"
        f"<body>{html_view(summary)}</body></html>\n"
    )


def html_view(summary: Summary) -> str:
    """Return the view as an HTML fragment, for a notebook."""
    model = summary.model
    whose = f"{_token(summary.token_string)} after position {summary.position}"
    parts = [
        f"<h2>Paths of {escape(model.name)} to {whose}</h2>",
        _prompt(summary),
        "<h3>By order</h3>",
        f"<p>{BY_ORDER.format(summary.logit)} {escape(summary.about_mlps)}</p>",
        _bars(
            ("direct" if order == 0 else f"{order}", value)
            for order, value in enumerate(summary.orders.tolist())
        ),
    ]
    if model.n_layers:
        best = summary.best
        said = (
            f"Proven: these are the {len(best)} largest of all paths."
            if best.proven
            else f"Not proven: a path that was not visited may be as large as {best.bound:.3g}."
        )
        parts += [
            "<h3>Largest paths</h3>",
            f"<p>{said} {best.visited} were visited.</p>",
            _bars((path_name(path.heads), path.value) for path in best),
            "<h3>Heads</h3>",
            f"<p>{BY_HEAD}</p>",
            _grid(summary.heads, summary.shapley),
            f"<h3>What position {summary.position} attends to</h3>",
            _attended(summary),
            "<h3>Attention patterns</h3>",
            "<p>A row is a query, a column a key; darker is more attention.</p>",
            _patterns(summary),
        ]
    return f'<div class="otimes-paths">{STYLE}{"".join(parts)}</div>'


STYLE = """<style>
.otimes-paths{--up:#00857a;--down:#c2410c;font:14px/1.45 system-ui,sans-serif;color:inherit}
@media (prefers-color-scheme:dark){.otimes-paths{--up:#2dd4bf;--down:#fb923c}}
.otimes-paths h2{font-size:1.25em;margin:.2em 0 .6em}.otimes-paths h3{font-size:1.05em;
margin:1.4em 0 .3em}.otimes-paths p{margin:.2em 0 .5em;opacity:.8}
.otimes-paths code,.otimes-paths .text{font:12.5px/1.7 ui-monospace,monospace}
.otimes-paths .text span{padding:2px 0;border-radius:2px}
.otimes-paths .at{outline:1.5px solid currentColor}
.otimes-paths text{fill:currentColor;font:12px ui-monospace,monospace}
.otimes-paths .up{fill:var(--up)}.otimes-paths .down{fill:var(--down)}
.otimes-paths table{border-collapse:collapse;font-size:13px}
.otimes-paths td,.otimes-paths th{padding:2px 9px;text-align:right;border:0;background:none;
font-weight:normal;color:inherit}
.otimes-paths td{border-radius:3px}.otimes-paths .who{text-align:left;white-space:nowrap}
.otimes-paths figure{display:inline-block;margin:0 10px 10px 0;text-align:center;font-size:12px}
.otimes-paths img{display:block;width:120px;height:120px;image-rendering:pixelated;
border:1px solid #8886}
</style>"""


def _token(text: str) -> str:
    return f"<code>{escape(visible(text))}</code>"


def _prompt(summary: Summary) -> str:
    """Return the prompt with the position outlined."""
    return _text(summary, lambda at: ' class="at"' if at == summary.position else "")


def _text(summary: Summary, attributes: Callable[[int], str]) -> str:
    spans = [
        f'<span{attributes(at)} title="{at}">{escape(visible(string))}</span>'
        + ("<br>" if "\n" in string else "<wbr>")
        for at, string in enumerate(summary.strings)
    ]
    return f'<div class="text">{"".join(spans)}</div>'


def _bars(rows: Iterable[tuple[str, float]]) -> str:
    """Return an SVG bar chart with labels and values, around a common zero."""
    named = list(rows)
    largest = max((abs(value) for _, value in named), default=0.0) or 1.0
    label = 8 * max(len(name) for name, _ in named) + 12
    half, height = 170, 20
    zero = label + half
    size = f'width="{zero + half + 70}" height="{height * len(named) + 4}"'
    lines = [f'<svg {size} role="img" aria-label="bars">']
    for at, (name, value) in enumerate(named):
        width = half * abs(value) / largest
        left = zero if value >= 0 else zero - width
        top = at * height
        lines.append(
            f'<text x="{label - 8}" y="{top + 15}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="{"up" if value >= 0 else "down"}" x="{left:.1f}" y="{top + 4}"'
            f' width="{width:.1f}" height="{height - 6}"/>'
            f'<text x="{zero + half + 8}" y="{top + 15}">{value:+.3f}</text>'
        )
    lines.append(
        f'<line x1="{zero}" x2="{zero}" y1="0" y2="{height * len(named)}" stroke="currentColor"'
        ' stroke-opacity=".4"/></svg>'
    )
    return "".join(lines)


def _grid(*tables: Float[np.ndarray, "n_layers n_heads"]) -> str:
    """Return tables of heads side by side, with cells shaded by value."""
    largest = max(float(np.abs(table).max()) for table in tables) or 1.0
    return "".join(
        f'<div style="display:inline-block;margin-right:2em"><p>{title}</p>'
        f"{_one_grid(table, largest)}</div>"
        for title, table in zip(("order 1", "Shapley"), tables, strict=True)
    )


def _one_grid(table: Float[np.ndarray, "n_layers n_heads"], largest: float) -> str:
    rows = ["<tr><th></th>" + "".join(f"<th>.{h}</th>" for h in range(table.shape[1])) + "</tr>"]
    for layer, values in enumerate(table.tolist()):
        cells = "".join(f'<td style="{_shade(value / largest)}">{value:+.2f}</td>'
                        for value in values)  # fmt: skip
        rows.append(f"<tr><th>{layer}</th>{cells}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _shade(size: float) -> str:
    """Return the CSS background for a value from -1 to 1."""
    colour = "var(--up)" if size >= 0 else "var(--down)"
    return (
        f"background:color-mix(in srgb,{colour} {100 * 0.7 * min(abs(size), 1):.0f}%,transparent)"
    )


def _attended(summary: Summary) -> str:
    """Return the prompt shaded by the attention of the heads with the largest Shapley values."""
    size = np.abs(summary.shapley)
    order = np.argsort(-size, axis=None, kind="stable")[:ATTENDED_HEADS]
    rows = []
    for layer, head in zip(*np.unravel_index(order, size.shape), strict=True):
        seen = summary.frozen.patterns[layer][head, summary.position].tolist()
        shown = _text(summary, partial(_seen, seen))
        value = summary.shapley[layer, head]
        rows.append(f'<tr><td class="who">{layer}.{head} ({value:+.2f})</td>'
                    f'<td class="who" style="white-space:normal">{shown}</td></tr>')  # fmt: skip
    return f"<table>{''.join(rows)}</table>"


def _seen(attention: list[float], at: int) -> str:
    return f' style="{_shade(attention[at])}"'


def _patterns(summary: Summary) -> str:
    """Return every attention pattern as an image."""
    figures = []
    for layer, patterns in enumerate(summary.frozen.patterns):
        for head, pattern in enumerate(patterns):
            picture = base64.b64encode(png(pattern)).decode()
            name = f"{layer}.{head}"
            figures.append(
                f'<figure><img alt="attention pattern of head {name}"'
                f' src="data:image/png;base64,{picture}">{name}</figure>'
            )
        figures.append("<br>")
    return "".join(figures)


def png(opacity: Float[np.ndarray, "row column"]) -> bytes:
    """Return a PNG image of one colour with the given opacities (0 to 1)."""
    height, width = opacity.shape
    pixels = np.empty((height, width, 4), dtype=np.uint8)
    pixels[:] = (0, 150, 136, 0)
    pixels[..., 3] = np.rint(255 * np.clip(opacity, 0, 1))
    # Each row begins with its filter type, 0 for none.
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )
