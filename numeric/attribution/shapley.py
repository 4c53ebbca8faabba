r"""Shapley values of tokens: the mean gain of a logit when a token joins, over all orders.

$φ_i = Σ_{S ∌ i} \frac{|S|! (M - |S| - 1)!}{M!} (f(S ∪ i) - f(S))$, where f(S) is the logit when the
tokens of S have their embeddings, and the others a baseline. They sum to f(all) - f(none) for every
f, and are $w_i (x_i - x'_i)$ for a linear one. All $2^M$ coalitions are run: for short prompts.

Source: Shapley 1953; Lundberg and Lee 2017, “A Unified Approach to Interpreting Model Predictions”.
"""

from math import comb
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.question import Question, StandIn, ask
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.circuits.batches import over_prompts
from otimes.numeric.circuits.result import Named
from otimes.numeric.load import ModelSource
from otimes.numeric.progress import tracked
from otimes.numeric.prompt import together

MAX_TOKENS = 14
"""The longest prompt: twice as many passes for each token more."""


@over_prompts
def shapley_values(
    model: ModelSource,
    prompt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    baseline: StandIn = None,
) -> Named:
    r"""Return the Shapley value of each token for a logit [position]; they sum to f(x) - f(x').

    Tokens that are not in a coalition have the embedding `baseline`: zero (None), a token, or an
    array (d_model,) or (position, d_model). Position embeddings stay. With a foil f is the logit
    difference. The values are exact up to rounding: all $2^M$ coalitions of the M tokens up to
    `position` are run, and M is at most 14.
    Proved by: shapley_values_of_linear, gains_of_an_order_add_up.
    Source: Lundberg and Lee 2017, “A Unified Approach to Interpreting Model Predictions”.

    >>> scores = shapley_values("one_layer", "for i in range", "(")
    >>> abs(scores.missing) < 1e-12
    True

    Raises: OtimesError for an invalid prompt, token, position or baseline, or too many tokens.
    """
    question = ask(model, prompt, target, foil, position)
    count = len(question.tokens)
    if count > MAX_TOKENS:
        raise OtimesError(
            f"shapley_values runs all 2^M coalitions of M tokens, and M = {count} is more than"
            f" {MAX_TOKENS}: give a shorter prompt or an earlier position"
        )
    members = coalitions(count)
    values = _values(question, members, question.stand_in(baseline))
    whole = float(values[-1] - values[0])
    return question.by_token("Shapley values", shapley_of_game(values), whole)


def coalitions(count: int) -> Int[np.ndarray, "coalition player"]:
    """Return all coalitions as rows of 0 and 1; player i is bit i of the row's number.

    >>> coalitions(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    numbers = np.arange(2**count)
    members: np.ndarray = (numbers[:, None] >> np.arange(count)) & 1
    return members


def shapley_of_game(values: np.ndarray) -> Float[np.ndarray, " player"]:
    """Return the Shapley values of a game with one value for each row of `coalitions`.

    Raises: OtimesError unless the number of values is a power of two.

    >>> shapley_of_game(np.array([0.0, 0.0, 0.0, 1.0])).tolist()  # AND
    [0.5, 0.5]
    """
    count = len(values).bit_length() - 1
    if np.ndim(values) != 1 or len(values) != 2**count:
        raise OtimesError(
            f"a game has one value for each of 2^M coalitions, got shape {np.shape(values)}"
        )
    members = coalitions(count)
    sizes = members.sum(axis=1)
    shares = np.array([1 / (count * comb(count - 1, size)) for size in range(count)])
    found = np.zeros(count)
    for player in range(count):
        without = np.flatnonzero(members[:, player] == 0)
        gains = values[without + 2**player] - values[without]
        found[player] = shares[sizes[without]] @ gains
    return found


def _values(question: Question, members: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return the logit of each coalition, in batches of passes."""
    x = question.embed()
    values = np.zeros(len(members))
    for some in tracked(together(len(members), len(x)), "coalitions"):
        values[some] = question.values(np.where(members[some, :, None] > 0, x, start))
    return values
