"""The class `Model`: a transformer as NumPy arrays, and its file format.

`otimes.numeric.load.load_model` makes one of a folder, a checkpoint or a live module.

A model folder has three files:

- `config.json`: the fields of `Config`, without those with default values;
- `weights.safetensors`: the names and shapes of `Config.tensor_shapes`; float64, 32 or 16;
- `card.json`: the model card: how the model was trained, and its metrics.

Models are validated on loading: the shapes of a `Model` are right and all entries finite. The
stored weights are memory-mapped, or shared with the module that they come from; the forward pass
converts them layer by layer (`Model.layer`). Attributes such as `model.W_Q` are float64.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Integer

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.numeric.block import briefly, place_names
from otimes.numeric.config import TENSORS, Config, listed
from otimes.numeric.expected import Activations, no_attribute
from otimes.numeric.files import json_bytes, read_json, write_weights, write_whole
from otimes.numeric.forward import forward_pass
from otimes.numeric.layer import Layer
from otimes.numeric.processing import (
    centre_unembedding,
    centre_writers,
    fold_norm_biases,
    fold_norm_gains,
)
from otimes.numeric.prompt import Prompts, are_integers, is_batch, read_prompts
from otimes.numeric.tensors import (
    StoredTensor,
    Tensor,
    as_floats,
    dtype_name,
    stored_arrays,
)

__all__ = ["Config", "Model", "checked_model", "make_model", "save_model"]

OF_THE_VOCABULARY = ("W_E", "W_U", "b_U")


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Model:
    """A transformer: its configuration, its weights (read-only) and its reference forward pass.

    Row convention: rows of the residual stream are positions, and weights act on the right. Tensors
    that the model lacks are 0 (`W_pos`, biases) or 1 (gains). In grouped-query attention each head
    has a copy of its group's `W_K` and `W_V`, so that head h of layer l is always `W_Q[l, h]`,
    `W_K[l, h]`, `W_V[l, h]`, `W_O[l, h]`. `weights` are the tensors as stored: NumPy arrays, and
    `StoredTensor` for those that are stored in one array per layer, or in bfloat16.

    A layer of torch.nn has no vocabulary: `d_vocab` is 0, and `W_E`, `W_U` and `forward` raise an
    error.
    """

    name: str
    config: Config
    weights: Mapping[str, Tensor] = field(repr=False)
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
    ln1_post_gain = Whole()  # [n_layers, d_model]
    ln1_post_bias = Whole()  # [n_layers, d_model]
    ln2_post_gain = Whole()  # [n_layers, d_model]
    ln2_post_bias = Whole()  # [n_layers, d_model]
    q_norm_gain = Whole()  # [n_layers, n_heads, d_head]
    k_norm_gain = Whole()  # [n_layers, n_heads, d_head]
    ln_embed_gain = Whole()  # [d_model]
    ln_embed_bias = Whole()  # [d_model]
    sinks = Whole()  # [n_layers, n_heads]
    W_router = Whole()  # [n_layers, d_model, n_routed]
    b_router = Whole()  # [n_layers, n_routed]
    b_choice = Whole()  # [n_layers, n_experts]
    b_experts = Whole()  # [n_layers, n_experts, d_model]
    W_DQ = Whole()  # [n_layers, d_model, q_rank]
    q_latent_gain = Whole()  # [n_layers, q_rank]
    W_DKV = Whole()  # [n_layers, d_model, kv_rank]
    kv_latent_gain = Whole()  # [n_layers, kv_rank]
    W_KR = Whole()  # [n_layers, d_model, rotary_dims]

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
        """The position embedding: "none", "learned", "shortformer", "rotary", "alibi"."""
        return self.config.positions

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with what is meant by a name from another library."""
            raise no_attribute(name)

    def __repr__(self) -> str:
        dtypes = sorted({dtype_name(each) for each in self.weights.values()})
        return f"<{self.name}: {', '.join([*self.config.summary(), *dtypes])}>"

    def forward(
        self,
        tokens: Prompts,
        record: Collection[str] | None = None,
    ) -> dict[str, np.ndarray]:
        """Return the activations of the forward pass, by name (`numeric/forward.py`).

        `tokens` is a prompt, as text or token ids, or a batch of prompts of one length: then each
        activation has the axis of prompts first. With `record` only the activations named in it are
        kept, which limits the memory needed.
        Raises: OtimesError for an invalid prompt or an unknown activation.
        """
        known = place_names(self.config)
        unknown = [place for place in record or () if place not in known]
        if unknown:
            raise OtimesError(
                f"{self.name} has no activation {listed(unknown)}; it has"
                f" {listed(briefly(self.config))}"
            )
        rows = read_prompts(self, tokens)
        return Activations(forward_pass(self, rows if is_batch(tokens) else rows[0], record))

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
        Raises: OtimesError for a tensor over the vocabulary where the model has none.
        """
        if self.config.d_vocab == 0 and name in OF_THE_VOCABULARY:
            raise OtimesError(f"{self._without_vocabulary()}, and has no {name}")
        if name == "W_U" and self.config.tied:
            part = np.asarray(self.weights["W_E"].T[index], dtype=np.float64)
        elif name in self.weights:
            part = np.asarray(self.weights[name][index], dtype=np.float64)
            if self.config.gain_offset and name.endswith("_gain"):
                part = part + 1.0
        else:
            absent = np.float64(1.0 if name.endswith("_gain") else 0.0)
            part = np.broadcast_to(absent, self.config.shape(name))[index]
        scale = self.config.scale_of(name)
        if scale != 1:
            part = part * scale
        shares = self.config.n_heads // self.config.kv_heads
        if shares > 1 and "kv_heads" in TENSORS[name]:
            # Counted from the last axis, as the index may have removed the first.
            axis = TENSORS[name].index("kv_heads") - len(TENSORS[name])
            part = np.repeat(part, shares, axis=axis)
        part.flags.writeable = False
        return part

    def fold_norms(self) -> "Model":
        """Return the model with the gains and biases of norms folded into the weights that read.

        The norms then only subtract the mean (LayerNorm) and divide by the scale. The function of
        the model is unchanged: $(x̂ · g + b) W + c = x̂ (diag(g) W) + (b W + c)$. Computed weights
        are float64, the others are shared. A tied model becomes untied.

        Raises: RuleError where something else than a linear map reads a norm: for
        norm_order "post", and for shortformer positions with gains other than 1.
        Proved by: norm_gain_and_bias_fold. Source: Elhage et al. 2021.

        >>> from otimes.numeric.config import gpt2_config
        >>> from otimes.numeric.random_weights import random_model
        >>> model = random_model(gpt2_config(n_layers=1, n_heads=2, d_model=8, d_head=4, d_mlp=16,
        ...                                  d_vocab=11, n_ctx=5))
        >>> folded = model.fold_norms()
        >>> bool((folded.ln1_gain == 1).all()), folded.config.tied
        (True, False)
        """
        return fold_norm_gains(fold_norm_biases(self))

    def center(self, unembedding: bool = False) -> "Model":
        """Return the model with the mean subtracted from what is written to the residual stream.

        The stream then has mean 0 at every position, where LayerNorm equals RMSNorm: the
        new model has norm "rms". Biases of the norms are folded. The logits are unchanged; with
        `unembedding`, the mean over the vocabulary is subtracted from the logits as well, which
        leaves the probabilities unchanged.

        Raises: RuleError unless the residual stream is read through LayerNorms only.
        Proved by: centring_folds_into_writers, centred_writers_keep_mean_zero,
        centred_unembedding_keeps_probabilities.
        """
        centred = centre_writers(fold_norm_biases(self))
        return centre_unembedding(centred) if unembedding else centred

    def save(self, folder: str | Path) -> Path:
        """Write the model to a folder that `otimes.load_model` reads, and return the folder.

        Weights keep the dtypes in which they are stored. A model that is in the folder already is
        overwritten. Raises: OtimesError if the folder cannot be written, or holds a checkpoint of
        Hugging Face.
        """
        path = Path(folder)
        try:
            save_model(path, self.config, self.weights, self.card)
        except OSError as error:
            raise OtimesError(f"cannot write {path}: {error.strerror or error}") from None
        return path

    def changed(self, weights: Mapping[str, Tensor], config: Config | None = None) -> "Model":
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
        if self.config.d_vocab == 0:
            raise OtimesError(self._without_vocabulary())
        try:
            array = np.asarray(tokens)
        except ValueError:
            raise OtimesError(
                "a prompt must be a flat list of tokens, got nested lists of different lengths"
            ) from None
        if array.ndim != 1:
            raise ShapeError(
                f"a prompt must be a flat list of tokens, got an array of shape {array.shape}"
            )
        if array.size == 0:
            raise OtimesError("the prompt is empty; the model needs at least one token")
        if not are_integers(array):
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

    def _without_vocabulary(self) -> str:
        return (
            f"{self.name} has no vocabulary: it reads vectors of the residual stream and no tokens"
        )


def make_model(
    name: str, config: Config, weights: Mapping[str, Tensor], card: dict[str, Any] | None = None
) -> Model:
    """Return a model with float64 copies of the weights.

    Raises: OtimesError if the weights do not fit the configuration or are not finite.
    """
    copies = {
        tensor: each.astype(np.float64)
        if isinstance(each, np.ndarray | StoredTensor) and each.dtype.kind in "fiu"
        else each
        for tensor, each in weights.items()
    }
    return checked_model(name, config, copies, card)


def checked_model(
    name: str, config: Config, weights: Mapping[str, Tensor], card: dict[str, Any] | None = None
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
    arrays: dict[str, Tensor] = {}
    for tensor, shape in shapes.items():
        array = weights[tensor]
        if not isinstance(array, np.ndarray | StoredTensor) or array.dtype.kind != "f":
            kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise OtimesError(
                f"model {name}: {tensor} is {kind}; a weight must be a floating-point NumPy array"
            )
        if array.shape != shape:
            raise ShapeError(
                f"model {name}: {tensor} has shape {array.shape},"
                f" but the configuration requires {shape}"
                + transposed_hint(tensor, array.shape, shape)
            )
        _check_finite(array, f"model {name}: {tensor}")
        arrays[tensor] = _read_only(array)
    return Model(name=name, config=config, weights=arrays, card=card or {})


def transposed_hint(name: str, got: Sequence[int], needed: tuple[int, ...]) -> str:
    """Return the question whether a weight is transposed, if it would fit then; else "".

    >>> transposed_hint("W_Q", (2, 4, 8, 16), (2, 4, 16, 8))
    ': is W_Q transposed? Weights act on the right, [d_model, d_head]'
    """
    if len(got) < 2 or tuple(got) == needed or (*got[:-2], got[-1], got[-2]) != needed:
        return ""
    rows, columns = plain_axes(name)[-2:]
    return f": is {name} transposed? Weights act on the right, [{rows}, {columns}]"


def plain_axes(name: str) -> list[str]:
    """Return the axes of a weight by the names that they have without latents.

    >>> plain_axes("W_Q")
    ['n_layers', 'n_heads', 'd_model', 'd_head']
    """
    plain = {"query_in": "d_model", "key_in": "d_model", "d_key": "d_head", "value_width": "d_head"}
    return [plain.get(axis, axis) for axis in TENSORS[name]]


def _read_only(tensor: Tensor) -> Tensor:
    """Return a read-only view of a tensor; the arrays themselves are not changed."""
    if isinstance(tensor, StoredTensor):
        return tensor.read_only()
    view = tensor.view()
    view.flags.writeable = False
    return view


def _check_finite(tensor: Tensor, what: str) -> None:
    """Raise OtimesError naming the first non-finite entry; the arrays are read in blocks."""
    parts = stored_arrays(tensor)
    for number, part in enumerate(parts):
        for start, block in _blocks(part):
            wrong = ~np.isfinite(block)
            if wrong.any():
                first, *others = (int(i) for i in np.argwhere(wrong)[0])
                stacked = (number,) if tensor.ndim > part.ndim else ()
                entry = (*stacked, start + first, *others)
                raise OtimesError(f"{what} is not finite: its entry {entry} is {tensor[entry]}")


def _blocks(array: np.ndarray) -> Iterable[tuple[int, np.ndarray]]:
    """Yield an array in blocks of rows, each with the number of its first row."""
    rows = max(1, 2**20 * len(array) // max(array.size, 1))
    for start in range(0, len(array) if array.size else 0, rows):
        yield start, as_floats(array[start : start + rows])


def save_model(
    folder: Path, config: Config, weights: Mapping[str, Tensor], card: dict[str, Any]
) -> None:
    """Write a model folder, the weights last, so that an interrupted run leaves no valid model.

    The weights keep their dtypes. Raises: OtimesError if the folder holds a checkpoint of Hugging
    Face.
    """
    settings = folder / "config.json"
    if settings.is_file() and "model_type" in read_json(settings):
        raise OtimesError(
            f"{folder} holds a checkpoint of Hugging Face, which is not overwritten: give another"
            " folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(settings, json_bytes(config.to_json()))
    write_whole(folder / "card.json", json_bytes(card))
    write_weights(folder / "weights.safetensors", weights)
