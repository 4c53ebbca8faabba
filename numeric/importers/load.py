"""Foreign weights as a reference model: from a live module, a folder of safetensors, or a mapping.

A module is recognised by the name of its class, so that unused libraries need not be installed.
Each setting is supported, known to have no effect, or refused by name: an ignored setting would
make a correct implementation look wrong, or a wrong one right. Rotary frequencies are computed from
the settings in float64, not read from the buffers of a module, which are float32.

    Hugging Face        GPT-2, GPT-NeoX, Llama (`huggingface`)
    TransformerLens     HookedTransformer (`transformer_lens`)
    torch.nn            TransformerEncoderLayer, TransformerEncoder, MultiheadAttention
                        (`torch_layers`)
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import ACTIVATIONS, BIASES, Config, listed
from otimes.numeric.files import read_json, read_weights
from otimes.numeric.importers import huggingface, torch_layers, transformer_lens
from otimes.numeric.importers.arrays import array_of
from otimes.numeric.importers.unwrap import unwrapped
from otimes.numeric.model import Model, checked_model, load_model

HUGGING_FACE = {
    "GPT2LMHeadModel": "gpt2",
    "GPT2Model": "gpt2",
    "GPTNeoXForCausalLM": "gpt_neox",
    "GPTNeoXModel": "gpt_neox",
    "LlamaForCausalLM": "llama",
    "LlamaModel": "llama",
}

NORMS = ("ln_", "norm", "input_layernorm", "post_attention_layernorm", "final_layer_norm")
"""Prefixes of the names of norms in Hugging Face modules."""

KNOWN = (*HUGGING_FACE, "HookedTransformer", *torch_layers.KINDS)
"""The known classes of live modules."""


def imported(source: Any, config: Config | Mapping[str, Any] | None = None) -> Model:
    """Return the reference model of a source of weights.

    A `Model` is returned as it is. Raises: OtimesError for what is not known, naming it.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, str | Path):
        return of_folder(source)
    if isinstance(source, Mapping):
        return of_mapping(source, config)
    source = unwrapped(source)
    kind = kind_of_module(source)
    if kind == "lens":
        return transformer_lens.of_module(source)
    if kind in torch_layers.KINDS.values():
        return torch_layers.of_module(source, str(kind))
    if kind is not None:
        return of_hugging_face(source, kind)
    check_reference(source)
    raise OtimesError(
        f"there is no importer for {type(source).__name__}: known are "
        f"{listed(KNOWN)}, a folder with "
        "safetensors, a model, or a mapping of the canonical names to arrays"
    )


def kind_of_module(module: Any) -> str | None:
    """Return the kind of a live module, None if it is not a known one."""
    for each in type(module).__mro__:
        if each.__name__ in HUGGING_FACE:
            return HUGGING_FACE[each.__name__]
        if each.__name__ == "HookedTransformer":
            return "lens"
        if each.__name__ in torch_layers.KINDS and each.__module__.startswith("torch.nn."):
            return torch_layers.KINDS[each.__name__]
    return None


def check_reference(source: Any) -> None:
    """Raise OtimesError if a module is one of torch.nn that computes what the reference cannot."""
    for each in type(source).__mro__:
        why = torch_layers.WITHOUT_REFERENCE.get(each.__name__)
        if why and each.__module__.startswith("torch.nn."):
            raise OtimesError(f"{each.__name__} of torch.nn cannot be audited: {why}")


def of_hugging_face(module: Any, kind: str) -> Model:
    """Return the reference model of a live Hugging Face module."""
    for name, part in module.named_modules():
        if type(part).__name__ == "Identity" and name.rpartition(".")[2].startswith(NORMS):
            raise OtimesError(
                f"{type(module).__name__} has Identity for {name}: the reference has a norm there"
            )
    settings = module.config.to_dict()
    state = module.state_dict()
    packed = [name for name in state if "_packed_params" in name]
    if packed:
        raise OtimesError(f"the module holds quantised weights ({packed[0]}): not supported")
    tensors = {
        name: array_of(tensor) for name, tensor in state.items() if hasattr(tensor, "detach")
    }
    return huggingface.model_of(type(module).__name__, kind, settings, tensors)


def of_folder(folder: str | Path) -> Model:
    """Return the model in a folder: one of ours, or a checkpoint of Hugging Face.

    A checkpoint may be in several files. Raises: OtimesError for a pickle, or what is not known.
    """
    path = Path(folder)
    settings_file = path / "config.json"
    if not settings_file.exists() or "model_type" not in read_json(settings_file):
        return load_model(folder)
    settings = read_json(settings_file)
    index = path / "model.safetensors.index.json"
    files = ["model.safetensors"]
    if index.exists():
        files = sorted(set(read_json(index)["weight_map"].values()))
    tensors: dict[str, np.ndarray] = {}
    for name in files:
        tensors |= read_weights(path / name, leave_out=True)
    return huggingface.model_of(path.resolve().name, str(settings["model_type"]), settings, tensors)


def of_mapping(
    weights: Mapping[str, Any], config: Config | Mapping[str, Any] | None = None
) -> Model:
    """Return the model of a mapping of canonical names to arrays; shapes give the sizes.

    `config` gives what shapes do not: the activation, ε, rotary positions. With all sizes and the
    norm, as from `Config.to_json`, it is taken as a whole configuration.
    """
    arrays = {name: array_of(array) for name, array in weights.items()}
    if isinstance(config, Config):
        return checked_model("weights", config, arrays)
    said = dict(config or {})
    whole = {each.name for each in fields(Config) if each.default is MISSING}
    if whole <= set(said) and ("norm" in said or "ln1_gain" not in arrays):
        return checked_model("weights", Config.from_json(said, "config="), arrays)
    return checked_model("weights", _config_of(arrays, said), arrays)


def _config_of(arrays: Mapping[str, np.ndarray], said: dict[str, Any]) -> Config:
    missing = [name for name in ("W_E", "W_Q", "W_K", "W_O") if name not in arrays]
    if missing:
        raise OtimesError(
            f"the weights lack {listed(missing)}: give a mapping of canonical names, with n_layers "
            "and n_heads as the first axes of W_Q, or say config="
        )
    d_vocab, d_model = arrays["W_E"].shape
    n_layers, n_heads, _, d_head = arrays["W_Q"].shape
    n_kv = arrays["W_K"].shape[1]
    fields: dict[str, Any] = {
        "n_layers": n_layers,
        "n_heads": n_heads,
        "d_model": d_model,
        "d_head": d_head,
        "d_vocab": d_vocab,
        "n_kv_heads": None if n_kv == n_heads else n_kv,
        "tied": "W_U" not in arrays,
        "gated": "W_gate" in arrays,
        "d_mlp": arrays["W_in"].shape[2] if "W_in" in arrays else 0,
        "final_norm": "ln_final_gain" in arrays,
        "biases": tuple(name for name in BIASES if name in arrays),
        "norm": "none",
    }
    if "W_pos" in arrays:
        fields |= {"positions": "learned", "n_ctx": len(arrays["W_pos"])}
    if "ln1_gain" in arrays:
        fields["norm"] = "layer" if "ln1_bias" in arrays else "rms"
    needed = {
        "activation": fields["d_mlp"] > 0,
        "norm_eps": fields["norm"] != "none",
        "positions": "W_pos" not in arrays,
    }
    asked = [name for name, is_ in needed.items() if is_ and name not in said]
    if asked:
        raise OtimesError(
            f"the shapes of the weights do not say {listed(asked)}: give config={{"
            + ", ".join(f"{name!r}: …" for name in asked)
            + f"}} (activations are {listed(ACTIVATIONS)})"
        )
    if said.get("positions") == "rotary":
        fields |= {"rotary_dims": d_head}
    fields.setdefault("n_ctx", 2048)
    return Config.from_json({**fields, **said}, "config=")
