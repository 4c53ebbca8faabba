"""Edges, paths, subgraphs and ACDC, beside a pass in plain loops in which inputs are replaced."""

from collections import Counter

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.interventions import subgraph
from otimes.numeric.interventions.circuits import acdc, circuit
from otimes.numeric.interventions.edges import edge_patching, path_patching
from otimes.numeric.interventions.graph import graph
from otimes.numeric.load import load_model
from otimes.numeric.random_weights import random_model as drawn
from tests.numeric.interventions.plain import plain, with_edges
from tests.numeric.random_models import KINDS, MODERN, TINY_TOKENS, random_model

OTHER = [5, 1, 10, 2, 0, 7]
CLOSE = 1e-10
SOME = ("attention only", "gpt2", "llama", "neox", "everything")


def lead(places: dict) -> float:
    return places["logits"][-1, 3] - places["logits"][-1, 8]


def passes(kind: str) -> tuple:
    model = random_model(KINDS[kind])
    return model, plain(model, TINY_TOKENS), plain(model, OTHER)


@pytest.mark.parametrize("kind", SOME)
def test_each_edge_has_the_effect_of_a_pass_with_one_term_replaced(kind: str) -> None:
    model, clean, corrupt = passes(kind)
    noise = edge_patching(model, TINY_TOKENS, OTHER, 3, 8)
    denoise = edge_patching(model, TINY_TOKENS, OTHER, 3, 8, direction="denoise")
    rng = np.random.default_rng(0)
    nodes = graph(model)
    there = {(s, r) for s, r in nodes.edges}
    senders, receivers = (list(noise.labels[axis]) for axis in ("sender", "receiver"))
    for s, sender in enumerate(senders):
        for r, receiver in enumerate(receivers):
            assert np.isnan(noise.values[s, r]) == ((sender, receiver) not in there)
    for at in rng.choice(len(nodes.edges), 10, replace=False):
        edge = nodes.edges[at]
        where = senders.index(edge[0]), receivers.index(edge[1])
        one = lead(plain(model, TINY_TOKENS, read=with_edges(corrupt, {edge})))
        assert abs(noise.values[where] - (one - lead(clean))) < CLOSE, edge
        other = lead(plain(model, OTHER, read=with_edges(clean, {edge})))
        assert abs(denoise.values[where] - (other - lead(corrupt))) < CLOSE, edge


@pytest.mark.parametrize("kind", SOME)
def test_readers_of_a_head_together_are_three_edges_at_once(kind: str) -> None:
    model, clean, corrupt = passes(kind)
    found = edge_patching(
        model, TINY_TOKENS, OTHER, 3, 8, senders="head_out", receivers=("q", "k", "v"),
        together=True,
    )  # fmt: skip
    edges = {("head_out.0[1]", f"{kind}.1[2]") for kind in "qkv"}
    one = lead(plain(model, TINY_TOKENS, read=with_edges(corrupt, edges)))
    effect = found.at(sender="head_out.0[1]", receiver="z.1[2]").values
    assert abs(effect - (one - lead(clean))) < CLOSE


def in_order(model, clean: dict, corrupt: dict, path: list[str]) -> float:
    """The effect along a path: a pass for each step, in which one term of one input is replaced."""
    moved, sender = corrupt, path[0]
    for receiver in path[1:-1]:
        run = plain(model, TINY_TOKENS, read=with_edges(moved, {(sender, receiver)}))
        name, _, head = receiver.partition(".")
        sender = f"mlp_out.{head}" if name == "mlp_pre" else f"head_out.{head}"
        moved = {**clean, f"wrote {sender}": run[f"wrote {sender}"]}
    run = plain(model, TINY_TOKENS, read=with_edges(moved, {(sender, path[-1])}))
    return lead(run) - lead(clean)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "attention only"])
def test_a_path_is_patched_step_by_step(kind: str) -> None:
    model, clean, corrupt = passes(kind)
    paths = [
        ["embed", "k.0[1]", "q.1[2]"],
        ["embed", "v.0[0]", "v.1[1]", "final"],
        ["head_out.0[2]", "final"],
    ]
    if model.config.d_mlp:
        paths += [["embed", "mlp_pre.0", "k.1[1]", "mlp_pre.1", "final"]]
    for path in paths:
        found = path_patching(model, TINY_TOKENS, OTHER, path, 3, 8)
        assert abs(found - in_order(model, clean, corrupt, path)) < CLOSE, path


@pytest.mark.parametrize("kind", ["attention only", "gpt2", "neox"])
def test_circuits_carry_the_other_prompt_on_all_other_edges(kind: str) -> None:
    model, clean, corrupt = passes(kind)
    every = graph(model).edges
    rng = np.random.default_rng(2)
    kept = [edge for edge in every if rng.random() < 0.6]
    found = circuit(model, TINY_TOKENS, OTHER, kept, 3, 8)

    def of(edges: list) -> float:
        return lead(plain(model, TINY_TOKENS, read=with_edges(corrupt, {*every} - {*edges})))

    whole = lead(clean) - lead(corrupt)
    assert set(found.edges) == set(kept)
    assert abs(found.value - of(kept)) < CLOSE
    assert abs(found.faithfulness - (of(kept) - lead(corrupt)) / whole) < CLOSE
    rest = [edge for edge in every if edge not in kept]
    assert abs(found.completeness - (1 - (of(rest) - lead(corrupt)) / whole)) < CLOSE
    gone = kept[::3]
    without = [[edge for edge in edges if edge not in gone] for edges in (kept, every)]
    assert abs(found.incompleteness(gone) - abs(of(without[0]) - of(without[1]))) < CLOSE
    assert abs(of([]) - lead(corrupt)) < CLOSE


def test_acdc_removes_the_edges_that_a_plain_search_removes() -> None:
    model, _clean, corrupt = passes("attention only")
    every = list(graph(model).edges)
    order = {str(each): at for at, each in enumerate(graph(model).receivers)}
    senders = {str(each): at for at, each in enumerate(graph(model).senders)}

    def distribution(edges: set) -> np.ndarray:
        logits = plain(model, TINY_TOKENS, read=with_edges(corrupt, {*every} - edges))["logits"][-1]
        return np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()

    whole, kept = distribution({*every}), {*every}

    def cost(edges: set) -> float:
        return sum(p * np.log(p / r) for p, r in zip(whole, distribution(edges), strict=True))

    for edge in sorted(every, key=lambda edge: (-order[edge[1]], -senders[edge[0]])):
        if cost(kept - {edge}) - cost(kept) < 0.01:
            kept -= {edge}
    found = acdc(model, TINY_TOKENS, OTHER, 0.01, 3, 8)
    assert set(found.edges) == kept
    assert 0 < len(kept) < len(every)
    assert len(acdc(model, TINY_TOKENS, OTHER, -np.inf, 3).edges) == len(every)
    assert not acdc(model, TINY_TOKENS, OTHER, np.inf, 3, divergence="metric").edges


def test_edges_work_or_are_refused_by_name_in_every_architecture() -> None:
    refused = Counter()
    for config in MODERN.values():
        model, other = random_model(config), [*OTHER[:-1], 9]
        parted = bool(config.n_experts or config.kv_rank)
        if parted or config.norm_order != "pre" or config.qk_norm == "all":
            reason = "norm_order=|qk_norm='all'|n_experts=|kv_rank="
            with pytest.raises(OtimesError, match=reason):
                edge_patching(model, TINY_TOKENS, other, 3)
            refused["parts" if parted else config.norm_order] += 1
            continue
        found = edge_patching(model, TINY_TOKENS, other, 3)
        whole = circuit(model, TINY_TOKENS, other, graph(model).edges, 3)
        assert abs(whole.faithfulness - 1) < CLOSE
        assert not np.isnan(found.values[0]).all()
        at = found.at(sender=str(graph(model).senders[0]), receiver="final").values
        gone = [e for e in graph(model).edges if e != (str(graph(model).senders[0]), "final")]
        assert abs(circuit(model, TINY_TOKENS, other, gone, 3).value
                   - whole.value - at) < CLOSE  # fmt: skip
    assert "pre" not in refused


def test_head_to_head_edges_cost_a_fraction_of_the_passes() -> None:
    """Work is counted in rows that are multiplied by the weights of a whole layer."""
    model = load_model("gpt2_tiny")
    tokens, rows = np.arange(16) * 7, Counter()
    mlp_out, head_out = subgraph.Reader.mlp_out, subgraph.Reader.head_out

    def counted(reader, streams):
        rows["mlp"] += streams[..., 0].size
        return mlp_out(reader, streams)

    def counted_head(reader, head, *inputs):
        rows["head"] += sum(each[..., 0].size for each in inputs) / 3
        return head_out(reader, head, *inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subgraph.Reader, "mlp_out", counted)
        patch.setattr(subgraph.Reader, "head_out", counted_head)
        edge_patching(
            model,
            tokens,
            tokens + 1,
            3,
            senders="head_out",
            receivers=("q", "k", "v"),
            together=True,
        )
    layer = {"mlp": 4 * 128 * 512, "head": 8 * 128 * 32}  # W_in, W_out; W_Q, W_K, W_V, W_O
    done = sum(rows[part] * layer[part] for part in rows)
    one_pass = 16 * 4 * (layer["mlp"] + 4 * layer["head"])
    naive = 2 * 96 * one_pass  # each edge: a pass for the receiver's input, one for its effect
    assert done < naive / 10


MESSAGES = {
    "backwards": (["head_out.1[0]", "q.0[1]"], r"from head_out\.1\[0\] to q\.0\[1\] goes backward"),
    "same layer": (["head_out.0[0]", "v.0[1]"], "goes backwards"),
    "no such head": (["head_out.0[7]", "final"], r"no sender head_out\.0\[7\]; senders are embed"),
    "no receiver": (["embed", "z.0[1]"], r"no receiver z\.0\[1\]; receivers are q\.0\[0\]"),
    "after the end": (["embed", "final", "q.0[0]"], "goes on after final"),
    "one node": (["embed"], "a path is a list of a sender and at least one receiver"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_bad_paths_are_refused_in_a_sentence(case: str) -> None:
    path, message = MESSAGES[case]
    with pytest.raises(OtimesError, match=message):
        path_patching(drawn(), [1, 2, 3], [4, 5, 6], path, 3)


def test_bad_edges_and_thresholds_are_refused_in_a_sentence() -> None:
    model = drawn()
    with pytest.raises(OtimesError, match=r"head_out\.1\[0\] to k\.1\[2\] goes backwards"):
        circuit(model, [1, 2], [4, 5], [("head_out.1[0]", "k.1[2]")])
    with pytest.raises(OtimesError, match="an edge is a pair of a sender and a receiver"):
        circuit(model, [1, 2], [4, 5], ["embed"])
    with pytest.raises(OtimesError, match="threshold must be a number, got None"):
        acdc(model, [1, 2], [4, 5], None)
    with pytest.raises(OtimesError, match="direction must be 'denoise' or 'noise', got 'both'"):
        edge_patching(model, [1, 2], [4, 5], direction="both")
    with pytest.raises(OtimesError, match="norm_order='output'"):
        graph(drawn(kind="olmo2"))
