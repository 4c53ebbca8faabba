"""What a model can do, in single numbers: its losses, and three scores for each head.

The scores are the usual ones for induction heads (Olsson et al. 2022; Elhage et al. 2021).  Prompts
for them are random tokens repeated once, drawn by Python's `random.Random(seed).random()`, which is
the same on every Python and every machine.
"""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Integer

from algebra.errors import OtimesError
from numeric.circuits.copying import small_eigenvalues, sum_over_size
from numeric.model import Model
from numeric.tokenizer import sample_tokens

PERIOD = 32
"""How long the random part of a repeated prompt is, unless asked otherwise."""


def repeated_prompts(
    d_vocab: int, period: int = PERIOD, n_prompts: int = 16, seed: int = 0
) -> Int[np.ndarray, "n_prompts two_periods"]:
    """Return prompts of `period` random tokens, each said twice.

    >>> repeated_prompts(10, period=3, n_prompts=1).tolist()
    [[8, 7, 4, 8, 7, 4]]
    """
    if period < 2:
        raise OtimesError(f"a repeated prompt needs a period of at least 2 tokens, not {period}")
    draw = random.Random(seed).random
    once = [[int(draw() * d_vocab) for _ in range(period)] for _ in range(n_prompts)]
    return np.tile(np.array(once, dtype=np.int64), (1, 2))


def losses(
    model: Model, tokens: Sequence[int] | Integer[np.ndarray, " pos"]
) -> Float[np.ndarray, " predicted"]:
    r"""Return the loss of predicting each next token, $-\log softmax(logits_i)_{t_{i+1}}$, in nats.

    Entry i is for token i + 1 of the prompt; the first token is predicted by nobody.
    """
    targets = np.asarray(tokens)[1:]
    if len(targets) == 0:
        raise OtimesError("a loss needs a prompt of at least two tokens, got one")
    logits = model.forward(tokens, ["logits"])["logits"][:-1]
    row_max = logits.max(axis=1)
    log_sum = row_max + np.log(np.exp(logits - row_max[:, None]).sum(axis=1))
    by_token: np.ndarray = log_sum - logits[np.arange(len(targets)), targets]
    return by_token


def mean_loss(model: Model, prompts: Int[np.ndarray, "prompt pos"]) -> float:
    """Return the loss averaged over all predicted tokens of all prompts, in nats."""
    return float(np.mean([losses(model, prompt) for prompt in prompts]))


def repeat_losses(
    model: Model, prompts: Int[np.ndarray, "prompt two_periods"]
) -> tuple[float, float]:
    """Return the mean loss on the first saying of repeated prompts, and on the second, in nats.

    The first token of the second saying is left out of both: nothing says that it starts there.
    """
    period = prompts.shape[1] // 2
    by_position = np.mean([losses(model, prompt) for prompt in prompts], axis=0)
    return float(by_position[: period - 1].mean()), float(by_position[period:].mean())


def mean_attention(
    model: Model,
    prompts: Int[np.ndarray, "prompt pos"],
    queries: Int[np.ndarray, " pair"],
    keys: Int[np.ndarray, " pair"],
) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return for each head its attention $A_{q k}$ averaged over pairs (q, k) and over prompts."""
    total = np.zeros((model.n_layers, model.n_heads))
    patterns = [f"pattern.{layer}" for layer in range(model.n_layers)]
    for prompt in prompts:
        places = model.forward(prompt, patterns)
        for layer in range(model.n_layers):
            total[layer] += places[f"pattern.{layer}"][:, queries, keys].mean(axis=1)
    return total / len(prompts)


def previous_token_score(
    model: Model, prompts: Int[np.ndarray, "prompt pos"] | None = None
) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the mean attention to the token before, $mean_i A_{i, i-1}$, of each head.

    1 is a head that always looks one token back.  Source: Olsson et al. 2022.
    """
    prompts = repeated_prompts(model.d_vocab) if prompts is None else prompts
    queries = np.arange(1, prompts.shape[1])
    return mean_attention(model, prompts, queries, queries - 1)


def prefix_matching_score(
    model: Model, prompts: Int[np.ndarray, "prompt two_periods"] | None = None
) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the mean attention from a repeated token to the token after its earlier occurrence.

    On random tokens of length p said twice: $mean_{i ≥ p} A_{i, i-p+1}$ of each head.  1 is an
    induction head without fault.  Source: Olsson et al. 2022, “Per-head analysis”.
    """
    prompts = repeated_prompts(model.d_vocab) if prompts is None else prompts
    period = prompts.shape[1] // 2
    queries = np.arange(period, 2 * period)
    return mean_attention(model, prompts, queries, queries - period + 1)


def copying_score(model: Model) -> Float[np.ndarray, "n_layers n_heads"]:
    r"""Return $\sum Re λ / \sum |λ|$ over the eigenvalues λ of each head's full OV circuit.

    The circuit $W_E W_V W_O W_U$ is d_vocab × d_vocab, but of rank ≤ d_head: apart from zeros its
    eigenvalues are those of the d_head × d_head matrix $W_O W_U W_E W_V$, which is what is used
    (`numeric.circuits.copying` has the eigenvalues themselves, and the bare circuit).
    1 is a head that raises the very tokens that it attends to; -1 one that lowers them.  Norms
    are left out, but for their gains if those were folded into the weights.
    Source: Elhage et al. 2021, “Detecting copying behavior”.
    """
    return sum_over_size(small_eigenvalues(model, "full", np.float64))


def figures(model: Model) -> dict[str, Any]:
    """Return the part of a card that the weights alone decide, rounded to four places.

    `losses_nats` on the bundled sample and on repeated random tokens; `scores` by layer and head.
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
