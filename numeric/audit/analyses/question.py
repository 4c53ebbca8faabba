"""The arguments of an analysis, and the arrays of the model that its formula reads.

The formula of an analysis is an expression in the language, or a function of arrays with named
steps. A known mistake is a `Swap`: its name, and replacements of nodes or steps of the formula. Two
mistakes that replace different ones can be combined.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np
import sympy
from sympy import HadamardProduct, MatrixSymbol, OneMatrix

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.linear import matmul
from otimes.algebra.mutations import Swap
from otimes.numeric.functions import centred, norm_scale
from otimes.numeric.model import Model

Array = np.ndarray
Replaced = Mapping[Any, Any]
"""Nodes of a formula, or names of its steps, with what replaces them."""

Figures = tuple[float, float, float]
"""The largest error/bound, the largest error and the bound there; an error is not a number (NaN)
where nothing could be compared."""

NO_FIGURES: Figures = (float("inf"), float("nan"), 0.0)
RIGHT: Replaced = {}
SCREENED = 32
"""The number of columns of a value that rules out most mistakes."""

KEPT = 2**18
"""The most entries of a value that is cached for the next mistake."""

n, d, r, m = sympy.symbols("n_pos d_model d_head d_vocab", positive=True, integer=True)


@lru_cache(maxsize=4096)
def symbol(name: str, rows: Any, cols: Any) -> MatrixSymbol:
    """Return the symbol of an array that `Asked` reads by this name."""
    return MatrixSymbol(name, rows, cols)


def weight(name: str, *head: int) -> MatrixSymbol:
    """Return the symbol of a weight of a head (layer, index), by default the head in question."""
    return symbol(f"{name}{[*head] if head else ''}", *((r, d) if name == "W_O" else (d, r)))


def gain(norm: str, *layer: int, made: str = "") -> MatrixSymbol:
    """Return the symbol of a norm's gain as a column: unchanged, squared or inverted."""
    return symbol(f"{norm}_gain{made and ' '}{made}{[*layer] if layer else ''}", d, 1)


def row_scaled(column: sympy.MatrixExpr, matrix: sympy.MatrixExpr) -> sympy.MatrixExpr:
    """Return diag(column) matrix, without forming the diagonal matrix."""
    return HadamardProduct(matmul(column, OneMatrix(1, matrix.shape[1])), matrix)


@dataclass(slots=True)
class Asked:
    """The model, prompt and head of an analysis; with `rng`, all arrays are perturbed by rounding.

    While `screening`, formulas return a few of their entries only: the first `SCREENED` tokens of
    the vocabulary or columns of a circuit, or the scores of one pair of heads.
    """

    model: Model
    tokens: Array | None
    layer: Any
    head: Any
    rng: np.random.Generator | None = None
    unit: float = 0.0
    screening: bool = False
    recorded: dict[str, Array] = field(default_factory=dict, repr=False)
    known: "_Values | None" = field(default=None, repr=False)

    def moved(self, array: Array) -> Array:
        """Return an array, its entries perturbed by two units of rounding if there is an `rng`."""
        if self.rng is None:
            return array
        sign = self.rng.integers(0, 2, array.shape) * 2 - 1
        return np.asarray(array * (1 + 2 * self.unit * sign))

    def value(self, expression: Any) -> Array:
        """Return the value of an expression on the arrays of the model, some columns if screening.

        A product is screened by its last factor, so that it costs as little as a few columns.
        """
        if self.known is None or self.rng is not None:
            self.known = _Values(self)
        with np.errstate(all="ignore"):
            return self.known.of(expression, SCREENED if self.screening else None)

    def read(self, name: str) -> Array:
        """Return the array of the symbol with this name."""
        kind, _, inside = name.rstrip("]").partition("[")
        part, _, made = kind.partition(" ")
        where = [int(each) for each in inside.split(", ")] if inside else []
        if part.endswith("_gain"):
            own = [] if part == "ln_final_gain" else where or [self.one_head()[0]]
            column = self.model.part(part, *own)[:, None]
            return np.asarray(column**2 if made == "squared" else 1 / column if made else column)
        if part in ("W_E", "W_U"):
            return self.moved(self.model.part(part))
        if part == "uniform":
            before = np.tri(len(self.places(["embed"])["embed"]))
            return np.asarray(before / before.sum(1, keepdims=True))
        if part in ("embed", "resid_pre", "pattern"):
            place = ".".join([part, *map(str, where[:1])])
            return np.asarray(self.places([place])[place][(*where[1:],)])
        if part.startswith(("scales_", "linear_")):
            what, _, norm = part.partition("_")
            return self.of_norm(what, norm, *where)
        where = where or [*self.one_head()]
        if made in ("strided", "of all heads"):
            axis = 0 if part == "W_O" else 1
            every = self.moved(np.concatenate(list(self.model.part(part, where[0])), axis=axis))
            strided = range(where[1], every.shape[axis], self.model.n_heads)
            return every if made == "of all heads" else every.take(strided, axis)
        array = self.weight(part, *where)
        return array.reshape(array.T.shape).T if made == "reshaped" else array

    def of_norm(self, what: str, norm: str, *layer: int) -> Array:
        """Return a norm as a linear map: 1 / scale of each row, or the map of its columns."""
        config = self.model.config
        if what == "scales":
            place = f"resid_pre.{layer[0]}" if layer else "final"
            rows = self.places([place])[place]
            return np.diag(1 / norm_scale(rows, config.norm, config.norm_eps)[:, 0])
        gain = self.model.part(f"{norm}_gain", *layer)
        return np.asarray(centred(np.eye(config.d_model), config.norm) * gain)

    def weight(self, name: str, layer: int, head: int) -> Array:
        """Return a weight of one head."""
        return self.moved(self.model.part(name, layer)[head])

    def unembedding(self, name: str = "W_U") -> Array:
        """Return W_U or its replacement [d_model, d_vocab]; only some columns if screening.

        "W_E" is W_Eᵀ, "none" applies no matrix, and each column may be "normalised" or
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
        """Return activations of the reference pass by the name of their hook point."""
        if self.tokens is None:
            raise OtimesError("this analysis is one of a prompt: give tokens=")
        missing = [name for name in names if name not in self.recorded]
        if missing:
            self.recorded.update(self.model.forward(self.tokens, missing))
        return {name: self.moved(self.recorded[name]) for name in names}

    def one_head(self) -> tuple[int, int]:
        """Return the layer and head in question. Raises: OtimesError if they are not one head."""
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
        """Return the same arguments with another head."""
        return replace(self, layer=layer, head=head, known=None)

    def other_heads(self) -> Iterator[tuple[int, int]]:
        """Yield every other head, those of the same layer first."""
        own, heads = self.one_head(), list(np.ndindex(self.model.n_layers, self.model.n_heads))
        for layer, head in sorted(heads, key=lambda each: each[0] != own[0]):
            if (layer, head) != own:
                yield int(layer), int(head)


class _Values(dict[Any, Array]):
    """The values of expressions and, by name, the arrays of symbols; small ones are kept."""

    def __init__(self, asked: Asked) -> None:
        self.asked, model = replace(asked, known=None), asked.model
        n_pos = 0 if asked.tokens is None else len(asked.tokens)
        sizes = {"d_model": model.d_model, "d_head": model.d_head, "d_vocab": model.d_vocab}
        self.numbers = Assignment({"n_pos": n_pos, **sizes}, self, exact=False)

    def __missing__(self, node: Any) -> Array:
        found = self.asked.read(node) if isinstance(node, str) else self.of(node)
        if found.size <= KEPT:
            self[node] = found
        return found

    def of(self, node: Any, columns: int | None = None) -> Array:
        """Return the first columns of the value of a node, from the values of its factors."""
        if not isinstance(node, sympy.MatMul) or not all(each.is_Matrix for each in node.args):
            return np.asarray(tree_value(node, self.numbers)[:, :columns])
        *factors, last = (self[factor] for factor in node.args)
        operations: Any = self.numbers.operations
        product: Array = operations.product([*factors, last[:, :columns]])
        return product


Formula = Callable[[Asked, Replaced], Array]
Mistakes = Callable[[Asked, tuple[int, ...]], Iterator[Swap]]
"""The known mistakes of an analysis that may have a value of this shape."""
