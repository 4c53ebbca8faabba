"""Rounding bounds for the value of a statement, and its sensitivity to each factor.

A multilinear expression evaluated in floating point, in any order, has an error of at most

    gamma_m * (the same expression on absolute values),    gamma_m = m u / (1 - m u),

entry by entry, where u is the unit roundoff and m the number of roundings from an entry of a factor
to an entry of the result (Higham 2002, §3.1 and §3.5). A function or an inverse is one more factor,
whose error follows from that of its argument (`functions`, `inverse`) and is propagated: if the
factors |T_k| have errors E_k, the product has Σ_k |T_1| … E_k … (|T_m| + E_m). The bound is
*local*: for one statement on its own inputs. Underflow is ignored: no quantity here comes near
1e-300.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from otimes.algebra.diagrams.sums import DiagramSum
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.arrays import Evaluator, Values, selections
from otimes.algebra.evaluate.exact import Assignment, on_floats, tree_value
from otimes.algebra.language.backends import is_torch
from otimes.algebra.language.nonlinear import INVERSE, SOFTMAX
from otimes.numeric.rounding.functions import activated, softmax
from otimes.numeric.rounding.inverse import inverse
from otimes.numeric.rounding.linear import Near
from otimes.numeric.rounding.precision import TINY, UNIT_ROUNDOFF, Precision, gamma, known
from otimes.numeric.rounding.walk import Walked

Array = np.ndarray
DOUBLE = UNIT_ROUNDOFF["float64"]
CHANGE = 2.0**-12  # the relative step of finite differences: exact, and small enough to be linear
OTHER_ORDER = 2
"""In the argument of a function, another order may have twice as many roundings as the tree's."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """A value, its entrywise bound, and its derivative with respect to each factor.

    A relative change ε of the factor `name` changes the value by ε · `shares[name]`, in first
    order. All arrays have the shape of `value`.
    """

    value: Array
    bound: Array
    shares: Mapping[str, Array]


def contract_bounded(evaluator: Evaluator, values: Values, unit: float = DOUBLE) -> Bounded:
    """Return the value by contraction of the normal form, with its rounding bound.

    The value is computed in the dtype of the arrays, NumPy or torch, and `unit` must be its unit
    roundoff. The shape is that of the evaluator: (free indices, row legs, column legs).
    """
    value = _doubles(evaluator.run(values))
    found = NormalFormWithErrors(evaluator, values, unit).sum(evaluator.value)
    shares = found.shares
    if evaluator.applied or evaluator.inverted:
        shares = _by_moving(evaluator, values)
    return Bounded(value, found.error, shares)


def walk_bounded(
    expression: sympy.Basic, values: Values, unit: float = DOUBLE
) -> tuple[Array, Array]:
    """Return the value by evaluating the expression tree in NumPy, and its bound, both 2-D.

    Kronecker products are materialised and parentheses kept, so this computation is independent of
    the contraction of the normal form.
    """
    walked = Walked.of(_walk(expression, values, unit, 1))
    return walked.value, walked.error(unit)


def recorded_bound(
    expression: sympy.Basic, evaluator: Evaluator, values: Values, unit: float = DOUBLE
) -> Array:
    """Return the bound, 2-D, for any evaluation of a statement that sums one index at a time.

    The reference forward pass is such an evaluation, in an unknown order. The roundings are: one
    per box of a product, up to four for a coefficient, at most the size of the index for a sum over
    it (none where a one-hot row selects an entry), and one per term of a sum of terms.
    """
    sizes = [values.size(d) for d in evaluator.reading.dimensions.expressions]
    chosen = selections(values)
    deepest = 0
    for diagram in evaluator.value.terms:
        outside = {*diagram.rows, *diagram.cols, *[wire for _, wire in diagram.named]}
        outside |= evaluator.selecting(diagram, chosen)
        summed = sum(sizes[sort] for wire, sort in enumerate(diagram.sorts) if wire not in outside)
        deepest = max(deepest, summed + len(diagram.boxes) + 4)
    deepest += len(evaluator.value.terms)
    return Walked.of(_walk(expression, values, unit, OTHER_ORDER)).error(unit, 1, deepest)


@dataclass(frozen=True, slots=True)
class _Summed:
    value: Array
    error: Array
    shares: dict[str, Array]


class NormalFormWithErrors:
    """The normal form of an expression on float64 arrays, with the errors of its boxes."""

    def __init__(self, evaluator: Evaluator, values: Values, unit: float) -> None:
        self.evaluator, self.values, self.unit = evaluator, values, unit
        self.arrays = {name: _doubles(array) for name, array in values.arrays.items()}
        self.errors: dict[str, Array] = {}  # of computed boxes: functions and inverses

    def sum(self, whole: DiagramSum) -> _Summed:
        """Return the value of a sum of diagrams, its error, and its derivative by each box."""
        value = self.evaluator.zeros(whole, self.values, np.zeros(()))
        size, moved = np.zeros_like(value), np.zeros_like(value)
        shares: dict[str, Array] = {}
        deepest = 0
        for diagram in whole.terms:
            names = [self.evaluator.reading.labels[box[0]].name for box in diagram.boxes]
            for name in names:
                self._make(name)
            plain = [self.arrays[name] for name in names]
            errors = [self.errors.get(name) for name in names]
            before = [np.abs(array) for array in plain]
            after = [
                array if error is None else array + error
                for array, error in zip(before, errors, strict=True)
            ]
            term = self._term(whole, diagram, plain, False)
            value = value + term
            size = size + self._term(whole, diagram, after, True)
            for k, error in enumerate(errors):
                if error is not None:
                    factors = [*before[:k], error, *after[k + 1 :]]
                    moved = moved + self._term(whole, diagram, factors, True)
            for name in names:
                shares[name] = shares.get(name, 0.0) + term
            deepest = max(deepest, self.evaluator.roundings(whole, diagram, self.values))
        growth = gamma(deepest + max(len(whole.terms) - 1, 0), self.unit)
        with np.errstate(invalid="ignore"):
            return _Summed(value, known(growth * size + moved), shares)

    def _term(
        self, whole: DiagramSum, diagram: Any, arrays: Sequence[Array], absolute: bool
    ) -> Array:
        boxes = zip(diagram.boxes, arrays, strict=True)
        operands = [self.evaluator.operand(box[0], self.values, array) for box, array in boxes]
        like = np.zeros(())
        with np.errstate(invalid="ignore"):  # inf * 0
            term = self.evaluator.term(whole, diagram, operands, self.values, like, absolute)
        return np.asarray(term)

    def largest(self, label: int) -> Array:
        """Return the absolute values plus errors of the box with a label, as an operand."""
        name = self.evaluator.reading.labels[label].name
        self._make(name)
        array = np.abs(self.arrays[name])
        if name in self.errors:
            array = array + self.errors[name]
        return np.asarray(self.evaluator.operand(label, self.values, array))

    def absolute(self, whole: DiagramSum, diagram: Any, operands: Sequence[Array]) -> Array:
        """Return one term on the given operands, with the absolute value of its coefficient."""
        like = np.zeros(())
        return np.asarray(
            self.evaluator.term(whole, diagram, operands, self.values, like, absolute=True)
        )

    def _make(self, name: str) -> None:
        """Compute the array of a mask, an inverse or a function, and its error."""
        if name in self.arrays:
            return
        evaluator = self.evaluator
        found = [self.sum(value) for value in evaluator.arguments(name)]
        values = [each.value for each in found]
        made = evaluator.made(name, values, self.values, np.zeros(()))
        if not found:
            self.arrays[name] = made
            return
        nears = [Near(each.value, each.error) for each in found]
        if name in evaluator.inverted:
            flat = Near(nears[0].value.reshape(made.shape), nears[0].error.reshape(made.shape))
            self.arrays[name], self.errors[name] = made, inverse(flat, made, self.unit).error
            return
        box = evaluator.applied[name]
        if box.function == SOFTMAX:
            rows = values[0].shape[: len(box.slots)]
            nears = [Near(n.value.reshape(*rows, -1), n.error.reshape(*rows, -1)) for n in nears]
        near = _applied(box.function, nears, self.unit)
        self.arrays[name] = near.value.reshape(made.shape)
        self.errors[name] = near.error.reshape(made.shape)


def _walk(expression: sympy.Basic, values: Values, unit: float, slack: int) -> Any:
    arrays = {name: Walked.of(_doubles(array)) for name, array in values.arrays.items()}
    scalars = {name: Walked.of(np.array(float(v))) for name, v in values.scalars.items()}

    def apply(name: str, arguments: Sequence[Any]) -> Walked:
        walked = [Walked.of(argument) for argument in arguments]
        nears = [Near(each.value, each.error(unit, slack)) for each in walked]
        if name == INVERSE:
            near = inverse(nears[0], on_floats(name, [nears[0].value]), unit)
        else:
            near = _applied(name, nears, unit)
        return Walked(near.value, np.abs(near.value), near.error)

    assignment = Assignment(
        values.sizes, arrays, values.indices, scalars, exact=False, made=Walked.of, apply=apply
    )
    return tree_value(expression, assignment)


def _applied(function: str, arguments: Sequence[Near], unit: float) -> Near:
    """Return a function of arrays; softmax acts on the last axis, and may have a mask as well.

    Raises: OtimesError for a mask that is computed, or is not a 0/1 array.
    """
    p = Precision(unit, unit, TINY["float64"])
    if function != SOFTMAX:
        return activated(function, arguments[0], p)
    scores, *mask = arguments
    visible = np.ones(scores.value.shape, dtype=bool)
    if mask:
        visible = np.broadcast_to(mask[0].value == 1, visible.shape)
        if mask[0].error.any() or not np.all(visible | (mask[0].value == 0)):
            raise OtimesError(
                "there is no rounding bound for a softmax whose mask is computed, or is not a 0/1"
                " array"
            )
    return softmax(scores, visible, p)


def _by_moving(evaluator: Evaluator, values: Values) -> dict[str, Array]:
    """Return the share of each array by finite differences."""
    doubles = {name: _doubles(array) for name, array in values.arrays.items()}
    given = {**values.sizes, **values.indices, **values.scalars}
    start = evaluator.run(evaluator.values({**given, **doubles}))
    shares = {}
    for name, array in doubles.items():
        moved = evaluator.values({**given, **doubles, name: array * (1 + CHANGE)})
        shares[name] = (evaluator.run(moved) - start) / CHANGE
    return shares


def _doubles(array: Any) -> Array:
    """Return a NumPy or torch array as a float64 NumPy array."""
    if is_torch(array):
        array = array.detach().cpu().double().numpy()
    return np.asarray(array, dtype=np.float64)
