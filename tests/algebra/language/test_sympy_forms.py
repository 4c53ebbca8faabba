"""Classes that only SymPy has: their values are NumPy's, and claims with them are decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import (
    Determinant,
    FunctionMatrix,
    Identity,
    KroneckerDelta,
    Lambda,
    MatrixSymbol,
    OneMatrix,
    Trace,
)

from otimes.algebra.errors import LanguageError
from otimes.algebra.evaluate.arrays import evaluate
from otimes.algebra.language.defined import LogSumExp, Rotation
from otimes.algebra.language.derivative import gradient
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.positions import Positions
from otimes.algebra.language.sympy_forms import in_language
from otimes.algebra.normal_form import normal_form
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import rejected

n, d = sympy.symbols("n d", integer=True, positive=True)
i, j, k = sympy.symbols("i j k", integer=True)
a, b = sympy.symbols("a b", real=True)
c, e = sympy.symbols("c e", positive=True)
A, X = MatrixSymbol("A", n, n), MatrixSymbol("X", n, d)
M, N = MatrixSymbol("M", 3, 3), MatrixSymbol("N", 3, 3)
v, w = MatrixSymbol("v", n, 1), MatrixSymbol("w", d, 1)
one = OneMatrix(n, 1)
P = RowSoftmax(A)
length = (v.T * v)[0, 0]


def table(entry: Any, cols: Any = n) -> Any:
    """Return the matrix with this entry at (i, j)."""
    return FunctionMatrix(n, cols, Lambda((i, j), entry))


ARRAYS = {
    "A": np.arange(16.0).reshape(4, 4) / 7 - 1,
    "M": np.array([[1.0, 2, -1], [0.5, 3, 2], [4, -2, 1]]),
    "v": np.array([[1.0], [-2], [3], [0.5]]),
    "w": np.array([[2.0], [-1]]),
    "X": np.arange(8.0).reshape(4, 2) - 3,
}
grid = np.indices((4, 4))


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        (sympy.cos(a) * A, lambda A, a, **_: np.cos(a) * A),
        (sympy.exp(A[1, 2] - a), lambda A, a, **_: np.exp(A[1, 2] - a)),
        (sympy.Abs(a) * sympy.tanh(a), lambda a, **_: abs(a) * np.tanh(a)),
        (1 / sympy.sqrt(length), lambda v, **_: 1 / np.linalg.norm(v)),
        (sympy.log(length) ** 2, lambda v, **_: np.log(v.T @ v).item() ** 2),
        (Determinant(M), lambda M, **_: np.linalg.det(M)),
        (Determinant(Rotation(a) * sympy.sqrt(2)), lambda **_: 2),
        (table(i - 2 * j), lambda **_: grid[0] - 2 * grid[1]),
        (table(A[j, i] + KroneckerDelta(i, j)), lambda A, **_: A.T + np.eye(4)),
        (
            table(sympy.sin(a * i) * w[j, 0], d),
            lambda a, w, **_: np.outer(np.sin(a * grid[0][:, 0]), w),
        ),
        (sympy.ImmutableMatrix([[sympy.cos(a), 1]]), lambda a, **_: np.array([[np.cos(a), 1]])),
    ],
)
def test_their_values(e: Any, expected: Callable[..., Any]) -> None:
    everything = {**ARRAYS, "a": -0.7, "n": 4, "d": 2}
    own = {symbol.name for symbol in e.atoms(MatrixSymbol)} | {str(s) for s in e.free_symbols}
    found = evaluate(e, {name: everything[name] for name in own & everything.keys()})
    np.testing.assert_array_almost_equal_nulp(
        np.asarray(found, float), np.asarray(expected(**{**ARRAYS, "a": -0.7}), float), 64
    )


TRUE = {
    "softmax of two entries": (P[i, j] / P[i, k], sympy.exp(A[i, j] - A[i, k])),
    "log odds": (sympy.log(P[i, j]) - sympy.log(P[i, k]), A[i, j] - A[i, k]),
    "the logarithm of a quotient": (sympy.log(P[i, j] / P[i, k]), A[i, j] - A[i, k]),
    "surprise": (-sympy.log(P[i, j]), LogSumExp(A)[i, 0] - A[i, j]),
    "a root": (sympy.sqrt(length) ** 2, length),
    "a unit row": (sympy.sqrt(n) * v.T / sympy.sqrt(length), RMSNorm(v.T)),
    "Pythagoras": (sympy.cos(a) ** 2 + sympy.sin(a) ** 2, 1),
    "sums of angles": (
        sympy.ImmutableMatrix([[sympy.cos(a + b), sympy.sin(a + b)]]),
        sympy.ImmutableMatrix([[sympy.cos(b), sympy.sin(b)]]) * Rotation(a).T,
    ),
    "sigmoid twice": (1 / (1 + sympy.exp(-a)), sympy.exp(a) / (1 + sympy.exp(a))),
    "absolute values": (abs(a) * abs(b), abs(a * b)),
    "logarithms": (sympy.log(c * e), sympy.log(c) + sympy.log(e)),
    "a positive scale": (LayerNorm(sympy.exp(a) * X), LayerNorm(X)),
    "a nonnegative gate": (
        Activation("relu", sympy.Abs(a) * X),
        sympy.Abs(a) * Activation("relu", X),
    ),
    "determinants": (Determinant(M * N), Determinant(M) * Determinant(N)),
    "of a rotation": (Determinant(Rotation(a)), 1),
    "its inverse": (Rotation(a).I, Rotation(-a)),
    "differences of positions": (table(i - j), Positions(n) * one.T - one * Positions(n).T),
    "Toeplitz": (
        table(sympy.cos(i * a - j * a)),
        table(sympy.cos(i * a) * sympy.cos(j * a) + sympy.sin(i * a) * sympy.sin(j * a)),
    ),
    "ALiBi": (RowSoftmax(A + table(a * (j - i))), RowSoftmax(A + table(a * j))),
}
FALSE = {
    "log odds": (sympy.log(P[i, j]) - sympy.log(P[i, k]), A[i, k] - A[i, j]),
    "softmax of two entries": (P[i, j] / P[i, k], sympy.exp(A[i, k] - A[i, j])),
    "a unit row": (v.T / sympy.sqrt(length), RMSNorm(v.T)),
    "absolute values": (abs(a) + abs(b), abs(a + b)),
    "a scale": (LayerNorm(a * X), LayerNorm(X)),
    "determinants": (Determinant(M + N), Determinant(M) + Determinant(N)),
    "its inverse": (Rotation(a).I, Rotation(a)),
    "differences of positions": (table(i - j), table(j - i)),
    "ALiBi": (RowSoftmax(A + table(a * (j - i))), RowSoftmax(A - table(a * j))),
    "a bound index is not the free one": (table(A[i, k]), table(A[k, i])),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_is_proved(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict.reason
    assert rejected(verdict) is None


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_refuted(name: str) -> None:
    assert decide(*FALSE[name]).status == "refuted"


def test_what_is_not_in_the_language_is_refused() -> None:
    for e in (Determinant(A), sympy.Function("f")(a), sympy.Max(a, b), sympy.exp(1) * A):
        with pytest.raises(LanguageError):
            decide(e, e)


def test_what_has_none_stays_as_it_is() -> None:
    e = A * Identity(n) + Trace(A) ** -1 * A
    assert in_language(e) is e


def test_normal_forms_and_derivatives_have_them() -> None:
    assert len(normal_form(table(i - j)).terms) == 2
    grad = gradient(sympy.exp((v.T * v)[0, 0]), v)
    assert decide(grad, 2 * sympy.exp(length) * v).status == "proved"
