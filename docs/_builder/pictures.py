"""The diagrams of a claim as inline SVG, and the same in index notation and as einsum calls."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Any

from equations import aligned, split_sum
from otimes.algebra.draw.svg import draw
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.normal_form import NormalForm, normal_form
from otimes.proofs.claims import Bound, Definition, NonIdentity, Property, Statement
from otimes.proofs.evidence import TheoremReport
from packed import CLOSES, OPENS
from words import count

MOST_DIAGRAMS = 12
"""A normal form with more diagrams is not shown."""
LONGEST_SVG = 12_000
"""A longer picture is folded."""
LONGEST_TEX = 160
"""A longer formula in index notation is folded."""
LONGEST_FOLDED = 2_400
"""A still longer one is left out; the einsum calls say the same."""

READING = (
    "Boxes are the symbols and wires the sums over indices; rows enter on the left and columns"
    " leave on the right, in order. [How to read it](../normal-form.md#diagrams)."
)
ROLE = 'role="img"'
OPENING, CLOSING = ("(", "["), (")", "]")
NEGATIVE = re.compile(r'class="sign"[^>]*>−')
UNFOLDED = re.compile(r"<style>.*?</style>|<title>.*?</title>| xmlns=\"[^\"]*\"", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Side:
    """A part of a claim that has a normal form, and what it is called."""

    name: str
    form: NormalForm


def sides(report: TheoremReport) -> list[Side]:
    """Return the parts of a claim that can be drawn: one for both sides of a proved equation.

    An equation under hypotheses has two, as the hypotheses make them equal. A product over any
    number of layers has no diagram, nor has what is not in the language.
    """
    claim = report.theorem.claim()
    match claim:
        case Statement() if not claim.given and report.proof.status == "proved":
            parts = [("Both sides", claim.lhs)]
        case Statement() | NonIdentity():
            parts = [("The left side", claim.lhs), ("The right side", claim.rhs)]
        case Bound():
            parts = [("The smaller side", claim.smaller), ("The larger side", claim.larger)]
        case Definition():
            parts = [("What is defined", claim.value)]
        case Property():
            parts = [("The matrix", claim.fact.subject)]
        case _:
            parts = []
    return [Side(name, form) for name, part in parts if (form := _form(part)) is not None]


def _form(expression: Any) -> NormalForm | None:
    """Return the normal form of an expression; None if it has none of a size to be shown."""
    try:
        if expression.has(LayerProduct, OrderSum):
            return None
        form = normal_form(expression)
    except OtimesError:
        return None
    return form if 0 < len(form) <= MOST_DIAGRAMS else None


def diagrams(found: list[Side]) -> str:
    """Return the section with the pictures; empty if there are none."""
    if not found:
        return ""
    shown = [_drawn(side) for side in found]
    return "\n\n".join(["## Diagram", READING, *shown])


def _drawn(side: Side) -> str:
    said = f"{side.name}, {count(len(side.form), 'diagram')}"
    terms = sorted(side.form.terms, key=lambda term: len(term[1].boxes))
    shown = "".join(_term(side.form, term, first=not k) for k, term in enumerate(terms))
    picture = (
        f'<figure class="diagram"><div class="scroll" tabindex="0" role="group"'
        f' aria-label="{escape(said)}">{shown}</div>'
    )
    if len(shown) > LONGEST_SVG:
        return (
            f"<details><summary>{said}</summary>\n{OPENS}\n{picture}</figure>\n{CLOSES}\n</details>"
        )
    return f"{picture}<figcaption>{said}</figcaption></figure>"


def _term(form: NormalForm, term: Any, first: bool) -> str:
    """Return one diagram of a sum with its sign, so that a narrow page breaks between them."""
    svg = draw([term], form.labels, form.sizes)
    title = re.search("<title>(.*?)</title>", svg)
    label = f'role="img" aria-label="{title.group(1) if title else ""}"'
    plus = "" if first or NEGATIVE.search(svg) else '<span class="plus">+</span>'
    return f'<span class="term">{plus}{UNFOLDED.sub("", svg).replace(ROLE, label)}</span>'


def indexed(found: list[Side]) -> str:
    """Return the section with the entries in index notation, and with NumPy; empty without."""
    parts = []
    for side in found:
        calls = "\n+ ".join(addends(side.form.einsum()))
        parts.append(f"{side.name}, by the [normal form](../normal-form.md):")
        parts += [*_formula(side.form.latex()), f"```text\n{calls}\n```"]
    return "\n\n".join(["## Index form and einsum", *parts]) if parts else ""


def addends(code: str) -> list[str]:
    """Return the terms of a sum in Python; a sum in the brackets of a term stays whole.

    >>> addends("einsum('a->', exp(x + y)) + 2*einsum('a->', z)")
    ["einsum('a->', exp(x + y))", "2*einsum('a->', z)"]
    """
    terms = [""]
    depth = 0
    for piece in re.split(r"( \+ |[()\[\]])", code):
        if piece == " + " and depth == 0:
            terms.append("")
            continue
        depth += (piece in OPENING) - (piece in CLOSING)
        terms[-1] += piece
    return terms


def _formula(tex: str) -> list[str]:
    """Return a sum in index notation as Markdown, a term a line."""
    if len(tex) > LONGEST_FOLDED:
        return []
    lines = aligned(f"& {term}" for term in split_sum(tex))
    shown = f"$$\n{lines}\n$$"
    if len(tex) <= LONGEST_TEX:
        return [shown]
    summary = "<summary>As a sum over indices</summary>"
    return [f"<details markdown>\n{summary}\n\n{OPENS}\n\n{shown}\n\n{CLOSES}\n\n</details>"]
