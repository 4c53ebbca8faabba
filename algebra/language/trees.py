"""Expressions rebuilt with other arguments, and the names of symbols."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy
from sympy import Basic
from sympy.matrices.expressions.matexpr import MatrixElement


def key(symbol: sympy.Symbol) -> str:
    """Return a unique name of a symbol; dummies with the same name get different ones."""
    if isinstance(symbol, sympy.Dummy):
        return f"{symbol.name}~{symbol.dummy_index}"
    return str(symbol.name)


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
