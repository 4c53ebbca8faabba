"""Counterexamples at large numeric sizes, such as 768 × 768, too large for exact evaluation.

The normal forms of both sides are evaluated at matrices that are zero outside a few rows and
columns. There a wire on boxes has few values, and a wire without boxes is a factor, so one entry
takes as long as at small sizes.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from math import prod
from typing import Any

from otimes.algebra.budget import Exhausted, limited, spend, steps_left
from otimes.algebra.decide.admissible import admits_sizes, draw_scalars, draw_sizes, presupposed
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.counterexample import SEED, Counterexample
from otimes.algebra.diagrams.diagram import Box, Diagram, Wire
from otimes.algebra.diagrams.legs import Blocks, Branch, Legs, branches
from otimes.algebra.diagrams.sums import DiagramSum, Terms, is_affine
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, array_shape
from otimes.algebra.evaluate.exact_arrays import with_entries
from otimes.algebra.language import coefficients
from otimes.algebra.language.constants import PI, exact_pi
from otimes.algebra.language.intervals import root
from otimes.algebra.language.roots import Number
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.trees import key
from otimes.algebra.reading.interpretation import Interpretation

LARGE = 32  # sizes from here on are large
SMALL = 0.3  # the share of the work that is left for making entries small
TRIALS = tuple((size, 3) for size in 3 * (1, 2, 2, 3, 3, 4))  # nonzero rows, largest entry
LARGEST_DRAWN = 4  # of the sizes that are symbols
ENTRIES = 4  # entries of the sides that are compared in a trial

Place = tuple[int, ...]
Table = tuple[tuple[Wire, ...], dict[Place, Number]]  # the nonzero values of a function of wires


def has_large_sizes(signature: Signature) -> bool:
    """Return whether a size or a count of a claim is a large number."""
    composite = any(length.is_Integer and length >= LARGE for length in signature.dimensions)
    return composite or signature.largest >= LARGE


def refuted_at_large_sizes(
    claim: Claim, reading: Interpretation, left: DiagramSum, rest: Terms
) -> Counterexample | None:
    """Return a counterexample, or None if none was found.

    `left` is the value of the left side, and `rest` are the terms of the difference of the sides.
    None also if a box is no free matrix but a function, an inverse or a mask.
    """
    free = claim.signature.tensors.keys() - claim.signature.masks
    if any(label.name not in free or is_affine(label) for label in reading.labels):
        return None
    fixed = _fixed_indices(reading, {**left.terms, **rest})
    draw = random.Random(SEED)
    for support, entries in TRIALS:
        try:
            trial = _drawn(claim, reading, {*range(support), *fixed}, entries, draw)
            found = trial and trial.refutes(left, rest)
        except OtimesError:  # an irrational number that has no exact value
            continue
        except Exhausted:
            return None
        if trial and found:
            with suppress(OtimesError):  # of a matrix that is too large
                return trial.counterexample(*trial.made_small(found, left, rest))
    return None


# -- a trial ---------------------------------------------------------------------------------------


@dataclass
class _Trial:
    """An assignment for a claim: matrices are zero outside the rows and columns in `support`.

    `support` are the first indices and all fixed ones, so that a sum over it is a sum over all
    indices. `entries` are the nonzero ones, by matrix and index, drawn on first access.
    """

    claim: Claim
    reading: Interpretation
    numbers: Assignment
    support: tuple[int, ...]
    drawn: Callable[[], int]
    entries: dict[tuple[str, Place], Number] = field(default_factory=dict)

    def refutes(self, left: DiagramSum, rest: Terms) -> tuple[Branch, Branch, Place, Place] | None:
        """Return an entry (block, wire values) at which the sides certainly differ, or None."""
        rows, cols = list(branches(left.rows)), list(branches(left.cols))
        spots = [
            (row, col, *at)
            for row, col in product(rows, cols)
            for at in product(self._values(row), self._values(col))
        ]
        return next((spot for spot in spots if self._value(rest, *spot) != 0), None)

    def _values(self, branch: Branch) -> Iterable[Place]:
        """Return the supported values of the wires of a branch, as tuples, the last ones first."""
        ranges = [self._range(sort)[::-1] for sort in branch if sort >= 0]
        return list(product(*ranges))[:ENTRIES]

    def _size(self, sort: int) -> int:
        return self.numbers.size(self.reading.dimensions.expressions[sort])

    def _length(self, legs: Legs) -> int:
        return self.numbers.size(self.reading.dimensions.total(legs))

    def _range(self, sort: int) -> list[int]:
        size = self._size(sort)
        return [index for index in self.support if index < size]

    def _value(self, terms: Terms, row: Branch, col: Branch, i: Place, j: Place) -> Any:
        """Return an entry of a sum of diagrams."""
        numbers = {**self.numbers.sizes, **self.numbers.scalars, key(PI): exact_pi()}
        total: Any = 0
        for diagram, coefficient in terms.items():
            at = self._held(diagram, (*row, *col), (*i, *j))
            if at is not None:
                factor = coefficients.value_at(coefficient, numbers, root)
                total = total + factor * self._contracted(diagram, at)
        return total

    def _held(self, diagram: Diagram, branch: Branch, place: Place) -> dict[Wire, int] | None:
        """Return the values of the wires on legs, or None if the diagram has no such entry."""
        legs = (*diagram.rows, *diagram.cols)
        marks = [item for item in branch if item < 0]
        if [leg for leg in legs if leg < 0] != marks:
            return None
        pairs = list(zip([leg for leg in legs if leg >= 0], place, strict=True))
        for name, wire in diagram.named:
            value, fixed, _ = name.partition("@")
            pairs.append((wire, int(value) if fixed else self.numbers.indices[name]))
        at = dict(pairs)
        return at if all(at[wire] == value for wire, value in pairs) else None

    def _contracted(self, diagram: Diagram, at: Mapping[Wire, int]) -> Number:
        """Return the sum over the other wires of the product of the boxes."""
        tables = [self._table(box, diagram, at) for box in diagram.boxes]
        while open_wires := sorted({wire for wires, _ in tables for wire in wires}):
            beside = {
                wire: {other for wires, _ in tables if wire in wires for other in wires}
                for wire in open_wires
            }
            spend(len(open_wires) * len(tables))
            wire = min(open_wires, key=lambda wire: len(beside[wire]))
            here = [table for table in tables if wire in table[0]]
            tables = [table for table in tables if wire not in table[0]]
            tables.append(_summed(reduce(_joined, here), wire))
        return prod([table.get((), 0) for _, table in tables])

    def _table(self, box: Box, diagram: Diagram, at: Mapping[Wire, int]) -> Table:
        """Return the nonzero entries of a box, by the values of its summed wires."""
        wires = tuple(dict.fromkeys(box[1:]))
        ranges = [[at[wire]] if wire in at else self._range(diagram.sorts[wire]) for wire in wires]
        spend(1 + prod(map(len, ranges)))
        inner = tuple(wire for wire in wires if wire not in at)
        table = {}
        for values in product(*ranges):
            value_of = dict(zip(wires, values, strict=True))
            entry = self._entry(box[0], [value_of[wire] for wire in box[1:]])
            if entry:
                table[tuple([value_of[wire] for wire in inner])] = entry
        return inner, table

    def _entry(self, number: int, values: Sequence[int]) -> Number:
        """Return an entry of the matrix of a label, at the values of the wires of its box."""
        label = self.reading.labels[number]
        rows = sum(item >= 0 for item in label.row_branch)
        cols = sum(item >= 0 for item in label.col_branch)
        inner = list(values)
        free = iter(inner[: len(inner) - rows - cols])
        last = inner[len(inner) - rows - cols :]
        place = tuple([next(free, 0) if k is None else k for k in label.indices])
        place += (
            _index(label.rows, label.row_branch, last[:rows], self._length),
            _index(label.cols, label.col_branch, last[rows:], self._length),
        )
        if (label.name, place) not in self.entries:
            self.entries[label.name, place] = self.drawn()
        return self.entries[label.name, place]

    def made_small(
        self, spot: tuple[Branch, Branch, Place, Place], left: DiagramSum, rest: Terms
    ) -> tuple[tuple[int, int], Number, Number]:
        """Change entries to 0 or 1 while the sides differ; return the entry and both values."""
        row, col, i, j = spot
        with suppress(Exhausted), limited(SMALL * steps_left()):
            for place, entry in list(self.entries.items()):
                self.entries[place] = self._smaller(place, entry, spot, rest)
        at = _index(left.rows, row, i, self._length), _index(left.cols, col, j, self._length)
        value = self._value(left.terms, *spot)
        return at, value, value - self._value(rest, *spot)

    def _smaller(self, place: Any, entry: Number, spot: Any, rest: Terms) -> Number:
        """Return 0 or 1 for an entry where the sides still differ, else the entry."""
        for small in (0, 1):
            self.entries[place] = small
            try:
                if self._value(rest, *spot) != 0:
                    return small
            except Exhausted:
                self.entries[place] = entry
                raise
        return entry

    def counterexample(self, entry: tuple[int, int], lhs: Number, rhs: Number) -> Counterexample:
        """Return the trial as a counterexample."""
        signature, numbers = self.claim.signature, self.numbers
        given: dict[str, dict[Place, Number]] = {name: {} for name in signature.tensors}
        for (name, place), value in self.entries.items():
            if value:
                given[name][place] = value
        return Counterexample(
            sizes={symbol: numbers.sizes[name] for name, symbol in signature.sizes.items()},
            arrays={
                name: with_entries(array_shape(signature.tensors[name], numbers), entries)
                for name, entries in given.items()
            },
            indices={symbol: numbers.indices[n] for n, (symbol, _) in signature.indices.items()},
            scalars={signature.scalars[n]: numbers.scalars[n] for n in signature.unknown},
            entry=entry if self.claim.lhs.is_Matrix else None,
            lhs=lhs,
            rhs=rhs,
            presupposes=presupposed(signature),
            nonzero=given,
        )


def _joined(a: Table, b: Table) -> Table:
    """Return the product of two tables (sparse functions of wires)."""
    shared = [wire for wire in b[0] if wire in a[0]]
    new = [k for k, wire in enumerate(b[0]) if wire not in a[0]]
    mine, theirs = ([wires.index(wire) for wire in shared] for wires in (a[0], b[0]))
    at: dict[Place, list[tuple[Place, Number]]] = defaultdict(list)
    for place, value in b[1].items():
        at[tuple([place[k] for k in theirs])].append((tuple([place[k] for k in new]), value))
    table = {
        (*place, *more): value * other
        for place, value in a[1].items()
        for more, other in at[tuple([place[k] for k in mine])]
    }
    spend(1 + len(table))
    return (*a[0], *[b[0][k] for k in new]), table


def _summed(table: Table, wire: Wire) -> Table:
    """Return a table summed over one of its wires."""
    wires, values = table
    position = wires.index(wire)
    total: dict[Place, Number] = defaultdict(int)
    for place, value in values.items():
        total[place[:position] + place[position + 1 :]] += value
    return wires[:position] + wires[position + 1 :], dict(total)


def _index(legs: Legs, branch: Branch, values: Sequence[int], size: Callable[[Legs], int]) -> int:
    """Return the index of the row or column with these wire values in this block."""
    index = 0
    for position, leg in enumerate(legs):
        if isinstance(leg, Blocks):
            block = -1 - branch[position]
            before = sum(size(other) for other in leg[:block])
            inner = _index(leg[block], branch[position + 1 :], values[position:], size)
            return index * size((leg,)) + before + inner
        index = index * size((leg,)) + values[position]
    return index


def _fixed_indices(reading: Interpretation, terms: Terms) -> set[int]:
    """Return the integers that stand as indices of matrices or of one-hot vectors."""
    of_labels = {index for label in reading.labels for index in label.indices if index is not None}
    names = {name for diagram in terms for name, _ in diagram.named if "@" in name}
    return of_labels | {int(name.partition("@")[0]) for name in names}


def _drawn(
    claim: Claim, reading: Interpretation, support: set[int], entries: int, draw: random.Random
) -> _Trial | None:
    """Return a random trial for a claim, or None if no admissible sizes were found."""
    signature = claim.signature
    sizes = draw_sizes(signature, draw, min(len(support), LARGEST_DRAWN), signature.roots)
    if sizes is None or not admits_sizes(signature, Assignment(sizes, {})):
        return None
    scalars = draw_scalars(signature, sizes, draw, entries, signature.roots)
    if scalars is None:
        return None
    numbers = Assignment(sizes, {}, {}, scalars)
    indices = {
        name: draw.choice([index for index in sorted(support) if index < numbers.size(count)])
        for name, (_, count) in signature.indices.items()
    }
    numbers = replace(numbers, indices=indices)
    return _Trial(
        claim, reading, numbers, tuple(sorted(support)), lambda: draw.randint(-entries, entries)
    )
