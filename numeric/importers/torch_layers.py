"""Import of torch.nn's TransformerEncoderLayer, TransformerEncoder and MultiheadAttention.

They have no embedding and no unembedding. A prompt consists of vectors of the residual stream,
which become the rows of W_E in the reference model. Activations after the module's output are not
compared: `ln2` of a layer, `resid_post` if its norms come first, `ln_final` of a stack with a final
norm, `attn_out` of attention alone. They have no mask: the audit passes the causal one.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.block import passes_on
from otimes.numeric.config import Config, listed
from otimes.numeric.importers.arrays import array_of
from otimes.numeric.importers.checkpoint import refuse
from otimes.numeric.model import Model, checked_model
from otimes.numeric.tensors import Tensor, stack, tensor_of

KINDS = {
    "TransformerEncoderLayer": "encoder_layer",
    "TransformerEncoder": "encoder",
    "MultiheadAttention": "attention",
}
ACTIVATION = {"relu": "relu", "gelu": "gelu", "silu": "silu", "ReLU": "relu", "SiLU": "silu"}
WITHOUT_REFERENCE = {
    "TransformerDecoderLayer": "it attends to a memory as well, and the reference to one text only",
    "TransformerDecoder": "it attends to a memory as well, and the reference to one text only",
    "Transformer": "it is an encoder and a decoder that attends to it; its encoder can be audited",
}
ONLY: dict[str, tuple[Any, ...]] = {"add_bias_kv": (False,), "add_zero_attn": (False,)}


def of_module(module: Any, kind: str) -> Model:
    """Return the reference model of a layer, a stack or attention, without a vocabulary.

    Raises: OtimesError naming every unsupported setting.
    """
    name = type(module).__name__
    layers = list(module.layers) if kind == "encoder" else [module]
    if not layers:
        raise OtimesError(f"{name} has no layers")
    kinds = [_attention_settings(name, each if kind == "attention" else each.self_attn)
             for each in layers]  # fmt: skip
    if kind != "attention":
        kinds = [
            {**settings, **_layer_settings(name, layer)}
            for settings, layer in zip(kinds, layers, strict=True)
        ]
    differ = [key for key in kinds[0] if any(each[key] != kinds[0][key] for each in kinds)]
    if differ:
        raise OtimesError(f"the layers of {name} differ in {listed(differ)}, which is no one model")
    norm = getattr(module, "norm", None)
    if norm is not None:
        kinds[0]["final_norm"] = True
        if _norm_eps(name, norm) != kinds[0]["norm_eps"]:
            raise OtimesError(f"{name} has norm={norm}, of another ε than its layers have")
    biased = kinds[0].pop("biased")
    weights = _attention_weights(layers if kind == "attention" else [x.self_attn for x in layers])
    if kind != "attention":
        weights |= _rest(layers)
    if norm is not None:
        gain, bias = _gain_and_bias(norm)
        weights |= {"ln_final_gain": tensor_of(gain), "ln_final_bias": tensor_of(bias)}
    d_model = kinds[0]["d_model"]
    config = Config(
        n_layers=len(layers),
        d_head=d_model // kinds[0]["n_heads"],
        d_vocab=0,
        n_ctx=1,
        positions="none",
        tied=True,
        biases=biased,
        **kinds[0],
    )
    return checked_model(name, config, {"W_E": np.zeros((0, d_model)), **weights})


def on_vectors(model: Model, vectors: Any) -> tuple[Model, np.ndarray]:
    """Return the model with these vectors ([pos, d_model] or a batch) as W_E, and their tokens.

    Raises: OtimesError or ShapeError unless they are finite vectors of width d_model.
    """
    if hasattr(vectors, "detach"):
        vectors = vectors.detach().cpu()
        vectors = (vectors.double() if vectors.dtype.is_floating_point else vectors).numpy()
    array = np.asarray(vectors)
    d = model.d_model
    if array.dtype.kind != "f":
        raise OtimesError(
            f"{model.name} reads vectors of the residual stream and no tokens: give it real numbers"
            f" of the shape [pos, {d}] or [prompt, pos, {d}], got {array.dtype} {array.shape}"
        )
    if array.ndim not in (2, 3) or array.shape[-1] != d or not array.size:
        raise ShapeError(
            f"{model.name} reads vectors of the residual stream, of the shape [pos, {d}] or "
            f"[prompt, pos, {d}], got {array.shape}"
        )
    if not np.isfinite(array).all():
        entry = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise OtimesError(f"the vectors are not finite, their entry {entry} is {array[entry]}")
    n_pos = array.shape[-2]
    rows = np.asarray(array, dtype=np.float64).reshape(-1, d)
    tokens = np.arange(len(rows)).reshape(-1, n_pos)
    config = replace(model.config, d_vocab=len(rows), n_ctx=n_pos)
    return model.changed({"W_E": rows}, config), tokens


def last_place(config: Config) -> str:
    """Return the hook point of the output of such a module."""
    if config.final_norm:
        return "ln_final"
    return f"{passes_on(config) if config.d_mlp else 'attn_out'}.{config.n_layers - 1}"


def _attention_settings(name: str, attention: Any) -> dict[str, Any]:
    settings = {
        "kdim": attention.kdim,
        "vdim": attention.vdim,
        "add_bias_kv": attention.bias_k is not None,
        "add_zero_attn": attention.add_zero_attn,
    }
    width = (attention.embed_dim,)
    refuse(name, settings, {**ONLY, "kdim": width, "vdim": width})
    biased = attention.in_proj_bias is not None
    return {
        "n_heads": attention.num_heads,
        "d_model": attention.embed_dim,
        "biased": ("b_Q", "b_K", "b_V", "b_O") if biased else (),
    }


def _layer_settings(name: str, layer: Any) -> dict[str, Any]:
    eps = {_norm_eps(name, each) for each in (layer.norm1, layer.norm2)}
    if len(eps) > 1:
        raise OtimesError(f"{name} has norms of different ε, {listed(sorted(eps))}")
    biased = layer.self_attn.in_proj_bias is not None
    if any((part.bias is not None) != biased for part in (layer.linear1, layer.linear2)):
        raise OtimesError(f"{name} has biases in some of its linear maps only")
    all_biases = ("b_Q", "b_K", "b_V", "b_O", "b_in", "b_out")
    return {
        "biased": all_biases if biased else (),
        "d_mlp": layer.linear1.out_features,
        "activation": _activation(name, layer.activation),
        "norm": "layer",
        "norm_eps": eps.pop(),
        "norm_order": "pre" if layer.norm_first else "post",
    }


def _norm_eps(name: str, norm: Any) -> float:
    if type(norm).__name__ != "LayerNorm":
        raise OtimesError(f"{name} has a norm of the kind {type(norm).__name__}; known: LayerNorm")
    return float(norm.eps)


def _activation(name: str, activation: Any) -> str:
    """Return the otimes name of an activation: a torch.nn.functional function, or a module."""
    kind = type(activation).__name__
    if kind == "GELU":
        return "gelu" if activation.approximate == "none" else "gelu_tanh"
    said = getattr(activation, "__name__", kind)
    of_torch = str(getattr(activation, "__module__", "")).startswith("torch")
    if said not in ACTIVATION or not (of_torch or kind == "builtin_function_or_method"):
        raise OtimesError(
            f"{name} has the activation {said!r}, which is not supported; known are relu, gelu and "
            "silu of torch.nn.functional, and ReLU, GELU and SiLU of torch.nn"
        )
    return ACTIVATION[said]


def _attention_weights(attentions: list[Any]) -> dict[str, Tensor]:
    """Return W_Q … b_O from fused weights, whose rows are q, k and v, each head by head."""
    heads, d = attentions[0].num_heads, attentions[0].embed_dim
    dh = d // heads
    rows = [array_of(each.in_proj_weight).reshape(3, heads, dh, d) for each in attentions]
    weights: dict[str, Tensor] = {
        f"W_{letter}": stack([each[n].swapaxes(-1, -2) for each in rows])
        for n, letter in enumerate("QKV")
    }
    weights["W_O"] = stack(
        [array_of(each.out_proj.weight).T.reshape(heads, dh, d) for each in attentions]
    )
    if attentions[0].in_proj_bias is not None:
        biases = [array_of(each.in_proj_bias).reshape(3, heads, dh) for each in attentions]
        weights |= {
            f"b_{letter}": stack([each[n] for each in biases]) for n, letter in enumerate("QKV")
        }
        weights["b_O"] = stack([array_of(each.out_proj.bias) for each in attentions])
    return weights


def _rest(layers: list[Any]) -> dict[str, Tensor]:
    """Return the weights of the norms and the MLPs."""
    weights: dict[str, Tensor] = {}
    for ours, theirs in (("in", "linear1"), ("out", "linear2")):
        parts = [getattr(layer, theirs) for layer in layers]
        weights[f"W_{ours}"] = stack([array_of(part.weight).T for part in parts])
        if parts[0].bias is not None:
            weights[f"b_{ours}"] = stack([array_of(part.bias) for part in parts])
    for number in (1, 2):
        pairs = [_gain_and_bias(getattr(layer, f"norm{number}")) for layer in layers]
        gains, biases = zip(*pairs, strict=True)
        weights[f"ln{number}_gain"], weights[f"ln{number}_bias"] = stack(gains), stack(biases)
    return weights


def _gain_and_bias(norm: Any) -> tuple[np.ndarray, np.ndarray]:
    shape = tuple(norm.normalized_shape)
    gain = np.ones(shape) if norm.weight is None else array_of(norm.weight)
    return gain, np.zeros(shape, gain.dtype) if norm.bias is None else array_of(norm.bias)


def to_stream(model: Model, vectors: Any) -> tuple[Model, np.ndarray]:
    """Return the model from vectors [pos, d_model] to its output, and the "tokens" of the vectors.

    Token t reads vector t, and logit t is entry t of the output: W_E has the vectors as rows, and
    W_U is the identity.
    """
    if not model.config.d_mlp:
        raise OtimesError(
            f"{model.name} is attention without a residual stream, and paths are terms of one: give"
            " a TransformerEncoderLayer or TransformerEncoder with norm_first=True"
        )
    read, tokens = on_vectors(model, vectors)
    if len(tokens) != 1:
        raise ShapeError(
            f"one prompt is taken here, [pos, d_model={model.d_model}], and a batch of"
            f" {len(tokens)} was given: call once for each"
        )
    d, n_pos = model.d_model, tokens.shape[1]
    size = max(d, n_pos)
    embed = np.concatenate([read.part("W_E"), np.zeros((size - n_pos, d))])
    config = replace(read.config, d_vocab=size, tied=False)
    return read.changed({"W_E": embed, "W_U": np.eye(d, size)}, config), tokens[0]
