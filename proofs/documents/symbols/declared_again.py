"""Symbols that a text declares again: what was said of them before may be about other ones.

“Let P ∈ ℝⁿˣⁿ be a matrix” in a later section, or “for any matrix P”, may be a new P. So an equation
that is proved with the definition of P from before is proved without it, too, or it is reported
with the question whether P is still that one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from otimes.algebra.notation.elaborate import shape_error
from otimes.algebra.notation.symbols import key_of
from otimes.algebra.notation.tree import Apply, Name, Node, latex, walk
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.symbols.hypotheses import Hypothesis

LET = re.compile(
    r"\b(?:let|suppose|assume|given|consider|for (?:any|all|two|every))\b", re.IGNORECASE
)


class Again(NamedTuple):
    """What is said of symbols that are declared again before a line, and where that is.

    `definitions` are the symbols that are defined, and `lines` the line of what is said first, and
    that of the declaration, by the key of a symbol.
    """

    definitions: tuple[str, ...]
    hypotheses: tuple[Hypothesis, ...]
    lines: dict[str, tuple[int, int]]

    def __str__(self) -> str:
        said = [f"{key} is that of line {a} (line {b} declares it)" for key, (a, b) in self.pairs]
        return f"true if {' and '.join(said)}"

    @property
    def pairs(self) -> list[tuple[str, tuple[int, int]]]:
        return sorted(self.lines.items())


def declared_again(context: Context, nodes: Sequence[Node], line: int) -> Again | None:
    """Return what was said of symbols in terms before these were declared again, or None."""
    keys, pending, lines = set[str](), [*nodes], dict[str, tuple[int, int]]()
    definitions, hypotheses = list[str](), list[Hypothesis]()
    while pending:
        own = {key_of(e): e for e in walk(pending.pop()) if isinstance(e, Name)}
        for key, name in own.items():
            if key in keys:
                continue
            keys.add(key)
            said = [(latex(name), each) for each in context.definitions.get(latex(name), ())[:1]]
            pending += [each.rhs for _, each in said]
            pending += [each.rhs for each in context.generic.get(key, ())[:1]]
            declared = _lines(context, key, line)
            if not declared:
                continue
            for text, known in context.definitions.items():
                defined = known[0].lhs if known else None
                mine = defined.function if isinstance(defined, Apply) else defined
                again = _again(context, key, known[0].line, declared) if known else 0
                if isinstance(mine, Name) and key_of(mine) == key and again:
                    definitions.append(text)
                    lines[key] = known[0].line, again
    for each in context.hypotheses:
        about = {
            key_of(e) for side in (each.lhs, each.rhs) for e in walk(side) if isinstance(e, Name)
        }
        for key in about & keys if each.declared and each.line else ():
            again = _again(context, key, each.line, _lines(context, key, line))
            if again:
                hypotheses.append(each)
                lines[key] = each.line, again
    return Again(tuple(definitions), tuple(hypotheses), lines) if lines else None


def another_since(context: Context, rows: Collection[int], line: int) -> str:
    """Return that a symbol defined on one of the rows may be another one since, or "".

    It is declared in a later paragraph with a shape that its definition has not.
    """
    symbols = context.symbols_at(line)
    for every in context.definitions.values():
        known = every[0] if every else None
        if known is None or known.line not in rows or not isinstance(known.lhs, Name):
            continue
        key = symbols.lookup(known.lhs)[0]
        for at in (at for at in _lines(context, key, line) if at > known.line):
            if context.together(known.line, at) or not shape_error([known.lhs, known.rhs], symbols):
                continue
            return f"{key} may be another one than on line {known.line} (line {at} declares it)"
    return ""


def is_new_below(context: Context, name: Name, line: int) -> bool:
    """Return whether a symbol is declared only in later paragraphs, which let it be a new one."""
    key = context.symbols_at(line).lookup(name)[0]
    lines = [each.line for each in context.declarations_of(key) if each.line]
    below = [at for at in lines if at > line and not context.together(line, at)]
    return (
        bool(lines) and below == lines and all(LET.search(context.words_near(at)) for at in below)
    )


@contextmanager
def without(context: Context, again: Again) -> Iterator[None]:
    """Leave out what was said of symbols before these were declared again."""
    definitions, ahead, hypotheses = context.definitions, context.ahead, context.hypotheses
    context.definitions = {k: x for k, x in definitions.items() if k not in again.definitions}
    context.ahead = {k: x for k, x in ahead.items() if k not in again.definitions}
    context.hypotheses = [each for each in hypotheses if each not in again.hypotheses]
    try:
        yield
    finally:
        context.definitions, context.ahead, context.hypotheses = definitions, ahead, hypotheses


def _lines(context: Context, key: str, line: int) -> list[int]:
    """Return the lines up to a line on which a symbol is declared."""
    return sorted({each.line for each in context.declarations_of(key) if 0 < each.line <= line})


def _again(context: Context, key: str, said: int, lines: Sequence[int]) -> int:
    """Return the first line after another on which a symbol may be declared anew, or 0."""
    for line in lines:
        if line <= said or context.together(said, line):
            continue
        if (key, line) in context.local or not context.in_scope(said, line):
            return line
    return 0
