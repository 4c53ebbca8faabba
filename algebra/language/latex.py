"""Expressions as TeX: SymPy's printer with the conventions of the papers.

`latex(expression)` keeps brackets and order as stated. The indices of a family member are
superscripts (`W_{O}^{l,h}`), joined with a transpose, so that no symbol has two superscripts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import sympy
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.printing.latex import LatexPrinter, greek_letters_set

from otimes.algebra.language.trees import offset

CAPITALS = ["Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega"]
OF_MATRICES = (sympy.Trace, MatrixElement, sympy.Sum, sympy.KroneckerDelta)
UNICODE = {"π": "pi", "Π": "Pi", "Σ": "Sigma", "Ω": "Omega"}  # named by induction: the first layers
# classes that need brackets as a factor of a product
LOOSE = (sympy.MatMul, sympy.MatAdd, sympy.Add, sympy.KroneckerProduct, sympy.HadamardProduct)
GREEK = {*greek_letters_set, *CAPITALS}


def latex(expression: sympy.Basic) -> str:
    r"""Return the TeX of an expression, as stated.

    >>> latex(sympy.MatrixSymbol("W_O", 2, 2).T)
    'W_{O}^{\\top}'
    """
    return str(TexPrinter().doprint(expression))


class TexPrinter(LatexPrinter):
    """SymPy's printer with our conventions; classes of otimes are printed by their method `tex`."""

    def __init__(self) -> None:
        super().__init__()
        self.from_1: list[Any] = []  # indices of the enclosing sums, counted from 1

    @contextmanager
    def counting_from_1(self, indices: Iterable[Any]) -> Iterator[None]:
        """Count these indices from 1 within the context, which prints the body of their sum."""
        outside = self.from_1
        self.from_1 = [*outside, *indices]
        yield
        self.from_1 = outside

    def _print_Symbol(self, e: sympy.Symbol, style: str = "plain") -> str:
        return typeset_name(e.name)

    def _print_MatrixSymbol(self, e: Any, **_: Any) -> str:
        return typeset_name(e.name)

    def _print_Identity(self, e: Any) -> str:
        return rf"I_{{{self._print(e.shape[0])}}}"

    def _print_OneMatrix(self, e: Any) -> str:
        rows, cols = (self._print(d) for d in e.shape)
        return (
            rf"\mathbf{{1}}_{{{rows}}}"
            if cols == "1"
            else rf"\mathbf{{1}}_{{{rows} \times {cols}}}"
        )

    def _print_Transpose(self, e: Any) -> str:
        inner = e.args[0]
        if _is_tensor(inner):
            return str(inner.tex(self, transposed=True))
        return rf"{self.bracket(inner)}^{{\top}}"

    _print_Adjoint = _print_Transpose

    def _print_KroneckerProduct(self, e: Any) -> str:
        return r" \otimes ".join(
            rf"\left({self._print(a)}\right)"
            if isinstance(a, sympy.MatAdd | sympy.KroneckerProduct) or _extends_right(a)
            else self._print(a)
            for a in e.args
        )

    def _print_HadamardProduct(self, e: Any) -> str:
        return r" \circ ".join(
            self._print(a) if a.is_Symbol or _is_tensor(a) else self.bracket(a) for a in e.args
        )

    def _print_HadamardPower(self, e: Any) -> str:
        base, exponent = e.args
        text = self._print(base)
        if "^" in text or not (isinstance(base, sympy.MatrixSymbol) or _is_tensor(base)):
            text = rf"\left({text}\right)"
        return rf"{text}^{{\circ \left({{{self._print(exponent)}}}\right)}}"

    def _print_MatMul(self, e: Any) -> str:
        parts = []
        for k, factor in enumerate(e.args):
            text = self._print(factor)
            last = k == len(e.args) - 1
            negative = k and text.startswith("-")  # without brackets it reads as a difference
            if isinstance(factor, LOOSE) or (_extends_right(factor) and not last) or negative:
                text = rf"\left({text}\right)"
            parts.append("-" if factor == -1 and not last and not k else text)
        return r" \, ".join(parts).replace(r"- \, ", "-")

    def _print_MatAdd(self, e: Any) -> str:
        return " + ".join(map(self._print, e.args)).replace("+ -", "- ")

    def _print_Mul(self, e: Any) -> str:
        """Keep the order of a product of traces or entries; other products are printed by SymPy."""
        if not e.has(*OF_MATRICES):
            return str(super()._print_Mul(e))
        parts = [
            rf"\left({self._print(x)}\right)"
            if isinstance(x, sympy.Add | sympy.Mul)
            or (isinstance(x, sympy.Sum) and k != len(e.args) - 1)
            else self._print(x)
            for k, x in enumerate(e.args)
        ]
        return r" \, ".join(parts).replace(r"-1 \, ", "-")

    def _print_Add(self, e: Any, order: Any = None) -> str:
        if not e.has(*OF_MATRICES):
            return str(super()._print_Add(e, order=order))
        return " + ".join(self._print(x) for x in e.args).replace("+ -", "- ")

    def _print_Trace(self, e: Any) -> str:
        return rf"\operatorname{{tr}}\left({self._print(e.args[0])}\right)"

    def _print_MatrixElement(self, e: Any) -> str:
        matrix, i, j = e.args
        below = rf"_{{{self.index(i)},{self.index(j)}}}"
        text = self._print(matrix)
        plain = isinstance(matrix, sympy.MatrixSymbol) or _is_tensor(matrix)
        if plain and "_" not in text.partition("^")[0]:
            return f"{text}{below}"
        return rf"\left({text}\right){below}"

    def _print_KroneckerDelta(self, e: Any, exp: Any = None) -> str:
        delta = rf"\delta_{{{self.index(e.args[0])},{self.index(e.args[1])}}}"
        return delta if exp is None else rf"{delta}^{{{exp}}}"

    def _print_Sum(self, e: Any) -> str:
        """Print a sum with indices counted from 1, as in papers."""
        signs = " ".join(
            rf"\sum_{{{self._print(index)}={self.counted(first)}}}^{{{self.counted(last)}}}"
            for index, first, last in reversed(e.limits)
        )
        body = self._print(e.args[0])
        return f"{signs} " + (rf"\left({body}\right)" if isinstance(e.args[0], sympy.Add) else body)

    def _print_BlockDiagMatrix(self, e: Any) -> str:
        return rf"\operatorname{{diag}}\left({', '.join(map(self._print, e.args))}\right)"

    _print_DiagMatrix = _print_BlockDiagMatrix

    def index(self, index: Any) -> str:
        """Return an index as the papers count it, from 1."""
        return self._print(index) if isinstance(index, sympy.Symbol) else self.counted(index)

    def counted(self, value: Any) -> str:
        """Return a value of an index, or an end of its range, as the papers count it, from 1."""
        return str(self._print(value + 1 - offset(value, self.from_1)))

    def applied(self, function: str, e: Any) -> str:
        """Return the TeX of a function of an expression."""
        return rf"{function}\!\left({self._print(e)}\right)"

    def bracket(self, e: Any) -> str:
        text = self._print(e)
        atomic = isinstance(e, sympy.MatrixSymbol | sympy.Symbol | sympy.Identity) or _is_tensor(e)
        return text if atomic else rf"\left({text}\right)"


def _is_tensor(e: Any) -> bool:
    """Return whether an expression is a member of a family, which needs no brackets."""
    return getattr(e, "is_tensor", False)


def _extends_right(e: Any) -> bool:
    return getattr(e, "extends_right", False)


def typeset_name(name: str) -> str:
    """Return the TeX of a name: one subscript, words upright (`d_head`), the rest italic."""
    plain = name.rstrip("′")
    primes = "'" * (len(name) - len(plain))
    base, *parts = plain.split("_")
    base = UNICODE.get(base, base)
    if base in GREEK:
        base = rf"\{base}"
    elif len(base) > 1 and base.islower():
        base = rf"\mathrm{{{base}}}"
    if not parts:
        return base + primes
    below = ",".join(
        rf"\mathrm{{{p}}}" if len(p) > 1 and p.islower() and p.isidentifier() else p for p in parts
    )
    return rf"{base}_{{{below}}}{primes}"
