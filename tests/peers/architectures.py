"""Tiny modules of the decoders of `transformers`, of random weights; imported when made."""

from typing import Any

import torch

TOKENS = torch.randint(0, 61, (2, 18), generator=torch.Generator().manual_seed(0))
IDS = {"vocab_size": 61, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
LLAMA = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
}
GEMMA = {**LLAMA, "head_dim": 12, "sliding_window": 5, "query_pre_attn_scalar": 20}
EXPERTS = {
    **LLAMA,
    "num_experts": 5,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 20,
}
SHARED = {"shared_expert_intermediate_size": 28}
GPT_OSS = {
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "head_dim": 12,
    "sliding_window": 5,
    "swiglu_limit": 1.5,
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 500.0,
        "factor": 4.0,
        "truncate": False,
        "original_max_position_embeddings": 10,
    },
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 500.0,
    "factor": 4.0,
    "mscale": 1.0,
    "mscale_all_dim": 0.7,
    "original_max_position_embeddings": 10,
}
GROUPS = {"topk_method": "group_limited_greedy", "n_group": 2, "topk_group": 1}
LATENT = {
    **LLAMA,
    "num_key_value_heads": 4,
    "intermediate_size": 40,
    "moe_intermediate_size": 16,
    "n_routed_experts": 6,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 14,
    "q_lora_rank": 18,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 6,
    "v_head_dim": 10,
    "routed_scaling_factor": 1.5,
}
SIGMOIDS = {
    "head_dim": 12,
    "n_routed_experts": 6,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 14,
    "routed_scaling_factor": 1.7,
    "norm_topk_prob": True,
    "n_group": 3,
    "topk_group": 2,
}
SCALES = {
    "embedding_multiplier": 12.0,
    "attention_multiplier": 0.3,
    "residual_multiplier": 0.22,
    "logits_scaling": 3.0,
}
HALF_TURNED = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}
LAYERS = ["sliding_attention", "full_attention", "sliding_attention"]
FALCON = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
NEW_FALCON = {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2}
MPT = {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 40}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 500.0,
    "short_factor": [1.0, 1.5, 2.0, 3.0],
    "long_factor": [2.0, 3.0, 5.0, 9.0],
}

# Name: the class of the configuration, its settings, the class of the module if it differs.
DECODERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "mistral": ("Mistral", {**LLAMA, "sliding_window": 6}, ""),
    "qwen 2": (
        "Qwen2",
        {**LLAMA, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
        "",
    ),
    "qwen 3": ("Qwen3", {**LLAMA, "head_dim": 12}, ""),
    "qwen 3 with biases": ("Qwen3", {**LLAMA, "head_dim": 12, "attention_bias": True}, ""),
    "mixtral": ("Mixtral", {**LLAMA, "num_local_experts": 4, "sliding_window": 6}, ""),
    "qwen 2, experts": ("Qwen2Moe", {**EXPERTS, **SHARED, "mlp_only_layers": [1]}, ""),
    "qwen 3, experts": ("Qwen3Moe", {**EXPERTS, "head_dim": 12, "norm_topk_prob": True}, ""),
    "gpt-oss": ("GptOss", {**LLAMA, **GPT_OSS}, ""),
    "deepseek 2": ("DeepseekV2", {**LATENT, **GROUPS, "first_k_dense_replace": 1}, ""),
    "deepseek 2, latents of keys only": ("DeepseekV2", {**LATENT, "q_lora_rank": None}, ""),
    "deepseek 3": ("DeepseekV3", {**LATENT, "n_group": 2, "topk_group": 1}, ""),
    "deepseek 3, yarn": (
        "DeepseekV3",
        {**LATENT, "n_group": 1, "topk_group": 1, "rope_parameters": YARN},
        "",
    ),
    "command r": (
        "Cohere",
        {**LLAMA, "use_qk_norm": True, "attention_bias": True, "logit_scale": 0.3},
        "",
    ),
    "command a": ("Cohere2", {**LLAMA, "sliding_window": 5, "layer_types": LAYERS}, ""),
    "granite": ("Granite", {**LLAMA, **SCALES, "attention_bias": True, "mlp_bias": True}, ""),
    "granite, experts": (
        "GraniteMoe",
        {**LLAMA, **SCALES, "num_local_experts": 4, "num_experts_per_tok": 2},
        "",
    ),
    "smollm 3": ("SmolLM3", {**LLAMA, "no_rope_layers": [1, 0, 1], "mlp_bias": True}, ""),
    "exaone 4": (
        "Exaone4",
        {**LLAMA, "head_dim": 12, "sliding_window": 5, "layer_types": LAYERS},
        "",
    ),
    "nemotron": (
        "Nemotron",
        {**LLAMA, "head_dim": 8, "mlp_bias": True, "rope_parameters": HALF_TURNED},
        "",
    ),
    "arcee": ("Arcee", {**LLAMA, "head_dim": 12, "mlp_bias": True}, ""),
    "jais 2": ("Jais2", {**LLAMA, "head_dim": 12}, ""),
    "glm": ("Glm", {**LLAMA, "head_dim": 12, "attention_bias": True}, ""),
    "glm 4": ("Glm4", {**LLAMA, "head_dim": 12, "attention_bias": False}, ""),
    "glm 4.5": (
        "Glm4Moe",
        {**LLAMA, **SIGMOIDS, "use_qk_norm": True, "rope_parameters": HALF_TURNED},
        "",
    ),
    "glm 4.7 flash": (
        "Glm4MoeLite",
        {**LATENT, "n_group": 1, "topk_group": 1, "mlp_layer_types": ["sparse", "dense", "sparse"]},
        "",
    ),
    "solar": ("SolarOpen", {**LLAMA, **SIGMOIDS, "attention_bias": True}, ""),
    "dots": ("Dots1", {**LLAMA, **SIGMOIDS, "sliding_window": 5, "layer_types": LAYERS}, ""),
    "minimax m2": (
        "MiniMaxM2",
        {**LLAMA, "head_dim": 8, "num_local_experts": 5, "num_experts_per_tok": 2}
        | {"rope_parameters": HALF_TURNED},
        "",
    ),
    "olmoe": (
        "Olmoe",
        {**LLAMA, "num_experts": 5, "num_experts_per_tok": 2, "attention_bias": True},
        "",
    ),
    "flexolmo": ("FlexOlmo", {**LLAMA, "num_experts": 5, "num_experts_per_tok": 2}, ""),
    "seed-oss": ("SeedOss", {**LLAMA, "head_dim": 12, "attention_out_bias": True}, ""),
    "ernie 4.5": ("Ernie4_5", {**LLAMA, "head_dim": 12, "use_bias": True}, ""),
    "ernie 4.5, experts": (
        "Ernie4_5_Moe",
        {**LLAMA, "moe_num_experts": 5, "moe_k": 2, "moe_intermediate_size": 20}
        | {"moe_num_shared_experts": 1},
        "",
    ),
    "exaone, experts": (
        "ExaoneMoe",
        {**EXPERTS, "head_dim": 12, "num_experts": 6, "num_shared_experts": 1, "n_group": 3}
        | {"topk_group": 2, "sliding_window": 5, "layer_types": LAYERS},
        "",
    ),
    "ministral 3": (
        "Ministral3",
        {
            **LLAMA,
            "head_dim": 12,
            "sliding_window": 6,
            "rope_parameters": {
                **YARN,
                "original_max_position_embeddings": 20,
                "llama_4_scaling_beta": 0.1,
            },
        },
        "",
    ),
    "helium": ("Helium", {**LLAMA, "head_dim": 8, "mlp_bias": True}, ""),
    "ministral": (
        "Ministral",
        {**LLAMA, "head_dim": 12, "sliding_window": 5, "layer_types": LAYERS},
        "",
    ),
    "cwm": (
        "Cwm",
        {**LLAMA, "head_dim": 12, "sliding_window": 5, "layer_types": LAYERS}
        | {"bos_token_id": 1, "eos_token_id": 2},
        "",
    ),
    "vaultgemma": (
        "VaultGemma",
        {**GEMMA, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5},
        "",
    ),
    "olmo 2": ("Olmo2", LLAMA, ""),
    "olmo 3": ("Olmo3", {**LLAMA, "sliding_window": 5, "layer_types": LAYERS}, ""),
    "gemma": ("Gemma", {**LLAMA, "head_dim": 12}, ""),
    "gemma 2": (
        "Gemma2",
        {**GEMMA, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5},
        "",
    ),
    "gemma 3": ("Gemma3Text", {**GEMMA, "layer_types": LAYERS}, "Gemma3ForCausalLM"),
    "phi": ("Phi", {**LLAMA, "num_key_value_heads": 4}, ""),
    "phi 3": ("Phi3", {**LLAMA, "sliding_window": 6}, ""),
    "phi 3, longrope": (
        "Phi3",
        {**LLAMA, "rope_parameters": LONGROPE, "original_max_position_embeddings": 10},
        "",
    ),
    "stablelm": ("StableLm", {**LLAMA, "use_qkv_bias": True}, ""),
    "stablelm, parallel": ("StableLm", {**LLAMA, "use_parallel_residual": True}, ""),
    "starcoder 2": ("Starcoder2", {**LLAMA, "sliding_window": 5}, ""),
    "olmo": ("Olmo", {**LLAMA, "num_key_value_heads": 2}, ""),
    "gpt-j": (
        "GPTJ",
        {"n_embd": 36, "n_layer": 2, "n_head": 3, "n_positions": 40, "rotary_dim": 4},
        "",
    ),
    "gpt-neo": (
        "GPTNeo",
        {"hidden_size": 36, "num_layers": 3, "num_heads": 3, "window_size": 5}
        | {"attention_types": [[["local", "global", "local"], 1]], "max_position_embeddings": 40},
        "",
    ),
    "bigcode": ("GPTBigCode", {"n_embd": 36, "n_layer": 2, "n_head": 3, "n_positions": 40}, ""),
    "persimmon": (
        "Persimmon",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 48,
            "max_position_embeddings": 40,
            "qk_layernorm": False,
        },
        "",
    ),
    "opt": (
        "OPT",
        {
            "hidden_size": 36,
            "word_embed_proj_dim": 36,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "ffn_dim": 40,
            "max_position_embeddings": 40,
        },
        "",
    ),
    "bloom": ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}, ""),
    "bloom, six heads": ("Bloom", {"hidden_size": 36, "n_layer": 2, "n_head": 6}, ""),
    "mpt": ("Mpt", MPT, ""),
    "mpt, six heads": ("Mpt", {**MPT, "d_model": 36, "n_heads": 6}, ""),
    "falcon": ("Falcon", FALCON, ""),
    "falcon, in a row": ("Falcon", {**FALCON, "parallel_attn": False}, ""),
    "falcon, alibi": ("Falcon", {**FALCON, "alibi": True, "multi_query": False}, ""),
    "falcon, two norms": ("Falcon", NEW_FALCON, ""),
    "falcon, one norm": ("Falcon", {**NEW_FALCON, "num_ln_in_parallel_attn": 1, "bias": True}, ""),
}


def decoder(name: str, **options: Any) -> torch.nn.Module:
    """A module whose norms and biases are not the trivial ones, and whose scores are of size 1."""
    import transformers

    kind, settings, class_name = DECODERS[name]
    chosen = {"num_experts_per_tok", "moe_k"} & settings.keys()
    if chosen or kind == "Mixtral":  # the default has no float64
        options.setdefault("experts_implementation", "eager")
    config = getattr(transformers, f"{kind}Config")(**{**IDS, **settings, **options})
    torch.manual_seed(0)
    module = getattr(transformers, class_name or f"{kind}ForCausalLM")(config)
    with torch.no_grad():
        for path, parameter in module.named_parameters():
            if "norm" in path or ".ln_" in path or path.endswith("bias"):
                parameter.add_(0.3 * torch.randn_like(parameter))
            else:
                parameter.mul_(3)
        for path, buffer in module.named_buffers():
            if path.endswith("e_score_correction_bias"):
                buffer.copy_(0.1 * torch.randn_like(buffer))
    return module.eval()
