"""The questions that a document puts to the judge: each is decided once.

An equation is tried as it stands, with definitions substituted, in other readings and with edits,
and these often come to the same claim; so do the equations of one document. An answer that is kept
counts the steps that it took, so that the limits on the work for an equation, and with them its
verdict, do not depend on what was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from math import inf
from typing import Any

from otimes.algebra import verdict
from otimes.algebra.budget import Budget, spend, steps_done
from otimes.algebra.verdict import Verdict


def decide(lhs: Any, rhs: Any, given: Sequence[Any] = (), *, budget: float) -> Verdict:
    """Return the verdict of `otimes.algebra.verdict.decide`, which is kept for the next time."""
    begun = steps_done()
    try:
        found, steps = _decided(lhs, rhs, tuple(given), budget)
    except TypeError:  # a matrix that may change, as sympy.Matrix, has no hash
        return verdict.decide(lhs, rhs, given, budget=budget)
    with Budget(inf):
        spend(steps - (steps_done() - begun))
    return copy(found)  # without what is computed of it later, which takes steps as well


@lru_cache(maxsize=1 << 10)
def _decided(lhs: Any, rhs: Any, given: tuple[Any, ...], budget: float) -> tuple[Verdict, int]:
    begun = steps_done()
    found = verdict.decide(lhs, rhs, given, budget=budget)
    return found, steps_done() - begun
