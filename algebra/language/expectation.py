"""Expectations over a random column with named moments, as expressions of the language.

`expectation(e, x, mean, second)` is E[e] where E[x] = `mean` and E[x xᵀ] = `second`. It is
determined by these moments where e has degree 2 at most in x: then e is a constant, a linear part
and a bilinear part, and E is linear. A second moment is symmetric: where a claim needs that, it is
a hypothesis, (M, M.T).

>>> from otimes.algebra.verdict import decide
>>> n = sympy.Symbol("n", integer=True, positive=True)
>>> x, m = (sympy.MatrixSymbol(name, n, 1) for name in "xm")
>>> M = sympy.MatrixSymbol("M", n, n)
>>> decide(expectation((x - m) * (x - m).T, x, m, M), M - m * m.T).status
'proved'
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import sympy
from sympy import HadamardPower, HadamardProduct, MatrixSymbol
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.language.defined import unfolded
from otimes.algebra.language.linear import (
    ConcatHeads,
    HeadSum,
    OneHot,
    StackHeads,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.shape_messages import show_shape
from otimes.algebra.language.sympy_forms import in_language
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.language.unicode import short_text


def expectation(e: Any, x: MatrixSymbol, mean: Any, second: Any) -> Any:
    """Return E[e] over a random n × 1 column x with E[x] = `mean` and E[x xᵀ] = `second`.

    Raises LanguageError where e has a higher degree in x, or x is the argument of a function: two
    moments do not determine its expectation.
    """
    if not isinstance(x, MatrixSymbol) or x.shape[1] != 1:
        raise LanguageError(f"a random variable is a column, and {short_text(x)} was given")
    size = x.shape[0]
    if tuple(mean.shape) != (size, 1) or tuple(second.shape) != (size, size):
        raise ShapeError(
            f"of a random column of {size} the mean is {show_shape((size, 1))} and the second "
            f"moment {show_shape((size, size))}; {show_shape(mean.shape)} and "
            f"{show_shape(second.shape)} were given"
        )
    parts = _parts(unfolded(in_language(e)), x)
    linear = None if parts.linear is None else parts.linear(mean)
    terms = [parts.constant, linear, _second(parts, second, size)]
    made = [term for term in terms if term is not None]
    if not made:
        return sympy.ZeroMatrix(*e.shape) if e.is_Matrix else sympy.S.Zero
    return made[0] if len(made) == 1 else _added(*made)


def _second(parts: _Parts, second: Any, size: Any) -> Any:
    """Return the sum of the bilinear part over all pairs of units, with the second moment."""
    i, j = sympy.Dummy("i", integer=True), sympy.Dummy("j", integer=True)
    units = [sympy.Identity(1)] * 2 if size == 1 else [OneHot(i, size), OneHot(j, size)]
    if parts.bilinear is None:
        return None
    term = parts.bilinear(*units)
    entry = sympy.Trace(matmul(sympy.Transpose(units[0]), second, units[1]))
    if not term.is_Matrix:
        term = matmul(term, sympy.Identity(1))
        made = matmul(entry, *_factors(term))
        return sympy.Trace(made if size == 1 else HeadSum(made, (i, size), (j, size)))
    made = matmul(entry, *_factors(term))
    return made if size == 1 else HeadSum(made, (i, size), (j, size))


def _factors(e: Any) -> list[Any]:
    return list(e.args) if isinstance(e, sympy.MatMul) else [e]


class _Parts(NamedTuple):
    """An expression as a polynomial in x of degree 2; None is zero.

    `linear` takes one column, `bilinear` takes one for each of two places.
    """

    constant: Any = None
    linear: Callable[[Any], Any] | None = None
    bilinear: Callable[[Any, Any], Any] | None = None


def _parts(e: Any, x: MatrixSymbol) -> _Parts:
    if e == x:
        return _Parts(linear=lambda u: u)
    if not e.has(x):
        return _Parts(e)
    if isinstance(e, sympy.MatAdd | sympy.Add):
        return reduce(_sum, [_parts(term, x) for term in e.args])
    times = _TIMES.get(type(e))
    if times is not None:
        return reduce(lambda a, b: _product(a, b, times), [_parts(part, x) for part in e.args])
    powers = _OF_POWERS.get(type(e))
    if powers is not None and e.args[1].is_Integer and e.args[1] > 0:
        base = _parts(e.args[0], x)
        return reduce(lambda a, b: _product(a, b, powers), [base] * int(e.args[1]))
    if isinstance(e, _LINEAR):
        return _inside(e, _parts(e.args[0], x))
    raise LanguageError(
        f"the expectation of {short_text(e)} is not determined by the mean and the second moment "
        f"of {x.name}"
    )


_TIMES: dict[type, Callable[[Any, Any], Any]] = {
    sympy.MatMul: matmul,
    sympy.Mul: sympy.Mul,
    sympy.KroneckerProduct: sympy.KroneckerProduct,
    HadamardProduct: lambda a, b: HadamardProduct(a, b, evaluate=False),
}
_OF_POWERS = {
    HadamardPower: _TIMES[HadamardProduct],
    sympy.MatPow: matmul,
    sympy.Pow: sympy.Mul,
}
_LINEAR = (
    *(sympy.Transpose, sympy.Trace, vec_rows, vec_cols, MatrixElement, DiagMatrix, DiagonalOf),
    *(DiagonalMatrix, HeadSum, ConcatHeads, StackHeads, sympy.Sum),
)


def _sum(a: _Parts, b: _Parts) -> _Parts:
    constant = b.constant if a.constant is None else a.constant
    if a.constant is not None and b.constant is not None:
        constant = _added(a.constant, b.constant)
    return _Parts(constant, _both(a.linear, b.linear), _both(a.bilinear, b.bilinear))


def _both(f: Any, g: Any) -> Any:
    """Return the sum of two functions, either of which may be zero."""
    return (f or g) if f is None or g is None else lambda *u: _added(f(*u), g(*u))


def _added(*terms: Any) -> Any:
    return matadd(*terms) if terms[0].is_Matrix else sympy.Add(*terms)


def _product(a: _Parts, b: _Parts, times: Callable[[Any, Any], Any]) -> _Parts:
    if (a.bilinear and (b.linear or b.bilinear)) or (b.bilinear and a.linear):
        raise LanguageError(
            "the expectation of a product of degree 3 or more is not determined by two moments"
        )
    c, d, f, g, p, q = a.constant, b.constant, a.linear, b.linear, a.bilinear, b.bilinear
    made = [
        _Parts(constant=None if c is None or d is None else times(c, d)),
        _Parts(linear=None if f is None or d is None else lambda u: times(f(u), d)),
        _Parts(linear=None if c is None or g is None else lambda u: times(c, g(u))),
        _Parts(bilinear=None if p is None or d is None else lambda u, v: times(p(u, v), d)),
        _Parts(bilinear=None if f is None or g is None else lambda u, v: times(f(u), g(v))),
        _Parts(bilinear=None if c is None or q is None else lambda u, v: times(c, q(u, v))),
    ]
    return reduce(_sum, made)


def _inside(e: Any, parts: _Parts) -> _Parts:
    """Return a linear operation on each part."""

    def put(inner: Any) -> Any:
        return rebuilt(e, [inner, *e.args[1:]])

    constant, f, p = parts
    return _Parts(
        None if constant is None else put(constant),
        None if f is None else lambda u: put(f(u)),
        None if p is None else lambda u, v: put(p(u, v)),
    )
