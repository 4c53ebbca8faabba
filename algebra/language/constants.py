"""The number π, a positive scalar of the language with a value of its own.

A proof knows sin and cos at multiples of π/2, and that gelu_tanh is written with √(2/π); for the
rest it holds for any positive number in the place of π. A counterexample has the number itself,
known within an interval.
"""

from __future__ import annotations

from typing import Any

import sympy
from mpmath import iv

from otimes.algebra.language.intervals import Interval, bounds

PI = sympy.Symbol("π", positive=True, rational=False)
"""π, also written `sympy.pi`. A symbol of this name that declares anything else is another one."""

pi = PI


def with_constants(e: Any) -> Any:
    """Return an expression with `PI` for `sympy.pi`.

    >>> with_constants(sympy.sqrt(2 / sympy.pi))
    sqrt(2)/sqrt(π)
    """
    return e.xreplace({sympy.pi: PI}) if isinstance(e, sympy.Basic) and e.has(sympy.pi) else e


def exact_pi() -> Interval:
    """Return π as an interval."""
    bounds(0)  # sets the precision
    return Interval(iv.pi + iv.mpf(0))
