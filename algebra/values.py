"""Sums of diagrams: what an expression is read as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy

from algebra import scalars
from algebra.diagram import Diagram, Sort
from algebra.language import key
from algebra.legs import Branch, Legs
from algebra.scalars import Coefficient

Terms = dict[Diagram, Coefficient]


class Label(NamedTuple):
    """What a box is an occurrence of: a tensor, with the indices that are fixed numbers.

    The wires of a box are the free indices, then the row legs, then the column legs; `indices`
    holds None where there is a wire. `rows` and `cols` are the legs of the tensor after splitting,
    and the two branches say which block of each the box is.
    """

    name: str
    indices: tuple[int | None, ...]
    rows: Legs
    cols: Legs
    row_branch: Branch
    col_branch: Branch


@dataclass(slots=True, frozen=True)
class Value:
    """A sum of diagrams whose row legs and column legs have these sorts."""

    rows: Legs
    cols: Legs
    terms: Terms


def put(terms: Terms, diagram: Diagram, coefficient: Coefficient) -> None:
    """Add one diagram to a sum, which drops what cancels."""
    total = terms.get(diagram, 0) + coefficient
    if isinstance(total, scalars.Scalar) or total != 0:
        terms[diagram] = total
    else:
        terms.pop(diagram, None)


def difference(a: Terms, b: Terms) -> Terms:
    """Return the terms of a - b: none exactly when the two sums are the same."""
    result = dict(a)
    for diagram, coefficient in b.items():
        put(result, diagram, -1 * coefficient)
    return result


def index_name(index: Any, sort: Sort) -> str:
    """Return the name of a free index; a fixed one is named by its value and what it runs over."""
    return f"{int(index)}@{sort}" if isinstance(index, int | sympy.Integer) else key(index)
