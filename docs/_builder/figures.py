"""Figures of the lessons as SVG, in the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

CELL, LABEL = 22, 64


def figure(drawn: str, caption: str) -> str:
    """Return a figure with its caption, which may contain formulas, as Markdown."""
    return (
        f'<figure class="lesson" markdown>\n{drawn}\n'
        f"<figcaption markdown>{caption}</figcaption>\n</figure>"
    )


def pattern(weights: NDArray[np.float64], tokens: Sequence[str], name: str) -> str:
    """Return an attention pattern [query, key] as a grid of cells, darker where it is larger.

    Each cell has its weight as a tooltip; the largest weight of each row is printed.
    """
    rows, columns = weights.shape
    width, height = LABEL + columns * CELL + 4, LABEL + rows * CELL + 4
    parts = []
    for j, token in enumerate(tokens):
        x = LABEL + j * CELL + CELL / 2
        parts.append(
            f'<text x="{x}" y="{LABEL - 6}" transform="rotate(-60 {x} {LABEL - 6})">'
            f"{_token(token)}</text>"
        )
    for i, token in enumerate(tokens):
        y = LABEL + i * CELL
        parts.append(f'<text x="{LABEL - 6}" y="{y + 15}" class="end">{_token(token)}</text>')
        largest = int(weights[i].argmax())
        for j in range(i + 1):
            x, weight = LABEL + j * CELL, float(weights[i, j])
            said = f"{token!r} attends to {tokens[j]!r}: {weight:.2f}"
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}"'
                f' fill-opacity="{weight:.3f}"><title>{escape(said)}</title></rect>'
            )
            if j == largest:
                shown = f"{weight:.2f}".replace("0.", ".").replace("1.00", "1")
                dark = ' class="on-dark mid"' if weight > 0.7 else ' class="mid"'
                parts.append(f'<text x="{x + 10.5}" y="{y + 14.5}"{dark}>{shown}</text>')
    return svg(width, height, f"attention pattern of {name}", parts, "pattern")


def blocks(weights: NDArray[np.float64], symbol: str, name: str) -> str:
    """Return a Kronecker product as a table of blocks: a number of the left factor in each."""
    size, left = 46, 4
    rows, columns = weights.shape
    parts = []
    for i in range(rows):
        for j in range(columns):
            x, y, value = left + j * size, left + i * size, float(weights[i, j])
            parts.append(
                f'<rect x="{x}" y="{y}" width="{size - 2}" height="{size - 2}"'
                f' fill-opacity="{min(abs(value), 1):.3f}"/>'
            )
            dark = "on-dark mid" if value > 0.7 else "mid"
            text = "0" if abs(value) < 0.005 else f"{value:.2f} {symbol}".replace("1.00 ", "")
            parts.append(f'<text x="{x + size / 2 - 1}" y="{y + 27}" class="{dark}">{text}</text>')
    return svg(columns * size + 8, rows * size + 8, name, parts, "pattern")


def bars(values: Sequence[float], labels: Sequence[str], unit: str, name: str) -> str:
    """Return horizontal bars, to the left for negative values, each with its label and value."""
    row, start = 24, 7 * max(map(len, labels)) + 12
    width = start + 300
    low, high = min(0.0, *values), max(0.0, *values)
    scale = (width - start - 100) / ((high - low) or 1.0)
    zero = start + 46 - low * scale
    parts = [f'<path class="axis" d="M{zero:.1f} 2V{row * len(values) + 2}"/>']
    for k, (value, label) in enumerate(zip(values, labels, strict=True)):
        y, end = k * row + 4, zero + value * scale
        x, length = min(zero, end), abs(end - zero)
        shown = f"{value:z.2f}".replace("-", "−")
        side, beside = ("end", end - 5) if value < 0 else ("", end + 5)
        parts += [
            f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{row - 7}"/>',
            f'<text x="{start - 6}" y="{y + 13}" class="end">{escape(label)}</text>',
            f'<text x="{beside:.1f}" y="{y + 13}" class="{side}">{shown}</text>',
        ]
    return svg(width, row * len(values) + 6, f"{name}, in {unit}", parts, "bars")


def svg(
    width: float, height: float, name: str, parts: Sequence[str], kind: str, least: float = 0
) -> str:
    """Return a figure of a kind, which style sheets know, from its parts; `name` is its label.

    It is at least `least` pixels wide, and scrolls in its box where the page is narrower.
    """
    narrow = f";min-width:{least:g}px" if least else ""
    return (
        f'<svg class="{kind}" viewBox="0 0 {width:g} {height:g}"'
        f' style="max-width:{width * 1.25:g}px{narrow}" role="img"'
        f' aria-label="{escape(name)}">{"".join(parts)}</svg>'
    )


def _token(token: str) -> str:
    """Return a token with its spaces and line ends visible."""
    return escape(token.replace("\n", "↵").replace(" ", "␣"))
