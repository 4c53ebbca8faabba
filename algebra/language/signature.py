"""The free variables of expressions, which need values for an evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from otimes.algebra.language.assumptions import NONE, Assumptions
from otimes.algebra.language.constants import PI
from otimes.algebra.language.linear import Family


@dataclass(slots=True)
class Signature:
    """The free variables of one or several expressions, by name.

    `tensors` are the matrix symbols and families, `sizes` the symbols of dimensions, `indices` the
    free indices with the number of values each runs over, `scalars` the other symbols.
    """

    tensors: dict[str, sympy.MatrixSymbol | Family] = field(default_factory=dict)
    sizes: dict[str, sympy.Symbol] = field(default_factory=dict)
    indices: dict[str, tuple[sympy.Symbol, sympy.Expr]] = field(default_factory=dict)
    scalars: dict[str, sympy.Symbol] = field(default_factory=dict)
    fixed: dict[sympy.Expr, int] = field(default_factory=dict)  # count -> largest integer index
    largest: int = 0  # of the sizes and counts that are numbers
    dimensions: set[sympy.Expr] = field(default_factory=set)  # every composite size, n*d or n - 1
    # deltas without a range, mapped to ones with a range
    deltas: dict[sympy.KroneckerDelta, sympy.KroneckerDelta] = field(default_factory=dict)
    # names of tensors in masks: 0/1 matrices with a one in every row
    masks: set[str] = field(default_factory=set)
    # for each symbol under a root, the degree of the powers that make the root rational
    roots: dict[str, int] = field(default_factory=dict)
    folded: bool = False  # whether a part stands for its definition (`defined.unfolded`)
    partial: bool = False  # whether a function of entries has no value at some numbers
    # of symbols, and inequalities; sizes are positive integers besides
    assumptions: Assumptions = NONE

    @property
    def unknown(self) -> list[str]:
        """The names of the scalars that may be any number: of all but π."""
        return [name for name, symbol in self.scalars.items() if symbol != PI]
