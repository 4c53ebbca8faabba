"""Latent attention: the same in torch passes, mistakes are named, and each mistake can be made."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import otimes as ot
from otimes.numeric.audit.mistakes.registry import known_mistakes
from otimes.numeric.audit.reference.evaluator import Evaluator
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.test_experts import TOKENS, implementation

KINDS = {
    "deepseek 2": {"kind": "deepseek2"},
    "deepseek 3, one prompt position": {
        "kind": "deepseek3",
        "attn_scale": 0.5,
        "n_layers": 1,
        "dense_layers": (),
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_in_torch_passes(kind: str) -> None:
    model = random_model(**KINDS[kind])
    report = ot.audit(implementation(model, {}, {}, True), TOKENS, weights=model)
    assert report.passed, str(report)


WRONG = {
    "another scale": ({"attn_scale": 6**-0.5}, {}, "the width without rotary positions"),
    "no rotary part": ({}, {"W_KR": torch.zeros_like}, "without the rotary part that all heads"),
    "no gain": ({}, {"kv_latent_gain": torch.ones_like}, "normalised without its gain"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_found_and_named(mistake: str) -> None:
    changes, weights, words = WRONG[mistake]
    model = random_model(
        kind="deepseek3", attn_scale=0.5, n_layers=1, n_experts=0, d_mlp=20, **PLAIN
    )
    report = ot.audit(implementation(model, changes, weights, True), TOKENS, weights=model)
    assert not report.passed
    assert words in str(report)


PLAIN = {
    **dict.fromkeys(("experts_per_token", "d_shared"), 0),
    **dict.fromkeys(("router_groups", "dense_layers", "biases"), ()),
    "router": "chosen",
    "router_scale": 1.0,
}


def test_a_latent_without_its_norm_is_the_projection() -> None:
    model = random_model(kind="deepseek3", n_layers=1, dense_layers=())
    tokens = np.array(TOKENS)
    said = "the latent of keys and values without its norm, and without its gain"
    (mistake,) = (each for each in known_mistakes(model.config) if each.says == said)
    made = Evaluator(model, tokens, {}, mistakes=(mistake,)).near("kv_latent.0").value
    right = model.forward(tokens)["ln1.0"] @ model.W_DKV[0]
    assert np.abs(made - right).max() < 1e-13  # another order of d_model terms of order one


def test_each_mistake_can_be_made() -> None:
    model = random_model(kind="deepseek3", n_layers=1, dense_layers=())
    right = Evaluator(model, np.array(TOKENS[:4]), {})
    for mistake in known_mistakes(model.config):
        right.with_mistake(mistake).near("logits")


def test_scores_are_those_of_latents_and_of_a_rotary_part() -> None:
    model = random_model(kind="deepseek3")
    at = model.forward(TOKENS)
    dims = model.config.rotary_dims
    between = np.einsum("hik,hjk->hij", model.W_Q[1][..., dims:], model.W_K[1])
    own = at["q_latent.1"] @ between @ at["kv_latent.1"].T
    turned = at["q.1"][..., :dims] @ at["k.1"][..., :dims].swapaxes(1, 2)
    scores = (own + turned) * model.config.score_scale
    assert np.abs(scores - at["scores.1"]).max() < 1e-12
    assert all(np.array_equal(at["k.1"][0, :, :dims], k[:, :dims]) for k in at["k.1"])
