r"""Symbols that a text says are the rows or columns of a matrix: `$w_i$ is the i-th column of $W$`.

Such a sentence is a definition, `w_i = W_{:,i}`, that counts for other indices. A row may be meant
as a column, as arrays of one axis have no direction; a formula is read as it conforms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Dots,
    Grid,
    Name,
    Power,
    Slot,
    Statement,
    bare,
)
from otimes.proofs.documents.items import Item
from otimes.proofs.documents.members import Member
from otimes.proofs.documents.prose import M, Prose

NTH = rf"(?:(?:{M}|[a-z])(?:\s*-?\s*th|\^\{{th\}})?[\s-]+|corresponding\s+)?"
OF = rf"(?:of|in)\s+(?:the\s+)?(?:\w+\s+){{0,2}}?(?P<whole>{M.replace('(', '(?:')})"
NAMES = r"(?P<names>⟦\d+⟧(?:\s*(?:,|and|to|,\s*(?:\\dots|…|\.\.\.)\s*,)\s*⟦\d+⟧){0,20})"
SIDE = r"(?P<side>row|column)s?"
IS = r"(?:is|are|be|for|denotes?)"
WITH = r"(?:with|whose|has|its|having)"
SIDES = (
    rf"{NAMES},?\s+(?:is|are|be|for|denotes?|as|being)\s+(?:the\s+|its\s+)?{NTH}{SIDE}\s+{OF}",
    rf"(?P<whole>⟦\d+⟧)[^.;⟦]{{0,80}}?\band\s+{NAMES}\s+{IS}\s+its\s+{NTH}{SIDE}\b",
    rf"(?P<whole>⟦\d+⟧)[^.;⟦]{{0,40}}?\b{WITH}\s+{SIDE}\s+(?:are\s+)?{NAMES}",
    rf"\b{SIDE}\s+{NAMES}\s+{OF}",
    rf"{NAMES}\s+(?:stacked|side by side|as)\s+(?:the\s+)?{SIDE}\s+{OF}",
)
SAID = [re.compile(pattern, re.IGNORECASE) for pattern in SIDES]


def members_in(prose: Prose, items: Iterable[Item]) -> list[Member]:
    """Return the symbols that sentences, and formulas `H = [h_1, …, h_n]`, say are members."""
    found = [*_said(prose), *_listed(items)]
    unique: dict[tuple[str, str], Member] = {}
    clash = set()
    for member in found:
        key = (member.name.base, member.name.style)
        if unique.setdefault(key, member).whole != member.whole:
            clash.add(key)  # a letter for members of two matrices
    return [member for key, member in unique.items() if key not in clash]


def _said(prose: Prose) -> Iterator[Member]:
    for pattern in SAID:
        for match in pattern.finditer(prose.text):
            whole = _matrix(prose, match["whole"])
            line = prose.document.row(prose.offset(match.start()))
            for number in re.findall(r"⟦(\d+)⟧", match["names"]) if whole else ():
                for name, turned in _indexed(prose, int(number)):
                    if whole is not None and (name.base, name.style) != (whole.base, whole.style):
                        yield Member(name, whole, match["side"].lower(), line, turned)


def _statements(prose: Prose, number: int) -> list[Statement]:
    formula = prose.formulas[number]
    try:
        return parse_formula(formula.tex, plain=formula.plain)
    except NotationError:
        return []


def _matrix(prose: Prose, mark: str) -> Name | None:
    r"""Return the symbol of a formula that is one, or declares or defines one: `F \in ℝ^{d×m}`."""
    statements = _statements(prose, int(mark.strip("⟦⟧")))
    if len(statements) != 1 or statements[0].relations not in ((), (r"\in",), ("=",), (":=",)):
        return None
    name = bare(statements[0].terms[0])
    is_matrix = isinstance(name, Name) and (name.base.isupper() or name.base[:2].istitle())
    return name if isinstance(name, Name) and is_matrix and not name.select else None


def _indexed(prose: Prose, number: int) -> Iterator[tuple[Name, bool]]:
    r"""Yield the small letters with an index of a formula: `h_i^\top`, `f_1, \dots, f_m`."""
    for statement in _statements(prose, number):
        if statement.relations not in ((), (r"\in",)):
            return
        for term in map(bare, (*statement.subjects, statement.terms[0])):
            turned = isinstance(term, Power) and term.exponent == "T"
            name = bare(term.base) if isinstance(term, Power) else term
            if isinstance(name, Name) and len(name.sub) == 1 and name.base.islower():
                yield name, turned


def _listed(items: Iterable[Item]) -> Iterator[Member]:
    r"""Yield the members of `H = [h_1, \dots, h_n]`, which are columns side by side."""
    for item in items:
        for statement in item.statements:
            if statement.relations[:1] not in (("=",), (":=",)):
                continue
            whole, grid = bare(statement.terms[0]), bare(statement.terms[1])
            if not (isinstance(whole, Name) and whole.base.isupper() and isinstance(grid, Grid)):
                continue
            cells = [bare(cell) for row in grid.rows for cell in row if cell is not None]
            dots = any(isinstance(cell, Dots) for cell in cells)
            first = cells[0] if cells else None
            if isinstance(first, Name) and len(first.sub) == 1 and first.base.islower() and dots:
                index = replace(first, sub=(Slot("index", "i"),))
                if len(grid.rows) == 1:
                    yield Member(index, whole, "column", item.line)
