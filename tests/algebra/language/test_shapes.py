"""The first pass: what an expression depends on, and the sentence for each way it does not fit."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import HadamardProduct, MatrixSymbol, OneMatrix, Symbol, Trace, symbols
from sympy.matrices.expressions.fourier import DFT
from sympy.matrices.expressions.special import GenericIdentity

from otimes.algebra.errors import LanguageError, ShapeError
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
from otimes.algebra.language.shape_messages import show_shape
from otimes.algebra.language.shapes import inspect, same_shape, shape_of, with_ranges

n, m, d, H, L = symbols("n m d H L")
h, i, l = symbols("h i l")  # noqa: E741 (the layer)
c = symbols("c")
A, X, W = MatrixSymbol("A", n, n), MatrixSymbol("X", n, d), MatrixSymbol("W", d, m)
F = Family("F", (H,), n, d)
G = Family("G", (L, H), d, m)


@pytest.mark.parametrize(
    ("expression", "shape"),
    [
        (matmul(A, X, W), (n, m)),
        (matmul(c, X), (n, d)),
        (X.T, (d, n)),
        (kron(A, X), (n * n, n * d)),
        (HadamardProduct(X, F[h]), (n, d)),
        (A**3, (n, n)),
        (vec_rows(X), (n * d, 1)),
        (vec_cols(X), (d * n, 1)),
        (HeadSum(F[h], (h, H)), (n, d)),
        (ConcatHeads(F[h], (h, H)), (n, H * d)),
        (StackHeads(F[h], (h, H)), (H * n, d)),
        (ConcatHeads(G[l, h], (l, L), (h, H)), (d, L * H * m)),
        (OneHot(i, n), (n, 1)),
        (OneMatrix(n, d), (n, d)),
        (Trace(A), None),
        (Trace(A) * c + n, None),
    ],
)
def test_shapes(expression: Any, shape: Any) -> None:
    assert same_shape(shape_of(expression), shape)


def test_sizes_are_compared_as_polynomials() -> None:
    assert same_shape(((n + 1) * d, n), (n * d + d, n))
    assert not same_shape((n * d, n), (n + d, n))
    assert not same_shape(None, (sympy.S.One, sympy.S.One))
    assert show_shape(None) == "scalar"


def test_a_signature_names_everything_that_can_vary() -> None:
    found = inspect(matadd(matmul(c, F[h], W), HeadSum(F[i], (i, H)) * W), Trace(G[0, 2] * W.T))
    assert set(found.tensors) == {"F", "G", "W"}
    assert set(found.sizes) == {"n", "d", "m", "H", "L"}
    assert set(found.indices) == {"h"}
    assert found.indices["h"] == (h, H)
    assert set(found.scalars) == {"c"}
    assert found.fixed == {L: 0, H: 2}


def test_a_size_that_is_also_a_factor_is_a_size() -> None:
    found = inspect(matmul(1 / sympy.sqrt(d), X))
    assert set(found.sizes) == {"n", "d"}
    assert not found.scalars


WRONG: list[tuple[Any, type, str]] = [
    (matmul(X, X), ShapeError, r"X \(n × d\) by X \(n × d\): the inner sizes d and n differ"),
    (matmul(X, A), ShapeError, r"did you mean A before X\?"),
    (matmul(A, W), ShapeError, r"did you mean KroneckerProduct\(A, W\)\?"),
    (matmul(X, W.T, A), ShapeError, r"cannot multiply X \(n × d\) by Wᵀ \(m × d\)"),
    (matadd(X, A), ShapeError, r"cannot add X \(n × d\) and A \(n × n\): the shapes differ"),
    (HadamardProduct(X, F[h].T, evaluate=False), ShapeError, r"cannot multiply elementwise"),
    (Trace(X), ShapeError, r"cannot take the trace of X \(n × d\): a square matrix is needed"),
    (sympy.MatPow(X, 2), ShapeError, "cannot raise to a power"),
    (sympy.MatPow(A, n), LanguageError, "the power n of a matrix is not in the language"),
    (HeadSum(F[h], (h, L)), ShapeError, "index h of F runs over H values, but over L elsewhere"),
    (matmul(F[h].T, OneHot(h, n)), ShapeError, "index h of OneHot runs over n values, but over H"),
    (F[h + 1], LanguageError, r"the index h \+ 1 of F is not in the language"),
    (HeadSum(matmul(h, F[h]), (h, H)), LanguageError, "the index h is used as a number"),
    (HeadSum(F[h], (2, H)), LanguageError, "HeadSum sums over 2: a Symbol is needed"),
    (HeadSum(OneMatrix(n, h), (h, H)), LanguageError, "the size h depends on the index h"),
    (matadd(F[n], X), LanguageError, "n is used both as an index and as a number or size"),
    (OneMatrix(n, sympy.sqrt(d)), LanguageError, r"the size sqrt\(d\) is not in the language"),
    (sympy.Basic(A), LanguageError, "Basic is not in the language yet"),
    (sympy.I * A, LanguageError, "ImaginaryUnit is not in the language yet"),
    (F, LanguageError, r"the family F was given without its index: write F\[h\]"),
    (
        GenericIdentity(),
        LanguageError,
        r"GenericIdentity has no size: use Identity\(n\)",
    ),
    (sympy.Determinant(A), LanguageError, "Determinant is not in the language yet"),
]


@pytest.mark.parametrize(("expression", "error", "words"), WRONG)
def test_errors(expression: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        inspect(expression)


def test_names_that_clash() -> None:
    with pytest.raises(LanguageError, match="two different symbols are called n"):
        inspect(A, OneMatrix(Symbol("n", positive=True), 1))
    with pytest.raises(LanguageError, match="two different symbols are called h"):
        inspect(F[h], F[Symbol("h", integer=True)])
    with pytest.raises(ShapeError, match="A occurs with two shapes, n × n and n × d"):
        inspect(matmul(A, MatrixSymbol("A", n, d)))
    with pytest.raises(LanguageError, match="X names both a matrix and a scalar, index or size"):
        inspect(matmul(Symbol("X"), X))


def test_every_unknown_kind_is_named_at_once() -> None:
    with pytest.raises(LanguageError) as refusal:
        inspect(matadd(A.applyfunc(sympy.exp), DFT(n)))
    assert "ElementwiseApplyFunction is not" in str(refusal.value)
    assert "; DFT is not in the language yet" in str(refusal.value)


def test_a_delta_takes_its_range_from_other_uses_of_its_indices() -> None:
    j, k = symbols("j k")
    delta, other = sympy.KroneckerDelta(i, j), sympy.KroneckerDelta(j, k)
    found = inspect(delta * other * A[i, l])
    assert found.indices["k"] == (k, n)
    ranged = with_ranges(delta * other * A[i, l], found)
    assert all(e.args[2] == (0, n - 1) for e in ranged.atoms(sympy.KroneckerDelta))
    with pytest.raises(LanguageError, match=r"δ\[i, j\] does not say how far"):
        inspect(delta)
    with pytest.raises(ShapeError, match="index i of X runs over n values, but over d elsewhere"):
        inspect(sympy.Sum(delta * X[i, j], (j, 0, d - 1)))
    two = [sympy.Sum(delta, (i, 0, size - 1), (j, 0, size - 1)) for size in (n, d)]
    with pytest.raises(LanguageError, match=r"run over \w values, but elsewhere over \w"):
        inspect(two[0] + two[1])
