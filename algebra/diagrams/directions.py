"""Sums over affine indices, in one of their two directions: Σ_w f(w) = Σ_w f(N - 1 - w)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy

from otimes.algebra.diagrams.diagram import Box, Diagram, Wire
from otimes.algebra.diagrams.sums import Form, Label, is_affine


def directed(
    d: Diagram,
    wire: Wire,
    labels: Sequence[Label],
    number: Callable[[Label], int],
    last: Callable[[int], Any],
) -> Diagram:
    """Return a diagram with the sum over a wire in the direction whose labels come first.

    The wire must be at affine indices alone, else the diagram is returned as it is. `number` gives
    that of a label, and `last` the last value of an index, by its sort.
    """
    if wire in d.rows or wire in d.cols or any(wire == other for _, other in d.named):
        return d
    turned: list[Box] = []
    here: list[Any] = []
    there: list[Any] = []
    for box in d.boxes:
        if wire not in box[1:]:
            continue
        label = labels[box[0]]
        many = len(label.indices[0].factors) if is_affine(label) else 0
        if wire in box[1 + many :]:
            return d
        other, wires = _turned(label, box[1 : 1 + many], wire, last)
        turned.append((number(other), *wires, *box[1 + many :]))
        here.append(_rank(label, box[1 : 1 + many], wire))
        there.append(_rank(other, wires, wire))
    if sorted(here) <= sorted(there):
        return d
    others = [box for box in d.boxes if wire not in box[1:]]
    return d._replace(boxes=(*others, *turned))


def _turned(
    label: Label, wires: Sequence[Wire], wire: Wire, last: Callable[[int], Any]
) -> tuple[Label, list[Wire]]:
    """Return a label with N - 1 - w for w, and its wires in their new order."""
    sorts = label.indices[0].sorts
    constants = [form.constant for form in label.indices]
    columns = []
    for k, mine in enumerate(wires):
        column = tuple(form.factors[k] for form in label.indices)
        if mine == wire:
            constants = [c + f * last(sorts[k]) for c, f in zip(constants, column, strict=True)]
            column = tuple(-f for f in column)
        columns.append((column, mine, sorts[k]))
    columns.sort()
    forms = tuple(
        Form(
            sympy.expand(constant),
            tuple(column[at] for column, _, _ in columns),
            tuple(sort for _, _, sort in columns),
        )
        for at, constant in enumerate(constants)
    )
    return label._replace(indices=forms), [mine for _, mine, _ in columns]


def _rank(label: Label, wires: Sequence[Wire], wire: Wire) -> Any:
    """Return what the direction is chosen by: a positive factor comes before a negative one."""
    factors = [
        tuple(-form.factors[k] for form in label.indices)
        for k, mine in enumerate(wires)
        if mine == wire
    ]
    return label.name, factors, [str(form.constant) for form in label.indices]
