"""A normal form drawn as SVG: boxes with ports, wires, and the terms of a sum side by side.

Reading a picture: rows enter on the left, columns leave on the right, each list from the top. A
port with a dot is a row of its box, a port with a bar a column; a plain port above or below is an
index of a family. A line through a picture is an identity, a line that ends in a dot is ones, and
the ends of a wire with more than two meet in a dot. Pictures have the colour of the surrounding
text; alone, they follow the reader's light or dark theme.

>>> from sympy import MatrixSymbol
>>> from otimes.algebra.normal_form import normal_form
>>> A, B = MatrixSymbol("A", 2, 2), MatrixSymbol("B", 2, 2)
>>> form = normal_form(A * B)
>>> svg = draw(form.terms, form.labels, form.sizes)
>>> svg.startswith("<svg"), svg.count('class="box"')
(True, 2)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from otimes.algebra.diagrams.diagram import Diagram
from otimes.algebra.diagrams.sums import Label
from otimes.algebra.draw.layout import (
    Box,
    Dot,
    Leg,
    Picture,
    Point,
    Stroke,
    Text,
    lay_out,
)
from otimes.algebra.language import coefficients
from otimes.algebra.language.coefficients import Coefficient

MOST = 24  # maximum number of diagrams drawn; the others are only counted
WIDE = 960.0  # width at which a sum continues on a new line
MARGIN = 8.0
BETWEEN_TERMS = 18.0
BETWEEN_LINES = 26.0

# `svg:root` is the picture on its own; set into a page it takes the colour of the text there.
STYLE = """\
svg:root{color:#1f2328}
@media (prefers-color-scheme:dark){svg:root{color:#e6edf3;background:#0d1117}}
.otimes-diagram text{fill:currentColor;font-family:'STIX Two Text','Times New Roman',Times,serif}
.otimes-diagram .name{font-size:17px;font-style:italic;text-anchor:middle}
.otimes-diagram .small{font-size:12px;font-style:italic;opacity:.75}
.otimes-diagram .sign{font-size:18px}
.otimes-diagram .wire{fill:none;stroke:currentColor;stroke-width:1.4;stroke-linecap:round}
.otimes-diagram .box{fill:currentColor;fill-opacity:.07;stroke:currentColor;stroke-width:1.4}
.otimes-diagram .port,.otimes-diagram .dot{fill:currentColor}
.otimes-diagram .free{fill:none;stroke:currentColor;stroke-width:1.4}"""


def draw(
    terms: Sequence[tuple[Coefficient, Diagram]], labels: Sequence[Label], sizes: Sequence[Any]
) -> str:
    """Return the SVG of a sum of diagrams; equal sums give identical text.

    `terms`: pairs (coefficient, diagram). `labels` name the boxes; `sizes` are those of the sorts
    of wires, as in a `NormalForm`.
    """
    terms = sorted(terms, key=lambda term: len(term[1].boxes))
    shown = [_scalar_text(str(size)) for size in sizes]
    pieces: list[tuple[str, Picture]] = []
    for k, (coefficient, diagram) in enumerate(terms[:MOST]):
        picture = lay_out(diagram, labels, shown)
        empty = not (picture.boxes or picture.legs or picture.dots)
        pieces.append((_sign(coefficient, first=k == 0, alone=empty), picture))
    rest = len(terms) - len(pieces)
    return _svg(
        pieces or [("0", Picture())],
        f"+ … ({rest} more)" if rest else "",
        _title(len(terms), labels),
    )


def _sign(coefficient: Coefficient, first: bool, alone: bool) -> str:
    """Return the prefix of a diagram: a sign, and the coefficient unless it is one."""
    text = _scalar_text(str(coefficients.to_sympy(coefficient)))
    minus = text.startswith("-") and " + " not in text and " - " not in text
    text = text[1:] if minus else text
    if (" + " in text or " - " in text) and not alone:
        text = f"({text})"
    number = "" if text == "1" and not alone else text
    sign = ("− " if minus else "") if first else ("− " if minus else "+ ")
    return (sign + number).strip()


def _scalar_text(text: str) -> str:
    text = re.sub(r"sqrt\((\w+)\)", r"√\1", text)
    return text.replace("**", "^").replace("*", " ")


def _title(count: int, labels: Sequence[Label]) -> str:
    names = sorted({label.name for label in labels})
    many = "one diagram" if count == 1 else f"a sum of {count} diagrams"
    return f"{many} of {', '.join(names)}" if names else many


# -- SVG -----------------------------------------------------------------------------------------


def _svg(pieces: list[tuple[str, Picture]], rest: str, title: str) -> str:
    lines: list[list[tuple[str, Picture, float]]] = [[]]
    x = 0.0
    for sign, picture in pieces:
        wide = _sign_width(sign) + picture.width + BETWEEN_TERMS
        if lines[-1] and x + wide > WIDE:
            lines.append([])
            x = 0.0
        lines[-1].append((sign, picture, x))
        x += wide
    body: list[str] = []
    y, width = MARGIN, 0.0
    for line in lines:
        axis = max(max(picture.axis for _, picture, _ in line), 12.0)
        below = max(max(p.height - p.axis + (18 if p.caption else 0) for _, p, _ in line), 12.0)
        for sign, picture, left in line:
            body.append(text_at(sign, (MARGIN + left, y + axis + 6), "sign"))
            at = (MARGIN + left + _sign_width(sign), y + axis - picture.axis)
            body += _picture(picture, at)
            width = max(width, at[0] + picture.width + MARGIN)
        y += axis + below + BETWEEN_LINES
    height = y - BETWEEN_LINES + MARGIN
    if rest:
        body.append(text_at(rest, (MARGIN, height + 8), "sign"))
        width, height = max(width, _sign_width(rest) + 2 * MARGIN), height + 20
    return document(width, height, title, STYLE, body)


def document(width: float, height: float, title: str, style: str, body: Sequence[str]) -> str:
    """Return a complete SVG document with these elements."""
    size = f'width="{num(width)}" height="{num(height)}" viewBox="0 0 {num(width)} {num(height)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="otimes-diagram" role="img" {size}>'
        f"<title>{escape(title)}</title><style>{style}</style>" + "".join(body) + "</svg>"
    )


def _picture(picture: Picture, at: Point) -> list[str]:
    body = [_stroke(stroke) for stroke in picture.strokes]
    body += [_dot(dot) for dot in picture.dots]
    body += [_leg(leg) for leg in picture.legs]
    for box in picture.boxes:
        body += _box(box)
    body.append(text_at(picture.caption, (0, picture.height + 14), "small"))
    return [f'<g transform="translate({num(at[0])} {num(at[1])})">', *body, "</g>"]


def _stroke(stroke: Stroke) -> str:
    points = stroke.points
    path = f"M{_p(points[0])}"
    if stroke.bends == "round":
        for before, corner, after in zip(points, points[1:], points[2:], strict=False):
            near, far = _towards(corner, before, 9.0), _towards(corner, after, 9.0)
            path += f"L{_p(near)}Q{_p(corner)} {_p(far)}"
        return f'<path class="wire" d="{path}L{_p(points[-1])}"/>'
    for (x1, y1), (x2, y2) in pairwise(points):
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        if stroke.bends == "up":
            path += f"C{_p((x1, y))} {_p((x2, y))} {_p((x2, y2))}"
        elif abs(y1 - y2) < 0.01:
            path += f"L{_p((x2, y2))}"
        else:
            path += f"C{_p((x, y1))} {_p((x, y2))} {_p((x2, y2))}"
    return f'<path class="wire" d="{path}"/>'


def _box(box: Box) -> list[str]:
    made = [_rectangle("box", box.at, box.width, box.height, ' rx="5"')]
    made.append(_name(box.name, (box.x, box.y + 5.5)))
    for port in box.ports:
        if port.kind == "row":
            made.append(_circle("port row", port.at, 2.8))
        else:
            level = port.side in ("above", "below")
            made.append(
                _rectangle(f"port {port.kind}", port.at, *((8.0, 2.4) if level else (2.4, 8.0)))
            )
    return made


def _rectangle(kind: str, centre: Point, width: float, height: float, corners: str = "") -> str:
    x, y = centre[0] - width / 2, centre[1] - height / 2
    size = f'width="{num(width)}" height="{num(height)}"'
    return f'<rect class="{kind}" x="{num(x)}" y="{num(y)}" {size}{corners}/>'


def _circle(kind: str, centre: Point, radius: float) -> str:
    return f'<circle class="{kind}" cx="{num(centre[0])}" cy="{num(centre[1])}" r="{num(radius)}"/>'


def _leg(leg: Leg) -> str:
    anchor = "end" if leg.side == "left" else "start"
    x = leg.x + (-4 if leg.side == "left" else 4)
    return text_at(leg.size, (x, leg.y + 4), "small", anchor)


def _dot(dot: Dot) -> str:
    label = text_at(dot.label, (dot.x + 7, dot.y - 3), "small")
    return _circle("free" if dot.free else "dot", dot.at, 3.2) + label


def _name(name: Text, at: Point) -> str:
    text = escape(name.base)
    back = 0
    if name.above:
        text += f'<tspan dy="-6" font-size="11">{escape(name.above)}</tspan>'
        back = 6
    if name.below:
        under = f' dx="{num(-6.2 * len(name.above))}"' if name.above else ""
        text += f'<tspan{under} dy="{back + 4}" font-size="11">{escape(name.below)}</tspan>'
    return f'<text class="name" x="{num(at[0])}" y="{num(at[1])}">{text}</text>'


def text_at(text: str, at: Point, kind: str, anchor: str = "start") -> str:
    """Return an SVG text element with the CSS class `kind`, or "" for an empty text."""
    if not text:
        return ""
    set_at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{kind}" x="{num(at[0])}" y="{num(at[1])}"{set_at}>{escape(text)}</text>'


def _sign_width(sign: str) -> float:
    return 8.3 * len(sign) + 10 if sign else 0.0


def _towards(corner: Point, other: Point, most: float) -> Point:
    """Return the point at most `most` away from a corner, in the direction of another one."""
    dx, dy = other[0] - corner[0], other[1] - corner[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1e-9)
    part = min(most, length / 2) / length
    return corner[0] + dx * part, corner[1] + dy * part


def _p(point: Point) -> str:
    return f"{num(point[0])} {num(point[1])}"


def num(value: float) -> str:
    """Return a number as SVG text, with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
