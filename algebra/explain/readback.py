"""From a diagram back to an expression: matrix products and traces, else sums over indices.

If every wire has two ends, the diagram is a product of matrices between each row leg and its column
leg, times traces. Any other wire is *held*: it becomes a summation index i, and every matrix on it
is multiplied by a unit column `e_i`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import sympy
from sympy import Identity, Inverse, OneMatrix, Trace, Transpose
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.diagrams.diagram import Diagram, Wire
from otimes.algebra.diagrams.matching import HOLE
from otimes.algebra.diagrams.sums import Terms, is_affine
from otimes.algebra.language import coefficients
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.linear import HeadSum, OneHot
from otimes.algebra.language.nonlinear import SOFTMAX, Activation, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.reading.constants import constant_at, is_constant
from otimes.algebra.reading.interpretation import Applied, Interpretation
from otimes.algebra.rules.indices import index_sum
from otimes.algebra.rules.rule import fresh, product, scalar_product, tensor, total

Ends = tuple[Wire | None, Wire | None]  # sizes of the row and of the column
Hole = Callable[[Mapping[str, Any]], Any]  # gives the expression in the hole


@dataclass(frozen=True, slots=True)
class _Piece:
    """A matrix in a diagram with the wires of its row and of its column, None where size one."""

    matrix: Any
    row: Wire | None
    col: Wire | None


class NotWritten(Exception):
    """A diagram cannot be written as an expression of the language."""


class Renderer:
    """Writes diagrams of one reading as expressions; raises NotWritten where it cannot."""

    def __init__(self, reading: Interpretation, avoid: Sequence[Any], scalar: bool) -> None:
        self.reading = reading
        self.avoid = tuple(avoid)
        self.scalar = scalar  # whether the claim is an equation of scalars
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
        """Return coefficient · diagram as an expression; `hole` gives that of the box `HOLE`."""
        if any(w < 0 for w in (*diagram.rows, *diagram.cols)):
            raise NotWritten  # one block of a matrix in blocks
        return _Term(self, diagram, hole, at_hole or {}).written(coefficient)

    def function(self, known: Applied, held: Mapping[int, Any], ends: Sequence[int]) -> Any:
        """Return a function as an expression; `held` maps its indexed slots to their indices.

        `ends` are the slots written as row and (activations only) column of the matrix.
        """
        stated, indices = known.stated, inspect(known.stated).indices
        legs = sum(size != 1 for size in stated.shape)
        slots = len(known.slots) + len(known.features)  # an activation has no features
        names_at = len(known.slots) - len(indices) if known.function == SOFTMAX else legs
        if slots == legs + len(indices) and list(ends) == list(range(names_at)):
            put = {indices[n][0]: held[names_at + k] for k, n in enumerate(sorted(indices))}
            return substituted(stated, put)
        arguments = [self._argument(known, terms, held, ends) for terms in known.arguments]
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
        if not written:
            raise NotWritten
        return total(*written)

    def size(self, diagram: Diagram, wire: Wire) -> Any:
        return self.reading.dimensions.expressions[diagram.sorts[wire]]


def _ends(known: Applied) -> tuple[int, ...]:
    """Return the slots of a function that become the row and the column of its matrix."""
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
        self.bound: list[Wire] = []  # the held wires whose index is summed over
        self.filling: Any = None
        self.names = iter(fresh(len(diagram.sorts), *renderer.avoid))

    def written(self, coefficient: Coefficient) -> Any:
        signature = self.r.reading.signature
        for name, wire in self.d.named:
            value, fixed, _ = name.partition("@")
            if not fixed and name not in signature.indices:
                raise NotWritten
            self.held[wire] = sympy.Integer(value) if fixed else signature.indices[name][0]
        for wire in self.at_hole.values():
            self.hold(wire)
        boxes = [(box, *self.ends(box)) for box in self.d.boxes]
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
        """Split a wire at each of the `columns`; return for each the two wires that it now joins.

        For a wire with at most two other ends: a column v on a wire is diag(v) along it.
        """
        last, made = wire, {}
        for k in columns:
            new = len(self.d.sorts)
            self.d = self.d._replace(sorts=(*self.d.sorts, self.d.sorts[wire]))
            made[k], last = (last, new), new
        for k, (box, row, col) in enumerate(boxes):  # move the far end to the last piece
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

    def ends(self, box: tuple[int, ...]) -> Ends:
        """Return the row and column wires of a box; wires of family indices become held."""
        if box[0] == HOLE:
            rows, cols = self._hole_legs
        else:
            label = self.r.reading.labels[box[0]]
            if any(item < 0 for item in (*label.row_branch, *label.col_branch)):
                raise NotWritten
            if label.name in self.r.applied:
                return self.ends_of_function(self.r.applied[label.name], box)
            rows, cols = len(label.row_branch), len(label.col_branch)
        if rows > 1 or cols > 1:
            raise NotWritten
        first = len(box) - rows - cols
        legs = box[first:]
        if box[0] != HOLE:
            for wire in box[1:first]:
                self.hold(wire)
        return (legs[0] if rows else None), (legs[-1] if cols else None)

    def ends_of_function(self, known: Applied, box: tuple[int, ...]) -> Ends:
        """Return the row and column wires of a function's box; its other slots become held."""
        wires = box[1:]
        ends = _ends(known)
        for slot in range(len(known.slots)):
            if slot not in ends:
                self.hold(wires[slot])
        legs = [wires[slot] for slot in ends]
        if known.function != SOFTMAX:
            return (legs[0] if legs else None), (legs[1] if len(legs) > 1 else None)
        if len(known.features) > 1:
            raise NotWritten
        return (legs[0] if legs else None), (wires[-1] if known.features else None)

    @property
    def _hole_legs(self) -> tuple[int, int]:
        assert self.hole is not None
        rows, cols = getattr(self.hole({}), "shape", (1, 1))
        return int(rows != 1), int(cols != 1)

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
        if is_constant(label):
            return constant_at(label, self.r.size(self.d, box[1]))
        tensor_symbol = reading.signature.tensors.get(label.name)
        if isinstance(tensor_symbol, sympy.MatrixSymbol):
            return tensor_symbol
        if tensor_symbol is None:
            raise NotWritten
        if is_affine(label):
            sorts = label.indices[0].sorts
            counts = [reading.dimensions.expressions[sort] for sort in sorts]
            held_indices = [self.held[wire] for wire in box[1 : 1 + len(sorts)]]
            forms = [sympy.Tuple(form.constant, *form.factors) for form in label.indices]
            return AffineMember(tensor_symbol, forms, counts, *held_indices)
        wires = iter(box[1:])
        indices = []
        for fixed, count in zip(label.indices, tensor_symbol.counts, strict=True):
            free = fixed is None and count != 1
            indices.append(self.held[next(wires)] if free else sympy.Integer(fixed or 0))
        return tensor_symbol[tuple(indices)]

    # -- words -----------------------------------------------------------------------------------

    def assembled(self, coefficient: Coefficient, pieces: list[_Piece]) -> Any:
        """Return the product of the numbers, the traces, and the matrices between the legs."""
        if len(self.d.rows) != len(self.d.cols) and self.d.rows and self.d.cols:
            for wire in (*self.d.rows, *self.d.cols):
                self.hold(wire)
        legs = [*zip_longest(self.d.rows, self.d.cols)]
        for row, col in legs:
            wire, partner = (col, None) if row is None else (row, col)
            _, end = self.walk(wire, list(pieces))
            if end not in (None, partner):
                self.hold(wire)
        words: list[list[Any]] = []
        for row, col in legs:
            word, end = ([], None) if row is None else self.walk(row, pieces)
            if end is None and col is not None:
                word = word + self._row(col, pieces)
            elif end not in (None, col):
                raise NotWritten
            words.append(word or [Identity(self.r.size(self.d, row))])
        numbers = [*self.closed(pieces)]
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

    def walk(
        self, wire: Wire, left: list[_Piece], home: Wire | None = None
    ) -> tuple[list[Any], Wire | None]:
        """Return the matrices that follow a wire, removed from `left`, and the leg at their end."""
        word: list[Any] = []
        here = wire
        ends = (*self.d.rows, *self.d.cols, home)
        while True:
            if here in self.held:
                return [*word, OneHot(self.held[here], self.r.size(self.d, here))], None
            if ends.count(here) > (here == wire):
                return word, here
            piece = next((p for p in left if here in (p.row, p.col)), None)
            if piece is None:
                return [*word, OneMatrix(self.r.size(self.d, here), 1)], None
            left.remove(piece)
            forward = piece.row == here
            word.append(piece.matrix if forward else self.transposed(piece.matrix))
            onward = piece.col if forward else piece.row
            if onward is None:
                return word, None
            here = onward

    def closed(self, left: list[_Piece]) -> Iterator[Any]:
        """Yield the scalar factors made of the pieces in `left`, mostly traces of products."""
        while left:
            piece = left.pop(0)
            if piece.row is not None and piece.row == piece.col and piece.row not in self.held:
                yield Trace(piece.matrix)
                continue
            after: list[Any] = []
            end = None
            if piece.col is not None:
                after, end = self.walk(piece.col, left, piece.row)
            before = self._row(piece.row, left) if piece.row is not None and end is None else []
            whole = product(*before, piece.matrix, *after)
            yield Trace(whole) if getattr(whole, "is_Matrix", False) else whole

    def transposed(self, e: Any) -> Any:
        """Return the transpose; the expression in the hole is transposed without simplification."""
        if e is self.filling:
            return Transpose(e)
        if isinstance(e, Transpose):
            return e.args[0]
        if isinstance(e, Identity | DiagMatrix):
            return e
        return OneMatrix(*reversed(e.shape)) if isinstance(e, OneMatrix) else Transpose(e)
