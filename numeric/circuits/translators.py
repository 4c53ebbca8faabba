r"""Translators: affine maps from an intermediate activation to the final residual stream.

The logit lens decodes an intermediate residual stream as if it were the final one. A translator
maps it first, $x ↦ x A + b$, with A and b fitted to recorded rows (tuned lens); applied to the
output of a head it is an attention lens. The least-squares fit has the smallest squared error of
all affine maps on the rows it was fitted to, thus at most that of the identity, the logit lens.

Source: Belrose et al. 2023, “Eliciting Latent Predictions with the Tuned Lens”, who minimise the
KL divergence of logits instead; Sakarvadia et al. 2023, “Attention Lens”.
"""

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import ShapeError


def fit_translator(
    rows: Float[np.ndarray, "n_rows d_from"], target: Float[np.ndarray, "n_rows d_to"]
) -> tuple[Float[np.ndarray, "d_from d_to"], Float[np.ndarray, " d_to"]]:
    r"""Return A and b that minimise $‖X A + 1 b - Y‖_F$; of several, those of smallest norm.

    Proved by: translator_no_worse.  Source: Belrose et al. 2023; Golub and Van Loan, §5.3.

    >>> A, b = fit_translator(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]))
    >>> A.round(12).tolist(), b.round(12).tolist()
    ([[2.0]], [1.0])

    Raises: ShapeError if the numbers of rows and targets differ.
    """
    if len(rows) != len(target):
        raise ShapeError(f"the numbers of rows and targets differ: {len(rows)} and {len(target)}")
    with_ones = np.hstack([rows, np.ones((len(rows), 1))])
    found = np.linalg.lstsq(with_ones, target, rcond=None)[0]
    return found[:-1], found[-1]
