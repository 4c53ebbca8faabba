"""Diagrams: einsum terms with hyperedges, the atoms of the normal form.

A diagram is `sum over internal wires of the product of its boxes`, with ordered row legs, ordered
column legs, and named legs for free indices. A *wire* is a small int with a *sort* (an interned
dimension); a *box* is `(label, wire, wire, ...)`. A wire may join any number of boxes and legs, so

    identity   a row leg and a column leg on one wire        ones      a leg on a wire with no box
    transpose  swap the legs                                 Kronecker concatenate the leg lists
    product    join legs pairwise                            Hadamard  join rows to rows, columns
    trace      join rows to columns                          sum over heads: forget a named leg

and a wire without any box or leg is a scalar factor, its dimension.
Where a size is a sum of blocks, a leg list has the mark -1 - i before the wires of block i.
The meaning of labels and sorts is given by `reading`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Wire: TypeAlias = int
Sort: TypeAlias = int
Box: TypeAlias = tuple[int, ...]  # (label, wire, wire, ...)
Named: TypeAlias = tuple[tuple[str, Wire], ...]  # free indices, sorted by name


class Diagram(NamedTuple):
    """One einsum term; `sorts[w]` is the dimension of wire w. Equality is structural."""

    rows: tuple[Wire, ...]
    cols: tuple[Wire, ...]
    named: Named
    boxes: tuple[Box, ...]
    sorts: tuple[Sort, ...]


UNIT = Diagram((), (), (), (), ())


def join(
    a: Diagram, b: Diagram, pairs: Sequence[tuple[Wire, Wire]], legs: tuple[Sequence[Wire], ...]
) -> Diagram:
    """Return the product of two diagrams with wires joined; legs of the same name are joined too.

    The wires of b are renumbered from `len(a.sorts)` on. In that numbering, `pairs` lists the wires
    to join, and `legs` the row and the column legs of the result.
    """
    shift = len(a.sorts)
    sorts = a.sorts + b.sorts
    target = list(range(len(sorts)))
    named = a.named
    if b.named:
        mine = dict(a.named)
        for name, wire in b.named:
            if name in mine:
                _merge(target, mine[name], wire + shift)
            else:
                mine[name] = wire + shift
        named = tuple(sorted(mine.items()))
    for one, other in pairs:
        _merge(target, one, other)
    for wire in range(len(target)):  # each wire is merged into a smaller one, so one pass suffices
        target[wire] = target[target[wire]]
    boxes = [(box[0], *[target[w] for w in box[1:]]) for box in a.boxes]
    boxes += [(box[0], *[target[w + shift] for w in box[1:]]) for box in b.boxes]
    rows, cols = legs
    return Diagram(
        tuple([target[w] if w >= 0 else w for w in rows]),
        tuple([target[w] if w >= 0 else w for w in cols]),
        tuple([(name, target[w]) for name, w in named]),
        tuple(boxes),
        _only_live(sorts, target),
    )


def fuse(
    a: Diagram, pairs: Sequence[tuple[Wire, Wire]], legs: tuple[Sequence[Wire], ...]
) -> Diagram:
    """Return a diagram with pairs of its wires joined and with new legs (a trace, a diagonal)."""
    return join(a, UNIT, pairs, legs)


DEAD: Sort = -1  # marks a wire that was joined into another one


def _only_live(sorts: tuple[Sort, ...], target: list[Wire]) -> tuple[Sort, ...]:
    return tuple([sort if target[w] == w else DEAD for w, sort in enumerate(sorts)])


def _merge(target: list[Wire], a: Wire, b: Wire) -> None:
    while target[a] != a:
        a = target[a]
    while target[b] != b:
        b = target[b]
    if a != b:
        target[max(a, b)] = min(a, b)
