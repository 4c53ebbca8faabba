"""Scores of attention patterns: previous token, duplicate token and prefix matching.

The prompts are repeated random tokens (`otimes.numeric.metrics.repeated_prompts`) by default, or
your own.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from otimes.numeric.circuits.batches import over_prompts
from otimes.numeric.circuits.result import Named
from otimes.numeric.circuits.weights import check_head
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.metrics import (
    attention_totals,
    prefix_matching_pairs,
    previous_token_pairs,
    repeated_prompts,
)
from otimes.numeric.prompt import Prompts, read_prompt, read_prompts

SCORES = ("previous token", "duplicate token", "prefix matching")


def head_behaviour(model: ModelSource, prompts: Prompts | None = None) -> Named:
    r"""Return three scores of each head [score, layer, head], from 0 to 1.

    previous token: mean over i of $A_{i, i-1}$; duplicate token: mean of
    $\sum_{j<i, t_j=t_i} A_{ij}$ over those i whose token occurred before; prefix matching: mean of
    $\sum_{j<i, t_j=t_i} A_{i, j+1}$ over the same i, NaN if no token occurs twice. On the prompts
    by default, p random tokens twice, it is the mean of $A_{i, i-p+1}$ over the second half.
    `prompts` have one length.
    Source: Olsson et al. 2022; Wang et al. 2023, “Interpretability in the wild”.

    >>> from otimes.numeric.load import load_model
    >>> head_behaviour(load_model("induction")).at(score="prefix matching").values.max() > 0.5
    np.True_
    """
    model = load_model(model)
    tokens = read_prompts(model, repeated_prompts(model.d_vocab) if prompts is None else prompts)
    previous, same = previous_token_pairs(tokens.shape[1]), same_token_pairs(tokens)
    if prompts is None:
        prefix = np.broadcast_to(prefix_matching_pairs(tokens.shape[1]), same.shape)
    else:
        prefix = np.roll(same, 1, axis=2)  # the token after; of a query there is one before it
    totals = attention_totals(model, tokens, previous, same, prefix)
    counts = (previous.sum() * len(tokens), *(m.any(axis=2).sum() for m in (same, prefix)))
    with np.errstate(invalid="ignore"):  # NaN where no token occurs twice
        values = totals / np.array(counts, dtype=float)[:, None, None]
    return Named("attention score", values, ("score", "layer", "head"), {"score": SCORES})


@over_prompts
def head_patterns(model: ModelSource, prompt: str | Sequence[int], layer: int) -> Named:
    """Return the attention patterns of a layer on a prompt [head, query, key], with its tokens.

    >>> from otimes.numeric.load import load_model
    >>> head_patterns(load_model("one_layer"), "x = x", 0)
    <attention pattern [head 4, query 3, key 3] float64>

    Raises: OtimesError for a layer out of range, or an invalid prompt.
    """
    model = load_model(model)
    check_head(model, layer, 0)
    tokens, strings = read_prompt(model, prompt)
    pattern = model.forward(tokens, [f"pattern.{layer}"])[f"pattern.{layer}"]
    labels = {"query": strings, "key": strings}
    return Named("attention pattern", pattern, ("head", "query", "key"), labels)


def duplicate_token_score(model: ModelSource, prompts: Prompts) -> np.ndarray:
    """Return the mean attention to earlier occurrences of the same token [layer, head].

    The mean is over the positions of all prompts whose token occurred before; NaN if none did.
    Source: Wang et al. 2023, “Interpretability in the wild”, duplicate token heads.

    >>> from otimes.numeric.load import load_model
    >>> duplicate_token_score(load_model("one_layer"), np.array([[7, 3, 7]])).shape
    (1, 4)
    """
    model = load_model(model)
    tokens = read_prompts(model, prompts)
    same = same_token_pairs(tokens)
    (total,) = attention_totals(model, tokens, same)
    with np.errstate(invalid="ignore"):
        mean: np.ndarray = total / float(same.any(axis=2).sum())
    return mean


def same_token_pairs(tokens: Int[np.ndarray, "prompt pos"]) -> Bool[np.ndarray, "prompt query key"]:
    """Return where a key is an earlier occurrence of the query's token."""
    return np.tril(tokens[:, :, None] == tokens[:, None, :], k=-1)
