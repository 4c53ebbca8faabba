r"""Equations between norms, which are as true as their squares: `\|R x\| = \|x\|`.

The square of the norm of a vector is in the language, and the norm is not. Two sides that are not
negative are equal where their squares are.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as Half

from otimes.algebra.notation.affine import fractional_power
from otimes.algebra.notation.tree import (
    Fraction,
    Group,
    Node,
    Norm,
    Number,
    Power,
    Product,
    Root,
    bare,
    walk,
)

SQUARED = "the squares of both sides, which are not negative"


def squared(lhs: Node, rhs: Node) -> tuple[Node, Node] | None:
    r"""Return the squares of two sides, if one is a norm and neither can be negative.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.tree import latex
    >>> (equation,) = parse_formula(r"\|x\| = \sqrt{x^T x}")
    >>> print(*map(latex, squared(*equation.terms)))
    \| x \|^{2} (x^{T} x)
    """
    if not any(_is_norm(e) for side in (lhs, rhs) for e in walk(side)):
        return None
    left, right = _square(lhs), _square(rhs)
    return None if left is None or right is None else (left, right)


def _is_norm(node: Node) -> bool:
    return isinstance(node, Norm) and node.mark == r"\|"


def _square(node: Node) -> Node | None:
    """Return the square of a term that cannot be negative, or None where it may be."""
    e, two = bare(node), Number("2")
    if isinstance(e, Number) or _is_norm(e):
        return Power(e, two)
    if isinstance(e, Root) and e.degree in ("", "2"):
        return Group(e.argument)
    if isinstance(e, Power) and fractional_power(e) == Half(1, 2):
        return e.base
    if isinstance(e, Fraction):
        above, below = _square(e.above), _square(e.below)
        return None if above is None or below is None else replace(e, above=above, below=below)
    if isinstance(e, Product) and {*e.marks} <= {"", "/", r"\cdot"}:
        factors = [_square(factor) for factor in e.factors]
        known = tuple(factor for factor in factors if factor is not None)
        return replace(e, factors=known) if len(known) == len(factors) else None
    return None
