"""Sums over indices with a numeric range, written out term by term.

A wire whose size is a number can be replaced by its values: a diagram is the sum of the diagrams in
which the wire is held at 0, at 1, and so on. Two sums that differ as diagrams may be equal once
this is done everywhere: three heads as a sum and as three terms, or Cayley–Hamilton at size 2 among
matrices of any size. Every step is an equality, so equal results prove equal sums.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

import sympy

from otimes.algebra.budget import spend
from otimes.algebra.diagrams.canonical import canonical
from otimes.algebra.diagrams.diagram import Box, Diagram, Wire
from otimes.algebra.diagrams.sums import Terms, index_name, put
from otimes.algebra.reading.interpretation import Interpretation

MAX_DIAGRAMS = 20_000


def written_out(terms: Terms, reading: Interpretation) -> Terms | None:
    """Return the sum with every wire of a numeric size held at each of its values.

    None if no size is a number, or there would be more than `MAX_DIAGRAMS` diagrams.
    """
    sizes = [
        int(size) if isinstance(size, sympy.Integer) else None
        for size in reading.dimensions.expressions
    ]
    numeric = {
        diagram: [wire for wire, sort in enumerate(diagram.sorts) if sizes[sort] is not None]
        for diagram in terms
    }
    count = sum(prod(sizes[d.sorts[w]] or 1 for w in wires) for d, wires in numeric.items())
    if not any(numeric.values()) or count > MAX_DIAGRAMS:
        return None
    result: Terms = {}
    for diagram, coefficient in terms.items():
        wires = numeric[diagram]
        for values in product(*[range(sizes[diagram.sorts[w]] or 1) for w in wires]):
            spend(8 + 4 * len(diagram.boxes))
            held = _held(diagram, dict(zip(wires, values, strict=True)), reading)
            if held is not None:
                form, loops = canonical(held)
                factor = coefficient
                for sort in loops:
                    factor = factor * reading.dimensions.size(sort)
                put(result, form, factor)
    return result


def _held(diagram: Diagram, at: dict[Wire, int], reading: Interpretation) -> Diagram | None:
    """Return the diagram with wires held at values, or None if one is held at another value."""
    home: dict[tuple[int, int], Wire] = {}  # wires of one size held at one value are one wire
    target = {
        wire: home.setdefault((value, diagram.sorts[wire]), wire) for wire, value in at.items()
    }

    def moved(wire: Wire) -> Wire:
        return target.get(wire, wire)

    named = {}
    for name, wire in diagram.named:
        value, held, _ = name.partition("@")
        if held and wire in at:
            if at[wire] != int(value):
                return None
        else:
            named[name] = moved(wire)
    boxes = tuple(_with_fixed_indices(box, at, moved, reading) for box in diagram.boxes)
    rows = tuple(moved(w) if w >= 0 else w for w in diagram.rows)
    cols = tuple(moved(w) if w >= 0 else w for w in diagram.cols)
    touched = {*rows, *cols, *named.values()}.union(*[box[1:] for box in boxes])
    for (value_held, sort), wire in home.items():
        if wire in touched:  # else it was one value of a sum, a factor 1
            named[index_name(value_held, sort)] = wire
    kept = [w for w in range(len(diagram.sorts)) if w in touched or w not in at]
    new = {wire: k for k, wire in enumerate(kept)}
    return Diagram(
        tuple(new[w] if w >= 0 else w for w in rows),
        tuple(new[w] if w >= 0 else w for w in cols),
        tuple(sorted((name, new[wire]) for name, wire in named.items())),
        tuple((box[0], *[new[w] for w in box[1:]]) for box in boxes),
        tuple(diagram.sorts[w] for w in kept),
    )


def _with_fixed_indices(
    box: Box, at: dict[Wire, int], moved: Callable[[Wire], Wire], reading: Interpretation
) -> Box:
    """Return a box with its held indices in the label, as in `family[0]`."""
    label = reading.labels[box[0]]
    free = [k for k, index in enumerate(label.indices) if index is None]
    count = len(box) - 1 - sum(item >= 0 for item in (*label.row_branch, *label.col_branch))
    if not count or len(free) != count:  # an index with one value has no wire
        return (box[0], *[moved(w) for w in box[1:]])
    indices = list(label.indices)
    kept = []
    for position, wire in zip(free, box[1 : 1 + count], strict=True):
        if wire in at:
            indices[position] = at[wire]
        else:
            kept.append(wire)
    number = reading.label(label._replace(indices=tuple(indices)))
    return (number, *[moved(w) for w in (*kept, *box[1 + count :])])
