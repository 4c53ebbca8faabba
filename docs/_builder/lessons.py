"""The lessons: their numbers and figures, computed from the weights of the bundled models.

A lesson names a number as `{{name}}` and a figure as `<!-- figure: name -->`. LESSONS says which
function computes those of a page; a name that it does not give stops the build.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath

from mkdocs.exceptions import PluginError

import exercises
import lesson_values

NUMBER = re.compile(r"\{\{(\w+)\}\}")
FIGURE = re.compile(r"^<!-- figure: (\w+) -->$", re.MULTILINE)

LESSONS: dict[str, Callable[[], dict[str, str]]] = {
    "tensor-products": lesson_values.tensor_products,
    "heads": lesson_values.heads,
    "paths": lesson_values.paths,
    "circuits": lesson_values.circuits,
    "induction": lesson_values.induction,
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

    return exercises.replaced(FIGURE.sub(value, NUMBER.sub(value, markdown)), path)


@cache
def _values(lesson: str) -> dict[str, str]:
    return LESSONS[lesson]() if lesson in LESSONS else {}
