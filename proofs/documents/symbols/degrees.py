r"""Diagonal matrices whose entries a text defines: `D = \mathrm{diag}(d_1, \dots, d_n)`.

With `d_i = \sum_j A_{ij}`, as the degrees of a graph, D has the row sums of A on its diagonal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from otimes.algebra.notation.tree import (
    Apply,
    Group,
    Indexed,
    Name,
    Node,
    Power,
    Product,
    Slot,
    bare,
)


class Said(Protocol):
    """A definition: a symbol, and what it is."""

    @property
    def lhs(self) -> Node: ...
    @property
    def rhs(self) -> Node: ...


def entries_of(node: Node, definitions: Iterable[Said]) -> Iterator[tuple[Name, Node]]:
    r"""Yield what definitions `d_i = …` say of the entries of `\mathrm{diag}(d_1, \dots, d_n)`."""
    term = bare(node)
    listed = [bare(each) for each in term.arguments] if isinstance(term, Apply) else []
    first = listed[0] if listed else None
    if not isinstance(first, Name) or len(first.sub) != 1:
        return
    for said in definitions:
        own = said.lhs
        alike = isinstance(own, Name) and replace(own, sub=first.sub) == first
        if isinstance(own, Name) and alike and [slot.kind for slot in own.sub] == ["index"]:
            yield own, said.rhs


def with_row_sums(node: Node, definitions: Iterable[Said]) -> Node | None:
    r"""Return `\mathrm{diag}(d_1, \dots, d_n)` as `\mathrm{diag}(A 1)`, or None.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.tree import latex
    >>> from otimes.proofs.documents.symbols.context import Definition
    >>> texts = r"d_i = \sum_j A_{ij}", r"D = \mathrm{diag}(d_1, \dots, d_n)"
    >>> said, matrix = (parse_formula(text)[0].terms for text in texts)
    >>> latex(with_row_sums(matrix[1], [Definition(*said, 1)]))
    '\\mathrm{diag}((A \\mathbf{1}))'
    """
    term = bare(node)
    for own, value in entries_of(node, definitions):
        vector = _row_sums(value, own.sub[0])
        if vector is not None and isinstance(term, Apply):
            return replace(term, arguments=(vector,))
    return None


def _row_sums(value: Node, row: Slot) -> Node | None:
    """Return the column of the sums of the rows of a matrix, or of its columns, or None."""
    total = bare(value)
    if not isinstance(total, Indexed) or total.mark != r"\sum" or len(total.indices) != 1:
        return None
    entry, column = bare(total.body), Slot("index", total.indices[0])
    if not isinstance(entry, Name) or entry.sub not in ((row, column), (column, row)):
        return None
    whole: Node = replace(entry, sub=())
    whole = whole if entry.sub == (row, column) else Power(whole, "T")
    return Group(Product((whole, Name("1", "bf")), ("", "")))
