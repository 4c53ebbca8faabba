"""Reading nonlinear functions: a function of a sum of diagrams becomes one box.

The value of a function is a tensor, and equal arguments give equal tensors. `RowSoftmax` acts on
each row, an activation on each entry. The row legs, the free indices, and for an activation the
column legs are its *slots*: they select a row or an entry. The normal form therefore implies:

    equal arguments, in any writing, give one box
    slots may be permuted: g(Xᵀ) = g(X)ᵀ, g(vec X) = vec g(X), g(eᵀ X) = eᵀ g(X), for heads alike
    an index that the argument does not depend on is no slot: g(1 vᵀ) = 1 g(vᵀ)
    a term that is constant along its row is dropped from the scores of a softmax; where these are
    in blocks, what is constant along the first block is subtracted from the whole row
    columns that a mask excludes are dropped, and a mask of ones
    scores that are constant give the mean; an activation of a number with an exact value is one
    g(c x) = c^k g(x) for a positive factor c: relu, sqrt, reciprocal, rsqrt
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice, permutations, product
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

import sympy

from otimes.algebra.diagrams.diagram import DEAD, Box, Diagram, Sort, Wire
from otimes.algebra.diagrams.legs import Blocks, Branch, Legs, branches
from otimes.algebra.diagrams.sums import DiagramSum, Label, Terms, difference
from otimes.algebra.errors import Undecided
from otimes.algebra.language import coefficients, functions
from otimes.algebra.language.backends import is_torch
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.constants import PI
from otimes.algebra.language.deferred import Deferred
from otimes.algebra.language.defined import Defined, entrywise_power, unfolded
from otimes.algebra.language.intervals import Interval
from otimes.algebra.language.linear import as_product, matadd
from otimes.algebra.language.nonlinear import (
    RECIPROCAL,
    RSQRT,
    SOFTMAX,
    Activation,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.trees import key
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.reading.interpretation import Applied, Interpretation

if TYPE_CHECKING:
    import numpy as np

else:
    np = Deferred("numpy")

# g(c x) = c^k g(x) for c > 0
_HOMOGENEOUS = {
    "relu": Fraction(1),
    "sqrt": Fraction(1, 2),
    RECIPROCAL: Fraction(-1),
    RSQRT: Fraction(-1, 2),
}
SINE_SQUARES = {  # of the sines of so many times π/12
    0: Fraction(0),
    2: Fraction(1, 4),
    3: Fraction(1, 2),
    4: Fraction(3, 4),
    6: Fraction(1),
}
MAX_ORDERS = 120  # orders of slots tried before two arguments are taken for different ones

Sum = list[tuple[Diagram, Coefficient]]  # the slots are the rows, the features the columns


def activation(reading: Interpretation, e: Activation) -> DiagramSum:
    """Return the value of an activation, a function of each entry, block by block."""
    value = reading.opened(e.argument)
    made = []
    for row, col in product(branches(value.rows), branches(value.cols)):
        here = [term for term in value.terms.items() if _lies(term[0], row, col)]
        made += _Cell(reading, e, row, [col], [here], elementwise=True).result(e.name)
    return reading.collect(value.rows, value.cols, made)


def row_softmax(reading: Interpretation, e: RowSoftmax) -> DiagramSum:
    """Return the value of a row softmax, one block of rows at a time.

    Blocks of columns that the mask excludes have weight zero, and a mask of ones is none.
    """
    values = reading.alike(*map(reading.opened, e.args))
    first = values[0]
    made = []
    for row in branches(first.rows):
        blocks = [
            [[t for t in v.terms.items() if _lies(t[0], row, col)] for v in values]
            for col in branches(first.cols)
        ]
        pairs = zip(branches(first.cols), blocks, strict=True)
        seen = [(col, here) for col, here in pairs if len(values) == 1 or here[1]]
        if not seen:
            raise Undecided("a block of rows of a softmax is masked everywhere: it has no weights")
        if len(values) > 1 and all(_are_ones(here[1]) for _, here in seen):
            seen = [(col, here[:1]) for col, here in seen]
        seen.sort(key=_contents)  # a softmax does not depend on the order of its columns
        by_value = zip(*[here for _, here in seen], strict=True)
        arguments = [[t for part in parts for t in part] for parts in by_value]
        cols = [col for col, _ in seen]
        made += _Cell(reading, e, row, cols, arguments, elementwise=False).result(SOFTMAX)
    return reading.collect(first.rows, first.cols, made)


def _contents(block: tuple[Branch, Sequence[Sum]]) -> list[Any]:
    """Return the labels in a block of scores and its mask, but for what is constant along rows."""
    _, (scores, *mask) = block
    varying = [(d, c) for d, c in scores if not _is_constant_along_rows(d)]
    return [sorted(sorted(box[0] for box in d.boxes) for d, _ in part) for part in (varying, *mask)]


def _are_ones(mask: Sum) -> bool:
    """Return whether a block of a mask is a matrix of ones."""
    if len(mask) != 1 or mask[0][1] != 1:
        return False
    d = mask[0][0]
    wires = [w for w in (*d.rows, *d.cols, *[w for _, w in d.named]) if w >= 0]
    return not d.boxes and len(set(wires)) == len(wires)


def norm(reading: Interpretation, e: RMSNorm | LayerNorm) -> DiagramSum:
    """Return the value of a norm, read from its definition."""
    return reading.value(definition(e))


def defined(reading: Interpretation, e: Defined) -> DiagramSum:
    """Return the value of a `Defined` expression, read from its definition."""
    return reading.value(unfolded(e))


def hadamard_power(reading: Interpretation, e: sympy.HadamardPower) -> DiagramSum:
    """Return an entrywise power; one that divides or takes a root is a power of a function."""
    power = entrywise_power(e)
    return reading.hadamard_power(e) if power is e else reading.value(power)


def _lies(d: Diagram, row: Sequence[int], col: Sequence[int]) -> bool:
    """Return whether a diagram lies in the block with these row and column branches."""
    return _lies_in(d.rows, row) and _lies_in(d.cols, col)


def _lies_in(legs: Sequence[int], branch: Sequence[int]) -> bool:
    """Return whether the legs of a diagram lie in the block with this branch."""
    return [min(0, wire) for wire in legs] == [min(0, mark) for mark in branch]


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
    """A nonlinear function on one block: its arguments, its slots, and the box for its value.

    A softmax may be over several blocks of columns, `cols`: then it has a box for each, and the
    columns of its arguments have the marks of blocks.
    """

    def __init__(
        self,
        reading: Interpretation,
        e: Activation | RowSoftmax,
        row: Branch,
        cols: Sequence[Branch],
        arguments: Iterable[Iterable[tuple[Diagram, Coefficient]]],
        elementwise: bool,
    ) -> None:
        self.reading, self.e, self.row, self.cols = reading, e, row, tuple(cols)
        given = [list(argument) for argument in arguments]
        diagrams = [d for argument in given for d, _ in argument]
        named = {name: d.sorts[wire] for d in diagrams for name, wire in d.named}
        self.names: dict[str, Sort] = dict(sorted(named.items()))
        self.elementwise = elementwise
        self.sorts = [s for s in (*row, *(cols[0] if elementwise else ())) if s >= 0]
        self.sorts += self.names.values()
        self.blocks: list[tuple[Sort, ...]] = [tuple([s for s in c if s >= 0]) for c in cols]
        self.features: Legs = ()
        if not elementwise:
            self.features = self.blocks[0] if len(cols) == 1 else (Blocks(self.blocks),)
        self.arguments: list[Sum] = [[(self._stood(d), c) for d, c in arg] for arg in given]

    def _stood(self, d: Diagram) -> Diagram:
        """Return a term with the slots as row legs; for a missing slot a wire is added."""
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
        if self.elementwise:
            cols = ()
        elif len(self.cols) > 1:
            block = next(k for k, col in enumerate(self.cols) if _lies_in(d.cols, col))
            cols = (-1 - block, *cols)
        return Diagram(slots, cols, (), d.boxes, tuple(sorts))

    def _shifted(self, scores: Sum) -> Sum:
        """Return scores of a softmax less what is constant along the rows of the first block."""
        constant = [
            (d, c) for d, c in scores if d.cols[:1] in ((), (-1,)) and _is_constant_along_rows(d)
        ]
        if len(self.cols) == 1:
            return [t for t in scores if not _is_constant_along_rows(t[0])]
        terms: Terms = {}
        for d, coefficient in scores:
            self.reading.put(terms, d, coefficient)
        for d, coefficient in constant:
            for number, block in enumerate(self.blocks):
                sorts = [DEAD if w in d.cols else sort for w, sort in enumerate(d.sorts)]
                wires = range(len(sorts), len(sorts) + len(block))
                moved = d._replace(cols=(-1 - number, *wires), sorts=(*sorts, *block))
                self.reading.put(terms, moved, -1 * coefficient)
        return list(terms.items())

    def _mean(self) -> Sum:
        """Return the softmax of equal scores: one over the number of columns."""
        columns: Coefficient = 0
        for block in self.blocks:
            size: Coefficient = 1
            for sort in block:
                size = size * self.reading.dimensions.size(sort)
            columns = columns + size
        mean = coefficients.inverse(columns)
        return [(self._outer((), (), k), mean) for k in range(len(self.cols))]

    def result(self, function: str) -> Sum:
        """Return the value as a sum of one diagram with its coefficient, empty if it is zero."""
        factor: Coefficient = 1
        if function == SOFTMAX:
            self.arguments[0] = self._shifted(self.arguments[0])
            if not self.arguments[0] and len(self.arguments) == 1:
                return self._mean()
        elif function in _HOMOGENEOUS:
            content, self.arguments[0] = _without_content(function, self.arguments[0], self.reading)
            if content != 1:
                symbols = {**self.reading.signature.sizes, **self.reading.signature.scalars}
                number = coefficients.to_sympy(content)
                number = number.xreplace({s: symbols[s.name] for s in number.free_symbols})
                self.e = Activation(function, _divided(self.e.argument, number))
            factor = coefficients.root(content, _HOMOGENEOUS[function], coefficients.names(content))
        kept = [p for p in range(len(self.sorts)) if not self._is_bare(p)]
        if function != SOFTMAX and not kept:
            number = _number(self.arguments[0])
            value: Coefficient | None = self._at_angle(function)
            value = value if number is None else _exact_value(function, number)
            if value is not None:
                factor = factor * value
                return [(self._outer((), ()), factor)] if value != 0 else []
        known, order = self._find(function, kept)
        made = []
        for number, branch in enumerate(branches(known.features)):
            label = Label(known.name, (), known.slots, known.features, known.slots, branch)
            made.append((self._outer((self.reading.label(label),), order, number), factor))
        return made

    def _at_angle(self, function: str) -> Coefficient | None:
        """Return sin or cos at a multiple of π/12, or None if it is not known there."""
        if function not in ("cos", "sin") or self.reading.signature.scalars.get(key(PI)) != PI:
            return None
        many: Coefficient = 0
        for d, coefficient in self.arguments[0]:
            many = many + 12 * coefficient * coefficients.inverse(coefficients.generator(key(PI)))
            if d.boxes:
                return None
        if isinstance(many, coefficients.Scalar) or many.denominator != 1:
            return None
        turn = (int(many) + 6 * (function == "cos")) % 24
        square = SINE_SQUARES.get(min(turn % 12, 12 - turn % 12))
        if square is None:
            return None
        root = coefficients.root(square, Fraction(1, 2), ()) if square else 0
        return -1 * root if turn > 12 else root

    def _is_bare(self, slot: int) -> bool:
        """Return whether the arguments are constant along a slot."""
        return all(
            _is_loose(d, d.rows[slot], d.rows[:slot] + d.rows[slot + 1 :])
            for argument in self.arguments
            for d, _ in argument
        )

    def _outer(self, label: tuple[int, ...], order: Sequence[int], block: int = 0) -> Diagram:
        """Return the box as a diagram with the legs, blocks and free indices of the expression."""
        inner = () if self.elementwise else self.blocks[block]
        sorts = [*self.sorts, *inner]
        wires = iter(range(len(sorts)))
        features = range(len(self.sorts), len(sorts))
        rows = _along(self.row, wires)
        cols = _along(self.cols[block], wires if self.elementwise else iter(features))
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
        names, branch = tuple(self.names.items()), (self.row, self.cols)
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
    return all(met.count(wire) == 1 for wire in d.cols if wire >= 0)


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
    if function not in functions.KNOWN or not functions.is_defined(function, number):
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
    return as_product(kept)


def _without_content(
    function: str, argument: Sum, reading: Interpretation
) -> tuple[Coefficient, Sum]:
    """Return the greatest factor c known to be positive, and the argument divided by it.

    One that may be zero is taken out of relu alone, which then has the value zero either way.
    """
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
    positive = reading.nonnegative if function == "relu" else positive
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
