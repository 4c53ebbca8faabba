r"""Which rows of a matrix may be columns in a formula.

A text may mean a row as a column, as arrays of one axis have no direction: the rows $x_i$ of X, in
$W x_i$. Not where it uses them as rows, or writes the transpose: what it calls $x_i$ is $X_{i,:}$,
and not $X_{i,:}^\top$.
"""

from __future__ import annotations

from collections.abc import Sequence

from otimes.algebra.notation.slices import TURNS, Turned, is_among, is_slice, places_of
from otimes.algebra.notation.symbols import Symbols, key_of
from otimes.algebra.notation.tree import Entry, Group, Name, Node, Power, bare, walk


def turns_of(terms: Sequence[Node], symbols: Symbols) -> Sequence[Turned]:
    """Return the ways to turn the slices of terms that are tried, the likeliest first.

    A column is no row. Rows that have a name are turned before others, and others only where not
    all of them are transposed.

    >>> from otimes.algebra.notation.parser import parse_formula
    >>> texts = "A_{i,:} B_{j,:}^T", "A_{:,j}", "A_{i,:} B_{:,j}"
    >>> [len(turns_of(parse_formula(text)[0].terms, Symbols())) for text in texts]
    [2, 1, 4]
    """
    parts = [e for term in terms for e in walk(term)]
    slices = [e for e in parts if isinstance(e, Name | Entry) and is_slice(e)]
    halves = [[part == ":" for part in places_of(e)] for e in slices]
    if [False, True] not in halves:
        return TURNS[:1]
    if [True, False] in halves:
        return TURNS
    groups = [e for e in parts if isinstance(e, Group) and e.stands_for is not None]
    keys = {id(_row(e)): key_of(e.stands_for) for e in groups if isinstance(e.stands_for, Name)}
    sides = {at: symbols.sides.get(key, "") for at, key in keys.items()}
    fixed = [_row(e) for e in groups if _is_transpose(e) or sides.get(id(_row(e))) == "row"]
    free = [e for e in slices if not is_among(e, fixed)]
    named = [e for e in free if id(e) in keys]
    transposed = [bare(e.base) for e in parts if isinstance(e, Power) and e.exponent == "T"]
    if all(is_among(e, transposed) for e in free if not is_among(e, named)):
        free = named  # which side each is on is written
    columns = tuple(e for e in free if sides.get(id(e)) == "column")
    as_rows = Turned(False, False, (), columns)
    found = [
        Turned(True, False, tuple(rows), tuple(e for e in rows if not sides.get(id(e))))
        for rows in (named, free)
        if rows
    ]
    return [*found[:1], as_rows, *found[1:]] if columns else [as_rows, *found]


def _row(e: Group) -> Node:
    """Return the row that is put in for a symbol, without the sign of the transpose."""
    inner = bare(e)
    return bare(inner.base) if _is_transpose(e) and isinstance(inner, Power) else inner


def _is_transpose(e: Group) -> bool:
    """Return whether a symbol is said to be the transpose of a row."""
    inner = bare(e)
    return isinstance(inner, Power) and inner.exponent == "T" and is_slice(bare(inner.base))
