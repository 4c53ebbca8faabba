"""From a diagram back to an expression: words where it is made of words, else sums over indices.

A diagram in which every wire joins two things is a product of matrices between each row leg and
its column leg, times traces. Any other wire is held: it becomes an index that is summed over, and
whatever it touches ends in a unit column `e_i`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Identity, Inverse, OneMatrix, Trace, Transpose

from algebra import scalars
from algebra.diagram import Diagram, Wire
from algebra.interpret import Interpretation
from algebra.language import HeadSum, OneHot
from algebra.matching import HOLE
from algebra.rules.indices import index_sum
from algebra.rules.rule import fresh, product, scalar_product, tensor
from algebra.scalars import Coefficient

Hole = Callable[[Mapping[str, Any]], Any]  # what stands in the hole, at given values of its indices


@dataclass(frozen=True, slots=True)
class _Piece:
    """A matrix in a diagram with the wires of its row and of its column, None where size one."""

    matrix: Any
    row: Wire | None
    col: Wire | None


class Renderer:
    """Writes diagrams of one reading as expressions; what it cannot write is None."""

    def __init__(self, reading: Interpretation, avoid: Sequence[Any], scalar: bool) -> None:
        self.reading = reading
        self.avoid = tuple(avoid)
        self.scalar = scalar  # whether the claim is of numbers and not of matrices
        known = {**reading.signature.sizes, **reading.signature.scalars}
        self.symbols = {scalars.to_sympy(scalars.generator(name)): s for name, s in known.items()}

    def term(
        self,
        coefficient: Coefficient,
        diagram: Diagram,
        hole: Hole | None = None,
        at_hole: Mapping[str, Wire] | None = None,
    ) -> Any:
        """Return coefficient · diagram as an expression, the box `HOLE` written by `hole`."""
        if any(w < 0 for w in (*diagram.rows, *diagram.cols)):
            return None  # one block of a matrix in blocks
        return _Term(self, diagram, hole, at_hole or {}).written(coefficient)

    def size(self, diagram: Diagram, wire: Wire) -> Any:
        return self.reading.dimensions.expressions[diagram.sorts[wire]]


class _Term:
    def __init__(
        self, renderer: Renderer, diagram: Diagram, hole: Hole | None, at_hole: Mapping[str, Wire]
    ) -> None:
        self.r = renderer
        self.d = diagram
        self.hole = hole
        self.at_hole = at_hole
        self.held: dict[Wire, Any] = {}  # wire -> its index, a symbol or an integer
        self.bound: list[Wire] = []  # of the held ones, those that are summed over
        self.filling: Any = None
        self.names = iter(fresh(len(diagram.sorts), *renderer.avoid))

    def written(self, coefficient: Coefficient) -> Any:
        signature = self.r.reading.signature
        for name, wire in self.d.named:
            value, fixed, _ = name.partition("@")
            if fixed:
                self.held[wire] = sympy.Integer(value)
            elif name in signature.indices:
                self.held[wire] = signature.indices[name][0]
            else:
                return None
        for wire in self.at_hole.values():
            self.hold(wire)
        boxes = []
        for box in self.d.boxes:
            ends = self.ends(box)
            if ends is None:
                return None
            boxes.append((box, *ends))
        degree = dict.fromkeys(range(len(self.d.sorts)), 0)
        for _, row, col in boxes:
            for end in (row, col):
                if end is not None:
                    degree[end] += 1
        for wire in (*self.d.rows, *self.d.cols):
            degree[wire] += 1
        for wire, count in degree.items():
            if count > 2:
                self.hold(wire)
        pieces = []
        for box, row, col in boxes:
            matrix = self.matrix(box)
            if matrix is None:
                return None
            pieces.append(_Piece(matrix, row, col))
        return self.assembled(coefficient, pieces)

    def hold(self, wire: Wire) -> None:
        if wire not in self.held:
            self.held[wire] = next(self.names)
            self.bound.append(wire)

    def ends(self, box: tuple[int, ...]) -> tuple[Wire | None, Wire | None] | None:
        """Return the row wire and the column wire of a box; wires of family indices are held."""
        if box[0] == HOLE:
            rows, cols = self._hole_legs
        else:
            label = self.r.reading.labels[box[0]]
            if any(item < 0 for item in (*label.row_branch, *label.col_branch)):
                return None
            rows, cols = len(label.row_branch), len(label.col_branch)
        if rows > 1 or cols > 1:
            return None
        wires = list(box[1:])
        legs = wires[len(wires) - rows - cols :]
        if box[0] != HOLE:
            for wire in wires[: len(wires) - rows - cols]:
                self.hold(wire)
        return (legs[0] if rows else None), (legs[-1] if cols else None)

    @property
    def _hole_legs(self) -> tuple[int, int]:
        assert self.hole is not None
        shape = self.hole({}).shape if getattr(self.hole({}), "is_Matrix", False) else (1, 1)
        return int(shape[0] != 1), int(shape[1] != 1)

    def matrix(self, box: tuple[int, ...]) -> Any:
        if box[0] == HOLE:
            assert self.hole is not None
            at = {name: self.held[wire] for name, wire in self.at_hole.items()}
            self.filling = self.hole(at)
            return self.filling
        reading = self.r.reading
        label = reading.labels[box[0]]
        if label.name in reading.inverses:
            return Inverse(reading.inverses[label.name][1])
        tensor_symbol = reading.signature.tensors.get(label.name)
        if isinstance(tensor_symbol, sympy.MatrixSymbol):
            return tensor_symbol
        if tensor_symbol is None:
            return None
        wires = iter(box[1:])
        indices = []
        for fixed, count in zip(label.indices, tensor_symbol.counts, strict=True):
            if fixed is not None:
                indices.append(sympy.Integer(fixed))
            else:
                indices.append(sympy.S.Zero if count == 1 else self.held[next(wires)])
        return tensor_symbol[tuple(indices)]

    # -- words -----------------------------------------------------------------------------------

    def assembled(self, coefficient: Coefficient, pieces: list[_Piece]) -> Any:
        """Return the whole: numbers, traces, and what stands between the legs."""
        left = list(pieces)
        if len(self.d.rows) != len(self.d.cols) and self.d.rows and self.d.cols:
            for wire in (*self.d.rows, *self.d.cols):
                self.hold(wire)
        for k, wire in enumerate(self.d.rows):
            partner = self.d.cols[k] if k < len(self.d.cols) else None
            if self._strays(wire, partner, left):
                self.hold(wire)
        for k, wire in enumerate(self.d.cols):
            partner = self.d.rows[k] if k < len(self.d.rows) else None
            if partner is None and self._strays(wire, None, left):
                self.hold(wire)
        words: list[list[Any]] = []
        for k, wire in enumerate(self.d.rows):
            word, end = self.walk(wire, left)
            if end is None and k < len(self.d.cols):
                word = word + self._row(self.d.cols[k], left)
            elif end is not None and end != self.d.cols[k]:
                return None
            words.append(word or [Identity(self.r.size(self.d, wire))])
        words += [self._row(wire, left) for wire in self.d.cols[len(self.d.rows) :]]
        numbers = [*self.closed(left)]
        whole = words[0] if len(words) == 1 else [tensor(*[product(*w) for w in words])]
        number = scalars.to_sympy(coefficient).xreplace(self.r.symbols)
        limits = [(self.held[w], self.r.size(self.d, w)) for w in self.bound]
        if number != 1:
            numbers = [number, *numbers]
        if self.r.scalar:
            return index_sum(scalar_product(*numbers), *limits)
        made = product(*numbers, *(whole if words else [Identity(1)]))
        return HeadSum(made, *limits) if limits else made

    def _row(self, wire: Wire, left: list[_Piece]) -> list[Any]:
        word, _ = self.walk(wire, left)
        return [self.transposed(x) for x in reversed(word)]

    def _strays(self, wire: Wire, partner: Wire | None, left: list[_Piece]) -> bool:
        """Return whether the way from a leg ends at another leg than its partner."""
        _, end = self.walk(wire, list(left))
        return end is not None and end != partner

    def walk(self, wire: Wire, left: list[_Piece]) -> tuple[list[Any], Wire | None]:
        """Return the word from a leg on, taking its pieces, and the leg at its other end."""
        word: list[Any] = []
        start, here = wire, wire
        outer = (*self.d.rows, *self.d.cols)
        while True:
            if here in self.held:
                return [*word, OneHot(self.held[here], self.r.size(self.d, here))], None
            if (here != start and here in outer) or (here == start and outer.count(here) > 1):
                return word, here
            piece = next((p for p in left if here in (p.row, p.col)), None)
            if piece is None:
                return [*word, OneMatrix(self.r.size(self.d, here), 1)], None
            left.remove(piece)
            piece = piece if piece.row == here else self.turned(piece)
            word.append(piece.matrix)
            if piece.col is None:
                return word, None
            here = piece.col

    def closed(self, left: list[_Piece]) -> Iterator[Any]:
        """Yield the numbers that what touches no leg makes: traces of words."""
        while left:
            piece = left.pop(0)
            if piece.row is not None and piece.row == piece.col and piece.row not in self.held:
                yield Trace(piece.matrix)
                continue
            after: list[Any] = []
            before: list[Any] = []
            around = piece.row
            if piece.col is not None:
                after, closed = self.onward(piece.col, piece.row, left)
                if closed:
                    yield Trace(product(piece.matrix, *after))
                    continue
            if around is not None:
                back, _ = self.onward(around, None, left)
                before = [self.transposed(x) for x in reversed(back)]
            whole = product(*before, piece.matrix, *after)
            is_matrix = getattr(whole, "is_Matrix", False)
            yield Trace(whole) if is_matrix else whole

    def onward(self, wire: Wire, home: Wire | None, left: list[_Piece]) -> tuple[list[Any], bool]:
        """Return the word from an inner wire on, and whether it came back home."""
        word: list[Any] = []
        here = wire
        while True:
            if here in self.held:
                return [*word, OneHot(self.held[here], self.r.size(self.d, here))], False
            if here == home:
                return word, True
            piece = next((p for p in left if here in (p.row, p.col)), None)
            if piece is None:
                return [*word, OneMatrix(self.r.size(self.d, here), 1)], False
            left.remove(piece)
            piece = piece if piece.row == here else self.turned(piece)
            word.append(piece.matrix)
            if piece.col is None:
                return word, False
            here = piece.col

    def turned(self, piece: _Piece) -> _Piece:
        return _Piece(self.transposed(piece.matrix), piece.col, piece.row)

    def transposed(self, e: Any) -> Any:
        """Return the transpose; what fills the hole is left as it is, so that both sides fit."""
        if e is self.filling:
            return Transpose(e)
        if isinstance(e, Transpose):
            return e.args[0]
        if isinstance(e, Identity):
            return e
        return OneMatrix(*reversed(e.shape)) if isinstance(e, OneMatrix) else Transpose(e)
