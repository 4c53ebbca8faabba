"""Our SymPy classes: what transformer algebra needs and SymPy does not have.

    Family("W_O", (L, H), d_head, d_model)   one matrix for each layer and head; `W_O[l, h]` is one
    HeadSum(body, (h, H))                    the sum over heads h = 0 … H-1, H a number or a symbol
    ConcatHeads(body, (h, H))                [body_0 … body_{H-1}] side by side
    StackHeads(body, (h, H))                 the same, one below the other
    vec_rows(X), vec_cols(X)                 X as one column, row after row, or column after column
    OneHot(i, n)                             the i-th unit column of length n
    LayerProduct(body, (l, L))               body[L-1] … body[1] body[0], the later layer left
    OrderSum(body, (l, L), k)                the sum of body[l_k] … body[l_1] over l_1 < … < l_k

All of them state and none of them evaluates: `kron(I, I)` stays two factors. An index runs from 0,
and the layer of a family comes before the head.

>>> import sympy
>>> n, H = sympy.symbols("n H", integer=True, positive=True)
>>> h = sympy.Symbol("h", integer=True)
>>> A = Family("A", (H,), n, n)
>>> HeadSum(A[h], (h, H)).shape
(n, n)
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import sympy
from sympy import Basic, MatrixExpr, Tuple
from sympy.core.symbol import Str
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra.errors import ShapeError

Index = Any  # a SymPy Symbol or an integer


class _Stated(MatrixExpr):
    """A matrix expression that keeps what it was given."""

    def _entry(self, i: Any, j: Any, **_: Any) -> sympy.Expr:
        return MatrixElement(self, i, j)

    def doit(self, **_: Any) -> MatrixExpr:
        """Return itself: simplifying is a separate, named step."""
        return self

    def _latex(self, printer: Any) -> str:
        """Return the TeX, by SymPy's protocol: its own printer, as in a notebook, asks for it."""
        from algebra.latex import tex_within  # which knows this file

        return tex_within(self, printer)


class Family(Basic):
    """An indexed tensor symbol: one `rows × cols` matrix for each value of its indices.

    `counts` are the numbers of values of the indices, outermost first, as in `(n_layers, n_heads)`.
    `family[l, h]` is a matrix; each index is a Symbol (free, or bound by a sum) or an integer.
    Raises ShapeError when the number of indices is wrong or an integer index is out of range.
    """

    def __new__(cls, name: str, counts: Any, rows: Any, cols: Any) -> Family:
        counts = counts if isinstance(counts, tuple | list | Tuple) else (counts,)
        arguments = (Str(str(name)), Tuple(*counts), sympy.sympify(rows), sympy.sympify(cols))
        return Basic.__new__(cls, *arguments)

    @property
    def name(self) -> str:
        return str(self.args[0].name)

    @property
    def counts(self) -> tuple[sympy.Expr, ...]:
        return tuple(self.args[1])

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        """The shape of one member."""
        return self.args[2], self.args[3]

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> FamilyMember:
        return FamilyMember(self, *(indices if isinstance(indices, tuple) else (indices,)))


class FamilyMember(_Stated):
    """One matrix of a family, `family[indices]`."""

    def __new__(cls, family: Family, *indices: Index) -> FamilyMember:
        if len(indices) != len(family.counts):
            raise ShapeError(
                f"{family.name} has {len(family.counts)} indices and was given {len(indices)}: "
                f"write {family.name}[{', '.join('i' * len(family.counts))}]"
            )
        indices = tuple(sympy.sympify(i) for i in indices)
        for i, count in zip(indices, family.counts, strict=True):
            if i.is_Integer and (i < 0 or (count.is_Integer and i >= count)):
                raise ShapeError(
                    f"index {i} of {family.name} is out of range: it runs from 0 to {count - 1}"
                )
        return MatrixExpr.__new__(cls, family, *indices)

    @property
    def family(self) -> Family:
        return self.args[0]

    @property
    def indices(self) -> tuple[sympy.Expr, ...]:
        return tuple(self.args[1:])

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.family.shape


class _OverHeads(_Stated):
    """A matrix built from one body for each value of an index that it binds."""

    def __new__(cls, body: MatrixExpr, *limits: tuple[sympy.Symbol, Any]) -> _OverHeads:
        if not limits:
            raise ShapeError(f"{cls.__name__} needs its limits, as in (h, H)")
        return MatrixExpr.__new__(cls, body, *[Tuple(*limit) for limit in limits])

    @property
    def body(self) -> MatrixExpr:
        return self.args[0]

    @property
    def limits(self) -> tuple[tuple[sympy.Symbol, sympy.Expr], ...]:
        """The pairs (index, number of values), the outermost index first."""
        return tuple((limit[0], limit[1]) for limit in self.args[1:])

    @property
    def free_symbols(self) -> set[Basic]:
        counts: set[Basic] = set().union(*[count.free_symbols for _, count in self.limits])
        return (self.body.free_symbols - {index for index, _ in self.limits}) | counts


class HeadSum(_OverHeads):
    """The sum of `body` over one index or several, as in `HeadSum(A[l, h], (l, L), (h, H))`."""

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.body.shape


class ConcatHeads(_OverHeads):
    """The matrices `body` side by side: columns (h, k) with the head h as the slow index."""

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        rows, cols = self.body.shape
        return rows, sympy.Mul(*[count for _, count in self.limits], cols)


class StackHeads(_OverHeads):
    """The matrices `body` one below the other: rows (h, k) with the head h as the slow index."""

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        rows, cols = self.body.shape
        return sympy.Mul(*[count for _, count in self.limits], rows), cols


class _Vec(_Stated):
    def __new__(cls, matrix: MatrixExpr) -> _Vec:
        return MatrixExpr.__new__(cls, matrix)

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        rows, cols = self.args[0].shape
        return rows * cols, sympy.S.One


class vec_rows(_Vec):  # noqa: N801 (the name of the operation in the literature)
    """The rows of a matrix one after the other as one column: NumPy's `reshape(-1, 1)`."""


class vec_cols(_Vec):  # noqa: N801
    """The columns of a matrix one below the other: Magnus and Neudecker's vec, SymPy's `vec`."""


class OneHot(_Stated):
    """The unit column of length n whose entry i is one."""

    def __new__(cls, index: Index, size: Any) -> OneHot:
        index, size = sympy.sympify(index), sympy.sympify(size)
        if index.is_Integer and (index < 0 or (size.is_Integer and index >= size)):
            raise ShapeError(f"OneHot({index}, {size}) is out of range: 0 to {size - 1} is asked")
        return MatrixExpr.__new__(cls, index, size)

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.args[1], sympy.S.One


def key(symbol: sympy.Symbol) -> str:
    """Return the name that stands for a symbol; dummies of one name are told apart."""
    if isinstance(symbol, sympy.Dummy):
        return f"{symbol.name}~{symbol.dummy_index}"
    return str(symbol.name)


class _OverLayers(_Stated):
    """A matrix built from one body for each layer; the arguments begin with body and limit."""

    @staticmethod
    def checked(name: str, body: MatrixExpr, limit: Any) -> Tuple:
        """Return the limit (index, count), or refuse what is no layer."""
        if not isinstance(limit, tuple | list | Tuple) or len(limit) != 2:
            raise ShapeError(f"{name} needs one index and its count, as in (l, L): {limit}")
        index, count = map(sympy.sympify, limit)
        if not isinstance(index, sympy.Symbol) or (count.is_Integer and count < 0):
            raise ShapeError(
                f"{name} was given ({index}, {count}): a Symbol and how many layers there "
                "are, 0 or more, as in (l, L)"
            )
        if not getattr(body, "is_Matrix", False):
            raise ShapeError(f"{name} multiplies matrices, not {type(body).__name__}")
        return Tuple(index, count)

    @property
    def body(self) -> MatrixExpr:
        return self.args[0]

    @property
    def index(self) -> sympy.Symbol:
        return self.args[1][0]

    @property
    def count(self) -> sympy.Expr:
        return self.args[1][1]

    @property
    def reverse(self) -> bool:
        """Whether the later layer stands on the right."""
        return bool(self.args[-1])

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.body.shape

    @property
    def free_symbols(self) -> set[Basic]:
        inside = self.body.free_symbols - {self.index}
        return inside.union(*[part.free_symbols for part in (self.count, *self.args[2:-1])])

    def layer(self, number: int) -> MatrixExpr:
        """Return one layer, counted from 0."""
        from algebra.binders import substituted  # which knows this file

        return substituted(self.body, {self.index: number})


class LayerProduct(_OverLayers):
    """The ordered product over layers, body[L-1] · … · body[1] · body[0].

    The later layer stands on the left, as weights act on a column. With `reverse=True` it stands on
    the right, body[0] · body[1] · … · body[L-1], as they act on a row. L is a number or a symbol.

    >>> import sympy
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
        limits = cls.checked(cls.__name__, body, limit)
        return MatrixExpr.__new__(cls, body, limits, sympy.sympify(bool(reverse)))

    def factors(self) -> tuple[MatrixExpr, ...]:
        """Return the layers from left to right; the number of layers must be an integer."""
        if not self.count.is_Integer:
            raise ShapeError(
                f"a LayerProduct over {self.count} layers was asked for its factors: put a number "
                f"for {self.count}"
            )
        if self.index not in self.body.free_symbols:
            return (self.body,) * int(self.count)
        layers = range(int(self.count))
        order = layers if self.reverse else reversed(layers)
        return tuple(self.layer(k) for k in order)


class OrderSum(_OverLayers):
    """The sum of body[l_k] · … · body[l_1] over all choices of k layers, l_1 < … < l_k.

    These are the paths of order k through L layers `Identity + body[l]`, taken together: for k = 0
    the identity, for k > L nothing. `reverse=True` puts the later layer on the right.

    >>> import sympy
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
        limits = cls.checked(cls.__name__, body, limit)
        order = sympy.sympify(order)
        if order.is_Integer and order < 0:
            raise ShapeError(f"OrderSum was given order {order}: 0 or more is needed")
        return MatrixExpr.__new__(cls, body, limits, order, sympy.sympify(bool(reverse)))

    @property
    def order(self) -> sympy.Expr:
        return self.args[2]

    def products(self) -> list[MatrixExpr]:
        """Return the products of layers that are added; count and order must be integers."""
        if not (self.count.is_Integer and self.order.is_Integer):
            raise ShapeError(
                f"an OrderSum of order {self.order} over {self.count} layers was asked for its "
                "terms: put numbers for both"
            )
        chosen = combinations(range(int(self.count)), int(self.order))
        found = []
        for layers in chosen:
            order = layers if self.reverse else reversed(layers)
            factors = [self.layer(k) for k in order]
            found.append(matmul(*factors) if factors else sympy.Identity(self.shape[0]))
        return found


def matmul(*factors: Any) -> MatrixExpr:
    """Return the product as stated: nested products stay nested, nothing is combined."""
    return sympy.MatMul(*factors, evaluate=False)


def matadd(*terms: Any) -> MatrixExpr:
    """Return the sum as stated."""
    return sympy.MatAdd(*terms, evaluate=False)


def kron(*factors: Any) -> MatrixExpr:
    """Return the Kronecker product as stated; the left factor is the slow index."""
    return Basic.__new__(sympy.KroneckerProduct, *factors)


def rebuilt(e: Any, arguments: Iterable[Any]) -> Any:
    """Return a node of the same kind with other arguments, as stated: nothing is evaluated."""
    kind = type(e)
    if kind in _EVALUATING:
        return kind(*arguments, evaluate=False)
    if kind is sympy.KroneckerProduct:
        return kron(*arguments)
    if kind is sympy.BlockMatrix:
        return kind(*[table.tolist() for table in arguments])
    if kind in (MatrixElement, sympy.Sum):
        return stated(kind, *arguments)
    return kind(*arguments)


def stated(kind: type, *arguments: Any) -> Any:
    """Return an entry or a sum over indices that keeps its arguments.

    SymPy's constructors merge a sum of a sum and take the entries of explicit matrices.
    """
    made = sympy.Expr.__new__(kind, *arguments)
    if kind is sympy.Sum:
        made.is_commutative = True
    return made


_EVALUATING = (sympy.Add, sympy.Mul, sympy.Pow, sympy.MatMul, sympy.MatAdd, sympy.MatPow)
