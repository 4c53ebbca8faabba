"""An a posteriori error bound for the inverse of a matrix, from the residual I - M X."""

import numpy as np

from otimes.numeric.rounding.linear import Near
from otimes.numeric.rounding.precision import gamma


def inverse(matrix: Near, computed: np.ndarray, unit: float) -> Near:
    """Return a computed inverse X with its error, for any algorithm.

    With M the true matrix and R = I - M X, M⁻¹ = X (I + R + R² + …). |R| is bounded by the computed
    residual, its rounding error, and the errors of M. The bound is infinite where the column sums
    of |R| reach 1. Source: Higham 2002, §14.2.
    """
    size = len(computed)
    identity = np.eye(size)
    residual = np.abs(identity - matrix.value @ computed)
    residual = residual + gamma(size + 1, unit) * (np.abs(matrix.value) @ np.abs(computed))
    residual = residual + 2 * unit * identity + matrix.error @ np.abs(computed)
    left = float(residual.sum(axis=0).max(initial=0.0))
    if not left < 1:
        return Near(computed, np.full_like(computed, np.inf))
    first = np.abs(computed) @ residual
    rest = first.max(axis=1, keepdims=True, initial=0.0) * left / (1 - left)
    return Near(computed, first + rest)
