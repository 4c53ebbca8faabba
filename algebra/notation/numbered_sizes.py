r"""Sizes with the index of a symbol: `W^{(l)} \in \mathbb{R}^{d_l \times d_{l-1}}`.

The symbol at another index has these sizes at that index: `W^{(l+1)}` is `d_{l+1} × d_l`.
"""

from __future__ import annotations

import re
from typing import Any

from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.tree import Name

INDEX = re.compile(r"(\\ell|[a-z])(?:([+-])(\d+))?\Z")
NUMBERED = re.compile(r"(?P<base>[^_{}]+)_(?:\{(?P<inside>[^{}]+)\}|(?P<plain>[a-z0-9]))\Z")


def sizes_at(declared: Name, name: Name, sizes: tuple[Size, Size]) -> tuple[Size, Size] | None:
    """Return the sizes of a symbol at other indices than it is declared with, None if unknown.

    >>> from otimes.algebra.notation.tree import Slot
    >>> l, m = Slot("index", "l"), Slot("expression", "l-1")
    >>> sizes_at(Name("W", sup=(l,)), Name("W", sup=(m,)), (("d_l",), ("d_{l-1}",)))
    (('d_{l-1}',), ('d_{l-2}',))
    """
    moved: dict[str, str] = {}
    for mine, other in ((declared.sub, name.sub), (declared.sup, name.sup)):
        for k, slot in enumerate(mine):
            if slot.kind == "index":
                moved[slot.text] = other[k].text if k < len(other) else ""
    numbered = {letter for size in sizes for letter in map(_letter, size) if letter in moved}
    if not numbered:
        return sizes
    put = {letter: _index(moved[letter]) for letter in numbered}
    if None in put.values():
        return None
    rows, cols = sizes
    return tuple(_at(atom, put) for atom in rows), tuple(_at(atom, put) for atom in cols)


def _letter(atom: object) -> str:
    """Return the letter of the index of a size, "" if it has none."""
    match = NUMBERED.match(atom) if isinstance(atom, str) else None
    index = INDEX.match(match["inside"] or match["plain"]) if match else None
    return index[1] if index else ""


def _index(text: str) -> tuple[str, int] | None:
    """Return the letter and the number of an index such as `l-1` or `3`."""
    text = text.strip("()")
    if text.isdigit():
        return "", int(text)
    match = INDEX.match(text)
    return None if match is None else (match[1], int(f"{match[2] or ''}{match[3] or 0}"))


def _at(atom: Any, put: dict[str, tuple[str, int] | None]) -> Any:
    moved = put.get(_letter(atom))
    match = NUMBERED.match(atom) if isinstance(atom, str) else None
    if moved is None or match is None:
        return atom
    letter, number = moved
    own = INDEX.match(match["inside"] or match["plain"])
    assert own is not None
    number += int(f"{own[2] or ''}{own[3] or 0}")
    text = letter + (f"{number:+d}" if number else "") if letter else str(number)
    return f"{match['base']}_{text}" if text.isalnum() else f"{match['base']}_{{{text}}}"
