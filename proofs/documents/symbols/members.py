"""A symbol with an index that is a row or a column of a matrix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from otimes.algebra.notation.tree import Name, Node, Power

INDEX = re.compile(r"\w|[a-z]-\d")


@dataclass(frozen=True, slots=True)
class Member:
    """A symbol with one index that is a row or a column of a matrix, as a line says.

    `turned`: whether its transpose is, as in “rows $x_i^T$”.
    """

    name: Name
    whole: Name
    side: str
    line: int
    turned: bool = False

    def at(self, name: Name) -> Node | None:
        """Return the row or column for a symbol with another index, or None for another symbol."""
        own = self.name
        alike = (own.base, own.style, own.marks) == (name.base, name.style, name.marks)
        if not alike or len(name.sub) != 1 or name.select or name.sub[0].kind == "label":
            return None
        text = re.sub(r"\s", "", name.sub[0].text)
        if not INDEX.fullmatch(text) or len(own.sub) != 1:
            return None
        select = f"{text},:" if self.side == "row" else f":,{text}"
        sup = self.whole.sup or name.sup
        part = replace(self.whole, select=select, sup=sup, span=name.span)
        return Power(part, "T") if self.turned else part


class Part(NamedTuple):
    """A row or column of a matrix."""

    whole: Name
    side: str
    letter: str

    def readings(self) -> Iterator[Node]:
        """Yield the part, and its transpose."""
        select = f"{self.letter},:" if self.side == "row" else f":,{self.letter}"
        part = Name(self.whole.base, self.whole.style, self.whole.marks, self.whole.sub,
                    self.whole.sup, select=select)  # fmt: skip
        yield part
        yield Power(part, "T")
