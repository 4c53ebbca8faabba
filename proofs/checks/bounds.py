"""The checks of a bound: why it holds, where it is tight, that nothing breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from algebra.errors import OtimesError
from algebra.evaluate import Values
from algebra.exact import Assignment, exact_array, tree_value
from algebra.facts import Fact, facts
from algebra.intervals import Interval, bounds
from algebra.satisfy import holds
from algebra.shapes import inspect
from numeric.binding import Run
from proofs.checks.identities import on_model, proof_of
from proofs.checks.properties import has
from proofs.claims import Bound, Entries, equations, sides_of
from proofs.evidence import Check, Findings, ProofEvidence
from proofs.exact import EXAMPLES, ExactEvidence, check_exactly
from proofs.hypotheses import assignments
from proofs.mutants import check_mutants
from proofs.on_models import ModelEvidence, check_on_model, valued


def check_bound(claim: Bound, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the proof that the difference is nonnegative, a tight case, a search, models, mutants.

    The mutants are those of the equation that the bound rests on.
    """
    behind = claim.statement
    proof = proof_of(behind)
    if proof.status == "proved" and (unknown := _may_be_negative(claim)):
        proof = ProofEvidence("undecided", unknown)
    return Findings(
        proof,
        _exact(claim),
        tuple(on_model(_on_model, claim, run) for run in runs) if claim.on_models else (),
        None if quick else check_mutants(behind.lhs, behind.rhs, behind.given),
        (_tight(claim),),
        claim.on_models,
    )


def _may_be_negative(claim: Bound) -> str:
    """Return which part of the difference is not known to be nonnegative; empty if none."""
    for term in claim.because:
        times = sympy.sympify(term.times)
        known = times.is_nonnegative or facts(times * sympy.Identity(1), claim.given).holds(
            "nonnegative"
        )
        if not known:
            return f"the coefficient {times} is not known to be nonnegative"
        if isinstance(term, Entries) and not facts(term.matrix, claim.given).holds("nonnegative"):
            return f"the entries of {term.matrix} are not known to be nonnegative"
    return ""


def _exact(claim: Bound) -> ExactEvidence:
    """Return whether exact numbers agree with the equation behind a bound, and with the bound."""
    behind = claim.statement
    found = check_exactly(behind.lhs, behind.rhs, behind.given)
    return _search(claim) if found.passed else found


def _search(claim: Bound) -> ExactEvidence:
    """Return whether exact numbers that satisfy the hypotheses ever break the bound."""
    tried = 0
    for assignment in assignments(claim.given, claim.smaller, claim.larger, count=EXAMPLES):
        try:
            smaller, larger = _both(claim, assignment)
        except OtimesError:  # an irrational root, a division by zero
            continue
        tried += 1
        if _exceeds(smaller, larger):
            return ExactEvidence(False, tried, f"{smaller} > {larger} at {assignment}")
    nothing = "no numbers were found at which the hypotheses hold and both sides have a value"
    return ExactEvidence(tried > 0, tried, "" if tried else nothing)


def _tight(claim: Bound) -> Check:
    """Return whether the numbers that are said to make both equal satisfy everything and do."""
    if claim.tight is None:
        return Check("tight", True, "no tight case is claimed")
    sides = (claim.smaller, claim.larger)
    arrays = {k: exact_array(np.array(v)) if np.ndim(v) else v for k, v in claim.tight.items()}
    declared = [each for each in claim.given if isinstance(each, Fact)]
    spoken = [*sides_of(claim.given), *[fact.subject for fact in declared]]
    values = Values(inspect(*sides, *spoken), arrays)
    assignment = Assignment(values.sizes, values.arrays, values.indices, values.scalars)
    smaller, larger = _both(claim, assignment)
    for fact in declared:
        if not has(fact, tree_value(fact.subject, assignment), assignment):
            return Check("tight", False, f"the tight case does not satisfy {fact}")
    if not holds(equations(claim.given), assignment):
        return Check("tight", False, "the tight case does not satisfy the hypotheses")
    return Check("tight", bool(smaller == larger), f"{smaller} and {larger} at {claim.tight}")


def _both(claim: Bound, assignment: Assignment) -> tuple[Any, Any]:
    return tuple(_number(tree_value(side, assignment)) for side in (claim.smaller, claim.larger))


def _exceeds(a: Any, b: Any) -> bool:
    """Return whether a number is certainly larger: of irrational ones intervals are known."""
    if isinstance(a, Interval) or isinstance(b, Interval):
        return bool(bounds(a).a > bounds(b).b)
    return bool(a > b)


def _number(value: Any) -> Any:
    return value[0, 0] if isinstance(value, np.ndarray) else value


def _on_model(claim: Bound, run: Run) -> ModelEvidence:
    """Return whether the bound holds on a model, and what is between the two is what is claimed.

    A bound with room to spare would hide a mistake in either side; the equation behind it does not.
    """
    behind = check_on_model(claim.statement, run)
    if not behind.applies or not behind.passed:
        return behind
    worst, where = behind.ratio, behind.where
    for each in valued((claim.smaller, claim.larger), claim.bind, run):
        (smaller, small_bound), (larger, large_bound) = each.found
        over = float(np.max(smaller - larger))
        allowed = float(np.max(small_bound + large_bound))
        ratio = max(0.0, over / allowed) if allowed else (0.0 if over <= 0 else float("inf"))
        if ratio >= worst:
            worst, where = ratio, str(each.case)
    why = "" if worst <= 1 else f"the bound is exceeded at {where}"
    return ModelEvidence(run.model, True, worst <= 1, worst, behind.sensitivity, where, why)
