r"""Information flow routes: the part of the graph through which a prediction was made.

At each position the residual stream after attention is a sum of vectors: the stream before, and
$a_{ij} v_j W_O$ for each head and source position j; after the MLP it is the stream before and what
the MLP adds. The importance of a term z of a sum y is its proximity to it,

    $\max(0, \|y\|_1 - \|y - z\|_1)$, divided by the sum over the terms.

Beginning at one position of the last layer, terms of importance above a threshold are kept, and
their sources are followed further back.

Source: Ferrando and Voita 2024, “Information Flow Routes: Automatically Interpreting Language
Models at Scale”; the measure is that of Ferrando et al. 2022, “Measuring the Mixing of Contextual
Information in the Transformer”.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.forward import Places
from otimes.numeric.interventions.graph import graph
from otimes.numeric.load import ModelSource, load_model
from otimes.numeric.model import Model
from otimes.numeric.prompt import Prompt, read_position, read_prompt


class Route(NamedTuple):
    """An edge: through a head, an MLP, or past them (`attention`, `mlp`, `residual`)."""

    layer: int
    through: str
    head: int | None
    source: int
    position: int
    importance: float


@dataclass(frozen=True, eq=False, repr=False)
class Flow:
    """The importance of every term of every sum, for one prompt.

    `heads` [layer, head, query, key], `past_attention` [layer, pos], `bias` [layer, pos] (of b_O)
    sum to 1 over all but layer and query; so do `mlp` and `past_mlp` [layer, pos], both NaN without
    MLPs.
    """

    model: Model
    prompt: Prompt
    heads: Float[np.ndarray, "layer head query key"]
    past_attention: Float[np.ndarray, "layer pos"]
    bias: Float[np.ndarray, "layer pos"]
    mlp: Float[np.ndarray, "layer pos"]
    past_mlp: Float[np.ndarray, "layer pos"]

    def routes(self, threshold: float, position: Any = -1) -> tuple[Route, ...]:
        """Return the edges with importance above a threshold that lead to a position.

        They are those that are found from the last layer backwards: an edge is followed only from a
        position that is itself on a route. With threshold 0 everything that has any importance is
        kept. Raises: OtimesError for a threshold that is not in [0, 1).
        """
        if not isinstance(threshold, int | float | np.floating) or not 0 <= threshold < 1:
            raise OtimesError(f"threshold must be a number from 0 to below 1, got {threshold!r}")
        here = {read_position(len(self.prompt.tokens), position)}
        found: list[Route] = []
        for layer in reversed(range(self.model.n_layers)):
            if self.model.config.d_mlp:
                here = self._through_mlp(layer, here, threshold, found)
            here = self._through_attention(layer, here, threshold, found)
        return tuple(found)

    def _through_mlp(
        self, layer: int, here: set[int], threshold: float, found: list[Route]
    ) -> set[int]:
        before = set()
        for at in sorted(here):
            for through, shares in (("mlp", self.mlp), ("residual", self.past_mlp)):
                if shares[layer, at] > threshold:
                    found.append(Route(layer, through, None, at, at, float(shares[layer, at])))
                    before.add(at)
        return before

    def _through_attention(
        self, layer: int, here: set[int], threshold: float, found: list[Route]
    ) -> set[int]:
        before = set()
        for at in sorted(here):
            if self.past_attention[layer, at] > threshold:
                share = float(self.past_attention[layer, at])
                found.append(Route(layer, "residual", None, at, at, share))
                before.add(at)
            for head, key in np.argwhere(self.heads[layer, :, at] > threshold).tolist():
                share = float(self.heads[layer, head, at, key])
                found.append(Route(layer, "attention", head, key, at, share))
                before.add(key)
        return before

    def __repr__(self) -> str:
        return (
            f"<information flow in {self.model.name}: {self.model.n_layers} layers,"
            f" {len(self.prompt.tokens)} positions>"
        )


def information_flow(model: ModelSource, prompt: Any) -> Flow:
    """Return the importance of every head and source, MLP and residual connection, for a prompt.

    `.routes(threshold, position)` are the edges above a threshold that lead to a position.

    >>> flow = information_flow("two_layer", "for i in range")
    >>> len(flow.routes(0.0)) > len(flow.routes(0.1)) > 0
    True

    Raises: OtimesError for an invalid prompt, or a model whose residual stream is not the sum of
    what heads and MLPs write.
    """
    loaded = load_model(model)
    graph(loaded)  # refuses models in which the stream is not such a sum
    read = read_prompt(loaded, prompt)
    places = loaded.forward(read.tokens)
    layers = [_attention(loaded, places, layer) for layer in range(loaded.n_layers)]
    n_pos, n_heads = len(read.tokens), loaded.n_heads
    heads = np.zeros((loaded.n_layers, n_heads, n_pos, n_pos))
    others = np.zeros((2, loaded.n_layers, n_pos))
    mlps = np.full((2, loaded.n_layers, n_pos), np.nan)
    for layer, (of_heads, past, of_bias) in enumerate(layers):
        heads[layer], others[0, layer], others[1, layer] = of_heads, past, of_bias
        if loaded.config.d_mlp:
            whole = places[f"resid_post.{layer}"]
            terms = np.stack([places[f"mlp_out.{layer}"], places[f"resid_mid.{layer}"]])
            mlps[:, layer] = shares_of(terms, whole)
    return Flow(loaded, read, heads, others[0], others[1], mlps[0], mlps[1])


def shares_of(
    terms: Float[np.ndarray, "term *some d_model"], whole: Float[np.ndarray, "*some d_model"]
) -> Float[np.ndarray, "term *some"]:
    """Return the importance of each term of a sum; all are 0 where no term is near the sum."""
    near = np.abs(whole).sum(axis=-1) - np.abs(whole - terms).sum(axis=-1)
    near = np.maximum(near, 0.0)
    total = near.sum(axis=0)
    return np.divide(near, total, out=np.zeros_like(near), where=total > 0)


def _attention(
    model: Model, places: Places, layer: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the importance of heads and sources, of the stream before, and of b_O."""
    pattern, v = places[f"pattern.{layer}"], places[f"v.{layer}"]
    moved = v @ model.part("W_O", layer)  # [head, key, d_model]
    n_heads, n_pos, _ = pattern.shape
    heads, rest = np.zeros_like(pattern), np.zeros((2, n_pos))
    for at in range(n_pos):
        terms = (pattern[:, at, :, None] * moved).reshape(n_heads * n_pos, -1)
        others = np.stack([places[f"resid_pre.{layer}"][at], model.part("b_O", layer)])
        shares = shares_of(np.concatenate([terms, others]), places[f"resid_mid.{layer}"][at])
        heads[:, at] = shares[:-2].reshape(n_heads, n_pos)
        rest[:, at] = shares[-2:]
    return heads, rest[0], rest[1]
