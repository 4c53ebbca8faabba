"""From a SymPy expression to a sum of diagrams, in one walk.

The value of an expression is a `DiagramSum`; for each class of expressions a function (in
`read.READERS`) builds it from the values of the arguments. Everything is bilinear, so a product of
sums is the sum of the products of diagrams, each brought to canonical form and collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

import sympy

from otimes.algebra.budget import spend
from otimes.algebra.diagrams.canonical import canonical
from otimes.algebra.diagrams.diagram import UNIT, Diagram, Sort, Wire, fuse, join
from otimes.algebra.diagrams.dimensions import Clash, Dimensions, Resplit
from otimes.algebra.diagrams.directions import directed
from otimes.algebra.diagrams.legs import Branch, Legs, beside, branches, matched, shifted
from otimes.algebra.diagrams.sums import DiagramSum, Label, Terms, index_name, put
from otimes.algebra.errors import Undecided
from otimes.algebra.language import coefficients
from otimes.algebra.language.binders import fresh_name
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.linear import (
    ConcatHeads,
    FamilyMember,
    OneHot,
    StackHeads,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.trees import key

MAX_TERMS = 2_000_000  # diagrams made in one reading before it is given up
Wires = tuple[Wire, ...]
Joined = tuple[list[tuple[Wire, Wire]], tuple[Wires, Wires]]
LONG = 16  # factors of a product that is no longer multiplied one factor after the other


@dataclass(frozen=True, slots=True)
class Applied:
    """A nonlinear function of its arguments, represented by the box `name`; printed as `stated`.

    Each argument is a sum whose row legs are the slots (axes that the function does not mix); a
    softmax normalises over the column legs. The slots are the legs of the block `row`, `cols[0]` of
    `stated`, then its free indices `names`; only those in `kept` occur in the arguments. A softmax
    over several blocks of columns has a box for each of `cols`, in order.
    """

    name: str
    function: str
    arguments: tuple[Terms, ...]
    slots: tuple[Sort, ...]
    features: Legs
    stated: Any
    row: Branch
    cols: tuple[Branch, ...]
    names: tuple[tuple[str, Sort], ...]
    kept: tuple[int, ...]


class Interpretation:
    """The reading of one or several expressions with one table of sizes and labels."""

    def __init__(self, signature: Signature, readers: Readers, fuse: bool = False) -> None:
        self.signature = signature
        self.readers = readers
        self.nonnegative = {*signature.sizes, *signature.assumptions.named("nonnegative")}
        self.fuse = fuse  # read I_a ⊗ I_b as I_ab, which has no inner order of legs
        self.dimensions = Dimensions()
        self.labels: list[Label] = []
        self._label: dict[Label, int] = {}
        self._symbols: dict[tuple[Any, ...], DiagramSum] = {}
        self.made = 0  # diagrams, so far
        self._opened = 0  # number of nonlinear functions around the current expression
        self.applied: list[Applied] = []
        self.inverses: dict[str, tuple[Any, Any]] = {}  # name -> (normal form, expression)
        self.inverse_equations: list[tuple[tuple[Any, ...], DiagramSum, DiagramSum]] = []

    def read(self, *groups: Sequence[sympy.Basic]) -> list[tuple[DiagramSum, ...]]:
        """Return the values of groups of expressions; those of a group get the same legs."""
        while True:
            for table in (self.labels, self._label, self._symbols, self.inverses, self.applied):
                table.clear()
            self.made = 0
            try:
                values = [self.alike(*map(self.value, group)) for group in groups]
                self.inverse_equations = self._equations_of_inverses()
                return values
            except Resplit:
                continue

    def alike(self, first: DiagramSum, *others: DiagramSum) -> tuple[DiagramSum, ...]:
        """Return values of one shape; raises Resplit if their legs were split differently."""
        for value in others:
            self.dimensions.fit(first.rows, value.rows)
            self.dimensions.fit(first.cols, value.cols)
        return first, *others

    def _equations_of_inverses(self) -> list[tuple[tuple[Any, ...], DiagramSum, DiagramSum]]:
        """Return E E⁻¹ = I and E⁻¹ E = I for every inverse that was read as a tensor.

        Each is a tuple (its key in `entailment`, left side, right side).
        """
        equations = []
        for name, (_, e) in list(self.inverses.items()):
            value, inverted = self.value(e), self.tensor(name, e.shape, (), ())
            identity = self.identity(sympy.Identity(e.shape[0]))
            right, left = self.product(value, inverted), self.product(inverted, value)
            equations.append((("inverse", name, "right"), right, identity))
            equations.append((("inverse", name, "left"), left, identity))
        return equations

    def opened(self, e: Any) -> DiagramSum:
        """Return the value of an argument of a nonlinear function; fixed indices get named legs."""
        self._opened += 1
        try:
            return self.value(e)
        finally:
            self._opened -= 1

    def fresh_name(self, name: str) -> str:
        """Return an unused name for a box, as different expressions may print alike."""
        applied = [known.name for known in self.applied]
        return fresh_name(name, {*self.signature.tensors, *self.inverses, *applied})

    def value(self, e: Any) -> DiagramSum:
        """Return the value of an expression that `shapes.inspect` has accepted."""
        spend(2)
        read = self.readers.get(type(e))
        if read is not None:
            return read(self, e)
        factor = coefficients.from_sympy(e, self.nonnegative)
        return DiagramSum((), (), {UNIT: factor} if factor != 0 else {})

    # -- building sums ---------------------------------------------------------------------------

    def collect(
        self, rows: Legs, cols: Legs, made: Iterable[tuple[Diagram, Coefficient]]
    ) -> DiagramSum:
        """Return the sum of diagrams as they come from `join`, in canonical form."""
        terms: Terms = {}
        for diagram, coefficient in made:
            if diagram.named and contradicts(diagram):
                continue
            self.put(terms, diagram, coefficient)
            self.made += 1
            if self.made > MAX_TERMS:
                raise Undecided(f"more than {MAX_TERMS} path terms: too many to expand one by one")
        return DiagramSum(rows, cols, terms)

    def put(self, terms: Terms, diagram: Diagram, coefficient: Coefficient) -> None:
        """Add a diagram to `terms` in canonical form; closed loops become factors."""
        form, loops = canonical(diagram)
        for sort in loops:
            coefficient = coefficient * self.dimensions.size(sort)
        put(terms, form, coefficient)

    def label(self, label: Label) -> int:
        """Return the number of a label, in the order of first occurrence."""
        number = self._label.get(label)
        if number is None:
            number = self._label[label] = len(self.labels)
            self.labels.append(label)
        return number

    # -- leaves ----------------------------------------------------------------------------------

    def tensor(
        self, name: str, shape: tuple[Any, Any], indices: tuple[Any, ...], counts: tuple[Any, ...]
    ) -> DiagramSum:
        rows, cols = map(self.dimensions.legs, shape)
        fixed: list[int | None] = []
        touched: list[str] = []
        index_sorts: dict[str, Sort] = {}
        for index, count in zip(indices, counts, strict=True):
            is_fixed = isinstance(index, sympy.Integer) and not self._opened
            fixed.append(int(index) if is_fixed and count != 1 else None)
            if not is_fixed:
                named = self._index(index, count)
                touched += named
                index_sorts |= named
        terms: Terms = {}
        for row_branch, col_branch in product(branches(rows), branches(cols)):
            sorts: list[Sort] = []
            r, c = opened_legs(row_branch, sorts), opened_legs(col_branch, sorts)
            wires = {n: len(sorts) + k for k, n in enumerate(sorted(index_sorts))}
            sorts += [index_sorts[n] for n in wires]
            label = self.label(Label(name, tuple(fixed), rows, cols, row_branch, col_branch))
            box = (label, *[wires[n] for n in touched], *[w for w in (*r, *c) if w >= 0])
            terms[Diagram(r, c, tuple(wires.items()), (box,), tuple(sorts))] = 1
        return DiagramSum(rows, cols, terms)

    def _index(self, index: Any, count: Any) -> dict[str, Sort]:
        """Return a map from the name of an index to its sort; empty for an index with one value."""
        legs = self.dimensions.legs(count)
        if not legs:
            return {}
        sort = self.single(legs, index)
        return {index_name(index, sort): sort}

    def single(self, legs: Legs, index: Any) -> Sort:
        """Return the one sort that an index runs over. Raises Clash where it was split."""
        (first, *more) = legs
        if more or not isinstance(first, int):
            raise Clash(
                f"the index {index} runs over {self.dimensions.total(legs)}, which is split "
                f"elsewhere into {self.dimensions.show(legs)}"
            )
        return first

    def matrix_symbol(self, e: sympy.MatrixSymbol) -> DiagramSum:
        name, shape = e.name, e.shape
        split = (name, *map(self.dimensions.legs, shape))
        known = self._symbols.get(split)
        if known is None:
            known = self._symbols[split] = self.tensor(name, shape, (), ())
        return known

    def member(self, e: FamilyMember) -> DiagramSum:
        return self.tensor(e.family.name, e.family.shape, e.indices, e.family.counts)

    def identity(self, e: sympy.Identity) -> DiagramSum:
        legs = self.dimensions.legs(e.args[0])
        terms: Terms = {}
        for branch in branches(legs):
            sorts: list[Sort] = []
            wires = opened_legs(branch, sorts)
            terms[Diagram(wires, wires, (), (), tuple(sorts))] = 1
        return DiagramSum(legs, legs, terms)

    def ones(self, e: sympy.OneMatrix) -> DiagramSum:
        return self.ones_over(*map(self.dimensions.legs, e.args))

    def ones_over(self, rows: Legs, cols: Legs) -> DiagramSum:
        """Return the matrix of ones with these legs."""
        terms: Terms = {}
        for row_branch, col_branch in product(branches(rows), branches(cols)):
            sorts: list[Sort] = []
            r, c = opened_legs(row_branch, sorts), opened_legs(col_branch, sorts)
            terms[Diagram(r, c, (), (), tuple(sorts))] = 1
        return DiagramSum(rows, cols, terms)

    def zero(self, e: sympy.ZeroMatrix) -> DiagramSum:
        rows, cols = map(self.dimensions.legs, e.shape)
        return DiagramSum(rows, cols, {})

    def one_hot(self, e: OneHot) -> DiagramSum:
        index, size = e.args
        rows = self.dimensions.legs(size)
        sorts = self._index(index, size)
        named = tuple((name, wire) for wire, name in enumerate(sorts))
        wires = tuple(range(len(sorts)))
        return DiagramSum(rows, (), {Diagram(wires, (), named, (), tuple(sorts.values())): 1})

    # -- operations ------------------------------------------------------------------------------

    def add(self, e: sympy.MatAdd) -> DiagramSum:
        return self.plus(*map(self.value, e.args))

    def plus(self, first: DiagramSum, *others: DiagramSum) -> DiagramSum:
        terms = dict(first.terms)
        for value in others:
            self.alike(first, value)
            spend(len(value.terms))
            for diagram, coefficient in value.terms.items():
                put(terms, diagram, coefficient)
        return DiagramSum(first.rows, first.cols, terms)

    def mul(self, e: sympy.MatMul) -> DiagramSum:
        matrices: list[DiagramSum] = []
        scalars: list[DiagramSum] = []
        for argument in e.args:
            is_matrix = getattr(argument, "is_Matrix", False)
            (matrices if is_matrix else scalars).append(self.value(argument))
        result = self.chain(matrices) if matrices else DiagramSum((), (), {UNIT: 1})
        return reduce(lambda so_far, number: self.beside(number, so_far), scalars, result)

    def chain(self, factors: Sequence[DiagramSum]) -> DiagramSum:
        """Return the product of matrices, multiplied by halves if there are many (for speed)."""
        if len(factors) >= LONG:
            half = len(factors) // 2
            return self.product(self.chain(factors[:half]), self.chain(factors[half:]))
        return reduce(self.product, factors)

    def raised(self, base: DiagramSum, exponent: int) -> DiagramSum:
        """Return a positive power, by repeated squaring if the exponent is large."""
        if exponent < LONG:
            return self.chain([base] * exponent)
        root = self.raised(base, exponent // 2)
        square = self.product(root, root)
        return self.product(square, base) if exponent % 2 else square

    def product(self, a: DiagramSum, b: DiagramSum) -> DiagramSum:
        """Return the matrix product: the column legs of a joined to the row legs of b."""
        self.dimensions.fit(a.cols, b.rows)

        def joined(x: Diagram, rows: Wires, cols: Wires) -> Joined | None:
            pairs = matched(x.cols, rows)
            return None if pairs is None else (pairs, (x.rows, cols))

        return self.pairwise(a.rows, b.cols, a, b, joined)

    def beside(self, a: DiagramSum, b: DiagramSum) -> DiagramSum:
        """Return the Kronecker product: the legs of a, which are the slow ones, then those of b."""
        if len(a.terms) == 1 and UNIT in a.terms:  # a plain number or scalar symbol
            factor = a.terms[UNIT]
            return DiagramSum(b.rows, b.cols, {d: factor * c for d, c in b.terms.items()})

        def joined(x: Diagram, rows: Wires, cols: Wires) -> Joined:
            return [], (x.rows + rows, x.cols + cols)

        return self.pairwise(beside(a.rows, b.rows), beside(a.cols, b.cols), a, b, joined)

    def elementwise(self, a: DiagramSum, b: DiagramSum) -> DiagramSum:
        """Return the Hadamard product: rows joined to rows and columns to columns."""
        self.alike(a, b)

        def joined(x: Diagram, rows: Wires, cols: Wires) -> Joined | None:
            in_rows, in_cols = matched(x.rows, rows), matched(x.cols, cols)
            if in_rows is None or in_cols is None:
                return None
            return in_rows + in_cols, (x.rows, x.cols)

        return self.pairwise(a.rows, a.cols, a, b, joined)

    def pairwise(
        self,
        rows: Legs,
        cols: Legs,
        a: DiagramSum,
        b: DiagramSum,
        joined: Callable[[Diagram, Wires, Wires], Joined | None],
    ) -> DiagramSum:
        """Return the sum of the joined diagrams over all pairs of one from `a` and one from `b`.

        `joined` is given the first diagram and the row and column wires of the second. It returns
        the pairs of wires to join and the legs of the result, or None where the product is zero.
        """

        def made() -> Iterable[tuple[Diagram, Coefficient]]:
            for x, coefficient in a.terms.items():
                shift = len(x.sorts)
                for y, other in b.terms.items():
                    spend(3 + 2 * len(x.boxes) + 2 * len(y.boxes))
                    how = joined(x, shifted(y.rows, shift), shifted(y.cols, shift))
                    if how is not None:
                        yield join(x, y, *how), coefficient * other

        return self.collect(rows, cols, made())

    def transpose(self, e: sympy.Transpose) -> DiagramSum:
        return self.transposed(self.value(e.args[0]))

    def transposed(self, value: DiagramSum) -> DiagramSum:
        turned = (
            (Diagram(d.cols, d.rows, d.named, d.boxes, d.sorts), c) for d, c in value.terms.items()
        )
        return self.collect(value.cols, value.rows, turned)

    def kron(self, e: sympy.KroneckerProduct) -> DiagramSum:
        return reduce(self.beside, map(self.value, _fused(e) if self.fuse else e.args))

    def hadamard(self, e: sympy.HadamardProduct) -> DiagramSum:
        return reduce(self.elementwise, map(self.value, e.args))

    def trace(self, e: sympy.Trace) -> DiagramSum:
        value = self.value(e.args[0])
        self.dimensions.fit(value.rows, value.cols)
        closed = (
            (fuse(d, pairs, ((), ())), c)
            for d, c in value.terms.items()
            if (pairs := matched(d.rows, d.cols)) is not None
        )
        return self.collect((), (), closed)

    def hadamard_power(self, e: sympy.HadamardPower) -> DiagramSum:
        base, exponent = self.value(e.args[0]), int(e.args[1])
        if exponent == 0:
            return self.alike(base, self.ones(sympy.OneMatrix(*e.shape)))[1]
        return reduce(self.elementwise, [base] * exponent)

    def vec(self, e: vec_rows | vec_cols) -> DiagramSum:
        value = self.value(e.args[0])
        by_rows = isinstance(e, vec_rows)
        rows = beside(*(value.rows, value.cols) if by_rows else (value.cols, value.rows))
        stood = (
            (d._replace(rows=d.rows + d.cols if by_rows else d.cols + d.rows, cols=()), c)
            for d, c in value.terms.items()
        )
        return self.collect(rows, (), stood)

    def over_one(
        self, value: DiagramSum, index: sympy.Symbol, count: Any, kind: type
    ) -> DiagramSum:
        """Bind one index: close its named leg, or make it the slow part of the rows or columns."""
        legs = self.dimensions.legs(count)
        single = (self.single(legs, index),) if legs else ()
        made: list[tuple[Diagram, Coefficient]] = []
        for d, coefficient in value.terms.items():
            mine = [wire for name, wire in d.named if name == key(index)]
            sorts = d.sorts
            if legs and not mine:  # the body does not depend on the index
                mine, sorts = [len(sorts)], (*sorts, *single)
            rows = (*mine, *d.rows) if kind is StackHeads else d.rows
            cols = (*mine, *d.cols) if kind is ConcatHeads else d.cols
            named = tuple((name, wire) for name, wire in d.named if name != key(index))
            closed = Diagram(rows, cols, named, d.boxes, sorts)
            for wire in mine:
                closed = directed(closed, wire, self.labels, self.label, self._last)
            made.append((closed, coefficient))
        rows_sorts = legs + value.rows if kind is StackHeads else value.rows
        cols_sorts = legs + value.cols if kind is ConcatHeads else value.cols
        return self.collect(rows_sorts, cols_sorts, made)

    def _last(self, sort: Sort) -> Any:
        """Return the last value of an index."""
        return self.dimensions.expressions[sort] - 1


def _fused(e: sympy.KroneckerProduct) -> list[Any]:
    """Return the factors of a flattened Kronecker product, with adjacent identities or ones merged.

    I_a ⊗ I_b becomes I_ab, and likewise for ones. One factor has no inner order of legs, so I_d ⊗
    I_n and I_n ⊗ I_d have the same value.
    """
    factors: list[Any] = []
    for factor in e.args:
        flat = _fused(factor) if isinstance(factor, sympy.KroneckerProduct) else [factor]
        for part in flat:
            kind = type(part)
            if factors and kind in (sympy.Identity, sympy.OneMatrix) and type(factors[-1]) is kind:
                sizes = [a * b for a, b in zip(factors[-1].shape, part.shape, strict=True)]
                factors[-1] = sympy.Identity(sizes[0]) if kind is sympy.Identity else kind(*sizes)
            else:
                factors.append(part)
    return factors


def opened_legs(branch: Branch, sorts: list[Sort]) -> tuple[Wire, ...]:
    """Return the legs of a branch, with new wires whose sorts are appended to `sorts`."""
    wires = []
    for item in branch:
        if item < 0:
            wires.append(item)
        else:
            wires.append(len(sorts))
            sorts.append(item)
    return tuple(wires)


def contradicts(diagram: Diagram) -> bool:
    """Return whether two different fixed indices share a wire, which makes the term zero."""
    fixed: dict[Wire, str] = {}
    return any(fixed.setdefault(wire, name) != name for name, wire in diagram.named if "@" in name)


Readers = Mapping[type, Callable[[Interpretation, Any], DiagramSum]]
"""The function that reads each class of expressions."""
