"""The class `Model`: a transformer as NumPy arrays, and its file format.

A model folder has three files:

- `config.json`: the fields of `Config`, without those with default values;
- `weights.safetensors`: the names and shapes of `Config.tensor_shapes`; float64, 32 or 16;
- `card.json`: the model card: how the model was trained, and its metrics.

Models are validated on loading: the shapes of a `Model` are right and all entries finite. The
stored weights are memory-mapped; the forward pass converts them layer by layer (`Model.layer`).
Attributes such as `model.W_Q` are float64.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Integer
from safetensors.numpy import save

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.config import TENSORS, Config, listed
from otimes.numeric.files import json_bytes, read_json, read_weights, refuse_pickle, write_whole
from otimes.numeric.forward import forward_pass, place_names
from otimes.numeric.layer import Layer
from otimes.numeric.tokenizer import BUNDLED

__all__ = [
    "Config",
    "Model",
    "bundled_models",
    "checked_model",
    "load_model",
    "make_model",
    "save_model",
]


class Whole:
    """An attribute of `Model`: a whole tensor in float64, converted on first access."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> np.ndarray:
        if model is None:
            return self  # type: ignore[return-value]  # access on the class, as by help()
        whole: dict[str, np.ndarray] = model._whole
        if self.name not in whole:
            whole[self.name] = model.part(self.name)
        return whole[self.name]


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A transformer: its configuration, its weights (read-only) and its reference forward pass.

    Row convention: rows of the residual stream are positions, and weights act on the right. Tensors
    that the model lacks are 0 (`W_pos`, biases) or 1 (gains). In grouped-query attention each head
    has a copy of its group's `W_K` and `W_V`, so that head h of layer l is always `W_Q[l, h]`,
    `W_K[l, h]`, `W_V[l, h]`, `W_O[l, h]`. `weights` are the tensors as stored.
    """

    name: str
    config: Config
    weights: Mapping[str, np.ndarray] = field(repr=False)
    card: dict[str, Any] = field(default_factory=dict, repr=False)
    _whole: dict[str, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    W_E = Whole()  # [d_vocab, d_model]
    W_pos = Whole()  # [n_ctx, d_model]
    W_Q = Whole()  # [n_layers, n_heads, d_model, d_head]
    W_K = Whole()  # [n_layers, n_heads, d_model, d_head]
    W_V = Whole()  # [n_layers, n_heads, d_model, d_head]
    W_O = Whole()  # [n_layers, n_heads, d_head, d_model]
    b_Q = Whole()  # [n_layers, n_heads, d_head]
    b_K = Whole()  # [n_layers, n_heads, d_head]
    b_V = Whole()  # [n_layers, n_heads, d_head]
    b_O = Whole()  # [n_layers, d_model]
    W_in = Whole()  # [n_layers, d_model, d_mlp]
    W_gate = Whole()  # [n_layers, d_model, d_mlp]
    W_out = Whole()  # [n_layers, d_mlp, d_model]
    b_in = Whole()  # [n_layers, d_mlp]
    b_gate = Whole()  # [n_layers, d_mlp]
    b_out = Whole()  # [n_layers, d_model]
    ln1_gain = Whole()  # [n_layers, d_model]
    ln1_bias = Whole()  # [n_layers, d_model]
    ln2_gain = Whole()  # [n_layers, d_model]
    ln2_bias = Whole()  # [n_layers, d_model]
    ln_final_gain = Whole()  # [d_model]
    ln_final_bias = Whole()  # [d_model]
    W_U = Whole()  # [d_model, d_vocab]
    b_U = Whole()  # [d_vocab]

    @property
    def n_layers(self) -> int:
        """The number of layers, 0 in the bigram model."""
        return self.config.n_layers

    @property
    def n_heads(self) -> int:
        """The number of heads per layer."""
        return self.config.n_heads

    @property
    def d_model(self) -> int:
        """The width of the residual stream."""
        return self.config.d_model

    @property
    def d_head(self) -> int:
        """The width of a head's queries, keys and values."""
        return self.config.d_head

    @property
    def d_vocab(self) -> int:
        """The number of tokens in the vocabulary."""
        return self.config.d_vocab

    @property
    def n_ctx(self) -> int:
        """The maximum length of a prompt, in tokens."""
        return self.config.n_ctx

    @property
    def positions(self) -> str:
        """The position embedding: "none", "learned", "shortformer" or "rotary"."""
        return self.config.positions

    def forward(
        self,
        tokens: Sequence[int] | Integer[np.ndarray, " pos"],
        record: Collection[str] | None = None,
    ) -> dict[str, np.ndarray]:
        """Return the activations of the forward pass on one prompt, by name (`numeric/forward.py`).

        With `record` only the activations named in it are kept, which limits the memory needed.
        Raises: OtimesError for an invalid prompt or an unknown activation.
        """
        known = place_names(self.config)
        unknown = [place for place in record or () if place not in known]
        if unknown:
            raise OtimesError(
                f"{self.name} has no activation {listed(unknown)}; it has {listed(known)}"
            )
        return forward_pass(self, self.check_tokens(tokens), record)

    def layer(self, number: int) -> Layer:
        """Return the weights of one block in float64; other blocks are not converted."""
        return Layer(
            **{
                name: self.part(name, number)
                for name, (first, *_) in TENSORS.items()
                if first == "n_layers"
            }
        )

    def part(self, name: str, index: Any = slice(None)) -> np.ndarray:
        """Return a tensor, or its part at `index` of the first axis, in float64, read-only.

        Only this part is converted. What is stored as float64 is not copied.
        """
        if name == "W_U" and self.config.tied:
            part = np.asarray(self.weights["W_E"].T[index], dtype=np.float64)
        elif name in self.weights:
            part = np.asarray(self.weights[name][index], dtype=np.float64)
        else:
            absent = np.float64(1.0 if name.endswith("_gain") else 0.0)
            part = np.broadcast_to(absent, self.config.shape(name))[index]
        shares = self.config.n_heads // self.config.kv_heads
        if shares > 1 and "kv_heads" in TENSORS[name]:
            # Counted from the last axis, as the index may have removed the first.
            axis = TENSORS[name].index("kv_heads") - len(TENSORS[name])
            part = np.repeat(part, shares, axis=axis)
        part.flags.writeable = False
        return part

    def changed(self, weights: Mapping[str, np.ndarray], config: Config | None = None) -> "Model":
        """Return a copy of the model with some weights replaced, and optionally the configuration.

        Tensors that the new configuration lacks are dropped, and so is the card. The copy shares
        unchanged weights and is validated. Raises: OtimesError if it is not valid.
        """
        kind = self.config if config is None else config
        shapes = kind.tensor_shapes()
        every = {name: each for name, each in self.weights.items() if name in shapes}
        return checked_model(self.name, kind, {**every, **weights})

    def check_tokens(self, tokens: Sequence[int] | Integer[np.ndarray, " pos"]) -> np.ndarray:
        """Return a prompt as an int64 array of token ids. Raises: OtimesError if it is invalid."""
        try:
            array = np.asarray(tokens)
        except ValueError:
            raise OtimesError(
                "a prompt must be a flat list of tokens, got nested lists of different lengths"
            ) from None
        if array.ndim != 1:
            raise ShapeError(
                f"a prompt must be a flat list of tokens, got an array of shape {array.shape};"
                " there is no batch axis"
            )
        if array.size == 0:
            raise OtimesError("the prompt is empty; the model needs at least one token")
        if not np.issubdtype(array.dtype, np.integer):
            raise OtimesError(
                f"token ids must be integers, got {array.dtype}; text is tokenized by"
                " otimes.numeric.tokenizer.load_tokenizer().encode(text)"
            )
        if array.size > self.n_ctx:
            raise OtimesError(
                f"the prompt has {array.size} tokens, but {self.name} takes"
                f" at most n_ctx={self.n_ctx}"
            )
        wrong = np.flatnonzero((array < 0) | (array >= self.d_vocab))
        if wrong.size:
            raise OtimesError(
                f"token {array[wrong[0]]} at position {wrong[0]} is not in the vocabulary of"
                f" {self.name}, which has the token ids 0 to {self.d_vocab - 1}"
            )
        return array.astype(np.int64)


def make_model(
    name: str, config: Config, weights: Mapping[str, np.ndarray], card: dict[str, Any] | None = None
) -> Model:
    """Return a model with float64 copies of the weights.

    Raises: OtimesError if the weights do not fit the configuration or are not finite.
    """
    copies = {
        tensor: each.astype(np.float64)
        if isinstance(each, np.ndarray) and each.dtype.kind in "fiu"
        else each
        for tensor, each in weights.items()
    }
    return checked_model(name, config, copies, card)


def checked_model(
    name: str, config: Config, weights: Mapping[str, np.ndarray], card: dict[str, Any] | None = None
) -> Model:
    """Return a model with read-only views of the weights, which are not copied.

    Raises: OtimesError if the weights do not fit the configuration or are not finite.
    """
    shapes = config.tensor_shapes()
    missing = [tensor for tensor in shapes if tensor not in weights]
    if missing:
        raise OtimesError(
            f"model {name}: the weights lack {listed(missing)}; there are {listed(weights)}"
        )
    surplus = [tensor for tensor in weights if tensor not in shapes]
    if surplus:
        raise OtimesError(
            f"model {name}: the weights have {listed(surplus)}, which a model with the"
            f" configuration {config.to_json()} does not have"
        )
    arrays = {}
    for tensor, shape in shapes.items():
        array = weights[tensor]
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise OtimesError(
                f"model {name}: {tensor} is {kind}; a weight must be a floating-point NumPy array"
            )
        if array.shape != shape:
            raise ShapeError(
                f"model {name}: {tensor} has shape {array.shape},"
                f" but the configuration requires {shape}"
            )
        _check_finite(array, f"model {name}: {tensor}")
        arrays[tensor] = array.view()
        arrays[tensor].flags.writeable = False
    return Model(name=name, config=config, weights=arrays, card=card or {})


def _check_finite(array: np.ndarray, what: str) -> None:
    """Raise OtimesError naming the first non-finite entry; the array is read in blocks."""
    if not array.size:
        return
    rows = max(1, 2**20 * len(array) // array.size)
    for start in range(0, len(array), rows):
        wrong = ~np.isfinite(array[start : start + rows])
        if wrong.any():
            first, *others = (int(i) for i in np.argwhere(wrong)[0])
            entry = (start + first, *others)
            raise OtimesError(f"{what} is not finite: its entry {entry} is {array[entry]}")


def bundled_models() -> tuple[str, ...]:
    """Return the names of the bundled models, the smallest first."""
    found = (path.parent.name for path in BUNDLED.glob("*/weights.safetensors"))
    known = ("zero_layer", "one_layer", "two_layer", "induction", "gpt2_tiny")
    order = {name: place for place, name in enumerate(known)}
    return tuple(sorted(found, key=lambda name: (order.get(name, len(order)), name)))


def load_model(name_or_folder: str | Path) -> Model:
    """Return a bundled model by name, or the model in a folder.

    Raises: OtimesError if there is no such model, or its files are not valid.

    >>> load_model("two_layer").W_Q.shape
    (2, 4, 128, 32)
    """
    if isinstance(name_or_folder, str) and name_or_folder in bundled_models():
        folder = BUNDLED / name_or_folder
    else:
        folder = _folder(name_or_folder)
    config = Config.from_json(read_json(folder / "config.json"), str(folder / "config.json"))
    weights = read_weights(folder / "weights.safetensors")
    card_file = folder / "card.json"
    card = read_json(card_file) if card_file.exists() else {}
    return checked_model(folder.resolve().name, config, weights, card)


def _folder(asked: str | Path) -> Path:
    """Return the path of a model folder. Raises: OtimesError if there is none."""
    if not isinstance(asked, str | Path):
        raise OtimesError(f"a model is loaded by its name or its folder, got {asked!r}")
    folder = Path(asked)
    try:
        is_file, is_folder = folder.is_file(), folder.is_dir()
    except OSError:  # not a valid file name
        is_file = is_folder = False
    if is_file:
        refuse_pickle(folder)
        raise OtimesError(
            f"{folder} is a file; a model is a folder with config.json and weights.safetensors"
        )
    if not is_folder:
        raise OtimesError(
            f"there is no model {str(asked)!r}: it is neither bundled"
            f" ({', '.join(bundled_models())}) nor a folder"
        )
    return folder


def save_model(
    folder: Path, config: Config, weights: Mapping[str, np.ndarray], card: dict[str, Any]
) -> None:
    """Write a model folder, the weights last, so that an interrupted run leaves no valid model.

    The weights keep their dtypes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "config.json", json_bytes(config.to_json()))
    write_whole(folder / "card.json", json_bytes(card))
    # safetensors writes the raw memory of an array, so it must be C-contiguous.
    by_rows = {name: np.ascontiguousarray(weight) for name, weight in weights.items()}
    write_whole(folder / "weights.safetensors", save(by_rows))
