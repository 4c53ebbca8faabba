"""Chapter 9: edges of the causal graph, paths along them, and circuits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import fsum
from typing import Any

import numpy as np
from sympy import Identity, MatrixSymbol, OneMatrix, Transpose, symbols

from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, OneHot, matadd, matmul
from otimes.numeric.circuits.result import Named
from otimes.numeric.interventions.circuits import acdc, circuit
from otimes.numeric.interventions.edges import edge_patching, path_patching
from otimes.numeric.interventions.flow import Flow, information_flow
from otimes.numeric.interventions.graph import graph
from otimes.numeric.model import Model
from otimes.numeric.rounding import gamma
from otimes.proofs.catalogue.interventions.patching import minus
from otimes.proofs.catalogue.sources import FRAMEWORK, PRIMER
from otimes.proofs.catalogue.symbols import L, d, l, size
from otimes.proofs.claims import Definition, Method, NonIdentity, Statement, Trial
from otimes.proofs.theorem import theorem

CIRCUITS = f"{PRIMER}, “Circuit Analysis”"
CONMY = "Conmy et al. 2023, “Towards Automated Circuit Discovery for Mechanistic Interpretability”"
GOLDOWSKY = "Goldowsky-Dill et al. 2023, “Localizing Model Behavior with Path Patching”"
WANG = "Wang et al. 2023, “Interpretability in the Wild”"
UNIT = 2.0**-53

C, R = size("C"), size("R")
c, r, k = symbols("c r k", integer=True)
wrote = MatrixSymbol("F", C, d)  # what each sender wrote at a position, a row each
other = MatrixSymbol("G", C, d)  # what they wrote there on the other prompt
mask = MatrixSymbol("m", 1, C)  # 1 for each edge that is kept, 0 for each that is replaced
one = OneMatrix(1, C)
u = MatrixSymbol("u", d, 1)


def read(kept: Any) -> Any:
    """Return what a receiver reads at a position: m F + (1 - m) G."""
    return matadd(matmul(kept, wrote), matmul(minus(one, kept), other))


@theorem(
    title="What a receiver reads in a subgraph of the model",
    chapter=9,
    convention="row",
    source=f"{PRIMER}, “Causal Interventions”; {CONMY}",
    covers=("S3-046", "S3-054"),
)
def reading_of_a_subgraph() -> Definition:
    """A circuit is a subgraph of the model seen as a graph of components: senders (embedding,
    heads, MLPs) write rows f_c to the stream, and receivers read sums of them. Along an edge that
    belongs to the circuit (m_c = 1) a receiver gets what the sender writes on this prompt, f_c;
    along any other edge it gets what the sender wrote on another prompt, g_c. F and G are the C × d
    matrices of these rows.

    With all edges kept this is the model itself, and with none the model on the other prompt.
    """

    def plain(F: Any, G: Any, m: Any, C: int, d: int, **_: Any) -> list[list[Any]]:
        return [[sum(m[0][c] * F[c][k] + (1 - m[0][c]) * G[c][k] for c in range(C))
                 for k in range(d)]]  # fmt: skip

    return Definition(
        "the stream with some senders replaced",
        read(mask),
        plain,
        on_models=False,
        obeys=("edge_patch_replaces_one_term", "whole_graph_is_the_model"),
    )


@theorem(
    title="The whole graph is the model",
    chapter=9,
    convention="row",
    source=f"{CIRCUITS}; {CONMY}",
    covers=("S3-054", "S3-046"),
)
def whole_graph_is_the_model() -> Statement:
    """If all edges of the model's graph are kept, every receiver reads the full residual stream, so
    the circuit computes what the model does. Therefore its faithfulness, the share of the metric
    that it keeps, is 1, whatever the metric. F and G hold what the senders write on the two
    prompts, one row each.

    It is the check that an implementation of circuits should pass first.
    """
    every = HeadSum(matmul(Transpose(OneHot(c, C)), wrote), (c, C))
    return Statement(read(one), every, on_models=False)


@theorem(
    title="Patching an edge replaces one term of a sum",
    chapter=9,
    convention="row",
    source=f"{CIRCUITS}; {WANG}, §3.1",
    covers=("S3-055",),
)
def edge_patch_replaces_one_term() -> Statement:
    """Patching an edge replaces one sender's output for one receiver: the receiver reads the stream
    with f_c exchanged for g_c, what the sender wrote on another prompt, and everything else is as
    before. F and G hold what all senders write on the two prompts, one row each.

    Unlike patching the component itself, other receivers still read f_c. So one can say through
    whom a component acts.
    """
    at = Transpose(OneHot(c, C))
    return Statement(
        read(minus(one, at)),
        matadd(matmul(one, wrote), matmul(-1, at, wrote), matmul(at, other)),
        on_models=False,
    )


x, delta = MatrixSymbol("x", 1, d), MatrixSymbol("delta", 1, d)
receivers = Family("M", (R,), d, d)


@theorem(
    title="The effects of the edges of a node sum to that of the node",
    chapter=9,
    convention="row",
    source=f"{CIRCUITS}; {GOLDOWSKY}",
    covers=("S3-055", "S3-056"),
)
def edge_patching_sums_to_node_patching() -> Statement:
    """If the receivers of a component are linear and do not read each other, the effects of its
    edges add up to the effect of patching the component. Replacing x by x + δ changes the metric, a
    number that u reads from the output, by δu along the direct edge, plus δ M_r u for each receiver
    r.

    This holds for components of one layer with frozen patterns. Receivers in sequence interact
    (`edges_of_a_chain_interact`).
    """

    def metric(stream: Any) -> Any:
        through = HeadSum(matmul(stream, receivers[r], u), (r, R))
        return matadd(matmul(stream, u), through)

    return Statement(
        minus(metric(matadd(x, delta)), metric(x)),
        matadd(matmul(delta, u), HeadSum(matmul(delta, receivers[r], u), (r, R))),
        on_models=False,
    )


@theorem(
    title="Effects of edges into layers in sequence do not add up",
    chapter=9,
    convention="row",
    source=GOLDOWSKY,
    covers=("S3-057", "S3-056"),
)
def edges_of_a_chain_interact() -> NonIdentity:
    """The effects of single edges do not add up to the effect of the component if its receivers are
    in sequence: with two layers M_1 and M_2, the sum of the direct path and the two edges lacks δ
    M_1 M_2 u, the path through both.

    So scores of edges should not be expected to sum to the score of a node.
    """
    first, second = (MatrixSymbol(name, d, d) for name in ("M_1", "M_2"))
    whole = matmul(delta, matadd(Identity(d), first), matadd(Identity(d), second), u)
    apart = matadd(matmul(delta, u), matmul(delta, first, u), matmul(delta, second, u))
    return NonIdentity(whole, apart)


@theorem(
    title="Patching a node is patching all paths from it",
    chapter=9,
    convention="column",
    source=f"{CIRCUITS}; {GOLDOWSKY}; {FRAMEWORK}",
    covers=("S3-056",),
)
def path_patching_is_a_difference_of_paths() -> Statement:
    """With patterns, scales and gates frozen, replacing what a component wrote (x by y) changes the
    output by the sum over all paths from it, and each path's effect is the difference of one term
    of the path sum. M[l] is what layer l adds.

    So in a frozen model path effects are exact and add up to the total.

    In a model whose patterns react, each path effect measured by `ot.path_patching` is exact by
    itself, but they need not sum to anything.
    """
    M = Family("M", (L,), d, d)
    start, end = MatrixSymbol("x", d, 1), MatrixSymbol("y", d, 1)
    through = LayerProduct(matadd(Identity(d), M[l]), (l, L))
    paths = HeadSum(OrderSum(M[l], (l, L), k), (k, L + 1))
    return Statement(
        minus(matmul(through, end), matmul(through, start)),
        minus(matmul(paths, end), matmul(paths, start)),
        on_models=False,
    )


class PlainPass:
    """A model of bare heads in which each reader's stream may be changed, by loops over heads."""

    def __init__(self, model: Model, tokens: Sequence[int]) -> None:
        self.model, self.tokens = model, list(tokens)
        shortformer = model.config.positions == "shortformer"
        zeros = np.zeros((len(tokens), model.d_model))
        self.added = model.W_pos[: len(tokens)] if shortformer else zeros

    def run(self, gone: Any = (), other: dict[str, np.ndarray] | None = None) -> dict[str, Any]:
        """Return what each sender writes; edges in `gone` carry what is in `other`."""
        terms = {"embed": self.model.W_E[self.tokens]}
        for layer in range(self.model.n_layers):
            made = {}
            for head in range(self.model.n_heads):
                q, k, v = (
                    self.read(f"{kind}.{layer}[{head}]", terms, gone, other) for kind in "qkv"
                )
                made[f"head_out.{layer}[{head}]"] = self.head(layer, head, q, k, v)
            terms |= made
        return {**terms, "logits": self.read("final", terms, gone, other)[-1] @ self.model.W_U}

    def read(self, receiver: str, terms: Any, gone: Any, other: Any) -> np.ndarray:
        """Return the stream as one receiver reads it."""
        each = [
            other[name] if other and (name, receiver) in gone else value
            for name, value in terms.items()
        ]
        total: np.ndarray = sum(each[1:], each[0])
        return total

    def head(
        self, layer: int, head: int, query: np.ndarray, key: np.ndarray, value: np.ndarray
    ) -> np.ndarray:
        """Return the output of a head, a query at a time."""
        m = self.model
        q = (query + self.added) @ m.W_Q[layer, head]
        keys = (key + self.added) @ m.W_K[layer, head]
        moved = value @ m.W_V[layer, head] @ m.W_O[layer, head]
        rows = []
        for at in range(len(q)):
            scores = keys[: at + 1] @ q[at] / np.sqrt(m.d_head)
            weights = np.exp(scores - scores.max())
            rows.append(weights @ moved[: at + 1] / weights.sum())
        return np.array(rows)


def prompt_pair(model: Model, tokens: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return a short prompt, and one that differs from it in two tokens."""
    clean = list(tokens[:8])
    corrupt = [*clean]
    for at in (2, len(clean) - 1):
        corrupt[at] = (clean[at] + 5) % model.d_vocab
    return clean, corrupt


def rounding_doubt(model: Model, layer: int, size: np.ndarray) -> float:
    """Return how far two computations of a logit may be apart from the stream before a layer on.

    The layer is the last one, and its stream in absolute values is `size`. To first order: each
    product is off by its roundings, and a score that is off by r takes a row of a pattern off by
    2 r of itself.
    """
    few = gamma(2 * (model.d_model + model.d_head + model.n_heads + 8), UNIT)
    if model.config.positions == "shortformer":
        read = size + np.abs(model.W_pos[: len(size)])
    else:
        read = size
    off = few * size[-1]
    for head in range(model.n_heads):
        W_Q, W_K, W_V, W_O = (np.abs(W[layer, head]) for W in _weights(model))
        scores = few * (read[-1] @ W_Q @ W_K.T @ read.T) / np.sqrt(model.d_head)
        moved = (size @ W_V @ W_O).max(axis=0)
        off += (4 * float(scores.max()) + 3 * few + gamma(len(size) + 8, UNIT)) * moved
    return float(4 * (off @ np.abs(model.W_U[:, 3])))


def _weights(model: Model) -> tuple[np.ndarray, ...]:
    return model.W_Q, model.W_K, model.W_V, model.W_O


def _every_edge(
    model: Model, clean: Sequence[int], corrupt: Sequence[int], found: Named
) -> Iterator[Trial]:
    """Yield the effect of every edge of one or two layers, each by a pass of its own."""
    plain, other = PlainPass(model, clean), PlainPass(model, corrupt).run()
    ours, edges = plain.run(), set(graph(model).edges)
    effects, there = np.full(found.values.shape, np.nan), np.zeros(found.values.shape)
    for i, sender in enumerate(found.labels["sender"]):
        for j, receiver in enumerate(found.labels["receiver"]):
            if (sender, receiver) in edges:
                run, there[i, j] = plain.run({(sender, receiver)}, other), 1.0
                effects[i, j] = run["logits"][3] - ours["logits"][3]
    yield Trial("which edges there are", (~np.isnan(found.values)).astype(float), there, 0.0)
    known = there > 0
    doubt = _doubt_of_two_layers(model, ours, other)
    if 1000 * doubt < np.abs(effects[known]).max():  # in large models the bound says nothing
        yield Trial("every edge", found.values[known], effects[known], doubt)


def _doubt_of_two_layers(model: Model, ours: dict[str, Any], theirs: dict[str, Any]) -> float:
    """Return how far two computations of a logit may be apart, from the embedding on.

    An error of the first layer is relative to the stream in absolute values, as those of the second
    layer are, and larger by what a softmax makes of errors of its scores.
    """
    writers = [name for name in ours if name != "logits"]
    size = sum(np.abs(ours[name]) + np.abs(theirs[name]) for name in writers)
    grown = 0.0
    for head in range(model.n_heads if model.n_layers > 1 else 0):
        W_Q, W_K, W_V, W_O = (np.abs(W[0, head]) for W in _weights(model))
        read = size + (np.abs(model.W_pos[: len(size)]) if "W_pos" in model.weights else 0.0)
        scores = read @ W_Q @ W_K.T @ read.T / np.sqrt(model.d_head)
        moved = (size @ W_V @ W_O).max(axis=0)
        grown += (4 * float(scores.max()) + 4) * float((moved / size.max(axis=0)).max())
    return (1 + grown) * rounding_doubt(model, model.n_layers - 1, size)


@theorem(
    title="edge_patching and path_patching: passes with one term replaced",
    chapter=9,
    convention="row",
    source=f"{CIRCUITS}; {WANG}, §3.1; {GOLDOWSKY}",
    covers=("S3-055", "S3-056"),
)
def edge_patching_method() -> Method:
    """`edge_patching` finds the effect of every edge by recomputing only what lies behind the
    receiver; `path_patching` gives the effect of a path. They are compared, in attention-only
    models, with forward passes in which a single reader of a single head gets the other prompt's
    term, by loops.

    The theorem behind it is `edge_patch_replaces_one_term`.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare or not model.n_layers:
            return
        clean, corrupt = prompt_pair(model, tokens)
        ours, theirs, plain = model.forward(clean), model.forward(corrupt), PlainPass(model, clean)
        found, last = edge_patching(model, clean, corrupt, 3), model.n_layers - 1
        gaps = {"embed": theirs["embed"] - ours["embed"]}
        for layer in range(last):
            moved = theirs[f"head_out.{layer}"] - ours[f"head_out.{layer}"]
            gaps |= {f"head_out.{layer}[{head}]": each for head, each in enumerate(moved)}
        stream = ours[f"resid_pre.{last}"]
        values, paths, effects, doubts = [], [], [], []
        for number, (sender, gap) in enumerate(gaps.items()):
            kind, head = "vqk"[number % 3], number % model.n_heads
            inputs = [stream + gap if each == kind else stream for each in "qkv"]
            change = plain.head(last, head, *inputs) - ours[f"head_out.{last}"][head]
            receiver = f"{kind}.{last}[{head}]"
            effects.append(change[-1] @ model.W_U[:, 3])
            doubts.append(rounding_doubt(model, last, np.abs(stream) + np.abs(gap)))
            values.append(float(found.at(sender=sender, receiver=receiver).values))
            path = [sender, receiver, "final"]
            paths.append(path_patching(model, clean, corrupt, path, 3))
        plainly, bound = np.array(effects), np.array(doubts)
        yield Trial("edges into the last layer", np.array(values), plainly, bound)
        yield Trial("paths through it to the end", np.array(paths), plainly, bound)
        if model.n_layers <= 2:
            yield from _every_edge(model, clean, corrupt, found)

    rests = ("edge_patch_replaces_one_term", "path_patching_is_a_difference_of_paths")
    return Method("ot.edge_patching", rests, trials)


@theorem(
    title="circuit and acdc: a search edge by edge, by loops",
    chapter=9,
    convention="row",
    source=f"{CIRCUITS}; {CONMY}, §3; {WANG}, §4",
    covers=("S3-054", "S3-058"),
)
def acdc_method() -> Method:
    """`acdc` searches for a circuit: it goes through all edges from the last to the first and
    removes an edge if the output distribution changes by less than a threshold. It is compared with
    the whole search done by loops, in one-layer attention-only models. `circuit` measures
    faithfulness and completeness of a given set of edges.

    In deeper models only the extremes are checked: threshold −∞ keeps all edges, ∞ none.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.config.bare or not model.n_layers:
            return
        clean, corrupt = prompt_pair(model, tokens)
        plain, theirs = PlainPass(model, clean), PlainPass(model, corrupt).run()
        every = list(graph(model).edges)
        if model.n_layers == 1:
            ours = plain.run()
            found = circuit(model, clean, corrupt, every[::2], 3)
            runs = [plain.run({*every} - {*some}, theirs) for some in (every[::2], every[1::2])]
            whole = ours["logits"][3] - theirs["logits"][3]
            scores = [(run["logits"][3] - theirs["logits"][3]) / whole for run in runs]
            size = np.abs(ours["embed"]) + np.abs(theirs["embed"])
            bound = 4 * rounding_doubt(model, 0, size) / abs(whole) * (1 + max(map(abs, scores)))
            yield Trial("faithfulness", found.faithfulness, scores[0], bound)
            yield Trial("completeness", found.completeness, 1 - scores[1], bound)
            left = _search(plain, theirs, every, 0.01)
            chosen = acdc(model, clean, corrupt, 0.01, 3)
            both = [np.array([e in some for e in every], float) for some in (chosen.edges, left)]
            yield Trial("the edges that are kept", both[0], both[1], 0.0)
            value = plain.run({*every} - left, theirs)["logits"][3]
            doubt = 4 * rounding_doubt(model, 0, size)
            yield Trial("the metric with these only", chosen.value, float(value), doubt)
        ends = [len(acdc(model, clean[:3], corrupt[:3], t, 3).edges) for t in (-np.inf, np.inf)]
        yield Trial(
            "thresholds at the ends", np.array(ends, float), np.array([len(every), 0.0]), 0.0
        )

    return Method(
        "ot.acdc",
        ("whole_graph_is_the_model", "edge_patch_replaces_one_term"),
        trials,
        unchanged_by=dict.fromkeys(
            ("W_V of another layer", "W_O of another layer"),
            "the whole search is tried in models that have one layer",
        ),
    )


def _search(
    plain: PlainPass, theirs: Any, every: list[tuple[str, str]], threshold: float
) -> set[Any]:
    """Return the edges that ACDC keeps, each candidate by a pass of its own."""

    def logs(kept: set[Any]) -> np.ndarray:
        logits = plain.run({*every} - kept, theirs)["logits"]
        found: np.ndarray = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
        return found

    kept = {*every}
    whole = logs(kept)

    def cost(some: set[Any]) -> float:
        return float(np.exp(whole) @ (whole - logs(some)))

    order = {name: at for at, name in enumerate(dict.fromkeys(edge[1] for edge in every))}
    senders = {name: at for at, name in enumerate(dict.fromkeys(edge[0] for edge in every))}
    for edge in sorted(every, key=lambda edge: (-order[edge[1]], -senders[edge[0]])):
        if cost(kept - {edge}) - cost(kept) < threshold:
            kept = kept - {edge}
    return kept


def _flow_of_mlps(found: Flow, model: Model, places: dict[str, np.ndarray]) -> Iterator[Trial]:
    """Yield the importance of each MLP and of the stream beside it, entry by entry."""
    if not model.config.d_mlp:
        nothing = np.isnan([found.mlp, found.past_mlp])
        yield Trial("no MLPs", nothing.astype(float), np.ones(nothing.shape), 0.0)
        return
    for layer, at in np.ndindex(found.mlp.shape):
        whole = places[f"resid_post.{layer}"][at].tolist()
        terms = [places[f"{name}.{layer}"][at].tolist() for name in ("mlp_out", "resid_mid")]
        size = fsum(map(abs, whole))
        apart = [fsum(abs(x - y) for x, y in zip(whole, term, strict=True)) for term in terms]
        near = [max(0.0, size - each) for each in apart]
        total = fsum(near) or 1.0
        plain = np.array(near) / total
        bound = 8 * gamma(len(whole) + 4, UNIT) * (size + sum(apart)) / total + UNIT
        ours = np.array([found.mlp[layer, at], found.past_mlp[layer, at]])
        yield Trial(f"MLP of layer {layer}, position {at}", ours, plain, bound)


@theorem(
    title="information_flow: the nearness of each term of a sum",
    chapter=9,
    convention="row",
    source="Ferrando and Voita 2024, “Information Flow Routes: Automatically Interpreting Language "
    f"Models at Scale”; {CIRCUITS}",
    covers=("S3-062",),
)
def information_flow_method() -> Method:
    """`information_flow` scores the edges of a model by how much each term of the sum x + Σ_h Σ_j
    a_ij v_j W_O + b_O brings the sum y nearer: max(0, ‖y‖ − ‖y − z‖) for the term z, with sums of
    absolute values as norms. The scores of all terms are normalised to one, and edges above a
    threshold are kept. It is compared with loops over heads and sources.

    No intervention is made. The scores describe one forward pass.
    """

    def trials(model: Model, tokens: Sequence[int]) -> Iterator[Trial]:
        if not model.n_layers or model.config.norm_order != "pre":
            return
        found, places = information_flow(model, list(tokens)), model.forward(tokens)
        yield Trial("the model", float(found.model is model), 1.0, 0.0)
        yield Trial("the prompt", np.array(found.prompt.tokens), np.array(tokens), 0.0)
        yield from _flow_of_mlps(found, model, places)
        for layer, at in product(range(model.n_layers), range(len(tokens))):
            terms = [places[f"resid_pre.{layer}"][at], model.part("b_O", layer)]
            for head, source in product(range(model.n_heads), range(len(tokens))):
                weight = places[f"pattern.{layer}"][head, at, source]
                value = places[f"v.{layer}"][head, source] @ model.W_O[layer, head]
                terms.append(weight * value)
            whole = places[f"resid_mid.{layer}"][at]
            size = float(np.abs(whole).sum())
            near = [max(0.0, size - float(np.abs(whole - term).sum())) for term in terms]
            plain = np.array(near) / (sum(near) or 1.0)
            ours = [found.past_attention[layer, at], found.bias[layer, at]]
            ours += list(found.heads[layer, :, at].ravel())
            few = gamma(4 * (model.d_model + model.d_head + len(terms)), UNIT)
            much = few * (size + max(float(np.abs(term).sum()) for term in terms))
            bound = much * (1 + len(terms) * plain) / (sum(near) or 1.0) + few
            yield Trial(f"layer {layer}, position {at}", np.array(ours), plain, bound)
        everything = found.routes(0.0)
        still = sum(route.importance <= 0 for route in everything)
        yield Trial("threshold 0 keeps what counts", float(still), 0.0, 0.0)

    return Method("ot.information_flow", ("reading_of_a_subgraph",), trials)
