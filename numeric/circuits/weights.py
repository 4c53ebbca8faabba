"""The weights of circuits in the requested precision, and the names of heads.

A circuit is a product of weights, which assumes that nothing nonlinear or diagonal stands between
them. A norm divides by one positive number per position, which preserves directions and signs; its
gain does not, and must be folded into the weights that read it
(`otimes.numeric.processing.fold_norm_gains`). The mean that a LayerNorm subtracts can be folded as
well (`centre_readers`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError, RuleError
from otimes.numeric.config import check_settings
from otimes.numeric.model import Model

BLOCK_BYTES = 32 * 2**20
"""The default size of the blocks in which matrices over the vocabulary are computed."""

Precision = type[np.float32] | type[np.float64]


def weight(
    model: Model, name: str, index: Any = slice(None), dtype: Precision = np.float64
) -> np.ndarray:
    """Return a weight, or its part at `index` of the first axis, as `dtype`.

    If it is stored in that dtype, the result is a view of the file; only the part is converted.

    >>> from otimes.numeric.random_weights import random_model
    >>> weight(random_model(), "W_Q", 0, np.float32).dtype
    dtype('float32')
    """
    scale = model.config.scale_of(name)
    if name == "W_U" and model.config.tied and scale == 1:
        return weight(model, "W_E", slice(None), dtype).T[index]
    stored = model.weights.get(name)
    shared = model.config.kv_heads != model.config.n_heads and name in ("W_K", "W_V", "b_K", "b_V")
    if stored is not None and stored.dtype == dtype and not shared and scale == 1:
        return np.asarray(stored[index])
    return model.part(name, index).astype(dtype, copy=False)


def check_dtype(dtype: Any) -> Precision:
    """Return the dtype. Raises: OtimesError unless it is float32 or float64."""
    if dtype not in (np.float32, np.float64):
        raise OtimesError(f"dtype must be numpy.float32 or numpy.float64, got {dtype}")
    return dtype


def check_head(model: Model, layer: int, head: int) -> None:
    """Raise OtimesError if the head is out of range."""
    if not (0 <= layer < model.n_layers and 0 <= head < model.n_heads):
        raise OtimesError(
            f"head {layer}.{head} is out of range: {model.name} has {model.n_layers} layers"
            f" of {model.n_heads} heads, both counted from 0"
        )


CIRCUITS = (
    *("n_experts", "gate_limit"),
    *("windows", "sinks", "attn_scale", "score_cap", "alibi_slopes", "unrotated_layers"),
)
"""The settings that leave the circuits of heads as they are: they change scores and patterns."""


def check_folded(model: Model, what: str, *gains: str, also: tuple[str, ...] = ()) -> None:
    """Raise RuleError if one of the gains is not 1, so that it must be folded first.

    `also` are settings that this circuit takes into account, beside those of `CIRCUITS`.
    Raises OtimesError for a post-norm model, where gains cannot be folded.
    """
    if gains:
        check_settings(model.config, what, (*CIRCUITS, *also))
    for gain in gains:
        if gain in model.weights and (model.part(gain) != 1).any():
            raise RuleError(
                f"{what} needs norm gains of 1, and {gain} of {model.name} is not 1; fold the norms"
                " into the weights first, with model.fold_norms()"
            )


def gains_before_heads(model: Model) -> tuple[str, ...]:
    """Return the gains between the residual stream and the heads: none in a post-norm model."""
    return () if model.config.post_norm else ("ln1_gain",)


def head_names(model: Model) -> list[str]:
    """Return the names of all heads, `layer.head`, layer by layer."""
    return [f"{layer}.{head}" for layer in range(model.n_layers) for head in range(model.n_heads)]


def blocks(n_rows: int, n_columns: int, dtype: Any, block_bytes: int) -> Iterator[slice]:
    """Yield slices of rows such that each block [rows, n_columns] has at most `block_bytes`."""
    if block_bytes < 1:
        raise OtimesError(f"block_bytes must be at least 1, got {block_bytes}")
    rows = max(1, block_bytes // max(1, n_columns * np.dtype(dtype).itemsize))
    for start in range(0, n_rows, rows):
        yield slice(start, min(start + rows, n_rows))


def embed_after_unembed(
    model: Model, dtype: Precision = np.float64, block_bytes: int = BLOCK_BYTES
) -> Float[np.ndarray, "d_model d_model"]:
    r"""Return $W_U W_E$ [d_model, d_model].

    It is summed over blocks of tokens, so that W_E and W_U are never converted as a whole.
    """
    scale = model.config.logit_scale
    if scale != 1:
        return scale * embed_after_unembed(unscaled_logits(model), dtype, block_bytes)
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


def unscaled_logits(model: Model) -> Model:
    """Return the model without the factor of its logits."""
    return model.changed({}, replace(model.config, logit_scale=1.0))


def _stored(model: Model, name: str) -> np.ndarray:
    """Return W_E or W_U as it is stored."""
    if name == "W_U" and model.config.tied:
        return np.asarray(model.weights["W_E"]).T
    return np.asarray(model.weights[name])
