r"""Symbols that a text says are the rows or columns of a matrix: `$w_i$ is the i-th column of $W$`.

Such a sentence is a definition, `w_i = W_{:,i}`, that counts for other indices. A row may be meant
as a column, as arrays of one axis have no direction; a formula is read as it conforms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from otimes.algebra.notation.tree import (
    Dots,
    Grid,
    Name,
    Power,
    Slot,
    bare,
)
from otimes.proofs.documents.prose.declared_in_words import M, Prose
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.symbols.members import Member

NTH = rf"(?:(?:{M}|[a-z])(?:\s*-?\s*th|\^\{{th\}})?[\s-]+|corresponding\s+)?"
# Not “and $g_i$ is the i-th row of $G$”, which is about another symbol.
OTHERS = (
    r"(?P<others>(?:\s*(?:,|and|,\s*and)\s*⟦\d+⟧"
    r"(?!,?\s*(?:is|are|be|being|denotes?|stands?|the|its|as)\b)){0,5})"
)
OF = (
    rf"(?:of|in)\s+(?:the\s+)?(?:\w+\s+){{0,2}}?(?P<whole>{M.replace('(', '(?:')})"
    rf"{OTHERS}"
)
NAMES = r"(?P<names>⟦\d+⟧(?:\s*(?:,|and|to|,\s*(?:\\dots|…|\.\.\.)\s*,)\s*⟦\d+⟧){0,20})"
SIDE = r"(?P<side>row|column)s?"
IS = r"(?:is|are|be|for|denotes?)"
LET = r"(?:and|let|with|where|write)"
WITH = r"(?:with|whose|has|its|having)"
SIDES = (
    rf"{NAMES},?\s+(?:is|are|be|for|denotes?|as|being)\s+(?:the\s+|its\s+)?{NTH}{SIDE}\s+{OF}",
    rf"(?P<whole>⟦\d+⟧)[^.;⟦]{{0,80}}?\band\s+{NAMES}\s+{IS}\s+its\s+{NTH}{SIDE}\b",
    rf"(?P<whole>⟦\d+⟧){OTHERS}[^.;⟦]{{0,60}}?\b{LET}\s+{NAMES}\s+{IS}\s+their\s+{NTH}{SIDE}\b",
    rf"(?P<whole>⟦\d+⟧)[^.;⟦]{{0,40}}?\b{WITH}\s+{SIDE}\s+(?:are\s+)?{NAMES}",
    rf"(?P<whole>⟦\d+⟧)\s+(?:have\s+|has\s+)?the\s+{SIDE}\s+(?P<names>⟦\d+⟧)",
    rf"(?P<whole>⟦\d+⟧){OTHERS}\s+have\s+(?:the\s+)?{SIDE}\s+{NAMES}(?!\s*(?:,|and|the)\s)",
    rf"\b{SIDE}\s+{NAMES}\s+{OF}",
    rf"{NAMES},?\s+(?:is|are|be|for|denotes?|as|being)\s+{SIDE}\s+(?:{M}|[a-z])\s+{OF}",
    rf"\bwith\s+{NAMES},?\s+(?:the|its)\s+{NTH}{SIDE}\s+{OF}",
    rf"\band\s+{NAMES}\s+the\s+{NTH.removesuffix('?')}{SIDE}\s+{OF}",
    rf"\band\s+{NAMES}\s+the\s+(?P<side>row|column)s\s+{OF}",
    rf"{NAMES},\s+(?:the|its)\s+{NTH}{SIDE}\s+{OF}(?=\s*(?:[.;:,)]|respectively\b))",
    rf"\b{SIDE}\s+(?:{M}\s+)?{OF}\s+(?:is|are)\s+(?:called\s+)?{NAMES}(?=\s*(?:[.;:,)]|and\b|$))",
    rf"\b{NTH}{SIDE}\s+{OF}\s+(?:is|are)\s+(?:called\s+)?{NAMES}(?=\s*(?:[.;:,)]|and\b|$))",
    rf"{NAMES}\s+(?:stacked|side by side|as)\s+(?:the\s+)?{SIDE}\s+{OF}",
)
# “Decoder columns $d_k$” are of what the text calls the decoder.
NOUN = re.compile(rf"\b(?P<noun>[a-z]{{4,}})\s+{SIDE}\s+{NAMES}(?!\s+(?:of|in)\b)", re.IGNORECASE)
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
            others = re.findall(r"⟦\d+⟧", match.groupdict().get("others") or "")
            yield from _members(prose, match, [match["whole"], *others])
    for match in NOUN.finditer(prose.text):
        called = rf"\b(?:an?|the|its)\s+{match['noun']}\s+(?:(?:matrix|weights?)\s+)?(⟦\d+⟧)"
        marks = dict.fromkeys(re.findall(called, prose.text[: match.start()], re.IGNORECASE))
        yield from _members(prose, match, [*marks]) if len(marks) == 1 else ()


def _members(prose: Prose, match: re.Match[str], marks: list[str]) -> Iterator[Member]:
    """Yield the members that a sentence names of matrices: one of each, or all of the only one."""
    numbers = map(int, re.findall(r"⟦(\d+)⟧", match["names"]))
    names = [each for number in numbers for each in _indexed(prose, number)]
    matrices = [each for mark in marks for each in _matrices(prose, mark)]
    if len(names) == 1 or len(matrices) == 1:
        matrices = matrices[:1] * len(names)
    if len(matrices) != len(names):
        return  # which is of which matrix is not said
    line = prose.document.row(prose.offset(match.start()))
    for (name, turned), (whole, across) in zip(names, matrices, strict=True):
        side = match["side"].lower()
        if across:  # the columns of a transpose are rows, turned
            side, turned = {"row": "column", "column": "row"}[side], not turned
        if set(name.sub) & set(whole.sub):
            continue  # “the state $M_t = …$ with columns $k_t ∈ ℝ^r$” says that k_t is a column
        if (name.base, name.style) != (whole.base, whole.style):
            yield Member(name, whole, side, line, turned)


def _matrices(prose: Prose, mark: str) -> list[tuple[Name, bool]]:
    r"""Return the matrices that a formula is, declares or defines, and whether it is transposed.

    None of what is something else; `F, G \in ℝ^{d×m}` declares two.
    """
    statements = prose.statements(int(mark.strip("⟦⟧")))
    if len(statements) != 1 or statements[0].relations not in ((), (r"\in",), ("=",), (":=",)):
        return []
    found = []
    for name in map(bare, (*statements[0].subjects, statements[0].terms[0])):
        across = isinstance(name, Power) and name.exponent == "T"
        name = bare(name.base) if isinstance(name, Power) and across else name
        if not isinstance(name, Name) or name.select:
            return []
        if not (name.base.isupper() or name.base[:2].istitle()):
            return []
        found.append((name, across))
    return found


def _indexed(prose: Prose, number: int) -> Iterator[tuple[Name, bool]]:
    r"""Yield the small letters with an index of a formula: `h_i^\top`, `f_1, \dots, f_m`."""
    for statement in prose.statements(number):
        if statement.relations not in ((), (r"\in",)):
            return
        for term in map(bare, (*statement.subjects, statement.terms[0])):
            turned = isinstance(term, Power) and term.exponent == "T"
            name = bare(term.base) if isinstance(term, Power) else term
            plain = isinstance(name, Name) and [s.kind == "expression" for s in name.sub] == [False]
            if isinstance(name, Name) and plain and name.base.islower():
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
