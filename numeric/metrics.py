"""Metrics of a model: its losses, and two scores for each head.

The scores are the usual ones for induction heads (Olsson et al. 2022; Elhage et al. 2021). Their
prompts are repeated sequences of random tokens, drawn by Python's `random.Random(seed).random()`,
which is the same on every platform.
"""

import random
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int, Shaped

from otimes.algebra.errors import OtimesError
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import Prompts, is_batch, read_prompts, together

PERIOD = 32
"""The default length of the repeated sequence in a prompt, in tokens."""


def repeated_prompts(
    d_vocab: int, period: int = PERIOD, n_prompts: int = 16, seed: int = 0
) -> Int[np.ndarray, "n_prompts two_periods"]:
    """Return prompts of `period` random tokens, followed by the same tokens again.

    >>> repeated_prompts(10, period=3, n_prompts=1).tolist()
    [[8, 7, 4, 8, 7, 4]]
    """
    if period < 2:
        raise OtimesError(f"period must be at least 2 tokens, got {period}")
    draw = random.Random(seed).random
    once = [[int(draw() * d_vocab) for _ in range(period)] for _ in range(n_prompts)]
    return np.tile(np.array(once, dtype=np.int64), (1, 2))


def losses(model: ModelSource, tokens: Prompts) -> Float[np.ndarray, "*prompts predicted"]:
    r"""Return the loss of predicting each next token, $-\log softmax(logits_i)_{t_{i+1}}$, in nats.

    Entry i is the loss of token i + 1 of the prompt; the first token is not predicted. The prompts
    of a batch come first.
    Raises: OtimesError for a prompt of fewer than two tokens.
    """
    model = load_model(model)
    rows = read_prompts(model, tokens)
    if rows.shape[1] == 1:
        raise OtimesError("a loss needs a prompt of at least two tokens, got one")
    by_token = np.stack([_losses(model, row) for row in rows])
    return by_token if is_batch(tokens) else by_token[0]


def _losses(model: Model, tokens: Int[np.ndarray, " pos"]) -> Float[np.ndarray, " predicted"]:
    return losses_of_logits(model.forward(tokens, ["logits"])["logits"], tokens)


def losses_of_logits(
    logits: Float[np.ndarray, "pos d_vocab"], tokens: Int[np.ndarray, " pos"]
) -> Float[np.ndarray, " predicted"]:
    """Return the loss of each next token from the logits of a prompt, in nats.

    >>> losses_of_logits(np.zeros((2, 4)), np.array([0, 3])).round(4).tolist()
    [1.3863]
    """
    targets, before = tokens[1:], logits[:-1]
    row_max = before.max(axis=1)
    log_sum = row_max + np.log(np.exp(before - row_max[:, None]).sum(axis=1))
    by_token: np.ndarray = log_sum - before[np.arange(len(targets)), targets]
    return by_token


def mean_loss(model: ModelSource, prompts: Int[np.ndarray, "prompt pos"]) -> float:
    """Return the loss averaged over all predicted tokens of all prompts, in nats."""
    model = load_model(model)
    return float(np.mean([losses(model, prompt) for prompt in prompts]))


def repeat_losses(
    model: ModelSource, prompts: Int[np.ndarray, "prompt two_periods"]
) -> tuple[float, float]:
    """Return the mean losses on the first and on the second half of repeated prompts, in nats.

    The first token of the second half belongs to neither: the repetition is not predictable yet.
    """
    model = load_model(model)
    period = prompts.shape[1] // 2
    by_position = np.mean([losses(model, prompt) for prompt in prompts], axis=0)
    return float(by_position[: period - 1].mean()), float(by_position[period:].mean())


def attention_totals(
    model: ModelSource, prompts: Prompts, *chosen: Shaped[np.ndarray, "... query key"]
) -> Float[np.ndarray, "chosen n_layers n_heads"]:
    r"""Return the attention of each head, summed over prompts, $Σ_{p, i, j} M_{pij} A_{pij}$.

    Each M of `chosen` is an array [query, key], or [prompt, query, key]: 1 where attention counts.
    The model is run once, on several prompts at a time.

    >>> attention_totals("one_layer", [[5, 6]], np.ones((2, 2))).round(12).tolist()
    [[[2.0, 2.0, 2.0, 2.0]]]
    """
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    n_prompts, n_pos = tokens.shape
    totals = np.zeros((len(chosen), model.n_layers, model.n_heads))
    masks = [np.broadcast_to(each, (n_prompts, n_pos, n_pos)) for each in chosen]
    places = [f"pattern.{layer}" for layer in range(model.n_layers)]
    for some in tracked(together(n_prompts, n_pos), "reading prompts"):
        patterns = model.forward(tokens[some], places)
        for layer, place in enumerate(places):
            for number, mask in enumerate(masks):
                totals[number, layer] += np.einsum("phij,pij->h", patterns[place], mask[some])
    return totals


def mean_attention(
    model: ModelSource,
    prompts: Prompts,
    queries: Int[np.ndarray, " pair"],
    keys: Int[np.ndarray, " pair"],
) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the attention $A_{q k}$ of each head, averaged over the pairs (q, k) and prompts."""
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    n_prompts, n_pos = tokens.shape
    chosen = np.zeros((n_pos, n_pos))
    np.add.at(chosen, (queries, keys), 1.0)
    (total,) = attention_totals(model, tokens, chosen)
    mean: np.ndarray = total / (len(queries) * n_prompts)
    return mean


def pairs(queries: Int[np.ndarray, " pair"], n_pos: int, before: int) -> Float[np.ndarray, "q k"]:
    """Return a matrix with 1 for each query and the key `before` positions before it, else 0.

    >>> pairs(np.array([1, 2]), 3, 1).tolist()
    [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    chosen = np.zeros((n_pos, n_pos))
    chosen[queries, queries - before] = 1.0
    return chosen


def previous_token_pairs(n_pos: int) -> Float[np.ndarray, "query key"]:
    """Return 1 for each position but the first and the one before it."""
    return pairs(np.arange(1, n_pos), n_pos, 1)


def prefix_matching_pairs(n_pos: int) -> Float[np.ndarray, "query key"]:
    """Return 1 for each position i of the second half and i - p + 1, p half the length."""
    period = n_pos // 2
    return pairs(np.arange(period, 2 * period), n_pos, period - 1)


def previous_token_score(
    model: ModelSource, prompts: Prompts | None = None
) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the mean attention to the previous token, $mean_i A_{i, i-1}$, of each head.

    A perfect previous-token head has the score 1. Source: Olsson et al. 2022.
    """
    return _mean_over(model, prompts, previous_token_pairs)


def prefix_matching_score(
    model: ModelSource, prompts: Prompts | None = None
) -> Float[np.ndarray, "n_layers n_heads"]:
    """Return the mean attention from a repeated token to the token after its earlier occurrence.

    On p random tokens repeated once: $mean_{i ≥ p} A_{i, i-p+1}$ of each head. A perfect induction
    head has the score 1. Source: Olsson et al. 2022, “Per-head analysis”.
    """
    return _mean_over(model, prompts, prefix_matching_pairs)


def _mean_over(
    model: ModelSource, prompts: Prompts | None, pairs_of: Callable[[int], np.ndarray]
) -> Float[np.ndarray, "n_layers n_heads"]:
    model = load_model(model)
    tokens = read_prompts(model, repeated_prompts(model.d_vocab) if prompts is None else prompts)
    return mean_attention(model, tokens, *np.nonzero(pairs_of(tokens.shape[1])))
