r"""The syntax of changes: a `d` before a symbol or a bracket, as in `dW\, x` and `d(A^{-1})`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from otimes.algebra.notation.tree import Name, Node, Power, Product, bare, latex, mapped

SIGNS = ("d", r"\mathrm{d}")


def operand(node: Node) -> Node | None:
    """Return what a `d` stands before, None for another term."""
    node = bare(node)
    if not isinstance(node, Product) or len(node.factors) != 2 or "/" in node.marks:
        return None
    sign, of = node.factors
    if not (isinstance(sign, Name) and latex(sign) in SIGNS):
        return None
    return bare(of)


def rewritten(node: Any, change: Callable[[Product], Node | None]) -> Any:
    """Return a term with changes of its parts `d X` in products, where `change` knows them."""

    def of(part: Any) -> Any:
        if not isinstance(part, Product):
            return None
        factors, marks, at = [], [], 0
        while at < len(part.factors):
            pair = part.factors[at : at + 2]
            made = None
            if len(pair) == 2 and isinstance(pair[0], Name) and latex(pair[0]) in SIGNS:
                turned = isinstance(pair[1], Power) and pair[1].exponent == "T"
                inner = pair[1].base if turned and isinstance(pair[1], Power) else pair[1]
                made = change(Product((pair[0], inner), ("", "")))
                made = Power(made, "T") if made is not None and turned else made
            if made is None:
                factors.append(rewritten(part.factors[at], change))
                marks.append(part.marks[at])
                at += 1
            else:
                factors.append(made)
                marks.append(part.marks[at])
                at += 2
        if len(factors) == 1:
            return factors[0]
        return replace(part, factors=tuple(factors), marks=tuple(marks))

    return mapped(node, of)
