"""Moves for sums over indices: merging them, and moving constant factors out of them."""

from __future__ import annotations

from typing import Any

import sympy
from sympy import KroneckerDelta, Sum

from otimes.algebra.explain.moves import Change, Scope
from otimes.algebra.rules import RULES
from otimes.algebra.rules.indices import apart as renamed_apart
from otimes.algebra.rules.rule import OF_MATRICES, bound, mentions, scalar_product


def apart_inside(part: Any, search: Scope) -> list[Change] | None:
    """Rename the index of a sum inside another sum over an index of the same name."""
    body = part.args[0]
    inner = enumerate(body.args) if type(body) is sympy.Mul else [(None, body)]
    for k, x in inner:
        if type(x) is Sum and set(bound(x)) & set(bound(part)):
            new = renamed_apart(x, part)
            if new is not None:
                return [Change("sum_rename", (0,) if k is None else (0, k), False, new)]
    return None


def by_delta(part: Any, search: Scope) -> list[Change] | None:
    """Replace the second index of a Kronecker delta by the first in the other factors."""
    for new in RULES["delta_mul"].results(part):
        deltas = [x for x in part.args if type(x) is KroneckerDelta]
        if any(_besides(part, x) and not _besides(new, x) for x in deltas):
            return [Change("delta_mul", (), False, new)]
    return None


def _besides(e: Any, delta: Any) -> bool:
    """Return whether the second index of a delta occurs in the other factors of a product."""
    return any(x != delta and mentions(x, [delta.args[1]]) for x in e.args)


def flat_product(part: Any, search: Scope) -> list[Change] | None:
    """Flatten a product of scalars, and drop factors of 1."""
    if any(type(x) is sympy.Mul or x in (0, 1) for x in part.args):
        factors = [y for x in part.args for y in (x.args if type(x) is sympy.Mul else (x,))]
        kept = [x for x in factors if x != 1]
        flat = sympy.S.Zero if 0 in kept else scalar_product(*kept)
        return [Change("scalar_arith", (), False, flat)]
    return None


def open_power(part: Any, search: Scope) -> list[Change] | None:
    """Write a power of a sum over indices as a product."""
    base, exponent = part.args
    if base.has(Sum) and exponent.is_Integer and 1 < exponent < 9:
        opened = sympy.Mul(*[base] * int(exponent), evaluate=False)
        return [Change("scalar_arith", (), False, opened)]
    return None


def numbers_out(part: Any, search: Scope) -> list[Change] | None:
    """Move factors that are numbers or symbols out of a sum; entries and other sums stay inside."""
    factors = part.args[0].args if type(part.args[0]) is sympy.Mul else part.args[:1]
    if any(x != 1 and not mentions(x, bound(part)) and not x.has(*OF_MATRICES) for x in factors):
        return [Change("sum_smul", (), False, next(RULES["sum_smul"].results(part)))]
    return None
