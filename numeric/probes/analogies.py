r"""Vector arithmetic: $e_b - e_a + e_c ≈ e_d$ for tokens in the same relation, a : b = c : d.

If a vector is the sum of a part for each attribute, $e = f_{stem} + g_{form}$, the four make a
parallelogram and the equation is exact.

Source: Mikolov, Yih and Zweig 2013; Linzen 2016, “Issues in evaluating semantic spaces using word
analogies”; Park, Choe and Veitch 2024, “The Linear Representation Hypothesis and the Geometry of
Large Language Models”.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.probes.data import read_rows


def analogies(vectors: Any, quadruples: Sequence[Sequence[int]] | np.ndarray) -> np.ndarray:
    r"""Return how near d comes to completing “a is to b as c is to d”: its rank, 0 for the nearest.

    Of all vectors, those nearest to $e_b - e_a + e_c$ come first.

    `vectors` [token, d], such as `W_E`; quadruples are (a, b, c, d), row numbers. Nearness is the
    cosine; a, b and c are left out, as is usual: without that the nearest is mostly c itself.

    Proved by: parallelogram_is_additive.

    >>> vectors = [[0.0, 1], [2, 1], [0, 3], [2, 3], [9, 0]]
    >>> analogies(vectors, [[0, 1, 2, 3]]).tolist()
    [0]

    Raises: ShapeError unless the quadruples are rows of four numbers; OtimesError for a row that
    does not exist, or d among a, b and c.
    """
    rows = read_rows(vectors, "the vectors")
    four = np.asarray(quadruples)
    if four.ndim != 2 or four.shape[1] != 4 or four.dtype.kind not in "iu":
        raise ShapeError(f"quadruples must be rows of four row numbers, got {four.shape}")
    if four.size and not (four.min() >= 0 and four.max() < len(rows)):
        raise OtimesError(
            f"row numbers must be 0 to {len(rows) - 1}, got {four.min()} to {four.max()}"
        )
    if (four[:, :3] == four[:, 3:]).any():
        raise OtimesError("d must be another vector than a, b and c, which are left out")
    a, b, c, d = four.T
    goal = rows[b] - rows[a] + rows[c]
    sizes = np.linalg.norm(rows, axis=1)
    near = goal @ rows.T / np.where(sizes, sizes, 1.0)
    np.put_along_axis(near, four[:, :3], -np.inf, axis=1)
    return np.asarray((near > near[np.arange(len(d)), d][:, None]).sum(axis=1))
