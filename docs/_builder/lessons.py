"""The lessons: their numbers and figures, computed from the weights of the bundled models.

A lesson names a number as `{{name}}`, a figure as `<!-- figure: name -->`, a program as
`<!-- code: name -->` and a widget as `<!-- widget: name -->`. LESSONS says which function computes
the first three for a page; a name that it does not give stops the build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import PurePosixPath

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import exercises
import lesson_values
import values_interventions
import values_mlps
import values_norms
import values_own_model
import values_rotary
import widgets
from evidence import CACHE, Kept, builder, kept_all

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


def texts(files: Iterable[File]) -> dict[str, str]:
    """Return the Markdown of the lessons among some files, by path. Raises PluginError."""
    asked = {
        file.src_uri: (file.content_string, file.src_uri)
        for file in files
        if file.src_uri.startswith("learn/")
    }
    keys = {path: CACHE.key("lesson", builder("lessons"), *each) for path, each in asked.items()}
    found = kept_all("lessons", keys, _kept, asked)
    return {path: str(each["text"]) for path, each in found.items()}


def _kept(asked: tuple[str, str]) -> Kept:
    return {"text": made(*asked)}


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


CODE = re.compile(r"(?<!<pre>)(?<!<span></span>)<code>([^<]*)</code>")
LONGEST_UNBROKEN = 34
"""Characters that fit into the narrowest page."""

SHORT = 14
"""Characters of a formula that is not broken at all."""

BETWEEN = re.compile(r"( (?:=|[+]) (?![^()]*\)))")
"""Where a formula in code may be broken: beside an equals sign or a plus outside all brackets."""


def unbroken(html: str) -> str:
    """Return a lesson whose formulas in code are broken between their terms only.

    >>> unbroken("<code>(A + B) X = A X</code>")
    '<code><span class="short">(A + B) X</span> = <span class="short">A X</span></code>'
    """

    def parts(match: re.Match[str]) -> str:
        whole = match.group(1)
        pieces = [whole] if len(whole) <= SHORT else BETWEEN.split(whole)
        pieces[::2] = [_short(piece) for piece in pieces[::2]]
        return f"<code>{''.join(pieces)}</code>"

    return CODE.sub(parts, html)


def _short(text: str) -> str:
    return f'<span class="short">{text}</span>' if len(text) <= LONGEST_UNBROKEN else text


@cache
def _values(lesson: str) -> dict[str, str]:
    return LESSONS[lesson]() if lesson in LESSONS else {}
