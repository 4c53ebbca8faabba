"""Whole numbers in formulas: `n - 1`, `2*d`, `j - i`, as SymPy expressions of their symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy

from otimes.algebra.notation.tree import (
    Fraction,
    Group,
    Name,
    Node,
    Number,
    Power,
    Product,
    Sum,
)


def arithmetic(node: Node, symbol: Callable[[Name], Any]) -> Any:
    """Return a number made of whole numbers and symbols, or None where it is not of this form.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> node = parse_formula("2*n - 1")[0].terms[0]
    >>> arithmetic(node, lambda name: sympy.Symbol(name.base))
    2*n - 1
    """
    if isinstance(node, Number):
        return sympy.Integer(node.text) if node.text.isdigit() else None
    if isinstance(node, Name):
        return symbol(node)
    if isinstance(node, Group):
        return arithmetic(node.inner, symbol)
    parts = [arithmetic(part, symbol) for part in _parts(node)]
    if not parts or None in parts:
        return None
    if isinstance(node, Sum):
        pairs = zip(node.signs, parts, strict=True)
        return sympy.Add(*[-part if sign == "-" else part for sign, part in pairs])
    if isinstance(node, Power):
        return parts[0] ** parts[1]
    if isinstance(node, Fraction):
        return parts[0] / parts[1]
    return sympy.Mul(*parts)


def _parts(node: Node) -> list[Node]:
    """Return the operands of an operation on numbers; none where it is another one."""
    if isinstance(node, Sum) and {*node.signs} <= {"", "+", "-"}:
        return [*node.terms]
    if isinstance(node, Product) and {*node.marks} <= {"", r"\cdot", r"\times"}:
        return [*node.factors]
    if isinstance(node, Power) and isinstance(node.exponent, Node):
        return [node.base, node.exponent]
    if isinstance(node, Fraction):
        return [node.above, node.below]
    return []
