"""How each kind of claim is tried.

identities   equations and what only looks like one: proof, exact numbers, models, mutants
bounds       inequalities: why, where they are tight, a search for a violation
properties   ranks, causality, stochasticity: the facts engine against exact numbers
definitions  expressions against plain loops
measured     error laws, functions of `numeric`, empirical claims
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from algebra.errors import OtimesError
from numeric.binding import Run
from proofs.checks.bounds import check_bound
from proofs.checks.definitions import check_definition
from proofs.checks.identities import check_failure, check_identity, failed
from proofs.checks.measured import check_error_law, check_method, check_observation
from proofs.checks.properties import check_property
from proofs.claims import (
    Bound,
    Definition,
    ErrorLaw,
    Fails,
    Holds,
    Method,
    Observation,
    Statement,
)
from proofs.evidence import Findings
from proofs.theorem import Theorem

CHECKS: dict[type, Callable[[Any, Sequence[Run], bool], Findings]] = {
    Statement: check_identity,
    Fails: check_failure,
    Bound: check_bound,
    Holds: check_property,
    Definition: check_definition,
    ErrorLaw: check_error_law,
    Method: check_method,
    Observation: check_observation,
}


def check(theorem: Theorem, runs: Sequence[Run], quick: bool = False) -> Findings:
    """Return what the checks of an entry found; what cannot be stated or tried has failed.

    `quick`: without models and mutants.
    """
    try:
        claim = theorem.claim()
        found = CHECKS[type(claim)](claim, () if quick else runs, quick)
    except OtimesError as error:
        return failed(theorem, error, runs)
    return replace(found, needs_models=False) if quick else found
