r"""Exact patching of single edges and of paths, with only what lies behind them computed again.

Patching an edge from $c_1$ to $c_2$ changes the input of $c_2$ alone: $x_{in} - f^{c_1} + \tilde
f^{c_1}$. What comes before $c_2$ is not computed again, and $c_2$ is one head of one layer; the
streams behind all receivers of a layer then go through the later layers together. After the last
attention only the position of the metric is computed.

Patching a path $c_1 → c_2 → … → c_k$ replaces what $c_1$ wrote in the input of $c_2$ alone, what
$c_2$ then writes in the input of $c_3$ alone, and so on.

Source: Wang et al. 2023, “Interpretability in the Wild”, §3.1; Goldowsky-Dill et al. 2023,
“Localizing Model Behavior with Path Patching”.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from otimes.algebra.errors import OtimesError
from otimes.numeric.attribution.target import Tokens
from otimes.numeric.circuits.result import Named
from otimes.numeric.forward import Places
from otimes.numeric.interventions.contrast import Contrast, Metric, contrast
from otimes.numeric.interventions.graph import READERS, Graph, Node, graph
from otimes.numeric.interventions.subgraph import Reader, of_sender
from otimes.numeric.load import ModelSource
from otimes.numeric.prompt import read_position, together

BYTES_AT_ONCE = 2**28
"""Streams behind receivers are held for as many senders at a time as fit into this."""


def edge_patching(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    senders: Iterable[str] | str | None = None,
    receivers: Iterable[str] | str | None = None,
    together: bool = False,
    positions: Iterable[int] | int | None = None,
    direction: str = "noise",
    metric: Metric | None = None,
    normalised: bool = False,
) -> Named:
    """Return how much each patched edge changes a metric, exactly [sender, receiver].

    An edge carries what one component (the sender) writes to the input of another (the receiver).

    `senders` and `receivers` are names of `graph(model)`, of nodes ("q.1[2]"), of kinds in a layer
    ("q.1") or of kinds ("head_out"); None for all. Pairs without an edge are NaN. With `together`
    the queries, keys and values of a head are one receiver, `z.l[h]`. Only the rows at `positions`
    of what a sender wrote are replaced, by default all. In the direction "noise" the clean pass
    gets what the sender wrote on the corrupt prompt, in "denoise" the other way round. The metric
    is that of `activation_patching`; `normalised` gives its score instead of the change.

    Proved by: edge_patching_sums_to_node_patching.

    >>> found = edge_patching("two_layer", "x = 1", "y = 2", senders="head_out.0",
    ...                       receivers="v.1")
    >>> found.axes, found.values.shape
    (('sender', 'receiver'), (4, 4))

    Raises: OtimesError for an unknown node, invalid prompts, or a model without such a graph.
    """
    of = contrast(model, clean, corrupt, target, foil, position, metric)
    nodes = graph(of.model)
    first = nodes.some(senders, nodes.senders)
    groups = _groups(nodes, receivers, together)
    base, source = of.base_and_source(direction)
    gaps = np.stack([of_sender(each, source) - of_sender(each, base) for each in first])
    if positions is not None:
        gaps = _only_at(gaps, positions)
    values = np.full((len(first), len(groups)), np.nan)
    states = sum(len(of.tokens) * of.model.d_model * 8 for _ in groups)
    step = max(1, BYTES_AT_ONCE // max(states, 1))
    for start in range(0, len(first), step):
        some = slice(start, start + step)
        swept = _Sweep(of, base, first[some], gaps[some], groups)
        values[some] = swept.values()
    found = of.score(values) if normalised else values - of.base_value(direction)
    labels = {
        "sender": [str(each) for each in first],
        "receiver": [group.name for group in groups],
    }
    about = f"{direction}: {of.about}"
    return Named("edge patching", found, ("sender", "receiver"), labels, about=about)


def path_patching(
    model: ModelSource,
    clean: Any,
    corrupt: Any,
    path: Sequence[str],
    target: Tokens = None,
    foil: Tokens = None,
    position: Any = -1,
    *,
    direction: str = "noise",
    metric: Metric | None = None,
    normalised: bool = False,
) -> float:
    """Return how much patching along one path changes a metric, exactly.

    `path` begins with a sender and goes on with receivers of `graph(model)`: after "q.1[2]" it goes
    on from that head, after "mlp_pre.1" from that MLP. If the last node is "final", only the direct
    path to the logits is patched; otherwise all that the last component reaches is computed again.
    Other arguments are those of `edge_patching`, of which this is the case of longer paths.

    Proved by: path_patching_is_a_difference_of_paths.

    >>> effect = path_patching("two_layer", "x = 1", "y = 2",
    ...                        ["head_out.0[1]", "v.1[2]", "final"])
    >>> type(effect)
    <class 'float'>

    Raises: OtimesError for an unknown node, a path backwards in time, or invalid prompts.
    """
    of = contrast(model, clean, corrupt, target, foil, position, metric)
    nodes = graph(of.model)
    steps = _steps(nodes, path)
    base, source = of.base_and_source(direction)
    gap = of_sender(steps[0], source) - of_sender(steps[0], base)
    sender = steps[0]
    for receiver in steps[1:-1]:
        reader = Reader(of.model, receiver.layer, len(of.tokens))
        gap = _answers(reader, base, [receiver], gap[None])[0]
        sender = written_by(nodes, receiver)
    group = Group(str(steps[-1]), (steps[-1],))
    (value,) = _Sweep(of, base, [sender], gap[None], [group]).values()[0]
    if normalised:
        return float(of.score(np.array(value)))
    return float(value) - of.base_value(direction)


def _steps(nodes: Graph, path: Sequence[str]) -> list[Node]:
    if isinstance(path, str) or not isinstance(path, Sequence) or len(path) < 2:
        raise OtimesError(
            f"a path is a list of a sender and at least one receiver, got {path!r}; such as"
            " ['head_out.0[1]', 'v.1[2]', 'final']"
        )
    steps = [nodes.sender(path[0])]
    sender = steps[0]
    for number, name in enumerate(path[1:], start=1):
        _, receiver = nodes.edge(str(sender), name)
        steps.append(receiver)
        if receiver.kind != "final":
            sender = written_by(nodes, receiver)
        elif number < len(path) - 1:
            raise OtimesError(f"the path goes on after final, to {path[number + 1]}")
    return steps


def written_by(nodes: Graph, receiver: Node) -> Node:
    """Return the sender that a receiver is a part of."""
    if receiver.kind == "mlp_pre":
        return nodes.sender(f"mlp_out.{receiver.layer}")
    return nodes.sender(f"head_out.{receiver.layer}[{receiver.head}]")


@dataclass(frozen=True, slots=True)
class Group:
    """Receivers of one component whose inputs are replaced together."""

    name: str
    members: tuple[Node, ...]

    @property
    def time(self) -> int:
        """The time at which the receivers read."""
        return self.members[0].time


def _groups(nodes: Graph, names: Any, together: bool) -> list[Group]:
    chosen = nodes.some(names, nodes.receivers)
    if not together:
        return [Group(str(each), (each,)) for each in chosen]
    found: dict[str, list[Node]] = {}
    for each in chosen:
        name = f"z.{each.layer}[{each.head}]" if each.kind in READERS else str(each)
        found.setdefault(name, []).append(each)
    return [Group(name, tuple(members)) for name, members in found.items()]


def _only_at(gaps: np.ndarray, positions: Iterable[int] | int) -> np.ndarray:
    kept = np.zeros_like(gaps)
    given = positions if isinstance(positions, Iterable) else [positions]
    at = [read_position(gaps.shape[1], each) for each in given]
    kept[:, at] = gaps[:, at]
    return kept


def _answers(
    reader: Reader,
    base: Places,
    members: Sequence[Node],
    gaps: Float[np.ndarray, "some pos d_model"],
    normed: np.ndarray | None = None,
) -> Float[np.ndarray, "some pos d_model"]:
    """Return the change of what a component writes when some of its inputs are changed."""
    number, node = reader.number, members[0]
    if node.kind == "mlp_pre":
        name = "resid_pre" if reader.config.parallel else "resid_mid"
        out = reader.mlp_out(base[f"{name}.{number}"] + gaps)
        return np.asarray(out - base[f"mlp_out.{number}"])
    stream = base[f"resid_pre.{number}"]
    rows = reader.normed(stream)
    changed = reader.normed(stream + gaps) if normed is None else normed
    kinds = {each.kind for each in members}
    inputs = [changed if kind in kinds else rows for kind in READERS]
    out = reader.head_out(node.head, *inputs)
    return np.asarray(out - base[f"head_out.{number}"][node.head])


class _Sweep:
    """All edges from some senders, with one pass over the layers."""

    def __init__(
        self,
        of: Contrast,
        base: Places,
        senders: Sequence[Node],
        gaps: Float[np.ndarray, "sender pos d_model"],
        groups: Sequence[Group],
    ) -> None:
        self.of, self.base, self.groups = of, base, groups
        self.gaps = gaps
        changed = np.flatnonzero(gaps.any(axis=(0, 2)))
        self.first = int(changed[0]) if changed.size else 0
        self.times = np.array([each.time for each in senders])
        self.edges: list[tuple[int, int]] = []  # of the streams that are on their way
        self.streams: list[np.ndarray] = []

    def values(self) -> Float[np.ndarray, "sender receiver"]:
        """Return the metric with each edge patched; NaN where there is no edge."""
        model = self.of.model
        found = np.full((len(self.times), len(self.groups)), np.nan)
        for number in range(model.n_layers):
            self._layer(Reader(model, number, len(self.of.tokens)), number == model.n_layers - 1)
        if self.edges:
            rows = np.stack([stream[-1] for stream in self.streams])
            found[tuple(np.array(self.edges).T)] = self.of.of_streams(rows)
        for at, group in enumerate(self.groups):
            if group.members[0].kind == "final":
                found[:, at] = self.of.of_streams(self.base["final"][-1] + self.gaps[:, -1])
        return found

    def _layer(self, reader: Reader, last: bool) -> None:
        model, number, base = self.of.model, reader.number, self.base
        parallel = model.config.parallel
        before = [*self.streams]
        keep = slice(-1, None) if last else slice(None)
        if last:
            self._in_turn(lambda streams: streams[:, keep] + reader.attn_out_at_end(streams))
        else:
            self._in_turn(lambda streams: streams + reader.attn_out(streams))
        self._heads(reader, keep)
        if not model.config.d_mlp:
            return
        if parallel:
            self._parallel(reader, before, keep)
        else:
            self._in_turn(lambda streams: self._with_mlp(reader, streams))
        self._join(reader, "mlp_pre", base[f"resid_post.{number}"], keep)

    def _with_mlp(self, reader: Reader, streams: np.ndarray) -> np.ndarray:
        """Add the output of the MLP; positions before the first change are those of the base."""
        first = self.first if streams.shape[1] == len(self.of.tokens) else 0
        after = streams.copy()
        after[:, :first] = self.base[f"resid_post.{reader.number}"][:first]
        after[:, first:] += reader.mlp_out(streams[:, first:])
        return after

    def _parallel(self, reader: Reader, before: list[np.ndarray], keep: slice) -> None:
        """Add what the MLP makes of the streams before attention, to those after it."""
        fixed = self.base[f"mlp_out.{reader.number}"][keep]
        for at, stream in enumerate(self.streams):
            self.streams[at] = stream + (
                reader.mlp_out(before[at][keep]) if at < len(before) else fixed
            )

    def _heads(self, reader: Reader, keep: slice) -> None:
        rows = self.gaps[self.times <= 2 * reader.number]
        stream = self.base[f"resid_pre.{reader.number}"]
        normed = reader.normed(stream + rows)
        middle = self.base[f"resid_mid.{reader.number}"]
        self._join(reader, READERS, middle, keep, normed)

    def _join(
        self,
        reader: Reader,
        kinds: str | tuple[str, ...],
        stream: np.ndarray,
        keep: slice,
        normed: np.ndarray | None = None,
    ) -> None:
        """Add the streams behind the receivers of some kinds in this layer."""
        for at, group in enumerate(self.groups):
            node = group.members[0]
            if node.kind not in kinds or node.layer != reader.number:
                continue
            reading = np.flatnonzero(self.times <= group.time)
            if not reading.size:
                continue
            change = _answers(reader, self.base, group.members, self.gaps[reading], normed)
            self.streams += list((stream + change)[:, keep])
            self.edges += [(int(sender), at) for sender in reading]

    def _in_turn(self, step: Any) -> None:
        """Apply a step to the streams, as many at a time as are fast together."""
        if not self.streams:
            return
        for some in together(len(self.streams), self.streams[0].shape[0]):
            self.streams[some] = list(step(np.stack(self.streams[some])))
