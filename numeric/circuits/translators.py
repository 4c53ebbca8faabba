r"""Translators: affine maps from a place in the middle to the end, for lenses that are fitted.

The logit lens reads a stream in the middle as if it stood at the end. A translator first maps it
there, $x ↦ x A + b$, with A and b fitted to recorded rows; between a head and the stream the same
map is an attention lens. Fitted by least squares, it is the best affine map there is for the rows
it was fitted to; the identity, which is the logit lens, is one of them.

Source: Belrose et al. 2023, “Eliciting Latent Predictions with the Tuned Lens”, who minimise the
KL divergence of logits instead; Sakarvadia et al. 2023, “Attention Lens”.
"""

import numpy as np
from jaxtyping import Float

from algebra.errors import ShapeError


def fit_translator(
    rows: Float[np.ndarray, "n_rows d_from"], target: Float[np.ndarray, "n_rows d_to"]
) -> tuple[Float[np.ndarray, "d_from d_to"], Float[np.ndarray, " d_to"]]:
    r"""Return A and b with the least $‖X A + 1 b - Y‖_F$; of several such, the smallest.

    Proved by: translator_no_worse.  Source: Belrose et al. 2023; Golub and Van Loan, §5.3.

    >>> A, b = fit_translator(np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [3.0], [5.0]]))
    >>> A.round(12).tolist(), b.round(12).tolist()
    ([[2.0]], [1.0])

    Raises: ShapeError if there are not as many rows as targets.
    """
    if len(rows) != len(target):
        raise ShapeError(f"a translator was given {len(rows)} rows and {len(target)} targets")
    with_ones = np.hstack([rows, np.ones((len(rows), 1))])
    found = np.linalg.lstsq(with_ones, target, rcond=None)[0]
    return found[:-1], found[-1]
