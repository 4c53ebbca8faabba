"""The softmax of the attention-only forward pass, checked against SciPy.

Theorems take attention patterns as given; that a pattern *is* the softmax of the unmasked scores is
their definition. Here SciPy computes it from the recorded scores.
"""

from collections.abc import Iterator

import numpy as np
import scipy.special
from jaxtyping import Float

from otimes.numeric.binding import Run
from otimes.numeric.functions import causal_mask
from otimes.numeric.rounding.functions import softmax
from otimes.numeric.rounding.linear import Near
from otimes.numeric.rounding.precision import precision, worst_ratio

DOUBLE = precision("float64")


def pattern_ratios(run: Run) -> Iterator[tuple[str, float]]:
    """Yield (where, worst error/bound) of the recorded patterns against SciPy's softmax."""
    if "pattern" not in run.arrays:
        return
    for place in np.ndindex(run.arrays["pattern"].shape[:2]):
        pattern = softmax_of_visible(run.arrays["scores"][place])
        bound = softmax_bound(run.arrays["scores"][place])
        ratio = worst_ratio(run.arrays["pattern"][place], pattern, bound)
        yield f"layer {place[0]}, head {place[1]}", ratio


def softmax_of_visible(
    scores: Float[np.ndarray, "query key"],
) -> Float[np.ndarray, "query key"]:
    """Return softmax over the keys up to each query's own position; 0 elsewhere."""
    visible = np.tril(np.ones(scores.shape)) == 1
    pattern: np.ndarray = scipy.special.softmax(np.where(visible, scores, -np.inf), axis=1)
    return pattern


def softmax_bound(scores: Float[np.ndarray, "query key"]) -> Float[np.ndarray, "query key"]:
    """Return the entrywise bound on the difference of two computations of the same softmax."""
    bound: np.ndarray = softmax(Near.exactly(scores), causal_mask(len(scores)), DOUBLE).error
    return 2 * bound
