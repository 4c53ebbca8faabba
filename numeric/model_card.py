"""The metrics of a model card: losses and head scores, computed from the weights."""

from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.numeric.circuits.copying import small_eigenvalues, sum_over_size
from otimes.numeric.metrics import (
    PERIOD,
    losses,
    prefix_matching_score,
    previous_token_score,
    repeat_losses,
    repeated_prompts,
)
from otimes.numeric.model import Model
from otimes.numeric.tokenizer import sample_tokens


def copying_score(model: Model) -> Float[np.ndarray, "n_layers n_heads"]:
    r"""Return $\sum Re λ / \sum |λ|$ over the eigenvalues λ of each head's full OV circuit.

    The circuit $W_E W_V W_O W_U$ is d_vocab × d_vocab, but of rank ≤ d_head: its nonzero
    eigenvalues are those of the d_head × d_head matrix $W_O W_U W_E W_V$, which is used here
    (`otimes.numeric.circuits.copying` returns the eigenvalues themselves, and those of $W_V W_O$).
    The score is 1 for a head that increases the logits of the tokens it attends to, -1 for one that
    decreases them. Norms are ignored, except for gains that were folded into the weights.
    Source: Elhage et al. 2021, “Detecting copying behavior”.
    """
    return sum_over_size(small_eigenvalues(model, "full", np.float64))


def figures(model: Model) -> dict[str, Any]:
    """Return the metrics of a model card that depend on the weights only, rounded to 4 decimals.

    `losses_nats` on the bundled sample and on repeated random tokens; `scores` [layer][head].
    """
    prompts = repeated_prompts(model.d_vocab, period=min(PERIOD, model.n_ctx // 2))
    first, second = repeat_losses(model, prompts)
    sample = sample_tokens(model.n_ctx)
    return {
        "losses_nats": {
            "sample_text": round(float(losses(model, sample).mean()), 4),
            "random_tokens_first_time": round(first, 4),
            "random_tokens_repeated": round(second, 4),
        },
        "scores": {
            "previous_token": previous_token_score(model, prompts).round(4).tolist(),
            "prefix_matching": prefix_matching_score(model, prompts).round(4).tolist(),
            "copying": copying_score(model).round(4).tolist(),
        },
    }
