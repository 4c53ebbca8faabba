r"""Inequalities with quotients of norms: \|A B\| / (\|A\| \|B\|) \le 1.

>>> from otimes.algebra.notation.parser import parse_formula
>>> from otimes.algebra.notation.tree import latex
>>> (score,) = parse_formula(r"\frac{\|A B\|_F}{\|A\|_F \|B\|_F} \le 1")
>>> print(*map(latex, cleared(*score.terms)), sep=" <= ")
\| A B \|_{F} <= \| A \|_{F} \| B \|_{F}
"""

from __future__ import annotations

from otimes.algebra.notation.tree import (
    Fraction,
    Node,
    Norm,
    Number,
    Product,
    bare,
    latex,
)


def cleared(left: Node, right: Node) -> tuple[Node, Node]:
    """Return the sides of an inequality times a product of norms by which one is divided."""
    quotients = [_quotient(side) for side in (left, right)]
    if quotients[0] is not None and quotients[1] is None:
        above, below = quotients[0]
        other = () if isinstance(bare(right), Number) and latex(bare(right)) == "1" else (right,)
        factors = (*other, *_factors(below))
        return above, Product(factors, ("",) * len(factors)) if len(factors) > 1 else factors[0]
    if quotients[1] is not None and quotients[0] is None:
        return cleared(right, left)[::-1]
    return left, right


def _quotient(node: Node) -> tuple[Node, Node] | None:
    """Return the numerator and the denominator of a fraction by a product of norms, or None."""
    inner = bare(node)
    if not isinstance(inner, Fraction):
        return None
    norms = all(isinstance(bare(e), Norm) for e in _factors(inner.below))
    return (inner.above, inner.below) if norms else None


def _factors(node: Node) -> tuple[Node, ...]:
    inner = bare(node)
    return inner.factors if isinstance(inner, Product) and "/" not in inner.marks else (inner,)


def is_norm(node: Node) -> bool:
    """Return whether a term is a product or a quotient of norms, which is not negative."""
    inner = bare(node)
    if isinstance(inner, Fraction):
        return is_norm(inner.above) and is_norm(inner.below)
    factors = map(bare, _factors(inner))
    return all(isinstance(each, Norm) and each.mark == r"\|" for each in factors)
