"""The check of statements on trained models, with their weights and recorded activations.

Three values are compared where they exist: the left side by contraction of its normal form, the
right side by recursion over its tree in plain NumPy (forming Kronecker products), and activations
recorded by an independent forward pass. Each difference must lie within the sum of the two computed
rounding bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.arrays import Evaluator, Values
from otimes.algebra.facts import Fact
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.verdict import decide
from otimes.numeric.binding import Case, Run, cases, recorded
from otimes.numeric.config import Config
from otimes.numeric.rounding import (
    carried,
    contract_bounded,
    recorded_bound,
    smallest_noticed,
    walk_bounded,
    worst_ratio,
)
from otimes.proofs.catalogue.symbols import L
from otimes.proofs.claims import Binding, Definition, Statement, equations
from otimes.proofs.theorem import layout_of

PROMPT_TOKENS = (
    12  # enough for attention to earlier positions, few enough to form Kronecker products
)
COARSEST = 1e-3  # the check fails if it detects no relative change smaller than this


@dataclass(frozen=True, slots=True)
class ModelEvidence:
    """The result of checking a statement on one model.

    `ratio` is the largest error/bound over all layers, heads and entries, and `where` its position.
    `sensitivity` is the smallest relative change that the check detects in the factor where that is
    largest. `applies` is false, with the reason in `why`, if the model lacks a quantity.
    """

    model: str
    applies: bool
    passed: bool
    ratio: float = 0.0
    sensitivity: float = 0.0
    where: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """One comparison: its name, error/bound, and the smallest detected change of each factor.

    `whole` is the smallest detected relative change of the value itself; 0 if the value is zero.
    """

    what: str
    ratio: float
    noticed: Mapping[str, float]
    whole: float


def silent(claim: Statement | Definition, run: Run) -> str:
    """Return why a claim does not apply to a model; empty if it may apply."""
    if claim.places and claim.bare and not run.config.bare:
        return "it is about attention-only models, and this model has norms, biases or MLPs"
    if any(getattr(run.config, name) != value for name, value in claim.config.items()):
        asked = [f"{name}={value!r}" for name, value in claim.config.items()]
        return f"it is about models with {', '.join(asked)}"
    return ""


def check_on_model(stated: Statement, run: Run) -> ModelEvidence:
    """Return the result of checking an identity on a run of one model."""
    if why := silent(stated, run):
        return ModelEvidence(run.model, False, True, why=why)
    stated = at_numbers(with_activation(stated, run.config))
    sides = [side for pair in equations(stated.given) for side in pair]
    signature = inspect(stated.lhs, stated.rhs, *sides, *stated.places.values())
    compare: _Comparer | None = None  # set by the first case; a model without layers has none
    worst, where, sensitivity, blind, any_case = 0.0, "", 0.0, 0.0, False
    for bind in stated.bind:
        for case in cases(signature, run, bind):
            any_case = True
            compare = compare or _Comparer(stated, run)
            noticed: dict[str, float] = {}
            for comparison in compare(case):
                if comparison.ratio >= worst:
                    worst = comparison.ratio
                    where = ", ".join(filter(None, (comparison.what, str(case))))
                blind = max(blind, comparison.whole)
                for name, change in comparison.noticed.items():
                    noticed[name] = min(noticed.get(name, np.inf), change)
            sensitivity = max([sensitivity, *noticed.values()])
        if any_case:
            break
    if not any_case:
        why = "the model has no heads or layers that the statement is about"
        return ModelEvidence(run.model, False, True, why=why)
    if stated.given and sensitivity > COARSEST:
        why = f"its hypotheses do not hold there: the least detected change is {sensitivity:.1g}"
        return ModelEvidence(run.model, False, True, why=why)
    passed = worst <= 1.0 and blind <= COARSEST
    why = "" if worst <= 1.0 else f"error/bound {worst:.3g} at {where}"
    if not passed and not why:
        why = f"the bound is so wide that a relative change of {blind:.1g} would not be detected"
    return ModelEvidence(run.model, True, passed, worst, sensitivity, where, why)


def with_activation(stated: Statement, config: Config) -> Statement:
    """Return a statement about an arbitrary activation g for the activation of a model.

    A model without an activation has no MLP, so such a statement does not apply to it.
    """
    own = config.activation
    if own is None:
        return stated
    sides = [_with_activation(side, own) for side in (stated.lhs, stated.rhs)]
    places = {at: _with_activation(part, own) for at, part in stated.places.items()}
    return replace(stated, lhs=sides[0], rhs=sides[1], places=places)


def at_numbers(stated: Statement) -> Statement:
    """Return a statement with its free indices fixed: position or head 1, 2, …; layer 0."""
    pairs = equations(stated.given)
    sides = [side for pair in pairs for side in pair]
    parts = [stated.lhs, stated.rhs, *stated.places.values(), *sides]
    numbered = with_numbers(parts)
    if numbered == parts:
        return stated
    places = dict(zip(stated.places, numbered[2:], strict=False))
    sides = numbered[2 + len(places) :]
    given: list[Any] = [each for each in stated.given if isinstance(each, Fact)]
    given += zip(sides[::2], sides[1::2], strict=True)
    return replace(stated, lhs=numbered[0], rhs=numbered[1], places=places, given=given)


def with_numbers(expressions: Sequence[Any]) -> list[Any]:
    """Return expressions with their free indices fixed to the values of `places_of`."""
    found, numbers = list(expressions), places_of(expressions)
    for name, (index, _) in sorted(inspect(*found).indices.items()):
        found = [substituted(e, {index: numbers[name]}) for e in found]
    return found


def places_of(expressions: Sequence[Any]) -> dict[str, int]:
    """Return the value at which each free index is checked: position or head 1, 2, …; layer 0."""
    indices = sorted(inspect(*expressions).indices.items())
    return {name: 0 if count == L else k + 1 for k, (name, (_, count)) in enumerate(indices)}


def _with_activation(e: Any, own: str) -> Any:
    if not e.has(Activation):
        return e
    parts = [_with_activation(a, own) for a in e.args]
    if isinstance(e, Activation) and e.name == "g":
        return Activation(own, parts[1])
    return rebuilt(e, parts)


@dataclass(frozen=True, slots=True)
class Valued:
    """Values and rounding bounds of expressions at one layer and head of a model, all 2-D."""

    case: Case
    evaluators: Sequence[Evaluator]
    values: Sequence[Values]
    found: Sequence[tuple[np.ndarray, np.ndarray]]


def valued(expressions: Sequence[Any], bind: Sequence[Binding], run: Run) -> Iterator[Valued]:
    """Yield the values of expressions with their bounds, for every layer and head that applies.

    The first binding that the model can satisfy is used.
    """
    deep = any(e.has(LayerProduct, OrderSum) for e in expressions)
    own = run.config.activation
    if own is not None:
        expressions = [_with_activation(e, own) for e in expressions]
    expressions = with_numbers(expressions)
    signature = inspect(*expressions)
    evaluators: list[Evaluator] = []
    for each in bind:
        for case in cases(signature, run, each):
            if not evaluators:
                numbers = depths(signature, run.n_layers) if deep else {}
                at = [at_depth(e, numbers) if deep else e for e in expressions]
                evaluators = [Evaluator(e) for e in at]
            sizes = _sizes_of(signature, case)
            values = [
                evaluator.values({**given_to(evaluator.signature, case, run), **sizes})
                for evaluator in evaluators
            ]
            found = []
            for evaluator, on in zip(evaluators, values, strict=True):
                bounded = contract_bounded(evaluator, on)
                shape = _matrix_shape(evaluator, on)
                found.append((bounded.value.reshape(shape), bounded.bound.reshape(shape)))
            yield Valued(case, evaluators, values, found)
        if evaluators:
            return


def _sizes_of(signature: Any, case: Case) -> dict[str, int]:
    """Return the sizes from the arrays of a case, for expressions without arrays."""
    shown = {}
    for name, tensor in signature.tensors.items():
        counts = tensor.counts if isinstance(tensor, Family) else ()
        for dimension, size in zip(
            (*counts, *tensor.shape), np.shape(case.arrays[name]), strict=True
        ):
            if isinstance(dimension, sympy.Symbol):
                shown[dimension.name] = int(size)
    return shown


def given_to(signature: Any, case: Case, run: Run) -> dict[str, Any]:
    """Return the arrays, values of free scalars, and the number of heads if no array has it."""
    arrays = {name: case.arrays[name] for name in signature.tensors}
    heads = {"H": run.config.n_heads} if "H" in signature.sizes and not arrays else {}
    return {**heads, **arrays, **_numbers(signature, run)}


class _Comparer:
    """The comparisons of one statement on one run; each expression is read once."""

    def __init__(self, stated: Statement, run: Run) -> None:
        self.stated = stated
        self.run = run
        sides = (stated.lhs, stated.rhs)
        deep = any(side.has(LayerProduct, OrderSum) for side in sides)
        numbers = depths(inspect(*sides), run.n_layers) if deep else {}
        left, self.right = (at_depth(side, numbers) if deep else side for side in sides)
        self.left = Evaluator(left)
        given = equations(stated.given)
        self.derived = decide(left, self.right, given).derived if given else None
        self.parts = {
            at: at_depth(part, numbers) if deep else part for at, part in stated.places.items()
        }
        self.places = {place: Evaluator(part) for place, part in self.parts.items()}

    def __call__(self, case: Case) -> Iterator[_Comparison]:
        """Compare both sides with each other, and every recorded activation with its expression."""
        values = self._values(self.left, case)
        contracted = contract_bounded(self.left, values)
        shape = _matrix_shape(self.left, values)
        left, bound = contracted.value.reshape(shape), contracted.bound.reshape(shape)
        right, right_bound = walk_bounded(self.right, self._values_of_right(values, case))
        total = bound + right_bound
        if self.derived is not None:
            numbers = {**values.sizes, **self._given(self.derived.signature, case)}
            total = total + carried(self.derived, numbers).reshape(shape)
        noticed = {
            name: smallest_noticed(np.reshape(share, shape), total)
            for name, share in contracted.shares.items()
        }
        ratio, whole = worst_ratio(left, right, total), _whole(left, total)
        yield _Comparison("left side against right side", ratio, noticed, whole)
        for place, part in self.parts.items():
            if place != "logits" or self.stated.depth in (None, self.run.n_layers):
                yield from self._place(place, part, case)

    def _place(self, place: str, part: sympy.Basic, case: Case) -> Iterator[_Comparison]:
        seen = recorded(place, layout_of(part), case, self.run)
        if seen is None:
            return
        evaluator = self.places[place]
        values = self._values(evaluator, case)
        contracted = contract_bounded(evaluator, values)
        shape = _matrix_shape(evaluator, values)
        if seen.shape != shape:
            raise OtimesError(
                f"the expression for the activation {place} is {shape[0]} × {shape[1]} "
                f"on {self.run.model}, and the recorded activation is {seen.shape}"
            )
        bound = contracted.bound.reshape(shape) + recorded_bound(part, evaluator, values)
        noticed = {
            name: smallest_noticed(np.reshape(share, shape), bound)
            for name, share in contracted.shares.items()
        }
        value = contracted.value.reshape(shape)
        ratio, whole = worst_ratio(value, seen, bound), _whole(value, bound)
        yield _Comparison(f"recorded {place}", ratio, noticed, whole)

    def _values(self, evaluator: Evaluator, case: Case) -> Values:
        return evaluator.values(self._given(evaluator.signature, case))

    def _values_of_right(self, values: Values, case: Case) -> Values:
        """Return values for the right side, which may have symbols that the left side has not."""
        signature = inspect(self.right)
        spoken_of = {*signature.sizes, *signature.scalars}  # of a number d only, d is a scalar
        shown = {name: size for name, size in values.sizes.items() if name in spoken_of}
        return Values(signature, {**self._given(signature, case), **shown})

    def _given(self, signature: Any, case: Case) -> dict[str, Any]:
        return given_to(signature, case, self.run)


def _whole(value: np.ndarray, bound: np.ndarray) -> float:
    return smallest_noticed(value, bound) if np.any(value) else 0.0


def depths(signature: Signature, n_layers: int) -> dict[sympy.Symbol, int]:
    """Return the model's depth for the number of layers, and depth - 1, at least 1, for others.

    Others are sizes that no array has, such as the order of paths.
    """
    arrays = [
        (*getattr(tensor, "counts", ()), *tensor.shape) for tensor in signature.tensors.values()
    ]
    shown = {symbol for sizes in arrays for size in sizes for symbol in size.free_symbols}
    others = {s for name, s in signature.sizes.items() if s not in shown and name != "H"}
    return {**dict.fromkeys(others, max(1, n_layers - 1)), L: n_layers}


def at_depth(e: Any, numbers: Mapping[sympy.Symbol, int]) -> Any:
    """Return a statement with its symbolic numbers of layers replaced by these."""
    if isinstance(e, sympy.Expr) and not e.atoms(sympy.MatrixExpr):
        return e.xreplace({symbol: sympy.Integer(number) for symbol, number in numbers.items()})
    if not e.args or isinstance(e, sympy.MatrixSymbol):
        return e
    return rebuilt(e, [at_depth(a, numbers) for a in e.args])


def _numbers(signature: Any, run: Run) -> dict[str, float]:
    """Return the `eps` of the model's norms, and fixed generic values for other free scalars."""
    generic = {name: 0.75 + 0.5 * k for k, name in enumerate(sorted(signature.scalars))}
    return {**generic, "eps": run.config.norm_eps} if "eps" in generic else generic


def _matrix_shape(evaluator: Evaluator, values: Values) -> tuple[int, int]:
    rows, cols = (int(np.prod([values.size(d) for d in legs])) for legs in evaluator.shape)
    return rows, cols
