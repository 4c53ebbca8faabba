"""The inverse of a matrix, judged after the fact: by how far the product is from the identity."""

import numpy as np

from numeric.rounding.linear import Near
from numeric.rounding.precision import gamma


def inverse(matrix: Near, computed: np.ndarray, unit: float) -> Near:
    """Return a computed inverse X with its error, however it was computed.

    With M the true matrix and R = I - M X, M⁻¹ = X (I + R + R² + …); |R| is at most what is
    measured, with the rounding of that, and with the errors of M. Without bound where the column
    sums of |R| reach 1. Source: Higham 2002, §14.2.
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
