"""Sums of diagrams, the normal form of an expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy

from otimes.algebra.diagrams.diagram import Diagram, Sort
from otimes.algebra.diagrams.legs import Branch, Legs
from otimes.algebra.language import coefficients
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.trees import key

Terms = dict[Diagram, Coefficient]


class Form(NamedTuple):
    """An affine index in a label: its constant, and the factor of each variable with its range."""

    constant: sympy.Expr
    factors: tuple[int, ...]
    sorts: tuple[Sort, ...]


class Label(NamedTuple):
    """The tensor of a box, with the values of its fixed indices.

    The wires of a box are its free indices, then its row legs, then its column legs; `indices` is
    None where there is a wire; at affine indices it has `Form`s. `rows` and
    `cols` are the legs of the tensor after splitting sizes into factors; the branches are the
    blocks of rows and of columns of the box.
    """

    name: str
    indices: tuple[Any, ...]
    rows: Legs
    cols: Legs
    row_branch: Branch
    col_branch: Branch


def is_affine(label: Label) -> bool:
    """Return whether a label is that of a member at affine indices."""
    return bool(label.indices) and isinstance(label.indices[0], Form)


@dataclass(slots=True, frozen=True)
class DiagramSum:
    """A sum of diagrams whose row legs and column legs have these sorts."""

    rows: Legs
    cols: Legs
    terms: Terms


def put(terms: Terms, diagram: Diagram, coefficient: Coefficient) -> None:
    """Add a multiple of a diagram to a sum in place; a term of coefficient zero is removed."""
    total = terms.get(diagram, 0) + coefficient
    if isinstance(total, coefficients.Scalar) or total != 0:
        terms[diagram] = total
    else:
        terms.pop(diagram, None)


def difference(a: Terms, b: Terms) -> Terms:
    """Return the terms of a - b; empty exactly if the sums are equal."""
    result = dict(a)
    for diagram, coefficient in b.items():
        put(result, diagram, -1 * coefficient)
    return result


def index_name(index: Any, sort: Sort) -> str:
    """Return the name of a free index; a fixed one is named by its value and its sort."""
    return f"{int(index)}@{sort}" if isinstance(index, int | sympy.Integer) else key(index)
