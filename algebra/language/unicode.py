"""Statements as one line of Unicode, for a terminal: `(A ⊗ W_O W_V) vec_rows(X)`.

SymPy's own printer evaluates expressions while printing (and may crash), so this printer is used
for all messages and names. Nothing is evaluated, and no class is refused: an unsupported one is
printed as `Name(arguments)`, a subexpression that is nested too deeply as `…`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Any

import sympy
from sympy.core.mul import Mul
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.trees import offset

SUM, KRON, PRODUCT, ATOM = range(4)  # operator precedences of texts
DEEPEST = 60  # nesting levels that are printed
PLAIN = 100  # size of a scalar that SymPy's printer may print
LONGEST = 2_000  # bits of a number that is printed in full; Python refuses more than 4,300 digits
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Piece = tuple[str, int]


def unicode_text(expression: sympy.Basic) -> str:
    """Return the text of an expression, with brackets and order as stated.

    >>> A = sympy.MatrixSymbol("A", 2, 2)
    >>> unicode_text(sympy.KroneckerProduct(A, A + A.T))
    'A ⊗ (A + Aᵀ)'
    """
    return TextPrinter().piece(expression)[0]


def short_text(expression: sympy.Basic, width: int = 100) -> str:
    """Return the text of an expression for a message, cut off if it is long.

    >>> A = sympy.MatrixSymbol("A", 2, 2)
    >>> short_text(sympy.MatMul(*[A] * 9, evaluate=False), width=10)
    'A A A A A…'
    """
    text = unicode_text(expression)
    return text if len(text) <= width else text[: width - 1] + "…"


def wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """Return a text in lines of at most `width`, broken at spaces; later lines are indented."""
    lines = textwrap.wrap(
        text,
        width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.strip() for line in lines] or [""]


class TextPrinter:
    """A traversal of a tree; each method returns a text and its operator precedence."""

    def __init__(self) -> None:
        self.depth = 0

    def piece(self, e: Any) -> Piece:
        if self.depth > DEEPEST:
            return "…", ATOM
        self.depth += 1
        write = getattr(self, f"_print_{type(e).__name__}", None)
        own = getattr(e, "text", None)  # classes of otimes print themselves
        written = write(e) if write else own(self) if own else self.other(e)
        self.depth -= 1
        return written

    def whole(self, e: Any) -> str:
        return self.piece(e)[0]

    def inside(self, e: Any, needed: int) -> str:
        text, held = self.piece(e)
        return text if held >= needed else f"({text})"

    # -- leaves ------------------------------------------------------------------------------------

    def _print_MatrixSymbol(self, e: Any) -> Piece:
        return str(e.name), ATOM

    _print_Symbol = _print_MatrixSymbol

    def _print_Identity(self, e: sympy.Identity) -> Piece:
        return f"I_{self.compact(e.shape[0])}", ATOM

    def _print_OneMatrix(self, e: sympy.OneMatrix) -> Piece:
        return f"1_{self.compact(e.shape[0])}×{self.compact(e.shape[1])}", ATOM

    def _print_ZeroMatrix(self, e: sympy.ZeroMatrix) -> Piece:
        return "0", ATOM

    def _print_ImmutableDenseMatrix(self, e: sympy.ImmutableDenseMatrix) -> Piece:
        return self.grid(e, *e.shape)

    def grid(self, entries: Any, height: int, width: int) -> Piece:
        lines = (", ".join(self.whole(entries[i, j]) for j in range(width)) for i in range(height))
        return f"[{'; '.join(lines)}]", ATOM

    # -- operations --------------------------------------------------------------------------------

    def _print_Transpose(self, e: Any) -> Piece:
        return self.base(e.args[0]) + ("ᴴ" if isinstance(e, sympy.Adjoint) else "ᵀ"), ATOM

    def base(self, e: Any) -> str:
        text = self.inside(e, ATOM)
        return f"({text})" if text[-1] in "ᵀᴴ⁰¹²³⁴⁵⁶⁷⁸⁹" else text

    _print_Adjoint = _print_Transpose

    def _print_MatAdd(self, e: Any) -> Piece:
        return " + ".join(self.inside(a, KRON) for a in e.args).replace("+ -", "- "), SUM

    def _print_KroneckerProduct(self, e: sympy.KroneckerProduct) -> Piece:
        *first, last = e.args
        parts = [f"({self.whole(a)})" if _is_open(a) else self.inside(a, PRODUCT) for a in first]
        return " ⊗ ".join([*parts, self.inside(last, PRODUCT)]), KRON

    def _print_HadamardProduct(self, e: sympy.HadamardProduct) -> Piece:
        return " ∘ ".join(self.inside(a, ATOM) for a in e.args), KRON

    def _print_MatMul(self, e: sympy.MatMul) -> Piece:
        last = len(e.args) - 1
        parts = [
            f"({self.whole(a)})"
            if isinstance(a, sympy.MatMul) or (k != last and _is_open(a))
            else self.inside(a, PRODUCT)
            for k, a in enumerate(e.args)
        ]
        parts = parts[:1] + [f"({p})" if p.startswith("-") else p for p in parts[1:]]
        text = " ".join(parts)
        return (f"-{text[3:]}" if text.startswith("-1 ") else text), PRODUCT

    def _print_MatPow(self, e: Any) -> Piece:
        power = self.whole(e.args[1])
        whole = power.removeprefix("-").isdigit()
        power = power.translate(RAISED) if whole else f"^({power})"
        return self.base(e.args[0]) + power, ATOM

    _print_Inverse = _print_MatPow

    def _print_HadamardPower(self, e: sympy.HadamardPower) -> Piece:
        return f"{self.inside(e.args[0], ATOM)}^(∘{self.whole(e.args[1])})", ATOM

    def _print_Trace(self, e: Any) -> Piece:
        return self.applied("tr" if isinstance(e, sympy.Trace) else "diag", e.args)

    _print_DiagMatrix = _print_BlockDiagMatrix = _print_Trace

    def applied(self, function: str, arguments: Iterable[Any]) -> Piece:
        return f"{function}({', '.join(map(self.whole, arguments))})", ATOM

    def _print_MatrixElement(self, e: MatrixElement) -> Piece:
        row, col = map(self.whole, e.args[1:])
        return f"{self.inside(e.args[0], ATOM)}[{row}, {col}]", ATOM

    def _print_KroneckerDelta(self, e: sympy.KroneckerDelta) -> Piece:
        return f"δ[{self.whole(e.args[0])}, {self.whole(e.args[1])}]", ATOM

    def _print_BlockMatrix(self, e: sympy.BlockMatrix) -> Piece:
        return self.grid(e.blocks, *e.blockshape)

    def _print_Sum(self, e: sympy.Sum) -> Piece:
        """Print a sum; the last limit of a SymPy sum is the outermost."""
        signs = " ".join(f"Σ_{self._range(*limit)}" for limit in reversed(e.limits))
        return f"{signs} {self.inside(e.function, KRON)}", PRODUCT

    def _range(self, index: Any, *ends: Any) -> str:
        """Print an index, with the ends of its range where another index is one of them."""
        if len(ends) != 2 or not any(map(offset, ends)):
            return str(index)
        first, last = map(self.compact, ends)
        return f"{first}≤{index}≤{last}"

    # -- numbers -----------------------------------------------------------------------------------

    def _print_Add(self, e: Any) -> Piece:
        """Print a sum of scalars: small plain ones by SymPy, which would rewrite others."""
        if (text := _plain_text(e)) is not None:
            return text, SUM if isinstance(e, sympy.Add) else PRODUCT
        if isinstance(e, sympy.Add):
            return self._print_MatAdd(e)
        if isinstance(e, Mul):
            return " ".join(self.inside(a, ATOM) for a in e.args).replace("-1 ", "-"), PRODUCT
        return self._print_MatPow(e)

    _print_Mul = _print_Pow = _print_Add

    def other(self, e: Any) -> Piece:
        if not isinstance(e, sympy.Basic):
            return str(e), ATOM
        if e.args:
            return self.applied(type(e).__name__, e.args)
        if isinstance(e, sympy.Rational):
            text = _digits(e.p) if e.is_Integer else f"{_digits(e.p)}/{_digits(e.q)}"
            return text, ATOM if e.is_Integer and e >= 0 else PRODUCT
        return str(e), ATOM

    def compact(self, size: Any) -> str:
        text = self.whole(size)
        return text if text.isidentifier() or text.isdigit() else f"({text})"


def _is_open(e: Any) -> bool:
    """Return whether a text ends with a sum over an index, which would go on with what follows."""
    if isinstance(e, sympy.MatMul | sympy.KroneckerProduct):
        return _is_open(e.args[-1])
    return isinstance(e, sympy.Sum) or bool(getattr(e, "extends_right", False))


@lru_cache(maxsize=10_000)
def _plain_text(e: Any) -> str | None:
    """Return the text of a scalar that is small and has symbols and short numbers only, or None."""
    parts = list(islice(sympy.preorder_traversal(e), PLAIN + 1))
    kinds = sympy.Symbol | sympy.Rational | sympy.Add | Mul | sympy.Pow
    is_plain = len(parts) <= PLAIN and all(
        isinstance(part, kinds)
        and not (
            isinstance(part, sympy.Rational)
            and int(max(abs(part.p), part.q)).bit_length() > LONGEST
        )
        for part in parts
    )
    return str(e) if is_plain else None


def _digits(number: int) -> str:
    bits = int(number).bit_length()
    return str(number) if bits <= LONGEST else f"{'-' * (number < 0)}⟨{bits} bits⟩"
