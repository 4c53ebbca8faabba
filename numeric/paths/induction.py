r"""Induction, told by numbers alone: which heads, by which composition, and what carries the loss.

On random tokens that are said twice, nothing but the earlier saying helps. Four questions:

1. Which heads look one token back, and which from a repeated token to what *followed* it before?
2. Why do the latter look there? Their scores are split exactly into direct, Q-, K- and
   Q+K-composition (`scores`): how far each puts the right key ahead of the others, and how much
   attention would be left on it if that term were taken out of the scores.
3. Which paths carry the fall of the loss on the second saying, patterns held fixed (`loss`)?
4. What does the loss become when heads are taken out of the running model, patterns and all?

A head that 4 says is needed while 3 says that no path of it matters does its work in the patterns
of others; 2 says through which side.

Source: Elhage et al. 2021, “Induction heads”; Olsson et al. 2022.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from algebra.errors import OtimesError
from numeric.measure import (
    losses,
    prefix_matching_score,
    previous_token_score,
    repeat_losses,
    repeated_prompts,
)
from numeric.model import Model
from numeric.paths.ensemble import Paths, paths
from numeric.paths.loss import LossTable, loss_table
from numeric.paths.orders import Heads, path_name
from numeric.paths.scores import COMPOSITIONS, ScoreTerms

MATCHING = 0.5
"""From this score on a head is said to look one token back, or to match prefixes."""


@dataclass(frozen=True, slots=True)
class Matching:
    """Why one head attends to what followed the earlier saying of a token; means over queries.

    `ahead`: by how much each composition puts the right key's score over the mean of the others;
    `ahead_by_writer`: the K-composition of that, by the head that wrote what the key reads.
    `attention` is that to the right key, and `without` what is left of it, a composition taken out.
    """

    head: tuple[int, int]
    ahead: dict[str, float]
    ahead_by_writer: dict[str, float]
    attention: float
    without: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Induction:
    """The answers to the four questions; losses are in nats per token, on the second saying."""

    previous_token: Float[np.ndarray, "n_layers n_heads"]
    prefix_matching: Float[np.ndarray, "n_layers n_heads"]
    matching: tuple[Matching, ...]
    first_loss: float
    table: LossTable
    loss_without: dict[str, float]

    @property
    def looking_back(self) -> Heads:
        """The heads that look one token back."""
        return _above(self.previous_token)


def induction(model: Model, period: int = 24, n_prompts: int = 2) -> Induction:
    """Return the story of a model on random tokens said twice.

    Raises: OtimesError if the model has no room for two sayings of `period` tokens, or no head that
    matches prefixes.
    """
    if 2 * period > model.n_ctx:
        raise OtimesError(
            f"{model.name} reads at most n_ctx={model.n_ctx} tokens, and {period} tokens said twice"
            f" are {2 * period}"
        )
    prompts = repeated_prompts(model.d_vocab, period, n_prompts)
    previous, matching = previous_token_score(model, prompts), prefix_matching_score(model, prompts)
    inducing = _above(matching)
    if not inducing:
        raise OtimesError(
            f"{model.name} has no head that matches prefixes: the best has a score of"
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
    """Return why a head looks where it looks, averaged over queries of the second saying."""
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
    """Return the scores of queries that went through no head with one component of the keys."""
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
    """Return the loss on the second saying with heads taken out of the running model."""
    period = prompts.shape[1] // 2
    single = [((layer, head),) for layer in range(model.n_layers) for head in range(model.n_heads)]
    taken: dict[str, Heads] = {path_name(heads): heads for heads in single}
    taken |= {"all that look back": looking_back, "all that match prefixes": inducing}
    found = {}
    for name, heads in taken.items():
        W_O = np.array(model.weights["W_O"], dtype=np.float64)
        for layer, head in heads:
            W_O[layer, head] = 0.0
        changed = model.changed({"W_O": W_O})
        found[name] = float(np.mean([losses(changed, prompt)[period:] for prompt in prompts]))
    return found
