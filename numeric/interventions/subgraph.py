r"""The pass of a subgraph, in which some edges carry what was written on another prompt.

A receiver reads the residual stream with $\tilde f^c$ in the place of $f^c$ for each sender c whose
edge to it is replaced: $x_{in} - f^c + \tilde f^c$. $f^c$ is what the sender writes in *this* pass,
in which its own inputs may have changed, and $\tilde f^c$ what it wrote on the other prompt.

Source: Conmy et al. 2023, “Towards Automated Circuit Discovery for Mechanistic Interpretability”;
Goldowsky-Dill et al. 2023, “Localizing Model Behavior with Path Patching”.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
from jaxtyping import Bool, Float

from otimes.numeric.config import Config
from otimes.numeric.forward import Places, mlp, one_head
from otimes.numeric.functions import normalise, visible_keys
from otimes.numeric.interventions.graph import Graph, Node
from otimes.numeric.layer import Layer
from otimes.numeric.model import Model

Streams = Float[np.ndarray, "*some pos d_model"]


class Reader:
    """What the receivers of one layer make of residual streams."""

    def __init__(self, model: Model, number: int, n_pos: int) -> None:
        self.config: Config = model.config.of_layer(number)
        self.layer: Layer = model.layer(number)
        self.number, self.n_pos = number, n_pos
        self.visible = visible_keys(n_pos, self.config.window)
        shortformer = self.config.positions == "shortformer"
        self.added = model.part("W_pos", slice(n_pos)) if shortformer else np.zeros((n_pos, 1))
        self._norm = partial(normalise, kind=self.config.norm, eps=self.config.norm_eps)

    def normed(self, streams: Streams) -> Streams:
        """Return what attention reads of residual streams."""
        if not self.config.norms_before:
            return streams
        return self._norm(streams, gain=self.layer.ln1_gain, bias=self.layer.ln1_bias)

    def head_out(self, head: int, query: Streams, key: Streams, value: Streams) -> Streams:
        """Return the output of a head whose inputs are normed streams, one for each reader."""
        weights = self.layer.head(head)
        count = query.shape[-2]  # all positions, or the last ones
        inputs = (query + self.added[-count:], key + self.added, value)
        visible = self.visible[-count:]
        out: np.ndarray = one_head(*inputs, visible, weights, self.config)["head_out"]
        return out

    def mlp_out(self, streams: Streams) -> Streams:
        """Return the output of the MLP for residual streams."""
        if self.config.norms_before:
            streams = self._norm(streams, gain=self.layer.ln2_gain, bias=self.layer.ln2_bias)
        out: np.ndarray = mlp(self.config, self.layer, streams)["mlp_out"]
        return out

    def attn_out(self, streams: Streams) -> Streams:
        """Return the output of all heads for residual streams, with b_O."""
        rows = self.normed(streams)
        total = sum(self.head_out(head, rows, rows, rows) for head in range(self.config.n_heads))
        return np.asarray(total + self.layer.b_O)

    def attn_out_at_end(self, streams: Streams) -> Streams:
        """Return the output of all heads at the last position alone, [*some, 1, d_model]."""
        if self.config.positions in ("rotary", "alibi"):  # a query's place is its row
            return self.attn_out(streams)[..., -1:, :]
        rows = self.normed(streams)
        total = sum(
            self.head_out(head, rows[..., -1:, :], rows, rows)
            for head in range(self.config.n_heads)
        )
        return np.asarray(total + self.layer.b_O)


def written(graph: Graph, places: Places) -> Float[np.ndarray, "sender pos d_model"]:
    """Return what each sender wrote in a recorded pass, in the order of `graph.senders`."""
    return np.stack([of_sender(each, places) for each in graph.senders])


def of_sender(node: Node, places: Places) -> Float[np.ndarray, "pos d_model"]:
    """Return what one sender wrote in a recorded pass."""
    if node.kind in ("embed", "ln_embed"):
        return places[node.kind]
    value = places[f"{node.kind}.{node.layer}"]
    return value[node.head] if node.kind == "head_out" else value


def final_streams(
    model: Model,
    graph: Graph,
    base: Places,
    other: Float[np.ndarray, "sender pos d_model"],
    replaced: Bool[np.ndarray, "some receiver sender"],
    readers: Sequence[Reader] | None = None,
) -> Float[np.ndarray, "some d_model"]:
    """Return what `final` reads at the last position, for several sets of replaced edges.

    `base` are the activations of the prompt, `other` what the senders wrote on the other prompt.
    Layers before the first replaced edge are not computed again. `readers` are those of all layers,
    if they are at hand.
    """
    first = _first_layer(graph, replaced)
    run = _Run(model, graph, base, other, replaced, first)
    for number in range(first, model.n_layers):
        reader = Reader(model, number, other.shape[1]) if readers is None else readers[number]
        run.layer(reader)
    return run.read(len(graph.receivers) - 1, run.stream)[:, -1]


def _first_layer(graph: Graph, replaced: np.ndarray) -> int:
    """Return the first layer in which an edge is replaced, or the number of layers."""
    there = np.flatnonzero(replaced.any(axis=(0, 2)))
    n_layers = graph.config.n_layers
    layers = [graph.receivers[at].layer for at in there if graph.receivers[at].kind != "final"]
    return min(layers, default=n_layers)


class _Run:
    """A pass of several subgraphs at once: the streams, and what the senders have written."""

    def __init__(
        self,
        model: Model,
        graph: Graph,
        base: Places,
        other: np.ndarray,
        replaced: np.ndarray,
        first: int,
    ) -> None:
        self.other, self.replaced = other, replaced
        receivers = enumerate(graph.receivers)
        self.number = {(each.kind, each.layer, each.head): at for at, each in receivers}
        count = len(replaced)
        start = base[f"resid_pre.{first}" if first < model.n_layers else "final"]
        self.stream = np.repeat(start[None], count, axis=0)
        self.gaps: list[np.ndarray] = []
        for node in graph.senders:
            if node.time <= 2 * first:
                self.write(np.repeat(of_sender(node, base)[None], count, axis=0))
        self.heads, self.config = range(model.n_heads), model.config

    def read(self, receiver: int, stream: Streams) -> Streams:
        """Return a stream as a receiver reads it, with the replaced senders replaced."""
        which = self.replaced[:, receiver, : len(self.gaps)]
        if not which.any():
            return stream
        read = stream.copy()
        for sender, gap in enumerate(self.gaps):
            chosen = np.flatnonzero(which[:, sender])
            read[chosen] += gap[chosen]
        return read

    def write(self, value: Streams) -> None:
        """Remember how far what a sender wrote is from what it wrote on the other prompt."""
        self.gaps.append(self.other[len(self.gaps)] - value)

    def layer(self, reader: Reader) -> None:
        """Go through one layer."""
        before, number = self.stream, reader.number
        outs = []
        for head in self.heads:
            inputs = [
                reader.normed(self.read(self.number[kind, number, head], before))
                for kind in ("q", "k", "v")
            ]
            outs.append(reader.head_out(head, *inputs))
        middle = before + sum(outs) + reader.layer.b_O
        mlp_in = before
        if self.config.d_mlp and self.config.parallel:
            mlp_in = self.read(self.number["mlp_pre", number, 0], before)
        for out in outs:
            self.write(out)
        self.stream = middle
        if self.config.d_mlp:
            if not self.config.parallel:
                mlp_in = self.read(self.number["mlp_pre", number, 0], middle)
            out = reader.mlp_out(mlp_in)
            self.write(out)
            self.stream = middle + out
