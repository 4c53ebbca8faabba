"""Models with random weights, of any architecture and size.

The usual initialisation (zero biases, unit gains) is a degenerate test point, at which many
mistakes have no effect. Here biases and gains are random too. Scales are chosen so that activations
are of order one, attention patterns are neither uniform nor one-hot, and the residual stream grows
slowly from block to block.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config, listed
from otimes.numeric.model import Model, checked_model

SMALL: dict[str, Any] = {
    "n_layers": 2,
    "n_heads": 4,
    "d_model": 32,
    "d_head": 8,
    "d_vocab": 64,
    "n_ctx": 32,
    "positions": "none",
}
"""The default configuration of `random_model`."""


LLAMA: dict[str, Any] = {
    "positions": "rotary",
    "rotary_dims": 8,
    "n_kv_heads": 2,
    "d_mlp": 48,
    "activation": "silu",
    "gated": True,
    "norm": "rms",
    "final_norm": True,
}
LAYER_NORM: dict[str, Any] = {
    "d_mlp": 48,
    "activation": "gelu",
    "norm": "layer",
    "final_norm": True,
    "biases": ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out"),
}
GEMMA: dict[str, Any] = {
    **LLAMA,
    "activation": "gelu_tanh",
    "tied": True,
    "gain_offset": True,
    "embed_scale": 32**0.5,
}
MOE: dict[str, Any] = {**LLAMA, "n_experts": 4, "experts_per_token": 2, "d_mlp": 4 * 12}
DEEPSEEK: dict[str, Any] = {
    **MOE,
    "n_kv_heads": None,
    "kv_rank": 12,
    "d_head": 10,
    "rotary_dims": 4,
    "rotary_layout": "interleaved",
    "d_value": 6,
    "d_shared": 12,
    "d_mlp": 5 * 12,
    "dense_layers": (0,),
}
SLOPES = (0.25, 0.0625, 0.015625, 0.00390625)
KINDS: dict[str, dict[str, Any]] = {
    "gpt2": {**LAYER_NORM, "positions": "learned", "activation": "gelu_tanh", "tied": True},
    "neox": {**LAYER_NORM, "positions": "rotary", "rotary_dims": 4, "parallel": True},
    "llama": LLAMA,
    "llama3": {**LLAMA, "rotary_stretch": (8.0, 0.3, 1.0, 12.0)},
    "mistral": {**LLAMA, "windows": (6, 6)},
    "qwen2": {**LLAMA, "biases": ("b_Q", "b_K", "b_V")},
    "qwen3": {**LLAMA, "qk_norm": "head"},
    "olmo2": {**LLAMA, "qk_norm": "all", "norm_order": "output"},
    "gemma": GEMMA,
    "gemma2": {
        **GEMMA,
        "norm_order": "both",
        "windows": (6, 0),
        "attn_scale": 0.3,
        "score_cap": 5.0,
        "logit_cap": 6.0,
    },
    "gemma3": {
        **GEMMA,
        "norm_order": "both",
        "windows": (6, 0),
        "qk_norm": "head",
        "local_base": 100.0,
    },
    "bloom": {**LAYER_NORM, "positions": "alibi", "alibi_slopes": SLOPES, "embed_norm": True},
    "falcon": {**LAYER_NORM, "positions": "rotary", "rotary_dims": 8, "n_kv_heads": 1,
               "parallel": True, "biases": ()},
    "mixtral": MOE,
    "qwen2_moe": {
        **MOE,
        "router": "all",
        "biases": ("b_Q", "b_K", "b_V"),
        "d_shared": 20,
        "shared_gate": True,
        "d_mlp": 4 * 12 + 20,
        "dense_layers": (0,),
    },
    "qwen3_moe": {**MOE, "qk_norm": "head"},
    "gpt_oss": {
        **MOE,
        "activation": "quick_gelu",
        "gate_limit": 2.0,
        "sinks": True,
        "windows": (6, 0),
        "biases": ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_gate", "b_router", "b_experts"),
    },
    "deepseek2": {
        **DEEPSEEK,
        "router": "all",
        "router_scale": 1.5,
        "router_groups": (2, 1, 1),
    },
    "deepseek3": {
        **DEEPSEEK,
        "q_rank": 20,
        "router": "sigmoid",
        "router_scale": 2.5,
        "router_groups": (2, 1, 2),
        "biases": ("b_choice",),
    },
    "cohere": {**LAYER_NORM, "positions": "rotary", "rotary_dims": 8,
               "rotary_layout": "interleaved", "gated": True, "activation": "silu",
               "parallel": True, "biases": (), "tied": True,
               "windows": (6, 0), "unrotated_layers": (1,), "logit_scale": 0.25},
    "granite": {**LLAMA, "embed_scale": 6.0, "attn_scale": 0.2, "write_scale": 0.3,
                "logit_scale": 0.5},
    "smollm3": {**LLAMA, "unrotated_layers": (1,)},
    "nemotron": {**LAYER_NORM, "positions": "rotary", "rotary_dims": 4, "activation": "relu2",
                 "gain_offset": True, "biases": ()},
    "sinks": {**LLAMA, "sinks": True, "windows": (6, 0)},
}  # fmt: skip
"""The architectures of `random_model`, by the name of a family."""


def random_model(
    config: Config | None = None,
    seed: int = 0,
    *,
    kind: str | None = None,
    dtype: type[np.floating] = np.float64,
    name: str = "random",
    **fields: Any,
) -> Model:
    """Return a model with random weights, stored as `dtype`.

    The configuration is `config`, by default a small attention-only one, or that of a `kind`
    ("gpt2", "llama", "gemma2", …: `KINDS`), with the given `fields` of `Config` changed.

    Matrices are normal with variance 1 / fan-in. W_Q and W_K are larger, so that scores have a
    standard deviation of about 2; W_O and W_out are smaller by √(2 n_layers). Biases have standard
    deviation 0.3, gains mean 1 and standard deviation 0.3, embeddings standard deviation 1 (0.5
    when they are tied, which would make logits large).

    >>> from otimes.numeric.config import gpt2_config
    >>> random_model(gpt2_config(), n_layers=1, d_vocab=50).forward([1, 2, 3])["logits"].shape
    (3, 50)

    >>> random_model(kind="gemma2").config.norm_order
    'both'

    Raises: OtimesError for unknown or invalid fields, or an unknown kind.
    """
    unknown = [field for field in fields if field not in Config.__slots__]
    if unknown:
        raise OtimesError(
            f"a configuration has no field {listed(unknown)}; it has {listed(Config.__slots__)}"
        )
    if kind is not None and (kind not in KINDS or config is not None):
        raise OtimesError(
            f"kind={kind!r} must be one of {listed(KINDS)}, and is given instead of a config"
        )
    of_kind = KINDS[kind] if kind is not None else {}
    config = (
        Config(**{**SMALL, **of_kind, **fields}) if config is None else replace(config, **fields)
    )
    rng = np.random.default_rng(seed)
    weights = {}
    for tensor, shape in config.tensor_shapes().items():
        values = rng.standard_normal(shape)
        values *= _std(tensor, config)
        if tensor.endswith("_gain") and not config.gain_offset:
            values += 1.0
        weights[tensor] = values.astype(dtype, copy=False)
    return checked_model(name, config, weights)


def _std(tensor: str, config: Config) -> float:
    """Return the standard deviation of a tensor's entries."""
    deep = float(np.sqrt(2 * max(config.n_layers, 1)))
    if tensor in ("b_O", "b_out"):
        return 0.3 / deep
    if tensor.endswith("_gain") or tensor.startswith(("b_", "ln", "sinks")):
        return 0.3
    std: dict[str, float] = {
        "W_E": 0.5 if config.tied else 1.0,
        "W_pos": 0.5 if config.tied else 1.0,
        "W_Q": 1.5 * config.query_in**-0.5,
        "W_K": 1.5 * config.key_in**-0.5,
        "W_KR": 1.5 * config.d_model**-0.5,
        "W_V": config.key_in**-0.5,
        "W_O": (config.n_heads * config.value_width) ** -0.5 / deep,
        "W_out": max(config.d_mlp, 1) ** -0.5 / deep,
    }
    return std.get(tensor, config.d_model**-0.5)
