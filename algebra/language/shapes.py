"""The first pass over an expression, which checks that it is supported and that its shapes match.

SymPy does not compare symbolic shapes (`C*C` with C n×m is accepted) and accepts two symbols with
one name, so every expression passes this check before it is read. The pass returns everything that
can vary in the expression. It raises ShapeError at the first pair of shapes that do not match, and
LanguageError with every class of expressions that is not supported.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from math import lcm
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.matrices.expressions.special import GenericIdentity, GenericZeroMatrix

from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.language.affine import AffineMember, never_negative
from otimes.algebra.language.assumptions import check_index, declared
from otimes.algebra.language.constants import PI
from otimes.algebra.language.declared import Declared
from otimes.algebra.language.linear import Family
from otimes.algebra.language.nonlinear import CAUSAL_MASK
from otimes.algebra.language.positions import POSITIONAL
from otimes.algebra.language.shape_messages import (
    Shape,
    bad_product,
    full_shape,
    no_range,
    not_in_language,
    place,
    show_shape,
)
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.sizes import (
    check_range,
    normal_size,
    product_of,
    same_product,
    same_size,
    whole,
)
from otimes.algebra.language.trees import key, parts_of
from otimes.algebra.language.unicode import short_text

SCALAR: Shape | None = None  # the shape of a scalar
_UNKNOWN = object()
HIGHEST_ROOT = 1_000  # trial values of a symbol under a root are powers of at most this degree


def inspect(*expressions: sympy.Basic) -> Signature:
    """Return the signature of expressions that are used together. Raises: see the module."""
    return inspect_shapes(*expressions)[0]


def inspect_shapes(*expressions: sympy.Basic) -> tuple[Signature, list[Shape | None]]:
    """Return the signature of expressions that are used together, and the shape of each.

    The shapes are for comparison and messages: a size may be a tuple of factors.
    """
    reader = _Reader()
    reader.expressions = expressions
    try:
        shapes = [reader.shape(expression) for expression in expressions]
    except LanguageError:
        missing = _unsupported(expressions)
        if len(missing) > 1:
            raise LanguageError("; ".join(missing)) from None
        raise
    return reader.finish(), shapes


def shape_of(expression: sympy.Basic) -> Shape | None:
    """Return the shape of an expression, or None for a scalar. Raises as `inspect` does."""
    shape = _Reader().shape(expression)
    return shape and (whole(shape[0]), whole(shape[1]))


def with_ranges(expression: sympy.Basic, signature: Signature) -> sympy.Basic:
    """Return the expression with an explicit range in every Kronecker delta."""
    return expression.xreplace(signature.deltas) if signature.deltas else expression


def same_shape(a: Shape | None, b: Shape | None) -> bool:
    """Return whether two shapes are equal, as polynomials in their sizes."""
    if a is None or b is None:
        return a is b
    return same_product(a[0], b[0]) and same_product(a[1], b[1])


class _Reader:
    """A traversal of the trees that computes shapes and registers names."""

    def __init__(self) -> None:
        self.signature = Signature()
        self.symbols: dict[str, sympy.Symbol] = {}
        self.known: dict[Any, Any] = {}
        self.bound: dict[sympy.Symbol, Any] = {}  # indices of the enclosing sums, with their counts
        self.expressions: Sequence[Any] = ()  # that are read together
        self.open_deltas: list[sympy.KroneckerDelta] = []  # deltas whose range is not known yet

    def finish(self) -> Signature:
        s = self.signature
        while self.open_deltas:
            known = [e for e in self.open_deltas if self.range_of_delta(e) is not None]
            if not known:
                raise LanguageError(no_range(self.open_deltas[0]))
            self.open_deltas = [e for e in self.open_deltas if e not in known]
            for e in known:
                self.delta(e)
        for name in sorted((s.sizes.keys() | s.scalars.keys()) & s.indices.keys()):
            raise LanguageError(
                f"{name} is used both as an index and as a number or size, which the language does "
                "not have: rename one of them"
            )
        for name in sorted(
            s.tensors.keys() & (s.sizes.keys() | s.indices.keys() | s.scalars.keys())
        ):
            raise LanguageError(
                f"{name} names both a matrix and a scalar, index or size: rename one of them"
            )
        for name in s.sizes:
            s.scalars.pop(name, None)
        for symbol, _ in s.indices.values():
            check_index(symbol)
        s.assumptions = declared(s.scalars, s.sizes, s.roots)
        return s

    def shape(self, e: Any) -> Shape | None:
        if self.bound:  # a cache would skip registration under other bound indices
            return self.read(e)
        shape = self.known.get(e, _UNKNOWN)
        if shape is _UNKNOWN:
            shape = self.known[e] = self.read(e)
        return shape

    def read(self, e: Any) -> Shape | None:
        read = _READERS.get(type(e))
        if read is not None:
            return read(self, e)
        if isinstance(e, Declared | Family):
            shape: Shape = e.checked_shape(self)
            return shape
        if isinstance(e, sympy.Expr) and not getattr(e, "is_Matrix", False):
            self.scalar_atom(e)
            return SCALAR
        raise LanguageError(not_in_language(e))

    # -- names ---------------------------------------------------------------------------------

    def symbol(self, symbol: sympy.Symbol) -> sympy.Symbol:
        if symbol.name.startswith("#") or "@" in symbol.name or "~" in symbol.name:
            raise LanguageError(
                f"the symbol {symbol.name} cannot be used: names with @ or ~, or that begin with "
                "#, are reserved"
            )
        known = self.symbols.setdefault(key(symbol), symbol)
        if known != symbol:
            raise LanguageError(
                f"two different symbols are called {symbol.name} (other assumptions): use one"
            )
        return symbol

    def size(self, dimension: sympy.Expr) -> None:
        if isinstance(dimension, sympy.Integer):
            self.signature.largest = max(self.signature.largest, dimension.p)
            return
        symbols: Collection[sympy.Symbol] = (dimension,)
        if not isinstance(dimension, sympy.Symbol):
            normal_size(dimension)
            self.signature.dimensions.add(dimension)
            symbols = sorted(dimension.free_symbols, key=str)
        for symbol in symbols:
            if symbol in self.bound:
                raise LanguageError(
                    f"the size {dimension} depends on the index {symbol} that a sum runs over, "
                    "which is not supported"
                )
            if self.signature.sizes.get(key(symbol)) is not symbol:
                self.signature.sizes[key(symbol)] = self.symbol(symbol)

    def tensor(self, tensor: sympy.MatrixSymbol | Family) -> None:
        name = tensor.name
        known = self.signature.tensors.get(name)
        if known is tensor or known == tensor:
            return
        if name.startswith((CAUSAL_MASK, POSITIONAL)):
            raise LanguageError(f"{name!r} is a name of a constant matrix: rename the symbol")
        if known is not None:
            raise ShapeError(
                f"{name} occurs with two shapes, {full_shape(known)} and "
                f"{full_shape(tensor)}: rename one of them"
            )
        self.signature.tensors[name] = tensor
        for dimension in tensor.shape:
            self.size(dimension)

    def index(self, index: Any, count: sympy.Expr, owner: object) -> None:
        if isinstance(index, sympy.Integer):
            check_range(index, count, short_text(owner))
            largest = self.signature.fixed.get(count, 0)
            self.signature.fixed[count] = max(largest, int(index))
            return
        if not isinstance(index, sympy.Symbol):
            raise LanguageError(
                f"the index {short_text(index)} of {short_text(owner)} is not in the language: "
                "a symbol or an integer is"
            )
        known = self.bound.get(index)
        if known is None:
            known = self.signature.indices.setdefault(key(index), (self.symbol(index), count))[1]
        if known == 0:  # an empty range: the member is never evaluated
            return
        if not same_size(known, count):
            raise ShapeError(
                f"index {index} of {short_text(owner)} runs over {count} values, but over "
                f"{known} elsewhere"
            )

    # -- scalars -------------------------------------------------------------------------------

    def scalar_atom(self, e: sympy.Expr) -> None:
        if isinstance(e, sympy.Symbol):
            if e in self.bound:
                raise LanguageError(f"the index {e} is used as a number, not in the language")
            self.signature.scalars[key(e)] = self.symbol(e)
        elif isinstance(e, sympy.Pow):
            for argument in e.args:
                if self.shape(argument) is not None:
                    raise ShapeError(f"a matrix is used as a number in {short_text(e)}")
            if isinstance(e.exp, sympy.Rational) and not isinstance(e.exp, sympy.Integer):
                roots = self.signature.roots
                for symbol in e.base.free_symbols - {PI}:
                    degree = lcm(roots.get(key(symbol), 1), int(e.exp.q))
                    if degree > HIGHEST_ROOT:
                        raise LanguageError(
                            f"{symbol} stands under roots of degree {degree} in all, and the "
                            f"language has them up to {HIGHEST_ROOT}: name the root by a symbol"
                        )
                    roots[key(symbol)] = degree
        elif e is sympy.pi:
            self.signature.scalars[key(PI)] = PI
        elif not isinstance(e, sympy.Rational):
            if isinstance(e, sympy.Float):
                raise LanguageError(
                    f"{e} is a floating-point number: write it exactly, as sympy.Rational"
                )
            raise LanguageError(not_in_language(e))

    def plain(self, e: sympy.Expr) -> Shape | None:
        """Return the shape of a sum or product; unevaluated Add and Mul may contain matrices."""
        shapes = [self.shape(a) for a in e.args]
        if all(shape is None for shape in shapes):
            return None
        if isinstance(e, sympy.Add):
            return self.same(e.args, shapes, "add", e)
        return self.factors(e.args, shapes, e)

    # -- operations ----------------------------------------------------------------------------

    def matrix_symbol(self, e: sympy.MatrixSymbol) -> Shape:
        self.tensor(e)
        return e.shape

    def special(self, e: Any) -> Shape:
        if isinstance(e, GenericIdentity | GenericZeroMatrix):
            raise LanguageError(
                f"{type(e).__name__} has no size: use Identity(n), ZeroMatrix(n, m)"
            )
        for dimension in e.shape:
            self.size(dimension)
        return e.shape

    def same(
        self, args: Sequence[Any], shapes: Sequence[Shape | None], verb: str, around: Any
    ) -> Shape | None:
        """Return the common shape of all arguments. Raises ShapeError if they differ."""
        x = shapes[0]
        for term, y in zip(args, shapes, strict=True):
            if not same_shape(x, y):
                swapped = x is not None and y is not None and same_shape(x, (y[1], y[0]))
                a, b = short_text(args[0]), short_text(term)
                correction = f"; did you mean Transpose({b})?" if swapped else ""
                raise ShapeError(
                    f"cannot {verb} {a} ({show_shape(x)}) and {b} ({show_shape(y)}): the shapes "
                    f"differ{correction}{place(around)}"
                )
        return x

    def factors(self, args: Any, shapes: list[Shape | None], e: sympy.Expr) -> Shape | None:
        result: Shape | None = None
        last: tuple[Any, Shape] = (None, (sympy.S.One, sympy.S.One))
        for factor, shape in zip(args, shapes, strict=True):
            if shape is None:
                continue
            if result is None:
                result = shape
            elif same_product(result[1], shape[0]):
                result = (result[0], shape[1])
            else:
                raise ShapeError(bad_product(*last, factor, shape, e))
            last = (factor, shape)
        return result

    def power(self, e: sympy.MatPow) -> Shape | None:
        base = self.shape(e.base)
        self.square(base, e.base, "raise to a power" if e.exp != -1 else "invert")
        if not isinstance(e.exp, sympy.Integer):
            raise LanguageError(
                f"the power {short_text(e.exp)} of a matrix is not in the language, in "
                f"{short_text(e)}"
            )
        return base

    def square(self, shape: Shape | None, e: Any, verb: str) -> None:
        if shape is None or not same_product(*shape):
            raise ShapeError(
                f"cannot {verb} {short_text(e)} ({show_shape(shape)}): a square matrix is needed"
            )

    def transpose(self, e: sympy.Transpose) -> Shape:
        rows, cols = self.unmultiplied(e.args[0], "transpose")
        return cols, rows

    def matrix(self, e: Any, verb: str) -> Shape:
        rows, cols = self.unmultiplied(e, verb)
        return whole(rows), whole(cols)

    def unmultiplied(self, e: Any, verb: str) -> Shape:
        """Return the shape of a matrix; a size may still be a tuple of factors."""
        shape = self.shape(e)
        if shape is None:
            raise ShapeError(f"cannot {verb} {short_text(e)}: it is a scalar, a matrix is needed")
        return shape

    def kron(self, e: sympy.KroneckerProduct) -> Shape:
        verb = "take the Kronecker product with"
        shapes = [self.unmultiplied(factor, verb) for factor in e.args]
        return product_of([rows for rows, _ in shapes]), product_of([cols for _, cols in shapes])

    def hadamard(self, e: sympy.HadamardProduct) -> Shape | None:
        shapes = [self.unmultiplied(a, "multiply elementwise by") for a in e.args]
        return self.same(e.args, shapes, "multiply elementwise", e)

    def trace(self, e: sympy.Trace) -> None:
        self.square(self.shape(e.args[0]), e.args[0], "take the trace of")

    def element(self, e: MatrixElement) -> None:
        rows, cols = self.matrix(e.args[0], "take an entry of")
        self.index(e.args[1], rows, e.args[0])
        self.index(e.args[2], cols, e.args[0])

    def delta(self, e: sympy.KroneckerDelta) -> None:
        """Read a Kronecker delta; its range is explicit, or that of another use of its indices."""
        if len(e.args) > 2 and e.args[2][0] != 0:
            raise LanguageError(no_range(e))
        count = self.range_of_delta(e)
        if count is None:
            self.open_deltas.append(e)
            return
        self.size(count)
        for index in e.args[:2]:
            self.index(index, count, "KroneckerDelta")
        if len(e.args) == 2:
            ranged = sympy.KroneckerDelta(*e.args, (0, count - 1))
            if self.signature.deltas.setdefault(e, ranged) != ranged:
                raise LanguageError(
                    f"the indices of {short_text(e)} run over {count} values, but elsewhere over "
                    f"{self.signature.deltas[e].args[2][1] + 1}: rename them in one place"
                )

    def range_of_delta(self, e: sympy.KroneckerDelta) -> sympy.Expr | None:
        if len(e.args) > 2:
            return normal_size(e.args[2][1] + 1)
        bound = [self.bound[index] for index in e.args if index in self.bound]
        free = [self.signature.indices.get(key(index)) for index in e.args if index.is_Symbol]
        return next(iter([*bound, *[known[1] for known in free if known is not None]]), None)

    def index_sum(self, e: sympy.Sum) -> None:
        """Read a sum over full ranges of indices; a count is the upper limit plus one."""
        if not e.limits:
            raise LanguageError(f"the sum of {short_text(e.function)} runs over no index")
        outside = self.bound
        for limit in reversed(e.limits):
            if len(limit) != 3 or limit[1] != 0 or not isinstance(limit[0], sympy.Symbol):
                raise LanguageError(
                    f"{short_text(e)} does not run over a full range: write the limits as "
                    "(k, 0, n - 1)"
                )
            index, _, last = limit
            count = normal_size(last + 1)
            self.size(count)  # within the limits before it
            self.bound = {**self.bound, self.symbol(index): count}
        if self.shape(e.function) is not None:
            raise ShapeError(f"{short_text(e)} sums matrices: use HeadSum for that")
        self.bound = outside

    def diag_matrix(self, e: DiagMatrix) -> Shape:
        rows, cols = self.matrix(e.args[0], "make a diagonal matrix of")
        if cols != 1 and rows != 1:
            raise ShapeError(
                f"cannot make a diagonal matrix of {short_text(e.args[0])} "
                f"({show_shape((rows, cols))}): a column or a row is needed"
            )
        size = rows if cols == 1 else cols
        return size, size

    def diagonal(self, e: DiagonalOf | DiagonalMatrix) -> Shape:
        rows, cols = self.matrix(e.args[0], "take the diagonal of")
        self.square((rows, cols), e.args[0], "take the diagonal of")
        return rows, sympy.S.One if isinstance(e, DiagonalOf) else cols

    def hadamard_power(self, e: sympy.HadamardPower) -> Shape:
        shape = self.matrix(e.args[0], "raise the entries of")
        if not isinstance(e.args[1], sympy.Rational) or e.args[1].q > 2:
            raise LanguageError(
                f"the elementwise power {short_text(e.args[1])} is not in the language, in "
                f"{short_text(e)}: exponents are whole numbers and halves of them"
            )
        if e.args[1] < 0 or e.args[1].q > 1:
            self.signature.folded = self.signature.partial = True
        return shape

    def explicit(self, e: sympy.ImmutableDenseMatrix) -> Shape:
        for entry in e:
            if self.shape(entry) is not None:
                raise ShapeError(f"an entry of the explicit matrix {short_text(e)} is a matrix")
        return sympy.Integer(e.rows), sympy.Integer(e.cols)

    def block_matrix(self, e: sympy.BlockMatrix) -> Shape:
        height, width = e.blockshape
        shapes = [
            [self.matrix(e.blocks[i, j], "take as a block") for j in range(width)]
            for i in range(height)
        ]
        for i, line in enumerate(shapes):
            for j, shape in enumerate(line):
                if not same_size(shape[0], line[0][0]) or not same_size(shape[1], shapes[0][j][1]):
                    raise ShapeError(
                        f"block ({i}, {j}) is {show_shape(shape)} and does not fit its row of "
                        f"height {line[0][0]} and its column of width {shapes[0][j][1]}{place(e)}"
                    )
        return sympy.Add(*[line[0][0] for line in shapes]), sympy.Add(*[s[1] for s in shapes[0]])

    def block_diagonal(self, e: sympy.BlockDiagMatrix) -> Shape:
        shapes = [self.matrix(block, "take as a block") for block in e.args]
        return sympy.Add(*[s[0] for s in shapes]), sympy.Add(*[s[1] for s in shapes])

    def number_of_layers(self, count: Any) -> Any:
        """Return the number of values of an index of layers that goes up to a count.

        In a product over the layers before layer l, the count is the index l, whose own range is
        returned.
        """
        if count in self.bound:
            return self.bound[count]
        for member in {m for e in self.expressions for m in parts_of(e, AffineMember)}:
            if count in member.variables:  # a free index
                return member.count_of(count)
        self.size(count)
        return count

    def number_chosen(self, order: Any) -> None:
        """Read the order of a sum over paths: a size or an index, or sums of these, or zero."""
        if not isinstance(order, sympy.Add):
            self.number_of_layers(order)
            return
        least = sympy.expand(order)
        for index, count in reversed(self.bound.items()):  # whose count may have outer ones in it
            times = least.coeff(index)
            end = count - 1 if times.could_extract_minus_sign() else 0
            least = sympy.expand(least - times * index + times * end)
        if order.free_symbols & self.bound.keys() and not never_negative(least):
            raise LanguageError(
                f"the order {order} of an OrderSum may be negative, as far as the ranges of its "
                "indices tell"
            )
        for symbol in order.free_symbols - self.bound.keys():
            self.size(symbol)
        self.size(least + 1)


_READERS: dict[type, Callable[[_Reader, Any], Shape | None]] = {
    sympy.MatrixSymbol: _Reader.matrix_symbol,
    sympy.Identity: _Reader.special,
    sympy.ZeroMatrix: _Reader.special,
    GenericIdentity: _Reader.special,
    GenericZeroMatrix: _Reader.special,
    sympy.OneMatrix: _Reader.special,
    sympy.MatAdd: _Reader.plain,
    sympy.MatMul: _Reader.plain,
    sympy.Add: _Reader.plain,
    sympy.Mul: _Reader.plain,
    sympy.MatPow: _Reader.power,
    sympy.Inverse: _Reader.power,
    sympy.Transpose: _Reader.transpose,
    sympy.Adjoint: _Reader.transpose,  # the language is real
    sympy.KroneckerProduct: _Reader.kron,
    sympy.HadamardProduct: _Reader.hadamard,
    sympy.Trace: _Reader.trace,
    MatrixElement: _Reader.element,
    sympy.KroneckerDelta: _Reader.delta,
    sympy.Sum: _Reader.index_sum,
    DiagMatrix: _Reader.diag_matrix,
    DiagonalOf: _Reader.diagonal,
    DiagonalMatrix: _Reader.diagonal,
    sympy.HadamardPower: _Reader.hadamard_power,
    sympy.ImmutableDenseMatrix: _Reader.explicit,
    sympy.BlockMatrix: _Reader.block_matrix,
    sympy.BlockDiagMatrix: _Reader.block_diagonal,
}


def _unsupported(expressions: Iterable[sympy.Basic]) -> list[str]:
    """Return a sentence for each unsupported subexpression."""
    parts = [part for e in expressions for part in sympy.preorder_traversal(e)]
    of_matrices = [
        part
        for part in parts
        if isinstance(part, sympy.Expr)
        and any(isinstance(x, sympy.MatrixExpr) for x in (part, *part.args))
    ]
    missing = [e for e in of_matrices if type(e) not in _READERS and not isinstance(e, Declared)]
    return list(dict.fromkeys(map(not_in_language, missing)))
