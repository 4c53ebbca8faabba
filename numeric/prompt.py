"""Reading the arguments of a user: prompts and tokens as text or ids, and positions."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.tokenizer import load_tokenizer

Prompts = str | Sequence[int] | Sequence[str] | Sequence[Sequence[int]] | np.ndarray
"""A prompt as text or as token ids, or a batch of such prompts."""

ROWS_AT_ONCE = 512
"""Prompts are run together as long as they have no more positions than this in all."""


@runtime_checkable
class Vocabulary(Protocol):
    """The attributes of `Model` that reading a prompt needs."""

    @property
    def name(self) -> str:
        """The name of the model."""

    @property
    def d_vocab(self) -> int:
        """The number of tokens in the vocabulary."""

    def check_tokens(self, tokens: Any) -> np.ndarray:
        """Return a prompt as an array of token ids, or raise an OtimesError."""


class Prompt(NamedTuple):
    """A prompt as token ids, and the text of each token (its id in another vocabulary)."""

    tokens: Int[np.ndarray, " pos"]
    strings: tuple[str, ...]


def read_prompt(model: Vocabulary, prompt: str | Sequence[int] | np.ndarray) -> Prompt:
    """Return a prompt that was given as text or as token ids.

    >>> from otimes.numeric.load import load_model
    >>> read_prompt(load_model("one_layer"), "x = 1").strings
    ('x', ' =', ' 1')

    Raises: OtimesError for text where the model has another vocabulary, or for invalid token ids.
    """
    tokens = _token_ids(model, prompt)
    return Prompt(tokens, token_texts(model, tokens))


def _token_ids(model: Vocabulary, prompt: Any) -> Int[np.ndarray, " pos"]:
    if is_batch(prompt):
        if len(prompt) == 1:  # as torch and tokenizers return one prompt
            return _token_ids(model, prompt[0])
        raise ShapeError(
            f"one prompt is taken here, and a batch of {len(prompt)} was given: call once for each"
            " prompt"
        )
    if isinstance(prompt, str):
        _check_vocabulary(model, "the prompt")
        prompt = load_tokenizer().encode(prompt)
    return model.check_tokens(prompt)


def read_prompts(model: Vocabulary, prompts: Prompts) -> Int[np.ndarray, "prompt pos"]:
    """Return one prompt, or a batch of prompts of one length, as token ids [prompt, pos].

    >>> from otimes.numeric.load import load_model
    >>> read_prompts(load_model("one_layer"), ["x = 1", "y = 2"]).shape
    (2, 3)

    Raises: OtimesError for prompts of different lengths, or one that is invalid.
    """
    batch = prompts if is_batch(prompts) else [prompts]
    rows = [_token_ids(model, prompt) for prompt in batch]
    lengths = [len(row) for row in rows]
    if len(set(lengths)) > 1:
        raise OtimesError(
            f"the prompts of a batch must have one length, got {min(lengths)} to {max(lengths)}"
            " tokens: call once for each, or cut them to one length"
        )
    return np.stack(rows)


def as_tokens(model: Vocabulary, prompts: Any) -> Any:
    """Return text as token ids: a list for one prompt, a list of lists for a batch.

    What is not text is returned unchanged.
    """
    if isinstance(prompts, str):
        return read_prompt(model, prompts).tokens.tolist()
    if is_batch(prompts) and len(prompts) and isinstance(prompts[0], str):
        return read_prompts(model, prompts).tolist()
    return prompts


def are_integers(array: np.ndarray) -> bool:
    """Return whether an array holds integers, of any size.

    >>> are_integers(np.array([5])), are_integers(np.array([10**30])), are_integers(np.array(["5"]))
    (True, True, False)
    """
    kinds = {type(each) for each in array.flat} if array.dtype == object else set()
    return bool(np.issubdtype(array.dtype, np.integer)) or kinds == {int}


def is_batch(prompts: Any) -> bool:
    """Return whether this is a batch of prompts, as strings or as token ids, and not one prompt.

    >>> is_batch("x = 1"), is_batch([5, 6]), is_batch(["x = 1"]), is_batch([[5, 6], [7, 8]])
    (False, False, True, True)
    """
    if not isinstance(prompts, list | tuple):
        return np.ndim(prompts) == 2
    return bool(prompts) and (isinstance(prompts[0], str) or np.ndim(prompts[0]) == 1)


def together(n_parts: int, n_pos: int) -> list[slice]:
    """Return slices of prompts, each with at most `ROWS_AT_ONCE` positions, or one prompt.

    >>> together(5, ROWS_AT_ONCE // 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, ROWS_AT_ONCE // n_pos)
    return [slice(at, min(at + size, n_parts)) for at in range(0, n_parts, size)]


def read_token(model: Vocabulary, token: Any) -> int:
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


def token_texts(model: Vocabulary, tokens: Sequence[int] | np.ndarray) -> tuple[str, ...]:
    """Return the text of each token, or its id if the vocabulary is not the bundled one."""
    tokenizer, ids = load_tokenizer(), [int(token) for token in tokens]
    known = model.d_vocab == tokenizer.d_vocab
    return tuple(tokenizer.token_strings(ids) if known else map(str, ids))


def _check_vocabulary(model: Vocabulary, what: str) -> None:
    d_vocab = load_tokenizer().d_vocab
    if model.d_vocab != d_vocab:
        raise OtimesError(
            f"{what} is text, but {model.name} has {model.d_vocab} tokens and the bundled"
            f" vocabulary {d_vocab}: give token ids"
        )
