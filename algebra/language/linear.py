"""SymPy classes for families of matrices and sums over heads, which SymPy lacks.

    Family("W_O", (L, H), d_head, d_model)   one matrix for each layer and head; `W_O[l, h]` is one
    HeadSum(body, (h, H))                    the sum over heads h = 0 … H-1, H a number or a symbol
    ConcatHeads(body, (h, H))                [body_0 … body_{H-1}] side by side
    StackHeads(body, (h, H))                 the same, one below the other
    vec_rows(X), vec_cols(X)                 X as one column, row after row, or column after column
    OneHot(i, n)                             the i-th unit column of length n

None of them is evaluated: `kron(I, I)` stays two factors. An index runs from 0, and the layer of a
family comes before the head. Products and sums over layers are in `layers`.

>>> import sympy
>>> n, H = sympy.symbols("n H", integer=True, positive=True)
>>> h = sympy.Symbol("h", integer=True)
>>> A = Family("A", (H,), n, n)
>>> HeadSum(A[h], (h, H)).shape
(n, n)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy import Basic, MatrixExpr, Tuple
from sympy.core.mul import Mul
from sympy.core.symbol import Str

from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.declared import Declared, argument_at
from otimes.algebra.language.latex import TexPrinter, typeset_name
from otimes.algebra.language.sizes import check_range, product_of
from otimes.algebra.language.trees import offset
from otimes.algebra.language.unicode import ATOM, KRON, PRODUCT, Piece, TextPrinter

Shape = tuple[Any, Any]
Index = Any  # a SymPy Symbol or an integer


class Family(Basic):
    """An indexed tensor symbol: one `rows × cols` matrix for each value of its indices.

    `counts` are the numbers of values of the indices, outermost first, as in `(n_layers, n_heads)`;
    a range `(first, last)` is for relative positions, as in `((1 - n, n - 1),)`.
    `family[l, h]` is a matrix; each index is a Symbol (free, or bound by a sum) or an integer.
    Raises ShapeError when the number of indices is wrong or an integer index is out of range.
    """

    name_kind = "tensor"

    def __new__(cls, name: str, counts: Any, rows: Any, cols: Any) -> Family:
        counts = counts if isinstance(counts, tuple | list | Tuple) else (counts,)
        counts = [Tuple(*c) if isinstance(c, tuple | list) else c for c in counts]
        if any(isinstance(c, Tuple) and len(c) != 2 for c in counts):
            raise ShapeError(
                f"the indices of {name} have counts, or ranges (first, last): {counts}"
            )
        arguments = (Str(str(name)), Tuple(*counts), sympy.sympify(rows), sympy.sympify(cols))
        return Basic.__new__(cls, *arguments)

    @property
    def name(self) -> str:
        return str(self.args[0].name)

    @property
    def counts(self) -> tuple[sympy.Expr, ...]:
        """The numbers of values of the indices."""
        return tuple(
            sympy.expand(count[1] - count[0] + 1) if isinstance(count, Tuple) else count
            for count in self.args[1]
        )

    @property
    def firsts(self) -> tuple[sympy.Expr, ...]:
        """The first value of each index: 0, unless the family has a range."""
        ranges = self.args[1]
        return tuple(count[0] if isinstance(count, Tuple) else sympy.S.Zero for count in ranges)

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        """The shape of one member."""
        return self.args[2], self.args[3]

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> FamilyMember:
        return FamilyMember(self, *(indices if isinstance(indices, tuple) else (indices,)))

    def checked_shape(self, reader: Any) -> Shape:
        raise LanguageError(
            f"the family {self.name} was given without its index: write {self.name}[h]"
        )

    def text(self, printer: TextPrinter) -> Piece:
        return self.name, ATOM

    def _latex(self, printer: Any) -> str:
        return typeset_name(self.name)


class FamilyMember(Declared):
    """One matrix of a family, `family[indices]`."""

    is_tensor = True
    index_places = slice(1, None)

    def __new__(cls, family: Family, *indices: Index) -> FamilyMember:
        if len(indices) != len(family.counts):
            raise ShapeError(
                f"{family.name} has {len(family.counts)} indices and was given {len(indices)}: "
                f"write {family.name}[{', '.join('i' * len(family.counts))}]"
            )
        indices = tuple(sympy.sympify(i) for i in indices)
        for index, count, first in zip(indices, family.counts, family.firsts, strict=True):
            if first == 0:
                check_range(index, count, family.name)
        return MatrixExpr.__new__(cls, family, *indices)

    family = argument_at(0)

    @property
    def indices(self) -> tuple[sympy.Expr, ...]:
        return tuple(self.args[1:])

    @property
    def shape(self) -> Shape:
        return self.family.shape

    def count_of(self, index: Any) -> Any:
        return self.family.counts[self.indices.index(index)]

    def checked_shape(self, reader: Any) -> Shape:
        if any(first != 0 for first in self.family.firsts):
            raise LanguageError(f"{self.family.name} has a range of indices: see `affine_member`")
        reader.tensor(self.family)
        for index, count in zip(self.indices, self.family.counts, strict=True):
            reader.size(count)
            reader.index(index, count, self.family.name)
        return self.family.shape

    def text(self, printer: TextPrinter) -> Piece:
        return f"{self.family.name}[{', '.join(map(printer.whole, self.indices))}]", ATOM

    def tex(self, printer: TexPrinter, transposed: bool = False) -> str:
        shown = [
            printer.index(index) if first == 0 else str(printer._print(index))
            for index, first in zip(self.indices, self.family.firsts, strict=True)
        ]
        above = ",".join(shown) + r"\,\top" * transposed
        return rf"{typeset_name(self.family.name)}^{{{above}}}"


def counted_from_zero(name: str, index: Any, *range_: Any) -> tuple[Any, Any]:
    """Return an index and its count, also of SymPy's range (h, 0, H - 1), both ends included.

    Raises: ShapeError for a range that does not begin with 0.
    """
    if len(range_) == 1:
        return index, range_[0]
    first, last = map(sympy.sympify, range_)
    if first == 0:
        return index, last + 1
    raise ShapeError(
        f"{name} was given SymPy's range ({index}, {first}, {last}), both ends included; {name}"
        f" counts from 0: write ({index}, {last}) for {index} = 0 … {last - 1}, all {last} of them"
        if first == 1
        else f"{name} was given SymPy's range ({index}, {first}, {last}), both ends included, which"
        f" begins with {first}; {name} counts from 0: write ({index}, {last - first + 1}), with"
        f" {index + first} for {index} in the body"
    )


class _OverHeads(Declared):
    """A matrix built from one body for each value of an index that it binds."""

    @staticmethod
    def limit_places(arguments: int) -> range:
        return range(1, arguments)

    def __new__(cls, body: MatrixExpr, *limits: tuple[sympy.Symbol, Any]) -> _OverHeads:
        if not limits:
            raise ShapeError(f"{cls.__name__} needs its limits, as in (h, H)")
        for limit in limits:
            if not isinstance(limit, tuple | list | Tuple) or len(limit) not in (2, 3):
                raise ShapeError(
                    f"{cls.__name__} was given the limit {limit}: an index and how many values it "
                    "has are needed, as in (h, H), counted from 0"
                )
        counted = [counted_from_zero(cls.__name__, *limit) for limit in limits]
        return MatrixExpr.__new__(cls, body, *[Tuple(*limit) for limit in counted])

    body = argument_at(0)

    @property
    def shape(self) -> Shape:
        return self._of_body(*self.body.shape)

    @property
    def limits(self) -> tuple[tuple[sympy.Symbol, sympy.Expr], ...]:
        """The pairs (index, number of values), the outermost index first."""
        return tuple((limit[0], limit[1]) for limit in self.args[1:])

    @property
    def free_symbols(self) -> set[Basic]:
        counts: set[Basic] = set().union(*[count.free_symbols for _, count in self.limits])
        return (self.body.free_symbols - {index for index, _ in self.limits}) | counts

    def checked_shape(self, reader: Any) -> Shape:
        outside = reader.bound
        for index, count in self.limits:
            if not isinstance(index, sympy.Symbol):
                raise LanguageError(f"{type(self).__name__} sums over {index}: a Symbol is needed")
            reader.size(count)  # within the limits before it
            reader.bound = {**reader.bound, reader.symbol(index): count}
        rows, cols = reader.matrix(self.body, "sum over heads")
        reader.bound = outside
        return self._of_body(rows, cols)

    def _of_body(self, rows: Any, cols: Any) -> Shape:
        """Return the shape, from that of the body."""
        raise NotImplementedError

    def _in_line(self, mark: str, printer: TextPrinter) -> Piece:
        ranges = ", ".join(f"{index}<{printer.whole(count)}" for index, count in self.limits)
        return f"[{printer.whole(self.body)} {mark} {ranges}]", ATOM

    def _in_tex_matrix(self, between: str, printer: TexPrinter) -> str:
        # A symbol for the last index: SymPy would refuse the entry beyond the last one.
        ends = [
            printer._print(substituted(self.body, {i: sympy.Symbol(at(n)) for i, n in self.limits}))
            for at in (lambda _: "1", str)
        ]
        return rf"\begin{{bmatrix}} {ends[0]} {between} {ends[1]} \end{{bmatrix}}"


class HeadSum(_OverHeads):
    """The sum of `body` over one index or several, as in `HeadSum(A[l, h], (l, L), (h, H))`."""

    extends_right = True

    def _of_body(self, rows: Any, cols: Any) -> Shape:
        return rows, cols

    def text(self, printer: TextPrinter) -> Piece:
        orders = {e.order for e in self.body.atoms(MatrixExpr) if hasattr(e, "order")}
        signs = " ".join(
            f"Σ_{index}≤{printer.compact(count - 1)}"
            if offset(count) or index in orders
            else f"Σ_{index}"
            for index, count in self.limits
        )
        return f"{signs} {printer.inside(self.body, KRON)}", PRODUCT

    def tex(self, printer: TexPrinter) -> str:
        """Return the TeX, counted from 1 as in papers; an order is a number, and starts at 0."""
        orders = {e.order for e in self.body.atoms(MatrixExpr) if hasattr(e, "order")}
        ranges = [
            (i, 0, count - 1) if i in orders else (i, 1, count - offset(count, printer.from_1))
            for i, count in self.limits
        ]
        signs = " ".join(
            rf"\sum_{{{printer._print(i)}={first}}}^{{{printer._print(last)}}}"
            for i, first, last in ranges
        )
        with printer.counting_from_1(i for i, _ in self.limits if i not in orders):
            body = printer._print(self.body)
        body = rf"\left({body}\right)" if isinstance(self.body, sympy.MatAdd) else body
        return f"{signs} {body}"


class ConcatHeads(_OverHeads):
    """The matrices `body` side by side: columns (h, k) with the head h as the slow index."""

    def _of_body(self, rows: Any, cols: Any) -> Shape:
        return rows, Mul(*[count for _, count in self.limits], cols)

    def text(self, printer: TextPrinter) -> Piece:
        return self._in_line("…", printer)

    def tex(self, printer: TexPrinter) -> str:
        return self._in_tex_matrix(r"& \cdots &", printer)


class StackHeads(_OverHeads):
    """The matrices `body` one below the other: rows (h, k) with the head h as the slow index."""

    def _of_body(self, rows: Any, cols: Any) -> Shape:
        return Mul(*[count for _, count in self.limits], rows), cols

    def text(self, printer: TextPrinter) -> Piece:
        return self._in_line("⋮", printer)

    def tex(self, printer: TexPrinter) -> str:
        return self._in_tex_matrix(r"\\ \vdots \\", printer)


class _Vec(Declared):
    @property
    def shape(self) -> Shape:
        rows, cols = self.args[0].shape
        return rows * cols, sympy.S.One

    def checked_shape(self, reader: Any) -> Shape:
        return product_of(reader.unmultiplied(self.args[0], "vectorise")), sympy.S.One

    def tex(self, printer: TexPrinter) -> str:
        order = "r" if isinstance(self, vec_rows) else "c"
        return printer.applied(rf"\operatorname{{vec}}_{order}", self.args[0])


class vec_rows(_Vec):  # noqa: N801 (the name of the operation in the literature)
    """The rows of a matrix one after the other as one column: NumPy's `reshape(-1, 1)`."""


class vec_cols(_Vec):  # noqa: N801
    """The columns of a matrix one below the other: Magnus and Neudecker's vec, SymPy's `vec`."""


class OneHot(Declared):
    """The unit column of length n whose entry i is one."""

    index_places = slice(0, 1)

    def __new__(cls, index: Index, size: Any) -> OneHot:
        index, size = sympy.sympify(index), sympy.sympify(size)
        check_range(index, size, cls.__name__)
        return MatrixExpr.__new__(cls, index, size)

    @property
    def shape(self) -> Shape:
        return self.args[1], sympy.S.One

    def count_of(self, index: Any) -> Any:
        return self.args[1]

    def checked_shape(self, reader: Any) -> Shape:
        index, size = self.args
        reader.size(size)
        reader.index(index, size, "OneHot")
        return self.shape

    def text(self, printer: TextPrinter) -> Piece:
        return f"e_{printer.compact(self.args[0])}", ATOM

    def tex(self, printer: TexPrinter) -> str:
        return rf"e_{{{printer._print(self.args[0])}}}"


def matmul(*factors: Any) -> MatrixExpr:
    """Return the product as stated: nested products stay nested, nothing is combined."""
    return sympy.MatMul(*factors, evaluate=False)


def as_product(factors: Sequence[Any]) -> Any:
    """Return the product as stated; a single factor as it is."""
    return factors[0] if len(factors) == 1 else matmul(*factors)


def matadd(*terms: Any) -> MatrixExpr:
    """Return the sum as stated."""
    return sympy.MatAdd(*terms, evaluate=False)


def kron(*factors: Any) -> MatrixExpr:
    """Return the Kronecker product as stated; the left factor is the slow index."""
    return Basic.__new__(sympy.KroneckerProduct, *factors)
