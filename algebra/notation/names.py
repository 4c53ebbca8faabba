"""The symbols of a formula, with the shapes and indices that they have in it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, ZeroMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.constants import PI
from otimes.algebra.language.linear import (
    Family,
)
from otimes.algebra.notation.affine import Difference, affine, difference, fractional
from otimes.algebra.notation.bound import Bindings, Place, slots_at
from otimes.algebra.notation.dimensions import ONE, Shape, Size, Solver, Unknown
from otimes.algebra.notation.numbered import has_own_shape
from otimes.algebra.notation.slices import Turned, places_of, sliced
from otimes.algebra.notation.symbols import (
    SIZE_LETTERS,
    Declared,
    Symbols,
    default,
    formula_size,
    key_of,
    size_of,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Dots,
    Entry,
    Name,
    Node,
    Number,
    Power,
    Product,
    Slot,
    Span,
    bare,
    latex,
)
from otimes.algebra.notation.typed import (
    FormulaShapeError,
    Typed,
    Undeclared,
    mentions,
)
from otimes.algebra.notation.vocabulary import BEYOND_ALGEBRA, SIGNS

WORD = re.compile(r"\w+")


class Names(ABC):
    """What the symbols of a formula are: numbers, matrices, members of families, constants."""

    def __init__(
        self,
        terms: Sequence[Node],
        symbols: Symbols,
        source: str,
        bindings: Bindings,
        side: str | tuple[str, ...] = "",
        lenient: bool = False,
        starts: Sequence[int] = (),
        turned: Turned | None = None,
        declared: bool = False,
    ) -> None:
        self.nodes = terms
        self.starts = frozenset(starts)
        # "column" or "row": what vectors are, all or each; "open": it makes a difference
        self.side = side
        self.lenient = lenient  # nothing is assumed of symbols that are not declared
        self.declared = declared  # whether vectors are columns or rows as they are said to be
        self.turned = turned  # whether slices that are rows are columns, and the reverse
        self.confirmed: set[str] = set()
        self.symbols = symbols
        self.source = source
        self.solver = Solver(by_value=symbols.printed)
        self.sizes = bindings.sizes
        self.bindings = bindings
        self.bound: list[tuple[str, Size, sympy.Symbol]] = []
        self.shapes: dict[str, tuple[Shape | None, Declared]] = {}  # by key
        self.counts: dict[Any, Size] = {}
        self.split: dict[tuple[str, Place], list[Size]] = {}  # places with several ranges
        self.vectors: list[tuple[str, Shape, Span]] = []
        self.lengths: list[tuple[str, Shape, Size, Span]] = []  # of vectors that are declared
        self.matrices: list[Shape] = []
        self.wholes: list[Shape] = []  # of what is defined as a capital
        self.doubts: list[str] = []
        self.met = 0  # vectors, where each is turned by itself
        self.partial = 0  # sums up to an index
        self.free: dict[str, Size] = {}  # what the indices that nothing binds run over
        self.names: dict[str, str] = {}
        self.undeclared: dict[str, str] = {}
        self.patterns: dict[str, dict[str, bool]] = {}
        self.anything: list[tuple[str, Span]] = []
        self.binders: list[tuple[str, Size]] = []  # of sums that do not say what they run over
        self.likely: list[tuple[Size, Size]] = []  # sizes of ones, if nothing else fixes them
        self.plain_ones: list[Size] = []  # the sizes of columns of ones that are written without
        self.inferred: list[Typed] | None = None  # the terms, once their shapes are found
        self.refused: NotationError | None = None  # why none were found

    @abstractmethod
    def infer(self, node: Node) -> Typed:
        """Return the shape of a part and how it is built."""

    @abstractmethod
    def printed_name(self, e: Name) -> Typed | None:
        """Return what a symbol stands for if the notation of the printers says so."""

    @abstractmethod
    def is_number(self, slot: Slot) -> bool:
        """Return whether a slot holds a size, and no index."""

    @abstractmethod
    def printed_entry(self, e: Entry) -> Typed:
        """Return a member of a family or an entry, in the notation of the printers."""

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
                f"differ{self._ones_meant(x, y)}", (x.span[0], y.span[1]),
                self._broadcast((a, x), (b, y)) if verb == "add" else "",
            )  # fmt: skip

    def _broadcast(self, *parts: tuple[Typed, Node]) -> str:
        """Return which row or column of a sum would be repeated to fit the other part, or ""."""
        (a, x), (b, y) = parts
        for vector, matrix, node in ((a.shape, b.shape, x), (b.shape, a.shape, y)):
            assert vector is not None
            assert matrix is not None
            (rows, cols), (n, d) = (map(self.solver.resolved, s) for s in (vector, matrix))
            if rows == ONE and cols == d:
                return f"the row {self.quoted(node)} is added to every row: write 𝟏 before it"
            if cols == ONE and rows == n:
                return f"the column {self.quoted(node)} is added to every column: write 𝟏ᵀ after it"
        return ""

    def _ones_meant(self, *nodes: Node) -> str:
        """Return how a column of ones is written, if a product begins with the number 1."""
        products = [each for node in nodes if isinstance(each := bare(node), Product)]
        if any(isinstance(e.factors[0], Number) and e.factors[0].text == "1" for e in products):
            return " (a 1 before a matrix is a number: 𝟏 is the column of ones)"
        return ""

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

    def quoted(self, node: Node) -> str:
        text = self.source[node.span[0] : node.span[1]] if self.source else ""
        text = " ".join(text.split()) or latex(node)
        return text if len(text) <= 60 else text[:57] + "…"

    def _unknown(self, e: Node, what: str) -> Typed:
        def build() -> Any:
            raise Undeclared(f"it is not declared whether {what} is a number or a matrix", e.span)

        return Typed(None, build, e.span, known=False)

    # -- leaves ------------------------------------------------------------------------------------

    def number(self, e: Number) -> Typed:
        value = sympy.Rational(e.text)
        return Typed(None, lambda: value, e.span, literal=e.text)

    def dots(self, e: Dots) -> Typed:
        raise NotationError("dots leave something out", e.span)

    def name(self, e: Name) -> Typed:
        if e.base in BEYOND_ALGEBRA or e.base in SIGNS:
            raise NotationError(f"{e.base} is not in the language", e.span)
        if self.symbols.printed and (found := self.printed_name(e)) is not None:
            return found
        key, known = self.symbols.lookup(e)
        if e.select and (known is None or (places_of(e) and not (known.rows or known.cols))):
            return self._selected(e)
        constant = self._named_constant(e) if known is None or known.kind != "function" else None
        if constant is not None and known is not None and not (known.rows or known.line):
            known = None  # “the columns of I” says that it is a matrix, and not which
        if constant is not None and (known is None or e.base in ("0", "1")):
            return constant if known is None else self._of_declared_size(constant, known)
        power = difference(e.sup[0]) if len(e.sup) == 1 else None
        if power is not None and self._is_base(e) and self._are_indices(power):
            return self._power_at(e, power)
        if (exponent := fractional(e)) is not None:
            root = self._root_of_name(e, exponent)
            if root is not None:
                return root
        if e.sup and e.sup[0].kind == "number" and len(e.sup) == 1 and self._is_power(e, known):
            return self._power_of_name(e)
        member = known is not None and "_" in known.full and not e.sub  # `k`, and rows `k_i`
        if self._is_size(e) and (known is None or member):
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
        member = e.base.isupper() and e.base != "W" and [s.kind for s in e.sub] == ["index"]
        if self.lenient and known.kind == "matrix" and (not sized or member):
            return self._unknown(e, self.quoted(e))  # of which only the kind is known
        if known.kind == "function":
            raise NotationError(f"the function {self.quoted(e)} has no argument", e.span)
        if known.kind in ("size", "index"):
            return self._size_as_number(e, known)
        if known.kind == "matrix" and self._is_entry(e):
            if key in self.symbols.families or self._is_of_members(known):
                return self._unknown(e, self.quoted(e))
            return self._entry_of_name(e, known)
        return self._symbol(e, key, known)

    def _is_of_members(self, known: Declared) -> bool:
        """Return whether `S_i` is declared, so that `S_{p,i}` may be a matrix and no entry."""
        return not self.symbols.printed and re.fullmatch(r"[^_]*_[a-z]", known.full) is not None

    def _is_size(self, e: Name) -> bool:
        return text_of(e) in self.sizes

    def _is_power(self, e: Name, known: Declared | None) -> bool:
        if not e.sup[0].text.isdigit():
            return False
        labelled = self.symbols.is_labelled(e) or e.sup[0].text == "1"
        return not labelled and int(e.sup[0].text) < 100

    def _is_base(self, e: Name) -> bool:
        """Return whether what a difference stands above is raised to a power, and no member.

        It is a number or a square matrix that is declared, or stands in the formula, without
        indices above.
        """
        base = replace(e, sup=())
        known = self.symbols.lookup(base)[1]
        if key_of(e) in self.bindings.above or not (
            base in self.bindings.plain or (known is not None and known.trusted)
        ):
            return False
        known = known or default(base) or Declared("vector")
        return known.kind == "scalar" or (known.kind == "matrix" and known.rows == known.cols)

    def _are_indices(self, power: Difference) -> bool:
        around = {letter for letter, _, _ in self.bound}
        return {power.first, power.second} <= around | self.bindings.runs_to

    def _power_at(self, e: Name, power: Difference) -> Typed:
        r"""Read a power whose exponent is a difference of indices: `\gamma^{i-j}`."""
        base = self.infer(replace(e, sup=()))
        at = [self._index_at(letter) for letter in (power.first, power.second)]
        exponent = at[0] - at[1] + power.number
        if base.shape is None:
            return Typed(None, lambda: sympy.Pow(base.build(), exponent), e.span, base.known)
        if not self.solver.unify(*base.shape):
            raise Undeclared(f"{self.quoted(e)} is a power only of a square matrix", e.span)
        return Typed(base.shape, lambda: sympy.MatPow(base.build(), exponent), e.span)

    def _root_of_name(self, e: Name, exponent: Fraction) -> Typed | None:
        """Read a power of a number, as a root or one over it; a root of a matrix is a symbol."""
        base = replace(e, sup=())
        known = self.symbols.lookup(base)[1]
        number = known is not None and known.kind == "scalar"
        if not (number or self._is_size(base)):
            return None
        inner, power = self.infer(base), sympy.Rational(exponent)
        return Typed(None, lambda: sympy.Pow(inner.build(), power), e.span, inner.known)

    def _index_at(self, letter: str) -> sympy.Symbol:
        """Return the index of a sum around, or one that nothing binds, as a number."""
        for bound, _, symbol in reversed(self.bound):
            if bound == letter:
                return symbol
        return sympy.Symbol(letter, integer=True)

    def _power_of_name(self, e: Name) -> Typed:
        base = Name(e.base, e.style, e.marks, e.sub, (), e.select, span=e.span)
        return self.infer(Power(base, Number(e.sup[0].text), span=e.span))

    def _size_as_number(self, e: Name, known: Declared) -> Typed:
        if known.kind == "index" or text_of(e) in self.bindings.letters:
            raise NotationError(f"the index {self.quoted(e)} is used as a number", e.span)
        size = size_of(e) or (text_of(e),)
        self.names[text_of(e)] = text_of(e)
        return Typed(None, lambda: self.solver.expression(size), e.span)

    def _named_constant(self, e: Name) -> Typed | None:
        if e.base in ("I", "Id") and not e.marks and e.style in ("", "bf", "bb") and not e.sup:
            bound = any(slot.text in self.bindings.letters for slot in e.sub)
            if e.sub and (bound or not self._names_size(e)):
                return None
            size = self._subscript_size(e) or self.solver.fresh()
            return Typed((size, size), lambda: Identity(self.solver.expression(size)), e.span)
        plain = e.base == r"\pi" and not (e.style or e.marks or e.sub or e.sup)
        if plain and self.symbols.lookup(e)[1] is None:
            return Typed(None, lambda: PI, e.span)
        if e.base in ("0", "1") and e.style:
            return self._ones(e, OneMatrix if e.base == "1" else ZeroMatrix)
        return None

    def _of_declared_size(self, ones: Typed, known: Declared) -> Typed:
        """Return ones that are declared; where the formula says so, they are of another size."""
        assert ones.shape is not None
        rows, cols = known.rows, known.cols or ONE
        if known.cols and self.solver.resolved(rows) == ONE:
            size, build = ones.shape, ones.build
            ones = Typed((size[1], size[0]), lambda: sympy.Transpose(build()), ones.span)
        if rows and ones.shape is not None:
            self.likely += [*zip(ones.shape, (rows, cols), strict=True)]
        return ones

    def settle_ones(self) -> None:
        """Give each column of ones without a determined size its likely size.

        That is the size of the others, where these have all one: in `1 1ᵀ 1 1ᵀ = n 1 1ᵀ`.
        """
        for size, said in self.likely:
            found = self.solver.resolved(size)
            if len(found) == 1 and isinstance(found[0], Unknown):
                self.solver.unify(found, said)
        sizes = {*map(self.solver.resolved, self.plain_ones)}
        open_ = {size for size in sizes if self.solver.unknowns(size)}
        if len(sizes - open_) == 1:
            (said,) = sizes - open_
            for size in sorted(open_, key=str):
                if len(size) == 1:
                    self.solver.unify(size, said)

    def _names_size(self, e: Name) -> bool:
        """Return whether the subscript of an identity is a size, and not another label."""
        text = ",".join(slot.text for slot in e.sub)
        if self.symbols.printed and len(e.sub) == 1 and self.is_number(e.sub[0]):
            return True
        usual = text in SIZE_LETTERS or re.match(r"[dnNT]_|\d+$", text)
        return bool(usual) or text in self.sizes

    def _ones(self, e: Name, cls: Any) -> Typed:
        text = ",".join(slot.text for slot in e.sub)
        if r"\times" in text:
            rows, cols = (self._size_text(part, e) for part in text.split(r"\times"))
        else:
            rows = self._subscript_size(e) or self._size_of_ones(cls)
            cols = ONE if cls is OneMatrix else self.solver.fresh()
        shape, expression = (rows, cols), self.solver.expression
        return Typed(shape, lambda: cls(*map(expression, shape)), e.span)

    def _size_of_ones(self, cls: Any) -> Size:
        """Return the size of a column of ones, of its own or that of all others."""
        if cls is OneMatrix and self.symbols.same_ones:
            return self.counts.setdefault("ones", self.solver.fresh())
        size = self.solver.fresh()
        if cls is OneMatrix and not self.symbols.printed:
            self.plain_ones.append(size)
        return size

    def _subscript_size(self, e: Name) -> Size | None:
        return self._size_text(",".join(s.text for s in e.sub), e) if e.sub else None

    def _size_text(self, text: str, e: Name) -> Size:
        from otimes.algebra.notation.parser import parse_formula

        statements = parse_formula(text, plain="\\" not in text)
        if any(statement.relations for statement in statements):
            raise NotationError(
                f"the function that is 1 where {text} is not in the language", e.span
            )
        size = size_of(statements[0].terms[0]) if len(statements) == 1 else None
        if self.symbols.printed and len(statements) == 1 and (size is None or len(size) > 1):
            size = formula_size(statements[0].terms[0])  # in any order, as printed
        if size is None:
            raise NotationError(f"{text} is not a size", e.span)
        return size

    def _selected(self, e: Name) -> Typed:
        """Read one row or column of a matrix, as a vector of its own."""
        whole = Name(e.base, e.style, e.marks, e.sub, e.sup, span=e.span)
        known = self.symbols.lookup(whole)[1] or default(whole)
        if known is not None and known.kind == "vector" and WORD.fullmatch(e.select):
            raise Undeclared(
                f"it is not clear whether {self.quoted(e)} is an entry or another vector", e.span
            )
        inner = self.infer(whole)
        if places_of(e) and known is not None and known.kind == "matrix":
            if inner.known and inner.shape is not None:
                return sliced(self, e, inner)
            if self.lenient:
                return self._unknown(e, self.quoted(e))
        self.doubts.append(f"{self.quoted(e)} was taken as a vector of its own")
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
            return self._scalar_symbol(e, text, indices, known.assumed)
        shape = self._shape_of(e, key, text, known)
        return self._matrix_symbol(e, text, shape, known, indices)

    def _shape_of(self, e: Name, key: str, text: str, known: Declared) -> Shape:
        apart = known.kind == "matrix" and self.symbols.by_number and has_own_shape(e, known)
        if known.kind == "matrix" and not apart and (known.rows or known.cols or known.line):
            self.shapes[key] = ((known.rows, known.cols), known)
            return known.rows, known.cols
        if known.kind == "vector" and isinstance(self.side, tuple):
            return self._as_turned(known)
        own = text if apart or (e.sup and known.kind != "vector") else key
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

    def _as_turned(self, known: Declared) -> Shape:
        """Return the shape of the next occurrence of a vector, transposed separately."""
        self.met += 1
        if self.met > len(self.side):
            return self.solver.fresh(), self.solver.fresh()
        length = known.rows or self.solver.fresh()
        return (length, ONE) if self.side[self.met - 1] == "column" else (ONE, length)

    def _vector(self, e: Name, known: Declared, shape: Shape) -> Shape:
        length = known.rows or shape[0]
        side = (self.symbols.side_of(known) if self.declared else "") or self.side
        if side == "column":
            return length, ONE
        if side == "row":
            return ONE, length
        if self.side == "open":
            self.anything.append((f"whether {self.quoted(e)} is a row or a column", e.span))
        self.vectors.append((self.quoted(e), shape, e.span))
        if known.rows and known.line:
            self.lengths.append((self.quoted(e), shape, known.rows, e.span))
        return shape

    def _indices_of(self, e: Name, places: set[Place]) -> tuple[list[tuple[Any, Size]], str]:
        """Return the indices of a symbol that are bound somewhere, and its name without them."""
        indices = []
        open_at = []
        for place, slot in slots_at(e):
            inside = [scope for scope in self.bound if mentions(slot.text, scope[0])]
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
            elif (at := affine(slot)) and at.letter in self.bindings.runs_to:
                indices.append((self._index(at.letter, count, e) + at.number, count))
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
        self.solver.unify(self.free.setdefault(letter, count), count)  # one letter, one range
        return sympy.Symbol(letter, integer=True)

    def _scalar_symbol(
        self, e: Name, text: str, indices: list[tuple[Any, Size]], assumed: Sequence[str] = ()
    ) -> Typed:
        name = self._named(text, bool(indices))
        if not indices:
            said = dict.fromkeys(assumed or ("real",), True)
            return Typed(None, lambda: sympy.Symbol(name, **said), e.span)

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

    def _named(self, text: str, is_family: bool) -> str:
        """Return the name of a symbol, which for a family is not that of a size: `k_i` and `k`."""
        mark = "·" if is_family and text in self.sizes else ""
        return text.replace("•", "·") + mark

    def _matrix_symbol(
        self,
        e: Name,
        text: str,
        shape: Shape,
        known: Declared,
        indices: Sequence[tuple[Any, Size]] = (),
    ) -> Typed:
        name = self._named(text, bool(indices))

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
        if self.symbols.printed:
            return self.printed_entry(e)
        base = self.infer(e.base) if len(e.indices) in (1, 2) else None
        if base is not None and base.known and base.shape is not None and places_of(e):
            return sliced(self, e, base)
        if base is not None and len(e.indices) == 1 and base.known and base.shape is not None:
            return self._entry_of_vector(e, base, base.shape)
        if base is None or len(e.indices) == 1:
            raise NotationError("an entry has two indices", e.span)
        if base.shape is None or not base.known:
            raise NotationError(f"{self.quoted(e.base)} has no entries", e.span)
        at = [self._entry_index(s, n, e) for s, n in zip(e.indices, base.shape, strict=True)]
        return Typed(None, lambda: MatrixElement(base.build(), *at), e.span)

    def _entry_of_vector(self, e: Entry, base: Typed, shape: Shape) -> Typed:
        """Read `(A 1)_i`: the entry of what has one row or one column."""
        sizes = [self.solver.resolved(size) for size in shape]
        if self.lenient:  # it may be a block
            return self._unknown(e, self.quoted(e))
        if ONE not in sizes or any(len(size) > 1 for size in sizes):
            raise NotationError("an entry has two indices", e.span)
        column = sizes[1] == ONE
        at = self._entry_index(e.indices[0], shape[0 if column else 1], e)
        place = (at, 0) if column else (0, at)
        return Typed(None, lambda: MatrixElement(base.build(), *place), e.span)

    def _entry_index(self, slot: Slot, count: Size, e: Entry) -> Any:
        if slot.kind == "index":
            return self._index(slot.text, count, e)
        if slot.kind == "number" and slot.text.isdigit() and slot.text != "0":
            return sympy.Integer(int(slot.text) - 1)
        raise NotationError(f"the index {slot.text} is not in the language", e.span)
