"""Admissible values of a claim's symbols: sizes of at least 1, and scalars as assumed.

Every length in a claim is at least 1: not only each size symbol, but also H - 2 as a number of
heads, n - 1 as a dimension or L - 1 as a number of layers. A proof holds only for such values, so a
counterexample must have them too. The only exception is a count of layers written as the number 0
in the claim itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import sympy
from sympy.core.relational import Relational

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, exact_value
from otimes.algebra.language.assumptions import NOTHING, Condition, Flags
from otimes.algebra.language.roots import Number
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.trees import key

SIZE_TRIES = 24  # after which sizes are drawn from ranges that double
SCALAR_TRIES = 64
LARGEST_SIZE = 1_000
DENOMINATORS = (2, 3, 4, 10)
SPECIAL: tuple[Number, ...] = (0, 1, 1, 2, -1)
PARTS: tuple[Number, ...] = tuple(Fraction(p, q) for p, q in ((1, 2), (1, 3), (2, 3), (-1, 2)))

_HOLDS: dict[str, Callable[[Any], bool]] = {
    "positive": lambda x: x > 0,
    "negative": lambda x: x < 0,
    "nonnegative": lambda x: x >= 0,
    "nonpositive": lambda x: x <= 0,
    "nonzero": lambda x: x != 0,
    "integer": lambda x: Fraction(x).denominator == 1,
    "even": lambda x: x % 2 == 0,
    "odd": lambda x: x % 2 == 1,
}


def admits(signature: Signature, assignment: Assignment) -> bool:
    """Return whether an assignment meets a claim's conditions on sizes, signs, inequalities."""
    return (
        admits_sizes(signature, assignment)
        and all(fits(value, signature, name) for name, value in assignment.scalars.items())
        and _meets(signature.assumptions.conditions, assignment)
    )


def admits_sizes(signature: Signature, assignment: Assignment) -> bool:
    """Return whether every length is at least 1 and exceeds the fixed indices of its range.

    Parities, and inequalities in sizes only, are checked as well.
    """
    sizes, signs = assignment.sizes, signature.assumptions.signs
    of_sizes = [c for c in signature.assumptions.conditions if c.names <= sizes.keys()]
    return (
        all(sizes[name] >= 1 for name in signature.sizes)
        and all(assignment.size(size) >= 1 for size in signature.dimensions)
        and all(assignment.size(count) > index for count, index in signature.fixed.items())
        and all(fits(sizes[name], signature, name) for name in signs if name in sizes)
        and _meets(of_sizes, assignment)
    )


def fits(value: Number, signature: Signature, name: str) -> bool:
    """Return whether a number satisfies the assumptions of the symbol with this name."""
    flags = signature.assumptions.signs.get(name, ())
    return all(_HOLDS[flag](value) for flag in flags if flag in _HOLDS)


def _meets(conditions: Iterable[Condition], assignment: Assignment) -> bool:
    """Return whether the inequalities hold; False if one of them is undefined."""
    try:
        return all(_HOLDS[c.kind](exact_value(c.expression, assignment)) for c in conditions)
    except OtimesError:
        return False


def presupposed(signature: Signature) -> tuple[Relational, ...]:
    """Return the inequalities `length ≥ 1` for the lengths that could be smaller."""
    lengths = {size: 1 for size in signature.dimensions if not _from_one_on(size)}
    for count, index in signature.fixed.items():
        if index and not count.is_Integer:
            lengths[count] = index + 1
    order = sorted(lengths, key=sympy.default_sort_key)
    return tuple(sympy.Ge(size, lengths[size], evaluate=False) for size in order)


def presupposed_by_sums(sides: Iterable[Any], signature: Signature) -> tuple[Relational, ...]:
    """Return `count ≥ 1` for symbols that count the terms of sums and are not said to be positive.

    A sum may well have no terms, but what is decided holds for sizes, and these are 1 or more.
    """
    sums = [e for side in sides if isinstance(side, sympy.Basic) for e in side.atoms(sympy.Sum)]
    ends = {sympy.expand(limit[2] + 1) for e in sums for limit in e.limits if len(limit) == 3}
    open_to_zero = {
        end for end in ends if end.is_Symbol and not end.is_positive and key(end) in signature.sizes
    }
    return tuple(sympy.Ge(end, 1, evaluate=False) for end in sorted(open_to_zero, key=str))


def _from_one_on(size: sympy.Expr) -> bool:
    """Return whether a polynomial in sizes is at least 1 for all sizes 1 + x, x ≥ 0."""
    above = {symbol: 1 + symbol for symbol in size.free_symbols}
    shifted = sympy.Poly(size.xreplace(above), *above)
    return bool(all(c >= 0 for c in shifted.coeffs()) and shifted.nth(*[0] * len(above)) >= 1)


# -- draws -----------------------------------------------------------------------------------------


def draw_sizes(
    signature: Signature, draw: random.Random, largest: int, roots: Mapping[str, int]
) -> dict[str, int] | None:
    """Return random sizes up to `largest`, or larger ones if the claim requires it."""
    for limit in _limits(largest):
        drawn = {}
        for name in signature.sizes:
            value = draw.choice((limit, limit, draw.randint(1, limit)))
            if not fits(value, signature, name):
                value += 1
            drawn[name] = value ** roots.get(name, 1)
        sizes = grown(drawn, signature)
        assignment = Assignment(sizes, {})
        if admits_sizes(signature, assignment):
            return sizes
        if not (signature.dimensions or signature.assumptions.conditions):
            return None
    return None


def _limits(largest: int) -> Iterator[int]:
    yield from range(largest, largest + SIZE_TRIES)
    limit = 2 * (largest + SIZE_TRIES)
    while limit < LARGEST_SIZE:
        yield limit
        limit *= 2


def grown(sizes: Mapping[str, int], signature: Signature) -> dict[str, int]:
    """Return sizes increased as far as fixed indices and declared parities require."""
    raised = dict(sizes)
    for count, index in signature.fixed.items():
        if isinstance(count, sympy.Symbol):
            raised[key(count)] = max(raised[key(count)], index + 1)
    for name in signature.assumptions.signs:
        if name in raised and not fits(raised[name], signature, name):
            raised[name] += 1
    return raised


def draw_scalars(
    signature: Signature,
    sizes: Mapping[str, int],
    draw: random.Random,
    entries: int,
    roots: Mapping[str, int],
) -> dict[str, Number] | None:
    """Return random scalars up to `entries`, larger or fractional ones if conditions require it.
    None if no values were found that satisfy the inequalities. Symbols under a q-th root take q-th
    powers.
    """
    known, conditions = signature.assumptions.known, signature.assumptions.conditions
    with_fractions = draw.choice((0, 1, 1)) if conditions else 1  # every second attempt
    for attempt in range(SCALAR_TRIES if conditions else 1):
        largest = entries << max(0, attempt // 4 - 2)  # within reach first, then far away
        drawn: dict[str, Number] = {}
        for name in signature.unknown:
            flags, degree = known.get(name, NOTHING), roots.get(name, 1)
            value: Number = _draw_integer(flags, draw, largest, degree > 1)
            if attempt % 2 == with_fractions and "integer" not in flags:
                value = Fraction(value, draw.choice(DENOMINATORS))
                value = value if value.denominator > 1 else int(value)
            drawn[name] = value**degree
        if not conditions or _meets(conditions, Assignment(sizes, {}, {}, drawn)):
            return drawn
    return None


def _draw_integer(flags: Flags, draw: random.Random, largest: int, positive: bool) -> int:
    """Return an integer with these assumptions, mostly up to `largest` in absolute value."""
    if {"nonnegative", "nonpositive"} <= flags:
        return 0
    if {"nonpositive", "nonzero"} <= flags:
        value = -draw.randint(1, largest)
    elif positive or {"nonnegative", "nonzero"} <= flags:
        value = draw.randint(1, largest)
    elif "nonnegative" in flags:
        value = draw.randint(0, largest)
    elif "nonpositive" in flags:
        value = -draw.randint(0, largest)
    else:
        value = draw.randint(-largest, largest) or 1
    if "even" in flags:
        return 2 * value
    if "odd" in flags:  # of the same sign
        return 2 * value + 1 if value <= 0 and "nonpositive" not in flags else 2 * value - 1
    return value


def special(
    signature: Signature, draw: random.Random, roots: Mapping[str, int]
) -> dict[str, Number]:
    """Return special values of the scalars, such as 0 and 1, at which more hypotheses hold."""
    found: dict[str, Number] = {}
    bounded = set(signature.assumptions.signs).union(
        *[each.names for each in signature.assumptions.conditions]
    )
    for name in signature.unknown:
        if name not in roots:
            value = draw.choice(SPECIAL + PARTS if name in bounded else SPECIAL)
            if fits(value, signature, name):
                found[name] = value
    return found
