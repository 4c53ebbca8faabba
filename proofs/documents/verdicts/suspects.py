"""The definitions that an equation uses, and the edits of each that make it true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.notation.tree import Entry, Group, Name, Node, Power, bare, latex, walk
from otimes.proofs.documents.proving.attempts import TRIAL, attempted
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.symbols.terms import is_value
from otimes.proofs.documents.verdicts.suggestions import edits_of, folded

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
    def keys(self) -> dict[Key, list[str]]:
        """What is defined, by the definition: `S` and its entry `S_{ij}` by that of S."""
        found: dict[Key, list[str]] = {}
        for text, each in self.definitions.items():
            found.setdefault(key_to(each), []).append(text)
        return found

    def is_true_with(self, context: Context, key: Key, edited: Node) -> bool:
        """Return whether it is proved with another right side of a definition."""
        put = {**self.definitions}
        for text in self.keys[key]:
            put[text] = replace(put[text], rhs=_with_whole(put[text].rhs, edited))
        a, b = (context.unfolded(side, {}, (), put) for side in self.sides)
        return holds(context, a, b, self.line)


def holds(context: Context, lhs: Node, rhs: Node, line: int) -> bool:
    """Return whether an equation is proved, perhaps under what the text declares."""
    symbols, given = context.symbols_at(line), context.declared_hypotheses([lhs, rhs])
    for hypotheses in ((), given) if given else ((),):
        verdict, _ = attempted(lhs, rhs, hypotheses, symbols, TRIAL)
        if verdict is not None and verdict.status == "proved":
            return True
    return False


def key_to(known: Definition) -> Key:
    """Return the line and the left side of a definition, for an entry those of the matrix."""
    whole = _whole(known.rhs)
    of = known.lhs if whole is None or whole.stands_for is None else whole.stands_for
    return Key(known.line, latex(of))


def _whole(rhs: Node) -> Group | None:
    """Return the matrix of which a term is an entry, a part or a power, or None."""
    base = rhs.base if isinstance(rhs, Entry | Power) else None
    return base if isinstance(base, Group) and base.stands_for is not None else None


def _with_whole(rhs: Node, edited: Node) -> Node:
    """Return the right side of a definition that is edited, perhaps that of a matrix."""
    whole = _whole(rhs)
    if whole is None or not isinstance(rhs, Entry | Power):
        return edited
    return replace(rhs, base=replace(whole, inner=edited))


def use_of(context: Context, lhs: Node, rhs: Node, line: int) -> Use:
    """Return an equation with the definitions that it uses: earlier ones, or those after “where”.

    It is none of them itself.
    """
    used: dict[str, Definition] = {}
    others = context.instances([lhs, rhs])
    for other in context.other_definitions([lhs, rhs], line):
        for text, each in other.items():
            later = each.line >= line and not is_value(each.rhs)
            if later and text not in context.definitions:
                others.setdefault(text, each)
    for side in (lhs, rhs):
        context.unfolded(side, used, None, others)
    sides = [latex(bare(lhs)), latex(bare(rhs))]
    other = {t: d for t, d in used.items() if [latex(bare(d.lhs)), latex(bare(d.rhs))] != sides}
    return Use((lhs, rhs), other, line)


def suspects(context: Context, use: Use, kinds: Collection[str] = ()) -> dict[Key, dict[str, Node]]:
    """Return the right sides with one edit, by their LaTeX, that make an equation true.

    `kinds` are those of the edits, all where it is empty.
    """
    begun, mended = steps_done(), dict[Key, dict[str, Node]]()
    sizes = context.symbols_at(use.line).sizes()
    claim = [context.unfolded(side, {}, (), use.definitions) for side in use.sides]
    for _, each in sorted(use.definitions.items(), key=lambda pair: (-pair[1].line, pair[0])):
        for kind, edited in _edited(each, claim, sizes):
            if kinds and kind not in kinds:
                continue
            if steps_done() - begun > MOST_WORK * STEPS:
                break
            if use.is_true_with(context, key_to(each), edited):
                mended.setdefault(key_to(each), {})[latex(folded(edited))] = edited
    return mended


def _edited(
    known: Definition, claim: Sequence[Node], sizes: set[str]
) -> Iterator[tuple[str, Node]]:
    """Yield the right side of a definition with one edit, and the kind of the edit."""
    names = Counter(e for side in claim for e in walk(side) if isinstance(e, Name))
    whole = _whole(known.rhs)
    rhs = known.rhs if whole is None else whole.inner
    tried = {latex(rhs)}
    for kind, edited in edits_of(rhs, names, sizes):
        text = latex(edited)
        if len(tried) <= MOST_EDITS and text not in tried:
            tried.add(text)
            yield kind, edited
