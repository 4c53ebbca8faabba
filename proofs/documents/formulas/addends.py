r"""Sums of which two addends have different lengths, whatever their other symbols are.

In `W x + b` the product has as many entries as W has rows, whatever x is; a declared b with another
number of entries cannot be added to it, and neither can another vector. In `x W + b` it is W's
columns that count. What would conform with W transposed counts only in a text with one convention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.symbols import Declared, Symbols
from otimes.algebra.notation.tree import Name, Node, Power, Product, Sum, bare, latex, walk


def unequal(terms: Sequence[Node], symbols: Symbols) -> tuple[str, list[Node]] | None:
    """Return how two addends of terms that are equated differ in length, with their symbols."""
    for group in _groups(terms):
        vectors = {each: size for each in group if (size := _length(each, symbols))}
        for first, size in vectors.items():
            for other, its in vectors.items():
                if _differ(size, its):
                    return _said(first, size, other, its), [first, other]
            for left in (True, False):
                for product in group if _all_on_one_side(group, symbols, left) else ():
                    weight = _weight(product, symbols, left)
                    if (
                        weight is not None
                        and _differ(size, weight[1])
                        and (
                            _differ(size, weight[2])
                            or symbols.convention == ("column" if left else "row")
                        )
                    ):
                        return _said(first, size, product, weight[1]), [first, weight[0]]
    return None


def declared_addends(terms: Sequence[Node], symbols: Symbols) -> list[Node]:
    """Return the addends of terms and of sums within of which all symbols are declared."""
    found = dict.fromkeys(addend for group in _groups(terms) for addend in group)
    return [
        each
        for each in found
        if isinstance(each, Product)
        and all(_declared(e, symbols) is not None for e in walk(each) if isinstance(e, Name))
    ]


def _groups(terms: Sequence[Node]) -> Iterator[list[Node]]:
    """Yield the addends that have one shape: those of all terms, and those of a sum within."""
    yield [addend for term in terms for addend in _addends(term)]
    for term in terms:
        for e in walk(term):
            if isinstance(e, Sum) and e is not bare(term):
                yield _addends(e)


def _addends(node: Node) -> list[Node]:
    inner = bare(node)
    if not isinstance(inner, Sum):
        return [inner]
    return [addend for term in inner.terms for addend in _addends(term)]


def _length(node: Node, symbols: Symbols) -> Size:
    """Return the number of entries of a symbol that is declared as a vector, () of others."""
    known = _declared(node, symbols)
    return known.rows if known is not None and known.kind == "vector" else ()


def _weight(node: Node, symbols: Symbols, left: bool) -> tuple[Node, Size, Size] | None:
    """Return the matrix that a product begins or ends with, how many entries that gives, and not.

    None if all its symbols are declared, as its shape is known then.
    """
    if not isinstance(node, Product) or any(node.marks):
        return None
    factors = [bare(factor) for factor in node.factors]
    names = [e for factor in factors for e in walk(factor) if isinstance(e, Name)]
    if all(_declared(e, symbols) is not None for e in names):
        return None
    end, other = (factors[0], factors[-1]) if left else (factors[-1], factors[0])
    turned = isinstance(end, Power) and end.exponent == "T"
    weight = bare(end.base) if isinstance(end, Power) and turned else end
    known = _declared(weight, symbols)
    if known is None or known.kind != "matrix" or _declared(other, symbols) is not None:
        return None
    sizes = known.rows, known.cols
    return weight, *(sizes[::-1] if left == turned else sizes)


def _all_on_one_side(group: Sequence[Node], symbols: Symbols, left: bool) -> bool:
    """Return whether no product of a sum has its weight on the other side."""
    return not any(_weight(each, symbols, not left) for each in group)


def _declared(node: Node, symbols: Symbols) -> Declared | None:
    """Return the declaration of a symbol, None of one that has none and of other terms."""
    known = symbols.lookup(node)[1] if isinstance(node, Name) and not node.select else None
    return known if known is not None and known.line and known.trusted else None


def _differ(size: Size, other: Size) -> bool:
    """Return whether two sizes are different names."""
    named = all(len(each) == 1 and isinstance(each[0], str) for each in (size, other))
    return named and size != other


def _said(first: Node, size: Size, other: Node, its: Size) -> str:
    return f"{latex(first)} has {size[0]} entries, and {latex(other)} has {its[0]}"
