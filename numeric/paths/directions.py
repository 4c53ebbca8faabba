r"""Directions: linear functionals on the residual stream at some layer, pulled back from a logit.

A logit is the direction $e_p ⊗ w$ on the final residual stream. Its pullback through attention is
again a product $a ⊗ w$ of an attention row [pos] and a row [d_model] (`Products`). The gates of an
MLP differ between positions, so the pullback through a frozen MLP has a separate row for each
position (`Fields`), which takes n_pos times the memory. Both are stacks of directions with the same
methods, which `pairs` and `top_paths` use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from otimes.numeric.frozen import Direction, FrozenPass
from otimes.numeric.frozen_layer import FrozenLayer, centre

# Not `Self`, which the run-time checker of annotations cannot resolve.
Some = TypeVar("Some", bound="Directions")


class Directions(ABC):
    """A stack of directions on the residual stream at one layer; indexing selects some of them."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of directions."""

    @abstractmethod
    def __getitem__(self: Some, chosen: np.ndarray | slice) -> Some:
        """Return the directions at the given indices."""

    @abstractmethod
    def with_more(self: Some, others: Sequence[Some]) -> Some:
        """Return the concatenation of this stack with others."""

    @abstractmethod
    def pull_after(self: Some, frozen: FrozenPass, number: int) -> tuple[Some, Some]:
        """Return the pullbacks of directions to the output of a layer's heads, and to its input."""

    @abstractmethod
    def through(self: Some, layer: FrozenLayer, head: int) -> Some:
        """Return directions on the output of a head as directions on the input of its layer."""

    @abstractmethod
    def on_heads(
        self, z: Float[np.ndarray, "pos head d_head"], W_O: Float[np.ndarray, "head d_head d_model"]
    ) -> Float[np.ndarray, "part head"]:
        """Return the value of each direction on $z_h W_O$, for every head of a layer."""

    @abstractmethod
    def at_most(
        self, sizes: Float[np.ndarray, "head pos"], W_O: Float[np.ndarray, "head d_head d_model"]
    ) -> Float[np.ndarray, "part head"]:
        """Return an upper bound on |`on_heads`| over all z with these norms at each position."""

    def through_each(self: Some, layer: FrozenLayer) -> Some:
        """Return the pullbacks through each head of a layer, [part · head], heads contiguous."""
        n_parts, n_heads = len(self), len(layer.W_O)
        first, *others = (self.through(layer, head) for head in range(n_heads))
        by_head = first.with_more(others)
        return by_head[np.arange(n_heads * n_parts).reshape(n_heads, n_parts).T.reshape(-1)]


@dataclass(frozen=True, slots=True, eq=False)
class Products(Directions):
    """Directions $a ⊗ w$, for passes whose MLP outputs are sources."""

    attention: Float[np.ndarray, "part pos"]
    rows: Float[np.ndarray, "part d_model"]

    def __len__(self) -> int:
        """Return the number of directions."""
        return len(self.rows)

    def __getitem__(self, chosen: np.ndarray | slice) -> Products:
        """Return the directions at the given indices."""
        return Products(self.attention[chosen], self.rows[chosen])

    def with_more(self, others: Sequence[Products]) -> Products:
        """Return the concatenation of this stack with others."""
        attention = np.concatenate([self.attention, *[each.attention for each in others]])
        return Products(attention, np.concatenate([self.rows, *[each.rows for each in others]]))

    def pull_after(self, frozen: FrozenPass, number: int) -> tuple[Products, Products]:
        """Return the same directions twice: only the heads act on the residual stream."""
        return self, self

    def through(self, layer: FrozenLayer, head: int) -> Products:
        """Return $(a A_h / s) ⊗ C(g · w W_O^T W_V^T)$."""
        return Products(*layer.pull_back(head, self.attention, self.rows))

    def on_heads(
        self, z: Float[np.ndarray, "pos head d_head"], W_O: Float[np.ndarray, "head d_head d_model"]
    ) -> Float[np.ndarray, "part head"]:
        """Return $(a z_h) · (w W_O^T)$."""
        n_pos, n_heads, d_head = z.shape
        attended = self.attention @ z.reshape(n_pos, n_heads * d_head)
        read = self.rows @ W_O.reshape(n_heads * d_head, -1).T
        return (attended * read).reshape(len(self), n_heads, d_head).sum(axis=2)

    def at_most(
        self, sizes: Float[np.ndarray, "head pos"], W_O: Float[np.ndarray, "head d_head d_model"]
    ) -> Float[np.ndarray, "part head"]:
        """Return $(a · sizes_h) ‖w W_O^T‖$; a ≥ 0, as patterns and scales are non-negative."""
        n_heads, d_head, d_model = W_O.shape
        read = (self.rows @ W_O.reshape(-1, d_model).T).reshape(-1, n_heads, d_head)
        most: np.ndarray = (self.attention @ sizes.T) * np.sqrt((read**2).sum(axis=2))
        return most


@dataclass(frozen=True, slots=True, eq=False)
class Fields(Directions):
    """Directions with a row for each position, for passes with frozen MLP gates."""

    rows: Float[np.ndarray, "part pos d_model"]

    def __len__(self) -> int:
        """Return the number of directions."""
        return len(self.rows)

    def __getitem__(self, chosen: np.ndarray | slice) -> Fields:
        """Return the directions at the given indices."""
        return Fields(self.rows[chosen])

    def with_more(self, others: Sequence[Fields]) -> Fields:
        """Return the concatenation of this stack with others."""
        return Fields(np.concatenate([self.rows, *[each.rows for each in others]]))

    def pull_after(self, frozen: FrozenPass, number: int) -> tuple[Fields, Fields]:
        """Return the pullbacks of directions to the output of a layer's heads, and to its input."""
        on_written, on_before = frozen.pull_after(number, self.rows)
        return Fields(on_written), Fields(on_before)

    def through(self, layer: FrozenLayer, head: int) -> Fields:
        """Return $C(g · A_h^T d W_O^T W_V^T) / s$ for each direction d."""
        read = layer.pattern[head].T @ (self.rows @ layer.W_O[head].T) @ layer.W_V[head].T
        return Fields(centre(read * layer.gain, layer.centring) / layer.scale)

    def on_heads(
        self, z: Float[np.ndarray, "pos head d_head"], W_O: Float[np.ndarray, "head d_head d_model"]
    ) -> Float[np.ndarray, "part head"]:
        """Return $Σ_p (d_p W_O^T) · z_{hp}$."""
        found = np.empty((len(self), len(W_O)), dtype=self.rows.dtype)
        for head, into in enumerate(W_O):
            found[:, head] = np.tensordot(self.rows @ into.T, z[:, head], axes=2)
        return found

    def at_most(
        self, sizes: Float[np.ndarray, "head pos"], W_O: Float[np.ndarray, "head d_head d_model"]
    ) -> Float[np.ndarray, "part head"]:
        """Return $Σ_p ‖d_p W_O^T‖ sizes_{hp}$."""
        most = np.empty((len(self), len(W_O)))
        for head, into in enumerate(W_O):
            most[:, head] = np.linalg.norm(self.rows @ into.T, axis=2) @ sizes[head]
        return most


def at_the_end(frozen: FrozenPass, direction: Direction) -> Directions:
    """Return the direction of a logit on the final residual stream, as a stack of one."""
    here = np.zeros((1, frozen.n_pos), dtype=frozen.dtype)
    here[0, direction.position] = 1.0
    rows = direction.row[None]
    return Fields(here[:, :, None] * rows) if frozen.mlp_gates else Products(here, rows)
