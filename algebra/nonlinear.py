"""The nonlinear functions of a transformer, as SymPy classes: they state and do not evaluate.

    RowSoftmax(S), RowSoftmax(S, mask)   softmax of each row; with a mask, over the entries it keeps
    CausalMask(n)                        ones on and below the diagonal: a query sees no later key
    Activation("gelu", X)                a function of one number, applied to every entry
    RMSNorm(X, eps), LayerNorm(X, eps)   each row divided by its size; first centred

Rows are positions, as patterns and row streams have them. An activation that `functions.KNOWN` does
not name stands for any function whatever. The norms come without gain and bias, which are linear:
LayerNorm(X) DiagMatrix(g) + 1 bᵀ. They are no functions of their own here: `definition` says what
they are in terms of the reciprocal square root of a row's mean square.

>>> import sympy
>>> n, d = sympy.symbols("n d", integer=True, positive=True)
>>> X, W = sympy.MatrixSymbol("X", n, d), sympy.MatrixSymbol("W", d, d)
>>> RowSoftmax(X * W * X.T, CausalMask(n)).shape
(n, n)
"""

from __future__ import annotations

from typing import Any

import sympy
from sympy import MatrixExpr
from sympy.core.symbol import Str
from sympy.matrices.expressions.diagonal import DiagMatrix

from algebra.errors import LanguageError
from algebra.language import _Stated, matadd, matmul

RSQRT = "rsqrt"
# What is applied to whole rows or matrices: no identifiers, so that no activation has these names.
SOFTMAX, INVERSE = "row softmax", "matrix inverse"
CAUSAL_MASK = "causal mask"  # begins the names of the tensors that causal masks are read as


class RowSoftmax(_Stated):
    """The softmax of each row: entry (i, j) is m_ij exp(S_ij) / Σ_k m_ik exp(S_ik).

    The mask m is a matrix of the same shape, ones where nothing is given. It is zero or one, with
    a one in every row; `CausalMask(n)` is such a mask.
    """

    def __new__(cls, scores: MatrixExpr, mask: MatrixExpr | None = None) -> RowSoftmax:
        return MatrixExpr.__new__(cls, scores, *([] if mask is None else [mask]))

    @property
    def mask(self) -> MatrixExpr | None:
        """The mask, or None where every entry counts."""
        return self.args[1] if len(self.args) > 1 else None

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.args[0].shape


class CausalMask(_Stated):
    """The n × n matrix with ones on and below its diagonal: row i keeps the columns 0 … i."""

    def __new__(cls, size: Any) -> CausalMask:
        return MatrixExpr.__new__(cls, sympy.sympify(size))

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.args[0], self.args[0]


class Activation(_Stated):
    """A function of one number, applied to every entry of a matrix: `Activation("relu", X)`."""

    def __new__(cls, name: str, argument: MatrixExpr) -> Activation:
        name = str(name)
        if not name.isidentifier():
            raise LanguageError(
                f"an activation is named by an identifier, such as 'gelu' or 'g', and was given "
                f"{name!r}: write Activation('gelu', X)"
            )
        return MatrixExpr.__new__(cls, Str(name), argument)

    @property
    def name(self) -> str:
        return str(self.args[0].name)

    @property
    def argument(self) -> MatrixExpr:
        return self.args[1]

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.args[1].shape


class _Norm(_Stated):
    def __new__(cls, argument: MatrixExpr, eps: Any = 0) -> _Norm:
        return MatrixExpr.__new__(cls, argument, sympy.sympify(eps))

    @property
    def eps(self) -> sympy.Expr:
        """What is added to the mean square before its root is taken."""
        return self.args[1]

    @property
    def shape(self) -> tuple[sympy.Expr, sympy.Expr]:
        return self.args[0].shape


class RMSNorm(_Norm):
    """Each row x divided by sqrt(mean(x²) + eps), without gain."""


class LayerNorm(_Norm):
    """Each row less its mean, divided by sqrt(variance + eps), without gain and bias."""


def definition(e: RMSNorm | LayerNorm) -> MatrixExpr:
    """Return what a norm is: of LayerNorm, RMSNorm after centring; of RMSNorm, a row by row scale.

    >>> from algebra.text import unicode_text
    >>> n, d = sympy.symbols("n d", integer=True, positive=True)
    >>> print(unicode_text(definition(LayerNorm(sympy.MatrixSymbol("X", n, d)))))
    RMSNorm(X (I_d - 1/d 1_d×d))
    """
    argument, eps = e.args
    if isinstance(e, LayerNorm):
        cols = e.shape[1]
        mean = matmul(-1 / cols, sympy.OneMatrix(cols, cols))
        return RMSNorm(matmul(argument, matadd(sympy.Identity(cols), mean)), eps)
    return matmul(DiagMatrix(Activation(RSQRT, mean_square(argument, eps))), argument)


def mean_square(argument: MatrixExpr, eps: Any = 0) -> MatrixExpr:
    """Return the mean of the squares of each row, plus eps, as a column."""
    rows, cols = argument.shape
    squares = sympy.HadamardPower(argument, 2)
    total = matmul(1 / cols, squares, sympy.OneMatrix(cols, 1))
    return total if eps == 0 else matadd(total, matmul(eps, sympy.OneMatrix(rows, 1)))
