"""What kind of term a side of an equation is: a value, a size, a shape, an order of growth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations

from otimes.algebra.notation.symbols import text_of
from otimes.algebra.notation.tree import (
    Apply,
    Dots,
    Group,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Product,
    bare,
    is_constant,
    latex,
    walk,
)

MAY_BE_A_FUNCTION = "{} may be a function: declare its shape if it is a matrix"


def is_order(node: Node) -> bool:
    """Return whether a term is `O(n d^2)`."""
    inner = bare(node)
    first = bare(inner.factors[0]) if isinstance(inner, Product) else inner
    name = first.function if isinstance(first, Apply) else first
    return isinstance(name, Name) and name.base == "O" and name is not inner and not name.sub


def has_trace(node: Node) -> bool:
    """Return whether a term has a trace in it."""
    return any(isinstance(e, Apply) and e.function.base in ("tr", "Tr") for e in walk(node))


def occurs(term: Node, inside: Node) -> bool:
    """Return whether a symbol or a function of arguments is a part of another term."""
    text = latex(term)
    return any(latex(e) == text for e in walk(inside) if type(e) is type(term))


def size_name(node: Node) -> str:
    """Return the name of a size that a term is, if its symbol is one; "" for another term."""
    name = bare(node)
    return text_of(name) if isinstance(name, Name) and not is_constant(name) else ""


def is_value(node: Node) -> bool:
    """Return whether a term is made of numbers only: a value that a symbol is given."""
    names = (Name, Apply, Indexed)
    return not any(isinstance(e, names) for e in walk(node)) and not is_constant(node)


def are_shapes(node: Node) -> bool:
    r"""Return whether a term is a shape or a product of shapes: `(m \times n)(n \times p)`."""
    inner = bare(node)
    if not isinstance(inner, Product):
        return False
    if all(isinstance(factor, Group) for factor in inner.factors):
        return all(map(are_shapes, inner.factors))
    sizes = all(isinstance(bare(factor), Name | Number) for factor in inner.factors)
    return sizes and inner.marks[1:] == (r"\times",) * (len(inner.marks) - 1)


def is_range(node: Node) -> bool:
    """Return whether a term is a symbol or a number, so that it may be the end of a range."""
    return isinstance(bare(node), Name | Number)


def lists_a_diagonal(node: Node) -> bool:
    r"""Return whether a term is a diagonal matrix with dots: `\mathrm{diag}(s_1, \dots, s_n)`."""
    term = bare(node)
    if not isinstance(term, Apply) or term.function.base != "diag":
        return False
    return any(isinstance(bare(each), Dots) for each in term.arguments)


def before_brackets(terms: Sequence[Node], once: bool = False) -> list[Name]:
    r"""Return the letters that may be functions: they stand before brackets wherever they occur.

    So it is with `E[X^2] = E[X]^2` and `N(A^T A) = N(A)`, and with `H = H(x)`. Once alone tells
    nothing, `A(B + C)`, unless `once` is said to be enough.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> def letters(tex):
    ...     return [latex(each) for each in before_brackets(parse_formula(tex)[0].terms)]
    >>> letters(r"\kappa(A^T A) = (\kappa(A))^2"), letters("A(B + C) = AB + AC")
    (['\\kappa'], [])
    """
    count: dict[Name, int] = {}
    calls: dict[Name, int] = {}
    for e in (e for term in terms for e in walk(term)):
        if isinstance(e, Name):
            count[e] = count.get(e, 0) + 1
        for head, after in pairwise(e.factors) if isinstance(e, Product) else ():
            if isinstance(head, Name) and _is_in_brackets(after):
                calls[head] = calls.get(head, 0) + 1
    found = [head for head, times in calls.items() if once or times == count[head] > 1]
    for one, other in permutations(map(bare, terms), 2):
        factors = other.factors if isinstance(other, Product) else ()
        alone = isinstance(one, Name) and len(factors) == 2 and factors[0] == one
        if alone and isinstance(one, Name) and _is_in_brackets(factors[1]):
            found.append(one)
    return [head for head in found if not is_constant(head)]


def _is_in_brackets(node: Node) -> bool:
    """Return whether a factor stands in brackets, maybe with a power or a transpose."""
    inner = node.base if isinstance(node, Power) else node
    return isinstance(inner, Group) and not inner.stands_for
