"""From a SymPy expression to a sum of diagrams, in one walk.

A `Value` is a sum of diagrams with the sizes of its legs; the functions of `_READERS` build the
value of an expression from those of its arguments. Everything is bilinear, so a product of sums is
the sum of the products of diagrams, each brought to canonical form and collected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import sympy
from sympy.core.mul import Mul
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra import scalars
from algebra.canonical import canonical
from algebra.diagram import UNIT, Diagram, Sort, Wire, fuse, join
from algebra.dimensions import Dimensions, Resplit, normal_size, same_size
from algebra.errors import LanguageError, Undecided
from algebra.language import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    LayerProduct,
    OneHot,
    StackHeads,
    key,
    vec_cols,
    vec_rows,
)
from algebra.legs import Branch, Legs, beside, branches, in_block, matched, shifted, stacked
from algebra.scalars import Coefficient
from algebra.shapes import Signature

Terms = dict[Diagram, Coefficient]

MAX_TERMS = 2_000_000  # diagrams made in one reading before it is given up


class Label(NamedTuple):
    """What a box is an occurrence of: a tensor, with the indices that are fixed numbers.

    The wires of a box are the free indices, then the row legs, then the column legs; `indices`
    holds None where there is a wire. `rows` and `cols` are the legs of the tensor after splitting,
    and the two branches say which block of each the box is.
    """

    name: str
    indices: tuple[int | None, ...]
    rows: Legs
    cols: Legs
    row_branch: Branch
    col_branch: Branch


@dataclass(slots=True, frozen=True)
class Value:
    """A sum of diagrams whose row legs and column legs have these sorts."""

    rows: Legs
    cols: Legs
    terms: Terms


def read(
    signature: Signature, *groups: Sequence[sympy.Basic], deadline: float = inf
) -> tuple[Interpretation, list[tuple[Value, ...]]]:
    """Return groups of expressions read with one table of sizes, and the reading.

    Within a group shapes are one and legs are split alike. Where legs clash, everything is read
    once more with neighbouring identities fused.
    """
    reading = Interpretation(signature, deadline)
    try:
        return reading, reading.read_groups(*groups)
    except Undecided:
        reading = Interpretation(signature, deadline, fuse=True)
        return reading, reading.read_groups(*groups)


class Interpretation:
    """The reading of one or several expressions with one table of sizes and labels."""

    def __init__(self, signature: Signature, deadline: float = inf, fuse: bool = False) -> None:
        self.signature = signature
        self.fuse = fuse  # read I_a ⊗ I_b as I_ab, which has no inner order of legs
        self.deadline = deadline
        self.dimensions = Dimensions()
        self.labels: list[Label] = []
        self._label: dict[Label, int] = {}
        self._made = 0
        self.inverses: dict[str, tuple[Any, Any]] = {}  # name -> (normal form, expression)
        self.inverse_equations: list[tuple[Value, Value]] = []

    def read(self, *expressions: sympy.Basic) -> tuple[Value, ...]:
        """Return the values of expressions of one shape, their legs split alike."""
        return self.read_groups(expressions)[0]

    def read_groups(self, *groups: Sequence[sympy.Basic]) -> list[tuple[Value, ...]]:
        """Return the values of groups of expressions; within a group shapes are one, legs alike."""
        while True:
            self.labels.clear()
            self._label.clear()
            self.inverses.clear()
            self._made = 0
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

    def _equations_of_inverses(self) -> list[tuple[Value, Value]]:
        """Return E E⁻¹ = I and E⁻¹ E = I for every inverse that was read as a tensor."""
        equations = []
        for name, (_, e) in list(self.inverses.items()):
            value, inverse = self.value(e), self.tensor(name, e.shape, (), ())
            identity = self.identity(sympy.Identity(e.shape[0]))
            equations.append((self.product(value, inverse), identity))
            equations.append((self.product(inverse, value), identity))
        return equations

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
            form, loops = canonical(diagram, self.deadline)
            for sort in loops:
                coefficient = coefficient * self.dimensions.size(sort)
            _put(terms, form, coefficient)
            self._made += 1
            if self._made > MAX_TERMS:
                raise Undecided(f"more than {MAX_TERMS} path terms: too many to expand one by one")
            if self._made % 256 == 0 and time.monotonic() > self.deadline:
                raise Undecided(f"the budget was spent after {self._made} path terms were expanded")
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
        fixed = tuple(
            int(i) if isinstance(i, sympy.Integer) and count != 1 else None
            for i, count in zip(indices, counts, strict=True)
        )
        wires: dict[str, Wire] = {}
        touched: list[Wire] = []
        index_sorts: list[Sort] = []
        for index, count in zip(indices, counts, strict=True):
            if isinstance(index, sympy.Integer):
                continue
            touched += self._index(index, count, wires, index_sorts)
        made = []
        for row_branch in branches(rows):
            for col_branch in branches(cols):
                sorts = list(index_sorts)
                r, c = _open(row_branch, sorts), _open(col_branch, sorts)
                label = self.label(Label(name, fixed, rows, cols, row_branch, col_branch))
                box = (label, *touched, *[w for w in (*r, *c) if w >= 0])
                named = tuple(sorted(wires.items()))
                made.append((Diagram(r, c, named, (box,), tuple(sorts)), 1))
        return self.collect(rows, cols, made)

    def _index(
        self, index: sympy.Symbol, count: Any, wires: dict[str, Wire], sorts: list[Sort]
    ) -> list[Wire]:
        """Return the wire of an index, made if it is new; none if it has one value only."""
        legs = self.dimensions.legs(count)
        if not legs:
            return []
        sort = self._single(legs, index)
        name = index_name(index, sort)
        if name not in wires:
            wires[name] = len(sorts)
            sorts.append(sort)
        return [wires[name]]

    def _single(self, legs: Legs, index: Any) -> Sort:
        """Return the one sort of what an index runs over, or say that it was split elsewhere."""
        (first, *more) = legs
        if more or not isinstance(first, int):
            raise Undecided(
                f"the index {index} runs over {self.dimensions.total(legs)}, which is split "
                f"elsewhere into {self.dimensions.show(legs)}"
            )
        return first

    def matrix_symbol(self, e: sympy.MatrixSymbol) -> Value:
        return self.tensor(e.name, e.shape, (), ())

    def member(self, e: FamilyMember) -> Value:
        return self.tensor(e.family.name, e.family.shape, e.indices, e.family.counts)

    def identity(self, e: sympy.Identity) -> Value:
        legs = self.dimensions.legs(e.shape[0])
        made = []
        for branch in branches(legs):
            sorts: list[Sort] = []
            wires = _open(branch, sorts)
            made.append((Diagram(wires, wires, (), (), tuple(sorts)), 1))
        return self.collect(legs, legs, made)

    def ones(self, e: sympy.OneMatrix) -> Value:
        rows, cols = (self.dimensions.legs(dimension) for dimension in e.shape)
        made = []
        for row_branch in branches(rows):
            for col_branch in branches(cols):
                sorts: list[Sort] = []
                r, c = _open(row_branch, sorts), _open(col_branch, sorts)
                made.append((Diagram(r, c, (), (), tuple(sorts)), 1))
        return self.collect(rows, cols, made)

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
                    rows = x.rows + shifted(y.rows, shift)
                    cols = x.cols + shifted(y.cols, shift)
                    yield join(x, y, (), (rows, cols)), coefficient * other

        return self.collect(beside(a.rows, b.rows), beside(a.cols, b.cols), made())

    def power(self, e: sympy.MatPow) -> Value:
        if int(e.exp) == 0:
            return self.identity(sympy.Identity(e.shape[0]))
        base = self.value(e.base) if e.exp > 0 else self.inverse(e.base)
        result = base
        for _ in range(abs(int(e.exp)) - 1):
            result = self.product(result, base)
        return result

    def inverse(self, e: Any) -> Value:
        """Return the value of e⁻¹: pushed into products, or a tensor with its two equations.

        The inverse of a product of square matrices, of a Kronecker product, a transpose, a power
        and a multiple are those of the parts, which exist because the whole has one.
        """
        kind = type(e)
        if kind is sympy.Identity:
            return self.value(e)
        if kind in (sympy.Inverse, sympy.MatPow) and e.exp == -1:
            return self.value(e.base)
        if kind is sympy.MatPow:
            return self.power(sympy.MatPow(e.base, -e.exp, evaluate=False))
        if kind in (sympy.Transpose, sympy.Adjoint):
            return self._transposed(self.inverse(e.args[0]))
        factors = [a for a in e.args if getattr(a, "is_Matrix", False)]
        if kind is sympy.KroneckerProduct and all(same_size(*f.shape) for f in factors):
            result = self.inverse(factors[0])
            for factor in factors[1:]:
                result = self.beside(result, self.inverse(factor))
            return result
        if kind is sympy.MatMul and all(same_size(*f.shape) for f in factors):
            result = self.inverse(factors[-1])
            for factor in reversed(factors[:-1]):
                result = self.product(result, self.inverse(factor))
            for argument in e.args:
                if not getattr(argument, "is_Matrix", False):
                    number = scalars.from_sympy(argument, self.signature.sizes)
                    result = self.beside(Value((), (), {UNIT: scalars.inverse(number)}), result)
            return result
        return self._new_inverse(e)

    def _new_inverse(self, e: Any) -> Value:
        """Return a tensor that stands for e⁻¹; equal arguments give the same tensor."""
        value = self.value(e)
        self.dimensions.fit(value.rows, value.cols)
        key_of = tuple(sorted((d, str(c)) for d, c in value.terms.items()))
        for name, (known, _) in self.inverses.items():
            if known == key_of:
                return self.tensor(name, e.shape, (), ())
        if any(d.named for d in value.terms):
            raise LanguageError(
                f"the inverse of {e}, which has a free index, is not in the language"
            )
        name = f"({e})⁻¹"
        self.inverses[name] = (key_of, e)
        return self.tensor(name, e.shape, (), ())

    def scalar_power(self, e: sympy.Pow) -> Value:
        if not e.has(sympy.Trace, MatrixElement, sympy.Sum, sympy.KroneckerDelta):
            factor = scalars.from_sympy(e, self.signature.sizes)
            return Value((), (), {UNIT: factor} if factor != 0 else {})
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
        return self._transposed(self.value(e.args[0]))

    def _transposed(self, value: Value) -> Value:
        turned = (
            (Diagram(d.cols, d.rows, d.named, d.boxes, d.sorts), c) for d, c in value.terms.items()
        )
        return self.collect(value.cols, value.rows, turned)

    def kron(self, e: sympy.KroneckerProduct) -> Value:
        first, *rest = _fused(e) if self.fuse else e.args
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
                if legs:
                    name = index_name(index, self._single(legs, index))
                    pairs += [(known, wires[0]) for other, known in named if other == name]
                    named.append((name, wires[0]))
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
        legs = beside(value.rows, value.cols)
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
            (fuse(d, pairs, (d.rows, d.cols if cols else ())), c)
            for d, c in value.terms.items()
            if (pairs := matched(d.rows, d.cols)) is not None
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
        sorts = [self._single(legs, "of an explicit matrix") for legs in (rows, cols) if legs]
        made = []
        for i in range(e.rows):
            for j in range(e.cols):
                entry = self.value(e[i, j])
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
        slow, fast = (value.rows, value.cols) if by_rows else (value.cols, value.rows)
        rows = beside(slow, fast)
        stood = (
            (d._replace(rows=d.rows + d.cols if by_rows else d.cols + d.rows, cols=()), c)
            for d, c in value.terms.items()
        )
        return self.collect(rows, (), stood)

    def block_matrix(self, e: sympy.BlockMatrix) -> Value:
        height, width = e.blockshape
        blocks = {(i, j): self.value(e.blocks[i, j]) for i in range(height) for j in range(width)}
        return self._stack(blocks, height, width)

    def block_diagonal(self, e: sympy.BlockDiagMatrix) -> Value:
        blocks = {(k, k): self.value(block) for k, block in enumerate(e.args)}
        return self._stack(blocks, len(e.args), len(e.args))

    def _stack(self, blocks: dict[tuple[int, int], Value], height: int, width: int) -> Value:
        """Return blocks put together; a block that is not given is zero."""
        row_legs: list[Legs] = [()] * height
        col_legs: list[Legs] = [()] * width
        for (i, j), block in blocks.items():
            for legs, k, mine in ((row_legs, i, block.rows), (col_legs, j, block.cols)):
                if legs[k]:
                    self.dimensions.fit(legs[k], mine)
                legs[k] = mine
        rows, row_starts = stacked(row_legs)
        cols, col_starts = stacked(col_legs)
        made = []
        for (i, j), block in blocks.items():
            for d, coefficient in block.terms.items():
                r = in_block(d.rows, block.rows, row_starts[i]) if height > 1 else d.rows
                c = in_block(d.cols, block.cols, col_starts[j]) if width > 1 else d.cols
                made.append((d._replace(rows=r, cols=c), coefficient))
        return self.collect(rows, cols, made)

    def layers(self, e: LayerProduct) -> Value:
        if not e.count.is_Integer:
            raise Undecided(
                f"a product over {e.count} layers is not expanded: prove it by induction over "
                f"{e.count}"
            )
        factors = e.factors()
        if not factors:
            return self.identity(sympy.Identity(e.shape[0]))
        result = self.value(factors[0])
        for factor in factors[1:]:
            result = self.product(result, self.value(factor))
        return result

    def over_heads(self, e: HeadSum | ConcatHeads | StackHeads) -> Value:
        value = self.value(e.body)
        for index, count in reversed(e.limits):
            value = self._over_one(value, index, count, type(e))
        return value

    def _over_one(self, value: Value, index: sympy.Symbol, count: Any, kind: type) -> Value:
        """Bind one index: close its named leg, or make it the slow part of the rows or columns."""
        legs = self.dimensions.legs(count)
        single = (self._single(legs, index),) if legs else ()
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
    sympy.Inverse: Interpretation.power,
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
    sympy.BlockMatrix: Interpretation.block_matrix,
    sympy.BlockDiagMatrix: Interpretation.block_diagonal,
    LayerProduct: Interpretation.layers,
    HeadSum: Interpretation.over_heads,
    ConcatHeads: Interpretation.over_heads,
    StackHeads: Interpretation.over_heads,
}
