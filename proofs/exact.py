"""The exact check: Hypothesis draws sizes and integer weights, and the two sides must be equal.

Not close: equal. The sides are worth what `algebra.exact` finds by walking their trees; no diagram
is involved, so this check does not lean on the prover. Sizes start at 0 where a size of 0 makes
sense, and at 1 elsewhere; where a side has no value (the norm of a row of zeros), others are drawn.
What fails is shrunk by Hypothesis, and then by `algebra.refute`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import sympy
from hypothesis import HealthCheck, Phase, Verbosity, assume, seed, settings
from hypothesis import given as drawn
from hypothesis.errors import Unsatisfiable

from algebra.errors import OtimesError
from algebra.refute import Trial, differs, shrink
from algebra.satisfy import holds
from algebra.shapes import inspect
from numeric.strategies.expressions import as_assignment, assignments
from proofs.claims import equations
from proofs.hypotheses import assignments as assignments_under

EXAMPLES = 40
SEED = 20_211_222
LARGEST_SIZE = 3


@dataclass(frozen=True, slots=True)
class ExactEvidence:
    """What the exact check found: how many examples agreed, or the least one that did not."""

    passed: bool
    examples: int
    detail: str = ""


class _Differs(Exception):
    def __init__(self, trial: Trial) -> None:
        super().__init__("the sides differ")
        self.trial = trial


def check_exactly(
    lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any] = (), examples: int = EXAMPLES
) -> ExactEvidence:
    """Return whether both sides are equal on random integers of random sizes.

    Under hypotheses, on random numbers at which they hold, of sizes from 1 on.
    """
    if given:
        return _under_hypotheses(lhs, rhs, given, examples)
    signature = inspect(lhs, rhs)
    tried = 0
    least: list[Trial] = []

    @seed(SEED)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    @drawn(assignments(lhs, rhs, smallest=0, largest=LARGEST_SIZE))
    def equal(numbers: dict[str, Any]) -> None:
        nonlocal tried
        try:
            trial = differs(lhs, rhs, as_assignment(numbers, lhs, rhs))
        except OtimesError:  # the root of a row that is zero, a mean of no entries: no value
            assume(False)
        tried += 1
        if trial is not None:
            least[:] = [trial]
            raise _Differs(trial)

    with contextlib.suppress(_Differs, Unsatisfiable):
        equal()
    if least:
        return ExactEvidence(False, tried, str(shrink(lhs, rhs, signature, least[0])))
    nothing = "no numbers were found at which both sides have a value"
    return ExactEvidence(tried > 0, tried, "" if tried else nothing)


def _under_hypotheses(
    lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any], examples: int
) -> ExactEvidence:
    tried = 0
    for assignment in assignments_under(given, lhs, rhs, count=examples, largest=LARGEST_SIZE):
        try:
            trial = differs(lhs, rhs, assignment)
        except OtimesError:  # an inverse that does not exist, an irrational root: no value
            continue
        tried += 1
        if trial is not None:
            signature = inspect(lhs, rhs, *[e for pair in equations(given) for e in pair])
            allowed = partial(holds, equations(given))
            return ExactEvidence(False, tried, str(shrink(lhs, rhs, signature, trial, allowed)))
    nothing = "no numbers were found at which the hypotheses hold and both sides have a value"
    return ExactEvidence(tried > 0, tried, "" if tried else nothing)
