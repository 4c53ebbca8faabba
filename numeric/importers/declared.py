"""What the declarations of families share: names of settings and parts, biases, windows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from otimes.numeric.importers.checkpoint import Settings
from otimes.numeric.importers.decoders import Decoder, Fields

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
ATTENTION_BIAS = {"attention_bias"}


OF_QUERIES = ("b_Q", "b_K", "b_V")
OF_ATTENTION = (*OF_QUERIES, "b_O")
OF_ALL = (*OF_ATTENTION, "b_in", "b_out")
"""The biases of queries, keys and values; of attention; and of attention and an ungated MLP."""


def if_set(
    key: str, names: Iterable[str], default: bool = False
) -> Callable[[Mapping[str, Any]], Iterable[str]]:
    """Return the biases of a family that has them by one setting.

    >>> [*if_set("use_bias", OF_QUERIES, True)({"use_bias": False})]
    []
    """
    return lambda settings: names if settings.get(key, default) else ()


def llama_biases(settings: Mapping[str, Any]) -> Iterable[str]:
    """Return the biases of attention and of the MLP, each by its setting."""
    attention = OF_ATTENTION if settings.get("attention_bias") else ()
    return (*attention, *(("b_in", "b_gate", "b_out") if settings.get("mlp_bias") else ()))


def ungated_biases(settings: Mapping[str, Any]) -> Iterable[str]:
    """Return the biases of attention and of an MLP without a gate, each by its setting."""
    return (name for name in llama_biases(settings) if name != "b_gate")


def granite(name: str, settings: Settings) -> Fields:
    """Return the scales of Granite: of embeddings, scores, what blocks write, and logits."""
    return {
        "embed_scale": float(settings.get("embedding_multiplier", 1.0)),
        "attn_scale": float(settings.get("attention_multiplier", 1.0)),
        "write_scale": float(settings.get("residual_multiplier", 1.0)),
        "logit_scale": 1 / float(settings.get("logits_scaling", 1.0)),
    }


def query_biases(settings: Mapping[str, Any]) -> Iterable[str]:
    """Return the biases of queries, keys and values, by the setting of attention."""
    return OF_QUERIES if settings.get("attention_bias") else ()


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
            bool(used and first is not None and layer >= first) for layer in layers_of(settings)
        ]
    else:
        sliding = [each == "sliding_attention" for each in types]
    return {"windows": tuple(window if each else 0 for each in sliding)} if window else {}


def only_windows_rotated(name: str, settings: Settings, every: int) -> Fields:
    """Return windows in all layers but each `every`-th, which have no positions."""
    layers = layers_of(settings)
    types = settings.get("layer_types") or [
        "sliding_attention" if (layer + 1) % every else "full_attention" for layer in layers
    ]
    fields = windows_by_layer(name, Settings(name, {**settings, "layer_types": types}))
    whole = tuple(layer for layer in layers if types[layer] != "sliding_attention")
    return {**fields, "unrotated_layers": whole}


def exaone_windows(name: str, settings: Settings) -> Fields:
    """Return the windows of EXAONE; without any, all layers have rotary positions."""
    if not settings.get("sliding_window"):
        return {}
    pattern = settings.get("sliding_window_pattern") or 4
    every = len(pattern) if isinstance(pattern, str) else int(pattern)  # "LLLG"
    return only_windows_rotated(name, settings, every)


def renamed(settings: Settings, names: Mapping[str, str], **more: Any) -> Settings:
    """Return settings under the names of Llama."""
    said = {names.get(key, key): value for key, value in settings.items()}
    return Settings(settings.name, {**said, **more})


def layers_of(settings: Settings) -> range:
    """Return the numbers of the layers."""
    return range(settings.size("num_hidden_layers"))


def decoder(
    *read: Iterable[str], only: Mapping[str, tuple[Any, ...]] = WHOLE, **said: Any
) -> Decoder:
    """Return a declaration; `read` are the settings that it reads besides sizes and rotary ones."""
    eps = said.get("eps", "rms_norm_eps")
    names = {*SIZES, *ROPE, eps, said.get("act", "hidden_act")}
    return Decoder(read=frozenset(names.union(*read)), only=only, **said)
