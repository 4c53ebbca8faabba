"""A chain of steps drawn as SVG: each row is an expression, the rule that led to it, its diagram.

The rows are read together, so that equal diagrams look identical. Without hypotheses all rows have
the same diagram. Each distinct diagram is defined once in the SVG. A row without a normal form has
no diagram.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from otimes.algebra.draw.svg import STYLE, document, num, text_at
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.unicode import unicode_text, wrapped
from otimes.algebra.normal_form import normal_forms

MARGIN = 8.0
LINE = 22.0  # from one line of text to the next
CHARACTER = 8.2  # the maximum width of a character, relative to the font size
COLUMNS = 100  # characters in a line of text
BETWEEN = 12.0
MORE = ".otimes-diagram .line{font-size:16px}.otimes-diagram .rule{font-size:13px;opacity:.8}"


def draw_steps(rows: Sequence[tuple[Any, str]]) -> str:
    """Return the SVG of a chain; equal chains give identical text.

    `rows` are pairs of an expression and the names of the rules that lead to it.
    """
    pictures = _pictures([expression for expression, _ in rows])
    body: list[str] = []
    known: set[str] = set()
    y, width = MARGIN, 0.0
    for number, ((expression, rules), picture) in enumerate(zip(rows, pictures, strict=True)):
        if rules:
            body.append(text_at(f"by {rules}", (MARGIN + 18, y + 14), "rule"))
            y, width = y + 20, max(width, MARGIN + 18 + CHARACTER * (len(rules) + 3))
        sign = "=" if number else ""
        for k, part in enumerate(wrapped(unicode_text(expression), COLUMNS)):
            body.append(text_at(sign if not k else "", (MARGIN, y + 16), "line"))
            body.append(text_at(part, (MARGIN + 18, y + 16), "line"))
            y, width = y + LINE, max(width, MARGIN + 18 + CHARACTER * len(part))
        if picture:
            name, across, down = _named(picture)
            inner = f'<use href="#{name}"/>'
            if name not in known:
                known.add(name)
                drawn = picture.partition("</style>")[2].removesuffix("</svg>")
                inner = f'<g id="{name}" class="otimes-diagram">{drawn}</g>'
            body.append(f'<g transform="translate({num(MARGIN + 18)} {num(y)})">{inner}</g>')
            y, width = y + down, max(width, MARGIN + 18 + across)
        y += BETWEEN
    steps = "one step" if len(rows) == 2 else f"{len(rows) - 1} steps"
    return document(width + MARGIN, y, f"a proof in {steps}", STYLE + MORE, body)


def _pictures(expressions: list[object]) -> list[str]:
    """Return the SVG of each expression's normal form, or "" for each if one has none."""
    try:
        return [form._repr_svg_() for form in normal_forms(*expressions)]
    except OtimesError:
        return ["" for _ in expressions]


def _named(picture: str) -> tuple[str, float, float]:
    """Return the name of a picture (a hash of its content), its width and its height."""
    found = re.match(r'<svg[^>]* width="([0-9.]+)" height="([0-9.]+)"', picture)
    assert found is not None
    name = "d" + hashlib.sha256(picture.encode()).hexdigest()[:12]
    return name, float(found[1]), float(found[2])
