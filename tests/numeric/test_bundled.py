"""The bundled models are what their cards say, and can do what they are here for."""

import json
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from otimes.numeric.load import bundled_models, load_model
from otimes.numeric.metrics import losses, prefix_matching_score, repeated_prompts
from otimes.numeric.model_card import figures
from otimes.numeric.tokenizer import BUNDLED, load_tokenizer, sample_tokens

# The depth of each and where its positions enter, in reading order.
KINDS = {
    "zero_layer": (0, "none"),
    "one_layer": (1, "shortformer"),
    "two_layer": (2, "shortformer"),
    "induction": (2, "shortformer"),
    "gpt2_tiny": (4, "learned"),
    "llama_tiny": (2, "rotary"),
}
NAMES = tuple(KINDS)
every_model = pytest.mark.parametrize("name", NAMES)

load = cache(load_model)


def test_they_are_there_in_reading_order() -> None:
    assert bundled_models() == NAMES


def test_they_are_small_together() -> None:
    assert sum(path.stat().st_size for path in BUNDLED.rglob("*.safetensors")) < 14_000_000


@every_model
def test_sizes(name: str) -> None:
    model = load(name)
    assert model.name == name
    assert (model.n_layers, model.positions) == KINDS[name]
    assert (model.n_heads, model.d_model, model.d_head, model.n_ctx) == (4, 128, 32, 128)
    assert model.d_vocab == load_tokenizer().d_vocab


@every_model
def test_the_sample_goes_through(name: str) -> None:
    logits = load(name).forward(sample_tokens())["logits"]
    assert logits.shape == (len(sample_tokens()), 1024)
    assert np.isfinite(logits).all()


@every_model
def test_the_card_is_reproduced_by_the_weights(name: str) -> None:
    """To the last of the four places that it prints, give or take the rounding of the last."""
    model = load(name)
    found = figures(model)
    for key, value in found["losses_nats"].items():
        assert value == pytest.approx(model.card["losses_nats"][key], abs=1.01e-4), key
    for key, rows in found["scores"].items():
        assert np.shape(rows) == np.shape(model.card["scores"][key]), key
        assert np.allclose(rows, model.card["scores"][key], rtol=0, atol=1.01e-4), key


@every_model
def test_the_card_describes_the_files(name: str) -> None:
    model = load(name)
    card = model.card
    assert card["name"] == name
    assert card["parameters"] == sum(
        math.prod(shape) for shape in model.config.tensor_shapes().values()
    )
    assert card["weights_bytes"] == (BUNDLED / name / "weights.safetensors").stat().st_size
    assert card["train_again"] == f"otimes train {name}"
    assert set(card["data"]) == {
        "text", "python", "files", "bytes", "sha256", "train_tokens", "held_out_tokens", "held_out",
    }  # fmt: skip


@every_model
def test_the_card_is_of_today_s_recipe(name: str) -> None:
    """Whoever changes a recipe trains again."""
    from dataclasses import asdict

    from otimes.numeric.training import RECIPES

    settings = asdict(RECIPES[name])
    del settings["config"]
    assert load(name).config == RECIPES[name].config
    assert load(name).card["settings"] == json.loads(json.dumps(settings))
    assert load(name).card["steps"] == RECIPES[name].steps


@every_model
def test_a_card_tells_nothing_about_the_machine_it_was_made_on(name: str) -> None:
    card = (BUNDLED / name / "card.json").read_text()
    assert not re.search(r"/(home|root|tmp|usr|work)\b|\b20\d\d-\d\d|@", card)
    assert str(Path.home()) not in card


def test_each_layer_helps() -> None:
    """The bigram model is near the entropy it is bound by, and each attention layer gains on it."""
    zero, one, two = (load(name).card["losses_nats"] for name in NAMES[:3])
    assert abs(zero["train"] - zero["bigram_entropy_of_train"]) < 0.15
    assert zero["held_out"] - one["held_out"] > 0.1
    assert one["held_out"] - two["held_out"] > 0.05
    for name in NAMES:
        card = load(name).card["losses_nats"]
        assert card["held_out"] < card["uniform_guess"] - 2


def test_the_model_of_llama_s_architecture_has_all_its_parts() -> None:
    config = load("llama_tiny").config
    assert (config.norm, config.gated, config.activation) == ("rms", True, "silu")
    assert (config.kv_heads, config.d_mlp, config.rotary_dims) == (2, 384, 32)
    assert (config.tied, config.biases, config.rotary_stretch) == (True, (), ())


def test_the_induction_model_has_induction_heads() -> None:
    scores = load("induction").card["scores"]
    assert max(scores["previous_token"][0]) > 0.5
    assert max(scores["prefix_matching"][1]) > 0.5
    inducing = [head for head in range(4) if scores["prefix_matching"][1][head] > 0.5]
    assert all(scores["copying"][1][head] > 0.9 for head in inducing)
    loss = load("induction").card["losses_nats"]
    assert loss["random_tokens_first_time"] > loss["uniform_guess"]
    assert loss["random_tokens_repeated"] < 1


def test_induction_works_on_other_random_tokens_and_needs_both_layers() -> None:
    """The card's prompts are not special, and without its first layer the second finds nothing."""
    model = load("induction")
    prompts = repeated_prompts(1024, period=25, n_prompts=4, seed=7)
    assert prefix_matching_score(model, prompts)[1].max() > 0.5
    W_O = model.W_O.copy()
    W_O[0] = 0
    without = model.changed({"W_O": W_O})
    assert prefix_matching_score(without, prompts)[1].max() < 0.2


def test_induction_helps_on_the_sample_s_repetition() -> None:
    """`volume` repeats much of `area`: its second half is easier than its first."""
    by_token = losses(load("induction"), sample_tokens())
    assert by_token[50:].mean() < by_token[:50].mean()
