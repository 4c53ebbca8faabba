"""A trained transformer as plain arrays: what it consists of, and how a folder holds it.

A model folder holds three files:

- `config.json`: the seven fields of `Config`;
- `weights.safetensors`: float32, the names and shapes of `Config.tensor_shapes`;
- `card.json`: how the model was made and what it can do, for people.

Everything is checked when it is read, so that whatever holds a `Model` can rely on its shapes and
on every entry being a finite float64.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Integer
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from algebra.errors import OtimesError, ShapeError
from numeric.forward import forward_pass
from numeric.tokenizer import BUNDLED

POSITIONS = ("none", "shortformer")


@dataclass(frozen=True, slots=True)
class Config:
    """The sizes of an attention-only transformer without biases or norms.

    `positions` is "none", or "shortformer": position vectors are added to what queries and keys
    read, in every layer, and never to the residual stream (Press, Smith and Lewis 2021).
    """

    n_layers: int
    n_heads: int
    d_model: int
    d_head: int
    d_vocab: int
    n_ctx: int
    positions: str

    def __post_init__(self) -> None:
        """Refuse sizes that no model can have."""
        for name, least in (
            ("n_layers", 0),
            ("n_heads", 1),
            ("d_model", 1),
            ("d_head", 1),
            ("d_vocab", 1),
            ("n_ctx", 1),
        ):
            size = getattr(self, name)
            if type(size) is not int or size < least:
                raise OtimesError(
                    f"the configuration asks for {name}={size!r};"
                    f" it must be a whole number, at least {least}"
                )
        if self.positions not in POSITIONS:
            raise OtimesError(
                f"the configuration asks for positions={self.positions!r};"
                f" known are {_listed(POSITIONS)}"
            )

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every weight, by name."""
        per_head = (self.n_layers, self.n_heads)
        shapes: dict[str, tuple[int, ...]] = {
            "W_E": (self.d_vocab, self.d_model),
            "W_Q": (*per_head, self.d_model, self.d_head),
            "W_K": (*per_head, self.d_model, self.d_head),
            "W_V": (*per_head, self.d_model, self.d_head),
            "W_O": (*per_head, self.d_head, self.d_model),
            "W_U": (self.d_model, self.d_vocab),
        }
        if self.positions == "shortformer":
            shapes["W_pos"] = (self.n_ctx, self.d_model)
        return shapes


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A transformer in float64: its sizes, its weights (read-only) and its reference pass.

    Residual rows are positions and weights act on the right, the row convention.  A model without
    positions has `W_pos` = 0, so that what queries and keys read is always X + W_pos.
    """

    name: str
    config: Config
    W_E: Float[np.ndarray, "d_vocab d_model"]
    W_Q: Float[np.ndarray, "n_layers n_heads d_model d_head"]
    W_K: Float[np.ndarray, "n_layers n_heads d_model d_head"]
    W_V: Float[np.ndarray, "n_layers n_heads d_model d_head"]
    W_O: Float[np.ndarray, "n_layers n_heads d_head d_model"]
    W_U: Float[np.ndarray, "d_model d_vocab"]
    W_pos: Float[np.ndarray, "n_ctx d_model"]
    card: dict[str, Any] = field(default_factory=dict)

    @property
    def n_layers(self) -> int:
        """How many attention layers there are, 0 in the bigram model."""
        return self.config.n_layers

    @property
    def n_heads(self) -> int:
        """How many heads each layer has."""
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
        """How many tokens the model knows."""
        return self.config.d_vocab

    @property
    def n_ctx(self) -> int:
        """The longest prompt, in tokens."""
        return self.config.n_ctx

    @property
    def positions(self) -> str:
        """Where positions enter: "none" or "shortformer"."""
        return self.config.positions

    def forward(self, tokens: Sequence[int] | Integer[np.ndarray, " pos"]) -> dict[str, np.ndarray]:
        """Return every place of the forward pass on one prompt, by name (`numeric/forward.py`)."""
        return forward_pass(self, self.check_tokens(tokens))

    def check_tokens(self, tokens: Sequence[int] | Integer[np.ndarray, " pos"]) -> np.ndarray:
        """Return a prompt as an array of token numbers, or say what is wrong with it."""
        try:
            array = np.asarray(tokens)
        except ValueError:
            raise OtimesError(
                "a prompt is one flat list of tokens, got nested lists of different lengths"
            ) from None
        if array.ndim != 1:
            raise ShapeError(
                f"a prompt is one flat list of tokens, got an array of shape {array.shape};"
                " there is no batch axis"
            )
        if array.size == 0:
            raise OtimesError("the prompt is empty; the model needs at least one token")
        if not np.issubdtype(array.dtype, np.integer):
            raise OtimesError(
                f"tokens are whole numbers, got {array.dtype}; text becomes tokens with"
                " numeric.tokenizer.load_tokenizer().encode(text)"
            )
        if array.size > self.n_ctx:
            raise OtimesError(
                f"the prompt has {array.size} tokens, but {self.name} reads"
                f" at most n_ctx={self.n_ctx}"
            )
        wrong = np.flatnonzero((array < 0) | (array >= self.d_vocab))
        if wrong.size:
            raise OtimesError(
                f"token {array[wrong[0]]} at position {wrong[0]} is not in the vocabulary of"
                f" {self.name}, which has the tokens 0 to {self.d_vocab - 1}"
            )
        return array.astype(np.int64)


def make_model(
    name: str,
    config: Config,
    weights: dict[str, np.ndarray],
    card: dict[str, Any] | None = None,
) -> Model:
    """Return a model on these weights, as read-only float64 copies; refuse what does not fit."""
    shapes = config.tensor_shapes()
    missing = [tensor for tensor in shapes if tensor not in weights]
    if missing:
        raise OtimesError(
            f"model {name}: the weights lack {_listed(missing)}; there are {_listed(weights)}"
        )
    surplus = [tensor for tensor in weights if tensor not in shapes]
    if surplus:
        raise OtimesError(
            f"model {name}: the weights hold {_listed(surplus)}, which a model with"
            f" positions={config.positions!r} does not have"
        )
    arrays = {}
    for tensor, shape in shapes.items():
        if weights[tensor].shape != shape:
            raise ShapeError(
                f"model {name}: {tensor} has shape {weights[tensor].shape},"
                f" but the configuration asks for {shape}"
            )
        arrays[tensor] = weights[tensor].astype(np.float64)
        if not np.isfinite(arrays[tensor]).all():
            entry = tuple(int(i) for i in np.argwhere(~np.isfinite(arrays[tensor]))[0])
            raise OtimesError(
                f"model {name}: {tensor} is not finite, its entry {entry} is"
                f" {arrays[tensor][entry]}"
            )
    arrays.setdefault("W_pos", np.zeros((config.n_ctx, config.d_model)))
    for array in arrays.values():
        array.flags.writeable = False
    return Model(name=name, config=config, card=card or {}, **arrays)


def bundled_models() -> tuple[str, ...]:
    """Return the names of the models that come with the package, the smallest first."""
    found = (path.parent.name for path in BUNDLED.glob("*/weights.safetensors"))
    order = {name: place for place, name in enumerate(("zero_layer", "one_layer", "two_layer"))}
    return tuple(sorted(found, key=lambda name: (order.get(name, len(order)), name)))


def load_model(name_or_folder: str | Path) -> Model:
    """Return a bundled model by its name, or the model in a folder of your own.

    >>> load_model("two_layer").W_Q.shape
    (2, 4, 128, 32)
    """
    if isinstance(name_or_folder, str) and name_or_folder in bundled_models():
        folder = BUNDLED / name_or_folder
    else:
        folder = Path(name_or_folder)
        if not folder.is_dir():
            raise OtimesError(
                f"there is no model {str(name_or_folder)!r}: it is neither bundled"
                f" ({', '.join(bundled_models())}) nor a folder"
            )
    config = _read_config(folder / "config.json")
    weights = _read_weights(folder / "weights.safetensors")
    card_file = folder / "card.json"
    card = _read_json(card_file) if card_file.exists() else {}
    return make_model(folder.resolve().name, config, weights, card)


def save_model(
    folder: Path, config: Config, weights: dict[str, np.ndarray], card: dict[str, Any]
) -> None:
    """Write a model folder, the weights last: a run that is interrupted leaves no model."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "config.json", _json_bytes(asdict(config)))
    write_whole(folder / "card.json", _json_bytes(card))
    write_whole(folder / "weights.safetensors", save(weights))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees half of it."""
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def _json_bytes(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, indent=2) + "\n").encode()


def _read_config(path: Path) -> Config:
    content = _read_json(path)
    expected = [each.name for each in fields(Config)]
    if sorted(content) != sorted(expected):
        raise OtimesError(
            f"{path} must have exactly the fields {_listed(expected)}, it has {_listed(content)}"
        )
    return Config(**content)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise OtimesError(f"{path.parent} is not a model folder: it has no {path.name}") from None
    except ValueError as error:
        raise OtimesError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(content, dict):
        raise OtimesError(f"{path} must hold a JSON object, it holds a {type(content).__name__}")
    return content


def _read_weights(path: Path) -> dict[str, np.ndarray]:
    if not path.exists():
        raise OtimesError(f"{path.parent} is not a model folder: it has no {path.name}")
    try:
        with safe_open(path, framework="numpy") as opened:
            return {tensor: opened.get_tensor(tensor) for tensor in opened.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise OtimesError(
            f"the weights file {path} is damaged or not a safetensors file: {error}"
        ) from None


def _listed(names: Sequence[str] | dict[str, Any]) -> str:
    """Return names for a sentence: `a, b and c`."""
    *most, last = list(names) or ["nothing"]
    return f"{', '.join(most)} and {last}" if most else last
