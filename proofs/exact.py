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

import numpy as np
import sympy
from hypothesis import HealthCheck, Phase, Verbosity, assume, seed, settings
from hypothesis import given as drawn
from hypothesis.errors import Unsatisfiable

from algebra.budget import Budget, Exhausted
from algebra.errors import OtimesError
from algebra.exact import Assignment, tree_value
from algebra.refute import Trial, differs, shrink
from algebra.satisfy import holds
from algebra.shapes import inspect
from numeric.strategies.expressions import as_assignment, assignments
from proofs.claims import equations
from proofs.hypotheses import assignments as assignments_under

EXAMPLES = 40
SEED = 20_211_222
LARGEST_SIZE = 3
EXAMPLE = 5.0  # units of work for one example


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
    tried, seen = 0, _Seen(rhs)
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
        assignment = as_assignment(numbers, lhs, rhs)
        try:
            with Budget(EXAMPLE):
                trial = differs(lhs, rhs, assignment)
        except Exhausted:  # too much for one example: smaller numbers are drawn as well
            assume(False)
        except OtimesError:  # the root of a row that is zero, a mean of no entries: no value
            assume(False)
        tried += 1
        seen.at(assignment)
        if trial is not None:
            least[:] = [trial]
            raise _Differs(trial)

    with contextlib.suppress(_Differs, Unsatisfiable):
        equal()
    if least:
        return ExactEvidence(False, tried, str(shrink(lhs, rhs, signature, least[0])))
    nothing = "no numbers were found at which both sides have a value"
    return seen.said_of(tried, nothing)


class _Seen:
    """Whether a side was ever worth anything but zeros, unless it says that it is zero.

    Numbers that satisfy hypotheses may be so special that both sides vanish at all of them.
    """

    def __init__(self, side: Any) -> None:
        self.side = side
        self.nonzero = side == 0 or isinstance(side, sympy.ZeroMatrix)

    def at(self, assignment: Assignment) -> None:
        """Look at the side at some numbers, as long as it was nothing but zero."""
        if not self.nonzero:
            value = np.asarray(tree_value(self.side, assignment), dtype=object)
            self.nonzero = any(entry != 0 for entry in value.ravel())

    def said_of(self, tried: int, nothing: str) -> ExactEvidence:
        """Return the evidence when no numbers told the sides apart."""
        if tried and not self.nonzero:
            nothing = "both sides were zero at all numbers that were tried"
        well = tried > 0 and self.nonzero
        return ExactEvidence(well, tried, "" if well else nothing)


def _under_hypotheses(
    lhs: sympy.Basic, rhs: sympy.Basic, given: Sequence[Any], examples: int
) -> ExactEvidence:
    tried, seen = 0, _Seen(rhs)
    for assignment in assignments_under(given, lhs, rhs, count=examples, largest=LARGEST_SIZE):
        try:
            with Budget(EXAMPLE):
                trial = differs(lhs, rhs, assignment)
        except Exhausted:
            continue
        except OtimesError:  # an inverse that does not exist, an irrational root: no value
            continue
        tried += 1
        seen.at(assignment)
        if trial is not None:
            signature = inspect(lhs, rhs, *[e for pair in equations(given) for e in pair])
            allowed = partial(holds, equations(given))
            return ExactEvidence(False, tried, str(shrink(lhs, rhs, signature, trial, allowed)))
    nothing = "no numbers were found at which the hypotheses hold and both sides have a value"
    return seen.said_of(tried, nothing)
