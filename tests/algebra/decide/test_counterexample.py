"""Counterexamples are small, exact, complete and paste into Python."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import MatrixSymbol, Trace, symbols

from otimes.algebra.language.linear import Family, HeadSum, kron, matmul
from otimes.algebra.verdict import decide

n, m, d, H = symbols("n m d H")
h = symbols("h")
c = symbols("c")
A, B, X = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n), MatrixSymbol("X", n, m)
P = Family("P", (H,), n, n)


def counterexample(lhs: Any, rhs: Any) -> Any:
    return decide(lhs, rhs).counterexample


def test_it_pastes_into_python() -> None:
    found = counterexample(matmul(A, B, X), matmul(B, A, X))
    scope: dict[str, Any] = {"np": np}
    exec(str(found), scope)
    left = scope["A"] @ scope["B"] @ scope["X"]
    right = scope["B"] @ scope["A"] @ scope["X"]
    assert (left[found.entry], right[found.entry]) == (found.lhs, found.rhs)
    assert left[found.entry] != right[found.entry]
    assert (scope["n"], scope["m"]) == (found.sizes[n], found.sizes[m])
    assert f"# left side {found.lhs}, right side {found.rhs} at row" in str(found)


def test_it_is_small() -> None:
    found = counterexample(matmul(A, B), matmul(B, A))
    assert found.sizes == {n: 2}
    assert all(x in (0, 1) for array in found.arrays.values() for x in array.ravel())
    found = counterexample(kron(A, X), kron(A, 2 * X))
    assert found.sizes == {n: 1, m: 1}


def test_it_knows_indices_and_scalars() -> None:
    found = counterexample(matmul(c, P[h]), HeadSum(P[h], (h, H)))
    assert set(found.sizes) == {n, H}
    assert set(found.scalars) == {c}
    assert set(found.indices) == {h}
    assert 0 <= found.indices[h] < found.sizes[H]
    left = found.scalars[c] * found.arrays["P"][found.indices[h]]
    right = found.arrays["P"].sum(axis=0)
    assert (left[found.entry], right[found.entry]) == (found.lhs, found.rhs)


def test_a_fixed_index_is_in_range() -> None:
    found = counterexample(P[3], P[0])
    assert found.sizes[H] >= 4
    assert found.arrays["P"].shape[0] == found.sizes[H]


def test_roots_get_perfect_squares() -> None:
    W = MatrixSymbol("W", d, d)
    found = counterexample(kron(A, W) / sympy.sqrt(n * d), kron(A, W) / n)
    assert sympy.sqrt(found.sizes[n] * found.sizes[d]).is_Integer
    assert found.lhs != found.rhs


def test_scalars_have_no_entry() -> None:
    found = counterexample(Trace(matmul(A, B)), Trace(A) * Trace(B))
    assert found.entry is None
    a, b = found.arrays["A"], found.arrays["B"]
    assert found.lhs == np.trace(a @ b)
    assert found.rhs == np.trace(a) * np.trace(b)


def test_the_same_question_has_the_same_answer() -> None:
    first, second = (str(counterexample(matmul(A, B), matmul(B, A))) for _ in range(2))
    assert first == second


def test_there_is_none_without_a_refutation() -> None:
    assert decide(A, A).counterexample is None


@pytest.mark.parametrize("wires", [3, 5, 6])
def test_standard_sizes_are_reached(wires: int) -> None:
    """(n-1)…(n-k) vanishes at 1 … k: a size above k is needed, and found."""
    factor = sympy.Mul(*[n - q for q in range(1, wires)])
    found = counterexample(matmul(factor, A, B), 0 * A * B)
    assert found.sizes[n] >= wires


def test_names_and_fractions_paste_too() -> None:
    """`lambda` is no name in Python, `W_{QK}` neither; a third is not what Python reads in 1/3."""
    eigenvalue, W = symbols("lambda"), MatrixSymbol("W_{QK}", n, n)
    given = [(3 * eigenvalue, sympy.Integer(1))]
    found = decide(eigenvalue * W, W, given).counterexample
    scope: dict[str, Any] = {"np": np}
    exec(str(found), scope)
    assert found is not None
    assert scope["_lambda"] == found.scalars[eigenvalue]
    assert 3 * scope["_lambda"] == 1
    assert np.array_equal(scope["W__QK_"], found.arrays["W_{QK}"])


def test_sizes_that_make_a_matrix_negative_are_no_counterexample() -> None:
    smaller = sympy.Identity(n - 3)
    found = counterexample(smaller, matmul(0, smaller))
    assert found.sizes[n] > 3


COMPOSITE = """
from sympy import MatrixSymbol, symbols
from otimes.algebra.verdict import decide
n, m, p, q = symbols("n m p q")
J = MatrixSymbol("J", n*m*p*q + 1, q + p + m + n)
print(decide(J, 2*J).counterexample, list(decide(J, 2*J).counterexample.sizes))
"""


def test_it_is_the_same_in_every_process() -> None:
    """The symbols of a size are a set, whose order is another one for every PYTHONHASHSEED."""

    def printed(hash_seed: int) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
        run = [sys.executable, "-c", COMPOSITE]
        return subprocess.run(
            run, capture_output=True, text=True, check=True, env=environment
        ).stdout

    assert printed(1) == printed(2) == printed(3) != ""
