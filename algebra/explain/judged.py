"""Questions of the search for steps to the judge, which are often the same ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from otimes.algebra.budget import spend
from otimes.algebra.decide.decide import decision
from otimes.algebra.errors import OtimesError


def proved(lhs: Any, rhs: Any, given: tuple[tuple[Any, Any], ...], budget: float) -> bool:
    """Return whether an equation is proved; an answer that is remembered counts as much work."""
    found, work = _decided(lhs, rhs, given, budget)
    spend(work)
    return found


@lru_cache(maxsize=8192)
def _decided(
    lhs: Any, rhs: Any, given: tuple[tuple[Any, Any], ...], budget: float
) -> tuple[bool, int]:
    try:
        found = decision(lhs, rhs, given, budget)
    except OtimesError:  # not in the language, or one name for indices of two ranges
        return False, 0
    return found.status == "proved", found.work
