"""Reading the arguments of a user: prompts and tokens as text or ids, and positions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from otimes.algebra.errors import OtimesError
from otimes.numeric.model import Model
from otimes.numeric.tokenizer import load_tokenizer


class Prompt(NamedTuple):
    """A prompt as token ids, and the text of each token (its id in another vocabulary)."""

    tokens: Int[np.ndarray, " pos"]
    strings: tuple[str, ...]


def read_prompt(model: Model, prompt: str | Sequence[int] | np.ndarray) -> Prompt:
    """Return a prompt that was given as text or as token ids.

    >>> from otimes.numeric.load import load_model
    >>> read_prompt(load_model("one_layer"), "x = 1").strings
    ('x', ' =', ' 1')

    Raises: OtimesError for text where the model has another vocabulary, or for invalid token ids.
    """
    if isinstance(prompt, str):
        _check_vocabulary(model, "the prompt")
        prompt = load_tokenizer().encode(prompt)
    tokens = model.check_tokens(prompt)
    return Prompt(tokens, token_texts(model, tokens))


def read_token(model: Model, token: Any) -> int:
    """Return a token that was given as an id or as text.

    Raises: OtimesError if the text is not a single token, or the id is not in the vocabulary.
    """
    if isinstance(token, str):
        _check_vocabulary(model, repr(token))
        found = load_tokenizer().encode(token)
        if len(found) != 1:
            parts = ", ".join(map(repr, load_tokenizer().token_strings(found)))
            raise OtimesError(
                f"{token!r} is {len(found)} tokens" + (f" ({parts})" if parts else "") + ", not one"
            )
        return found[0]
    if isinstance(token, bool) or not isinstance(token, int | np.integer):
        raise OtimesError(f"a token must be an integer or a string, got {token!r}")
    if not 0 <= token < model.d_vocab:
        raise OtimesError(
            f"token {token} is not in the vocabulary of {model.name}, which has"
            f" the token ids 0 to {model.d_vocab - 1}"
        )
    return int(token)


def read_position(n_pos: int, position: Any) -> int:
    """Return a non-negative position; negative indices count from the end.

    Raises: OtimesError if the position is out of range.
    """
    if isinstance(position, bool) or not isinstance(position, int | np.integer):
        raise OtimesError(f"a position must be an integer, got {position!r}")
    if not -n_pos <= position < n_pos:
        raise OtimesError(
            f"position {position} is out of range: the prompt has the positions 0 to {n_pos - 1}"
        )
    return int(position) % n_pos


def token_texts(model: Model, tokens: Sequence[int] | np.ndarray) -> tuple[str, ...]:
    """Return the text of each token, or its id if the vocabulary is not the bundled one."""
    tokenizer = load_tokenizer()
    known = model.d_vocab == tokenizer.d_vocab
    return tuple(tokenizer.token_strings(tokens) if known else map(str, tokens))


def _check_vocabulary(model: Model, what: str) -> None:
    d_vocab = load_tokenizer().d_vocab
    if model.d_vocab != d_vocab:
        raise OtimesError(
            f"{what} is text, but {model.name} has {model.d_vocab} tokens and the bundled"
            f" vocabulary {d_vocab}: give token ids"
        )
