"""The model as a causal graph: which component reads what which other one wrote.

The residual stream is a sum. Senders are its terms: the embedding, each head, each MLP. Receivers
are what reads it: the queries, keys and values of each head, each MLP, and the unembedding. There
is an edge from each sender to each receiver that reads the stream later.

    sender      embed (ln_embed where the embedding is normalised), head_out.l[h], mlp_out.l
    receiver    q.l[h], k.l[h], v.l[h], mlp_pre.l, final

`mlp_pre.l` stands for the input of the MLP, `final` for that of the (normed) unembedding. Biases
are the same on every prompt, so they are no nodes.

Source: Elhage et al. 2021; Wang et al. 2023, “Interpretability in the Wild”; Conmy et al. 2023,
“Towards Automated Circuit Discovery for Mechanistic Interpretability”.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.block import kind_of
from otimes.numeric.config import PATTERN_SETTINGS, Config, check_settings
from otimes.numeric.load import ModelSource, load_model

READERS = ("q", "k", "v")
SETTINGS = (
    *(each for each in PATTERN_SETTINGS if each != "qk_norm"),
    *("embed_scale", "embed_norm", "logit_cap"),
)
"""The settings that edges take into account. With qk_norm="head" they do, too."""


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A sender or a receiver; `time` orders them: a receiver reads all senders up to its time."""

    time: int
    kind: str
    layer: int = 0
    head: int = 0

    def __str__(self) -> str:
        """Return the name: `head_out.1[2]`, `mlp_pre.0`, `final`."""
        if self.kind in ("embed", "ln_embed", "final"):
            return self.kind
        of_head = self.kind == "head_out" or self.kind in READERS
        return f"{self.kind}.{self.layer}" + (f"[{self.head}]" if of_head else "")


Edge = tuple[Node, Node]


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """The senders and receivers of a model, and the edges between them."""

    name: str
    config: Config

    @cached_property
    def senders(self) -> tuple[Node, ...]:
        """The terms of the residual stream, in the order in which they are added."""
        config = self.config
        nodes = [Node(0, "ln_embed" if config.embed_norm else "embed")]
        for layer in range(config.n_layers):
            nodes += [Node(2 * layer + 1, "head_out", layer, h) for h in range(config.n_heads)]
            nodes += [Node(2 * layer + 2, "mlp_out", layer)] if config.d_mlp else []
        return tuple(nodes)

    @cached_property
    def receivers(self) -> tuple[Node, ...]:
        """What reads the residual stream, in order."""
        config, nodes = self.config, []
        for layer in range(config.n_layers):
            for kind in READERS:
                nodes += [Node(2 * layer, kind, layer, h) for h in range(config.n_heads)]
            time = 2 * layer + (0 if config.parallel else 1)
            nodes += [Node(time, "mlp_pre", layer)] if config.d_mlp else []
        return (*nodes, Node(2 * config.n_layers, "final"))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all senders and receivers."""
        return tuple(map(str, (*self.senders, *self.receivers)))

    @cached_property
    def mask(self) -> np.ndarray:
        """Whether there is an edge, [receiver, sender]."""
        reads = np.array([each.time for each in self.receivers])
        writes = np.array([each.time for each in self.senders])
        there: np.ndarray = writes[None, :] <= reads[:, None]
        return there

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The names of all pairs of a sender and a receiver that reads it."""
        return tuple(self._edges())

    def _edges(self) -> Iterator[tuple[str, str]]:
        for receiver in self.receivers:
            for sender in self.senders:
                if sender.time <= receiver.time:
                    yield str(sender), str(receiver)

    def reads(self, receiver: str) -> tuple[str, ...]:
        """Return the names of the senders that a receiver reads."""
        time = self.receiver(receiver).time
        return tuple(str(each) for each in self.senders if each.time <= time)

    @cached_property
    def _by_name(self) -> dict[str, Node]:
        return {str(each): each for each in (*self.senders, *self.receivers)}

    def sender(self, name: str) -> Node:
        """Return a sender by its name. Raises: OtimesError for another name."""
        return self._node(name, self.senders, "sender")

    def receiver(self, name: str) -> Node:
        """Return a receiver by its name. Raises: OtimesError for another name."""
        return self._node(name, self.receivers, "receiver")

    def _node(self, name: Any, among: tuple[Node, ...], what: str) -> Node:
        node = self._by_name.get(str(name))
        if node is None or node not in among:
            shown = {each.kind: each for each in reversed(among)}
            raise OtimesError(
                f"{self.name} has no {what} {name!s}; {what}s are"
                f" {', '.join(str(shown[kind]) for kind in dict.fromkeys(e.kind for e in among))},"
                " and so on for other layers and heads"
            )
        return node

    def edge(self, sender: str, receiver: str) -> Edge:
        """Return an edge. Raises: OtimesError if the receiver reads the stream too early."""
        first, second = self.sender(sender), self.receiver(receiver)
        if first.time > second.time:
            raise OtimesError(
                f"the edge from {sender} to {receiver} goes backwards: {receiver} reads the"
                f" residual stream before {sender} is added to it"
            )
        return first, second

    def some(self, names: Iterable[str] | str | None, among: tuple[Node, ...]) -> list[Node]:
        """Return the nodes that names stand for: of a node, of a kind, or of a kind in a layer.

        >>> small = graph("two_layer")
        >>> [str(each) for each in small.some("q.1", small.receivers)]
        ['q.1[0]', 'q.1[1]', 'q.1[2]', 'q.1[3]']
        """
        if names is None:
            return list(among)
        if not isinstance(names, str | Iterable):
            raise OtimesError(
                f"nodes are given as a name or a list of names of `graph(model)`, got {names!r}"
            )
        found: dict[Node, None] = {}
        for name in [names] if isinstance(names, str) else names:
            these = [
                each
                for each in among
                if name in (str(each), each.kind, f"{each.kind}.{each.layer}")
                and (name != f"{each.kind}.{each.layer}" or kind_of(name) == each.kind)
            ]
            if not these:
                self._node(name, among, "sender" if among is self.senders else "receiver")
            found |= dict.fromkeys(these)
        return list(found)

    def __repr__(self) -> str:
        return (
            f"<graph of {self.name}: {len(self.senders)} senders, {len(self.receivers)} receivers,"
            f" {int(self.mask.sum())} edges>"
        )


def graph(model: ModelSource) -> Graph:
    """Return the model as a causal graph: senders, receivers and the edges between them.

    >>> small = graph("two_layer")
    >>> small
    <graph of two_layer: 9 senders, 25 receivers, 81 edges>
    >>> small.reads("q.0[0]"), len(small.reads("q.1[0]"))
    (('embed',), 5)

    Raises: OtimesError for a model whose residual stream is not the sum of what heads and MLPs
    write (norm_order other than "pre"), or whose heads share a norm of queries (qk_norm="all").
    """
    loaded = load_model(model)
    also = SETTINGS if loaded.config.qk_norm == "all" else (*SETTINGS, "qk_norm")
    check_settings(loaded.config, "the graph of heads and MLPs", also)
    return Graph(loaded.name, loaded.config)
