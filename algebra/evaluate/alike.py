"""Exact values of expressions at large sizes, where almost all rows and columns are alike.

The rows of a matrix are cut in classes: some rows by themselves, and runs of rows that are alike.
If every given matrix is unchanged by any permutation within a run (of rows and columns at once), so
is every expression of them. A run against a run of the same length then has two values, one on its
diagonal and one off it. So a table of classes is the whole matrix: 768 × 768 as 3 × 3. A causal
mask is not unchanged; where its order matters an entry is not known, and is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.budget import spend
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.constants import PI, exact_pi
from otimes.algebra.language.functions import value_of
from otimes.algebra.language.intervals import Interval, root
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import ConcatHeads, FamilyMember, HeadSum, OneHot, StackHeads
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.trees import key

SMALL = 6  # up to this size each row is a class by itself
MOST = 1_000  # terms of a sum or factors of a product that are computed one by one
MAX_CLASSES = 60

Axis = tuple[int, ...]  # the number of rows in each class
Cell = tuple[Any, Any]  # the values on the diagonal of two classes and off it; None if not known


class NoValue(OtimesError):
    """An expression cannot be evaluated by classes of equal rows."""


class _Recut(Exception):
    """Raised when a size was split into more classes; the expressions must be computed again."""


@dataclass(frozen=True, slots=True)
class ByClass:
    """A matrix by classes of equal rows and columns."""

    rows: Axis
    cols: Axis
    table: list[list[Cell]]

    def cells(self) -> Iterator[tuple[int, int, Any]]:
        """Yield one row and column of each value, and the value."""
        starts = [[0, *accumulate(axis)] for axis in (self.rows, self.cols)]
        for p, line in enumerate(self.table):
            for q, (on, off) in enumerate(line):
                yield starts[0][p], starts[1][q], on
                if self.rows[p] == self.cols[q] > 1:
                    yield starts[0][p], starts[1][q] + 1, off


def _is_zero(x: Any) -> bool:
    return x is not None and not isinstance(x, Interval) and x == 0


def _times(x: Any, y: Any) -> Any:
    if _is_zero(x) or _is_zero(y):
        return 0
    return None if x is None or y is None else x * y


def _plus(x: Any, y: Any) -> Any:
    return None if x is None or y is None else x + y


Leaf = Callable[[str, tuple[int, ...], Axis, Axis], ByClass]


class Classes:
    """The evaluation of expressions at numbers; `leaf` gives each matrix by its classes."""

    def __init__(self, numbers: Assignment, leaf: Leaf) -> None:
        self.numbers, self.leaf = numbers, leaf
        self.breaks: dict[int, set[int]] = {}

    def values(self, *pairs: tuple[Any, Any, Mapping[str, int]]) -> list[tuple[Any, Any]]:
        """Return the values of pairs of one shape at indices, each a number or a ByClass."""
        while True:
            try:
                return [self.alike(*pair) for pair in pairs]
            except _Recut:
                if any(len(breaks) > MAX_CLASSES for breaks in self.breaks.values()):
                    raise NoValue("there are too many classes of rows") from None

    def alike(self, lhs: Any, rhs: Any, at: Mapping[str, int]) -> tuple[Any, Any]:
        """Return the values of two expressions of one shape, with the same classes."""
        x, y = (self.value(side, at) for side in (lhs, rhs))
        if isinstance(x, ByClass):
            self.fit(x.rows, y.rows)
            self.fit(x.cols, y.cols)
        return x, y

    # -- classes -----------------------------------------------------------------------------------

    def axis(self, size: Any) -> Axis:
        """Return the classes of a size."""
        length = self.numbers.size(size)
        if length <= SMALL:
            return (1,) * length
        breaks = self.breaks.setdefault(length, {1, 2})
        return tuple([b - a for a, b in pairwise([0, *sorted(breaks), length])])

    def cut(self, size: int, breaks: set[int]) -> None:
        """Record that a size is cut in more classes, if it is not so already."""
        known = self.breaks.setdefault(size, {1, 2})
        if breaks <= known or size <= SMALL:
            raise NoValue("the classes of one size do not fit")
        self.breaks[size] = known | breaks
        raise _Recut

    def fit(self, x: Axis, y: Axis) -> None:
        """Check that two axes of one size have the same classes."""
        if x != y:
            inner = {*[*accumulate(x)][:-1], *[*accumulate(y)][:-1]}
            self.cut(sum(x), inner)

    def place(self, index: int, axis: Axis) -> int:
        """Return the class of a single row."""
        starts = [0, *accumulate(axis)]
        if index in starts[:-1] and axis[starts.index(index)] == 1:
            return starts.index(index)
        size = sum(axis)
        self.cut(size, {index, index + 1} - {0, size})
        raise NoValue

    # -- expressions -------------------------------------------------------------------------------

    def value(self, e: Any, at: Mapping[str, int]) -> Any:
        """Return the value of an expression."""
        spend(10)
        read = _READERS.get(type(e))
        if read is not None:
            return read(self, e, at)
        return self.number(e, at)

    def number(self, e: Any, at: Mapping[str, int]) -> Any:
        """Return the value of a scalar."""
        if isinstance(e, sympy.Rational):
            return Fraction(e.p, e.q) if e.q != 1 else int(e)
        if isinstance(e, sympy.Symbol):
            name = key(e)
            if e == PI:
                return exact_pi()
            for known in (at, self.numbers.sizes, self.numbers.scalars):
                if name in known:
                    return known[name]
        if isinstance(e, sympy.Add | sympy.Mul):
            join = _plus if isinstance(e, sympy.Add) else _times
            total: Any = int(e.identity)
            for arg in e.args:
                total = join(total, self.value(arg, at))
            return total
        if isinstance(e, sympy.Pow):
            return self.scalar_power(e, at)
        if isinstance(e, sympy.Trace):
            x = self.value(e.args[0], at)
            self.fit(x.rows, x.cols)
            return _sum(_times(m, x.table[p][p][0]) for p, m in enumerate(x.rows))
        if isinstance(e, MatrixElement):
            x = self.value(e.args[0], at)
            i, j = (int(self.number(index, at)) for index in e.args[1:])
            return x.table[self.place(i, x.rows)][self.place(j, x.cols)][0]
        if isinstance(e, sympy.Sum) and len(e.limits) == 1:
            return _sum(self.bodies(e.function, *_counted(e.limits[0]), at))
        raise NoValue(f"{type(e).__name__} has no value by classes")

    def scalar_power(self, e: Any, at: Mapping[str, int]) -> Any:
        base, exponent = self.value(e.base, at), e.exp
        if base is None:
            raise NoValue("a power of what is not known")
        if exponent.is_Integer and abs(exponent) < MOST:
            if exponent < 0 and not bool(base != 0):
                raise NoValue("a division by zero")
            return _over(1, base ** -int(exponent)) if exponent < 0 else base ** int(exponent)
        if isinstance(exponent, sympy.Rational):
            return root(base, Fraction(exponent.p, exponent.q))
        raise NoValue("a power without an exact value")

    def bodies(self, body: Any, index: Any, count: Any, at: Mapping[str, int]) -> Iterator[Any]:
        """Yield the values of a body for each value of its index."""
        if isinstance(count, sympy.Symbol) and key(count) in at:  # layers up to another
            many = at[key(count)]
        else:
            many = self.numbers.size(count) if not isinstance(count, int) else count
        if many > MOST:
            raise NoValue("a sum of too many terms")
        for k in range(many):
            yield self.value(body, {**at, key(index): k})

    def mapped(self, change: Callable[..., Any], *given: ByClass) -> ByClass:
        """Return matrices of one shape joined entry by entry."""
        first = given[0]
        for x in given[1:]:
            self.fit(first.rows, x.rows)
            self.fit(first.cols, x.cols)
        table = [
            [tuple([change(*entries) for entries in zip(*cells, strict=True)]) for cells in lines]
            for lines in (
                zip(*line, strict=True) for line in zip(*[x.table for x in given], strict=True)
            )
        ]
        spend(4 * len(first.rows) * len(first.cols))
        return ByClass(first.rows, first.cols, table)

    def constant(self, rows: Axis, cols: Axis, value: Any) -> ByClass:
        return ByClass(rows, cols, [[(value, value)] * len(cols) for _ in rows])

    def diagonal(self, axis: Axis, values: Sequence[Any]) -> ByClass:
        """Return a diagonal matrix."""
        table = [
            [((x if p == q else 0), (x if p == q and m == 1 else 0)) for q in range(len(axis))]
            for p, (m, x) in enumerate(zip(axis, values, strict=True))
        ]
        return ByClass(axis, axis, table)

    def product(self, x: ByClass, y: ByClass) -> ByClass:
        """Return the matrix product."""
        self.fit(x.cols, y.rows)
        spend(4 * len(x.rows) * len(x.cols) * len(y.cols))
        table = []
        for p, m in enumerate(x.rows):
            line = []
            for q, k in enumerate(y.cols):
                on: Any = 0
                off: Any = 0
                for c, n in enumerate(x.cols):
                    both = _joined(x.table[p][c], y.table[c][q], m == n > 1, k == n > 1, n)
                    on, off = _plus(on, both[0]), _plus(off, both[1])
                line.append((on, off))
            table.append(line)
        return ByClass(x.rows, y.cols, table)

    def stacked(self, parts: Sequence[ByClass]) -> ByClass:
        """Return matrices one below the other."""
        rows = tuple([m for part in parts for m in part.rows])
        total, start = sum(rows), 0
        for part in parts:
            self.fit(parts[0].cols, part.cols)
            size = sum(part.rows)
            inner = {b - start for b in self.breaks.get(total, ()) if start < b < start + size}
            if not inner <= {*accumulate(part.rows)}:
                self.cut(size, inner)
            start += size
        return ByClass(rows, parts[0].cols, [line for part in parts for line in part.table])

    def softmax(self, scores: ByClass, mask: ByClass | None) -> ByClass:
        """Return the softmax of each row."""
        mask = self.constant(scores.rows, scores.cols, 1) if mask is None else mask
        self.fit(scores.rows, mask.rows)
        self.fit(scores.cols, mask.cols)
        table = [
            self.weights(m, scores.cols, *lines)
            for m, *lines in zip(scores.rows, scores.table, mask.table, strict=True)
        ]
        return ByClass(scores.rows, scores.cols, table)

    def weights(
        self, m: int, cols: Axis, scores: Sequence[Cell], mask: Sequence[Cell]
    ) -> list[Cell]:
        """Return a row of a softmax, of a class of m rows."""
        spend(200 * len(cols))
        seen = [
            s
            for cells in zip(scores, mask, strict=True)
            for s, kept in zip(*cells, strict=True)
            if not _is_zero(kept)
        ]
        if not seen:
            raise NoValue("a row of a softmax has no weight")
        if any(x is None for x in seen) or any(x is None for cells in mask for x in cells):
            return [(None, None)] * len(cols)
        weights = [
            tuple(
                [
                    0 if _is_zero(kept) else _times(kept, value_of("exp", s - seen[0]))
                    for s, kept in zip(*cells, strict=True)
                ]
            )
            for cells in zip(scores, mask, strict=True)
        ]
        counts = [(1, n - 1) if m == n > 1 else (0, n) for n in cols]
        total = _sum(
            _times(k, w)
            for pair in zip(counts, weights, strict=True)
            for k, w in zip(*pair, strict=True)
        )
        return [(_over(on, total), _over(off, total)) for on, off in weights]

    def inverse(self, x: ByClass) -> ByClass:
        """Return the inverse of a matrix that is diagonal except for its single rows."""
        self.fit(x.rows, x.cols)
        alone = [p for p, m in enumerate(x.rows) if m == 1]
        for p, m in enumerate(x.rows):
            for q, cell in enumerate(x.table[p]):
                if (m > 1 or x.cols[q] > 1) and not _is_zero(cell[1]):
                    raise NoValue("the inverse of a matrix that is not diagonal")
                if p != q and (m > 1 or x.cols[q] > 1) and not _is_zero(cell[0]):
                    raise NoValue("the inverse of a matrix that is not diagonal")
        small = [[x.table[p][q][0] for q in alone] for p in alone]
        if any(not isinstance(v, int | Fraction) for line in small for v in line):
            raise NoValue("the inverse of a matrix that is not rational")
        found = sympy.Matrix(small)
        if found.det() == 0:
            raise NoValue("a matrix without an inverse")
        values = [Fraction(1)] * len(x.rows)
        for p, m in enumerate(x.rows):
            if m > 1:
                values[p] = _over(1, x.table[p][p][0])
        result = self.diagonal(x.rows, values)
        inverse = found.inv()
        for i, p in enumerate(alone):
            for j, q in enumerate(alone):
                entry = Fraction(int(inverse[i, j].p), int(inverse[i, j].q))
                result.table[p][q] = (entry, entry)
        return result


def _joined(a: Cell, b: Cell, left: bool, right: bool, n: int) -> Cell:
    """Return the sum over a class of n of a product; `left` and `right`: it has a diagonal."""
    if left and right:
        on = _plus(_times(a[0], b[0]), _times(n - 1, _times(a[1], b[1])))
        off = _plus(_times(a[0], b[1]), _times(a[1], b[0]))
        return on, _plus(off, _times(n - 2, _times(a[1], b[1])))
    if left:
        both = _times(_plus(a[0], _times(n - 1, a[1])), b[1])
    elif right:
        both = _times(a[1], _plus(b[0], _times(n - 1, b[1])))
    else:
        both = _times(n, _times(a[1], b[1]))
    return both, both


def _sum(values: Any) -> Any:
    total: Any = 0
    for value in values:
        total = _plus(total, value)
    return total


def _over(x: Any, y: Any) -> Any:
    if x is None or y is None:
        return None
    if not bool(y != 0):
        raise NoValue("a division by what may be zero")
    if isinstance(x, int | Fraction) and isinstance(y, int | Fraction):
        return Fraction(x) / y
    return 0 if _is_zero(x) else x / y


def _counted(limit: Any) -> tuple[Any, Any]:
    index, _, last = limit
    return index, last + 1


def _turned(x: ByClass) -> ByClass:
    return ByClass(x.cols, x.rows, [list(column) for column in zip(*x.table, strict=True)])


# -- the classes of the language -------------------------------------------------------------------

_READERS: dict[type, Callable[[Classes, Any, Mapping[str, int]], Any]] = {}


def _reads(*kinds: type) -> Callable[[Any], Any]:
    def declare(read: Any) -> Any:
        _READERS.update(dict.fromkeys(kinds, read))
        return read

    return declare


@_reads(sympy.MatrixSymbol)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    return own.leaf(e.name, (), *map(own.axis, e.shape))


@_reads(FamilyMember)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    indices = tuple([int(own.number(index, at)) for index in e.indices])
    return own.leaf(e.family.name, indices, *map(own.axis, e.family.shape))


@_reads(AffineMember)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    place = e.place(lambda size: own.number(size, at), lambda index: own.number(index, at))
    counts = [int(own.number(count, at)) for count in e.family.counts]
    if not all(0 <= k < count for k, count in zip(place, counts, strict=True)):
        raise NoValue("an index is out of range at these sizes")
    return own.leaf(e.family.name, place, *map(own.axis, e.family.shape))


@_reads(sympy.Identity)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    axis = own.axis(e.args[0])
    return own.diagonal(axis, [1] * len(axis))


@_reads(sympy.OneMatrix, sympy.ZeroMatrix)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    rows, cols = map(own.axis, e.args)
    return own.constant(rows, cols, int(isinstance(e, sympy.OneMatrix)))


@_reads(OneHot)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    axis = own.axis(e.args[1])
    chosen = own.place(int(own.number(e.args[0], at)), axis)
    return ByClass(axis, (1,), [[(int(p == chosen),) * 2] for p in range(len(axis))])


@_reads(CausalMask)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    axis = own.axis(e.args[0])
    table = [
        [(1, None if m > 1 else 1) if p == q else (int(q < p),) * 2 for q in range(len(axis))]
        for p, m in enumerate(axis)
    ]
    return ByClass(axis, axis, table)


@_reads(sympy.MatAdd)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    return own.mapped(lambda *x: _sum(x), *[own.value(arg, at) for arg in e.args])


@_reads(sympy.MatMul, sympy.Mul)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    matrices = [arg for arg in e.args if getattr(arg, "is_Matrix", False)]
    numbers = [arg for arg in e.args if not getattr(arg, "is_Matrix", False)]
    factor: Any = 1
    for number in numbers:
        factor = _times(factor, own.value(number, at))
    if not matrices:
        return factor
    result = own.value(matrices[0], at)
    for arg in matrices[1:]:
        result = own.product(result, own.value(arg, at))
    return result if factor == 1 else own.mapped(lambda x: _times(factor, x), result)


@_reads(sympy.Transpose, sympy.Adjoint)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    return _turned(own.value(e.args[0], at))


@_reads(sympy.HadamardProduct)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    def product(*entries: Any) -> Any:
        result: Any = 1
        for entry in entries:
            result = _times(result, entry)
        return result

    return own.mapped(product, *[own.value(arg, at) for arg in e.args])


@_reads(sympy.HadamardPower)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    exponent = int(e.args[1])
    return own.mapped(lambda x: None if x is None else x**exponent, own.value(e.args[0], at))


@_reads(sympy.Inverse)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    return own.inverse(own.value(e.args[0], at))


@_reads(sympy.MatPow)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    base, exponent = own.value(e.base, at), int(e.exp)
    if abs(exponent) > MOST:
        raise NoValue("a power that is too high")
    base = own.inverse(base) if exponent < 0 else base
    result = own.diagonal(base.rows, [1] * len(base.rows))
    for _ in range(abs(exponent)):
        result = own.product(result, base)
    return result


@_reads(DiagMatrix)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    x = own.value(e.args[0], at)
    x = x if len(x.cols) == 1 and x.cols == (1,) else _turned(x)
    return own.diagonal(x.rows, [line[0][0] for line in x.table])


@_reads(DiagonalOf)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    x = own.value(e.args[0], at)
    own.fit(x.rows, x.cols)
    return ByClass(x.rows, (1,), [[(x.table[p][p][0],) * 2] for p in range(len(x.rows))])


@_reads(RowSoftmax)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    scores, *mask = [own.value(arg, at) for arg in e.args]
    known = all(x is not None for part in mask for _, _, x in part.cells())
    if not known and not isinstance(e.mask, CausalMask):
        raise NoValue("a mask that is not known")
    return own.softmax(scores, mask[0] if mask else None)


@_reads(Activation)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    def change(x: Any) -> Any:
        if x is None:
            raise NoValue("a function of what is not known")
        return value_of(e.name, x, own.numbers.functions)

    return own.mapped(change, own.value(e.argument, at))


@_reads(RMSNorm, LayerNorm)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    return own.value(definition(e), at)


@_reads(HeadSum)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    if len(e.limits) != 1:
        raise NoValue("a sum over several indices")
    ((index, count),) = e.limits
    return own.mapped(lambda *x: _sum(x), *own.bodies(e.body, index, count, at))


@_reads(StackHeads, ConcatHeads)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    if len(e.limits) != 1:
        raise NoValue("heads over several indices")
    ((index, count),) = e.limits
    parts = [*own.bodies(e.body, index, count, at)]
    if isinstance(e, StackHeads):
        return own.stacked(parts)
    return _turned(own.stacked([*map(_turned, parts)]))


@_reads(LayerProduct)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    parts = [*own.bodies(e.body, e.index, e.count, at)]
    if not parts:
        raise NoValue("a product of no layers")
    result = parts[0]
    for part in parts[1:]:
        result = own.product(result, part) if e.reverse else own.product(part, result)
    return result


@_reads(sympy.BlockMatrix)
def _(own: Classes, e: Any, at: Mapping[str, int]) -> Any:
    lines = [[_turned(own.value(part, at)) for part in line] for line in e.blocks.tolist()]
    return own.stacked([_turned(own.stacked(line)) for line in lines])
