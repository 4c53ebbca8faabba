r"""Circuits: subgraphs that do a task, how faithful and how complete they are, and ACDC.

In the pass of a circuit C its edges carry what their senders write in that pass, and all other
edges what the senders wrote on the corrupt prompt. With m(G) the metric on the clean prompt and
m(∅) that on the corrupt one,

    faithfulness   $(m(C) - m(∅)) / (m(G) - m(∅))$
    completeness   $1 - (m(G ∖ C) - m(∅)) / (m(G) - m(∅))$

Both are 1 for the whole graph. ACDC goes through the receivers from the last to the first, and for
each through its senders, and removes an edge e if $D(C ∖ e) - D(C) < τ$. D is the Kullback–Leibler
divergence of the next-token distribution of the whole graph from that of the circuit.

Source: Wang et al. 2023, “Interpretability in the Wild”, §4; Conmy et al. 2023, “Towards Automated
Circuit Discovery for Mechanistic Interpretability”, §3; Marks et al. 2025, “Sparse Feature
Circuits” (the normalised scores).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import log_softmax

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.interventions.contrast import Contrast, Metric, contrast
from otimes.numeric.interventions.graph import Graph, graph
from otimes.numeric.interventions.subgraph import Reader, final_streams, written
from otimes.numeric.load import ModelSource
from otimes.numeric.progress import tracked

Edges = Iterable[tuple[str, str]]


class Task:
    """Two prompts and a metric, with what is computed once for many subgraphs."""

    def __init__(self, of: Contrast) -> None:
        self.of, self.graph = of, graph(of.model)
        self.other = written(self.graph, of.corrupt)
        n_pos = len(of.tokens)
        self.readers = [Reader(of.model, number, n_pos) for number in range(of.model.n_layers)]

    def streams(
        self, kept: Bool[np.ndarray, "some receiver sender"]
    ) -> Float[np.ndarray, "some d_model"]:
        """Return the last residual streams of subgraphs with these edges."""
        replaced = self.graph.mask & ~kept
        return final_streams(
            self.of.model, self.graph, self.of.clean, self.other, replaced, self.readers
        )

    def values(self, kept: Bool[np.ndarray, "some receiver sender"]) -> np.ndarray:
        """Return the metric of subgraphs with these edges."""
        return self.of.of_streams(self.streams(kept))

    def mask(self, edges: Any) -> Bool[np.ndarray, "receiver sender"]:
        """Return edges as a mask. Raises: OtimesError for what is no edge of the graph."""
        senders = {each: at for at, each in enumerate(self.graph.senders)}
        receivers = {each: at for at, each in enumerate(self.graph.receivers)}
        found = np.zeros_like(self.graph.mask)
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise OtimesError(
                f"edges must be a list of pairs of a sender and a receiver, got {edges!r}"
            )
        for pair in edges:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise OtimesError(
                    f"an edge is a pair of a sender and a receiver, got {pair!r}; such as"
                    " ('head_out.0[1]', 'v.1[2]')"
                )
            sender, receiver = self.graph.edge(*pair)
            found[receivers[receiver], senders[sender]] = True
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Circuit:
    """A set of edges, and what the model does with these alone on a pair of prompts."""

    task: Task
    kept: Bool[np.ndarray, "receiver sender"]

    @property
    def graph(self) -> Graph:
        """The graph of the model."""
        return self.task.graph

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The names of the edges, in the order of the graph."""
        pairs = np.argwhere(self.kept)
        senders, receivers = self.graph.senders, self.graph.receivers
        return tuple((str(senders[s]), str(receivers[r])) for r, s in pairs)

    @cached_property
    def value(self) -> float:
        """The metric with these edges only, m(C)."""
        return float(self.task.values(self.kept[None])[0])

    @cached_property
    def faithfulness(self) -> float:
        """How much of the metric the circuit recovers: 1 for the whole graph, 0 for no edges."""
        return float(self.task.of.score(np.array(self.value)))

    @cached_property
    def completeness(self) -> float:
        """How much of the metric is lost without the edges of the circuit."""
        rest = self.task.values((self.graph.mask & ~self.kept)[None])
        return float(1 - self.task.of.score(rest)[0])

    def incompleteness(self, edges: Edges) -> float:
        """Return |m(C ∖ K) − m(G ∖ K)| for a set K of edges of the circuit.

        A circuit is complete where this is small for every K. Raises: OtimesError for an edge that
        is not in the circuit. Source: Wang et al. 2023, §4.
        """
        gone = self.task.mask(edges)
        if (gone & ~self.kept).any():
            at = tuple(int(i) for i in np.argwhere(gone & ~self.kept)[0])
            raise OtimesError(
                f"({self.graph.senders[at[1]]}, {self.graph.receivers[at[0]]}) is not an edge of"
                " the circuit"
            )
        without = np.stack([self.kept & ~gone, self.graph.mask & ~gone])
        first, second = self.task.values(without)
        return float(abs(first - second))

    def __repr__(self) -> str:
        count, whole = int(self.kept.sum()), int(self.graph.mask.sum())
        return (
            f"<circuit of {count} of {whole} edges of {self.graph.name}: faithfulness"
            f" {self.faithfulness:.3g}, completeness {self.completeness:.3g}>"
        )


def circuit(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    edges: Edges,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    metric: Metric | None = None,
) -> Circuit:
    """Return a set of edges as a circuit, with its faithfulness and completeness.

    `edges` are pairs of names of `graph(model)`; the other arguments are those of
    `activation_patching`.

    >>> from otimes.numeric.interventions.graph import graph
    >>> whole = circuit("two_layer", "x = 1", "y = 2", graph("two_layer").edges)
    >>> whole
    <circuit of 81 of 81 edges of two_layer: faithfulness 1, completeness 1>

    Raises: OtimesError for what is no edge, one that goes backwards, or invalid prompts.
    """
    task = Task(contrast(model, clean, corrupt, target, foil, position, metric))
    return Circuit(task, task.mask(edges))


def acdc(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    threshold: float,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    metric: Metric | None = None,
    divergence: str = "kl",
) -> Circuit:
    r"""Return the circuit that ACDC finds: the edges whose removal costs more than a threshold.

    One edge after the other, from the output backwards, is given what was written on the corrupt
    prompt, and stays so if this costs less than `threshold`.

    `divergence` is "kl", the divergence in nats of the next-token distribution at `position` from
    that of the whole graph, or "metric", the absolute change of the metric. Faithfulness and
    completeness of the result are those of the metric: a logit (difference), or `metric`.

    >>> found = acdc("one_layer", "x = 1", "y = 2", 0.1)
    >>> len(found.edges) < len(found.graph.edges)
    True

    Raises: OtimesError for a threshold that is not a number, or invalid prompts.
    """
    number = isinstance(threshold, int | float | np.floating) and not isinstance(threshold, bool)
    if not number or threshold != threshold:
        raise OtimesError(f"threshold must be a number, got {threshold!r}")
    if divergence not in ("kl", "metric"):
        raise OtimesError(f"divergence must be 'kl' or 'metric', got {divergence!r}")
    task = Task(contrast(model, clean, corrupt, target, foil, position, metric))
    cost = _kl(task) if divergence == "kl" else _change(task)
    kept = task.graph.mask.copy()
    now = cost(kept)
    for receiver in tracked(list(range(len(kept)))[::-1], "removing edges"):
        for sender in np.flatnonzero(kept[receiver])[::-1]:
            kept[receiver, sender] = False
            then = cost(kept)
            if then - now < threshold:
                now = then
            else:
                kept[receiver, sender] = True
    return Circuit(task, kept)


def _kl(task: Task) -> Callable[[np.ndarray], float]:
    """Return the divergence of the whole graph from a subgraph, as a function of its edges."""
    whole = log_softmax(task.of.clean["logits"][-1])

    def cost(kept: np.ndarray) -> float:
        found = log_softmax(task.of.logits(task.streams(kept[None]))[0])
        return float(np.exp(whole) @ (whole - found))

    return cost


def _change(task: Task) -> Callable[[np.ndarray], float]:
    return lambda kept: float(abs(task.values(kept[None])[0] - task.of.clean_value))
