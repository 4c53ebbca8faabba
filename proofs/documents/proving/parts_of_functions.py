r"""Rows and columns of a function: `h(X)_{i,:} = \sum_j A_{ij} x_j W` beside `h(X) = A X W`.

Whichever of the two comes first defines the other. An index by itself may count rows or columns,
and either may be meant as a column or as a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from otimes.algebra.notation.tree import (
    Apply,
    Entry,
    Group,
    Node,
    Power,
    Slot,
    bare,
    latex,
)
from otimes.proofs.documents.proving.related import keys_in
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition

ALL = Slot("label", ":")


def of_part(
    context: Context,
    left: Node,
    right: Node,
    line: int,
    judged: Callable[[Node, Node], Found],
) -> Found | None:
    """Return the verdict on an equation that defines a part of a function, or the whole, again.

    `judged` returns the verdict on an equation. None where the text does not define the other, or
    where the verdict depends on what the index counts.
    """
    term = bare(left)
    if not isinstance(term, Apply) or latex(term) in context.definitions:
        return None
    for said, part, whole, value in _pairs(context, term, right):
        if not context.in_scope(said.line, line) or not _have_same_symbols(
            context, whole, value, line
        ):
            continue
        found = [judged(reading, value) for reading in _readings(whole, part)]
        proved = [each for each in found if each.verdict == "proved"]
        refuted = [each for each in found if each.verdict == "refuted"]
        if not proved and not (refuted and all(each.is_wrong for each in found)):
            continue
        first = (proved or refuted)[0]
        why = f"{first.why}; with {latex(said.lhs)} as on line {said.line}"
        return replace(first, why=why, suggestion="", against=(said.line,))
    return None


def _pairs(
    context: Context, term: Apply, right: Node
) -> Iterator[tuple[Definition, tuple[Slot, ...], Node, Node]]:
    """Yield definitions with the part that one side is, the other side as a whole, and the value.

    The whole is defined and the part is equated, or the other way round.
    """
    if term.below:
        known = context.definitions.get(latex(replace(term, below=())), ())
        for said in known[:1]:
            yield said, term.below, Group(said.rhs, stands_for=said.lhs), right
        return
    for known in [*context.definitions.values()]:
        said = known[0]
        own = said.lhs
        if isinstance(own, Apply) and own.below and replace(own, below=()) == term:
            yield said, own.below, Group(right, stands_for=term), said.rhs


def _readings(whole: Node, part: tuple[Slot, ...]) -> Iterator[Node]:
    """Yield what a part may be: the row or the column, each as it is and turned."""
    if len(part) > 1:
        yield Entry(whole, part)
        return
    for slots in ((*part, ALL), (ALL, *part)):
        yield Entry(whole, slots)
        yield Power(Entry(whole, slots), "T")


def _have_same_symbols(context: Context, whole: Node, value: Node, line: int) -> bool:
    """Return whether two terms have the same symbols with all definitions put in, but for sizes."""
    sides = [context.unfolded(side, {}, None, context.instances([side])) for side in (whole, value)]
    return not (keys_in(sides[0]) ^ keys_in(sides[1])) - context.symbols_at(line).sizes()
