r"""Sums up to a capital letter and up to its neighbour: `\sum_{l=1}^{L}`, `\sum_{l=1}^{L-1}`.

Only a small letter is read as an index up to which a sum runs. Where sums of one formula run to L
with different numbers added, and L is no size, L is such an index: it is written as a small letter
that does not occur.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from otimes.algebra.notation.tree import (
    Indexed,
    Name,
    Node,
    Number,
    Slot,
    Sum,
    bare,
    mapped,
    walk,
)

CAPITAL = re.compile(r"[A-Z]")
SMALL = "tsrqpuwvmnkji"


def with_small_ends(terms: Sequence[Node], sizes: Collection[str]) -> list[Node]:
    r"""Return terms with small letters for the capitals up to whose neighbours sums run, too.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> from otimes.algebra.notation.tree import latex
    >>> (said,) = parse_formula(r"\sum_{l=1}^{L} a^l = \sum_{l=1}^{L-1} a^l + a^L")
    >>> [latex(each) for each in with_small_ends(said.terms, ())]
    ['\\sum_{l=1}^{t} a^{l}', '\\sum_{l=1}^{t - 1} a^{l} + a^{t}']
    """
    nodes = [e for term in terms for e in walk(term)]
    ends: dict[str, list[int]] = {}
    for e in nodes:
        if isinstance(e, Indexed) and (end := _end(e)) is not None:
            ends.setdefault(end[0], []).append(end[1])
    bases = [e.base for e in nodes if isinstance(e, Name)]
    capitals = [
        letter
        for letter, numbers in ends.items()
        if len({*numbers}) > 1 and letter not in sizes and bases.count(letter) == len(numbers)
    ]
    if not capitals:
        return [*terms]
    slots = [slot.text for e in nodes if isinstance(e, Name) for slot in (*e.sub, *e.sup)]
    bound = [index for e in nodes if isinstance(e, Indexed) for index in e.indices]
    taken = {*sizes, *"".join([*slots, *bases, *bound])}
    free = (letter for letter in SMALL if letter not in taken)
    small = dict(zip(capitals, free, strict=False))
    return [_renamed(term, small) for term in terms]


def _end(e: Indexed) -> tuple[str, int] | None:
    """Return the capital up to which a sum from 1 runs, and the number that is added to it."""
    if e.kind != "from" or e.lower != "1" or len(e.indices) != 1 or e.upper is None:
        return None
    upper, number = bare(e.upper), 0
    if isinstance(upper, Sum) and len(upper.terms) == 2 and upper.signs[0] in ("", "+"):
        added = bare(upper.terms[1])
        if not isinstance(added, Number) or not added.text.isdigit():
            return None
        number = int(f"{upper.signs[1]}{added.text}")
        upper = bare(upper.terms[0])
    if not isinstance(upper, Name) or upper != Name(upper.base):
        return None
    return (upper.base, number) if CAPITAL.fullmatch(upper.base) else None


def _renamed(term: Node, small: dict[str, str]) -> Node:
    def change(part: Any) -> Any:
        if isinstance(part, Name) and part.base in small:
            return replace(part, base=small[part.base])
        if not isinstance(part, Slot):
            return None
        head, tail = part.text[:1], part.text[1:]
        if head not in small or not re.fullmatch(r"(?:\s*[-+]\s*\d+)?", tail):
            return None
        return Slot("expression" if tail else "index", small[head] + tail)

    renamed: Node = mapped(term, change)
    return renamed
