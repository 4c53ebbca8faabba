"""Whether a hypothesis says the same of all values of its free indices.

As a hypothesis `M^h = V^h O^h` is used for all h, so `V^h` has to be a member of a family, and no
symbol that has h in its name: that would be the same matrix for all h.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from sympy import MatrixSymbol, Symbol

from otimes.algebra.notation.tree import Name, Node, latex, walk

LETTERS = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")


def fixed_symbol(
    nodes: Sequence[Node], terms: Sequence[Any], named: Callable[[Name], str]
) -> Name | None:
    """Return a symbol of a hypothesis that has a free index of it in its name, or None.

    `terms` are the sides as SymPy expressions, `named` returns the name that a symbol has there if
    it is no member of a family.
    """
    free = {e for term in terms for e in term.free_symbols}
    plain = {e.name for term in terms for e in term.atoms(Symbol, MatrixSymbol)}
    names = {e for node in nodes for e in walk(node) if isinstance(e, Name)}
    for name in sorted(names, key=latex):
        letters = {c for slot in (*name.sub, *name.sup) for c in LETTERS.findall(slot.text)}
        indices = {Symbol(c + end, integer=True) for c in letters for end in ("", "_free")}
        if indices & free and named(name) in plain:
            return name
    return None
