"""Training from end to end on a text of a page, a few steps; nothing here waits for it to learn."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import otimes.numeric.model
import otimes.numeric.tokenizer
import otimes.numeric.training
from otimes.algebra.errors import OtimesError
from otimes.numeric.config import Config, gpt2_config
from otimes.numeric.corpus import Source, encode_source, read_source, train_tokenizer
from otimes.numeric.load import load_model
from otimes.numeric.tokenizer import BUNDLED, load_tokenizer, sample_text
from otimes.numeric.training import (
    RECIPES,
    Phase,
    Recipe,
    bigram_entropy,
    draw_batch,
    even_windows,
    initial_weights,
    schedule,
    sinusoidal_positions,
    train,
)

SMALL = Recipe(
    Config(
        n_layers=1, n_heads=2, d_model=8, d_head=4, d_vocab=1024, n_ctx=16, positions="shortformer"
    ),
    (Phase(6, 8, repeated_fraction=1.0, periods=(2, 4)), Phase(4, 16, repeated_fraction=0.5)),
    batch=4,
    warm_up_steps=2,
)
PAGE = Source(texts=(sample_text(),) * 40, n_bytes=40 * len(sample_text()), sha256="of a page")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Such small products are slower on several threads, far slower on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small_train(folder: Path, seed: int = 0, **changes) -> Path:
    return train("small", folder, seed=seed, recipe=replace(SMALL, **changes), source=PAGE)


def test_a_run_leaves_a_model_with_its_card(tmp_path: Path) -> None:
    seen: list[tuple[int, int, float]] = []
    folder = train(
        "small",
        tmp_path,
        recipe=SMALL,
        source=PAGE,
        on_progress=lambda *report: seen.append(report),
    )
    model = load_model(folder)
    assert folder == tmp_path / "small"
    assert model.config == SMALL.config
    assert model.card["steps"] == 10
    assert model.card["settings"]["learning_rate"] == 2e-3
    assert model.card["data"]["files"] == 40
    assert model.card["data"]["sha256"] == "of a page"
    assert model.card["data"]["train_tokens"] == 38 * 101
    assert model.card["data"]["held_out_tokens"] == 2 * 101
    assert model.card["weights_bytes"] == (folder / "weights.safetensors").stat().st_size
    assert [report[:2] for report in seen] == [(10, 10)]
    # Untrained as good as: a uniform guess, 6.93 nats, within what random weights add.
    assert abs(seen[0][2] - 6.93) < 0.5
    assert sorted(path.name for path in folder.iterdir()) == [
        "card.json", "config.json", "weights.safetensors",
    ]  # fmt: skip


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    first, again, other = (
        (small_train(tmp_path / place, seed) / "weights.safetensors").read_bytes()
        for place, seed in (("first", 1), ("again", 1), ("other", 2))
    )
    assert first == again
    assert first != other


def test_every_weight_moves_and_the_loss_falls(tmp_path: Path) -> None:
    start = initial_weights(SMALL, np.random.default_rng(0))
    folder = small_train(tmp_path, phases=(Phase(30, 16),), learning_rate=2e-2)
    model = load_model(folder)
    for name, weight in start.items():
        assert not np.allclose(getattr(model, name), weight.numpy(), atol=1e-4), name
    assert model.card["losses_nats"]["held_out"] < 6.5


SMALL_GPT = replace(
    SMALL,
    config=gpt2_config(
        n_layers=2, n_heads=2, d_model=8, d_head=4, d_mlp=16, d_vocab=1024, n_ctx=16
    ),
    phases=(Phase(30, 16),),
    learning_rate=2e-2,
)


def test_a_gpt_learns_too_biases_and_gains_included(tmp_path: Path) -> None:
    model = load_model(train("gpt", tmp_path, recipe=SMALL_GPT, source=PAGE))
    start = initial_weights(SMALL_GPT, np.random.default_rng(0))
    assert set(start) == set(model.weights)
    for name, weight in start.items():
        # What a key bias adds to a row of scores no softmax sees: it is not learned.
        moved = np.abs(getattr(model, name) - weight.numpy()).max()
        assert moved > 1e-3 or name == "b_K", name
    assert model.card["losses_nats"]["held_out"] < 6.5
    assert model.card["what"] == (
        "transformer with MLPs, 2 layers, biases, LayerNorm, learned positions, tied embedding,"
        " trained from nothing on Python source"
    )


def test_a_gpt_starts_like_gpt2() -> None:
    weights = initial_weights(RECIPES["gpt2_tiny"], np.random.default_rng(0))
    assert (weights["ln1_gain"] == 1).all()
    assert not weights["b_in"].any()
    assert not weights["ln_final_bias"].any()
    assert weights["W_pos"].std().item() == pytest.approx(0.05, rel=0.05)
    # Smaller by √(2 · 4 layers) than 1/√fan-in, fan-in being 128 and 512.
    assert weights["W_O"].std().item() == pytest.approx((8 * 128) ** -0.5, rel=0.05)
    assert weights["W_out"].std().item() == pytest.approx((8 * 512) ** -0.5, rel=0.05)


@pytest.mark.parametrize("name", RECIPES)
def test_a_bundled_model_is_small(name: str) -> None:
    shapes = RECIPES[name].config.tensor_shapes().values()
    assert 4 * sum(int(np.prod(shape)) for shape in shapes) < 4_000_000


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_two_runs_on_a_cuda_device_agree(tmp_path: Path) -> None:
    first, again = (
        train("gpt", tmp_path / place, recipe=SMALL_GPT, source=PAGE, device="cuda")
        for place in ("first", "again")
    )
    files = [(folder / "weights.safetensors").read_bytes() for folder in (first, again)]
    assert files[0] == files[1]
    on_cpu = load_model(train("gpt", tmp_path, recipe=SMALL_GPT, source=PAGE, device="cpu"))
    found = load_model(first).card["losses_nats"]["held_out"]
    assert found == pytest.approx(on_cpu.card["losses_nats"]["held_out"], abs=0.05)


def test_an_interrupted_run_leaves_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, tensors: object) -> None:
        path.with_name(f"{path.name}.unfinished").write_bytes(b"some")
        raise KeyboardInterrupt

    monkeypatch.setattr(otimes.numeric.model, "write_weights", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small_train(tmp_path)
    with pytest.raises(OtimesError, match=r"it has no weights.safetensors"):
        load_model(tmp_path / "small")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": replace(SMALL.config, d_vocab=100)}, "d_vocab=100, but the tokenizer has 1024"),
        (
            {"phases": (Phase(1, 17),)},
            "the recipe trains on sequences of length 17, but the model takes at",
        ),
        ({"phases": ()}, "the recipe trains on sequences of length 0, but the model takes at most"),
        (
            {"config": replace(SMALL.config, n_ctx=500)},
            "the text is too short: it has 3838 training tokens and 202 held-out",
        ),
    ],
)
def test_a_recipe_that_cannot_work_is_refused_at_once(
    tmp_path: Path, changes: dict, message: str
) -> None:
    with pytest.raises(OtimesError, match=message):
        small_train(tmp_path, **changes)


def test_an_unknown_recipe_is_named_beside_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        OtimesError, match="unknown recipe 'gpt9'; the recipes are zero_layer, one_layer,"
    ):
        train("gpt9", tmp_path)


def test_a_repeated_row_has_a_period_and_a_text_row_is_in_the_text() -> None:
    text = np.arange(500)
    phase = Phase(1, 64, repeated_fraction=0.5)
    batch = draw_batch(phase, replace(SMALL, batch=8), text, np.random.default_rng(0))
    assert batch.shape == (8, 65)
    for row in batch[:4]:
        assert any(np.array_equal(row[p:], row[:-p]) for p in range(8, 33))
    for row in batch[4:]:
        assert np.array_equal(row, np.arange(row[0], row[0] + 65))


def test_the_learning_rate_goes_up_stays_and_goes_down() -> None:
    recipe = replace(SMALL, phases=(Phase(1000, 8),), warm_up_steps=100)
    rates = [schedule(recipe, step) for step in range(1000)]
    assert rates[0] == 0.01
    assert rates[99:701] == [1.0] * 602
    assert rates[850] == pytest.approx(0.5)
    assert 0 < rates[999] < 0.01


def test_positions_start_as_sines_of_the_asked_size() -> None:
    positions = sinusoidal_positions(128, 6, std=0.7)
    assert positions[5, 2] == pytest.approx(0.7 * np.sqrt(2) * np.sin(5 / 10000 ** (2 / 6)))
    assert positions[5, 3] == pytest.approx(0.7 * np.sqrt(2) * np.cos(5 / 10000 ** (2 / 6)))
    assert positions[:, 0].std() == pytest.approx(0.7, rel=0.05)
    assert sinusoidal_positions(4, 5, std=1.0).shape == (4, 5)


def test_the_recipe_of_induction_is_the_one_known_to_work() -> None:
    recipe = RECIPES["induction"]
    assert (recipe.config.d_model, recipe.config.n_heads, recipe.config.d_head) == (128, 4, 32)
    assert recipe.phases == (Phase(3700, 64, 1.0, (8, 32)), Phase(800, 128, 0.5, (8, 32)))
    weights = initial_weights(recipe, np.random.default_rng(0))
    # A sine and a cosine of one angle share their mean square, whatever the angle.
    assert weights["W_pos"].square().mean().sqrt().item() == pytest.approx(0.7, rel=1e-6)
    assert {weight.dtype for weight in weights.values()} == {torch.float32}


def test_bigram_entropy_by_hand() -> None:
    # After 0 comes 1 or 2 with even odds; after 1 and 2 always 0; half the places hold a 0.
    text = np.array([0, 1, 0, 2] * 100 + [0])
    assert bigram_entropy(text) == pytest.approx(np.log(2) / 2)


def test_even_windows_reach_from_the_first_token_to_the_last() -> None:
    windows = even_windows(np.arange(100), n_ctx=7, n_windows=5)
    assert windows[0].tolist() == list(range(7))
    assert windows[-1].tolist() == list(range(93, 100))


def test_the_source_leaves_out_tests_and_what_others_installed(tmp_path: Path) -> None:
    kept = ["a.py", "b/c.py", "json/tool.py"]
    left_out = [
        "site-packages/x.py", "test/test_a.py", "unittest/test/t.py", "lib2to3/tests/t.py",
        "idlelib/idle_test/t.py", "b/__pycache__/c.py", "config-3.11-linux/conf.py",
        "_sysconfigdata__linux.py", "notes.txt",
    ]  # fmt: skip
    for name in kept + left_out:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}")
    source = read_source(tmp_path)
    assert source.texts == tuple(f"# {name}" for name in kept)
    assert source.n_bytes == sum(len(text) for text in source.texts)


def test_every_20th_file_is_held_out() -> None:
    source = Source(tuple(f"x{place}" for place in range(41)), 0, "")
    seen, held_out = encode_source(source, load_tokenizer())
    assert load_tokenizer().decode(held_out) == "x19x39"
    assert load_tokenizer().decode(seen).startswith("x0x1x2")


def test_a_tokenizer_is_trained_from_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("otimes.numeric.corpus.read_source", lambda: PAGE)
    train_tokenizer(tmp_path / "tokenizer.json")
    learned = otimes.numeric.tokenizer.read_tokenizer(tmp_path / "tokenizer.json")
    assert learned.decode(learned.encode(sample_text())) == sample_text()
    assert (
        learned.pieces == otimes.numeric.tokenizer.read_tokenizer(BUNDLED / "tokenizer.json").pieces
    )
    assert len(learned.encode(sample_text())) < 101
