"""What a configuration says of a model, and what none can say."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from otimes.algebra.errors import OtimesError
from otimes.numeric import strategies as ots
from otimes.numeric.config import EVERY_BIAS, TENSORS, Config, gpt2_config, llama_config
from tests.numeric.random_models import ALL, EVERY, FULL, TINY


def test_old_folders_say_seven_things() -> None:
    old = {
        "n_layers": 2, "n_heads": 4, "d_model": 128, "d_head": 32, "d_vocab": 1024, "n_ctx": 128,
        "positions": "shortformer",
    }  # fmt: skip
    config = Config.from_json(old, "old")
    assert config.to_json() == old
    assert list(config.tensor_shapes()) == ["W_E", "W_Q", "W_K", "W_V", "W_O", "W_U", "W_pos"]


@pytest.mark.parametrize("kind", ALL)
def test_json_and_back(kind: str) -> None:
    assert Config.from_json(ALL[kind].to_json(), kind) == ALL[kind]


@given(ots.configs())
def test_any_config_comes_back_from_json(config: Config) -> None:
    assert Config.from_json(config.to_json(), "drawn") == config


def test_the_parameters_of_gpt2_small_and_of_llama_3_2_1b() -> None:
    """As published: 124,439,808 (GPT-2 small) and 1,235,814,400 (Llama 3.2 1B)."""

    def parameters(config: Config) -> int:
        total = 0
        for shape in config.tensor_shapes().values():
            size = 1
            for each in shape:
                size *= each
            total += size
        return total

    assert parameters(gpt2_config()) == 124_439_808
    assert parameters(llama_config()) == 1_235_814_400


def test_the_kinds_have_every_tensor() -> None:
    assert {name for config in ALL.values() for name in config.tensor_shapes()} == set(TENSORS)


def test_only_attention_without_anything_is_bare() -> None:
    bare = [kind for kind, config in EVERY.items() if config.bare]
    assert bare == ["attention only", "without positions", "without layers"]


def test_the_order_of_biases_does_not_matter() -> None:
    assert replace(FULL, biases=("b_O", "b_Q")) == replace(FULL, biases=("b_Q", "b_O", "b_Q"))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"n_layers": -1}, "n_layers=-1 must be an integer of at least 0"),
    ({"d_head": 0}, "d_head=0 must be an integer of at least 1"),
    ({"d_model": 5.0}, r"d_model=5\.0 must be an integer of at least 1"),
    ({"n_heads": True}, "n_heads=True must be an integer of at least 1"),
    ({"n_kv_heads": 0}, "n_kv_heads=0 must be an integer of at least 1"),
    ({"d_mlp": -1}, "d_mlp=-1 must be an integer of at least 0"),
    ({"tied": 1}, "tied=1 must be True or False"),
    ({"norm_eps": -1e-5}, "norm_eps=-1e-05 must be a finite, non-negative number"),
    ({"norm_eps": float("nan")}, "norm_eps=nan must be a finite, non-negative number"),
    ({"rotary_base": "10"}, "rotary_base='10' must be a finite, non-negative number"),
    ({"positions": "sinusoidal"}, "must be one of none, shortformer, learned, rotary and alibi"),
    ({"norm": "batch"}, "norm='batch' must be one of none, layer and rms"),
    (
        {"activation": "tanh"},
        "activation='tanh' must be one of gelu, gelu_tanh, quick_gelu, relu, relu2, silu and None",
    ),
    ({"rotary_layout": "zip"}, "rotary_layout='zip' must be one of half and interleaved"),
    ({"biases": ("b_q",)}, "unknown bias 'b_q'; the biases are b_Q,"),
    ({"n_layers": -1, "norm": "batch"}, "invalid: n_layers=-1 .*; norm='batch' must"),
    ({"n_kv_heads": 2}, "n_kv_heads=2 must divide the number of heads, n_heads=3"),
    ({"positions": "rotary"}, "rotary_dims=0 must be even, from 2 to d_head=2"),
    ({"positions": "rotary", "rotary_dims": 4}, "rotary_dims=4 must be even, from 2 to d_head=2"),
    ({"positions": "rotary", "rotary_dims": 1}, "rotary_dims=1 must be even"),
    (
        {"positions": "rotary", "rotary_dims": 2, "rotary_base": 0.0},
        r"rotary_base=0\.0 must be positive",
    ),
    (
        {"positions": "rotary", "rotary_dims": 2, "rotary_stretch": (8.0, 4.0, 1.0, 8192.0)},
        r"rotary_stretch=\(8\.0, .*\) must be \(\), \(factor,\), .* with .* low < high",
    ),
    ({"rotary_stretch": (2.0,)}, "rotary_stretch=.* with positions='shortformer'"),
    ({"rotary_dims": 2}, "rotary_dims=2 must be 0 with positions='shortformer'"),
    ({"d_mlp": 4}, "d_mlp=4 needs an activation, one of gelu, gelu_tanh"),
    ({"activation": "relu"}, r"activation='relu' needs an MLP \(d_mlp is 0\)"),
    ({"gated": True}, r"gated=True needs an MLP \(d_mlp is 0\)"),
    ({"parallel": True}, r"parallel=True needs an MLP \(d_mlp is 0\)"),
    ({"final_norm": True}, r"final_norm=True needs norms \(norm is 'none'\)"),
    ({"norm_order": "sandwich"}, "norm_order='sandwich' must be one of pre, post, output and both"),
    ({"norm_order": "post"}, r"norm_order='post' needs norms \(norm is 'none'\)"),
    (
        {"d_mlp": 4, "activation": "relu", "norm": "rms", "parallel": True, "norm_order": "post"},
        "norm_order='post' excludes parallel blocks",
    ),
    ({"biases": ("b_in",)}, "the bias b_in needs W_in, which the model lacks"),
    ({"biases": ("b_gate",)}, "the bias b_gate needs W_gate, which the model lacks"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_what_no_model_can_have(change: dict, message: str) -> None:
    with pytest.raises(OtimesError, match=message):
        replace(TINY, **change)


def test_biases_are_those_of_the_tensors() -> None:
    assert set(EVERY_BIAS) == {name for name in TENSORS if name.startswith("b_")}
