"""The weights that act, in the precision asked for, and how heads are named.

A circuit is a product of weights, so it says what a model does only where nothing stands between
them. A norm divides by one positive number at each position, which leaves directions and signs as
they are; its gain does not, and has to be folded into the weights that read it
(`numeric.processing.fold_norm_gains`). The mean that a LayerNorm takes off can be folded as well
(`centre_readers`).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from algebra.errors import OtimesError, RuleError
from numeric.config import check_pre_norm
from numeric.model import Model

BLOCK_BYTES = 32 * 2**20
"""How much of a table over the vocabulary exists at a time."""

Precision = type[np.float32] | type[np.float64]


def weight(
    model: Model, name: str, index: Any = slice(None), dtype: Precision = np.float64
) -> np.ndarray:
    """Return a weight, or what is at `index` of its first axis, in a precision.

    What is stored in that precision is a view of the file; nothing else is converted on the way.

    >>> from numeric.random_weights import random_model
    >>> weight(random_model(), "W_Q", 0, np.float32).dtype
    dtype('float32')
    """
    if name == "W_U" and model.config.tied:
        return weight(model, "W_E", slice(None), dtype).T[index]
    stored = model.weights.get(name)
    shared = model.config.kv_heads != model.config.n_heads and name in ("W_K", "W_V", "b_K", "b_V")
    if stored is not None and stored.dtype == dtype and not shared:
        return np.asarray(stored[index])
    return model.part(name, index).astype(dtype, copy=False)


def check_dtype(dtype: Any) -> Precision:
    """Return the precision, or say that it must be float32 or float64."""
    if dtype not in (np.float32, np.float64):
        raise OtimesError(f"circuits are computed in numpy.float32 or numpy.float64, not {dtype}")
    return dtype


def check_head(model: Model, layer: int, head: int) -> None:
    """Raise OtimesError if there is no such head."""
    if not (0 <= layer < model.n_layers and 0 <= head < model.n_heads):
        raise OtimesError(
            f"there is no head {layer}.{head}: {model.name} has {model.n_layers} layers"
            f" of {model.n_heads} heads, both counted from 0"
        )


def check_folded(model: Model, what: str, *gains: str) -> None:
    """Raise RuleError if a norm's gain stands between the weights of what is asked for.

    Or OtimesError if it stands on the stream itself, where it cannot be folded.
    """
    if gains:
        check_pre_norm(model.config, what)
    for gain in gains:
        if gain in model.weights and (np.asarray(model.weights[gain]) != 1).any():
            raise RuleError(
                f"{what} needs weights with nothing in between, and {gain} of {model.name} is not"
                " 1; fold the norms into them first, with fold_norm_gains(fold_norm_biases(model))"
                " of numeric.processing"
            )


def gains_before_heads(model: Model) -> tuple[str, ...]:
    """Return the gains between the stream and what heads read: none of a post-norm model."""
    return () if model.config.post_norm else ("ln1_gain",)


def head_names(model: Model) -> list[str]:
    """Return the names of all heads, `layer.head`, layer by layer."""
    return [f"{layer}.{head}" for layer in range(model.n_layers) for head in range(model.n_heads)]


def blocks(n_rows: int, n_columns: int, dtype: Any, block_bytes: int) -> Iterator[slice]:
    """Yield slices of rows such that a block of so many columns stays within the bytes."""
    if block_bytes < 1:
        raise OtimesError(f"a block needs at least one byte, not block_bytes={block_bytes}")
    rows = max(1, block_bytes // max(1, n_columns * np.dtype(dtype).itemsize))
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


def embed_after_unembed(
    model: Model, dtype: Precision = np.float64, block_bytes: int = BLOCK_BYTES
) -> Float[np.ndarray, "d_model d_model"]:
    r"""Return $W_U W_E$, [d_model, d_model]: all that circuits on the vocabulary need of it.

    Summed over blocks of tokens, so that a table over the vocabulary in another precision than the
    stored one never exists whole.
    """
    if model.config.tied:
        same = weight(model, "W_E", slice(None), model.weights["W_E"].dtype.type)
        if same.dtype == dtype:
            return np.asarray(same.T @ same)  # half the work: BLAS sees that it is symmetric
    embed, unembed = _stored(model, "W_E"), _stored(model, "W_U")
    if embed.dtype == unembed.dtype == dtype:
        return np.asarray(unembed @ embed)
    total = np.zeros((model.d_model, model.d_model), dtype)
    for some in blocks(model.d_vocab, 2 * model.d_model, dtype, block_bytes):
        total += unembed[:, some].astype(dtype, copy=False) @ embed[some].astype(dtype, copy=False)
    return total


def _stored(model: Model, name: str) -> np.ndarray:
    """Return W_E or W_U as it lies in the file."""
    if name == "W_U" and model.config.tied:
        return np.asarray(model.weights["W_E"]).T
    return np.asarray(model.weights[name])
