"""Families that recurrences define, as S[0] = A and S[l + 1] = W S[l] + B[l], computed in order.

Where each hypothesis about S gives a member by members before it, there is nothing to solve: one
member after the other is computed. Whether the hypotheses hold then is checked by who asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment
from otimes.algebra.evaluate.exact_arrays import ExactArray
from otimes.algebra.language.affine import AffineMember, never_negative
from otimes.algebra.language.linear import Family

Pair = tuple[Any, Any]


def last_to_be_known(order: Sequence[str], given: Sequence[Pair]) -> list[str] | None:
    """Return names of tensors in another order: a family after all that its recurrences are of.

    None where there are no recurrences.
    """
    needs: dict[str, set[str]] = {}
    for pair in given:
        if (found := _defined(pair)) is not None:
            member, value = found
            families = {e.name for e in value.atoms(Family)}
            named = families | {e.name for e in value.atoms() if hasattr(e, "shape")}
            needs.setdefault(member.family.name, set()).update(named - {member.family.name})
    if not needs:
        return None
    made = [name for name in order if name not in needs]
    rest = [name for name in order if name in needs]
    while rest:
        ready = [name for name in rest if not needs[name] & {*rest}]
        made += ready or rest
        rest = [name for name in rest if ready and name not in ready]
    return made


def is_rolled_out(name: str, given: Sequence[Pair]) -> bool:
    """Return whether a family has recurrences among hypotheses."""
    found = [one for pair in given if (one := _defined(pair)) is not None]
    return any(member.family.name == name for member, _ in found)


def rolled_out(
    name: str,
    given: Sequence[Pair],
    assignment: Assignment,
    at_every_index: Callable[[Pair, Assignment], Iterator[Assignment]],
    value: Callable[[Any, Assignment], Any],
) -> ExactArray | None:
    """Return the array of a family by its recurrences among hypotheses, or None without any.

    Members that no recurrence gives are those of the assignment.
    """
    every = [(pair, one) for pair in given if (one := _defined(pair)) is not None]
    found = [(pair, one) for pair, one in every if one[0].family.name == name]
    if not found:
        return None
    drawn = assignment.arrays[name]
    array = ExactArray(drawn.shape, [*drawn.flat])
    numbers = Assignment(
        assignment.sizes,
        {**assignment.arrays, name: array},
        assignment.indices,
        assignment.scalars,
        functions=assignment.functions,
    )
    for pair, (member, expression) in sorted(found, key=lambda each: len(each[1][0].variables)):
        length = prod(drawn.shape[len(member.family.counts) :])
        try:
            for each in at_every_index(pair, numbers):
                at = {str(k): x for k, x in each.indices.items()}
                place = member.place(each.size, lambda v, at=at: at[str(v)])
                start = 0
                for k, count in zip(place, drawn.shape, strict=False):
                    if not 0 <= k < count:
                        return None
                    start = start * count + k
                array.flat[start * length : (start + 1) * length] = value(expression, each).flat
        except OtimesError:
            return None
    return ExactArray(drawn.shape, [*array.flat])


def _defined(pair: Pair) -> tuple[AffineMember, Any] | None:
    """Return a member and its value by members before it, where a hypothesis is of this form."""
    for member, value in (pair, pair[::-1]):
        if not isinstance(member, AffineMember):
            continue
        own = [e for e in value.atoms(AffineMember) if e.family == member.family]
        plain = all(sum(map(abs, factors)) <= 1 for _, factors in member.forms)
        if plain and all(map(_before(member), own)):
            return member, value
    return None


def _before(member: AffineMember) -> Callable[[AffineMember], bool]:
    """Return whether another member has a smaller first index, and the same variables in it."""
    constant, factors = member.forms[0]

    def before(other: AffineMember) -> bool:
        own, others = other.forms[0]
        alike = (factors, member.variables) == (others, other.variables)
        return alike and never_negative(constant - own - 1)

    return before
