"""The conventions, pinned on 2×3 examples whose entries all differ, against NumPy and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sympy import MatrixSymbol, Transpose, symbols

from otimes.algebra.evaluate.arrays import evaluate
from otimes.algebra.evaluate.exact import Assignment, exact_array, tree_value
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    StackHeads,
    kron,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.verdict import decide

n, m, p, q, H = symbols("n m p q H")
h = symbols("h")
A, B, X = MatrixSymbol("A", n, m), MatrixSymbol("B", p, q), MatrixSymbol("X", m, q)
a23 = np.array([[1, 2, 3], [4, 5, 6]])
b23 = np.array([[7, 11, 13], [17, 19, 23]])
x33 = np.arange(30, 39).reshape(3, 3)


def by_evaluate(e: Any) -> Any:
    return evaluate(e, {name: v for name, v in ARRAYS.items() if name in str(e)})


def by_tree(e: Any) -> Any:
    sizes = {"n": 2, "m": 3, "p": 2, "q": 3, "H": 2}
    return tree_value(e, Assignment(sizes, {k: exact_array(v) for k, v in ARRAYS.items()}))


ARRAYS = {"A": a23, "B": b23, "X": x33, "F": np.arange(60, 72).reshape(2, 2, 3)}
EVALUATORS = pytest.mark.parametrize("value", [by_evaluate, by_tree])


@EVALUATORS
def test_the_left_factor_is_the_slow_index(value: Any) -> None:
    result = value(kron(A, B))
    assert np.array_equal(result, np.kron(a23, b23))
    for i, j, k, c in np.ndindex(2, 3, 2, 3):
        assert result[2 * i + k, 3 * j + c] == a23[i, j] * b23[k, c]


@EVALUATORS
def test_vec_rows_is_reshape(value: Any) -> None:
    assert value(vec_rows(A))[:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert np.array_equal(value(vec_rows(A)), a23.reshape(-1, 1))


@EVALUATORS
def test_vec_cols_goes_down_the_columns(value: Any) -> None:
    assert value(vec_cols(A))[:, 0].tolist() == [1, 4, 2, 5, 3, 6]
    assert np.array_equal(value(vec_cols(A)), a23.reshape(-1, 1, order="F"))


@EVALUATORS
def test_the_head_is_the_slow_index_side_by_side_and_stacked(value: Any) -> None:
    F = Family("F", (H,), n, m)
    first, second = ARRAYS["F"]
    assert np.array_equal(value(ConcatHeads(F[h], (h, H))), np.hstack([first, second]))
    assert np.array_equal(value(StackHeads(F[h], (h, H))), np.vstack([first, second]))


def test_the_row_bridge() -> None:
    """(A ⊗ B) vec_rows(X) = vec_rows(A X Bᵀ): numbers by NumPy, and for every size."""
    by_numpy = np.kron(a23, b23) @ x33.reshape(-1, 1)
    assert np.array_equal(by_numpy, (a23 @ x33 @ b23.T).reshape(-1, 1))
    lhs, rhs = matmul(kron(A, B), vec_rows(X)), vec_rows(matmul(A, X, Transpose(B)))
    assert np.array_equal(by_evaluate(lhs), by_numpy)
    assert decide(lhs, rhs).status == "proved"


def test_the_column_bridge() -> None:
    """vec_cols(A X Bᵀ) = (B ⊗ A) vec_cols(X), which is vec_cols(A X B) = (Bᵀ ⊗ A) vec_cols(X)."""
    by_numpy = np.kron(b23, a23) @ x33.reshape(-1, 1, order="F")
    assert np.array_equal(by_numpy, (a23 @ x33 @ b23.T).reshape(-1, 1, order="F"))
    lhs, rhs = matmul(kron(B, A), vec_cols(X)), vec_cols(matmul(A, X, Transpose(B)))
    assert np.array_equal(by_evaluate(lhs), by_numpy)
    assert decide(lhs, rhs).status == "proved"


def test_the_bridges_are_not_each_other() -> None:
    """With square matrices both fit, and only one is true of each vec."""
    S, T, Y = (MatrixSymbol(name, n, n) for name in "STY")
    for vec, other in ((vec_rows, vec_cols), (vec_cols, vec_rows)):
        mixed = kron(S, T) if vec is vec_cols else kron(T, S)
        assert decide(matmul(mixed, vec(Y)), vec(matmul(S, Y, Transpose(T)))).status == "refuted"
        assert decide(vec(Y), other(Y)).status == "refuted"
        assert decide(vec(Y), other(Transpose(Y))).status == "proved"
