"""The checks of each kind of claim.

identities   equations and non-identities: proof, exact values, models, mutants
bounds       inequalities: proof, tight cases, a search for violations
properties   ranks, causality, stochasticity: derivation by `facts`, exact values
definitions  expressions compared with plain loops
measured     error laws, functions of `numeric`, empirical claims
constants    that no hypothesis makes a symbol constant
criteria     that the words of a criterion name its thresholds
names        that symbols named like arrays of a model are bound to these
stages       that arrays stand where a forward pass has them
wiring       that products join what a head or an MLP joins
words        that title and prose name the arrays that are read
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.numeric.binding import Run
from otimes.proofs.checks.bounds import check_bound
from otimes.proofs.checks.constants import constant
from otimes.proofs.checks.definitions import check_definition
from otimes.proofs.checks.identities import check_failure, check_identity, failed
from otimes.proofs.checks.measured import check_error_law, check_method, check_observation
from otimes.proofs.checks.names import misnamed
from otimes.proofs.checks.properties import check_property
from otimes.proofs.checks.stages import displaced
from otimes.proofs.checks.wiring import miswired
from otimes.proofs.checks.words import unworded
from otimes.proofs.claims import (
    Bound,
    Claim,
    Definition,
    ErrorLaw,
    Method,
    NonIdentity,
    Observation,
    Property,
    Statement,
)
from otimes.proofs.evidence import Findings
from otimes.proofs.theorem import Theorem

CHECKS: dict[type, Callable[[Any, Sequence[Run], bool], Findings]] = {
    Statement: check_identity,
    NonIdentity: check_failure,
    Bound: check_bound,
    Property: check_property,
    Definition: check_definition,
    ErrorLaw: check_error_law,
    Method: check_method,
    Observation: check_observation,
}


def meanings(theorem: Theorem, claim: Claim) -> Iterator[str]:
    """Yield what a claim is about other than its words say, by each check; empty if nothing."""
    yield misnamed(claim)
    yield miswired(claim)
    yield displaced(claim)
    if not theorem.own:  # whose titles and words are their authors'
        yield constant(f"{theorem.title} {theorem.prose}", claim)
        yield unworded(theorem.name, theorem.title, theorem.prose, claim)


def check(theorem: Theorem, runs: Sequence[Run], quick: bool = False) -> Findings:
    """Return the results of an entry's checks; a claim that cannot be built or checked has failed.

    `quick` omits models and mutants.
    """
    try:
        claim = theorem.claim()
        if wrong := "; ".join(filter(None, meanings(theorem, claim))):
            raise OtimesError(wrong)
        found = CHECKS[type(claim)](claim, () if quick else runs, quick)
    except OtimesError as error:
        return failed(theorem, error, runs)
    return replace(found, needs_models=False) if quick else found
