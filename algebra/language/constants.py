"""The number π, a positive scalar of the language with a value of its own.

A proof knows sin and cos at multiples of π/6 and π/4, and that gelu_tanh is written with √(2/π);
for the rest it holds for any positive number in the place of π. A counterexample has the number
itself, known within an interval.
"""

from __future__ import annotations

import sympy
from mpmath import iv

from otimes.algebra.language.intervals import Interval, bounds

PI = sympy.Symbol("π", positive=True, rational=False)
"""π, also written `sympy.pi`. A symbol of this name that declares anything else is another one."""

pi = PI


def exact_pi() -> Interval:
    """Return π as an interval."""
    bounds(0)  # sets the precision
    return Interval(iv.pi + iv.mpf(0))
