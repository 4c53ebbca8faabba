"""Charts of the lessons as SVG: two series of bars, a curve, a table of signed numbers."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from figures import svg


def bar_pairs(
    first: Sequence[float],
    second: Sequence[float],
    labels: Sequence[str],
    series: tuple[str, str],
    name: str,
) -> str:
    """Return two horizontal bars for each label: the first series filled, the second outlined."""
    row, bar = 40, 15
    start = 7 * max(map(len, labels)) + 12
    width = start + 300
    both = [*first, *second]
    low, high = min(0.0, *both), max(0.0, *both)
    scale = (width - start - 100) / ((high - low) or 1.0)
    zero = start + 46 - low * scale
    height = row * len(labels) + 26
    parts = [
        f'<path class="axis" d="M{zero:.1f} 24V{height - 4}"/>',
        '<rect x="6" y="5" width="12" height="11"/>',
        f'<text x="23" y="15">{escape(series[0])}</text>',
        f'<rect class="second" x="{width / 2:.0f}" y="5" width="12" height="11"/>',
        f'<text x="{width / 2 + 17:.0f}" y="15">{escape(series[1])}</text>',
    ]
    for k, label in enumerate(labels):
        y = 26 + k * row
        parts.append(f'<text x="{start - 6}" y="{y + bar + 4}" class="end">{escape(label)}</text>')
        for which, value in enumerate((first[k], second[k])):
            parts += _bar(zero, scale, y + which * bar, value, ' class="second"' * which)
    return svg(width, height, name, parts, "bars")


def _bar(zero: float, scale: float, y: float, value: float, mark: str) -> list[str]:
    end = zero + value * scale
    side, beside = (' class="end"', end - 5) if value < 0 else ("", end + 5)
    shown, at, length = f"{value:z.2f}".replace("-", "−"), min(zero, end), abs(end - zero)
    return [
        f'<rect{mark} x="{at:.1f}" y="{y:g}" width="{length:.1f}" height="12"/>',
        f'<text x="{beside:.1f}" y="{y + 11:g}"{side}>{shown}</text>',
    ]


def curve(values: Sequence[float], across: str, up: str, name: str) -> str:
    """Return the values at 0, 1, 2, … as points that a line joins, with both axes labelled."""
    left, top, width, height = 44, 22, 380, 180
    low, high = min(0.0, *values), max(0.0, *values)
    across_step = (width - left - 14) / max(len(values) - 1, 1)
    scale = (height - top - 34) / ((high - low) or 1.0)
    points = [
        (left + k * across_step, top + (high - value) * scale) for k, value in enumerate(values)
    ]
    zero = top + high * scale
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    parts = [
        f'<path class="axis" d="M{left} {top}V{height - 30}M{left} {zero:.1f}H{width - 8}"/>',
        f'<path class="curve" d="M{line}"/>',
        f'<text x="4" y="12">{escape(up)}</text>',
        f'<text x="{width - 8}" y="{height - 4}" class="end">{escape(across)}</text>',
    ]
    for at in sorted({low, 0.0, high}):
        y = top + (high - at) * scale + 4
        shown = f"{at:z.1f}".replace("-", "−")
        parts.append(f'<text x="{left - 5}" y="{y:.1f}" class="end">{shown}</text>')
    for k, ((x, y), value) in enumerate(zip(points, values, strict=True)):
        said = f"{across} {k}: {value:z.2f}".replace("-", "−")
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{said}</title></circle>')
        if k % 4 == 0:
            parts.append(f'<text x="{x:.1f}" y="{height - 16}" class="mid">{k}</text>')
    return svg(width, height, name, parts, "chart")


def table(
    values: NDArray[np.float64], rows: Sequence[str], columns: Sequence[str], name: str
) -> str:
    """Return signed numbers as cells: filled where positive, outlined where negative."""
    cell, high, left, top = 46, 28, 7 * max(map(len, rows)) + 12, 20
    largest = float(np.abs(values).max()) or 1.0
    parts = []
    for j, label in enumerate(columns):
        x = left + j * cell + cell / 2
        parts.append(f'<text x="{x:g}" y="14" class="mid">{escape(label)}</text>')
    for i, label in enumerate(rows):
        y = top + i * high
        parts.append(f'<text x="{left - 6}" y="{y + 18}" class="end">{escape(label)}</text>')
        for j in range(len(columns)):
            x, value = left + j * cell, float(values[i, j])
            share = abs(value) / largest
            dark = "on-dark mid" if share > 0.7 and value > 0 else "mid"
            shown = f"{value:z.2f}".replace("-", "−")
            mark = ' class="second"' if value < -0.005 else f' fill-opacity="{share:.3f}"'
            parts += [
                f'<rect{mark} x="{x:g}" y="{y}" width="{cell - 2}" height="{high - 2}"/>',
                f'<text x="{x + cell / 2 - 1:g}" y="{y + 17}" class="{dark}">{shown}</text>',
            ]
    width = left + cell * len(columns) + 4
    return svg(width, top + high * len(rows) + 4, name, parts, "pattern", least=0.95 * width)
