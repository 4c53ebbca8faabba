r"""Shift matrices: with `P_{i,i-1} = 1` and zeros elsewhere, row i of `P X` is x_{i-1}.

With such a matrix, `x_{i-1}` is a row of `P X`, or a column of `X P^\top`: zero where there is no
position before the first. What is true of these rows is true wherever x_{i-1} exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from otimes.algebra.notation.affine import Affine, affine
from otimes.algebra.notation.dimensions import Size
from otimes.algebra.notation.symbols import Declared, Symbols
from otimes.algebra.notation.tree import (
    Grid,
    Group,
    Name,
    Node,
    Number,
    Power,
    Product,
    Slot,
    mapped,
)

MOST = 3  # positions by which states are shifted
ROUND = 5  # positions on a circle, on which what is false is false inside
AWAY = "away from the first and the last positions, too"
COMPARED = r"(?:[<>≤≥]|\\(?:leq?|geq?|lt|gt)\b)\s*(?:\d|[nNT](?:\s*-\s*1)?)"
POSITIONS = re.compile(
    r"(?:\$\$?|\\\)|\\\]|`)?[\s,]*\(?\bfor\s+(?:all\s+|any\s+|every\s+|each\s+)?"
    rf"\$\s*(?:\d\s*(?:[<≤]|\\(?:leq?|lt)\b)\s*)?[a-z](?:\s*,\s*[a-z])*\s*(?:{COMPARED})?\s*\$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Shift:
    """A matrix whose entry (i, i + by) is one on a line of the text, and the others zero.

    `weak`: where it is said only of what it makes of states, which may be a slip.
    """

    name: Name
    by: int
    line: int
    weak: bool = False

    def moved(self, whole: Node, side: str, steps: int) -> Node | None:
        """Return the matrix whose row or column i is that of `whole` at i + steps, or None."""
        times, left = divmod(steps, self.by)
        if left or not 0 < abs(times) <= MOST:
            return None
        turned = (times < 0) != (side == "column")
        factor: Node = Power(self.name, "T") if turned else self.name
        factors = (*[factor] * abs(times), whole)
        factors = factors if side == "row" else factors[::-1]
        return Group(Product(factors, ("",) * len(factors)))


def around(
    sides: Sequence[Node], shifts: Iterable[Shift], symbols: Symbols
) -> tuple[list[Node], Symbols]:
    """Return terms in which states are shifted on a circle, with numbers for the sizes of that.

    What is true of all positions that have enough others before and after them is true there.
    """
    known = symbols.copy()
    grids: dict[Name, Node] = {}
    sizes = set[Size]()
    for shift in shifts:
        rows = tuple(
            tuple(Number("1" if (i + shift.by - j) % ROUND == 0 else "0") for j in range(ROUND))
            for i in range(ROUND)
        )
        grids[shift.name] = Group(Grid(rows))
        said = symbols.lookup(shift.name)[1]
        sizes |= {said.rows, said.cols} if said is not None else set()
    for key, each in symbols.known.items():
        known.known[key] = _at(each, sizes - {()})
    return [mapped(side, lambda e: grids.get(_plain(e))) for side in sides], known


def _plain(e: object) -> Name:
    return replace(e, span=(0, 0)) if isinstance(e, Name) else Name("")


def _at(known: Declared, sizes: set[Size]) -> Declared:
    """Return a declaration with a number for some sizes."""
    number: Size = (ROUND,)
    rows = number if known.rows in sizes else known.rows
    return replace(known, rows=rows, cols=number if known.cols in sizes else known.cols)


def without_positions(words: str) -> str:
    """Return words without conditions on positions, at which a shift has no state before.

    >>> without_positions("For $i > 1$, row $i$ of $P X$ is ")
    ', row $i$ of $P X$ is '
    """
    return POSITIONS.sub("", words)


def steps_of(slot: Slot) -> Affine | None:
    """Return an index as a letter and a number that is not zero, or None."""
    found = affine(slot)
    return found if found is not None and found.letter and found.number else None
