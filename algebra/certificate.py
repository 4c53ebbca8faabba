"""What a proof hands to somebody who does not trust it: a certificate, as plain JSON data.

A certificate holds both sides and the hypotheses as trees, and the claim that

    lhs - rhs  =  sum over uses of  coefficient * context[ lhs - rhs of that hypothesis ]

with a renaming of wires for every diagram, so that whoever checks it compares and adds, and need
not search. The format is told at the head of `proofs/replay.py`, which checks it and shares nothing
with this file. A certificate carries no digest and no signature: it is checked, not believed.

The reading here is the one of `interpret` without its collecting: which diagrams there are and in
which order is part of the format, so the two must walk alike, step for step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product, zip_longest
from typing import Any, NamedTuple, TypeAlias

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra import scalars
from algebra.canonical import numbering
from algebra.diagram import DEAD, UNIT, Diagram, Wire, fuse, join
from algebra.dimensions import Resplit
from algebra.errors import LanguageError, RuleError, Undecided
from algebra.interpret import Interpretation, contradicts, fused
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
from algebra.legs import Blocks, Legs, beside, in_block, shifted, stacked
from algebra.scalars import Coefficient
from algebra.shapes import Signature, inspect

SCHEMA = 1
HOLE = -1  # the label of the one box of a context that stands for a hypothesis
MAX_TERMS = 200_000  # diagrams in a certificate

Tree: TypeAlias = Any  # an integer, or a list [kind, argument, ...]
Limits = Sequence[tuple[sympy.Symbol, Any]]
Pairs = Sequence[tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a hypothesis: coefficient * context[lhs - rhs of hypothesis number `given`].

    `context` is a diagram in the labels and sorts of the Interpretation that goes with it; exactly
    one of its boxes is `(HOLE, wire, ...)`: the row legs, the column legs and the for-all indices
    of the hypothesis, in order, block marks among them. It need not be canonical; wires of sort
    DEAD do not count. The coefficient may divide only by numbers and by monomials in sizes and in
    scalars declared positive: whoever checks the certificate refuses any other.
    """

    given: int
    coefficient: Coefficient | sympy.Expr
    context: Diagram


def certificate(
    lhs: Any,
    rhs: Any,
    given: Sequence[Any] = (),
    uses: Sequence[Use] = (),
    reading: Interpretation | None = None,
) -> dict[str, Any]:
    """Return the certificate of lhs = rhs, as data for JSON.

    `given`: pairs (lhs, rhs) or `sympy.Eq`; a third entry lists the limits (index, count) of the
    indices that the hypothesis holds for all of. `reading`: the Interpretation that the contexts of
    `uses` were made with; needed with uses only. Nothing is proved here: a claim that is false gets
    a certificate too, one that is rejected.

    >>> from sympy import MatrixSymbol, Symbol, Transpose
    >>> n = Symbol("n")
    >>> A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
    >>> made = certificate(Transpose(A * B), Transpose(B) * Transpose(A))
    >>> made["lhs"]
    ['Transpose', ['MatMul', ['MatrixSymbol', 'A'], ['MatrixSymbol', 'B']]]
    >>> made["renamings"]["lhs"]
    [[0, 1, 2]]
    """
    lhs, rhs = sympy.sympify(lhs), sympy.sympify(rhs)
    hypotheses = [_hypothesis(one) for one in given]
    signature = inspect(lhs, rhs, *[side for h in hypotheses for side in h[:2]])
    reading = reading or Interpretation(signature)
    while True:
        walk = _Walk(reading)
        try:
            left, right = walk.value(lhs), walk.value(rhs)
            reading.dimensions.fit(left.rows, right.rows)
            reading.dimensions.fit(left.cols, right.cols)
            relations = [walk.relation(*h) for h in hypotheses]
            break
        except Resplit:
            if uses:
                raise RuleError(
                    "the contexts of the uses were made before a size was split: make them with "
                    "the reading that has read both sides and all hypotheses"
                ) from None
    plugged = [walk.plugged(use, relations) for use in uses]
    return {
        "schema": SCHEMA,
        **_declarations(signature, uses),
        "splits": _splits(reading),
        "lhs": tree(lhs),
        "rhs": tree(rhs),
        "given": [[tree(h[0]), tree(h[1]), *_limits(h[2])] for h in hypotheses],
        "uses": [_use(use, reading) for use in uses],
        "renamings": {
            "lhs": [walk.renaming(d) for d in left.diagrams],
            "rhs": [walk.renaming(d) for d in right.diagrams],
            "uses": [[walk.renaming(d) for d in diagrams] for diagrams in plugged],
            "steps": walk.steps,
        },
    }


def to_json(made: Mapping[str, Any]) -> str:
    """Return a certificate as JSON text, the same text for the same certificate."""
    return json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n"


def from_json(text: str) -> dict[str, Any]:
    """Return the certificate in a JSON text; raise LanguageError for what is none."""
    try:
        made = json.loads(text)
    except ValueError as error:
        raise LanguageError(f"this is not the JSON of a certificate: {error}") from None
    if not isinstance(made, dict) or made.get("schema") != SCHEMA:
        raise LanguageError(f"this is not a certificate of schema {SCHEMA}")
    return made


# -- trees -----------------------------------------------------------------------------------------

PLAIN = (
    sympy.MatAdd,
    sympy.Add,
    sympy.MatMul,
    sympy.Mul,
    sympy.MatPow,
    sympy.Pow,
    sympy.Transpose,
    sympy.Adjoint,
    sympy.KroneckerProduct,
    sympy.HadamardProduct,
    sympy.HadamardPower,
    sympy.Trace,
    sympy.Identity,
    sympy.OneMatrix,
    sympy.ZeroMatrix,
    sympy.BlockDiagMatrix,
    DiagMatrix,
    DiagonalOf,
    DiagonalMatrix,
    vec_rows,
    vec_cols,
)


def tree(e: Any) -> Tree:
    """Return an expression as a tree: an integer, or [name of its class, argument, ...].

    >>> from sympy import Symbol, sqrt
    >>> tree(1 / sqrt(Symbol("d")))
    ['Pow', ['Symbol', 'd'], ['Rational', -1, 2]]
    """
    kind = type(e)
    if isinstance(e, sympy.Integer):
        return int(e)
    if isinstance(e, sympy.Rational):
        return ["Rational", int(e.p), int(e.q)]
    if isinstance(e, sympy.Symbol):
        return ["Symbol", key(e)]
    if kind in PLAIN:
        return [kind.__name__, *map(tree, e.args)]
    if kind is sympy.MatrixSymbol:
        return [kind.__name__, e.name]
    if kind is FamilyMember:
        return [kind.__name__, e.family.name, *map(_index, e.indices)]
    if kind is OneHot:
        return [kind.__name__, _index(e.args[0]), tree(e.args[1])]
    if kind is MatrixElement:
        return [kind.__name__, tree(e.args[0]), *map(_index, e.args[1:])]
    if kind is sympy.KroneckerDelta:
        return [kind.__name__, *map(_index, e.args[:2]), tree(sympy.expand(e.args[2][1] + 1))]
    if kind in (HeadSum, ConcatHeads, StackHeads):
        return [kind.__name__, tree(e.body), *_limits(e.limits)]
    if kind is sympy.Sum:
        return [kind.__name__, tree(e.function), *_limits(_ranges(e))]
    if kind is sympy.ImmutableDenseMatrix:
        return [kind.__name__, e.rows, e.cols, *map(tree, e)]
    if kind is sympy.BlockMatrix:
        height, width = e.blockshape
        return [
            kind.__name__,
            *[[tree(e.blocks[i, j]) for j in range(width)] for i in range(height)],
        ]
    raise LanguageError(f"a certificate has no tree for {kind.__name__} yet, in {e!s:.100}")


def _index(index: Any) -> Any:
    return int(index) if isinstance(index, int | sympy.Integer) else key(index)


def _limits(limits: Limits) -> list[Tree]:
    return [[key(index), tree(sympy.sympify(count))] for index, count in limits]


def _ranges(e: sympy.Sum) -> list[tuple[sympy.Symbol, Any]]:
    """Return the limits of a Sum as (index, count), the outermost first; SymPy has it last."""
    return [(index, sympy.expand(last + 1)) for index, _, last in reversed(e.limits)]


def _number_tree(value: Coefficient) -> Tree:
    """Return a coefficient as a tree."""
    if isinstance(value, int):
        return value
    if isinstance(value, Fraction):
        return ["Rational", value.numerator, value.denominator]

    def of(polynomial: scalars.Polynomial) -> Tree:
        terms = [
            ["Mul", _number_tree(factor), *[_power_tree(*leg) for leg in monomial]]
            for monomial, factor in polynomial.items()
        ]
        return ["Add", *terms]

    return ["Mul", of(value.numerator), ["Pow", of(value.denominator), -1]]


def _power_tree(name: str, exponent: scalars.Number) -> Tree:
    base = int(name[1:]) if name.startswith("#") else ["Symbol", name]
    return ["Pow", base, _number_tree(exponent)]


# -- the parts of a certificate --------------------------------------------------------------------


def _hypothesis(given: Any) -> tuple[Any, Any, Limits]:
    if isinstance(given, sympy.Eq):
        return given.lhs, given.rhs, ()
    lhs, rhs, *limits = given
    return sympy.sympify(lhs), sympy.sympify(rhs), limits[0] if limits else ()


def _declarations(signature: Signature, uses: Sequence[Use]) -> dict[str, Any]:
    known = signature.scalars
    named = {name: "positive" if known[name].is_positive else "real" for name in known}
    for use in uses:
        for name in scalars.names(_coefficient(use)) - set(signature.sizes):
            named.setdefault(name, "real")
    return {
        "sizes": list(signature.sizes),
        "scalars": named,
        "indices": {name: tree(count) for name, (_, count) in signature.indices.items()},
        "tensors": {
            name: [list(map(tree, getattr(tensor, "counts", ()))), *map(tree, tensor.shape)]
            for name, tensor in signature.tensors.items()
        },
    }


def _coefficient(use: Use) -> Coefficient:
    value = use.coefficient
    return scalars.from_sympy(value) if isinstance(value, sympy.Basic) else value


def _splits(reading: Interpretation) -> list[Tree]:
    """Return each split as [size, its parts]; a part that is cut is ["|", parts, parts, ...]."""
    sizes = reading.dimensions.expressions

    def shown(legs: Legs) -> list[Tree]:
        return [
            ["|", *map(shown, leg)] if isinstance(leg, Blocks) else tree(sizes[leg]) for leg in legs
        ]

    table = reading.dimensions._split
    return [[tree(sizes[whole]), shown(parts)] for whole, parts in table.items()]


def _use(use: Use, reading: Interpretation) -> dict[str, Any]:
    """Return a use as data: only live wires, the boxes by name."""
    d = use.context
    live = [wire for wire, sort in enumerate(d.sorts) if sort != DEAD]
    new = {wire: k for k, wire in enumerate(live)}

    def legs(wires: Sequence[Wire]) -> list[int]:
        return [new[w] if w >= 0 else w for w in wires]

    boxes: list[Tree] = []
    for number, *wires in d.boxes:
        if number == HOLE:
            boxes.append(["hole", legs(wires)])
        else:
            label = reading.labels[number]
            branches = [list(label.row_branch), list(label.col_branch)]
            marks = [[-1 - mark for mark in branch if mark < 0] for branch in branches]
            boxes.append(["box", label.name, list(label.indices), legs(wires), *marks])
    sizes = reading.dimensions.expressions
    return {
        "given": use.given,
        "coefficient": _number_tree(_coefficient(use)),
        "context": {
            "rows": legs(d.rows),
            "cols": legs(d.cols),
            "named": [[_held(name), new[wire]] for name, wire in d.named],
            "boxes": boxes,
            "sorts": [tree(sizes[d.sorts[wire]]) for wire in live],
        },
    }


def _held(name: str) -> Any:
    value, at, _ = name.partition("@")
    return int(value) if at else name


# -- the walk --------------------------------------------------------------------------------------


class _Value(NamedTuple):
    """A result: matrix or scalar, the sorts of its legs, and its diagrams in order."""

    matrix: bool
    rows: Legs
    cols: Legs
    diagrams: list[Diagram]


def _pairs(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip_longest(a, b))


_WIRING: dict[Any, Callable[..., tuple[Pairs, Any, Any]]] = {
    sympy.Transpose: lambda r, c: ((), c, r),
    sympy.Adjoint: lambda r, c: ((), c, r),
    vec_rows: lambda r, c: ((), beside(r, c), ()),
    vec_cols: lambda r, c: ((), beside(c, r), ()),
    sympy.Trace: lambda r, c: (_pairs(r, c), (), ()),
    DiagMatrix: lambda r, c: ((), beside(r, c), beside(r, c)),
    DiagonalOf: lambda r, c: (_pairs(r, c), r, ()),
    DiagonalMatrix: lambda r, c: (_pairs(r, c), r, c),
    sympy.MatMul: lambda r, c, s, t: (_pairs(c, s), r, t),
    sympy.KroneckerProduct: lambda r, c, s, t: ((), beside(r, s), beside(c, t)),
    sympy.HadamardProduct: lambda r, c, s, t: (_pairs(r, s) + _pairs(c, t), r, c),
    MatrixElement: lambda r, c, i, _, j, __: (_pairs(r, i) + _pairs(c, j), (), ()),
    sympy.KroneckerDelta: lambda i, _, j, __: (_pairs(i, j), (), ()),
    sympy.ImmutableDenseMatrix: lambda i, _, j, __, r, c: ((), i, j),  # one entry in its place
}
_FITS: dict[Any, Callable[..., list[tuple[Legs, Legs]]]] = {
    sympy.Trace: lambda r, c: [(r, c)],
    DiagonalOf: lambda r, c: [(r, c)],
    DiagonalMatrix: lambda r, c: [(r, c)],
    sympy.MatMul: lambda r, c, s, t: [(c, s)],
    sympy.HadamardProduct: lambda r, c, s, t: [(r, s), (c, t)],
    MatrixElement: lambda r, c, i, _, j, __: [(r, i), (c, j)],
}


def _nothing(*_: Legs) -> list[tuple[Legs, Legs]]:
    return []


_SCALAR = (sympy.Trace, MatrixElement, sympy.KroneckerDelta)


class _Walk:
    """One reading of trees into diagrams, counting its steps as the format says."""

    def __init__(self, reading: Interpretation) -> None:
        self.reading = reading
        self.steps: dict[str, list[list[int]]] = {}
        self.step = 0

    def value(self, e: Any) -> _Value:
        """Return the diagrams of an expression, in the order of the format."""
        kind = type(e)
        if _is_number(e):
            zero = scalars.from_sympy(e, self.reading.signature.sizes) == 0
            return _Value(False, (), (), [] if zero else [UNIT])
        if kind in _LEAVES:
            return self.leaf(e)
        if kind is sympy.KroneckerDelta:
            size = sympy.expand(e.args[2][1] + 1)
            return self.combined(kind, *[self.leaf(OneHot(i, size)) for i in e.args[:2]])
        if kind is sympy.ImmutableDenseMatrix:
            return self.explicit(e)
        if kind in (HeadSum, ConcatHeads, StackHeads, sympy.Sum):
            value = self.value(e.function if kind is sympy.Sum else e.body)
            for index, count in reversed(_ranges(e) if kind is sympy.Sum else e.limits):
                value = self.bound(value, kind, index, count)
            return value
        if kind is sympy.BlockMatrix:
            height, width = e.blockshape
            places = product(range(height), range(width))
            return self.blocks({(i, j): self.value(e.blocks[i, j]) for i, j in places})
        if kind is sympy.BlockDiagMatrix:
            return self.blocks({(k, k): self.value(block) for k, block in enumerate(e.args)})
        if kind in (sympy.MatPow, sympy.Pow, sympy.HadamardPower):
            return self.power(kind, self.value(e.args[0]), int(e.args[1]))
        if kind is MatrixElement:
            a = self.value(e.args[0])
            ends = zip(e.args[1:], e.args[0].shape, strict=True)
            return self.combined(kind, a, *[self.leaf(OneHot(i, size)) for i, size in ends])
        arguments = fused(e) if kind is sympy.KroneckerProduct else e.args
        values = [self.value(argument) for argument in arguments]
        if kind in (sympy.MatAdd, sympy.Add):
            return self.added(values)
        if kind in (sympy.MatMul, sympy.Mul):
            return self.multiplied(sympy.MatMul, values)
        if kind in (sympy.KroneckerProduct, sympy.HadamardProduct):
            return self.multiplied(kind, values)
        if kind not in _WIRING:
            raise LanguageError(f"there is no certificate for {kind.__name__} yet")
        return self.combined(kind, *values)

    def leaf(self, e: Any) -> _Value:
        value = self.reading.value(e)
        return _Value(True, value.rows, value.cols, list(value.terms))

    def explicit(self, e: sympy.ImmutableDenseMatrix) -> _Value:
        values = []
        for i, j in product(range(e.rows), range(e.cols)):
            entry = self.value(e[i, j])
            here = self.leaf(OneHot(i, e.rows)), self.leaf(OneHot(j, e.cols))
            values.append(self.combined(sympy.ImmutableDenseMatrix, *here, entry))
        return self.added(values)

    def power(self, kind: type, base: _Value, exponent: int) -> _Value:
        elementwise = kind is sympy.HadamardPower
        if exponent:
            times = sympy.HadamardProduct if elementwise else sympy.MatMul
            return self.multiplied(times, [base] * exponent)
        if not base.matrix:
            return _Value(False, (), (), [UNIT])
        total = self.reading.dimensions.total
        shape = [total(base.rows), total(base.cols)]
        return self.leaf(sympy.OneMatrix(*shape) if elementwise else sympy.Identity(shape[0]))

    def multiplied(self, kind: Any, values: Sequence[_Value]) -> _Value:
        result = values[0]
        for value in values[1:]:
            plain = kind is sympy.MatMul and not (result.matrix and value.matrix)
            result = self.combined(sympy.KroneckerProduct if plain else kind, result, value)
        return result

    def combined(self, kind: Any, *values: _Value) -> _Value:
        """Return the result of an operation that joins or reorders legs, term by term."""
        sorts = [legs for value in values for legs in (value.rows, value.cols)]
        for a, b in _FITS.get(kind, _nothing)(*sorts):
            self.reading.dimensions.fit(a, b)
        _, rows, cols = _WIRING[kind](*sorts)
        made = []
        for parts in product(*[value.diagrams for value in values]):
            whole, ends = UNIT, [0]
            for d in parts:
                shift = len(whole.sorts)
                legs = (*whole.rows, *shifted(d.rows, shift), *shifted(d.cols, shift))
                ends += [ends[-1] + len(d.rows), ends[-1] + len(d.rows) + len(d.cols)]
                whole = join(whole, d, (), (legs, ()))
            wires = [whole.rows[a:b] for a, b in pairwise(ends)]
            pairs, r, c = _WIRING[kind](*wires)
            made.append(_closed(whole, pairs, (r, c)))
        matrix = kind not in _SCALAR and any(value.matrix for value in values)
        return self.done(_Value(matrix, rows, cols, [d for d in made if d is not None]))

    def bound(self, a: _Value, kind: Any, index: sympy.Symbol, count: Any) -> _Value:
        """Sum over an index, or make its wire the first leg of rows or columns, or the last."""
        legs = self.reading.dimensions.legs(sympy.sympify(count))
        made = []
        for d in a.diagrams:
            mine = tuple([wire for name, wire in d.named if name == key(index)])
            sorts = d.sorts
            if legs and not mine:
                mine, sorts = (len(sorts),), (*sorts, self.reading.single(legs, index))
            named = tuple([leg for leg in d.named if leg[0] != key(index)])
            rows, cols = _placed(kind, mine, d.rows, d.cols)
            made.append(Diagram(rows, cols, named, d.boxes, sorts))
        return self.done(_Value(a.matrix, *_placed(kind, legs, a.rows, a.cols), made))

    def added(self, values: Sequence[_Value]) -> _Value:
        first = values[0]
        for value in values[1:]:
            self.reading.dimensions.fit(first.rows, value.rows)
            self.reading.dimensions.fit(first.cols, value.cols)
        diagrams = [d for value in values for d in value.diagrams]
        return self.done(first._replace(diagrams=diagrams))

    def blocks(self, values: dict[tuple[int, int], _Value]) -> _Value:
        """Return blocks put together, those that are missing zero."""
        legs: list[dict[int, Legs]] = [{}, {}]
        for place, value in values.items():
            for side, k, mine in zip(legs, place, (value.rows, value.cols), strict=True):
                if k in side:
                    self.reading.dimensions.fit(side[k], mine)
                side[k] = mine
        (rows, row_at), (cols, col_at) = [stacked([s[k] for k in range(len(s))]) for s in legs]
        made = []
        for (i, j), value in values.items():
            for d in value.diagrams:
                r = in_block(d.rows, value.rows, row_at[i]) if len(legs[0]) > 1 else d.rows
                c = in_block(d.cols, value.cols, col_at[j]) if len(legs[1]) > 1 else d.cols
                made.append(d._replace(rows=r, cols=c))
        return self.done(_Value(True, rows, cols, made))

    def done(self, value: _Value) -> _Value:
        """Count a step; where like terms can be added, list the renamings that show it."""
        self.step += 1
        diagrams = value.diagrams
        if len(diagrams) > MAX_TERMS:
            raise Undecided(f"more than {MAX_TERMS} diagrams: too many for a certificate")
        kinds = {tuple(sorted([box[0] for box in d.boxes])) for d in diagrams}
        if len(kinds) == len(diagrams):
            return value
        try:
            forms = [_form(d, numbering(d)) for d in diagrams]
        except Undecided:
            return value
        first = dict(zip(reversed(forms), reversed(diagrams), strict=True))
        if len(first) == len(diagrams):
            return value
        self.steps[str(self.step)] = [self.renaming(d) for d in diagrams]
        return value._replace(diagrams=[first[form] for form in dict.fromkeys(forms)])

    def renaming(self, d: Diagram) -> list[int]:
        """Return the new number of each wire, the wires in the order in which they appear."""
        new = numbering(d)
        wires = [*d.rows, *d.cols, *[wire for box in d.boxes for wire in box[1:]]]
        wires += [wire for _, wire in sorted(d.named, key=lambda leg: self.order(d, *leg))]
        return [new[wire] for wire in dict.fromkeys(wires) if wire in new]

    def order(self, d: Diagram, name: str, wire: Wire) -> tuple[str, Any]:
        """Return what names are sorted by: the index, then the terms of the size it runs over."""
        size = self.reading.dimensions.size(d.sorts[wire])
        terms = size.numerator if isinstance(size, scalars.Scalar) else {(): size}
        return repr(_held(name)), sorted(terms.items())

    def relation(self, lhs: Any, rhs: Any, limits: Limits) -> _Value:
        """Return lhs - rhs of a hypothesis, its for-all indices as further columns."""
        sides = [self.value(lhs), self.value(rhs)]
        for legs in ("rows", "cols"):
            self.reading.dimensions.fit(*[getattr(side, legs) for side in sides])
        for index, count in limits:
            sides = [self.bound(side, "for all", index, count) for side in sides]
        return sides[0]._replace(diagrams=sides[0].diagrams + sides[1].diagrams)

    def plugged(self, use: Use, relations: Sequence[_Value]) -> list[Diagram]:
        """Return the diagrams of a context with each term of its hypothesis in the hole."""
        if not 0 <= use.given < len(relations):
            raise RuleError(f"a use names hypothesis {use.given}; there are {len(relations)}")
        d = use.context
        holes = [box[1:] for box in d.boxes if box[0] == HOLE]
        if len(holes) != 1:
            raise RuleError(f"the context of a use has {len(holes)} holes, and needs one")
        (hole,) = holes
        around = d._replace(boxes=tuple([box for box in d.boxes if box[0] != HOLE]))
        made = []
        for term in relations[use.given].diagrams:
            legs = shifted((*term.rows, *term.cols), len(d.sorts))
            whole = join(around, term, (), ((*d.rows, *d.cols, *hole), legs))
            n, m = len(d.rows), len(d.rows + d.cols)
            ends = (whole.rows[:n], whole.rows[n:m])
            made.append(_closed(whole, _pairs(whole.rows[m:], whole.cols), ends))
        return [joined for joined in made if joined is not None]


_LEAVES = (
    sympy.MatrixSymbol,
    FamilyMember,
    sympy.Identity,
    sympy.OneMatrix,
    sympy.ZeroMatrix,
    OneHot,
)


def _is_number(e: Any) -> bool:
    if isinstance(e, sympy.Rational | sympy.Symbol):
        return True
    return type(e) in (sympy.Add, sympy.Mul, sympy.Pow) and all(map(_is_number, e.args))


def _placed(kind: Any, new: Any, rows: Any, cols: Any) -> tuple[Any, Any]:
    if kind is StackHeads:
        return (*new, *rows), cols
    if kind is ConcatHeads:
        return rows, (*new, *cols)
    return rows, (*cols, *new) if kind == "for all" else cols


def _closed(d: Diagram, pairs: Pairs, legs: tuple[Any, Any]) -> Diagram | None:
    """Return a diagram with wires joined, or None where blocks or fixed indices do not meet."""
    real = []
    for a, b in pairs:
        if a is None or b is None or a < 0 or b < 0:
            if a != b:
                return None
        else:
            real.append((a, b))
    result = fuse(d, real, legs)
    return None if result.named and contradicts(result) else result


def _form(d: Diagram, new: dict[Wire, int]) -> Any:
    """Return what two diagrams have in common exactly when a renaming makes them one."""
    sorts = sorted((number, d.sorts[wire]) for wire, number in new.items())
    boxes = sorted([(box[0], *[new[w] for w in box[1:]]) for box in d.boxes])
    rows, cols = [tuple([new[w] if w >= 0 else w for w in legs]) for legs in (d.rows, d.cols)]
    named = tuple([(name, new[w]) for name, w in d.named if w in new])
    return rows, cols, named, tuple(boxes), tuple(sorts)
