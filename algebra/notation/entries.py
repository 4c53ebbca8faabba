"""Entries of declared vectors: `u_i` where the text declares `u` and not `u_i`.

A formula is read so where it does not conform with the `u_i` as a family of vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from otimes.algebra.notation.symbols import Declared, Symbols, full_key
from otimes.algebra.notation.tree import (
    Entry,
    Grid,
    Name,
    Node,
    Number,
    Power,
    bare,
    latex,
    mapped,
    walk,
)


def with_entries(terms: Sequence[Node], symbols: Symbols) -> list[Node] | None:
    """Return terms in which the members of declared vectors are entries, or None without any.

    None as well where one of them is transposed, which a number never is.
    """
    parts = [e for term in terms for e in walk(term)]
    mine = {e for e in parts if isinstance(e, Name) and _is_entry(e, symbols)}
    if any(isinstance(e, Power) and e.exponent == "T" and bare(e.base) in mine for e in parts):
        return None
    return [_replaced(term, mine) for term in terms] if mine else None


def has_plain_entries(terms: Sequence[Node]) -> bool:
    r"""Return whether numbered letters stand in a matrix beside a bold one: `𝐲 = [y_1; y_2]`."""
    parts = [e for term in terms for e in walk(term)]
    bold = {e.base for e in parts if isinstance(e, Name) and e.style == "bf" and not e.sub}
    cells = [c for e in parts if isinstance(e, Grid) for row in e.rows for c in row if c]
    names = [c for c in map(bare, cells) if isinstance(c, Name) and c.sub and not c.style]
    return any(c.base in bold for c in names)


def read_as_entries(terms: Sequence[Node], symbols: Symbols) -> list[str]:
    """Return the members of declared vectors, as LaTeX."""
    names = (e for term in terms for e in walk(term) if isinstance(e, Name))
    return sorted({latex(replace(e, sup=())) for e in names if _is_entry(e, symbols)})


def _is_entry(e: Name, symbols: Symbols) -> bool:
    """Return whether a symbol has one index, and is declared as a vector without it."""
    known = symbols.lookup(e)[1]
    if known is None or not known.line or not _is_vector(known):
        return False
    power = not e.sup or (len(e.sup) == 1 and e.sup[0].kind == "number" and _is_power(e, symbols))
    kinds = [slot.kind for slot in e.sub]
    bold = known.full.isalpha() and not known.full.isascii()  # 𝐲 is declared, and y_1 its entry
    one = (kinds == ["index"] or (kinds == ["number"] and bold and not e.style)) and not e.select
    own = full_key(replace(e, sub=(), sup=()))
    return one and power and known.full in (("", own) if e.base.islower() else (own,))


def _is_vector(known: Declared) -> bool:
    """Return whether a declared symbol has a length: a vector, a matrix of one row or column."""
    if known.kind == "matrix":
        column = bool(known.rows) and known.cols in ((), (1,))
        return column or (known.rows in ((), (1,)) and bool(known.cols))
    return known.kind == "vector" and bool(known.rows)


def _is_power(e: Name, symbols: Symbols) -> bool:
    return e.sup[0].text.isdigit() and e.sup[0].text != "1" and not symbols.is_labelled(e)


def _replaced(node: Any, mine: set[Name]) -> Any:
    def change(part: Any) -> Any:
        if not isinstance(part, Name):
            return None
        if part not in mine:
            return part
        whole = replace(part, sub=(), sup=())
        entry = Entry(whole, part.sub, span=part.span)
        return Power(entry, Number(part.sup[0].text), span=part.span) if part.sup else entry

    return mapped(node, change)
