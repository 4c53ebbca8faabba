"""Free indices with one value more than the ranges that end at them.

In Σ_{j<i} F[j] for F[0], …, F[n - 1] the index i counts terms, so that it may be n. The causal mask
that stands for such a sum has the n rows i < n. So what is said at i = n is said besides: of a
hypothesis as the same at i + 1 and at n, and of a claim as a case.

>>> from otimes.algebra.language.linear import Family, HeadSum
>>> n, d = sympy.symbols("n d", integer=True, positive=True)
>>> i, j = sympy.symbols("i j", integer=True)
>>> F = Family("F", (n,), d, d)
>>> last_values([HeadSum(F[j], (j, i))], {i: n})
{i: n}
>>> last_values([HeadSum(F[j], (j, i)) * F[i]], {i: n})
{}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy
from sympy import Symbol

from otimes.algebra.language.affine import never_negative
from otimes.algebra.language.binders import free_symbols
from otimes.algebra.language.index_ranges import SUMS, not_negative
from otimes.algebra.language.trees import parts_of


def last_values(sides: Sequence[Any], ranges: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
    """Return the indices that may also be the number of values that they have in `ranges`."""
    firsts, counts = set[Any](), set[Any]()
    for side in sides:
        for e in parts_of(side, *SUMS):
            for limit in [each for each in e.args[1:] if isinstance(each, sympy.Tuple)]:
                first, count = (0, limit[1]) if len(limit) == 2 else (limit[1], limit[2] + 1)
                firsts |= sympy.sympify(first).free_symbols
                counts.add(sympy.expand(count))
    found = {i: count for i, count in ranges.items() if i in counts and i not in firsts}
    if not found:
        return {}
    least = [value for side in sides for value in not_negative(side, {})]
    if None in least:
        return {}
    values = [sympy.expand(value) for value in least]

    def exists(index: Symbol, count: Any) -> bool:
        at = [value.subs(index, count) for value in values if value.has(index)]
        return all(never_negative(sympy.expand(value)) for value in at)

    free = {i for side in sides for i in free_symbols(side)}
    return {i: count for i, count in found.items() if i in free and exists(i, count)}
