r"""Definitions by sums that differ in the letter of an index alone: `\sum_f A^f`, `\sum_g A^g`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from otimes.algebra.notation.tree import Indexed, Node, Slot, latex, mapped, walk
from otimes.proofs.documents.symbols.context import Definition


def are_alike(said: Definition, other: Definition) -> bool:
    r"""Return whether two symbols are defined by one sum, over indices of different letters.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (F,), (G,) = parse_formula(r"F = \sum_f A^f"), parse_formula(r"G = \sum_g A^g")
    >>> are_alike(Definition(*F.terms, 1), Definition(*G.terms, 2))
    True
    >>> are_alike(Definition(*F.terms, 1), Definition(*F.terms, 1))
    False
    """
    mine, theirs = _letters(said.rhs), _letters(other.rhs)
    if latex(said.lhs) == latex(other.lhs) or not mine or not theirs or mine == theirs:
        return False
    return latex(_renamed(said.rhs)) == latex(_renamed(other.rhs))


def _letters(term: Node) -> set[str]:
    """Return the letters over which a term sums everything."""
    sums = (e for e in walk(term) if isinstance(e, Indexed) and e.kind == "all")
    return {letter for e in sums for letter in e.indices}


def _renamed(term: Node) -> Any:
    """Return a term with one letter for each letter of a sum, in the order of the alphabet."""
    letters = sorted(_letters(term))

    def change(part: Any) -> Any:
        if isinstance(part, Slot) and part.text in letters:
            return Slot("index", f"i{letters.index(part.text)}")
        if isinstance(part, Indexed) and {*part.indices} & {*letters}:
            names = tuple(f"i{letters.index(e)}" if e in letters else e for e in part.indices)
            return replace(part, indices=names, body=mapped(part.body, change))
        return None

    return mapped(term, change)
