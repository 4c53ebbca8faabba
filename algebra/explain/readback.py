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
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.diagrams.diagram import Diagram, Wire
from otimes.algebra.diagrams.matching import HOLE
from otimes.algebra.diagrams.sums import Terms
from otimes.algebra.language import coefficients
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.linear import HeadSum, OneHot
from otimes.algebra.language.nonlinear import SOFTMAX, Activation, CausalMask, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.reading.interpretation import Applied, Interpretation
from otimes.algebra.reading.opaque_functions import is_causal_mask
from otimes.algebra.rules.indices import index_sum
from otimes.algebra.rules.rule import fresh, product, scalar_product, tensor, total

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
        self.applied = {known.name: known for known in reading.applied}
        known = {**reading.signature.sizes, **reading.signature.scalars}
        self.symbols = {
            coefficients.to_sympy(coefficients.generator(name)): s for name, s in known.items()
        }

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

    def function(self, known: Applied, held: Mapping[int, Any], ends: Sequence[int]) -> Any:
        """Return a function as an expression: `held` are the values of slots that are no legs.

        `ends` are the slots that are legs: a row, and of an activation also a column.
        """
        stated, names = known.stated, sorted(inspect(known.stated).indices)
        legs = [size for size in stated.shape if size != 1]
        slots = [self.reading.dimensions.expressions[sort] for sort in known.slots]
        if known.function == SOFTMAX:
            slots += [self.reading.dimensions.expressions[sort] for sort in known.features]
            names_at = len(known.slots) - len(names)
        else:
            names_at = len(legs)
        if len(slots) == len(legs) + len(names) and list(ends) == list(range(names_at)):
            indices = inspect(stated).indices
            put = {indices[name][0]: held[names_at + k] for k, name in enumerate(names)}
            return substituted(stated, put)
        arguments = [self._argument(known, terms, held, ends) for terms in known.arguments]
        if any(argument is None for argument in arguments):
            return None
        if known.function == SOFTMAX:
            return RowSoftmax(*arguments)
        return Activation(known.function, arguments[0])

    def _argument(
        self, known: Applied, terms: Terms, held: Mapping[int, Any], ends: Sequence[int]
    ) -> Any:
        inside = Renderer(self.reading, [*self.avoid, *held.values()], scalar=False)
        written = []
        for diagram, coefficient in terms.items():
            wires = {diagram.rows[slot]: value for slot, value in held.items()}
            rows, cols = diagram.rows[ends[0] : ends[0] + 1] if ends else (), diagram.cols
            if known.function != SOFTMAX:
                cols = tuple([diagram.rows[slot] for slot in ends[1:]])
            bare = diagram._replace(rows=rows, cols=cols)
            written.append(_Term(inside, bare, None, {}, wires).written(coefficient))
        if any(term is None for term in written):
            return None
        return total(*written) if written else None

    def size(self, diagram: Diagram, wire: Wire) -> Any:
        return self.reading.dimensions.expressions[diagram.sorts[wire]]


def _ends(known: Applied) -> tuple[int, ...]:
    """Return the slots of a function that are written as legs, not held at an index."""
    rows, cols = (size != 1 for size in known.stated.shape)
    legs = int(rows) if known.function == SOFTMAX else int(rows) + int(cols)
    return tuple(range(min(legs, len(known.slots))))


class _Term:
    def __init__(
        self,
        renderer: Renderer,
        diagram: Diagram,
        hole: Hole | None,
        at_hole: Mapping[str, Wire],
        held: Mapping[Wire, Any] | None = None,
    ) -> None:
        self.r = renderer
        self.d = diagram
        self.hole = hole
        self.at_hole = at_hole
        self.held: dict[Wire, Any] = dict(held or {})  # wire -> its index, a symbol or an integer
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
        kept: dict[int, tuple[Wire, Wire]] = {}  # columns that are written as diagonal matrices
        for wire in range(len(self.d.sorts)):
            touching = [k for k, (_, *ends) in enumerate(boxes) for end in ends if end == wire]
            count = len(touching) + [*self.d.rows, *self.d.cols].count(wire)
            if count > 2 and wire not in self.held:
                columns = [k for k in touching if None in boxes[k][1:]]
                if len(columns) < count - 2:
                    self.hold(wire)
                else:
                    kept |= self.on_diagonal(boxes, wire, columns[: count - 2])
        pieces = []
        for k, (box, row, col) in enumerate(boxes):
            matrix = self.matrix(box)
            if matrix is None:
                return None
            if k in kept:
                column = matrix if col is None else self.transposed(matrix)
                pieces.append(_Piece(DiagMatrix(column), *kept[k]))
            else:
                pieces.append(_Piece(matrix, row, col))
        return self.assembled(coefficient, pieces)

    def on_diagonal(
        self,
        boxes: list[tuple[tuple[int, ...], Wire | None, Wire | None]],
        wire: Wire,
        columns: Sequence[int],
    ) -> dict[int, tuple[Wire, Wire]]:
        """Cut a wire in pieces with a column on each cut, and return between which wires it is.

        All but two of what the wire joins are columns then: v on a wire is diag(v) along it.
        """
        last, made = wire, {}
        for k in columns:
            new = len(self.d.sorts)
            self.d = self.d._replace(sorts=(*self.d.sorts, self.d.sorts[wire]))
            made[k], last = (last, new), new
        for k, (box, row, col) in enumerate(boxes):  # the other end of the wire is further on now
            if k not in made and col == wire:
                boxes[k] = (box, row, last)
                return made
            if k not in made and row == wire:
                boxes[k] = (box, last, col)
                return made
        rows, cols = list(self.d.rows), list(self.d.cols)
        legs = cols if wire in cols else rows
        legs[legs.index(wire)] = last
        self.d = self.d._replace(rows=tuple(rows), cols=tuple(cols))
        return made

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
            if label.name in self.r.applied:
                return self.ends_of_function(self.r.applied[label.name], box)
            rows, cols = len(label.row_branch), len(label.col_branch)
        if rows > 1 or cols > 1:
            return None
        wires = list(box[1:])
        legs = wires[len(wires) - rows - cols :]
        if box[0] != HOLE:
            for wire in wires[: len(wires) - rows - cols]:
                self.hold(wire)
        return (legs[0] if rows else None), (legs[-1] if cols else None)

    def ends_of_function(
        self, known: Applied, box: tuple[int, ...]
    ) -> tuple[Wire | None, Wire | None] | None:
        """Return the wires of the slots and features of a function that are written as legs."""
        wires = box[1:]
        ends = _ends(known)
        for slot in range(len(known.slots)):
            if slot not in ends:
                self.hold(wires[slot])
        legs = [wires[slot] for slot in ends]
        if known.function != SOFTMAX:
            return (legs[0] if legs else None), (legs[1] if len(legs) > 1 else None)
        if len(known.features) > 1:
            return None
        return (legs[0] if legs else None), (wires[-1] if known.features else None)

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
        if label.name in self.r.applied:
            known = self.r.applied[label.name]
            ends = _ends(known)
            slots = enumerate(box[1 : 1 + len(known.slots)])
            held = {k: self.held[wire] for k, wire in slots if k not in ends}
            return self.r.function(known, held, ends)
        if is_causal_mask(label):
            return CausalMask(self.r.size(self.d, box[1]))
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
        number = coefficients.to_sympy(coefficient).xreplace(self.r.symbols)
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
        if isinstance(e, Identity | DiagMatrix):
            return e
        return OneMatrix(*reversed(e.shape)) if isinstance(e, OneMatrix) else Transpose(e)
