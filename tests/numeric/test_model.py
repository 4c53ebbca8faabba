"""What a model is made of, and one clear sentence for each way it can be wrong."""

import json
from dataclasses import FrozenInstanceError, asdict, replace
from pathlib import Path

import numpy as np
import pytest

from algebra.errors import OtimesError, ShapeError
from numeric.model import Config, bundled_models, load_model, make_model, save_model
from tests.numeric.random_models import TINY, TINY_TOKENS, random_model, random_weights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model folder as `save_model` writes it."""
    save_model(tmp_path / "mine", TINY, random_weights(TINY), {"seed": 0})
    return tmp_path / "mine"


def test_a_saved_model_comes_back(folder: Path) -> None:
    model = load_model(folder)
    assert model.name == "mine"
    assert model.config == TINY
    assert model.card == {"seed": 0}
    for name, weight in random_weights(TINY).items():
        loaded = getattr(model, name)
        assert loaded.dtype == np.float64
        assert np.array_equal(loaded, weight)
    assert load_model(str(folder)).W_pos.shape == (7, 5)
    assert sorted(path.name for path in folder.iterdir()) == [
        "card.json", "config.json", "weights.safetensors",
    ]  # fmt: skip


def test_the_sizes_can_be_read_off_the_model() -> None:
    model = random_model()
    assert asdict(TINY) == {name: getattr(model, name) for name in asdict(TINY)}


def test_without_positions_their_vectors_are_zero() -> None:
    model = random_model(replace(TINY, positions="none"))
    assert model.W_pos.shape == (7, 5)
    assert not model.W_pos.any()


def test_nothing_of_a_model_can_be_changed() -> None:
    weights = random_weights(TINY)
    model = make_model("random", TINY, weights)
    with pytest.raises(ValueError, match="read-only"):
        model.W_E[0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        model.name = "other"  # type: ignore[misc]
    weights["W_E"][:] = 0
    assert model.W_E.all()


def test_a_model_may_have_no_card(folder: Path) -> None:
    (folder / "card.json").unlink()
    assert load_model(folder).card == {}


# --- what is wrong with a folder


def test_an_unknown_model_is_named_beside_the_bundled_ones() -> None:
    with pytest.raises(
        OtimesError, match=r"no model 'three_layer'.*bundled.*zero_layer.*nor a fol"
    ):
        load_model("three_layer")
    assert "zero_layer" in bundled_models()


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
def test_a_folder_without_a_file_is_no_model(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(OtimesError, match=f"mine is not a model folder: it has no {name}"):
        load_model(folder)


@pytest.mark.parametrize("content", [b"", b"text", b"\xff" * 100, b"\0" * 8 + b"{}"])
def test_a_damaged_weights_file_is_named(folder: Path, content: bytes) -> None:
    (folder / "weights.safetensors").write_bytes(content)
    with pytest.raises(OtimesError, match=r"mine/weights.safetensors is damaged"):
        load_model(folder)


@pytest.mark.parametrize("kept", [7, 50, 1000, -1])
def test_a_truncated_weights_file_is_named(folder: Path, kept: int) -> None:
    path = folder / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(OtimesError, match=r"mine/weights.safetensors is damaged"):
        load_model(folder)


def test_a_config_that_is_not_json_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{n_layers: 2}")
    with pytest.raises(OtimesError, match=r"mine/config\.json is not a JSON file"):
        load_model(folder)


def test_a_config_must_be_an_object(folder: Path) -> None:
    (folder / "config.json").write_text("[2, 3]")
    with pytest.raises(OtimesError, match="must hold a JSON object, it holds a list"):
        load_model(folder)


def test_a_config_has_its_fields_and_no_others(folder: Path) -> None:
    content = asdict(TINY)
    del content["d_head"]
    (folder / "config.json").write_text(json.dumps(content))
    with pytest.raises(OtimesError, match=r"exactly the fields n_layers, .* it has n_layers, "):
        load_model(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_layers": -1}, "n_layers=-1; it must be a whole number, at least 0"),
        ({"d_head": 0}, "d_head=0; it must be a whole number, at least 1"),
        ({"d_model": 5.0}, "d_model=5.0; it must be a whole number"),
        ({"n_heads": True}, "n_heads=True; it must be a whole number"),
        ({"positions": "rotary"}, "positions='rotary'; known are none and shortformer"),
    ],
)
def test_sizes_that_no_model_can_have(change: dict, message: str) -> None:
    with pytest.raises(OtimesError, match=message):
        Config(**{**asdict(TINY), **change})


# --- what is wrong with weights


def test_a_missing_tensor_is_named() -> None:
    weights = random_weights(TINY)
    del weights["W_O"], weights["W_pos"]
    with pytest.raises(OtimesError, match="mine: the weights lack W_O and W_pos; there are W_E, "):
        make_model("mine", TINY, weights)


def test_no_tensor_at_all() -> None:
    with pytest.raises(OtimesError, match=r"lack W_E, .*; there are nothing|there is nothing"):
        make_model("mine", TINY, {})


def test_a_surplus_tensor_is_named() -> None:
    config = replace(TINY, positions="none")
    with pytest.raises(OtimesError, match=r"hold W_pos, which .* positions='none' does not have"):
        make_model("mine", config, random_weights(TINY))


def test_a_wrong_shape_is_told_with_both_shapes() -> None:
    weights = random_weights(TINY)
    weights["W_O"] = weights["W_O"].swapaxes(2, 3)
    with pytest.raises(
        ShapeError, match=r"W_O has shape \(2, 3, 5, 2\), but .* asks for \(2, 3, 2, 5\)"
    ):
        make_model("mine", TINY, weights)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite_is_found(value: float) -> None:
    weights = random_weights(TINY)
    weights["W_V"][1, 0, 4, 1] = value
    with pytest.raises(OtimesError, match=rf"W_V is not finite, its entry \(1, 0, 4, 1\).*{value}"):
        make_model("mine", TINY, weights)


# --- what is wrong with a prompt


@pytest.mark.parametrize(
    ("tokens", "error", "message"),
    [
        ([], OtimesError, "the prompt is empty"),
        ([1, 11], OtimesError, "token 11 at position 1 .* random, .* the tokens 0 to 10"),
        ([-1], OtimesError, "token -1 at position 0"),
        ([1.0, 2.0], OtimesError, "tokens are whole numbers, got float64"),
        ([True, False], OtimesError, "tokens are whole numbers, got bool"),
        ("text", ShapeError, r"one flat list of tokens, got an array of shape \(\)"),
        (["a", "b"], OtimesError, "tokens are whole numbers, got <U1"),
        ([[1, 2]], ShapeError, r"array of shape \(1, 2\); there is no batch axis"),
        ([[1, 2], [3]], OtimesError, "nested lists of different lengths"),
        ([0] * 8, OtimesError, "the prompt has 8 tokens, but random reads at most n_ctx=7"),
    ],
)
def test_a_wrong_prompt(tokens: object, error: type[OtimesError], message: str) -> None:
    with pytest.raises(error, match=message):
        random_model().forward(tokens)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_tokens_may_be_any_whole_numbers(dtype: type) -> None:
    model = random_model()
    expected = model.forward(TINY_TOKENS)["logits"]
    assert np.array_equal(model.forward(np.array(TINY_TOKENS, dtype))["logits"], expected)
