"""Functions that may be any, such as g, chosen so that hypotheses about them hold.

Either polynomials are drawn before the matrices, which are then solved for; or the matrices come
first, values are chosen where the hypotheses ask for them, and a polynomial takes these values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sympy

from otimes.algebra.budget import spend
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment
from otimes.algebra.language.functions import KNOWN, Polynomial, interpolated
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.roots import Number
from otimes.algebra.language.trees import parts_of

Pair = tuple[sympy.Basic, sympy.Basic]
Sides = Callable[[Any, Assignment], tuple[Sequence[Any], Sequence[Any]]]
SIMPLE = ((0, 1), (0, 1), (0,), (1,), (2,), (0, -1), (1, 1), (0, 2), (0, 0, 1), (1, 0, -1))
MOST_POINTS = 24  # at which a polynomial has given values
POINT = 30  # work steps for a value of a function at one point


def unknown_in(expressions: Iterable[sympy.Basic]) -> list[str]:
    """Return the names of the functions in expressions that stand for any function."""
    names = {part.name for e in expressions for part in parts_of(e, Activation)}
    return sorted(names - KNOWN.keys())


def drawn_polynomial(draw: random.Random) -> Polynomial:
    """Return a polynomial of which hypotheses often hold: the identity, a constant, a square."""
    if draw.random() < 0.7:
        return Polynomial(draw.choice(SIMPLE))
    return Polynomial(tuple(draw.randint(-2, 2) for _ in range(3)))


class Values:
    """A function by its values, each of which is chosen at its first use."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.known = draw, dict[Number, Number]()

    def __call__(self, x: Any) -> Number:
        if not isinstance(x, int | Fraction):
            raise OtimesError("a function by its values is applied to rational numbers only")
        if x not in self.known:
            self.set(x, self.draw.choice((x, x, 0, 1, x + 1, -x, *self.known.values())))
        return self.known[x]

    def set(self, x: Number, value: Number) -> bool:
        """Choose the value at x, and return whether it is that: it may have been chosen before."""
        spend(POINT)
        if len(self.known) >= MOST_POINTS and x not in self.known:
            raise OtimesError("a function is applied to too many numbers")
        return self.known.setdefault(x, value) == value


def with_functions(
    given: Sequence[Pair], assignment: Assignment, sides: Sides, draw: random.Random
) -> Assignment | None:
    """Return an assignment with values of the unknown functions for which hypotheses may hold.

    `sides` returns the entries of two expressions at an assignment. None if two hypotheses ask for
    different values.
    """
    values = {name: Values(draw) for name in unknown_in(e for pair in given for e in pair)}
    numbers = replace(assignment, functions=values)
    try:
        if not all(_meets(pair, numbers, values, sides) for pair in given):
            return None
    except OtimesError:  # a side without a value
        return None
    extra = [Polynomial((draw.choice((1, -1, 2)), *[0] * draw.choice((0, 0, 1)))) for _ in values]
    functions = {
        name: interpolated(of.known, more)
        for (name, of), more in zip(values.items(), extra, strict=True)
    }
    return replace(assignment, functions=functions)


def _meets(pair: Pair, numbers: Assignment, values: Mapping[str, Values], sides: Sides) -> bool:
    """Choose values for which a hypothesis holds, where a side is a function of something.

    Return False if those that are chosen already do not allow it.
    """
    outer = [values.get(side.name) if isinstance(side, Activation) else None for side in pair]
    inner = [side if of is None else side.argument for side, of in zip(pair, outer, strict=True)]
    f, g = outer
    for x, y in zip(*sides((inner[0], inner[1]), numbers), strict=True):
        if f is not None and g is not None:
            value = f.known[x] if x in f.known else g(y)
            fits = f.set(x, value) and g.set(y, value)
        elif f is not None:
            fits = f.set(x, y)
        elif g is not None:
            fits = g.set(y, x)
        else:
            fits = bool(x == y)
        if not fits:
            return False
    return True
