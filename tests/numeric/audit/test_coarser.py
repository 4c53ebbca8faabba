"""What is called a step in a coarser type is one; other deviations are told as they are seen."""

import numpy as np
import pytest
import torch

from otimes.numeric.audit.audit import audit
from otimes.numeric.audit.report import Finding
from otimes.numeric.config import Config
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import GPT2, LLAMA, NEOX

TOKENS = np.random.default_rng(4).integers(0, 29, 16)
RNG = np.random.default_rng(0)
HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def stored(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return an array as PyTorch stores it in a type."""
    return torch.tensor(array).float().to(HALF[dtype]).double().numpy()


def found(config: Config, place: str, change, only=()) -> Finding:
    """Return what is found where a place is another one, and what follows is right again."""
    model = random_model(config, seed=2)
    places = dict(model.forward(TOKENS))
    places[place] = change(places, model.weights)
    shown = {name: each for name, each in places.items() if not only or name in only}
    finding = audit(lambda tokens: (places["logits"], shown), TOKENS, weights=model).first_failure
    assert finding is not None
    assert finding.place == place
    return finding


def _noise(size):
    return lambda x: x * (1 + size * np.random.default_rng(0).standard_normal(x.shape))


def _some(x):
    return np.where(np.random.default_rng(1).random(x.shape) < 0.05, 1.005 * x, x)


def _at(index, factor):
    def change(x):
        other = x.copy()
        other[index] *= factor
        return other

    return change


def _grid(x):
    step = np.abs(x).max() / 127
    return np.round(x / step) * step


DEVIATIONS = {
    "noise of 1e-4": (_noise(1e-4), "noise of relative size 0.0001"),
    "noise of 1e-3": (_noise(1e-3), "noise of relative size 0.001"),
    "some entries": (_some, "% of the entries, here and there"),
    "last position": (_at(np.s_[..., -1, :], 1.01), "position 15 multiplied by 1.01"),
    "three positions": (
        _at(np.s_[..., [3, 7, 8], 3:5], 1.01),
        "is wrong at positions 3, 7, 8 only",
    ),
    "int8": (_grid, "matches values that are quantised"),
}


@pytest.mark.parametrize("place", ["q.0", "ln2.1"])
@pytest.mark.parametrize("name", DEVIATIONS)
def test_what_is_less_wrong_than_half_precision_is_not_called_half_precision(name, place):
    change, words = DEVIATIONS[name]
    said = found(GPT2, place, lambda places, weights: change(places[place])).diagnosis
    assert "precision" not in said, said
    assert words in said


def test_one_wrong_entry_is_named():
    said = found(LLAMA, "logits", lambda p, w: _at((3, 7), 1.01)(p["logits"])).diagnosis
    assert said == "is wrong in one entry only, [3, 7]"


def _product(p, w, dtype):
    x, weight, bias = p["ln1.0"], w["W_V"][0], w["b_V"][0]
    return np.einsum("td,hde->hte", stored(x, dtype), stored(weight, dtype)) + bias[:, None]


def _rows(p, w, dtype):
    x = p["resid_mid.0"]
    rows = x / np.sqrt((x**2).mean(-1, keepdims=True) + LLAMA.norm_eps)
    return stored(rows, dtype) * w["ln2_gain"][0]


def _gated(p, w, dtype):
    x = stored(p["mlp_pre.0"], dtype)
    return x / (1 + np.exp(-x)) * (p["ln2.0"] @ w["W_in"][0])


def _softmax(p, w, dtype):
    scores = torch.tensor(p["scores.1"]).masked_fill(~torch.ones(16, 16).tril().bool(), -torch.inf)
    return torch.softmax(scores.float().to(HALF[dtype]), -1).double().numpy()


STEPS = {
    "what is stored": (GPT2, "z.0", lambda p, w, t: stored(p["z.0"], t), "z is rounded to"),
    "weights and what they meet": (GPT2, "v.0", _product, "weights and what they meet"),
    "rows before the gain": (
        LLAMA,
        "ln2.0",
        _rows,
        "normalised rows, before the gain, are rounded to",
    ),
    "a gate": (LLAMA, "mlp_post.0", _gated, "mlp_pre is rounded to"),
    "a softmax": (NEOX, "pattern.1", _softmax, "half-precision step"),
}


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("name", STEPS)
def test_a_step_in_half_precision_is_named_with_its_type(name, dtype):
    config, place, step, words = STEPS[name]
    said = found(config, place, lambda p, w: step(p, w, dtype)).diagnosis
    assert said.startswith("matches ")
    assert words in said
    assert dtype in said.replace("bfloat16", "bf" if dtype == "float16" else "bfloat16")


@pytest.mark.parametrize(
    ("dtype", "shown"),
    [
        ("float32", ()),
        ("float32", ("embed", "ln_final")),
        ("float16", ()),
        ("bfloat16", ("logits",)),
    ],
)
def test_weights_that_were_rounded_are_named_whatever_is_shown(dtype, shown):
    model = random_model(LLAMA, seed=2)
    single = {
        name: each.astype(np.float32).astype(np.float64) for name, each in model.weights.items()
    }
    half = {} if dtype == "float32" else {n: stored(each, dtype) for n, each in single.items()}
    places = model.changed(single | half).forward(TOKENS)
    seen = {name: each for name, each in places.items() if name in shown or not shown}
    finding = audit(lambda t: (places["logits"], seen), TOKENS, weights=model).first_failure
    assert f"weights that were rounded to {dtype}, with which all is right" in finding.diagnosis
    assert finding.kind == ("precision" if dtype == "float32" else "fault")


def test_code_in_single_precision_that_returns_double_is_a_matter_of_precision():
    model = random_model(NEOX, seed=2)
    single = {
        name: each.astype(np.float32).astype(np.float64) for name, each in model.weights.items()
    }
    places = model.changed(single).forward(TOKENS)
    seen = {name: each.astype(np.float32).astype(np.float64) for name, each in places.items()}
    finding = audit(lambda t: (seen["logits"], seen), TOKENS, weights=model).first_failure
    assert finding.kind == "precision", finding
