r"""The two circuits of a head, on the stream and on the vocabulary, as products (row convention).

    OV   $W_V W_O$                  what a head writes for what it attends to
    QK   $W_Q R_Δ W_K^T$            which query attends to which key; R_Δ turns by the distance
                                    under rotary positions and is absent otherwise
    full OV   $W_E W_V W_O W_U$                  [source token, output token]
    full QK   $W_E W_Q R_Δ W_K^T W_E^T / \sqrt{d_{head}}$    [query token, key token]

Source: Elhage et al. 2021, “Splitting attention head terms into circuits”; Su et al. 2021.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from algebra.errors import OtimesError
from numeric.circuits.factored import Factored
from numeric.circuits.weights import (
    Precision,
    check_dtype,
    check_folded,
    check_head,
    gains_before_heads,
    weight,
)
from numeric.config import Config
from numeric.functions import rotate
from numeric.model import Model
from numeric.tokenizer import load_tokenizer


def ov_circuit(model: Model, layer: int, head: int, dtype: Precision = np.float64) -> Factored:
    """Return $W_V W_O$ [d_model, d_model], of rank ≤ d_head: what is written for what is read.

    Proved by: head_is_kron_row.  Source: Elhage et al. 2021, “Observations about attention heads”.

    >>> from numeric.model import load_model
    >>> ov_circuit(load_model("one_layer"), 0, 3).shape
    (128, 128)

    Raises: OtimesError if there is no such head; RuleError if norm gains are not folded.
    """
    check_head(model, layer, head)
    check_folded(model, "an OV circuit", *gains_before_heads(model))
    check_dtype(dtype)
    W_V, W_O = (weight(model, name, layer, dtype)[head] for name in ("W_V", "W_O"))
    return Factored(W_V, W_O)


def qk_circuit(
    model: Model,
    layer: int,
    head: int,
    dtype: Precision = np.float64,
    distance: int | None = None,
) -> Factored:
    r"""Return $W_Q R_Δ W_K^T$ [d_model, d_model]: the scores (times √d_head) of query and key.

    Under rotary positions there is one such matrix for each distance Δ = query − key, and there is
    no other: `distance` is then needed, and only then allowed. Biases are left out.
    Proved by: scores_through_W_QK, rotary_scores_by_distance.  Source: Elhage et al. 2021; Su et
    al. 2021, §3.2.

    >>> from numeric.model import load_model
    >>> qk_circuit(load_model("one_layer"), 0, 3).rank_bound
    32

    Raises: OtimesError if there is no such head or distance; RuleError if gains are not folded.
    """
    check_head(model, layer, head)
    check_folded(model, "a QK circuit", *gains_before_heads(model))
    check_dtype(dtype)
    W_Q, W_K = (weight(model, name, layer, dtype)[head] for name in ("W_Q", "W_K"))
    turn = turned_by(model, distance)
    return Factored(W_Q if turn is None else W_Q @ turn.astype(dtype), W_K.T)


def full_ov(
    model: Model,
    layer: int,
    head: int,
    dtype: Precision = np.float64,
    tokens: Sequence[str] | None = None,
) -> Factored:
    """Return $W_E W_V W_O W_U$ [source token, output token]: logits moved by attending to a source.

    Row s is what full attention to token s adds to the logits, in a model without norms; with
    norms, up to one positive factor a position. `tokens` are the strings of the vocabulary.
    Proved by: one_layer_expansion.  Source: Elhage et al. 2021, “Splitting attention head terms”.

    >>> from numeric.model import load_model
    >>> full_ov(load_model("one_layer"), 0, 3).shape
    (1024, 1024)
    """
    check_folded(model, "a full OV circuit", "ln_final_gain")
    labels = token_labels(model, tokens)
    bare = ov_circuit(model, layer, head, dtype)
    embed, unembed = (weight(model, name, slice(None), dtype) for name in ("W_E", "W_U"))
    return Factored(embed @ bare.left, bare.right @ unembed, labels, labels)


def full_qk(
    model: Model,
    layer: int,
    head: int,
    dtype: Precision = np.float64,
    distance: int | None = None,
    tokens: Sequence[str] | None = None,
) -> Factored:
    r"""Return $W_E W_Q R_Δ W_K^T W_E^T / \sqrt{d_{head}}$ [query token, key token].

    The part of the scores that the tokens alone decide: learned and shortformer positions, biases
    and norms are left out. Proved by: scores_through_W_QK, scores_with_positions.

    >>> from numeric.model import load_model
    >>> full_qk(load_model("one_layer"), 0, 3).rank_bound
    32
    """
    check_head(model, layer, head)
    check_folded(model, "a full QK circuit", "ln1_gain")
    labels = token_labels(model, tokens)
    bare = qk_circuit(model, layer, head, dtype, distance)
    embed = weight(model, "W_E", slice(None), dtype)
    scaled = (embed @ bare.left) / np.sqrt(dtype(model.d_head))
    return Factored(scaled, (embed @ bare.right.T).T, labels, labels)


def turned_by(model: Model, distance: int | None) -> Float[np.ndarray, "d_head d_head"] | None:
    r"""Return $R_Δ$, so that $q_i R_{i-j} k_j^T$ is the score of turned queries and keys, or None.

    Raises: OtimesError if rotary positions come without a distance, or others with one.
    """
    config = model.config
    if config.positions != "rotary":
        if distance is not None:
            raise OtimesError(
                f"distance={distance} for {model.name}, whose positions are {config.positions!r}:"
                " only rotary positions make a QK circuit depend on the distance"
            )
        return None
    if distance is None:
        raise OtimesError(
            f"the QK circuits of {model.name} depend on the distance between query and key"
            " (rotary positions): say which, as distance=1"
        )
    if not 0 <= distance < model.n_ctx:
        raise OtimesError(
            f"distance={distance}: a key is 0 to n_ctx - 1 = {model.n_ctx - 1} positions before"
            " its query"
        )
    return turn_matrix(config, distance)


def turn_matrix(config: Config, position: int) -> Float[np.ndarray, "d_head d_head"]:
    """Return the matrix with which a row at a position is multiplied by rotary positions."""
    rows = np.empty((config.d_head, config.d_head))
    for entry, unit in enumerate(np.eye(config.d_head)):
        along = np.broadcast_to(unit, (position + 1, config.d_head))
        turned = rotate(along, *config.rotation)
        rows[entry] = turned[position]
    return rows


def token_labels(model: Model, tokens: Sequence[str] | None = None) -> Sequence[str]:
    """Return the strings of a vocabulary: those given, or the bundled ones if the size is theirs.

    Raises: OtimesError if there are not as many strings as tokens.
    """
    if tokens is not None:
        if len(tokens) != model.d_vocab:
            raise OtimesError(
                f"{len(tokens)} token strings for {model.name}, which has {model.d_vocab} tokens"
            )
        return tokens
    tokenizer = load_tokenizer()
    if model.d_vocab == tokenizer.d_vocab:
        return tokenizer.token_strings(range(model.d_vocab))
    return ()
