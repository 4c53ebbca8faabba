r"""Left sides that are read as products, and may be what the equation defines.

A bilinear form, `\langle x, y \rangle = x^T A y`, the value of a function, `z(t) = t a + b`, a
variation, `\delta x = x - \hat x`.
"""

from __future__ import annotations

from otimes.algebra.notation.tree import (
    Apply,
    Group,
    Name,
    Node,
    Power,
    Product,
    bare,
    latex,
    walk,
)

VARIATIONS = (r"\delta", r"\Delta", "d")


def may_be_defined(left: Node, right: Node) -> bool:
    r"""Return whether an equation may say what its left side is, though it is no symbol.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> def defined(tex):
    ...     return may_be_defined(*parse_formula(tex)[0].terms)
    >>> defined(r"z(t) = t a + b"), defined(r"\delta x = x - y"), defined(r"\delta x = 2 \delta y")
    (True, True, False)
    >>> defined("A(x) = x^T B"), defined("A(x + y) = A x")
    (True, False)
    """
    return _is_a_form(left, right) or _is_a_value(left, right) or _is_a_variation(left, right)


def _is_a_form(left: Node, right: Node) -> bool:
    form, by = bare(left), bare(right)
    if not (isinstance(form, Apply) and form.function.base == "inner" and isinstance(by, Product)):
        return False
    ends = [e.base if isinstance(e, Power) else e for e in map(bare, by.factors)]
    plain = [*map(bare, form.arguments)]
    both = [[*map(latex, pair)] for pair in (plain, ends[:: len(ends) - 1])]
    return len(ends) > 2 and all(isinstance(e, Name) for e in plain) and both[0] == both[1]


def _is_a_value(left: Node, right: Node) -> bool:
    """Return whether a letter stands before a symbol in brackets, and not on the right side."""
    head, argument = _pair(left)
    inside = isinstance(argument, Group) and isinstance(bare(argument), Name)
    return inside and head is not None and head not in [*walk(right)]


def _is_a_variation(left: Node, right: Node) -> bool:
    head, of = _pair(left)
    if head is None or head.base not in VARIATIONS or head.sub or head.sup:
        return False
    return isinstance(of, Name) and head not in [*walk(right)]


def _pair(node: Node) -> tuple[Name | None, Node | None]:
    """Return the symbol and the factor after it of a product of two, as it is written."""
    inner = bare(node)
    if not isinstance(inner, Product) or len(inner.factors) != 2 or inner.marks[1]:
        return None, None
    head, after = inner.factors
    return (head, after) if isinstance(head, Name) else (None, None)
