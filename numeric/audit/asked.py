"""What an analysis is asked about, and the numbers of the model that its formula reads.

An analysis is a *formula* of named ingredients: which weights, head, norm, stream, pattern. Each
ingredient is right unless it is *replaced* by another, and a known mistake is a sentence with the
ingredients that it replaces; so each mistake is one entry, and two at once can be tried.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any

import numpy as np

from algebra.errors import OtimesError
from numeric.model import Model

Array = np.ndarray
Replaced = Mapping[str, Any]
"""Ingredients of a formula by name, with what stands in the place of the right one."""

Figures = tuple[float, float, float]
"""The largest error/bound, the largest error and the bound there; an error is not a number (NaN)
where nothing could be compared."""

NO_FIGURES: Figures = (float("inf"), float("nan"), 0.0)
RIGHT: Replaced = {}
SCREENED = 32
"""How many tokens of the vocabulary most mistakes are ruled out by."""


@dataclass(slots=True)
class Asked:
    """What an analysis is asked about; `moved` moves every number that it reads, for the scale.

    While `screening`, formulas give a few of their entries only: the first `SCREENED` tokens of the
    vocabulary or columns of a circuit, or the scores of one pair of heads.
    """

    model: Model
    tokens: Array | None
    layer: Any
    head: Any
    rng: np.random.Generator | None = None
    unit: float = 0.0
    screening: bool = False
    recorded: dict[str, Array] = field(default_factory=dict, repr=False)

    def moved(self, array: Array) -> Array:
        """Return numbers that the analysis reads, moved by a rounding if that is what is tried."""
        if self.rng is None:
            return array
        sign = self.rng.integers(0, 2, array.shape) * 2 - 1
        return np.asarray(array * (1 + 2 * self.unit * sign))

    def weight(self, name: str, layer: int, head: int) -> Array:
        """Return a weight of one head."""
        return self.moved(self.model.part(name, layer)[head])

    def unembedding(self, name: str = "W_U") -> Array:
        """Return W_U or another matrix in its place [d_model, d_vocab], some columns if screening.

        "W_E" is W_Eᵀ, "none" leaves the stream as it is, and each column may be "normalised" or
        "centred".
        """
        if name == "none":
            return np.eye(self.model.d_model)
        columns = slice(SCREENED) if self.screening else slice(None)
        if name == "W_E":
            return self.moved(self.model.part("W_E", columns).T)
        columns_of_U = self.moved(self.model.part("W_U")[:, columns])
        if name == "normalised":
            return np.asarray(columns_of_U / np.linalg.norm(columns_of_U, axis=0))
        return columns_of_U - columns_of_U.mean(0) if name == "centred" else columns_of_U

    def places(self, names: Sequence[str]) -> dict[str, Array]:
        """Return places of the reference pass."""
        if self.tokens is None:
            raise OtimesError("this analysis is one of a prompt: give tokens=")
        missing = [name for name in names if name not in self.recorded]
        if missing:
            self.recorded.update(self.model.forward(self.tokens, missing))
        return {name: self.moved(self.recorded[name]) for name in names}

    def one_head(self) -> tuple[int, int]:
        """Return the layer and head that are asked about."""
        try:
            layer, head = index(self.layer), index(self.head)
        except TypeError:
            raise OtimesError(
                "this analysis is one of a head: give layer= and head= as numbers"
            ) from None
        if not 0 <= layer < self.model.n_layers or not 0 <= head < self.model.n_heads:
            raise OtimesError(
                f"there is no head {layer}.{head} in {self.model.name}, which has "
                f"{self.model.n_layers} layers of {self.model.n_heads} heads"
            )
        return layer, head

    def of(self, layer: Any, head: Any) -> "Asked":
        """Return the same question about another head."""
        return replace(self, layer=layer, head=head)

    def other_heads(self) -> Iterator[tuple[int, int]]:
        """Yield every head but the one that is asked about, those of its own layer first."""
        own, heads = self.one_head(), list(np.ndindex(self.model.n_layers, self.model.n_heads))
        for layer, head in sorted(heads, key=lambda each: each[0] != own[0]):
            if (layer, head) != own:
                yield int(layer), int(head)


Formula = Callable[[Asked, Replaced], Array]
Mistakes = Callable[[Asked, tuple[int, ...]], Iterator[tuple[str, Replaced]]]
"""The known mistakes that may have a shape: in words, and the ingredients that they replace."""
