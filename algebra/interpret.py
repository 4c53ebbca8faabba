"""From a SymPy expression to a sum of diagrams, in one walk.

A `Value` is a sum of diagrams with the sizes of its legs; the functions of `_READERS` build the
value of an expression from those of its arguments. Everything is bilinear, so a product of sums is
the sum of the products of diagrams, each brought to canonical form and collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import sympy
from sympy.core.mul import Mul
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra import applied, concatenation, entries, scalars
from algebra.binders import substituted
from algebra.budget import Exhausted, spend, steps_left
from algebra.canonical import canonical
from algebra.diagram import UNIT, Diagram, Sort, Wire, fuse, join
from algebra.dimensions import Dimensions, Resplit
from algebra.errors import LanguageError, Undecided
from algebra.inverses import inverse
from algebra.language import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    LayerProduct,
    OneHot,
    OrderSum,
    StackHeads,
    key,
    matadd,
    vec_cols,
    vec_rows,
)
from algebra.legs import Branch, Legs, beside, branches, matched, shifted
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax, definition
from algebra.scalars import Coefficient
from algebra.signature import Signature
from algebra.text import short_text
from algebra.values import Label, Terms, Value, index_name, put

MAX_TERMS = 2_000_000  # diagrams made in one reading before it is given up
SUBSTITUTION = 60  # steps that count for putting a number for an index of layers
LONG = 16  # factors of a product that is no longer multiplied one factor after the other


def read(
    signature: Signature, *groups: Sequence[sympy.Basic]
) -> tuple[Interpretation, list[tuple[Value, ...]]]:
    """Return groups of expressions read with one table of sizes, and the reading.

    Within a group shapes are one and legs are split alike. Where legs clash, everything is read
    once more with neighbouring identities fused. Raises Undecided where that is not possible, or
    not within the active budget.
    """
    reading = Interpretation(signature)
    try:
        try:
            return reading, reading.read_groups(*groups)
        except Undecided:
            if not steps_left():
                raise
            reading = Interpretation(signature, fuse=True)
            return reading, reading.read_groups(*groups)
    except Exhausted as spent:
        made = f"the budget was spent after {reading.made} path terms were expanded"
        raise Undecided(str(spent) or made) from None


class Interpretation:
    """The reading of one or several expressions with one table of sizes and labels."""

    def __init__(self, signature: Signature, fuse: bool = False) -> None:
        self.signature = signature
        self.nonnegative = {*signature.sizes, *signature.assumptions.named("nonnegative")}
        self.fuse = fuse  # read I_a ⊗ I_b as I_ab, which has no inner order of legs
        self.dimensions = Dimensions()
        self.labels: list[Label] = []
        self._label: dict[Label, int] = {}
        self._symbols: dict[tuple[Any, ...], Value] = {}
        self.made = 0  # diagrams, so far
        self._opened = 0  # how many nonlinear functions what is read stands in
        self.applied: list[applied.Applied] = []
        self.inverses: dict[str, tuple[Any, Any]] = {}  # name -> (normal form, expression)
        self.inverse_equations: list[tuple[tuple[Any, ...], Value, Value]] = []

    def read(self, *expressions: sympy.Basic) -> tuple[Value, ...]:
        """Return the values of expressions of one shape, their legs split alike."""
        return self.read_groups(expressions)[0]

    def read_groups(self, *groups: Sequence[sympy.Basic]) -> list[tuple[Value, ...]]:
        """Return the values of groups of expressions; within a group shapes are one, legs alike."""
        while True:
            self.labels.clear()
            self._label.clear()
            self._symbols.clear()
            self.inverses.clear()
            self.applied.clear()
            self.made = 0
            try:
                values = [self._alike([self.value(e) for e in group]) for group in groups]
                self.inverse_equations = self._equations_of_inverses()
                return values
            except Resplit:
                continue

    def _alike(self, values: list[Value]) -> tuple[Value, ...]:
        for value in values[1:]:
            self.dimensions.fit(values[0].rows, value.rows)
            self.dimensions.fit(values[0].cols, value.cols)
        return tuple(values)

    def _equations_of_inverses(self) -> list[tuple[tuple[Any, ...], Value, Value]]:
        """Return E E⁻¹ = I and E⁻¹ E = I for every inverse that was read as a tensor.

        Each with what `entailment` calls it.
        """
        equations = []
        for name, (_, e) in list(self.inverses.items()):
            value, inverted = self.value(e), self.tensor(name, e.shape, (), ())
            identity = self.identity(sympy.Identity(e.shape[0]))
            right, left = self.product(value, inverted), self.product(inverted, value)
            equations.append((("inverse", name, "right"), right, identity))
            equations.append((("inverse", name, "left"), left, identity))
        return equations

    def opened(self, e: Any) -> Value:
        """Return the value of an expression with its fixed indices as names, as free ones are."""
        self._opened += 1
        try:
            return self.value(e)
        finally:
            self._opened -= 1

    def fresh_name(self, name: str) -> str:
        """Return a name for a new box: two expressions that print alike are still two."""
        taken = {*self.signature.tensors, *self.inverses, *[known.name for known in self.applied]}
        while name in taken:
            name += "′"
        return name

    def value(self, e: Any) -> Value:
        """Return the value of an expression that `shapes.inspect` has accepted."""
        spend(2)
        read = _READERS.get(type(e))
        if read is not None:
            return read(self, e)
        factor = scalars.from_sympy(e, self.nonnegative)
        return Value((), (), {UNIT: factor} if factor != 0 else {})

    # -- building sums ---------------------------------------------------------------------------

    def collect(self, rows: Legs, cols: Legs, made: Iterable[tuple[Diagram, Coefficient]]) -> Value:
        """Return the sum of diagrams as they come from `join`, in canonical form."""
        terms: Terms = {}
        for diagram, coefficient in made:
            if diagram.named and contradicts(diagram):
                continue
            form, loops = canonical(diagram)
            for sort in loops:
                coefficient = coefficient * self.dimensions.size(sort)
            put(terms, form, coefficient)
            self.made += 1
            if self.made > MAX_TERMS:
                raise Undecided(f"more than {MAX_TERMS} path terms: too many to expand one by one")
        return Value(rows, cols, terms)

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
    ) -> Value:
        rows, cols = (self.dimensions.legs(dimension) for dimension in shape)
        opened = self._opened > 0
        fixed: list[int | None] = []
        touched: list[str] = []
        index_sorts: dict[str, Sort] = {}
        for index, count in zip(indices, counts, strict=True):
            if isinstance(index, sympy.Integer) and not opened:
                fixed.append(int(index) if count != 1 else None)
                continue
            fixed.append(None)
            for named, sort in self._index(index, count).items():
                touched.append(named)
                index_sorts[named] = sort
        terms: Terms = {}
        for row_branch in branches(rows):
            for col_branch in branches(cols):
                sorts: list[Sort] = []
                r, c = _open(row_branch, sorts), _open(col_branch, sorts)
                wires = {n: len(sorts) + k for k, n in enumerate(sorted(index_sorts))}
                sorts += [index_sorts[n] for n in wires]
                label = self.label(Label(name, tuple(fixed), rows, cols, row_branch, col_branch))
                box = (label, *[wires[n] for n in touched], *[w for w in (*r, *c) if w >= 0])
                terms[Diagram(r, c, tuple(wires.items()), (box,), tuple(sorts))] = 1
        return Value(rows, cols, terms)

    def _index(self, index: Any, count: Any) -> dict[str, Sort]:
        """Return the name of an index with the sort of its wire; none if it has one value only."""
        legs = self.dimensions.legs(count)
        if not legs:
            return {}
        sort = self.single(legs, index)
        return {index_name(index, sort): sort}

    def single(self, legs: Legs, index: Any) -> Sort:
        """Return the one sort of what an index runs over, or say that it was split elsewhere."""
        (first, *more) = legs
        if more or not isinstance(first, int):
            raise Undecided(
                f"the index {index} runs over {self.dimensions.total(legs)}, which is split "
                f"elsewhere into {self.dimensions.show(legs)}"
            )
        return first

    def matrix_symbol(self, e: sympy.MatrixSymbol) -> Value:
        name, shape = e.name, e.shape
        split = (name, *map(self.dimensions.legs, shape))
        known = self._symbols.get(split)
        if known is None:
            known = self._symbols[split] = self.tensor(name, shape, (), ())
        return known

    def member(self, e: FamilyMember) -> Value:
        return self.tensor(e.family.name, e.family.shape, e.indices, e.family.counts)

    def identity(self, e: sympy.Identity) -> Value:
        legs = self.dimensions.legs(e.args[0])
        terms: Terms = {}
        for branch in branches(legs):
            sorts: list[Sort] = []
            wires = _open(branch, sorts)
            terms[Diagram(wires, wires, (), (), tuple(sorts))] = 1
        return Value(legs, legs, terms)

    def ones(self, e: sympy.OneMatrix) -> Value:
        rows, cols = (self.dimensions.legs(dimension) for dimension in e.args)
        terms: Terms = {}
        for row_branch in branches(rows):
            for col_branch in branches(cols):
                sorts: list[Sort] = []
                r, c = _open(row_branch, sorts), _open(col_branch, sorts)
                terms[Diagram(r, c, (), (), tuple(sorts))] = 1
        return Value(rows, cols, terms)

    def zero(self, e: sympy.ZeroMatrix) -> Value:
        rows, cols = (self.dimensions.legs(dimension) for dimension in e.shape)
        return Value(rows, cols, {})

    def one_hot(self, e: OneHot) -> Value:
        index, size = e.args
        rows = self.dimensions.legs(size)
        sorts = self._index(index, size)
        named = tuple((name, wire) for wire, name in enumerate(sorts))
        wires = tuple(range(len(sorts)))
        return Value(rows, (), {Diagram(wires, (), named, (), tuple(sorts.values())): 1})

    # -- operations ------------------------------------------------------------------------------

    def add(self, e: sympy.MatAdd) -> Value:
        return self.plus(*[self.value(argument) for argument in e.args])

    def plus(self, first: Value, *others: Value) -> Value:
        terms = dict(first.terms)
        for value in others:
            self.dimensions.fit(first.rows, value.rows)
            self.dimensions.fit(first.cols, value.cols)
            spend(len(value.terms))
            for diagram, coefficient in value.terms.items():
                put(terms, diagram, coefficient)
        return Value(first.rows, first.cols, terms)

    def mul(self, e: sympy.MatMul) -> Value:
        factors = [self.value(argument) for argument in e.args]
        matrices = [
            value
            for value, argument in zip(factors, e.args, strict=True)
            if getattr(argument, "is_Matrix", False)
        ]
        result = self.chain(matrices) if matrices else Value((), (), {UNIT: 1})
        for value, argument in zip(factors, e.args, strict=True):
            if not getattr(argument, "is_Matrix", False):
                result = self.beside(value, result)
        return result

    def chain(self, factors: Sequence[Value]) -> Value:
        """Return the product of matrices: by halves where they are many, or it is quadratic."""
        if len(factors) >= LONG:
            half = len(factors) // 2
            return self.product(self.chain(factors[:half]), self.chain(factors[half:]))
        result = factors[0]
        for factor in factors[1:]:
            result = self.product(result, factor)
        return result

    def raised(self, base: Value, exponent: int) -> Value:
        """Return a power from the first on, by squares where the exponent is large."""
        if exponent < LONG:
            return self.chain([base] * exponent)
        root = self.raised(base, exponent // 2)
        square = self.product(root, root)
        return self.product(square, base) if exponent % 2 else square

    def product(self, a: Value, b: Value) -> Value:
        """Return the matrix product: the column legs of a joined to the row legs of b."""
        self.dimensions.fit(a.cols, b.rows)

        def made() -> Iterable[tuple[Diagram, Coefficient]]:
            for x, coefficient in a.terms.items():
                shift = len(x.sorts)
                for y, other in b.terms.items():
                    spend(3 + 2 * len(x.boxes) + 2 * len(y.boxes))
                    pairs = matched(x.cols, shifted(y.rows, shift))
                    if pairs is not None:
                        legs = (x.rows, shifted(y.cols, shift))
                        yield join(x, y, pairs, legs), coefficient * other

        return self.collect(a.rows, b.cols, made())

    def beside(self, a: Value, b: Value) -> Value:
        """Return the Kronecker product: the legs of a, which are the slow ones, then those of b."""
        if len(a.terms) == 1 and UNIT in a.terms:  # a plain number or scalar symbol
            factor = a.terms[UNIT]
            return Value(b.rows, b.cols, {d: factor * c for d, c in b.terms.items()})

        def made() -> Iterable[tuple[Diagram, Coefficient]]:
            for x, coefficient in a.terms.items():
                shift = len(x.sorts)
                for y, other in b.terms.items():
                    spend(3 + 2 * len(x.boxes) + 2 * len(y.boxes))
                    rows = x.rows + shifted(y.rows, shift)
                    cols = x.cols + shifted(y.cols, shift)
                    yield join(x, y, (), (rows, cols)), coefficient * other

        return self.collect(beside(a.rows, b.rows), beside(a.cols, b.cols), made())

    def power(self, e: sympy.MatPow) -> Value:
        if int(e.exp) == 0:
            identity = self.identity(sympy.Identity(e.shape[0]))
            with suppress(Undecided):  # the base has no part in the power, but its sizes are cut
                self.dimensions.fit(identity.rows, self.value(e.base).rows)
            return identity
        base = self.value(e.base) if e.exp > 0 else inverse(self, e.base)
        return self.raised(base, abs(int(e.exp)))

    def scalar_power(self, e: sympy.Pow) -> Value:
        if e.exp.free_symbols:
            raise Undecided(f"the power {short_text(e)} of a number is not expanded")
        if not e.has(sympy.Trace, MatrixElement, sympy.Sum, sympy.KroneckerDelta):
            factor = scalars.from_sympy(e, self.nonnegative)
            return Value((), (), {UNIT: factor} if factor != 0 else {})
        if not isinstance(e.exp, sympy.Integer):
            raise LanguageError(
                f"the power {e.exp} of a trace, entry or sum is not in the language, in "
                f"{short_text(e)}"
            )
        if e.exp > 0:
            base = self.value(e.base)
        else:  # as the inverse of a matrix of one entry
            base = inverse(self, sympy.ImmutableDenseMatrix([[e.base]]))
        result = Value((), (), {UNIT: 1})
        for _ in range(abs(int(e.exp))):
            result = self.beside(result, base)
        return result

    def transpose(self, e: sympy.Transpose) -> Value:
        return self.transposed(self.value(e.args[0]))

    def transposed(self, value: Value) -> Value:
        turned = (
            (Diagram(d.cols, d.rows, d.named, d.boxes, d.sorts), c) for d, c in value.terms.items()
        )
        return self.collect(value.cols, value.rows, turned)

    def kron(self, e: sympy.KroneckerProduct) -> Value:
        first, *rest = fused(e) if self.fuse else e.args
        result = self.value(first)
        for factor in rest:
            result = self.beside(result, self.value(factor))
        return result

    def hadamard(self, e: sympy.HadamardProduct) -> Value:
        result = self.value(e.args[0])
        for factor in e.args[1:]:
            result = self.elementwise(result, self.value(factor))
        return result

    def elementwise(self, a: Value, b: Value) -> Value:
        """Return the Hadamard product: rows joined to rows and columns to columns."""
        self.dimensions.fit(a.rows, b.rows)
        self.dimensions.fit(a.cols, b.cols)

        def made() -> Iterable[tuple[Diagram, Coefficient]]:
            for x, coefficient in a.terms.items():
                shift = len(x.sorts)
                for y, other in b.terms.items():
                    spend(3 + 2 * len(x.boxes) + 2 * len(y.boxes))
                    in_rows = matched(x.rows, shifted(y.rows, shift))
                    in_cols = matched(x.cols, shifted(y.cols, shift))
                    if in_rows is not None and in_cols is not None:
                        made = join(x, y, in_rows + in_cols, (x.rows, x.cols))
                        yield made, coefficient * other

        return self.collect(a.rows, a.cols, made())

    def trace(self, e: sympy.Trace) -> Value:
        value = self.value(e.args[0])
        self.dimensions.fit(value.rows, value.cols)
        closed = (
            (fuse(d, pairs, ((), ())), c)
            for d, c in value.terms.items()
            if (pairs := matched(d.rows, d.cols)) is not None
        )
        return self.collect((), (), closed)

    def hadamard_power(self, e: sympy.HadamardPower) -> Value:
        base, exponent = self.value(e.args[0]), int(e.args[1])
        if exponent == 0:
            return self.alike(base, self.ones(sympy.OneMatrix(*e.shape)))
        result = base
        for _ in range(exponent - 1):
            result = self.elementwise(result, base)
        return result

    def alike(self, base: Value, value: Value) -> Value:
        """Return a value of the shape of a base, the legs of both split alike."""
        self.dimensions.fit(base.rows, value.rows)
        self.dimensions.fit(base.cols, value.cols)
        return value

    def vec(self, e: vec_rows | vec_cols) -> Value:
        value = self.value(e.args[0])
        by_rows = isinstance(e, vec_rows)
        slow, fast = (value.rows, value.cols) if by_rows else (value.cols, value.rows)
        rows = beside(slow, fast)
        stood = (
            (d._replace(rows=d.rows + d.cols if by_rows else d.cols + d.rows, cols=()), c)
            for d, c in value.terms.items()
        )
        return self.collect(rows, (), stood)

    def layers(self, e: LayerProduct) -> Value:
        if not e.count.is_Integer:
            raise Undecided(
                f"a product over {e.count} layers is not expanded: prove it by induction over "
                f"{e.count}"
            )
        count = int(e.count)
        if not count:
            return self.identity(sympy.Identity(e.shape[0]))
        if e.index not in e.body.free_symbols:
            return self.raised(self.value(e.body), count)
        layers = self.numbered(e)
        return self.chain(layers if e.reverse else layers[::-1])

    def numbered(self, e: LayerProduct | OrderSum) -> list[Value]:
        """Return the value of each layer, the first one first."""
        layers = []
        for k in range(int(e.count)):
            spend(SUBSTITUTION)
            layers.append(self.value(e.layer(k)))
        return layers

    def norm(self, e: RMSNorm | LayerNorm) -> Value:
        return self.value(definition(e))

    def orders(self, e: OrderSum) -> Value:
        if not (e.count.is_Integer and e.order.is_Integer):
            raise Undecided(
                f"a sum over the paths of order {e.order} through {e.count} layers is not "
                "expanded: prove it by induction over the layers"
            )
        count, order = int(e.count), int(e.order)
        zero = self.zero(sympy.ZeroMatrix(*e.shape))
        if order > count:
            return zero
        # of each order, the paths through the layers so far: each product is made once
        taken = [self.identity(sympy.Identity(e.shape[0])), *[zero] * order]
        for number, layer in enumerate(self.numbered(e) if order else ()):
            least = order - (count - number)  # what is of lower order can no longer reach it
            for k in range(min(number, order - 1), max(least, 0) - 1, -1):
                pair = (taken[k], layer) if e.reverse else (layer, taken[k])
                taken[k + 1] = self.plus(taken[k + 1], self.product(*pair))
        return self.plus(zero, taken[order])

    def over_heads(self, e: HeadSum | ConcatHeads | StackHeads) -> Value:
        written = _written_out(e)
        if written is not None:
            return self.value(written)
        value = self.value(e.body)
        for index, count in reversed(e.limits):
            value = self.over_one(value, index, count, type(e))
        return value

    def over_one(self, value: Value, index: sympy.Symbol, count: Any, kind: type) -> Value:
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
            made.append((Diagram(rows, cols, named, d.boxes, sorts), coefficient))
        rows_sorts = legs + value.rows if kind is StackHeads else value.rows
        cols_sorts = legs + value.cols if kind is ConcatHeads else value.cols
        return self.collect(rows_sorts, cols_sorts, made)


def _written_out(e: HeadSum | ConcatHeads | StackHeads) -> Any:
    """Return a sum over numbered layers term by term where it holds the layers before each."""
    for index, count in e.limits if type(e) is HeadSum else ():
        if count.is_Integer and any(index in _counts(part) for part in e.atoms(*LAYERED)):
            others = [limit for limit in e.limits if limit[0] != index]
            body = HeadSum(e.body, *others) if others else e.body
            terms = []
            for k in range(int(count)):
                spend(SUBSTITUTION)
                terms.append(substituted(body, {index: k}))
            return matadd(*terms) if len(terms) > 1 else terms[0]
    return None


LAYERED = (LayerProduct, OrderSum)


def _counts(e: LayerProduct | OrderSum) -> tuple[Any, ...]:
    return (e.count, e.order) if isinstance(e, OrderSum) else (e.count,)


def _open(branch: Branch, sorts: list[Sort]) -> tuple[Wire, ...]:
    """Return legs with a new wire for each sort of a branch, which are added to `sorts`."""
    wires = []
    for item in branch:
        if item < 0:
            wires.append(item)
        else:
            wires.append(len(sorts))
            sorts.append(item)
    return tuple(wires)


def contradicts(diagram: Diagram) -> bool:
    """Return whether two different fixed indices lie on one wire: then the term is zero."""
    fixed: dict[Wire, str] = {}
    return any(fixed.setdefault(wire, name) != name for name, wire in diagram.named if "@" in name)


def fused(e: sympy.KroneckerProduct) -> list[Any]:
    """Return the factors of a Kronecker product, nested ones flat, neighbours without a box fused.

    I_a ⊗ I_b is I_ab, and the like for ones: as one factor it has no inner order of legs, so that
    I_d ⊗ I_n and I_n ⊗ I_d are the same thing.
    """
    factors: list[Any] = []
    for factor in e.args:
        flat = fused(factor) if isinstance(factor, sympy.KroneckerProduct) else [factor]
        for part in flat:
            kind = type(part)
            if factors and kind in (sympy.Identity, sympy.OneMatrix) and type(factors[-1]) is kind:
                sizes = [a * b for a, b in zip(factors[-1].shape, part.shape, strict=True)]
                factors[-1] = sympy.Identity(sizes[0]) if kind is sympy.Identity else kind(*sizes)
            else:
                factors.append(part)
    return factors


_READERS: dict[type, Callable[[Interpretation, Any], Value]] = {
    sympy.MatrixSymbol: Interpretation.matrix_symbol,
    FamilyMember: Interpretation.member,
    sympy.Identity: Interpretation.identity,
    sympy.OneMatrix: Interpretation.ones,
    sympy.ZeroMatrix: Interpretation.zero,
    OneHot: Interpretation.one_hot,
    sympy.MatAdd: Interpretation.add,
    sympy.Add: Interpretation.add,
    sympy.MatMul: Interpretation.mul,
    Mul: Interpretation.mul,
    sympy.MatPow: Interpretation.power,
    sympy.Inverse: Interpretation.power,
    sympy.Pow: Interpretation.scalar_power,
    sympy.Transpose: Interpretation.transpose,
    sympy.Adjoint: Interpretation.transpose,
    sympy.KroneckerProduct: Interpretation.kron,
    sympy.HadamardProduct: Interpretation.hadamard,
    sympy.Trace: Interpretation.trace,
    vec_rows: Interpretation.vec,
    vec_cols: Interpretation.vec,
    MatrixElement: entries.element,
    sympy.KroneckerDelta: entries.delta,
    sympy.Sum: entries.index_sum,
    DiagMatrix: entries.diag_matrix,
    DiagonalOf: entries.diagonal_of,
    DiagonalMatrix: entries.diagonal_matrix,
    sympy.HadamardPower: Interpretation.hadamard_power,
    sympy.ImmutableDenseMatrix: entries.explicit,
    sympy.BlockMatrix: concatenation.block_matrix,
    sympy.BlockDiagMatrix: concatenation.block_diagonal,
    LayerProduct: Interpretation.layers,
    OrderSum: Interpretation.orders,
    RowSoftmax: applied.row_softmax,
    Activation: applied.activation,
    CausalMask: applied.causal_mask,
    RMSNorm: Interpretation.norm,
    LayerNorm: Interpretation.norm,
    HeadSum: Interpretation.over_heads,
    ConcatHeads: Interpretation.over_heads,
    StackHeads: Interpretation.over_heads,
}
