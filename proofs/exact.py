"""The exact check: both sides must be equal at random sizes and integer matrices.

`otimes.algebra.evaluate.exact` computes the sides by recursion over their trees. It does not use
diagrams, so this check is independent of the prover. Sizes and all lengths in a claim are at least
1, as in every statement. Values at which a side is undefined (the norm of a zero row) are replaced.
Hypothesis draws and shrinks the examples; a failure is then shrunk by
`otimes.algebra.decide.counterexample`.
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

from otimes.algebra.budget import Budget, Exhausted
from otimes.algebra.decide.counterexample import Trial, differs, shrink
from otimes.algebra.decide.satisfy import holds
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.shapes import inspect
from otimes.numeric.strategies.expressions import as_assignment, assignments
from otimes.proofs.claims import equations
from otimes.proofs.hypotheses import assignments as assignments_under

EXAMPLES = 40
SEED = 20_211_222
LARGEST_SIZE = 3
EXAMPLE = 5.0  # work units for one example


@dataclass(frozen=True, slots=True)
class ExactEvidence:
    """The result of the exact check: the number of examples that agreed, or a minimal failure."""

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

    All lengths are at least 1. Under hypotheses, the values satisfy them.
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
    @drawn(assignments(lhs, rhs, smallest=1, largest=LARGEST_SIZE))
    def equal(numbers: dict[str, Any]) -> None:
        nonlocal tried
        assignment = as_assignment(numbers, signature)
        try:
            with Budget(EXAMPLE):
                trial = differs(lhs, rhs, assignment)
        except Exhausted:  # too much work: the example is skipped
            assume(False)
        except OtimesError:  # undefined there: the norm of a zero row, a mean over no entries
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
    """Whether a side that is not stated as zero was nonzero at some example.

    Otherwise the check is empty: values that satisfy hypotheses may make both sides vanish.
    """

    def __init__(self, side: Any) -> None:
        self.side = side
        self.nonzero = side == 0 or isinstance(side, sympy.ZeroMatrix)

    def at(self, assignment: Assignment) -> None:
        """Evaluate the side at an example, until one is nonzero."""
        if not self.nonzero:
            value = np.asarray(tree_value(self.side, assignment), dtype=object)
            self.nonzero = any(entry != 0 for entry in value.ravel())

    def said_of(self, tried: int, nothing: str) -> ExactEvidence:
        """Return the evidence if the sides agreed at all examples."""
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
        except OtimesError:  # undefined there: a singular matrix, an irrational root
            continue
        tried += 1
        seen.at(assignment)
        if trial is not None:
            signature = inspect(lhs, rhs, *[e for pair in equations(given) for e in pair])
            allowed = partial(holds, equations(given))
            return ExactEvidence(False, tried, str(shrink(lhs, rhs, signature, trial, allowed)))
    nothing = "no numbers were found at which the hypotheses hold and both sides have a value"
    return seen.said_of(tried, nothing)
