"""Reading nonlinear functions: a function of a sum of diagrams becomes one box.

The value of a function is a tensor, and equal arguments give equal tensors. `RowSoftmax` acts on
each row, an activation on each entry. The row legs, the free indices, and for an activation the
column legs are its *slots*: they select a row or an entry. The normal form therefore implies:

    equal arguments, in any writing, give one box
    slots may be permuted: g(Xᵀ) = g(X)ᵀ, g(vec X) = vec g(X), g(eᵀ X) = eᵀ g(X), for heads alike
    an index that the argument does not depend on is no slot: g(1 vᵀ) = 1 g(vᵀ)
    a term that is constant along its row is dropped from the scores of a softmax
    columns that a mask excludes are dropped
    scores that are constant give the mean; an activation of a number with an exact value is one
    rsqrt(c x) = c^(-1/2) rsqrt(x) and relu(c x) = c relu(x) for a positive factor c
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, permutations, product
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

import sympy

from otimes.algebra.diagrams.diagram import DEAD, UNIT, Box, Diagram, Sort, Wire
from otimes.algebra.diagrams.legs import Branch, branches
from otimes.algebra.diagrams.sums import DiagramSum, Label, Terms, difference
from otimes.algebra.errors import Undecided
from otimes.algebra.language import coefficients, functions
from otimes.algebra.language.backends import is_torch
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.deferred import Deferred
from otimes.algebra.language.intervals import Interval
from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import (
    CAUSAL_MASK,
    RSQRT,
    SOFTMAX,
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.sizes import normal_size
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.reading.interpretation import Applied, Interpretation

if TYPE_CHECKING:
    import numpy as np

else:
    np = Deferred("numpy")

_HOMOGENEOUS = {RSQRT: Fraction(-1, 2), "relu": Fraction(1)}  # g(c x) = c^k g(x) for c > 0
MAX_ORDERS = 120  # orders of slots tried before two arguments are taken for different ones

Sum = list[tuple[Diagram, Coefficient]]  # the slots are the rows, the features the columns


def activation(reading: Interpretation, e: Activation) -> DiagramSum:
    """Return the value of an activation, a function of each entry, block by block."""
    value = reading.opened(e.argument)
    made = []
    for row, col in product(branches(value.rows), branches(value.cols)):
        here = [term for term in value.terms.items() if _lies(term[0], row, col)]
        made += _Cell(reading, e, row, col, [here], elementwise=True).result(e.name)
    return reading.collect(value.rows, value.cols, made)


def row_softmax(reading: Interpretation, e: RowSoftmax) -> DiagramSum:
    """Return the value of a row softmax, one block of rows at a time.

    If the columns are in several blocks, the mask must exclude all but one.
    """
    values = reading.alike(*map(reading.opened, e.args))
    first = values[0]
    blocks = list(branches(first.cols))
    made = []
    for row in branches(first.rows):
        seen = blocks
        if len(blocks) > 1 and len(values) > 1:
            mask = values[1].terms
            seen = [col for col in blocks if any(_lies(d, row, col) for d in mask)]
        if len(seen) != 1:
            why = "the rows of a softmax are cut in blocks: such a softmax has no normal form"
            raise Undecided(why)
        here = [[t for t in v.terms.items() if _lies(t[0], row, seen[0])] for v in values]
        made += _Cell(reading, e, row, seen[0], here, elementwise=False).result(SOFTMAX)
    return reading.collect(first.rows, first.cols, made)


def norm(reading: Interpretation, e: RMSNorm | LayerNorm) -> DiagramSum:
    """Return the value of a norm, read from its definition."""
    return reading.value(definition(e))


def causal_mask(reading: Interpretation, e: CausalMask) -> DiagramSum:
    """Return the value of the causal mask, a tensor whose properties are axioms."""
    if not reading.dimensions.legs(e.args[0]):
        return DiagramSum((), (), {UNIT: 1})
    return reading.tensor(f"{CAUSAL_MASK} {normal_size(e.args[0])}", e.shape, (), ())


def is_causal_mask(label: Label) -> bool:
    """Return whether a label is that of a causal mask."""
    return label.name.startswith(CAUSAL_MASK)


def mask_size(label: Label) -> str:
    """Return the size of a causal mask as text."""
    return label.name.removeprefix(f"{CAUSAL_MASK} ")


def _lies(d: Diagram, row: Sequence[int], col: Sequence[int]) -> bool:
    """Return whether a diagram lies in the block with these row and column branches."""
    pairs = zip((*d.rows, *d.cols), (*row, *col), strict=True)
    return all(min(0, wire) == min(0, mark) for wire, mark in pairs)


def on_arrays(known: Applied, arguments: Sequence[Any]) -> Any:
    """Return a nonlinear function of float arrays, with axes (slots, then features)."""
    if known.function != SOFTMAX:
        return functions.on_floats(known.function, arguments[0])
    scores, *mask = arguments
    rows = scores.reshape((*scores.shape[: len(known.slots)], -1))
    shifted = rows - (rows.amax if is_torch(rows) else rows.max)(-1, keepdims=True)
    weights = shifted.exp() if is_torch(rows) else np.exp(shifted)
    weights = weights * mask[0].reshape(rows.shape) if mask else weights
    return (weights / weights.sum(-1, keepdims=True)).reshape(scores.shape)


class _Cell:
    """A nonlinear function on one block: its arguments, its slots, and the box for its value."""

    def __init__(
        self,
        reading: Interpretation,
        e: Activation | RowSoftmax,
        row: Branch,
        col: Branch,
        arguments: Iterable[Iterable[tuple[Diagram, Coefficient]]],
        elementwise: bool,
    ) -> None:
        self.reading, self.e, self.row, self.col = reading, e, row, col
        given = [list(argument) for argument in arguments]
        diagrams = [d for argument in given for d, _ in argument]
        named = {name: d.sorts[wire] for d in diagrams for name, wire in d.named}
        self.names: dict[str, Sort] = dict(sorted(named.items()))
        self.elementwise = elementwise
        self.sorts = [s for s in (*row, *(col if elementwise else ())) if s >= 0]
        self.sorts += self.names.values()
        self.features = () if elementwise else tuple([s for s in col if s >= 0])
        self.arguments: list[Sum] = [[(self._stood(d), c) for d, c in arg] for arg in given]

    def _stood(self, d: Diagram) -> Diagram:
        """Return a term with the slots as row legs; a free index missing in it gets a new wire."""
        own = dict(d.named)
        sorts = list(d.sorts)
        named = []
        for name, sort in self.names.items():
            if name not in own:
                own[name] = len(sorts)
                sorts.append(sort)
            named.append(own[name])
        rows, cols = [tuple([w for w in legs if w >= 0]) for legs in (d.rows, d.cols)]
        slots = (*rows, *(cols if self.elementwise else ()), *named)
        return Diagram(slots, () if self.elementwise else cols, (), d.boxes, tuple(sorts))

    def result(self, function: str) -> Sum:
        """Return the value as a sum of one diagram with its coefficient, empty if it is zero."""
        factor: Coefficient = 1
        if function == SOFTMAX:
            self.arguments[0] = [t for t in self.arguments[0] if not _is_constant_along_rows(t[0])]
            if not self.arguments[0] and len(self.arguments) == 1:
                for sort in self.features:
                    factor = factor * coefficients.inverse(self.reading.dimensions.size(sort))
                return [(self._outer((), ()), factor)]
        elif function in _HOMOGENEOUS:
            content, self.arguments[0] = _without_content(self.arguments[0], self.reading)
            if content != 1:
                symbols = {**self.reading.signature.sizes, **self.reading.signature.scalars}
                number = coefficients.to_sympy(content)
                number = number.xreplace({s: symbols[s.name] for s in number.free_symbols})
                self.e = Activation(function, _divided(self.e.argument, number))
            factor = coefficients.root(content, _HOMOGENEOUS[function], coefficients.names(content))
        kept = [p for p in range(len(self.sorts)) if not self._is_bare(p)]
        if function != SOFTMAX and not kept:
            number = _number(self.arguments[0])
            value = _exact_value(function, number) if number is not None else None
            if value is not None:
                factor = factor * value
                return [(self._outer((), ()), factor)] if value != 0 else []
        known, order = self._find(function, kept)
        label = Label(known.name, (), known.slots, known.features, known.slots, known.features)
        return [(self._outer((self.reading.label(label),), order), factor)]

    def _is_bare(self, slot: int) -> bool:
        """Return whether the arguments are constant along a slot."""
        return all(
            _is_loose(d, d.rows[slot], d.rows[:slot] + d.rows[slot + 1 :])
            for argument in self.arguments
            for d, _ in argument
        )

    def _outer(self, label: tuple[int, ...], order: Sequence[int]) -> Diagram:
        """Return the box as a diagram with the legs, blocks and free indices of the expression."""
        sorts = [*self.sorts, *self.features]
        wires = iter(range(len(sorts)))
        features = range(len(self.sorts), len(sorts))
        rows = _along(self.row, wires)
        cols = _along(self.col, wires if self.elementwise else iter(features))
        named = tuple([(name, next(wires)) for name in self.names])
        boxes: tuple[Box, ...] = ((*label, *order, *features),) if label else ()
        return Diagram(rows, cols, named, boxes, tuple(sorts))

    def _find(self, function: str, kept: Sequence[int]) -> tuple[Applied, Sequence[int]]:
        """Return the known or new box for these arguments, and its slots in order."""
        mine = self._in_order(kept)
        alike = [
            known
            for known in self.reading.applied
            if known.function == function
            and known.features == self.features
            and sorted(known.slots) == sorted(self.sorts[p] for p in kept)
            and [_boxes(terms) for terms in known.arguments] == [_boxes(terms) for terms in mine]
        ]
        for order in islice(permutations(kept), MAX_ORDERS if alike else 0):
            slots = tuple(self.sorts[p] for p in order)
            terms = mine if order == tuple(kept) else self._in_order(order)
            for known in alike:
                if known.slots == slots and not any(map(difference, known.arguments, terms)):
                    return known, order
        name = self.reading.fresh_name(unicode_text(self.e))
        slots = tuple(self.sorts[p] for p in kept)
        names, branch = tuple(self.names.items()), (self.row, self.col)
        new = Applied(
            name, function, mine, slots, self.features, self.e, *branch, names, tuple(kept)
        )
        self.reading.applied.append(new)
        return new, kept

    def _in_order(self, order: Sequence[int]) -> tuple[Terms, ...]:
        """Return the arguments restricted to these slots, in this order."""
        result = []
        for argument in self.arguments:
            terms: Terms = {}
            for d, coefficient in argument:
                rows = tuple(d.rows[p] for p in order)
                gone = set(d.rows) - set(rows)
                sorts = tuple(DEAD if w in gone else sort for w, sort in enumerate(d.sorts))
                self.reading.put(terms, d._replace(rows=rows, sorts=sorts), coefficient)
            result.append(terms)
        return tuple(result)


def _along(branch: Branch, wires: Iterator[Wire]) -> tuple[Wire, ...]:
    """Return a branch with its sorts replaced by the next wires; block marks are unchanged."""
    return tuple([next(wires) if item >= 0 else item for item in branch])


def _is_loose(d: Diagram, wire: Wire, others: Sequence[Wire]) -> bool:
    """Return whether a wire is on no box, on no column leg, and not among `others`."""
    return wire not in others and wire not in d.cols and all(wire not in b[1:] for b in d.boxes)


def _is_constant_along_rows(d: Diagram) -> bool:
    met = [*d.rows, *d.cols, *[wire for box in d.boxes for wire in box[1:]]]
    return all(met.count(wire) == 1 for wire in d.cols)


def _boxes(terms: Terms) -> list[tuple[int, ...]]:
    return sorted(tuple(sorted(box[0] for box in d.boxes)) for d in terms)


def _number(argument: Sum) -> Fraction | None:
    """Return the value of an argument without slots, or None if it is not a known number."""
    total = Fraction(0)
    for d, coefficient in argument:
        if d.boxes or isinstance(coefficient, coefficients.Scalar):
            return None
        total += coefficient
    return total


def _exact_value(function: str, number: Fraction) -> Fraction | None:
    if function not in functions.KNOWN or (function == RSQRT and number <= 0):
        return None
    value = functions.value_of(function, number)
    return None if isinstance(value, Interval) else Fraction(value)


def _divided(e: Any, content: sympy.Expr) -> Any:
    """Return an expression divided by a number, combined with its scalar factors."""
    if isinstance(e, sympy.MatAdd):
        return matadd(*[_divided(term, content) for term in e.args])
    parts = e.args if isinstance(e, sympy.MatMul) else (e,)
    matrices = [part for part in parts if part.is_Matrix]
    factor = sympy.Mul(*[part for part in parts if not part.is_Matrix]) / content
    kept = matrices if factor == 1 else [factor, *matrices]
    return kept[0] if len(kept) == 1 else matmul(*kept)


def _without_content(argument: Sum, reading: Interpretation) -> tuple[Coefficient, Sum]:
    """Return the greatest factor c known to be positive, and the argument divided by it."""
    polynomials = []
    for _, coefficient in argument:
        value = coefficients.lift(coefficient)
        if value.denominator != {coefficients.ONE: 1}:
            return 1, argument
        polynomials.append(value.numerator)
    monomials = [(m, Fraction(f)) for polynomial in polynomials for m, f in polynomial.items()]
    if not monomials:
        return 1, argument
    positive = reading.signature.assumptions.named("positive") | {*reading.signature.sizes}
    content: Any = Fraction(
        gcd(*[f.numerator for _, f in monomials]), lcm(*[f.denominator for _, f in monomials])
    )
    for name in sorted({name for m, _ in monomials for name, _ in m}):
        if name in positive:
            least = min(dict(m).get(name, Fraction(0)) for m, _ in monomials)
            if least:
                content = content * coefficients.scalar({((name, least),): 1})
    rest = [(d, c * coefficients.inverse(content)) for d, c in argument]
    return content, rest
