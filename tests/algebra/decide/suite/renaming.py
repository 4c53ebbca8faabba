"""Whether two entries are the same up to the names of symbols and the order of the sides."""

from __future__ import annotations

from typing import Any

import sympy

from tests.algebra.decide.suite.identity import Identity

COMMUTATIVE = (sympy.Add, sympy.MatAdd, sympy.Mul, sympy.HadamardProduct)


def skeleton(e: Any, names: dict[Any, int] | None = None) -> str:
    """Return a tree as text with every symbol `_`, or its number of first occurrence in `names`.

    The arguments of what commutes are in the order of their skeletons, whatever their names.
    """

    def name(symbol: Any) -> str:
        return "_" if names is None else str(names.setdefault(symbol, len(names)))

    if isinstance(e, sympy.Symbol):
        return name(e)
    if isinstance(e, sympy.MatrixSymbol):
        rows, cols = (skeleton(size, names) for size in e.shape)
        return f"{name(e.name)}[{rows},{cols}]"
    args = [a for a in e.args if isinstance(a, sympy.Basic)]
    if isinstance(e, COMMUTATIVE):
        args = sorted(args, key=skeleton)
    if not args:
        return str(e)
    return f"{type(e).__name__}({','.join(skeleton(a, names) for a in args)})"


def canonical(identity: Identity) -> str:
    """Return one text for all entries that are alike."""

    def stated(left: Any, right: Any) -> str:
        names: dict[Any, int] = {}
        given = sorted(identity.given, key=lambda pair: [skeleton(side) for side in pair])
        sides = [left, right, *[side for pair in given for side in pair]]
        return " = ".join(skeleton(side, names) for side in sides)

    return min(stated(identity.lhs, identity.rhs), stated(identity.rhs, identity.lhs))
