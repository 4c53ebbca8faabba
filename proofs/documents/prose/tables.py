r"""What tables of symbols declare: a row with symbols and a shape, in Markdown or in LaTeX.

`| $W_Q, W_K$ | $d \times k$ | queries and keys |` and `$x$ & $\mathbb{R}^{d}$ & state \\`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.parser import parse_formula
from otimes.algebra.notation.symbols import Declared, as_declared, keys, size_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Name, Node, Product, Space, bare
from otimes.proofs.documents.containers.source import Document
from otimes.proofs.documents.prose.said import Said

ROW = re.compile(r"(?m)^\s*\|(.+)\|\s*$")
TABULAR = re.compile(r"\\begin\{(tabular[x*]?|array|longtable)\}(.*?)\\end\{\1\}", re.DOTALL)
SHAPE = re.compile(r"×|\\times|\\mathbb\{?R\}?|ℝ|\\(?:R|RR|Reals?|reals)\b")
REALS = re.compile(r"\\(?:R|RR|Reals?|reals)\b")
LONGEST = 20_000  # characters of a table


def said_in_tables(document: Document) -> Iterator[Said]:
    """Yield what tables of symbols declare."""
    for line in ROW.finditer(document.text):
        yield from _row(document, line[1].split("|"), line.start(), line[0].strip())
    for table in TABULAR.finditer(document.text):
        if len(table[2]) > LONGEST:
            continue
        at = table.start(2)
        for row in table[2].split(r"\\"):
            text = re.sub(r"\\(?:hline|toprule|midrule|bottomrule)\b", " ", row)
            start = at + len(row) - len(row.lstrip())
            yield from _row(document, re.split(r"(?<!\\)&", text), start, text.strip())
            at += len(row) + 2


def _row(document: Document, cells: list[str], start: int, text: str) -> Iterator[Said]:
    cells = [cell.strip() for cell in cells]
    shapes = [cell for cell in cells[1:] if SHAPE.search(cell)]
    if len(cells) < 2 or len(shapes) != 1:
        return
    names, sizes = _symbols(cells[0]), _sizes(shapes[0])
    declared = _declared(sizes, document.row(start))
    if declared is None:
        return
    for name in names:
        known = as_declared(declared, name)
        yield Said(keys(name)[0], known, start, text)


def _symbols(cell: str) -> list[Name]:
    """Return the symbols of a cell; none where it has anything else."""
    text = cell.replace("$", " ").replace("`", " ").replace(r"\(", " ").replace(r"\)", " ").strip()
    try:
        statements = parse_formula(text, plain="\\" not in text) if text else []
    except (NotationError, ValueError):
        return []
    terms = [bare(s.terms[0]) for s in statements if not s.relations]
    names = [term for term in terms if isinstance(term, Name)]
    return names if len(names) == len(statements) else []


def _sizes(cell: str) -> list[Size]:
    """Return the sizes that a cell says, one or two, or none where it says something else."""
    found = re.fullmatch(r"\s*(?:\$([^$]*)\$|`([^`]*)`|\\\((.*)\\\)|([^$`]*))\s*", cell)
    text = next((part for part in found.groups() if part is not None), "") if found else ""
    text = REALS.sub(lambda found: r"\mathbb{R}", text.strip())
    try:
        if re.match(r"\\mathbb|ℝ|\\in\b|∈|R\^", text):
            (statement,) = parse_formula(r"x \in " + re.sub(r"^(?:\\in\b|∈)\s*", "", text))
            space = bare(statement.terms[1])
            sizes = [size_of(size) for size in getattr(space, "sizes", ())]
            sizes = sizes if isinstance(space, Space) else []
        else:
            (statement,) = parse_formula(text, plain="\\" not in text)
            sizes = shape_of(bare(statement.terms[0])) if not statement.relations else []
    except (NotationError, ValueError):
        return []
    return [size for size in sizes if size] if None not in sizes else []


def _declared(sizes: list[Size], line: int) -> Declared | None:
    if len(sizes) == 2:
        return Declared("matrix", sizes[0], sizes[1], line)
    return Declared("vector", sizes[0], line=line) if len(sizes) == 1 else None


def shape_of(node: Node | None) -> list[Size | None]:
    """Return the two sizes of a product written with ×."""
    if isinstance(node, Product) and node.marks.count(r"\times") == 1 and "/" not in node.marks:
        at = node.marks.index(r"\times")
        parts = node.factors[:at], node.factors[at:]
        return [size_of(Product(part, ("",) * len(part))) for part in parts]
    return []
