"""Softmax, masks, activations and norms: read, evaluated, decided."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import HadamardProduct, Identity, MatrixSymbol, OneMatrix, Trace, ZeroMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.evaluate.arrays import evaluate
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.functions import KNOWN, stand_in, value_of
from otimes.algebra.language.intervals import Interval, bounds
from otimes.algebra.language.linear import (
    Family,
    HeadSum,
    OneHot,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.verdict import decide

n, m, d, k, H = sympy.symbols("n m d k H", integer=True, positive=True)
h, g, i, j = sympy.symbols("h g i j", integer=True)
c, eps = sympy.symbols("c epsilon", positive=True)
X, Y = MatrixSymbol("X", n, d), MatrixSymbol("Y", n, d)
S, T = MatrixSymbol("S", n, n), MatrixSymbol("T", n, n)
R, U = MatrixSymbol("R", n, m), MatrixSymbol("U", n, d)
W, Q = MatrixSymbol("W", d, d), MatrixSymbol("Q", d, d)
P = MatrixSymbol("P", n, n)
v, b = MatrixSymbol("v", n, 1), MatrixSymbol("b", d, 1)
F = Family("F", (H,), d, d)
squares = DiagMatrix(sympy.HadamardPower(b, 2))
mask = CausalMask(n)
A, B = RowSoftmax(S), RowSoftmax(T)
causal = RowSoftmax(S, mask)


def ones(rows: Any, cols: Any = 1) -> Any:
    return OneMatrix(rows, cols)


def f(e: Any) -> Activation:
    return Activation("f", e)


def relu(e: Any) -> Activation:
    return Activation("relu", e)


def gelu(e: Any) -> Activation:
    return Activation("gelu", e)


def hadamard(x: Any, y: Any) -> Any:
    return HadamardProduct(x, y, evaluate=False)


ORTHOGONAL = ((matmul(Q, Q.T), Identity(d)),)
SELECTION = ((hadamard(P, P), P), (matmul(P, ones(n)), ones(n)))
PERMUTATION = ((matmul(P, P.T), Identity(n)), (hadamard(P, P), P))

TRUE: dict[str, tuple[Any, ...]] = {
    "the same argument in other words": (f(matmul(X, W + Q)), f(matadd(X * W, X * Q))),
    "equal scores, equal patterns": (RowSoftmax((X * W * X.T).T), RowSoftmax(X * W.T * X.T)),
    "an activation of a transpose": (f(X.T), f(X).T),
    "of a vec by rows": (f(vec_rows(X)), vec_rows(f(X))),
    "of a vec by columns": (f(vec_cols(X)), vec_cols(f(X))),
    "of a symmetric argument": (f(S + S.T), f(S + S.T).T),
    "of a row": (f(OneHot(i, n).T * X), OneHot(i, n).T * f(X)),
    "of an entry": (f(X)[i, 0], f(OneHot(i, n).T * X)[0, 0]),
    "of blocks": (f(sympy.BlockMatrix([[X, Y]])), sympy.BlockMatrix([[f(X), f(Y)]])),
    "of repeated columns": (f(v * ones(1, m)), f(v) * ones(1, m)),
    "of a matrix beside ones": (f(kron(X, ones(k, k))), kron(f(X), ones(k, k))),
    "heads under another name": (
        HeadSum(f(X * F[h]), (h, H)),
        HeadSum(f(X * F[g]), (g, H)),
    ),
    "heads summed after a function of each": (
        HeadSum(matmul(RowSoftmax(X * F[h] * X.T), ones(n), ones(1, n)), (h, H)),
        H * ones(n, n),
    ),
    "constant scores": (RowSoftmax(v * ones(1, m)), ones(n, m) / m),
    "shifted scores": (RowSoftmax(S + v * ones(1, n), mask), causal),
    "a product of patterns is a pattern": (A * B * ones(n), ones(n)),
    "a bias passes through a pattern": (A * (X * W + ones(n) * b.T), A * X * W + ones(n) * b.T),
    "a weight is exp of its score over their sum": (
        hadamard(causal, matmul(hadamard(mask, Activation("exp", S)), ones(n, n))),
        hadamard(mask, Activation("exp", S)),
    ),
    "two weights of a row": (
        RowSoftmax(R)[i, 0] * Activation("exp", R)[i, j],
        RowSoftmax(R)[i, j] * Activation("exp", R)[i, 0],
    ),
    "keys that nobody sees": (
        RowSoftmax(
            matmul(X, sympy.BlockMatrix([[W, Q]])), sympy.BlockMatrix([[U, ZeroMatrix(n, d)]])
        ),
        sympy.BlockMatrix([[RowSoftmax(X * W, U), ZeroMatrix(n, d)]]),
    ),
    "all weights sum to n": (Trace(A * ones(n, n)), n),
    "a causal pattern is masked": (hadamard(causal, mask), causal),
    "pairs that see each other": (Trace(mask * ones(n, n)), n * (n + 1) / 2),
    "relu of zero": (relu(ZeroMatrix(n, d)), ZeroMatrix(n, d)),
    "relu in two parts": (relu(X) - relu(-X), X),
    "gelu reflected": (gelu(X) - gelu(-X), X),
    "relu scaled": (relu(c * X), c * relu(X)),
    "relu scaled by squares, column by column": (
        relu(matmul(X, W, squares)),
        matmul(relu(X * W), squares),
    ),
    "softmax from exp": (hadamard(A, Activation("exp", S) * ones(n, n)), Activation("exp", S)),
    "softmax from exp, under a mask": (
        hadamard(causal, hadamard(Activation("exp", S), mask) * ones(n, n)),
        hadamard(Activation("exp", S), mask),
    ),
    "exp of zero": (Activation("exp", ZeroMatrix(n, d)), ones(n, d)),
    "layer norm is centred": (LayerNorm(X, eps) * ones(d), ZeroMatrix(n, 1)),
    "layer norm does not see the mean": (LayerNorm(X + v * ones(1, d), eps), LayerNorm(X, eps)),
    "layer norm does not see the scale": (LayerNorm(c * X), LayerNorm(X)),
    "layer norm twice": (LayerNorm(LayerNorm(X)), LayerNorm(X)),
    "rows of an RMS norm": (Trace(RMSNorm(X) * RMSNorm(X).T), n * d),
    "layer norm is RMS norm after centring": (
        LayerNorm(X, eps),
        RMSNorm(X * (Identity(d) - ones(d, d) / d), eps),
    ),
    "RMS norm turned": (RMSNorm(X * Q, eps), RMSNorm(X, eps) * Q, ORTHOGONAL),
    "patterns of equal scores": (A, B, ((S, T),)),
    "a function of chosen rows": (f(P * X * W), P * f(X * W), SELECTION),
    "layer norm of chosen rows": (LayerNorm(P * X, eps), P * LayerNorm(X, eps), SELECTION),
    "attention does not know the order of positions": (
        RowSoftmax(P * X * W * X.T * P.T) * P * X,
        P * RowSoftmax(X * W * X.T) * X,
        PERMUTATION,
    ),
}
FALSE: dict[str, tuple[Any, ...]] = {
    "softmax over the other axis": (RowSoftmax(S.T), RowSoftmax(S).T),
    "softmax is not linear": (RowSoftmax(2 * S), RowSoftmax(S)),
    "shifted along the wrong axis": (RowSoftmax(S + ones(n) * v.T), RowSoftmax(S)),
    "columns of a pattern": (ones(1, n) * A, ones(1, n)),
    "two weights of two rows": (
        RowSoftmax(R)[i, 0] * Activation("exp", R)[j, 0],
        RowSoftmax(R)[j, 0] * Activation("exp", R)[i, 0],
    ),
    "a weight without its sum": (RowSoftmax(R), Activation("exp", R)),
    "keys that some see": (
        RowSoftmax(matmul(X, sympy.BlockMatrix([[W, Q]])), sympy.BlockMatrix([[U, Y]])),
        sympy.BlockMatrix([[RowSoftmax(X * W, U), ZeroMatrix(n, d)]]),
    ),
    "keys that nobody sees, and all do": (
        RowSoftmax(matmul(X, sympy.BlockMatrix([[W, Q]]))),
        sympy.BlockMatrix([[RowSoftmax(X * W), ZeroMatrix(n, d)]]),
    ),
    "patterns do not commute": (A * B, B * A),
    "without a mask": (hadamard(A, mask), A),
    "a mask is not symmetric": (mask.T, mask),
    "layer norm with eps sees the scale": (LayerNorm(2 * X, eps), LayerNorm(X, eps)),
    "RMS norm sees the mean": (RMSNorm(X + v * ones(1, d)), RMSNorm(X)),
    "RMS norm twice with eps": (RMSNorm(RMSNorm(X, eps), eps), RMSNorm(X, eps)),
    "RMS norm turned by any matrix": (RMSNorm(X * Q), RMSNorm(X) * Q),
    "layer norm turned": (LayerNorm(X * Q), LayerNorm(X) * Q, ORTHOGONAL),
    "any function is odd": (f(-X), -f(X)),
    "any function of zero": (f(ZeroMatrix(n, d)), ZeroMatrix(n, d)),
    "relu is gelu": (relu(X), gelu(X)),
    "gelu scaled": (gelu(2 * X), 2 * gelu(X)),
    "softmax without its sum": (A, Activation("exp", S)),
    "softmax by the sums of columns": (
        hadamard(A, ones(n, n) * Activation("exp", S)),
        Activation("exp", S),
    ),
    "softmax from exp, its mask lost": (
        hadamard(causal, Activation("exp", S) * ones(n, n)),
        Activation("exp", S),
    ),
    "gelu twice": (gelu(gelu(X)), gelu(X)),
    "relu scaled by any number": (relu(-2 * X), -2 * relu(X)),
    "relu scaled by any numbers, column by column": (
        relu(matmul(X, DiagMatrix(b))),
        matmul(relu(X), DiagMatrix(b)),
    ),
    "gelu scaled by squares": (gelu(matmul(X, squares)), matmul(gelu(X), squares)),
    "functions of sums": (f(X + Y), f(X) + f(Y)),
    "off the diagonal a function of zero": (
        f(hadamard(S, Identity(n))),
        hadamard(f(S), Identity(n)),
    ),
    "one head too few": (HeadSum(f(X * F[h]), (h, H)), f(X * F[0])),
}


@pytest.mark.parametrize("name", TRUE)
def test_true(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict


@pytest.mark.parametrize("name", FALSE)
def test_false(name: str) -> None:
    lhs, rhs, *given = FALSE[name]
    verdict = decide(lhs, rhs, *given)
    assert verdict.status == "refuted", verdict
    found = verdict.counterexample
    assert found is not None
    assert abs(float(found.lhs) - float(found.rhs)) > 1e-9
    assert str(found)


@pytest.mark.parametrize("name", sorted(TRUE))
def test_a_true_claim_doubled_is_not_proved(name: str) -> None:
    lhs, rhs, *given = TRUE[name]
    double = 2 * rhs if not rhs.is_Matrix else matmul(2, rhs)
    zero = rhs.is_Matrix and isinstance(rhs, ZeroMatrix)
    assert zero or decide(lhs, double, *given).status == "refuted"


# -- values: an oracle that is plain loops over math -----------------------------------------------

SCALAR = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: (
        0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "quick_gelu": lambda x: x / (1 + math.exp(-1.702 * x)),
    "tanh": math.tanh,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "exp": math.exp,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sqrt": math.sqrt,
    "reciprocal": lambda x: 1 / x,
    "log": math.log,
    "sin": math.sin,
    "cos": math.cos,
    "abs": math.fabs,
    "softplus": lambda x: math.log1p(math.exp(x)),
    "erf": math.erf,
}
POINTS = [Fraction(p, q) for p in (-31, -7, -2, 0, 1, 3, 20) for q in (1, 2, 5)]
ROUNDOFF = 1e-14  # a few ulp of a value near 1; values here are below 32


def has_value(name: str, point: Fraction) -> bool:
    """Whether `math` has a value there."""
    try:
        SCALAR[name](float(point))
    except (ValueError, ZeroDivisionError):
        return False
    return True


def test_every_known_function_has_an_oracle() -> None:
    assert SCALAR.keys() == KNOWN.keys()


@pytest.mark.parametrize("name", SCALAR)
def test_functions_agree_with_math(name: str) -> None:
    torch = pytest.importorskip("torch")
    for point in POINTS:
        if not has_value(name, point):
            with pytest.raises(OtimesError):
                value_of(name, point)
            continue
        expected = SCALAR[name](float(point))
        scale = ROUNDOFF * max(1.0, abs(expected))
        exact = value_of(name, point)
        assert abs(float(exact) - expected) <= scale
        if isinstance(exact, Interval):
            assert exact.bounds.delta < max(1, abs(expected)) * 1e-40
        known = KNOWN[name]
        assert abs(known.on_floats(np.array([float(point)]))[0] - expected) <= scale
        tensor = torch.tensor([float(point)], dtype=torch.float64)
        assert abs(float(known.in_torch(torch, tensor)[0]) - expected) <= scale


def test_an_interval_holds_its_number() -> None:
    for name in SCALAR:
        for point in POINTS:
            if not has_value(name, point):
                continue
            narrow = bounds(value_of(name, point))
            wide = KNOWN[name].on_interval(bounds(point) + bounds(Fraction(0)))
            assert wide.a <= narrow.b
            assert narrow.a <= wide.b


def softmax_of_rows(scores: Any, allowed: Any) -> Any:
    result = np.zeros(scores.shape)
    for row in range(scores.shape[0]):
        weights = [math.exp(scores[row, j]) * allowed[row, j] for j in range(scores.shape[1])]
        for j, weight in enumerate(weights):
            result[row, j] = weight / math.fsum(weights)
    return result


def layer_norm_of_rows(x: Any, epsilon: float) -> Any:
    result = np.zeros(x.shape)
    for row in range(x.shape[0]):
        mean = math.fsum(x[row]) / x.shape[1]
        variance = math.fsum((entry - mean) ** 2 for entry in x[row]) / x.shape[1]
        for j, entry in enumerate(x[row]):
            result[row, j] = (entry - mean) / math.sqrt(variance + epsilon)
    return result


def test_values_agree_with_loops() -> None:
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    e = matmul(
        RowSoftmax(X * W * X.T, mask), LayerNorm(X, sympy.Rational(1, 100)), sympy.Inverse(W)
    )
    scores = x @ w @ x.T
    expected = softmax_of_rows(scores, np.tri(4)) @ layer_norm_of_rows(x, 0.01) @ np.linalg.inv(w)
    by_tree = tree_value(e, Assignment({"n": 4, "d": 3}, {"X": x, "W": w}, exact=False))
    by_diagram = evaluate(e, {"X": x, "W": w})
    # the products here have condition numbers below a hundred
    assert np.abs(by_tree - expected).max() < 1e-12
    assert np.abs(by_diagram - expected).max() < 1e-12


def test_values_of_heads_agree_with_loops() -> None:
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(4, 3)), rng.normal(size=(2, 3, 3))
    e = HeadSum(kron(gelu(X * F[h]), RowSoftmax(X * F[h] * X.T)), (h, H))
    expected = sum(
        np.kron(
            np.vectorize(SCALAR["gelu"])(x @ w[head]),
            softmax_of_rows(x @ w[head] @ x.T, np.ones((4, 4))),
        )
        for head in range(2)
    )
    assert np.abs(evaluate(e, {"X": x, "F": w}) - expected).max() < 1e-12


def test_torch_values() -> None:
    torch = pytest.importorskip("torch")
    x = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
    got = evaluate(RowSoftmax(X * X.T, mask), {"X": x})
    scores = (x @ x.T).masked_fill(torch.ones(4, 4).triu(1).bool(), -torch.inf)
    assert (got - torch.softmax(scores, -1)).abs().max() < 1e-12


# -- refusals --------------------------------------------------------------------------------------


def test_an_activation_of_any_name_has_no_value() -> None:
    with pytest.raises(OtimesError, match="f stands for any function"):
        evaluate(f(X), {"X": np.eye(2)})


def test_shapes_of_masks() -> None:
    with pytest.raises(ShapeError, match="mask of a softmax is n × n and its scores are n × m"):
        decide(RowSoftmax(R, mask), R)


def test_names_of_activations() -> None:
    with pytest.raises(LanguageError, match="named by an identifier"):
        Activation("not a name", X)


def test_a_counterexample_says_what_the_function_is() -> None:
    found = decide(f(-X), -f(X)).counterexample
    assert found is not None
    assert f"f = lambda x: {stand_in('f')}" in str(found)


def test_a_positive_symbol_is_nowhere_tried_as_another_number() -> None:
    """For c > 0 this is true, though no axiom says so."""
    shifted = Activation("tanh", matadd(relu(S), matmul(c, ones(n, n))))
    assert decide(relu(shifted), shifted, budget=2).status == "undecided"
    assert decide(relu(shifted), shifted, [(S, T)], budget=2).status == "undecided"


def test_an_undefined_norm_is_no_counterexample() -> None:
    """At a row of zeros LayerNorm without eps is not defined, so nothing is said about it."""
    assert decide(LayerNorm(ZeroMatrix(n, d)), ZeroMatrix(n, d)).status != "refuted"
