r"""Sums up to an index: `\sum_{j \le i}`, `\sum_{j < i}`, `\sum_{j=1}^{i}`, `\sum_{j=1}^{i-1}`.

A sum may also leave out an index: `\sum_{j \ne i}`.

An end is an index where it is one letter that is no size, and, above a sum sign, that also stands
as an index of a symbol in the same formula, or over which a sum around it runs, or up to which
another sum runs but for a number, as L does beside L - 1. Indices count from
1 in formulas and from 0 in the language; a sum up to i has i + 1 values of an index that counts
from 0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from otimes.algebra.notation.affine import LETTER, affine, first_value, last_of
from otimes.algebra.notation.slices import as_slots
from otimes.algebra.notation.tree import Entry, Indexed, Name, Node, walk

BUT = re.compile(rf"({LETTER})\s*\\neq?\s*({LETTER})")


def letters_in(terms: Iterable[Node]) -> set[str]:
    """Return the letters that stand as indices of symbols, maybe with a number added."""
    nodes = [e for term in terms for e in walk(term)]
    slots = [slot for e in nodes if isinstance(e, Name) for slot in (*e.sub, *e.sup)]
    slots += [slot for e in nodes if isinstance(e, Entry) for slot in e.indices]
    selects = [e.select for e in nodes if isinstance(e, Name) and e.select]
    slots += [slot for select in selects for slot in as_slots(select)]
    plain = {slot.text for slot in slots if slot.kind == "index"}
    return plain | {at.letter for slot in slots if (at := affine(slot)) and at.letter}


def ends_apart(terms: Iterable[Node]) -> set[str]:
    """Return the letters up to which sums run with different numbers added."""
    numbers: dict[str, set[int]] = {}
    for e in (e for term in terms for e in walk(term) if isinstance(e, Indexed)):
        last = last_of(e)
        if last is not None and e.kind == "from":
            numbers.setdefault(last.letter, set()).add(last.number)
    return {letter for letter, found in numbers.items() if len(found) > 1}


def end_of(
    e: Indexed,
    letters: Collection[str],
    sizes: Collection[str] = (),
    bound: Collection[str] = (),
    from_zero: bool = False,
) -> tuple[str, int] | None:
    r"""Return the index that a sum runs up to, and how many values more than it.

    Those of `bound` run over a range of their own, which a sum does not exceed. `from_zero`:
    indices count from 0 in the formula.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (sum_,) = parse_formula(r"\sum_{j < i} x_j")[0].terms
    >>> end_of(sum_, "ij")
    ('i', 0)
    """
    last = last_of(e)
    if not from_zero and first_value(e) == "0":
        return None
    if last is None or last.letter in sizes or (last.number > 0 and last.letter in bound):
        return None
    if e.kind == "from" and last.letter not in letters:
        return None
    return last.letter, last.number + 1


def left_out_of(e: Indexed) -> str:
    r"""Return the index that a sum leaves out, or "".

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> (sum_,) = parse_formula(r"\sum_{j \ne i} x_j")[0].terms
    >>> left_out_of(sum_)
    'i'
    """
    match = BUT.fullmatch(e.lower.strip()) if e.kind == "range" and len(e.indices) == 1 else None
    return match[2] if match and match[1] == e.indices[0] != match[2] else ""
