"""Expressions rebuilt with other arguments, and the names of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import sympy
from sympy import Basic
from sympy.matrices.expressions.matexpr import MatrixElement


def key(symbol: sympy.Symbol) -> str:
    """Return a unique name of a symbol; dummies with the same name get different ones."""
    if isinstance(symbol, sympy.Dummy):
        return f"{symbol.name}~{symbol.dummy_index}"
    return str(symbol.name)


def parts_of(e: Any, *kinds: type) -> set[Any]:
    """Return the different parts of an expression that are of some classes, as `e.atoms` does.

    The walk is kept, as each claim is asked for members, sums and powers many times.

    >>> A, B = sympy.MatrixSymbol("A", 2, 2), sympy.MatrixSymbol("B", 2, 2)
    >>> sorted(map(str, parts_of(A * B + A, sympy.MatrixSymbol, sympy.MatMul)))
    ['A', 'A*B', 'B']
    """
    try:
        walked = _by_class(e)
    except TypeError:  # a matrix that may change, as sympy.Matrix, has no hash
        return set(e.atoms(*kinds))
    return {part for kind, parts in walked.items() if issubclass(kind, kinds) for part in parts}


@lru_cache(maxsize=1 << 12)
def _by_class(e: Any) -> dict[type, set[Any]]:
    """Return the different parts of an expression by their classes."""
    found: dict[type, set[Any]] = {}
    stack = [e]
    while stack:
        part = stack.pop()
        known = found.setdefault(type(part), set())
        if part not in known:
            known.add(part)
            stack += part.args
    return found


def rebuilt(e: Any, arguments: Iterable[Any]) -> Any:
    """Return a node of the same class with other arguments, unevaluated."""
    kind = type(e)
    if kind in _EVALUATING:
        return kind(*arguments, evaluate=False)
    if kind is sympy.KroneckerProduct:
        return Basic.__new__(kind, *arguments)
    if kind is sympy.BlockMatrix:
        return kind(*[table.tolist() for table in arguments])
    if kind in (MatrixElement, sympy.Sum):
        return stated(kind, *arguments)
    return kind(*arguments)


def stated(kind: type, *arguments: Any) -> Any:
    """Return an entry or a sum over indices with these arguments, unevaluated.

    SymPy's constructors merge a sum of a sum and take the entries of explicit matrices.
    """
    made = sympy.Expr.__new__(kind, *arguments)
    if kind is sympy.Sum:
        made.is_commutative = True
    return made


_EVALUATING = (sympy.Add, sympy.Mul, sympy.Pow, sympy.MatMul, sympy.MatAdd, sympy.MatPow)


def offset(value: Any, indices: Sequence[Any] = ()) -> int:
    """Return the sum of the coefficients of the indices in a value: 1 for i + c, 0 for a size.

    A symbol is an index if it is one of `indices`, or an integer that may be 0, as i is in i + 1.
    """
    if isinstance(value, int) or not value.free_symbols:
        return 0
    found = [s for s in value.free_symbols if s in indices or (s.is_integer and not s.is_positive)]
    return sum(int(sympy.expand(value).coeff(s)) for s in found)
