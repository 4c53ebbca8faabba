"""Sizes with unknowns, and what makes two of them equal.

A size is a tuple of atoms, whose product it is: names (`"d"`), integers, unknowns, and sums of
sizes. The order of the atoms counts, as `n·d` and `d·n` are different orders of axes. Names are
typed: `n` and `d` are never equal, whatever numbers a document may give them.

>>> unknown, solver = Unknown(1), Solver()
>>> solver.unify((unknown,), ("n", "d"))
True
>>> solver.show((unknown,))
'n·d'
>>> solver.unify(("n",), ("d",))
False
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import sympy


class Unknown(NamedTuple):
    """A size that is not known yet."""

    number: int


class Plus(NamedTuple):
    """The sum of sizes of the blocks of a matrix."""

    parts: tuple[Size, ...]


Atom = str | int | Unknown | Plus
Size = tuple[Atom, ...]
Shape = tuple[Size, Size]
ONE: Size = ()


class Solver:
    """The unknown sizes of a formula, and what has been found out about them."""

    def __init__(self) -> None:
        self.values: dict[Unknown, Size] = {}
        self.count = 0
        self.unsure = False  # whether sizes that were found unequal had unknowns in them

    def fresh(self) -> Size:
        self.count += 1
        return (Unknown(self.count),)

    def resolved(self, size: Size) -> Size:
        """Return a size with what is known of its unknowns, without factors 1."""
        found: list[Atom] = []
        for atom in size:
            if isinstance(atom, Unknown) and atom in self.values:
                found += self.resolved(self.values[atom])
            elif isinstance(atom, Plus):
                found.append(Plus(tuple(self.resolved(part) for part in atom.parts)))
            elif isinstance(atom, int) and found and isinstance(found[-1], int):
                found[-1] *= atom
            elif atom != 1:
                found.append(atom)
        return tuple(found)

    def unify(self, a: Size, b: Size) -> bool:
        """Make two sizes equal if that is possible, and return whether it was."""
        a, b = self.resolved(a), self.resolved(b)
        while a and b and a[0] == b[0]:
            a, b = a[1:], b[1:]
        while a and b and a[-1] == b[-1]:
            a, b = a[:-1], b[:-1]
        if not a and not b:
            return True
        for x, y in ((a, b), (b, a)):
            if len(x) == 1 and isinstance(x[0], Unknown):
                return self._assign(x[0], y)
        if len(a) == len(b) and a:
            return all(self._same_atom(x, y) for x, y in zip(a, b, strict=True))
        self.unsure |= bool(self.unknowns(a) or self.unknowns(b))
        return False

    def _same_atom(self, x: Atom, y: Atom) -> bool:
        if isinstance(x, Unknown) or isinstance(y, Unknown):
            return self.unify((x,), (y,))
        if isinstance(x, Plus) and isinstance(y, Plus):
            pairs = zip(x.parts, y.parts, strict=False)
            return len(x.parts) == len(y.parts) and all(self.unify(p, q) for p, q in pairs)
        return x == y

    def _assign(self, unknown: Unknown, size: Size) -> bool:
        if unknown in set(self._unknowns(size)):
            return False
        self.values[unknown] = size
        return True

    def _unknowns(self, size: Size) -> Iterator[Unknown]:
        for atom in self.resolved(size):
            if isinstance(atom, Unknown):
                yield atom
            elif isinstance(atom, Plus):
                for part in atom.parts:
                    yield from self._unknowns(part)

    def unknowns(self, size: Size) -> frozenset[Unknown]:
        """Return the unknowns that a size still has."""
        return frozenset(self._unknowns(size))

    def show(self, size: Size) -> str:
        """Return a size for a message, `?` for what is unknown."""
        atoms = self.resolved(size)
        return "·".join(map(self._show_atom, atoms)) or "1"

    def _show_atom(self, atom: Atom) -> str:
        if isinstance(atom, Unknown):
            return "?"
        if isinstance(atom, Plus):
            return f"({' + '.join(map(self.show, atom.parts))})"
        return str(atom)

    def show_shape(self, shape: Shape | None) -> str:
        return "scalar" if shape is None else f"{self.show(shape[0])} × {self.show(shape[1])}"

    def expression(self, size: Size) -> sympy.Expr:
        """Return a size, all of which is known, as a SymPy expression."""
        factors = []
        for atom in self.resolved(size):
            if isinstance(atom, Plus):
                factors.append(sympy.Add(*map(self.expression, atom.parts)))
            elif isinstance(atom, int):
                factors.append(sympy.Integer(atom))
            else:
                factors.append(size_symbol(str(atom)))
        return sympy.Mul(*factors)


def size_symbol(name: str) -> sympy.Symbol:
    """Return the symbol of a size: a positive integer of which nothing else is known."""
    return sympy.Symbol(name, positive=True, integer=True)
