"""Experts: choices too close to call, and mistakes of routers that are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import otimes as ot
from otimes.numeric.audit.mistakes.registry import known_mistakes
from otimes.numeric.audit.reference.evaluator import Evaluator
from otimes.numeric.config import Config
from otimes.numeric.experts import by_expert, by_neuron, routing, routing_back
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.rounding.activations import LocalBounds
from otimes.numeric.torch_model import TorchModel

TOKENS = [5, 1, 9, 60, 33, 2, 2, 17, 41, 8, 25, 7]
DEEPSEEK = {
    "kind": "mixtral",
    "n_experts": 6,
    "experts_per_token": 2,
    "d_mlp": 6 * 8 + 10,
    "d_shared": 10,
    "router": "sigmoid",
    "router_scale": 2.5,
    "router_groups": (3, 2, 2),
    "biases": ("b_choice",),
}


def implementation(model: Model, changes: dict, weights: dict, places: bool):
    """Torch's own code for a model with other settings or weights."""
    given = {name: torch.tensor(np.asarray(each)) for name, each in model.weights.items()}
    module = TorchModel(
        replace(model.config, **changes), {**given, **{k: f(given[k]) for k, f in weights.items()}}
    )

    def call(tokens):
        record: dict = {}
        with torch.no_grad():
            logits = module(torch.as_tensor(np.asarray(tokens)).reshape(1, -1), record)
        shown = ("routing", "routed", "mlp_out", "resid_mid", "resid_post", "mlp_post")
        kept = {k: v for k, v in record.items() if k.startswith(shown)} if places else {}
        return logits, kept

    return call


RIGHT = {"mixtral": {"kind": "mixtral"}, "qwen": {"kind": "qwen2_moe"}, "oss": {"kind": "gpt_oss"},
         "deepseek": DEEPSEEK, "deepseek 3": {"kind": "deepseek3"}}  # fmt: skip
WRONG = {
    "a softmax of all": ("mixtral", {"router": "all"}, {}, "not divided by the sum of the chosen"),
    "a softmax of the chosen": ("qwen", {"router": "chosen"}, {}, "softmax of the chosen logits"),
    "one expert": ("mixtral", {"experts_per_token": 1}, {}, "1 experts for each token, and not 2"),
    "no factor": ("deepseek", {"router_scale": 1.0}, {}, "the factor 2.5 of the weights left out"),
    "no groups": ("deepseek", {"router_groups": ()}, {}, "experts chosen among all groups"),
    "no bias of the choice": (
        "deepseek", {}, {"b_choice": torch.zeros_like}, "the bias of the choice left out"),
    "no output biases": ("oss", {}, {"b_experts": torch.zeros_like}, "output biases of experts"),
    "no bias of the router": ("oss", {}, {"b_router": torch.zeros_like}, "bias of the router left"),
    "no limit": ("oss", {"gate_limit": 0.0}, {}, "neither limits of 2 nor 1 added"),
}  # fmt: skip


@pytest.mark.parametrize("kind", RIGHT)
def test_the_same_in_torch_passes(kind: str) -> None:
    model = random_model(**RIGHT[kind])
    for places in (True, False):
        report = ot.audit(implementation(model, {}, {}, places), TOKENS, weights=model)
        assert report.passed, str(report)


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_found_and_named(mistake: str) -> None:
    kind, changes, weights, words = WRONG[mistake]
    model = random_model(**RIGHT[kind])
    report = ot.audit(implementation(model, changes, weights, True), TOKENS, weights=model)
    assert not report.passed
    assert words in str(report)


@pytest.mark.parametrize(
    ("kind", "stored", "words"),
    [
        ("oss", "alternate", "read from the halves of a fused matrix whose columns alternate"),
        ("qwen", "halves", "read from alternate columns of a fused matrix, and not its halves"),
    ],
)
def test_a_fused_matrix_that_is_read_otherwise_is_named(kind: str, stored: str, words: str) -> None:
    model = random_model(**RIGHT[kind])
    config = model.config
    sizes = [(config.d_mlp - config.d_shared) // config.n_experts] * config.n_experts
    sizes += [config.d_shared] if config.d_shared else []
    wrong = {}
    for letter in ("W", "b") if config.has("b_gate") else ("W",):
        gate, up = (np.array(getattr(model, f"{letter}_{name}")) for name in ("gate", "in"))
        other_gate, other_up, start = gate.copy(), up.copy(), 0
        for size in sizes:
            for column in range(size):
                for target, place in ((other_gate, column), (other_up, column + size)):
                    if stored == "halves":  # and read alternately
                        place = 2 * column + (target is other_up)
                        source = (gate, up)[place >= size]
                        place %= size
                    else:
                        source, place = (gate, up)[place % 2], place // 2
                    target[..., start + column] = source[..., start + place]
            start += size
        wrong |= {f"{letter}_gate": other_gate, f"{letter}_in": other_up}
    report = ot.audit(model.changed(wrong, config), TOKENS, weights=model)
    assert words in report.first_failure.diagnosis, str(report)


def test_chosen_experts_that_exchange_or_overwrite_are_those_of_plain_loops() -> None:
    model, tokens = random_model(kind="mixtral"), np.array([3, 1, 4, 1, 5, 9])
    right = Evaluator(model, tokens, {}).near("routing.0").value
    exchanged, last = np.zeros_like(right), np.zeros_like(right)
    for row, weights in enumerate(right):
        one, two = (int(each) for each in np.flatnonzero(weights))
        exchanged[row, one], exchanged[row, two] = weights[two], weights[one]
        last[row, two] = weights[two]
    known = {mistake.says: mistake for mistake in known_mistakes(model.config)}
    for says, wrong in (
        ("chosen experts with each other's weights, in reverse order", exchanged),
        ("the output of the last expert of a token overwrites that of the others", last),
    ):
        made = Evaluator(model, tokens, {}, mistakes=[known[says]]).near("routing.0")
        assert np.array_equal(made.value, wrong), says


def test_a_choice_that_is_too_close_has_no_sharp_bound() -> None:
    model = random_model(kind="mixtral")
    logits = np.zeros((2, 4))
    logits[0] = [1.0, 0.5, 0.5 + 1e-9, 0.0]
    logits[1] = [1.0, 0.4, 0.5, 0.0]
    judged = LocalBounds(model, "float32").place("routing.0", {"router.0": logits})
    assert (judged.bound[0] >= 1).all()
    assert (judged.bound[1] < 1e-5).all()


@pytest.mark.parametrize("kind", RIGHT)
def test_the_adjoint_of_the_router_is_its_derivative(kind: str) -> None:
    model = random_model(**RIGHT[kind])
    config: Config = model.config.of_layer(1)
    rng = np.random.default_rng(0)
    logits, bias = (
        rng.standard_normal((7, config.n_routed)),
        0.1 * rng.standard_normal(config.n_experts),
    )
    value = routing(config, logits, bias)
    gradient, move = rng.standard_normal(value.shape), 1e-6 * rng.standard_normal(logits.shape)
    ahead, behind = (routing(config, logits + s * move, bias) for s in (1, -1))
    slope = ((ahead - behind) * gradient).sum() / 2
    assert abs(slope - (routing_back(config, logits, bias, gradient) * move).sum()) < 1e-12
    neurons = rng.standard_normal((7, config.d_mlp))
    both = (by_neuron(config, value) * neurons).sum(), (value * by_expert(config, neurons)).sum()
    assert abs(both[0] - both[1]) < 1e-12


def test_the_catalogue_s_identities_on_a_pass() -> None:
    places = random_model(kind="mixtral").forward(TOKENS)
    raised = np.exp(places["router.1"])
    chosen = places["routing.1"] > 0
    kept = np.where(chosen, raised / raised.sum(axis=1, keepdims=True), 0.0)
    assert chosen.sum() == 2 * len(TOKENS)
    assert np.allclose(kept / kept.sum(axis=1, keepdims=True), places["routing.1"], atol=1e-14)
    model = random_model(kind="mixtral")
    parts = np.split(places["mlp_post.1"], 4, axis=1), np.split(model.W_out[1], 4)
    by_hand = sum(places["routing.1"][:, [e]] * (parts[0][e] @ parts[1][e]) for e in range(4))
    assert np.allclose(by_hand, places["mlp_out.1"], atol=1e-13)
