"""Exact roots of rational numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import sympy

from otimes.algebra.errors import OtimesError

Number: TypeAlias = int | Fraction
HIGHEST_POWER = 10_000


def exact_root(base: Number, exponent: Fraction) -> Number:
    """Return base**exponent when it is rational, else raise OtimesError."""
    value = Fraction(base)
    if value == 0 and exponent > 0:
        return 0
    if value <= 0:
        raise OtimesError(f"{base}**({exponent}) is not rational")
    parts = [sympy.integer_nthroot(part, exponent.denominator) for part in value.as_integer_ratio()]
    if not all(is_exact for _, is_exact in parts):
        raise OtimesError(f"{base}**({exponent}) is not rational")
    if abs(exponent.numerator) > HIGHEST_POWER:
        raise OtimesError(f"a power of {exponent.numerator} is not computed exactly")
    root = Fraction(int(parts[0][0]), int(parts[1][0])) ** exponent.numerator
    return int(root) if root.denominator == 1 else root
