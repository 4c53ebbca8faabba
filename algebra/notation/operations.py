"""Sums, products, powers and matrices written out, with what they require of shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import sympy
from sympy import OneMatrix, Transpose, ZeroMatrix

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    HeadSum,
    as_product,
    kron,
    matadd,
    matmul,
)
from otimes.algebra.notation.affine import fractional_power
from otimes.algebra.notation.dimensions import ONE, Plus, Shape, Size
from otimes.algebra.notation.entrywise import entrywise_power, quotient
from otimes.algebra.notation.partial import left_out_of
from otimes.algebra.notation.printed import Printed
from otimes.algebra.notation.symbols import (
    Declared,
    default,
    formula_size,
    size_of,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Dots,
    Fraction,
    Grid,
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    Root,
    Sum,
    Tensor,
    bare,
    latex,
)
from otimes.algebra.notation.typed import (
    FormulaShapeError,
    Typed,
    Undeclared,
    mentions,
)
from otimes.algebra.notation.vocabulary import DECIDED

LARGEST = 99  # of the exponents that are numbers


class Operations(Printed):
    """Operations on matrices and numbers, and sums over indices."""

    # -- operations --------------------------------------------------------------------------------

    def group(self, e: Group) -> Typed:
        inner = self.infer(e.inner)
        if isinstance(e.stands_for, Name) and inner.shape is not None:
            known = self.symbols.lookup(e.stands_for)[1]
            if known is not None and known.kind == "matrix" and known.rows and known.cols:
                self.solver.unify(inner.shape[0], known.rows)
                self.solver.unify(inner.shape[1], known.cols)
            if e.stands_for.base[:1].isupper():
                self.wholes.append(inner.shape)
        return Typed(inner.shape, inner.build, e.span, inner.known, inner.literal)

    def sum(self, e: Sum, entrywise: bool = False) -> Typed:
        """Read a sum; as a factor of a product entry by entry, `1 - P` has ones for the 1."""
        if not {*e.signs} <= {"", "+", "-"}:
            raise NotationError("± states two things at once", e.span)
        every = [*zip(map(self.infer, e.terms), e.terms, e.signs, strict=True)]
        every = [each for each in every if each[0].literal != "0"] or every[:1]  # `A + 0`
        found, terms, signs = map(list, zip(*every, strict=True))
        if entrywise:
            found = self._with_ones_for_numbers(found)
        for (a, b), (x, y) in zip(pairwise(found), pairwise(terms), strict=True):
            if (a.literal and b.shape is not None) or (b.literal and a.shape is not None):
                other = b if a.literal else a
                if not self.is_one_by_one(other):
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
                signed = [-p if s == "-" else p for p, s in zip(parts, signs, strict=True)]
                return sympy.Add(*signed, evaluate=False) if len(signed) > 1 else signed[0]
            signed = [matmul(-1, p) if s == "-" else p for p, s in zip(parts, signs, strict=True)]
            return matadd(*signed) if len(signed) > 1 else signed[0]

        return Typed(None if mixed else shape, build, e.span, known)

    def _with_ones_for_numbers(self, found: list[Typed]) -> list[Typed]:
        """Return the terms of a sum with matrices of ones in place of the number 1."""
        shape = next((each.shape for each in found if each.shape is not None), None)
        if shape is None:
            return found

        def ones() -> Any:
            return OneMatrix(*map(self.solver.expression, shape))

        return [Typed(shape, ones, each.span) if each.literal == "1" else each for each in found]

    def product(self, e: Product) -> Typed:
        if any(pair[0] == "/" for pair in pairwise(e.marks)):
            raise NotationError("what is divided by is not clear: write brackets", e.span)
        if any(mark.startswith(r"\times_") for mark in e.marks):
            raise NotationError("products of tensors along a mode are not in the language", e.span)
        parts: list[tuple[Typed, Node, str]] = []
        after = [*e.factors[1:], None]
        for factor, mark, follows in zip(e.factors, e.marks, after, strict=True):
            before = parts[-1][0].shape if parts else None
            if _is_one(factor) and mark == "" and (before is not None or _is_ones_row(follows)):
                size = before[1] if before is not None else self.solver.fresh()
                ones: Shape = (size, ONE)
                typed = Typed(ones, partial(self._ones_column, ones), factor.span)
            else:
                typed = self.infer(factor)
            parts.append((typed, factor, mark))
        self._averaged(parts)
        return self._multiplied(parts, e)

    def _averaged(self, parts: list[tuple[Typed, Node, str]]) -> None:
        """Record that the ones in `1/d 1 1ᵀ` have d entries, if nothing else determines it."""
        for _, node, mark in parts:
            below = node if mark == "/" else node.below if isinstance(node, Fraction) else None
            above = node.above if isinstance(node, Fraction) else None
            size = size_of(below) if isinstance(below, Name) and self._is_size(below) else None
            if size is not None and (above is None or isinstance(bare(above), Number)):
                for typed, factor, _ in parts:
                    ones = _is_ones(factor) or _is_one(factor) or _is_ones_row(factor)
                    if ones and typed.shape is not None:
                        self.likely += [(each, size) for each in typed.shape]

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
            elif (
                mark == r"\cdot"
                and len(run) == 1
                and self._are_vectors(last, node)
                and not self._is_row_by_column(ends, typed.shape)
            ):
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

    def _is_row_by_column(self, row: Shape, column: Shape) -> bool:
        sizes = map(self.solver.resolved, (row[0], column[1], row[1]))
        return [size == ONE for size in sizes] == [True, True, False]

    def _is_one(self, ends: tuple[Size, Size]) -> bool:
        return self.solver.resolved(ends[0]) == ONE and self.solver.resolved(ends[1]) == ONE

    def _as_number(self, run: list[Typed], e: Node) -> Typed:
        factors = list(run)
        return Typed((ONE, ONE), lambda: as_product([x.build() for x in factors]), e.span)

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
            return sympy.Trace(
                matmul(Transpose(as_product([x.build() for x in left])), right.build())
            )

        return Typed(None, build, e.span)

    def _bad_product(self, last: Node | None, before: Shape, node: Node, typed: Typed) -> str:
        left = self.quoted(last) if last is not None else "the left factor"
        cols, rows = self.solver.show(before[1]), self.solver.show((typed.shape or before)[0])
        return (
            f"cannot multiply {left} ({self.solver.show_shape(before)}) by "
            f"{self._with_shape(node, typed)}: the inner sizes {cols} and {rows} differ"
            + self._ones_meant(*([] if last is None else [last]), node)
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
            return as_product([coefficient, *factors] if numbers else factors)

        return Typed(ends, build, e.span)

    def _factor_of(self, e: Tensor, factor: Node) -> Typed:
        inner = bare(factor)
        if e.mark == r"\odot" and isinstance(inner, Sum):
            return self.sum(inner, entrywise=True)
        return self.infer(factor)

    def tensor(self, e: Tensor) -> Typed:
        if e.mark not in DECIDED:
            raise NotationError(f"{e.mark} is not in the language", e.span)
        found = [self._factor_of(e, factor) for factor in e.factors]
        if any(not typed.known for typed in found):
            return self._unknown(e, "the product")
        for typed, node in zip(found, e.factors, strict=True):
            self._confirm(node)
            if typed.shape is None and e.mark == r"\odot" and typed.literal == "1":
                raise NotationError("what a 1 is that is joined entry by entry", node.span)
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
        if e.mark == r"\oslash":
            return quotient(e, found)
        return Typed(
            shapes[0],
            lambda: sympy.HadamardProduct(*[t.build() for t in found], evaluate=False),
            e.span,
        )

    def _confirm(self, node: Node) -> None:
        """Record that a symbol is used as a matrix."""
        inner = bare(node)
        if isinstance(inner, Name) and not inner.base.islower():
            key = self.symbols.lookup(inner)[0]
            self.confirmed.add(key)
            self.undeclared.pop(key, None)

    def power(self, e: Power) -> Typed:
        inside = e.base
        if _is_ones_row(e):
            size = self.solver.fresh()
            row: Shape = (ONE, size)
            return Typed(row, lambda: Transpose(self._ones_column((size, ONE))), e.span)
        if e.exponent == "T" and isinstance(inside, Grid):  # (1, 2)ᵀ is a column
            inside = Grid(inside.rows, span=inside.span)
        base = self.infer(inside)
        if not base.known:
            return self._unknown(e, self.quoted(e))
        if e.exponent == "T":
            self._confirm(e.base)
            if base.shape is None:
                return Typed(None, base.build, e.span, literal=base.literal)
            return Typed((base.shape[1], base.shape[0]), lambda: Transpose(base.build()), e.span)
        if e.exponent == r"\circ":
            raise NotationError(
                "an angle in degrees (°) is not in the language: use radians", e.span
            )
        if isinstance(e.exponent, str) and e.exponent.startswith(r"\circ"):
            return entrywise_power(e, base, e.exponent)
        if e.exponent == "+":
            return self._pseudo_inverse(e, base)
        number = base.shape is None or self.is_one_by_one(base)
        rational = fractional_power(e) if number else None
        if rational is not None:
            return Typed(None, lambda: sympy.Pow(self.as_scalar(base), rational), e.span)
        exponent = -1 if e.exponent == "-1" else self._exponent(e)
        if base.shape is None:
            return Typed(None, lambda: sympy.Pow(base.build(), exponent), e.span)
        if not self.solver.unify(*base.shape):
            verb = "invert" if exponent == -1 else "raise to a power"
            raise FormulaShapeError(
                f"cannot {verb} {self._with_shape(e.base, base)}: a square matrix is needed", e.span
            )
        if exponent == -1:
            return Typed(base.shape, lambda: sympy.Inverse(base.build()), e.span)
        return Typed(base.shape, lambda: sympy.MatPow(base.build(), exponent), e.span)

    def _pseudo_inverse(self, e: Power, base: Typed) -> Typed:
        """Read a pseudo-inverse as a symbol of its own, with the shape of the transpose."""
        name = bare(e.base)
        if self.symbols.printed or base.shape is None or not isinstance(name, Name):
            raise NotationError(
                "the pseudo-inverse is not in the language: write (AᵀA)⁻¹Aᵀ", e.span
            )
        if any(mentions(latex(name), scope[0]) for scope in self.bound):
            raise NotationError("a pseudo-inverse under a sum is not in the language", e.span)
        self.doubts.append(f"{self.quoted(e)} was taken as a matrix of its own")
        text = f"{text_of(name)}⁺"
        rows, cols = map(self.solver.resolved, base.shape)
        # `x^+` is the next value of a vector, more often than its pseudo-inverse
        shape = (self.solver.fresh(), self.solver.fresh()) if ONE in (rows, cols) else (cols, rows)
        return self._matrix_symbol(name, text, shape, Declared("matrix"))

    def _exponent(self, e: Power) -> Any:
        """Return an exponent: a small whole number, or one made of sizes if these are printed."""
        if not self.symbols.printed or not isinstance(e.exponent, Node):
            return self._small(e)
        found = self._whole(e.exponent)
        whole = found is not None and not self._letters(found) and found.is_integer
        return (
            found if whole and not (found.is_Integer and abs(found) > LARGEST) else self._small(e)
        )

    def _small(self, e: Power) -> int:
        inner = bare(e.exponent) if isinstance(e.exponent, Node) else None
        if isinstance(inner, Sum) and inner.signs == ("-",) and isinstance(e.base, Number):
            return -self._small(Power(e.base, inner.terms[0], span=e.span))
        if isinstance(inner, Number) and inner.text.isdigit() and int(inner.text) <= LARGEST:
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
        if inner.shape is not None and not self.is_one_by_one(inner):
            raise Undeclared(
                f"cannot take the root of {self._with_shape(e.argument, inner)}", e.span
            )
        power = sympy.Rational(1, degree)
        return Typed(None, lambda: sympy.Pow(self.as_scalar(inner), power), e.span)

    # -- sums over indices -------------------------------------------------------------------------

    def indexed(self, e: Indexed) -> Typed:
        if not e.indices:
            self.anything.append((f"what {self.quoted(e)} runs over", e.span))
            return self._unknown(e, self.quoted(e))
        if self.symbols.printed and (found := self.printed_sum(e)) is not None:
            return found
        if e.mark == r"\sum":
            around = {letter for letter, _, _ in self.bound}
            end = self.bindings.end_of(e, around)
            if end is not None:
                return self._sum_up_to(e, *end)
            other = left_out_of(e)
            if other and other not in self.bindings.sizes:
                return self._sum_without(e, other)
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

    def _sum_up_to(self, e: Indexed, end: str, more: int) -> Typed:
        """Read a sum over an index up to another one, both of one range."""
        self.partial += 1
        count = self.solver.fresh()
        last = self._index(end, count, e)

        def over(body: Any, symbol: sympy.Symbol, is_matrix: bool) -> Any:
            if is_matrix:
                return HeadSum(body, (symbol, last + more))
            return sympy.Sum(body, (symbol, 0, last + more - 1))

        return self._sum_of(e, count, over)

    def _sum_without(self, e: Indexed, other: str) -> Typed:
        """Read a sum over all values of an index but another: the whole sum less one term."""
        count = self._count(replace(e, kind="all", lower=""), e.indices[0])
        left_out = self._index(other, count, e)

        def over(body: Any, symbol: sympy.Symbol, is_matrix: bool) -> Any:
            many = self.solver.expression(count)
            term = body.xreplace({symbol: left_out})
            if is_matrix:
                return HeadSum(body, (symbol, many)) - term
            return sympy.Sum(body, (symbol, 0, many - 1)) - term

        return self._sum_of(e, count, over)

    def _sum_of(
        self, e: Indexed, count: Size, over: Callable[[Any, sympy.Symbol, bool], Any]
    ) -> Typed:
        """Read a sum over an index.

        `over` builds it from its body, its index, and whether the body is a matrix.
        """
        (index,) = e.indices
        symbol = sympy.Symbol(index.replace("\\", ""), integer=True)
        self.bound.append((index, count, symbol))
        body = self.infer(e.body)
        self.bound.pop()
        if not body.known:
            return self._unknown(e, self.quoted(e))
        return Typed(body.shape, lambda: over(body.build(), symbol, body.shape is not None), e.span)

    def _layers(self, e: Indexed, inner: Any, body: Typed, limits: list[Any]) -> Any:
        if body.shape is None or len(limits) != 1:
            raise NotationError("a product of numbers over an index is not in the language", e.span)
        if e.kind != "from" or not self.symbols.convention:
            raise Undeclared("it is not declared in which order a product multiplies", e.span)
        return LayerProduct(inner, limits[0], reverse=self.symbols.convention == "row")

    def _count(self, e: Indexed, index: str) -> Size:
        said = f"{e.lower} {'' if e.upper is None else latex(e.upper)}"
        for letter, _, _ in self.bound:
            if letter not in e.indices and mentions(said, letter):
                raise Undeclared(
                    f"what {index} runs over depends on {letter}, over which a sum runs", e.span
                )
        if e.kind == "from":
            upper = None if e.upper is None else size_of(e.upper)
            if upper is None and e.upper is not None and self.symbols.printed:
                upper = formula_size(e.upper)
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

    # -- matrices written out ----------------------------------------------------------------------

    def grid(self, e: Grid) -> Typed:
        if e.bracket == "(":
            raise Undeclared("it is not declared whether the list is a row or a column", e.span)
        if e.bracket == "[" and len(e.rows) == 1 and all(map(_is_numeric, e.rows[0])):
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
            return Typed(size, lambda: _explicit(cells), e.span)
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


def _is_one(node: Node | None) -> bool:
    return isinstance(node, Number) and node.text == "1"


def _is_ones_row(node: Node | None) -> bool:
    """Return whether a plain 1 is transposed, which no number is."""
    return isinstance(node, Power) and node.exponent == "T" and _is_one(node.base)


def _is_ones(node: Node) -> bool:
    inner = bare(node)
    if isinstance(inner, Power) and inner.exponent == "T":
        inner = bare(inner.base)
    return isinstance(inner, Name) and inner.base == "1" and bool(inner.style)


def _explicit(cells: list[list[Typed]]) -> Any:
    return sympy.ImmutableDenseMatrix([[cell.build() for cell in row] for row in cells])


def _is_numeric(node: Node | None) -> bool:
    """Return whether an entry is a number, maybe with a sign, or left out."""
    inner = bare(node) if node is not None else None
    if isinstance(inner, Sum) and len(inner.terms) == 1:
        inner = inner.terms[0]
    return isinstance(inner, Number | Dots)
