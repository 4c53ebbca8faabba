"""What hypotheses that hold only up to rounding make of a claim that rests on them.

A proof from hypotheses says lhs − rhs = Σ coefficient · context[relation], exactly. On a model the
rows of a pattern sum to one only nearly, so a relation has a residual; the sides may then differ by
as much as the same sum on absolute values, with the residual in the hole of each context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from algebra.decide import Derived
from algebra.entailment import Use, consequences
from algebra.errors import OtimesError
from algebra.evaluate import Evaluator, Values
from algebra.language import matadd, matmul
from algebra.matching import HOLE
from algebra.values import Value
from numeric.rounding.precision import UNIT_ROUNDOFF
from numeric.rounding.statements import NormalFormWithErrors, contract_bounded

Array = np.ndarray
DOUBLE = UNIT_ROUNDOFF["float64"]


def carried(derived: Derived, numbers: Mapping[str, Any], unit: float = DOUBLE) -> Array:
    """Return by how much the sides of a proved claim may differ for the residuals of hypotheses.

    `numbers` has an array or number for each symbol of the claim and its hypotheses. The result has
    the axes of the left side: (free indices, row legs, column legs). Axioms and inverses have no
    residual: what they speak of is computed, and its error is in the bounds of the sides.
    Raises OtimesError for a hypothesis about blocks of a matrix, whose residual is not laid out.
    """
    total = np.zeros(())
    for use in derived.uses:
        if use.relation.fact[0] not in ("axiom", "inverse"):
            total = total + _in_context(derived, use, numbers, unit)
    return np.asarray(total)


def _residual(
    derived: Derived, use: Use, numbers: Mapping[str, Any], values: Values, unit: float
) -> Array:
    """Return the absolute residual of a hypothesis with its bound, an axis for each wire."""
    left, right = _relation(derived, use)
    if any((*use.relation.rows, *use.relation.cols)):
        raise OtimesError(f"the residual of {left} = {right}, cut in blocks, is not laid out")
    evaluator = Evaluator(matadd(left, matmul(-1, right)) if left.is_Matrix else left - right)
    signature = evaluator.signature
    named = {*signature.tensors, *signature.scalars, *signature.indices, *signature.sizes}
    found = contract_bounded(
        evaluator, evaluator.values({k: v for k, v in numbers.items() if k in named}), unit
    )
    sizes = [values.size(dimension) for dimension in derived.reading.dimensions.expressions]
    context = use.context
    wires = [wire for _, wire in sorted(context.named)]
    shape = [sizes[context.diagram.sorts[w]] for w in (*wires, *context.rows, *context.cols)]
    return (np.abs(found.value) + found.bound).reshape(shape)


def _relation(derived: Derived, use: Use) -> tuple[Any, Any]:
    """Return the equation of a use: a hypothesis, or what it gives besides."""
    fact = use.relation.fact
    left, right = derived.given[fact[1]]
    if fact[0] == "given":
        return left, right
    for known, x, y in consequences(fact[1], left, right):
        if known == fact:
            return x, y
    raise OtimesError(f"there is no equation of the fact {fact}")


def _in_context(derived: Derived, use: Use, numbers: Mapping[str, Any], unit: float) -> Array:
    """Return |coefficient| · |context|[residual]."""
    context = use.context
    wires = [wire for _, wire in sorted(context.named)]
    hole = (HOLE, *wires, *context.rows, *context.cols)
    diagram = context.diagram._replace(boxes=(*context.diagram.boxes, hole))
    within = Value(derived.whole.rows, derived.whole.cols, {diagram: use.whole})
    evaluator = Evaluator.of_reading(derived.signature, derived.reading, within)
    values = evaluator.values(numbers)
    form = NormalFormWithErrors(evaluator, values, unit)
    operands = [form.largest(box[0]) for box in context.diagram.boxes]
    residual = _residual(derived, use, numbers, values, unit)
    found = form.absolute(within, diagram, [*operands, residual])
    free = {name for term in derived.whole.terms for name, _ in term.named}
    others = [axis for axis, name in enumerate(evaluator.index_names) if name not in free]
    return np.asarray(found.max(axis=tuple(others)))  # a hypothesis is for all of its own indices
