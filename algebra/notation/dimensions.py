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
from typing import Any, NamedTuple

import sympy


class Unknown(NamedTuple):
    """A size that is not known yet."""

    number: int


class Plus(NamedTuple):
    """The sum of sizes of the blocks of a matrix."""

    parts: tuple[Size, ...]


class Formula(NamedTuple):
    """A size that was written as a polynomial in others: `n + 1`, `d*n`.

    It equals every size of the same value, whatever the order of its axes.
    """

    expression: sympy.Expr


Atom = str | int | Unknown | Plus | Formula
Size = tuple[Atom, ...]
Shape = tuple[Size, Size]
ONE: Size = ()


def formula(expression: sympy.Expr) -> Size:
    """Return a SymPy expression as a size."""
    if expression.is_Symbol:
        return (expression.name,)
    return (int(expression),) if expression.is_Integer else (Formula(expression),)


def names_in(size: Size) -> set[str]:
    """Return the names in a size."""
    found: set[str] = set()
    for atom in size:
        if isinstance(atom, str):
            found.add(atom)
        elif isinstance(atom, Formula):
            found |= {symbol.name for symbol in atom.expression.free_symbols}
        elif isinstance(atom, Plus):
            found = found.union(*map(names_in, atom.parts))
    return found


class Solver:
    """The unknown sizes of a formula, and what has been found out about them."""

    def __init__(self, by_value: bool = False) -> None:
        self.by_value = by_value  # whether sums of sizes are equal in any order, and P + P is 2 P
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
        if len(a) == len(b) == 1 and {type(a[0]), type(b[0])} == {Plus, int}:
            return self._same_sum(a, b)
        kinds = (Formula, Plus) if self.by_value else Formula
        if any(isinstance(atom, kinds) for atom in (*a, *b)):
            return self._same_value(a, b) or self._same_parts(a, b)
        return self._same_parts(a, b)

    def _same_sum(self, a: Size, b: Size) -> bool:
        """Make the parts of a sum of sizes add up to a number, if there is one way to do it."""
        (total, number), parts = (a[0], b[0]) if isinstance(a[0], Plus) else (b[0], a[0]), []
        assert isinstance(total, Plus)
        assert isinstance(number, int)
        for part in map(self.resolved, total.parts):
            if not part:
                number -= 1
            elif len(part) == 1 and isinstance(part[0], int):
                number -= part[0]
            else:
                parts.append(part)
        if len(parts) == 1 and number > 0:
            return self.unify(parts[0], (number,))
        if parts and number == len(parts):
            return all(self.unify(part, ONE) for part in parts)
        self.unsure |= bool(parts)
        return not parts and number == 0

    def _same_parts(self, a: Size, b: Size) -> bool:
        if len(a) == len(b) and a:
            return all(self._same_atom(x, y) for x, y in zip(a, b, strict=True))
        self.unsure |= bool(self.unknowns(a) or self.unknowns(b))
        return False

    def _same_value(self, a: Size, b: Size) -> bool:
        """Make two sizes equal of which one is a formula, by solving for the one unknown."""
        unknown = self.unknowns(a) | self.unknowns(b)
        difference = sympy.expand(self._value(a) - self._value(b))
        if not unknown:
            return bool(difference == 0)
        if len(unknown) > 1:
            return False
        (one,) = unknown
        symbol = _placeholder(one)
        slope = difference.coeff(symbol)
        if not slope or slope.has(symbol):
            return False
        solution = sympy.cancel(-difference.subs(symbol, 0) / slope)
        return bool(solution.is_polynomial()) and self._assign(one, formula(solution))

    def _value(self, size: Size) -> sympy.Expr:
        factors: list[Any] = []
        for atom in self.resolved(size):
            if isinstance(atom, Unknown):
                factors.append(_placeholder(atom))
            elif isinstance(atom, Plus):
                factors.append(sympy.Add(*map(self._value, atom.parts)))
            else:
                factors.append(self.expression((atom,)))
        return sympy.Mul(*factors)

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
        if isinstance(atom, Formula):
            return f"({atom.expression})"
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
            elif isinstance(atom, Formula):
                factors.append(atom.expression)
            else:
                factors.append(size_symbol(str(atom)))
        return sympy.Mul(*factors)


def _placeholder(unknown: Unknown) -> sympy.Symbol:
    return sympy.Symbol(f"?{unknown.number}", positive=True, integer=True)


def size_symbol(name: str) -> sympy.Symbol:
    """Return the symbol of a size: a positive integer of which nothing else is known."""
    return sympy.Symbol(name, positive=True, integer=True)
