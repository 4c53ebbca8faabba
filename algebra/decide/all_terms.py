"""Claims about a sum of the first i of n terms at i = n, where it is of all of them.

Such a claim is read for i < n (`language.last_values`). At i = n it is another case, which is
decided like any claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import sympy

from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision
from otimes.algebra.decide.index_cases import at_values
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.last_values import last_values

MOST_CASES = 16  # that a certificate may have


def with_last_values(
    found: Decision, lhs: Any, rhs: Any, given: Sequence[Any], decided: Callable[..., Decision]
) -> Decision:
    """Return the decision on a claim that is proved for i < n, where Σ_{j<i} may have n terms.

    It is proved if that at i = n is, and else that decision.
    """
    claim = found.claim
    if found.status != "proved" or claim is None or found.cases:
        return found
    indices = claim.signature.indices.values()
    if not indices:
        return found
    ranges = {claim.origin.get(index, index): count for index, count in indices}
    lhs, rhs = map(sympy.sympify, (lhs, rhs))
    every = {claim.sides: found}
    for index, count in last_values((lhs, rhs), ranges).items():
        sides = [at_values(side, {index: count}) for side in (lhs, rhs)]
        one = _known_at(found, (sides[0], sides[1]), given) or decided(*sides, given)
        if one.status != "proved":
            values = {**{s: s for s in count.free_symbols}, index: count}
            reason = f"at {index} = {count} {one.reason}"
            return replace(one, reason=reason, values=(*one.values, values))
        for each in one.cases or (one,):
            assert each.claim is not None
            case = replace(each, reason=f"at {index} = {count} {each.reason}", cases=())
            every.setdefault(each.claim.sides, case)
    if len(every) > MOST_CASES:
        return replace(found, status="undecided", reason="it has too many cases", proof=None)
    reason = "; ".join(one.reason for one in every.values())
    return replace(found, reason=reason, cases=tuple(every.values())) if len(every) > 1 else found


def _known_at(found: Decision, sides: tuple[Any, Any], given: Sequence[Any]) -> Decision | None:
    """Return the lemma about the last position in a proof about one position, if it says this."""
    position = found.proof.position if found.proof is not None else None
    if position is None or position.shift or position.end.claim is None:
        return None
    with suppress(OtimesError):
        claim, known = Claim(*sides, given), position.end.claim
        if (claim.sides, claim.given) == (known.sides, known.given):
            return position.end
    return None
