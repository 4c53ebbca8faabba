r"""Indices that are a letter with a whole number added: `l+1`, `i-1`, `i`, `2`.

They stand in subscripts and superscripts, and as the ends of sums: `\sum_{j \le i-1}`,
`\sum_{j=1}^{i+1}`. A letter is moved in all these together, and in exponents: `\gamma^{i-1-j}`.

>>> from otimes.algebra.notation.parser import parse_formula
>>> from otimes.algebra.notation.tree import latex
>>> (sum_,) = parse_formula(r"\sum_{j \le i} v_j k_i")[0].terms
>>> latex(moved(sum_, {"i": Affine("i", -1)}))
'\\sum_{j<i} v_{j} k_{i-1}'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from otimes.algebra.notation.tree import (
    Apply,
    Entry,
    Indexed,
    Name,
    Node,
    Number,
    Power,
    Slot,
    Sum,
    bare,
    children,
    latex,
    mapped,
    walk,
)

LETTER = r"[a-z]|\\ell"
AFFINE = re.compile(rf"({LETTER})(?:\s*([-+])\s*(\d+))?")
NUMBER = re.compile(r"\d+|\(\d+\)")
UP_TO = re.compile(rf"(?:[01]\s*\\le\s*)?({LETTER})\s*(\\le|<)\s*({LETTER})(?:\s*([-+])\s*(\d+))?")
DIFFERENCE = re.compile(rf"({LETTER})([-+]\d+)?-({LETTER})([-+]\d+)?")
RATIONAL = re.compile(
    r"([-+]?)(?:(\d{1,2})(?:/([248]))?|\\[td]?frac(?:(\d)([248])|\{(\d{1,2})\}\{([248])\}))"
)


class Affine(NamedTuple):
    """An index: a letter, or none, and a whole number that is added to it."""

    letter: str
    number: int


def affine(slot: Slot) -> Affine | None:
    """Return an index as a letter and a number, or None where it is of another form.

    >>> affine(Slot("expression", "l-1")), affine(Slot("label", "(2)"))
    (Affine(letter='l', number=-1), Affine(letter='', number=2))
    """
    if NUMBER.fullmatch(slot.text):
        return Affine("", int(slot.text.strip("()")))
    match = AFFINE.fullmatch(slot.text) if slot.kind in ("index", "expression") else None
    return Affine(match[1], int(f"{match[2] or '+'}{match[3] or 0}")) if match else None


class Difference(NamedTuple):
    """An exponent: a letter less another one, and a whole number that is added."""

    first: str
    second: str
    number: int

    def __str__(self) -> str:
        return f"{self.first}-{self.second}{f'{self.number:+d}' if self.number else ''}"


def difference(slot: Slot) -> Difference | None:
    """Return an exponent that is a difference of two letters, or None.

    >>> print(difference(Slot("expression", "i-1-j")))
    i-j-1
    """
    match = (
        DIFFERENCE.fullmatch(re.sub(r"\s", "", slot.text)) if slot.kind == "expression" else None
    )
    if match is None:
        return None
    return Difference(match[1], match[3], int(match[2] or 0) + int(match[4] or 0))


def half(e: Name) -> int:
    r"""Return the sign of a symbol's exponent 1/2 or −1/2, or 0 where it has none.

    >>> half(Name("A", sup=(Slot("expression", "-1/2"),))), half(Name("A"))
    (-1, 0)
    """
    power = fractional(e)
    return 0 if power is None or abs(power) != Fraction(1, 2) else -1 if power < 0 else 1


def fractional(e: Name) -> Fraction | None:
    r"""Return a symbol's exponent that is negative or no whole number, or None.

    >>> fractional(Name("k", sup=(Slot("expression", "-1/4"),))), fractional(Name("A"))
    (Fraction(-1, 4), None)
    """
    power = rational(e.sup[0].text) if len(e.sup) == 1 else None
    return None if power is None or (power >= 0 and power.denominator == 1) else power


def fractional_power(e: Power) -> Fraction | None:
    """Return an exponent in numbers that is negative or no whole number, or None."""
    power = rational(latex(e.exponent)) if isinstance(e.exponent, Node) else None
    return None if power is None or (power >= 0 and power.denominator == 1) else power


def rational(text: str) -> Fraction | None:
    r"""Return an exponent that is a small number over a power of two, or None.

    >>> rational(r"-\frac{3}{2}"), rational("n/2")
    (Fraction(-3, 2), None)
    """
    match = RATIONAL.fullmatch(re.sub(r"[\s()]", "", text))
    if match is None:
        return None
    above, below = match[2] or match[4] or match[6], match[3] or match[5] or match[7] or "1"
    return Fraction(int(f"{match[1]}{above}"), int(below))


def last_of(e: Indexed) -> Affine | None:
    r"""Return the last value that a sum from the first one on runs to, or None.

    `\sum_{j<i}` runs to i − 1. The first value is 0 or 1, or not written.
    """
    if len(e.indices) != 1:
        return None
    if e.kind == "range":
        match = UP_TO.fullmatch(e.lower.strip())
        if match is None or match[1] != e.indices[0] or match[3] == match[1]:
            return None
        number = int(f"{match[4] or '+'}{match[5] or 0}")
        return Affine(match[3], number - (match[2] == "<"))
    if e.kind != "from" or e.lower not in ("0", "1") or e.upper is None:
        return None
    upper = bare(e.upper)
    number = 0
    if isinstance(upper, Sum) and len(upper.terms) == 2 and upper.signs[0] in ("", "+"):
        last = upper.terms[1]
        if not isinstance(last, Number) or not last.text.isdigit():
            return None
        number = int(f"{upper.signs[1]}{last.text}")
        upper = bare(upper.terms[0])
    plain = isinstance(upper, Name) and not (upper.sub or upper.sup or upper.marks or upper.style)
    if plain and isinstance(upper, Name) and re.fullmatch(LETTER, upper.base):
        return Affine(upper.base, number) if upper.base != e.indices[0] else None
    return None


def without_ends(node: Node) -> Iterator[Node]:
    """Yield the nodes in a term but those that say up to which index a sum runs."""
    yield node
    only_body = isinstance(node, Indexed) and last_of(node) is not None
    for each in [node.body] if isinstance(node, Indexed) and only_body else children(node):
        yield from without_ends(each)


def is_in_range(letter: str, e: Indexed) -> bool:
    """Return whether what a sum runs over mentions a letter."""
    upper = latex(e.upper) if e.upper is not None else ""
    return any(is_mentioned(letter, text) for text in (e.lower, upper))


def is_mentioned(letter: str, text: str) -> bool:
    """Return whether a letter stands in a text by itself, and not in a word or a command."""
    return re.search(rf"(?<![a-zA-Z\\]){re.escape(letter)}(?![a-zA-Z])", text) is not None


def moved(node: Any, moves: Mapping[str, Affine], bracketed: bool = False) -> Any:
    """Return a term with other indices in the place of letters, also at the ends of sums."""

    def change(part: Any) -> Any:
        if isinstance(part, Slot):
            return _slot(part, moves, bracketed)
        last = last_of(part) if isinstance(part, Indexed) else None
        if last is None or last.letter not in moves:
            return None
        to = moves[last.letter]
        body = moved(part.body, moves, bracketed)
        return _with_last(part, Affine(to.letter, to.number + last.number), body)

    return mapped(node, change)


def _with_last(e: Indexed, last: Affine, body: Node) -> Indexed:
    if e.kind == "range":
        below = last.number < 0 and bool(last.letter)
        number = last.number + below
        relation = "<" if below else r"\le "
        return replace(
            e, lower=f"{e.indices[0]}{relation}{written(last.letter, number)}", body=body
        )
    if not last.letter:
        return replace(e, upper=Number(f"{last.number}"), body=body)
    upper: Node = Name(last.letter)
    if last.number:
        sign = "-" if last.number < 0 else "+"
        upper = Sum((upper, Number(f"{abs(last.number)}")), ("", sign))
    return replace(e, upper=upper, body=body)


def written(letter: str, number: int) -> str:
    """Return a letter and a number as an index is written.

    >>> written("i", 0), written("i", -1), written("", 2)
    ('i', 'i-1', '2')
    """
    return f"{letter}{number:+d}" if letter and number else letter or f"{number}"


def _slot(slot: Slot, moves: Mapping[str, Affine], bracketed: bool) -> Slot:
    known = affine(slot)
    if known is None:
        return _difference(slot, moves)
    if known.letter not in moves:
        return slot
    to = moves[known.letter]
    number = to.number + known.number
    if not to.letter:
        return Slot("label", f"({number})") if bracketed else Slot("number", f"{number}")
    return Slot("expression" if number else "index", written(to.letter, number))


def _difference(slot: Slot, moves: Mapping[str, Affine]) -> Slot:
    """Return a difference of letters with others in their place, as far as these are letters."""
    known = difference(slot)
    if known is None:
        return slot
    first = moves.get(known.first, Affine(known.first, 0))
    second = moves.get(known.second, Affine(known.second, 0))
    if not (first.letter and second.letter):
        return slot
    number = known.number + first.number - second.number
    return Slot("expression", str(Difference(first.letter, second.letter, number)))


def ends_of(terms: Iterable[Node]) -> set[str]:
    """Return the letters up to which sums run."""
    sums = (e for term in terms for e in walk(term) if isinstance(e, Indexed))
    return {last.letter for e in sums if (last := last_of(e)) is not None}


def first_value(e: Indexed) -> str:
    """Return "0" or "1" where a sum says that it begins there, or ""."""
    said = e.lower if e.kind == "from" else e.lower[:1] if e.kind == "range" else ""
    return said if said in ("0", "1") else ""


def first_values(terms: Iterable[Node]) -> set[str]:
    """Return what indices count from: "0" and "1" for the sums that say so, "" for an index 1."""
    found = set()
    for e in (e for term in terms for e in walk(term)):
        if isinstance(e, Indexed):
            found |= {first_value(e)} & {"0", "1"}
    return found | ({""} if _has_number(terms) else set())


def _has_number(terms: Iterable[Node]) -> bool:
    slots = (slot for term in terms for e in walk(term) for slot in _slots(e))
    return any(slot.kind == "number" for slot in slots)


def _slots(node: Node) -> tuple[Slot, ...]:
    """Return the indices and labels that stand at a node itself."""
    if isinstance(node, Name):
        return (*node.sub, *node.sup)
    if isinstance(node, Entry):
        return node.indices
    return node.below if isinstance(node, Apply) else ()
