"""The checks of an identity: proof and replay, exact values, models, mutants, published forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from otimes.algebra.decide.certificate import to_json
from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.verdict import Verdict, decide
from otimes.numeric.binding import Run, UnboundSymbol
from otimes.numeric.rounding import worst_ratio
from otimes.proofs import replay
from otimes.proofs.checks.recorded import held_to_places
from otimes.proofs.claims import (
    Bound,
    Described,
    Lemma,
    NonIdentity,
    Property,
    Statement,
    as_pair,
    assumed,
    equations,
)
from otimes.proofs.evidence import Check, Findings, ProofEvidence
from otimes.proofs.exact import ExactEvidence, check_exactly
from otimes.proofs.hypotheses import unmet
from otimes.proofs.mutants import MutantEvidence, check_mutants, with_equal_sizes
from otimes.proofs.on_models import ModelEvidence, check_on_model, out_of_scope, valued
from otimes.proofs.rebound import check_bindings
from otimes.proofs.theorem import DECLARED, Theorem

EQUAL_SIDES = (
    "both sides are the same expression, so the equation says nothing: state another form on one "
    "side, or a Definition with plain loops"
)
SEARCH = 10.0
"""Units of work for the search for numbers that refute a non-identity, perhaps of whole models."""


def check_identity(stated: Statement, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the four checks of an equation, and those of its published wrong forms."""
    return Findings(
        proof=proof_of(stated),
        exact=check_exactly(stated.lhs, stated.rhs, stated.given),
        models=on_models(check_on_model, stated, runs),
        mutants=None if quick else check_mutants(stated.lhs, stated.rhs, stated.given),
        more=tuple(_as_printed(number, form, stated) for number, form in stated.printed.items()),
        needs_models=stated.on_models,
        bindings=None if quick else check_bindings(stated, runs),
    )


def proof_of(stated: Statement) -> ProofEvidence:
    """Return the verdict on an equation, its certificate replayed; an error if lhs is rhs."""
    if missing := unmet(stated.given):
        return ProofEvidence("error", missing)
    verdict = decide(stated.lhs, stated.rhs, assumed(stated.given))
    if verdict.status == "refuted":
        found = (str(verdict.counterexample), verdict.holds_if)
        return ProofEvidence("refuted", "\n".join(filter(None, found)))
    if verdict.status == "undecided":
        return ProofEvidence("undecided", verdict.reason)
    if stated.lhs == stated.rhs:
        return ProofEvidence("error", EQUAL_SIDES)
    used = tuple(_hypothesis_name(stated.given, k) for k in verdict.used)
    return _replayed(verdict, used)


def _hypothesis_name(given: Sequence[Any], number: int) -> str:
    each = [one for one in given if equations([one])][number]
    if isinstance(each, Described):
        return f"“{each.fact}”"
    return each.name if isinstance(each, Lemma) else f"hypothesis {number + 1}"


def _replayed(verdict: Verdict, used: tuple[str, ...]) -> ProofEvidence:
    """Return the verdict of the independent checker on the certificate of a proof."""
    made = verdict.certificate
    if made is None:
        detail = f"{verdict.reason}, but there is no certificate of it to replay"
        return ProofEvidence("error", detail, used)
    try:
        seen = replay.check(json.loads(to_json(made)))
    except replay.Rejected as why:
        detail = f"{verdict.reason}, but replay rejects its certificate: {why}"
        return ProofEvidence("error", detail, used)
    return ProofEvidence("proved", f"{verdict.reason}; certificate replayed: {seen}", used)


def _as_printed(number: str, form: Any, stated: Statement) -> Check:
    """Return the check of an erratum: its published form is refuted, or its shapes do not match."""
    what = f"{number} as printed"
    try:
        lhs, rhs = as_pair(form() if callable(form) else form)
        verdict = decide(lhs, rhs, assumed(stated.given))
    except (ShapeError, LanguageError, ValueError) as error:
        return Check(what, True, f"does not fit together: {error}")
    if verdict.status == "refuted":
        return Check(what, True, f"refuted:\n{verdict.counterexample}")
    return Check(what, False, f"is {verdict.status}: {verdict.reason}")


def check_failure(claim: NonIdentity, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the checks of a non-identity: refuted at exact values, and different on models."""
    verdict = decide(claim.lhs, claim.rhs, assumed(claim.given), budget=SEARCH)
    status, detail = verdict.status, verdict.reason
    if verdict.status == "refuted":
        return Findings(
            ProofEvidence("fails", str(verdict.counterexample)),
            models=on_models(_differs_on, claim, runs),
            needs_models=claim.on_models,
            bindings=None if quick else check_bindings(claim, runs),
        )
    if status == "proved":
        detail = f"it is an identity: {detail}"
    return Findings(ProofEvidence("error" if status == "proved" else "undecided", detail))


def _differs_on(claim: NonIdentity, run: Run) -> ModelEvidence:
    """Return whether the sides differ by more than their bounds in every layer and head."""
    ratios = [
        (worst_ratio(left.value, right.value, left.bound + right.bound), str(case))
        for case, (left, right) in valued((claim.lhs, claim.rhs), claim.bind, run)
    ]
    if not ratios:
        return out_of_scope(run, "the claim does not apply to the model")
    least, where = min(ratios, key=lambda each: each[0])
    why = "" if least > 1 else f"the sides are equal within rounding at {where}"
    return ModelEvidence(run.model, True, least > 1, 0.0, 0.0, where, why)


def names_theorem(relation: str, name: str) -> Check:
    """Return the check that a theorem to which a claim is related exists."""
    known = name in DECLARED
    return Check(f"{relation} {name}", known, "" if known else "there is no such theorem")


def on_models(
    check: Callable[[Any, Run], ModelEvidence], claim: Any, runs: Sequence[Run]
) -> tuple[ModelEvidence, ...]:
    """Return the results on models, if the claim is checked there; an error counts as a failure."""
    return tuple(_on_model(check, claim, run) for run in runs) if claim.on_models else ()


def _on_model(check: Callable[[Any, Run], ModelEvidence], claim: Any, run: Run) -> ModelEvidence:
    """Return the result on a model.

    A claim about symbols that are no quantities of a model does not apply to it.
    """
    try:
        found = check(claim, run)
        tied = isinstance(claim, Bound | NonIdentity | Property)
        return held_to_places(claim, run, found) if tied else found
    except UnboundSymbol as error:
        why = str(error).partition(": ")[0]
        return ModelEvidence(run.model, False, True, why=f"{why} (Statement takes bind=)")
    except OtimesError as error:
        return ModelEvidence(run.model, True, False, why=str(error))


def failed(theorem: Theorem, error: OtimesError, runs: Sequence[Run]) -> Findings:
    """Return the findings on a claim that cannot be built: every check has failed."""
    said = str(error) + _at_equal_sizes(theorem, error)
    return Findings(
        ProofEvidence("error", said),
        ExactEvidence(False, 0, said),
        tuple(ModelEvidence(run.model, True, False, why=said) for run in runs),
        MutantEvidence(0, (), (), 0),
        needs_models=True,
    )


def _at_equal_sizes(theorem: Theorem, error: OtimesError) -> str:
    """Return the refutation of a statement with mismatched shapes after making all sizes equal."""
    if not isinstance(error, ShapeError):
        return ""
    stated = theorem.state()
    if not isinstance(stated, Statement) or isinstance(stated.lhs, str):
        return ""
    try:
        verdict = decide(*with_equal_sizes(stated.lhs, stated.rhs))
    except OtimesError:
        return ""
    if verdict.status != "refuted":
        return ""
    return f"\nand with all sizes made equal it is false:\n{verdict.counterexample}"
