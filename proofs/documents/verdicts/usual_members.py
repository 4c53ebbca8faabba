r"""Rows and columns of which a text says nothing: `S_{ij} = q_i^\top k_j` after `S = Q K^\top`.

A small letter with an index that the text declares nowhere is usually a row, or a column, of the
matrix with the capital letter. An entry that is right so is true if it is one. An entry of the same
symbols that is false, whichever it is, is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from otimes.algebra.notation.symbols import key_of
from otimes.algebra.notation.tree import Name, Node, Slot, bare, is_constant, latex, walk
from otimes.proofs.documents.proving.related import keys_in
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context
from otimes.proofs.documents.symbols.members import Member

MOST_LETTERS = 2


class Reading(NamedTuple):
    """What a symbol with an index may be of the matrix with its capital letter."""

    side: str
    turned: bool


READINGS = (Reading("row", False), Reading("row", True), Reading("column", False))


def by_usual_members(
    context: Context, left: Node, right: Node, line: int, judged: Callable[[Node, Node], Found]
) -> Found | None:
    """Return the verdict on an entry by rows and columns that nothing declares, or None."""
    name = bare(left)
    if not isinstance(name, Name) or len(name.sub) != 2 or latex(name) in context.definitions:
        return None
    if any(slot.kind != "index" for slot in name.sub) or not context.instances([name]):
        return None
    wholes = _wholes(context, name, right, line)
    if not wholes:
        return None
    every: list[tuple[Reading, Found]] = []
    for reading in READINGS:
        members = [Member(own, whole, reading.side, line, reading.turned) for own, whole in wholes]
        with _assumed(context, members):
            found = judged(left, right)
            if found.verdict == "proved" or _is_of_the_same(context, left, right):
                every.append((reading, found))
    for reading, found in every:
        if found.verdict == "proved":
            turned = ", transposed" if reading.turned else ""
            said = [f"{latex(own)} is a {reading.side} of {latex(whole)}" for own, whole in wholes]
            return Found("needs-hypothesis", f"true if {' and '.join(said)}{turned}")
    wrong = next((found for _, found in every if found.verdict == "refuted"), None)
    if wrong is None:
        return None
    named = " and ".join(f"{latex(own)} of {latex(whole)}" for own, whole in wholes)
    return replace(wrong, why=f"{wrong.why}; whether rows or columns are meant by {named}")


def _is_of_the_same(context: Context, left: Node, right: Node) -> bool:
    """Return whether both sides have the same symbols with the definitions put in."""
    instances = context.instances([left, right])
    sides = (context.unfolded(side, {}, None, instances) for side in (left, right))
    put, by = map(keys_in, sides)
    return put == by


def _wholes(context: Context, name: Name, right: Node, line: int) -> list[tuple[Name, Name]]:
    """Return the undeclared symbols with an index of an entry, each with its matrix.

    None where another symbol of the entry is not declared.
    """
    symbols, found = context.symbols_at(line), dict[str, tuple[Name, Name]]()
    letters = {slot.text for slot in name.sub}
    for e in walk(right):
        if not isinstance(e, Name) or is_constant(e) or len(e.base) > 1 or not e.base.islower():
            continue
        indexed = len(e.sub) == 1 and e.sub[0].kind == "index" and e.sub[0].text in letters
        if not indexed or e.base in context.members or context.instances([e]):
            continue
        known = symbols.lookup(e)[1]
        whole = Name(e.base.upper(), e.style)
        is_matrix = symbols.lookup(whole)[1] is not None or latex(whole) in context.definitions
        if (known is not None and known.line) or latex(e) in context.definitions or not is_matrix:
            return []
        own = replace(e, sub=(Slot("index", "i"),), span=(-1, -1))
        found.setdefault(key_of(e), (own, whole))
    return [*found.values()] if len(found) <= MOST_LETTERS else []


@contextmanager
def _assumed(context: Context, members: list[Member]) -> Iterator[None]:
    """Take symbols for rows and columns of matrices for a while."""
    known = context.members
    context.members = {**known, **{each.name.base: [each] for each in members}}
    try:
        yield
    finally:
        context.members = known
