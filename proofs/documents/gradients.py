r"""Symbols that a text writes for derivatives of a loss: “$\bar{M}$ for the gradient by $M$”.

From there on, in the same section, `\bar{Y}` is read as `∂ℓ/∂Y`, and `G_Y` after “$G_M$ is the
gradient with respect to $M$”.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Derivative, Name, Node, Statement, bare, mapped
from otimes.proofs.documents.items import Item
from otimes.proofs.documents.prose import Prose

OF = r"(?:derivatives?|gradients?|adjoints?|cotangents?)"
LOSS = (
    r"\s+of\s+(?:the\s+|a\s+|our\s+)?(?:(?:\w+\s+){0,2}?(?:loss|cost|objective)"
    r"(?:\s+function)?(?:\s+⟦(?P<loss>\d+)⟧)?|(?:(?:number|scalar)\s+)?⟦(?P<number>\d+)⟧)"
)
BY = (
    r"(?:,?\s+(?:by|with\s+respect\s+to|w\.r\.t\.?|at|to|for)\s+(?:(?:an?|the|any|each|every)\s+)?"
    r"(?:(?:matrix|vector|array|tensor|variable|symbol|quantity)\s+)?⟦(?P<at>\d+)⟧)"
)
VERB = r",?\s+(?:for|denotes?|to\s+denote|be|is|means?|as|stands?\s+for)\s+(?:the\s+)?"
IS = re.compile(rf"⟦(?P<name>\d+)⟧{VERB}{OF}(?:{LOSS})?{BY}?", re.IGNORECASE)
EQUAL = re.compile(rf"⟦(?P<name>\d+)⟧{VERB}⟦(?P<derivative>\d+)⟧", re.IGNORECASE)
WORD = re.compile(
    r"\b(?P<word>bar|overbar|overline|hat|tilde)s?(?:\s+(?:over|on|above)\s+[^.]{0,40}?)?\s+"
    r"(?:denotes?|marks?|is|are|means?|stands?\s+for|indicates?)\s+(?:the\s+|its\s+)?"
    rf"{OF}{LOSS}",
    re.IGNORECASE,
)
ELL = Name(r"\ell")
BARS = ("bar", "overline")


@dataclass(frozen=True, slots=True)
class Gradients:
    """What is written for derivatives of `target`, from an offset on: a mark, or a letter."""

    target: Node
    offset: int
    marks: tuple[str, ...] = ()
    letter: str = ""

    def at(self, name: Name) -> Derivative | None:
        """Return the derivative that a symbol is, or None."""
        if name.select:
            return None
        if name.marks and name.marks[-1] in self.marks:
            variable: Node | None = replace(name, marks=name.marks[:-1], span=(0, 0))
        elif self.letter and name.base == self.letter and len(name.sub) == 1 and not name.marks:
            variable = _plain(name.sub[0].text)
        else:
            return None
        if not isinstance(variable, Name):
            return None
        return Derivative(self.target, variable, span=name.span)


def read_gradients(prose: Prose, items: Iterable[Item]) -> None:
    """Put derivatives in the statements of items for the symbols that a text writes for them."""
    said = [*_said(prose)]
    document = prose.document
    for item in items if said else ():
        for each in said:
            row = document.row(each.offset)
            if item.formula.start > each.offset and document.is_in_scope(row, item.line):
                item.statements = [_with(each, statement) for statement in item.statements]


def _with(said: Gradients, statement: Statement) -> Statement:
    def change(part: Any) -> Any:
        if isinstance(part, Derivative):
            return part
        return (said.at(part) or part) if isinstance(part, Name) else None

    changed: Statement = mapped(statement, change)
    return changed


def _said(prose: Prose) -> Iterator[Gradients]:
    for match in IS.finditer(prose.text):
        if any(match[group] for group in ("loss", "number", "at")) or " loss" in match[0]:
            target = _symbol(prose, match["loss"] or match["number"]) or ELL
            yield from _of(prose, match, target, _symbol(prose, match["at"]))
    for match in EQUAL.finditer(prose.text):
        found = _term(prose, match["derivative"])
        of = bare(found.target) if isinstance(found, Derivative) else None
        if isinstance(found, Derivative) and isinstance(of, Name):
            variable = replace(found.variable, span=(0, 0))
            yield from _of(prose, match, replace(of, span=(0, 0)), variable)
    for match in WORD.finditer(prose.text):
        word = match["word"].lower()
        marks = BARS if word in ("bar", "overbar", "overline") else (word, f"wide{word}")
        target = _symbol(prose, match["loss"] or match["number"]) or ELL
        yield Gradients(target, prose.offset(match.end()), marks)


def _of(
    prose: Prose, match: re.Match[str], target: Node, variable: Name | None
) -> Iterator[Gradients]:
    """Yield what a symbol for the derivative at another, or at what it is without its mark, is."""
    name = _symbol(prose, match["name"])
    if name is None or name.sup:
        return
    at = prose.offset(match.end())
    if name.marks and variable in (None, replace(name, marks=name.marks[:-1], span=(0, 0))):
        mark = name.marks[-1]
        yield Gradients(target, at, BARS if mark in BARS else (mark,))
        return
    lettered = len(name.sub) == 1 and not name.marks and variable is not None
    if lettered and _plain(name.sub[0].text) == variable:
        yield Gradients(target, at, letter=name.base)


def _symbol(prose: Prose, number: str | None) -> Name | None:
    term = _term(prose, number)
    return replace(term, span=(0, 0)) if isinstance(term, Name) else None


def _term(prose: Prose, number: str | None) -> Node | None:
    return prose.node(number) if number is not None else None


def _plain(text: str) -> Name | None:
    """Return the symbol that an index is, as in `G_{W_Q}`."""
    try:
        statements = parse_formula(text)
    except NotationError:
        return None
    term = bare(statements[0].terms[0]) if statements else None
    return replace(term, span=(0, 0)) if isinstance(term, Name) else None
