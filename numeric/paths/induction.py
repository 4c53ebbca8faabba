r"""The induction mechanism of a model, in numbers: the heads, their composition, and the loss.

On repeated random tokens, only the first occurrence of a token helps to predict the repetition:

1. Previous-token and prefix-matching scores find the previous-token heads and induction heads.
2. The scores of induction heads are split exactly into direct, Q-, K- and Q+K-composition
   (`scores`): the margin of the right key over the others by composition, and the attention left on
   it when that composition is removed from the scores.
3. The decrease of the loss in the second half is split by path, with frozen patterns (`loss`).
4. Heads are ablated in the model itself, so that patterns change too.

A head whose ablation (4) increases the loss, although its paths (3) do not matter, acts through the
attention patterns of other heads; 2 shows by which composition.

Source: Elhage et al. 2021, “Induction heads”; Olsson et al. 2022.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.metrics import (
    losses,
    prefix_matching_score,
    previous_token_score,
    repeat_losses,
    repeated_prompts,
)
from otimes.numeric.model import Model
from otimes.numeric.paths.ensemble import Paths, paths
from otimes.numeric.paths.loss import LossTable, loss_table
from otimes.numeric.paths.orders import Heads, path_name
from otimes.numeric.paths.scores import COMPOSITIONS, ScoreTerms

MATCHING = 0.5
"""The score above which a head counts as a previous-token head, or as an induction head."""


@dataclass(frozen=True, slots=True)
class Matching:
    """The scores of one induction head by composition; means over queries.

    The correct key is the token after the earlier occurrence of the query's token. `ahead` is the
    margin of its score over the mean of the other keys, by composition; `ahead_by_writer` is the
    K-composition part by the earlier head. `attention` is the attention to the correct key, and
    `without` the attention when a composition is removed from the scores.
    """

    head: tuple[int, int]
    ahead: dict[str, float]
    ahead_by_writer: dict[str, float]
    attention: float
    without: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Induction:
    """The four analyses of a model; losses are in nats per token, on the second half of prompts."""

    previous_token: Float[np.ndarray, "n_layers n_heads"]
    prefix_matching: Float[np.ndarray, "n_layers n_heads"]
    matching: tuple[Matching, ...]
    first_loss: float
    table: LossTable
    loss_without: dict[str, float]

    @property
    def looking_back(self) -> Heads:
        """The previous-token heads."""
        return _above(self.previous_token)


def induction(model: ModelSource, period: int = 24, n_prompts: int = 2) -> Induction:
    """Return the four analyses of a model on repeated random tokens.

    Raises: OtimesError if 2 · `period` exceeds n_ctx, or if the model has no induction head.
    """
    model = load_model(model)
    if 2 * period > model.n_ctx:
        raise OtimesError(
            f"{model.name} takes at most n_ctx={model.n_ctx} tokens, and {period} repeated tokens"
            f" are {2 * period}"
        )
    prompts = repeated_prompts(model.d_vocab, period, n_prompts)
    previous, matching = previous_token_score(model, prompts), prefix_matching_score(model, prompts)
    inducing = _above(matching)
    if not inducing:
        raise OtimesError(
            f"{model.name} has no induction head: the largest prefix-matching score is"
            f" {matching.max(initial=0.0):.2f}"
        )
    on_prompts = [paths(model, prompt) for prompt in prompts]
    return Induction(
        previous_token=previous,
        prefix_matching=matching,
        matching=tuple(_matching(on_prompts, head, period) for head in inducing),
        first_loss=repeat_losses(model, prompts)[0],
        table=loss_table(model, list(prompts), virtual_heads=True, start=period),
        loss_without=_losses_without(model, prompts, _above(previous), inducing),
    )


def _above(scores: Float[np.ndarray, "n_layers n_heads"]) -> Heads:
    return tuple((int(layer), int(head)) for layer, head in np.argwhere(scores > MATCHING))


def _matching(on_prompts: Sequence[Paths], head: tuple[int, int], period: int) -> Matching:
    """Return the scores of a head by composition, averaged over queries of the second half."""
    seen = [
        (on_prompt.scores(*head, query), query - period + 1)
        for on_prompt in on_prompts
        for query in range(period, 2 * period)
    ]
    split = [(terms.scores(), terms.by_composition(), key) for terms, key in seen]
    first, _ = seen[0]
    writers = [at for at, is_head in enumerate(first.through_head) if is_head]
    return Matching(
        head=head,
        ahead={c: _mean([_ahead(by[c], key) for _, by, key in split]) for c in COMPOSITIONS},
        ahead_by_writer={
            first.names[at]: _mean([_ahead(_by_key(terms, at), key) for terms, key in seen])
            for at in writers
        },
        attention=_mean([_attention(scores, key) for scores, _, key in split]),
        without={
            c: _mean([_attention(scores - by[c], key) for scores, by, key in split])
            for c in COMPOSITIONS
        },
    )


def _by_key(terms: ScoreTerms, part: int) -> Float[np.ndarray, " key"]:
    """Return the scores of the direct part of queries with one component of the keys."""
    direct = ~np.array(terms.through_head)
    scores: np.ndarray = terms.terms[direct, part].sum(axis=0)
    return scores


def _ahead(scores: Float[np.ndarray, " key"], key: int) -> float:
    return float(scores[key] - np.delete(scores, key).mean())


def _attention(scores: Float[np.ndarray, " key"], key: int) -> float:
    weights = np.exp(scores - scores.max())
    return float(weights[key] / weights.sum())


def _mean(numbers: list[float]) -> float:
    return float(np.mean(numbers))


def _losses_without(
    model: Model, prompts: np.ndarray, looking_back: Heads, inducing: Heads
) -> dict[str, float]:
    """Return the loss on the second half with heads zero-ablated in the model."""
    period = prompts.shape[1] // 2
    single = [((layer, head),) for layer in range(model.n_layers) for head in range(model.n_heads)]
    taken: dict[str, Heads] = {path_name(heads): heads for heads in single}
    taken |= {"all previous-token heads": looking_back, "all induction heads": inducing}
    found = {}
    for name, heads in taken.items():
        W_O = np.array(model.weights["W_O"], dtype=np.float64)
        for layer, head in heads:
            W_O[layer, head] = 0.0
        changed = model.changed({"W_O": W_O})
        found[name] = float(np.mean([losses(changed, prompt)[period:] for prompt in prompts]))
    return found
