"""The list of axioms as Markdown, generated from `AXIOMS`."""

from __future__ import annotations

from otimes.algebra.decide.axioms import AXIOMS, Axiom


def text() -> str:
    """Return a section for each axiom."""
    return "\n\n".join(map(_section, AXIOMS.values()))


def _section(axiom: Axiom) -> str:
    said = axiom.to_json()
    where = [f"where ${premise}$" for premise in said["premises"]]
    parts = [
        f"## {axiom.says[0].upper()}{axiom.says[1:]} {{ #{axiom.name} }}",
        f"$$\n{said['tex']}\n$$",
        ", and ".join(where),
        f"`{axiom.name}`. Source: {axiom.source}.",
    ]
    return "\n\n".join(filter(None, parts))
