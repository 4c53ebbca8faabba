"""Binds the symbols of a statement to arrays of a model: by name and by the meaning of the axes.

A symbol called `W_V` is the model's `W_V`; one called `X` is the residual stream before a layer.
The axes of each array are named by size (`n` positions, `d` model, `d_head`, `d_mlp`, `V`
vocabulary, `H` heads, `L` layers), and the shape of the symbol gives the layout: `W_V` of shape
d_head × d, the column convention, is the transposed array; a symbol with n·d rows is the residual
stream as one column. Biases and gains are rows, 1 × d; a symbol of shape d × 1 is the column, and
one of shape n × d repeats the row at every position. Axes that the symbol does not have (layer,
head) are iterated over, jointly for all symbols of the statement.

A statement about `b_V` has no cases on a model without that bias.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError, ShapeError
from otimes.algebra.language.linear import Family
from otimes.algebra.language.signature import Signature
from otimes.numeric.config import Config
from otimes.numeric.model import Model
from otimes.numeric.rotations import rotation_matrices

# The axes of each array, by name: weights, then activations of the recorded forward pass.
WEIGHT_AXES: dict[str, tuple[str, ...]] = {
    "W_E": ("V", "d"),
    "W_U": ("d", "V"),
    "W_pos": ("n", "d"),
    "W_Q": ("L", "H", "d", "d_head"),
    "W_K": ("L", "H", "d", "d_head"),
    "W_V": ("L", "H", "d", "d_head"),
    "W_O": ("L", "H", "d_head", "d"),
    "W_in": ("L", "d", "d_mlp"),
    "W_gate": ("L", "d", "d_mlp"),
    "W_out": ("L", "d_mlp", "d"),
    "b_Q": ("L", "H", "1", "d_head"),
    "b_K": ("L", "H", "1", "d_head"),
    "b_V": ("L", "H", "1", "d_head"),
    "b_O": ("L", "1", "d"),
    "b_in": ("L", "1", "d_mlp"),
    "b_gate": ("L", "1", "d_mlp"),
    "b_out": ("L", "1", "d"),
    "b_U": ("1", "V"),
    "ln1_gain": ("L", "1", "d"),
    "ln1_bias": ("L", "1", "d"),
    "ln2_gain": ("L", "1", "d"),
    "ln2_bias": ("L", "1", "d"),
    "ln_final_gain": ("1", "d"),
    "ln_final_bias": ("1", "d"),
}
PLACE_AXES: dict[str, tuple[str, ...]] = {
    "one_hot": ("n", "V"),
    "embed": ("n", "d"),
    "resid_pre": ("L", "n", "d"),
    "ln1": ("L", "n", "d"),
    "qk_in": ("L", "n", "d"),
    "q": ("L", "H", "n", "d_head"),
    "k": ("L", "H", "n", "d_head"),
    "v": ("L", "H", "n", "d_head"),
    "scores": ("L", "H", "n", "n"),
    "pattern": ("L", "H", "n", "n"),
    "z": ("L", "H", "n", "d_head"),
    "head_out": ("L", "H", "n", "d"),
    "attn_out": ("L", "n", "d"),
    "resid_mid": ("L", "n", "d"),
    "ln2": ("L", "n", "d"),
    "mlp_pre": ("L", "n", "d_mlp"),
    "mlp_post": ("L", "n", "d_mlp"),
    "mlp_out": ("L", "n", "d"),
    "resid_post": ("L", "n", "d"),
    "final": ("n", "d"),
    "ln_final": ("n", "d"),
    "logits": ("n", "V"),
}
# What an architecture fixes, without weights: the matrix that turns queries and keys at a position.
FIXED_AXES: dict[str, tuple[str, ...]] = {"rotation": ("n", "d_head", "d_head")}
# What the R heads of each of G groups share, and their own patterns and output weights.
GROUPED_AXES: dict[str, tuple[str, ...]] = {
    "grouped_W_V": ("L", "G", "d", "d_head"),
    "grouped_W_O": ("L", "G", "R", "d_head", "d"),
    "grouped_pattern": ("L", "G", "R", "n", "n"),
}
AXES = WEIGHT_AXES | PLACE_AXES | FIXED_AXES | GROUPED_AXES

# The activation that a symbol denotes by default, where it is not the name of a weight.
USUAL: dict[str, str] = {"A": "pattern", "X": "resid_pre", "x": "resid_pre", "T": "one_hot"}

Layout = Sequence[str]  # the sizes of a symbol's axes, as printed


@dataclass(frozen=True, slots=True)
class Source:
    """The array of a symbol: a weight or an activation, and which part of it.

    `layer` and `head` name the loop over an axis that the symbol does not have, or fix its index;
    `rows` and `cols` keep the first rows and columns; `transposed` transposes the matrix. An
    `example` stands for any matrix of its shape: the claim is not about that array.
    """

    name: str
    layer: str | int = "layer"
    head: str | int = "head"
    rows: int | None = None
    cols: int | None = None
    transposed: bool = False
    example: bool = False

    def __str__(self) -> str:
        part = ""
        if self.rows is not None or self.cols is not None:
            part = f"[:{self.rows or ''}, :{self.cols or ''}]"
        return self.name + part + (".T" if self.transposed else "")


@dataclass(frozen=True, slots=True)
class Run:
    """One model on one prompt: its name and kind, and its arrays by name (axes: `AXES`)."""

    model: str
    config: Config
    arrays: Mapping[str, np.ndarray]

    @property
    def n_layers(self) -> int:
        """The number of layers of the model."""
        return self.config.n_layers


@dataclass(frozen=True, slots=True)
class Case:
    """One instance of a statement on a run: arrays for its symbols, and the layer and head."""

    where: Mapping[str, int]
    arrays: Mapping[str, np.ndarray]

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.where.items())


class UnboundSymbol(OtimesError):
    """A symbol of a statement is bound to no weight or activation of a model."""


def run_of(model: Model, tokens: Sequence[int]) -> Run:
    """Return the weights and the recorded activations of a model on a prompt, layers stacked."""
    return run_from_places(model, tokens, model.forward(tokens))


def run_from_places(model: Model, tokens: Sequence[int], places: Mapping[str, np.ndarray]) -> Run:
    """Return a run with activations recorded earlier (so that a test can perturb one)."""
    arrays: dict[str, np.ndarray] = {"one_hot": np.eye(model.d_vocab)[np.asarray(tokens)]}
    for name in PLACE_AXES:
        if name in places:
            arrays[name] = places[name]
        elif f"{name}.0" in places:
            layers = [places[f"{name}.{layer}"] for layer in range(model.n_layers)]
            arrays[name] = np.stack(layers)
    # W_U exists when tied, and W_pos without position embeddings (where it is zero).
    present = {*model.config.tensor_shapes(), "W_U", "W_pos"}
    for name, axes in WEIGHT_AXES.items():
        weight = getattr(model, name)
        if name == "W_pos":
            weight = weight[: len(tokens)]
        if name in present and weight.size:
            arrays[name] = np.expand_dims(weight, -2) if "1" in axes else weight
    rotation = rotation_matrices(model.config, len(tokens))
    if rotation is not None:
        arrays["rotation"] = rotation
    return Run(model.name, model.config, arrays | _grouped(model, arrays))


def _grouped(model: Model, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of heads by group, with the values' weights as they are stored.

    Query head g R + r belongs to group g.
    """
    groups = model.config.kv_heads
    if groups == model.config.n_heads or "pattern" not in arrays:
        return {}

    def by_group(array: np.ndarray) -> np.ndarray:
        return array.reshape(model.n_layers, groups, -1, *array.shape[2:])

    return {
        "grouped_W_V": np.asarray(model.weights["W_V"]),
        "grouped_W_O": by_group(arrays["W_O"]),
        "grouped_pattern": by_group(arrays["pattern"]),
    }


def source_of(name: str, bind: Mapping[str, Source]) -> Source | None:
    """Return the source of a symbol's array, as bound or by its name; None if there is none."""
    if name in bind:
        return bind[name]
    name = USUAL.get(name, name)
    return Source(name) if name in AXES else None


def cases(signature: Signature, run: Run, bind: Mapping[str, Source]) -> Iterator[Case]:
    """Yield the instances of a statement on a run: one for each layer and head that it involves.

    Yields nothing when the model lacks an array that the statement needs (no layers, no heads), or
    has fewer layers than a source names.
    Raises UnboundSymbol naming a symbol that is bound to no array of a model.
    """
    sources = {}
    for name in signature.tensors:
        source = source_of(name, bind)
        if source is None or source.name not in AXES:
            raise UnboundSymbol(
                f"the symbol {name} is bound to no array of a model: bind it to one of"
                f" {', '.join(AXES)}"
            )
        if source.name not in run.arrays:
            return
        if (
            isinstance(source.layer, int)
            and "L" in AXES[source.name]
            and (source.layer >= run.n_layers)
        ):
            return
        sources[name] = source
    for count, largest in signature.fixed.items():
        if str(count) == "L" and run.n_layers <= largest:
            return
    loops: dict[str, int] = {}
    for name, tensor in signature.tensors.items():
        loops |= loops_of(sources[name], _counts(tensor), run)
    for values in product(*[range(count) for count in loops.values()]):
        where = dict(zip(loops, values, strict=True))
        arrays = {
            name: take(sources[name], _layout(tensor), where, run)
            for name, tensor in signature.tensors.items()
        }
        yield Case(where, arrays)


def recorded(place: Source, layout: Layout, case: Case, run: Run) -> np.ndarray | None:
    """Return a recorded activation in the layout of the expression to be compared with it."""
    if place.name not in run.arrays:
        return None
    loops = [name for name in loops_of(place, layout[:-2], run) if name not in case.where]
    if loops:
        raise OtimesError(
            f"the place {place} has a {loops[0]}, and no array of the claim does: name one, as in "
            f"Source({place.name!r}, layer=0, head=0)"
        )
    return take(place, layout, case.where, run)


def take(source: Source, layout: Layout, where: Mapping[str, int], run: Run) -> np.ndarray:
    """Return the array of a source in the layout of a symbol.

    Raises ShapeError when the axes of the source do not fit the layout.
    """
    array = run.arrays[source.name]
    axes = AXES[source.name]
    for axis, chosen in (("L", source.layer), ("H", source.head)):
        if axis in axes[:-2] and axis not in layout[:-2]:
            position = axes.index(axis)
            array = np.take(array, where[chosen] if isinstance(chosen, str) else chosen, position)
            axes = axes[:position] + axes[position + 1 :]
    array = array[..., : source.rows, : source.cols]
    if source.transposed:
        array = np.swapaxes(array, -1, -2)
        axes = (*axes[:-2], axes[-1], axes[-2])
    if len(axes) != len(layout):
        raise ShapeError(f"{source} has the axes {axes} and cannot be laid out as {tuple(layout)}")
    rows, cols = layout[-2:]
    if axes[-2] != axes[-1] and (rows, cols) == (axes[-1], axes[-2]):
        return np.swapaxes(array, -1, -2)
    if axes[-2] == "1" and (rows, cols) in (("n", axes[-1]), (axes[-1], "n")):
        n_pos = len(run.arrays["one_hot"])
        everywhere = np.broadcast_to(array, (*array.shape[:-2], n_pos, array.shape[-1]))
        return everywhere if rows == "n" else np.swapaxes(everywhere, -1, -2)
    if cols == "1" and axes[-1] != "1":  # vec_rows of the residual stream
        return array.reshape(*array.shape[:-2], -1, 1)
    return array


def loops_of(source: Source, counts: Layout, run: Run) -> dict[str, int]:
    """Return the loops over the axes that the symbol does not have: name and length."""
    axes, shape = AXES[source.name], run.arrays[source.name].shape
    found = {}
    for axis, chosen in (("L", source.layer), ("H", source.head)):
        if axis in axes[:-2] and axis not in counts and isinstance(chosen, str):
            found[chosen] = shape[axes.index(axis)]
    return found


def _counts(tensor: Any) -> Layout:
    return [str(c) for c in tensor.counts] if isinstance(tensor, Family) else []


def _layout(tensor: Any) -> Layout:
    return [*_counts(tensor), *[str(dimension) for dimension in tensor.shape]]
