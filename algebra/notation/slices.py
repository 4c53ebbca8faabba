r"""Rows, columns and first columns of matrices: `A_{i,:}`, `A_{:,j}`, `(AB)[:, :k]`.

A column is the product with a one-hot column, a row that of a one-hot row with the matrix. The
first k columns are the product with a matrix of which nothing is known but its shape: what is
proved of any such matrix is true of the first k columns of the identity.

A text may mean a row as a column, `x_i = X_{i,:}`, as arrays of one axis have no direction. Where a
formula conforms only so, it is read so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import sympy
from sympy import MatrixSymbol, Transpose

from otimes.algebra.language.linear import OneHot, matmul
from otimes.algebra.notation.affine import affine
from otimes.algebra.notation.dimensions import ONE, Size
from otimes.algebra.notation.slots import written
from otimes.algebra.notation.tokens import NotationError, Token
from otimes.algebra.notation.tree import Entry, Name, Node, Slot, walk
from otimes.algebra.notation.typed import Typed

ALL = frozenset((":", r"\cdot", r"\bullet", "*"))  # alone in one of two places
LETTER = re.compile(r"[a-z]|\\ell")
FIRST = re.compile(r"[01]?:(\w+|\\ell|\w+_\{?\w+\}?)")
AS_ROW, AS_COLUMN = " was read as a row", " was read as a column"


class Turned(NamedTuple):
    """Whether rows are meant as columns, and columns as rows.

    `chosen` are the only rows that are, None for all; of those in `doubt` no text says how.
    """

    rows: bool
    columns: bool
    chosen: tuple[Node, ...] | None = None
    doubt: tuple[Node, ...] = ()


TURNS = tuple(Turned(rows, columns) for rows in (False, True) for columns in (False, True))


class _Chosen(NamedTuple):
    """The rows or columns that are selected: how many, and the matrix that selects them."""

    size: Size
    build: Callable[[], Any]
    single: bool


def selection(tokens: Sequence[Token]) -> str:
    r"""Return which rows and columns a subscript selects, as `:,j`, or nothing where it has none.

    >>> from otimes.algebra.notation.tokens import tokenize
    >>> [selection(tokenize(text)) for text in (r"i,\cdot", ":,j", ":, 1:k", "i,j", "1:t")]
    ['i,:', ':,j', ':,1:k', '', '']
    """
    if any(token.text == "[" for token in tokens):
        return ""
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    if len(parts) == 1 and len(tokens) == 2 and not {t.text for t in tokens} & {":", "*"}:
        parts = [[token] for token in tokens]
    texts = [written(part) for part in parts]
    if len(texts) != 2 or not any(t in ALL or ":" in t for t in texts):
        return ""
    return ",".join(":" if text in ALL else text for text in texts)


def places_of(e: Name | Entry) -> tuple[str, ...]:
    """Return what is selected of rows and of columns, or nothing where no slice is taken."""
    if isinstance(e, Name):
        texts = tuple(part.strip() for part in e.select.split(","))
        return texts if len(texts) == 2 else ()
    texts = tuple(":" if slot.text in ALL else slot.text for slot in e.indices)
    return texts if len(texts) == 2 and any(":" in text for text in texts) else ()


def is_slice(e: Node) -> bool:
    """Return whether a part of a formula selects rows or columns."""
    return isinstance(e, Name | Entry) and bool(places_of(e))


def has_slices(terms: Sequence[Node]) -> bool:
    """Return whether terms have slices in them."""
    return any(is_slice(e) for term in terms for e in walk(term))


def turnable(terms: Sequence[Node]) -> list[str]:
    """Return a word for each row, or for each column, whichever of them are more.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> turnable(parse_formula("A_{i,:} B_{j,:}^T")[0].terms)
    ['row', 'row']
    """
    places = [places_of(e) for term in terms for e in walk(term) if isinstance(e, Name | Entry)]
    rows = [p for p in places if len(p) == 2 and p[1] == ":" and ":" not in p[0]]
    columns = [p for p in places if len(p) == 2 and p[0] == ":" and ":" not in p[1]]
    kinds = ["row"] * len(rows), ["column"] * len(columns)
    return max(kinds, key=len)


def is_among(e: Node, chosen: Sequence[Node] | None) -> bool:
    """Return whether a part of a formula is one of those chosen; None stands for all parts."""
    return chosen is None or any(e is each for each in chosen)


def as_slots(select: str) -> tuple[Slot, ...]:
    """Return a selection as the slots of an entry of a term in brackets.

    >>> as_slots("i,:")
    (Slot(kind='index', text='i'), Slot(kind='label', text=':'))
    """
    texts = [part.strip() for part in select.split(",")]
    return tuple(
        Slot("index" if LETTER.fullmatch(t) else "label" if t == ":" else "expression", t)
        for t in texts
    )


def sliced(reader: Any, e: Name | Entry, whole: Typed) -> Typed:
    """Return the rows and columns that are selected of a matrix."""
    if reader.lenient and reader.turned is None:
        unknown: Typed = reader._unknown(e, reader.quoted(e))
        return unknown
    assert whole.shape is not None
    left, right = (
        _chosen(reader, text, size, e) for text, size in zip(places_of(e), whole.shape, strict=True)
    )
    rows = whole.shape[0] if left is None else left.size
    cols = whole.shape[1] if right is None else right.size

    def build() -> Any:
        built = whole.build()
        if left is not None:
            built = matmul(Transpose(left.build()), built)
        return built if right is None else matmul(built, right.build())

    row = left is not None and left.single and right is None
    column = right is not None and right.single and left is None
    turned = reader.turned or TURNS[0]
    turn = (row and turned.rows and is_among(e, turned.chosen)) or (column and turned.columns)
    if is_among(e, turned.doubt):
        reader.doubts.append(f"{reader.quoted(e)}{AS_COLUMN if turn else AS_ROW}")
    elif turn and turned.chosen is None and len(turnable(reader.nodes)) > 1:
        was = f"was taken as a {'column' if row else 'row'}"  # each may be turned by itself
        reader.doubts.append(f"{reader.quoted(e)} {was}")
    if turn:
        return Typed((cols, rows), lambda: Transpose(build()), e.span)
    return Typed((rows, cols), build, e.span)


def _chosen(reader: Any, text: str, size: Size, e: Node) -> _Chosen | None:
    """Return what selects some rows or columns, None where all are taken."""
    if text == ":":
        return None
    first = FIRST.fullmatch(text)
    if first is not None:
        return _first(reader, first[1], size, e)
    if ":" in text:
        raise NotationError(f"the slice {text} is not in the language", e.span)
    moved = affine(Slot("expression", text))
    if LETTER.fullmatch(text) and text not in reader.symbols.sizes():
        at = reader._index(text, size, e)
    elif moved is not None and moved.number < 0 and moved.letter in reader.bindings.runs_to:
        at = reader._index(moved.letter, size, e) + moved.number
    else:  # a row by its number: what is proved of any row is true of it
        reader.doubts.append(f"the index {text} of {reader.quoted(e)} was taken as any")
        at = sympy.Symbol(f"at_{re.sub(r'[^0-9A-Za-z]', '', text)}", integer=True)
    return _Chosen(ONE, lambda: OneHot(at, reader.solver.expression(size)), single=True)


def _first(reader: Any, text: str, size: Size, e: Node) -> _Chosen:
    if text in reader.bindings.letters:
        raise NotationError(f"a slice up to the index {text} is not in the language", e.span)
    number = reader._size_text(text, e)
    reader.doubts.append(f"the first {text} in {reader.quoted(e)} were taken as any combinations")

    def build() -> Any:
        rows, cols = (reader.solver.expression(each) for each in (size, number))
        return MatrixSymbol(f"first_{cols}_of_{rows}", rows, cols)

    return _Chosen(number, build, single=False)
