"""The checks of a definition: its expression equals plain loops, at exact values and on models.

The loops are the textbook definition, index by index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.evaluate.arrays import Evaluator
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.mutations import Mutant, mutants
from otimes.algebra.verdict import decide
from otimes.numeric.binding import Run, Source, recorded
from otimes.numeric.rounding import contract_bounded, recorded_bound, walk_bounded, worst_ratio
from otimes.proofs.checks.identities import names_theorem, on_models
from otimes.proofs.checks.recorded import held_to_places
from otimes.proofs.claims import Definition, equations
from otimes.proofs.evidence import Findings, ProofEvidence
from otimes.proofs.exact import EXAMPLES, ExactEvidence
from otimes.proofs.hypotheses import SEED, assignments
from otimes.proofs.mutants import ILL_SHAPED, REFUTED, STILL_TRUE, MutantEvidence
from otimes.proofs.on_models import (
    ModelEvidence,
    at,
    at_depth,
    depths,
    out_of_scope,
    places_of,
    silent,
    valued,
    with_numbers,
    worst_of,
)
from otimes.proofs.rebound import check_bindings
from otimes.proofs.theorem import layout_of

FUNCTIONS = (RowSoftmax, Activation, LayerNorm, RMSNorm)
BUDGET = 5.0  # work units
NOWHERE = "the definition does not apply to the model"


def check_definition(claim: Definition, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the checks of a definition: equal to plain loops, which differ from its mutants."""
    return Findings(
        ProofEvidence("defined", f"{claim.name} is this expression"),
        _examples(claim),
        on_models(_on_model, claim, runs),
        None if quick else MutantEvidence.of(_mutants(claim)),
        tuple(names_theorem("obeys", name) for name in claim.obeys),
        claim.on_models,
        bindings=None if quick else check_bindings(claim, runs),
    )


def _named(assignment: Assignment) -> dict[str, Any]:
    """Return all values by name, the arguments of the plain loops."""
    return {
        **assignment.sizes,
        **assignment.scalars,
        **assignment.indices,
        **assignment.arrays,
    }


def _examples(claim: Definition) -> ExactEvidence:
    tried = 0
    for what, value, plain, bound in _both(claim, claim.value, EXAMPLES):
        tried += 1
        if _differ(value, plain, bound):
            return ExactEvidence(False, tried, f"{value} is not {plain} at {what}")
    nothing = "no values were found at which it is defined"
    return ExactEvidence(tried > 0, tried, "" if tried else nothing)


def _differ(value: Any, plain: Any, bound: Any) -> bool:
    if np.shape(value) != np.shape(plain):
        return True
    if bound is None:
        return not np.all(np.asarray(value, dtype=object) == np.asarray(plain, dtype=object))
    return worst_ratio(value, plain, bound) > 1


def _both(
    claim: Definition, expression: Any, count: int
) -> Iterator[tuple[Any, Any, Any, np.ndarray | None]]:
    """Yield the values of an expression and of the loops at random inputs.

    With nonlinear functions they are floats with a rounding bound; otherwise exact.
    """
    if not claim.value.has(*FUNCTIONS):
        for assignment in assignments(claim.given, claim.value, count=count):
            try:
                value = tree_value(expression, assignment)
            except OtimesError:  # undefined there: a singular matrix, an irrational root
                continue
            yield assignment, value, _as_matrix(claim.plain(**_named(assignment)), value), None
        return
    rng = np.random.default_rng(SEED)
    evaluator = Evaluator(expression)
    for assignment in assignments(claim.given, claim.value, count=count):
        floats = {
            name: (rng.standard_normal(array.shape) if not equations(claim.given) else array)
            for name, array in assignment.arrays.items()
        }
        floats = {name: np.asarray(array, dtype=np.float64) for name, array in floats.items()}
        numbers = {**_named(assignment), **floats}
        values = evaluator.values({k: v for k, v in numbers.items() if k in _names(evaluator)})
        with np.errstate(
            divide="ignore", invalid="ignore"
        ):  # undefined there, as a norm at a constant row
            found = contract_bounded(evaluator, values)
            _, bound = walk_bounded(expression, values)
            value = found.value.reshape(bound.shape)
            plain = _as_matrix(claim.plain(**numbers), value)
            other = recorded_bound(expression, evaluator, values)
        yield assignment, value, plain, found.bound.reshape(bound.shape) + other


def _names(evaluator: Evaluator) -> set[str]:
    signature = evaluator.signature
    return {*signature.tensors, *signature.scalars, *signature.sizes, *signature.indices}


def _as_matrix(plain: Any, like: Any) -> Any:
    """Return the result of the loops in the shape of the expression."""
    if isinstance(like, np.ndarray):
        return np.asarray(plain, dtype=like.dtype).reshape(like.shape)
    return plain


def _mutants(claim: Definition) -> Iterator[tuple[Mutant, str]]:
    """Yield whether the loops differ from each mutant of the expression."""
    sizes = inspect(claim.value).sizes.keys()
    for mutant in mutants(claim.value):
        try:
            both = _both(claim, mutant.expression, EXAMPLES // 2)
            if inspect(mutant.expression, claim.value).sizes.keys() != sizes:
                verdict = ILL_SHAPED
            elif any(_differ(value, plain, bound) for _, value, plain, bound in both):
                verdict = REFUTED
            else:
                verdict = "the loops agree with it, too"
        except (ShapeError, LanguageError, ValueError):
            verdict = ILL_SHAPED
        if verdict not in (REFUTED, ILL_SHAPED):
            given = equations(claim.given)
            if decide(mutant.expression, claim.value, given, budget=BUDGET).status == "proved":
                verdict = STILL_TRUE
        yield mutant, verdict


def _on_model(claim: Definition, run: Run) -> ModelEvidence:
    """Return whether the expression equals, on a model, the recorded activation or the loops."""
    why = "" if isinstance(claim.places, Mapping) else silent(claim, run)
    if why:
        return out_of_scope(run, why)
    found = worst_of(run, _ratios(claim, run), NOWHERE)
    if isinstance(claim.places, Mapping):
        return held_to_places(claim, run, found)
    return replace(found, recorded=found.applies and bool(claim.places))


def _ratios(claim: Definition, run: Run) -> Iterator[tuple[float, str]]:
    """Yield error/bound of each comparison on a model, and where."""
    (defined,) = with_numbers([claim.value])
    if defined.has(LayerProduct, OrderSum):  # one for each layer of the model
        defined = at_depth(defined, depths(inspect(defined), run.n_layers))
    for case, (found,) in valued((claim.value,), claim.bind, run):
        on = found.values
        total = found.bound + recorded_bound(defined, found.evaluator, on)
        against: dict[str, Any] = {
            f"recorded {place}": recorded(Source(place), layout_of(claim.value), case, run)
            for place in (claim.places if isinstance(claim.places, tuple) else ())
        }
        if not against:
            numbers = {**on.sizes, **on.scalars, **places_of([claim.value]), **on.arrays}
            against["plain loops"] = _as_matrix(claim.plain(**numbers), found.value)
        for what, plain in against.items():
            if plain is not None:
                ratio = worst_ratio(found.value, np.asarray(plain, dtype=np.float64), total)
                yield ratio, at(what, case)
