"""The checks of a property: derivation by `facts`, exact values, models, mutants.

Whether exact values have a property is decided entry by entry here, independently of `facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import sympy

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.facts import Fact, facts
from otimes.algebra.facts.bounds import Numbers
from otimes.algebra.language.intervals import bounds
from otimes.algebra.language.shapes import inspect
from otimes.algebra.mutations import mutants
from otimes.numeric.binding import Run
from otimes.numeric.rounding import UNIT_ROUNDOFF
from otimes.proofs.checks.identities import on_model
from otimes.proofs.claims import Property, as_pair
from otimes.proofs.evidence import Check, Findings, ProofEvidence
from otimes.proofs.exact import EXAMPLES, ExactEvidence
from otimes.proofs.hypotheses import assignments, unmet
from otimes.proofs.mutants import WITHOUT, MutantEvidence
from otimes.proofs.on_models import ModelEvidence, valued

U = UNIT_ROUNDOFF["float64"]


def check_property(claim: Property, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the checks of a property: derivation, exact values, models, mutants."""
    return Findings(
        _derived(claim),
        _examples(claim),
        tuple(on_model(_on_model, claim, run) for run in runs) if claim.on_models else (),
        None if quick else _mutants(claim),
        _of_rank(claim) if claim.fact.name == "rank_at_most" else (),
        claim.on_models,
    )


def derives(fact: Fact, given: Sequence[Any]) -> Fact | None:
    """Return the fact derived by `facts` that implies this one, or None."""
    known = [each if isinstance(each, Fact) else as_pair(each) for each in given]
    found = facts(fact.subject, known).get(fact.name)
    if found is None or fact.value is None:
        return found
    if fact.name == "rank_at_most":
        sizes = found.value.free_symbols | fact.value.free_symbols
        return found if Numbers(sizes).never_exceeds(found.value, fact.value) else None
    return found if found.value == fact.value else None


def _derived(claim: Property) -> ProofEvidence:
    if missing := unmet(claim.given):
        return ProofEvidence("error", missing)
    found = derives(claim.fact, claim.given)
    if found is None:
        return ProofEvidence("undecided", f"`facts` does not derive: {claim.fact}")
    return ProofEvidence("proved", found.why)


def _examples(claim: Property) -> ExactEvidence:
    """Return whether random exact values that satisfy the hypotheses have the property."""
    lacking, tried = _lacking(claim.fact, claim.given)
    if lacking is not None:
        return ExactEvidence(False, tried, f"not so at {lacking}")
    nothing = "no numbers were found at which the hypotheses hold"
    return ExactEvidence(tried > 0, tried, "" if tried else nothing)


def _lacking(
    fact: Fact, given: Sequence[Any], largest: int = 3, count: int = EXAMPLES
) -> tuple[Assignment | None, int]:
    """Return values that lack the property, if found, and the number of values tried."""
    tried = 0
    for assignment in assignments(given, fact.subject, count=count, largest=largest):
        try:
            value = tree_value(fact.subject, assignment)
        except OtimesError:  # a singular matrix
            continue
        tried += 1
        if not has(fact, value, assignment):
            return assignment, tried
    return None, tried


def _of_rank(claim: Property) -> tuple[Check, ...]:
    """Return whether a rank bound is the lowest that is derived, and is attained."""
    return (_lowest(claim), *([_attained(claim)] if claim.attained else []))


def _lowest(claim: Property) -> Check:
    """Return whether no lower rank bound is derived.

    A bound that is too high is also attained at sizes where it agrees with the lower one.
    """
    found = derives(claim.fact, claim.given)
    if found is None:
        return Check("lowest", False, "nothing is derived")
    sizes = found.value.free_symbols | claim.fact.value.free_symbols
    lowest = Numbers(sizes).never_exceeds(claim.fact.value, found.value)
    return Check("lowest", lowest, "" if lowest else f"the rank is at most {found.value}")


def _attained(claim: Property) -> Check:
    """Return whether the rank bound is attained at some exact values."""
    best: tuple[int, str] = (-1, "")
    for assignment in assignments(claim.given, claim.fact.subject, count=EXAMPLES):
        try:
            value = tree_value(claim.fact.subject, assignment)
        except OtimesError:  # a singular matrix
            continue
        if _rank(value) == _size(claim.fact.value, assignment):
            sizes = ", ".join(f"{name} = {size}" for name, size in assignment.sizes.items())
            best = max(best, (_rank(value), sizes))
    if not best[1]:
        return Check("attained", False, "no exact values of that rank were found")
    return Check("attained", True, f"the rank is {best[0]} at {best[1]}")


def _mutants(claim: Property) -> MutantEvidence:
    """Return the check of mutants: a hypothesis is removed, or the subject is changed.

    Each mutant must fail at some exact values, or still be derived.
    """
    refuted = ill_shaped = 0
    still_true: list[str] = []
    escaped: list[str] = []
    changed = [
        (mutant.name, mutant.expression, claim.given) for mutant in mutants(claim.fact.subject)
    ]
    fewer = [
        (WITHOUT, claim.fact.subject, [*claim.given[:k], *claim.given[k + 1 :]])
        for k in range(len(claim.given))
    ]
    for operator, subject, given in [*fewer, *changed]:
        try:
            fact = replace(claim.fact, subject=subject)
            if not _sizes_in(fact) <= inspect(subject).sizes.keys():
                ill_shaped += 1  # the bound has a size that is not in the mutant
                continue
            lacking, tried = _lacking(fact, given, 4)
        except (ShapeError, LanguageError):
            ill_shaped += 1
            continue
        if lacking is not None:
            refuted += 1
        elif operator == WITHOUT:
            escaped.append(f"{fact} holds with fewer hypotheses, or nothing shows that it does not")
        elif tried and derives(fact, given) is not None:
            still_true.append(f"{operator}: {fact}")
        else:
            escaped.append(f"{operator}: {fact} (neither derived nor refuted by {tried} examples)")
    if claim.fact.name == "rank_at_most":
        lower = replace(claim.fact, value=claim.fact.value - 1)
        if _lacking(lower, claim.given)[0] is not None:
            refuted += 1
        elif claim.attained:
            escaped.append(f"{lower}, one less than claimed, is not refuted")
    return MutantEvidence(refuted, tuple(still_true), tuple(escaped), ill_shaped)


# -- properties of exact values --------------------------------------------------------------------


def _rank(value: Any) -> int:
    return int(sympy.Matrix(_rows(value)).rank()) if value.size else 0


def _size(bound: Any, assignment: Assignment) -> int:
    """Return the value of a rank bound at given sizes."""
    missing = {symbol.name for symbol in bound.free_symbols} - assignment.sizes.keys()
    if missing:
        raise ShapeError(f"the size {min(missing)} of the bound is not a size of the matrix")
    return int(bound.subs({symbol: assignment.sizes[symbol.name] for symbol in bound.free_symbols}))


def _sizes_in(fact: Fact) -> set[str]:
    return {symbol.name for symbol in getattr(fact.value, "free_symbols", ())}


def _rows(value: Any) -> list[list[Any]]:
    return [[sympy.Rational(entry) for entry in row] for row in value]


def _minors(value: Any) -> bool:
    matrix = sympy.Matrix(_rows(value))
    places = range(matrix.rows)
    return all(
        matrix.extract(list(some), list(some)).det() >= 0
        for size in range(1, matrix.rows + 1)
        for some in combinations(places, size)
    )


def _product_is(value: Any, other: Any, number: Any) -> bool:
    product = value.dot(other)
    return bool(np.all(product == number))


def _identity(size: int) -> Any:
    return np.array([[int(i == j) for j in range(size)] for i in range(size)], dtype=object)


def _alike(value: Any, number: int) -> bool:
    """Return whether all entries may equal a number; irrational entries are intervals."""
    return not np.any(np.asarray(value, dtype=object) != number)


def _no_less(value: Any, number: int) -> bool:
    """Return whether all entries may be at least a number."""
    return not any(bounds(entry).b < number for entry in np.ravel(value))


HAS: dict[str, Callable[[Any], bool]] = {
    "zero": lambda v: not np.any(v != 0),
    "identity": lambda v: bool(np.all(v == _identity(len(v)))),
    "permutation": lambda v: bool(
        np.all((v == 0) | (v == 1)) and np.all(v.sum(0) == 1) and np.all(v.sum(1) == 1)
    ),
    "orthogonal": lambda v: _product_is(v.T, v, _identity(len(v))),
    "orthonormal_columns": lambda v: _product_is(v.T, v, _identity(v.shape[1])),
    "orthonormal_rows": lambda v: _product_is(v, v.T, _identity(len(v))),
    "row_stochastic": lambda v: _no_less(v, 0) and _alike(v.sum(1), 1),
    "column_stochastic": lambda v: _no_less(v, 0) and _alike(v.sum(0), 1),
    "diagonal": lambda v: all(v[i, j] == 0 for i, j in np.ndindex(v.shape) if i != j),
    "lower_triangular": lambda v: all(v[i, j] == 0 for i, j in np.ndindex(v.shape) if i < j),
    "upper_triangular": lambda v: all(v[i, j] == 0 for i, j in np.ndindex(v.shape) if i > j),
    "positive_semidefinite": lambda v: bool(np.all(v == v.T)) and _minors(v),
    "projection": lambda v: _product_is(v, v, v),
    "symmetric": lambda v: bool(np.all(v == v.T)),
    "antisymmetric": lambda v: bool(np.all(v == -v.T)),
    "rows_sum_to_one": lambda v: _alike(v.sum(1), 1),
    "columns_sum_to_one": lambda v: _alike(v.sum(0), 1),
    "nonnegative": lambda v: _no_less(v, 0),
    "invertible": lambda v: sympy.Matrix(_rows(v)).det() != 0,
}


def has(fact: Fact, value: Any, assignment: Assignment) -> bool:
    """Return whether exact values have the property of a fact."""
    if fact.name in HAS:
        return HAS[fact.name](np.asarray(value, dtype=object))
    if fact.name == "rank_at_most":
        return _rank(value) <= _size(fact.value, assignment)
    said = tree_value(fact.value, assignment)
    if fact.name == "rows_sum_to":
        return bool(np.all(value.sum(1) == said))
    if fact.name == "columns_sum_to":
        return bool(np.all(value.sum(0) == said))
    if fact.name == "commutes_with":
        return bool(np.all(value.dot(said) == said.dot(value)))
    return _product_is(value, said, _identity(len(value)))


# -- on models -------------------------------------------------------------------------------------


def _on_model(claim: Property, run: Run) -> ModelEvidence:
    """Return whether the value on a model has the property within its rounding bound."""
    fact = claim.fact
    if fact.name not in RESIDUALS and fact.name != "rank_at_most":
        why = f"“{fact.name}” is not a property that can be checked on rounded values"
        return ModelEvidence(run.model, False, True, why=why)
    worst, where, any_case = 0.0, "", False
    extra = [fact.value] if fact.value is not None and fact.value.is_Matrix else []
    for each in valued((fact.subject, *extra), claim.bind, run):
        value, bound = each.found[0]
        if fact.name == "rank_at_most":
            most = int(each.values[0].size(fact.value))
            if most >= min(value.shape):
                continue  # no matrix of this shape has a larger rank
            ratio = _beyond_rank(value, bound, most)
        else:
            residual, allowed = RESIDUALS[fact.name](value, bound)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = float(np.max(np.where(residual == 0, 0.0, residual / allowed), initial=0.0))
        any_case = True
        if ratio >= worst:
            worst, where = ratio, str(each.case)
    if not any_case:
        why = "the claim does not apply to the model, or could not fail there"
        return ModelEvidence(run.model, False, True, why=why)
    why = "" if worst <= 1 else f"error/bound {worst:.3g} at {where}"
    return ModelEvidence(run.model, True, worst <= 1, worst, 0.0, where, why)


def _beyond_rank(value: np.ndarray, bound: np.ndarray, most: int) -> float:
    """Return the first singular value that should be zero, divided by its rounding bound.

    A perturbation E moves a singular value by at most ‖E‖₂ ≤ ‖E‖_F (Weyl); the singular values are
    computed with a backward error of a modest multiple of u·σ₁, taken as the larger size (LAPACK
    Users' Guide, §4.9).
    """
    sigma = np.linalg.svd(value, compute_uv=False)
    allowed = float(np.linalg.norm(bound) + 2 * max(value.shape) * U * sigma[0])
    return float(sigma[most] / allowed) if sigma[most] else 0.0


Residual = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def _sums(axis: int) -> Residual:
    def residual(value: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rounding = value.shape[axis] * U * np.abs(value).sum(axis)
        return np.abs(value.sum(axis) - 1), bound.sum(axis) + rounding

    return residual


def _below_zero(value: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.maximum(-value, 0), bound


def _stochastic(value: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sums, allowed = _sums(1)(value, bound)
    below, entries = _below_zero(value, bound)
    return np.concatenate([sums, below.ravel()]), np.concatenate([allowed, entries.ravel()])


RESIDUALS: dict[str, Residual] = {
    "zero": lambda v, b: (np.abs(v), b),
    "symmetric": lambda v, b: (np.abs(v - v.T), b + b.T),
    "antisymmetric": lambda v, b: (np.abs(v + v.T), b + b.T),
    "lower_triangular": lambda v, b: (np.abs(np.triu(v, 1)), b),
    "upper_triangular": lambda v, b: (np.abs(np.tril(v, -1)), b),
    "diagonal": lambda v, b: (np.abs(v - np.diag(np.diag(v))), b),
    "nonnegative": _below_zero,
    "rows_sum_to_one": _sums(1),
    "columns_sum_to_one": _sums(0),
    "row_stochastic": _stochastic,
}
