"""Numbers known to lie in an interval: the exact evaluation of an irrational value.

The arithmetic is mpmath's, rounded outwards, so a relation that holds for two intervals holds for
the numbers. Comparison is three-valued: `x != y` is True if the numbers certainly differ, `x == y`
if they are certainly equal; both are False if neither is certain.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mpmath import iv

PRECISION = 200  # bits


def _operator(join: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Interval]:
    """Return a binary operator of intervals from one of mpmath's."""

    def operator(x: Interval, y: Any) -> Interval:
        if not isinstance(y, int | Fraction | Interval):
            return NotImplemented
        iv.prec = PRECISION
        return Interval(join(x.bounds, bounds(y)))

    return operator


class Interval:
    """A real number, known to lie between two bounds."""

    __slots__ = ("bounds",)

    def __init__(self, bounds: Any) -> None:
        self.bounds = bounds

    __add__ = __radd__ = _operator(lambda x, y: x + y)
    __sub__, __rsub__ = _operator(lambda x, y: x - y), _operator(lambda x, y: y - x)
    __truediv__, __rtruediv__ = _operator(lambda x, y: x / y), _operator(lambda x, y: y / x)

    def __mul__(self, other: Any) -> Any:
        return 0 if isinstance(other, int | Fraction) and other == 0 else _times(self, other)

    __rmul__ = __mul__

    def __neg__(self) -> Interval:
        return Interval(-self.bounds)

    def __pow__(self, exponent: int) -> Any:
        if not isinstance(exponent, int):
            return NotImplemented
        return Interval(self.bounds**exponent) if exponent else 1

    def __abs__(self) -> Interval:
        return Interval(abs(self.bounds))

    def __eq__(self, other: object) -> bool:
        x, y = self.bounds, bounds(other)
        return bool(x.a == x.b == y.a == y.b)

    def __ne__(self, other: object) -> bool:
        x, y = self.bounds, bounds(other)
        return bool(x.b < y.a or y.b < x.a)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        """Return whether the number is certainly nonzero."""
        return self != 0

    def __float__(self) -> float:
        return float(self.bounds.mid)

    def __str__(self) -> str:
        return f"{float(self):.12g}"

    __repr__ = __str__


def bounds(value: Any) -> Any:
    """Return an int, Fraction or Interval as an mpmath interval."""
    iv.prec = PRECISION
    if isinstance(value, Interval):
        return value.bounds
    fraction = Fraction(value)
    return iv.mpf(fraction.numerator) / iv.mpf(fraction.denominator)


_times = _operator(lambda x, y: x * y)
