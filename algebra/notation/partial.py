r"""Sums up to an index: `\sum_{j \le i}`, `\sum_{j < i}`, `\sum_{j=1}^{i}`, `\sum_{j=1}^{i-1}`.

A sum may also leave out an index: `\sum_{j \ne i}`.

An end is an index where it is one letter that is no size, and, above a sum sign, that also stands
as an index of a symbol in the same formula, or over which a sum around it runs. Indices count from
1 in formulas and from 0 in the language; a sum up to i has i + 1 values of an index that counts
from 0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from otimes.algebra.notation.tree import Indexed, Name, Node, Number, Sum, bare, walk

LETTER = r"[a-z]|\\ell"
BUT = re.compile(rf"({LETTER})\s*\\neq?\s*({LETTER})")
UP_TO = re.compile(rf"({LETTER})\s*(\\le|<)\s*({LETTER})")


def letters_in(terms: Iterable[Node]) -> set[str]:
    """Return the letters that stand as indices of symbols."""
    return {
        slot.text
        for term in terms
        for e in walk(term)
        if isinstance(e, Name)
        for slot in (*e.sub, *e.sup)
        if slot.kind == "index"
    }


def end_of(
    e: Indexed, letters: Collection[str], sizes: Collection[str] = ()
) -> tuple[str, int] | None:
    r"""Return the index that a sum runs up to, and how many values more than it: 1, or 0.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (sum_,) = parse_formula(r"\sum_{j < i} x_j")[0].terms
    >>> end_of(sum_, "ij")
    ('i', 0)
    """
    if len(e.indices) != 1:
        return None
    (index,) = e.indices
    if e.kind == "range":
        match = UP_TO.fullmatch(e.lower.strip())
        found = (match[3], int(match[2] != "<")) if match and match[1] == index else None
        return found if found and found[0] not in sizes and found[0] != index else None
    if e.kind == "from" and e.lower == "1" and e.upper is not None:
        found = _upper(bare(e.upper))
    else:
        found = None
    return found if found and found[0] in letters and found[0] != index else None


def left_out_of(e: Indexed) -> str:
    r"""Return the index that a sum leaves out, or "".

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (sum_,) = parse_formula(r"\sum_{j \ne i} x_j")[0].terms
    >>> left_out_of(sum_)
    'i'
    """
    match = BUT.fullmatch(e.lower.strip()) if e.kind == "range" and len(e.indices) == 1 else None
    return match[2] if match and match[1] == e.indices[0] != match[2] else ""


def _upper(upper: Node) -> tuple[str, int] | None:
    if isinstance(upper, Sum) and upper.signs == ("", "-") and upper.terms[1] == Number("1"):
        inner = _upper(bare(upper.terms[0]))
        return None if inner is None else (inner[0], 0)
    plain = isinstance(upper, Name) and not (upper.sub or upper.sup or upper.marks or upper.style)
    if plain and isinstance(upper, Name) and re.fullmatch(LETTER, upper.base):
        return upper.base, 1
    return None
