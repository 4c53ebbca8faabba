"""Numbers known to lie in an interval: what exact evaluation gives where a value is irrational.

The arithmetic is mpmath's, rounded outwards, so that what is certain of two intervals is certain of
the numbers. Comparing is three-valued: `x != y` says that they certainly differ, `x == y` that they
are certainly equal, and both are False where it is not known.
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
    """A real number between two others."""

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
        """Return whether the number is certainly not zero."""
        return self != 0

    def __float__(self) -> float:
        return float(self.bounds.mid)

    def __str__(self) -> str:
        return f"{float(self):.12g}"

    __repr__ = __str__


def bounds(value: Any) -> Any:
    """Return a number of any exact kind as an interval of mpmath."""
    iv.prec = PRECISION
    if isinstance(value, Interval):
        return value.bounds
    fraction = Fraction(value)
    return iv.mpf(fraction.numerator) / iv.mpf(fraction.denominator)


_times = _operator(lambda x, y: x * y)
