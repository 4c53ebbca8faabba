"""`load_model`: every source of weights that is understood, as a reference model."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.config import ACTIVATIONS, EVERY_BIAS, POSITIONS, TENSORS, Config, listed
from otimes.numeric.files import read_arrays, read_json, read_weights, refuse_pickle
from otimes.numeric.importers import huggingface
from otimes.numeric.importers.arrays import array_of
from otimes.numeric.importers.modules import of_module
from otimes.numeric.model import Model, checked_model, plain_axes, transposed_hint
from otimes.numeric.tensors import StoredTensor, tensor_of
from otimes.numeric.tokenizer import BUNDLED

ModelSource = Model | str | Path | Mapping[str, Any] | object
"""What `load_model` reads: a model, a name, a path, a mapping of arrays, a live module."""


def load_model(source: ModelSource, config: Config | Mapping[str, Any] | None = None) -> Model:
    """Return the reference model of any source of weights that is understood.

    `source` is one of

    - the name of a bundled model: `zero_layer`, `one_layer`, `two_layer`, `induction`, `gpt2_tiny`,
      `llama_tiny`;
    - a folder that `Model.save` wrote, or a checkpoint of Hugging Face (GPT-2, GPT-NeoX, Llama,
      Mistral, Mixtral, Qwen 2 and 3 with and without experts, gpt-oss, DeepSeek-V2 and V3,
      OLMo 1 to 3, Gemma 1 to 3, Phi, Phi-3, GLM and many more: docs/models.md has them all) with
      config.json and safetensors;
    - a safetensors file, with a config.json beside it or `config`;
    - a live module: a model of `transformers`, a `HookedTransformer`, or a
      `TransformerEncoderLayer`, `TransformerEncoder` or `MultiheadAttention` of `torch.nn`;
    - a mapping of names to arrays or torch tensors: the names of this package (`W_E`, `W_Q`, …),
      where `config` gives what shapes do not say, or those of a checkpoint of Hugging Face, where
      `config` is the content of its config.json;
    - a `Model`, which is returned unchanged.

    Weights are memory-mapped, or shared with the module or the arrays, and never written to.

    Raises: OtimesError, in one sentence, for a source that is not understood, and for each setting
    or tensor that is missing or not supported, by its name.

    >>> load_model("two_layer")
    <two_layer: 2 layers of 4 heads, d_model=128, d_head=32, d_vocab=1024, shortformer positions, \
no MLP, no norms, float32>
    >>> load_model({"W_E": np.eye(3), "W_Q": np.ones((1, 1, 3, 2)), "W_K": np.ones((1, 1, 3, 2)),
    ...             "W_V": np.ones((1, 1, 3, 2)), "W_O": np.ones((1, 1, 2, 3))},
    ...            {"positions": "none"}).config.tied
    True
    """
    if config is not None and not isinstance(source, Mapping | str | Path):
        raise OtimesError(
            f"config= goes with a mapping of arrays or a safetensors file, and not with a "
            f"{type(source).__name__}, which has its own"
        )
    if isinstance(source, Model):
        return source
    if isinstance(source, Mapping):
        return of_mapping(source, config)
    if isinstance(source, str | Path):
        return of_path(source, config)
    if isinstance(source, np.ndarray | bytes | int | float | list | tuple) or source is None:
        raise OtimesError(
            "a model is loaded by its name, from a folder or file, from a mapping of arrays or from"
            f" a live module, got {source!r}"
        )
    return of_module(source)


def bundled_models() -> tuple[str, ...]:
    """Return the names of the bundled models, the smallest first."""
    found = (path.parent.name for path in BUNDLED.glob("*/weights.safetensors"))
    known = ("zero_layer", "one_layer", "two_layer", "induction", "gpt2_tiny", "llama_tiny")
    order = {name: place for place, name in enumerate(known)}
    return tuple(sorted(found, key=lambda name: (order.get(name, len(order)), name)))


def of_path(source: str | Path, config: Config | Mapping[str, Any] | None = None) -> Model:
    """Return a bundled model by name, or the model in a folder or a safetensors file."""
    if isinstance(source, str) and source in bundled_models():
        return _of_folder(BUNDLED / source)
    path = Path(source)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except (OSError, ValueError):  # not a valid file name
        is_file = is_folder = False
    if is_file:
        return _of_file(path, config)
    if not is_folder:
        raise OtimesError(
            f"there is no model {str(source)!r}: it is neither bundled"
            f" ({', '.join(bundled_models())}) nor a folder or file"
        )
    if config is not None:
        raise OtimesError(f"config= does not go with the folder {path}, which has a config.json")
    return _of_folder(path)


def settings_of(source: str | Path) -> Mapping[str, Any]:
    """Return the content of the config.json in a folder, or beside a file; empty without one.

    Those of a checkpoint of Hugging Face have a `model_type`.
    """
    path = Path(source)
    settings = (path.parent if path.is_file() else path) / "config.json"
    return read_json(settings) if settings.is_file() else {}


def _of_folder(folder: Path) -> Model:
    """Return the model in a folder: one of ours, or a checkpoint, which may be in several files."""
    settings = read_json(folder / "config.json")
    name = folder.resolve().name
    if "model_type" in settings:
        return _of_checkpoint(name, settings, _checkpoint_files(folder))
    config = Config.from_json(settings, str(folder / "config.json"))
    card_file = folder / "card.json"
    card = read_json(card_file) if card_file.exists() else {}
    return checked_model(name, config, read_weights(folder / "weights.safetensors"), card)


def _checkpoint_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return [folder / "model.safetensors"]
    names = read_json(index).get("weight_map")
    if not isinstance(names, Mapping):
        raise OtimesError(f"{index} lacks weight_map, which says in which file each tensor is")
    wrong = [
        name for name in names.values() if not isinstance(name, str) or Path(name).parts != (name,)
    ]
    if wrong:
        raise OtimesError(
            f"{index} says that a tensor is in {wrong[0]!r}, which is no name of a file beside it"
        )
    return [folder / name for name in sorted(set(names.values()))]


def _of_checkpoint(name: str, settings: Mapping[str, Any], files: list[Path]) -> Model:
    tensors: dict[str, np.ndarray] = {}
    for file in files:
        tensors |= read_arrays(file, leave_out=True)
    return huggingface.model_of(name, str(settings["model_type"]), settings, tensors)


def _of_file(path: Path, config: Config | Mapping[str, Any] | None) -> Model:
    """Return the model in a safetensors file, with the config.json beside it or `config`."""
    refuse_pickle(path)
    if path.suffix != ".safetensors":
        raise OtimesError(
            f"{path} is a file; a model is a folder with config.json and weights.safetensors, or a"
            " file *.safetensors"
        )
    said: Any = config
    if said is None:
        if not (path.parent / "config.json").is_file():
            raise OtimesError(
                f"{path} has no config.json beside it: give config=, or --config on the command"
                " line"
            )
        said = read_json(path.parent / "config.json")
    if isinstance(said, Mapping) and "model_type" in said:
        return _of_checkpoint(path.stem, said, [path])
    return of_mapping(read_weights(path), said, path.stem)


def of_mapping(
    weights: Mapping[str, Any],
    config: Config | Mapping[str, Any] | None = None,
    name: str = "weights",
) -> Model:
    """Return the model of a mapping of names to arrays; shapes give the sizes.

    `config` gives what shapes do not: the activation, ε, rotary positions. With all sizes and the
    norm, as from `Config.to_json`, it is taken as a whole configuration. With a `model_type`, it is
    the settings of a checkpoint of Hugging Face, whose names the mapping then has.
    """
    said: Any = config
    if hasattr(said, "to_dict"):  # a configuration object of Hugging Face
        said = said.to_dict()
    if isinstance(said, Mapping) and "model_type" in said:
        stored = {key: array_of(each) for key, each in weights.items() if _is_array(each)}
        return huggingface.model_of(name, str(said["model_type"]), said, stored)
    arrays = {
        key: each if isinstance(each, StoredTensor) else tensor_of(array_of(each))
        for key, each in weights.items()
    }
    if isinstance(said, Config):
        return checked_model(name, said, arrays)
    said = dict(said or {})
    whole = {each.name for each in fields(Config) if each.default is MISSING}
    if whole <= set(said) and ("norm" in said or "ln1_gain" not in arrays):
        return checked_model(name, Config.from_json(said, "config="), arrays)
    return checked_model(name, _config_of(arrays, said), arrays)


def _is_array(value: Any) -> bool:
    return hasattr(value, "detach") or isinstance(value, np.ndarray)


def _check_shapes(arrays: Mapping[str, Any], d_value: int | None) -> None:
    """Raise ShapeError for weights whose axes do not fit those of the others.

    W_Q gives the numbers of layers and heads, and W_E d_model, by its second axis or, if all others
    fit then, by its first.
    """
    found = [_misfits(arrays, d_model, d_value) for d_model in reversed(arrays["W_E"].shape)]
    misfits = next((each for each in found if _only_transposed(arrays, each)), found[0])
    if _only_transposed(arrays, misfits) and misfits:
        name, *others = misfits
        raise ShapeError(
            f"{name} has shape {tuple(arrays[name].shape)}, but {misfits[name]} is needed"
            + transposed_hint(name, arrays[name].shape, misfits[name])
            + (f"; the same goes for {listed(others)}" if others else "")
        )
    for name, needed in misfits.items():
        raise ShapeError(
            f"{name} has shape {tuple(arrays[name].shape)}, but {needed} is needed for its axes "
            f"{listed(plain_axes(name))}"
        )


def _misfits(
    arrays: Mapping[str, Any], d_model: int, d_value: int | None
) -> dict[str, tuple[int, ...]]:
    """Return the shape that each weight must have that does not fit the others."""

    def beside(name: str) -> int:
        """Return the other one of the last axes of a weight that d_model is one of."""
        rows, columns = arrays[name].shape[-2:]
        return int(columns if rows == d_model else rows)

    d_head = beside("W_Q")
    layers, heads = arrays["W_Q"].shape[:2]
    sizes = {"n_layers": layers, "n_heads": heads, "kv_heads": arrays["W_K"].shape[1]}
    sizes |= dict.fromkeys(("d_model", "query_in", "key_in"), d_model)
    sizes |= dict.fromkeys(("d_head", "d_key"), d_head) | {"value_width": d_value or d_head}
    sizes |= {"d_vocab": beside("W_E")} | ({"d_mlp": beside("W_in")} if "W_in" in arrays else {})
    found = {}
    for name in arrays:
        if name not in TENSORS:
            continue
        shape = tuple(arrays[name].shape)
        missing = dict(zip(TENSORS[name], shape, strict=False))  # the sizes that nothing else gives
        needed = tuple({**missing, **sizes}.get(axis, 0) for axis in TENSORS[name])
        if shape != needed:
            found[name] = needed
    return found


def _only_transposed(arrays: Mapping[str, Any], misfits: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether all weights that do not fit would do so transposed."""
    return all(transposed_hint(name, arrays[name].shape, misfits[name]) for name in misfits)


def _config_of(arrays: Mapping[str, Any], said: dict[str, Any]) -> Config:
    missing = [name for name in ("W_E", "W_Q", "W_K", "W_O") if name not in arrays]
    if missing:
        raise OtimesError(
            f"the weights lack {listed(missing)}: give a mapping of canonical names, with n_layers "
            "and n_heads as the first axes of W_Q, or say config= (for the names of Hugging Face, "
            "the content of config.json)"
        )
    axes = {"W_E": 2, "W_Q": 4, "W_K": 4, "W_in": 3}
    for name, count in axes.items():
        if name in arrays and len(arrays[name].shape) != count:
            raise ShapeError(
                f"{name} has shape {tuple(arrays[name].shape)}, but must have the {count} axes "
                f"{listed(TENSORS[name])}"
            )
    d_vocab, d_model = arrays["W_E"].shape
    n_layers, n_heads, _, d_head = arrays["W_Q"].shape
    if "W_DKV" not in arrays and "W_DQ" not in arrays:
        _check_shapes(arrays, said.get("d_value"))
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
        "biases": tuple(name for name in EVERY_BIAS if name in arrays),
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
        choices = {
            "positions": f"positions are {listed(x for x in POSITIONS if x != 'learned')}",
            "activation": f"activations are {listed(ACTIVATIONS)}",
            "norm_eps": "norm_eps is the ε of the norms, such as 1e-5",
        }
        raise OtimesError(
            f"the shapes of the weights do not say {listed(asked)}: give config={{"
            + ", ".join(f"{name!r}: …" for name in asked)
            + f"}} ({'; '.join(choices[name] for name in asked)})"
        )
    if said.get("positions") == "rotary":
        fields |= {"rotary_dims": d_head}
    fields.setdefault("n_ctx", 2048)
    return Config.from_json({**fields, **said}, "config=")
