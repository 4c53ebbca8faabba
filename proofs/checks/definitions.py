"""The checks of a definition: its expression equals plain loops, at exact values and on models.

The loops are the textbook definition, index by index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.evaluate.arrays import Evaluator
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.mutations import mutants
from otimes.algebra.verdict import decide
from otimes.numeric.binding import Run, recorded
from otimes.numeric.rounding import contract_bounded, recorded_bound, walk_bounded, worst_ratio
from otimes.proofs.checks.identities import names_theorem, on_model
from otimes.proofs.claims import Definition, equations
from otimes.proofs.evidence import Findings, ProofEvidence
from otimes.proofs.exact import EXAMPLES, ExactEvidence
from otimes.proofs.hypotheses import SEED, assignments
from otimes.proofs.mutants import MutantEvidence
from otimes.proofs.on_models import (
    ModelEvidence,
    at_depth,
    depths,
    places_of,
    silent,
    valued,
    with_numbers,
)
from otimes.proofs.theorem import layout_of

FUNCTIONS = (RowSoftmax, Activation, LayerNorm, RMSNorm)
BUDGET = 5.0  # work units


def check_definition(claim: Definition, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the checks of a definition: equal to plain loops, which differ from its mutants."""
    return Findings(
        ProofEvidence("defined", f"{claim.name} is this expression"),
        _examples(claim),
        tuple(on_model(_on_model, claim, run) for run in runs) if claim.on_models else (),
        None if quick else _mutants(claim),
        tuple(names_theorem("obeys", name) for name in claim.obeys),
        claim.on_models,
    )


def _is_exact(claim: Definition) -> bool:
    return not claim.value.has(*FUNCTIONS)


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
    if _is_exact(claim):
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


def _mutants(claim: Definition) -> MutantEvidence:
    """Return the check that the loops differ from each mutant of the expression."""
    refuted = ill_shaped = 0
    still_true: list[str] = []
    escaped: list[str] = []
    for mutant in mutants(claim.value):
        try:
            if (
                inspect(mutant.expression, claim.value).sizes.keys()
                != inspect(claim.value).sizes.keys()
            ):
                ill_shaped += 1
                continue
            told = any(
                _differ(v, p, b) for _, v, p, b in _both(claim, mutant.expression, EXAMPLES // 2)
            )
        except (ShapeError, LanguageError, ValueError):
            ill_shaped += 1
            continue
        if told:
            refuted += 1
            continue
        verdict = decide(mutant.expression, claim.value, equations(claim.given), budget=BUDGET)
        if verdict.status == "proved":
            still_true.append(str(mutant))
        else:
            escaped.append(f"{mutant}: the loops agree with it, too")
    return MutantEvidence(refuted, tuple(still_true), tuple(escaped), ill_shaped)


def _on_model(claim: Definition, run: Run) -> ModelEvidence:
    """Return whether the expression equals, on a model, the recorded activation or the loops."""
    if why := silent(claim, run):
        return ModelEvidence(run.model, False, True, why=why)
    worst, where, any_case = 0.0, "", False
    (defined,) = with_numbers([claim.value])
    if defined.has(LayerProduct, OrderSum):  # one for each layer of the model
        defined = at_depth(defined, depths(inspect(defined), run.n_layers))
    for each in valued((claim.value,), claim.bind, run):
        any_case = True
        (value, bound), on = each.found[0], each.values[0]
        total = bound + recorded_bound(defined, each.evaluators[0], on)
        against: list[tuple[str, Any]] = []
        for place in claim.places:
            seen = recorded(place, layout_of(claim.value), each.case, run)
            if seen is not None:
                against.append((f"recorded {place}", seen))
        if not claim.places:
            numbers = {**on.sizes, **on.scalars, **places_of([claim.value]), **on.arrays}
            against.append(("plain loops", _as_matrix(claim.plain(**numbers), value)))
        for what, plain in against:
            ratio = worst_ratio(value, np.asarray(plain, dtype=np.float64), total)
            if ratio >= worst:
                worst, where = ratio, ", ".join(filter(None, (what, str(each.case))))
    if not any_case:
        why = "the definition does not apply to the model"
        return ModelEvidence(run.model, False, True, why=why)
    why = "" if worst <= 1 else f"error/bound {worst:.3g} at {where}"
    return ModelEvidence(run.model, True, worst <= 1, worst, 0.0, where, why)
