"""Products and sums of products over layers, as SymPy classes.

LayerProduct(body, (l, L))               body[L-1] … body[1] body[0], the later layer left
OrderSum(body, (l, L), k)                the sum of body[l_k] … body[l_1] over l_1 < … < l_k
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import sympy
from sympy import Basic, MatrixExpr, Tuple

from otimes.algebra.errors import ShapeError
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.declared import Declared, argument_at
from otimes.algebra.language.latex import TexPrinter
from otimes.algebra.language.linear import counted_from_zero, matmul
from otimes.algebra.language.unicode import ATOM, PRODUCT, Piece, TextPrinter


class _OverLayers(Declared):
    """The base of `LayerProduct` and `OrderSum`; the first arguments are body and limit."""

    @staticmethod
    def limit_places(arguments: int) -> tuple[int]:
        return (1,)

    @staticmethod
    def limit(name: str, body: MatrixExpr, limit: Any) -> Tuple:
        """Return the limit (index, count), or raise ShapeError."""
        if not isinstance(limit, tuple | list | Tuple) or len(limit) not in (2, 3):
            raise ShapeError(f"{name} needs one index and its count, as in (l, L): {limit}")
        index, count = map(sympy.sympify, counted_from_zero(name, *limit))
        if not isinstance(index, sympy.Symbol) or (count.is_Integer and count < 0):
            raise ShapeError(
                f"{name} was given ({index}, {count}): a Symbol and how many layers there "
                "are, 0 or more, as in (l, L)"
            )
        if not getattr(body, "is_Matrix", False):
            raise ShapeError(f"{name} multiplies matrices, not {type(body).__name__}")
        return Tuple(index, count)

    body = argument_at(0)

    @property
    def index(self) -> sympy.Symbol:
        return self.args[1][0]

    @property
    def count(self) -> sympy.Expr:
        return self.args[1][1]

    @property
    def reverse(self) -> bool:
        """Whether the later layer is on the right."""
        return bool(self.args[-1])

    @property
    def free_symbols(self) -> set[Basic]:
        inside = self.body.free_symbols - {self.index}
        return inside.union(*[part.free_symbols for part in (self.count, *self.args[2:-1])])

    def checked_shape(self, reader: Any) -> tuple[Any, Any]:
        outside = reader.bound
        count = reader.number_of_layers(self.count)
        reader.bound = {**outside, reader.symbol(self.index): count}
        shape: tuple[Any, Any] = reader.matrix(self.body, "multiply over layers")
        reader.bound = outside
        reader.square(shape, self.body, "multiply over layers")
        return shape

    def _last(self, printer: TexPrinter) -> Any:
        """Return the number of the last layer, counted from 1; a count l (an index) gives l - 1."""
        return self.count - 1 if self.count in printer.from_1 else self.count

    @property
    def _arrow(self) -> str:
        """An arrow towards the later layers."""
        return "→" if self.reverse else "←"

    def layer(self, number: int) -> MatrixExpr:
        """Return one layer, counted from 0."""
        return substituted(self.body, {self.index: number})


class LayerProduct(_OverLayers):
    """The ordered product over layers, body[L-1] · … · body[1] · body[0].

    The later layer stands on the left, as weights act on a column. With `reverse=True` it stands on
    the right, body[0] · body[1] · … · body[L-1], as they act on a row. L is a number or a symbol.

    >>> from otimes.algebra.language.linear import Family
    >>> n, L = sympy.symbols("n L", integer=True, positive=True)
    >>> l = sympy.Symbol("l", integer=True)
    >>> W = Family("W", (L,), n, n)
    >>> LayerProduct(sympy.Identity(n) + W[l], (l, L)).shape
    (n, n)
    >>> [factor.indices for factor in LayerProduct(W[l], (l, 3)).factors()]
    [(2,), (1,), (0,)]
    """

    def __new__(
        cls, body: MatrixExpr, limit: tuple[sympy.Symbol, Any], reverse: Any = False
    ) -> LayerProduct:
        limits = cls.limit(cls.__name__, body, limit)
        return MatrixExpr.__new__(cls, body, limits, sympy.sympify(bool(reverse)))

    def factors(self) -> tuple[MatrixExpr, ...]:
        """Return the layers from left to right; the number of layers must be an integer."""
        if not self.count.is_Integer:
            raise ShapeError(
                f"a LayerProduct over {self.count} layers was asked for its factors: put a number "
                f"for {self.count}"
            )
        layers = tuple(self.layer(k) for k in range(int(self.count)))
        return layers if self.reverse else layers[::-1]

    @property
    def extends_right(self) -> bool:
        """Whether the layers differ, so that it is printed as a product and not as a power."""
        return self.index in self.body.free_symbols

    def text(self, printer: TextPrinter) -> Piece:
        body = printer.inside(self.body, ATOM)
        if not self.extends_right:
            return f"{body}^{printer.compact(self.count)}", ATOM
        return f"∏{self._arrow}_{self.index}<{printer.compact(self.count)} {body}", PRODUCT

    def tex(self, printer: TexPrinter) -> str:
        """Return the TeX; the limits are in the order of the layers from left to right."""
        last = printer._print(self._last(printer))
        if not self.extends_right:
            body = printer._print(self.body)
            if not isinstance(self.body, sympy.MatrixSymbol):
                body = rf"\left({body}\right)"
            return rf"{body}^{{{last}}}"
        first, last = ("1", last) if self.reverse else (last, "1")
        signs = rf"\prod_{{{printer._print(self.index)}={first}}}^{{{last}}}"
        return f"{signs} {printer.bracket(self.body)}"


class OrderSum(_OverLayers):
    """The sum of body[l_k] · … · body[l_1] over all choices of k layers, l_1 < … < l_k.

    These are the paths of order k through L layers `Identity + body[l]`, taken together: for k = 0
    the identity, for k > L nothing. `reverse=True` puts the later layer on the right.

    >>> from otimes.algebra.language.linear import Family
    >>> n, L, k = sympy.symbols("n L k", integer=True, positive=True)
    >>> l = sympy.Symbol("l", integer=True)
    >>> W = Family("W", (L,), n, n)
    >>> OrderSum(W[l], (l, L), k).shape
    (n, n)
    >>> len(OrderSum(W[l], (l, 4), 2).products())
    6
    """

    def __new__(
        cls, body: MatrixExpr, limit: tuple[sympy.Symbol, Any], order: Any, reverse: Any = False
    ) -> OrderSum:
        limits = cls.limit(cls.__name__, body, limit)
        order = sympy.sympify(order)
        if order.is_Integer and order < 0:
            raise ShapeError(f"OrderSum was given order {order}: 0 or more is needed")
        return MatrixExpr.__new__(cls, body, limits, order, sympy.sympify(bool(reverse)))

    order = argument_at(2)

    def products(self) -> list[MatrixExpr]:
        """Return the terms, products of layers; count and order must be integers."""
        if not (self.count.is_Integer and self.order.is_Integer):
            raise ShapeError(
                f"an OrderSum of order {self.order} over {self.count} layers was asked for its "
                "terms: put numbers for both"
            )
        layers = [self.layer(k) for k in range(int(self.count))]
        if not self.order:
            return [sympy.Identity(self.shape[0])]
        chosen = combinations(layers, int(self.order))
        return [matmul(*(factors if self.reverse else factors[::-1])) for factors in chosen]

    extends_right = True

    def checked_shape(self, reader: Any) -> tuple[Any, Any]:
        shape = super().checked_shape(reader)
        reader.number_chosen(self.order)
        return shape

    def text(self, printer: TextPrinter) -> Piece:
        limits = f"{self.index}<{printer.compact(self.count)}^({printer.whole(self.order)})"
        return f"Σ{self._arrow}_{limits} {printer.inside(self.body, ATOM)}", PRODUCT

    def tex(self, printer: TexPrinter) -> str:
        index, last, order = map(printer._print, (self.index, self._last(printer), self.order))
        chosen = rf"{index}_{{1}} < \cdots < {index}_{{{order}}} \leq {last}"
        members = [
            printer.bracket(
                substituted(self.body, {self.index: sympy.Symbol(f"{self.index}_{at}")})
            )
            for at in ((1, order) if self.reverse else (order, 1))
        ]
        return rf"\sum_{{{chosen}}} {members[0]} \cdots {members[1]}"
