"""Numbers known to lie in an interval: the exact evaluation of an irrational value.

The arithmetic is mpmath's, rounded outwards, so a relation that holds for two intervals holds for
the numbers. Comparison is three-valued: `x != y` is True if the numbers certainly differ, `x == y`
if they are certainly equal, and likewise `x < y`; each is False if it is not certain.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mpmath import iv
from mpmath.libmp import from_int, mpf_eq, mpf_le, mpf_lt, mpi_add, mpi_div, mpi_mul, mpi_sub

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.roots import HIGHEST_POWER, exact_root

PRECISION = 200  # bits
Ends = tuple[Any, Any]
"""Both ends of an interval, as mpmath's functions of intervals take them."""


def _operator(join: Callable[[Ends, Ends, int], Ends]) -> Callable[[Any, Any], Interval]:
    """Return a binary operator of intervals from one of mpmath's, called without its checks."""

    def operator(x: Interval, y: Any) -> Interval:
        if not isinstance(y, int | Fraction | Interval):
            return NotImplemented
        return Interval(iv.make_mpf(join(x.bounds._mpi_, _ends(y), PRECISION)))

    return operator


class Interval:
    """A real number, known to lie between two bounds."""

    __slots__ = ("bounds",)

    def __init__(self, bounds: Any) -> None:
        self.bounds = bounds

    __add__ = __radd__ = _operator(mpi_add)
    __sub__, __rsub__ = _operator(mpi_sub), _operator(lambda x, y, bits: mpi_sub(y, x, bits))
    __truediv__ = _operator(mpi_div)
    __rtruediv__ = _operator(lambda x, y, bits: mpi_div(y, x, bits))

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
        (a, b), (c, d) = self.bounds._mpi_, _ends(other)
        return bool(mpf_eq(a, b) and mpf_eq(b, c) and mpf_eq(c, d))

    def __ne__(self, other: object) -> bool:
        (a, b), (c, d) = self.bounds._mpi_, _ends(other)
        return bool(mpf_lt(b, c) or mpf_lt(d, a))

    def __lt__(self, other: Any) -> bool:
        return bool(mpf_lt(self.bounds._mpi_[1], _ends(other)[0]))

    def __gt__(self, other: Any) -> bool:
        return bool(mpf_lt(_ends(other)[1], self.bounds._mpi_[0]))

    def __le__(self, other: Any) -> bool:
        return bool(mpf_le(self.bounds._mpi_[1], _ends(other)[0]))

    def __ge__(self, other: Any) -> bool:
        return bool(mpf_le(_ends(other)[1], self.bounds._mpi_[0]))

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
    return value.bounds if isinstance(value, Interval) else iv.make_mpf(_ends(value))


def root(base: int | Fraction | Interval, exponent: Fraction) -> int | Fraction | Interval:
    """Return a power of a positive number: exactly if it is rational, else within an interval.

    Raises OtimesError for the power of a number that may not be positive.
    """
    if not isinstance(base, Interval):
        try:
            return exact_root(base, exponent)
        except OtimesError:
            if base <= 0 or abs(exponent) > HIGHEST_POWER:
                raise
    x = bounds(base)
    if not x.a > 0:
        raise OtimesError(f"{base}**({exponent}) may not be defined")
    found = iv.sqrt(x) ** exponent.numerator if exponent.denominator == 2 else None
    return Interval(iv.exp(iv.log(x) * bounds(exponent)) if found is None else found)


def _ends(value: Any) -> Ends:
    """Return both ends of an int, Fraction or Interval."""
    if isinstance(value, Interval):
        lower, upper = value.bounds._mpi_
        return lower, upper
    if isinstance(value, int):
        return _of_integer(value)
    fraction = Fraction(value)
    numerator, denominator = map(_of_integer, (fraction.numerator, fraction.denominator))
    ends = mpi_div(numerator, denominator, PRECISION)
    return ends[0], ends[1]


def _of_integer(number: int) -> Ends:
    return from_int(number, PRECISION, "f"), from_int(number, PRECISION, "c")


_times = _operator(mpi_mul)
