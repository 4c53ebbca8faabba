"""The rounding bounds: never exceeded by correct code, and not so wide that bugs hide in them.

The exact value is computed on Fractions by the tree walker, from the very numbers that the
floating-point evaluation was given.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import HadamardProduct, Identity, MatrixSymbol, OneMatrix, Symbol, Trace, Transpose, sqrt

from algebra.evaluate import Evaluator
from algebra.exact import Assignment, tree_value
from algebra.language import Family, HeadSum, kron, matadd, matmul, vec_rows
from numeric.rounding import (
    UNIT_ROUNDOFF,
    contract_bounded,
    gamma,
    recorded_bound,
    smallest_noticed,
    walk_bounded,
    worst_ratio,
)

n, d, H = (Symbol(name, positive=True, integer=True) for name in ("n", "d", "H"))
h = Symbol("h", integer=True)
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
X, W = MatrixSymbol("X", n, d), MatrixSymbol("W", d, d)
P, Q = Family("P", (H,), n, n), Family("Q", (H,), d, d)

STATEMENTS = {
    "product": matmul(A, matmul(B, X)),
    "sum": matmul(matadd(A, matmul(-1, B)), X),
    "bilinear": matmul(X, W, Transpose(X)),
    "head": matmul(kron(A, W), vec_rows(X)),
    "layer": matadd(X, HeadSum(matmul(P[h], X, Q[h]), (h, H))),
    "path": matmul(
        matadd(kron(Identity(n), Identity(d)), HeadSum(kron(P[h], Q[h]), (h, H))),
        matadd(kron(Identity(n), Identity(d)), kron(A, W)),
        vec_rows(X),
    ),
    "hadamard": HadamardProduct(matmul(A, B), matmul(B, A)),
    "trace": matmul(Trace(matmul(A, B)), OneMatrix(n, d)),
    "cancelling": matadd(matmul(matadd(A, B), X), matmul(-1, matmul(B, X))),
}
UNITS = {np.float32: UNIT_ROUNDOFF["float32"], np.float64: UNIT_ROUNDOFF["float64"]}


def _arrays(evaluator: Evaluator, seed: int, dtype: type) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    sizes = {"n": int(draw.integers(1, 7)), "d": int(draw.integers(1, 7)), "H": 3}
    arrays: dict = {size: sizes[size] for size in evaluator.signature.sizes}
    for name, tensor in evaluator.signature.tensors.items():
        counts = getattr(tensor, "counts", ())
        shape = [sizes[str(size)] for size in (*counts, *tensor.shape)]
        spread = 10.0 ** draw.uniform(-3, 3, shape)
        arrays[name] = (draw.standard_normal(shape) * spread).astype(dtype)
    return arrays


def _exactly(expression, evaluator: Evaluator, arrays: dict[str, np.ndarray]) -> np.ndarray:
    values = evaluator.values(arrays)
    fractions = {name: _fractions(array) for name, array in values.arrays.items()}
    return tree_value(expression, Assignment(values.sizes, fractions))


def _fractions(array: np.ndarray) -> np.ndarray:
    exact = np.empty(array.shape, dtype=object)
    for place, entry in np.ndenumerate(array):
        exact[place] = Fraction(float(entry))
    return exact


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", STATEMENTS)
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_the_bounds_hold(name: str, dtype: type, seed: int) -> None:
    expression = STATEMENTS[name]
    evaluator = Evaluator(expression)
    arrays = _arrays(evaluator, seed, dtype)
    values = evaluator.values(arrays)
    exact = _exactly(expression, evaluator, arrays)
    contracted = contract_bounded(evaluator, values, UNITS[dtype])
    error = np.abs(_fractions(contracted.value.reshape(exact.shape)) - exact).astype(float)
    assert np.all(error <= contracted.bound.reshape(exact.shape))
    if dtype is np.float64:
        walked, bound = walk_bounded(expression, values)
        assert np.all(np.abs(_fractions(walked) - exact).astype(float) <= bound)


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_recorded_bound_holds_for_another_order(name: str) -> None:
    """The walk of the tree, brackets kept, is one order that sums an index at a time."""
    expression = STATEMENTS[name]
    evaluator = Evaluator(expression)
    arrays = _arrays(evaluator, 5, np.float64)
    values = evaluator.values(arrays)
    exact = _exactly(expression, evaluator, arrays)
    walked, _ = walk_bounded(expression, values)
    error = np.abs(_fractions(walked) - exact).astype(float)
    assert np.all(error <= recorded_bound(expression, evaluator, values))


def test_a_wrong_value_exceeds_the_bound() -> None:
    expression = STATEMENTS["head"]
    evaluator = Evaluator(expression)
    values = evaluator.values(_arrays(evaluator, 1, np.float64))
    contracted = contract_bounded(evaluator, values)
    assert worst_ratio(contracted.value * (1 + 1e-9), contracted.value, contracted.bound) > 1e3


def test_what_is_noticed_is_what_breaks_the_check() -> None:
    """A change of four times the sensitivity shows, a tenth of it does not; rounding is between."""
    expression = STATEMENTS["bilinear"]
    evaluator = Evaluator(expression)
    arrays = _arrays(evaluator, 3, np.float64)
    contracted = contract_bounded(evaluator, evaluator.values(arrays))
    change = smallest_noticed(contracted.shares["W"], contracted.bound)
    for factor, over in ((4, True), (0.1, False)):
        moved = {**arrays, "W": arrays["W"] * (1 + factor * change)}
        value = contract_bounded(evaluator, evaluator.values(moved)).value
        assert (worst_ratio(value, contracted.value, contracted.bound) > 1) == over


def test_a_factor_that_occurs_twice_counts_twice() -> None:
    evaluator = Evaluator(matmul(X, W, Transpose(X)))
    arrays = _arrays(evaluator, 2, np.float64)
    contracted = contract_bounded(evaluator, evaluator.values(arrays))
    assert np.allclose(contracted.shares["X"], 2 * contracted.shares["W"])


def test_selecting_rounds_nothing() -> None:
    """A product with one-hot rows looks up; its bound does not grow with what it looks up from."""
    V = Symbol("V", positive=True, integer=True)
    T, E = MatrixSymbol("T", n, V), MatrixSymbol("E", V, d)
    evaluator = Evaluator(matmul(T, E))
    table = np.random.default_rng(0).standard_normal((500, 4))
    one_hot = np.eye(500)[[3, 77]]
    sharp = contract_bounded(evaluator, evaluator.values({"T": one_hot, "E": table})).bound
    loose = contract_bounded(evaluator, evaluator.values({"T": one_hot + 1e-30, "E": table})).bound
    assert np.all(sharp < loose / 100)


def test_coefficients_round_too() -> None:
    evaluator = Evaluator(matmul(1 / sqrt(d), X))
    arrays = {"X": np.array([[1.0, 3.0, 7.0]])}
    contracted = contract_bounded(evaluator, evaluator.values(arrays))
    assert worst_ratio(arrays["X"] / np.sqrt(3.0), contracted.value, contracted.bound) <= 1


def test_ratios() -> None:
    assert worst_ratio([1.0, 0.0], [1.0, 0.0], [0.0, 0.0]) == 0
    assert worst_ratio([1.0], [2.0], [0.0]) == np.inf
    assert worst_ratio([np.nan], [2.0], [1.0]) == np.inf
    assert worst_ratio([1.0, 4.0], [2.0, 2.0], [2.0, 2.0]) == 1.0
    assert gamma(3, 2.0**-53) > 3 * 2.0**-53
    assert smallest_noticed([0.0], [1.0]) == np.inf
