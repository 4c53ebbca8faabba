r"""The two QK circuits of a head in latent attention, whose scores are a sum of two bilinear forms.

With x a row of the input of attention, a query is a product with $W_Q$ and divided by a positive
number s (1 if queries have no latent); the head's own part of a key is made of the latent, and
divided by the latent's scale t; the rotary part is shared by all heads, and divided by nothing:

    $s_i \, score_{ij} / scale = x_i M x_j^T / t_j + x_i N_Δ x_j^T$

    $M = W_{Q'} (W_{DKV} diag(g) W_K)^T$    `part="latent"`: W_K is absorbed into the queries
    $N_Δ = W_{Q''} R_Δ W_{KR}^T$            `part="rotary"`: depends on the distance Δ

where W_{Q'} and W_{Q''} are the columns of the two parts, after $W_{DQ} diag(g_q)$ if queries have
a latent. As t depends on the prompt, there is no one matrix for the sum.

Source: DeepSeek-AI 2024, “DeepSeek-V2”, §2.1.
"""

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.factored import Factored
from otimes.numeric.circuits.weights import Precision, weight
from otimes.numeric.model import Model

PARTS = ("latent", "rotary")


def check_part(model: Model, part: str | None) -> None:
    """Raise OtimesError unless `part` says which circuit is meant, where there are two."""
    rank = model.config.kv_rank
    if not rank:
        if part is not None:
            raise OtimesError(
                f"part={part!r} for {model.name}, which has no latent attention (kv_rank is 0): its"
                " heads have one QK circuit"
            )
    elif part not in PARTS:
        raise OtimesError(
            f"with kv_rank={rank} the scores of a head are the sum of two bilinear forms with"
            f" different scales: give part='latent' or part='rotary', got part={part!r}"
        )


def queries(
    model: Model, layer: int, head: int, dtype: Precision
) -> Float[np.ndarray, "d_model d_head"]:
    """Return the map from the input of attention to the queries, up to the scale of a latent."""
    W_Q = weight(model, "W_Q", layer, dtype)[head]
    if not model.config.q_rank:
        return np.asarray(W_Q)
    gain = model.part("q_latent_gain", layer).astype(dtype)
    return np.asarray((weight(model, "W_DQ", layer, dtype) * gain) @ W_Q)


def latent_part(model: Model, layer: int, head: int, dtype: Precision) -> Factored:
    """Return M [d_model, d_model], the circuit through the latent, of rank ≤ d_key."""
    gain = model.part("kv_latent_gain", layer).astype(dtype)
    keys = (weight(model, "W_DKV", layer, dtype) * gain) @ weight(model, "W_K", layer, dtype)[head]
    own = queries(model, layer, head, dtype)[:, model.config.rotary_dims :]
    return Factored(own, keys.T)


def rotary_part(
    model: Model,
    layer: int,
    head: int,
    dtype: Precision,
    turn: Float[np.ndarray, "d_head d_head"] | None,
) -> Factored:
    """Return N [d_model, d_model], the circuit of the keys that all heads share."""
    dims = model.config.rotary_dims
    if turn is None:
        raise OtimesError(f"{model.name} has no rotary positions: give part='latent'")
    turned = queries(model, layer, head, dtype)[:, :dims] @ turn[:dims, :dims].astype(dtype)
    return Factored(turned, weight(model, "W_KR", layer, dtype).T)
