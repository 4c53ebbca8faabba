"""The positions of the parts of a drawn diagram; `svg` gives them their appearance.

Row legs come in on the left and column legs go out on the right, each list in its order. A box
stands to the right of what it is reached from, its ports on the side their wires come from; so a
product is read as it is written, and a transposed box has its row ports on the right. A wire with
more than two ends, or with one, has a dot; one that only indices of families share has its dot
between the boxes. A wire that leads back (a trace) goes round above everything.

The result is lists of plain records with coordinates, the same for the same diagram.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from otimes.algebra.diagrams.diagram import Diagram, Wire
from otimes.algebra.diagrams.sums import Label
from otimes.algebra.reading.opaque_functions import is_causal_mask, mask_size

Point = tuple[float, float]
Kind = Literal["row", "column", "index"]
Side = Literal["left", "right", "above", "below"]

LETTER = 9.2  # the width of a letter of a name
SMALL = 6.4  # and of a small one
PITCH = 20.0  # between two ports on one side of a box
BOX = 34.0  # the least width and height of a box
BETWEEN = 46.0  # between two columns of boxes
APART = 24.0  # between what stands in one column
LEG = 44.0  # between two row legs


@dataclass(frozen=True, slots=True)
class Text:
    """A name in three parts: what stands on the line, below it and above it."""

    base: str
    below: str = ""
    above: str = ""

    @property
    def width(self) -> float:
        return LETTER * len(self.base) + SMALL * max(len(self.below), len(self.above))


@dataclass(frozen=True, slots=True)
class PortSpot:
    """Where a wire meets a box, on which side, and whether it is a row, a column or an index."""

    at: Point
    side: Side
    kind: Kind
    wire: Wire


@dataclass(frozen=True, slots=True)
class BoxSpot:
    """A box: its centre, its size, its name, its ports in the order of the diagram."""

    centre: Point
    width: float
    height: float
    name: Text
    ports: tuple[PortSpot, ...]


@dataclass(frozen=True, slots=True)
class LegSpot:
    """The outer end of a leg, with the size it runs over."""

    at: Point
    side: Literal["left", "right"]
    wire: Wire
    size: str


@dataclass(frozen=True, slots=True)
class DotSpot:
    """Where the ends of a wire meet; `label` names a free index, or the size of a hidden one."""

    at: Point
    wire: Wire
    label: str = ""
    free: bool = False


@dataclass(frozen=True, slots=True)
class Stroke:
    """A stretch of a wire through these points; it leaves and arrives along `bends`.

    `bends`: `across` (level at both ends), `up` (upright at both), `round` (corners to round off).
    """

    points: tuple[Point, ...]
    bends: Literal["across", "up", "round"]
    wire: Wire


@dataclass(frozen=True, slots=True)
class Picture:
    """One diagram, laid out in a frame from (0, 0) to (width, height); `axis` is its midline."""

    width: float
    height: float
    axis: float
    boxes: tuple[BoxSpot, ...]
    legs: tuple[LegSpot, ...]
    dots: tuple[DotSpot, ...]
    strokes: tuple[Stroke, ...]
    caption: str = ""


def lay_out(diagram: Diagram, labels: Sequence[Label], sizes: Sequence[str]) -> Picture:
    """Return the picture of a diagram; `sizes[sort]` is the text of a size."""
    return _Layout(diagram, labels, sizes).picture()


def name_of(label: Label) -> Text:
    """Return the name of a box: `W_O` with its fixed indices, counted from 1, above."""
    name = f"M_{mask_size(label)}" if is_causal_mask(label) else label.name
    base, _, below = (name, "", "") if "(" in name else name.partition("_")  # a function is no name
    marks = [-1 - item for item in (*label.row_branch, *label.col_branch) if item < 0]
    above = ",".join(str(i + 1) for i in label.indices if i is not None)
    blocks = f"⟨{','.join(map(str, marks))}⟩" if marks else ""
    return Text(base, below.replace("_", ",") + blocks, above)


@dataclass(slots=True)
class _Port:
    wire: Wire
    kind: Kind
    side: Side = "left"
    at: Point = (0.0, 0.0)


@dataclass(slots=True)
class _Item:
    """What stands in a column: a box, a dot, or a place where a wire passes (`ports` empty)."""

    name: Text | None
    ports: list[_Port] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    column: int = 0
    x: float = 0.0
    y: float = 0.0

    def on(self, side: Side) -> list[_Port]:
        return [port for port in self.ports if port.side == side]

    def offset(self, port: _Port) -> float:
        """Return how far below the centre a port on the left or right stands."""
        beside = self.on(port.side)
        place = next(k for k, other in enumerate(beside) if other is port)
        return PITCH * (place - (len(beside) - 1) / 2)


@dataclass(slots=True)
class _End:
    """One end of a wire: a port of an item, a leg, or a dot."""

    item: _Item
    port: _Port | None = None

    @property
    def column(self) -> int:
        return self.item.column

    @property
    def y(self) -> float:
        return self.item.y + (self.item.offset(self.port) if self.port else 0.0)

    def at(self, leaving: bool) -> Point:
        if self.port is not None:
            return self.port.at
        return self.item.x, self.item.y


class _Layout:
    def __init__(self, diagram: Diagram, labels: Sequence[Label], sizes: Sequence[str]) -> None:
        self.diagram, self.sizes = diagram, sizes
        self.rows = [wire for wire in diagram.rows if wire >= 0]
        self.cols = [wire for wire in diagram.cols if wire >= 0]
        self.boxes = [self._box(box, labels[box[0]]) for box in diagram.boxes]
        sided = {*self.rows, *self.cols}
        sided |= {p.wire for box in self.boxes for p in box.ports if p.kind != "index"}
        self.hidden = [w for w in range(len(diagram.sorts)) if w not in sided]
        self.left = [_Item(None) for _ in self.rows]
        self.right = [_Item(None) for _ in self.cols]
        self.names = {wire: name.partition("@")[0] for name, wire in diagram.named}
        self.columns: list[list[_Item]] = [list(self.left)]
        self.strokes: list[Stroke] = []
        self.dots: list[tuple[_Item, Wire]] = []
        self.links: list[tuple[Wire, list[_End]]] = []
        self.loops: list[tuple[Wire, _End, _End]] = []

    @staticmethod
    def _box(box: tuple[int, ...], label: Label) -> _Item:
        rows, cols = (
            sum(item >= 0 for item in branch) for branch in (label.row_branch, label.col_branch)
        )
        free = len(box) - 1 - rows - cols
        kinds: list[Kind] = ["column"] * (len(box) - 1)
        kinds[:free] = ["index"] * free
        kinds[free : free + rows] = ["row"] * rows
        ports = [_Port(wire, kind) for wire, kind in zip(box[1:], kinds, strict=True)]
        return _Item(name_of(label), ports)

    # -- which side, which column ----------------------------------------------------------------

    def _orient(self) -> None:
        """Choose the side of each port and the column of each box, walking from the row legs."""
        reached = set(self.rows)
        column_of: dict[Wire, int] = dict.fromkeys(self.rows, 0)
        waiting = list(self.boxes)
        hidden = set(self.hidden)
        while waiting:
            ready = {id(box): self._readiness(box, reached) for box in waiting}
            least = min(ready.values())
            if least == 3:  # nothing leads on: begin a new piece
                now = [min(waiting, key=lambda box: self._first_of_piece(box, waiting))]
            else:
                now = [box for box in waiting if ready[id(box)] == least]
                now = now if least < 2 else now[:1]
            chosen = {id(box) for box in now}
            waiting = [box for box in waiting if id(box) not in chosen]
            opened: set[Wire] = set()
            for box in now:
                ports = [port for port in box.ports if port.wire not in hidden]
                if least < 3:
                    for port in ports:
                        port.side = "left" if port.wire in reached else "right"
                else:
                    vector = all(port.kind != "column" for port in ports)
                    for port in ports:
                        outward = vector or (port.wire in self.cols and port.wire not in self.rows)
                        port.side = "right" if port.kind == "column" or outward else "left"
                behind = [column_of.get(port.wire, 0) for port in ports if port.side == "left"]
                box.column = 1 + max(behind, default=0)
                for port in ports:
                    if port.side == "right":
                        opened.add(port.wire)
                        column_of[port.wire] = max(column_of.get(port.wire, 0), box.column)
                for port in box.ports:
                    if port.wire in hidden:
                        port.side = "above"
                beside = max(len(box.on("left")), len(box.on("right")), 1)
                assert box.name is not None
                box.width = max(BOX, box.name.width + 16)
                box.height = max(BOX, PITCH * beside + 6)
            reached |= opened
        last = 1 + max([box.column for box in self.boxes], default=0)
        for leg in self.right:
            leg.column = last
        self.columns += [[] for _ in range(last)]
        for box in self.boxes:
            self.columns[box.column].append(box)
        self.columns[last] += self.right

    @staticmethod
    def _readiness(box: _Item, reached: set[Wire]) -> int:
        """Return 0 for a box whose rows are all reached, then its columns, then any, then none."""
        for rank, kind in enumerate(("row", "column")):
            wires = [port.wire for port in box.ports if port.kind == kind]
            if wires and all(wire in reached for wire in wires):
                return rank
        return 2 if any(port.wire in reached for port in box.ports) else 3

    @staticmethod
    def _first_of_piece(box: _Item, waiting: Sequence[_Item]) -> tuple[int, int]:
        """Return what makes a box a good beginning: nothing leads to it, and it has few ports."""
        ends = {
            port.wire
            for other in waiting
            if other is not box
            for port in other.ports
            if port.kind == "column"
        }
        leading = sum(port.kind == "row" and port.wire in ends for port in box.ports)
        return leading, len(box.ports)

    # -- wires -----------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Find the ends of each wire; put dots where they meet and passages where they go by."""
        hidden = set(self.hidden)
        named = self.names
        for wire in range(len(self.diagram.sorts)):
            if wire in hidden:
                continue
            sources = [_End(leg) for leg, w in zip(self.left, self.rows, strict=True) if w == wire]
            sinks: list[_End] = []
            for box in self.boxes:
                for port in box.ports:
                    if port.wire == wire:
                        (sources if port.side == "right" else sinks).append(_End(box, port))
            sinks += [_End(leg) for leg, w in zip(self.right, self.cols, strict=True) if w == wire]
            if len(sources) == 1 and len(sinks) == 1 and wire not in named:
                self._lead(wire, sources[0], sinks[0])
                continue
            before = max([end.column for end in sources], default=-1)
            after = min([end.column for end in sinks], default=len(self.columns))
            dot = _Item(None, width=6.0, height=6.0)
            self.dots.append((dot, wire))
            if not sources:
                dot.column = 2 * after - 1
            elif not sinks or after <= before:
                dot.column = 2 * before + 1
            else:
                dot.column = 2 * after - 1
            meeting = _End(dot)
            for end in sources:
                self._lead(wire, end, meeting)
            for end in sinks:
                self._lead(wire, meeting, end)

    def _lead(self, wire: Wire, start: _End, stop: _End) -> None:
        """Lead a wire from an end that opens to the right to one that opens to the left."""
        dots = [dot for dot, _ in self.dots]
        one, other = (
            float(end.column) / 2 if any(end.item is d for d in dots) else float(end.column)
            for end in (start, stop)
        )
        if one >= other:
            self.loops.append((wire, start, stop))
            return
        passages = []
        for column in range(int(one) + 1, len(self.columns)):
            if column >= other:
                break
            passage = _Item(None, height=2.0, column=column)
            self.columns[column].append(passage)
            passages.append(_End(passage))
        self.links.append((wire, [start, *passages, stop]))

    # -- places ----------------------------------------------------------------------------------

    def _place(self) -> None:
        x = 0.0
        for column in self.columns:
            width = max([item.width for item in column], default=0.0)
            for item in column:
                item.x = x + width / 2
            x += width + BETWEEN
        for k, leg in enumerate(self.left):
            leg.y = LEG * k
        dots = [dot for dot, _ in self.dots]
        aims: dict[int, list[float]] = {}
        before: dict[int, list[tuple[_End, _End]]] = {}
        for _, chain in self.links:
            for start, stop in pairwise(chain):
                before.setdefault(id(stop.item), []).append((start, stop))
        room = APART + (18.0 if self.hidden else 0.0)
        for number in range(len(self.columns)):
            column = self.columns[number]
            if number:
                for item in column:
                    aims[id(item)] = [
                        start.y - (stop.item.offset(stop.port) if stop.port else 0.0)
                        for start, stop in before.get(id(item), [])
                    ]
                wanted = {k: v for item in column if (k := id(item)) and (v := aims[id(item)])}
                lowest = max([max(v) for v in wanted.values()], default=-LEG)
                goal = []
                for item in column:
                    mine = wanted.get(id(item))
                    if mine:
                        goal.append(sum(mine) / len(mine))
                    else:
                        lowest += LEG
                        goal.append(lowest)
                legs = bool(self.right) and number == len(self.columns) - 1
                order = list(range(len(column)))
                if not legs:
                    order.sort(key=lambda k: goal[k])
                heights = [column[k].height for k in order]
                gap = LEG - 14 if legs else room
                for k, y in zip(
                    order, _spread([goal[k] for k in order], heights, gap), strict=True
                ):
                    column[k].y = y
            for dot in dots:
                if dot.column == 2 * number + 1:
                    starts = [start for start, _ in before.get(id(dot), [])]
                    if starts:
                        dot.y = sum(start.y for start in starts) / len(starts)
        for dot in dots:  # the column of a dot lies halfway between two columns of boxes
            left = self.columns[dot.column // 2] if dot.column > 0 else []
            edge = max([item.x + item.width / 2 for item in left], default=-BETWEEN)
            leads_on = any(chain[0].item is dot for _, chain in self.links)
            comes_in = bool(before.get(id(dot)))
            part = 0.5 if leads_on and comes_in else 0.3 if comes_in else 0.7
            dot.x = edge + BETWEEN * part
            if not before.get(id(dot)):
                stops = [c[1] for _, c in self.links if c[0].item is dot]
                stops += [stop for _, start, stop in self.loops if start.item is dot]
                dot.y = sum(stop.y for stop in stops) / max(len(stops), 1)
        self._level_left_legs()
        for box in self.boxes:
            for port in box.ports:
                if port.side in ("left", "right"):
                    sign = -1 if port.side == "left" else 1
                    port.at = (box.x + sign * box.width / 2, box.y + box.offset(port))

    def _level_left_legs(self) -> None:
        """Put each row leg at the height of what it leads to, as far as their order allows."""
        goal = [leg.y for leg in self.left]
        for _, chain in self.links:
            for k, leg in enumerate(self.left):
                if chain[0].item is leg:
                    goal[k] = chain[1].y
        places = _spread(goal, [0.0] * len(goal), LEG - 14)
        for leg, y in zip(self.left, places, strict=True):
            leg.y = y

    def _draw_links(self) -> None:
        for wire, chain in self.links:
            points = tuple(end.at(leaving=True) for end in chain)
            self.strokes.append(Stroke(points, "across", wire))
        top = min([box.y - box.height / 2 for box in self.boxes], default=0.0)
        spans = sorted(self.loops, key=lambda loop: abs(loop[1].at(True)[0] - loop[2].at(False)[0]))
        for k, (wire, start, stop) in enumerate(spans):
            (x1, y1), (x2, y2) = start.at(True), stop.at(False)
            high = top - 16 - 10 * k
            out, back = x1 + 14 + 4 * k, x2 - 14 - 4 * k
            corners = ((x1, y1), (out, y1), (out, high), (back, high), (back, y2), (x2, y2))
            self.strokes.append(Stroke(corners, "round", wire))

    def _hide(self) -> list[DotSpot]:
        """Place the dots of the wires that only indices share, and the ports that lead to them."""
        named = self.names
        made: list[DotSpot] = []
        for wire in self.hidden:
            touched = [(box, p) for box in self.boxes for p in box.ports if p.wire == wire]
            boxes = list({id(box): box for box, _ in touched}.values())
            if not boxes:
                continue
            y = self._gap([(box.y - box.height / 2, box.y + box.height / 2) for box in boxes])
            x = sum(box.x for box in boxes) / len(boxes)
            while any(abs(x - d.at[0]) < 16 and abs(y - d.at[1]) < 10 for d in made) or any(
                abs(x - b.x) < b.width / 2 + 3 and abs(y - b.y) < b.height / 2 + 3
                for b in self.boxes
            ):
                x += 17
            for box, port in touched:
                port.side = "above" if box.y > y else "below"
            free = wire in named
            size = self.sizes[self.diagram.sorts[wire]]
            made.append(DotSpot((x, y), wire, named.get(wire, size), free))
        spot = {dot.wire: dot.at for dot in made}
        for box in self.boxes:
            for side in ("above", "below"):
                here = [p for p in box.ports if p.side == side and p.wire in spot]
                here.sort(key=lambda p: spot[p.wire][0])
                for k, port in enumerate(here):
                    shift = 12 * (k - (len(here) - 1) / 2)
                    edge = -box.height / 2 if side == "above" else box.height / 2
                    port.at = (box.x + shift, box.y + edge)
                    self.strokes.append(Stroke((port.at, spot[port.wire]), "up", port.wire))
        return made

    @staticmethod
    def _gap(spans: list[tuple[float, float]]) -> float:
        """Return a height in the widest gap between boxes, or above them when there is none."""
        spans.sort()
        best, at = 8.0, spans[0][0] - 20
        bottom = spans[0][1]
        for top, low in spans[1:]:
            if top - bottom > best:
                best, at = top - bottom, (top + bottom) / 2
            bottom = max(bottom, low)
        return at

    # -- the result ------------------------------------------------------------------------------

    def picture(self) -> Picture:
        self._orient()
        self._connect()
        self._place()
        hidden = self._hide()
        self._draw_links()
        boxes = [
            BoxSpot(
                (box.x, box.y),
                box.width,
                box.height,
                box.name,
                tuple(PortSpot(p.at, p.side, p.kind, p.wire) for p in box.ports),
            )
            for box in self.boxes
            if box.name is not None
        ]
        legs = [self._leg(leg, "left", w) for leg, w in zip(self.left, self.rows, strict=True)]
        legs += [self._leg(leg, "right", w) for leg, w in zip(self.right, self.cols, strict=True)]
        names = self.names
        dots = [
            DotSpot((dot.x, dot.y), wire, names.get(wire, ""), wire in names)
            for dot, wire in self.dots
        ]
        dots += hidden
        return _framed(boxes, legs, dots, self.strokes, self._caption())

    def _leg(self, leg: _Item, side: Literal["left", "right"], wire: Wire) -> LegSpot:
        return LegSpot((leg.x, leg.y), side, wire, self.sizes[self.diagram.sorts[wire]])

    def _caption(self) -> str:
        marks = [
            ".".join(str(-1 - item) for item in branch if item < 0)
            for branch in (self.diagram.rows, self.diagram.cols)
        ]
        return f"block {marks[0] or '·'}, {marks[1] or '·'}" if any(marks) else ""


def _spread(goal: list[float], heights: list[float], gap: float) -> list[float]:
    """Return places as near to the goals as their order and distances allow (least squares)."""
    offsets = [0.0]
    for above, here in pairwise(heights):
        offsets.append(offsets[-1] + (above + here) / 2 + gap)
    blocks: list[tuple[float, int]] = []
    for aim, offset in zip(goal, offsets, strict=False):
        mean, count = aim - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, many = blocks.pop()
            mean, count = (mean * count + other * many) / (count + many), count + many
        blocks.append((mean, count))
    means = [mean for mean, count in blocks for _ in range(count)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]


def _framed(
    boxes: list[BoxSpot],
    legs: list[LegSpot],
    dots: list[DotSpot],
    strokes: list[Stroke],
    caption: str,
) -> Picture:
    """Return the picture translated so that everything lies in its frame."""
    xs = [x for stroke in strokes for x, _ in stroke.points] + [leg.at[0] for leg in legs]
    ys = [y for stroke in strokes for _, y in stroke.points] + [leg.at[1] for leg in legs]
    for box in boxes:
        xs += [box.centre[0] - box.width / 2, box.centre[0] + box.width / 2]
        ys += [box.centre[1] - box.height / 2, box.centre[1] + box.height / 2]
    xs += [dot.at[0] + SMALL * len(dot.label) + 8 * bool(dot.label) for dot in dots]
    xs += [
        leg.at[0] + (-1 if leg.side == "left" else 1) * (SMALL * len(leg.size) + 4) for leg in legs
    ]
    ys += [dot.at[1] - 8 for dot in dots if dot.label] + [leg.at[1] - 8 for leg in legs]
    ys += [leg.at[1] + 8 for leg in legs]
    if caption:
        xs.append(min(xs, default=0.0) + SMALL * len(caption))
    dx, dy = -min(xs, default=0.0), -min(ys, default=0.0)
    axes = [leg.at[1] for leg in legs] or [box.centre[1] for box in boxes] or [0.0]

    def moved(at: Point) -> Point:
        return round(at[0] + dx, 2), round(at[1] + dy, 2)

    return Picture(
        max(xs, default=0.0) + dx,
        max(ys, default=0.0) + dy,
        (min(axes) + max(axes)) / 2 + dy,
        tuple(
            BoxSpot(
                moved(b.centre),
                b.width,
                b.height,
                b.name,
                tuple(PortSpot(moved(p.at), p.side, p.kind, p.wire) for p in b.ports),
            )
            for b in boxes
        ),
        tuple(LegSpot(moved(leg.at), leg.side, leg.wire, leg.size) for leg in legs),
        tuple(DotSpot(moved(d.at), d.wire, d.label, d.free) for d in dots),
        tuple(Stroke(tuple(moved(p) for p in s.points), s.bends, s.wire) for s in strokes),
        caption,
    )
