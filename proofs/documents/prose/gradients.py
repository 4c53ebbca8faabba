r"""Symbols that a text writes for derivatives of a loss: “$\bar{M}$ for the gradient by $M$”.

From there on, in the same section, `\bar{Y}` is read as `∂ℓ/∂Y`, and `G_Y` after “$G_M$ is the
gradient with respect to $M$”. So are `\delta_V` after `\delta_Z = \partial \ell / \partial Z`,
and `dV` after “$dM$ denotes $\partial \ell / \partial M$”.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Derivative,
    Name,
    Node,
    Product,
    Statement,
    bare,
    latex,
    mapped,
    walk,
)
from otimes.proofs.documents.formulas.changes import operand, rewritten
from otimes.proofs.documents.prose.declared_in_words import Prose
from otimes.proofs.documents.prose.items import Item

OF = r"(?:derivatives?|gradients?|adjoints?|cotangents?)"
LOSS = (
    r"\s+of\s+(?:the\s+|a\s+|our\s+)?(?:(?:\w+\s+){0,2}?(?:loss|cost|objective)"
    r"(?:\s+function)?(?:\s+⟦(?P<loss>\d+)⟧)?|(?:(?:number|scalar)\s+)?⟦(?P<number>\d+)⟧)"
)
BY = r"(?:,?\s+(?:by|with\s+respect\s+to|w\.r\.t\.?|at|to|for)\s+(?:[a-z]+\s+){0,3}?⟦(?P<at>\d+)⟧)"
VERB = r",?\s+(?:for|denotes?|to\s+denote|be|is|means?|as|stands?\s+for)\s+(?:the\s+)?"
IS = re.compile(rf"⟦(?P<name>\d+)⟧{VERB}{OF}(?:{LOSS})?{BY}?", re.IGNORECASE)
BY_NAME = re.compile(rf"\bby\s+⟦(?P<name>\d+)⟧\s*,?\s+the\s+{OF}(?:{LOSS})?{BY}?", re.IGNORECASE)
OF_ONE = (
    re.compile(rf"\b{OF}\s+⟦(?P<name>\d+)⟧{LOSS}{BY}", re.IGNORECASE),
    re.compile(rf"\b{OF}(?:{LOSS})?{BY}\s+(?:is|be|by|as)\s+⟦(?P<name>\d+)⟧", re.IGNORECASE),
)
# The loss of one of several examples is another number than that of all.
OF_PART = re.compile(
    r"\b(?:per|each|single|individual|one)\b|\b(?:example|sample|token)s?\b", re.IGNORECASE
)
SPOKEN = re.compile(rf"\b{OF}\b", re.IGNORECASE)
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
    """What is written for derivatives of `target`, from an offset on: a mark, a letter, or a `d`.

    `before` is what stands before a symbol, as LaTeX.
    """

    target: Node
    offset: int
    marks: tuple[str, ...] = ()
    letter: str = ""
    before: str = ""
    spoken: bool = False  # only where the words of a sentence name gradients

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


@dataclass(frozen=True, slots=True)
class GradientNamed:
    """A symbol that a text says is one gradient: “let $G$ be the gradient by $Y$”."""

    name: Name
    value: Derivative
    offset: int


def read_gradients(prose: Prose, items: Sequence[Item]) -> list[GradientNamed]:
    """Return the gradients that a text names, and put in items those for which it has a sign."""
    loss = _loss(items)
    said = [*_said(prose, loss), *_in_formulas(items)]
    named = [*_named(prose, loss)]
    said += [
        Gradients(each.value.target, each.offset, letter=each.name.base, spoken=True)
        for each in named
        if not each.name.sub
    ]
    document = prose.document
    for item in items if said else ():
        for each in said:
            row = document.row(each.offset)
            here = document.is_in_scope(row, item.line) or document.is_general(row)
            if item.formula.start <= each.offset or not here:
                continue
            if not each.spoken or SPOKEN.search(document.sentence(item.formula)):
                item.statements = [_with(each, statement) for statement in item.statements]
    return named


def _loss(items: Iterable[Item]) -> Node:
    """Return the number of which a text has derivatives, ℓ if these are of several or of none."""
    every = (e for item in items for s in item.statements for e in walk(s))
    found = {latex(e.target): e.target for e in every if isinstance(e, Derivative)}
    target = bare(next(iter(found.values()))) if len(found) == 1 else ELL
    return replace(target, span=(0, 0)) if isinstance(target, Name) else ELL


def _named(prose: Prose, loss: Node) -> Iterator[GradientNamed]:
    """Yield the symbols that a text says are gradients at one symbol."""
    for pattern in (IS, BY_NAME, *OF_ONE):
        for match in pattern.finditer(prose.text):
            names = prose.subjects(f"⟦{match['name']}⟧")
            variable = _symbol(prose, match["at"])
            target = _symbol(prose, match["loss"] or match["number"]) or loss
            sure = match["loss"] or match["number"] or "loss" in match[0] or "cost" in match[0]
            sure = sure and not OF_PART.search(match[0])
            if not sure or variable is None or len(names) != 1 or names[0].marks or names[0].sub:
                continue
            value = Derivative(target, variable)
            yield GradientNamed(replace(names[0], span=(0, 0)), value, prose.offset(match.end()))

    for match in EQUAL.finditer(prose.text):
        names = prose.subjects(f"⟦{match['name']}⟧")
        found = _term(prose, match["derivative"])
        plain = len(names) == 1 and not (names[0].marks or names[0].sub)
        if plain and isinstance(found, Derivative) and isinstance(bare(found.target), Name):
            yield GradientNamed(replace(names[0], span=(0, 0)), found, prose.offset(match.end()))


def _with(said: Gradients, statement: Statement) -> Statement:
    def change(part: Any) -> Any:
        if isinstance(part, Derivative):
            return part
        return (said.at(part) or part) if isinstance(part, Name) else None

    def after_sign(part: Product) -> Node | None:
        name = operand(part)
        return Derivative(said.target, name, span=part.span) if isinstance(name, Name) else None

    if said.before:
        changed: Statement = rewritten(statement, after_sign)
    else:
        changed = mapped(statement, change)
    return changed


def _in_formulas(items: Iterable[Item]) -> Iterator[Gradients]:
    r"""Yield what formulas write for derivatives: `\delta_M = \partial \ell / \partial M`."""
    for item in items:
        for statement in item.statements:
            if len(statement.terms) != 2 or statement.relations[0] not in ("=", ":="):
                continue
            left, right = map(bare, statement.terms)
            if isinstance(right, Derivative) and isinstance(bare(right.target), Name):
                target = replace(bare(right.target), span=(0, 0))
                variable = replace(right.variable, span=(0, 0))
                yield from _family(left, target, variable, item.formula.start)


def _said(prose: Prose, loss: Node) -> Iterator[Gradients]:
    for match in chain(IS.finditer(prose.text), BY_NAME.finditer(prose.text)):
        if any(match[group] for group in ("loss", "number", "at")) or " loss" in match[0]:
            target = _symbol(prose, match["loss"] or match["number"]) or loss
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
        target = _symbol(prose, match["loss"] or match["number"]) or loss
        yield Gradients(target, prose.offset(match.end()), marks)


def _of(
    prose: Prose, match: re.Match[str], target: Node, variable: Name | None
) -> Iterator[Gradients]:
    """Yield what a symbol for the derivative at another, or at what it is without its mark, is."""
    term = _term(prose, match["name"])
    if term is not None:
        yield from _family(bare(term), target, variable, prose.offset(match.end()))


def _family(name: Node, target: Node, variable: Name | None, at: int) -> Iterator[Gradients]:
    """Yield what derivatives are written as where the one at a symbol has a name made of it."""
    sign = name.factors[0] if isinstance(name, Product) and operand(name) == variable else None
    if sign is not None and variable is not None:
        yield Gradients(target, at, before=latex(sign))
        return
    if not isinstance(name, Name) or name.sup:
        return
    name = replace(name, span=(0, 0))
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
