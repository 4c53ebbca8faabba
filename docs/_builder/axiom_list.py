"""The axioms as Markdown, generated from `AXIOMS`: a list of all, and a page for each subject."""

from __future__ import annotations

import re
from collections.abc import Iterator

from otimes.algebra.decide.axiom_statements import Axiom
from otimes.algebra.decide.axioms import AXIOMS

CALLED = re.compile(r"\w+\(|(?:relu|silu|tanh|sigmoid)\b")
"""The name of a function, or a call of one."""

FIRST = {
    "inverse": ("inverses", "Inverses, and functions of equal arguments"),
    "softmax_sum": ("softmax", "Softmax and the causal mask"),
    "shift_entries": ("positions", "Shifts and positions"),
    "activation_transpose": ("activations", "Activations, logarithms and roots"),
    "function_choose_rows": ("rows", "Rows, columns, constants and norms"),
}
"""The first axiom of each page, with the name of the page and its title."""


def text() -> str:
    """Return the list of the axioms by page: what each says, with a link to its equation."""
    parts = []
    for path, title, axioms in _subjects():
        listed = [f"- [{_says(each)}]({_file(path)}#{each.name})" for each in axioms]
        parts.append("\n\n".join([f"## {title}", "\n".join(listed)]))
    return "\n\n".join(parts)


def pages() -> dict[str, tuple[str, str]]:
    """Return the title and the Markdown of each page by its path."""
    return {
        path: (title, "\n\n".join([f"# {title}", *map(_section, axioms)]) + "\n")
        for path, title, axioms in _subjects()
    }


def _subjects() -> Iterator[tuple[str, str, list[Axiom]]]:
    """Yield the path, the title and the axioms of each page."""
    starts = [list(AXIOMS).index(name) for name in FIRST]
    for (slug, title), start, end in zip(
        FIRST.values(), starts, [*starts[1:], len(AXIOMS)], strict=True
    ):
        yield f"axioms/{slug}.md", title, list(AXIOMS.values())[start:end]


def _file(path: str) -> str:
    return path.rpartition("/")[2]


def _says(axiom: Axiom) -> str:
    """Return what an axiom says as a sentence; the name of a function keeps its small letter."""
    if CALLED.match(axiom.says):
        return axiom.says
    return axiom.says[0].upper() + axiom.says[1:]


def _section(axiom: Axiom) -> str:
    said = axiom.to_json()
    where = [f"where ${premise}$" for premise in said["premises"]]
    parts = [
        f"## {_says(axiom)} {{ #{axiom.name} }}",
        f"$$\n{said['tex']}\n$$",
        ", and ".join(where),
        f"`{axiom.name}`. Source: {axiom.source}.",
    ]
    return "\n\n".join(filter(None, parts))
