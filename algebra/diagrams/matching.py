"""Matching of one diagram in another, and the context that remains.

A match maps the boxes of a pattern injectively to boxes of the target with the same labels, and its
wires to wires. An internal wire of the pattern must be *private*: no other part of the target may
touch its image. Boundary wires may have the same image. A named leg of the pattern matches any
index, a fixed index only itself. The rest of the target is a context with one hole, whose wires are
the images of the pattern's row legs, then of its column legs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

from otimes.algebra.budget import spend
from otimes.algebra.diagrams.diagram import DEAD, Box, Diagram, Wire, join

HOLE = -1  # the label of the hole of a context


@dataclass(frozen=True, slots=True)
class Context:
    """A diagram with a hole: `diagram` without the matched boxes, and the wires at the hole.

    `named` are the wires at the hole for the free indices of the pattern, by name.
    """

    diagram: Diagram
    rows: tuple[Wire, ...]
    cols: tuple[Wire, ...]
    named: tuple[tuple[str, Wire], ...]

    def plug(self, filling: Diagram) -> Diagram:
        """Return the context with a diagram inserted into its hole; the result is not canonical."""
        shift = len(self.diagram.sorts)
        pairs = [(a, b + shift) for a, b in zip(self.rows, filling.rows, strict=True)]
        pairs += [(a, b + shift) for a, b in zip(self.cols, filling.cols, strict=True)]
        at = dict(self.named)
        fixed = tuple(leg for leg in filling.named if "@" in leg[0] and leg[0] not in at)
        pairs += [
            (at[name], wire + shift) for name, wire in filling.named if (name, wire) not in fixed
        ]
        bare = filling._replace(named=fixed)  # a fixed index that the pattern did not have
        return join(self.diagram, bare, pairs, (self.diagram.rows, self.diagram.cols))

    def with_hole(self) -> Diagram:
        """Return the context as a diagram in which the hole is a box with the label `HOLE`.

        The box has the rows, the columns and the free indices of the pattern.
        """
        wires = (*self.rows, *self.cols, *[wire for _, wire in self.named])
        boxes = (*self.diagram.boxes, (HOLE, *wires))
        return self.diagram._replace(boxes=boxes)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A diagram to be matched in many targets, with precomputed tables."""

    diagram: Diagram
    boundary: frozenset[Wire]
    order: tuple[Box, ...]  # each shares a wire with an earlier one, if possible
    labels: frozenset[int]

    @staticmethod
    def of(diagram: Diagram) -> Pattern:
        """Return the pattern of a diagram."""
        boundary = frozenset(_boundary(diagram))
        labels = frozenset(box[0] for box in diagram.boxes)
        return Pattern(diagram, boundary, tuple(_connected(diagram.boxes)), labels)


def matches(pattern: Pattern, target: Diagram) -> Iterator[Context]:
    """Yield every context in which the pattern occurs in the target.

    A pattern that has a leg without a box gives no matches.
    """
    by_label: dict[int, list[int]] = {}
    for index, box in enumerate(target.boxes):
        by_label.setdefault(box[0], []).append(index)
    if not pattern.labels <= by_label.keys() or not _has_a_box_at_every_leg(pattern.diagram):
        return
    order = pattern.order

    def extend(done: int, used: tuple[int, ...], image: dict[Wire, Wire]) -> Iterator[Context]:
        spend(2)
        if done == len(order):
            spend(len(target.boxes) + len(order))
            if _is_fixed_alike(pattern.diagram, target, image) and _is_private(
                pattern, target, image
            ):
                yield _context(target, used, image, pattern)
            return
        box = order[done]
        for index in by_label[box[0]]:
            spend(1)
            candidate = target.boxes[index]
            if index in used or len(candidate) != len(box):
                continue
            grown = dict(image)
            if all(
                grown.setdefault(w, x) == x for w, x in zip(box[1:], candidate[1:], strict=True)
            ):
                yield from extend(done + 1, (*used, index), grown)

    yield from extend(0, (), {})


def insertions(pattern: Diagram, target: Diagram) -> Iterator[Context]:
    """Yield the contexts from inserting an identity into the target.

    A wire of the target is cut at one of its ends: a leg of a box, or a leg of the target itself.
    An identity with several wires is inserted at all row legs or all column legs of the target.
    """
    if pattern.boxes or pattern.rows != pattern.cols or len(set(pattern.rows)) != len(pattern.rows):
        return
    sorts = tuple(pattern.sorts[wire] for wire in pattern.rows)
    spend(2 * len(target.boxes))
    if len(sorts) == 1:
        for place in _ends(target):
            yield from _cut(target, (place,), sorts)
    for legs, axis in ((target.rows, 0), (target.cols, 1)):
        if len(sorts) > 1 and len(legs) == len(sorts) and all(w >= 0 for w in legs):
            yield from _cut(target, tuple((axis, k) for k in range(len(legs))), sorts)


def beside(pattern: Diagram, target: Diagram) -> Iterator[Context]:
    """Yield the contexts from multiplying the target by ones, at its legs or those of a box."""
    legs = (*pattern.rows, *pattern.cols)
    if pattern.boxes or pattern.named or len(set(legs)) < len(legs) or len(legs) > 2:
        return
    sorts = [pattern.sorts[wire] for wire in legs]
    ends = [(*target.rows, *target.cols), *[box[1:] for box in target.boxes]]
    met = set()
    for wires in ends:
        for chosen in permutations([w for w in dict.fromkeys(wires) if w >= 0], len(legs)):
            spend(1)
            if chosen not in met and [target.sorts[wire] for wire in chosen] == sorts:
                met.add(chosen)
                rows = len(pattern.rows)
                yield Context(target, chosen[:rows], chosen[rows:], ())


_Place = tuple[int, int]  # (0, k): row leg k; (1, k): column leg k; (2 + b, p): leg p of box b


def _ends(target: Diagram) -> Iterator[_Place]:
    yield from ((0, k) for k, wire in enumerate(target.rows) if wire >= 0)
    yield from ((1, k) for k, wire in enumerate(target.cols) if wire >= 0)
    for index, box in enumerate(target.boxes):
        yield from ((2 + index, p) for p in range(1, len(box)))


def _cut(target: Diagram, places: Sequence[_Place], sorts: tuple[int, ...]) -> Iterator[Context]:
    rows, cols = list(target.rows), list(target.cols)
    boxes = [list(box) for box in target.boxes]
    all_sorts = list(target.sorts)
    outside, inside = [], []
    for (kind, position), sort in zip(places, sorts, strict=True):
        holder = rows if kind == 0 else cols if kind == 1 else boxes[kind - 2]
        wire = holder[position]
        if all_sorts[wire] != sort:
            return
        fresh = len(all_sorts)
        all_sorts.append(sort)
        holder[position] = fresh
        outside.append(fresh)
        inside.append(wire)
    kept: tuple[Box, ...] = tuple(tuple(box) for box in boxes)
    cut = Diagram(tuple(rows), tuple(cols), target.named, kept, tuple(all_sorts))
    yield Context(cut, tuple(outside), tuple(inside), ())
    yield Context(cut, tuple(inside), tuple(outside), ())


def _boundary(pattern: Diagram) -> tuple[Wire, ...]:
    return (*pattern.rows, *pattern.cols, *[wire for _, wire in pattern.named])


def _connected(boxes: Sequence[Box]) -> list[Box]:
    """Return the boxes ordered such that each shares a wire with an earlier one, if possible."""
    left, order, met = list(boxes), [], set[Wire]()
    while left:
        box = next((b for b in left if met & set(b[1:])), left[0])
        left.remove(box)
        order.append(box)
        met |= set(box[1:])
    return order


def _is_fixed_alike(pattern: Diagram, target: Diagram, image: dict[Wire, Wire]) -> bool:
    """Return whether each fixed index of the pattern is mapped to the same fixed index."""
    return all((name, image[wire]) in target.named for name, wire in pattern.named if "@" in name)


def _is_private(pattern: Pattern, target: Diagram, image: dict[Wire, Wire]) -> bool:
    """Return whether the internal wires are mapped injectively to private wires of the target."""
    inner = [wire for wire in image if wire not in pattern.boundary]
    images = {image[wire] for wire in inner}
    if len(images) != len(inner) or images & set(_boundary(target)):
        return False
    if images & {image[wire] for wire in image if wire in pattern.boundary}:
        return False
    mine = [wire for box in pattern.order for wire in box[1:]]
    theirs = [wire for box in target.boxes for wire in box[1:]]
    return all(theirs.count(image[wire]) == mine.count(wire) for wire in inner)


def _has_a_box_at_every_leg(diagram: Diagram) -> bool:
    touched = {wire for box in diagram.boxes for wire in box[1:]}
    legs = {*diagram.rows, *diagram.cols, *(wire for _, wire in diagram.named)}
    return all(wire in touched for wire in legs if wire >= 0)  # negative ones are block marks


def _context(
    target: Diagram, used: tuple[int, ...], image: dict[Wire, Wire], pattern: Pattern
) -> Context:
    """Return the target with the matched boxes replaced by a hole."""
    sorts = list(target.sorts)
    for wire, hit in image.items():
        if wire not in pattern.boundary:
            sorts[hit] = DEAD  # internal to the pattern, so it leaves no factor
    boxes = tuple(box for index, box in enumerate(target.boxes) if index not in used)
    rest = Diagram(target.rows, target.cols, target.named, boxes, tuple(sorts))
    legs = pattern.diagram
    rows, cols = tuple(image[w] for w in legs.rows), tuple(image[w] for w in legs.cols)
    return Context(rest, rows, cols, tuple((name, image[w]) for name, w in legs.named))
