"""Statements as one line of Unicode, for a terminal: `(A ⊗ W_O W_V) vec_rows(X)`.

SymPy's own printer evaluates what it prints (and can crash on what it finds), so every message and
every name that shows an expression is written here. Nothing is evaluated, nothing is refused: what
the language does not have is shown as `Name(arguments)`, what is nested too deeply as `…`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import sympy
from sympy.core.mul import Mul
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra.language import (
    ConcatHeads,
    Family,
    FamilyMember,
    HeadSum,
    LayerProduct,
    OneHot,
    OrderSum,
    StackHeads,
)
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax

SUM, KRON, PRODUCT, ATOM = range(4)  # how tightly a piece of text holds together
DEEPEST = 60  # levels of an expression that are shown
PLAIN = 100  # parts of a scalar that is left to SymPy's printer
LONGEST = 2_000  # bits of a number that is written out; Python refuses more than 4,300 digits
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

Piece = tuple[str, int]


def unicode_text(expression: sympy.Basic) -> str:
    """Return an expression as it is stated, brackets and order kept.

    >>> A = sympy.MatrixSymbol("A", 2, 2)
    >>> unicode_text(sympy.KroneckerProduct(A, A + A.T))
    'A ⊗ (A + Aᵀ)'
    """
    return _Writer().piece(expression)[0]


def short_text(expression: sympy.Basic, width: int = 100) -> str:
    """Return the text of an expression for a message: cut off where it is long.

    >>> A = sympy.MatrixSymbol("A", 2, 2)
    >>> short_text(sympy.MatMul(*[A] * 9, evaluate=False), width=10)
    'A A A A A…'
    """
    text = unicode_text(expression)
    return text if len(text) <= width else text[: width - 1] + "…"


class _Writer:
    """One walk over a tree; each method returns a text and how tightly it holds together."""

    def __init__(self) -> None:
        self.depth = 0

    def piece(self, e: Any) -> Piece:
        if self.depth > DEEPEST:
            return "…", ATOM
        self.depth += 1
        written = _WRITERS.get(type(e), _Writer.other)(self, e)
        self.depth -= 1
        return written

    def whole(self, e: Any) -> str:
        return self.piece(e)[0]

    def inside(self, e: Any, needed: int) -> str:
        text, held = self.piece(e)
        return text if held >= needed else f"({text})"

    # -- leaves ------------------------------------------------------------------------------------

    def name(self, e: Any) -> Piece:
        return str(e.name), ATOM

    def member(self, e: FamilyMember) -> Piece:
        return f"{e.family.name}[{', '.join(map(self.whole, e.indices))}]", ATOM

    def identity(self, e: sympy.Identity) -> Piece:
        return f"I_{self.compact(e.shape[0])}", ATOM

    def ones(self, e: sympy.OneMatrix) -> Piece:
        return f"1_{self.compact(e.shape[0])}×{self.compact(e.shape[1])}", ATOM

    def zero(self, e: sympy.ZeroMatrix) -> Piece:
        return "0", ATOM

    def one_hot(self, e: OneHot) -> Piece:
        return f"e_{self.compact(e.args[0])}", ATOM

    def explicit(self, e: sympy.ImmutableDenseMatrix) -> Piece:
        return self.grid(e, *e.shape)

    def grid(self, entries: Any, height: int, width: int) -> Piece:
        lines = (", ".join(self.whole(entries[i, j]) for j in range(width)) for i in range(height))
        return f"[{'; '.join(lines)}]", ATOM

    # -- operations --------------------------------------------------------------------------------

    def transpose(self, e: Any) -> Piece:
        return self.inside(e.args[0], ATOM) + "ᵀ", ATOM

    def add(self, e: Any) -> Piece:
        return " + ".join(self.inside(a, KRON) for a in e.args).replace("+ -", "- "), SUM

    def kron(self, e: sympy.KroneckerProduct) -> Piece:
        return " ⊗ ".join(self.inside(a, PRODUCT) for a in e.args), KRON

    def hadamard(self, e: sympy.HadamardProduct) -> Piece:
        return " ∘ ".join(self.inside(a, ATOM) for a in e.args), KRON

    def mul(self, e: sympy.MatMul) -> Piece:
        last = len(e.args) - 1
        parts = [
            f"({self.whole(a)})"
            if isinstance(a, sympy.MatMul)
            or (isinstance(a, HeadSum | LayerProduct | OrderSum | sympy.Sum) and k != last)
            else self.inside(a, PRODUCT)
            for k, a in enumerate(e.args)
        ]
        parts = parts[:1] + [f"({p})" if p.startswith("-") else p for p in parts[1:]]
        text = " ".join(parts)
        return (f"-{text[3:]}" if text.startswith("-1 ") else text), PRODUCT

    def power(self, e: Any) -> Piece:
        power = self.whole(e.args[1])
        whole = power.removeprefix("-").isdigit()
        power = power.translate(RAISED) if whole else f"^({power})"
        return self.inside(e.args[0], ATOM) + power, ATOM

    def hadamard_power(self, e: sympy.HadamardPower) -> Piece:
        return f"{self.inside(e.args[0], ATOM)}^(∘{self.whole(e.args[1])})", ATOM

    def trace(self, e: sympy.Trace) -> Piece:
        return f"tr({self.whole(e.args[0])})", ATOM

    def diagonal(self, e: DiagMatrix | sympy.BlockDiagMatrix) -> Piece:
        return f"diag({', '.join(map(self.whole, e.args))})", ATOM

    def element(self, e: MatrixElement) -> Piece:
        row, col = map(self.whole, e.args[1:])
        return f"{self.inside(e.args[0], ATOM)}[{row}, {col}]", ATOM

    def delta(self, e: sympy.KroneckerDelta) -> Piece:
        return f"δ[{self.whole(e.args[0])}, {self.whole(e.args[1])}]", ATOM

    def block_matrix(self, e: sympy.BlockMatrix) -> Piece:
        return self.grid(e.blocks, *e.blockshape)

    def index_sum(self, e: sympy.Sum) -> Piece:
        """The last limit of a SymPy sum is the outermost."""
        signs = " ".join(f"Σ_{limit[0]}" for limit in reversed(e.limits))
        return f"{signs} {self.inside(e.function, KRON)}", PRODUCT

    def head_sum(self, e: HeadSum) -> Piece:
        signs = " ".join(f"Σ_{index}" for index, _ in e.limits)
        return f"{signs} {self.inside(e.body, KRON)}", PRODUCT

    def in_line(self, e: ConcatHeads | StackHeads) -> Piece:
        mark = "…" if isinstance(e, ConcatHeads) else "⋮"
        ranges = ", ".join(f"{index}<{self.whole(count)}" for index, count in e.limits)
        return f"[{self.whole(e.body)} {mark} {ranges}]", ATOM

    def layers(self, e: LayerProduct) -> Piece:
        """The arrow points to where the later layers stand; where all are alike, it is a power."""
        if e.index not in e.body.free_symbols:
            return f"{self.inside(e.body, ATOM)}^{self.compact(e.count)}", ATOM
        arrow = "→" if e.reverse else "←"
        return f"∏{arrow}_{e.index}<{self.whole(e.count)} {self.inside(e.body, ATOM)}", PRODUCT

    def orders(self, e: OrderSum) -> Piece:
        arrow = "→" if e.reverse else "←"
        range_of = f"{e.index}<{self.whole(e.count)}"
        return f"Σ{arrow}_{range_of}^({self.whole(e.order)}) {self.inside(e.body, ATOM)}", PRODUCT

    def causal_mask(self, e: CausalMask) -> Piece:
        return f"M_{self.compact(e.args[0])}", ATOM

    def row_softmax(self, e: RowSoftmax) -> Piece:
        return f"softmax({', '.join(map(self.whole, e.args))})", ATOM

    def activation(self, e: Activation) -> Piece:
        return f"{e.name}({self.whole(e.argument)})", ATOM

    def norm(self, e: RMSNorm | LayerNorm) -> Piece:
        shown = [e.args[0]] if e.eps == 0 else e.args
        return f"{type(e).__name__}({', '.join(map(self.whole, shown))})", ATOM

    # -- numbers -----------------------------------------------------------------------------------

    def number(self, e: Any) -> Piece:
        """A scalar: SymPy writes small ones of symbols well, and would rewrite others."""
        if _is_plain(e):
            return str(e), SUM if isinstance(e, sympy.Add) else PRODUCT
        if isinstance(e, sympy.Add):
            return self.add(e)
        if isinstance(e, Mul):
            return " ".join(self.inside(a, ATOM) for a in e.args).replace("-1 ", "-"), PRODUCT
        return self.power(e)

    def other(self, e: Any) -> Piece:
        if not isinstance(e, sympy.Basic):
            return str(e), ATOM
        if e.args:
            return f"{type(e).__name__}({', '.join(map(self.whole, e.args))})", ATOM
        if isinstance(e, sympy.Rational):
            text = _digits(e.p) if e.is_Integer else f"{_digits(e.p)}/{_digits(e.q)}"
            return text, ATOM if e.is_Integer and e >= 0 else PRODUCT
        return str(e), ATOM

    def compact(self, size: Any) -> str:
        text = self.whole(size)
        return text if text.isidentifier() or text.isdigit() else f"({text})"


def _is_plain(e: Any) -> bool:
    """Return whether a scalar is small and made of symbols and short numbers only."""
    parts = list(islice(sympy.preorder_traversal(e), PLAIN + 1))
    kinds = sympy.Symbol | sympy.Rational | sympy.Add | Mul | sympy.Pow
    return len(parts) <= PLAIN and all(
        isinstance(part, kinds)
        and not (isinstance(part, sympy.Rational) and max(map(_bits, (part.p, part.q))) > LONGEST)
        for part in parts
    )


def _bits(number: int) -> int:
    return int(number).bit_length()


def _digits(number: int) -> str:
    bits = _bits(number)
    return str(number) if bits <= LONGEST else f"{'-' * (number < 0)}⟨{bits} bits⟩"


_WRITERS: dict[type, Callable[[_Writer, Any], Piece]] = {
    sympy.MatrixSymbol: _Writer.name,
    Family: _Writer.name,
    FamilyMember: _Writer.member,
    sympy.Identity: _Writer.identity,
    sympy.OneMatrix: _Writer.ones,
    sympy.ZeroMatrix: _Writer.zero,
    OneHot: _Writer.one_hot,
    sympy.MatAdd: _Writer.add,
    sympy.Add: _Writer.number,
    sympy.MatMul: _Writer.mul,
    Mul: _Writer.number,
    sympy.Pow: _Writer.number,
    sympy.MatPow: _Writer.power,
    sympy.Inverse: _Writer.power,
    sympy.Transpose: _Writer.transpose,
    sympy.Adjoint: _Writer.transpose,
    sympy.KroneckerProduct: _Writer.kron,
    sympy.HadamardProduct: _Writer.hadamard,
    sympy.HadamardPower: _Writer.hadamard_power,
    sympy.Trace: _Writer.trace,
    DiagMatrix: _Writer.diagonal,
    sympy.BlockDiagMatrix: _Writer.diagonal,
    MatrixElement: _Writer.element,
    sympy.KroneckerDelta: _Writer.delta,
    sympy.ImmutableDenseMatrix: _Writer.explicit,
    sympy.BlockMatrix: _Writer.block_matrix,
    sympy.Sum: _Writer.index_sum,
    HeadSum: _Writer.head_sum,
    ConcatHeads: _Writer.in_line,
    StackHeads: _Writer.in_line,
    LayerProduct: _Writer.layers,
    OrderSum: _Writer.orders,
    CausalMask: _Writer.causal_mask,
    RowSoftmax: _Writer.row_softmax,
    Activation: _Writer.activation,
    RMSNorm: _Writer.norm,
    LayerNorm: _Writer.norm,
}
