"""A declaration of a symbol in the text of a document."""

from __future__ import annotations

from dataclasses import dataclass

from otimes.algebra.notation.symbols import Declared


@dataclass(frozen=True, slots=True)
class Said:
    """A declaration of a symbol in the text: its key, what it is, and the offset of the words.

    `local`: it counts for its paragraph only, as after “if” or “where”.
    """

    key: str
    declared: Declared
    offset: int
    text: str
    local: bool = False
