"""First-order estimates beside derivatives of a plain pass, and their errors beside exact effects.

The plain pass is differentiated by central differences at two steps, whose leading errors cancel.
"""

from collections.abc import Callable

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.interventions.edges import edge_patching
from otimes.numeric.interventions.estimates import attribution_patching, edge_attribution
from otimes.numeric.interventions.flow import information_flow
from otimes.numeric.interventions.graph import graph
from otimes.numeric.interventions.hooks import Hook
from otimes.numeric.interventions.passes import Pass
from otimes.numeric.interventions.patching import activation_patching
from tests.numeric.interventions.plain import plain
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model

OTHER = [5, 1, 10, 2, 0, 9]
STEP = 1e-3
CLOSE = 1e-8  # STEP⁴ times a fifth derivative, and 1e-15 / STEP of rounding


def lead(places: dict) -> float:
    return places["logits"][-1, 3] - places["logits"][-1, 8]


def slope(function: Callable[[float], float]) -> float:
    def central(step: float) -> float:
        return (function(step) - function(-step)) / (2 * step)

    return (4 * central(STEP) - central(2 * STEP)) / 3


@pytest.mark.parametrize("kind", ["gpt2", "llama", "everything"])
def test_eap_is_the_derivative_of_the_edge_patch(kind: str) -> None:
    model = random_model(KINDS[kind])
    corrupt, clean = plain(model, OTHER), plain(model, TINY_TOKENS)
    found = edge_attribution(model, TINY_TOKENS, OTHER, 3, 8)
    every = graph(model).edges
    for sender, receiver in [every[at] for at in range(3, len(every), 17)] + [every[-1]]:

        def moved(t: float, sender=sender, receiver=receiver) -> float:
            gap = corrupt[f"wrote {sender}"] - clean[f"wrote {sender}"]

            def read(name: str, stream: np.ndarray, terms: dict) -> np.ndarray:
                return stream + t * gap if name == receiver else stream

            return lead(plain(model, TINY_TOKENS, read=read))

        score = found.at(sender=sender, receiver=receiver).values
        assert abs(score - slope(moved)) < CLOSE * max(1, abs(score)), (sender, receiver)


def test_eap_of_all_receivers_is_the_gradient_of_the_stream() -> None:
    """What every receiver of a term would feel adds up to attribution patching of the term."""
    for kind in ("gpt2", "llama", "everything", "mlp without norms"):
        model = random_model(KINDS[kind])
        edges = edge_attribution(model, TINY_TOKENS, OTHER, 3, 8)
        sums = np.nansum(edges.values, axis=1)
        heads = attribution_patching(model, TINY_TOKENS, OTHER, 3, 8, kind="head_out")
        mlps = attribution_patching(model, TINY_TOKENS, OTHER, 3, 8, kind="mlp_out")
        names = list(edges.labels["sender"])
        for layer in range(2):
            at = names.index(f"head_out.{layer}[1]")
            assert abs(sums[at] - heads.values[layer, 1]) < 1e-10
            at = names.index(f"mlp_out.{layer}")
            assert abs(sums[at] - mlps.values[layer].sum()) < 1e-10


def test_eap_ig_is_the_mean_over_inputs_between_the_prompts() -> None:
    model = random_model(KINDS["gpt2"])
    (corrupt, clean) = (model.forward(row) for row in (OTHER, TINY_TOKENS))
    found = edge_attribution(model, TINY_TOKENS, OTHER, 3, 8, n_steps=4)
    ends = edge_attribution(model, TINY_TOKENS, OTHER, 3, 8)
    assert np.nanmax(np.abs(found.values - ends.values)) > 1e-3
    between = []
    for k in range(1, 5):
        at = corrupt["embed"] + k / 4 * (clean["embed"] - corrupt["embed"])

        def edit(name: str, value: np.ndarray, at=at) -> np.ndarray:
            return at if name == "embed" else value

        def moved(t: float, edit=edit) -> float:
            gap = corrupt["mlp_out.0"] - clean["mlp_out.0"]

            def read(name: str, stream: np.ndarray, terms: dict) -> np.ndarray:
                return stream + t * gap if name == "v.1[2]" else stream

            return lead(plain(model, TINY_TOKENS, edit, read))

        between.append(slope(moved))
    score = found.at(sender="mlp_out.0", receiver="v.1[2]").values
    assert abs(score - np.mean(between)) < CLOSE


@pytest.mark.parametrize("kind", ["q", "k", "v", "z", "pattern", "mlp_post", "resid_mid"])
def test_atp_is_the_derivative_of_the_activation_patch(kind: str) -> None:
    model = random_model(KINDS["gpt2"])
    corrupt, clean = plain(model, OTHER), plain(model, TINY_TOKENS)
    found = attribution_patching(model, TINY_TOKENS, OTHER, 3, 8, kind=kind, by_position=True)
    for layer, head, at in ((0, 1, 2), (1, 3, 5), (1, 0, 3)):
        part = (head, at) if "head" in found.axes else (at,)
        gap = corrupt[f"{kind}.{layer}"][part] - clean[f"{kind}.{layer}"][part]

        def moved(t: float, part=part, gap=gap, layer=layer) -> float:
            def edit(name: str, value: np.ndarray) -> np.ndarray:
                if name == f"{kind}.{layer}":
                    value[part] = value[part] + t * gap
                return value

            return lead(plain(model, TINY_TOKENS, edit))

        assert abs(found.values[(layer, *part)] - slope(moved)) < CLOSE


def test_the_qk_fix_computes_the_softmax_again() -> None:
    model = random_model(KINDS["gpt2"])
    corrupt, clean = plain(model, OTHER), plain(model, TINY_TOKENS)
    for kind in "qk":
        fixed = attribution_patching(
            model, TINY_TOKENS, OTHER, 3, 8, kind=kind, by_position=True, qk_fix=True
        )
        whole = attribution_patching(model, TINY_TOKENS, OTHER, 3, 8, kind=kind, qk_fix=True)
        at, head = 3, 2

        def edit(name: str, value: np.ndarray, kind=kind, head=head, at=at) -> np.ndarray:
            if name == f"{kind}.1":
                value[head, at] = corrupt[name][head, at]
            return value

        change = plain(model, TINY_TOKENS, edit)["pattern.1"] - clean["pattern.1"]

        def moved(t: float, change=change) -> float:
            def shifted(name: str, value: np.ndarray) -> np.ndarray:
                return value + t * change if name == "pattern.1" else value

            return lead(plain(model, TINY_TOKENS, shifted))

        assert abs(fixed.values[1, head, at] - slope(moved)) < CLOSE
        if kind == "q":  # each query has a row of its own
            assert np.abs(fixed.values.sum(axis=2) - whole.values).max() < 1e-10


def test_errors_of_the_estimates_are_of_second_order() -> None:
    """Halving the change of an activation divides the error by four."""
    model = random_model(KINDS["gpt2"])
    run, corrupt = Pass(model, np.array(TINY_TOKENS)), model.forward(OTHER)
    estimate = attribution_patching(model, TINY_TOKENS, OTHER, 3, 8, kind="z").values[0, 1]

    def error(t: float) -> float:
        def part(value: np.ndarray) -> np.ndarray:
            return value + t * (corrupt["z.0"][[1]] - value)

        return lead(run.edited({Hook("z.0", (1,)): part})) - lead(run.places) - t * estimate

    ratio = error(2**-6) / error(2**-7)
    assert 3.8 < ratio < 4.2


def test_estimates_are_exact_for_the_last_edges_of_a_model_without_norms() -> None:
    model = random_model(KINDS["attention only"])
    exact = edge_patching(model, TINY_TOKENS, OTHER, 3, 8)
    found = edge_attribution(model, TINY_TOKENS, OTHER, 3, 8)
    for name in ("embed", "head_out.0[1]", "head_out.1[2]"):
        at = {"sender": name, "receiver": "final"}
        assert abs(exact.at(**at).values - found.at(**at).values) < 1e-10
    values = edge_patching(model, TINY_TOKENS, OTHER, 3, 8, senders="head_out.0", receivers="v.1")
    linear = edge_attribution(model, TINY_TOKENS, OTHER, 3, 8)
    for sender in ("head_out.0[0]", "head_out.0[2]"):
        at = {"sender": sender, "receiver": "v.1[1]"}
        assert abs(values.at(**at).values - linear.at(**at).values) < 1e-10


def test_grad_drop_leaves_out_one_layer_at_a_time() -> None:
    """Of the stream before layer 1: the full derivative, and that past layer 1, both absolute."""
    model = random_model(KINDS["gpt2"])
    corrupt, clean = plain(model, OTHER), plain(model, TINY_TOKENS)
    asked = (model, TINY_TOKENS, OTHER, 3, 8)
    dropped = attribution_patching(*asked, kind="resid_pre", grad_drop=True).values[1]
    full = attribution_patching(*asked, kind="resid_pre").values[1]
    gaps = corrupt["resid_pre.1"] - clean["resid_pre.1"]

    def past(t: float) -> float:
        def edit(name: str, value: np.ndarray) -> np.ndarray:
            if name == "final":
                value[5] = value[5] + t * gaps[5]
            return value

        return lead(plain(model, TINY_TOKENS, edit))

    assert abs(dropped[5] - abs(full[5]) - abs(slope(past))) < CLOSE
    assert np.abs(dropped[:5] - np.abs(full[:5])).max() < 1e-10  # no other row is read past it


def test_importance_of_routes_is_the_proximity_of_terms() -> None:
    model = random_model(KINDS["gpt2"])
    places = plain(model, TINY_TOKENS)
    flow = information_flow(model, TINY_TOKENS)
    for layer, at in ((0, 3), (1, 5)):
        terms, keys = [places[f"resid_pre.{layer}"][at], model.part("b_O", layer)], []
        for head in range(4):
            for key in range(6):
                weight = places[f"pattern.{layer}"][head, at, key]
                value = places[f"v.{layer}"][head, key]
                terms.append(weight * (value @ model.W_O[layer, head]))
                keys.append((head, key))
        whole = sum(terms)
        assert np.abs(whole - places[f"resid_mid.{layer}"][at]).max() < 1e-10
        near = [max(0.0, np.abs(whole).sum() - np.abs(whole - each).sum()) for each in terms]
        assert abs(flow.past_attention[layer, at] - near[0] / sum(near)) < 1e-10
        for (head, key), share in zip(keys, near[2:], strict=True):
            assert abs(flow.heads[layer, head, at, key] - share / sum(near)) < 1e-10
    everything = flow.routes(0.0)
    assert {route.layer for route in everything} == {0, 1}
    assert all(route.source <= route.position for route in everything)
    assert set(flow.routes(0.05)) < set(everything)
    with pytest.raises(OtimesError, match="threshold must be a number from 0 to below 1, got 2"):
        flow.routes(2)


def test_wrong_arguments_are_refused_in_a_sentence() -> None:
    model = random_model(KINDS["gpt2"])
    asked = (model, TINY_TOKENS, OTHER, 3)
    with pytest.raises(OtimesError, match=r"kind must be .* that has a gradient, .* got 'scores'"):
        attribution_patching(*asked, kind="scores")
    with pytest.raises(OtimesError, match="qk_fix is for the kinds 'q' and 'k', and the kind is"):
        attribution_patching(*asked, kind="v", qk_fix=True)
    with pytest.raises(OtimesError, match="n_steps must be a non-negative integer, got -1"):
        edge_attribution(*asked, n_steps=-1)
    with pytest.raises(OtimesError, match=r"kind must be a hook point .* got 'z\.0'"):
        activation_patching(*asked, kind="z.0")
