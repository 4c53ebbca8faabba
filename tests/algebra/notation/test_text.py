"""Strings state what the SymPy classes state."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from sympy import MatrixSymbol, OneMatrix, Transpose

import otimes as ot
from otimes.algebra.language.linear import kron, matadd, matmul
from otimes.algebra.notation.text import parse, shown

n, d, k = (sympy.Symbol(name, positive=True, integer=True) for name in "ndk")
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
W_V, W_O = MatrixSymbol("W_V", k, d), MatrixSymbol("W_O", d, k)
X, b = MatrixSymbol("X", n, d), MatrixSymbol("b", 1, d)
SHAPES = "A: n n, B: n n, W_V: k d, W_O: d k, X: n d, b: 1 d, a: scalar"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A ⊗ W_O W_V", kron(A, matmul(W_O, W_V))),
        (r"A \otimes W_O W_V", kron(A, matmul(W_O, W_V))),
        ("(A B)ᵀ", Transpose(matmul(A, B))),
        ("A X W_Vᵀ", matmul(A, X, Transpose(W_V))),
        ("X + 𝟏 b", matadd(X, matmul(OneMatrix(n, 1), b))),
        ("A - B", matadd(A, matmul(-1, B))),
        ("A ⊙ B", sympy.HadamardProduct(A, B, evaluate=False)),
        ("tr(A B)", sympy.Trace(matmul(A, B))),
        ("A^2", sympy.MatPow(A, 2)),
        ("A^{-1}", sympy.Inverse(A)),
        ("a A", matmul(sympy.Symbol("a", real=True), A)),
        ("softmax(A)", ot.RowSoftmax(A)),
        (r"\frac{A}{\sqrt{d}}", matmul(1 / sympy.sqrt(d), A)),
    ],
)
def test_a_string_is_the_statement(text: str, expected: sympy.Basic) -> None:
    assert parse(text, SHAPES) == expected


def test_a_string_has_the_value_that_numpy_computes() -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "A": rng.integers(-3, 4, (3, 3)),
        "W_V": rng.integers(-3, 4, (2, 4)),
        "W_O": rng.integers(-3, 4, (4, 2)),
        "X": rng.integers(-3, 4, (3, 4)),
    }
    found = ot.evaluate(parse("(A ⊗ W_O W_V) vec_rows(X)", SHAPES), arrays)
    expected = (arrays["A"] @ arrays["X"] @ (arrays["W_O"] @ arrays["W_V"]).T).reshape(-1, 1)
    np.testing.assert_array_equal(found, expected)


TRUE = [
    ("(I_n ⊗ W_O)(A ⊗ I)(I ⊗ W_V) = A ⊗ W_O W_V", ""),
    (r"\sum_h A^h \otimes W_O^h W_V^h = \sum_{h} (I \otimes W_O^h)(A^h \otimes W_V^h)", ""),
    (r"(AB)_{ij} = \sum_k A_{ik} B_{kj}", ""),
    (r"\|A\|_F^2 = \mathrm{tr}(A A^\top)", ""),
    (r"[W, b] [x; 1] = W x + b", "W: m d, x: d 1, b: m 1"),
    (r"u v^T w = (v^T w) u", "u: d 1, v: d 1, w: d 1"),
    (r"\mathrm{softmax}(X)(Y + \mathbf 1 c) = \mathrm{softmax}(X)Y + \mathbf{1} c", "c: 1 d"),
    (r"(A \otimes B)\mathrm{vec}_r(X) = \mathrm{vec}_r(A X B^T)", ""),
    (r"\frac{x W_Q W_K^T y^T}{\sqrt{d_h}} = x \frac{W_Q W_K^\top}{\sqrt{d_h}} y^T",
     "W_Q: d d_h, W_K: d d_h, x: 1 d, y: 1 d"),
]  # fmt: skip
FALSE = [
    ("(I ⊗ W_O)(A ⊗ I)(I ⊗ W_V) = Aᵀ ⊗ W_O W_V", "A: n n"),
    ("(A B)ᵀ = Aᵀ Bᵀ", "A: n n, B: n n"),
    (r"(AB)_{ij} = \sum_k A_{ik} B_{jk}", "A: n n, B: n n"),
    (r"\sum_h A^h \otimes W^h = (\sum_h A^h) \otimes (\sum_h W^h)", ""),
    (r"\mathrm{tr}(ABC) = \mathrm{tr}(ACB)", "A: n n, B: n n, C: n n"),
    (r"(A \otimes B)\mathrm{vec}_c(X) = \mathrm{vec}_c(A X B^T)", "A: n n, B: n n, X: n n"),
]


@pytest.mark.parametrize(("text", "shapes"), TRUE)
def test_true_equations_are_proved(text: str, shapes: str) -> None:
    assert ot.decide(text, shapes=shapes).status == "proved"


@pytest.mark.parametrize(("text", "shapes"), FALSE)
def test_false_equations_are_refuted(text: str, shapes: str) -> None:
    assert ot.decide(text, shapes=shapes).status == "refuted"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("(A @ B).T", r"(A B)^\top"),
        ("A.T @ B.T", r"A^\top B^\top"),
        ("A.T ⊗ W_1.T", r"A^\top \otimes W_1^\top"),
    ],
)
def test_transposes_and_products_of_numpy(typed: str, meant: str) -> None:
    shapes = "A: n n, B: n n, W_1: d d"
    assert ot.parse(typed, shapes) == ot.parse(meant, shapes)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("A B = ", "the formula ends too early, near '=' in 'A B = '"),
        ("A = B ] C", "']' was not expected here, near ']' in 'A = B ] C'"),
        ("A. B = C", "'A. B = C' has 2: a full stop or a comma ends one"),
        ("A + " * 30 + "= B", "was not expected here, near '=' in 'A \\+ .*…'"),
    ],
)
def test_a_message_shows_the_part_that_it_is_about(text: str, says: str) -> None:
    with pytest.raises(ot.NotationError, match=says):
        ot.decide(text)


def test_hypotheses_may_be_strings() -> None:
    shapes = "P: n n, X: n d"
    assert ot.prove("P P X = P X", given=["P^2 = P"], shapes=shapes).used == (0,)
    assert ot.decide("P P X = P X", shapes=shapes).status == "refuted"


@pytest.mark.parametrize(
    ("text", "shapes", "message"),
    [
        ("W_O W_V", "W_O: d k, W_V: d k", r"W_{O} \(d × k\) by W_{V} \(d × k\).*k and d differ"),
        ("A + B", "A: n d, B: d n", "cannot add A .*n × d.* and B .*d × n"),
        ("A = B", "A: n d, B: d n", "cannot equate"),
        ("tr(A)", "A: n d", "not square"),
        ("A^{-1}", "A: n d", "square"),
    ],
)
def test_shapes_that_do_not_conform_are_named(text: str, shapes: str, message: str) -> None:
    with pytest.raises(ot.ShapeError, match=message):
        ot.decide(text, "0 A" if "=" not in text else None, shapes=shapes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x + y", "x"),
        (r"\mathrm{vec}(X) = \mathrm{vec}(X)", "rows or columns"),
        (r"\log 2", "not in the language"),
        (r"A \approx B", "not an equation"),
        ("A + 1 = B", "a number and a matrix"),
        ("(A ⊗ W) X = A X Wᵀ", "one row or column"),
    ],
)
def test_nothing_is_guessed(text: str, message: str) -> None:
    with pytest.raises(ot.NotationError, match=message):
        ot.decide(text) if "=" in text or "approx" in text else ot.decide(text, "0")


def test_sizes_are_typed_even_where_their_letters_could_coincide() -> None:
    with pytest.raises(ot.ShapeError, match="n and d differ"):
        ot.decide("A X", "A X", shapes="A: n n, X: d n")


def test_a_statement_is_shown_in_unicode() -> None:
    assert shown(parse("A B = C")) == "A B = C"
