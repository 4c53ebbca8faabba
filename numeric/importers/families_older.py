"""Families of decoders before Llama: their settings under its names, ALiBi, parallel blocks."""

from collections.abc import Mapping
from typing import Any

from otimes.numeric.importers.checkpoint import Settings, refuse
from otimes.numeric.importers.declared import (
    ATTENTION_BIAS,
    OF_ALL,
    WHOLE,
    decoder,
    if_set,
    llama_biases,
    renamed,
    windows_by_layer,
)
from otimes.numeric.importers.decoders import HEADS, PRE, Decoder, Fields, head_width
from otimes.numeric.importers.rotary import rotary


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


def bloom_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of BLOOM, which has no longest prompt: `seq_length`, or 2048."""
    names = {"n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
    d = settings.get("hidden_size") or settings.get("n_embed") or settings["hidden_size"]
    longest = settings.get("seq_length") or 2048
    more = {"hidden_size": d, "intermediate_size": 4 * d, "max_position_embeddings": longest}
    return renamed(settings, names, hidden_act="gelu_new", **more)


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
    return renamed(
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


OF_GPT2 = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
    "activation_function": "hidden_act",
}
"""The settings of GPT-2 and those made after it, by the names of Llama."""


def gpt2_settings(name: str, settings: Settings, **more: Any) -> Settings:
    """Return the settings of a family made after GPT-2 under the names of Llama."""
    width = settings.get("n_inner") or 4 * settings.size("n_embd")
    return renamed(settings, OF_GPT2, intermediate_size=width, **more)


def gptj_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of GPT-J, which say how many dimensions are rotated."""
    settings.size("rotary_dim")
    return gpt2_settings(name, settings)


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
    return renamed(settings, names, layer_norm_eps=1e-5)


def learned_positions(decoder: Decoder, name: str, settings: Settings) -> Fields:
    """Return learned positions."""
    return {"positions": "learned", "n_ctx": settings.size("max_position_embeddings")}


def gpt_neo_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of GPT-Neo under the names of Llama, with a type for each layer."""
    names = {
        "num_layers": "num_hidden_layers",
        "num_heads": "num_attention_heads",
        "activation_function": "hidden_act",
        "window_size": "sliding_window",
    }
    types = settings.get("attention_layers")
    if types is None:
        said = settings.get("attention_types") or [[["global", "local"], 12]]
        types = [each for kinds, times in said for each in kinds * times]
    width = settings.get("intermediate_size") or 4 * settings.size("hidden_size")
    windows = ["sliding_attention" if each == "local" else "full_attention" for each in types]
    return renamed(settings, names, intermediate_size=width, layer_types=windows)


def gpt_neo(name: str, settings: Settings) -> Fields:
    """Return the windows of GPT-Neo, and the scale of its scores, which are not divided."""
    return {**windows_by_layer(name, settings), "attn_scale": 1.0}


def bigcode_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of GPT-BigCode: all heads share one key."""
    return gpt2_settings(name, settings, num_key_value_heads=1)


def olmo_settings(name: str, settings: Settings) -> Settings:
    """Return the settings of OLMo 1, whose norms have a fixed ε."""
    return renamed(settings, {}, layer_norm_eps=1e-5)


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
    return renamed(settings, names, hidden_act="gelu", intermediate_size=4 * d)


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


GPT_NAMES: dict[str, Any] = {
    "norms": {"ln1": "ln_1", "ln2": "ln_2"},
    "norm": "layer",
    "eps": "layer_norm_epsilon",
    "mlp": {"in": "mlp.c_fc", "out": "mlp.c_proj"},
    "body": "transformer.",
    "embed": "wte",
    "learned": "wpe",
    "layers": "h",
    "final": "ln_f",
    "positions": learned_positions,
}
"""What the families made after GPT-2 share."""

DECODERS: dict[str, Decoder] = {
    "olmo": decoder(
        ATTENTION_BIAS,
        norm="layer",
        norm_biases=False,
        norm_gains=False,
        eps="layer_norm_eps",
        biases=llama_biases,
        standard=olmo_settings,
        only={**WHOLE, "clip_qkv": (None,)},
    ),
    "gptj": decoder(
        {*OF_GPT2, "n_ctx", "n_inner", "rotary_dim"},
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
    "opt": decoder(
        {"ffn_dim", "activation_function", "enable_bias", "do_layer_norm_before"},
        {"layer_norm_elementwise_affine", "word_embed_proj_dim"},
        {"dropout", "layerdrop", "init_std"},
        norms={"ln1": "self_attn_layer_norm", "ln2": "final_layer_norm"},
        norm="layer",
        eps="layer_norm_eps",
        heads={**HEADS, "O": "self_attn.out_proj"},
        mlp={"in": "fc1", "out": "fc2"},
        biases=if_set("enable_bias", OF_ALL, True),
        embed="decoder.embed_tokens",
        learned="decoder.embed_positions",
        before_positions=2,
        layers="decoder.layers",
        final="decoder.final_layer_norm",
        standard=opt_settings,
        positions=learned_positions,
        only={},
    ),
    "gpt_neo": decoder(
        {"num_layers", "num_heads", "window_size", "attention_types", "attention_layers"},
        {"activation_function"},
        **GPT_NAMES,
        heads={
            **{letter: f"attn.attention.{letter.lower()}_proj" for letter in "QKV"},
            "O": "attn.attention.out_proj",
        },
        biases=lambda settings: ("b_O", "b_in", "b_out"),
        standard=gpt_neo_settings,
        more=gpt_neo,
        only={},
    ),
    "gpt_bigcode": decoder(
        {*OF_GPT2, "n_inner"},
        {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32", "num_key_value_heads"},
        {"validate_runner_input", "pre_allocate_kv_cache", "max_batch_size", "max_sequence_length"},
        **GPT_NAMES,
        heads={"O": "attn.c_proj"},
        fused="attn.c_attn",
        biases=lambda settings: OF_ALL,
        standard=bigcode_settings,
        only={
            "multi_query": (True,),
            "scale_attn_weights": (True, None),
            "add_cross_attention": (False,),
        },
    ),
    "persimmon": decoder(
        {"partial_rotary_factor"},
        norm="layer",
        eps="layer_norm_eps",
        heads={"O": "self_attn.dense"},
        fused="self_attn.query_key_value",
        in_groups=True,
        mlp={"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
        biases=lambda settings: OF_ALL,
        fraction=0.5,
        whole=False,
        final="final_layernorm",
        only={"qk_layernorm": (False,)},
    ),
    "bloom": decoder(
        {"n_layer", "n_head", "n_embed", "seq_length"},
        norm="layer",
        eps="layer_norm_epsilon",
        heads={"O": "self_attention.dense"},
        fused="self_attention.query_key_value",
        in_groups=True,
        mlp={"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
        biases=lambda settings: OF_ALL,
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
    "falcon": decoder(
        {"n_layer", "n_head", "num_kv_heads", "num_ln_in_parallel_attn", "alibi", "multi_query"},
        {"new_decoder_architecture", "parallel_attn", "bias", "ffn_hidden_size", "activation"},
        norms=falcon_norms,
        norm="layer",
        eps="layer_norm_epsilon",
        heads={"O": "self_attention.dense"},
        fused="self_attention.query_key_value",
        in_groups=True,
        mlp={"in": "mlp.dense_h_to_4h", "out": "mlp.dense_4h_to_h"},
        biases=if_set("bias", OF_ALL),
        parallel=falcon_parallel,
        body="transformer.",
        embed="word_embeddings",
        layers="h",
        final="ln_f",
        standard=falcon_settings,
        positions=falcon_positions,
    ),
    "mpt": decoder(
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
"""The families before Llama, by their `model_type`."""
