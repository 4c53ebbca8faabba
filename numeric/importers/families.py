"""The families of decoders that are imported, each declared by what differs from Llama."""

from typing import Any

import numpy as np

from otimes.numeric.importers import families_encoders, families_experts, families_older
from otimes.numeric.importers.checkpoint import Settings
from otimes.numeric.importers.declared import (
    ATTENTION_BIAS,
    BOTH,
    OF_ALL,
    OF_QUERIES,
    OUTPUT,
    QK,
    WHOLE,
    WINDOWS,
    decoder,
    every_window,
    exaone_windows,
    granite,
    if_set,
    layers_of,
    llama_biases,
    only_windows_rotated,
    query_biases,
    ungated_biases,
    windows_by_layer,
)
from otimes.numeric.importers.decoders import Decoder, Fields, head_width
from otimes.numeric.importers.rotary import local_base, rotary


def gemma2(name: str, settings: Settings) -> Fields:
    """Return what Gemma 2 declares; without layer types every second layer has a window."""
    types = settings.get("layer_types")
    sliding = [layer % 2 == 0 for layer in layers_of(settings)]
    if types is not None:
        sliding = [each == "sliding_attention" for each in types]
    window = settings.get("sliding_window") or 0
    return {
        **gemma(name, settings),
        "windows": tuple(window if each else 0 for each in sliding),
        "attn_scale": float(settings["query_pre_attn_scalar"]) ** -0.5,
        "score_cap": float(settings.get("attn_logit_softcapping") or 0.0),
        "logit_cap": float(settings.get("final_logit_softcapping") or 0.0),
    }


def gemma3(name: str, settings: Settings) -> Fields:
    """Return what Gemma 3 declares: windows in five layers of six, with their own rotary base."""
    every = settings.get("sliding_window_pattern") or settings.get("_sliding_window_pattern") or 6
    types = [
        "sliding_attention" if (layer + 1) % every else "full_attention"
        for layer in layers_of(settings)
    ]
    said = {**settings, "layer_types": settings.get("layer_types") or types}
    return {**gemma2(name, Settings(name, said)), "local_base": local_base(name, settings)}


def gemma(name: str, settings: Settings) -> Fields:
    """Return what all Gemmas declare: gains stored minus 1, embeddings times √d_model.

    The library keeps √d_model in float32 and rounds that to the type of the embedding.
    """
    scale = float(np.float32(float(settings.size("hidden_size")) ** 0.5))
    return {"gain_offset": True, "embed_scale": scale}


PHI = {**{letter: f"self_attn.{letter.lower()}_proj" for letter in "QKV"}, "O": "self_attn.dense"}

UNGATED = {"in": "mlp.up_proj", "out": "mlp.down_proj"}
FUSED_GATE = {"fused_mlp": "mlp.gate_up_proj"}
GLM: dict[str, Any] = {"layout": "interleaved", "fraction": 0.5, "whole": False, **FUSED_GATE}
AROUND = {
    "ln1": "input_layernorm",
    "ln1_post": "post_self_attn_layernorm",
    "ln2": "post_attention_layernorm",
    "ln2_post": "post_mlp_layernorm",
}
NO_BIASES: dict[str, Any] = {"norm": "layer", "norm_biases": False, "eps": "layer_norm_eps"}
COHERE: dict[str, Any] = {
    "norms": {"ln1": "input_layernorm", "ln2": "input_layernorm"},
    **NO_BIASES,
    "parallel": lambda settings: True,
    "layout": "interleaved",
}
SCALES = {"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"}


def cohere(name: str, settings: Settings) -> Fields:
    """Return the scale of logits of Command R, and whether queries and keys are normalised."""
    kind = "head" if settings.get("use_qk_norm") else "none"
    return {"qk_norm": kind, "logit_scale": float(settings.get("logit_scale", 0.0625))}


def cohere2(name: str, settings: Settings) -> Fields:
    """Return what Command A declares: windows with rotary positions, whole layers without."""
    every = settings.get("sliding_window_pattern") or settings.get("_sliding_window_pattern") or 4
    scale = float(settings.get("logit_scale", 0.0625))
    return {**only_windows_rotated(name, settings, every), "logit_scale": scale}


def smollm3(name: str, settings: Settings) -> Fields:
    """Return the layers of SmolLM 3 without positions, and its windows."""
    every = settings.get("no_rope_layer_interval") or 4
    layers = layers_of(settings)
    turned = settings.get("no_rope_layers") or [(layer + 1) % every for layer in layers]
    fields = windows_by_layer(name, settings) if settings.get("use_sliding_window") else {}
    return {**fields, "unrotated_layers": tuple(x for x in layers if not turned[x])}


def ministral3_positions(decoder: Decoder, name: str, settings: Settings) -> Fields:
    """Return the rotation of Ministral 3, for prompts as long as those it was first trained on.

    From there on it multiplies queries by a factor that grows with the position.
    """
    own = dict(settings.get("rope_parameters") or {})
    own.pop("max_position_embeddings", None)
    grows = own.pop("llama_4_scaling_beta", None)
    fields = rotary(
        name, Settings(name, {**settings, "rope_parameters": own}), head_width(settings), 1.0, True
    )
    first = own.get("original_max_position_embeddings")
    return {**fields, "n_ctx": min(fields["n_ctx"], first)} if grows and first else fields


OF_GEMMA = {
    *(ATTENTION_BIAS | WINDOWS),
    *("query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"),
}
ONE_WAY = {**WHOLE, "use_bidirectional_attention": (None, False)}

LIKE_LLAMA: dict[str, Decoder] = {
    "cohere": decoder(
        ATTENTION_BIAS | {"use_qk_norm", "logit_scale"},
        biases=llama_biases,
        more=cohere,
        qk=QK,
        qk_each=True,
        **COHERE,
    ),
    "cohere2": decoder(
        ATTENTION_BIAS | WINDOWS | {"logit_scale", "sliding_window_pattern"},
        biases=llama_biases,
        more=cohere2,
        only={
            **WHOLE,
            "use_qk_norm": (False, None),
            "rotary_pct": (1, 1.0, None),
            "use_parallel_block": (True, None),
            "use_gated_activation": (True, None),
            "use_parallel_embedding": (False, None),
            "use_embedding_sharing": (True, None),
            "position_embedding_type": ("rope_gptj", None),
            "order_of_interleaved_layers": ("local_attn_first", None),
            "layer_switch": (None, 4),
        },
        **COHERE,
    ),
    "granite": decoder(ATTENTION_BIAS | {"mlp_bias"} | SCALES, biases=llama_biases, more=granite),
    "smollm3": decoder(
        ATTENTION_BIAS
        | WINDOWS
        | {"mlp_bias", "no_rope_layers", "no_rope_layer_interval", "use_sliding_window"}
        | {"max_window_layers"},
        biases=llama_biases,
        more=smollm3,
        only={**WHOLE, "pretraining_tp": (1, 2, None)},
    ),
    "exaone4": decoder(
        WINDOWS | {"sliding_window_pattern"},
        norms=OUTPUT,
        order="output",
        more=exaone_windows,
        heads_first=True,
        qk=QK,
        qk_norm="head",
    ),
    "nemotron": decoder(
        ATTENTION_BIAS | {"partial_rotary_factor", "mlp_bias"},
        norm="layer",
        eps="norm_eps",
        mlp=UNGATED,
        biases=ungated_biases,
        more=lambda name, settings: {"gain_offset": True},
        fraction=0.5,
        whole=False,
        only={},
    ),
    "arcee": decoder(ATTENTION_BIAS | {"mlp_bias"}, mlp=UNGATED, biases=ungated_biases),
    "jais2": decoder(
        ATTENTION_BIAS | {"mlp_bias"},
        norm="layer",
        eps="layer_norm_eps",
        mlp=UNGATED,
        biases=ungated_biases,
    ),
    "seed_oss": decoder(
        ATTENTION_BIAS | {"attention_out_bias", "mlp_bias"},
        biases=lambda settings: (
            *query_biases({"attention_bias": True, **settings}),
            *(["b_O"] if settings.get("attention_out_bias") else []),
            *llama_biases({**settings, "attention_bias": False}),
        ),
        only={**WHOLE, "pretraining_tp": (1, None)},
    ),
    "ernie4_5": decoder(
        {"use_bias"},
        biases=lambda settings: llama_biases(
            dict.fromkeys(("attention_bias", "mlp_bias"), settings.get("use_bias", False))
        ),
        layout="interleaved",
    ),
    "helium": decoder(
        ATTENTION_BIAS | {"mlp_bias"},
        biases=lambda settings: (
            *query_biases(settings),
            *llama_biases({**settings, "attention_bias": False}),
        ),
        layout="interleaved",
    ),
    "ministral": decoder(WINDOWS, more=windows_by_layer),
    "ministral3": decoder({"sliding_window"}, more=every_window, positions=ministral3_positions),
    "cwm": decoder(
        WINDOWS | {"mlp_bias"},
        biases=llama_biases,
        more=windows_by_layer,
        only={**WHOLE, "pretraining_tp": (1, None)},
    ),
    "glm": decoder(
        ATTENTION_BIAS | {"partial_rotary_factor"},
        biases=lambda settings: query_biases({"attention_bias": True, **settings}),
        only={},
        **GLM,
    ),
    "glm4": decoder(
        ATTENTION_BIAS | {"partial_rotary_factor"},
        norms=AROUND,
        order="both",
        biases=lambda settings: query_biases({"attention_bias": True, **settings}),
        only={},
        **GLM,
    ),
    "vaultgemma": decoder(
        OF_GEMMA,
        norms={"ln1": "input_layernorm", "ln2": "pre_feedforward_layernorm"},
        act="hidden_activation",
        biases=llama_biases,
        more=gemma2,
        only=ONE_WAY,
    ),
    "llama": decoder(
        {"attention_bias", "mlp_bias"},
        biases=llama_biases,
        only={**WHOLE, "pretraining_tp": (1, None)},
    ),
    "mistral": decoder(WINDOWS, biases=llama_biases, more=every_window),
    "qwen2": decoder(
        WINDOWS | {"use_sliding_window", "max_window_layers"},
        biases=lambda settings: OF_QUERIES,
        more=windows_by_layer,
    ),
    "qwen3": decoder(
        WINDOWS | ATTENTION_BIAS | {"use_sliding_window", "max_window_layers"},
        biases=llama_biases,
        more=windows_by_layer,
        qk=QK,
        qk_norm="head",
    ),
    "olmo2": decoder(
        *(ATTENTION_BIAS,), norms=OUTPUT, order="output", biases=llama_biases, qk=QK, qk_norm="all"
    ),
    "olmo3": decoder(
        ATTENTION_BIAS | WINDOWS,
        norms=OUTPUT,
        order="output",
        biases=llama_biases,
        qk=QK,
        qk_norm="all",
        more=windows_by_layer,
    ),
    "gemma": decoder(
        ATTENTION_BIAS | {"hidden_activation"},
        biases=llama_biases,
        more=gemma,
        only=ONE_WAY,
    ),
    "gemma2": decoder(
        OF_GEMMA,
        norms=BOTH,
        order="both",
        act="hidden_activation",
        biases=llama_biases,
        more=gemma2,
        only=ONE_WAY,
    ),
    "gemma3_text": decoder(
        OF_GEMMA | {"rope_local_base_freq", "sliding_window_pattern"},
        norms=BOTH,
        order="both",
        act="hidden_activation",
        biases=llama_biases,
        more=gemma3,
        heads_first=True,
        qk=QK,
        qk_norm="head",
        only=ONE_WAY,
    ),
    "phi": decoder(
        {"partial_rotary_factor"},
        norms={"ln1": "input_layernorm", "ln2": "input_layernorm"},
        norm="layer",
        eps="layer_norm_eps",
        heads=PHI,
        mlp={"in": "mlp.fc1", "out": "mlp.fc2"},
        biases=lambda settings: (*OF_ALL, "b_U"),
        parallel=lambda settings: True,
        fraction=0.5,
        whole=False,
        final="final_layernorm",
        only={"qk_layernorm": (False,)},
    ),
    "phi3": decoder(
        {"partial_rotary_factor", "original_max_position_embeddings", "sliding_window"},
        fused="self_attn.qkv_proj",
        fused_mlp="mlp.gate_up_proj",
        more=every_window,
        whole=False,
        only={},
    ),
    "stablelm": decoder(
        {"partial_rotary_factor", "use_qkv_bias", "use_parallel_residual"},
        norm="layer",
        eps="layer_norm_eps",
        biases=if_set("use_qkv_bias", OF_QUERIES),
        parallel=lambda settings: bool(settings.get("use_parallel_residual")),
        fraction=0.25,
        whole=False,
        only={"qk_layernorm": (False,)},
    ),
    "starcoder2": decoder(
        {"use_bias", "sliding_window"},
        norm="layer",
        eps="norm_epsilon",
        mlp={"in": "mlp.c_fc", "out": "mlp.c_proj"},
        biases=if_set("use_bias", OF_ALL, True),
        more=every_window,
    ),
}
"""The families without experts that are made of the parts of Llama."""

DECODERS = {
    **LIKE_LLAMA,
    **families_experts.DECODERS,
    **families_older.DECODERS,
    **families_encoders.DECODERS,
}
"""The families that are read by `read_decoder`, by their `model_type`."""
