"""The canonical form of a diagram: equal for two diagrams exactly if they are isomorphic.

An isomorphism renames wires and reorders boxes; it keeps labels, the order of each box's legs, and
the boundary. If all labels are distinct, wires are numbered in the order of the labels. Otherwise
`canonical` traverses the diagram from the boundary, numbering wires as it reaches them. Where boxes
tie, the rest is split into connected components. In each, every wire of the rarest kind is tried as
the next one, and the least result is kept; a try with the same first outcome as an earlier one
differs by an automorphism and is skipped.

The result is always a *renaming of the input*: a bug here may miss an equality (and give
`undecided`), but cannot identify two different diagrams.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from otimes.algebra.budget import Exhausted, spend, steps_left, steps_spent
from otimes.algebra.diagrams.diagram import DEAD, Box, Diagram, Named, Sort, Wire
from otimes.algebra.errors import Undecided

Numbering = dict[Wire, int]
Key = tuple[Box, ...]

MAX_TRIES = 20_000  # labellings that are tried for one diagram
KEPT, KEPT_BOXES = 50_000, 24  # cached canonical forms, and the most boxes of each


@dataclass(slots=True)
class _Tries:
    """The number of labellings that may still be tried."""

    left: int

    def spend(self, component: Sequence[Box]) -> None:
        if not self.left:
            raise Undecided(_too_symmetric(len(component), MAX_TRIES))
        self.left -= 1


def _too_symmetric(boxes: int, tries: int) -> str:
    return (
        f"a diagram of {boxes} boxes has so many symmetries that {tries} labellings did not "
        "settle it"
    )


_KNOWN: dict[Diagram, tuple[tuple[Diagram, tuple[Sort, ...]], int]] = {}


def canonical(diagram: Diagram) -> tuple[Diagram, tuple[Sort, ...]]:
    """Return the canonical diagram, and the sorts of its isolated wires, which are factors.

    Forms are kept, as the same diagrams occur in many claims; one that is kept counts the steps
    that it took. Raises Undecided if its symmetry needs more than `MAX_TRIES` labellings, and
    Exhausted if the active budget is used up.
    """
    known = _KNOWN.get(diagram)
    if known is not None and known[1] <= steps_left():
        spend(known[1])
        return known[0]
    before = steps_spent()
    found = _labelled(diagram)
    if len(diagram.boxes) <= KEPT_BOXES:
        if len(_KNOWN) >= KEPT:
            _KNOWN.clear()
        _KNOWN[diagram] = found, steps_spent() - before
    return found


def _labelled(diagram: Diagram) -> tuple[Diagram, tuple[Sort, ...]]:
    rows, cols, named, boxes, sorts = diagram
    spend(4 + len(sorts) + 2 * len(boxes))
    named = _kept(diagram) if named else named
    number = _numbering(rows, cols, named, boxes)
    new_sorts = [0] * len(number)
    for wire, position in number.items():
        new_sorts[position] = sorts[wire]
    free = diagram.named and {wire for _, wire in diagram.named}
    loops: tuple[Sort, ...] = ()
    if len(number) != len(sorts):
        loops = tuple(
            [
                sort
                for wire, sort in enumerate(sorts)
                if sort != DEAD and wire not in number and not (free and wire in free)
            ]
        )
    result = Diagram(
        tuple([number[w] if w >= 0 else w for w in rows]),
        tuple([number[w] if w >= 0 else w for w in cols]),
        tuple([(name, number[w]) for name, w in named]),
        tuple(sorted([(box[0], *[number[w] for w in box[1:]]) for box in boxes])),
        tuple(new_sorts),
    )
    return result, loops


def _kept(diagram: Diagram) -> Named:
    """Return the named legs without unused indices, on which the diagram does not depend.

    Two names on one wire are a Kronecker delta and are kept.
    """
    used = set(diagram.rows).union(diagram.cols, *[box[1:] for box in diagram.boxes])
    wires = [wire for _, wire in diagram.named]
    return tuple([leg for leg in diagram.named if leg[1] in used or wires.count(leg[1]) > 1])


def _numbering(
    rows: tuple[Wire, ...],
    cols: tuple[Wire, ...],
    named: Named,
    boxes: tuple[Box, ...],
) -> Numbering:
    number: Numbering = {}
    for wire in (*rows, *cols):
        if wire >= 0:  # block marks are not wires
            number.setdefault(wire, len(number))
    for _, wire in named:
        number.setdefault(wire, len(number))
    if len({box[0] for box in boxes}) == len(boxes):  # all labels are distinct
        for box in sorted(boxes):
            for wire in box[1:]:
                if wire not in number:
                    number[wire] = len(number)
        return number
    inner = {wire for box in boxes for wire in box[1:] if wire not in number}
    if len(inner) > 1:
        rest = _walk(boxes, number)
        if rest:
            tries = _Tries(MAX_TRIES)
            try:
                _settle(rest, number, tries)
            except Exhausted:
                raise Exhausted(_too_symmetric(len(rest), MAX_TRIES - tries.left)) from None
    elif inner:  # no choice
        number[inner.pop()] = len(number)
    return number


def _walk(boxes: Sequence[Box], number: Numbering) -> list[Box]:
    """Extend the numbering as far as it is forced; return the boxes that remain.

    Each choice depends only on labels, leg positions and numbers given before, so isomorphic
    diagrams are traversed alike.
    """
    spend(1 + 2 * len(boxes))
    at: dict[Wire, list[tuple[int, int, int]]] = {}
    for index, box in enumerate(boxes):
        for position, wire in enumerate(box[1:]):
            at.setdefault(wire, []).append((box[0], position, index))
    settled = [len(box) == 1 for box in boxes]
    front = list(number)
    for reached in front:  # the list grows during the loop
        here = [entry for entry in at.get(reached, ()) if not settled[entry[2]]]
        if not here:
            continue
        if len(here) > 1:
            signed = sorted((label, p, _seen(boxes[i], number), i) for label, p, i in here)
            if any(x[:3] == y[:3] and x[3] != y[3] for x, y in pairwise(signed)):
                signed = _without_ties(signed)
            here = [(label, p, i) for label, p, _, i in signed]
        for _, _, index in here:
            settled[index] = True
            for wire in boxes[index][1:]:
                if wire not in number:
                    number[wire] = len(number)
                    front.append(wire)
    return [box for box, is_settled in zip(boxes, settled, strict=True) if not is_settled]


def _seen(box: Box, number: Numbering) -> tuple[int, ...]:
    return tuple([number.get(wire, -1) for wire in box[1:]])


def _without_ties(
    signed: list[tuple[int, int, tuple[int, ...], int]],
) -> list[tuple[int, int, tuple[int, ...], int]]:
    """Return the boxes that are distinguishable, or have no unnumbered wire."""
    kinds: dict[tuple[int, int, tuple[int, ...]], set[int]] = {}
    for label, position, seen, index in signed:
        kinds.setdefault((label, position, seen), set()).add(index)
    return [
        entry for entry in signed if len(kinds[entry[:3]]) == 1 or all(n >= 0 for n in entry[2])
    ]


def _settle(boxes: Sequence[Box], number: Numbering, tries: _Tries) -> None:
    """Number all wires of these boxes, one component at a time, in the order of their keys."""
    results = [_least(component, number, tries) for component in _components(boxes, number)]
    for _, new_wires in sorted(results, key=lambda result: result[0]):
        for wire in new_wires:
            number[wire] = len(number)


def _least(component: list[Box], number: Numbering, tries: _Tries) -> tuple[Key, list[Wire]]:
    """Return the least key of a component, and the order of its new wires that gives it."""
    best: tuple[Key, list[Wire]] | None = None
    met: set[Key] = set()
    for wire in _rarest(component, number):
        tries.spend(component)
        attempt = {**number, wire: len(number)}
        first = _first(component, attempt)
        if first in met:
            continue  # equivalent to an earlier choice by an automorphism
        _settle(_walk(component, attempt), attempt, tries)
        key = _key(component, attempt)
        met.update((first, key))
        if best is None or key < best[0]:
            best = (key, [w for w in attempt if w not in number])
    assert best is not None
    return best


def _first(component: list[Box], number: Numbering) -> Key:
    """Return the key of the labelling that takes the first candidate of every choice."""
    attempt = dict(number)
    rest = _walk(component, attempt)
    while any(wire not in attempt for box in rest for wire in box[1:]):
        attempt[_rarest(rest, attempt)[0]] = len(attempt)
        rest = _walk(rest, attempt)
    return _key(component, attempt)


def _key(component: list[Box], number: Numbering) -> Key:
    spend(len(component))
    return tuple(sorted([(box[0], *_seen(box, number)) for box in component]))


def _rarest(component: Sequence[Box], number: Numbering) -> list[Wire]:
    """Return the unnumbered wires of the rarest (then least) class after colour refinement."""
    colour: dict[Wire, int] = {
        wire: -1 for box in component for wire in box[1:] if wire not in number
    }
    kinds = 0
    while True:
        spend(3 * len(component))
        signature: dict[Wire, list[tuple[int, ...]]] = {wire: [] for wire in colour}
        for box in component:
            seen = tuple([number[w] if w in number else -2 - colour[w] for w in box[1:]])
            for position, wire in enumerate(box[1:]):
                if wire in colour:
                    signature[wire].append((box[0], position, *seen))
        keyed = {w: (colour[w], tuple(sorted(s))) for w, s in signature.items()}
        ranks = {key: rank for rank, key in enumerate(sorted(set(keyed.values())))}
        colour = {wire: ranks[key] for wire, key in keyed.items()}
        if len(ranks) == kinds:
            break
        kinds = len(ranks)
    count: dict[int, int] = {}
    for rank in colour.values():
        count[rank] = count.get(rank, 0) + 1
    rarest = min(count, key=lambda rank: (count[rank], rank))
    return [wire for wire, rank in colour.items() if rank == rarest]


def _components(boxes: Iterable[Box], number: Numbering) -> list[list[Box]]:
    """Split the boxes into components connected by unnumbered wires."""
    leader: dict[Wire, Wire] = {}

    def find(wire: Wire) -> Wire:
        while leader[wire] != wire:
            wire = leader[wire]
        return wire

    loose: list[tuple[Box, list[Wire]]] = []
    for box in boxes:
        new = [wire for wire in box[1:] if wire not in number]
        for wire in new:
            leader.setdefault(wire, wire)
            leader[find(wire)] = find(new[0])
        loose.append((box, new))
    groups: dict[Wire, list[Box]] = {}
    for box, new in loose:
        if new:  # all its wires are numbered
            groups.setdefault(find(new[0]), []).append(box)
    return list(groups.values())
