"""The free variables of expressions: what must be given a value before they have one."""

from __future__ import annotations

from dataclasses import dataclass, field

import sympy

from otimes.algebra.language.assumptions import NONE, Assumptions
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
    dimensions: set[sympy.Expr] = field(default_factory=set)  # every composite size, n*d or n - 1
    # Kronecker deltas that were written without a range, with one
    deltas: dict[sympy.KroneckerDelta, sympy.KroneckerDelta] = field(default_factory=dict)
    # the names of tensors in masks, which are zeros and ones with a one in every row
    masks: set[str] = field(default_factory=set)
    # by the name of a symbol under a root, the degree of the powers that make it rational
    roots: dict[str, int] = field(default_factory=dict)
    # of symbols and inequalities; that sizes are positive integers holds in addition
    assumptions: Assumptions = NONE
