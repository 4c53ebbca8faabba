"""Derivatives of expressions by structural rules, as expressions of the language.

`differential(e, X, U)` is the derivative of e at X in the direction U: linear in U, by the product
rule, the chain rule for entrywise functions, and the differential of the softmax of a row p,
p ∘ (u - p·u). `jacobian` and `gradient` put directions of one entry together. What comes out is an
expression as any other, so that `decide` proves or refutes what is said of it.

>>> from otimes.algebra.verdict import decide
>>> n = sympy.Symbol("n", integer=True, positive=True)
>>> x = sympy.MatrixSymbol("x", n, 1)
>>> p = sympy.Transpose(RowSoftmax(x.T))
>>> decide(jacobian(p, x), DiagMatrix(p) - p * p.T).status
'proved'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy
from sympy import HadamardPower, HadamardProduct, MatrixSymbol
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError
from otimes.algebra.language.defined import unfolded
from otimes.algebra.language.functions import KNOWN
from otimes.algebra.language.linear import (
    ConcatHeads,
    HeadSum,
    OneHot,
    StackHeads,
    as_product,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import (
    RECIPROCAL,
    RSQRT,
    Activation,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.sympy_forms import in_language
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.language.unicode import short_text


def differential(e: Any, variable: MatrixSymbol, direction: Any) -> Any:
    """Return the derivative of an expression at a matrix in a direction of the same shape.

    A name that is no known function, such as g, has the derivative g_prime, an arbitrary function
    as well. Raises LanguageError for a function that has no derivative everywhere (relu), for one
    whose derivative is not in the language (gelu), and for a product over any number of layers.

    >>> n = sympy.Symbol("n", integer=True, positive=True)
    >>> A, X, U = (MatrixSymbol(name, n, n) for name in "AXU")
    >>> from otimes.algebra.language.unicode import unicode_text
    >>> print(unicode_text(differential(X * A * X, X, U)))
    U A X + X A U
    """
    if not isinstance(variable, MatrixSymbol):
        raise LanguageError(
            f"a derivative is taken at a matrix symbol, and {short_text(variable)} was given"
        )
    found = _Differential(variable, direction).of(unfolded(in_language(e)))
    if found is not None:
        return found
    return sympy.ZeroMatrix(*e.shape) if e.is_Matrix else sympy.S.Zero


def jacobian(e: Any, variable: MatrixSymbol) -> Any:
    """Return the matrix of derivatives of the entries of e by those of a matrix, both row by row.

    Of an n × m expression at a p × q matrix it is n m × p q: row (i, j) has the derivatives of the
    entry (i, j). Of columns it is the usual Jacobian matrix.
    """
    return _over_entries(
        variable,
        lambda unit: matmul(
            _stacked(differential(e, variable, unit)), sympy.Transpose(_stacked(unit))
        ),
    )


def gradient(e: Any, variable: MatrixSymbol) -> Any:
    """Return the derivatives of a number by the entries of a matrix, in a matrix of its shape.

    The number is a scalar, such as a trace, or a 1 × 1 matrix.
    """
    if e.is_Matrix:
        if tuple(e.shape) != (1, 1):
            raise LanguageError(f"a gradient is of a number, and {short_text(e)} is a matrix")
        e = sympy.Trace(e)
    return _over_entries(variable, lambda unit: matmul(differential(e, variable, unit), unit))


def _stacked(e: Any) -> Any:
    return e if e.shape[1] == 1 else vec_rows(e)


def _over_entries(variable: MatrixSymbol, term: Callable[[Any], Any]) -> Any:
    """Return the sum of terms over the units of a matrix, each with one entry 1."""
    rows, cols = variable.shape
    i, j = sympy.Dummy("i", integer=True), sympy.Dummy("j", integer=True)
    limits = []
    factors = []
    for index, size in ((i, rows), (j, cols)):
        if size != 1:
            limits.append((index, size))
            factors.append(OneHot(index, size))
        else:
            factors.append(sympy.Identity(1))
    unit = matmul(factors[0], sympy.Transpose(factors[1])) if cols != 1 else factors[0]
    made = term(unit)
    return HeadSum(made, *limits) if limits else made


class _Differential:
    """The derivative of parts of an expression; None is zero."""

    def __init__(self, variable: MatrixSymbol, direction: Any) -> None:
        self.variable, self.direction = variable, direction

    def of(self, e: Any) -> Any:
        if e == self.variable:
            return self.direction
        if not e.has(self.variable):
            return None
        rule = _RULES.get(type(e))
        if rule is None:
            raise LanguageError(
                f"the derivative of {type(e).__name__} is not in the language, in {short_text(e)}"
            )
        return rule(self, e)

    def linear(self, e: Any) -> Any:
        """Of what is linear in its only matrix: the same of its derivative."""
        (inner,) = [self.of(e.args[0])]
        return rebuilt(e, [inner, *e.args[1:]])

    def sum(self, e: Any) -> Any:
        terms = [term for term in map(self.of, e.args) if term is not None]
        return _sum(terms, e.is_Matrix)

    def product(self, e: Any) -> Any:
        """By the product rule, with the factors in order."""
        terms = []
        for k, factor in enumerate(e.args):
            moved = self.of(factor)
            if moved is not None:
                terms.append(_like(e, [*e.args[:k], moved, *e.args[k + 1 :]]))
        return _sum(terms, e.is_Matrix)

    def power(self, e: Any) -> Any:
        """Of a matrix power, an inverse, or a power of a scalar."""
        base, exponent = (e.args[0], sympy.S.NegativeOne) if len(e.args) < 2 else e.args
        if not e.is_Matrix:
            return sympy.Mul(exponent, base ** (exponent - 1), self.of(base))
        if not exponent.is_Integer:
            raise LanguageError(f"the derivative of {short_text(e)} is not in the language")
        if exponent < 0:
            inverse = sympy.Inverse(base)
            return (
                self.product(as_product([inverse] * -int(exponent)))
                if exponent < -1
                else (matmul(-1, inverse, self.of(base), inverse))
            )
        return self.product(as_product([base] * int(exponent)))

    def entrywise_power(self, e: HadamardPower) -> Any:
        base, exponent = e.args
        if exponent == 0:
            return None
        less = base if exponent == 2 else HadamardPower(base, exponent - 1)
        return matmul(exponent, _hadamard(less, self.of(base)))

    def activation(self, e: Activation) -> Any:
        return _hadamard(derivative_of(e.name, e.argument), self.of(e.argument))

    def softmax(self, e: RowSoftmax) -> Any:
        if e.mask is not None and e.mask.has(self.variable):
            raise LanguageError("a mask has no derivative: it is a matrix of zeros and ones")
        moved, cols = self.of(e.args[0]), e.shape[1]
        mean = matmul(_hadamard(e, moved), sympy.OneMatrix(cols, cols))
        return matadd(_hadamard(e, moved), matmul(-1, _hadamard(e, mean)))

    def norm(self, e: Any) -> Any:
        return self.of(definition(e))

    def blocks(self, e: sympy.BlockMatrix) -> Any:
        height, width = e.blockshape
        lines = [[self._filled(e.blocks[i, j]) for j in range(width)] for i in range(height)]
        return sympy.BlockMatrix(lines)

    def diagonal_blocks(self, e: sympy.BlockDiagMatrix) -> Any:
        return sympy.BlockDiagMatrix(*map(self._filled, e.args))

    def _filled(self, e: Any) -> Any:
        moved = self.of(e)
        return sympy.ZeroMatrix(*e.shape) if moved is None else moved


def derivative_of(name: str, x: Any) -> Any:
    """Return the derivative of an entrywise function, at the entries of a matrix."""
    if name not in KNOWN:
        return Activation(f"{name}_prime", x)
    if name not in _DERIVATIVES:
        raise LanguageError(
            f"the derivative of {name} is not in the language; those of "
            f"{', '.join(sorted(_DERIVATIVES))} are"
        )
    return _DERIVATIVES[name](x, sympy.OneMatrix(*x.shape))


def _gate(x: Any, one: Any, factor: Any = sympy.S.One) -> Any:
    """Return the derivative of x sigmoid(c x)."""
    gate = Activation("sigmoid", x if factor == 1 else matmul(factor, x))
    slope = _hadamard(x, gate, matadd(one, matmul(-1, gate)))
    return matadd(gate, slope if factor == 1 else matmul(factor, slope))


def _of_sigmoid(x: Any, one: Any) -> Any:
    gate = Activation("sigmoid", x)
    return _hadamard(gate, matadd(one, matmul(-1, gate)))


_DERIVATIVES: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda x, one: Activation("exp", x),
    "log": lambda x, one: Activation(RECIPROCAL, x),
    RECIPROCAL: lambda x, one: matmul(-1, HadamardPower(Activation(RECIPROCAL, x), 2)),
    "sqrt": lambda x, one: matmul(sympy.S.Half, Activation(RSQRT, x)),
    RSQRT: lambda x, one: matmul(-sympy.S.Half, HadamardPower(Activation(RSQRT, x), 3)),
    "softplus": lambda x, one: Activation("sigmoid", x),
    "tanh": lambda x, one: matadd(one, matmul(-1, HadamardPower(Activation("tanh", x), 2))),
    "sigmoid": _of_sigmoid,
    "silu": _gate,
    "quick_gelu": lambda x, one: _gate(x, one, sympy.Rational(1702, 1000)),
    "sin": lambda x, one: Activation("cos", x),
    "cos": lambda x, one: matmul(-1, Activation("sin", x)),
}


def _sum(terms: Sequence[Any], of_matrices: bool) -> Any:
    if not terms:
        return None
    if len(terms) == 1:
        return terms[0]
    return matadd(*terms) if of_matrices else sympy.Add(*terms)


def _hadamard(*factors: Any) -> Any:
    return HadamardProduct(*factors, evaluate=False)


def _like(e: Any, factors: Sequence[Any]) -> Any:
    """Return a product of the kind of e."""
    if isinstance(e, sympy.MatMul):
        return matmul(*factors)
    return _hadamard(*factors) if isinstance(e, HadamardProduct) else type(e)(*factors)


_RULES: dict[type, Callable[[_Differential, Any], Any]] = {
    **dict.fromkeys((sympy.MatAdd, sympy.Add), _Differential.sum),
    **dict.fromkeys(
        (sympy.MatMul, sympy.Mul, HadamardProduct, sympy.KroneckerProduct), _Differential.product
    ),
    **dict.fromkeys((sympy.MatPow, sympy.Inverse, sympy.Pow), _Differential.power),
    **dict.fromkeys(
        (
            *(sympy.Transpose, sympy.Trace, vec_rows, vec_cols, MatrixElement, sympy.Sum),
            *(DiagMatrix, DiagonalOf, DiagonalMatrix, HeadSum, ConcatHeads, StackHeads),
        ),
        _Differential.linear,
    ),
    HadamardPower: _Differential.entrywise_power,
    Activation: _Differential.activation,
    RowSoftmax: _Differential.softmax,
    **dict.fromkeys((RMSNorm, LayerNorm), _Differential.norm),
    sympy.BlockMatrix: _Differential.blocks,
    sympy.BlockDiagMatrix: _Differential.diagonal_blocks,
}
