"""The operations in more digits than the bounds speak of: mpmath, 40 digits, entry by entry."""

from collections.abc import Callable

import mpmath
import numpy as np

mpmath.mp.dps = 40
Exact = np.ndarray  # of mpf


def exact(array: np.ndarray) -> Exact:
    return np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])(array)


def linear(rows: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> Exact:
    product = exact(rows) @ exact(weight)
    return product if bias is None else product + exact(bias)


def norm(kind: str, eps: float, rows: np.ndarray, gain: np.ndarray, bias: np.ndarray | None):
    x = exact(rows)
    width = x.shape[1]
    c = x - x.sum(axis=1, keepdims=True) / width if kind == "layer" else x
    square = (c**2).sum(axis=1, keepdims=True) / width + mpmath.mpf(eps)
    value = c / np.vectorize(mpmath.sqrt, otypes=[object])(square) * exact(gain)
    return value if bias is None else value + exact(bias)


def softmax(scores: np.ndarray) -> Exact:
    return softmax_of(exact(scores))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Exact:
    scores = exact(q) @ exact(k).T / mpmath.sqrt(q.shape[1])
    return softmax_of(scores) @ exact(v)


def softmax_of(scores: Exact) -> Exact:
    weights = np.vectorize(mpmath.exp, otypes=[object])(scores)
    weights = np.where(np.tri(*scores.shape, dtype=bool), weights, mpmath.mpf(0))
    return weights / weights.sum(axis=1, keepdims=True)


def _gelu_tanh(x: mpmath.mpf) -> mpmath.mpf:
    inner = mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)
    return x / 2 * (1 + mpmath.tanh(inner))


ACTIVATIONS: dict[str, Callable[[mpmath.mpf], mpmath.mpf]] = {
    "relu": lambda x: max(x, mpmath.mpf(0)),
    "gelu": lambda x: x * mpmath.ncdf(x),
    "gelu_tanh": _gelu_tanh,
    "silu": lambda x: x / (1 + mpmath.exp(-x)),
    "relu2": lambda x: max(x, 0) ** 2,
    "quick_gelu": lambda x: x / (1 + mpmath.exp(-mpmath.mpf("1.702") * x)),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh,
    "exp": mpmath.exp,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}


def activation(name: str, x: np.ndarray) -> Exact:
    return np.vectorize(ACTIVATIONS[name], otypes=[object])(exact(x))


def distance(found: np.ndarray, true: Exact) -> np.ndarray:
    """Return |found - true| as floats: subtracted in 40 digits."""
    return np.abs(exact(found) - true).astype(float)
