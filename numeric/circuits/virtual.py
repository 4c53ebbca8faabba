r"""Virtual weights $W_{write} W_{read}$ between an earlier component and a later one.

The residual stream is a sum, so each component reads the output of each earlier one directly.
Writers are named `embed`, `positions`, `head 0.3`, `mlp 2`; readers `head 1.0 Q` (or K, V), `mlp 2`
(`gate 2` for its gate), `unembed`.

Source: Elhage et al. 2021, “Virtual weights and the residual stream as a communication channel”.
"""

import numpy as np

from otimes.algebra.errors import OtimesError, RuleError
from otimes.numeric.circuits.factored import Factored
from otimes.numeric.circuits.heads import token_labels
from otimes.numeric.circuits.weights import Precision, check_dtype, check_folded, check_head, weight
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model

WRITERS = "'embed', 'positions', 'head 0.3', 'mlp 2'"
READERS = "'head 1.0 Q', 'head 1.0 K', 'head 1.0 V', 'mlp 2', 'gate 2', 'unembed'"


def virtual_weights(
    model: ModelSource, writer: str, reader: str, dtype: Precision = np.float64
) -> Factored:
    """Return the virtual weights by which one component reads what another writes, factored.

    They are $W_{write} W_{read}$ [writer's coordinates, reader's coordinates].

    Rows are tokens (`embed`), positions, the d_head values of a head, or neurons; columns are the
    d_head queries, keys or values of a head, neurons, or tokens. `.dense()` returns the product as
    an array. A norm before the reader must have its gain folded; the weights then hold up to a
    positive factor per position.
    Proved by: logits_are_sum_of_components, residual_update.  Source: Elhage et al. 2021.

    >>> from otimes.numeric.load import load_model
    >>> virtual_weights(load_model("two_layer"), "head 0.1", "head 1.2 K").shape
    (32, 32)

    Raises: OtimesError for an unknown writer or reader, or a writer after the reader; RuleError if
    norm gains are not folded.
    """
    model = load_model(model)
    check_dtype(dtype)
    if not isinstance(writer, str) or not isinstance(reader, str):
        raise OtimesError(
            f"writers and readers are named, as in 'head 0.1' and 'head 1.2 K', got {writer!r} and"
            f" {reader!r}"
        )
    W_write, written, rows = _writer(model, writer, dtype)
    W_read, read, columns, gain = _reader(model, reader, dtype)
    if written >= read:
        raise OtimesError(f"{writer!r} is not before {reader!r} in {model.name}")
    check_folded(model, f"the input of {reader!r}", gain)
    if writer == "positions" and model.config.positions == "shortformer" and reader[-1] not in "QK":
        raise RuleError(
            f"{model.name} has shortformer positions, which only queries and keys read:"
            f" {reader!r} does not"
        )
    return Factored(W_write, W_read, rows, columns)


# The layer, and the order within it: 1 attention reads, 2 it writes, 3 the MLP reads, 4 it writes.
Place = tuple[int, int]


def _writer(model: Model, name: str, dtype: Precision) -> tuple[np.ndarray, Place, tuple[str, ...]]:
    """Return the writer's matrix, its order in the model, and the labels of its rows."""
    match name.split():
        case ["embed"]:
            return weight(model, "W_E", slice(None), dtype), (-1, 0), (*token_labels(model),)
        case ["positions"] if model.config.positions in ("learned", "shortformer"):
            return weight(model, "W_pos", slice(None), dtype), (-1, 0), ()
        case ["head", place]:
            layer, head = _head(model, place)
            return weight(model, "W_O", layer, dtype)[head], (layer, 2), ()
        case ["mlp", number]:
            layer = _mlp(model, number)
            return weight(model, "W_out", layer, dtype), (layer, 4), ()
    raise OtimesError(f"{model.name} has no writer {name!r}; writers are, for example, {WRITERS}")


def _reader(
    model: Model, name: str, dtype: Precision
) -> tuple[np.ndarray, Place, tuple[str, ...], str]:
    """Return the reader's matrix, its order, the labels of its columns, and its norm's gain."""
    match name.split():
        case ["unembed"]:
            W_U = weight(model, "W_U", slice(None), dtype)
            return W_U, (model.n_layers, 0), (*token_labels(model),), "ln_final_gain"
        case ["head", place, ("Q" | "K" | "V") as side]:
            layer, head = _head(model, place)
            return weight(model, f"W_{side}", layer, dtype)[head], (layer, 1), (), "ln1_gain"
        case [("mlp" | "gate") as part, number] if part == "mlp" or model.config.gated:
            layer = _mlp(model, number)
            # A parallel MLP has the same input as attention.
            when = (layer, 1 if model.config.parallel else 3)
            W_read = weight(model, "W_in" if part == "mlp" else "W_gate", layer, dtype)
            return W_read, when, (), "ln2_gain"
    raise OtimesError(f"{model.name} has no reader {name!r}; readers are, for example, {READERS}")


def _head(model: Model, place: str) -> tuple[int, int]:
    layer, _, head = place.partition(".")
    if not (layer.isdecimal() and head.isdecimal()):
        raise OtimesError(f"a head is named by layer and index, as in 'head 0.3', got {place!r}")
    check_head(model, int(layer), int(head))
    return int(layer), int(head)


def _mlp(model: Model, number: str) -> int:
    if not model.config.d_mlp:
        raise OtimesError(f"{model.name} has no MLP")
    if not number.isdecimal() or int(number) >= model.n_layers:
        raise OtimesError(
            f"MLP {number} is out of range: {model.name} has {model.n_layers} layers from 0"
        )
    return int(number)
