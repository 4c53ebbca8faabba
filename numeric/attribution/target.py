"""The target of an attribution: a logit, or its difference to the logit of another token, the foil.

A logit difference is a log ratio of probabilities, as both have the same softmax denominator. Its
attributions are the differences of the attributions of the two logits.
Source: Yin and Neubig 2022, “Interpreting Language Models with Contrastive Explanations”.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from otimes.algebra.errors import OtimesError
from otimes.numeric.model import Model
from otimes.numeric.prompt import Prompt, read_position, read_token, token_texts

Tokens = int | str | Sequence[int | str] | np.ndarray | None


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The logit, or logit difference, that is attributed at each chosen position."""

    positions: Int[np.ndarray, " chosen"]
    tokens: Int[np.ndarray, " chosen"]
    foils: Int[np.ndarray, " chosen"] | None
    one: bool  # a single position was given, which has no axis in the tables
    rows: Float[np.ndarray, "chosen d_model"]  # of $W_U^T$, minus that of the foil
    constants: Float[np.ndarray, " chosen"]  # of b_U, minus that of the foil
    sizes: Float[np.ndarray, "chosen d_model"]  # |row| + |row of the foil|: for rounding bounds

    def name(self, model: Model, at: int = 0) -> str:
        """Return a description of the target for titles."""
        (token,) = token_texts(model, self.tokens[at : at + 1])
        if self.foils is None:
            return f"the logit of {token!r} after position {self.positions[at]}"
        (foil,) = token_texts(model, self.foils[at : at + 1])
        return f"the logit difference {token!r} - {foil!r} after position {self.positions[at]}"


def read_target(
    model: Model,
    prompt: Prompt,
    target: Tokens,
    foil: Tokens,
    position: Any,
    logits: Float[np.ndarray, "pos d_vocab"] | None = None,
) -> Target:
    """Return the checked target; by default the token with the largest logit.

    `logits` are those of the prompt, where they are known.

    Raises: OtimesError for an unknown token or position, or a foil equal to the target.
    """
    n_pos = len(prompt.tokens)
    one = position is not None and np.ndim(position) == 0
    asked = range(n_pos) if position is None else [position] if one else list(position)
    positions = np.array([read_position(n_pos, each) for each in asked], dtype=np.int64)
    if not positions.size:
        raise OtimesError("the list of positions is empty")
    if target is None:
        if logits is None:
            logits = model.forward(prompt.tokens, ["logits"])["logits"]
        tokens = logits[positions].argmax(axis=1)
    else:
        tokens = _tokens(model, target, len(positions), "targets")
    rows, constants = unembedding(model, tokens)
    if foil is None:
        return Target(positions, tokens, None, one, rows, constants, np.abs(rows))
    foils = _tokens(model, foil, len(positions), "foils")
    if (foils == tokens).any():
        at = int(np.flatnonzero(foils == tokens)[0])
        (text,) = token_texts(model, tokens[at : at + 1])
        raise OtimesError(
            f"the foil equals the target, {text!r}"
            + (" (the default, the token with the largest logit)" if target is None else "")
            + ": their logit difference is always zero"
        )
    others, of_foils = unembedding(model, foils)
    sizes = np.abs(rows) + np.abs(others)
    return Target(positions, tokens, foils, one, rows - others, constants - of_foils, sizes)


def unembedding(
    model: Model, tokens: Int[np.ndarray, " chosen"]
) -> tuple[Float[np.ndarray, "chosen d_model"], Float[np.ndarray, " chosen"]]:
    """Return rows of $W_U^T$ and entries of b_U; only these are converted to float64."""
    if model.config.tied:
        rows = model.part("W_E", tokens) * model.config.logit_scale
    else:
        rows = model.part("W_U", (slice(None), tokens)).T
    return rows, model.part("b_U", tokens)


def _tokens(model: Model, given: Any, count: int, what: str) -> Int[np.ndarray, " chosen"]:
    if isinstance(given, str) or np.ndim(given) == 0:
        return np.full(count, read_token(model, given), dtype=np.int64)
    tokens = [read_token(model, each) for each in given]
    if len(tokens) != count:
        raise OtimesError(f"{len(tokens)} {what} for {count} position{'s'[: count > 1]}")
    return np.array(tokens, dtype=np.int64)
