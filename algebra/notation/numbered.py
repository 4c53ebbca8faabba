"""Matrices that a number below tells apart: the weights W_1 and W_2 of two layers.

Where their shapes are not declared they are taken for members of one family, of one shape. In a
formula that conforms only where they have several shapes, each has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from otimes.algebra.notation.symbols import Declared, Symbols, full_key, key_of
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import Name, Node, walk
from otimes.algebra.notation.typed import FormulaShapeError, Undeclared

Found = TypeVar("Found")


def in_several_shapes(
    read: Callable[[Symbols], Found], terms: Sequence[Node], symbols: Symbols
) -> Found:
    """Return what `read` makes of symbols, where it must with a shape for each numbered matrix.

    Raises what `read` raises of a family of one shape if it conforms in no way.
    """
    try:
        return read(symbols)
    except (FormulaShapeError, Undeclared) as error:
        if symbols.by_number or not _are_several(terms):
            raise
        try:
            return read(replace(symbols.copy(), by_number=True))
        except NotationError:
            raise error from None


def has_own_shape(name: Name, known: Declared) -> bool:
    """Return whether nothing is declared of a numbered matrix: it is of one with another number."""
    if not _is_numbered(name):
        return False
    said = known.rows or known.cols or known.line
    return not said or (known.full != full_key(name) and known.full[-1:].isdigit())


def _are_several(terms: Sequence[Node]) -> bool:
    """Return whether terms have two matrices that only a number below tells apart."""
    names = [e for term in terms for e in walk(term) if isinstance(e, Name) and _is_numbered(e)]
    return len({key_of(e) for e in names}) < len({full_key(e) for e in names})


def _is_numbered(name: Name) -> bool:
    """Return whether a symbol is a capital with a number below."""
    return name.base.isupper() and [slot.kind for slot in name.sub] == ["number"]
