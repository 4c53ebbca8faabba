"""What must not be negative, so that all parts of an expression exist.

A member F[l + i] of F[0], …, F[L - 1] exists where l + i and L - 1 - l - i are 0 or more. Under a
sum over l < n the least value of these is meant: i, and L - n - i.

>>> n, L = sympy.symbols("n L", integer=True, positive=True)
>>> i, l = sympy.symbols("i l", integer=True)
>>> F = Family("F", (L,), n, n)
>>> list(not_negative(HeadSum(F[l + i], (l, L - i)), {}))
[L - i, i, 0]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy
from sympy import Symbol
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum, OneHot

Limits = dict[Symbol, tuple[Any, Any]]  # the first and last values of indices, the innermost first
SUMS = (sympy.Sum, HeadSum, LayerProduct, OrderSum)
SIZED = (sympy.MatrixSymbol, Family, sympy.Identity, sympy.OneMatrix, sympy.ZeroMatrix)


def not_negative(e: Any, limits: Limits) -> Iterator[Any]:
    """Yield what must be 0 or more so that all parts exist; None for what is not linear."""
    if isinstance(e, FamilyMember):
        for at, count, first in zip(e.indices, e.family.counts, e.family.firsts, strict=True):
            yield from (least(x, limits) for x in (at - first, first + count - 1 - at))
        return
    if isinstance(e, SIZED):
        return
    if isinstance(e, OneHot):
        yield from (least(x, limits) for x in (e.args[0], e.args[1] - 1 - e.args[0]))
        return
    if isinstance(e, MatrixElement):
        for at, count in zip(e.args[1:], e.args[0].shape, strict=True):
            yield from (least(x, limits) for x in (at, count - 1 - at))
        yield from not_negative(e.args[0], limits)
        return
    if isinstance(e, sympy.MatPow | sympy.Pow) and not e.exp.is_Integer:
        yield least(e.exp, limits)
    inner = dict(limits)
    if isinstance(e, SUMS):
        for limit in e.args[1:]:
            if isinstance(limit, sympy.Tuple):
                first, last = limit[1:] if len(limit) == 3 else (sympy.S.Zero, limit[1] - 1)
                yield least(last - first + 1, limits)
                inner = {limit[0]: (first, last), **inner}
    for part in e.args:
        if not isinstance(part, sympy.Tuple):
            yield from not_negative(part, inner)


def least(value: Any, limits: Limits) -> Any:
    """Return the least value of an expression over the ranges of bound indices, None if unknown."""
    value = sympy.expand(value)
    for index, (first, last) in limits.items():
        times = value.coeff(index)
        if not times.is_Integer or sympy.expand(value - times * index).has(index):
            return None
        value = sympy.expand(value - times * index + times * (last if times < 0 else first))
    return value
