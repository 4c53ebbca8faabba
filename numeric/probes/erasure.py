r"""Linear erasure: activations from which a concept can no longer be read linearly.

    projection   $x ↦ x (I - U^T (U U^T)^{-1} U)$: nothing is left along the rows of U
    LEACE        $x ↦ x - (x - μ) W P W^{-1}$, W the whitening of X and P the projection on the
                 columns of $W Σ_{XZ}$

The best linear predictor of Z from X is constant if and only if the cross-covariance Σ_XZ is zero.
LEACE makes it zero, and of all affine maps that do, it moves X least in mean square. A projection
on the direction of a probe does not: another probe may find another direction.

Source: Ravfogel et al. 2020, “Null It Out”; Belrose et al. 2023, “LEACE: Perfect linear concept
erasure in closed form”.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.brief import Brief
from otimes.numeric.given import real_array, real_number
from otimes.numeric.probes.data import concept_of, read_rows


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Eraser(Brief):
    """An affine map of activations, $x ↦ x - (x - μ) E$; `rank` dimensions are removed."""

    mean: Float[np.ndarray, " d"]
    removed: Float[np.ndarray, "d d"]
    rank: int

    def __call__(self, activations: Any) -> np.ndarray:
        """Return activations [*, d] without the concept. Raises: ShapeError for another width."""
        rows = real_array(activations, "activations")
        if rows.ndim == 0 or rows.shape[-1] != len(self.mean):
            raise ShapeError(f"the eraser is for {len(self.mean)} dimensions, got {rows.shape}")
        return np.asarray(rows - (rows - self.mean) @ self.removed)


def erase_directions(directions: Any) -> Eraser:
    r"""Return the orthogonal projection that removes some directions [k, d] or one [d].

    It removes what lies in their span and leaves the rest: $x (I - U^T (U U^T)^{-1} U)$.

    Proved by: projection_erases_direction, projection_erases_once.

    >>> erase_directions([3.0, 4.0])(np.array([[1.0, 0.0]])).round(2).tolist()
    [[0.64, -0.48]]

    Raises: OtimesError if they are all zero.
    """
    given = np.asarray(directions)
    rows = read_rows(given[None] if given.ndim == 1 else given, "directions")
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    there = sizes > sizes[0] * max(rows.shape) * np.finfo(np.float64).eps
    if not sizes[0]:
        raise OtimesError("the directions are all zero: there is nothing to remove")
    span = basis[there]
    return Eraser(np.zeros(rows.shape[1]), span.T @ span, int(there.sum()))


def leace(activations: Any, concept: Any, *, tolerance: float = 1e-10) -> Eraser:
    r"""Return LEACE: the affine map that erases a concept linearly and changes least.

    `activations` [example, d]; `concept` is labels [example], or numbers [example, k]. On these
    examples the cross-covariance with the concept is zero afterwards, so that no linear classifier
    or regression is better than a constant. Directions of X with less than `tolerance` of the
    largest variance count as constant.

    Proved by: leace_erases, leace_moves_least, no_covariance_no_linear_information.

    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(2, size=300)
    >>> rows = rng.standard_normal((300, 5)) + 2 * labels[:, None]
    >>> clean = leace(rows, labels)(rows)
    >>> gap = clean[labels == 1].mean(axis=0) - clean[labels == 0].mean(axis=0)
    >>> bool(np.abs(gap).max() < 1e-12)
    True

    Raises: ShapeError for shapes that do not fit, OtimesError for a concept of one class only.
    """
    rows = read_rows(activations)
    columns = concept_of(concept, len(rows))
    if not 0 <= real_number(tolerance, "tolerance") < 1:
        raise OtimesError(f"tolerance must be from 0 to below 1, got {tolerance}")
    mean = rows.mean(axis=0)
    X, Z = rows - mean, _scaled(columns)
    values, basis = np.linalg.eigh(X.T @ X / len(X))
    kept = values > tolerance * max(values[-1], 0.0)
    roots, basis = np.sqrt(values[kept]), basis[:, kept]
    whiten, colour = (basis / roots) @ basis.T, (basis * roots) @ basis.T
    crossed = whiten @ (X.T @ Z / len(X))
    left, sizes, _ = np.linalg.svd(crossed, full_matrices=False)
    there = sizes > len(X) ** 0.5 * max(crossed.shape) * np.finfo(np.float64).eps
    span = left[:, there]
    return Eraser(mean, whiten @ span @ span.T @ colour, int(there.sum()))


def _scaled(columns: np.ndarray) -> np.ndarray:
    """Return columns less their means, those that are not constant, each with the largest entry 1.

    What erases a concept erases any multiple of it, so that its units do not matter.
    """
    centred = columns - columns.mean(axis=0)
    sizes = np.abs(centred).max(axis=0)
    rounding = len(columns) * np.finfo(np.float64).eps * np.abs(columns).max(axis=0)
    there = sizes > rounding
    return np.asarray(centred[:, there] / sizes[there])
