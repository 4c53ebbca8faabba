"""Hypotheses about members of families at affine indices, at other indices.

A hypothesis T[l] S[l] = I for all l < N holds at l + 1 and at L as well, where these are in range.
It is stated there for the indices at which the claim has the same families, since a proof matches
the indices of members as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

import sympy

from otimes.algebra.language.affine import (
    AffineMember,
    Shift,
    moved,
    never_negative,
    only_in_members,
)
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.trees import key

MOST = 40  # instances of one hypothesis


def shifted(
    number: int, left: Any, right: Any, sides: Sequence[Any]
) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield a hypothesis at other indices of the members that it shares with the claim."""
    mine = _members((left, right))
    if not mine:
        return
    theirs = _members(sides)
    ways = []
    for name, (index, count) in inspect(left, right).indices.items():
        found = dict.fromkeys(_shifts(index, count, mine, theirs))
        if found and only_in_members(sympy.Tuple(left, right), index):
            ways.append([(name, index, None), *[(name, index, shift) for shift in found]])
        else:
            ways.append([(name, index, None)])
    for choice in islice(product(*ways), 1, MOST):
        shifts = {index: shift for _, index, shift in choice if shift is not None}
        moves = ((n, s[0], *s[2:]) for n, _, s in choice if s is not None)
        fact = "shifted", number, tuple(moves)
        yield fact, moved(left, shifts), moved(right, shifts)


def _members(expressions: Sequence[Any]) -> list[AffineMember]:
    return sorted(
        {member for e in expressions for member in e.atoms(AffineMember)},
        key=sympy.default_sort_key,
    )


def _shifts(
    index: Any, count: Any, mine: Sequence[AffineMember], theirs: Sequence[AffineMember]
) -> Iterator[Shift]:
    """Yield the shifts of an index under which a member of a hypothesis is one of the claim."""
    for member in mine:
        if index not in member.variables or len(member.variables) != 1:
            continue
        ((own, (factor,)), *more) = member.forms
        if more or factor != 1:
            continue
        for other in theirs:
            if other.family != member.family or len(other.variables) > 1:
                continue
            ((constant, factors),) = other.forms
            if factors not in ((), (1,), (-1,)):
                continue
            values = other.counts[0] if factors else sympy.S.One
            for shift in _ways(sympy.expand(constant - own), values, factors == (-1,)):
                first = shift[0] + 1 - values if len(shift) > 2 else shift[0]
                fits = never_negative(first) and never_negative(count - first - values)
                if fits and shift != (0, count):
                    yield shift


def _ways(shift: Any, values: Any, turned: bool) -> Iterator[Shift]:
    """Yield the shifts for c - l, where a sum over l may be read in the other direction."""
    if turned:
        yield shift, values, -1
        shift = sympy.expand(shift + 1 - values)
    yield shift, values


def at_last(
    number: int, left: Any, right: Any, last: Any, depth: Any, value: Any
) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield a hypothesis for all layers at the last one, whose number is `value`.

    At affine indices stands the number, and elsewhere the index `last`.
    """
    if not _members((left, right)):
        return
    for name, (index, count) in inspect(left, right).indices.items():
        if count == depth and index != last:
            sides = [
                moved(substituted(e, {index: last}), {last: (value, 1)}) for e in (left, right)
            ]
            yield ("last", number, key(last), ((name, depth),)), *sides
