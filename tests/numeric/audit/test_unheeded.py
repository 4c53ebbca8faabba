"""Settings of open models that an implementation does not heed: each is found and named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import otimes as ot
from otimes.numeric.audit.mistakes.registry import known_mistakes
from otimes.numeric.audit.reference.evaluator import Evaluator
from otimes.numeric.block import kind_of
from otimes.numeric.forward import Places
from tests.numeric.random_models import MODERN, random_model

TOKENS = np.array([[3, 0, 10, 3, 7, 7], [1, 2, 9, 4, 4, 0]])
LOCAL = {"windows": (2, 2), "local_base": 20.0}

# What is run, what the reference is told beside it, and what the report says.
WRONG: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "cap": ("gemma2", {}, {"score_cap": 0.0}, "scores without their soft cap, 2"),
    "cap of logits": ("gemma2", {}, {"logit_cap": 0.0}, "logits without their soft cap, 3"),
    "longer window": ("gemma2", {}, {"windows": (4, 0)}, "windows that are longer by one key"),
    "shorter window": ("gemma2", {}, {"windows": (2, 0)}, "windows that are shorter by one key"),
    "other layers": ("gemma2", {}, {"windows": (0, 3)}, "windows in the other layers"),
    "scale": ("gemma2", {}, {"attn_scale": 0.0}, "scores divided by √d_head and not multiplied by"),
    "embedding": ("gemma2", {}, {"embed_scale": 1.0}, "embeddings without their scale, 3"),
    "gains": ("gemma2", {}, {"gain_offset": False}, "without the 1 that is added"),
    "base": ("gemma3", LOCAL, {"local_base": 0.0}, "by the rotary base of the others"),
    "query norm": ("qwen3", {}, {"qk_norm": "none"}, "queries and keys without their norm"),
    "all heads": ("qwen3", {}, {"qk_norm": "all"}, "normalised over all heads together"),
    "each head": ("olmo2", {}, {"qk_norm": "head"}, "normalised over each head by itself"),
    "sinks": ("gpt-oss", {}, {"sinks": False}, "a softmax without its sinks"),
    "distances": ("bloom", {}, {"positions": "none", "alibi_slopes": ()}, "distances of ALiBi"),
    "order": ("bloom", {}, {"alibi_slopes": (0.03, 0.1, 0.3, 0.7)}, "in the wrong order of heads"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_it_is_named(wrong: str) -> None:
    kind, told, made, says = WRONG[wrong]
    model = random_model(replace(MODERN[kind], **told), seed=1)
    runs = model.changed({}, replace(model.config, **made))
    kept = ("embed", "resid_pre", "ln1", "q", "k", "pattern", "final")

    def run(tokens: np.ndarray) -> tuple[np.ndarray, Places]:
        places = [runs.forward(row) for row in tokens]
        names = [name for name in places[0] if kind_of(name) in kept]
        shown = {name: np.stack([each[name] for each in places]) for name in names}
        return np.stack([each["logits"] for each in places]), shown

    report = ot.audit(run, TOKENS, weights=model)
    assert report.first_failure is not None
    assert says in report.first_failure.diagnosis


@pytest.mark.parametrize("kind", ["gemma2", "gemma3", "olmo2", "gpt-oss", "bloom"])
def test_each_can_be_made(kind: str) -> None:
    model = random_model(MODERN[kind])
    right = Evaluator(model, TOKENS[0], {})
    for mistake in known_mistakes(model.config):
        if any(each in mistake.says for each in ("norm", "window", "cap", "ALiBi", "sink", "base")):
            right.with_mistake(mistake).near("logits")


def test_a_cap_after_the_mask_is_named() -> None:
    """Masked scores are -cap then, which the softmax sees."""
    model = random_model(MODERN["gemma2"], seed=1)
    cap, rows = model.config.score_cap, TOKENS.shape[1]
    distance = np.arange(rows)[:, None] - np.arange(rows)
    window = model.config.of_layer(0).window
    seen = (distance >= 0) & ((distance < window) if window else True)

    def run(tokens: np.ndarray) -> tuple[np.ndarray, Places]:
        places = [model.forward(row) for row in tokens]
        logits = np.stack([each["logits"] for each in places])
        weights = np.exp([np.where(seen, each["scores.0"], -cap) for each in places])
        return logits, {"pattern.0": weights / weights.sum(-1, keepdims=True)}

    report = ot.audit(run, TOKENS, weights=model)
    assert "a soft cap after the mask" in report.first_failure.diagnosis, str(report)
