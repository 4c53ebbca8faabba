"""The error of a claim whose hypotheses hold on a model only up to rounding.

A proof from hypotheses shows lhs − rhs = Σ coefficient · context[relation], exactly. On a model,
the rows of a pattern sum to 1 only up to rounding, so the relation has a residual. The sides may
then differ by the same sum on absolute values, with the residual inserted in each context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from otimes.algebra.decide.entailment import Use, consequences
from otimes.algebra.diagrams.matching import HOLE
from otimes.algebra.diagrams.sums import DiagramSum
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.arrays import Evaluator, Values
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.verdict import Derived
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF
from otimes.numeric.rounding.statements import NormalFormWithErrors, contract_bounded

Array = np.ndarray
DOUBLE = UNIT_ROUNDOFF["float64"]


def carried(derived: Derived, numbers: Mapping[str, Any], unit: float = DOUBLE) -> Array:
    """Return a bound on lhs − rhs of a proved claim from the residuals of its hypotheses.

    `numbers` has an array or number for each symbol of the claim and its hypotheses. The result has
    the axes of the left side: (free indices, row legs, column legs). Axioms and inverses have no
    residual: their errors are part of the rounding bounds of the sides.
    Raises OtimesError for a hypothesis about blocks of a matrix, which is not supported.
    """
    total = np.zeros(())
    for use in derived.uses:
        if use.relation.fact[0] not in ("axiom", "inverse"):
            total = total + _in_context(derived, use, numbers, unit)
    return np.asarray(total)


def _residual(
    derived: Derived, use: Use, numbers: Mapping[str, Any], values: Values, unit: float
) -> Array:
    """Return the absolute residual of a hypothesis plus its bound, with an axis for each wire."""
    left, right = _relation(derived, use)
    if any((*use.relation.rows, *use.relation.cols)):
        raise OtimesError(f"the residual of {left} = {right} in blocks is not supported")
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
    """Return the equation of a use: a hypothesis, or a consequence of one."""
    fact = use.relation.fact
    left, right = derived.given[fact[1]]
    if fact[0] == "given":
        return left, right
    for known, x, y in consequences(fact[1], left, right):
        if known == fact:
            return x, y
    raise OtimesError(f"the fact {fact} has no equation")


def _in_context(derived: Derived, use: Use, numbers: Mapping[str, Any], unit: float) -> Array:
    """Return |coefficient| · |context|[residual]."""
    context = use.context
    wires = [wire for _, wire in sorted(context.named)]
    hole = (HOLE, *wires, *context.rows, *context.cols)
    diagram = context.diagram._replace(boxes=(*context.diagram.boxes, hole))
    within = DiagramSum(derived.whole.rows, derived.whole.cols, {diagram: use.whole})
    evaluator = Evaluator.of_reading(derived.signature, derived.reading, within)
    values = evaluator.values(numbers)
    form = NormalFormWithErrors(evaluator, values, unit)
    operands = [form.largest(box[0]) for box in context.diagram.boxes]
    residual = _residual(derived, use, numbers, values, unit)
    found = form.absolute(within, diagram, [*operands, residual])
    free = {name for term in derived.whole.terms for name, _ in term.named}
    others = [axis for axis, name in enumerate(evaluator.index_names) if name not in free]
    return np.asarray(found.max(axis=tuple(others)))
