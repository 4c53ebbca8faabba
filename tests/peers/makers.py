"""Small modules of other people, of random weights; what they need is imported when made."""

import warnings

import torch

TOKENS = torch.randint(0, 61, (2, 18), generator=torch.Generator().manual_seed(0))
SIZES = {"vocab_size": 61, "bos_token_id": None, "eos_token_id": None}


def gpt2(**options):
    import transformers

    sizes = {"n_positions": 40, "n_embd": 32, "n_layer": 2, "n_head": 4}
    config = transformers.GPT2Config(**{**sizes, **SIZES, **options})
    return transformers.GPT2LMHeadModel(config)


def neox(**options):
    import transformers

    sizes = {"max_position_embeddings": 40, "hidden_size": 32, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "intermediate_size": 48}
    config = transformers.GPTNeoXConfig(**{**sizes, **SIZES, **options})
    return transformers.GPTNeoXForCausalLM(config)


def llama(**options):
    import transformers

    sizes = {"max_position_embeddings": 40, "hidden_size": 32, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
    config = transformers.LlamaConfig(**{**sizes, **SIZES, **options})
    return transformers.LlamaForCausalLM(config)


def _like_llama(kind):
    def make(**options):
        import transformers

        sizes = {"max_position_embeddings": 40, "hidden_size": 32, "num_hidden_layers": 2}
        sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48}
        config = getattr(transformers, f"{kind}Config")(**{**sizes, **SIZES, **options})
        module = getattr(transformers, f"{kind}ForCausalLM")(config)
        with torch.no_grad():  # zero biases and unit gains would hide that they are not read
            for name, parameter in module.named_parameters():
                if "norm" in name or name.endswith("bias"):
                    parameter.add_(0.3 * torch.randn_like(parameter))
        return module

    return make


mistral, qwen2 = _like_llama("Mistral"), _like_llama("Qwen2")

KINDS = {"gpt2": gpt2, "neox": neox, "llama": llama, "mistral": mistral, "qwen2": qwen2}


def lens(dtype: torch.dtype, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import transformer_lens

        config = transformer_lens.HookedTransformerConfig(
            n_layers=2, d_model=32, n_ctx=40, d_head=8, n_heads=4, d_vocab=61, dtype=dtype,
            device="cpu", **{"d_mlp": 48, **options},
        )  # fmt: skip
        return transformer_lens.HookedTransformer(config)


LENSES = {
    "gpt2": {"act_fn": "gelu_new", "normalization_type": "LN"},
    "llama": {
        "act_fn": "silu",
        "normalization_type": "RMS",
        "positional_embedding_type": "rotary",
        "rotary_dim": 8,
        "gated_mlp": True,
        "n_key_value_heads": 2,
    },
    "llama 3.1": {
        "act_fn": "silu",
        "normalization_type": "RMS",
        "positional_embedding_type": "rotary",
        "rotary_dim": 8,
        "gated_mlp": True,
        "use_NTK_by_parts_rope": True,
        "NTK_original_ctx_len": 16,
    },
    "neox": {
        "act_fn": "gelu",
        "normalization_type": "LN",
        "positional_embedding_type": "rotary",
        "rotary_dim": 4,
        "parallel_attn_mlp": True,
    },
    "gptj": {
        "act_fn": "gelu_pytorch_tanh",
        "normalization_type": "LN",
        "positional_embedding_type": "rotary",
        "rotary_dim": 4,
        "rotary_adjacent_pairs": True,
        "parallel_attn_mlp": True,
    },
    "shortformer": {
        "act_fn": "relu",
        "normalization_type": "LNPre",
        "positional_embedding_type": "shortformer",
        "use_split_qkv_input": True,
    },
    "attention only": {"attn_only": True, "normalization_type": None},
}
