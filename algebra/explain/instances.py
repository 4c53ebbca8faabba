"""Hypotheses of a claim and their instances at other indices: S[L], S[l + 1], the last layer."""

from __future__ import annotations

from typing import Any

from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.shifted import at_last, shifted

Pair = tuple[Any, Any]


def with_instances(claim: Claim) -> tuple[Pair, ...]:
    """Return the hypotheses, and those of their instances that a proof may use.

    In the step of an induction the hypothesis of the induction stays the last one.
    """
    given = list(enumerate(claim.given[: len(claim.equations)]))
    made = [pair for k, (x, y) in given for _, *pair in shifted(k, x, y, claim.sides)]
    if claim.latest is not None:
        made += [pair for k, (x, y) in given for _, *pair in at_last(k, x, y, *claim.latest)]
    instances = [(x, y) for x, y in made]
    if claim.latest is None or claim.cited:
        return (*claim.given, *instances)
    return (*claim.given[:-1], *instances, claim.given[-1])
