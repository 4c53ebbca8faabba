r"""Virtual weights: what any reader finds of what any earlier writer wrote, $W_{write} W_{read}$.

The stream only adds, so a reader meets each writer directly, however many layers are in between.
Writers and readers are named: `embed`, `positions`, `head 0.3`, `mlp 2` write; `head 1.0 Q` (or K,
V), `mlp 2` (its `gate` too), `unembed` read.

Source: Elhage et al. 2021, “Virtual weights and the residual stream as a communication channel”.
"""

import numpy as np

from algebra.errors import OtimesError, RuleError
from numeric.circuits.factored import Factored
from numeric.circuits.heads import token_labels
from numeric.circuits.weights import Precision, check_dtype, check_folded, check_head, weight
from numeric.model import Model

WRITERS = "'embed', 'positions', 'head 0.3', 'mlp 2'"
READERS = "'head 1.0 Q', 'head 1.0 K', 'head 1.0 V', 'mlp 2', 'gate 2', 'unembed'"


def virtual_weights(
    model: Model, writer: str, reader: str, dtype: Precision = np.float64
) -> Factored:
    """Return $W_{write} W_{read}$, factored through the stream: [what is written, what is read].

    Rows are tokens (`embed`), positions, the d_head values of a head, or neurons; columns the
    d_head queries, keys or values of a head, neurons, or tokens. `.dense()` multiplies out.
    Between them stands the identity path alone: where a norm reads, its gain has to be folded, and
    the result holds up to one positive factor a position.
    Proved by: logits_are_sum_of_components, residual_update.  Source: Elhage et al. 2021.

    >>> from numeric.model import load_model
    >>> virtual_weights(load_model("two_layer"), "head 0.1", "head 1.2 K").shape
    (32, 32)

    Raises: OtimesError if there is no such writer or reader, or if it writes after it is read.
    """
    check_dtype(dtype)
    W_write, written, rows = _writer(model, writer, dtype)
    W_read, read, columns, gain = _reader(model, reader, dtype)
    if written >= read:
        raise OtimesError(f"{reader!r} of {model.name} reads before {writer!r} has written")
    check_folded(model, f"what {reader!r} reads", gain)
    if writer == "positions" and model.config.positions == "shortformer" and reader[-1] not in "QK":
        raise RuleError(
            f"the positions of {model.name} are those of a shortformer: only queries and keys read"
            f" them, {reader!r} does not"
        )
    return Factored(W_write, W_read, rows, columns)


# When in the model: the layer, and in it 1 attention reads, 2 it writes, 3 the MLP reads, 4 writes.
Place = tuple[int, int]


def _writer(model: Model, name: str, dtype: Precision) -> tuple[np.ndarray, Place, tuple[str, ...]]:
    """Return its matrix, when it has written, and the labels of its rows."""
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
    raise OtimesError(f"{model.name} has no writer {name!r}; writers are called {WRITERS}")


def _reader(
    model: Model, name: str, dtype: Precision
) -> tuple[np.ndarray, Place, tuple[str, ...], str]:
    """Return its matrix, when it reads, the labels of its columns and the gain in front of it."""
    match name.split():
        case ["unembed"]:
            W_U = weight(model, "W_U", slice(None), dtype)
            return W_U, (model.n_layers, 0), (*token_labels(model),), "ln_final_gain"
        case ["head", place, ("Q" | "K" | "V") as side]:
            layer, head = _head(model, place)
            return weight(model, f"W_{side}", layer, dtype)[head], (layer, 1), (), "ln1_gain"
        case [("mlp" | "gate") as part, number] if part == "mlp" or model.config.gated:
            layer = _mlp(model, number)
            # A parallel MLP reads what attention reads.
            when = (layer, 1 if model.config.parallel else 3)
            W_read = weight(model, "W_in" if part == "mlp" else "W_gate", layer, dtype)
            return W_read, when, (), "ln2_gain"
    raise OtimesError(f"{model.name} has no reader {name!r}; readers are called {READERS}")


def _head(model: Model, place: str) -> tuple[int, int]:
    layer, _, head = place.partition(".")
    if not (layer.isdecimal() and head.isdecimal()):
        raise OtimesError(
            f"a head is named by its layer and its number, as 'head 0.3', not {place!r}"
        )
    check_head(model, int(layer), int(head))
    return int(layer), int(head)


def _mlp(model: Model, number: str) -> int:
    if not model.config.d_mlp:
        raise OtimesError(f"{model.name} has no MLP")
    if not number.isdecimal() or int(number) >= model.n_layers:
        raise OtimesError(
            f"there is no MLP {number}: {model.name} has {model.n_layers} layers, counted from 0"
        )
    return int(number)
