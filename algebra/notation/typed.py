"""The parts of a formula with their shapes, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from otimes.algebra.errors import ShapeError
from otimes.algebra.notation.dimensions import Shape
from otimes.algebra.notation.tokens import NotationError
from otimes.algebra.notation.tree import (
    Span,
)


class FormulaShapeError(ShapeError):
    """The shapes of two parts of a formula do not conform; `.span` is their position in it.

    `broadcast` says what a library that repeats rows or columns would make of a sum, if it would.
    """

    def __init__(self, message: str, span: Span, broadcast: str = "") -> None:
        super().__init__(message)
        self.span = span
        self.broadcast = broadcast


class Undeclared(NotationError):
    """A symbol of a formula is not declared, and its kind does not follow from the formula."""


class WrongSide(Undeclared):
    """A formula conforms only if a column is a row, or a row a column.

    `line` says so of this vector by itself; it is 0 where all vectors are said to be so.
    """

    def __init__(self, message: str, span: Span, line: int) -> None:
        super().__init__(message, span)
        self.line = line


@dataclass(slots=True)
class Typed:
    """A part of a formula: its shape (None for a scalar) and how it is built.

    `known` is False for what may be a scalar or a matrix, such as the value of an unknown function.
    """

    shape: Shape | None
    build: Callable[[], Any]
    span: Span
    known: bool = True
    literal: str = ""


@dataclass(slots=True)
class Elaborated:
    """The terms of a chain as SymPy expressions, and what should be said about them."""

    terms: list[Any]
    doubts: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # of matrices and scalars: their keys
    undeclared: dict[str, str] = field(default_factory=dict)  # keys, and what they were taken for
    shapes: dict[str, Shape | None] = field(default_factory=dict)  # by key, as far as solved


def mentions(text: str, letter: str) -> bool:
    """Return whether an index occurs in the text of a slot or a term as a word of its own."""
    return re.search(rf"(?<![A-Za-z\\]){re.escape(letter)}(?![A-Za-z])", text) is not None
