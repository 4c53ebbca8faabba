"""From the syntax tree of a formula to the SymPy statement, with the shapes that it requires.

One walk collects what the sizes must satisfy and returns, for each part, a function that builds it
once all sizes are known. Sizes that stay open become symbols of their own, so that the statement is
as general as the formula: a proof of it covers every special case.

`doubts` are the reasons for which a counterexample to the statement need not be one to what was
meant: symbols that were not declared, functions of which nothing is known, indices that are related
in a way that the statement does not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Transpose, ZeroMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import ShapeError
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    Family,
    HeadSum,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.algebra.notation.bound import Bindings, Place, bindings_of, slots_at
from otimes.algebra.notation.dimensions import ONE, Plus, Shape, Size, Solver, Unknown
from otimes.algebra.notation.symbols import (
    SIZE_LETTERS,
    Declared,
    Symbols,
    default,
    key_of,
    letters,
    size_of,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Dots,
    Entry,
    Fraction,
    Grid,
    Group,
    Indexed,
    Name,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Root,
    Slot,
    Span,
    Sum,
    Tensor,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.vocabulary import BEYOND, ELEMENTWISE, ROWWISE

FRESH = "pqrstabc"


class FormulaShapeError(ShapeError):
    """Parts of a formula do not conform; `.span` is where."""

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.span = span


class Undeclared(NotationError):
    """What a symbol stands for is not known, and the formula does not tell."""


@dataclass(slots=True)
class Typed:
    """A part of a formula: its shape (None for a scalar) and how it is built.

    `known` is False for what may be a scalar or a matrix, such as the value of an unknown function.
    """

    shape: Shape | None
    build: Callable[[], Any]
    span: Span
    known: bool = True
    literal: str = ""


@dataclass(slots=True)
class Elaborated:
    """The terms of a chain as SymPy expressions, and what should be said about them."""

    terms: list[Any]
    doubts: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # of matrices and scalars: their keys
    undeclared: dict[str, str] = field(default_factory=dict)  # keys, and what they were taken for
    shapes: dict[str, Shape | None] = field(default_factory=dict)  # by key, as far as solved


def elaborate(
    terms: Sequence[Node], symbols: Symbols, source: str = "", starts: Sequence[int] = ()
) -> Elaborated:
    r"""Return terms that are equal by the formula as SymPy expressions of one shape.

    `source` is the text of the formula, for messages. `starts` are the places where another
    equation begins, which shares the symbols: a hypothesis. Raises FormulaShapeError where shapes
    do not conform, Undeclared where it is not known what a symbol is, NotationError for what the
    language does not have.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (equation,) = parse_formula(r"(A \otimes B)(C \otimes D) = AC \otimes BD")
    >>> found = elaborate(equation.terms, Symbols())
    >>> found.terms[1]
    KroneckerProduct(A*C, B*D)
    """
    try:
        return _oriented(terms, symbols, source, starts).elaborated()
    except FormulaShapeError as error:
        raise _certain(error, terms, symbols, source) from None


def check_shapes(terms: Sequence[Node], symbols: Symbols, source: str = "") -> None:
    """Raise FormulaShapeError where the shapes of terms, equal by the formula, do not conform."""
    try:
        _oriented(terms, symbols, source).infer_all()
    except FormulaShapeError as error:
        raise _certain(error, terms, symbols, source) from None


def _oriented(
    terms: Sequence[Node], symbols: Symbols, source: str, starts: Sequence[int] = ()
) -> _Elaborator:
    """Return the reading in which vectors are columns or rows, whichever conforms.

    Where both do, the convention decides; where none does, each vector is decided by itself.
    """
    if not any(_is_open_vector(e, symbols) for term in terms for e in walk(term)):
        return _Elaborator(terms, symbols, source, starts=starts)
    fitting = []
    for side in ("column", "row"):
        trial = _Elaborator(terms, symbols, source, side, starts=starts)
        try:
            trial.infer_all()
        except FormulaShapeError:
            continue
        if not trial.has_narrow_matrix():
            fitting.append(side)
    if len(fitting) == 1:
        return _Elaborator(terms, symbols, source, fitting[0], starts=starts)
    if len(fitting) == 2:
        return _Elaborator(terms, symbols, source, symbols.convention or "open", starts=starts)
    return _Elaborator(terms, symbols, source, starts=starts)


def _is_open_vector(e: Node, symbols: Symbols) -> bool:
    if not isinstance(e, Name):
        return False
    known = symbols.lookup(e)[1] or default(e)
    return known is not None and known.kind == "vector"


def _certain(
    error: FormulaShapeError, terms: Sequence[Node], symbols: Symbols, source: str
) -> FormulaShapeError | Undeclared:
    """Return the error if it does not depend on what undeclared symbols were taken for."""
    trial = _Elaborator(terms, symbols, source, lenient=True)
    try:
        trial.infer_all()
    except FormulaShapeError as certain:
        if not trial.solver.unsure:
            return certain
    except NotationError:
        pass
    named = ", ".join(sorted(trial.undeclared)) or "the symbols"
    return Undeclared(f"{error}; but {named} may be something else: declare the shapes", error.span)


class _Elaborator:
    def __init__(
        self,
        terms: Sequence[Node],
        symbols: Symbols,
        source: str,
        side: str = "",
        lenient: bool = False,
        starts: Sequence[int] = (),
    ) -> None:
        self.nodes = terms
        self.starts = frozenset(starts)
        self.side = side  # "column" or "row": what vectors are; "open": it makes a difference
        self.lenient = lenient  # nothing is assumed of symbols that are not declared
        self.confirmed: set[str] = set()
        self.symbols = symbols
        self.source = source
        self.solver = Solver()
        self.bindings: Bindings = bindings_of(terms)
        self.bound: list[tuple[str, Size, sympy.Symbol]] = []
        self.shapes: dict[str, tuple[Shape | None, Declared]] = {}  # by key
        self.counts: dict[Any, Size] = {}
        self.split: dict[tuple[str, Place], list[Size]] = {}  # places with several ranges
        self.vectors: list[tuple[str, Shape, Span]] = []
        self.matrices: list[Shape] = []
        self.doubts: list[str] = []
        self.names: dict[str, str] = {}
        self.undeclared: dict[str, str] = {}
        self.patterns: dict[str, dict[str, bool]] = {}
        self.anything: list[tuple[str, Span]] = []

    # -- the whole ---------------------------------------------------------------------------------

    def infer_all(self) -> list[Typed]:
        if self.lenient:
            self._find_confirmed()
        found = [self.infer(node) for node in self.nodes]
        for k, ((a, b), (x, y)) in enumerate(
            zip(pairwise(found), pairwise(self.nodes), strict=True)
        ):
            if k + 1 not in self.starts:
                self.same(a, b, "equate", x, y)
        self._orient()
        return found

    def _find_confirmed(self) -> None:
        """Note which symbols are matrices by what is done with them somewhere."""
        for term in self.nodes:
            for e in walk(term):
                if isinstance(e, Tensor):
                    for factor in e.factors:
                        self._confirm(factor)
                elif isinstance(e, Power) and e.exponent == "T":
                    self._confirm(e.base)

    def has_narrow_matrix(self) -> bool:
        """Return whether a capital of unknown shape came out with one row or column."""
        return any(self.solver.resolved(size) == ONE for shape in self.matrices for size in shape)

    def elaborated(self) -> Elaborated:
        found = self.infer_all()
        if self.anything:
            what, span = self.anything[0]
            raise Undeclared(f"it is not declared whether {what} is a number or a matrix", span)
        if self.has_narrow_matrix():
            raise Undeclared(
                "the shapes conform only if a matrix has one row or column: declare the shapes",
                self.nodes[0].span,
            )
        self._name_open_sizes()
        ends = [*sorted(self.starts), len(found)]
        terms: list[Any] = []
        for start, end in pairwise([0, *ends]):
            terms += self._built(found[start:end])
        self._doubt_related()
        shapes = {key: shape for key, (shape, _) in self.shapes.items()}
        solved = {
            key: None if s is None else (self.solver.resolved(s[0]), self.solver.resolved(s[1]))
            for key, s in shapes.items()
        }
        doubts = list(dict.fromkeys(self.doubts))
        return Elaborated(terms, doubts, self.names, self.undeclared, solved)

    def _built(self, group: list[Typed]) -> list[Any]:
        """Return the sides of one equation, all matrices of one shape or all numbers."""
        shape = next((each.shape for each in group if each.shape is not None), None)
        is_scalar = shape is None or any(e.shape is None and not e.literal for e in group)
        return [self._as_side(each, shape, is_scalar) for each in group]

    def _as_side(self, each: Typed, shape: Shape | None, scalar: bool) -> Any:
        if scalar:
            return self.as_scalar(each)
        if each.shape is None and shape is not None:
            return self._constant(each, shape)
        return each.build()

    def _constant(self, each: Typed, shape: Shape) -> Any:
        """Return the matrix that a bare 0 or 1 stands for as a side of an equation of matrices."""
        rows, cols = map(self.solver.expression, shape)
        if each.literal == "0":
            return ZeroMatrix(rows, cols)
        if each.literal == "1" and (rows == 1 or cols == 1):
            return OneMatrix(rows, cols)
        raise FormulaShapeError(
            f"a number is equated with a matrix of shape {self.solver.show_shape(shape)}",
            each.span,
        )

    def quoted(self, node: Node) -> str:
        text = self.source[node.span[0] : node.span[1]] if self.source else ""
        text = " ".join(text.split()) or latex(node)
        return text if len(text) <= 60 else text[:57] + "…"

    def _orient(self) -> None:
        """Decide which vectors are columns, by what they are multiplied with."""
        waiting = [(key, shape, span) for key, shape, span in self.vectors]
        for strict in (True, False):
            taken: set[Unknown] = set()
            for shape in self.matrices:
                taken |= self.solver.unknowns(shape[0]) | self.solver.unknowns(shape[1])
            still = []
            for key, shape, span in waiting:
                rows, cols = map(self.solver.resolved, shape)
                if rows == ONE or cols == ONE:
                    continue
                free = [self._is_free(size, taken) for size in (rows, cols)]
                if free == [False, True] or (not strict and self.symbols.convention == "column"):
                    self.solver.unify(cols, ONE)
                elif free == [True, False] or (not strict and self.symbols.convention == "row"):
                    self.solver.unify(rows, ONE)
                elif not strict:
                    self.anything.append((f"{key} (a row or a column)", span))
                else:
                    still.append((key, shape, span))
            waiting = still

    def _is_free(self, size: Size, taken: set[Unknown]) -> bool:
        return len(size) == 1 and isinstance(size[0], Unknown) and size[0] not in taken

    def _name_open_sizes(self) -> None:
        used = set(self.symbols.sizes()) | set(self.names)
        names = (name for name in [*FRESH, *(f"{c}{k}" for k in range(2, 99) for c in FRESH)])
        sizes = [s for shape, _ in self.shapes.values() if shape is not None for s in shape]
        for size in [*sizes, *self.counts.values()]:
            for unknown in sorted(self.solver.unknowns(size)):
                if unknown not in self.solver.values:
                    name = next(
                        n for n in names if n not in used and n not in self.bindings.letters
                    )
                    self.solver.values[unknown] = (name,)
        for number in range(1, self.solver.count + 1):  # sizes of constants that nothing fixes
            unknown = Unknown(number)
            if unknown not in self.solver.values:
                self.solver.values[unknown] = (next(n for n in names if n not in used),)

    def _doubt_related(self) -> None:
        for patterns in self.patterns.values():
            if len(patterns) > 1 and any(patterns.values()):
                self.doubts.append(f"{' and '.join(sorted(patterns))} were taken as unrelated")
        for index, ranges in self.bindings.ranges.items():
            if len(ranges) > 1:
                self.doubts.append(f"sums over {index} have different ranges")

    # -- dispatch ----------------------------------------------------------------------------------

    def infer(self, node: Node) -> Typed:
        read = _READ.get(type(node))
        if read is None:
            raise NotationError("this is not read yet", node.span)
        return read(self, node)

    def same(self, a: Typed, b: Typed, verb: str, x: Node, y: Node) -> None:
        """Require one shape of two parts."""
        if not (a.known and b.known):
            return
        if a.shape is None or b.shape is None:
            number, matrix = (a, b) if a.shape is None else (b, a)
            if matrix.shape is None or number.literal in ("0", "1"):
                return
            if all(self.solver.unify(size, ONE) for size in matrix.shape):
                return
            raise FormulaShapeError(
                f"cannot {verb} {self._with_shape(x, a)} and {self._with_shape(y, b)}: one is a "
                "number and one a matrix", (x.span[0], y.span[1]),
            )  # fmt: skip
        if not all(self.solver.unify(p, q) for p, q in zip(a.shape, b.shape, strict=True)):
            raise FormulaShapeError(
                f"cannot {verb} {self._with_shape(x, a)} and {self._with_shape(y, b)}: the shapes "
                "differ", (x.span[0], y.span[1]),
            )  # fmt: skip

    def _with_shape(self, node: Node, typed: Typed) -> str:
        return f"{self.quoted(node)} ({self.solver.show_shape(typed.shape)})"

    def as_scalar(self, typed: Typed) -> Any:
        built = typed.build()
        if typed.shape is None:
            return built
        if getattr(built, "is_Matrix", False):
            return MatrixElement(built, 0, 0)
        return built

    def is_one_by_one(self, typed: Typed) -> bool:
        return typed.shape is not None and all(
            self.solver.resolved(size) == ONE for size in typed.shape
        )

    # -- leaves ------------------------------------------------------------------------------------

    def number(self, e: Number) -> Typed:
        value = sympy.Rational(e.text)
        return Typed(None, lambda: value, e.span, literal=e.text)

    def dots(self, e: Dots) -> Typed:
        raise NotationError("dots leave something out", e.span)

    def name(self, e: Name) -> Typed:
        key, known = self.symbols.lookup(e)
        if known is None and e.select:
            return self._selected(e)
        if known is None or known.kind == "matrix":
            constant = self._named_constant(e)
            if constant is not None and known is None:
                return constant
        if e.sup and e.sup[0].kind == "number" and len(e.sup) == 1 and self._is_power(e, known):
            return self._power_of_name(e)
        if known is None and self._is_size(e):
            known = Declared("size")
        if known is None:
            known = default(e)
            if known is None:
                raise Undeclared(f"{self.quoted(e)} is not declared", e.span)
            if not known.trusted and key not in self.confirmed:
                self.undeclared[key] = known.kind
                if self.lenient:
                    return self._unknown(e, self.quoted(e))
        sized = known.rows or known.cols or known.line
        member = e.base.isupper() and e.base != "W" and any(s.kind == "index" for s in e.sub)
        if self.lenient and known.kind == "matrix" and (not sized or member):
            return self._unknown(e, self.quoted(e))  # of which only the kind is known
        if known.kind == "function":
            raise NotationError(f"the function {self.quoted(e)} stands without argument", e.span)
        if known.kind in ("size", "index"):
            return self._size_as_number(e, known)
        if known.kind == "matrix" and self._is_entry(e):
            return self._entry_of_name(e, known)
        return self._symbol(e, key, known)

    def _is_size(self, e: Name) -> bool:
        return text_of(e) in self.symbols.sizes()

    def _is_power(self, e: Name, known: Declared | None) -> bool:
        if not e.sup[0].text.isdigit():
            return False
        labelled = self.symbols.is_labelled(e) or e.sup[0].text == "1"
        return not labelled and int(e.sup[0].text) < 100

    def _power_of_name(self, e: Name) -> Typed:
        base = Name(e.base, e.style, e.marks, e.sub, (), e.select, span=e.span)
        return self.power(Power(base, Number(e.sup[0].text), span=e.span))

    def _size_as_number(self, e: Name, known: Declared) -> Typed:
        if known.kind == "index" or text_of(e) in self.bindings.letters:
            raise NotationError(f"the index {self.quoted(e)} stands as a number", e.span)
        size = size_of(e) or (text_of(e),)
        self.names[text_of(e)] = text_of(e)
        return Typed(None, lambda: self.solver.expression(size), e.span)

    def _named_constant(self, e: Name) -> Typed | None:
        if e.base in ("I", "Id") and not e.marks and e.style in ("", "bf", "bb") and not e.sup:
            if e.sub and not self._names_size(e):
                return None
            size = self._subscript_size(e) or self.solver.fresh()
            return Typed((size, size), lambda: Identity(self.solver.expression(size)), e.span)
        if e.base in ("0", "1") and e.style:
            return self._ones(e, OneMatrix if e.base == "1" else ZeroMatrix)
        return None

    def _names_size(self, e: Name) -> bool:
        """Return whether the subscript of an identity is a size, and not another label."""
        text = ",".join(slot.text for slot in e.sub)
        usual = text in SIZE_LETTERS or re.match(r"[dnNT]_|\d+$", text)
        return bool(usual) or text in self.symbols.sizes()

    def _ones(self, e: Name, cls: Any) -> Typed:
        text = ",".join(slot.text for slot in e.sub)
        if r"\times" in text:
            rows, cols = (self._size_text(part, e) for part in text.split(r"\times"))
        else:
            rows = self._subscript_size(e) or self.solver.fresh()
            cols = ONE if cls is OneMatrix else self.solver.fresh()
        build = lambda: cls(*map(self.solver.expression, (rows, cols)))  # noqa: E731
        return Typed((rows, cols), build, e.span)

    def _subscript_size(self, e: Name) -> Size | None:
        return self._size_text(",".join(s.text for s in e.sub), e) if e.sub else None

    def _size_text(self, text: str, e: Name) -> Size:
        from otimes.algebra.notation.parser import parse_formula

        statements = parse_formula(text, plain="\\" not in text)
        size = size_of(statements[0].terms[0]) if len(statements) == 1 else None
        if size is None:
            raise NotationError(f"{text} is not a size", e.span)
        return size

    def _selected(self, e: Name) -> Typed:
        """Read one row or column of a matrix, as a vector of its own."""
        whole = Name(e.base, e.style, e.marks, e.sub, e.sup, span=e.span)
        self.doubts.append(f"{self.quoted(e)} was taken as a vector of its own")
        inner = self.infer(whole)
        shape = inner.shape or (self.solver.fresh(), self.solver.fresh())
        shape = (shape[0], ONE) if e.select.startswith(":") else (ONE, shape[1])
        return self._matrix_symbol(e, text_of(e), shape, Declared("matrix"))

    # -- symbols -----------------------------------------------------------------------------------

    def _symbol(self, e: Name, key: str, known: Declared) -> Typed:
        places = self.bindings.places.get(key_of(e), set())
        indices, text = self._indices_of(e, places)
        related = "•" in text or any(s.kind in ("range", "expression") for s in (*e.sub, *e.sup))
        self.patterns.setdefault(key, {})[text] = related
        self.names[text] = key
        if known.kind == "scalar":
            return self._scalar_symbol(e, text, indices)
        shape = self._shape_of(e, key, text, known)
        return self._matrix_symbol(e, text, shape, known, indices)

    def _shape_of(self, e: Name, key: str, text: str, known: Declared) -> Shape:
        if known.kind == "matrix" and (known.rows or known.cols or known.line):
            self.shapes[key] = ((known.rows, known.cols), known)
            return known.rows, known.cols
        own = key if known.kind == "vector" or not e.sup else text
        if own not in self.shapes:
            shape: Shape = (self.solver.fresh(), self.solver.fresh())
            if known.kind == "column":
                shape = (known.rows or shape[0], ONE)
            elif known.kind == "row":
                shape = (ONE, known.cols or shape[1])
            elif known.kind == "vector":
                shape = self._vector(e, known, shape)
            self.shapes[own] = (shape, known)
            if known.kind == "matrix":
                self.matrices.append(shape)
        found = self.shapes[own][0]
        return found if found is not None else (ONE, ONE)

    def _vector(self, e: Name, known: Declared, shape: Shape) -> Shape:
        length = known.rows or shape[0]
        if self.side == "column":
            return length, ONE
        if self.side == "row":
            return ONE, length
        if self.side == "open":
            self.anything.append((f"{self.quoted(e)} (a row or a column)", e.span))
        self.vectors.append((self.quoted(e), shape, e.span))
        return shape

    def _indices_of(self, e: Name, places: set[Place]) -> tuple[list[tuple[Any, Size]], str]:
        """Return the indices of a symbol that are bound somewhere, and its name without them."""
        indices = []
        open_at = []
        for place, slot in slots_at(e):
            inside = [scope for scope in self.bound if _mentions(slot.text, scope[0])]
            if inside and slot.kind in ("expression", "range"):
                # `x^{l-1}` under a sum over l: a family of its own, which proves as much
                indices += [(symbol, count) for _, count, symbol in inside]
                self.doubts.append(f"{self.quoted(e)} was taken as a family of its own")
                continue
            if place not in places:
                continue
            count = self._count_at(key_of(e), place, slot.text)
            if slot.kind == "index":
                indices.append((self._index(slot.text, count, e), count))
                open_at.append(place)
            elif slot.kind == "number" and slot.text.isdigit() and slot.text != "0":
                indices.append((sympy.Integer(int(slot.text) - 1), count))
                open_at.append(place)
        text = text_of(e, open_at)
        for place in open_at:
            count = next(
                iter(c for (i, c), at in zip(indices, open_at, strict=False) if at == place)
            )
            if count in self.split.get((key_of(e), place), []):
                text += f"~{self.solver.show(count)}".replace("~", "⟨") + "⟩"
        return indices, text

    def _count_at(self, key: str, place: Place, letter: str) -> Size:
        """Return how many values an index at a place of a symbol has.

        Sums over two sets make two families of a symbol, of which nothing in common is known.
        """
        count = self.counts.setdefault((key, place), self.solver.fresh())
        size = next((size for bound, size, _ in reversed(self.bound) if bound == letter), None)
        if size is None or self.solver.unify(size, count):
            return count
        self.doubts.append(f"{key} over {self.solver.show(size)} was taken as a family of its own")
        self.split.setdefault((key, place), []).append(size)
        return size

    def _index(self, letter: str, count: Size, e: Node) -> sympy.Symbol:
        for bound, size, symbol in reversed(self.bound):
            if bound == letter:
                if not self.solver.unify(size, count):
                    if any(str(atom)[:2] in ("N(", "|") or "|" in str(atom) for atom in size):
                        raise Undeclared(
                            f"the index {letter} of {self.quoted(e)} runs over a part of its range",
                            e.span,
                        )
                    raise FormulaShapeError(
                        f"the index {letter} of {self.quoted(e)} runs over "
                        f"{self.solver.show(size)} values, and here over "
                        f"{self.solver.show(count)}", e.span,
                    )  # fmt: skip
                return symbol
        if letter in self.bindings.letters:
            self.doubts.append(f"the index {letter} is used outside the sum that binds it")
            return sympy.Symbol(f"{letter}_free", integer=True)
        return sympy.Symbol(letter, integer=True)

    def _scalar_symbol(self, e: Name, text: str, indices: list[tuple[Any, Size]]) -> Typed:
        name = text.replace("•", "·")
        if not indices:
            return Typed(None, lambda: sympy.Symbol(name, real=True), e.span)

        def build() -> Any:
            sizes = [self.solver.expression(size) for _, size in indices]
            at = [index for index, _ in indices]
            if len(at) == 1:
                return MatrixElement(MatrixSymbol(name, sizes[0], 1), at[0], 0)
            if len(at) == 2:
                return MatrixElement(MatrixSymbol(name, *sizes), *at)
            family = Family(name, tuple(sizes[:-2]), *sizes[-2:])
            return MatrixElement(family[tuple(at[:-2])], *at[-2:])

        return Typed(None, build, e.span)

    def _matrix_symbol(
        self,
        e: Name,
        text: str,
        shape: Shape,
        known: Declared,
        indices: Sequence[tuple[Any, Size]] = (),
    ) -> Typed:
        name = text.replace("•", "·")

        def build() -> Any:
            rows, cols = map(self.solver.expression, shape)
            if not indices:
                return MatrixSymbol(name, rows, cols)
            counts = tuple(self.solver.expression(size) for _, size in indices)
            return Family(name, counts, rows, cols)[tuple(index for index, _ in indices)]

        return Typed(shape, build, e.span)

    def _is_entry(self, e: Name) -> bool:
        """Return whether two indices below a capital select an entry of the matrix."""
        return (
            len(e.sub) == 2
            and e.base != "d"
            and all(slot.kind in ("index", "number") for slot in e.sub)
        )

    def _entry_of_name(self, e: Name, known: Declared) -> Typed:
        whole = Name(e.base, e.style, e.marks, (), e.sup, span=e.span)
        return self.entry(Entry(whole, e.sub, span=e.span))

    def entry(self, e: Entry) -> Typed:
        if len(e.indices) != 2:
            raise NotationError("an entry has two indices", e.span)
        base = self.infer(e.base)
        if base.shape is None or not base.known:
            raise NotationError(f"{self.quoted(e.base)} has no entries", e.span)
        at = [self._entry_index(s, n, e) for s, n in zip(e.indices, base.shape, strict=True)]
        return Typed(None, lambda: MatrixElement(base.build(), *at), e.span)

    def _entry_index(self, slot: Slot, count: Size, e: Entry) -> Any:
        if slot.kind == "index":
            return self._index(slot.text, count, e)
        if slot.kind == "number" and slot.text.isdigit() and slot.text != "0":
            return sympy.Integer(int(slot.text) - 1)
        raise NotationError(f"the index {slot.text} is not in the language", e.span)

    # -- operations --------------------------------------------------------------------------------

    def group(self, e: Group) -> Typed:
        inner = self.infer(e.inner)
        return Typed(inner.shape, inner.build, e.span, inner.known, inner.literal)

    def sum(self, e: Sum) -> Typed:
        found = [self.infer(term) for term in e.terms]
        for (a, b), (x, y) in zip(pairwise(found), pairwise(e.terms), strict=True):
            if (a.literal and b.shape is not None) or (b.literal and a.shape is not None):
                literal = a if a.literal else b
                if literal.literal != "0":
                    added = f"{self._with_shape(x, a)} and {self._with_shape(y, b)}"
                    raise Undeclared(f"{added} are added, a number and a matrix", e.span)
            self.same(a, b, "add", x, y)
        shape = next((each.shape for each in found if each.shape is not None), None)
        mixed = any(each.shape is None for each in found) and shape is not None
        known = all(each.known for each in found)

        def build() -> Any:
            scalar = shape is None or mixed
            parts = [self.as_scalar(each) if scalar else each.build() for each in found]
            if scalar:
                signed = [-p if s == "-" else p for p, s in zip(parts, e.signs, strict=True)]
                return sympy.Add(*signed, evaluate=False) if len(signed) > 1 else signed[0]
            signed = [matmul(-1, p) if s == "-" else p for p, s in zip(parts, e.signs, strict=True)]
            return matadd(*signed) if len(signed) > 1 else signed[0]

        return Typed(None if mixed else shape, build, e.span, known)

    def product(self, e: Product) -> Typed:
        parts: list[tuple[Typed, Node, str]] = []
        for factor, mark in zip(e.factors, e.marks, strict=True):
            before = parts[-1][0].shape if parts else None
            if (
                isinstance(factor, Number)
                and factor.text == "1"
                and before is not None
                and (mark == "")
            ):
                ones: Shape = (before[1], ONE)
                typed = Typed(ones, partial(self._ones_column, ones), factor.span)
            else:
                typed = self.infer(factor)
            parts.append((typed, factor, mark))
        return self._multiplied(parts, e)

    def _ones_column(self, shape: Shape) -> Any:
        return OneMatrix(self.solver.expression(shape[0]), 1)

    def _multiplied(self, parts: list[tuple[Typed, Node, str]], e: Node) -> Typed:
        """Multiply from the left; a factor that is 1 × 1 is a number."""
        run: list[Typed] = []
        scalars: list[tuple[Typed, bool]] = []
        ends: tuple[Size, Size] | None = None
        last: Node | None = None
        before: Shape = (ONE, ONE)  # of the last factor
        unknown = False
        for typed, node, mark in parts:
            if not typed.known:
                unknown, run, ends = True, [], None
            elif mark == "/":
                if typed.shape is not None and not self.is_one_by_one(typed):
                    raise Undeclared(f"cannot divide by {self._with_shape(node, typed)}", node.span)
                scalars.append((typed, True))
            elif typed.shape is None or self.is_one_by_one(typed):
                scalars.append((typed, False))
            elif ends is None:
                run, ends, last = [typed], typed.shape, node
            elif mark == r"\cdot" and len(run) == 1 and self._are_vectors(last, node):
                if not all(map(self.solver.unify, ends, typed.shape)):
                    raise FormulaShapeError(self._bad_product(last, before, node, typed), e.span)
                scalars.append((self._inner(run, typed, e), False))
                run, ends = [], None
            elif self._is_one(ends):  # what stands before is a number
                scalars.append((self._as_number(run, e), False))
                run, ends, last = [typed], typed.shape, node
            elif self._fits(ends, typed.shape):
                run.append(typed)
                ends, last = (ends[0], typed.shape[1]), node
            elif mark == r"\cdot" and self._are_columns(ends, typed.shape):
                scalars.append((self._inner(run, typed, e), False))
                run, ends = [], None
            else:
                raise FormulaShapeError(self._bad_product(last, before, node, typed), e.span)
            before = typed.shape if typed.shape is not None else before
        if unknown:
            return self._unknown(e, "the product")
        return self._product_typed(run, scalars, ends, e)

    def _is_one(self, ends: tuple[Size, Size]) -> bool:
        return self.solver.resolved(ends[0]) == ONE and self.solver.resolved(ends[1]) == ONE

    def _as_number(self, run: list[Typed], e: Node) -> Typed:
        factors = list(run)
        return Typed((ONE, ONE), lambda: _matmul([x.build() for x in factors]), e.span)

    def _fits(self, ends: tuple[Size, Size], shape: Shape) -> bool:
        return self.solver.unify(ends[1], shape[0])

    def _are_vectors(self, *nodes: Node | None) -> bool:
        """Return whether nodes are symbols of vectors, whose product with a dot is a number."""
        for node in nodes:
            name = bare(node) if node is not None else None
            if not isinstance(name, Name):
                return False
            known = self.symbols.lookup(name)[1] or default(name)
            if known is None or known.kind not in ("vector", "column", "row"):
                return False
        return True

    def _are_columns(self, ends: tuple[Size, Size], shape: Shape) -> bool:
        return (
            self.solver.resolved(ends[1]) == ONE
            and self.solver.resolved(shape[1]) == ONE
            and self.solver.unify(ends[0], shape[0])
        )

    def _inner(self, run: list[Typed], right: Typed, e: Node) -> Typed:
        left = list(run)

        def build() -> Any:
            return sympy.Trace(matmul(Transpose(_matmul([x.build() for x in left])), right.build()))

        return Typed(None, build, e.span)

    def _bad_product(self, last: Node | None, before: Shape, node: Node, typed: Typed) -> str:
        left = self.quoted(last) if last is not None else "the left factor"
        cols, rows = self.solver.show(before[1]), self.solver.show((typed.shape or before)[0])
        return (
            f"cannot multiply {left} ({self.solver.show_shape(before)}) by "
            f"{self._with_shape(node, typed)}: the inner sizes {cols} and {rows} differ"
        )

    def _product_typed(
        self,
        run: list[Typed],
        scalars: list[tuple[Typed, bool]],
        ends: tuple[Size, Size] | None,
        e: Node,
    ) -> Typed:
        def build() -> Any:
            numbers = [
                sympy.Pow(self.as_scalar(t), -1) if below else self.as_scalar(t)
                for t, below in scalars
            ]
            if not run:
                return sympy.Mul(*numbers)
            factors = [typed.build() for typed in run]
            coefficient = sympy.Mul(*numbers)
            return _matmul([coefficient, *factors] if numbers else factors)

        return Typed(ends, build, e.span)

    def tensor(self, e: Tensor) -> Typed:
        found = [self.infer(factor) for factor in e.factors]
        if any(not typed.known for typed in found):
            return self._unknown(e, "the product")
        for typed, node in zip(found, e.factors, strict=True):
            self._confirm(node)
            if typed.shape is None:
                raise FormulaShapeError(
                    f"{self.quoted(node)} is a number, and {e.mark} joins matrices", node.span
                )
        shapes = [typed.shape for typed in found if typed.shape is not None]
        if e.mark == r"\otimes":
            rows = tuple(a for shape in shapes for a in shape[0])
            cols = tuple(a for shape in shapes for a in shape[1])
            return Typed((rows, cols), lambda: kron(*[t.build() for t in found]), e.span)
        if e.mark == r"\circ":
            self.doubts.append("∘ was read as the product entry by entry")
        for (a, b), (x, y) in zip(pairwise(found), pairwise(e.factors), strict=True):
            self.same(a, b, "multiply entry by entry", x, y)
        build = lambda: sympy.HadamardProduct(*[t.build() for t in found], evaluate=False)  # noqa: E731
        return Typed(shapes[0], build, e.span)

    def _confirm(self, node: Node) -> None:
        """Note that a symbol is a matrix by what is done with it."""
        inner = bare(node)
        if isinstance(inner, Name) and not inner.base.islower():
            key = self.symbols.lookup(inner)[0]
            self.confirmed.add(key)
            self.undeclared.pop(key, None)

    def power(self, e: Power) -> Typed:
        inside = e.base
        if e.exponent == "T" and isinstance(inside, Grid):  # (1, 2)ᵀ is a column
            inside = Grid(inside.rows, span=inside.span)
        base = self.infer(inside)
        if not base.known:
            return self._unknown(e, self.quoted(e))
        if e.exponent == "T":
            self._confirm(e.base)
            if base.shape is None:
                return Typed(None, base.build, e.span)
            return Typed((base.shape[1], base.shape[0]), lambda: Transpose(base.build()), e.span)
        if e.exponent == "+":
            raise NotationError("the pseudo-inverse is not in the language", e.span)
        exponent = -1 if e.exponent == "-1" else self._whole(e)
        if base.shape is None:
            return Typed(None, lambda: sympy.Pow(base.build(), exponent), e.span)
        if not self.solver.unify(*base.shape):
            verb = "invert" if exponent == -1 else "raise to a power"
            raise FormulaShapeError(
                f"cannot {verb} {self._with_shape(e.base, base)}: a square matrix is needed", e.span
            )
        if exponent == -1:
            return Typed(base.shape, lambda: sympy.Inverse(base.build()), e.span)
        build = lambda: sympy.MatPow(base.build(), exponent)  # noqa: E731
        return Typed(base.shape, build, e.span)

    def _whole(self, e: Power) -> int:
        inner = bare(e.exponent) if isinstance(e.exponent, Node) else None
        if isinstance(inner, Sum) and inner.signs == ("-",) and isinstance(e.base, Number):
            return -self._whole(Power(e.base, inner.terms[0], span=e.span))
        if isinstance(inner, Number) and inner.text.isdigit() and int(inner.text) < 100:
            return int(inner.text)
        raise NotationError("the exponent is not a small whole number", e.span)

    def fraction(self, e: Fraction) -> Typed:
        above, below = self.infer(e.above), self.infer(e.below)
        if not (above.known and below.known):
            return self._unknown(e, self.quoted(e))
        if below.shape is not None and not self.is_one_by_one(below):
            raise Undeclared(f"cannot divide by {self._with_shape(e.below, below)}", e.below.span)

        def build() -> Any:
            inverse = sympy.Pow(self.as_scalar(below), -1)
            if above.shape is None:
                return sympy.Mul(above.build(), inverse)
            return matmul(inverse, above.build())

        return Typed(above.shape, build, e.span)

    def root(self, e: Root) -> Typed:
        inner = self.infer(e.argument)
        degree = int(e.degree) if e.degree.isdigit() else 2
        if not inner.known:
            return self._unknown(e, self.quoted(e))
        if inner.shape is not None:
            raise Undeclared(
                f"cannot take the root of {self._with_shape(e.argument, inner)}", e.span
            )
        return Typed(None, lambda: sympy.Pow(inner.build(), sympy.Rational(1, degree)), e.span)

    # -- sums over indices -------------------------------------------------------------------------

    def indexed(self, e: Indexed) -> Typed:
        if not e.indices:
            self.infer(e.body)
            self.anything.append((f"{self.quoted(e)}, a sum without an index,", e.span))
        counts = [self._count(e, index) for index in e.indices]
        scopes = [
            (index, count, sympy.Symbol(index.replace("\\", ""), integer=True))
            for index, count in zip(e.indices, counts, strict=True)
        ]
        self.bound += scopes
        body = self.infer(e.body)
        del self.bound[-len(scopes) :]
        if not body.known:
            return self._unknown(e, self.quoted(e))

        def build() -> Any:
            limits = [(symbol, self.solver.expression(count)) for _, count, symbol in scopes]
            inner = body.build()
            if e.mark == r"\prod":
                return self._layers(e, inner, body, limits)
            if body.shape is not None:
                return HeadSum(inner, *limits)
            return sympy.Sum(inner, *[(symbol, 0, n - 1) for symbol, n in reversed(limits)])

        if e.mark == r"\prod" and body.shape is not None and not self.solver.unify(*body.shape):
            raise FormulaShapeError(
                f"cannot multiply layers {self._with_shape(e.body, body)}: they are not square",
                e.span,
            )
        return Typed(body.shape, build, e.span)

    def _layers(self, e: Indexed, inner: Any, body: Typed, limits: list[Any]) -> Any:
        if body.shape is None or len(limits) != 1:
            raise NotationError("a product of numbers over an index is not in the language", e.span)
        if e.kind != "from" or not self.symbols.convention:
            raise Undeclared("it is not declared in which order a product multiplies", e.span)
        return LayerProduct(inner, limits[0], reverse=self.symbols.convention == "row")

    def _count(self, e: Indexed, index: str) -> Size:
        said = f"{e.lower} {'' if e.upper is None else latex(e.upper)}"
        for letter, _, _ in self.bound:
            if letter not in e.indices and _mentions(said, letter):
                raise Undeclared(
                    f"what {index} runs over depends on {letter}, over which a sum runs", e.span
                )
        if e.kind == "from":
            upper = None if e.upper is None else size_of(e.upper)
            if upper is None and e.upper is not None and e.lower == "0":
                upper = self._one_more(e.upper)
            if upper is not None and e.lower in ("0", "1"):
                return upper if e.lower == "1" else self._from_zero(e, upper)
            return (f"N({e.lower}..{'' if e.upper is None else latex(e.upper)})",)
        if e.kind == "in":
            return (f"|{e.lower}|",)
        if e.kind == "range":
            return (f"N({e.lower.replace(index, '•')})",)
        ranges = self.bindings.ranges.get(index, set())
        if ("all", index) not in self.counts:
            self.counts["all", index] = self.solver.fresh()
        count = self.counts["all", index]
        if len(ranges) == 1:
            (only,) = ranges
            lower, _, last = only.partition(":")
            if lower == "1" and last:
                self.solver.unify(count, self._size_text(last, Name(index, span=e.span)))
        return count

    def _one_more(self, upper: Node) -> Size | None:
        inner = bare(upper)
        if isinstance(inner, Sum) and inner.signs == ("", "-") and latex(inner.terms[1]) == "1":
            return size_of(inner.terms[0])
        return None

    def _from_zero(self, e: Indexed, upper: Size) -> Size:
        return (
            upper
            if e.upper is not None and self._one_more(e.upper)
            else ((*upper[:-1], f"{upper[-1]}+1") if upper else upper)
        )

    # -- functions ---------------------------------------------------------------------------------

    def apply(self, e: Apply) -> Typed:
        base = e.function.base
        if base in BEYOND or (base in ("\\nabla", "\\partial", "inner") and base != "inner"):
            raise NotationError(f"{base} is not in the language", e.span)
        arguments = [self._argument(argument) for argument in e.arguments]
        plain = not e.below and not e.function.sub and not e.function.sup and not e.function.marks
        if base in ("vec", "vecr", "vecc") and len(arguments) == 1:
            return self._vec(e, arguments[0])
        if plain and len(arguments) == 1 and base in _FUNCTIONS:
            return _FUNCTIONS[base](self, e, arguments[0])
        if base == "inner" and len(arguments) == 2:
            return self._inner_product(e, arguments)
        if (
            plain
            and len(arguments) == 1
            and (base in ELEMENTWISE or base in self.symbols.elementwise)
        ):
            return self._elementwise(e, arguments[0])
        return self._opaque(e, arguments)

    def _argument(self, node: Node) -> Typed:
        """Read an argument; of one that cannot be read, only the function's name knows more."""
        try:
            return self.infer(node)
        except Undeclared as error:
            if self.nodes and isinstance(node, Name | Group):
                return self._unknown(node, str(error))
            raise

    def _needs_matrix(self, e: Apply, argument: Typed) -> Shape:
        if argument.shape is None:
            raise Undeclared(
                f"{e.function.base} takes a matrix, and {self.quoted(e.arguments[0])} is a number",
                e.span,
            )
        return argument.shape

    def softmax(self, e: Apply, argument: Typed) -> Typed:
        if not argument.known:
            return self._unknown(e, self.quoted(e))
        shape = self._needs_matrix(e, argument)
        self.doubts.append("softmax was taken along rows")

        def build() -> Any:
            inner = argument.build()
            if self.solver.resolved(shape[1]) == ONE:
                return Transpose(RowSoftmax(Transpose(inner)))
            return RowSoftmax(inner)

        return Typed(shape, build, e.span)

    def trace(self, e: Apply, argument: Typed) -> Typed:
        if not argument.known:
            return Typed(None, self._unknown(e, self.quoted(e)).build, e.span)
        shape = self._needs_matrix(e, argument)
        if not self.solver.unify(*shape):
            raise FormulaShapeError(
                f"cannot take the trace of {self._with_shape(e.arguments[0], argument)}: it is not "
                "square", e.span,
            )  # fmt: skip
        return Typed(None, lambda: sympy.Trace(argument.build()), e.span)

    def diag(self, e: Apply, argument: Typed) -> Typed:
        if not argument.known:
            return self._unknown(e, self.quoted(e))
        shape = self._needs_matrix(e, argument)
        rows, cols = map(self.solver.resolved, shape)
        inner = bare(e.arguments[0])
        of_vector = ONE in (rows, cols) or (
            isinstance(inner, Name) and (default(inner) or Declared("matrix")).kind == "vector"
        )
        if of_vector:
            if ONE not in (rows, cols):
                self.solver.unify(shape[1], ONE)
            size = shape[0] if self.solver.resolved(shape[1]) == ONE else shape[1]
            return Typed((size, size), lambda: DiagMatrix(argument.build()), e.span)
        if not self.solver.unify(*shape):
            raise FormulaShapeError("cannot take the diagonal of a matrix not square", e.span)
        return Typed((shape[0], ONE), lambda: DiagonalOf(argument.build()), e.span)

    def _vec(self, e: Apply, argument: Typed) -> Typed:
        if not argument.known:
            return self._unknown(e, self.quoted(e))
        shape = self._needs_matrix(e, argument)
        below = "".join(slot.text for slot in e.function.sub) or e.function.base[3:]
        order = "rows" if below.startswith("r") else "cols" if below.startswith("c") else ""
        order = order or self.symbols.vec
        if not order:
            raise Undeclared("it is not declared whether vec stacks rows or columns", e.span)
        rows, cols = shape
        cls = vec_rows if order == "rows" else vec_cols
        size = (*rows, *cols) if order == "rows" else (*cols, *rows)
        return Typed((size, ONE), lambda: cls(argument.build()), e.span)

    def _inner_product(self, e: Apply, arguments: list[Typed]) -> Typed:
        a, b = arguments
        if not (a.known and b.known):
            return self._unknown(e, self.quoted(e))
        if a.shape is None or b.shape is None:
            raise FormulaShapeError("an inner product takes vectors or matrices", e.span)
        self.same(a, b, "take the inner product of", *e.arguments)
        build = lambda: sympy.Trace(matmul(Transpose(a.build()), b.build()))  # noqa: E731
        return Typed(None, build, e.span)

    def _elementwise(self, e: Apply, argument: Typed) -> Typed:
        if argument.shape is None:
            return self._opaque(e, [argument])
        name = ELEMENTWISE.get(e.function.base, letters(e.function.base, ""))
        return Typed(argument.shape, lambda: Activation(name, argument.build()), e.span)

    def _opaque(self, e: Apply, arguments: list[Typed]) -> Typed:
        """Read the value of an unknown function as a symbol of its own, named by its text."""
        text = latex(e)
        key, known = self.symbols.lookup(e.function)
        if not all(argument.known for argument in arguments) and e.function.base in ROWWISE:
            return self._unknown(e, self.quoted(e))
        if known is not None and known.kind == "scalar":
            return self._opaque_scalar(e, text)
        if known is not None and known.kind == "matrix":
            shape: Shape = (known.rows, known.cols)
        elif e.function.base in ROWWISE and len(arguments) == 1 and arguments[0].shape is not None:
            shape = arguments[0].shape
        elif e.function.base in ("Attn", "attn"):
            fresh: Shape = (self.solver.fresh(), self.solver.fresh())
            shape = self.shapes.setdefault(f"{key}(…)", (fresh, Declared("function")))[0] or fresh
        else:
            return self._unknown(e, self.quoted(e))
        self.doubts.append(f"{self.quoted(e)} was taken as a matrix of its own")
        bound = [scope for scope in self.bound if _mentions(text, scope[0])]
        indices = [(symbol, count) for _, count, symbol in bound]
        return self._matrix_symbol(e.function, text, shape, Declared("matrix"), indices)

    def _opaque_scalar(self, e: Apply, text: str) -> Typed:
        self.doubts.append(f"{self.quoted(e)} was taken as a number of its own")
        return Typed(None, lambda: sympy.Symbol(text.replace("[", "⟨"), real=True), e.span)

    def _unknown(self, e: Node, what: str) -> Typed:
        def build() -> Any:
            raise Undeclared(f"it is not declared whether {what} is a number or a matrix", e.span)

        return Typed(None, build, e.span, known=False)

    def norm(self, e: Norm) -> Typed:
        inner = self.infer(e.argument)
        text = latex(e)
        self.doubts.append(f"{self.quoted(e)} was taken as a number of its own")
        del inner
        if any(_mentions(text, scope[0]) for scope in self.bound):
            raise NotationError("a norm under a sum is not in the language", e.span)
        return Typed(None, lambda: sympy.Symbol(text.replace("[", "⟨"), positive=True), e.span)

    def squared_norm(self, e: Power) -> Typed | None:
        """Read ‖X‖_F² as tr(XᵀX)."""
        if not (isinstance(e.base, Norm) and isinstance(e.exponent, Number)):
            return None
        inner = bare(e.base.argument)
        vector = isinstance(inner, Name) and (default(inner) or Declared("matrix")).kind == "vector"
        euclidean = e.base.kind in ("F", r"\mathrm{F}") or (e.base.kind in ("", "2") and vector)
        if e.exponent.text != "2" or not euclidean or e.base.mark != r"\|":
            return None
        typed = self.infer(e.base.argument)
        if typed.shape is None or not typed.known:
            return None
        build = lambda: sympy.Trace(matmul(Transpose(typed.build()), typed.build()))  # noqa: E731
        return Typed(None, build, e.span)

    def power_or_norm(self, e: Power) -> Typed:
        return self.squared_norm(e) or self.power(e)

    # -- matrices written out ----------------------------------------------------------------------

    def grid(self, e: Grid) -> Typed:
        if e.bracket == "(":
            raise Undeclared("it is not declared whether the list is a row or a column", e.span)
        if any(isinstance(bare(c), Dots) for row in e.rows for c in row if c is not None):
            raise NotationError("dots leave something out of the matrix", e.span)
        width = len(e.rows[0]) if e.rows else 0
        if not width or any(len(row) != width or None in row for row in e.rows):
            raise NotationError("the rows of the matrix are not complete", e.span)
        cells = [[self.infer(cell) for cell in row if cell is not None] for row in e.rows]
        if not all(cell.known for row in cells for cell in row):
            return self._unknown(e, "an entry of the matrix")
        if all(cell.shape is None for row in cells for cell in row):
            size: Shape = ((len(cells),), (width,))
            build = lambda: sympy.ImmutableDenseMatrix(  # noqa: E731
                [[cell.build() for cell in row] for row in cells]
            )
            return Typed(size, build, e.span)
        return self._blocks(e, cells)

    def _blocks(self, e: Grid, cells: list[list[Typed]]) -> Typed:
        heights = [self.solver.fresh() for _ in cells]
        widths = [self.solver.fresh() for _ in cells[0]]
        for height, row in zip(heights, cells, strict=True):
            for width, cell in zip(widths, row, strict=True):
                shape = cell.shape
                if shape is None and cell.literal != "0":
                    shape = (ONE, ONE)
                if shape is not None and not (
                    self.solver.unify(height, shape[0]) and self.solver.unify(width, shape[1])
                ):
                    raise FormulaShapeError(
                        f"a block is {self.solver.show_shape(shape)}, and its row has height "
                        f"{self.solver.show(height)}, its column width {self.solver.show(width)}",
                        cell.span,
                    )

        def block(cell: Typed, height: Size, width: Size) -> Any:
            rows, cols = self.solver.expression(height), self.solver.expression(width)
            if cell.literal == "0":
                return ZeroMatrix(rows, cols)
            if cell.shape is None:
                return matmul(cell.build(), OneMatrix(1, 1))
            return cell.build()

        def build() -> Any:
            blocks = [
                [block(c, height, width) for c, width in zip(row, widths, strict=True)]
                for height, row in zip(heights, cells, strict=True)
            ]
            return sympy.BlockMatrix(blocks)

        rows: Size = (Plus(tuple(heights)),) if len(heights) > 1 else heights[0]
        cols: Size = (Plus(tuple(widths)),) if len(widths) > 1 else widths[0]
        return Typed((rows, cols), build, e.span)


def _matmul(factors: list[Any]) -> Any:
    return matmul(*factors) if len(factors) > 1 else factors[0]


def _mentions(text: str, letter: str) -> bool:
    """Return whether an index occurs in the text of a slot or a term as a word of its own."""
    return re.search(rf"(?<![A-Za-z\\]){re.escape(letter)}(?![A-Za-z])", text) is not None


_FUNCTIONS: dict[str, Callable[[_Elaborator, Apply, Typed], Typed]] = {
    "softmax": _Elaborator.softmax,
    "Softmax": _Elaborator.softmax,
    "tr": _Elaborator.trace,
    "Tr": _Elaborator.trace,
    "diag": _Elaborator.diag,
    "Diag": _Elaborator.diag,
}

_READ: dict[type, Callable[[_Elaborator, Any], Typed]] = {
    Number: _Elaborator.number,
    Name: _Elaborator.name,
    Dots: _Elaborator.dots,
    Group: _Elaborator.group,
    Sum: _Elaborator.sum,
    Product: _Elaborator.product,
    Tensor: _Elaborator.tensor,
    Power: _Elaborator.power_or_norm,
    Fraction: _Elaborator.fraction,
    Root: _Elaborator.root,
    Indexed: _Elaborator.indexed,
    Apply: _Elaborator.apply,
    Entry: _Elaborator.entry,
    Norm: _Elaborator.norm,
    Grid: _Elaborator.grid,
}
