r"""Which vectors a text declares as columns and which as rows.

`a column $x \in \mathbb{R}^d$`, `$x$ is a row vector`, `all vectors are columns`, tables, and
`$x^\top x = 1$`. Rows and columns *of* a matrix are no declaration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sympy import MatrixSymbol

from otimes.algebra.language.linear import FamilyMember
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.slices import AS_COLUMN, AS_ROW
from otimes.algebra.notation.symbols import Declared, Symbols, default, full_key, keys
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Name,
    Node,
    Number,
    Power,
    Product,
    Space,
    bare,
    latex,
    walk,
)
from otimes.algebra.notation.typed import Elaborated
from otimes.proofs.documents.prose.declared_in_words import LIST, LOCALLY, M, Prose
from otimes.proofs.documents.prose.items import Item
from otimes.proofs.documents.symbols.context import Context

SIDE = r"(?P<side>row|column)"
END = r"(?=\s*(?:[.,;:)|&]|\\\\|$|(?:and|with|so|then|in|for|where|while|but)\b))"
NOT_OF = r"(?!\s+(?:of|in|from)\b)"
A = r"(?:an?|the|any|some|one|given|fixed|random|unit|arbitrary|real|nonzero|non-zero)"
HOW = r"(?:(?:considered|taken|treated|written|always|all|both|again|as|to be) ){0,3}"
IS = rf"(?:is|are|be|being|denotes?|as)\s+{HOW}(?:an?\s+)?(?:\w+\s+)?"
SAID = [
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        rf"\b{SIDE}[- ]vectors?\s+(?P<names>{LIST}){NOT_OF}",
        rf"\b{A}\s+{SIDE}\s+(?P<names>{M}){NOT_OF}",
        rf"\b(?:let|given|take|for|of|two|some|and) {SIDE}s\s+(?P<names>{LIST}){NOT_OF}",
        rf"(?P<names>{LIST}),?\s+{IS}{SIDE}[- ]vectors?\b{NOT_OF}",
        rf"(?P<names>{LIST}),?\s+{IS}{SIDE}s?{END}",
        rf"(?P<names>{LIST}),?\s+{IS}the\s+{SIDE}(?:\s+vector)?\s+of\s+(?:all\s+)?ones\b",
        rf"(?P<names>{M})\s*[,(]\s*(?:an?\s+)?{SIDE}[- ]vectors?\b{NOT_OF}",
        rf"^[|\s]*(?P<names>{LIST})\s*[|&][^\n]*?\b{SIDE}[- ]vectors?\b{NOT_OF}",
        rf"^[|\s]*(?P<names>{LIST})\s*[|&][^\n]*?[|&]\s*{SIDE}\s*(?:[|&]|\\\\|$)",
    )
]
EVERY = re.compile(
    rf"\bvectors\s+(?:are|as|will be)\s+{HOW}(?:{SIDE}s|{SIDE.replace('side', 'word')} vectors)"
    r"\b(?!\s+(?:of|in|from)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Side:
    """A symbol that is declared as a column or a row, on a line; `local`: for its paragraph."""

    name: Name
    side: str
    line: int
    local: bool


def every_side(text: str) -> str:
    """Return what a text says that its vectors are: "column", "row", or "" where it is open.

    >>> every_side("All vectors are columns."), every_side("The row vectors of W.")
    ('column', '')
    """
    found = {(match["side"] or match["word"]).lower() for match in EVERY.finditer(text)}
    return found.pop() if len(found) == 1 else ""


def read_as_rows(
    read: Elaborated, lhs: Node, rhs: Node, symbols: Symbols
) -> tuple[list[str], bool]:
    """Return which vectors of d entries are rows in an equation, and whether a matrix says so.

    A vector of d entries is a column, as a rule. What conforms with rows alone is not true of it,
    unless the document has rows, or a matrix of known shape stands beside it. Nor is what conforms
    only where a row of a matrix is a column, unless the text uses it so.
    """
    turned = sorted({each for each in read.doubts if each.endswith((AS_ROW, AS_COLUMN))})
    if turned:
        return [each.replace(" was read as ", " is ") for each in turned], False
    names = [e for side in (lhs, rhs) for e in walk(side) if isinstance(e, Name)]
    known = {key: one for key, one in map(symbols.lookup, names) if one is not None}
    vectors = {key for key, one in known.items() if one.kind == "vector" and not one.side}
    parts = {part for term in read.terms for part in term.atoms(MatrixSymbol, FamilyMember)}
    rows = {
        (str(getattr(part, "family", part).name), part.shape[1])
        for part in parts
        if part.shape[0] == 1 != part.shape[1]
    }
    as_rows = sorted(row for row in rows if {row[0], row[0].partition("_")[0]} & vectors)
    beside = any(one.kind == "matrix" and one.line for one in known.values())
    sure = beside or symbols.convention == "row"
    return [f"{name} is a row (1 × {size})" for name, size in as_rows], sure


def declare_sides(prose: Prose, context: Context, items: Iterable[Item]) -> None:
    """Add to the declared vectors on which side they are multiplied by matrices."""
    context.base.side = context.base.side or every_side(prose.text)
    for said in (*sides_in(prose), *sides_by_length(items)):
        key = keys(said.name)[0]
        known = [(k, d) for k, d in context.declared if k == key and d.kind == "vector"]
        here = [d for _, d in known if d.line == said.line]
        if here:
            at = [k for k, (_, d) in enumerate(context.declared) if any(d is each for each in here)]
            for k in at:
                one = context.declared[k][1]
                side = said.side if one.side in ("", said.side) else ""  # or both on one line
                context.declared[k] = (key, replace(one, side=side))
            continue
        before = [d for _, d in known if d.line <= said.line]
        usual = default(said.name)
        if not known and (usual is None or usual.kind != "vector" or _is_declared(key, context)):
            continue
        rows = before[-1].rows if before else ()
        full = full_key(said.name)
        declared = Declared("vector", rows, line=said.line, full=full, side=said.side)
        context.declared.append((key, declared))
        context.sentences.add((key, said.line))
        if said.local:
            context.local.add((key, said.line))


def _is_declared(key: str, context: Context) -> bool:
    return any(other == key for other, _ in context.declared)


AS_OTHER = {
    side: re.compile(rf"\bas\s+(?:an?\s+)?{other}", re.IGNORECASE)
    for side, other in (("row", "column"), ("column", "row"))
}


def sides_in(prose: Prose) -> Iterator[Side]:
    """Yield the symbols that sentences and tables declare as columns or rows."""
    for pattern in SAID:
        for match in pattern.finditer(prose.text):
            before = prose.text[max(0, match.start() - 50) : match.start()].rpartition(". ")[2]
            after = prose.text[match.end() : match.end() + 60].partition(". ")[0]
            if AS_OTHER[match["side"].lower()].search(after):
                continue  # “one row of the pattern, written as a column”
            for number in re.findall(M, match["names"]):
                line = prose.document.row(prose.formulas[int(number)].start)
                for name in _vectors(prose, int(number)):
                    local = bool(LOCALLY.search(before))
                    yield Side(name, match["side"].lower(), line, local)


def sides_by_length(items: Iterable[Item]) -> Iterator[Side]:
    r"""Yield the symbols whose squared length is given: `u^\top u = 1` for a column."""
    for item in items:
        for statement in item.statements:
            for k, relation in enumerate(statement.relations):
                product, number = map(bare, statement.terms[k : k + 2])
                if relation != "=" or not isinstance(number, Number):
                    continue
                factors = product.factors if isinstance(product, Product) else ()
                if len(factors) != 2:
                    continue
                turned = [isinstance(e, Power) and e.exponent == "T" for e in factors]
                names = [bare(e.base) if isinstance(e, Power) else e for e in factors]
                if turned[0] != turned[1] and latex(names[0]) == latex(names[1]):
                    side = "column" if turned[0] else "row"
                    yield from (Side(e, side, item.line, False) for e in _names(names[:1]))


def _vectors(prose: Prose, number: int) -> list[Name]:
    r"""Return the symbols of a formula that is a symbol or declares vectors: `x \in ℝ^d`."""
    formula = prose.formulas[number]
    try:
        statements = parse_formula(formula.tex, plain=formula.plain)
    except NotationError:
        return []
    terms = []
    for statement in statements:
        if statement.relations == (r"\in",) and _is_of_vectors(statement.terms[1]):
            terms += [*statement.subjects, statement.terms[0]]
        elif not statement.relations:
            terms += statement.terms
    found = [bare(term) for term in terms]
    return _names(found) if all(isinstance(e, Name) for e in found) else []


def _is_of_vectors(node: object) -> bool:
    return isinstance(node, Space) and len(node.sizes) == 1


def _names(found: Sequence[object]) -> list[Name]:
    return [e for e in found if isinstance(e, Name) and (e.style == "bf" or not e.base.isupper())]
