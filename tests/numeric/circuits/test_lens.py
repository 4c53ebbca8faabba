"""The logit lens, bands of the spectrum, and what heads attend to."""

from dataclasses import replace

import numpy as np
import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.circuits.behaviour import duplicate_token_score, head_behaviour
from otimes.numeric.circuits.lens import band_energy, logit_lens, spectral_bands
from otimes.numeric.load import load_model
from otimes.numeric.metrics import repeated_prompts
from tests.numeric.circuits.plainly import MODELS, mul, near, table
from tests.numeric.loops import norm as norm_by_loops
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_the_last_row_is_the_model_s_own_logits_under_both_scales(kind: str) -> None:
    model = random_model(KINDS[kind])
    expected = model.forward(TINY_TOKENS)["logits"]
    for scale in ("own", "final"):
        found = logit_lens(model, TINY_TOKENS, scale, positions=slice(None))
        assert near(found.values[-1], expected, 1e-13)
        assert near(logit_lens(model, TINY_TOKENS, scale).values[-1], expected[-1:], 1e-13)
        assert near(
            logit_lens(model, TINY_TOKENS, scale, [2, 0]).values[-1], expected[[2, 0]], 1e-13
        )


@every_kind
def test_the_own_scale_is_the_norm_of_each_stream(kind: str) -> None:
    model = random_model(KINDS[kind])
    if not model.n_layers:
        return
    places = model.forward(TINY_TOKENS)
    c = model.config
    rows = places["resid_pre.1"].tolist()
    if c.final_norm:
        gain, bias = model.part("ln_final_gain").tolist(), model.part("ln_final_bias").tolist()
        rows = [norm_by_loops(c, row, gain, bias) for row in rows]
    expected = np.array(mul(rows, table(model, "W_U"))) + model.b_U
    found = logit_lens(model, TINY_TOKENS, "own", positions=slice(None)).values[1]
    assert near(found, expected)


def test_only_with_the_final_scale_the_rows_add_up() -> None:
    """ℓ(l + 1) − ℓ(l) is what layer l wrote, times gain, over the last scale, times W_U."""
    model = random_model(KINDS["gpt2"])
    places = model.forward(TINY_TOKENS)
    wrote = places["resid_post.0"] - places["resid_pre.0"]
    last = places["final"]
    scale = np.sqrt(last.var(axis=1, keepdims=True) + model.config.norm_eps)
    C = wrote - wrote.mean(axis=1, keepdims=True)
    expected = (C / scale * model.ln_final_gain) @ model.W_U
    final, own = (
        logit_lens(model, TINY_TOKENS, scale, slice(None)).values for scale in ("final", "own")
    )
    assert near(final[1] - final[0], expected)
    assert not near(own[1] - own[0], expected, 1e-2)


def test_a_lens_says_which_scale_it_took() -> None:
    gpt2 = random_model(KINDS["gpt2"])
    assert "final" in logit_lens(gpt2, TINY_TOKENS).about
    assert "own" in logit_lens(gpt2, TINY_TOKENS, "own").about
    assert logit_lens(random_model(KINDS["attention only"]), TINY_TOKENS).about == "no norm"
    with pytest.raises(
        OtimesError,
        match=r"scale must be 'final' \(of the final residual stream\) or 'own' \(of each",
    ):
        logit_lens(gpt2, TINY_TOKENS, "raw")


def test_text_is_a_prompt() -> None:
    model = load_model("two_layer")
    best, _ = logit_lens(model, "def f(self").at(activation="final", position=0).top(1)[0]
    assert isinstance(best["token"], str)


@pytest.mark.parametrize("n_bands", [1, 2, 5])
def test_bands_make_up_the_whole_and_are_those_of_the_logits(n_bands: int) -> None:
    model = MODELS["attention only"]
    bands = spectral_bands(model, n_bands, block_bytes=1)
    rows = np.random.default_rng(0).standard_normal((4, model.d_model))
    parts = [bands.keep(rows, b) for b in range(n_bands)]
    assert near(sum(parts), rows, 1e-13)
    assert near(bands.energy(rows).sum(axis=1), np.ones(4), 1e-13)
    U, S, Vh = np.linalg.svd(model.W_U, full_matrices=False)
    assert near(bands.S, S, 1e-13)
    for b, part in enumerate(parts):
        of = slice(bands.edges[b], bands.edges[b + 1])
        assert near(part @ model.W_U, rows @ model.W_U @ Vh[of].T @ Vh[of])
        # What is kept and what is not make up the row, to roundings of the row.
        kept = rows @ U[:, of] @ U[:, of].T
        assert np.abs(bands.suppress(rows, b) - (rows - kept)).max() < 1e-13 * np.abs(rows).max()
        share = (part**2).sum(axis=1) / (rows**2).sum(axis=1)
        assert near(bands.energy(rows)[:, b], share)


def test_directions_that_no_token_hears_are_a_band_too() -> None:
    """With fewer tokens than directions the rest of the stream is still there."""
    small = random_model(replace(KINDS["attention only"], d_vocab=3))
    bands = spectral_bands(small, 5)
    rows = np.random.default_rng(0).standard_normal((2, 5))
    assert near(sum(bands.keep(rows, b) for b in range(5)), rows, 1e-13)
    assert (bands.S[3:] == 0).all()
    assert np.abs(bands.keep(rows, 4) @ small.W_U).max() < 1e-14


def test_band_energy_and_wrong_bands() -> None:
    found = band_energy(load_model("one_layer"), "x = [1, 2]", 4)
    assert near(found.values.sum(axis=-1), np.ones(found.values.shape[:2]), 1e-12)
    bands = spectral_bands(MODELS["attention only"], 2)
    with pytest.raises(OtimesError, match="band 2 is out of range: there are 2 bands from 0"):
        bands.keep(np.ones((1, 5)), 2)
    with pytest.raises(OtimesError, match="n_bands must be from 1 to d_model=5, got 6"):
        spectral_bands(MODELS["attention only"], 6)


def test_the_duplicate_token_score_by_loops() -> None:
    model = random_model(KINDS["attention only"])
    prompts = np.array([[3, 0, 10, 3, 7, 7], [1, 1, 1, 2, 3, 4]])
    total, count = np.zeros((2, 3)), 0
    for prompt in prompts.tolist():
        places = model.forward(prompt)
        for i, token in enumerate(prompt):
            earlier = [j for j in range(i) if prompt[j] == token]
            count += bool(earlier)
            for layer in range(2):
                for head in range(3):
                    total[layer, head] += sum(
                        places[f"pattern.{layer}"][head][i][j] for j in earlier
                    )
    assert count == 4
    assert near(duplicate_token_score(model, prompts), total / count)
    assert np.isnan(duplicate_token_score(model, np.array([[1, 2, 3]]))).all()


def test_behaviour_of_the_induction_model() -> None:
    model = load_model("induction")
    found = head_behaviour(model, repeated_prompts(model.d_vocab, period=25, n_prompts=4))
    assert found.at(score="previous token").values[0].max() > 0.8
    assert found.at(score="prefix matching").values[1].min() > 0.5
    assert found.at(score="duplicate token").values.max() < 0.2
