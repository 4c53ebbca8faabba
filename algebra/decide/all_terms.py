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

from otimes.algebra.decide.case_splits import MOST_CASES, At, Over, Split, leaves, stated
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Decision
from otimes.algebra.decide.index_cases import at_values
from otimes.algebra.errors import OtimesError
from otimes.algebra.language.binders import fresh_name, names_in
from otimes.algebra.language.last_values import last_values


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
    every, inner = {claim.sides: found}, found
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
        inner = replace(inner, split=_below_and_at(index, count, inner, one, (lhs, rhs, given)))
    if leaves([inner]) > MOST_CASES:
        return replace(found, status="undecided", reason="it has too many cases", proof=None)
    reason = "; ".join(one.reason for one in every.values())
    cases = tuple(every.values())
    return replace(inner, reason=reason, cases=cases) if len(every) > 1 else found


def _below_and_at(
    index: sympy.Symbol, count: Any, below: Decision, at: Decision, asked: tuple[Any, Any, Any]
) -> Split:
    """Return the cases i < n and i = n of an index."""
    last = sympy.Symbol(str(count))
    rest = sympy.Symbol(fresh_name("r", names_in(*asked[:2])))
    less = At({index: index, last: index + rest}, below, frozenset({index}))
    return Split(Over(index, 0, last), stated(*asked), (less, At({index: last}, at)))


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
