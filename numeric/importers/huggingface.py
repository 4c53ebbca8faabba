"""Import of Hugging Face checkpoints: their settings and their tensors.

GPT-2 and GPT-NeoX are read here, and the decoders that are declared in `families`: Llama and the
models made of its parts.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config, listed
from otimes.numeric.importers.checkpoint import (
    Settings,
    Tensors,
    activation,
    as_is,
    ends,
    refuse,
    stacked,
    tensor,
)
from otimes.numeric.importers.decoders import read_decoder
from otimes.numeric.importers.families import DECODERS
from otimes.numeric.importers.huggingface_settings import (
    IDLE,
    OFF_IS_NOT_IDLE,
    ONLY,
    READ,
    WITHOUT_EFFECT,
    WITHOUT_EFFECT_IF,
)
from otimes.numeric.importers.other_kinds import why_not
from otimes.numeric.importers.rotary import rotary
from otimes.numeric.model import Model, checked_model
from otimes.numeric.tensors import Tensor, tensor_of


def model_of(name: str, kind: str, settings: Mapping[str, Any], tensors: Tensors) -> Model:
    """Return the reference model of a checkpoint; `kind` is its `model_type`.

    Of a model of text and images, such as Gemma 3, it is the language model.
    Raises: OtimesError naming every unsupported setting.
    """
    if kind in OF_TEXT_AND_IMAGES and isinstance(settings.get("text_config"), Mapping):
        settings, tensors = _of_text(settings, tensors)
        kind = str(settings.get("model_type", kind))
    if why_not(kind):
        raise OtimesError(f"{name} is of the kind {kind!r}, {why_not(kind)}")
    if kind not in KINDS:
        raise OtimesError(
            f"{name} is of the kind {kind!r}; there are importers for {listed(KINDS)}"
        )
    refuse(name, settings, {**_only(kind), **dict.fromkeys(unknown(settings, kind), ())})
    body = DECODERS[kind].body if kind in DECODERS else BODY[kind]
    if not any(each.startswith(body) for each in tensors):  # a model without an unembedding
        tensors = {body + each: array for each, array in tensors.items()}
    said = Settings(name, settings)
    if kind in DECODERS:
        config, weights = read_decoder(DECODERS[kind], name, said, tensors)
    else:
        config, weights = READERS[kind](name, said, tensors)
    return checked_model(name, config, {key: tensor_of(each) for key, each in weights.items()})


def _of_text(settings: Mapping[str, Any], tensors: Tensors) -> tuple[Mapping[str, Any], Tensors]:
    """Return the settings and the tensors of the language model, under the names that it has."""
    begin = {"model.language_model.": "model.", "language_model.model.": "model."}
    begin |= {"language_model.lm_head.": "lm_head.", "lm_head.": "lm_head."}
    kept = {
        new + name.removeprefix(old): array
        for old, new in begin.items()
        for name, array in tensors.items()
        if name.startswith(old)
    }
    return settings["text_config"], kept


def unknown(settings: Mapping[str, Any], kind: str) -> list[str]:
    """Return the unrecognised settings of a checkpoint, which may change its computation.

    >>> unknown({"n_embd": 8, "_commit": "x", "final_logit_softcapping": 30.0}, "gpt2")
    ['final_logit_softcapping']
    """
    begin, end = WITHOUT_EFFECT_IF
    read = DECODERS[kind].read if kind in DECODERS else READ[kind]
    known = read | _only(kind).keys() | WITHOUT_EFFECT
    return [
        key
        for key, value in settings.items()
        if key not in known
        and not key.startswith(begin)
        and not key.endswith(end)
        and (key in OFF_IS_NOT_IDLE or not any(value is x or value == x for x in IDLE))
    ]


def _only(kind: str) -> Mapping[str, tuple[Any, ...]]:
    """Return the settings that are supported with some values only."""
    return DECODERS[kind].only if kind in DECODERS else ONLY[kind]


def query_scale(settings: Mapping[str, Any], layer: int, d_head: int) -> float:
    """Return the factor on GPT-2 queries that makes the scale of the scores 1/√d_head.

    Two settings change that scale: no √d_head, and a division by the layer number.
    """
    scale = 1.0 if settings.get("scale_attn_weights", True) else math.sqrt(d_head)
    if settings.get("scale_attn_by_inverse_layer_idx", False):
        scale /= layer + 1
    return scale


def _gpt2(name: str, settings: Settings, tensors: Tensors) -> tuple[Config, dict[str, Tensor]]:
    layers, heads, d = (settings.size(key) for key in ("n_layer", "n_head", "n_embd"))
    dh, n_ctx, d_vocab = d // heads, settings.size("n_positions"), settings.size("vocab_size")
    d_mlp = settings.get("n_inner") or 4 * d
    prefix = BODY["gpt2"]
    tied, both_ends = ends(tensors, f"{prefix}wte.weight", d_vocab, d)
    block = prefix + "h.{}."
    config = Config(
        n_layers=layers,
        n_heads=heads,
        d_model=d,
        d_head=dh,
        d_vocab=d_vocab,
        n_ctx=n_ctx,
        positions="learned",
        d_mlp=d_mlp,
        activation=activation(name, settings["activation_function"]),
        norm="layer",
        norm_eps=settings["layer_norm_epsilon"],
        final_norm=True,
        tied=tied,
        biases=("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out"),
    )
    weights = {
        **both_ends,
        "W_pos": tensor(tensors, f"{prefix}wpe.weight", (n_ctx, d)),
        "W_O": stacked(
            tensors,
            block + "attn.c_proj.weight",
            layers,
            (heads * dh, d),
            lambda w: w.reshape(heads, dh, d),
        ),
        "b_O": stacked(tensors, block + "attn.c_proj.bias", layers, (d,), as_is),
        "W_in": stacked(tensors, block + "mlp.c_fc.weight", layers, (d, d_mlp), as_is),
        "b_in": stacked(tensors, block + "mlp.c_fc.bias", layers, (d_mlp,), as_is),
        "W_out": stacked(tensors, block + "mlp.c_proj.weight", layers, (d_mlp, d), as_is),
        "b_out": stacked(tensors, block + "mlp.c_proj.bias", layers, (d,), as_is),
        "ln_final_gain": tensor(tensors, f"{prefix}ln_f.weight", (d,)),
        "ln_final_bias": tensor(tensors, f"{prefix}ln_f.bias", (d,)),
    }
    for number, letter in enumerate("QKV"):
        # Conv1D: the rows are inputs; the columns are q, k and v concatenated, each head by head.
        weights[f"W_{letter}"] = stacked(
            tensors,
            block + "attn.c_attn.weight",
            layers,
            (d, 3 * heads * dh),
            lambda w, n=number: w.reshape(d, 3, heads, dh)[:, n].swapaxes(0, 1),
        )
        weights[f"b_{letter}"] = stacked(
            tensors,
            block + "attn.c_attn.bias",
            layers,
            (3 * heads * dh,),
            lambda b, n=number: b.reshape(3, heads, dh)[n],
        )
    scales = np.array([query_scale(settings, layer, dh) for layer in range(layers)])
    if (scales != 1).any():
        for query in ("W_Q", "b_Q"):
            queries = weights[query]
            shape = (layers, *[1] * (queries.ndim - 1))
            weights[query] = queries.astype(np.float64) * scales.reshape(shape)
    for ours, theirs in (("ln1", "ln_1"), ("ln2", "ln_2")):
        weights[f"{ours}_gain"] = stacked(tensors, block + f"{theirs}.weight", layers, (d,), as_is)
        weights[f"{ours}_bias"] = stacked(tensors, block + f"{theirs}.bias", layers, (d,), as_is)
    return config, weights


def _gpt_neox(name: str, settings: Settings, tensors: Tensors) -> tuple[Config, dict[str, Tensor]]:
    layers, heads = settings.size("num_hidden_layers"), settings.size("num_attention_heads")
    d = settings.size("hidden_size")
    dh, d_mlp = d // heads, settings.size("intermediate_size")
    biased = bool(settings.get("attention_bias", True))
    block = "gpt_neox.layers.{}."
    tied, both_ends = ends(tensors, "gpt_neox.embed_in.weight", settings.size("vocab_size"), d)
    config = Config(
        n_layers=layers,
        n_heads=heads,
        d_model=d,
        d_head=dh,
        d_vocab=settings.size("vocab_size"),
        d_mlp=d_mlp,
        activation=activation(name, settings["hidden_act"]),
        final_norm=True,
        **rotary(name, settings, dh, 0.25),
        parallel=bool(settings.get("use_parallel_residual", True)),
        norm="layer",
        norm_eps=settings["layer_norm_eps"],
        tied=tied,
        biases=(*(("b_Q", "b_K", "b_V", "b_O") if biased else ()), "b_in", "b_out"),
    )
    weights = {
        **both_ends,
        "W_O": stacked(
            tensors,
            block + "attention.dense.weight",
            layers,
            (d, heads * dh),
            lambda w: w.T.reshape(heads, dh, d),
        ),
        "W_in": stacked(
            tensors, block + "mlp.dense_h_to_4h.weight", layers, (d_mlp, d), np.transpose
        ),
        "b_in": stacked(tensors, block + "mlp.dense_h_to_4h.bias", layers, (d_mlp,), as_is),
        "W_out": stacked(
            tensors, block + "mlp.dense_4h_to_h.weight", layers, (d, d_mlp), np.transpose
        ),
        "b_out": stacked(tensors, block + "mlp.dense_4h_to_h.bias", layers, (d,), as_is),
        "ln_final_gain": tensor(tensors, "gpt_neox.final_layer_norm.weight", (d,)),
        "ln_final_bias": tensor(tensors, "gpt_neox.final_layer_norm.bias", (d,)),
    }
    if biased:
        weights["b_O"] = stacked(tensors, block + "attention.dense.bias", layers, (d,), as_is)
    fused = block + "attention.query_key_value."
    for number, letter in enumerate("QKV"):
        # Linear: the columns are inputs; the rows are heads, with q, k and v within each.
        weights[f"W_{letter}"] = stacked(
            tensors,
            fused + "weight",
            layers,
            (3 * heads * dh, d),
            lambda w, n=number: w.reshape(heads, 3, dh, d)[:, n].swapaxes(1, 2),
        )
        if biased:
            weights[f"b_{letter}"] = stacked(
                tensors,
                fused + "bias",
                layers,
                (3 * heads * dh,),
                lambda b, n=number: b.reshape(heads, 3, dh)[:, n],
            )
    for ours, theirs in (("ln1", "input_layernorm"), ("ln2", "post_attention_layernorm")):
        weights[f"{ours}_gain"] = stacked(tensors, block + f"{theirs}.weight", layers, (d,), as_is)
        weights[f"{ours}_bias"] = stacked(tensors, block + f"{theirs}.bias", layers, (d,), as_is)
    return config, weights


OF_TEXT_AND_IMAGES = ("gemma3", "llava", "mistral3")
"""Kinds whose language model is read; on a prompt of text alone it is causal, as by itself."""

BODY = {"gpt2": "transformer.", "gpt_neox": "gpt_neox."}
READERS = {"gpt2": _gpt2, "gpt_neox": _gpt_neox}
KINDS = (*READERS, *DECODERS)
"""Every `model_type` that is read."""
