"""How far a computed value may be from the exact one, and how small a mistake would show.

A multilinear expression evaluated in floating point, in any order, errs by at most

    gamma_m * (the same expression on absolute values),    gamma_m = m u / (1 - m u),

entry by entry, where u is the unit roundoff and m the number of roundings on the way from an entry
of a factor to an entry of the result (Higham 2002, §3.1 and §3.5). The bound is *local*: one
statement on its own inputs. Underflow is left out: no quantity here comes near 1e-300.

`error / bound` at most 1 is what equality looks like in this precision; over 1 is a bug.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import sympy

from algebra.evaluate import Evaluator, Values, selections
from algebra.exact import Assignment, tree_value
from algebra.language import FamilyMember, HeadSum, LayerProduct, OneHot, OrderSum

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


@dataclass(frozen=True, slots=True)
class Bounded:
    """A value, its entrywise bound, and how the value moves with each factor.

    `shares[name]` is the change of the value when the factor of that name grows by 100 %: a
    relative change ε of it moves the value by ε · share. All have the shape of `value`.
    """

    value: np.ndarray
    bound: np.ndarray
    shares: Mapping[str, np.ndarray]


def gamma(roundings: float, unit: float) -> float:
    """Return m u / (1 - m u), the relative error that m roundings can make together.

    >>> gamma(1, 2.0**-53) > 2.0**-53
    True
    """
    return roundings * unit / (1 - roundings * unit)


def contract_bounded(
    evaluator: Evaluator, values: Values, unit: float = UNIT_ROUNDOFF["float64"]
) -> Bounded:
    """Return the value by contraction of the normal form, with its rounding bound.

    Shapes as the evaluator gives them: (free indices, row legs, column legs).
    """
    total: Any = 0.0
    deepest = 0
    shares: dict[str, Any] = {}
    labels = evaluator.reading.labels
    for diagram, value, roundings in evaluator.terms(values):
        total = total + value
        deepest = max(deepest, roundings)
        for box in diagram.boxes:
            name = labels[box[0]].name
            shares[name] = shares.get(name, 0.0) + value
    size = evaluator.run(values, absolute=True)
    roundings = deepest + max(len(evaluator.value.terms) - 1, 0)
    bound = gamma(roundings, unit) * np.asarray(size)
    return Bounded(np.asarray(total), bound, shares)


def walk_bounded(
    expression: sympy.Basic, values: Values, unit: float = UNIT_ROUNDOFF["float64"]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the value by walking the tree in plain NumPy, and its bound, both 2-D.

    Kronecker products are formed and brackets kept, so this is another computation of the same
    statement than the contraction of its normal form.
    """
    value = tree_value(expression, _assignment(values, absolute=False))
    size = tree_value(expression, _assignment(values, absolute=True))
    bound = gamma(_walk_roundings(expression, values), unit) * np.asarray(size)
    return np.asarray(value), bound


def recorded_bound(
    expression: sympy.Basic,
    evaluator: Evaluator,
    values: Values,
    unit: float = UNIT_ROUNDOFF["float64"],
) -> np.ndarray:
    """Return the bound, 2-D, for any evaluation of a statement that sums one index at a time.

    The reference pass is one: it computes the products and sums of the statement in an order of its
    own, which the bound need not know. A product of boxes rounds once a box, a coefficient up to
    four times, a sum over an index at most as often as the index has values (not at all where a
    one-hot row selects), a sum of terms once a term.
    """
    sizes = [values.size(d) for d in evaluator.reading.dimensions.expressions]
    chosen = selections(values)
    deepest = 0
    for diagram in evaluator.value.terms:
        outside = {*diagram.rows, *diagram.cols, *[wire for _, wire in diagram.named]}
        outside |= evaluator.selecting(diagram, chosen)
        summed = sum(sizes[sort] for wire, sort in enumerate(diagram.sorts) if wire not in outside)
        deepest = max(deepest, summed + len(diagram.boxes) + 4)
    size = tree_value(expression, _assignment(values, absolute=True))
    return gamma(deepest + len(evaluator.value.terms), unit) * np.asarray(size)


def _walk_roundings(e: Any, values: Values) -> int:
    """Return the most roundings an entry meets when the tree is walked as it stands."""
    if not e.args or isinstance(e, sympy.MatrixSymbol | sympy.Number | OneHot):
        return 0
    if isinstance(e, FamilyMember | sympy.Identity | sympy.OneMatrix | sympy.ZeroMatrix):
        return 0
    below = [_walk_roundings(a, values) for a in e.args if isinstance(a, sympy.Expr)]
    if isinstance(e, sympy.MatAdd | sympy.Add):
        return max(below) + len(below) - 1
    if isinstance(e, sympy.MatMul | sympy.Mul | sympy.KroneckerProduct | sympy.HadamardProduct):
        matrices = [a for a in e.args if getattr(a, "is_Matrix", False)]
        inner = 0
        if isinstance(e, sympy.MatMul):
            on_column = matrices and matrices[-1].shape[1] == 1
            inner = sum(
                _summed(a, values) if on_column else values.size(a.shape[1]) for a in matrices[:-1]
            )
        return sum(below) + inner + len(below)
    if isinstance(e, sympy.MatPow):
        return int(e.exp) * (below[0] + values.size(e.shape[0]))
    if isinstance(e, sympy.Pow):
        return 3 + below[0] * max(1, abs(int(e.exp)))
    if isinstance(e, sympy.Trace):
        return below[0] + values.size(e.args[0].shape[0])
    if isinstance(e, HeadSum):
        return below[0] + prod(values.size(count) for _, count in e.limits)
    if isinstance(e, LayerProduct | OrderSum):
        return _layers(e, values) * (below[0] + _summed(e.body, values) + 1)
    return below[0]  # a transpose, a vec, heads side by side: entries move, none is computed


def _summed(e: Any, values: Values) -> int:
    """Return the additions made at one entry when e, not formed, acts on a column."""
    if isinstance(e, sympy.KroneckerProduct):
        return sum(values.size(factor.shape[1]) for factor in e.args)
    if isinstance(e, sympy.MatAdd):
        return max(_summed(term, values) for term in e.args)
    if isinstance(e, HeadSum):
        return _summed(e.body, values)
    if isinstance(e, LayerProduct | OrderSum):
        return _layers(e, values) * (_summed(e.body, values) + 1)
    return values.size(e.shape[1])


def _layers(e: LayerProduct | OrderSum, values: Values) -> int:
    """Return the most layers that there can be; the layers before a layer are fewer than all."""
    if e.count.is_Integer or str(e.count) in values.sizes:
        return values.size(e.count)
    families = [member.family for member in e.body.atoms(FamilyMember)]
    return max(values.size(family.counts[0]) for family in families)


def worst_ratio(actual: Any, expected: Any, bound: Any) -> float:
    """Return the largest |actual - expected| / bound, entrywise: 0 where equal.

    A NaN counts as infinitely wrong.
    """
    error = np.abs(np.asarray(actual) - np.asarray(expected))
    if error.size == 0:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0.0, error / bound)
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio)))


def smallest_noticed(share: Any, bound: Any) -> float:
    """Return the least relative change of a factor that would exceed the bound at some entry."""
    moved = np.abs(np.asarray(share))
    if not np.any(moved):
        return float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.min(np.where(moved > 0, bound / moved, np.inf)))


def _assignment(values: Values, absolute: bool) -> Assignment:
    scalars = {k: abs(v) if absolute else v for k, v in values.scalars.items()}
    return Assignment(values.sizes, values.arrays, values.indices, scalars, False, absolute)
