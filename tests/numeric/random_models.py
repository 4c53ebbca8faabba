"""Small models with generic weights: no zero, no two equal sizes, so that no mix-up goes unseen."""

from dataclasses import replace

import numpy as np

from otimes.numeric.config import BIASES, Config
from otimes.numeric.model import Model, make_model

TINY = Config(
    n_layers=2, n_heads=3, d_model=5, d_head=2, d_vocab=11, n_ctx=7, positions="shortformer"
)
TINY_TOKENS = [3, 0, 10, 3, 7, 7]

FULL = Config(
    n_layers=2,
    n_heads=4,
    d_model=9,
    d_head=6,
    d_vocab=11,
    n_ctx=7,
    positions="learned",
    d_mlp=13,
    activation="gelu_tanh",
    norm="layer",
    final_norm=True,
    biases=("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out"),
)

# Each flag in at least one kind, each kind with something that no other has.
KINDS = {
    "attention only": TINY,
    "without positions": replace(TINY, positions="none"),
    "without layers": replace(TINY, n_layers=0),
    "biases only": replace(TINY, biases=("b_Q", "b_K", "b_V", "b_O", "b_U")),
    "gpt2": replace(FULL, tied=True),
    "shortformer with norms": replace(FULL, positions="shortformer", activation="gelu"),
    "llama": replace(
        FULL,
        positions="rotary",
        rotary_dims=6,
        n_kv_heads=2,
        activation="silu",
        gated=True,
        norm="rms",
        norm_eps=1e-2,
        biases=(),
    ),
    "llama 3.1": replace(
        FULL,
        positions="rotary",
        rotary_dims=6,
        rotary_base=50.0,
        rotary_stretch=(8.0, 0.3, 1.0, 12.0),  # one pair above, one between, one below
        activation="silu",
        gated=True,
        norm="rms",
        biases=(),
    ),
    "yarn": replace(
        FULL,
        positions="rotary",
        rotary_dims=6,
        rotary_base=50.0,
        rotary_stretch=(8.0, 0.2, 1.0, 12.0, 1.3),  # one pair left alone, one between, one divided
        activation="silu",
        gated=True,
        norm="rms",
        biases=(),
    ),
    "neox": replace(FULL, positions="rotary", rotary_dims=4, activation="gelu", parallel=True),
    "gptj": replace(
        FULL,
        positions="rotary",
        rotary_dims=4,
        rotary_base=50.0,
        rotary_layout="interleaved",
        parallel=True,
        biases=("b_in", "b_out", "b_U"),
    ),
    "everything": replace(
        FULL,
        positions="rotary",
        rotary_dims=2,
        n_kv_heads=1,
        activation="gelu",
        gated=True,
        parallel=True,
        norm_eps=0.5,
        tied=True,
        biases=BIASES,
    ),
    "relu, no norm at the end": replace(
        FULL, activation="relu", norm="rms", final_norm=False, positions="none", biases=()
    ),
    "mlp without norms": replace(FULL, norm="none", final_norm=False, biases=("b_out",)),
    "norms but no layers": replace(FULL, n_layers=0),
}

GATED = replace(KINDS["llama"], n_kv_heads=2)
# What open models are made of since Llama; computed by the torch model too.
MODERN = {
    "yarn, not rounded": replace(KINDS["yarn"], rotary_stretch=(8.0, 0.2, 1.0, 12.0, 1.3, 0)),
    "dynamic": replace(KINDS["yarn"], rotary_stretch=("dynamic", 3.0, 4)),
    "longrope, short": replace(
        KINDS["yarn"], rotary_stretch=("longrope", 6, 1.2, 1.0, 1.1, 1.5, 1.3, 4.0, 9.0)
    ),
    "longrope, long": replace(
        KINDS["yarn"], rotary_stretch=("longrope", 5, 1.2, 1.0, 1.1, 1.5, 1.3, 4.0, 9.0)
    ),
    "qwen3": replace(GATED, qk_norm="head", biases=("b_Q", "b_K", "b_V")),
    "olmo2": replace(GATED, qk_norm="all", norm_order="output"),
    "gemma2": replace(
        *(GATED,),
        norm_order="both",
        gain_offset=True,
        embed_scale=3.0,
        tied=True,
        attn_scale=0.3,
        score_cap=2.0,
        logit_cap=3.0,
        windows=(3, 0),
        activation="gelu_tanh",
    ),
    "gemma3": replace(
        *(GATED,),
        norm_order="both",
        gain_offset=True,
        embed_scale=3.0,
        tied=True,
        qk_norm="head",
        windows=(0, 2),
        rotary_base=500.0,
        rotary_stretch=(4.0,),
        local_base=20.0,
    ),
    "granite": replace(
        GATED,
        embed_scale=3.0,
        attn_scale=0.2,
        write_scale=0.3,
        logit_scale=0.7,
        biases=("b_O", "b_out"),
    ),
    "granite with experts": replace(
        *(GATED,),
        n_experts=4,
        experts_per_token=2,
        d_mlp=12,
        tied=True,
        write_scale=0.3,
        logit_scale=0.7,
        biases=("b_Q", "b_O", "b_experts"),
    ),
    "layers without positions": replace(
        GATED, unrotated_layers=(1,), rotary_stretch=(8.0, 0.3, 1.0, 12.0), windows=(3, 0)
    ),
    "nemotron": replace(
        KINDS["neox"],
        parallel=False,
        activation="relu2",
        gain_offset=True,
        biases=(),
        norm_eps=1e-2,
    ),
    "gpt-oss": replace(
        GATED, sinks=True, windows=(3, 0), biases=("b_Q", "b_K", "b_V", "b_O", "b_out")
    ),
    "mixtral": replace(GATED, n_experts=4, experts_per_token=2, d_mlp=12, tied=True),
    "qwen2 with experts": replace(
        *(GATED,),
        n_experts=3,
        experts_per_token=2,
        router="all",
        router_scale=1.5,
        d_shared=4,
        shared_gate=True,
        d_mlp=13,
        dense_layers=(0,),
    ),
    "experts of gpt-oss": replace(
        *(GATED,),
        n_experts=4,
        experts_per_token=2,
        d_mlp=12,
        sinks=True,
        activation="quick_gelu",
        gate_limit=0.7,
        biases=("b_in", "b_gate", "b_router", "b_experts"),
    ),
    "experts of deepseek": replace(
        *(GATED,),
        n_experts=6,
        experts_per_token=3,
        d_mlp=14,
        d_shared=2,
        router="sigmoid",
        router_scale=2.5,
        router_groups=(3, 2, 2),
        norm_order="both",
        biases=("b_choice", "b_experts"),
    ),
    "deepseek": replace(
        *(GATED,),
        n_kv_heads=None,
        kv_rank=5,
        q_rank=7,
        d_value=3,
        rotary_dims=4,
        rotary_layout="interleaved",
        attn_scale=0.3,
        biases=("b_O",),
    ),
    "latents of keys only": replace(
        GATED, n_kv_heads=None, kv_rank=5, d_value=3, rotary_dims=2, gain_offset=True, d_mlp=8
    ),
    "bloom": replace(
        FULL, positions="alibi", alibi_slopes=(0.7, 0.3, 0.1, 0.03), tied=True, embed_norm=True
    ),
    "norm of learned positions": replace(FULL, embed_norm=True, norm_order="post"),
    "layer norms of queries, parallel": replace(
        FULL,
        positions="alibi",
        alibi_slopes=(0.7, 0.3, 0.1, 0.03),
        qk_norm="all",
        parallel=True,
        gated=True,
        norm_order="both",
    ),
}

# The norms after the sums, as torch.nn's TransformerEncoderLayer has them by default.
POST_NORM = {
    "encoder": replace(FULL, activation="relu", positions="none", norm_order="post"),
    "encoder without a norm at the end": replace(
        FULL, norm_order="post", final_norm=False, activation="gelu", biases=()
    ),
    "post-norm llama": replace(KINDS["llama"], norm_order="post"),
    "post-norm shortformer": replace(KINDS["shortformer with norms"], norm_order="post"),
    "post-norm attention only": replace(
        TINY, norm="layer", norm_order="post", biases=("b_V", "b_O", "b_U")
    ),
}
EVERY = KINDS | POST_NORM
ALL = EVERY | MODERN


def random_weights(config: Config, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        name: (rng.standard_normal(shape) / 2).astype(np.float32)
        for name, shape in config.tensor_shapes().items()
    }


def random_model(config: Config = TINY, seed: int = 0) -> Model:
    return make_model("random", config, random_weights(config, seed))
