"""Members of families at affine indices: S[l + 1], R[j - i], S[L].

An index is an integer combination of indices plus a polynomial in sizes. A family has such members
where the claim has one; then all of its members are written so. A family over relative positions
has a range (first, last) for a count, `Family("R", ((1 - n, n - 1),), d, d)`.

>>> from otimes.algebra.language.linear import Family
>>> from otimes.algebra.language.unicode import unicode_text
>>> n, d = sympy.symbols("n d", integer=True, positive=True)
>>> i, j = sympy.symbols("i j", integer=True)
>>> R = Family("R", ((1 - n, n - 1),), d, d)
>>> print(unicode_text(affine_member(R, [j - i], {i: n, j: n})))
R[-i + j]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
from sympy import MatrixExpr, Symbol, Tuple

from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.language.binders import bindings, free_symbols
from otimes.algebra.language.declared import Declared, argument_at
from otimes.algebra.language.latex import TexPrinter, typeset_name
from otimes.algebra.language.linear import Family, Shape
from otimes.algebra.language.trees import rebuilt
from otimes.algebra.language.unicode import ATOM, Piece, TextPrinter

# What is added to an index, and its number of values, 1 for a fixed one; it may be subtracted
Shift = tuple[Any, Any] | tuple[Any, Any, int]


class AffineMember(Declared):
    """A member of a family at affine indices.

    `forms` has for each index of the family its constant and the factor of each variable; `counts`
    are the numbers of values of the variables. A variable that is an integer is added up.
    """

    is_tensor = True
    index_places = slice(3, None)

    def __new__(cls, family: Family, forms: Any, counts: Any, *variables: Any) -> AffineMember:
        ranges: dict[Any, Any] = {}
        factors: dict[Any, list[Any]] = {}
        constants = [form[0] for form in forms]
        for k, (variable, count) in enumerate(zip(variables, counts, strict=True)):
            column = [form[1 + k] for form in forms]
            if variable.is_Integer:
                constants = [c + f * variable for c, f in zip(constants, column, strict=True)]
                continue
            known = factors.get(variable, [0] * len(column))
            factors[variable] = [a + b for a, b in zip(known, column, strict=True)]
            ranges.setdefault(variable, count)
        kept = [v for v, column in factors.items() if any(column)]
        kept.sort(key=lambda v: (tuple(map(int, factors[v])), str(v)))
        rows = [
            Tuple(sympy.expand(constant), *[factors[v][k] for v in kept])
            for k, constant in enumerate(constants)
        ]
        return MatrixExpr.__new__(
            cls, family, Tuple(*rows), Tuple(*[ranges[v] for v in kept]), *kept
        )

    family = argument_at(0)
    counts = argument_at(2)

    @property
    def forms(self) -> tuple[tuple[Any, tuple[int, ...]], ...]:
        """For each index of the family its constant, and the factors of the variables."""
        return tuple((form[0], tuple(map(int, form[1:]))) for form in self.args[1])

    @property
    def variables(self) -> tuple[Any, ...]:
        """The indices that occur in the indices of the family."""
        return tuple(self.args[3:])

    @property
    def indices(self) -> tuple[sympy.Expr, ...]:
        """The indices as expressions."""
        return tuple(
            sympy.Add(constant, *[f * v for f, v in zip(factors, self.variables, strict=True)])
            for constant, factors in self.forms
        )

    @property
    def shape(self) -> Shape:
        """The shape of one member."""
        return self.family.shape

    def count_of(self, index: Any) -> Any:
        return self.counts[self.variables.index(index)]

    def checked_shape(self, reader: Any) -> Shape:
        reader.tensor(self.family)
        for count in (*self.family.counts, *self.counts):
            reader.size(count)
        for constant, _ in self.forms:
            for symbol in sorted(constant.free_symbols, key=str):
                reader.size(symbol)
        for variable, count in zip(self.variables, self.counts, strict=True):
            reader.index(variable, count, self.family.name)
        return self.family.shape

    def place(self, size: Any, at: Any) -> tuple[int, ...]:
        """Return the place in an array of members, by the values of sizes and of indices."""
        values = [at(variable) for variable in self.variables]
        found = []
        for (constant, factors), first in zip(self.forms, self.family.firsts, strict=True):
            shift = sum(f * v for f, v in zip(factors, values, strict=True))
            found.append(int(size(constant)) + shift - int(size(first)))
        return tuple(found)

    def text(self, printer: TextPrinter) -> Piece:
        return f"{self.family.name}[{', '.join(map(printer.whole, self.indices))}]", ATOM

    def tex(self, printer: TexPrinter, transposed: bool = False) -> str:
        """Return the TeX: a member by its number counted from 1, a relative position as it is."""
        shown = []
        for index, (_, factors), first in zip(
            self.indices, self.forms, self.family.firsts, strict=True
        ):
            from_1 = 1 - sum(factors) if first == 0 else 0
            shown.append(printer._print(index + from_1))
        above = ",".join(shown) + r"\,\top" * transposed
        return rf"{typeset_name(self.family.name)}^{{{above}}}"


def affine_member(
    family: Family,
    indices: Sequence[Any],
    ranges: Mapping[Symbol, Any],
    exists: Callable[[Any, Any, Any], bool] = lambda *_: False,
) -> Any:
    """Return a member at affine indices. Raises ShapeError for one that may be out of range.

    Where an index lies between its first and its last value for another reason, `exists` says so.
    """
    exprs = [sympy.expand(index.doit()) for index in indices]
    variables = sorted({s for e in exprs for s in e.free_symbols if s in ranges}, key=str)
    forms = []
    for e, count, first in zip(exprs, family.counts, family.firsts, strict=True):
        factors = [e.coeff(v) for v in variables]
        rest = sympy.expand(e - sum(f * v for f, v in zip(factors, variables, strict=True)))
        if not all(f.is_Integer for f in factors) or rest.free_symbols & {*ranges}:
            raise LanguageError(
                f"the index {e} of {family.name} is not in the language: an integer combination "
                "of indices plus a number or a size is"
            )
        low = rest + sum(
            min(f, 0) * (ranges[v] - 1) for f, v in zip(factors, variables, strict=True)
        )
        high = rest + sum(
            max(f, 0) * (ranges[v] - 1) for f, v in zip(factors, variables, strict=True)
        )
        last = first + count - 1
        known = never_negative(low - first) and never_negative(last - high)
        if not known and not exists(e, first, last):
            raise ShapeError(
                f"the index {e} of {family.name} may be out of range: it runs from "
                f"{sympy.expand(low)} to {sympy.expand(high)}, and {family.name} has the members "
                f"{first} to {sympy.expand(first + count - 1)}"
            )
        forms.append(Tuple(rest, *factors))
    return AffineMember(family, forms, [ranges[v] for v in variables], *variables)


def only_in_members(e: Any, index: Symbol) -> bool:
    """Return whether an index occurs in an expression, at affine indices only, and is not bound."""
    parts = list(sympy.preorder_traversal(e))
    if any(index == bound for part in parts for bound, _ in bindings(part)):
        return False

    def outside(e: Any) -> bool:
        return not isinstance(e, AffineMember) and (e == index or any(map(outside, e.args)))

    inside = any(isinstance(part, AffineMember) and index in part.variables for part in parts)
    return inside and not outside(e)


def moved(e: Any, shifts: Mapping[Any, Shift]) -> Any:
    """Return an expression with indices moved by a number, and their new numbers of values.

    With a third number -1 an index is subtracted from the number.
    """
    if isinstance(e, AffineMember):
        signs = [1] * len(e.variables)
        constants = [constant for constant, _ in e.forms]
        counts = list(e.counts)
        variables = list(e.variables)
        for k, variable in enumerate(e.variables):
            if variable in shifts:
                shift, values, *sign = shifts[variable]
                signs[k] = sign[0] if sign else 1
                constants = [
                    c + factors[k] * shift
                    for c, (_, factors) in zip(constants, e.forms, strict=True)
                ]
                counts[k] = values
                variables[k] = sympy.S.Zero if values == 1 else variable
        forms = [
            (c, *[s * f for s, f in zip(signs, factors, strict=True)])
            for c, (_, factors) in zip(constants, e.forms, strict=True)
        ]
        return AffineMember(e.family, forms, counts, *variables)
    if not e.args or not free_symbols(e) & {*shifts}:
        return e
    return rebuilt(e, [moved(a, shifts) for a in e.args])


def never_negative(value: Any) -> bool:
    """Return whether a polynomial in sizes is certainly at least 0, for all sizes 1 + x, x ≥ 0."""
    value = sympy.expand(value)
    if not value.free_symbols:
        return bool(value >= 0)
    above = {symbol: 1 + symbol for symbol in value.free_symbols}
    return all(c >= 0 for c in sympy.Poly(value.xreplace(above), *above).coeffs())
