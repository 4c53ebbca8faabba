"""What a hypothesis implies that is no sum of its multiples.

Where a sum of squares is zero, each of its squares is: AᵀA + BᵀB = 0 gives A = 0 and B = 0, as do
tr(AᵀA) = 0, A ∘ A + B ∘ B = 0, and a² + b² = 0 for scalars. The axiom `squares_zero` says so of the
sum of all entries. And exp(A) = exp(B) gives A = B, as do other functions that are injective.
Where AB = BA and A has an inverse, A⁻¹ B = B A⁻¹.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.decide.axiom_statements import STATEMENTS, Instance, instance
from otimes.algebra.decide.function_parts import entrywise_root, is_applied
from otimes.algebra.language.inverse_members import is_inverse
from otimes.algebra.language.linear import as_product, matadd, matmul
from otimes.algebra.language.nonlinear import Activation

INJECTIVE = {
    name: form
    for form, stated in enumerate(STATEMENTS["function_injective"]["forms"])
    for name in stated["functions"]
}
"""The form of the axiom for each function: logarithms and roots have to be in the statement."""


def implied(left: Any, right: Any, stated: Sequence[Any] = ()) -> Iterator[Instance]:
    """Yield the instances of axioms that an equation is a premise of, or leads to.

    Inverses exist where they are `stated`.
    """
    yield from squares_that_vanish(left, right)
    inverses = {e.base for side in stated for e in side.atoms(sympy.MatPow) if is_inverse(e)}
    yield from inverses_that_commute(left, right, inverses)
    yield from common_rows(left, right)
    names = [side.name if isinstance(side, Activation) else "" for side in (left, right)]
    if names[0] == names[1] and names[0] in INJECTIVE:
        values = {"g": names[0], "S": left.argument, "T": right.argument}
        yield instance("function_injective", INJECTIVE[names[0]], values)


def common_rows(left: Any, right: Any) -> Iterator[Instance]:
    """Yield the instance of `product_cancel` for diag(w) S = diag(w) T, if w is not zero."""
    sides = [list(e.args) if isinstance(e, sympy.MatMul) else [e] for e in (left, right)]
    first = [side[0] for side in sides]
    if first[0] == first[1] and isinstance(first[0], DiagMatrix) and all(s[1:] for s in sides):
        one, other = (as_product(side[1:]) for side in sides)
        yield instance("product_cancel", 0, {"S": one, "T": other, "w": first[0].args[0]})


def inverses_that_commute(left: Any, right: Any, inverses: Set[Any]) -> Iterator[Instance]:
    """Yield the instances of `inverse_commutes` for an equation XY = YX, for those inverses."""
    one, other = (list(e.args) if isinstance(e, sympy.MatMul) else [] for e in (left, right))
    if len(one) == 2 and one == other[::-1]:
        for x, y in (one, other):
            if x in inverses and isinstance(y, sympy.MatrixSymbol):
                yield instance("inverse_commutes", 0, {"E": x, "F": y})


def squares_that_vanish(left: Any, right: Any) -> Iterator[Instance]:
    """Yield the instances of `squares_zero` for the squares in an equation, premises unproved."""
    squares: list[tuple[Any, Any]] = []
    for factor, term in [*_terms(left, 1), *_terms(right, -1)]:
        if term.is_zero or getattr(term, "is_ZeroMatrix", False):
            continue
        square = _root(term)
        if square is None and isinstance(term, sympy.Trace) and not squares:
            square = term.args[0]  # as where it is a projection: the premise decides
        if square is None or not factor.is_positive:
            return
        squares.append((factor, square))
    for k, (factor, x) in enumerate(squares):
        others = squares[:k] + squares[k + 1 :]
        rest = [_total(other / factor, y) for other, y in others]
        p = matadd(*rest) if len(rest) > 1 else rest[0] if rest else sympy.ZeroMatrix(1, 1)
        yield instance("squares_zero", 0, {"X": x, "p": p})


def _terms(e: Any, sign: int) -> Iterator[tuple[Any, Any]]:
    """Yield the terms of a sum, each with its factor of numbers."""
    for term in e.args if isinstance(e, sympy.MatAdd | sympy.Add) else [e]:
        parts = term.args if _is_product(term) else [term]
        numbers = [x for x in parts if x.is_Rational or (x.is_Symbol and x.is_positive)]
        numbers = numbers if _is_product(term) else []
        factors = [x for x in parts if x not in numbers]
        if not factors:
            factors = [sympy.S.One]
        many = sympy.Mul if not term.is_Matrix else as_product
        rest = (
            factors[0] if len(factors) == 1 else many(*([factors] if term.is_Matrix else factors))
        )
        yield sign * sympy.Mul(*numbers), rest


def _is_product(e: Any) -> bool:
    return isinstance(e, sympy.MatMul | sympy.Mul)


def _total(factor: Any, x: Any) -> Any:
    """Return a factor times the sum of the squares of all entries, as a 1 × 1 matrix."""
    rows, cols = x.shape
    one = sympy.OneMatrix
    parts = [one(1, rows), sympy.HadamardPower(x, 2), one(cols, 1)]
    return matmul(*([] if factor == 1 else [factor]), *parts)


def _root(e: Any) -> Any:
    """Return X if an expression is a sum of squares of the entries of X, or its diagonal is."""
    if not e.is_Matrix and isinstance(e, sympy.Trace):
        return _half(e.args[0])
    if is_applied(e, "abs"):
        return e.argument
    if not e.is_Matrix:
        even = isinstance(e, sympy.Pow) and e.exp.is_Integer and e.exp > 0 and e.exp % 2 == 0
        one = sympy.OneMatrix(1, 1)
        return matmul(e.base ** (e.exp / 2), one) if even and e.base.is_real is not False else None
    if isinstance(e, sympy.HadamardPower | sympy.HadamardProduct):
        return entrywise_root(e)
    factors = [x for x in e.args if type(x) is not sympy.OneMatrix] if _is_product(e) else []
    return _root(factors[0]) if len(factors) == 1 and factors[0].is_Matrix else _half(e)


def _half(e: Any) -> Any:
    """Return X if an expression has the form XᵀX, a product of factors and their transposes."""
    factors = list(e.args) if isinstance(e, sympy.MatMul) else []
    if len(factors) % 2 or not factors or not all(x.is_Matrix for x in factors):
        return None
    middle = len(factors) // 2
    pairs = zip(factors[:middle], reversed(factors[middle:]), strict=True)
    if any(not _same(_turned(x), y) for x, y in pairs):
        return None
    return as_product(factors[middle:])


def _same(x: Any, y: Any) -> bool:
    """Return whether two matrices are one, up to the order of terms."""
    sums = isinstance(x, sympy.MatAdd) and isinstance(y, sympy.MatAdd)
    return x == y or (sums and Counter(x.args) == Counter(y.args))


def _turned(e: Any) -> Any:
    """Return the transpose of a factor: of a sum term by term, of a product factor by factor."""
    if isinstance(e, sympy.MatAdd):
        return matadd(*map(_turned, e.args))
    if isinstance(e, sympy.MatMul):
        numbers = [x for x in e.args if not x.is_Matrix]
        return matmul(*numbers, *[_turned(x) for x in reversed(e.args) if x.is_Matrix])
    return e.args[0] if isinstance(e, sympy.Transpose) else sympy.Transpose(e)
