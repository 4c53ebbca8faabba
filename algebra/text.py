"""Statements as one line of Unicode, for a terminal: `(A ⊗ W_O W_V) vec_rows(X)`."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra.language import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    LayerProduct,
    OneHot,
    StackHeads,
    vec_cols,
    vec_rows,
)
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax

SUM, KRON, PRODUCT, ATOM = range(4)  # how tightly a piece of text holds together


def unicode_text(expression: sympy.Basic) -> str:
    """Return an expression as it is stated, brackets and order kept.

    >>> A = sympy.MatrixSymbol("A", 2, 2)
    >>> unicode_text(sympy.KroneckerProduct(A, A + A.T))
    'A ⊗ (A + Aᵀ)'
    """
    return _piece(expression)[0]


def _piece(e: Any) -> tuple[str, int]:
    if isinstance(e, FamilyMember):
        return f"{e.family.name}[{', '.join(map(str, e.indices))}]", ATOM
    if isinstance(e, sympy.Identity):
        return f"I_{_compact(e.shape[0])}", ATOM
    if isinstance(e, sympy.OneMatrix):
        return f"1_{_compact(e.shape[0])}×{_compact(e.shape[1])}", ATOM
    if isinstance(e, sympy.Transpose | sympy.Adjoint):
        return _inside(e.args[0], ATOM) + "ᵀ", ATOM
    if isinstance(e, sympy.MatAdd):
        return " + ".join(_inside(a, KRON) for a in e.args).replace("+ -", "- "), SUM
    if isinstance(e, sympy.KroneckerProduct):
        return " ⊗ ".join(_inside(a, PRODUCT) for a in e.args), KRON
    if isinstance(e, sympy.HadamardProduct):
        return " ∘ ".join(_inside(a, ATOM) for a in e.args), KRON
    if isinstance(e, sympy.MatMul):
        last = len(e.args) - 1
        parts = [
            f"({_piece(a)[0]})"
            if isinstance(a, sympy.MatMul) or (isinstance(a, HeadSum) and k != last)
            else _inside(a, PRODUCT)
            for k, a in enumerate(e.args)
        ]
        parts = parts[:1] + [f"({p})" if p.startswith("-") else p for p in parts[1:]]
        text = " ".join(parts)
        return (f"-{text[3:]}" if text.startswith("-1 ") else text), PRODUCT
    if isinstance(e, sympy.MatPow):
        return _raised(*e.args), ATOM
    if isinstance(e, sympy.ZeroMatrix):
        return "0", ATOM
    if isinstance(e, sympy.Trace):
        return f"tr({_piece(e.args[0])[0]})", ATOM
    if isinstance(e, HeadSum):
        indices = " ".join(f"Σ_{index}" for index, _ in e.limits)
        return f"{indices} {_inside(e.body, KRON)}", PRODUCT
    if isinstance(e, ConcatHeads | StackHeads):
        index, count = e.limits[0]
        mark = "…" if isinstance(e, ConcatHeads) else "⋮"
        return f"[{_piece(e.body)[0]} {mark} {index}<{count}]", ATOM
    if isinstance(e, vec_rows | vec_cols):
        return f"{type(e).__name__}({_piece(e.args[0])[0]})", ATOM
    if isinstance(e, OneHot):
        return f"e_{_compact(e.args[0])}", ATOM
    if isinstance(e, CausalMask):
        return f"M_{_compact(e.args[0])}", ATOM
    if isinstance(e, RowSoftmax):
        return f"softmax({', '.join(_piece(a)[0] for a in e.args)})", ATOM
    if isinstance(e, Activation):
        return f"{e.name}({_piece(e.argument)[0]})", ATOM
    if isinstance(e, RMSNorm | LayerNorm):
        shown = [e.args[0]] if e.eps == 0 else e.args
        return f"{type(e).__name__}({', '.join(_piece(a)[0] for a in shown)})", ATOM
    if isinstance(e, LayerProduct):
        arrow = "→" if e.reverse else "←"
        return f"∏{arrow}_{e.index}<{e.count} {_inside(e.body, ATOM)}", PRODUCT
    if isinstance(e, sympy.BlockDiagMatrix | DiagMatrix):
        return f"diag({', '.join(_piece(x)[0] for x in e.args)})", ATOM
    if isinstance(e, sympy.BlockMatrix):
        return _table(e.args[0].tolist()), ATOM
    if isinstance(e, sympy.ImmutableDenseMatrix):
        return _table(e.tolist()), ATOM
    if isinstance(e, MatrixElement):
        return f"{_inside(e.args[0], ATOM)}[{e.args[1]}, {e.args[2]}]", ATOM
    if isinstance(e, sympy.KroneckerDelta):
        return f"δ[{e.args[0]}, {e.args[1]}]", ATOM
    if isinstance(e, sympy.Sum):
        indices = " ".join(f"Σ_{limit[0]}" for limit in reversed(e.limits))
        return f"{indices} {_inside(e.args[0], KRON)}", PRODUCT
    if type(e) in (sympy.Add, sympy.Mul, sympy.Pow) and e.has(*NUMBERS):
        return _number(e)
    text = str(e)
    return text, ATOM if isinstance(e, sympy.Symbol | sympy.MatrixSymbol) else SUM if (
        isinstance(e, sympy.Add)
    ) else PRODUCT


def _number(e: Any) -> tuple[str, int]:
    """Return a number that holds matrices; SymPy's own printer would rewrite what is inside."""
    if type(e) is sympy.Add:
        return " + ".join(_inside(a, KRON) for a in e.args).replace("+ -", "- "), SUM
    if type(e) is sympy.Mul:
        return " ".join(_inside(a, ATOM) for a in e.args).replace("-1 ", "-"), PRODUCT
    return _raised(*e.args), ATOM


def _raised(base: Any, exponent: Any) -> str:
    power = str(exponent)
    power = power.translate(RAISED) if power.lstrip("-").isdigit() else f"^({power})"
    return f"{_inside(base, ATOM)}{power}"


def _table(rows: list[list[Any]]) -> str:
    return "[" + "; ".join(", ".join(_piece(x)[0] for x in row) for row in rows) + "]"


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
NUMBERS = (sympy.Trace, MatrixElement, sympy.Sum, sympy.KroneckerDelta)


def _inside(e: Any, needed: float) -> str:
    text, held = _piece(e)
    return text if held >= needed else f"({text})"


def _compact(size: Any) -> str:
    text = str(size)
    return text if text.isidentifier() or text.isdigit() else f"({text})"
