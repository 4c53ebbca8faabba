"""Gains stored minus 1, in float64, of norms that are computed in float32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import otimes as ot
from tests.numeric.random_models import MODERN, TINY_TOKENS, random_model


def test_a_stored_gain_is_rounded_before_1_is_added() -> None:
    """Near -1 its rounding error is far above that of the gain itself."""
    config = replace(MODERN["gemma2"], n_layers=1, windows=())
    stored = -1 + 1e-3 * np.random.default_rng(0).standard_normal((1, config.d_model))
    model = random_model(config).changed({"ln1_gain": stored})

    def run(tokens: list[int]) -> dict[str, np.ndarray]:
        x = model.forward(tokens)["resid_pre.0"]
        rows = x.astype(np.float32)
        size = np.sqrt((rows**2).mean(-1, keepdims=True) + np.float32(config.norm_eps))
        gain = np.float32(1) + stored[0].astype(np.float32)
        return {"resid_pre.0": x, "ln1.0": (rows / size * gain).astype(np.float64)}

    report = ot.audit(run, TINY_TOKENS, weights=model)
    assert report.passed
    assert "float32" in str(report)
