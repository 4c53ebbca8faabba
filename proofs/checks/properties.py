"""The checks of a property: derivation by `facts`, exact values, models, mutants.

Whether exact values have a property is decided entry by entry here, independently of `facts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import sympy

from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.facts import Fact, facts
from otimes.algebra.facts.bounds import Numbers
from otimes.algebra.language.intervals import bounds
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.unicode import short_text
from otimes.algebra.mutations import mutants
from otimes.numeric.binding import Run
from otimes.numeric.rounding import UNIT_ROUNDOFF
from otimes.proofs.checks.identities import on_models
from otimes.proofs.claims import Property, as_pair
from otimes.proofs.evidence import Check, Findings, ProofEvidence
from otimes.proofs.exact import EXAMPLES, ExactEvidence
from otimes.proofs.hypotheses import unmet, values_under
from otimes.proofs.mutants import ILL_SHAPED, REFUTED, STILL_TRUE, WITHOUT, MutantEvidence
from otimes.proofs.on_models import ModelEvidence, out_of_scope, valued, worst_of
from otimes.proofs.rebound import check_bindings

U = UNIT_ROUNDOFF["float64"]


def check_property(claim: Property, runs: Sequence[Run], quick: bool) -> Findings:
    """Return the checks of a property: derivation, exact values, models, mutants."""
    return Findings(
        _derived(claim),
        _examples(claim),
        on_models(_on_model, claim, runs),
        None if quick else MutantEvidence.of(_mutants(claim)),
        _of_rank(claim) if claim.fact.name == "rank_at_most" else (),
        claim.on_models,
        bindings=None if quick else check_bindings(claim, runs),
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
    drawn = values_under(given, fact.subject, count=count, largest=largest)
    for tried, (assignment, (value,)) in enumerate(drawn, start=1):
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
    for assignment, (value,) in values_under(claim.given, claim.fact.subject, count=EXAMPLES):
        if _rank(value) == _size(claim.fact.value, assignment):
            sizes = ", ".join(f"{name} = {size}" for name, size in assignment.sizes.items())
            best = max(best, (_rank(value), sizes))
    if not best[1]:
        return Check("attained", False, "no exact values of that rank were found")
    return Check("attained", True, f"the rank is {best[0]} at {best[1]}")


def _mutants(claim: Property) -> Iterator[tuple[str, str]]:
    """Yield the verdicts on mutants: a hypothesis is removed, or the subject is changed.

    Each mutant must fail at some exact values, or still be derived.
    """
    subject, given = claim.fact.subject, claim.given
    for k in range(len(given)):
        verdict = _verdict(claim.fact, subject, [*given[:k], *given[k + 1 :]])
        if verdict not in (REFUTED, ILL_SHAPED):
            verdict = "it holds with fewer hypotheses, or nothing shows that it does not"
        yield f"{WITHOUT}: {claim.fact}", verdict
    for mutant in mutants(subject):
        verdict = _verdict(claim.fact, mutant.expression, given)
        yield f"{mutant.name}: {claim.fact.name} of {short_text(mutant.expression)}", verdict
    if claim.fact.name == "rank_at_most":
        lower = replace(claim.fact, value=claim.fact.value - 1)
        if _lacking(lower, given)[0] is not None:
            yield f"{lower}", REFUTED
        elif claim.attained:
            yield f"{lower}, one less than claimed", "it is not refuted"


def _verdict(claimed: Fact, subject: Any, given: Sequence[Any]) -> str:
    """Return whether the property of a subject fails at some exact values, or is derived."""
    try:
        fact = replace(claimed, subject=subject)
        if not _sizes_in(fact) <= inspect(fact.subject).sizes.keys():
            return ILL_SHAPED  # the bound has a size that is not in the mutant
        lacking, tried = _lacking(fact, given, 4)
    except (ShapeError, LanguageError):
        return ILL_SHAPED
    if lacking is not None:
        return REFUTED
    if tried and derives(fact, given) is not None:
        return STILL_TRUE
    return f"neither derived nor refuted by {tried} examples"


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
    if claim.fact.name not in RESIDUALS and claim.fact.name != "rank_at_most":
        why = f"“{claim.fact.name}” is not a property that can be checked on rounded values"
        return out_of_scope(run, why)
    nothing = "the claim does not apply to the model, or could not fail there"
    return worst_of(run, _ratios(claim, run), nothing)


def _ratios(claim: Property, run: Run) -> Iterator[tuple[float, str]]:
    """Yield error/bound at each layer and head where a model could lack the property."""
    fact = claim.fact
    extra = [fact.value] if fact.value is not None and fact.value.is_Matrix else []
    for case, (found, *_) in valued((fact.subject, *extra), claim.bind, run):
        value, bound = found.value, found.bound
        if fact.name == "rank_at_most":
            most = int(found.values.size(fact.value))
            if most < min(value.shape):  # no matrix of this shape has a larger rank
                yield _beyond_rank(value, bound, most), str(case)
        else:
            residual, allowed = RESIDUALS[fact.name](value, bound)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios = np.where(residual == 0, 0.0, residual / allowed)
            yield float(np.max(ratios, initial=0.0)), str(case)


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
