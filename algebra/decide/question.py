"""A claim as the strategies see it: read as sums of diagrams, with the equations it may use."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, TypeVar

from sympy import preorder_traversal

from otimes.algebra.budget import STEPS, Exhausted, limited, spend, steps_left
from otimes.algebra.decide.claim import Claim
from otimes.algebra.decide.decision import Axioms, Decision, Mode, Proof
from otimes.algebra.decide.entailment import Fact, consequences
from otimes.algebra.decide.shifted import at_last, shifted
from otimes.algebra.diagrams.dimensions import Clash
from otimes.algebra.diagrams.sums import DiagramSum, Terms, difference
from otimes.algebra.errors import Undecided
from otimes.algebra.reading.interpretation import Interpretation
from otimes.algebra.reading.read import read

Found = TypeVar("Found")
Decide = Callable[..., Decision]
"""The decision on a claim with instances of axioms, which are none where there is one argument."""
READING = 0.75  # the largest share of the budget that is left which reading may take
TAKEN_UP = 30  # steps for each part of a claim that a proof leads to: it is checked and read


class Read(NamedTuple):
    """The values of both sides as sums of diagrams: the left side, and the difference."""

    reading: Interpretation
    left: DiagramSum
    rest: Terms
    equations: list[tuple[DiagramSum, ...]]


@dataclass(frozen=True, slots=True)
class Question:
    """A claim, with further equations `facts` that may be used, by name.

    `decided` decides the claims to which a strategy leads. `read` is None if a side has no normal
    form; `obstacle` is then the reason, and `clash` whether one size is cut in several ways.
    """

    claim: Claim
    axioms: Axioms
    decided: Decide
    facts: list[tuple[Fact, Any, Any]]
    read: Read | None
    obstacle: str
    clash: bool = False

    def nested(self, claim: Claim, axioms: Axioms = ([], {})) -> Decision:
        """Return the decision on a claim that a proof leads to; to take it up counts as work."""
        parts = sum(1 for side in claim.sides for _ in preorder_traversal(side))
        spend(TAKEN_UP * parts)
        return self.decided(claim, axioms)


def question_of(claim: Claim, axioms: Axioms, decided: Decide) -> Question:
    """Return a claim with what hypotheses and axioms say, read as diagrams if they can be."""
    given = list(enumerate(claim.given))
    facts: list[tuple[Fact, Any, Any]] = [(("given", k), *pair) for k, pair in given]
    facts += [one for k, pair in given for one in consequences(k, *pair)]
    own, sides = given[: len(claim.equations)], claim.sides
    facts += [one for k, pair in own for one in shifted(k, *pair, sides)]
    if claim.latest is not None:
        facts += [one for k, pair in own for one in at_last(k, *pair, *claim.latest)]
    facts += [(("axiom", said.axiom, k), said.lhs, said.rhs) for k, said in enumerate(axioms[0])]
    groups = [(claim.lhs, claim.rhs), *[(x, y) for _, x, y in facts]]
    try:
        with limited(READING * steps_left()):
            reading, ((left, right), *equations) = _read(claim, groups)
    except Undecided as obstacle:
        clash = isinstance(obstacle, Clash)
        return Question(claim, axioms, decided, facts, None, str(obstacle), clash)
    rest = difference(left.terms, right.terms)
    return Question(claim, axioms, decided, facts, Read(reading, left, rest, equations), "")


def _read(claim: Claim, groups: list[Any]) -> tuple[Interpretation, list[tuple[DiagramSum, ...]]]:
    """Return the values of equations, read beside others of the claim where these can be read."""
    if claim.besides:
        with suppress(Undecided):
            reading, values = read(claim.signature, *groups, *[(e,) for e in claim.besides])
            return reading, values[: len(groups)]
    return read(claim.signature, *groups)


def proved(
    question: Question, reason: str, mode: Mode, reading: Interpretation | None = None
) -> Decision:
    """Return the decision that a claim is proved, for a reason, in a mode of proofs."""
    return Decision("proved", reason, question.claim, proof=Proof(mode, reading))


def within(share: float, find: Callable[[], Found], units: float = inf) -> Found | None:
    """Return the result of `find`, or None if a share of the remaining budget does not suffice."""
    try:
        with limited(min(share * steps_left(), units * STEPS)):
            return find()
    except Exhausted:
        return None
