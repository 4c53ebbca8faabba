"""Diagrams: einsum terms with hyperedges, the atoms of the normal form.

A diagram is `sum over internal wires of the product of its boxes`, with ordered row legs, ordered
column legs, and named legs for free indices. A *wire* is a small int with a *sort* (an interned
dimension); a *box* is `(label, wire, wire, ...)`. A wire may join any number of boxes and legs, so

    identity   a row leg and a column leg on one wire        ones      a leg on a wire with no box
    transpose  swap the legs                                 Kronecker concatenate the leg lists
    product    join legs pairwise                            Hadamard  join rows to rows, columns
    trace      join rows to columns                          sum over heads: forget a named leg

and a wire that touches nothing at all is a factor, its dimension.
Where a size is cut in blocks, a leg list holds the mark -1 - i before the wires of block i.
This file knows wires only: what labels and sorts mean is the business of `interpret`.
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
    """Return a and b side by side with wires joined; legs of the same name are joined too.

    Wires of b are counted from `len(a.sorts)` on. `pairs` lists the wires to join, `legs` the row
    and the column legs of the result, both in that counting.
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
    for wire in range(len(target)):  # merging points downwards, so one pass flattens
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
    """Return a with pairs of its own wires joined and new legs (a trace, a diagonal)."""
    return join(a, UNIT, pairs, legs)


DEAD: Sort = -1  # the sort of a wire that was joined into another one: not a factor


def _only_live(sorts: tuple[Sort, ...], target: list[Wire]) -> tuple[Sort, ...]:
    return tuple([sort if target[w] == w else DEAD for w, sort in enumerate(sorts)])


def _merge(target: list[Wire], a: Wire, b: Wire) -> None:
    while target[a] != a:
        a = target[a]
    while target[b] != b:
        b = target[b]
    if a != b:
        target[max(a, b)] = min(a, b)
