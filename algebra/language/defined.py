"""Classes that abbreviate expressions in the other classes of the language.

    Quotient(A, B)          A ⊘ B, entry by entry: A ∘ B^(∘-1)
    LogSumExp(S)            log Σ_j exp(S_ij), a column; with a mask, over the entries it keeps
    LogSoftmax(S)           the logarithm of the softmax of each row: S - LogSumExp(S) 1ᵀ
    CrossEntropy(S, T)      -Σ_j T_ij LogSoftmax(S)_ij, a column: T has a target in each row
    Rotation(angles)        [[diag(cos θ), -diag(sin θ)], [diag(sin θ), diag(cos θ)]]

A claim about them is one about their definitions (`unfolded`). Entrywise powers with a negative or
half-integer exponent are unfolded as well, to the functions `reciprocal`, `sqrt` and `rsqrt`. As
everywhere in the language, a claim is about the values at which both of its sides are defined: no
entry that is divided by is zero, none under a logarithm is zero or negative.

>>> from otimes.algebra.language.unicode import unicode_text
>>> n, m = sympy.symbols("n m", integer=True, positive=True)
>>> S = sympy.MatrixSymbol("S", n, m)
>>> print(unicode_text(unfolded(LogSoftmax(S))))
S - log(exp(S) 1_m×1) 1_1×m
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy
from sympy import HadamardPower, HadamardProduct, MatrixExpr
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.errors import ShapeError
from otimes.algebra.language.declared import Declared
from otimes.algebra.language.latex import TexPrinter
from otimes.algebra.language.linear import Shape, matadd, matmul
from otimes.algebra.language.nonlinear import RECIPROCAL, RSQRT, Activation
from otimes.algebra.language.shape_messages import place, show_shape
from otimes.algebra.language.sizes import same_product
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.language.unicode import ATOM, KRON, Piece, TextPrinter

ROOTS = {1: "sqrt", -1: RSQRT}


class Defined(Declared):
    """A class that abbreviates an expression, its `definition`."""

    @property
    def definition(self) -> Any:
        """The expression that this one abbreviates."""
        raise NotImplementedError

    name = ""  # as it is printed

    def text(self, printer: TextPrinter) -> Piece:
        return printer.applied(self.name, self.args)

    def tex(self, printer: TexPrinter) -> str:
        inside = ", ".join(map(printer._print, self.args))
        return rf"\operatorname{{{self.name}}}\left({inside}\right)"

    def _same_shapes(self, reader: Any, *to: str) -> Shape:
        """Return the common shape of the arguments; `to` says what each is taken for."""
        reader.signature.folded = reader.signature.partial = True
        pairs = zip(self.args, to, strict=False)
        shape, *others = [reader.matrix(part, what) for part, what in pairs]
        for other in others:
            if not all(map(same_product, shape, other)):
                raise ShapeError(
                    f"{self.name} was given {show_shape(shape)} and {show_shape(other)}: they need "
                    f"the same shape{place(self)}"
                )
        return shape


class Quotient(Defined):
    """A ⊘ B: each entry of A divided by that of B, which is not zero."""

    def __new__(cls, over: MatrixExpr, under: MatrixExpr) -> Quotient:
        return MatrixExpr.__new__(cls, over, under)

    name = "an elementwise division"  # in messages

    @property
    def definition(self) -> Any:
        over, under = self.args
        return _hadamard(over, Activation(RECIPROCAL, under))

    def checked_shape(self, reader: Any) -> Shape:
        return self._same_shapes(reader, "divide the entries of", "divide by the entries of")

    def text(self, printer: TextPrinter) -> Piece:
        over, under = [printer.inside(part, ATOM) for part in self.args]
        return f"{over} ⊘ {under}", KRON

    def tex(self, printer: TexPrinter) -> str:
        over, under = map(printer.bracket, self.args)
        return rf"{over} \oslash {under}"


class LogSumExp(Defined):
    """The logarithm of the sum of the exponentials of each row, over the entries a mask keeps."""

    def __new__(cls, scores: MatrixExpr, mask: MatrixExpr | None = None) -> LogSumExp:
        return MatrixExpr.__new__(cls, scores, *([] if mask is None else [mask]))

    name = "logsumexp"

    @property
    def shape(self) -> Shape:
        return self.args[0].shape[0], sympy.S.One

    @property
    def definition(self) -> Any:
        scores, *mask = self.args
        weights = Activation("exp", scores)
        weights = _hadamard(weights, *mask) if mask else weights
        return Activation("log", matmul(weights, sympy.OneMatrix(scores.shape[1], 1)))

    def checked_shape(self, reader: Any) -> Shape:
        rows, _ = self._same_shapes(reader, "sum the exponentials of the rows of", "mask with")
        return rows, sympy.S.One


class LogSoftmax(Defined):
    """The logarithm of the softmax of each row: the scores less their logsumexp."""

    def __new__(cls, scores: MatrixExpr) -> LogSoftmax:
        return MatrixExpr.__new__(cls, scores)

    name = "logsoftmax"

    @property
    def definition(self) -> Any:
        (scores,) = self.args
        total = LogSumExp(scores).definition
        return matadd(scores, matmul(-1, total, sympy.OneMatrix(1, scores.shape[1])))

    def checked_shape(self, reader: Any) -> Shape:
        return self._same_shapes(reader, "take the softmax of the rows of")


class CrossEntropy(Defined):
    """The cross-entropy of each row of scores with a row of targets, in nats: a column.

    A row of targets is a distribution, such as a one-hot row for one correct token.
    """

    def __new__(cls, scores: MatrixExpr, targets: MatrixExpr) -> CrossEntropy:
        return MatrixExpr.__new__(cls, scores, targets)

    name = "crossentropy"

    @property
    def shape(self) -> Shape:
        return self.args[0].shape[0], sympy.S.One

    @property
    def definition(self) -> Any:
        scores, targets = self.args
        each = _hadamard(targets, LogSoftmax(scores).definition)
        return matmul(-1, each, sympy.OneMatrix(scores.shape[1], 1))

    def checked_shape(self, reader: Any) -> Shape:
        rows, _ = self._same_shapes(reader, "take the softmax of the rows of", "use as targets")
        return rows, sympy.S.One


class Rotation(Defined):
    """The rotation of m planes by angles in radians, 2m × 2m for a column of m angles.

    Plane k is that of the coordinates k and m + k, as rotary positions have it in most models; with
    the coordinates in another order it is P Rotation(θ) Pᵀ for a permutation P. The angle of a
    single plane may be a scalar: Rotation(θ) is [[cos θ, -sin θ], [sin θ, cos θ]].
    """

    def __new__(cls, angles: Any) -> Rotation:
        angles = sympy.sympify(angles)
        if not getattr(angles, "is_Matrix", False):
            angles = matmul(angles, sympy.OneMatrix(1, 1))
        return MatrixExpr.__new__(cls, angles)

    name = "rotation"

    @property
    def shape(self) -> Shape:
        size = 2 * self.args[0].shape[0]
        return size, size

    @property
    def definition(self) -> Any:
        (angles,) = self.args
        cos, sin = (DiagMatrix(Activation(name, angles)) for name in ("cos", "sin"))
        return sympy.BlockMatrix([[cos, matmul(-1, sin)], [sin, cos]])

    def checked_shape(self, reader: Any) -> Shape:
        reader.signature.folded = True
        rows, cols = reader.matrix(self.args[0], "rotate by the angles of")
        if cols != 1:
            raise ShapeError(
                f"the angles of a rotation are a column, and {show_shape((rows, cols))} was "
                f"given{place(self)}"
            )
        return 2 * rows, 2 * rows


CLASSES = (Quotient, LogSumExp, LogSoftmax, CrossEntropy, Rotation)


def _hadamard(*factors: Any) -> Any:
    """Return an elementwise product whose shapes are checked when the claim is read."""
    return sympy.Basic.__new__(HadamardProduct, *factors)


def entrywise_power(power: HadamardPower) -> Any:
    """Return an entrywise power by functions: X^(∘-1) as reciprocals, X^(∘1/2) as square roots."""
    base, exponent = power.args
    if exponent.q == 1 and exponent >= 0:
        return power
    sign = 1 if exponent > 0 else -1
    name = RECIPROCAL if exponent.q == 1 else ROOTS[sign]
    times = abs(int(exponent.p))
    value = Activation(name, base)
    return value if times == 1 else HadamardPower(value, times)


def unfolded(e: Any) -> Any:
    """Return an expression with every `Defined` part replaced by its definition."""
    return _unfolded(e) if _is_folded(e) else e


def _is_folded(e: Any) -> bool:
    stack = [e]
    while stack:
        node = stack.pop()
        if isinstance(node, Defined) or (type(node) is HadamardPower and _is_partial(node)):
            return True
        stack += node.args
    return False


def _is_partial(power: HadamardPower) -> bool:
    exponent = power.args[1]
    return not (exponent.is_Integer and exponent >= 0)


@lru_cache(maxsize=10_000)
def _unfolded(e: Any) -> Any:
    args = [_unfolded(part) if _is_folded(part) else part for part in e.args]
    if any(new is not old for new, old in zip(args, e.args, strict=True)):
        e = rebuilt(e, args)
    if isinstance(e, Defined):
        return e.definition
    return entrywise_power(e) if type(e) is HadamardPower else e
