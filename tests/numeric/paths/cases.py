"""Which models the path engine is tried on: the bundled ones, and every kind with three layers."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache

import numpy as np

from otimes.numeric.load import load_model
from otimes.numeric.model import Model
from otimes.numeric.paths.ensemble import Paths, paths
from otimes.numeric.tokenizer import sample_tokens
from tests.numeric.paths.enumeration import Enumeration
from tests.numeric.random_models import KINDS, TINY_TOKENS, random_model

WITHOUT_LAYERS = ("without layers", "norms but no layers")
DEEP = [f"deep {name}" for name in KINDS if name not in WITHOUT_LAYERS]
GATED = [f"{name}, gates frozen" for name in DEEP if KINDS[name.removeprefix("deep ")].d_mlp]
DEEP += ["loud", "faint", *GATED]
BUNDLED = ["two_layer", "induction", "gpt2_tiny", "gpt2_tiny, gates frozen"]
GATED += BUNDLED[3:]
# The paths of a trained model with its gates are by far the most: random models have gates as well.
LONG = os.environ.get("OTIMES_LONG") == "1"
NAMES = [*(BUNDLED if LONG else BUNDLED[:3]), *KINDS, *DEEP]


def close(actual, expected) -> None:
    """Equal to 1e-10 of the largest number in the comparison: float64 errs by about 1e-14 of it."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    size = np.abs(expected).max(initial=0.0)
    assert np.abs(actual - expected).max(initial=0.0) <= 1e-10 * size


@cache
def case(name: str) -> tuple[Model, list[int]]:
    name = name.removesuffix(", gates frozen")
    if name in BUNDLED:
        return load_model(name), sample_tokens(6 if name == "gpt2_tiny" else 9)
    if name == "loud":  # heads write more than they read: longer paths are larger
        model = random_model(replace(KINDS["without positions"], n_layers=3), seed=1)
        return model.changed({"W_O": 8 * model.W_O}), TINY_TOKENS
    if name == "faint":  # norms scale up: what is divided by is far below 1
        model = random_model(replace(KINDS["llama"], n_layers=3, norm_eps=1e-9), seed=1)
        faint = {name: 1e-3 * model.weights[name] for name in ("W_E", "W_O", "W_out")}
        return model.changed(faint), TINY_TOKENS
    config = KINDS[name.removeprefix("deep ")]
    if name.startswith("deep "):
        config = replace(config, n_layers=3)
    return random_model(config, seed=1), TINY_TOKENS


@cache
def enumeration(name: str) -> Enumeration:
    return Enumeration(*case(name), gates=name in GATED)


def on_case(name: str, dtype: type = np.float64) -> Paths:
    return paths(*case(name), dtype, "gates" if name in GATED else "sources")
