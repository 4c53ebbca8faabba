"""The checkpoints of Hugging Face: GPT-2, GPT-NeoX and Llama, their settings and their tensors."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from algebra.errors import OtimesError
from numeric.config import Config, listed
from numeric.model import Model, checked_model

Tensors = Mapping[str, np.ndarray]

ACTIVATION = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}

# What each kind computes only with this value; anything else is refused by name.
ONLY: dict[str, dict[str, tuple[Any, ...]]] = {
    "gpt2": {
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "add_cross_attention": (False,),
        "is_encoder_decoder": (False,),
    },
    "gpt_neox": {"is_encoder_decoder": (False,)},
    "llama": {"pretraining_tp": (1, None), "is_encoder_decoder": (False,)},
}

# Settings of other architectures that change what is computed: refused whatever their value is,
# unless it is the one that does nothing.
FOREIGN: dict[str, tuple[Any, ...]] = {
    "final_logit_softcapping": (None,),
    "attn_logit_softcapping": (None,),
    "sliding_window": (None,),
    "use_sliding_window": (None, False),
    "embedding_multiplier": (None, 1, 1.0),
    "residual_multiplier": (None, 1, 1.0),
    "attention_multiplier": (None,),
    "logits_scaling": (None, 1, 1.0),
    "logit_scale": (None, 1, 1.0),
    "scale_embedding": (None, False),
    "num_local_experts": (None, 0, 1),
    "num_experts": (None, 0),
    "use_qk_norm": (None, False),
    "qk_layernorm": (None, False),
    "quantization_config": (None,),
    "query_pre_attn_scalar": (None,),
    "attention_sinks": (None, False),
    "clip_qkv": (None,),
    "alibi": (None, False),
}


def model_of(name: str, kind: str, settings: Mapping[str, Any], tensors: Tensors) -> Model:
    """Return the reference model of a checkpoint of that kind (its `model_type`).

    Raises: OtimesError naming every setting that the reference does not have.
    """
    if kind not in READERS:
        raise OtimesError(
            f"{name} is of the kind {kind!r}; there are importers for {listed(READERS)}"
        )
    refuse(name, settings, {**FOREIGN, **ONLY[kind]})
    config, weights = READERS[kind](name, settings, tensors)
    return checked_model(name, config, weights)


def refuse(name: str, settings: Mapping[str, Any], only: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise OtimesError naming every setting whose value is none of those that are understood."""
    wrong = [
        f"{key}={settings[key]!r}"
        for key, allowed in only.items()
        if key in settings and settings[key] not in allowed
    ]
    if wrong:
        raise OtimesError(
            f"{name} has {listed(wrong)}, which changes what is computed and is not supported"
        )


def activation(name: str, said: str) -> str:
    """Return our name of an activation, or refuse it by its own."""
    if said not in ACTIVATION:
        raise OtimesError(
            f"{name} has the activation {said!r}, which is not supported; known are "
            f"{listed(ACTIVATION)}"
        )
    return ACTIVATION[said]


def stacked(tensors: Tensors, pattern: str, layers: int, change: Callable[..., Any]) -> np.ndarray:
    """Return one tensor of every layer, changed and stacked along a first axis."""
    return np.stack([change(tensor(tensors, pattern.format(layer))) for layer in range(layers)])


def tensor(tensors: Tensors, name: str) -> np.ndarray:
    """Return a tensor by its name, or say that the checkpoint lacks it."""
    if name not in tensors:
        raise OtimesError(f"the checkpoint lacks {name}; it has {listed(list(tensors)[:6])} …")
    return tensors[name]


def as_is(array: np.ndarray) -> np.ndarray:
    """Return a tensor as it is."""
    return array


def _gpt2(
    name: str, settings: Mapping[str, Any], tensors: Tensors
) -> tuple[Config, dict[str, np.ndarray]]:
    layers, heads, d = settings["n_layer"], settings["n_head"], settings["n_embd"]
    dh = d // heads
    prefix = "transformer." if any(t.startswith("transformer.") for t in tensors) else ""
    head = tensors.get("lm_head.weight")
    tied = head is None or np.array_equal(head, tensor(tensors, f"{prefix}wte.weight"))
    block = prefix + "h.{}."
    config = Config(
        n_layers=layers,
        n_heads=heads,
        d_model=d,
        d_head=dh,
        d_vocab=settings["vocab_size"],
        n_ctx=settings["n_positions"],
        positions="learned",
        d_mlp=settings.get("n_inner") or 4 * d,
        activation=activation(name, settings["activation_function"]),
        norm="layer",
        norm_eps=settings["layer_norm_epsilon"],
        final_norm=True,
        tied=tied,
        biases=("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out"),
    )
    weights = {
        "W_E": tensor(tensors, f"{prefix}wte.weight"),
        "W_pos": tensor(tensors, f"{prefix}wpe.weight"),
        "W_O": stacked(
            tensors, block + "attn.c_proj.weight", layers, lambda w: w.reshape(heads, dh, d)
        ),
        "b_O": stacked(tensors, block + "attn.c_proj.bias", layers, as_is),
        "W_in": stacked(tensors, block + "mlp.c_fc.weight", layers, as_is),
        "b_in": stacked(tensors, block + "mlp.c_fc.bias", layers, as_is),
        "W_out": stacked(tensors, block + "mlp.c_proj.weight", layers, as_is),
        "b_out": stacked(tensors, block + "mlp.c_proj.bias", layers, as_is),
        "ln_final_gain": tensor(tensors, f"{prefix}ln_f.weight"),
        "ln_final_bias": tensor(tensors, f"{prefix}ln_f.bias"),
    }
    for number, letter in enumerate("QKV"):
        # Conv1D: inputs are the rows; the columns are q, k and v side by side, each by heads.
        weights[f"W_{letter}"] = stacked(
            tensors,
            block + "attn.c_attn.weight",
            layers,
            lambda w, n=number: w.reshape(d, 3, heads, dh)[:, n].swapaxes(0, 1),
        )
        weights[f"b_{letter}"] = stacked(
            tensors,
            block + "attn.c_attn.bias",
            layers,
            lambda b, n=number: b.reshape(3, heads, dh)[n],
        )
    for ours, theirs in (("ln1", "ln_1"), ("ln2", "ln_2")):
        weights[f"{ours}_gain"] = stacked(tensors, block + f"{theirs}.weight", layers, as_is)
        weights[f"{ours}_bias"] = stacked(tensors, block + f"{theirs}.bias", layers, as_is)
    if not tied:
        weights["W_U"] = tensor(tensors, "lm_head.weight").T
    return config, weights


def _rotary(name: str, settings: Mapping[str, Any]) -> tuple[float, float]:
    """Return base and fraction of rotary positions; refuse frequencies that are stretched."""
    rope = dict(settings.get("rope_parameters") or settings.get("rope_scaling") or {})
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise OtimesError(
            f"{name} has rope_type={kind!r}, which changes the rotary frequencies and is not "
            "supported"
        )
    base = rope.get("rope_theta", settings.get("rope_theta", settings.get("rotary_emb_base", 1e4)))
    fraction = rope.get("partial_rotary_factor", settings.get("rotary_pct"))
    return float(base), 1.0 if fraction is None else float(fraction)


def _gpt_neox(
    name: str, settings: Mapping[str, Any], tensors: Tensors
) -> tuple[Config, dict[str, np.ndarray]]:
    layers, heads = settings["num_hidden_layers"], settings["num_attention_heads"]
    d = settings["hidden_size"]
    dh = d // heads
    base, fraction = _rotary(name, {"rotary_pct": 0.25, **settings})
    biased = bool(settings.get("attention_bias", True))
    block = "gpt_neox.layers.{}."
    embed, unembed = tensor(tensors, "gpt_neox.embed_in.weight"), _head(tensors, "embed_out")
    tied = unembed is None or bool(settings.get("tie_word_embeddings"))
    config = Config(
        n_layers=layers,
        n_heads=heads,
        d_model=d,
        d_head=dh,
        d_vocab=settings["vocab_size"],
        n_ctx=settings["max_position_embeddings"],
        positions="rotary",
        rotary_dims=int(dh * fraction),
        rotary_base=base,
        d_mlp=settings["intermediate_size"],
        activation=activation(name, settings["hidden_act"]),
        parallel=bool(settings.get("use_parallel_residual", True)),
        norm="layer",
        norm_eps=settings["layer_norm_eps"],
        final_norm=True,
        tied=tied,
        biases=(*(("b_Q", "b_K", "b_V", "b_O") if biased else ()), "b_in", "b_out"),
    )
    weights = {
        "W_E": embed,
        "W_O": stacked(
            tensors, block + "attention.dense.weight", layers, lambda w: w.T.reshape(heads, dh, d)
        ),
        "W_in": stacked(tensors, block + "mlp.dense_h_to_4h.weight", layers, np.transpose),
        "b_in": stacked(tensors, block + "mlp.dense_h_to_4h.bias", layers, as_is),
        "W_out": stacked(tensors, block + "mlp.dense_4h_to_h.weight", layers, np.transpose),
        "b_out": stacked(tensors, block + "mlp.dense_4h_to_h.bias", layers, as_is),
        "ln_final_gain": tensor(tensors, "gpt_neox.final_layer_norm.weight"),
        "ln_final_bias": tensor(tensors, "gpt_neox.final_layer_norm.bias"),
    }
    if biased:
        weights["b_O"] = stacked(tensors, block + "attention.dense.bias", layers, as_is)
    fused = block + "attention.query_key_value."
    for number, letter in enumerate("QKV"):
        # Linear: inputs are the columns; the rows are heads, and in each q, k and v.
        weights[f"W_{letter}"] = stacked(
            tensors,
            fused + "weight",
            layers,
            lambda w, n=number: w.reshape(heads, 3, dh, d)[:, n].swapaxes(1, 2),
        )
        if biased:
            weights[f"b_{letter}"] = stacked(
                tensors, fused + "bias", layers, lambda b, n=number: b.reshape(heads, 3, dh)[:, n]
            )
    for ours, theirs in (("ln1", "input_layernorm"), ("ln2", "post_attention_layernorm")):
        weights[f"{ours}_gain"] = stacked(tensors, block + f"{theirs}.weight", layers, as_is)
        weights[f"{ours}_bias"] = stacked(tensors, block + f"{theirs}.bias", layers, as_is)
    if not tied and unembed is not None:
        weights["W_U"] = unembed.T
    return config, weights


def _head(tensors: Tensors, other: str) -> np.ndarray | None:
    return tensors.get("lm_head.weight", tensors.get(f"{other}.weight"))


def _llama(
    name: str, settings: Mapping[str, Any], tensors: Tensors
) -> tuple[Config, dict[str, np.ndarray]]:
    layers, heads = settings["num_hidden_layers"], settings["num_attention_heads"]
    d = settings["hidden_size"]
    dh = settings.get("head_dim") or d // heads
    groups = settings.get("num_key_value_heads") or heads
    base, fraction = _rotary(name, settings)
    biased = bool(settings.get("attention_bias", False))
    mlp_biased = bool(settings.get("mlp_bias", False))
    block = "model.layers.{}."
    unembed = tensors.get("lm_head.weight")
    tied = unembed is None or bool(settings.get("tie_word_embeddings"))
    config = Config(
        n_layers=layers,
        n_heads=heads,
        d_model=d,
        d_head=dh,
        d_vocab=settings["vocab_size"],
        n_ctx=settings["max_position_embeddings"],
        positions="rotary",
        n_kv_heads=groups,
        rotary_dims=int(dh * fraction),
        rotary_base=base,
        d_mlp=settings["intermediate_size"],
        activation=activation(name, settings["hidden_act"]),
        gated=True,
        norm="rms",
        norm_eps=settings["rms_norm_eps"],
        final_norm=True,
        tied=tied,
        biases=(
            *(("b_Q", "b_K", "b_V", "b_O") if biased else ()),
            *(("b_in", "b_gate", "b_out") if mlp_biased else ()),
        ),
    )
    weights = {
        "W_E": tensor(tensors, "model.embed_tokens.weight"),
        "W_O": stacked(
            tensors, block + "self_attn.o_proj.weight", layers, lambda w: w.T.reshape(heads, dh, d)
        ),
        "ln1_gain": stacked(tensors, block + "input_layernorm.weight", layers, as_is),
        "ln2_gain": stacked(tensors, block + "post_attention_layernorm.weight", layers, as_is),
        "ln_final_gain": tensor(tensors, "model.norm.weight"),
    }
    for letter, count in (("Q", heads), ("K", groups), ("V", groups)):
        part = block + f"self_attn.{letter.lower()}_proj."
        weights[f"W_{letter}"] = stacked(
            tensors,
            part + "weight",
            layers,
            lambda w, c=count: w.reshape(c, dh, d).swapaxes(1, 2),
        )
        if biased:
            weights[f"b_{letter}"] = stacked(
                tensors, part + "bias", layers, lambda b, c=count: b.reshape(c, dh)
            )
    if biased:
        weights["b_O"] = stacked(tensors, block + "self_attn.o_proj.bias", layers, as_is)
    for ours, theirs in (("in", "up_proj"), ("gate", "gate_proj"), ("out", "down_proj")):
        weights[f"W_{ours}"] = stacked(
            tensors, block + f"mlp.{theirs}.weight", layers, np.transpose
        )
        if mlp_biased:
            weights[f"b_{ours}"] = stacked(tensors, block + f"mlp.{theirs}.bias", layers, as_is)
    if not tied and unembed is not None:
        weights["W_U"] = unembed.T
    return config, weights


READERS = {"gpt2": _gpt2, "gpt_neox": _gpt_neox, "llama": _llama}
