"""Hypotheses about members of families at affine indices, at other indices.

A hypothesis T[l] S[l] = I for all l < N holds at l + 1 and at L as well, where these are in range.
It is stated there for the indices at which the claim has the same families, since a proof matches
the indices of members as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from otimes.algebra.language.trees import key, parts_of

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
    yield from _identified(number, left, right, theirs)
    for choice in islice(product(*ways), 1, MOST):
        shifts = {index: shift for _, index, shift in choice if shift is not None}
        moves = ((n, s[0], *s[2:]) for n, _, s in choice if s is not None)
        fact = "shifted", number, tuple(moves)
        yield fact, moved(left, shifts), moved(right, shifts)


def _identified(
    number: int, left: Any, right: Any, theirs: Sequence[AffineMember]
) -> Iterator[tuple[tuple[Any, ...], Any, Any]]:
    """Yield a hypothesis with several of its indices at one index, as T[k, a] at T[n - 1 - j, j].

    Each index is a number plus or minus the same one, as in a member of the claim; or both are
    equal where a member has their difference.
    """
    indices = dict(inspect(left, right).indices.values())
    both = sympy.Tuple(left, right)
    done: set[Any] = set()
    for member in _members((left, right)):
        turned = (False, True)  # a sum may be read in the other direction
        ways = [_in_one(member, other, indices, way) for other in theirs for way in turned]
        if len(member.forms) == 1 and {*member.forms[0][1]} == {1, -1}:
            counts = {indices.get(v) for v in member.variables}
            if len(member.variables) == 2 and len(counts) == 1 and None not in counts:
                ways.append({v: (sympy.S.Zero, indices[v], 1) for v in member.variables})
        for shifts in ways:
            if not shifts or str(shifts) in done:
                continue
            if len(shifts) == 1 and [*shifts.values()] == [(0, indices[v], 1) for v in shifts]:
                continue
            if not all(only_in_members(both, index) for index in shifts):
                continue
            done.add(str(shifts))
            free = [index for index, shift in shifts.items() if shift[1] != 1]
            one = dict.fromkeys(free, free[0]) if free else {}
            moves = tuple(
                (index.name, shift[0], shift[2], one[index].name if index in one else None)
                for index, shift in shifts.items()
            )
            sides = [substituted(moved(e, shifts), one) for e in (left, right)]
            yield ("shifted", number, moves), *sides


def _in_one(
    member: AffineMember, other: AffineMember, indices: Mapping[Any, Any], turned: bool
) -> dict[Any, tuple[Any, Any, int]] | None:
    """Return shifts of the indices of a member of a hypothesis that make it one of the claim."""
    if other.family != member.family or len(other.variables) > 1 or len(member.forms) < 2:
        return None
    found: dict[Any, tuple[Any, Any, int]] = {}
    values = other.counts[0] if other.variables else sympy.S.One
    for (own, factors), (constant, their) in zip(member.forms, other.forms, strict=True):
        mine = [(v, f) for v, f in zip(member.variables, factors, strict=True) if f]
        slope = their[0] if their else 0
        if turned:
            constant, slope = constant + slope * (values - 1), -slope
        if not mine and not slope and own == constant:
            continue
        if len(mine) != 1 or abs(mine[0][1]) != 1 or abs(slope) > 1 or mine[0][0] in found:
            return None
        ((index, factor),) = mine
        if index not in indices:  # it is bound
            return None
        shift, sign = sympy.expand(factor * (constant - own)), factor * slope
        first = shift + (1 - values if sign < 0 else 0)
        many = values if sign else sympy.S.One
        fits = never_negative(first) and never_negative(indices[index] - first - many)
        if not fits:
            return None
        found[index] = shift, many, sign or 1
    return found


def _members(expressions: Sequence[Any]) -> list[AffineMember]:
    return sorted(
        {member for e in expressions for member in parts_of(e, AffineMember)},
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
