"""Numbers that satisfy hypotheses at fixed sizes, such as 768: small blocks in large matrices.

A matrix has a small block in its first rows and columns, and beyond it a multiple of the identity,
also where it is not square. Expressions of such matrices are computed by classes of rows
(`evaluate.alike`), exactly; so the blocks are solved for as small matrices are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, product
from math import prod
from typing import Any

import sympy

from otimes.algebra.evaluate.alike import SMALL, Axis, ByClass, Classes, NoValue
from otimes.algebra.evaluate.exact import Assignment, array_shape
from otimes.algebra.evaluate.exact_arrays import ExactArray, zeros
from otimes.algebra.language.linear import Family
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.signature import Signature

MOST_INDICES = 64  # values of the free indices of a hypothesis
MOST_MEMBERS = 12  # of a family that have a block, in each direction
Pair = tuple[Any, Any]
Leaves = dict[tuple[str, tuple[int, ...]], ByClass]
Beyond = Callable[[str, tuple[int, ...]], int]


class Embedded:
    """The values of expressions, where `arrays` of an assignment are the blocks of matrices.

    `blocks` is the number of rows of a block for each size, and `beyond` the multiple of the
    identity beyond the block, by the name of a matrix and the indices of a member.
    """

    def __init__(self, blocks: Mapping[int, int], beyond: Beyond) -> None:
        self.blocks, self.beyond = blocks, beyond

    def shape(self, tensor: sympy.MatrixSymbol | Family, numbers: Assignment) -> tuple[int, ...]:
        """Return the shape of the block of a matrix, or of those of the members of a family."""
        *counts, rows, cols = array_shape(tensor, numbers)
        return (*[min(k, MOST_MEMBERS) for k in counts], self.block(rows), self.block(cols))

    def block(self, size: int) -> int:
        """Return the number of rows of a block in a matrix with so many rows."""
        return self.blocks.get(size, size)

    def sides(self, pair: Pair, numbers: Assignment) -> tuple[list[Any], list[Any]]:
        """Return the different entries of both sides, for all values of the free indices."""
        left, right = list[Any](), list[Any]()
        classes = self.classes(numbers)
        stated = [(*pair, at) for at in every_index(pair, numbers)]
        for x, y in classes.values(*stated):
            left += cells(x)
            right += cells(y)
        return left, right

    def value(self, e: Any, numbers: Assignment) -> ExactArray:
        """Return the block of the value of a matrix expression."""
        ((found, _),) = self.classes(numbers).values((e, e, numbers.indices))
        size = [self.block(sum(axis)) for axis in (found.rows, found.cols)]
        if [*found.rows[: size[0]], *found.cols[: size[1]]] != [1] * sum(size):
            raise NoValue("the block of a matrix is cut in other classes")
        flat = [found.table[p][q][0] for p in range(size[0]) for q in range(size[1])]
        if any(x is None for x in flat):
            raise NoValue("an entry that is not known")
        return ExactArray((size[0], size[1]), flat)

    def classes(self, numbers: Assignment, leaves: Leaves | None = None) -> Classes:
        """Return the evaluation by classes of rows; `leaves` keeps the matrices it asks for."""

        def leaf(name: str, at: tuple[int, ...], rows: Axis, cols: Axis) -> ByClass:
            made = self.leaf(found, numbers, name, at, rows, cols)
            if leaves is not None:
                leaves[name, at] = made
            return made

        found = Classes(numbers, leaf)
        lengths = {size: size - block for size, block in self.blocks.items()}
        for size, block in self.blocks.items():
            if size > SMALL:
                shorter = {block + k for k in lengths.values() if k < lengths[size]}
                found.breaks[size] = ({*range(1, block + 1)} | shorter) - {0, size}
        return found

    def leaf(
        self,
        classes: Classes,
        numbers: Assignment,
        name: str,
        at: tuple[int, ...],
        rows: Axis,
        cols: Axis,
    ) -> ByClass:
        """Return a matrix, or a member of a family, by its classes."""
        array = numbers.arrays[name]
        inside = all(k < count for k, count in zip(at, array.shape, strict=False))
        block = array[at] if at and inside else zeros(array.shape[-2:]) if at else array
        height, width = block.shape
        multiple = self.beyond(name, at)
        starts, others = [[0, *accumulate(axis)] for axis in (rows, cols)]
        table: list[list[Any]] = [[(0, 0)] * len(cols) for _ in rows]
        for p, m in enumerate(rows):
            for q, k in enumerate(cols):
                i, j = starts[p] - height, others[q] - width
                if i < 0 and j < 0:
                    table[p][q] = (block[starts[p], others[q]],) * 2
                elif multiple and i >= 0 and j >= 0 and max(i, j) < min(i + m, j + k):
                    if (i, m) != (j, k):
                        _cut(classes, sum(rows), height, {i, i + m, j, j + k})
                        _cut(classes, sum(cols), width, {i, i + m, j, j + k})
                        raise NoValue("the classes of a matrix do not fit")
                    table[p][q] = (multiple, multiple if m == 1 else 0)
        return ByClass(rows, cols, table)


def _cut(classes: Classes, size: int, block: int, places: set[int]) -> None:
    """Cut a size in more classes, at places beyond its block."""
    breaks = {block + place for place in places if block + place < size}
    if size > SMALL and not breaks <= classes.breaks.get(size, set()):
        classes.cut(size, breaks)


def cells(x: Any) -> Sequence[Any]:
    """Return the different entries of a matrix by classes, or a number."""
    found = [value for *_, value in x.cells()] if isinstance(x, ByClass) else [x]
    if any(value is None for value in found):
        raise NoValue("an entry that is not known")
    return found


def every_index(pair: Pair, numbers: Assignment) -> Iterator[Mapping[str, int]]:
    """Yield all values of a hypothesis's free indices: for each of them it holds.

    Raises OtimesError if there are too many.
    """
    counts = {name: numbers.size(count) for name, (_, count) in inspect(*pair).indices.items()}
    if prod(counts.values()) > MOST_INDICES:
        raise NoValue("a hypothesis is about too many values of its indices")
    for values in product(*map(range, counts.values())):
        yield {**numbers.indices, **dict(zip(counts, values, strict=True))}


def drawn_blocks(signature: Signature, numbers: Assignment, draw: random.Random) -> dict[int, int]:
    """Return the number of rows of blocks for each size of a matrix that is not small."""
    shapes = [array_shape(tensor, numbers)[-2:] for tensor in signature.tensors.values()]
    lengths = sorted({size for shape in shapes for size in shape})
    most = draw.choice((2, 2, 3, 4))
    return {size: draw.choice((most, most, 2, 1)) for size in lengths if size > most}


def drawn_beyond(draw: random.Random, attempt: int) -> Beyond:
    """Return what is beyond the blocks: often the identity everywhere, or zero everywhere."""
    if attempt % 4 < 2:
        return lambda *_: 1 - attempt % 4
    seed, values = draw.random(), (0, 1) if attempt % 4 == 2 else (0, 1, 1, -1, 2)
    return lambda name, at: random.Random(f"{seed} {name}").choice(values)
