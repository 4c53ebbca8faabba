"""Elimination over the rationals: of sparse rows one by one, and of a dense matrix."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from otimes.algebra.budget import spend, weight

Row = dict[Any, Any]  # integers and Fractions by column; the columns can be ordered


class Echelon:
    """Rows in echelon form, each with its coefficients as a combination of the added rows.

    `cost`: the work of an entry in sixteenths of a step, besides the weight of its number.
    """

    def __init__(self, cost: int) -> None:
        self.cost = cost
        self._pivots: dict[Any, tuple[Row, Row]] = {}

    def add(self, row: Row, combination: Row) -> None:
        """Add a row, which is modified in place."""
        self.reduce(row, combination)
        if row:
            pivot = max(row)
            scale = row[pivot]
            self._pivots[pivot] = _over(row, scale), _over(combination, scale)

    def reduce(self, row: Row, combination: Row) -> None:
        """Subtract multiples of the pivot rows until the row has no pivot."""
        while True:
            spend(1 + len(row))
            pivot = max((key for key in row if key in self._pivots), default=None)
            if pivot is None:
                return
            factor = row[pivot]
            for mine, other in zip((row, combination), self._pivots[pivot], strict=True):
                spend(len(other) * (self.cost + weight(factor)) >> 4)
                _subtract(mine, other, factor)


def reduce_rows(rows: list[list[Any]], width: int) -> list[int]:
    """Bring rows into reduced echelon form in place; return the pivot columns below `width`.

    The entries are integers, Fractions and Intervals.
    """
    pivots: list[int] = []
    for column in range(width):
        k = len(pivots)
        at = next((i for i in range(k, len(rows)) if rows[i][column]), None)
        if at is None:
            continue
        spend(1 + (len(rows) * len(rows[at]) * max(map(weight, rows[at])) >> 4))
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [exact_quotient(x, rows[k][column]) for x in rows[k]]
        for i, row in enumerate(rows):
            if i == k or row[column] == 0:  # an Interval that contains zero is not equal to it
                continue
            rows[i] = _less(row, row[column], rows[k])
        pivots.append(column)
    return pivots


def _less(row: list[Any], factor: Any, other: list[Any]) -> list[Any]:
    """Return a row less a multiple of another one.

    A Fraction is reduced once, and not for the product and for the difference.
    """
    if type(factor) is not Fraction and type(factor) is not int:
        return [x - factor * y for x, y in zip(row, other, strict=True)]
    n, d = factor.as_integer_ratio()
    found = []
    for x, y in zip(row, other, strict=True):
        kinds = type(x), type(y)
        if type(factor) is int and kinds == (int, int):
            found.append(x - factor * y)
        elif kinds[0] in (int, Fraction) and kinds[1] in (int, Fraction):
            (p, q), (r, s) = x.as_integer_ratio(), y.as_integer_ratio()
            plain = not r and kinds[0] is Fraction
            found.append(x if plain else Fraction(p * d * s - n * r * q, q * d * s))
        else:
            found.append(x - factor * y)
    return found


def exact_quotient(a: Any, b: Any) -> Any:
    """Return a / b for integers, Fractions and Intervals; an int where it is integral."""
    if isinstance(a, int) and isinstance(b, int):
        whole, rest = divmod(a, b)
        return Fraction(a, b) if rest else whole
    return a / b


def _over(row: Row, scale: Any) -> Row:
    """Return a row divided by a number; division by ±1, the usual case, keeps integers."""
    if scale in (1, -1):
        return {key: value * scale for key, value in row.items()}
    return {key: Fraction(value) / scale for key, value in row.items()}


def _subtract(row: Row, other: Row, factor: Any) -> None:
    for key, value in other.items():
        total = row.get(key, 0) - factor * value
        if total:
            row[key] = total
        else:
            row.pop(key, None)
