"""What an expression is worth at given numbers, by loops over lists of Fractions and nothing else.

It shares nothing with `algebra`: it knows the classes of SymPy, and ours by name, and it follows
the textbook definition of each operation entry by entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import isqrt, prod
from typing import Any

import sympy

Rows = list[list[Fraction]]


class Plain:
    """Values by the names of symbols; bound indices are held by the symbols themselves."""

    def __init__(self, numbers: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        self.numbers = {name: Fraction(value) for name, value in numbers.items()}
        self.arrays = arrays

    def value(self, e: Any, at: Mapping[Any, int] | None = None) -> Any:
        """Return a list of rows for a matrix, a Fraction for a scalar."""
        return getattr(self, "at_" + type(e).__name__, self.at_number)(e, at or {})

    def size(self, e: Any) -> int:
        value = self.value(sympy.sympify(e))
        assert value.denominator == 1
        return int(value)

    def position(self, index: Any, at: Mapping[Any, int]) -> int:
        index = sympy.sympify(index)
        if index in at:
            return at[index]
        return int(index) if index.is_Integer else int(self.numbers[index.name])

    # -- scalars

    def at_number(self, e: Any, at: Mapping[Any, int]) -> Fraction:
        assert e.is_Rational, type(e).__name__
        return Fraction(int(e.p), int(e.q))

    def at_Symbol(self, e: Any, at: Mapping[Any, int]) -> Fraction:
        return self.numbers[e.name]

    def at_Pow(self, e: Any, at: Mapping[Any, int]) -> Fraction:
        base, exponent = self.value(e.base, at), Fraction(int(e.exp.p), int(e.exp.q))
        while exponent.denominator % 2 == 0:
            root = Fraction(isqrt(base.numerator), isqrt(base.denominator))
            assert root * root == base, "a root that is not rational"
            base, exponent = root, exponent * 2
        assert exponent.denominator == 1
        return base**exponent.numerator

    def at_Add(self, e: Any, at: Mapping[Any, int]) -> Any:
        values = [self.value(a, at) for a in e.args]
        return _sum(values) if isinstance(values[0], list) else sum(values)

    def at_Mul(self, e: Any, at: Mapping[Any, int]) -> Any:
        number, matrix = Fraction(1), None
        for value in (self.value(a, at) for a in e.args):
            if not isinstance(value, list):
                number *= value
            else:
                matrix = value if matrix is None else _product(matrix, value)
        return number if matrix is None else [[number * x for x in row] for row in matrix]

    def at_Trace(self, e: Any, at: Mapping[Any, int]) -> Fraction:
        return sum((row[k] for k, row in enumerate(self.value(e.args[0], at))), Fraction(0))

    def at_MatrixElement(self, e: Any, at: Mapping[Any, int]) -> Fraction:
        matrix, row, col = e.args
        return self.value(matrix, at)[self.position(row, at)][self.position(col, at)]

    def at_KroneckerDelta(self, e: Any, at: Mapping[Any, int]) -> Fraction:
        return Fraction(self.position(e.args[0], at) == self.position(e.args[1], at))

    def at_Sum(self, e: Any, at: Mapping[Any, int]) -> Fraction:
        indices = [limit[0] for limit in e.limits]
        ranges = [range(self.size(limit[1]), self.size(limit[2]) + 1) for limit in e.limits]
        total = Fraction(0)
        for values in product(*ranges):
            total += self.value(e.function, {**at, **dict(zip(indices, values, strict=True))})
        return total

    # -- matrices

    def at_MatrixSymbol(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return _fractions(self.arrays[e.name])

    def at_FamilyMember(self, e: Any, at: Mapping[Any, int]) -> Rows:
        array = self.arrays[str(e.args[0].args[0].name)]
        for index in e.args[1:]:
            array = array[self.position(index, at)]
        return _fractions(array)

    def at_Identity(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return _filled(self.size(e.shape[0]), self.size(e.shape[0]), lambda r, c: r == c)

    def at_OneMatrix(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return _filled(self.size(e.shape[0]), self.size(e.shape[1]), lambda r, c: 1)

    def at_ZeroMatrix(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return _filled(self.size(e.shape[0]), self.size(e.shape[1]), lambda r, c: 0)

    def at_ImmutableDenseMatrix(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return _filled(e.rows, e.cols, lambda r, c: self.value(e[r, c], at))

    at_MatAdd, at_MatMul = at_Add, at_Mul

    def at_MatPow(self, e: Any, at: Mapping[Any, int]) -> Rows:
        base, exponent = self.value(e.args[0], at), int(e.args[1]) if len(e.args) > 1 else -1
        base = _inverse(base) if exponent < 0 else base
        result = _filled(len(base), len(base), lambda r, c: r == c)
        for _ in range(abs(exponent)):
            result = _product(result, base)
        return result

    at_Inverse = at_MatPow

    def at_Transpose(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return [list(column) for column in zip(*self.value(e.args[0], at), strict=True)]

    def at_KroneckerProduct(self, e: Any, at: Mapping[Any, int]) -> Rows:
        result: Rows = [[Fraction(1)]]
        for factor in (self.value(a, at) for a in e.args):
            result = [[x * y for x in row for y in other] for row in result for other in factor]
        return result

    def at_HadamardProduct(self, e: Any, at: Mapping[Any, int]) -> Rows:
        factors = [self.value(a, at) for a in e.args]
        height, width = len(factors[0]), len(factors[0][0])
        return _filled(height, width, lambda r, c: prod(factor[r][c] for factor in factors))

    def at_HadamardPower(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return [[x ** int(e.args[1]) for x in row] for row in self.value(e.args[0], at)]

    def at_DiagMatrix(self, e: Any, at: Mapping[Any, int]) -> Rows:
        entries = [x for row in self.value(e.args[0], at) for x in row]
        return _filled(len(entries), len(entries), lambda r, c: entries[r] if r == c else 0)

    def at_DiagonalOf(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return [[row[k]] for k, row in enumerate(self.value(e.args[0], at))]

    def at_DiagonalMatrix(self, e: Any, at: Mapping[Any, int]) -> Rows:
        whole = self.value(e.args[0], at)
        return _filled(len(whole), len(whole), lambda r, c: whole[r][c] if r == c else 0)

    def at_BlockMatrix(self, e: Any, at: Mapping[Any, int]) -> Rows:
        height, width = e.blockshape
        lines = [[self.value(e.blocks[r, c], at) for c in range(width)] for r in range(height)]
        return [
            [x for block in line for x in block[r]] for line in lines for r in range(len(line[0]))
        ]

    def at_BlockDiagMatrix(self, e: Any, at: Mapping[Any, int]) -> Rows:
        blocks = [self.value(a, at) for a in e.args]
        widths = [len(block[0]) for block in blocks]
        result = []
        for k, block in enumerate(blocks):
            before, after = sum(widths[:k]), sum(widths[k + 1 :])
            result += [[Fraction(0)] * before + row + [Fraction(0)] * after for row in block]
        return result

    # -- ours

    def each(self, e: Any, at: Mapping[Any, int]) -> Iterator[Rows]:
        indices = [limit[0] for limit in e.args[1:]]
        ranges = [range(self.size(limit[1])) for limit in e.args[1:]]
        for values in product(*ranges):
            yield self.value(e.args[0], {**at, **dict(zip(indices, values, strict=True))})

    def at_HeadSum(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return _sum(list(self.each(e, at)))

    def at_ConcatHeads(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return [[x for row in rows for x in row] for rows in zip(*self.each(e, at), strict=True)]

    def at_StackHeads(self, e: Any, at: Mapping[Any, int]) -> Rows:
        return [row for part in self.each(e, at) for row in part]


def _fractions(array: Any) -> Rows:
    return [[Fraction(x) for x in row] for row in array]


def _filled(height: int, width: int, entry: Any) -> Rows:
    return [[Fraction(entry(r, c)) for c in range(width)] for r in range(height)]


def _sum(matrices: list[Rows]) -> Rows:
    shapes = {(len(matrix), len(matrix[0])) for matrix in matrices}
    ((height, width),) = shapes
    return _filled(height, width, lambda r, c: sum(matrix[r][c] for matrix in matrices))


def _product(left: Rows, right: Rows) -> Rows:
    assert len(left[0]) == len(right)
    inner = range(len(right))
    return _filled(
        len(left), len(right[0]), lambda r, c: sum(left[r][k] * right[k][c] for k in inner)
    )


def _inverse(matrix: Rows) -> Rows:
    """Return the inverse by Cramer's rule, which needs no pivots."""
    determinant = _determinant(matrix)
    if not determinant:
        raise ZeroDivisionError("a singular matrix has no inverse")
    size = len(matrix)

    def cofactor(r: int, c: int) -> Fraction:
        minor = [row[:r] + row[r + 1 :] for k, row in enumerate(matrix) if k != c]
        return (-1) ** (r + c) * _determinant(minor) / determinant

    return _filled(size, size, cofactor)


def _determinant(matrix: Rows) -> Fraction:
    if not matrix:
        return Fraction(1)
    first, *rest = matrix
    return sum(
        (
            (-1) ** k * x * _determinant([row[:k] + row[k + 1 :] for row in rest])
            for k, x in enumerate(first)
            if x
        ),
        Fraction(0),
    )
