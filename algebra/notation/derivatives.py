r"""Derivatives of numbers at matrices: `\frac{\partial \ell}{\partial W}`, `\nabla_W \ell`.

A gradient, `\nabla_W \ell`, has the shape of the matrix. So has a derivative, or in another
convention that of its transpose. Which is meant is not said in most texts: it is read as the one
with which the formula conforms. The derivative of a vector, `\frac{\partial y}{\partial x}`, has a
row for each entry of y, or a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from otimes.algebra.notation.tree import (
    Apply,
    Derivative,
    Fraction,
    Name,
    Node,
    Product,
    Span,
    bare,
    mapped,
    walk,
)
from otimes.algebra.notation.typed import FormulaShapeError, Undeclared

Found = TypeVar("Found")
SIGN = Name(r"\partial")


def derivative(above: Node, below: Node, span: Span) -> Derivative | None:
    """Return the derivative that a fraction of two changes is, or None."""
    if not isinstance(below, Apply) or below.function != SIGN:
        return None
    variable = bare(below.arguments[0])
    if not isinstance(variable, Name) or variable.select:
        return None
    if not isinstance(above, Apply) or above.function != SIGN:
        return None
    return Derivative(above.arguments[0], variable, span=span)


def applied_to_what_follows(
    factors: Sequence[Node], marks: Sequence[str]
) -> tuple[list[Node], list[str]]:
    r"""Return the factors of a product in which `\frac{\partial}{\partial W}` has its operand.

    That is all that follows in the product.
    """
    for k, factor in enumerate(factors[:-1]):
        if not isinstance(factor, Fraction) or factor.above != SIGN or "/" in marks[k + 1 :]:
            continue
        rest = factors[k + 1 :]
        target = rest[0]
        if len(rest) > 1:
            span = (rest[0].span[0], rest[-1].span[1])
            target = Product(tuple(rest), ("", *marks[k + 2 :]), span=span)
        whole = (factor.span[0], target.span[1])
        made = derivative(Apply(SIGN, (target,)), factor.below, whole)
        if made is not None:
            return [*factors[:k], made], [*marks[: k + 1]]
    return list(factors), list(marks)


def layouts(terms: Sequence[Node]) -> list[list[Node]]:
    """Return terms with derivatives of numbers in the other shape, and then those of vectors.

    A gradient, with the sign ∇, has that of its variable. None are returned without derivatives.
    """
    parts = [e for term in terms for e in walk(term) if isinstance(e, Derivative)]
    if all(e.gradient for e in parts):
        return []

    def turned(node: object) -> Node | None:
        if not isinstance(node, Derivative) or node.gradient:
            return None
        return replace(node, turned=not node.turned)

    def by_columns(node: object) -> Node | None:
        if not isinstance(node, Derivative) or node.gradient:
            return None
        return replace(node, by_columns=not node.by_columns)

    return [[mapped(term, turn) for term in terms] for turn in (turned, by_columns)]


def in_either_shape(read: Callable[[Sequence[Node]], Found], terms: Sequence[Node]) -> Found:
    """Return what `read` makes of terms whose derivatives have the shape that conforms.

    Raises what it raises if no shape does: Undeclared where one may.
    """
    try:
        return read(terms)
    except (FormulaShapeError, Undeclared) as error:
        others = layouts(terms)
        if not others:
            raise
        open_ = error
        for other in others:
            try:
                return read(other)
            except Undeclared as undeclared:
                open_ = undeclared
            except FormulaShapeError:
                continue
        raise open_ from None
