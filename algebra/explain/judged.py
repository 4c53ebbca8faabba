"""`decide` with a cache, as a search for steps often asks for the same equation."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from otimes.algebra.budget import spend
from otimes.algebra.decide.decide import decision
from otimes.algebra.errors import OtimesError


def proved(lhs: Any, rhs: Any, given: tuple[tuple[Any, Any], ...], budget: float) -> bool:
    """Return whether an equation is proved; a cached result is charged its original work."""
    found, work = _decided(lhs, rhs, given, budget)
    spend(work)
    return found


@lru_cache(maxsize=8192)
def _decided(
    lhs: Any, rhs: Any, given: tuple[tuple[Any, Any], ...], budget: float
) -> tuple[bool, int]:
    try:
        found = decision(lhs, rhs, given, budget)
    except OtimesError:  # not in the language, or one index name with two ranges
        return False, 0
    return found.status == "proved", found.work
