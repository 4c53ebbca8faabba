r"""Vectors of which no length is said, beside a number that may be their length.

In `I - \frac1d \mathbf{1} \mathbf{1}^\top` the column of ones has d entries, or else it is no
projection; and `\mathrm{tr}(I - v v^\top) = d - 1` says how long v is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.elaborate import elaborate
from otimes.algebra.notation.symbols import Declared, Symbols, key_of, text_of
from otimes.algebra.notation.tree import (
    Fraction,
    Group,
    Name,
    Node,
    Root,
    Slot,
    latex,
    mapped,
    walk,
)
from otimes.proofs.documents.proving.attempts import attempted, named
from otimes.proofs.documents.reporting.found import Found
from otimes.proofs.documents.symbols.context import Context, Definition

MOST_SIZES = 3  # numbers of a claim that are tried as lengths


def by_lengths(context: Context, lhs: Node, rhs: Node, symbols: Symbols) -> Found | None:
    """Return the verdict on a claim that is true if vectors have as many entries as a number says.

    None where nothing of the kind makes it true.
    """
    used: dict[str, Definition] = {}
    others = context.instances([lhs, rhs])
    sides = [context.unfolded(side, used, None, others) for side in (lhs, rhs)]
    ones = [e for side in sides for e in walk(side) if _is_plain_ones(e)]
    vectors = _of_no_length(sides, symbols)
    if not (ones or vectors):
        return None
    said = context.declared_hypotheses(sides)
    parts = [e for side in sides for e in walk(side)]
    shapes = [_shape_of(e.stands_for, symbols) for e in parts if isinstance(e, Group)]
    for size in [*_numbers(sides, symbols)][:MOST_SIZES]:
        if any(shape and size not in shape for shape in shapes):
            continue  # what is defined by them is declared to be as long as something else
        trial = symbols.copy()
        trial.known.setdefault(size, Declared("size"))
        trial.known.update({key: Declared("vector", (size,)) for key in vectors})
        a, b = (_with_entries(side, size) for side in sides)
        for given in ([], said) if said else ([],):
            put = [
                replace(h, lhs=_with_entries(h.lhs, size), rhs=_with_entries(h.rhs, size))
                for h in given
            ]
            verdict, reading = attempted(a, b, put, trial)
            if verdict is not None and verdict.status == "proved":
                who = " and ".join([*map(latex, ones[:1]), *vectors])
                names = f"; with {named(used)}" if used else ""
                why = f"true if {who} has {size} entries{names}"
                used_of = tuple(str(given[k]) for k in verdict.used)
                return Found("needs-hypothesis", why, reading=reading, hypotheses=used_of)
    return None


def _shape_of(node: Node | None, symbols: Symbols) -> tuple[object, ...]:
    """Return the sizes that are declared of a symbol, none of one that is not declared."""
    known = symbols.lookup(node)[1] if isinstance(node, Name) else None
    return () if known is None else (*known.rows, *known.cols)


def _of_no_length(sides: Sequence[Node], symbols: Symbols) -> list[str]:
    """Return the keys of vectors that are not declared, or not as long as anything."""
    try:
        undeclared = elaborate(sides, symbols).undeclared
    except OtimesError:
        return []
    found = {key for key, kind in undeclared.items() if kind == "vector"}
    for e in (e for side in sides for e in walk(side) if isinstance(e, Name)):
        key, known = symbols.lookup(e)
        if known is not None and known.kind == "vector" and not known.rows:
            found.add(key)
    return sorted(found)


def _is_plain_ones(e: Node) -> bool:
    return isinstance(e, Name) and e.base == "1" and not e.sub


def _with_entries(node: Any, size: str) -> Any:
    def change(part: Any) -> Any:
        if isinstance(part, Name) and _is_plain_ones(part):
            return Name(part.base, part.style, sub=(Slot("index", size),), span=part.span)
        return None

    return mapped(node, change)


def _numbers(sides: Sequence[Node], symbols: Symbols) -> Iterator[str]:
    """Yield the sizes that are numbers in a claim, and small letters that divide in it."""
    sizes, seen = symbols.sizes(), set[str]()
    for e in (e for side in sides for e in walk(side)):
        below = e.below if isinstance(e, Fraction) else e.argument if isinstance(e, Root) else None
        divides = list(walk(below)) if below is not None else []
        for part in (e, *divides):
            if not isinstance(part, Name) or (text := text_of(part)) in seen:
                continue
            free = part in divides and symbols.lookup(part)[1] is None and text == key_of(part)
            if text in sizes or (free and len(text) == 1 and text.islower()):
                seen.add(text)
                yield text
