r"""Composition scores of all pairs of heads, and their expected value for random weights.

    Q   $‖W_{OV} W_{QK}‖ / ‖W_{OV}‖ ‖W_{QK}‖$          Q-composition: the query reads the output
    K   $‖W_{OV} W_{QK}^T‖ / ‖W_{OV}‖ ‖W_{QK}‖$        K-composition: the key reads it
    V   $‖W_{OV} W_{OV}'‖ / ‖W_{OV}‖ ‖W_{OV}'‖$        V-composition: the value reads it

(Frobenius norms, row convention: the earlier head is on the left.) With $W_V = Q R$, the norm of
$W_V M$ is that of $R M$. So every head is reduced to a writer [d_head, d_model] and a reader
[d_model, d_head] with the norms of its circuits, and one product of stacked writers and stacked
readers has a d_head × d_head block for each pair. No d_model × d_model matrix is needed.

**Baseline.** If the residual stream of the later head is rotated by a Q drawn uniformly from O(d),
then $E ‖A Q B‖^2 = ‖A‖^2 ‖B‖^2 / d$: the root mean square of the score is exactly $1/√d$, for all
ranks and spectra. A LayerNorm subtracts the mean, which removes one direction: for rotations that
fix it, and writers and readers without it, the baseline is $1/√(d - 1)$.

Source: Elhage et al. 2021, “Composition of attention heads”; the mean over O(d) is Weingarten's.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.factored import triangles
from otimes.numeric.circuits.heads import turned_by
from otimes.numeric.circuits.result import Named
from otimes.numeric.circuits.weights import Precision, check_dtype, check_folded, head_names, weight
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked


def composition_scores(
    model: ModelSource,
    kinds: str = "QKV",
    *,
    distance: int | None = None,
    centred: bool | None = None,
    dtype: Precision = np.float64,
) -> Named:
    """Return the composition scores of all pairs of heads [kind, writer, reader], from 0 to 1.

    Heads are named `layer.head`; entries are NaN where the writer is not in an earlier layer.
    `.baseline` is the root mean square for randomly rotated weights. With rotary positions Q and K
    depend on the `distance` between query and key. `centred`: whether the mean of the residual
    stream is ignored; by default if norms are LayerNorms (set True after `centre_writers`).
    Proved by: composition_core.  Source: Elhage et al. 2021.

    >>> from otimes.numeric.load import load_model
    >>> scores = composition_scores(load_model("induction"), "K")
    >>> scores.top(1)[0][0]["writer"]
    '0.1'

    Raises: OtimesError for invalid kinds or distance; RuleError if gains are not folded.
    """
    model = load_model(model)
    if not kinds or set(kinds) - set("QKV") or len(set(kinds)) < len(kinds):
        raise OtimesError(f"kinds must be distinct letters out of 'QKV', got {kinds!r}")
    check_dtype(dtype)
    check_folded(model, "composition", "ln1_gain")
    without_mean = model.config.norm == "layer" if centred is None else centred
    L, H, d = model.n_layers, model.n_heads, model.d_model
    scores = np.full((len(kinds), L * H, L * H), np.nan, dtype)
    # All writers are kept in memory; the readers only of one layer at a time.
    writers = np.empty((L * H, model.d_head, d), dtype)
    for layer in tracked(range(L), "composing"):
        here = slice(layer * H, (layer + 1) * H)
        head = _Layer(model, layer, dtype, without_mean)
        turn = turned_by(model, distance, layer) if {*kinds} & {*"QK"} else None
        for number, (_, reader) in enumerate(head.readers(kinds, turn) if layer else ()):
            scores[number, : layer * H, here] = _blocks(writers[: layer * H], reader)
        writers[here] = head.writer()
    chance = (d - without_mean) ** -0.5 if d > without_mean else np.nan
    return Named(
        "composition",
        scores,
        ("kind", "writer", "reader"),
        {"kind": list(kinds), "writer": head_names(model), "reader": head_names(model)},
        baseline=float(chance),
        about="" if distance is None else f"at distance {distance}",
    )


class _Layer:
    """The heads of a layer as writers and readers of norm one."""

    def __init__(self, model: Model, layer: int, dtype: Precision, without_mean: bool) -> None:
        self.W_Q, self.W_K, self.W_V, self.W_O = (
            weight(model, f"W_{name}", layer, dtype) for name in "QKVO"
        )
        if without_mean:
            self.W_Q, self.W_K, self.W_V = (
                each - each.mean(axis=-2, keepdims=True) for each in (self.W_Q, self.W_K, self.W_V)
            )
            self.W_O = self.W_O - self.W_O.mean(axis=-1, keepdims=True)

    def writer(self) -> Float[np.ndarray, "n_heads d_head d_model"]:
        """Return $R_V W_O$: its product with any M has the norm of $W_V W_O M$."""
        return _unit(triangles(self.W_V) @ self.W_O)

    def readers(
        self, kinds: str, turn: Float[np.ndarray, "d_head d_head"] | None
    ) -> Iterator[tuple[str, Float[np.ndarray, "n_heads d_model d_head"]]]:
        """Yield each kind with its readers, which have the norms of the reading circuit.

        $W_Q R_Δ R_K^T$ for queries, $W_K R_Δ^T R_Q^T$ for keys, $W_V R_O^T$ for values.
        """
        for kind in kinds:
            if kind == "V":
                yield kind, _unit(self.W_V @ _across(triangles(_across(self.W_O))))
                continue
            first, second = (self.W_Q, self.W_K) if kind == "Q" else (self.W_K, self.W_Q)
            small = _across(triangles(second))
            if turn is not None:
                small = (turn if kind == "Q" else turn.T).astype(small.dtype) @ small
            yield kind, _unit(first @ small)


def _blocks(
    writers: Float[np.ndarray, "some d_head d_model"],
    readers: Float[np.ndarray, "n_heads d_model d_head"],
) -> Float[np.ndarray, "some n_heads"]:
    """Return the norm of the product of each writer with each reader."""
    some, k, d = writers.shape
    n_heads = len(readers)
    side_by_side = np.moveaxis(readers, 0, 1).reshape(d, n_heads * k)
    squared = np.empty((some, n_heads), writers.dtype)
    for start in range(0, some, n_heads):  # a layer of writers at a time
        product = writers[start : start + n_heads].reshape(-1, d) @ side_by_side
        parts = product.reshape(-1, k, n_heads, k)
        squared[start : start + n_heads] = np.einsum("akbl,akbl->ab", parts, parts)
    return np.sqrt(squared)


def _unit(matrices: Float[np.ndarray, "n_heads rows columns"]) -> np.ndarray:
    """Return the matrices normalised to norm 1; zero matrices stay zero."""
    norms = np.linalg.norm(matrices, axis=(-2, -1), keepdims=True)
    return matrices / np.where(norms > 0, norms, 1)


def _across(stack: np.ndarray) -> np.ndarray:
    return np.swapaxes(stack, -2, -1)
