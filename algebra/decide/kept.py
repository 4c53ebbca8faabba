"""The decisions on the claims that a proof leads to, each kept while one claim is decided.

A premise of an axiom is asked for by every claim of an induction, and again for what these lead to.
What was proved or refuted stays so. What was left open, or ended with its budget, is asked again
only with more steps than before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from otimes.algebra.budget import Exhausted, spend, steps_left
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Axioms, Decision

ASKED = 100  # steps for a claim that was decided before

_KEPT: ContextVar[dict[Hashable, tuple[Decision | None, float, Claim]] | None] = ContextVar(
    "kept", default=None
)
"""By claim: the decision, or None where its budget ended, the steps that were left for it, and the
claim, whose parts the key has by identity."""


@contextmanager
def decisions_kept() -> Iterator[None]:
    """Decide each claim once within this context, which is one decision."""
    token = _KEPT.set({})
    try:
        yield
    finally:
        _KEPT.reset(token)


def once(
    claim: Claim, axioms: Axioms, context: Hashable, decide: Callable[[Claim, Axioms], Decision]
) -> Decision:
    """Return the decision on a claim, or that on the same one of before in the same context.

    Raises Exhausted as `decide` does.
    """
    kept = _KEPT.get()
    if kept is None:
        return decide(claim, axioms)
    said = tuple([(one.axiom, one.form, one.lhs, one.rhs, one.premises) for one in axioms[0]])
    key = claim.parts, said, context
    try:
        found, before, _ = kept.get(key, (None, -1.0, None))
    except TypeError:  # a claim with a matrix that may change, as sympy.Matrix, has no hash
        return decide(claim, axioms)
    left = steps_left()
    if left <= before or (found is not None and found.status != "undecided"):
        spend(ASKED)
        if found is None:
            raise Exhausted
        return found
    try:
        found = decide(claim, axioms)
    except Exhausted:
        kept[key] = None, left, claim
        raise
    kept[key] = found, left, claim
    return found
