"""The checks of a bound: its proof, a tight case, and a search for violations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy

from otimes.algebra.decide.admissible import admits
from otimes.algebra.decide.satisfy import holds
from otimes.algebra.evaluate.arrays import Values
from otimes.algebra.evaluate.exact import Assignment, exact_array, tree_value
from otimes.algebra.facts import Fact, facts
from otimes.algebra.language.intervals import Interval, bounds
from otimes.algebra.language.shapes import inspect
from otimes.numeric.binding import Run
from otimes.proofs.checks.identities import on_models, proof_of
from otimes.proofs.checks.properties import has
from otimes.proofs.claims import Bound, Entries, Example, Lemma, equations, sides_of
from otimes.proofs.evidence import Check, Findings, ProofEvidence
from otimes.proofs.exact import EXAMPLES, ExactEvidence, check_exactly
from otimes.proofs.hypotheses import values_under
from otimes.proofs.mutants import check_mutants
from otimes.proofs.on_models import ModelEvidence, check_on_model, valued
from otimes.proofs.rebound import check_bindings

UNTESTED = (
    "a larger bound would hold as well: give values at which both sides are equal as `tight`, or "
    "say in `not_attained` why there are none"
)


def check_bound(claim: Bound, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the checks of a bound: proof, tight case, search for violations, models, mutants.

    The mutants are those of the equation that it follows from.
    """
    behind = claim.statement
    proof = proof_of(behind)
    if proof.status == "proved" and (unknown := _may_be_negative(claim)):
        proof = ProofEvidence("undecided", unknown)
    return Findings(
        proof,
        _exact(claim),
        on_models(_on_model, claim, runs),
        None if quick else check_mutants(behind.lhs, behind.rhs, behind.given),
        (_tight(claim), *_needed(claim)),
        claim.on_models,
        bindings=None if quick else check_bindings(claim, runs),
    )


def _needed(claim: Bound) -> Iterator[Check]:
    """Yield whether each declared sign is needed for the terms to be nonnegative.

    Equations are tried in the mutants; other properties are for drawing numbers.
    """
    for k, fact in enumerate(claim.given):
        if isinstance(fact, Fact) and fact.name == "nonnegative":
            less = replace(claim, given=[*claim.given[:k], *claim.given[k + 1 :]])
            seen = _may_be_negative(less) or "the terms are nonnegative without it"
            yield Check(f"without “{fact}”", bool(_may_be_negative(less)), seen)


def _may_be_negative(claim: Bound) -> str:
    """Return which term of the difference is not known to be nonnegative; empty if none."""
    given = [each for each in claim.given if not isinstance(each, Lemma | Example)]
    for term in claim.because:
        times = sympy.sympify(term.times)
        known = times.is_nonnegative or facts(times * sympy.Identity(1), given).holds("nonnegative")
        if not known:
            return f"the coefficient {times} is not known to be nonnegative"
        if isinstance(term, Entries) and not facts(term.matrix, given).holds("nonnegative"):
            return f"the entries of {term.matrix} are not known to be nonnegative"
    return ""


def _exact(claim: Bound) -> ExactEvidence:
    """Return whether the bound and its equation hold at random exact values."""
    behind = claim.statement
    found = check_exactly(behind.lhs, behind.rhs, behind.given)
    return _search(claim) if found.passed else found


def _search(claim: Bound) -> ExactEvidence:
    """Return whether the bound holds at all exact values tried that satisfy the hypotheses."""
    tried = 0
    drawn = values_under(claim.given, claim.smaller, claim.larger, count=EXAMPLES)
    for tried, (assignment, sides) in enumerate(drawn, start=1):
        smaller, larger = map(_number, sides)
        if _exceeds(smaller, larger):
            return ExactEvidence(False, tried, f"{smaller} > {larger} at {assignment}")
    nothing = "no numbers were found at which the hypotheses hold and both sides have a value"
    return ExactEvidence(tried > 0, tried, "" if tried else nothing)


def _tight(claim: Bound) -> Check:
    """Return whether the tight case satisfies the hypotheses and makes both sides equal."""
    if claim.tight is None:
        return Check("tight", bool(claim.not_attained), claim.not_attained or UNTESTED)
    sides = (claim.smaller, claim.larger)
    arrays = {k: exact_array(np.array(v)) if np.ndim(v) else v for k, v in claim.tight.items()}
    declared = [each for each in claim.given if isinstance(each, Fact)]
    spoken = [*sides_of(claim.given), *[fact.subject for fact in declared]]
    signature = inspect(*sides, *spoken)
    values = Values(signature, arrays)
    assignment = Assignment(values.sizes, values.arrays, values.indices, values.scalars)
    if not admits(signature, assignment):
        return Check("tight", False, "the tight case has a value that its symbol excludes")
    smaller, larger = (_number(tree_value(side, assignment)) for side in sides)
    for fact in declared:
        if not _everywhere(fact, assignment):
            return Check("tight", False, f"the tight case does not satisfy {fact}")
    if not holds(equations(claim.given), assignment):
        return Check("tight", False, "the tight case does not satisfy the hypotheses")
    return Check("tight", bool(smaller == larger), f"{smaller} and {larger} at {claim.tight}")


def _everywhere(fact: Fact, assignment: Assignment) -> bool:
    """Return whether a declared property holds, at every value of the free indices in it."""
    subject = fact.subject
    if not isinstance(subject, sympy.MatrixExpr):
        subject = subject * sympy.Identity(1)
    free = [assignment]
    for name, (_, count) in inspect(subject).indices.items():
        free = [
            replace(each, indices={**each.indices, name: at})
            for each in free
            for at in ([each.indices[name]] if name in each.indices else range(each.size(count)))
        ]
    return all(has(fact, tree_value(subject, each), each) for each in free)


def _exceeds(a: Any, b: Any) -> bool:
    """Return whether a number is certainly larger; irrational ones are intervals."""
    if isinstance(a, Interval) or isinstance(b, Interval):
        return bool(bounds(a).a > bounds(b).b)
    return bool(a > b)


def _number(value: Any) -> Any:
    return value[0, 0] if isinstance(value, np.ndarray) else value


def _on_model(claim: Bound, run: Run) -> ModelEvidence:
    """Return whether the bound and its equation hold on a model.

    A loose bound would hide a mistake in either side; the equation does not.
    """
    behind = check_on_model(claim.statement, run)
    if not behind.applies or not behind.passed:
        return behind
    worst, where = behind.ratio, behind.where
    for case, (smaller, larger) in valued((claim.smaller, claim.larger), claim.bind, run):
        over = float(np.max(smaller.value - larger.value))
        allowed = float(np.max(smaller.bound + larger.bound))
        ratio = max(0.0, over / allowed) if allowed else (0.0 if over <= 0 else float("inf"))
        if ratio >= worst:
            worst, where = ratio, str(case)
    why = "" if worst <= 1 else f"the bound is exceeded at {where}"
    return ModelEvidence(run.model, True, worst <= 1, worst, behind.sensitivity, where, why)
