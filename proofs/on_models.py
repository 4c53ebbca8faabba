"""The check of statements on trained models, with their weights and recorded activations.

Three values are compared where they exist: the left side by contraction of its normal form, the
right side by recursion over its tree in plain NumPy (forming Kronecker products), and activations
recorded by an independent forward pass. Each difference must lie within the sum of the two computed
rounding bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.arrays import Evaluator, Values
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.verdict import Derived, decide
from otimes.numeric.binding import Case, Run, Source, cases, loops_of, recorded, source_of
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
from otimes.proofs.claims import (
    Binding,
    Bound,
    Definition,
    NonIdentity,
    Property,
    Statement,
    equations,
)
from otimes.proofs.theorem import layout_of

PROMPT_TOKENS = (
    12  # enough for attention to earlier positions, few enough to form Kronecker products
)
COARSEST = 1e-3  # the check fails if it detects no relative change smaller than this

Placed = Statement | Definition | Bound | NonIdentity | Property
"""The kinds of claims that may have places."""


@dataclass(frozen=True, slots=True)
class ModelEvidence:
    """The result of checking a statement on one model.

    `ratio` is the largest error/bound over all layers, heads and entries, and `where` its position.
    `sensitivity` is the smallest relative change that the check detects in the factor where that is
    largest. `applies` is false, with the reason in `why`, if the model lacks a quantity.
    `recorded`: an expression was compared with an activation that the forward pass recorded;
    otherwise both sides were evaluated on the arrays of the model, and compared with each other.
    """

    model: str
    applies: bool
    passed: bool
    ratio: float = 0.0
    sensitivity: float = 0.0
    where: str = ""
    why: str = ""
    recorded: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison: its name, error/bound, and the smallest detected change of each factor.

    `whole` is the smallest detected relative change of the value itself; 0 if the value is zero.
    `place` is the recorded activation that it is compared with, empty for the other side.
    """

    what: str
    ratio: float
    noticed: Mapping[str, float]
    whole: float
    place: str = ""


def silent(claim: Placed, run: Run) -> str:
    """Return why a claim does not apply to a model; empty if it may apply."""
    if claim.places and claim.bare and not run.config.bare:
        return "it is about attention-only models, and this model has norms, biases or MLPs"
    if any(getattr(run.config, name) != value for name, value in claim.config.items()):
        asked = [f"{name}={value!r}" for name, value in claim.config.items()]
        return f"it is about models with {', '.join(asked)}"
    return ""


def check_on_model(stated: Statement, run: Run) -> ModelEvidence:
    """Return the result of checking an identity on a run of one model.

    Where its places are those of attention-only models, and the model is none, the two sides are
    compared with each other only.
    """
    if stated.places and stated.bare and not run.config.bare:
        stated = replace(stated, places={})
    if why := silent(stated, run):
        return out_of_scope(run, why)
    worst, where, sensitivity, blind, any_case, held_to = 0.0, "", 0.0, 0.0, False, False
    for case, comparisons in compared(stated, run):
        any_case = True
        noticed: dict[str, float] = {}
        for comparison in comparisons:
            held_to = held_to or bool(comparison.place)
            if comparison.ratio >= worst:
                worst, where = comparison.ratio, at(comparison.what, case)
            blind = max(blind, comparison.whole)
            for name, change in comparison.noticed.items():
                noticed[name] = min(noticed.get(name, np.inf), change)
        sensitivity = max([sensitivity, *noticed.values()])
    if not any_case:
        return out_of_scope(run, "the model has no heads or layers that the statement is about")
    if stated.given and sensitivity > COARSEST:
        why = f"its hypotheses do not hold there: the least detected change is {sensitivity:.1g}"
        return out_of_scope(run, why)
    found = worst_of(run, [(worst, where)])
    if found.passed and blind > COARSEST:
        why = f"the bound is so wide that a relative change of {blind:.1g} would not be detected"
        found = replace(found, passed=False, why=why)
    return replace(found, sensitivity=sensitivity, recorded=held_to)


def out_of_scope(run: Run, why: str) -> ModelEvidence:
    """Return the evidence of a claim that does not apply to a model."""
    return ModelEvidence(run.model, False, True, why=why)


def worst_of(run: Run, ratios: Iterable[tuple[float, str]], none: str = "") -> ModelEvidence:
    """Return the evidence of comparisons, each an error/bound and its position.

    Without any, the claim does not apply, for the reason `none`.
    """
    worst, where, any_case = 0.0, "", False
    for ratio, at in ratios:
        any_case = True
        if ratio >= worst:
            worst, where = ratio, at
    if not any_case:
        return out_of_scope(run, none)
    why = "" if worst <= 1 else f"error/bound {worst:.3g} at {where}"
    return ModelEvidence(run.model, True, worst <= 1, worst, 0.0, where, why)


def at(what: str, case: Case) -> str:
    """Return what was compared, with its layer and head."""
    return ", ".join(filter(None, (what, str(case))))


def _on_config(expressions: Sequence[Any], config: Config) -> list[Any]:
    """Return expressions with the model's activation for an arbitrary one, and indices fixed.

    A model without an activation has no MLP, so a statement about one does not apply to it.
    """
    own = config.activation
    return with_numbers([e if own is None else _with_activation(e, own) for e in expressions])


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
class Contracted:
    """The value of an expression on a model, 2-D, with its rounding bound and shares of factors."""

    evaluator: Evaluator
    values: Values
    value: np.ndarray
    bound: np.ndarray
    shares: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, evaluator: Evaluator, values: Values) -> Contracted:
        """Return the value by contraction of the normal form."""
        found = contract_bounded(evaluator, values)
        shape = [int(np.prod([values.size(d) for d in legs])) for legs in evaluator.shape]
        shares = {name: np.reshape(share, shape) for name, share in found.shares.items()}
        return cls(
            evaluator, values, found.value.reshape(shape), found.bound.reshape(shape), shares
        )

    def against(self, place: str, other: np.ndarray, total: np.ndarray) -> Comparison:
        """Return the comparison with a recorded activation, or, if `place` is empty, another value.

        `total` bounds the difference.
        """
        noticed = {name: smallest_noticed(share, total) for name, share in self.shares.items()}
        whole = smallest_noticed(self.value, total) if np.any(self.value) else 0.0
        what = f"recorded {place}" if place else "left side against right side"
        return Comparison(what, worst_ratio(self.value, other, total), noticed, whole, place)


def valued(
    expressions: Sequence[Any], bind: Sequence[Binding], run: Run
) -> Iterator[tuple[Case, list[Contracted]]]:
    """Yield the values of expressions with their bounds, for every layer and head that applies.

    The first binding that the model can satisfy is used.
    """
    deep = any(e.has(LayerProduct, OrderSum) for e in expressions)
    expressions = _on_config(expressions, run.config)
    signature = inspect(*expressions)
    evaluators: list[Evaluator] = []
    for case in _cases(signature, run, bind):
        if not evaluators:
            numbers = depths(signature, run.n_layers) if deep else {}
            evaluators = [Evaluator(at_depth(e, numbers) if deep else e) for e in expressions]
        sizes = _sizes_of(signature, case)
        yield (
            case,
            [
                Contracted.of(e, e.values({**given_to(e.signature, case, run), **sizes}))
                for e in evaluators
            ],
        )


def _cases(signature: Signature, run: Run, binds: Sequence[Binding]) -> Iterator[Case]:
    """Yield the layers and heads under the first binding that the model can satisfy."""
    for bind in binds:
        any_case = False
        for case in cases(signature, run, bind):
            any_case = True
            yield case
        if any_case:
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
    """Return the arrays, values of free scalars, and the numbers of heads and positions."""
    arrays = {name: case.arrays[name] for name in signature.tensors}
    counts = {"H": run.config.n_heads} if "H" in signature.sizes and not arrays else {}
    axes = {str(size) for tensor in signature.tensors.values() for size in tensor.shape}
    if "n" in signature.sizes and "n" not in axes:  # of a row e_i only
        counts["n"] = len(run.arrays["one_hot"])
    return {**counts, **arrays, **_numbers(signature, run)}


def compared(stated: Statement, run: Run) -> Iterator[tuple[Case, Iterator[Comparison]]]:
    """Yield the layers and heads that a statement applies to, each with its comparisons."""
    compare, signature = _comparer(stated, run)
    once = Once()
    for case in _cases(signature, run, stated.bind):
        yield case, compare(case, once)


Once = set[tuple[Any, ...]]
"""What was compared: a place, and the layer and head that its expression depends on."""
Under = Callable[..., Iterator[tuple[Case, Iterator[Comparison]]]]


def recorded_under(stated: Statement, run: Run) -> Under:
    """Return the comparisons with what a run recorded, as a function of another run.

    The symbols are bound to the arrays of the other run. The two sides are not compared. With the
    name of an array, only what reads it is compared.
    """
    compare, signature = _comparer(stated, run)

    def under(other: Run, array: str = "") -> Iterator[tuple[Case, Iterator[Comparison]]]:
        once = Once()
        for case in _cases(signature, other, stated.bind):
            yield case, compare.with_recorded(case, once, array)

    return under


def _comparer(stated: Statement, run: Run) -> tuple[_Comparer, Signature]:
    """Return the comparisons of a statement as it is about one model, and its signature."""
    lhs, rhs, *rest = _on_config(stated.expressions, run.config)
    sides = rest[: len(rest) - len(stated.places)]
    places = dict(zip(stated.places, rest[len(sides) :], strict=True))
    given = list(zip(sides[::2], sides[1::2], strict=True))
    stated = replace(stated, lhs=lhs, rhs=rhs, places=places, given=given)
    return _Comparer(stated, run), inspect(*stated.expressions)


class _Comparer:
    """The comparisons of one statement on one run; each expression is read once."""

    def __init__(self, stated: Statement, run: Run) -> None:
        self.stated = stated
        self.run = run

    @cached_property
    def sides(self) -> list[Any]:
        return self._at_depth([self.stated.lhs, self.stated.rhs])

    @cached_property
    def parts(self) -> dict[Any, Any]:
        places = self.stated.places
        return dict(zip(places, self._at_depth(list(places.values())), strict=True))

    def _at_depth(self, expressions: list[Any]) -> list[Any]:
        sides = (self.stated.lhs, self.stated.rhs)
        if not any(side.has(LayerProduct, OrderSum) for side in sides):
            return expressions
        numbers = depths(inspect(*sides), self.run.n_layers)
        return [at_depth(each, numbers) for each in expressions]

    @cached_property
    def left(self) -> Evaluator:
        return Evaluator(self.sides[0])

    @cached_property
    def places(self) -> dict[Any, Evaluator]:
        return {place: Evaluator(part) for place, part in self.parts.items()}

    @cached_property
    def derived(self) -> Derived | None:
        given, (left, right) = equations(self.stated.given), self.sides
        return decide(left, right, given).derived if given else None

    @cached_property
    def reads(self) -> dict[Any, dict[str, set[str]]]:
        """The arrays that each place reads or is, with the loops over their layers and heads."""
        return {place: self._reads(place) for place in self.parts}

    def _reads(self, place: Any) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        tensors = self.places[place].signature.tensors
        for bind in self.stated.bind:
            for name, tensor in tensors.items():
                source = source_of(name, bind)
                counts = [str(count) for count in getattr(tensor, "counts", ())]
                if source is not None and source.name in self.run.arrays:
                    loops = loops_of(source, counts, self.run)
                    found.setdefault(source.name, set()).update(loops)
        return found

    def __call__(self, case: Case, once: Once) -> Iterator[Comparison]:
        """Compare both sides with each other, and every recorded activation with its expression."""
        left = self._contracted(self.left, case)
        right, right_bound = walk_bounded(self.sides[1], self._values_of_right(left.values, case))
        total = left.bound + right_bound
        if self.derived is not None:
            given = given_to(self.derived.signature, case, self.run)
            numbers = {**left.values.sizes, **given}
            total = total + carried(self.derived, numbers).reshape(total.shape)
        yield left.against("", right, total)
        yield from self.with_recorded(case, once)

    def with_recorded(self, case: Case, once: Once, array: str = "") -> Iterator[Comparison]:
        """Compare every recorded activation with its expression, once for its layers and heads."""
        for place, part in self.parts.items():
            source = Source(place) if isinstance(place, str) else place
            if source.name == "logits" and self.stated.depth not in (None, self.run.n_layers):
                continue
            reads = self.reads[place]
            if array and array not in reads:
                continue
            if source.name in self.run.arrays:
                own = loops_of(source, layout_of(part)[:-2], self.run)
                loops = sorted({*own}.union(*reads.values()))
                key = (place, *(case.where.get(name) for name in loops))
                if key in once:
                    continue
                once.add(key)
            seen = recorded(source, layout_of(part), case, self.run)
            if seen is None:
                continue
            found = self._contracted(self.places[place], case)
            if seen.shape != found.value.shape:
                rows, cols = found.value.shape
                raise OtimesError(
                    f"the expression for the activation {source} is {rows} × {cols} "
                    f"on {self.run.model}, and the recorded activation is {seen.shape}"
                )
            bound = found.bound + recorded_bound(part, found.evaluator, found.values)
            yield found.against(str(source), seen, bound)

    def _contracted(self, evaluator: Evaluator, case: Case) -> Contracted:
        given = given_to(evaluator.signature, case, self.run)
        return Contracted.of(evaluator, evaluator.values(given))

    def _values_of_right(self, values: Values, case: Case) -> Values:
        """Return values for the right side, which may have symbols that the left side has not."""
        signature = inspect(self.sides[1])
        spoken_of = {*signature.sizes, *signature.scalars}  # of a number d only, d is a scalar
        shown = {name: size for name, size in values.sizes.items() if name in spoken_of}
        return Values(signature, {**given_to(signature, case, self.run), **shown})


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
