r"""Matrices that are stacked from rows or columns which a text defines one by one.

After `h_i = \sum_j A_{ij} M x_j`, with `H = [h_1, \dots, h_n]` and `X = [x_1, \dots, x_n]`, the
equation `H = M X A^\top` is a claim about each column, and after `S_{ij} = q_i^\top k_j` one for S
is a claim about each entry. Where the text does not say what H is made of, the letter suggests it:
then the equation is called wrong if a slip is what tells it from the columns, or from the rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from otimes.algebra.notation.tree import Entry, Group, Name, Node, Power, Slot, bare, latex
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition
from otimes.proofs.documents.verdicts.false_claims import DIFFER
from otimes.proofs.documents.verdicts.suggestions import SLIPS, edits_of

MOST = 24  # edits of a matrix that are tried
ALL = Slot("label", ":")


class Stacked(NamedTuple):
    """A definition of the members of a matrix; `said`: whether the text says they are."""

    definition: Definition
    side: str
    turned: bool
    said: bool

    def part(self, whole: Node, side: str = "") -> Node:
        """Return the row, the column or the entry of a matrix that a member is."""
        name = self.definition.lhs
        slots = name.sub if isinstance(name, Name) else ()
        if (side or self.side) != "entry":
            slots = (slots[0], ALL) if (side or self.side) == "row" else (ALL, slots[0])
        part = Entry(Group(whole), slots)
        return Power(part, "T") if self.turned or side else part


def by_members(
    context: Context, left: Node, right: Node, line: int, judged: Callable[[Node, Node], Found]
) -> Found | None:
    """Return the verdict on an equation for a matrix by what its parts are, or None."""
    whole = bare(left)
    if not isinstance(whole, Name) or whole.sub or whole.select or not whole.base.isupper():
        return None
    for each in _stacked(context, whole):
        member, known = each.definition.lhs, each.definition
        if not isinstance(member, Name) or not context.in_scope(known.line, line):
            continue
        found = judged(member, each.part(right))
        why = f"{found.why}; {each.side} by {each.side}"
        sure = found.verdict == "proved" if each.side == "entry" else found.is_decided
        if each.said and sure:
            return replace(found, why=why, suggestion="", against=(known.line,))
        edited = (
            _slip(context, each, right, line, judged) if found.differ or found.is_wrong else None
        )
        if edited is not None:
            mended, why = (
                f"{latex(left)} = {latex(edited)}",
                f"{DIFFER}; {each.side} by {each.side}",
            )
            why = f"{why}, as on line {known.line}"
            return replace(
                found, verdict="refuted", why=why, suggestion=mended, against=(known.line,)
            )
        if found.verdict == "refuted" and each.side != "entry":
            why = f"it is false if its {each.side}s are those of line {known.line}"
            return Found("needs-hypothesis", why)
    return None


def _slip(
    context: Context,
    each: Stacked,
    right: Node,
    line: int,
    judged: Callable[[Node, Node], Found],
) -> Node | None:
    """Return a matrix with one edit that has the parts which its letter suggests, or None.

    None, too, where these are its parts on the other side: it is stacked so.
    """
    member, sizes = each.definition.lhs, context.symbols_at(line).sizes()
    other = {"row": "column", "column": "row"}.get(each.side)
    if other and judged(member, each.part(right, other)).verdict == "proved":
        return None
    for kind, edited in islice(edits_of(right, Counter(), sizes), MOST):
        slip = kind in SLIPS and not context.is_excused(kind, line)
        if slip and judged(member, each.part(edited)).verdict == "proved":
            return edited
    return None


def as_member(
    context: Context, left: Node, right: Node, line: int, judged: Callable[[Node, Node], Found]
) -> Found | None:
    """Return the proof that a small letter with an index is a member of the matrix of its letter.

    After `Y = X + M X N` there is one of `y_i = x_i + M x_{i-1}`, where other letters are members.
    """
    name = bare(left)
    one = isinstance(name, Name) and [slot.kind for slot in name.sub] == ["index"]
    if not one or not isinstance(name, Name) or not name.base.islower() or name.select:
        return None
    sides = {member.side for members in context.members.values() for member in members}
    whole = replace(name, base=name.base.upper(), sub=())
    known = context.definitions.get(latex(whole))
    if len(sides) != 1 or not known or not context.in_scope(known[0].line, line):
        return None
    if context.is_member(name) or latex(name) in context.definitions:
        return None
    side, index = sides.pop(), name.sub[0]
    slots = (index, ALL) if side == "row" else (ALL, index)
    part: Node = Entry(Group(known[0].rhs), slots)
    parts = (part, Power(part, "T")) if side == "row" else (part,)
    found = [each for term in parts if (each := judged(term, right)).verdict == "proved"]
    why = f"with {latex(whole)} as on line {known[0].line}, {side} by {side}"
    return replace(found[0], why=f"{found[0].why}; {why}") if found else None


def _stacked(context: Context, whole: Name) -> Iterator[Stacked]:
    """Yield the definitions of what a matrix is made of, as said or as its letter suggests."""
    for letter in (whole.base, whole.base.lower()):
        for known in _defined(context, letter, whole, 2):
            yield Stacked(known, "entry", False, letter == whole.base)
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


def _defined(context: Context, letter: str, whole: Name, indices: int = 1) -> Iterator[Definition]:
    """Yield the definitions of a letter with so many indices that the matrix does not have."""
    for known in context.generic.get(letter, ()):
        name = known.lhs
        alike = isinstance(name, Name) and (name.sup, name.marks) == (whole.sup, whole.marks)
        if alike and [slot.kind for slot in getattr(name, "sub", ())] == ["index"] * indices:
            yield known
