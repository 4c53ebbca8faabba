"""The contexts of a certificate: where in a term a fact is used, in the numbers of the checker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from otimes.algebra.decide.certificate_trees import (
    Scope,
    Tree,
    Trees,
    affine_tree,
)
from otimes.algebra.diagrams.diagram import DEAD
from otimes.algebra.diagrams.legs import Blocks, Legs, branches
from otimes.algebra.diagrams.sums import is_affine
from otimes.algebra.language.nonlinear import (
    SOFTMAX,
)
from otimes.algebra.reading.constants import constant_at, is_constant
from otimes.algebra.reading.interpretation import Interpretation


class Context:
    """The boxes of a context as trees with wires; layer indices become marks."""

    def __init__(self, writer: Trees, reading: Interpretation, scope: Scope, d: Any) -> None:
        self.writer, self.reading, self.scope = writer, reading, scope
        self.sorts = list(d.sorts)
        self.held: list[list[int]] = []
        self.latest = {wire: scope.latest[name] for name, wire in d.named if name in scope.latest}
        self.named = {wire: name for name, wire in d.named}
        self.frozen = {wire: name for name, wire in d.named if name in writer.frozen}
        self.applied = {known.name: known for known in reading.applied}
        self.new: dict[int, int] = {}
        for wire, sort in enumerate(self.sorts):
            if sort != DEAD and self.at(wire)[-1:] == [wire]:
                self.new[wire] = len(self.new)

    def depth(self, wire: int) -> str | None:
        """Return "base" or "step" for a wire that is an index of the layers under induction."""
        size = self.reading.dimensions.expressions[self.sorts[wire]]
        return self.scope.depths.get(size)

    def at(self, wire: int) -> list[int]:
        """Return the index of a wire; for layers, marks tell whether it is the last one."""
        stage = self.depth(wire)
        if wire in self.frozen:
            return []
        if stage is None:
            return [wire]
        if stage == "base":
            return []
        return [-2] if wire in self.latest else [-1, wire]

    def legs(self, legs: Iterable[int], wires: Iterable[int] | None = None) -> list[int]:
        """Return the index of legs: marks and wires, or marks and places for the given wires."""
        free = iter([leg for leg in legs if leg >= 0] if wires is None else wires)
        return [k for leg in legs for k in ([leg] if leg < 0 else self.at(next(free)))]

    def hole(self, legs: Iterable[int], wires: Iterable[int]) -> list[int]:
        """Return the index at a hole: marks, places for the wires, and the first where any do."""
        free = iter(wires)
        parts = [
            [leg] if leg < 0 else self.at(self.fresh(leg - 1) if leg else next(free))
            for leg in legs
        ]
        return [k for part in parts for k in part]

    def first(self, count: Any) -> list[int]:
        """Return the first index of a range, for an index on which a fact does not depend."""

        def of(legs: Legs) -> list[int]:
            parts = [
                [-1, *of(leg[0])] if isinstance(leg, Blocks) else self.at(self.fresh(leg))
                for leg in legs
            ]
            return [k for part in parts for k in part]

        return of(self.reading.dimensions.legs(count))

    def live(self) -> list[int]:
        return [self.sorts[wire] for wire in self.new]

    def renumbered(self, indices: Iterable[Sequence[int]]) -> list[list[int]]:
        return [[one if one < 0 else self.new[one] for one in index] for index in indices]

    def renumbered_free(self, free: Iterable[Any]) -> list[Any]:
        return [[level, *self.renumbered([index])] for level, index in free]

    def renumbered_box(self, box: Any) -> list[Any]:
        tree, counts, *where = box
        counts = [[count, *self.renumbered([index])] for count, index in counts]
        return [tree, counts, *self.renumbered(where)]

    def fresh(self, sort: int) -> int:
        """Return a new wire with the fixed index 0."""
        wire = len(self.sorts)
        self.sorts.append(sort)
        self.new[wire] = len(self.new)
        self.held.append([wire, 0])
        return wire

    def box(self, box: tuple[int, ...]) -> list[Any]:
        """Return a box as [tree, [[count, index]], row, column]."""
        number, *wires = box
        label = self.reading.labels[number]
        writer, scope = self.writer, self.scope
        if label.name in self.applied:
            return self.function(self.applied[label.name], label, wires)
        left = iter(wires)
        tensor: Any = self.reading.signature.tensors.get(label.name)
        indices: list[Tree] = []
        free: list[Any] = []  # the same indices, by their names where they are free
        counts: list[Any] = []
        if is_affine(label):
            indices = self.affine(label, left, counts)
        for place, fixed in enumerate(() if is_affine(label) else label.indices):
            count = tensor.counts[place]
            if fixed is not None:
                indices.append(fixed)
            elif not self.reading.dimensions.legs(count):
                indices.append(0)
            else:
                wire = next(left)
                indices.append(self.local(wire, count, counts))
                free.append(self.named.get(wire, wire))
                continue
            free.append(indices[-1])
        row, col = self.legs(label.row_branch, left), self.legs(label.col_branch, left)
        if is_constant(label):
            tree = writer.tree(constant_at(label, self.reading.dimensions.total(label.rows)), scope)
        elif label.name in self.reading.inverses:
            tree = ["MatPow", writer.tree(self.reading.inverses[label.name][1], scope), -1]
        elif label.name in scope.opaque:
            inner = replace(scope, count=scope.count + len(counts))
            tree = writer.opaque(label.name, inner, indices)
        elif (part := writer.parts.get((label.name, *free))) is not None:
            tree, counts = ["tensor", part], []
        else:
            tree = ["tensor", writer.tensors[label.name], *indices]
        return [tree, counts, row, col]

    def affine(self, label: Any, wires: Iterator[int], counts: list[Any]) -> list[Tree]:
        """Return the affine indices of a box, whose variables come first among its wires."""
        sorts = label.indices[0].sorts
        sizes = self.reading.dimensions.expressions
        at = [self.local(next(wires), sizes[sort], counts) for sort in sorts]
        return [
            affine_tree(
                self.writer.tree(form.constant, self.scope), zip(form.factors, at, strict=True)
            )
            for form in label.indices
        ]

    def value(self, wire: int | None, shift: Any, sign: int = 1) -> Tree:
        """Return a number plus or minus the index at a wire, as an index of a fact."""
        constant = self.writer.tree(shift, self.scope)
        if wire is None or self.depth(wire) == "base":
            return ["at", constant]
        if wire in self.latest:
            last = self.writer.tree(self.latest[wire], self.scope)
            return ["at", ["Add", constant, last if sign == 1 else ["Mul", sign, last]]]
        return ["at", constant, [sign, self.new[wire]]]

    def local(self, wire: int, count: Any, counts: list[Any]) -> Tree:
        """Return an index of a box: the number of the last layer, or a new index."""
        if wire in self.frozen:
            return self.frozen[wire]
        if wire in self.latest:
            return self.scope.indices[
                next(n for n, d in self.scope.latest.items() if d == self.latest[wire])
            ]
        if self.depth(wire) == "base":
            return 0
        counts.append([self.writer.tree(count, self.scope), self.at(wire)])
        return ["i", self.scope.count + len(counts) - 1]

    def function(self, known: Any, label: Any, wires: Sequence[int]) -> list[Any]:
        """Return the tree of a function as stated in the claim; unused indices are set to 0."""
        block = [*branches(known.features)].index(label.col_branch)
        slots = dict(zip(known.kept, wires, strict=False))
        features = list(wires[len(known.kept) :])
        own = [item for item in known.row if item >= 0]
        if known.function != SOFTMAX:
            own += [item for item in known.cols[0] if item >= 0]
        every = [*own, *[sort for _, sort in known.names]]
        for place, sort in enumerate(every):
            if place not in slots:
                slots[place] = self.fresh(sort)
        counts: list[Any] = []
        names: dict[str, Tree] = {}
        integers: dict[tuple[int, Any], Tree] = {}
        sizes = self.reading.dimensions.expressions
        for place, (name, sort) in enumerate(known.names, start=len(own)):
            index = self.local(slots[place], sizes[sort], counts)
            value, is_integer, _ = name.partition("@")
            if is_integer:
                integers[int(value), sizes[sort]] = index
            else:
                names[name] = index
        ends = iter([slots[place] for place in range(len(own))])
        row = self.legs(known.row, ends)
        col = self.legs(known.cols[block], features if known.function == SOFTMAX else ends)
        scope = self.scope
        inner = replace(
            scope,
            indices={**scope.indices, **names},
            count=scope.count + len(counts),
            integers={**scope.integers, **integers},
        )
        return [self.writer.tree(known.stated, inner), counts, row, col]
