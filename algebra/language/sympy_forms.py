"""What SymPy writes in classes of its own, in those of the language.

    π                            the number `PI`
    cos(θ), exp(A[i, j]), |a|    an activation of one entry, as a number
    √tr(A), 1/softmax(A)[i, k]   a root of one entry, or one over a positive one
    FunctionMatrix(n, m, f)      Σ_s Σ_t f(s, t) e_s e_tᵀ
    Determinant(A)               its expansion, of a matrix of at most three rows

A claim is read after this step, and its certificate states the result.

>>> from otimes.algebra.language.unicode import unicode_text
>>> a, n = sympy.Symbol("a"), sympy.Symbol("n", integer=True, positive=True)
>>> print(unicode_text(in_language(sympy.cos(a) * sympy.Identity(n))))
tr(cos(a 1_1×1)) I_n
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import sympy
from sympy import Determinant, FunctionMatrix, Pow
from sympy.combinatorics.permutations import Permutation
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.constants import PI
from otimes.algebra.language.linear import HeadSum, OneHot, matmul
from otimes.algebra.language.nonlinear import RECIPROCAL, RSQRT, Activation, RowSoftmax
from otimes.algebra.language.trees import rebuilt, stated

FUNCTIONS = {
    sympy.exp: "exp",
    sympy.log: "log",
    sympy.cos: "cos",
    sympy.sin: "sin",
    sympy.tanh: "tanh",
    sympy.erf: "erf",
    sympy.Abs: "abs",
}
LARGEST = 3  # number of rows of a matrix whose determinant is expanded
ENTRIES = (MatrixElement, sympy.Trace, sympy.Sum, sympy.KroneckerDelta)


def in_language(e: Any) -> Any:
    """Return an expression with what only SymPy has in the classes of the language."""
    return _translated(e) if any(map(_is_foreign, nodes(e))) else e


def nodes(e: Any) -> Iterator[Any]:
    """Yield an expression and all its parts, each as often as it occurs, in no promised order."""
    stack = [e]
    while stack:
        node = stack.pop()
        yield node
        stack += node.args


def _is_foreign(e: Any) -> bool:
    kind = type(e)
    if kind is Pow:
        return bool(e.exp.is_Rational) and e.has(*ENTRIES) and _is_division(e.base, e.exp)
    if kind is Determinant:
        rows = e.args[0].shape[0]
        return bool(rows.is_Integer and rows <= LARGEST)
    return e is sympy.pi or kind in FUNCTIONS or kind is FunctionMatrix


def _translated(e: Any) -> Any:
    if e is sympy.pi:
        return PI
    if type(e) is FunctionMatrix:
        return _translated(_by_entries(e))
    if type(e) is Determinant and _is_foreign(e):
        return _translated(_expanded(e))
    args = [_translated(part) for part in e.args]
    if any(new is not old for new, old in zip(args, e.args, strict=True)):
        e = rebuilt(e, args)
    if type(e) in FUNCTIONS and len(args) == 1:
        return _of_entry(FUNCTIONS[type(e)], args[0])
    return _power(e) if type(e) is Pow and e.has(*ENTRIES) else e


def _of_entry(name: str, x: Any) -> Any:
    """Return a function of a number, as a number."""
    return sympy.Trace(Activation(name, _as_matrix(x)))


def _as_matrix(x: Any) -> Any:
    """Return a number as a 1 × 1 matrix; a function in it is such a matrix already."""
    inner = x.args[0] if isinstance(x, sympy.Trace) else None
    if isinstance(inner, Activation) and inner.shape == (1, 1):
        return inner
    if isinstance(x, sympy.Mul) and any(isinstance(part, sympy.Trace) for part in x.args):
        return sympy.HadamardProduct(*map(_as_matrix, x.args), evaluate=False)
    return matmul(x, sympy.OneMatrix(1, 1))


def _power(e: Pow) -> Any:
    """Return a root, and one over a positive entry, by functions of one entry."""
    base, exponent = e.args
    if not exponent.is_Rational or not _is_division(base, exponent):
        return e
    name = RECIPROCAL if exponent.q == 1 else "sqrt" if exponent > 0 else RSQRT
    value = _of_entry(name, base)
    times = abs(int(exponent.p))
    return value if times == 1 else Pow(value, times, evaluate=False)


def _is_division(base: Any, exponent: sympy.Rational) -> bool:
    """Return whether a power is a root, or divides by an entry that is never zero."""
    if exponent.q != 1:
        return bool(exponent.q == 2)
    whole = base.parent if isinstance(base, MatrixElement) else None
    positive = isinstance(whole, RowSoftmax) and whole.mask is None
    positive |= isinstance(whole, Activation) and whole.name in ("exp", "sigmoid")
    return bool(exponent < 0) and positive


def _by_entries(e: FunctionMatrix) -> Any:
    """Return Σ_s Σ_t f(s, t) e_s e_tᵀ."""
    rows, cols, function = e.args
    s, t = (sympy.Dummy(name.name, integer=True) for name in function.variables)
    entry = function.expr.xreplace(dict(zip(function.variables, (s, t), strict=True)))
    unit = matmul(entry, OneHot(s, rows), sympy.Transpose(OneHot(t, cols)))
    return HeadSum(unit, (s, rows), (t, cols))


def _expanded(e: Determinant) -> Any:
    """Return the determinant of a matrix with few rows as a sum over permutations."""
    (x,) = e.args
    terms = []
    for columns in permutations(map(sympy.Integer, range(int(x.shape[0])))):
        entries = [stated(MatrixElement, x, sympy.Integer(i), j) for i, j in enumerate(columns)]
        sign = sympy.Integer(Permutation(columns).signature())
        terms.append(sympy.Mul(*([sign] if sign != 1 else []), *entries, evaluate=False))
    return terms[0] if len(terms) == 1 else sympy.Add(*terms, evaluate=False)
