r"""A number that all terms of an equation have in common, such as `\eta` in `\eta A = \eta B`.

An equation is false for every such number but 0 if it is false without it. So it may be refuted
although nothing says what the number is.

>>> from otimes.algebra.notation.parser import parse_formula
>>> from otimes.algebra.notation.tree import latex
>>> (claim,) = parse_formula(r"-\eta s B = \eta (A - s C)")
>>> eta = claim.terms[0].terms[0].factors[0]
>>> [latex(without_factor(side, eta)) for side in claim.terms]
['- s B', '(A - s C)']
>>> without_factor(parse_formula(r"\eta A + B")[0].terms[0], eta) is None
True
"""

from __future__ import annotations

from dataclasses import replace

from otimes.algebra.notation.symbols import key_of
from otimes.algebra.notation.tree import (
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Product,
    Sum,
    bare,
    latex,
    walk,
)


def common_names(lhs: Node, rhs: Node, keys: frozenset[str]) -> list[Name]:
    """Return the symbols with one of these keys that occur on both sides."""
    left, right = (
        {latex(e): e for e in walk(side) if isinstance(e, Name) and key_of(e) in keys}
        for side in (lhs, rhs)
    )
    return [left[text] for text in sorted(left.keys() & right.keys())]


def without_factor(node: Node, name: Name) -> Node | None:
    """Return a term divided by a factor of all its summands, or None if the symbol remains."""
    found = _divided(node, latex(name))
    if found is None or any(isinstance(e, Name) and key_of(e) == key_of(name) for e in walk(found)):
        return None
    return found


def without_common_ends(lhs: Node, rhs: Node) -> tuple[Node, Node]:
    r"""Return the sides of an equation without the factors with which both begin, or both end.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.tree import latex
    >>> (claim,) = parse_formula("(I + A) x^1 = (I + A)(I + B) x^0")
    >>> [*map(latex, without_common_ends(*claim.terms))]
    ['x^{1}', '(I + B) x^{0}']
    """
    sides = [bare(lhs), bare(rhs)]
    if not all(isinstance(e, Product) and not any(e.marks) for e in sides):
        return lhs, rhs
    left, right = ([*e.factors] for e in sides if isinstance(e, Product))
    while len(left) > 1 < len(right) and latex(bare(left[0])) == latex(bare(right[0])):
        left, right = left[1:], right[1:]
    while len(left) > 1 < len(right) and latex(bare(left[-1])) == latex(bare(right[-1])):
        left, right = left[:-1], right[:-1]
    a, b = (f[0] if len(f) == 1 else Product(tuple(f), ("",) * len(f)) for f in (left, right))
    return a, b


def _divided(node: Node, text: str) -> Node | None:
    if isinstance(node, Name):
        return Number("1", span=node.span) if latex(node) == text else None
    if isinstance(node, Sum):
        terms = [_divided(term, text) for term in node.terms]
        whole = tuple(term for term in terms if term is not None)
        return replace(node, terms=whole) if len(whole) == len(terms) else None
    if isinstance(node, Group):
        inner = _divided(node.inner, text)
        return None if inner is None else replace(node, inner=inner, stands_for=None)
    if isinstance(node, Indexed) and node.mark == r"\sum":
        body = _divided(node.body, text)
        return None if body is None else replace(node, body=body)
    return _without_one(node, text) if isinstance(node, Product) else None


def _without_one(node: Product, text: str) -> Node | None:
    """Return a product with one factor removed, or with the symbol removed from one factor."""
    for k, (factor, mark) in enumerate(zip(node.factors, node.marks, strict=True)):
        divided = None if mark == "/" else _divided(factor, text)
        if divided is None:
            continue
        if not isinstance(divided, Number):
            return replace(node, factors=(*node.factors[:k], divided, *node.factors[k + 1 :]))
        factors = (*node.factors[:k], *node.factors[k + 1 :])
        marks = (*node.marks[:k], *node.marks[k + 1 :])
        if not factors or marks[0] == "/":
            return replace(node, factors=(divided, *factors), marks=("", *marks))
        marks = ("", *marks[1:])
        return factors[0] if len(factors) == 1 else replace(node, factors=factors, marks=marks)
    return None
