"""Text for messages: every class of the language, as stated, and never evaluated."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Add, HadamardProduct, Identity, MatrixSymbol, Mul, OneMatrix, Pow, Trace
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.shapes import _READERS
from otimes.algebra.language.unicode import short_text, unicode_text
from otimes.algebra.verdict import decide

n, d, H, L = sympy.symbols("n d H L", integer=True, positive=True)
h, i, j, l = sympy.symbols("h i j l", integer=True)  # noqa: E741 (the layer)
a = sympy.Symbol("a")
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
X, W = MatrixSymbol("X", n, d), MatrixSymbol("W", d, d)
P = Family("P", (H,), n, n)
# SymPy's printer multiplies these Kronecker products out, with scalars, and raises TypeError.
CURSED = matmul(kron(A, matmul(W, W)), kron(matadd(B, B), matmul(sympy.Transpose(X), X)))
CURSED_TEXT = "(A ⊗ W W) ((B + B) ⊗ Xᵀ X)"
HUGE = sympy.Integer(10) ** 5000

SHOWN = [
    (A, "A"),
    (Identity(n), "I_n"),
    (OneMatrix(n * d + 1, 1), "1_(d*n + 1)×1"),
    (sympy.ZeroMatrix(n, d), "0"),
    (P[h], "P[h]"),
    (P, "P"),
    (OneHot(i, n), "e_i"),
    (matmul(A, matadd(A, B)), "A (A + B)"),
    (matadd(A, matmul(-1, B)), "A - B"),
    (matmul(A, matmul(-1, B)), "A (-B)"),
    (matmul(sympy.Rational(1, 2), A), "1/2 A"),
    (matmul(a + 1, A), "(a + 1) A"),
    (matmul(1 / sympy.sqrt(d), A), "1/sqrt(d) A"),
    (kron(A, kron(B, W)), "A ⊗ (B ⊗ W)"),
    (HadamardProduct(A, matmul(A, B), evaluate=False), "A ∘ (A B)"),
    (sympy.HadamardPower(A, 3), "A^(∘3)"),
    (sympy.MatPow(matadd(A, B), 2, evaluate=False), "(A + B)²"),
    (sympy.Inverse(A), "A⁻¹"),
    (sympy.Adjoint(X), "Xᴴ"),
    (sympy.Transpose(sympy.Inverse(A)), "(A⁻¹)ᵀ"),
    (sympy.MatPow(sympy.Inverse(A), 2, evaluate=False), "(A⁻¹)²"),
    (vec_rows(X), "vec_rows(X)"),
    (vec_cols(sympy.Transpose(X)), "vec_cols(Xᵀ)"),
    (matmul(a, Trace(A), B), "a tr(A) B"),
    (Mul(a, Trace(A), evaluate=False), "a tr(A)"),
    (Add(Trace(A), Pow(Trace(B), 2, evaluate=False), evaluate=False), "tr(A) + tr(B)²"),
    (MatrixElement(matadd(A, B), i, 0), "(A + B)[i, 0]"),
    (sympy.KroneckerDelta(i, j, (0, n - 1)), "δ[i, j]"),
    (sympy.Sum(A[i, j], (i, 0, n - 1), (j, 0, n - 1)), "Σ_j Σ_i A[i, j]"),
    (DiagMatrix(MatrixSymbol("x", n, 1)), "diag(x)"),
    (DiagonalOf(A), "DiagonalOf(A)"),
    (DiagonalMatrix(A), "DiagonalMatrix(A)"),
    (sympy.ImmutableMatrix([[1, a], [a + 1, -2]]), "[1, a; a + 1, -2]"),
    (sympy.BlockMatrix([[A, B], [B, A]]), "[A, B; B, A]"),
    (sympy.BlockDiagMatrix(A, W), "diag(A, W)"),
    (HeadSum(P[h], (h, H)), "Σ_h P[h]"),
    (matmul(HeadSum(P[h], (h, H)), A), "(Σ_h P[h]) A"),
    (ConcatHeads(P[h], (h, H)), "[P[h] … h<H]"),
    (StackHeads(P[h], (h, 2)), "[P[h] ⋮ h<2]"),
    (LayerProduct(matadd(A, P[l]), (l, H)), "∏←_l<H (A + P[l])"),
    (LayerProduct(P[l], (l, 3), reverse=True), "∏→_l<3 P[l]"),
    (OrderSum(matmul(A, P[l]), (l, H), 2), "Σ←_l<H^(2) (A P[l])"),
    (RowSoftmax(A), "softmax(A)"),
    (RowSoftmax(matadd(A, B), CausalMask(n)), "softmax(A + B, M_n)"),
    (Activation("gelu", matmul(A, B)), "gelu(A B)"),
    (RMSNorm(X), "RMSNorm(X)"),
    (LayerNorm(X, a), "LayerNorm(X, a)"),
    (sympy.Determinant(A), "Determinant(A)"),
    (HUGE, "⟨16610 bits⟩"),
    (-HUGE, "-⟨16610 bits⟩"),
    (sympy.pi, "pi"),
]


@pytest.mark.parametrize(("expression", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_expressions_are_written_as_stated(expression: Any, text: str) -> None:
    assert unicode_text(expression) == text


def test_every_class_of_the_language_is_shown_above() -> None:
    shown = {type(part) for e, _ in SHOWN for part in sympy.preorder_traversal(e)}
    without_size = {"GenericIdentity", "GenericZeroMatrix"}  # which the first pass refuses
    assert {kind.__name__ for kind in _READERS.keys() - shown} == without_size


WRAPPERS = [
    lambda e: sympy.MatPow(e, 2, evaluate=False),
    lambda e: sympy.Inverse(e),
    lambda e: sympy.HadamardPower(e, 2),
    lambda e: sympy.BlockMatrix([[e]]),
    lambda e: sympy.BlockDiagMatrix(e, e),
    lambda e: MatrixElement(e, 0, 0),
    lambda e: sympy.Sum(MatrixElement(e, i, i), (i, 0, n * d - 1)),
    lambda e: LayerProduct(e, (l, 2)),
    lambda e: HeadSum(e, (h, H)),
    lambda e: Pow(Trace(e), 2, evaluate=False),
    lambda e: sympy.Determinant(e),
    lambda e: matmul(a, e),
    lambda e: sympy.Transpose(e),
    lambda e: DiagonalOf(e),
    lambda e: RowSoftmax(e, e),
    lambda e: Activation("g", e),
    lambda e: LayerNorm(e),
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_what_sympy_would_evaluate_is_left_as_it_is(wrapper: Any) -> None:
    assert CURSED_TEXT in unicode_text(wrapper(CURSED))


def test_deep_and_long_expressions_are_cut_off() -> None:
    deep: Any = A
    for _ in range(3000):
        deep = sympy.Transpose(deep)
    assert unicode_text(deep) == "(" * 60 + "…" + "ᵀ)" * 60 + "ᵀ"
    sum_of_many: Any = a
    for _ in range(3000):
        sum_of_many = Add(Mul(2, sum_of_many, evaluate=False), 1, evaluate=False)
    assert "…" in unicode_text(sum_of_many)
    assert len(short_text(matmul(*[A] * 500))) == 100


MISFITS = [
    (lambda: decide(matmul(CURSED, X), X), ShapeError, "cannot multiply"),
    (lambda: decide(matadd(CURSED, X), X), ShapeError, "cannot add"),
    (lambda: decide(sympy.MatPow(CURSED, a / 2, evaluate=False), X), LanguageError, "the power"),
    (lambda: decide(sympy.HadamardPower(CURSED, a), X), LanguageError, "the elementwise power a"),
    (lambda: decide(MatrixElement(CURSED, 2 * i, j), 0), LanguageError, "the index 2"),
    (lambda: decide(DiagMatrix(CURSED), X), ShapeError, "cannot make a diagonal matrix"),
    (lambda: decide(sympy.gamma(Trace(CURSED)), 1), LanguageError, "gamma"),
    (lambda: decide(X, X, given=[CURSED]), LanguageError, "a hypothesis is a pair"),
    (lambda: decide(X, X, given=[(CURSED,)]), LanguageError, "a hypothesis is a pair"),
    (lambda: LayerProduct(Trace(CURSED), (l, L)), ShapeError, "not Trace"),
]


@pytest.mark.parametrize(("ask", "error", "words"), MISFITS, ids=[words for *_, words in MISFITS])
def test_messages_show_what_sympy_cannot_print(
    ask: Any, error: type[OtimesError], words: str
) -> None:
    with pytest.raises(TypeError, match="Mix of Matrix and Scalar"):
        str(CURSED)
    with pytest.raises(error, match=words):
        ask()


def test_what_sympy_cannot_print_is_an_argument_of_a_function_of_numbers() -> None:
    """SymPy's expansion would build the product inside the trace again, which fails."""
    assert decide(sympy.sin(Trace(CURSED)), 2).status == "refuted"


def test_the_inverse_of_what_sympy_cannot_print_has_a_name() -> None:
    inverse = sympy.Inverse(matadd(CURSED, CURSED))
    assert decide(matmul(inverse, matadd(CURSED, CURSED)), Identity(n * d)).status == "proved"
