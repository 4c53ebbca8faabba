"""The families of decoders that are imported, each declared by what differs from Llama."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from otimes.numeric.importers.checkpoint import Settings, refuse
from otimes.numeric.importers.decoders import HEADS, PRE, Decoder, Fields, head_width
from otimes.numeric.importers.experts import ExpertNames, sizes
from otimes.numeric.importers.latents import LATENTS, latent_fields, latent_positions
from otimes.numeric.importers.rotary import local_base, rotary

SIZES = {
    "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_size",
    "vocab_size", "intermediate_size", "hidden_act", "max_position_embeddings",
}  # fmt: skip
ROPE = {"rope_theta", "rope_parameters", "rope_scaling"}
WINDOWS = {"sliding_window", "layer_types"}
OUTPUT = {"ln1_post": "post_attention_layernorm", "ln2_post": "post_feedforward_layernorm"}
BOTH = {**OUTPUT, "ln1": "input_layernorm", "ln2": "pre_feedforward_layernorm"}
QK = {"q": "self_attn.q_norm", "k": "self_attn.k_norm"}
WHOLE = {"partial_rotary_factor": (1, 1.0, None)}


def llama_biases(settings: Settings) -> Iterable[str]:
    """Return the biases of attention and of the MLP, each by its setting."""
    attention = ("b_Q", "b_K", "b_V", "b_O") if settings.get("attention_bias") else ()
    return (*attention, *(("b_in", "b_gate", "b_out") if settings.get("mlp_bias") else ()))


def every_window(name: str, settings: Settings) -> Fields:
    """Return the window that every layer has (Mistral)."""
    window = settings.get("sliding_window")
    return {"windows": (window,) * settings.size("num_hidden_layers")} if window else {}


def windows_by_layer(name: str, settings: Settings) -> Fields:
    """Return the windows of the layers whose type is `sliding_attention` (Qwen)."""
    window = settings.get("sliding_window")
    types = settings.get("layer_types")
    if types is None:
        used, first = settings.get("use_sliding_window", False), settings.get("max_window_layers")
        sliding = [
            bool(used and first is not None and layer >= first) for layer in _layers(settings)
        ]
    else:
        sliding = [each == "sliding_attention" for each in types]
    return {"windows": tuple(window if each else 0 for each in sliding)} if window else {}


def gemma2(name: str, settings: Settings) -> Fields:
    """Return what Gemma 2 declares; without layer types every second layer has a window."""
    types = settings.get("layer_types")
    sliding = [layer % 2 == 0 for layer in _layers(settings)]
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
        for layer in _layers(settings)
    ]
    said = {**settings, "layer_types": settings.get("layer_types") or types}
    return {**gemma2(name, Settings(name, said)), "local_base": local_base(name, settings)}


def gemma(name: str, settings: Settings) -> Fields:
    """Return what all Gemmas declare: gains stored minus 1, embeddings times √d_model.

    The library keeps √d_model in float32 and rounds that to the type of the embedding.
    """
    scale = float(np.float32(float(settings.size("hidden_size")) ** 0.5))
    return {"gain_offset": True, "embed_scale": scale}


MIXTRAL = ExpertNames(
    routers=("mlp.gate", "block_sparse_moe.gate"),
    experts=(
        {
            "gate": "block_sparse_moe.experts.{}.w1",
            "in": "block_sparse_moe.experts.{}.w3",
            "out": "block_sparse_moe.experts.{}.w2",
        },
    ),
    count="num_local_experts",
    width="intermediate_size",
)
QWEN_2 = ExpertNames(shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate")
QWEN_3 = ExpertNames()
GPT_OSS = ExpertNames(
    routers=("mlp.router",),
    interleaved=True,
    count="num_local_experts",
    width="intermediate_size",
)


def mixtral(name: str, settings: Settings) -> Fields:
    """Return the experts of Mixtral, and its window."""
    return {**sizes(MIXTRAL, name, settings), **every_window(name, settings)}


def qwen2_experts(name: str, settings: Settings) -> Fields:
    """Return the experts of Qwen 2, and a shared one with a gate."""
    shared = settings.size("shared_expert_intermediate_size")
    return {
        **sizes(QWEN_2, name, settings, shared),
        **_of_qwen(settings),
        **windows_by_layer(name, settings),
        "shared_gate": True,
    }


def qwen3_experts(name: str, settings: Settings) -> Fields:
    """Return the experts of Qwen 3, and the window of all layers."""
    window = every_window(name, settings) if settings.get("use_sliding_window") else {}
    return {**sizes(QWEN_3, name, settings), **_of_qwen(settings), **window}


def _of_qwen(settings: Settings) -> Fields:
    """Return the router of Qwen, and the layers without experts."""
    every, without = settings.get("decoder_sparse_step") or 1, settings.get("mlp_only_layers") or ()
    dense = [each for each in _layers(settings) if each in without or (each + 1) % every]
    router = "chosen" if settings.get("norm_topk_prob") else "all"
    return {"router": router, "dense_layers": tuple(dense)}


def gpt_oss(name: str, settings: Settings) -> Fields:
    """Return what gpt-oss declares: experts with a limit, sinks, windows in every second layer."""
    types = settings.get("layer_types") or [
        "full_attention" if layer % 2 else "sliding_attention" for layer in _layers(settings)
    ]
    refuse(name, {"swiglu_alpha": 1.702, **settings}, {"swiglu_alpha": (1.702,)})
    return {
        **sizes(GPT_OSS, name, settings),
        **windows_by_layer(name, Settings(name, {**settings, "layer_types": types})),
        "activation": "quick_gelu",
        "gate_limit": float(settings.get("swiglu_limit") or 7.0),
        "sinks": True,
    }


def gpt_oss_biases(settings: Settings) -> Iterable[str]:
    """Return the biases of gpt-oss: of attention by a setting, and of the experts."""
    attention = ("b_Q", "b_K", "b_V", "b_O") if settings.get("attention_bias", True) else ()
    return (*attention, "b_in", "b_gate", "b_router", "b_experts")


DEEPSEEK = ExpertNames(
    shared="mlp.shared_experts",
    choice_bias="mlp.gate.e_score_correction_bias",
    count="n_routed_experts",
)


def deepseek(name: str, settings: Settings) -> Fields:
    """Return what DeepSeek-V2 and V3 share: latents, experts, first layers without them."""
    shared = settings.size("moe_intermediate_size") * (settings.get("n_shared_experts") or 0)
    first = settings.get("first_k_dense_replace") or 0
    return {
        **sizes(DEEPSEEK, name, settings, shared),
        **latent_fields(name, settings),
        "dense_layers": tuple(layer for layer in _layers(settings) if layer < first),
        "router_scale": float(settings.get("routed_scaling_factor") or 1.0),
    }


def deepseek2(name: str, settings: Settings) -> Fields:
    """Return the router of DeepSeek-V2: softmax of all, of the groups with the largest weight."""
    method = settings.get("topk_method") or "greedy"
    allowed = {"topk_method": ("greedy", "group_limited_greedy"), "norm_topk_prob": (False, None)}
    refuse(name, {**settings, "topk_method": method}, allowed)
    groups: tuple[int, ...] = ()
    if method == "group_limited_greedy":
        groups = (settings.size("n_group"), settings.size("topk_group"), 1)
    return {**deepseek(name, settings), "router": "all", "router_groups": groups}


def deepseek3(name: str, settings: Settings) -> Fields:
    """Return the router of DeepSeek-V3: sigmoids, of the groups with the two largest."""
    refuse(name, settings, {"norm_topk_prob": (True, None)})
    count, kept = settings.get("n_group") or 1, settings.get("topk_group") or 1
    groups = (count, kept, 2) if count > 1 else ()
    return {**deepseek(name, settings), "router": "sigmoid", "router_groups": groups}


def _layers(settings: Settings) -> range:
    return range(settings.size("num_hidden_layers"))


def _decoder(
    *read: Iterable[str], only: Mapping[str, tuple[Any, ...]] = WHOLE, **said: Any
) -> Decoder:
    eps = said.get("eps", "rms_norm_eps")
    names = {*SIZES, *ROPE, eps, said.get("act", "hidden_act")}
    return Decoder(read=frozenset(names.union(*read)), only=only, **said)


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """Return the slopes of ALiBi: powers of 2^(-8/n); for other n, every second of the next power.

    Source: Press, Smith and Lewis 2022, and their code.

    >>> alibi_slopes(4)
    (0.25, 0.0625, 0.015625, 0.00390625)
    """
    power = 2 ** (heads.bit_length() - 1)
    slopes = [2.0 ** (-8 * (head + 1) / power) for head in range(power)]
    more = [2.0 ** (-4 * (2 * head + 1) / power) for head in range(heads - power)]
    return (*slopes, *more)


def mpt_slopes(heads: int, most: float) -> tuple[float, ...]:
    """Return the slopes of MPT: those of the next power of two, the odd ones first.

    >>> mpt_slopes(3, 8)
    (0.0625, 0.00390625, 0.25)
    """
    power = 2 ** (heads - 1).bit_length()
    slopes = [2.0 ** (-most * (head + 1) / power) for head in range(power)]
    return tuple(slopes if power == heads else [*slopes[1::2], *slopes[::2]][:heads])


def _renamed(settings: Settings, names: Mapping[str, str], **more: Any) -> Settings:
    """Return settings under the names of Llama."""
    said = {names.get(key, key): value for key, value in settings.items()}
    return Settings(settings.name, {**said, **more})


def bloom_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of BLOOM, which has no longest prompt: `seq_length`, or 2048."""
    names = {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
    d = settings.get("hidden_size") or settings.get("n_embed") or settings["hidden_size"]
    longest = settings.get("seq_length") or 2048
    more = {"hidden_size": d, "intermediate_size": 4 * d, "max_position_embeddings": longest}
    return _renamed(settings, names, hidden_act="gelu_new", **more)


def bloom_positions(decoder: Decoder, name: str, settings: Settings) -> Fields:
    """Return the slopes of BLOOM."""
    slopes = alibi_slopes(settings.size("num_attention_heads"))
    longest = settings.size("max_position_embeddings")
    return {"positions": "alibi", "alibi_slopes": slopes, "n_ctx": longest}


def falcon_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of Falcon, whose older models have one key, or each head its own."""
    heads = settings.get("num_attention_heads") or settings.size("n_head")
    d = settings.size("hidden_size")
    grouped = settings.get("new_decoder_architecture", False)
    groups = 1 if settings.get("multi_query", True) else heads
    return _renamed(
        settings,
        {
            "n_layer": "num_hidden_layers",
            "n_head": "num_attention_heads",
            "activation": "hidden_act",
        },
        num_key_value_heads=(settings.get("num_kv_heads") or heads) if grouped else groups,
        intermediate_size=settings.get("ffn_hidden_size") or 4 * d,
        max_position_embeddings=settings.get("max_position_embeddings") or 2048,
        hidden_act=settings.get("activation") or "gelu",
    )


def falcon_norms(settings: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the norms of Falcon: two or one in a parallel block, or two in a row."""
    if not falcon_parallel(settings):
        return PRE
    count = settings.get("num_ln_in_parallel_attn")
    if settings.get("new_decoder_architecture") and count in (None, 2):
        return {"ln1": "ln_attn", "ln2": "ln_mlp"}
    return {"ln1": "input_layernorm", "ln2": "input_layernorm"}


def falcon_parallel(settings: Mapping[str, Any]) -> bool:
    """Return whether a block of Falcon is parallel, as it is with the new architecture."""
    return bool(settings.get("new_decoder_architecture") or settings.get("parallel_attn", True))


def falcon_positions(decoder: Decoder, name: str, settings: Settings) -> Fields:
    """Return the rotation of Falcon, or its slopes, which are scaled as the scores are."""
    if not settings.get("alibi", False):
        return rotary(name, settings, head_width(settings), 1.0, True)
    fields = bloom_positions(decoder, name, settings)
    scale = head_width(settings) ** -0.5
    return {**fields, "alibi_slopes": tuple(scale * each for each in fields["alibi_slopes"])}


def falcon_biases(settings: Settings) -> Iterable[str]:
    """Return all biases of attention and the MLP, or none."""
    return ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out") if settings.get("bias") else ()


def gptj_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of GPT-J under the names of Llama."""
    names = {
        "n_embd": "hidden_size",
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "n_positions": "max_position_embeddings",
        "activation_function": "hidden_act",
    }
    settings.size("rotary_dim")
    width = settings.get("n_inner") or 4 * settings.size("n_embd")
    return _renamed(settings, names, intermediate_size=width)


def gptj_positions(decoder: Decoder, name: str, settings: Settings) -> Fields:
    """Return the rotation of GPT-J, of pairs of neighbours."""
    dims = {"rotary_dims": settings.size("rotary_dim"), "rotary_layout": "interleaved"}
    return {**rotary(name, settings, head_width(settings)), **dims}


def opt_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of OPT; norms after the sums, as in its 350m, are refused."""
    d = settings.size("hidden_size")
    allowed = {
        "do_layer_norm_before": (True, None),
        "_remove_final_layer_norm": (False, None),
        "layer_norm_elementwise_affine": (True, None),
        "word_embed_proj_dim": (d, None),
    }
    refuse(name, settings, allowed)
    names = {"ffn_dim": "intermediate_size", "activation_function": "hidden_act"}
    return _renamed(settings, names, layer_norm_eps=1e-5)


def opt_positions(decoder: Decoder, name: str, settings: Settings) -> Fields:
    """Return the learned positions of OPT."""
    return {"positions": "learned", "n_ctx": settings.size("max_position_embeddings")}


def opt_biases(settings: Settings) -> Iterable[str]:
    """Return all biases of attention and the MLP, or none."""
    given = settings.get("enable_bias", True)
    return ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out") if given else ()


def olmo_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of OLMo 1, whose norms have a fixed ε."""
    return _renamed(settings, {}, layer_norm_eps=1e-5)


def mpt_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of MPT; those of `attn_config` that change attention are refused."""
    attention = settings.get("attn_config") or {}
    allowed = {
        "attn_type": ("multihead_attention", None),
        "clip_qkv": (None,),
        "prefix_lm": (False, None),
        "qk_ln": (False, None),
        "attn_uses_sequence_id": (False, None),
        "alibi": (True,),
    }
    refuse(name, {"alibi": False, **attention}, allowed)
    d = settings.size("d_model")
    names = {
        "d_model": "hidden_size",
        "n_heads": "num_attention_heads",
        "n_layers": "num_hidden_layers",
        "max_seq_len": "max_position_embeddings",
    }
    return _renamed(settings, names, hidden_act="gelu", intermediate_size=4 * d)


def mpt_positions(decoder: Decoder, name: str, settings: Settings) -> Fields:
    """Return the slopes of MPT, and the scale of its scores."""
    attention = settings.get("attn_config") or {}
    heads, most = settings.size("num_attention_heads"), attention.get("alibi_bias_max") or 8
    return {
        "positions": "alibi",
        "alibi_slopes": mpt_slopes(heads, most),
        "n_ctx": settings.size("max_position_embeddings"),
        "attn_scale": float(attention.get("softmax_scale") or 0.0),
    }


ATTENTION_BIAS = {"attention_bias"}
OF_DEEPSEEK = {
    *("n_shared_experts", "first_k_dense_replace", "routed_scaling_factor", "n_group"),
    *("topk_group", "norm_topk_prob", "qk_head_dim", "num_mtp_layers", "num_nextn_predict_layers"),
    *("pretraining_tp", "ep_size", "moe_layer_freq", "scoring_func", "aux_loss_alpha", "seq_aux"),
}
OF_QWEN = {"decoder_sparse_step", "mlp_only_layers", "norm_topk_prob"}
PHI = {**{letter: f"self_attn.{letter.lower()}_proj" for letter in "QKV"}, "O": "self_attn.dense"}
DECODERS: dict[str, Decoder] = {
    "llama": _decoder(
        {"attention_bias", "mlp_bias"},
        biases=llama_biases,
        only={**WHOLE, "pretraining_tp": (1, None)},
    ),
    "mistral": _decoder(WINDOWS, biases=llama_biases, more=every_window),
    "qwen2": _decoder(
        WINDOWS | {"use_sliding_window", "max_window_layers"},
        biases=lambda settings: ("b_Q", "b_K", "b_V"),
        more=windows_by_layer,
    ),
    "qwen3": _decoder(
        WINDOWS | ATTENTION_BIAS | {"use_sliding_window", "max_window_layers"},
        biases=llama_biases,
        more=windows_by_layer,
        qk=QK,
        qk_norm="head",
    ),
    "mixtral": _decoder(MIXTRAL.settings, {"sliding_window"}, more=mixtral, experts=MIXTRAL),
    "qwen2_moe": _decoder(
        WINDOWS | QWEN_2.settings | OF_QWEN,
        {"use_sliding_window", "max_window_layers", "shared_expert_intermediate_size", "qkv_bias"},
        biases=lambda settings: ("b_Q", "b_K", "b_V") if settings.get("qkv_bias", True) else (),
        more=qwen2_experts,
        experts=QWEN_2,
    ),
    "qwen3_moe": _decoder(
        WINDOWS | ATTENTION_BIAS | QWEN_3.settings | OF_QWEN | {"use_sliding_window"},
        biases=llama_biases,
        more=qwen3_experts,
        qk=QK,
        qk_norm="head",
        experts=QWEN_3,
    ),
    "gpt_oss": _decoder(
        WINDOWS | ATTENTION_BIAS | GPT_OSS.settings | {"swiglu_alpha", "swiglu_limit"},
        biases=gpt_oss_biases,
        more=gpt_oss,
        experts=GPT_OSS,
        sinks="self_attn.sinks",
    ),
    "deepseek_v2": _decoder(
        LATENTS | DEEPSEEK.settings | OF_DEEPSEEK,
        {"topk_method"},
        positions=lambda decoder, name, settings: latent_positions(name, settings),
        more=deepseek2,
        experts=DEEPSEEK,
        only={**WHOLE, "mlp_bias": (False, None), "attention_bias": (False, None)},
    ),
    "deepseek_v3": _decoder(
        LATENTS | DEEPSEEK.settings | OF_DEEPSEEK,
        {"rope_interleave"},
        biases=lambda settings: ("b_choice",),
        positions=lambda decoder, name, settings: latent_positions(name, settings),
        more=deepseek3,
        experts=DEEPSEEK,
        only={**WHOLE, "attention_bias": (False, None)},
    ),
    "olmo": _decoder(
        ATTENTION_BIAS,
        norm="layer",
        norm_biases=False,
        norm_gains=False,
        eps="layer_norm_eps",
        biases=llama_biases,
        standard=olmo_settings,
        only={**WHOLE, "clip_qkv": (None,)},
    ),
    "olmo2": _decoder(
        *(ATTENTION_BIAS,), norms=OUTPUT, order="output", biases=llama_biases, qk=QK, qk_norm="all"
    ),
    "olmo3": _decoder(
        ATTENTION_BIAS | WINDOWS,
        norms=OUTPUT,
        order="output",
        biases=llama_biases,
        qk=QK,
        qk_norm="all",
        more=windows_by_layer,
    ),
    "gemma": _decoder(
        ATTENTION_BIAS | {"hidden_activation"},
        biases=llama_biases,
        more=gemma,
        only={**WHOLE, "use_bidirectional_attention": (None, False)},
    ),
    "gemma2": _decoder(
        ATTENTION_BIAS
        | WINDOWS
        | {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"},
        norms=BOTH,
        order="both",
        act="hidden_activation",
        biases=llama_biases,
        more=gemma2,
        only={**WHOLE, "use_bidirectional_attention": (None, False)},
    ),
    "gemma3_text": _decoder(
        ATTENTION_BIAS
        | WINDOWS
        | {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"}
        | {"rope_local_base_freq", "sliding_window_pattern"},
        norms=BOTH,
        order="both",
        act="hidden_activation",
        biases=llama_biases,
        more=gemma3,
        heads_first=True,
        qk=QK,
        qk_norm="head",
        only={**WHOLE, "use_bidirectional_attention": (None, False)},
    ),
    "phi": _decoder(
        {"partial_rotary_factor"},
        norms={"ln1": "input_layernorm", "ln2": "input_layernorm"},
        norm="layer",
        eps="layer_norm_eps",
        heads=PHI,
        mlp={"in": "mlp.fc1", "out": "mlp.fc2"},
        biases=lambda settings: ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out", "b_U"),
        parallel=lambda settings: True,
        fraction=0.5,
        whole=False,
        final="final_layernorm",
        only={"qk_layernorm": (False,)},
    ),
    "phi3": _decoder(
        {"partial_rotary_factor", "original_max_position_embeddings", "sliding_window"},
        fused="self_attn.qkv_proj",
        fused_mlp="mlp.gate_up_proj",
        more=every_window,
        whole=False,
        only={},
    ),
    "stablelm": _decoder(
        {"partial_rotary_factor", "use_qkv_bias", "use_parallel_residual"},
        norm="layer",
        eps="layer_norm_eps",
        biases=lambda settings: ("b_Q", "b_K", "b_V") if settings.get("use_qkv_bias") else (),
        parallel=lambda settings: bool(settings.get("use_parallel_residual")),
        fraction=0.25,
        whole=False,
        only={"qk_layernorm": (False,)},
    ),
    "starcoder2": _decoder(
        {"use_bias", "sliding_window"},
        norm="layer",
        eps="norm_epsilon",
        mlp={"in": "mlp.c_fc", "out": "mlp.c_proj"},
        biases=lambda settings: (
            ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out") if settings.get("use_bias", True) else ()
        ),
        more=every_window,
    ),
    "gptj": _decoder(
        {"n_embd", "n_layer", "n_head", "n_positions", "n_ctx", "n_inner", "rotary_dim"},
        {"activation_function"},
        norms={"ln1": "ln_1", "ln2": "ln_1"},
        norm="layer",
        eps="layer_norm_epsilon",
        heads={**{letter: f"attn.{letter.lower()}_proj" for letter in "QKV"}, "O": "attn.out_proj"},
        mlp={"in": "mlp.fc_in", "out": "mlp.fc_out"},
        biases=lambda settings: ("b_in", "b_out", "b_U"),
        parallel=lambda settings: True,
        body="transformer.",
        embed="wte",
        layers="h",
        final="ln_f",
        standard=gptj_settings,
        positions=gptj_positions,
        only={"rotary": (True, None), "scale_attn_weights": (True, None)},
    ),
    "opt": _decoder(
        {"ffn_dim", "activation_function", "enable_bias", "do_layer_norm_before"},
        {"layer_norm_elementwise_affine", "word_embed_proj_dim"},
        {"dropout", "layerdrop", "init_std"},
        norms={"ln1": "self_attn_layer_norm", "ln2": "final_layer_norm"},
        norm="layer",
        eps="layer_norm_eps",
        heads={**HEADS, "O": "self_attn.out_proj"},
        mlp={"in": "fc1", "out": "fc2"},
        biases=opt_biases,
        embed="decoder.embed_tokens",
        learned="decoder.embed_positions",
        before_positions=2,
        layers="decoder.layers",
        final="decoder.final_layer_norm",
        standard=opt_settings,
        positions=opt_positions,
        only={},
    ),
    "bloom": _decoder(
        {"n_layer", "n_head", "n_embed", "seq_length"},
        norm="layer",
        eps="layer_norm_epsilon",
        heads={"O": "self_attention.dense"},
        fused="self_attention.query_key_value",
        in_groups=True,
        mlp={"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
        biases=lambda settings: ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out"),
        body="transformer.",
        embed="word_embeddings",
        embed_norm="word_embeddings_layernorm",
        layers="h",
        final="ln_f",
        standard=bloom_settings,
        positions=bloom_positions,
        only={
            "apply_residual_connection_post_layernorm": (False,),
            "slow_but_exact": (False, True),
            "pretraining_tp": (1, None),
        },
    ),
    "falcon": _decoder(
        {"n_layer", "n_head", "num_kv_heads", "num_ln_in_parallel_attn", "alibi", "multi_query"},
        {"new_decoder_architecture", "parallel_attn", "bias", "ffn_hidden_size", "activation"},
        norms=falcon_norms,
        norm="layer",
        eps="layer_norm_epsilon",
        heads={"O": "self_attention.dense"},
        fused="self_attention.query_key_value",
        in_groups=True,
        mlp={"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
        biases=falcon_biases,
        parallel=falcon_parallel,
        body="transformer.",
        embed="word_embeddings",
        layers="h",
        final="ln_f",
        standard=falcon_settings,
        positions=falcon_positions,
    ),
    "mpt": _decoder(
        {"d_model", "n_heads", "n_layers", "max_seq_len", "attn_config"},
        norms={"ln1": "norm_1", "ln2": "norm_2"},
        norm="layer",
        norm_biases=False,
        eps="layer_norm_epsilon",
        heads={"O": "attn.out_proj"},
        fused="attn.Wqkv",
        mlp={"in": "ffn.up_proj", "out": "ffn.down_proj"},
        body="transformer.",
        embed="wte",
        layers="blocks",
        final="norm_f",
        standard=mpt_settings,
        positions=mpt_positions,
        only={
            "expansion_ratio": (4,),
            "no_bias": (True,),
            "logit_scale": (None,),
            "embedding_fraction": (1, 1.0),
            "learned_pos_emb": (True, False),
            "norm_type": ("low_precision_layernorm",),
            "init_device": ("cpu", "meta"),
        },
    ),
}
"""The families that are read by `read_decoder`, by their `model_type`."""
