"""The lessons: their numbers and figures, computed from the weights of the bundled models.

A lesson names a number as `{{name}}`, a figure as `<!-- figure: name -->`, a program as
`<!-- code: name -->` and a widget as `<!-- widget: name -->`. LESSONS says which function computes
the first three for a page; a name that it does not give stops the build.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath

from mkdocs.exceptions import PluginError

import exercises
import lesson_values
import values_interventions
import values_mlps
import values_norms
import values_own_model
import values_rotary
import widgets

NUMBER = re.compile(r"\{\{(\w+)\}\}")
FIGURE = re.compile(r"^<!-- (?:figure|code): (\w+) -->$", re.MULTILINE)

LESSONS: dict[str, Callable[[], dict[str, str]]] = {
    "tensor-products": lesson_values.tensor_products,
    "heads": lesson_values.heads,
    "paths": lesson_values.paths,
    "circuits": lesson_values.circuits,
    "induction": lesson_values.induction,
    "norms": values_norms.values,
    "rotary": values_rotary.values,
    "mlps": values_mlps.values,
    "interventions": values_interventions.values,
    "own-model": values_own_model.values,
}
"""The functions that compute the numbers and figures of a lesson, by the name of its page."""


def made(markdown: str, path: str) -> str:
    """Return a lesson with its numbers, figures and exercises. Raises PluginError."""
    values = _values(PurePosixPath(path).stem)

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in values:
            raise PluginError(f"{path}: no number or figure is called {name!r}")
        return values[name]

    return widgets.replaced(
        exercises.replaced(FIGURE.sub(value, NUMBER.sub(value, markdown)), path), path
    )


@cache
def _values(lesson: str) -> dict[str, str]:
    return LESSONS[lesson]() if lesson in LESSONS else {}
