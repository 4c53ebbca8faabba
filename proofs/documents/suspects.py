"""The definitions that an equation uses, and the edits of each that make it true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.notation.tree import Name, Node, latex, walk
from otimes.proofs.documents.attempts import TRIAL, attempted
from otimes.proofs.documents.context import Context, Definition
from otimes.proofs.documents.suggestions import edits_of, folded

MOST_WORK = 1.0  # units for the edits of all definitions that an equation uses
MOST_EDITS = 40  # of one definition


class Key(NamedTuple):
    """A definition: its line, and its left side as LaTeX."""

    line: int
    text: str


class Use(NamedTuple):
    """An equation with the definitions that are put in for its symbols, by what is defined."""

    sides: tuple[Node, Node]
    definitions: dict[str, Definition]
    line: int

    @property
    def keys(self) -> dict[Key, str]:
        """What is defined, by the definition."""
        return {key_to(each): text for text, each in self.definitions.items()}

    def is_true_with(self, context: Context, key: Key, edited: Node) -> bool:
        """Return whether it is proved with another right side of a definition."""
        text = self.keys[key]
        put = {**self.definitions, text: replace(self.definitions[text], rhs=edited)}
        a, b = (context.unfolded(side, {}, (), put) for side in self.sides)
        given = context.declared_hypotheses([a, b])
        verdict, _ = attempted(a, b, given, context.symbols_at(self.line), TRIAL)
        return verdict is not None and verdict.status == "proved"


def key_to(known: Definition) -> Key:
    """Return the line and the left side of a definition."""
    return Key(known.line, latex(known.lhs))


def use_of(context: Context, lhs: Node, rhs: Node, line: int) -> Use:
    """Return an equation with the earlier definitions that it uses."""
    used: dict[str, Definition] = {}
    others = context.instances([lhs, rhs])
    for side in (lhs, rhs):
        context.unfolded(side, used, None, others)
    earlier = {text: each for text, each in used.items() if each.line < line}
    return Use((lhs, rhs), earlier, line)


def suspects(context: Context, use: Use) -> dict[Key, dict[str, Node]]:
    """Return the right sides with one edit, by their LaTeX, that make an equation true."""
    begun, mended = steps_done(), dict[Key, dict[str, Node]]()
    sizes = context.symbols_at(use.line).sizes()
    claim = [context.unfolded(side, {}, (), use.definitions) for side in use.sides]
    for _, each in sorted(use.definitions.items(), key=lambda pair: (-pair[1].line, pair[0])):
        for edited in _edited(each, claim, sizes):
            if steps_done() - begun > MOST_WORK * STEPS:
                break
            if use.is_true_with(context, key_to(each), edited):
                mended.setdefault(key_to(each), {})[latex(folded(edited))] = edited
    return mended


def _edited(known: Definition, claim: Sequence[Node], sizes: set[str]) -> Iterator[Node]:
    """Yield the right side of a definition with one edit."""
    names = Counter(e for side in claim for e in walk(side) if isinstance(e, Name))
    tried = {latex(known.rhs)}
    for _, edited in edits_of(known.rhs, names, sizes):
        text = latex(edited)
        if len(tried) <= MOST_EDITS and text not in tried:
            tried.add(text)
            yield edited
