"""The numbers p + q log 2 for rational p and q, of which exp and log are exact.

Trials under hypotheses need numbers at which these hold exactly. At integers exp is irrational
but for exp(0), so that a hypothesis such as S[t + 1] = exp(-m[t]) S[t] would hold at m = 0 only; at
multiples of log 2 it is a power of two.

>>> LOG2 + LOG2, 3 * LOG2 - 1, LOG2 - LOG2
(2*np.log(2), -1 + 3*np.log(2), 0)
>>> power_of_two(-2 * LOG2), logarithm_of(8)
(Fraction(1, 4), 3*np.log(2))
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from mpmath import iv

from otimes.algebra.language.intervals import PRECISION, Interval, bounds
from otimes.algebra.language.roots import HIGHEST_POWER

Rational = int | Fraction


class Logarithm(Interval):
    """The number p + q log 2, with q ≠ 0: irrational, and equal to no other such number."""

    __slots__ = ("factor", "rational")
    rational: Rational
    factor: Rational

    def __init__(self, rational: Rational, factor: Rational) -> None:
        self.rational, self.factor = rational, factor

    @property
    def bounds(self) -> Any:
        """The interval that the number lies in."""
        iv.prec = PRECISION
        return bounds(self.rational) + bounds(self.factor) * iv.log(iv.mpf(2))

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Logarithm):
            return _number(self.rational + other.rational, self.factor + other.factor)
        if isinstance(other, int | Fraction):
            return Logarithm(self.rational + other, self.factor)
        return super().__add__(other)

    __radd__ = __add__

    def __neg__(self) -> Logarithm:
        return Logarithm(-self.rational, -self.factor)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int | Fraction):
            return _number(self.rational * other, self.factor * other)
        return super().__mul__(other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, int | Fraction) and other:
            return self * Fraction(1, other)
        if isinstance(other, Logarithm) and not (self.rational or other.rational):
            return _whole(Fraction(self.factor) / other.factor)
        return super().__truediv__(other)

    def __abs__(self) -> Logarithm:
        return self if self > 0 else -self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Logarithm):
            return (self.rational, self.factor) == (other.rational, other.factor)
        return not isinstance(other, int | Fraction) and super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        exact = isinstance(other, Logarithm | int | Fraction)
        return not self == other if exact else super().__ne__(other)

    def __le__(self, other: Any) -> bool:
        return self == other or super().__le__(other)

    def __ge__(self, other: Any) -> bool:
        return self == other or super().__ge__(other)

    __hash__ = None

    def __str__(self) -> str:
        """Return the number as it is written in Python."""
        p, q = _whole(self.rational), _whole(self.factor)
        sign, size = ("-", -q) if q < 0 else ("", q)
        of_log = "np.log(2)" if size == 1 else f"{_written(size)}*np.log(2)"
        return f"{_written(p)} {sign or '+'} {of_log}" if p else sign + of_log

    __repr__ = __str__


def _number(rational: Rational, factor: Rational) -> Rational | Logarithm:
    return Logarithm(rational, factor) if factor else _whole(rational)


def _whole(x: Rational) -> Rational:
    return int(x) if x.denominator == 1 else x


def _written(x: Rational) -> str:
    return repr(_whole(x))


LOG2 = Logarithm(0, 1)


def power_of_two(x: Any) -> Rational | None:
    """Return exp(x) if x is an integer times log 2, None for other numbers."""
    if not isinstance(x, Logarithm) or x.rational or Fraction(x.factor).denominator != 1:
        return None
    if not -HIGHEST_POWER <= x.factor <= HIGHEST_POWER:
        return None
    return _whole(Fraction(2) ** int(x.factor))


def value_at(name: str, x: Any) -> Rational | Logarithm | None:
    """Return the value of a named function at such a number if it is exact, else None."""
    if name in ("relu", "abs"):
        return abs(x) if x > 0 or name == "abs" else 0
    power = power_of_two(x)
    if power is None or name not in OF_POWERS:
        return None
    found = OF_POWERS[name](x, Fraction(power))
    return found if isinstance(found, Logarithm) else _whole(found)


OF_POWERS: dict[str, Callable[[Any, Fraction], Any]] = {
    "exp": lambda x, power: power,
    "sigmoid": lambda x, power: power / (1 + power),
    "silu": lambda x, power: x * (power / (1 + power)),
    "tanh": lambda x, power: 1 - 2 / (power * power + 1),
}


def logarithm_of(x: Any) -> int | Logarithm | None:
    """Return log(x) of a power of two, None for other numbers."""
    if isinstance(x, Interval) or x <= 0:
        return None
    p, q = Fraction(x).as_integer_ratio()
    if p & (p - 1) or q & (q - 1):
        return None
    power = p.bit_length() - q.bit_length()
    return Logarithm(0, power) if power else 0
