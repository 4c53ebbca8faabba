"""The parts make up the whole: within the bound on correct code, beyond it on planted mistakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from otimes.numeric.frozen import FrozenPass, MLPKind
from otimes.numeric.frozen_layer import FrozenLayer, FrozenMLP
from otimes.numeric.load import bundled_models, load_model
from otimes.numeric.paths.ensemble import paths
from otimes.numeric.random_weights import random_model
from otimes.numeric.tokenizer import sample_tokens
from tests.numeric.paths.cases import NAMES, case, on_case


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_small_models_close(name: str, dtype: type) -> None:
    closure = on_case(name, dtype=dtype).closure
    assert closure.ratio <= 1
    size = np.abs(on_case(name).by_order()).sum(axis=0).max()
    assert closure.error <= {np.float64: 1e-12, np.float32: 1e-4}[dtype] * size


@pytest.mark.parametrize("mlp", ["sources", "gates"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", bundled_models())
def test_bundled_models_close(name: str, dtype: type, mlp: MLPKind) -> None:
    closure = paths(load_model(name), sample_tokens(40), dtype, mlp).closure
    assert closure.ratio < 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"norm": "layer", "final_norm": True, "d_mlp": 40, "activation": "gelu", "positions":
            "learned", "biases": ("b_Q", "b_V", "b_O", "b_in", "b_out")},
        {"norm": "rms", "final_norm": True, "d_mlp": 40, "activation": "silu", "gated": True,
            "positions": "rotary", "rotary_dims": 8, "n_kv_heads": 2},
        {"norm": "layer", "d_mlp": 40, "activation": "relu", "parallel": True,
            "positions": "rotary", "rotary_dims": 4, "rotary_layout": "interleaved"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("mlp", ["sources", "gates"])
def test_twelve_layers_close(kind: dict, dtype: type, mlp: MLPKind) -> None:
    model = random_model(n_layers=12, **kind)
    on_prompt = paths(model, list(range(20)), dtype, mlp)
    assert on_prompt.closure.ratio < 1
    assert on_prompt.by_order().shape == (13, 20, 64)
    assert on_prompt.by_order().dtype == dtype


def test_float32_is_what_it_says() -> None:
    on_prompt = paths(*case("deep everything"), dtype=np.float32)
    for table in (
        on_prompt.by_order(),
        on_prompt.heads(1, 2),
        on_prompt.virtual_heads(1, 2),
        on_prompt.shapley(1, 2),
        on_prompt.scores(1, 1, 2).terms,
        on_prompt.replay(),
    ):
        assert table.dtype == np.float32


def wrong_gain(layer: FrozenLayer) -> FrozenLayer:
    return replace(layer, gain=layer.gain * (1 + 1e-9))


def wrong_W_V(layer: FrozenLayer) -> FrozenLayer:
    return replace(layer, W_V=layer.W_V[::-1])


def lost_bias(layer: FrozenLayer) -> FrozenLayer:
    return replace(layer, b_V=np.zeros_like(layer.b_V))


def uncentred(layer: FrozenLayer) -> FrozenLayer:
    return replace(layer, centring=0.0)


def transposed(layer: FrozenLayer) -> FrozenLayer:
    return replace(layer, pattern=layer.pattern.transpose(0, 2, 1))


@pytest.mark.parametrize("mistake", [wrong_gain, wrong_W_V, lost_bias, uncentred, transposed])
def test_a_mistake_in_a_layer_is_beyond_the_bound(mistake, monkeypatch) -> None:
    right = FrozenPass.layer
    monkeypatch.setattr(FrozenPass, "layer", lambda self, n: mistake(right(self, n)))
    assert paths(*case("deep gpt2")).closure.ratio > 1e3


def shut_gates(mlp: FrozenMLP) -> FrozenMLP:
    return replace(mlp, gates=np.where(np.arange(mlp.gates.shape[1]) == 3, 0, mlp.gates))


def lost_b_in(mlp: FrozenMLP) -> FrozenMLP:
    return replace(mlp, b_in=np.zeros_like(mlp.b_in))


def wrong_scale(mlp: FrozenMLP) -> FrozenMLP:
    return replace(mlp, scale=mlp.scale * (1 + 1e-9))


def other_reading(mlp: FrozenMLP) -> FrozenMLP:
    return replace(mlp, parallel=not mlp.parallel)


@pytest.mark.parametrize("mistake", [shut_gates, lost_b_in, wrong_scale, other_reading])
def test_a_mistake_in_a_frozen_mlp_is_beyond_the_bound(mistake, monkeypatch) -> None:
    right = FrozenPass.mlp
    monkeypatch.setattr(FrozenPass, "mlp", lambda self, n: mistake(right(self, n)))
    assert on_case("deep gpt2, gates frozen").closure.ratio > 1e3


def test_a_mistake_in_the_grading_is_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that a layer overwrites instead of adding to it."""
    import otimes.numeric.paths.closure

    def wrong_pass(frozen, streams):
        streams[0] += frozen.first
        yield 0
        for number, layer in enumerate(frozen.layers()):
            z = layer.z(streams[: number + 1])
            z[0] += layer.constant()
            streams[1 : number + 2] = layer.write(z)
            streams[0] += frozen.entering(number)
            yield number + 1

    monkeypatch.setattr(otimes.numeric.paths.closure, "graded_pass", wrong_pass)
    closure = paths(*case("deep gpt2")).closure
    assert closure.ratio > 1e3
    assert closure.error > 1e-3
