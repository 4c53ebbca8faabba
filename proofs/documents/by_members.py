r"""Matrices that are stacked from rows or columns which a text defines one by one.

After `h_i = \sum_j A_{ij} M x_j`, with `H = [h_1, \dots, h_n]` and `X = [x_1, \dots, x_n]`, the
equation `H = M X A^\top` is a claim about each column. Where the text does not say what H is made
of, the letter suggests it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from otimes.algebra.notation.tree import Entry, Group, Name, Node, Power, Slot, bare
from otimes.proofs.documents.context import Context, Definition
from otimes.proofs.documents.found import Found

ALL = Slot("label", ":")


class Stacked(NamedTuple):
    """A definition of the members of a matrix; `said`: whether the text says they are."""

    definition: Definition
    side: str
    turned: bool
    said: bool


def by_members(
    context: Context, left: Node, right: Node, line: int, judged: Callable[[Node, Node], Found]
) -> Found | None:
    """Return the verdict on an equation for a matrix by what its rows or columns are, or None."""
    whole = bare(left)
    if not isinstance(whole, Name) or whole.sub or whole.select or not whole.base.isupper():
        return None
    for each in _stacked(context, whole):
        member, known = each.definition.lhs, each.definition
        if not isinstance(member, Name) or not context.in_scope(known.line, line):
            continue
        index = Slot("index", member.sub[0].text)
        slots = (index, ALL) if each.side == "row" else (ALL, index)
        part: Node = Entry(Group(right), slots)
        found = judged(member, Power(part, "T") if each.turned else part)
        if found.verdict not in ("proved", "refuted", "shape"):
            continue
        why = f"{found.why}; {each.side} by {each.side}"
        if each.said:
            return replace(found, why=why, suggestion="", against=(known.line,))
        if found.verdict == "refuted":
            why = f"it is false if its {each.side}s are those of line {known.line}"
            return Found("needs-hypothesis", why)
    return None


def _stacked(context: Context, whole: Name) -> Iterator[Stacked]:
    """Yield the definitions of what a matrix is made of, as said or as its letter suggests."""
    for members in context.members.values():
        for member in members:
            if replace(member.whole, span=(0, 0)) == replace(whole, span=(0, 0)):
                for known in _defined(context, member.name.base, whole):
                    yield Stacked(known, member.side, member.turned, True)
                return
    sides = {member.side for members in context.members.values() for member in members}
    if len(sides) == 1:  # the others are all stacked in one way
        for known in _defined(context, whole.base.lower(), whole):
            yield Stacked(known, sides.pop(), False, False)
            return


def _defined(context: Context, letter: str, whole: Name) -> Iterator[Definition]:
    """Yield the definitions of a small letter with an index that the matrix does not have."""
    for known in context.generic.get(letter, ()):
        name = known.lhs
        alike = isinstance(name, Name) and (name.sup, name.marks) == (whole.sup, whole.marks)
        if alike and [slot.kind for slot in getattr(name, "sub", ())] == ["index"]:
            yield known
