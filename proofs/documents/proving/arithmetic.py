r"""Equations of matrices that are given in numbers: `M^{-1} = …`, `\det(M) = 6`.

Both sides are computed with exact numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import sympy

from otimes.algebra.notation.tree import (
    Apply,
    Fraction,
    Grid,
    Group,
    Name,
    Node,
    Number,
    Power,
    Product,
    Sum,
    bare,
    is_constant,
    latex,
    walk,
)
from otimes.proofs.documents.proving.attempts import named
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition

LARGEST = 8  # rows and columns of matrices that are computed with
COMPUTED = frozenset(("exact arithmetic with the numbers of the text",))


class _NotComputedError(Exception):
    """A term that is not made of given numbers, or of what is not defined for them."""


def computed(context: Context, left: Node, right: Node, line: int) -> Found | None:
    """Return the verdict on an equation of matrices of numbers, or None if it is another."""
    used: dict[str, Definition] = {}

    def given(text: str) -> Node | None:
        every = (d for d in reversed(context.numbers.get(text, ())) if d.line <= line)
        known = [*islice(every, 1)] or context.definitions.get(text, [])
        if len(known) != 1 or not context.in_scope(known[0].line, line):
            return None
        used[text] = known[0]
        return known[0].rhs

    parts = [e for side in (left, right) for e in walk(side)]
    wanted = any(isinstance(e, Name) for e in parts) and any(map(_is_beyond, parts))
    if not wanted:
        return None
    try:
        a, b = _values(left, right, given)
    except _NotComputedError:
        return None
    if getattr(a, "shape", None) != getattr(b, "shape", None):
        return None
    if a == b:
        why = f"computed, with {named(used)}" if used else "computed"
        return Found("proved", why, facts=COMPUTED)
    shown = str(a.tolist() if isinstance(a, sympy.MatrixBase) else a)
    return Found("refuted", f"in numbers, the left side is {shown}; with {named(used)}")


def is_symmetric(value: Node) -> bool:
    r"""Return whether a matrix in numbers is its transpose, or is not computed.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (said,) = parse_formula(r"S = \begin{bmatrix} 1 & 2 \\ 2 & 1 \end{bmatrix}")
    >>> is_symmetric(said.terms[1])
    True
    """
    try:
        found = _value(value, lambda text: None)
    except _NotComputedError:
        return True
    return not isinstance(found, sympy.MatrixBase) or found == found.T


def _values(left: Node, right: Node, given: Callable[[str], Node | None]) -> tuple[Any, Any]:
    """Return both sides; an identity matrix is as large as the other side."""
    sides = [None if _is_identity(side) else _value(side, given) for side in (left, right)]
    for k, value in enumerate(sides):
        if value is None:
            other, said = sides[1 - k], _size_of_identity((left, right)[k])
            if not isinstance(other, sympy.MatrixBase) or not _is_square(other):
                raise _NotComputedError
            if said.isdigit() and int(said) != other.shape[0]:
                raise _NotComputedError
            sides[k] = sympy.eye(other.shape[0]).as_immutable()
    return sides[0], sides[1]


def _is_identity(side: Node) -> bool:
    name = bare(side)
    return isinstance(name, Name) and name.base in ("I", "Id") and is_constant(name)


def _size_of_identity(side: Node) -> str:
    name = bare(side)
    return name.sub[0].text if isinstance(name, Name) and name.sub else ""


def _is_beyond(e: Node) -> bool:
    """Return whether a part is a determinant or an inverse, which need the numbers."""
    determinant = isinstance(e, Apply) and e.function == Name("det")
    return determinant or (isinstance(e, Power) and e.exponent == "-1")


def _value(e: Node, given: Callable[[str], Node | None]) -> Any:
    """Return a number, or a matrix of numbers."""
    match e:
        case Number():
            if not e.text.isdigit():
                raise _NotComputedError  # a decimal may be rounded
            return sympy.Integer(e.text)
        case Name():
            rhs = given(latex(e))
            if rhs is None:
                raise _NotComputedError
            return _value(rhs, given)
        case Group():
            return _value(e.inner, given)
        case Grid():
            return _matrix(e, given)
        case Fraction():
            return _product([_value(e.above, given), _inverse(_value(e.below, given))])
        case Sum():
            return _sum(e, given)
        case Product() if "/" not in e.marks and not any("_" in mark for mark in e.marks):
            return _product([_value(factor, given) for factor in e.factors])
        case Power():
            return _power(e, _value(e.base, given))
        case Apply() if len(e.arguments) == 1 and not e.below:
            return _function(e, _value(e.arguments[0], given))
    raise _NotComputedError


def _matrix(e: Grid, given: Callable[[str], Node | None]) -> Any:
    if e.bracket or len({len(row) for row in e.rows}) != 1 or None in sum(e.rows, ()):
        raise _NotComputedError
    rows = [[_value(cell, given) for cell in row if cell is not None] for row in e.rows]
    if max(len(rows), len(rows[0])) > LARGEST or any(
        isinstance(cell, sympy.MatrixBase) for row in rows for cell in row
    ):
        raise _NotComputedError
    return sympy.ImmutableDenseMatrix(rows)


def _sum(e: Sum, given: Callable[[str], Node | None]) -> Any:
    total: Any = None
    for sign, term in zip(e.signs, e.terms, strict=True):
        value = _value(term, given) * (-1 if sign == "-" else 1)
        if sign not in ("", "+", "-") or (total is not None and not _are_alike(total, value)):
            raise _NotComputedError
        total = value if total is None else total + value
    return total


def _are_alike(a: Any, b: Any) -> bool:
    return bool(getattr(a, "shape", None) == getattr(b, "shape", None))


def _product(factors: list[Any]) -> Any:
    found: Any = sympy.Integer(1)
    for factor in factors:
        both = isinstance(found, sympy.MatrixBase) and isinstance(factor, sympy.MatrixBase)
        if both and found.shape[1] != factor.shape[0]:
            raise _NotComputedError
        found = found * factor
    return found


def _power(e: Power, base: Any) -> Any:
    if e.exponent == "T" and isinstance(base, sympy.MatrixBase):
        return base.T
    if e.exponent == "-1":
        return _inverse(base)
    exponent = bare(e.exponent) if isinstance(e.exponent, Node) else None
    small = isinstance(exponent, Number) and exponent.text.isdigit() and len(exponent.text) == 1
    if not isinstance(exponent, Number) or not small or not _is_square(base):
        raise _NotComputedError
    return base ** int(exponent.text)


def _is_square(value: Any) -> bool:
    return not isinstance(value, sympy.MatrixBase) or value.shape[0] == value.shape[1]


def _inverse(value: Any) -> Any:
    if isinstance(value, sympy.MatrixBase):
        if not _is_square(value) or value.det() == 0:
            raise _NotComputedError
        return value.inv()
    if value == 0:
        raise _NotComputedError
    return 1 / value


def _function(e: Apply, value: Any) -> Any:
    if not isinstance(value, sympy.MatrixBase) or not _is_square(value):
        raise _NotComputedError
    if e.function == Name("det"):
        return value.det()
    if e.function.base in ("tr", "Tr", "trace", "Trace") and e.function == Name(e.function.base):
        return value.trace()
    raise _NotComputedError
