"""Circuits behind norms of queries, keys and latents: a forward pass, up to frozen scales."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import otimes as ot
from otimes.numeric.rounding import gamma
from tests.numeric.random_models import KINDS as KINDS_OF_ALL
from tests.numeric.random_models import MODERN, TINY_TOKENS, random_model

# A score is rounded in two products of 9 terms, one of 6, two norms, a rotation and a scale, fewer
# than 50 times in a row; so is the circuit's. A mean that is subtracted at most doubles what it is
# subtracted from. The sizes below are those of the terms, without their signs.
ROUNDINGS = gamma(2 * 2 * 50, 2.0**-53)

KINDS = {
    "qwen3": MODERN["qwen3"],
    "one norm for all heads": replace(MODERN["qwen3"], qk_norm="all"),
    "layer norms": replace(MODERN["layer norms of queries, parallel"], norm_order="pre"),
    "a layer norm for each head": replace(
        MODERN["layer norms of queries, parallel"], norm_order="pre", qk_norm="head"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_circuit_over_frozen_scales(kind: str) -> None:
    model = random_model(KINDS[kind], seed=1).fold_norms()
    biases = {"b_Q", "b_K", "b_V"} & {*model.weights}  # a circuit is without them
    model = model.changed({name: np.zeros_like(model.weights[name]) for name in biases})
    config = model.config
    places = model.forward(TINY_TOKENS)
    rows, layer, head = places["ln1.1"], 1, 2
    for key in (0, 3):
        for query in (3, 4):
            distance = query - key if config.positions == "rotary" else None
            scale = config.score_scale
            for letter, position in (("Q", query), ("K", key)):
                every = np.stack([rows[position] @ W for W in getattr(model, f"W_{letter}")[layer]])
                read = every if config.qk_norm == "all" else every[head]
                read = read - read.mean() if config.norm == "layer" else read
                scale /= np.sqrt((read**2).mean() + config.norm_eps)
            circuit = ot.qk_circuit(model, layer, head, distance=distance)
            expected = rows[query] @ circuit.left @ (circuit.right @ rows[key]) * scale
            if config.positions == "alibi":
                expected -= config.alibi_slopes[head] * (query - key)
            left, right = np.abs(circuit.left), np.abs(circuit.right)
            size = np.abs(rows[query]) @ left @ (right @ np.abs(rows[key])) * scale + abs(expected)
            assert abs(places["scores.1"][head, query, key] - expected) <= ROUNDINGS * size


@pytest.mark.parametrize("kind", ["deepseek", "latents of keys only"])
def test_what_a_head_writes_is_its_ov_circuit_over_the_scale_of_the_latent(kind: str) -> None:
    model = random_model(MODERN[kind], seed=1).fold_norms()
    places = model.forward(TINY_TOKENS)
    rows = places["ln1.1"]
    latent = rows @ model.W_DKV[1]
    scale = np.sqrt((latent**2).mean(axis=1, keepdims=True) + model.config.latent_eps)
    circuit = ot.ov_circuit(model, 1, 2)
    written = places["pattern.1"][2] @ (rows @ circuit.left @ circuit.right / scale)
    assert np.abs(written - places["head_out.1"][2]).max() < 1e-12


@pytest.mark.parametrize("kind", ["deepseek", "latents of keys only"])
def test_scores_of_latents_are_two_circuits_of_which_one_is_scaled(kind: str) -> None:
    model = random_model(MODERN[kind], seed=1).fold_norms()
    places, layer, head = model.forward(TINY_TOKENS), 1, 2
    rows = places["ln1.1"]

    def sizes(weight: np.ndarray) -> np.ndarray:
        return np.sqrt(((rows @ weight) ** 2).mean(axis=1) + model.config.latent_eps)

    of_keys = sizes(model.W_DKV[layer])
    of_queries = sizes(model.W_DQ[layer]) if model.config.q_rank else np.ones(len(rows))
    own = ot.qk_circuit(model, layer, head, part="latent")
    for key in (0, 3):
        for query in (3, 4):
            turned = ot.qk_circuit(model, layer, head, distance=query - key, part="rotary")
            of_own = rows[query] @ own.dense() @ rows[key] / of_keys[key]
            both = of_own + rows[query] @ turned.dense() @ rows[key]
            expected = both / of_queries[query] * model.config.score_scale
            parts = np.abs(own.dense()) / of_keys[key] + np.abs(turned.dense())
            size = np.abs(rows[query]) @ parts @ np.abs(rows[key])
            size *= model.config.score_scale / of_queries[query]
            assert abs(places["scores.1"][head, query, key] - expected) <= ROUNDINGS * size


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("deepseek", {"distance": 1}, "kv_rank=5"),
        ("deepseek", {"distance": 1, "part": "latent"}, "does not depend on the distance"),
        ("deepseek", {"part": "rotary"}, "distance=1"),
        ("llama", {"distance": 1, "part": "latent"}, "no latent attention"),
    ],
)
def test_a_circuit_of_latents_asked_wrongly(kind: str, options: dict, says: str) -> None:
    model = random_model({**KINDS_OF_ALL, **MODERN}[kind], seed=1).fold_norms()
    with pytest.raises(ot.OtimesError, match=says):
        ot.qk_circuit(model, 0, 0, **options)


@pytest.mark.parametrize(
    ("kind", "name", "setting"),
    [("deepseek", "ov_circuit", "kv_rank=5"), ("qwen3", "qk_circuit", "qk_norm='head'")],
)
def test_the_audit_of_such_a_circuit_is_refused_by_the_setting(
    kind: str, name: str, setting: str
) -> None:
    model = random_model(MODERN[kind], seed=1)
    with pytest.raises(ot.OtimesError, match=f"{setting}, which the forward pass and the audit"):
        ot.audit_analysis(name, np.eye(model.d_model), model, layer=0, head=0)
