"""The settings of Hugging Face checkpoints that are supported, or have no effect.

All others are refused by name: ignoring a setting could make a correct implementation look wrong,
or a wrong one right.
"""

from typing import Any

ACTIVATION = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "relu2": "relu2",
    "silu": "silu",
    "swish": "silu",
}

# The supported rotary frequencies, each with the settings that scale them.
STRETCH: dict[str, tuple[str, ...]] = {
    "default": (),
    "dynamic": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": (
        "factor",
        "beta_slow",
        "beta_fast",
        "original_max_position_embeddings",
        "attention_factor",
    ),
}

# Settings supported only with these values; the first is the default.
ONLY: dict[str, dict[str, tuple[Any, ...]]] = {
    "gpt2": {"add_cross_attention": (False,)},
    "gpt_neox": {},
}

# Settings that are read, and settings without effect on a forward pass in evaluation mode.
# fmt: off
READ: dict[str, set[str]] = {
    "gpt2": {
        "n_layer", "n_head", "n_embd", "n_positions", "n_ctx", "n_inner", "vocab_size",
        "activation_function", "layer_norm_epsilon", "scale_attn_weights",
        "scale_attn_by_inverse_layer_idx",
    },
    "gpt_neox": {
        "num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size",
        "vocab_size", "hidden_act", "max_position_embeddings", "layer_norm_eps",
        "use_parallel_residual", "attention_bias", "rope_theta", "rope_parameters",
        "rope_scaling", "rotary_pct", "rotary_emb_base",
    },
}
WITHOUT_EFFECT = {
    "architectures", "attn_implementation", "auto_map", "bad_words_ids",
    "begin_suppress_tokens", "bos_token_id", "chunk_size_feed_forward", "classifier_dropout",
    "diversity_penalty", "do_sample", "dtype", "early_stopping", "encoder_no_repeat_ngram_size",
    "eos_token_id", "exponential_decay_length_penalty", "finetuning_task",
    "gradient_checkpointing", "id2label", "initializer_range", "is_decoder", "is_llama_config",
    "label2id", "length_penalty", "max_length", "max_sequence_length", "min_length",
    "model_type", "name_or_path", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_router_logits",
    "output_scores",
    "pad_token_id", "predict_special_tokens", "prefix", "problem_type", "remove_invalid_values",
    "reorder_and_upcast_attn", "repetition_penalty", "return_dict", "return_dict_in_generate",
    "router_aux_loss_coef", "router_jitter_noise",
    "sep_token_id", "suppress_tokens", "task_specific_params", "temperature", "tf_legacy_loss",
    "tie_word_embeddings", "tokenizer_class", "top_k", "top_p", "torch_dtype", "torchscript",
    "transformers.js_config", "transformers_version", "typical_p", "unsloth_fixed",
    "unsloth_version", "use_bfloat16", "use_cache",
}
# fmt: on
WITHOUT_EFFECT_IF = ("_", "summary_"), ("_dropout", "_dropout_prob", "_pdrop", "_token_id")
"""How names begin, and how they end, that change nothing either."""
IDLE: tuple[Any, ...] = (None, False, [], {}, "")
"""Values with which an unknown setting is taken to be off."""
OFF_IS_NOT_IDLE = ("use_rope", "rope", "is_causal", "causal", "use_bias", "bias")
