"""Sizes that a paragraph says are equal: “for `$m = n$` the traces agree”."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from otimes.algebra.errors import OtimesError
from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.elaborate import check_shapes
from otimes.algebra.notation.symbols import Symbols, text_of
from otimes.algebra.notation.tree import Name, Node, bare
from otimes.proofs.documents.symbols.context import Context


def equal_sizes(context: Context, symbols: Symbols, line: int) -> dict[str, str]:
    """Return sizes that are equal to others by the paragraph of a line, with these others."""
    sizes = symbols.sizes()
    found: dict[str, str] = {}
    for known in (each for every in context.ahead.values() for each in every):
        pair = [bare(known.lhs), bare(known.rhs)]
        texts = [text_of(e) for e in pair if isinstance(e, Name)]
        if len(texts) == 2 and {*texts} <= sizes and context.together(known.line, line):
            first, second = (found.get(text, text) for text in texts)
            found = {text: second if to == first else to for text, to in found.items()}
            found[first] = second
    return {text: to for text, to in found.items() if text != to}


def with_equal_sizes(symbols: Symbols, equal: dict[str, str]) -> Symbols:
    """Return symbols whose declarations have one size for those that are equal."""

    def put(size: Size) -> Size:
        return tuple(equal.get(atom, atom) if isinstance(atom, str) else atom for atom in size)

    found = symbols.copy()
    for key, known in symbols.known.items():
        found.known[key] = replace(known, rows=put(known.rows), cols=put(known.cols))
    return found


def said_equal(equal: dict[str, str]) -> str:
    """Return in words which sizes are equal."""
    return f"where {' and '.join(f'{a} = {b}' for a, b in sorted(equal.items()))}"


def conforms_where_equal(context: Context, terms: Sequence[Node], line: int, source: str) -> bool:
    """Return whether terms conform with the sizes that their paragraph says are equal."""
    symbols = context.symbols_at(line)
    equal = equal_sizes(context, symbols, line)
    try:
        check_shapes(terms, with_equal_sizes(symbols, equal), source)
    except OtimesError:
        return False
    return bool(equal)
