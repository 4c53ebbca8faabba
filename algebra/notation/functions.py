"""The functions of a formula: softmax, trace, diag, vec, norms, and those not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sympy
from sympy import Transpose
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.binders import bindings, free_symbols
from otimes.algebra.language.derivative import derivative_of, differential, gradient, jacobian
from otimes.algebra.language.linear import (
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.notation.axes import with_axis
from otimes.algebra.notation.dimensions import ONE, Shape, Size
from otimes.algebra.notation.entrywise import DEFINED, defined
from otimes.algebra.notation.expectations import expectation, is_expectation, is_statistic
from otimes.algebra.notation.operations import Operations
from otimes.algebra.notation.printed_functions import ALONG, OF_MATRICES, printed_function
from otimes.algebra.notation.symbols import (
    Declared,
    Symbols,
    default,
    letters,
    text_of,
)
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Differential,
    Entry,
    Grid,
    Group,
    Name,
    Node,
    Norm,
    Number,
    Power,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.typed import (
    FormulaShapeError,
    Typed,
    Undeclared,
    mentions,
)
from otimes.algebra.notation.vocabulary import BEYOND, ELEMENTWISE, ROWWISE, SOFTMAX

ROWS = "softmax was taken along rows"
PLAIN_INNER = frozenset("F2")  # of Frobenius, or the usual one
OF_NUMBERS = frozenset(ELEMENTWISE.values()) - {"log"}  # which numbers have a logarithm is not said


class Functions(Operations):
    """Functions of matrices, and norms."""

    # -- functions ---------------------------------------------------------------------------------

    def apply(self, e: Apply) -> Typed:
        e = with_axis(_as_relu(e))
        base = e.function.base
        if base in SOFTMAX and e.below and all(slot.kind == "index" for slot in e.below):
            return self.entry(Entry(Group(replace(e, below=())), e.below, span=e.span))
        if base in BEYOND or (base in ("\\nabla", "\\partial", "inner") and base != "inner"):
            raise NotationError(f"{base} is not in the language", e.span)
        arguments = [self._argument(argument) for argument in e.arguments]
        if self.symbols.printed and (found := printed_function(self, e, arguments)) is not None:
            return found
        plain = not e.below and not e.function.sub and not e.function.sup and not e.function.marks
        if not (e.below or e.function.sub or e.function.sup) and e.function.marks == ("'",):
            known = base in ELEMENTWISE or base in self.symbols.elementwise
            if known and len(arguments) == 1 and arguments[0].shape is not None:
                return self._slope(e, arguments[0])
        if is_expectation(e.function) and len(arguments) == 1 and arguments[0].known:
            return expectation(self, e, arguments[0])
        if is_statistic(e.function):
            raise NotationError(f"{self.quoted(e)} is not in the language", e.span)
        if base in ("vec", "vecr", "vecc") and len(arguments) == 1:
            return self._vec(e, arguments[0])
        if along_of(e) and len(arguments) == 1 and base in ("softmax", "Softmax"):
            return self.softmax(e, arguments[0])
        if plain and len(arguments) == 1 and base in _FUNCTIONS:
            return _FUNCTIONS[base](self, e, arguments[0])
        if plain and base in DEFINED and all(argument.known for argument in arguments):
            return defined(self, e, arguments)
        if base == "inner" and len(arguments) == 2:
            if not {slot.text for slot in e.below} <= PLAIN_INNER:
                raise NotationError("what an inner product has below it is not read", e.span)
            return self._inner_product(e, arguments)
        if (
            plain
            and len(arguments) == 1
            and (base in ELEMENTWISE or base in self.symbols.elementwise)
        ):
            return self._elementwise(e, arguments[0])
        return self._opaque(e, arguments)

    def _argument(self, node: Node) -> Typed:
        """Read an argument; one of unknown kind becomes a symbol of its own."""
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
        along = along_of(e) or self.symbols.softmax
        columns = along == "columns"
        if not along and ONE not in map(self.solver.resolved, shape):
            self.doubts.append(ROWS)

        def build() -> Any:
            inner = argument.build()
            row, column = (self.solver.resolved(size) == ONE for size in shape)
            if row and column and not self.symbols.printed:
                raise Undeclared("it is not clear over what the softmax of a number runs", e.span)
            if columns and row and not column and not self.symbols.printed:
                raise Undeclared("it is not clear along what the softmax of a row runs", e.span)
            if columns or column:
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
        said = self.symbols.lookup(inner)[1] or default(inner) if isinstance(inner, Name) else None
        of_vector = ONE in (rows, cols) or (said is not None and said.kind == "vector")
        if of_vector:
            if ONE not in (rows, cols):
                self.solver.unify(shape[1], ONE)
            size = shape[0] if self.solver.resolved(shape[1]) == ONE else shape[1]
            return Typed((size, size), lambda: DiagMatrix(argument.build()), e.span)
        if not self.solver.unify(*shape):
            raise FormulaShapeError("only a square matrix has a diagonal here", e.span)
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
        return Typed(None, lambda: _inner(a.build(), b.build()), e.span)

    def _elementwise(self, e: Apply, argument: Typed) -> Typed:
        name = ELEMENTWISE.get(e.function.base, letters(e.function.base, ""))
        if argument.shape is None and argument.known and name in OF_MATRICES:
            raise NotationError(f"{name} of a number is not in the language", e.span)
        if argument.shape is None and argument.known and name in OF_NUMBERS:
            one = sympy.Identity(1)
            return Typed(None, lambda: _of_number(name, matmul(argument.build(), one)), e.span)
        if argument.shape is None:
            return self._opaque(e, [argument])
        if name in ("exp", "log") and ONE not in map(self.solver.resolved, argument.shape):
            self.doubts.append(f"{name} was taken entry by entry")
        return Typed(argument.shape, lambda: Activation(name, argument.build()), e.span)

    def _slope(self, e: Apply, argument: Typed) -> Typed:
        r"""Read the derivative of a function that acts on each entry: `\sigma'(h)`."""
        name = ELEMENTWISE.get(e.function.base, letters(e.function.base, ""))
        return Typed(argument.shape, lambda: derivative_of(name, argument.build()), e.span)

    def _opaque(self, e: Apply, arguments: list[Typed]) -> Typed:
        """Read the value of an unknown function as a symbol of its own, named by its text."""
        text = latex(e)
        key, known = self.symbols.lookup(e.function)
        if self.symbols.printed:
            named = e.function.base
            raise Undeclared(
                f"it is not declared what {named} is: '{named}: function' in the shapes says that "
                "it acts entry by entry", e.span,
            )  # fmt: skip
        if not all(argument.known for argument in arguments) and e.function.base in ROWWISE:
            return self._unknown(e, self.quoted(e))
        if known is not None and known.kind == "scalar":
            return self._opaque_scalar(e, text)
        fresh: Shape = (self.solver.fresh(), self.solver.fresh())
        if known is not None and known.kind == "matrix":
            sized = known.rows or known.cols or known.line  # no sizes are those of a number
            values = self.shapes.setdefault(f"{key}(…)", (fresh, Declared("function")))[0]
            shape = (known.rows, known.cols) if sized else values or fresh
        elif e.function.base in ROWWISE and len(arguments) == 1 and arguments[0].shape is not None:
            shape = arguments[0].shape
        elif e.function.base in ("Attn", "attn"):
            shape = self.shapes.setdefault(f"{key}(…)", (fresh, Declared("function")))[0] or fresh
        else:
            return self._unknown(e, self.quoted(e))
        self.doubts.append(f"{self.quoted(e)} was taken as a matrix of its own")
        bound = [scope for scope in self.bound if mentions(text, scope[0])]
        indices = [(symbol, count) for _, count, symbol in bound]
        return self._matrix_symbol(e.function, text, shape, Declared("matrix"), indices)

    def _opaque_scalar(self, e: Apply, text: str) -> Typed:
        self.doubts.append(f"{self.quoted(e)} was taken as a number of its own")
        return Typed(None, lambda: sympy.Symbol(text.replace("[", "⟨"), real=True), e.span)

    def derivative(self, e: Derivative) -> Typed:
        """Read the derivative of a number or a vector; of a number that is not given, a symbol."""
        loss = bare(e.target)
        loss = loss.function if isinstance(loss, Apply) else loss
        if not isinstance(e.variable, Name):
            raise NotationError("a derivative is taken at a matrix or a vector", e.span)
        known = self.symbols.lookup(e.variable)[1] or default(e.variable)
        sized = known is not None and (known.kind != "scalar" or known.line)
        of_loss = isinstance(loss, Name) and is_loss(loss, self.symbols)
        like = e.like if of_loss and not sized else None
        typed = (like and self._like(like)) or self.infer(e.variable)
        if not typed.known or typed.shape is None:
            raise NotationError("a derivative is taken at a matrix or a vector", e.span)
        at = None if e.point is None or of_loss else self.infer(e.point)
        if at is not None:
            if at.shape is None:
                raise NotationError("a derivative is taken at a matrix or a vector", e.span)
            for size, own in zip(at.shape, typed.shape, strict=True):
                self.solver.unify(size, own)
        if of_loss and isinstance(loss, Name):
            shape = typed.shape[::-1] if e.turned else typed.shape
            of = text_of(loss) if e.target == loss else latex(e.target)
            text = f"∂{of}/∂{text_of(e.variable)}"
            return self._matrix_symbol(e.variable, text, shape, Declared("matrix"))
        target = self.infer(e.target)
        number = target.known and (target.shape is None or self.is_one_by_one(target))
        long, by = (None if number else self._length(target)), self._length(typed)
        if not target.known or not (number or (long and by)):
            raise Undeclared("the derivative of a matrix is not in the language", e.span)
        if e.gradient and not number:
            raise Undeclared(f"{self.quoted(e.target)} is no number with a gradient", e.span)
        shape = typed.shape if long is None or by is None else (long, by)
        turned = e.turned if number else e.by_columns

        def build() -> Any:
            at_all, whole = typed.build(), self.as_scalar(target) if number else target.build()
            if not isinstance(at_all, sympy.MatrixSymbol) or not whole.has(at_all):
                raise NotationError(
                    f"it is not clear how it depends on {self.quoted(e.variable)}", e.span
                )
            found = (gradient if number else jacobian)(whole, at_all)
            found = found if at is None else _with_value(found, at_all, at.build())
            return Transpose(found) if turned else found

        return Typed(shape[::-1] if turned else shape, build, e.span)

    def _like(self, e: Node) -> Typed | None:
        """Return the shape of what a symbol is defined as, None where that is not a matrix."""
        try:
            typed = self.infer(e)
        except (FormulaShapeError, Undeclared):
            return None
        return typed if typed.known and typed.shape is not None else None

    def differential(self, e: Differential) -> Typed:
        """Read the derivative of a term in the directions of the changes of matrices."""
        target, changes = self.infer(e.target), []
        for variable in e.variables:
            if not isinstance(variable, Name):
                raise NotationError("a change is of a symbol", e.span)
            typed = self.infer(variable)
            if not typed.known or typed.shape is None:
                raise NotationError("a change of a number is not in the language", e.span)
            text = f"d{text_of(variable)}"
            change = self._matrix_symbol(variable, text, typed.shape, Declared("matrix"))
            changes.append((typed, change))
        if not target.known:
            raise NotationError(f"it is not known what {self.quoted(e.target)} is", e.span)

        def build() -> Any:
            whole, terms = target.build(), []
            for typed, change in changes:
                at = typed.build()
                if not isinstance(at, sympy.MatrixSymbol):
                    raise NotationError("a change is of a matrix", e.span)
                if whole.has(at):
                    terms.append(differential(whole, at, change.build()))
            if not terms:
                raise NotationError("it is not clear on what it depends", e.span)
            return matadd(*terms) if target.shape is not None else sympy.Add(*terms)

        return Typed(target.shape, build, e.span)

    def _length(self, typed: Typed) -> Size | None:
        """Return the number of entries of a vector, None of another term."""
        if typed.shape is None:
            return None
        rows, cols = map(self.solver.resolved, typed.shape)
        return rows if cols == ONE else cols if rows == ONE else None

    def norm(self, e: Norm) -> Typed:
        inner = self.infer(e.argument)
        text = latex(e)
        if self.symbols.printed and inner.known and inner.shape is not None:
            return self._root_of_squares(e, inner)
        if e.mark == "|" and any(isinstance(each, Grid) for each in walk(e.argument)):
            what = f"{self.quoted(e)} may be a determinant, or be taken entry by entry"
            raise NotationError(f"{what}: it is not in the language", e.span)
        if e.mark == "|" and inner.known and inner.shape is None and self._is_number(e.argument):
            return self._absolute(e, inner)
        self.doubts.append(f"{self.quoted(e)} was taken as a number of its own")
        del inner
        if any(mentions(text, scope[0]) for scope in self.bound):
            raise NotationError("a norm under a sum is not in the language", e.span)
        return Typed(None, lambda: sympy.Symbol(text.replace("[", "⟨"), positive=True), e.span)

    def _is_number(self, node: Node) -> bool:
        """Return whether a term is made of declared numbers, and no size."""
        names = [each for each in walk(node) if isinstance(each, Name)]
        known = [self.symbols.lookup(each)[1] for each in names]
        return bool(names) and all(each is not None and each.kind == "scalar" for each in known)

    def _absolute(self, e: Norm, number: Typed) -> Typed:
        """Read the absolute value of a number as ReLU(a) + ReLU(-a)."""

        def build() -> Any:
            value, one = number.build(), sympy.Identity(1)
            parts = [_of_number("relu", matmul(sign * value, one)) for sign in (1, -1)]
            return sympy.Add(*parts)

        return Typed(None, build, e.span)

    def _root_of_squares(self, e: Norm, inner: Typed) -> Typed:
        """Read ‖X‖_F as the root of tr(XᵀX), and the norm of a vector so, too."""
        assert inner.shape is not None
        frobenius = e.kind in ("F", r"\mathrm{F}", r"\mathrm F")
        vector = ONE in map(self.solver.resolved, inner.shape)
        if e.mark != r"\|" or not (frobenius or (vector and e.kind in ("", "2"))):
            raise NotationError(
                f"{self.quoted(e)} is not in the language: of a matrix, the norm ‖·‖_F is", e.span
            )

        def build() -> Any:
            square = matmul(_inner(inner.build(), inner.build()), sympy.Identity(1))
            return MatrixElement(Activation("sqrt", square), 0, 0)

        return Typed(None, build, e.span)

    def squared_norm(self, e: Power) -> Typed | None:
        """Read ‖X‖_F² as tr(XᵀX)."""
        if not (isinstance(e.base, Norm) and isinstance(e.exponent, Number)):
            return None
        if e.exponent.text != "2" or e.base.mark != r"\|":
            return None
        typed = self.infer(e.base.argument)
        if typed.shape is None or not typed.known:
            return None
        inner = bare(e.base.argument)
        vector = isinstance(inner, Name) and (default(inner) or Declared("matrix")).kind == "vector"
        vector = vector or ONE in map(self.solver.resolved, typed.shape)
        if not (e.base.kind in ("F", r"\mathrm{F}") or (e.base.kind in ("", "2") and vector)):
            return None
        return Typed(None, lambda: _inner(typed.build(), typed.build()), e.span)

    def power_or_norm(self, e: Power) -> Typed:
        return self.squared_norm(e) or self.power(e)


def is_loss(name: Name, symbols: Symbols) -> bool:
    """Return whether a symbol is a number of which nothing else is known."""
    known = symbols.lookup(name)[1]
    if known is not None:
        return known.kind == "scalar"
    return name.base in (r"\ell", "L") or name.style == "cal"


def _with_value(e: Any, symbol: Any, value: Any) -> Any:
    """Return an expression with a value in place of a matrix.

    Raises NotationError if an index of the value would be bound.
    """
    if e == symbol:
        return value
    bound = {index for index, _ in bindings(e)}
    if e.has(symbol) and bound & free_symbols(value):
        raise NotationError("an index of what a derivative is taken at is bound in it", (0, 0))
    return rebuilt(e, [_with_value(part, symbol, value) for part in e.args]) if e.args else e


def _as_relu(e: Apply) -> Apply:
    r"""Return ReLU for the larger of zero and a term: `\max(0, a)`."""
    others = [each for each in e.arguments if bare(each) != Number("0")]
    if e.function != Name("max") or len(e.arguments) != 2 or len(others) != 1 or e.below:
        return e
    return replace(e, function=Name("ReLU"), arguments=tuple(others))


def along_of(e: Apply) -> str:
    """Return the axis that a function's subscript names: "rows", "columns" or ""."""
    alone = len(e.function.sub) == 1 and not (e.below or e.function.sup or e.function.marks)
    return ALONG.get(e.function.sub[0].text, "") if alone else ""


def _of_number(name: str, one_by_one: Any) -> Any:
    return MatrixElement(Activation(name, one_by_one), 0, 0)


def _inner(a: Any, b: Any) -> Any:
    return sympy.Trace(matmul(Transpose(a), b))


_FUNCTIONS: dict[str, Callable[[Functions, Apply, Typed], Typed]] = {
    "softmax": Functions.softmax,
    "Softmax": Functions.softmax,
    "tr": Functions.trace,
    **dict.fromkeys(("Tr", "trace", "Trace"), Functions.trace),
    "diag": Functions.diag,
    "Diag": Functions.diag,
}
