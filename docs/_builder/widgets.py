"""The widgets of the lessons: `<!-- widget: name -->` becomes a figure with its data.

assets/learn/widgets.js makes them work, and assets/learn/arithmetic.js is what they compute. The
data are computed here, from the weights of the bundled models, and stand in the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from mkdocs.exceptions import PluginError

import widget_data

MARK = re.compile(r"^<!-- widget: (\w+) -->$", re.MULTILINE)
FILES = Path(__file__).parents[1] / "assets" / "learn"
SCRIPTS = ("arithmetic.js", "widgets.js")


class Widget(NamedTuple):
    """A widget: its title, its caption in Markdown, and the function that computes its data."""

    title: str
    caption: str
    data: Callable[[], dict[str, Any]]


WIDGETS: dict[str, Widget] = {
    "kronecker": Widget(
        "(A ⊗ W) x, cell by cell",
        "Choose a component of the result: it is the product of one row of $A \\otimes W$ with the"
        " long column, and the same entry of $A X W^\\top$. All numbers can be changed. $A$ begins"
        " with the first three rows of head 0.1, rounded.",
        widget_data.kronecker,
    ),
    "move": Widget(
        "Move a token",
        "Choose a token and move it. The pattern, the values and what the head adds to the logits"
        " of the four tokens are computed anew, from the weights of the model.",
        widget_data.move,
    ),
    "paths": Widget(
        "Switch heads off",
        "The paths are those for the patterns as they were. The model itself computes new patterns"
        " in layer 1 from what the heads of layer 0 still write.",
        widget_data.paths,
    ),
    "compose": Widget(
        "Compose two heads",
        "The pattern of the virtual head is the product of the two patterns. The scores say how"
        " well the weights of the two heads fit, beside $1/\\sqrt{d}$.",
        widget_data.compose,
    ),
    "eigenvalues": Widget(
        "Eigenvalues of OV",
        "The eigenvalues that are not zero, in the complex plane: real part to the right, imaginary"
        " part upwards.",
        widget_data.eigenvalues,
    ),
    "circuit": Widget(
        "The induction circuit on a prompt",
        "Choose a prompt and a token in it. Outlined: the chosen token. The fuller a token, the"
        " more the head of layer 1 looks at it.",
        widget_data.circuit,
    ),
    "rotary": Widget(
        "Turn a query and a key",
        "The planes of the head: the query as a line with a disc at its end, the key with a square."
        " The scale of each plane is its own.",
        widget_data.rotary,
    ),
    "rounding": Widget(
        "Rounding, or a mistake?",
        "The logit of the line end, as a sum of products that are added one by one.",
        widget_data.rounding,
    ),
}


def replaced(markdown: str, page: str) -> str:
    """Return a lesson with its widgets, and the files they need. Raises PluginError."""
    up = "../" * (len(PurePosixPath(page).parts) - 1)

    def figure(match: re.Match[str]) -> str:
        if match.group(1) not in WIDGETS:
            raise PluginError(f"{page}: no widget is called {match.group(1)!r}")
        return _figure(match.group(1))

    files = [f'<link rel="stylesheet" href="{up}assets/learn/widgets.css">']
    if MARK.search(markdown):
        files += [f'<script src="{up}assets/learn/{name}" defer></script>' for name in SCRIPTS]
    return MARK.sub(figure, markdown) + "\n\n" + "\n".join(files) + "\n"


@cache
def _figure(name: str) -> str:
    of = WIDGETS[name]
    data = escape(json.dumps(of.data(), ensure_ascii=False, separators=(",", ":")))
    return (
        f'<figure class="lesson widget" id="{name}" markdown>\n'
        f'<div class="widget-body" data-widget="{name}" data-data="{data}" role="group"'
        f' aria-label="{escape(of.title)}" data-search-exclude>'
        f'<p class="judge-title">{escape(of.title)}</p>'
        "<noscript>This needs JavaScript.</noscript></div>\n"
        f"<figcaption markdown>{of.caption}</figcaption>\n</figure>"
    )
