"""The one nonlinear step of the attention-only pass, computed a second time by another library.

Theorems take patterns as they are; that a pattern *is* the softmax of the visible scores is the
definition they stand on. Here SciPy computes it from the recorded scores.
"""

from collections.abc import Iterator

import numpy as np
import scipy.special
from jaxtyping import Float

from numeric.binding import Run
from numeric.rounding import UNIT_ROUNDOFF, worst_ratio

SAFETY = 2.0  # the bound is first order in u; twice it covers what was left out


def pattern_ratios(run: Run) -> Iterator[tuple[str, float]]:
    """Yield (where, worst error/bound) of the recorded patterns against SciPy's softmax."""
    if "pattern" not in run.arrays:
        return
    for place in np.ndindex(run.arrays["pattern"].shape[:2]):
        pattern = softmax_of_visible(run.arrays["scores"][place])
        bound = softmax_bound(run.arrays["scores"][place], pattern)
        ratio = worst_ratio(run.arrays["pattern"][place], pattern, bound)
        yield f"layer {place[0]}, head {place[1]}", ratio


def softmax_of_visible(
    scores: Float[np.ndarray, "query key"],
) -> Float[np.ndarray, "query key"]:
    """Return softmax over the keys up to each query's own position; 0 elsewhere."""
    visible = np.tril(np.ones(scores.shape)) == 1
    pattern: np.ndarray = scipy.special.softmax(np.where(visible, scores, -np.inf), axis=1)
    return pattern


def softmax_bound(
    scores: Float[np.ndarray, "query key"], pattern: Float[np.ndarray, "query key"]
) -> Float[np.ndarray, "query key"]:
    """Return how far two computations of the same softmax may lie apart, entrywise.

    Relative to an entry: taking off the maximum rounds its exponent by u times the gap to the
    maximum, exp and the division round a few times, and the normalising sum brings the mean gap and
    one rounding for each of its terms. Two computations: twice. First order in u, times `SAFETY`.
    """
    visible = np.tril(np.ones(scores.shape)) == 1
    highest = np.where(visible, scores, -np.inf).max(axis=1, keepdims=True)
    gap = np.where(visible, highest - scores, 0.0)
    mean_gap = (pattern * gap).sum(axis=1, keepdims=True)
    relative = gap + mean_gap + scores.shape[1] + 8
    bound: np.ndarray = 2 * SAFETY * UNIT_ROUNDOFF["float64"] * relative * pattern
    return bound
