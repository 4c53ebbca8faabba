"""The tensors of latent attention in a checkpoint of DeepSeek.

A head's queries and keys end with the dimensions that are rotated; here they begin with them. One
projection of the stream holds the latent of keys and values, and then the rotary part of the keys.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from otimes.numeric.config import Config
from otimes.numeric.importers.checkpoint import Settings, as_is, refuse
from otimes.numeric.importers.rotary import rotary
from otimes.numeric.tensors import Tensor

Fields = dict[str, Any]
Stacked = Callable[[str, tuple[int, ...], Callable[..., Any]], Tensor]
LATENTS = {"q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"}
"""The settings of latent attention."""


def latent_fields(name: str, settings: Settings) -> Fields:
    """Return the sizes of latents and heads, and the scale of the scores, which YaRN may change."""
    own, turned = settings.size("qk_nope_head_dim"), settings.size("qk_rope_head_dim")
    refuse(name, settings, {"attention_bias": (False, None)})
    rope = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    scale = 0.0
    grown = rope.get("mscale_all_dim")
    if grown and rope.get("rope_type", rope.get("type", "default")) != "default":
        factor = rope["factor"]
        length = 1.0 if factor <= 1 else 0.1 * grown * float(np.log(factor)) + 1.0
        scale = length**2 / (own + turned) ** 0.5
    return {
        "kv_rank": settings.size("kv_lora_rank"),
        "q_rank": settings.get("q_lora_rank") or 0,
        "d_head": own + turned,
        "d_value": settings.size("v_head_dim"),
        "n_kv_heads": None,
        "attn_scale": scale,
    }


def latent_positions(decoder: Any, name: str, settings: Settings) -> Fields:
    """Return the rotary fields of the dimensions that are rotated, as `Decoder.positions` does."""
    between = settings.get("rope_interleave", True)
    layout = "interleaved" if between or between is None else "half"
    return {**rotary(name, settings, settings.size("qk_rope_head_dim")), "rotary_layout": layout}


def read_latents(config: Config, stacked: Stacked) -> dict[str, Tensor]:
    """Return the weights of queries, keys and values and of their latents."""
    c = config
    heads, dims, own, dv = c.n_heads, c.rotary_dims, c.d_key, c.value_width
    both = (c.kv_rank + dims, c.d_model)
    down, up = "self_attn.kv_a_proj_with_mqa.weight", "self_attn.kv_b_proj.weight"

    def of_heads(first: int, width: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda w: w.reshape(heads, own + dv, c.kv_rank)[:, first : first + width].swapaxes(
            1, 2
        )

    def queries(w: np.ndarray) -> np.ndarray:
        each = w.reshape(heads, c.d_head, c.query_in)
        return np.concatenate([each[:, own:], each[:, :own]], axis=1).swapaxes(1, 2)

    name = "self_attn.q_b_proj.weight" if c.q_rank else "self_attn.q_proj.weight"
    found = {
        "W_Q": stacked(name, (heads * c.d_head, c.query_in), queries),
        "W_DKV": stacked(down, both, lambda w: w[: c.kv_rank].T),
        "W_KR": stacked(down, both, lambda w: w[c.kv_rank :].T),
        "kv_latent_gain": stacked("self_attn.kv_a_layernorm.weight", (c.kv_rank,), as_is),
        "W_K": stacked(up, (heads * (own + dv), c.kv_rank), of_heads(0, own)),
        "W_V": stacked(up, (heads * (own + dv), c.kv_rank), of_heads(own, dv)),
    }
    if c.q_rank:
        shape = (c.q_rank, c.d_model)
        found["W_DQ"] = stacked("self_attn.q_a_proj.weight", shape, np.transpose)
        found["q_latent_gain"] = stacked("self_attn.q_a_layernorm.weight", shape[:1], as_is)
    return found
