"""`paths(model, tokens)`: one prompt's ensemble of paths, asked for what it is worth.

The prompt is run once; its patterns and norm scales, and of its MLPs what they gave or their gates,
are then held fixed (`numeric/frozen.py`), and every figure here is about that frozen pass. What is
asked for is computed when it is asked for.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from algebra.errors import OtimesError
from numeric.frozen import FrozenPass, MLPKind, Token, freeze
from numeric.model import Model, load_model
from numeric.paths.best import BUDGET, BestPaths, DeepBounds, best_paths, deep_bounds
from numeric.paths.closure import Closure, close
from numeric.paths.orders import check_path, order_streams, path_stream, replay_streams
from numeric.paths.pairs import single_heads, triples, virtual_heads
from numeric.paths.scores import ScoreTerms, score_terms
from numeric.paths.shapley import shapley_values

Positions = int | Sequence[int] | np.ndarray | None


def paths(
    model: Model | str | Path, tokens: Any, dtype: Any = np.float64, mlp: MLPKind = "sources"
) -> "Paths":
    """Return the ensemble of paths of a model, or of a bundled one or a folder, on a prompt.

    `dtype` may be float32. What an MLP gave on the prompt is a source (`mlp="sources"`); or its
    gates are held fixed (`mlp="gates"`), so that paths go past MLPs and through them, and an order
    still counts heads.

    A position counts from the front, or with a minus sign from the back. Where a `token` is asked
    for, a pair of tokens means the difference of their logits, and an array [d_model] any direction
    at the unembedding's side of the final norm.

    >>> on_prompt = paths("two_layer", [5, 6, 7, 8])
    >>> on_prompt
    <25 paths of two_layer on 4 tokens>
    >>> on_prompt.by_order(positions=-1, tokens=[9, 10]).shape
    (3, 2)
    >>> on_prompt.virtual_heads(-1, 9).shape
    (2, 4, 2, 4)
    >>> len(on_prompt.top(5, -1, 9))
    5
    """
    loaded = model if isinstance(model, Model) else load_model(model)
    return Paths(freeze(loaded, tokens, dtype, mlp))


class Paths:
    """The ensemble of paths of one frozen pass."""

    def __init__(self, frozen: FrozenPass) -> None:
        self.frozen = frozen

    @property
    def model(self) -> Model:
        """The model whose paths these are."""
        return self.frozen.model

    @cached_property
    def streams(self) -> Float[np.ndarray, "order pos d_model"]:
        """What all paths of each order together bring to the end of the stream."""
        streams = order_streams(self.frozen)
        streams.flags.writeable = False
        return streams

    def by_order(self, positions: Positions = None, tokens: Any = None) -> np.ndarray:
        """Return the logits of all paths of each order, [order, position, token].

        Without `positions` and `tokens` it is all of them; a single number drops its axis, as in
        NumPy. What is not selected is not formed. Order 0 holds b_U and the final norm's bias.
        """
        return self._logits(self.streams, positions, tokens, (0,))

    def replay(self, positions: Positions = None, tokens: Any = None) -> np.ndarray:
        """Return the logits of the paths of order ≤ 0, ≤ 1, …, by the framework's replay ablation.

        The cumulative sums of `by_order`, found by another algorithm: L + 1 runs of the model.
        """
        streams = np.stack(list(replay_streams(self.frozen)))
        return self._logits(streams, positions, tokens, slice(None))

    def path(self, heads: Sequence[tuple[int, int]], position: int, token: Token) -> float:
        """Return what one path adds to a logit; `heads` are its (layer, head), none is direct."""
        path = check_path(self.frozen, heads)
        direction = self.frozen.direction(position, token)
        stream = path_stream(self.frozen.until(direction.position), path)
        value = float(stream[-1] @ direction.row)
        return value if path else value + direction.constant

    def heads(self, position: int, token: Token) -> Float[np.ndarray, "n_layers n_heads"]:
        """Return the order-1 terms [layer, head]: each head reads the sources only."""
        return single_heads(self.frozen, self.frozen.direction(position, token))

    def virtual_heads(
        self, position: int, token: Token
    ) -> Float[np.ndarray, "n_layers n_heads n_layers n_heads"]:
        """Return the order-2 terms [later layer, head, earlier layer, head]; else it is 0."""
        return virtual_heads(self.frozen, self.frozen.direction(position, token))

    def triples(
        self, position: int, token: Token
    ) -> Iterator[tuple[tuple[int, int, int], np.ndarray]]:
        """Yield the order-3 terms: (latest, middle, earliest layer), and a head of each."""
        return triples(self.frozen, self.frozen.direction(position, token))

    def top(self, k: int, position: int, token: Token, budget: int = BUDGET) -> BestPaths:
        """Return the k paths of any order that are largest in size, and what bounds the others.

        `budget` is how many later ends of paths are opened at most: more prove more.
        """
        direction = self.frozen.direction(position, token)
        return best_paths(self.frozen, direction, k, budget, self._deep_bounds)

    def shapley(self, position: int, token: Token) -> Float[np.ndarray, "n_layers n_heads"]:
        """Return the exact Shapley value of each head [layer, head] for a logit."""
        return shapley_values(self.frozen, self.frozen.direction(position, token))

    def scores(self, layer: int, head: int, query: int) -> ScoreTerms:
        """Return a head's attention scores for one query, split by where both sides came from."""
        return score_terms(self.frozen, layer, head, query)

    @cached_property
    def closure(self) -> Closure:
        """The largest local error/bound over layers, and the plain end-to-end error of a logit."""
        return close(self.frozen)

    def likeliest(self, position: int) -> int:
        """Return the token that the model itself holds likeliest after a position."""
        return int(self.by_order(position).sum(axis=0).argmax())

    def __repr__(self) -> str:
        model, n_pos = self.model, self.frozen.n_pos
        n_paths = (1 + model.n_heads) ** model.n_layers
        return f"<{n_paths} paths of {model.name} on {n_pos} tokens>"

    def _repr_html_(self) -> str:
        """Show the last position's likeliest token in a notebook."""
        from numeric.paths.views import html_view

        return html_view(self)

    @cached_property
    def _deep_bounds(self) -> DeepBounds:
        return deep_bounds(self.frozen)

    def _logits(
        self, streams: np.ndarray, positions: Positions, tokens: Any, with_constants: Any
    ) -> np.ndarray:
        """Return logits of streams, the constants added to those of the orders named."""
        rows = self.frozen.normed(streams)
        if positions is not None:
            rows = rows[:, self._positions(positions)]
        chosen = None if tokens is None else self.frozen.check_tokens(tokens)
        flat = None if chosen is None else chosen.reshape(-1)
        logits = self.frozen.unembed(rows, flat)
        logits[with_constants] += self.frozen.constants(flat)
        return logits if chosen is None else logits.reshape(*rows.shape[:-1], *chosen.shape)

    def _positions(self, positions: Any) -> Any:
        if isinstance(positions, int | np.integer):
            return self.frozen.at(positions)
        if np.ndim(positions) != 1:
            raise OtimesError(f"positions are a number or a list of numbers, got {positions!r}")
        return [self.frozen.at(position) for position in positions]
