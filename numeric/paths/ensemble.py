"""`paths(model, tokens)`: the ensemble of paths of one prompt.

The model is run once on the prompt. The attention patterns, the norm scales, and the outputs or the
gates of MLPs are then frozen (`numeric/frozen.py`); all results are about this frozen pass, and are
computed on demand.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.frozen import FrozenPass, MLPKind, Token, freeze
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.paths.closure import Closure, close
from otimes.numeric.paths.orders import check_path, order_streams, path_stream, replay_streams
from otimes.numeric.paths.pairs import single_heads, triples, up_to_order, virtual_heads
from otimes.numeric.paths.path_tables import Path, PathTable, largest_first
from otimes.numeric.paths.scores import ScoreTerms, score_terms
from otimes.numeric.paths.shapley import shapley_values
from otimes.numeric.paths.summary import Summary, token_strings
from otimes.numeric.paths.top_paths import BUDGET, DeepBounds, TopPaths, deep_bounds, top_paths
from otimes.numeric.paths.views import html_view

Positions = int | Sequence[int] | np.ndarray | None


def paths(
    model: ModelSource, tokens: Any, dtype: Any = np.float64, mlp: MLPKind = "sources"
) -> "Paths":
    """Return the ensemble of paths of a model (or a bundled model's name, or a folder) on a prompt.

    `tokens` is text or token ids; a layer of torch.nn takes vectors [pos, d_model], and entries of
    its output are then the tokens of the methods. `dtype` is float64 or float32. With
    `mlp="sources"` the output of each MLP is a constant source. With `mlp="gates"` its gates are
    frozen, and paths go through MLPs and around them; the order of a path still counts only heads.

    In the methods, a negative position counts from the end. A `token` may be a pair of tokens, for
    their logit difference, or an array [d_model], for any direction after the final norm.

    Raises: OtimesError for an invalid prompt, dtype or `mlp`, or a post-norm model.
    Source: Elhage et al. 2021, “A Mathematical Framework for Transformer Circuits”.

    >>> on_prompt = paths("two_layer", [5, 6, 7, 8])
    >>> on_prompt
    <25 paths of two_layer on 4 tokens>
    >>> on_prompt.by_order(position=-1, token=[9, 10]).shape
    (3, 2)
    >>> on_prompt.virtual_heads(-1, 9).shape
    (2, 4, 2, 4)
    >>> len(on_prompt.top(5, -1, 9))
    5
    """
    loaded = load_model(model)
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
        """The contribution of all paths of each order to the final residual stream."""
        streams = order_streams(self.frozen)
        streams.flags.writeable = False
        return streams

    def by_order(self, position: Positions = None, token: Any = None) -> np.ndarray:
        """Return the logits contributed by all paths of each order [order, position, token].

        `position` and `token` are one or several, by default all; a single number drops its axis,
        as in NumPy. Order 0 includes b_U and the final norm's bias.
        """
        return self._logits(self.streams, position, token, (0,))

    def replay(self, position: Positions = None, token: Any = None) -> np.ndarray:
        """Return the logits of the paths of order ≤ 0, ≤ 1, …, by the framework's replay ablation.

        These are the cumulative sums of `by_order`, computed by L + 1 forward passes instead.
        """
        streams = np.stack(list(replay_streams(self.frozen)))
        return self._logits(streams, position, token, slice(None))

    def path(self, heads: Sequence[tuple[int, int]], position: int, token: Token) -> float:
        """Return the contribution of one path to a logit.

        `heads` are its (layer, head) pairs; the direct path has none. Raises: OtimesError if there
        is no such path.
        """
        path = check_path(self.frozen, heads)
        direction = self.frozen.direction(position, token)
        stream = path_stream(self.frozen.until(direction.position), path)
        value = float(stream[-1] @ direction.row)
        return value if path else value + direction.constant

    def heads(self, position: int, token: Token) -> Float[np.ndarray, "n_layers n_heads"]:
        """Return the contributions of order 1 [layer, head]: each head reads only the sources."""
        return single_heads(self.frozen, self.frozen.direction(position, token))

    def virtual_heads(
        self, position: int, token: Token
    ) -> Float[np.ndarray, "n_layers n_heads n_layers n_heads"]:
        """Return the contributions of order 2 [later layer, head, earlier layer, head].

        Entries are 0 unless the first layer is later than the second.
        """
        return virtual_heads(self.frozen, self.frozen.direction(position, token))

    def triples(
        self, position: int, token: Token
    ) -> Iterator[tuple[tuple[int, int, int], np.ndarray]]:
        """Yield the contributions of order 3: (latest, middle, earliest layer), a head of each."""
        return triples(self.frozen, self.frozen.direction(position, token))

    def top(self, k: int, position: int, token: Token, budget: int = BUDGET) -> TopPaths:
        """Return the k paths with the largest absolute contributions, and a bound on the others.

        `budget` limits the number of partial paths that are expanded. With a larger budget the
        result is more often proven.
        """
        direction = self.frozen.direction(position, token)
        return top_paths(self.frozen, direction, k, budget, self._deep_bounds)

    def up_to(self, order: int, position: int, token: Token) -> PathTable:
        """Return all paths of order ≤ `order`, the largest contributions first.

        The order is at most 3; the number of paths grows with its power, (layers · heads) ** order.
        The contributions of each order sum to `by_order`.

        >>> print(paths("two_layer", [5, 6, 7, 8]).up_to(0, -1, 9))
        path    order    logit
        direct      0  +1.3699
        the 1 path of order 0
        """
        if not isinstance(order, int | np.integer) or not 0 <= order <= 3:
            raise OtimesError(
                f"all paths of order 0, 1, 2 or 3 can be listed, got order {order!r}; "
                "top(k, position, token) finds the largest paths of any order"
            )
        direction = self.frozen.direction(position, token)
        found = [Path((), self.path((), position, token))]
        every = up_to_order(self.frozen, direction, int(order))
        found += [Path(heads, float(value)) for heads, value in every]
        number = "the 1 path" if len(found) == 1 else f"all {len(found)} paths"
        of = f"{number} of order {'≤ ' if order else ''}{order}"
        return PathTable(largest_first(found), of)

    def shapley(self, position: int, token: Token) -> Float[np.ndarray, "n_layers n_heads"]:
        """Return the exact Shapley value of each head [layer, head] for a logit."""
        return shapley_values(self.frozen, self.frozen.direction(position, token))

    def scores(self, layer: int, head: int, query: int) -> ScoreTerms:
        """Return the attention scores of a head for one query, split by composition."""
        return score_terms(self.frozen, layer, head, query)

    @cached_property
    def closure(self) -> Closure:
        """The largest local error/bound over the layers, and the largest error of a logit."""
        return close(self.frozen)

    def likeliest(self, position: int) -> int:
        """Return the token with the largest logit at a position."""
        return int(self.by_order(position).sum(axis=0).argmax())

    def summary(self, position: int = -1, token: int | None = None, top: int = 10) -> Summary:
        """Return one logit decomposed by order, by head and by its `top` largest paths.

        Without a `token` it is the logit of the likeliest one.
        """
        at = self.frozen.at(position)
        chosen = self.likeliest(at) if token is None else token
        *strings, token_string = token_strings(self.model, [*self.frozen.tokens.tolist(), chosen])
        return Summary(
            frozen=self.frozen,
            position=at,
            token=chosen,
            strings=tuple(strings),
            token_string=token_string,
            orders=self.by_order(at, chosen),
            heads=self.heads(at, chosen),
            shapley=self.shapley(at, chosen),
            best=self.top(top, at, chosen),
        )

    def __repr__(self) -> str:
        model, n_pos = self.model, self.frozen.n_pos
        n_paths = (1 + model.n_heads) ** model.n_layers
        return f"<{n_paths} paths of {model.name} on {n_pos} tokens>"

    def _repr_html_(self) -> str:
        """Return the HTML view of the largest logit at the last position, for a notebook."""
        return html_view(self.summary())

    @cached_property
    def _deep_bounds(self) -> DeepBounds:
        return deep_bounds(self.frozen)

    def _logits(
        self, streams: np.ndarray, positions: Positions, tokens: Any, with_constants: Any
    ) -> np.ndarray:
        """Return the logits of residual streams; constants are added at `with_constants`."""
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
            raise OtimesError(f"position must be an integer or a list of them, got {positions!r}")
        return [self.frozen.at(position) for position in positions]
