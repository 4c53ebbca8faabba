"""The families of decoders with experts."""

from collections.abc import Callable, Iterable

from otimes.numeric.importers.checkpoint import Settings, refuse
from otimes.numeric.importers.declared import (
    ATTENTION_BIAS,
    OF_ATTENTION,
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
    query_biases,
    renamed,
    windows_by_layer,
)
from otimes.numeric.importers.decoders import Decoder, Fields, head_width
from otimes.numeric.importers.experts import ExpertNames, sizes
from otimes.numeric.importers.latents import LATENTS, latent_fields, latent_positions

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
    dense = [each for each in layers_of(settings) if each in without or (each + 1) % every]
    router = "chosen" if settings.get("norm_topk_prob") else "all"
    return {"router": router, "dense_layers": tuple(dense)}


def gpt_oss(name: str, settings: Settings) -> Fields:
    """Return what gpt-oss declares: experts with a limit, sinks, windows in every second layer."""
    types = settings.get("layer_types") or [
        "full_attention" if layer % 2 else "sliding_attention" for layer in layers_of(settings)
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
    attention = if_set("attention_bias", OF_ATTENTION, True)(settings)
    return (*attention, "b_in", "b_gate", "b_router", "b_experts")


DEEPSEEK = ExpertNames(
    shared="mlp.shared_experts",
    choice_bias=("mlp.gate.e_score_correction_bias",),
    count="n_routed_experts",
)


def experts_beside(names: ExpertNames, name: str, settings: Settings) -> Fields:
    """Return experts beside shared ones, the layers without them, and the scale of the router."""
    count = settings.get("n_shared_experts") or settings.get("num_shared_experts") or 0
    shared = settings.size("moe_intermediate_size") * count
    types, first = settings.get("mlp_layer_types"), settings.get("first_k_dense_replace") or 0
    layers = layers_of(settings)
    dense = [x for x in layers if (x < first if types is None else types[x] == "dense")]
    return {
        **sizes(names, name, settings, shared),
        "dense_layers": tuple(dense),
        "router_scale": float(settings.get("routed_scaling_factor") or 1.0),
    }


def deepseek(name: str, settings: Settings) -> Fields:
    """Return what DeepSeek-V2 and V3 share: experts and latents."""
    return {**experts_beside(DEEPSEEK, name, settings), **latent_fields(name, settings)}


def deepseek2(name: str, settings: Settings) -> Fields:
    """Return the router of DeepSeek-V2: softmax of all, of the groups with the largest weight."""
    method = settings.get("topk_method") or "greedy"
    allowed = {"topk_method": ("greedy", "group_limited_greedy"), "norm_topk_prob": (False, None)}
    refuse(name, {**settings, "topk_method": method}, allowed)
    groups: tuple[int, ...] = ()
    if method == "group_limited_greedy":
        groups = (settings.size("n_group"), settings.size("topk_group"), 1)
    return {**deepseek(name, settings), "router": "all", "router_groups": groups}


def by_sigmoids(name: str, settings: Settings) -> Fields:
    """Return the router of DeepSeek-V3: sigmoids, of the groups with the two largest."""
    refuse(name, {"norm_topk_prob": True, **settings}, {"norm_topk_prob": (True, None)})
    count, kept = settings.get("n_group") or 1, settings.get("topk_group") or 1
    return {"router": "sigmoid", "router_groups": (count, kept, 2) if count > 1 else ()}


def deepseek3(name: str, settings: Settings) -> Fields:
    """Return the latents, the experts and the router of DeepSeek-V3."""
    return {**deepseek(name, settings), **by_sigmoids(name, settings)}


def routed_as_deepseek3(names: ExpertNames) -> Callable[[str, Settings], Fields]:
    """Return the experts and the router of DeepSeek-V3, for attention without latents."""

    def fields(name: str, settings: Settings) -> Fields:
        return {**experts_beside(names, name, settings), **by_sigmoids(name, settings)}

    return fields


def glm4_experts(name: str, settings: Settings) -> Fields:
    """Return the experts of GLM-4.5, and whether queries and keys are normalised."""
    kind = "head" if settings.get("use_qk_norm") else "none"
    return {**routed_as_deepseek3(DEEPSEEK)(name, settings), "qk_norm": kind}


def dots(name: str, settings: Settings) -> Fields:
    """Return the experts of dots.llm1, and its windows."""
    return {**routed_as_deepseek3(DEEPSEEK)(name, settings), **windows_by_layer(name, settings)}


def minimax(name: str, settings: Settings) -> Fields:
    """Return the experts of MiniMax-M2: all layers have them, and there is no shared one."""
    return {**sizes(MINIMAX, name, settings), "router": "sigmoid"}


def minimax_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of MiniMax-M2, whose checkpoints count the dimensions that turn."""
    dims = settings.get("rotary_dim")
    if dims is None or settings.get("rope_parameters"):
        return settings
    return renamed(settings, {}, partial_rotary_factor=dims / head_width(settings))


def olmo_experts(name: str, settings: Settings) -> Fields:
    """Return the experts of OLMoE and FlexOlmo, which have no width of their own."""
    router = "chosen" if settings.get("norm_topk_prob") else "all"
    return {**sizes(OLMOE, name, settings), "router": router}


def ernie_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of the experts of ERNIE 4.5 under the names of others."""
    names = {
        "moe_num_experts": "num_experts",
        "moe_k": "num_experts_per_tok",
        "moe_num_shared_experts": "num_shared_experts",
    }
    return renamed(settings, names)


def ernie_experts(name: str, settings: Settings) -> Fields:
    """Return the experts of ERNIE 4.5, in some layers, chosen by probabilities with a bias."""
    layers = layers_of(settings)
    first, last = settings.get("moe_layer_start_index"), settings.get("moe_layer_end_index")
    every = settings.get("moe_layer_interval") or 1
    routed = range(1 if first is None else first, len(layers) if last in (None, -1) else last + 1)
    types = ["sparse" if x in routed and not (x + 1) % every else "dense" for x in layers]
    said = Settings(name, {**settings, "mlp_layer_types": types})
    return {**experts_beside(ERNIE, name, said), "router": "chosen"}


def exaone_experts(name: str, settings: Settings) -> Fields:
    """Return the experts of EXAONE, and its layers with windows, which alone have positions."""
    return {**routed_as_deepseek3(EXAONE)(name, settings), **exaone_windows(name, settings)}


ERNIE = ExpertNames(
    shared="mlp.shared_experts",
    choice_bias=(
        "mlp.gate.moe_statics.e_score_correction_bias",
        "mlp.moe_statics.e_score_correction_bias",
    ),
)
EXAONE = ExpertNames(
    shared="mlp.shared_experts",
    choice_bias=("mlp.gate.e_score_correction_bias", "mlp.e_score_correction_bias"),
)
MINIMAX = ExpertNames(
    routers=("mlp.gate", "block_sparse_moe.gate"),
    experts=MIXTRAL.experts,
    choice_bias=("mlp.e_score_correction_bias", "block_sparse_moe.e_score_correction_bias"),
    count="num_local_experts",
    width="intermediate_size",
)
OLMOE = ExpertNames(width="intermediate_size")
GRANITE = ExpertNames(
    routers=("block_sparse_moe.router", "block_sparse_moe.router.layer"),
    whole="block_sparse_moe.experts",
    stored=("block_sparse_moe.input_linear.weight", "block_sparse_moe.output_linear.weight"),
    count="num_local_experts",
    width="intermediate_size",
)
SCALES = {"embedding_multiplier", "logits_scaling", "residual_multiplier", "attention_multiplier"}


def granite_experts(name: str, settings: Settings) -> Fields:
    """Return the experts of Granite, and its scales."""
    return {**sizes(GRANITE, name, settings), **granite(name, settings)}


OF_DEEPSEEK = {
    "mlp_layer_types",
    *("n_shared_experts", "first_k_dense_replace", "routed_scaling_factor", "n_group"),
    *("topk_group", "norm_topk_prob", "qk_head_dim", "num_mtp_layers", "num_nextn_predict_layers"),
    *("pretraining_tp", "ep_size", "moe_layer_freq", "scoring_func", "aux_loss_alpha", "seq_aux"),
}
OF_QWEN = {"decoder_sparse_step", "mlp_only_layers", "norm_topk_prob"}

LIKE_DEEPSEEK_3 = decoder(
    LATENTS | DEEPSEEK.settings | OF_DEEPSEEK,
    {"rope_interleave"},
    biases=lambda settings: ("b_choice",),
    positions=latent_positions,
    more=deepseek3,
    experts=DEEPSEEK,
    only={**WHOLE, "attention_bias": (False, None)},
)

DECODERS: dict[str, Decoder] = {
    "granitemoe": decoder(
        ATTENTION_BIAS | GRANITE.settings | SCALES,
        biases=llama_biases,
        more=granite_experts,
        experts=GRANITE,
    ),
    "glm4_moe": decoder(
        ATTENTION_BIAS | DEEPSEEK.settings | OF_DEEPSEEK,
        {"partial_rotary_factor", "use_qk_norm"},
        biases=lambda settings: (*query_biases(settings), "b_choice"),
        more=glm4_experts,
        experts=DEEPSEEK,
        fraction=0.5,
        whole=False,
        qk=QK,
        only={},
    ),
    "glm4_moe_lite": LIKE_DEEPSEEK_3,
    "solar_open": decoder(
        ATTENTION_BIAS | DEEPSEEK.settings | OF_DEEPSEEK,
        biases=lambda settings: (*query_biases(settings), "b_choice"),
        more=routed_as_deepseek3(DEEPSEEK),
        experts=DEEPSEEK,
    ),
    "dots1": decoder(
        ATTENTION_BIAS | WINDOWS | DEEPSEEK.settings | OF_DEEPSEEK,
        {"max_window_layers", "use_sliding_window"},
        biases=lambda settings: (*llama_biases(settings), "b_choice"),
        more=dots,
        experts=DEEPSEEK,
        qk=QK,
        qk_norm="head",
    ),
    "minimax_m2": decoder(
        MINIMAX.settings,
        {"rotary_dim", "partial_rotary_factor", "scoring_func", "use_routing_bias", "use_qk_norm"},
        {"qk_norm_type", "num_mtp_modules", "mtp_transformer_layers", "use_mtp"},
        biases=lambda settings: ("b_choice",),
        standard=minimax_settings,
        more=minimax,
        experts=MINIMAX,
        whole=False,
        qk=QK,
        qk_norm="all",
        only={
            "scoring_func": ("sigmoid",),
            "use_routing_bias": (True,),
            "use_qk_norm": (True,),
            "qk_norm_type": ("per_layer",),
            "shared_intermediate_size": (0, None),
            "attn_type_list": (None,),
        },
    ),
    "ernie4_5_moe": decoder(
        ERNIE.settings | {"moe_num_experts", "moe_k", "moe_num_shared_experts"},
        {"moe_layer_start_index", "moe_layer_end_index", "moe_layer_interval"},
        biases=lambda settings: ("b_choice",),
        standard=ernie_settings,
        more=ernie_experts,
        experts=ERNIE,
        layout="interleaved",
        only={**WHOLE, "use_bias": (False, None), "moe_norm_min": (1e-12, None)},
    ),
    "exaone_moe": decoder(
        WINDOWS | EXAONE.settings | OF_DEEPSEEK | {"num_shared_experts", "sliding_window_pattern"},
        biases=lambda settings: ("b_choice",),
        more=exaone_experts,
        experts=EXAONE,
        heads_first=True,
        qk=QK,
        qk_norm="head",
    ),
    "olmoe": decoder(
        ATTENTION_BIAS | OLMOE.settings | {"norm_topk_prob"},
        biases=llama_biases,
        more=olmo_experts,
        experts=OLMOE,
        qk=QK,
        qk_norm="all",
        only={**WHOLE, "clip_qkv": (None,)},
    ),
    "flex_olmo": decoder(
        ATTENTION_BIAS | OLMOE.settings | {"norm_topk_prob"},
        norms=OUTPUT,
        order="output",
        biases=llama_biases,
        more=olmo_experts,
        experts=OLMOE,
        qk=QK,
        qk_norm="all",
    ),
    "mixtral": decoder(MIXTRAL.settings, {"sliding_window"}, more=mixtral, experts=MIXTRAL),
    "qwen2_moe": decoder(
        WINDOWS | QWEN_2.settings | OF_QWEN,
        {"use_sliding_window", "max_window_layers", "shared_expert_intermediate_size", "qkv_bias"},
        biases=if_set("qkv_bias", OF_QUERIES, True),
        more=qwen2_experts,
        experts=QWEN_2,
    ),
    "qwen3_moe": decoder(
        WINDOWS | ATTENTION_BIAS | QWEN_3.settings | OF_QWEN | {"use_sliding_window"},
        biases=llama_biases,
        more=qwen3_experts,
        qk=QK,
        qk_norm="head",
        experts=QWEN_3,
    ),
    "gpt_oss": decoder(
        WINDOWS | ATTENTION_BIAS | GPT_OSS.settings | {"swiglu_alpha", "swiglu_limit"},
        biases=gpt_oss_biases,
        more=gpt_oss,
        experts=GPT_OSS,
        sinks="self_attn.sinks",
    ),
    "deepseek_v2": decoder(
        LATENTS | DEEPSEEK.settings | OF_DEEPSEEK,
        {"topk_method"},
        positions=latent_positions,
        more=deepseek2,
        experts=DEEPSEEK,
        only={**WHOLE, "mlp_bias": (False, None), "attention_bias": (False, None)},
    ),
    "deepseek_v3": LIKE_DEEPSEEK_3,
}
"""The families with experts, by their `model_type`."""
