"""From a SymPy expression to a sum of diagrams, in one walk.

A `Value` is a sum of diagrams with the sizes of its legs; the functions of `_READERS` build the
value of an expression from those of its arguments. Everything is bilinear, so a product of sums is
the sum of the products of diagrams, each brought to canonical form and collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy
from sympy.core.mul import Mul
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra import scalars
from algebra.canonical import canonical
from algebra.diagram import UNIT, Diagram, Sort, Wire, fuse, join
from algebra.dimensions import Dimensions, Resplit, normal_size
from algebra.errors import LanguageError, Undecided
from algebra.language import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    OneHot,
    StackHeads,
    key,
    vec_cols,
    vec_rows,
)
from algebra.scalars import Coefficient
from algebra.shapes import Signature

Legs = tuple[Sort, ...]
Terms = dict[Diagram, Coefficient]

MAX_TERMS = 2_000_000  # diagrams made in one reading before it is given up


class Label(NamedTuple):
    """What a box is an occurrence of: a tensor, with the indices that are fixed numbers.

    The wires of a box are the free indices, then the row legs, then the column legs; `indices`
    holds None where there is a wire. `legs` are the sorts of rows and columns, after splitting.
    """

    name: str
    indices: tuple[int | None, ...]
    rows: Legs
    cols: Legs


@dataclass(slots=True, frozen=True)
class Value:
    """A sum of diagrams whose row legs and column legs have these sorts."""

    rows: Legs
    cols: Legs
    terms: Terms


class Interpretation:
    """The reading of one or several expressions with one table of sizes and labels."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.dimensions = Dimensions()
        self.labels: list[Label] = []
        self._label: dict[Label, int] = {}
        self._made = 0

    def read(self, *expressions: sympy.Basic) -> tuple[Value, ...]:
        """Return the values of expressions of one shape, their legs split alike."""
        while True:
            self.labels.clear()
            self._label.clear()
            self._made = 0
            try:
                values = tuple(self.value(expression) for expression in expressions)
                for value in values[1:]:
                    self.dimensions.fit(values[0].rows, value.rows)
                    self.dimensions.fit(values[0].cols, value.cols)
                return values
            except Resplit:
                continue

    def value(self, e: Any) -> Value:
        """Return the value of an expression that `shapes.inspect` has accepted."""
        read = _READERS.get(type(e))
        if read is not None:
            return read(self, e)
        factor = scalars.from_sympy(e, self.signature.sizes)
        return Value((), (), {UNIT: factor} if factor != 0 else {})

    # -- building sums ---------------------------------------------------------------------------

    def collect(self, rows: Legs, cols: Legs, made: Iterable[tuple[Diagram, Coefficient]]) -> Value:
        """Return the sum of diagrams as they come from `join`, in canonical form."""
        terms: Terms = {}
        for diagram, coefficient in made:
            if diagram.named and _contradicts(diagram):
                continue
            form, loops = canonical(diagram)
            for sort in loops:
                coefficient = coefficient * self.dimensions.size(sort)
            _put(terms, form, coefficient)
            self._made += 1
            if self._made > MAX_TERMS:
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
        fixed = tuple(int(i) if isinstance(i, sympy.Integer) else None for i in indices)
        wires: dict[str, Wire] = {}
        touched: list[Wire] = []
        sorts: list[Sort] = []
        for index, count in zip(indices, counts, strict=True):
            if isinstance(index, sympy.Integer):
                continue
            touched += self._index(index, count, wires, sorts)
        r = range(len(sorts), len(sorts) + len(rows))
        c = range(r.stop, r.stop + len(cols))
        label = self.label(Label(name, fixed, rows, cols))
        diagram = Diagram(
            tuple(r),
            tuple(c),
            tuple(sorted(wires.items())),
            ((label, *touched, *r, *c),),
            (*sorts, *rows, *cols),
        )
        return self.collect(rows, cols, [(diagram, 1)])

    def _index(
        self, index: sympy.Symbol, count: Any, wires: dict[str, Wire], sorts: list[Sort]
    ) -> list[Wire]:
        """Return the wire of an index, made if it is new; none if it has one value only."""
        legs = self.dimensions.legs(count)
        if not legs:
            return []
        if len(legs) > 1:
            raise Undecided(f"the index {index} runs over {count}, which is split elsewhere")
        name = index_name(index, legs[0])
        if name not in wires:
            wires[name] = len(sorts)
            sorts += legs
        return [wires[name]]

    def matrix_symbol(self, e: sympy.MatrixSymbol) -> Value:
        return self.tensor(e.name, e.shape, (), ())

    def member(self, e: FamilyMember) -> Value:
        return self.tensor(e.family.name, e.family.shape, e.indices, e.family.counts)

    def identity(self, e: sympy.Identity) -> Value:
        legs = self.dimensions.legs(e.shape[0])
        wires = tuple(range(len(legs)))
        return self.collect(legs, legs, [(Diagram(wires, wires, (), (), legs), 1)])

    def ones(self, e: sympy.OneMatrix) -> Value:
        rows, cols = (self.dimensions.legs(dimension) for dimension in e.shape)
        r = tuple(range(len(rows)))
        c = tuple(range(len(rows), len(rows) + len(cols)))
        return self.collect(rows, cols, [(Diagram(r, c, (), (), rows + cols), 1)])

    def zero(self, e: sympy.ZeroMatrix) -> Value:
        rows, cols = (self.dimensions.legs(dimension) for dimension in e.shape)
        return Value(rows, cols, {})

    def one_hot(self, e: OneHot) -> Value:
        index, size = e.args
        rows = self.dimensions.legs(size)
        wires: dict[str, Wire] = {}
        sorts: list[Sort] = []
        touched = tuple(self._index(index, size, wires, sorts))
        diagram = Diagram(touched, (), tuple(wires.items()), (), tuple(sorts))
        return self.collect(rows, (), [(diagram, 1)])

    # -- operations ------------------------------------------------------------------------------

    def add(self, e: sympy.MatAdd) -> Value:
        values = [self.value(argument) for argument in e.args]
        first = values[0]
        terms = dict(first.terms)
        for value in values[1:]:
            self.dimensions.fit(first.rows, value.rows)
            self.dimensions.fit(first.cols, value.cols)
            for diagram, coefficient in value.terms.items():
                _put(terms, diagram, coefficient)
        return Value(first.rows, first.cols, terms)

    def mul(self, e: sympy.MatMul) -> Value:
        factors = [self.value(argument) for argument in e.args]
        matrices = [
            value
            for value, argument in zip(factors, e.args, strict=True)
            if getattr(argument, "is_Matrix", False)
        ]
        result = matrices[0] if matrices else Value((), (), {UNIT: 1})
        for matrix in matrices[1:]:
            result = self.product(result, matrix)
        for value, argument in zip(factors, e.args, strict=True):
            if not getattr(argument, "is_Matrix", False):
                result = self.beside(value, result)
        return result

    def product(self, a: Value, b: Value) -> Value:
        """Return the matrix product: the column legs of a joined to the row legs of b."""
        self.dimensions.fit(a.cols, b.rows)

        def made() -> Iterable[tuple[Diagram, Coefficient]]:
            for x, coefficient in a.terms.items():
                shift = len(x.sorts)
                for y, other in b.terms.items():
                    pairs = [(p, q + shift) for p, q in zip(x.cols, y.rows, strict=True)]
                    legs = (x.rows, [w + shift for w in y.cols])
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
                    rows = (*x.rows, *[w + shift for w in y.rows])
                    cols = (*x.cols, *[w + shift for w in y.cols])
                    yield join(x, y, (), (rows, cols)), coefficient * other

        return self.collect(a.rows + b.rows, a.cols + b.cols, made())

    def power(self, e: sympy.MatPow) -> Value:
        if int(e.exp) == 0:
            return self.identity(sympy.Identity(e.shape[0]))
        base = self.value(e.base)
        result = base
        for _ in range(int(e.exp) - 1):
            result = self.product(result, base)
        return result

    def scalar_power(self, e: sympy.Pow) -> Value:
        if not e.has(sympy.Trace, MatrixElement, sympy.Sum, sympy.KroneckerDelta):
            factor = scalars.from_sympy(e, self.signature.sizes)
            return Value((), (), {UNIT: factor})
        if not isinstance(e.exp, sympy.Integer) or e.exp < 0:
            raise LanguageError(
                f"the power {e.exp} of a trace, entry or sum is not in the language, in {e}"
            )
        result = Value((), (), {UNIT: 1})
        base = self.value(e.base)
        for _ in range(int(e.exp)):
            result = self.beside(result, base)
        return result

    def transpose(self, e: sympy.Transpose) -> Value:
        value = self.value(e.args[0])
        turned = (
            (Diagram(d.cols, d.rows, d.named, d.boxes, d.sorts), c) for d, c in value.terms.items()
        )
        return self.collect(value.cols, value.rows, turned)

    def kron(self, e: sympy.KroneckerProduct) -> Value:
        first, *rest = _fused(e)
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
                    legs = zip(x.rows + x.cols, y.rows + y.cols, strict=True)
                    pairs = [(p, q + shift) for p, q in legs]
                    yield join(x, y, pairs, (x.rows, x.cols)), coefficient * other

        return self.collect(a.rows, a.cols, made())

    def trace(self, e: sympy.Trace) -> Value:
        value = self.value(e.args[0])
        self.dimensions.fit(value.rows, value.cols)
        closed = (
            (fuse(d, list(zip(d.rows, d.cols, strict=True)), ((), ())), c)
            for d, c in value.terms.items()
        )
        return self.collect((), (), closed)

    def element(self, e: MatrixElement) -> Value:
        value = self.value(e.args[0])
        made = []
        for d, coefficient in value.terms.items():
            pairs: list[tuple[Wire, Wire]] = []
            named = list(d.named)
            for legs, wires, index in (
                (value.rows, d.rows, e.args[1]),
                (value.cols, d.cols, e.args[2]),
            ):
                if len(legs) > 1:
                    raise Undecided(
                        f"the index {index} runs over legs of sizes {self.dimensions.show(legs)}, "
                        "which are split elsewhere"
                    )
                for sort, wire in zip(legs, wires, strict=True):
                    name = index_name(index, sort)
                    pairs += [(known, wire) for other, known in named if other == name]
                    named.append((name, wire))
            opened = d._replace(rows=(), cols=(), named=tuple(sorted(dict(named).items())))
            made.append((fuse(opened, pairs, ((), ())), coefficient))
        return self.collect((), (), made)

    def delta(self, e: sympy.KroneckerDelta) -> Value:
        row, col, (_, last) = e.args
        size = normal_size(last + 1)
        return self.element(MatrixElement(sympy.Identity(size), row, col))

    def index_sum(self, e: sympy.Sum) -> Value:
        value = self.value(e.function)
        for index, _, last in e.limits:
            value = self._over_one(value, index, last + 1, HeadSum)
        return value

    def diag_matrix(self, e: DiagMatrix) -> Value:
        value = self.value(e.args[0])
        legs = value.rows + value.cols
        return self.collect(
            legs,
            legs,
            (
                (d._replace(rows=d.rows + d.cols, cols=d.rows + d.cols), c)
                for d, c in value.terms.items()
            ),
        )

    def diagonal_of(self, e: DiagonalOf) -> Value:
        value = self.value(e.args[0])
        return self._on_diagonal(value, ())

    def diagonal_matrix(self, e: DiagonalMatrix) -> Value:
        value = self.value(e.args[0])
        return self._on_diagonal(value, value.cols)

    def _on_diagonal(self, value: Value, cols: Legs) -> Value:
        """Join rows to columns and keep one copy of the legs, or both (when `cols` are kept)."""
        self.dimensions.fit(value.rows, value.cols)
        joined = (
            (fuse(d, list(zip(d.rows, d.cols, strict=True)), (d.rows, d.cols if cols else ())), c)
            for d, c in value.terms.items()
        )
        return self.collect(value.rows, cols, joined)

    def hadamard_power(self, e: sympy.HadamardPower) -> Value:
        base, exponent = self.value(e.args[0]), int(e.args[1])
        if exponent == 0:
            return self.ones(sympy.OneMatrix(*e.shape))
        result = base
        for _ in range(exponent - 1):
            result = self.elementwise(result, base)
        return result

    def explicit(self, e: sympy.ImmutableDenseMatrix) -> Value:
        """Return Σ entry · (unit column i)(unit row j), the indices fixed numbers."""
        rows, cols = (self.dimensions.legs(sympy.Integer(size)) for size in e.shape)
        if len(rows) > 1 or len(cols) > 1:
            raise Undecided("a size of an explicit matrix is split elsewhere")
        made = []
        for i in range(e.rows):
            for j in range(e.cols):
                entry = self.value(e[i, j])
                sorts = [*rows, *cols]
                wires = tuple(range(len(sorts)))
                names = [
                    index_name(k, s) for k, s in zip((i,) * len(rows) + (j,), sorts, strict=False)
                ]
                named: dict[str, Wire] = {}
                pairs = []
                for name, wire in zip(names, wires, strict=True):
                    if name in named:
                        pairs.append((named[name], wire))
                    named.setdefault(name, wire)
                r, c = wires[: len(rows)], wires[len(rows) :]
                unit = Diagram(r, c, tuple(sorted(named.items())), (), tuple(sorts))
                unit = fuse(unit, pairs, (r, c))
                for d, coefficient in entry.terms.items():
                    made.append((join(unit, d, (), (unit.rows, unit.cols)), coefficient))
        return self.collect(rows, cols, made)

    def vec(self, e: vec_rows | vec_cols) -> Value:
        value = self.value(e.args[0])
        by_rows = isinstance(e, vec_rows)
        rows = value.rows + value.cols if by_rows else value.cols + value.rows
        stood = (
            (d._replace(rows=d.rows + d.cols if by_rows else d.cols + d.rows, cols=()), c)
            for d, c in value.terms.items()
        )
        return self.collect(rows, (), stood)

    def over_heads(self, e: HeadSum | ConcatHeads | StackHeads) -> Value:
        value = self.value(e.body)
        for index, count in reversed(e.limits):
            value = self._over_one(value, index, count, type(e))
        return value

    def _over_one(self, value: Value, index: sympy.Symbol, count: Any, kind: type) -> Value:
        """Bind one index: close its named leg, or make it the slow part of the rows or columns."""
        legs = self.dimensions.legs(count)
        if len(legs) > 1:
            raise Undecided(f"the index {index} runs over {count}, which is split elsewhere")
        made: list[tuple[Diagram, Coefficient]] = []
        for d, coefficient in value.terms.items():
            mine = [wire for name, wire in d.named if name == key(index)]
            sorts = d.sorts
            if legs and not mine:  # the body does not depend on the index
                mine, sorts = [len(sorts)], (*sorts, *legs)
            rows = (*mine, *d.rows) if kind is StackHeads else d.rows
            cols = (*mine, *d.cols) if kind is ConcatHeads else d.cols
            named = tuple((name, wire) for name, wire in d.named if name != key(index))
            made.append((Diagram(rows, cols, named, d.boxes, sorts), coefficient))
        rows_sorts = legs + value.rows if kind is StackHeads else value.rows
        cols_sorts = legs + value.cols if kind is ConcatHeads else value.cols
        return self.collect(rows_sorts, cols_sorts, made)


def index_name(index: Any, sort: Sort) -> str:
    """Return the name of a free index; a fixed one is named by its value and what it runs over."""
    return f"{int(index)}@{sort}" if isinstance(index, int | sympy.Integer) else key(index)


def _contradicts(diagram: Diagram) -> bool:
    """Return whether two different fixed indices lie on one wire: then the term is zero."""
    fixed: dict[Wire, str] = {}
    return any(fixed.setdefault(wire, name) != name for name, wire in diagram.named if "@" in name)


def _fused(e: sympy.KroneckerProduct) -> list[Any]:
    """Return the factors of a Kronecker product, nested ones flat, neighbours without a box fused.

    I_a ⊗ I_b is I_ab, and the like for ones: as one factor it has no inner order of legs, so that
    I_d ⊗ I_n and I_n ⊗ I_d are the same thing.
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


def _put(terms: Terms, diagram: Diagram, coefficient: Coefficient) -> None:
    total = terms.get(diagram, 0) + coefficient
    if isinstance(total, scalars.Scalar) or total != 0:
        terms[diagram] = total
    else:
        terms.pop(diagram, None)


def difference(a: Terms, b: Terms) -> Terms:
    """Return the terms of a - b: none exactly when the two sums are the same."""
    result = dict(a)
    for diagram, coefficient in b.items():
        _put(result, diagram, -1 * coefficient)
    return result


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
    sympy.Pow: Interpretation.scalar_power,
    sympy.Transpose: Interpretation.transpose,
    sympy.Adjoint: Interpretation.transpose,
    sympy.KroneckerProduct: Interpretation.kron,
    sympy.HadamardProduct: Interpretation.hadamard,
    sympy.Trace: Interpretation.trace,
    vec_rows: Interpretation.vec,
    vec_cols: Interpretation.vec,
    MatrixElement: Interpretation.element,
    sympy.KroneckerDelta: Interpretation.delta,
    sympy.Sum: Interpretation.index_sum,
    DiagMatrix: Interpretation.diag_matrix,
    DiagonalOf: Interpretation.diagonal_of,
    DiagonalMatrix: Interpretation.diagonal_matrix,
    sympy.HadamardPower: Interpretation.hadamard_power,
    sympy.ImmutableDenseMatrix: Interpretation.explicit,
    HeadSum: Interpretation.over_heads,
    ConcatHeads: Interpretation.over_heads,
    StackHeads: Interpretation.over_heads,
}
