"""Mistakes in where the norms stand: what the reference makes of them is what such a model is."""

from dataclasses import replace

import numpy as np
import pytest

import otimes as ot
from otimes.numeric.audit.mistakes.registry import known_mistakes
from otimes.numeric.audit.reference.evaluator import Evaluator
from otimes.numeric.model import make_model
from otimes.numeric.random_weights import random_model
from tests.numeric.random_models import KINDS, POST_NORM, TINY_TOKENS

TURNED = {
    **POST_NORM,
    **{k: c for k, c in KINDS.items() if c.norm != "none" and c.n_layers and not c.parallel},
}
TOKENS = np.array(TINY_TOKENS)


@pytest.mark.parametrize("kind", TURNED)
def test_the_other_order_is_the_pass_of_the_other_model(kind: str) -> None:
    model = random_model(TURNED[kind])
    before = model.config.norm_order == "pre"
    other = replace(model.config, norm_order="post" if before else "pre")
    right = model.changed({}, other).forward(TOKENS)
    other_order = "post-norm for pre-norm" if before else "pre-norm for post-norm"
    for mistake in known_mistakes(model.config):
        if mistake.says.startswith(other_order):
            wrong = Evaluator(model, TOKENS, {}, mistakes=(mistake,))
            for place in ("q.1", "z.1", "mlp_post.1", "logits"):
                if place in right:
                    # Other orders of a few hundred roundings, of numbers of order one.
                    assert np.abs(wrong.near(place).value - right[place]).max() < 1e-11, place
    assert np.abs(model.forward(TOKENS)["logits"] - right["logits"]).max() > 1e-3


@pytest.mark.parametrize("kind", ["olmo2", "mixtral"])
def test_norms_before_for_norms_of_outputs_are_the_pass_of_the_other_model(kind: str) -> None:
    model = ot.random_model(kind=kind, norm_order="output")
    gains = {f"{norm}_gain": model.weights[f"{norm}_post_gain"] for norm in ("ln1", "ln2")}
    config = replace(model.config, norm_order="pre")
    kept = {name: model.weights[name] for name in config.tensor_shapes() if name not in gains}
    right = make_model("other", config, {**kept, **gains}).forward(TOKENS)
    for mistake in known_mistakes(model.config):
        if mistake.says.endswith("attention and the MLP read norms"):
            wrong = Evaluator(model, TOKENS, {}, mistakes=(mistake,))
            for place in ("q.1", "z.1", "mlp_post.1", "logits"):
                assert np.abs(wrong.near(place).value - right[place]).max() < 1e-11, place
            break
    else:
        raise AssertionError("there is no such mistake")


@pytest.mark.parametrize("kind", {**KINDS, **POST_NORM})
def test_no_two_mistakes_have_one_description(kind: str) -> None:
    """What looks ahead is remembered by it, and a fit is named once."""
    said = [mistake.says for mistake in known_mistakes({**KINDS, **POST_NORM}[kind])]
    assert len(said) == len({*said})


@pytest.mark.parametrize("kind", POST_NORM)
def test_every_mistake_can_be_made_where_nothing_is_shown(kind: str) -> None:
    """None reads a place that is computed from its own."""
    model = random_model(POST_NORM[kind])
    right = model.forward(TOKENS)["logits"]
    for mistake in known_mistakes(model.config):
        made = Evaluator(model, TOKENS, {}, mistakes=(mistake,))
        assert made.near("logits").value.shape == right.shape, mistake.says
