r"""The OV and QK circuits of a head, in the residual stream and on the vocabulary (row convention).

    OV   $W_V W_O$                  the output of a head for the token it attends to
    QK   $W_Q R_Δ W_K^T$            the attention scores; R_Δ is the rotation by the distance
                                    with rotary positions, else the identity
    full OV   $W_E W_V W_O W_U$                  [source token, output token]
    full QK   $W_E W_Q R_Δ W_K^T W_E^T / \sqrt{d_{head}}$    [query token, key token]

Source: Elhage et al. 2021, “Splitting attention head terms into circuits”; Su et al. 2021.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.factored import Factored
from otimes.numeric.circuits.latents import check_part, latent_part, rotary_part
from otimes.numeric.circuits.weights import (
    Precision,
    check_dtype,
    check_folded,
    check_head,
    gains_before_heads,
    weight,
)
from otimes.numeric.config import Config
from otimes.numeric.functions import rotate
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.tokenizer import load_tokenizer


def ov_circuit(
    model: ModelSource, layer: int, head: int, dtype: Precision = np.float64
) -> Factored:
    """Return the OV circuit $W_V W_O$ [d_model, d_model], of rank ≤ d_head.

    In latent attention it is $W_{DKV} diag(g) W_V W_O$ with the gain g of the latent's norm: what
    the head adds is divided by the scale of the latent, one positive number per key position.
    Proved by: head_is_kron_row.  Source: Elhage et al. 2021, “Observations about attention heads”.

    >>> from otimes.numeric.load import load_model
    >>> ov_circuit(load_model("one_layer"), 0, 3).shape
    (128, 128)

    Raises: OtimesError for a head out of range; RuleError if norm gains are not folded.
    """
    model = load_model(model)
    check_head(model, layer, head)
    also = ("kv_rank", "qk_norm", "local_base")
    check_folded(model, "an OV circuit", *gains_before_heads(model), also=also)
    check_dtype(dtype)
    W_V, W_O = (weight(model, name, layer, dtype)[head] for name in ("W_V", "W_O"))
    if model.config.kv_rank:
        gain = model.part("kv_latent_gain", layer).astype(dtype)
        W_V = (weight(model, "W_DKV", layer, dtype) * gain) @ W_V
    return Factored(W_V, W_O)


def qk_circuit(
    model: ModelSource,
    layer: int,
    head: int,
    dtype: Precision = np.float64,
    distance: int | None = None,
    part: str | None = None,
) -> Factored:
    r"""Return the QK circuit $W_Q W_K^T$ [d_model, d_model]: attention scores, times √d_head.

    With rotary positions it is $W_Q R_Δ W_K^T$ with the rotation by the `distance` Δ.

    With rotary positions it depends on the distance Δ = query position − key position: `distance`
    is then required, and otherwise not allowed. Biases are ignored. Norms of queries and keys
    (`qk_norm`) divide the scores by two positive numbers, one for each query and one for each key,
    which depend on the prompt; their gains (and the mean that a LayerNorm subtracts) are in the
    circuit. So the circuit has the signs of the scores, and not their sizes.

    In latent attention a score is the sum of two bilinear forms: `part="latent"` is that through
    the latent of the keys, with W_K absorbed into the queries; `part="rotary"` that of the rotary
    part of the keys, for which `distance` is needed. A latent divides its form by a positive number
    for each key, and a latent of queries divides both by one for each query.
    Proved by: scores_through_W_QK, rotary_scores_by_distance.  Source: Elhage et al. 2021; Su et
    al. 2021, §3.2.

    >>> from otimes.numeric.load import load_model
    >>> qk_circuit(load_model("one_layer"), 0, 3).rank_bound
    32

    Raises: OtimesError for an invalid head, distance or part; RuleError if norm gains are not
    folded.
    """
    model = load_model(model)
    check_head(model, layer, head)
    check_folded(
        model, "a QK circuit", *gains_before_heads(model), also=("qk_norm", "kv_rank", "local_base")
    )
    check_part(model, part)
    check_dtype(dtype)
    if part == "latent":
        if distance is not None:
            raise OtimesError(
                f"distance={distance} with part='latent', which does not depend on the distance:"
                " leave it out, or give part='rotary'"
            )
        return latent_part(model, layer, head, dtype)
    if part == "rotary":
        return rotary_part(model, layer, head, dtype, turned_by(model, distance, layer))
    W_Q, W_K = (_reader(model, letter, layer, head, dtype) for letter in "QK")
    turn = turned_by(model, distance, layer)
    return Factored(W_Q if turn is None else W_Q @ turn.astype(dtype), W_K.T)


def _reader(
    model: Model, letter: str, layer: int, head: int, dtype: Precision
) -> Float[np.ndarray, "d_model d_head"]:
    """Return W_Q or W_K of a head, with the linear part of its norm if there is one."""
    W = weight(model, f"W_{letter}", layer, dtype)
    config = model.config
    if config.qk_norm == "none":
        return W[head]
    if config.norm == "layer":  # which subtracts a mean, of one head or of all
        W = W - W.mean(axis=(0, 2) if config.qk_norm == "all" else 2, keepdims=True)
    gain = model.part(f"{letter.lower()}_norm_gain", layer)[head]
    return np.asarray(W[head] * gain.astype(dtype))


def full_ov(
    model: ModelSource,
    layer: int,
    head: int,
    dtype: Precision = np.float64,
    tokens: Sequence[str] | None = None,
) -> Factored:
    """Return the full OV circuit $W_E W_V W_O W_U$ [source token, output token].

    Row s is the effect on the logits of attention 1 to token s, in a model without norms; with
    norms, up to a positive factor per position. `tokens` are the strings of the vocabulary.
    Proved by: one_layer_expansion.  Source: Elhage et al. 2021, “Splitting attention head terms”.

    >>> from otimes.numeric.load import load_model
    >>> full_ov(load_model("one_layer"), 0, 3).shape
    (1024, 1024)
    """
    model = load_model(model)
    check_folded(model, "a full OV circuit", "ln_final_gain")
    labels = token_labels(model, tokens)
    bare = ov_circuit(model, layer, head, dtype)
    embed, unembed = (weight(model, name, slice(None), dtype) for name in ("W_E", "W_U"))
    return Factored(embed @ bare.left, bare.right @ unembed, labels, labels)


def full_qk(
    model: ModelSource,
    layer: int,
    head: int,
    dtype: Precision = np.float64,
    distance: int | None = None,
    tokens: Sequence[str] | None = None,
) -> Factored:
    r"""Return the full QK circuit: the attention score of each pair of tokens [query, key].

    It is $W_E W_Q R_Δ W_K^T W_E^T / \sqrt{d_{head}}$, where R_Δ is the rotation of rotary positions
    by the `distance` Δ, and 1 without them.

    The part of the attention scores that depends only on the two tokens: learned and shortformer
    positions, biases and norms are ignored.
    Proved by: scores_through_W_QK, scores_with_positions.

    >>> from otimes.numeric.load import load_model
    >>> full_qk(load_model("one_layer"), 0, 3).rank_bound
    32
    """
    model = load_model(model)
    check_head(model, layer, head)
    check_folded(model, "a full QK circuit", "ln1_gain")
    labels = token_labels(model, tokens)
    bare = qk_circuit(model, layer, head, dtype, distance)
    embed = weight(model, "W_E", slice(None), dtype)
    scaled = (embed @ bare.left) * dtype(model.config.score_scale)
    return Factored(scaled, (embed @ bare.right.T).T, labels, labels)


def turned_by(
    model: Model, distance: int | None, layer: int
) -> Float[np.ndarray, "d_head d_head"] | None:
    r"""Return $R_Δ$ of a layer, where $q_i R_{i-j} k_j^T$ is the score of a rotated query and key.

    None for a layer without rotary positions.
    Raises: OtimesError if `distance` is missing with rotary positions, or given without them.
    """
    config = model.config
    if config.positions != "rotary":
        if distance is not None:
            raise OtimesError(
                f"distance={distance} for {model.name}, whose positions are {config.positions!r}:"
                " a QK circuit depends on the distance only with rotary positions"
            )
        return None
    if config.rotary_by_length:
        raise OtimesError(
            f"the QK circuits of {model.name} depend on the length of the prompt, as"
            f" rotary_stretch={config.rotary_stretch[0]!r} does"
        )
    if distance is None:
        raise OtimesError(
            f"the QK circuits of {model.name} depend on the distance between query and key"
            " (rotary positions): give it, as in distance=1"
        )
    if not 0 <= distance < model.n_ctx:
        raise OtimesError(
            f"distance={distance} is out of range: a key is 0 to n_ctx - 1 = {model.n_ctx - 1}"
            " positions before its query"
        )
    own = config.of_layer(layer)
    return turn_matrix(own, distance) if own.positions == "rotary" else None


def turn_matrix(config: Config, position: int) -> Float[np.ndarray, "d_head d_head"]:
    """Return the rotation matrix that RoPE applies to a row at a position."""
    rows = np.empty((config.d_head, config.d_head))
    for entry, unit in enumerate(np.eye(config.d_head)):
        along = np.broadcast_to(unit, (position + 1, config.d_head))
        turned = rotate(along, *config.rotation)
        rows[entry] = turned[position]
    return rows


def token_labels(model: Model, tokens: Sequence[str] | None = None) -> Sequence[str]:
    """Return the given token strings, or those of the bundled vocabulary if its size fits, or ().

    Raises: OtimesError if the number of strings is not d_vocab.
    """
    if tokens is not None:
        if len(tokens) != model.d_vocab:
            raise OtimesError(
                f"{len(tokens)} token strings for {model.name}, which has {model.d_vocab} tokens"
            )
        return tokens
    labels = _bundled_labels()
    return labels if model.d_vocab == len(labels) else ()


@cache
def _bundled_labels() -> tuple[str, ...]:
    tokenizer = load_tokenizer()
    return tuple(tokenizer.token_strings(range(tokenizer.d_vocab)))
