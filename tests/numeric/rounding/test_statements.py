"""The rounding bounds: never exceeded by correct code, and not so wide that bugs hide in them.

The exact value is computed on Fractions by the tree walker, from the very numbers that the
floating-point evaluation was given.
"""

import os
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    HadamardProduct,
    Identity,
    Inverse,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Symbol,
    Trace,
    Transpose,
    sqrt,
)

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.arrays import Evaluator
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul, vec_rows
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.numeric.rounding import (
    UNIT_ROUNDOFF,
    contract_bounded,
    gamma,
    recorded_bound,
    smallest_noticed,
    walk_bounded,
    worst_ratio,
)
from tests.numeric.rounding import seen

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
EPS = Rational(1, 100_000)
PATTERN = RowSoftmax(matmul(1 / sqrt(d), X, W, Transpose(X)), CausalMask(n))
WITH_FUNCTIONS = {
    "pattern": PATTERN,
    "head": matmul(PATTERN, X, W),
    "layer": matadd(X, HeadSum(matmul(RowSoftmax(matmul(X, Q[h], Transpose(X))), X, Q[h]), (h, H))),
    "rms": matmul(RMSNorm(X, EPS), W),
    "layer norm": matmul(LayerNorm(X, EPS), W),
    "mlp": matadd(X, matmul(Activation("gelu_tanh", matmul(LayerNorm(X, EPS), W)), W)),
    "gated": HadamardProduct(Activation("silu", matmul(X, W)), matmul(X, W)),
    "nested": Activation("tanh", matmul(PATTERN, Activation("gelu", X), W)),
    "twice": matmul(PATTERN, PATTERN, X),
    "kron": matmul(kron(PATTERN, W), vec_rows(X)),
    "inverse": matmul(Inverse(matadd(matmul(20, Identity(d)), W)), Transpose(X)),
}
LONG = os.environ.get("OTIMES_LONG") == "1"
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


def _distance(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    return np.abs(_fractions(found) - exact).astype(float)


def _within(error: np.ndarray, bound: np.ndarray, dtype: type) -> None:
    ratio = worst_ratio(error, np.zeros_like(error), bound.reshape(error.shape))
    assert ratio <= 1
    seen.note(dtype.__name__, ratio)


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
    _within(_distance(contracted.value.reshape(exact.shape), exact), contracted.bound, dtype)
    if dtype is np.float64:
        walked, bound = walk_bounded(expression, values)
        assert np.all(np.abs(_fractions(walked) - exact).astype(float) <= bound)


def _moderate(evaluator: Evaluator, seed: int, dtype: type) -> dict[str, np.ndarray]:
    """Return arrays of order one, as activations are; d is a square, so that 1/√d is exact."""
    draw = np.random.default_rng(seed)
    sizes = {"n": int(draw.integers(1, 5)), "d": 4, "H": 2}
    arrays: dict = {size: sizes[size] for size in evaluator.signature.sizes}
    for name, tensor in evaluator.signature.tensors.items():
        counts = getattr(tensor, "counts", ())
        shape = [sizes[str(size)] for size in (*counts, *tensor.shape)]
        arrays[name] = (draw.standard_normal(shape) * draw.uniform(0.2, 2)).astype(dtype)
    return arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", WITH_FUNCTIONS)
@settings(max_examples=100 if LONG else 4)
@given(seed=st.integers(0, 10**6))
def test_the_bounds_hold_with_functions(name: str, dtype: type, seed: int) -> None:
    """The truth is an interval far narrower than the bounds."""
    expression = WITH_FUNCTIONS[name]
    evaluator = Evaluator(expression)
    arrays = _moderate(evaluator, seed, dtype)
    values = evaluator.values(arrays)
    exact = _exactly(expression, evaluator, arrays)
    contracted = contract_bounded(evaluator, values, UNITS[dtype])
    _within(_distance(contracted.value.reshape(exact.shape), exact), contracted.bound, dtype)
    assert np.all(np.isfinite(contracted.bound))
    if dtype is np.float64:
        walked, bound = walk_bounded(expression, values)
        assert np.all(_distance(walked, exact) <= bound)
        recorded = recorded_bound(expression, evaluator, values)
        assert np.all(recorded >= bound)


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


@pytest.mark.parametrize("name", ["layer norm", "head", "gated"])
def test_another_function_is_noticed(name: str) -> None:
    """Another ε, the mask forgotten, another gate: each far beyond the bound."""
    wrong = {
        "layer norm": matmul(LayerNorm(X, Rational(1, 1_000_000)), W),
        "head": matmul(RowSoftmax(PATTERN.args[0]), X, W),
        "gated": HadamardProduct(Activation("gelu", matmul(X, W)), matmul(X, W)),
    }[name]
    evaluator = Evaluator(WITH_FUNCTIONS[name])
    arrays = {**_moderate(evaluator, 1, np.float64), "n": 4}
    arrays["X"] = np.random.default_rng(0).standard_normal((4, 4))
    values = evaluator.values(arrays)
    right = contract_bounded(evaluator, values)
    other = walk_bounded(wrong, values)
    total = right.bound.reshape(other[0].shape) + other[1]
    assert worst_ratio(right.value.reshape(other[0].shape), other[0], total) > 1e5


@pytest.mark.parametrize("name", ["head", "mlp", "twice"])
def test_what_is_noticed_through_a_function_breaks_the_check(name: str) -> None:
    evaluator = Evaluator(WITH_FUNCTIONS[name])
    arrays = _moderate(evaluator, 3, np.float64)
    contracted = contract_bounded(evaluator, evaluator.values(arrays))
    assert set(contracted.shares) == set(evaluator.signature.tensors)
    for tensor, share in contracted.shares.items():
        change = smallest_noticed(share, contracted.bound)
        for factor, over in ((4, True), (0.1, False)):
            moved = {**arrays, tensor: arrays[tensor] * (1 + factor * change)}
            value = contract_bounded(evaluator, evaluator.values(moved)).value
            assert (worst_ratio(value, contracted.value, contracted.bound) > 1) == over


def test_torch_tensors_have_bounds_as_well() -> None:
    evaluator = Evaluator(WITH_FUNCTIONS["mlp"])
    arrays = _moderate(evaluator, 5, np.float32)
    tensors = {k: torch.tensor(v) if hasattr(v, "shape") else v for k, v in arrays.items()}
    exact = _exactly(WITH_FUNCTIONS["mlp"], evaluator, arrays)
    found = contract_bounded(evaluator, evaluator.values(tensors), UNIT_ROUNDOFF["float32"])
    assert np.all(_distance(found.value.reshape(exact.shape), exact) <= found.bound)


def test_nothing_is_claimed_of_a_matrix_that_may_be_singular() -> None:
    evaluator = Evaluator(Inverse(W))
    nearly = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])
    assert np.all(np.isinf(contract_bounded(evaluator, evaluator.values({"W": nearly})).bound))


def test_a_mask_that_is_computed_has_no_bound() -> None:
    evaluator = Evaluator(RowSoftmax(A, B))
    values = evaluator.values({"A": np.eye(2), "B": np.array([[1.0, 0.5], [1.0, 1.0]])})
    with pytest.raises(
        OtimesError, match="there is no rounding bound for a softmax whose mask is computed, or is"
    ):
        contract_bounded(evaluator, values)


def test_any_function_has_no_bound() -> None:
    evaluator = Evaluator(Activation("g", A))
    values = evaluator.values({"A": np.eye(2)})
    with pytest.raises(OtimesError, match="stands for any function"):
        contract_bounded(evaluator, values)


def test_so_many_roundings_that_nothing_is_left() -> None:
    assert gamma(256, UNIT_ROUNDOFF["bfloat16"]) == np.inf
    assert worst_ratio([np.nan, 1.0], [1.0, 1.0], [np.inf, 1.0]) == 0


def test_ratios() -> None:
    assert worst_ratio([1.0, 0.0], [1.0, 0.0], [0.0, 0.0]) == 0
    assert worst_ratio([1.0], [2.0], [0.0]) == np.inf
    assert worst_ratio([np.nan], [2.0], [1.0]) == np.inf
    assert worst_ratio([1.0, 4.0], [2.0, 2.0], [2.0, 2.0]) == 1.0
    assert gamma(3, 2.0**-53) > 3 * 2.0**-53
    assert smallest_noticed([0.0], [1.0]) == np.inf
