"""Drawn models: of every kind, generic in every entry, the same for the same seed."""

from dataclasses import replace

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.config import gpt2_config, llama_config
from otimes.numeric.random_weights import KINDS as KINDS_BY_NAME
from otimes.numeric.random_weights import random_model
from tests.numeric.random_models import EVERY, FULL

DEEP = {
    "gpt2": gpt2_config(d_model=96, d_head=8, d_mlp=384, d_vocab=101, n_ctx=32),
    "llama": llama_config(
        n_layers=12, d_model=96, n_heads=8, n_kv_heads=2, d_head=12, rotary_dims=12, d_mlp=256,
        d_vocab=101, n_ctx=32,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_every_entry_of_every_tensor_is_its_own(kind: str) -> None:
    for name, weight in random_model(EVERY[kind]).weights.items():
        assert len(np.unique(weight)) == weight.size, name
        assert (weight != 0).all()
        assert name.endswith("_gain") or weight.size < 50 or abs(weight.mean()) < weight.std()


def test_gains_lie_around_one() -> None:
    model = random_model(gpt2_config(n_layers=1, d_vocab=50))
    assert abs(model.ln1_gain.mean() - 1) < 0.1
    assert 0.2 < model.ln1_gain.std() < 0.4


def test_the_seed_decides() -> None:
    first, again, other = (random_model(FULL, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.W_Q, again.W_Q)
    assert not np.array_equal(first.W_Q, other.W_Q)


def test_single_precision_is_the_same_model_rounded() -> None:
    single = random_model(FULL, dtype=np.float32)
    assert {weight.dtype for weight in single.weights.values()} == {np.dtype(np.float32)}
    assert np.array_equal(single.W_in, random_model(FULL).W_in.astype(np.float32))


def test_fields_say_what_differs() -> None:
    assert random_model(n_layers=1, norm="rms").config.norm == "rms"
    assert random_model(FULL, n_layers=1).config == replace(FULL, n_layers=1)
    with pytest.raises(OtimesError, match="no field depth and width; it has n_layers, n_heads, "):
        random_model(depth=3, width=2)
    with pytest.raises(OtimesError, match="d_mlp=4 needs an activation"):
        random_model(d_mlp=4)


@pytest.mark.parametrize("shape", DEEP)
def test_twelve_layers_stay_of_order_one(shape: str) -> None:
    places = random_model(DEEP[shape]).forward(np.arange(32))
    for layer in range(12):
        assert 0.3 < places[f"resid_post.{layer}"].std() < 3
        # Neither uniform (1/32) nor one-hot.
        assert 0.15 < places[f"pattern.{layer}"][:, 31].max(axis=1).mean() < 0.85


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_a_kind_has_logits_of_order_one(kind: str) -> None:
    """And patterns that are neither uniform nor a single key."""
    model = random_model(kind=kind, seed=3)
    places = model.forward(list(range(20)))
    assert 0.2 < np.abs(places["logits"]).mean() < 20
    largest = places["pattern.1"][:, 10:].max(axis=-1)
    assert 0.1 < largest.mean() < 0.98


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(OtimesError, match="kind='gemma9' must be one of gpt2, "):
        random_model(kind="gemma9")
