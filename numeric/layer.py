"""The weights of one block, and of one head, in float64, as the reference forward pass uses them.

Biases that a model lacks are 0 and gains are 1, so that formulas need no cases. In grouped-query
attention each head has a copy of the keys and values of its group.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True, slots=True, eq=False)
class HeadWeights:
    """The weights of one head; keys and values may read another input (cross-attention)."""

    W_Q: Float[np.ndarray, "d_query d_head"]
    W_K: Float[np.ndarray, "d_source d_key"]
    W_V: Float[np.ndarray, "d_source d_value"]
    W_O: Float[np.ndarray, "d_value d_model"]
    b_Q: Float[np.ndarray, " d_head"]
    b_K: Float[np.ndarray, " d_head"]
    b_V: Float[np.ndarray, " d_value"]
    q_norm_gain: Float[np.ndarray, " d_head"] = field(default_factory=lambda: np.ones(1))
    k_norm_gain: Float[np.ndarray, " d_head"] = field(default_factory=lambda: np.ones(1))
    sink: float = 0.0
    number: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The weights of one block, in float64."""

    ln1_gain: Float[np.ndarray, " d_model"]
    ln1_bias: Float[np.ndarray, " d_model"]
    W_Q: Float[np.ndarray, "n_heads d_query d_head"]
    b_Q: Float[np.ndarray, "n_heads d_head"]
    W_K: Float[np.ndarray, "n_heads d_source d_key"]
    b_K: Float[np.ndarray, "n_heads d_head"]
    W_V: Float[np.ndarray, "n_heads d_source d_value"]
    b_V: Float[np.ndarray, "n_heads d_value"]
    W_O: Float[np.ndarray, "n_heads d_value d_model"]
    b_O: Float[np.ndarray, " d_model"]
    ln2_gain: Float[np.ndarray, " d_model"]
    ln2_bias: Float[np.ndarray, " d_model"]
    W_in: Float[np.ndarray, "d_model d_mlp"]
    b_in: Float[np.ndarray, " d_mlp"]
    W_gate: Float[np.ndarray, "d_model d_mlp"]
    b_gate: Float[np.ndarray, " d_mlp"]
    W_out: Float[np.ndarray, "d_mlp d_model"]
    b_out: Float[np.ndarray, " d_model"]
    ln1_post_gain: Float[np.ndarray, " d_model"]
    ln1_post_bias: Float[np.ndarray, " d_model"]
    ln2_post_gain: Float[np.ndarray, " d_model"]
    ln2_post_bias: Float[np.ndarray, " d_model"]
    q_norm_gain: Float[np.ndarray, "n_heads d_head"]
    k_norm_gain: Float[np.ndarray, "n_heads d_head"]
    sinks: Float[np.ndarray, " n_heads"]
    W_router: Float[np.ndarray, "d_model n_routed"]
    b_router: Float[np.ndarray, " n_routed"]
    b_choice: Float[np.ndarray, " n_experts"]
    b_experts: Float[np.ndarray, "n_experts d_model"]
    W_DQ: Float[np.ndarray, "d_model q_rank"]
    q_latent_gain: Float[np.ndarray, " q_rank"]
    W_DKV: Float[np.ndarray, "d_model kv_rank"]
    kv_latent_gain: Float[np.ndarray, " kv_rank"]
    W_KR: Float[np.ndarray, "d_model rotary_dims"]

    def head(self, h: int) -> HeadWeights:
        """Return the weights of head h, as views."""
        return HeadWeights(
            W_Q=self.W_Q[h],
            W_K=self.W_K[h],
            W_V=self.W_V[h],
            W_O=self.W_O[h],
            b_Q=self.b_Q[h],
            b_K=self.b_K[h],
            b_V=self.b_V[h],
            q_norm_gain=self.q_norm_gain[h],
            k_norm_gain=self.k_norm_gain[h],
            sink=float(self.sinks[h]),
            number=h,
        )
