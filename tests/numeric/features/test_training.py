"""Training of sparse autoencoders: short runs on a small text."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.corpus import Source
from otimes.numeric.features.sae import load_sae
from otimes.numeric.features.training import RECIPES, Trainer, train_sae

TEXT = tuple(f"def f(x):\n    return x + {k}\n" * 40 for k in range(40))
SOURCE = Source(TEXT, sum(map(len, TEXT)), "")
SHORT = {"d_sae": 64, "steps": 30, "batch": 64, "windows": 6, "warm_up_steps": 1}


@pytest.mark.parametrize("variant", RECIPES)
def test_the_loss_falls_and_decoder_rows_have_norm_one(variant: str) -> None:
    """On planted data: sparse nonnegative sums of a few directions."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.standard_normal((16, 16)))[0]
    sparse = rng.random((2000, 16)) * (rng.random((2000, 16)) < 0.15)
    x = (sparse @ directions * 4).astype(np.float32)
    recipe = replace(RECIPES[variant], **SHORT, k=4, learning_rate=1e-2)
    trainer = Trainer(x, x, recipe, np.random.default_rng(1))
    losses = [trainer.step(number) for number in range(recipe.steps)]
    assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:2])
    assert np.allclose(np.linalg.norm(trainer.arrays()["W_dec"], axis=1), 1, atol=1e-5)


def test_a_run_is_saved_and_repeats(tmp_path: Path) -> None:
    recipe = replace(RECIPES["topk"], **SHORT)
    once = train_sae("one_layer", "resid_post.0", tmp_path / "a", recipe=recipe, source=SOURCE)
    again = train_sae("one_layer", "resid_post.0", recipe=recipe, source=SOURCE)
    saved = load_sae(tmp_path / "a")
    for name, array in once.arrays().items():
        assert np.array_equal(array, again.arrays()[name])
        assert np.array_equal(saved.arrays()[name], array.astype(np.float32))
    assert once.card["held_out"] == again.card["held_out"]


def test_a_transcoder_reads_one_activation_and_writes_another() -> None:
    recipe = replace(RECIPES["relu"], **SHORT)
    found = train_sae(
        "gpt2_tiny", "ln2.1", output="mlp_out.1", recipe=recipe, source=SOURCE, seed=2
    )
    assert repr(found) == (
        "<relu transcoder of 64 features, ln2.1 → mlp_out.1 of gpt2_tiny, d_in=128>"
    )


def test_what_cannot_be_trained_is_refused_first(tmp_path: Path) -> None:
    with pytest.raises(OtimesError, match="one_layer has no activation 'resid'; it has embed"):
        train_sae("one_layer", "resid")
    with pytest.raises(OtimesError, match=r"pattern.0 has the shape \(4, 2, 2\)"):
        train_sae("one_layer", "pattern.0")
    with pytest.raises(OtimesError, match="unknown variant 'swish'"):
        train_sae("one_layer", "resid_post.0", recipe="swish")
    (tmp_path / "file").write_text("")
    with pytest.raises(OtimesError, match="cannot write"):
        train_sae("one_layer", "resid_post.0", tmp_path / "file")
