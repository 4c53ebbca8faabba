"""How many values the free indices of expressions have: as many as there are members at them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sympy
from sympy import Symbol

from otimes.algebra.language.affine import never_negative
from otimes.algebra.language.binders import _range_at, _range_in, bindings, indices_of
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum
from otimes.algebra.language.nonlinear import CausalMask
from otimes.algebra.language.positions import OneHotLast, Positions, Shift
from otimes.algebra.language.trees import parts_of

Ranges = dict[Symbol, Any]  # the indices in scope, and the numbers of their values
# What only sizes and names are in: no index is a number there.
ATOMS = (
    *(sympy.MatrixSymbol, sympy.Identity, sympy.OneMatrix, sympy.ZeroMatrix, Family),
    *(CausalMask, Positions, OneHotLast, Shift),
)


def free_ranges(
    expressions: Sequence[Any], affine: frozenset[str], sizes: Collection[Symbol]
) -> Ranges:
    """Return the free indices of expressions with the number of values of each.

    An index that is only the end of a range, as i in Σ_{j ≤ i} x[j], has the range of what is
    summed over; a symbol that counts the values of an index is a size, and no index. One that is
    only in members of `affine` families has the largest range for which all of these exist.
    """
    found: Ranges = {}
    ends: dict[Symbol, list[tuple[Any, Symbol]]] = {}  # with what is summed over the index
    members: list[tuple[Any, frozenset[Symbol]]] = []

    def collect(e: Any, bound: frozenset[Symbol]) -> None:
        if not isinstance(e, sympy.Basic) or isinstance(e, ATOMS):
            return
        if isinstance(e, FamilyMember) and e.family.name in affine:
            members.append((e, bound))
            return
        for index in indices_of(e):
            if not isinstance(index, Symbol) or index in bound or index in sizes:
                continue
            here, known = _range_at(e, index), found.get(index)
            if known is None or (here is not None and never_negative(known - here)):
                found[index] = here  # the smaller of two ranges: all of its members exist
        if isinstance(e, sympy.Sum | HeadSum | LayerProduct):
            for index, _ in bindings(e):
                free = [end for end in _ends(e, index) if end not in bound]
                for end in free:
                    ends.setdefault(end, []).append((e.args[0], index))
        inner = bound | {index for index, _ in bindings(e)}
        for argument in e.args:
            collect(argument, inner)

    for e in expressions:
        collect(e, frozenset())
    of_members = _ranges_of_members(members, sizes)
    for end, inside in ends.items():
        if end not in sizes:
            known_counts = [_range_of(body, index) for body, index in inside]
            known_counts += [of_members.get(end), found.get(end)]
            found[end] = _least([count for count in known_counts if count is not None])
    known = {index: count for index, count in found.items() if count is not None}
    for index in known.keys() & of_members.keys():
        known[index] = _least([known[index], of_members[index]])  # where all members exist
    ranges = {**of_members, **known}
    counts = {symbol for count in ranges.values() for symbol in count.free_symbols}
    return {index: count for index, count in ranges.items() if index not in counts}


def _ranges_of_members(members: Sequence[Any], sizes: Collection[Symbol]) -> Ranges:
    """Return the numbers of values of the free indices i in indices i + c, by index."""
    found: Ranges = {}
    for member, bound in members:
        family = member.family
        for e, count, first in zip(member.indices, family.counts, family.firsts, strict=True):
            free = [s for s in e.free_symbols if s not in bound and s not in sizes]
            rest = sympy.expand(e - free[0]) if len(free) == 1 else None
            alone = rest is not None and (never_negative(rest) if first != 0 else rest.is_Integer)
            if first != 0 and not alone:  # relative positions: of two positions, from 0 to the last
                found |= {s: sympy.expand(first + count) for s in free if s not in found}
            if not alone:
                continue
            most = sympy.expand(first + count - rest)
            known = found.get(free[0], most)
            found[free[0]] = most if never_negative(known - most) else known
    return found


def _range_of(body: Any, index: Symbol) -> Any:
    """Return the number of values of an index for which all members in a body exist, or None."""
    counts = []
    for member in parts_of(body, FamilyMember):
        for e, count, first in zip(
            member.indices, member.family.counts, member.family.firsts, strict=True
        ):
            rest = sympy.expand(e - index)
            if first == 0 and rest.is_Integer:
                counts.append(sympy.expand(count - rest))
    return _least(counts) if counts else _range_in([body], index)


def _least(counts: Sequence[Any]) -> Any:
    """Return the smallest of several counts, as far as they compare; None if there is none."""
    found = None
    for count in counts:
        if found is None or never_negative(sympy.expand(found - count)):
            found = count
    return found


def _ends(e: Any, index: Symbol) -> set[Symbol]:
    """Return the symbols that are an end of the range of an index, up to a number."""
    limits = [part for part in e.args[1:] if isinstance(part, sympy.Tuple) and part[0] == index]
    ends = [end for limit in limits for end in limit[1:]]
    return {s for end in ends for s in end.free_symbols if sympy.expand(end - s).is_Integer}
