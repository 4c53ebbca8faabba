r"""Which matrices of a text are shifts: `P_{i,i-1} = 1`, “ones just below the diagonal”."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from otimes.algebra.notation.affine import Affine, affine
from otimes.algebra.notation.tree import (
    Entry,
    Listing,
    Name,
    Node,
    Number,
    Power,
    Product,
    Statement,
    bare,
    latex,
    walk,
)
from otimes.proofs.documents.prose.declared_in_words import Prose
from otimes.proofs.documents.symbols.shifts import Shift, steps_of

ONES = re.compile(
    r"(⟦\d+⟧)[^.⟦]{0,80}?\bones?\s+(?:only\s+)?((?:on|along|in)\s+(?:the|its)\s+(?:first\s+)?"
    r"(?:sub|super|lower|upper)[- ]?diagonal|(?:just|immediately|directly|right)\s+"
    r"(?:below|under|above|over)\s+(?:the|its)\s+(?:main\s+)?diagonal)",
    re.IGNORECASE,
)
WHERE = re.compile(r"([a-z])\s*(?:([+-])\s*(\d))?\s*=\s*([a-z])\s*(?:([+-])\s*(\d))?")


def shifts_in(prose: Prose, lines: Iterable[tuple[int, Sequence[Statement]]]) -> list[Shift]:
    """Return the shift matrices of a text, none of a symbol that is defined in two ways.

    `lines` has the statements of each formula with its line.
    """
    found: dict[Name, Shift] = {}
    clash = set()
    shifts = [*_said(prose)]
    for line, statements in lines:
        for k, statement in enumerate(statements):
            shift = _shift(statement, statements[k + 1 :], line)
            shifts += [shift] if shift is not None else []
    for shift in sorted(shifts, key=lambda each: each.weak):
        first = found.setdefault(shift.name, shift)
        if first.by != shift.by and first.weak == shift.weak:
            clash.add(shift.name)
    return [shift for name, shift in found.items() if name not in clash]


def _said(prose: Prose) -> Iterator[Shift]:
    """Yield the matrices that have ones below or above the diagonal, as sentences say."""
    for match in ONES.finditer(prose.text):
        statements = prose.statements(int(match[1].strip("⟦⟧")))
        names = [bare(each) for s in statements for each in (*s.subjects, s.terms[0])]
        words = match[2].lower()
        by = -1 if re.search("sub|lower|below|under", words) else 1
        if len(names) == 1 and isinstance(names[0], Name) and names[0].base.isupper():
            line = prose.document.row(prose.offset(match.start()))
            yield Shift(replace(names[0], span=(0, 0)), by, line)


def _shift(statement: Statement, after: Sequence[Statement], line: int) -> Shift | None:
    if statement.relations[:1] not in (("=",), (":=",)):
        return None
    entry, value = map(bare, statement.terms[:2])
    if isinstance(entry, Entry):
        return _by_states(entry, value, line)
    if not isinstance(entry, Name) or not entry.base.isupper() or len(entry.sub) != 2:
        return None
    row, col = map(affine, entry.sub)
    if row is None or col is None or not row.letter or not col.letter or entry.sup:
        return None
    by = None
    if row.letter == col.letter:
        by = col.number - row.number if value == Number("1") else None
    else:
        by = next(_by(value, after, row, col), None)
    name = replace(entry, sub=(), span=(0, 0))
    return Shift(name, by, line) if by is not None and abs(by) == 1 else None


def _by_states(entry: Entry, value: Node, line: int) -> Shift | None:
    """Return the matrix that moves states: `(S X)_i = x_{i-1}`, `(X N)_{:,i} = x_{i-1}`."""
    inner = bare(entry.base)
    state = bare(value.base) if isinstance(value, Power) and value.exponent == "T" else value
    if not isinstance(inner, Product) or len(inner.factors) != 2 or not isinstance(state, Name):
        return None
    places = [slot for slot in entry.indices if slot.text != ":"]
    moved = steps_of(state.sub[0]) if len(state.sub) == 1 else None
    if len(places) != 1 or moved is None or places[0].text != moved.letter:
        return None
    for k, (factor, other) in enumerate((inner.factors, inner.factors[::-1])):
        across = entry.indices[0].text == ":" if len(entry.indices) == 2 else k == 1
        named = isinstance(factor, Name) and isinstance(other, Name)
        if not named or across != (k == 1) or not isinstance(factor, Name) or factor.sub:
            continue
        if isinstance(other, Name) and other.base.lower() == state.base != other.base:
            by = -moved.number if across else moved.number
            return Shift(replace(factor, span=(0, 0)), by, line, True) if abs(by) == 1 else None
    return None


def _by(value: Node, after: Sequence[Statement], row: Affine, col: Affine) -> Iterator[int]:
    r"""Yield by how much the column exceeds the row where an entry is one: `\delta_{i,j+1}`."""
    pairs: list[tuple[Affine, Affine]] = []
    if isinstance(value, Name) and value.base == r"\delta" and len(value.sub) == 2:
        first, second = map(affine, value.sub)
        pairs += [(first, second)] if first is not None and second is not None else []
    listed = any(isinstance(e, Listing) for e in walk(value))
    condition = after[0] if after and after[0].after and value == Number("1") else None
    if listed or condition is not None:
        text = latex(value) if condition is None else latex(condition)
        for match in WHERE.finditer(text):
            one = Affine(match[1], int(f"{match[2] or '+'}{match[3] or 0}"))
            pairs.append((one, Affine(match[4], int(f"{match[5] or '+'}{match[6] or 0}"))))
    for one, other in pairs:
        if {one.letter, other.letter} == {row.letter, col.letter}:
            mine, its = (one, other) if one.letter == row.letter else (other, one)
            yield (mine.number - its.number) - (row.number - col.number)
