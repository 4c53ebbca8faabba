"""Powers whose exponents subtract an index, as A^(i - 1 - j), as members of a family.

P[k] stands for Aᵏ, where P[0] = I and P[k + 1] = A P[k] = P[k] A for all k from 0 on. Below 0 it
stands for nothing: such an exponent must not occur, as it does not in Σ_{j<i} A^(i - 1 - j) B[j].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import sympy
from sympy import Symbol

from otimes.algebra.language.affine import AffineMember, never_negative
from otimes.algebra.language.binders import fresh_name
from otimes.algebra.language.linear import Family, matmul
from otimes.algebra.language.unicode import short_text

Powers = dict[Any, Family]  # by the base


def add_power(
    powers: Powers, base: Any, exponent: Any, ranges: Mapping[Symbol, Any], names: set[str]
) -> None:
    """Add the family of the powers of a matrix, or make it large enough for one more exponent."""
    reach = reach_of(exponent, ranges)
    known = powers.get(base)
    if known is not None:
        last = sympy.expand(known.firsts[0] * -1)
        if never_negative(last - reach):
            return
        reach = sympy.expand(last + reach) if not never_negative(reach - last) else reach
    name = known.name if known is not None else fresh_name(f"{short_text(base)}^", names)
    names.add(name)
    powers[base] = Family(name, ((-reach, reach),), *base.shape)


def reach_of(exponent: Any, ranges: Mapping[Symbol, Any]) -> Any:
    """Return a size that the absolute value of an exponent does not exceed: n for i - 1 - j."""
    sizes: dict[Any, Any] = {}
    more, rest = exponent.as_coeff_Add()
    for term in sympy.Add.make_args(rest):
        times, one = term.as_coeff_Mul()
        size = ranges.get(one, one)
        sizes[size] = max(sizes.get(size, 0), abs(times))
    return sympy.expand(sum(times * size for size, times in sizes.items()) + max(more, 0))


def is_power(e: Any) -> bool:
    """Return whether an expression is a member of a family of powers."""
    return isinstance(e, AffineMember) and e.family.name.rstrip("′").endswith("^")


def definitions(base: Any, family: Family) -> list[tuple[Any, Any]]:
    """Return what says that the members of a family are the powers of a matrix."""
    last = -1 * family.firsts[0]
    k = Symbol("k", integer=True)
    now = AffineMember(family, [(0, 1)], [last], k)
    more = AffineMember(family, [(1, 1)], [last], k)
    first = AffineMember(family, [(0,)], []), sympy.Identity(base.shape[0])
    on_the_right = [(more, matmul(now, base))] * (base.shape[0] != 1)
    return [first, (more, matmul(base, now)), *on_the_right]


def first_powers(given: Sequence[Any]) -> dict[Any, AffineMember]:
    """Return the members that stand for A⁰ by definitions among hypotheses, by A."""
    found: dict[Any, AffineMember] = {}
    for (one, identity), (more, made) in pairwise(given):
        if not (isinstance(identity, sympy.Identity) and isinstance(made, sympy.MatMul)):
            continue
        *base, now = made.args
        members = [e for e in (one, more, now) if isinstance(e, AffineMember)]
        forms = [e.forms for e in members if e.family == members[0].family]
        if forms == [((0, ()),), ((1, (1,)),), ((0, (1,)),)]:
            found[matmul(*base) if len(base) > 1 else base[0]] = one
    return found


def least_value(
    exponent: Any, limits: Mapping[Symbol, tuple[Any, Any]], ranges: Mapping[Symbol, Any]
) -> Any:
    """Return the least value of an exponent, None if it may be below 0 or is not known.

    Each index runs from the first to the last of its `limits`; a free one over its range.
    """
    least = exponent
    bound = [index for index in reversed(limits) if index in ranges]
    for index in [*bound, *[i for i in ranges if i not in limits]]:
        times = least.coeff(index)
        if not times.is_Integer or sympy.expand(least - times * index).has(index):
            return None
        first, last = limits.get(index, (sympy.S.Zero, ranges[index] - 1))
        least = sympy.expand(least.subs(index, last if times < 0 else first))
    return least if never_negative(least) else None
