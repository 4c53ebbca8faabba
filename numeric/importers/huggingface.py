"""Import of Hugging Face checkpoints: their settings and their tensors.

GPT-2, GPT-NeoX, and Llama with the models that differ from it in settings and biases only: Mistral,
and Qwen 2 with biases of queries, keys and values. A sliding window changes nothing for prompts
that are no longer than the window, so `n_ctx` is at most that length.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.config import Config, listed
from otimes.numeric.importers.huggingface_settings import (
    ACTIVATION,
    IDLE,
    OFF_IS_NOT_IDLE,
    ONLY,
    READ,
    STRETCH,
    WITHOUT_EFFECT,
    WITHOUT_EFFECT_IF,
)
from otimes.numeric.model import Model, checked_model
from otimes.numeric.tensors import (
    BFLOAT16,
    StoredTensor,
    Tensor,
    dtype_name,
    stack,
    tensor_of,
)

Tensors = Mapping[str, np.ndarray]


class Settings(dict[str, Any]):
    """The settings of a checkpoint; those that are needed and missing raise an OtimesError."""

    def __init__(self, name: str, content: Mapping[str, Any]) -> None:
        super().__init__(content)
        self.name = name

    def __missing__(self, key: str) -> Any:
        raise OtimesError(f"the config.json of {self.name} lacks {key}")

    def size(self, key: str) -> int:
        """Return a setting that is a positive integer."""
        value = self[key]
        if type(value) is not int or value < 1:
            raise OtimesError(f"{self.name} has {key}={value!r}; it must be a positive integer")
        return value


def model_of(name: str, kind: str, settings: Mapping[str, Any], tensors: Tensors) -> Model:
    """Return the reference model of a checkpoint; `kind` is its `model_type`.

    Raises: OtimesError naming every unsupported setting.
    """
    if kind not in READERS:
        raise OtimesError(
            f"{name} is of the kind {kind!r}; there are importers for {listed(READERS)}"
        )
    refuse(name, settings, {**ONLY[kind], **dict.fromkeys(unknown(settings, kind), ())})
    body = BODY[kind]
    if not any(each.startswith(body) for each in tensors):  # a model without an unembedding
        tensors = {body + each: array for each, array in tensors.items()}
    config, weights = READERS[kind](name, Settings(name, settings), tensors)
    return checked_model(name, config, {key: tensor_of(each) for key, each in weights.items()})


def unknown(settings: Mapping[str, Any], kind: str) -> list[str]:
    """Return the unrecognised settings of a checkpoint, which may change its computation.

    >>> unknown({"n_embd": 8, "_commit": "x", "final_logit_softcapping": 30.0}, "gpt2")
    ['final_logit_softcapping']
    """
    begin, end = WITHOUT_EFFECT_IF
    known = READ[kind] | ONLY[kind].keys() | WITHOUT_EFFECT
    return [
        key
        for key, value in settings.items()
        if key not in known
        and not key.startswith(begin)
        and not key.endswith(end)
        and (key in OFF_IS_NOT_IDLE or not any(value is x or value == x for x in IDLE))
    ]


def refuse(name: str, settings: Mapping[str, Any], only: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise OtimesError naming every setting with an unsupported value."""
    wrong = [
        f"{key}={settings[key]!r}"
        for key, allowed in only.items()
        if key in settings and settings[key] not in allowed
    ]
    if wrong:
        raise OtimesError(
            f"{name} has {listed(wrong)}, which changes what is computed, or may, and is not "
            "supported"
        )


def activation(name: str, said: str) -> str:
    """Return the otimes name of an activation function, or raise OtimesError."""
    if said not in ACTIVATION:
        raise OtimesError(
            f"{name} has the activation {said!r}, which is not supported; known are "
            f"{listed(ACTIVATION)}"
        )
    return ACTIVATION[said]


def stacked(
    tensors: Tensors, pattern: str, layers: int, shape: tuple[int, ...], change: Callable[..., Any]
) -> StoredTensor:
    """Return one tensor of every layer, stacked along a first axis without a copy.

    `shape` is that of the stored tensor of a layer; `change` returns a view of it.
    """
    return stack([change(tensor(tensors, pattern.format(layer), shape)) for layer in range(layers)])


def tensor(tensors: Tensors, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return a tensor by its name. Raises: OtimesError if it is missing, quantised or misshapen."""
    if name not in tensors:
        raise OtimesError(f"the checkpoint lacks {name}; it has {listed(list(tensors)[:6])} …")
    found = tensors[name]
    if found.dtype.kind != "f" and found.dtype != BFLOAT16:
        raise OtimesError(f"{name} holds {dtype_name(found)}: quantised weights are not supported")
    if found.shape != shape:
        raise ShapeError(
            f"{name} has shape {found.shape}, but the settings of the checkpoint require {shape}"
        )
    return found


def as_is(array: np.ndarray) -> np.ndarray:
    """Return the array unchanged."""
    return array


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
    tied, ends = _ends(tensors, f"{prefix}wte.weight", d_vocab, d)
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
        **ends,
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


def _ends(
    tensors: Tensors, embedding: str, d_vocab: int, d_model: int
) -> tuple[bool, dict[str, Tensor]]:
    """Return (whether W_U is tied to W_E, the tensors W_E and, if untied, W_U)."""
    W_E = tensor(tensors, embedding, (d_vocab, d_model))
    head = next((name for name in HEADS if name in tensors), None)
    if head is None or tensors[head] is W_E or np.array_equal(tensors[head], W_E):
        return True, {"W_E": W_E}
    return False, {"W_E": W_E, "W_U": tensor(tensors, head, (d_vocab, d_model)).T}


def _rotary_sizes(name: str, settings: Settings, d_head: int, fraction: float) -> dict[str, Any]:
    """Return the `Config` fields that GPT-NeoX and Llama have in common."""
    return {
        "n_layers": settings.size("num_hidden_layers"),
        "n_heads": settings.size("num_attention_heads"),
        "d_model": settings.size("hidden_size"),
        "d_head": d_head,
        "d_vocab": settings.size("vocab_size"),
        "n_ctx": settings.size("max_position_embeddings"),
        "d_mlp": settings.size("intermediate_size"),
        "activation": activation(name, settings["hidden_act"]),
        "final_norm": True,
        **_rotary(name, settings, d_head, fraction),
    }


def _rotary(name: str, settings: Settings, d_head: int, fraction: float) -> dict[str, Any]:
    """Return the `Config` fields of rotary embeddings. Raises: OtimesError for other frequencies.

    `fraction` is the default fraction of a head's dimensions that is rotated.
    """
    rope = dict(settings.get("rope_parameters") or settings.get("rope_scaling") or {})
    rope.setdefault("original_max_position_embeddings", settings.size("max_position_embeddings"))
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in STRETCH:
        raise OtimesError(
            f"{name} has rope_type={kind!r}, which changes the rotary frequencies and is not "
            f"supported; known are {listed(STRETCH)}"
        )
    if kind == "yarn":
        refuse(name, rope, {"truncate": (True, None)})
        rope |= _of_yarn(rope, settings.size("max_position_embeddings"))
    lacks = [each for each in STRETCH[kind] if rope.get(each) is None]
    if lacks:
        raise OtimesError(f"{name} has rope_type={kind!r} without {listed(lacks)}")
    if settings.get("model_type") in LIKE_LLAMA:  # which turns all of a head, or fails
        refuse(name, rope, ONLY["llama"])
    base = rope.get("rope_theta", settings.get("rope_theta", settings.get("rotary_emb_base", 1e4)))
    fraction = rope.get("partial_rotary_factor", settings.get("rotary_pct", fraction))
    return {
        "positions": "rotary",
        "rotary_base": float(base),
        "rotary_dims": int(d_head * float(fraction)),
        "rotary_stretch": tuple(float(rope[each]) for each in STRETCH[kind]),
    }


def _of_yarn(rope: Mapping[str, Any], longest: int) -> dict[str, float]:
    """Return the `rotary_stretch` of YaRN, with the library's defaults."""
    factor = rope.get("factor") or longest / rope["original_max_position_embeddings"]

    def grown(share: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * share * math.log(factor) + 1.0

    scale = rope.get("attention_factor")
    if scale is None and rope.get("mscale") and rope.get("mscale_all_dim"):
        scale = grown(rope["mscale"]) / grown(rope["mscale_all_dim"])
    return {
        "factor": factor,
        "beta_slow": rope.get("beta_slow") or 1.0,
        "beta_fast": rope.get("beta_fast") or 32.0,
        "attention_factor": grown(1.0) if scale is None else scale,
    }


def _gpt_neox(name: str, settings: Settings, tensors: Tensors) -> tuple[Config, dict[str, Tensor]]:
    layers, heads = settings.size("num_hidden_layers"), settings.size("num_attention_heads")
    d = settings.size("hidden_size")
    dh, d_mlp = d // heads, settings.size("intermediate_size")
    biased = bool(settings.get("attention_bias", True))
    block = "gpt_neox.layers.{}."
    tied, ends = _ends(tensors, "gpt_neox.embed_in.weight", settings.size("vocab_size"), d)
    config = Config(
        **_rotary_sizes(name, settings, dh, 0.25),
        parallel=bool(settings.get("use_parallel_residual", True)),
        norm="layer",
        norm_eps=settings["layer_norm_eps"],
        tied=tied,
        biases=(*(("b_Q", "b_K", "b_V", "b_O") if biased else ()), "b_in", "b_out"),
    )
    weights = {
        **ends,
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


def _llama(name: str, settings: Settings, tensors: Tensors) -> tuple[Config, dict[str, Tensor]]:
    layers, heads = settings.size("num_hidden_layers"), settings.size("num_attention_heads")
    d = settings.size("hidden_size")
    dh = settings.get("head_dim") or d // heads
    groups, d_mlp = settings.get("num_key_value_heads") or heads, settings.size("intermediate_size")
    kind = settings.get("model_type")
    output_biased = bool(settings.get("attention_bias", False))
    biased = output_biased or kind == "qwen2"
    mlp_biased = bool(settings.get("mlp_bias", False))
    block = "model.layers.{}."
    tied, ends = _ends(tensors, "model.embed_tokens.weight", settings.size("vocab_size"), d)
    config = Config(
        **{**_rotary_sizes(name, settings, dh, 1.0), "n_ctx": _longest(settings)},
        n_kv_heads=groups,
        gated=True,
        norm="rms",
        norm_eps=settings["rms_norm_eps"],
        tied=tied,
        biases=(
            *(("b_Q", "b_K", "b_V") if biased else ()),
            *(("b_O",) if output_biased else ()),
            *(("b_in", "b_gate", "b_out") if mlp_biased else ()),
        ),
    )
    weights = {
        **ends,
        "W_O": stacked(
            tensors,
            block + "self_attn.o_proj.weight",
            layers,
            (d, heads * dh),
            lambda w: w.T.reshape(heads, dh, d),
        ),
        "ln1_gain": stacked(tensors, block + "input_layernorm.weight", layers, (d,), as_is),
        "ln2_gain": stacked(
            tensors, block + "post_attention_layernorm.weight", layers, (d,), as_is
        ),
        "ln_final_gain": tensor(tensors, "model.norm.weight", (d,)),
    }
    for letter, count in (("Q", heads), ("K", groups), ("V", groups)):
        part = block + f"self_attn.{letter.lower()}_proj."
        weights[f"W_{letter}"] = stacked(
            tensors,
            part + "weight",
            layers,
            (count * dh, d),
            lambda w, c=count: w.reshape(c, dh, d).swapaxes(1, 2),
        )
        if biased:
            weights[f"b_{letter}"] = stacked(
                tensors, part + "bias", layers, (count * dh,), lambda b, c=count: b.reshape(c, dh)
            )
    if output_biased:
        weights["b_O"] = stacked(tensors, block + "self_attn.o_proj.bias", layers, (d,), as_is)
    for ours, theirs in (("in", "up_proj"), ("gate", "gate_proj"), ("out", "down_proj")):
        shape = (d, d_mlp) if ours == "out" else (d_mlp, d)
        weights[f"W_{ours}"] = stacked(
            tensors, block + f"mlp.{theirs}.weight", layers, shape, np.transpose
        )
        if mlp_biased:
            weights[f"b_{ours}"] = stacked(
                tensors, block + f"mlp.{theirs}.bias", layers, shape[:1], as_is
            )
    return config, weights


def _longest(settings: Settings) -> int:
    """Return the longest prompt in which no sliding window hides a token."""
    longest, window = settings.size("max_position_embeddings"), settings.get("sliding_window")
    used = settings.get("model_type") == "mistral" or settings.get("use_sliding_window", False)
    windows = "sliding_attention" in (settings.get("layer_types") or ())
    return min(longest, window) if window and (used or windows) else longest


HEADS = ("lm_head.weight", "embed_out.weight")
LIKE_LLAMA = ("llama", "mistral", "qwen2")
BODY = {"gpt2": "transformer.", "gpt_neox": "gpt_neox.", **dict.fromkeys(LIKE_LLAMA, "model.")}
READERS = {
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    **dict.fromkeys(LIKE_LLAMA, _llama),
}
