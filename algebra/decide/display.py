"""Counterexamples as TeX and HTML: the matrices, both sides multiplied out, the entry marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from html import escape
from typing import Any, Protocol

import sympy

from otimes.algebra.language.latex import latex
from otimes.algebra.language.logarithms import Logarithm

MOST = 8
"""Rows and columns of a matrix that are shown; the others are left out."""


class Counterexample(Protocol):
    """The part of a counterexample that is shown."""

    @property
    def sizes(self) -> Mapping[sympy.Symbol, int]:
        """The value of each size."""

    @property
    def indices(self) -> Mapping[sympy.Symbol, int]:
        """The value of each free index."""

    @property
    def scalars(self) -> Mapping[sympy.Symbol, Any]:
        """The value of each scalar."""

    @property
    def arrays(self) -> Mapping[str, Any]:
        """The array of each matrix and family."""

    @property
    def functions(self) -> Mapping[str, Any]:
        """Each function, as a polynomial in x."""

    @property
    def entry(self) -> tuple[int, int] | None:
        """The row and column at which the sides differ."""

    @property
    def lhs(self) -> Any:
        """The entry of the left side at which the sides differ."""

    @property
    def rhs(self) -> Any:
        """The entry of the right side at which the sides differ."""

    @property
    def presupposes(self) -> tuple[Any, ...]:
        """The inequalities between sizes that make every length at least 1."""

    @property
    def warning(self) -> str:
        """A warning that a time limit was reached, or an empty string."""

    @property
    def expressions(self) -> tuple[Any, ...]:
        """Both sides as expressions."""

    @property
    def values(self) -> tuple[Any, ...]:
        """Both sides as values."""


def counterexample_latex(found: Counterexample) -> str:
    r"""Return a counterexample as lines of a TeX `aligned`: the numbers, then both sides.

    >>> from sympy import MatrixSymbol, Symbol
    >>> from otimes.algebra.verdict import decide
    >>> A = MatrixSymbol("A", Symbol("n"), Symbol("n"))
    >>> print(counterexample_latex(decide(A, A.T).counterexample))
    \begin{aligned}
    n &= 2 \\
    A &= \begin{bmatrix}0 & 0 \\ 1 & 0\end{bmatrix} \\
    A &= \begin{bmatrix}0 & \boxed{0} \\ 1 & 0\end{bmatrix} \\
    A^{\top} &= \begin{bmatrix}0 & \boxed{1} \\ 0 & 0\end{bmatrix}
    \end{aligned}
    """
    rows = [rf"{name} &= {value}" for name, value in _rows(found)]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def counterexample_html(found: Counterexample) -> str:
    """Return a counterexample as HTML, its formulas in TeX, which notebooks typeset."""
    where = ""
    if found.entry is not None:
        row, column = found.entry
        where = f" at row {row}, column {column} (counted from 0)"
    remarks = [f"presupposes {relation}" for relation in found.presupposes]
    remarks += [found.warning] if found.warning else []
    return (
        f"<div>The sides differ{where}.</div>"
        f"<div>$$\n{escape(counterexample_latex(found))}\n$$</div>"
        + "".join(f"<div>{escape(str(each))}</div>" for each in remarks)
    )


def _rows(found: Counterexample) -> Iterator[tuple[str, str]]:
    """Yield (name, value) as TeX: sizes and scalars, arrays, functions, both sides."""
    for numbers in (found.sizes, found.indices, found.scalars):
        yield from _numbers(numbers)
    for name, array in found.arrays.items():
        yield _symbol(name), _array(array.tolist())
    for name, polynomial in found.functions.items():
        x = sympy.Symbol("x")
        terms = [sympy.Rational(c) * x**k for k, c in enumerate(polynomial.coefficients)]
        yield rf"{_symbol(name)}(x)", latex(sympy.Add(*terms))
    for side, value, entry in zip(
        found.expressions, found.values, (found.lhs, found.rhs), strict=True
    ):
        shown = _number(entry) if found.entry is None else _array(value.tolist(), found.entry)
        yield latex(side), shown


def _numbers(numbers: Mapping[sympy.Symbol, Any]) -> Iterator[tuple[str, str]]:
    for symbol, number in numbers.items():
        yield latex(symbol), _number(number)


def _symbol(name: str) -> str:
    return latex(sympy.Symbol(name))


def _array(rows: Any, marked: tuple[int, int] | None = None) -> str:
    """Return nested lists as TeX: a matrix, or a family of them, one beside the other."""
    if rows and isinstance(rows[0], list) and rows[0] and isinstance(rows[0][0], list):
        return r",\; ".join(_array(each) for each in rows)
    lines = [
        " & ".join(
            rf"\boxed{{{_number(x)}}}" if (i, j) == marked else _number(x)
            for j, x in _shown(row, marked and marked[1])
        )
        for i, row in _shown(rows, marked and marked[0])
    ]
    return r"\begin{bmatrix}" + r" \\ ".join(lines) + r"\end{bmatrix}"


def _shown(items: list[Any], needed: int | None) -> list[tuple[int, Any]]:
    """Return the items that are shown with their numbers: the first, and the one needed."""
    numbered = list(enumerate(items))
    if len(numbered) <= MOST or (needed is not None and needed < MOST):
        return numbered[:MOST]
    return numbered[: MOST - 1] + ([numbered[needed]] if needed is not None else [])


def _number(value: Any) -> str:
    if isinstance(value, Fraction) and value.denominator != 1:
        sign = "-" if value < 0 else ""
        return rf"{sign}\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"
    if isinstance(value, int | Fraction):
        return str(int(value))
    if isinstance(value, Logarithm):
        return latex(sympy.Rational(value.rational) + sympy.Rational(value.factor) * sympy.log(2))
    return rf"\text{{{value}}}"
