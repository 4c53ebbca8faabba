"""Float32 models under `torch.autocast`: not accused of its casts, and still of their mistakes."""

from typing import Any

import numpy as np
import pytest
import torch

from otimes.numeric.audit.audit import audit_call
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import KINDS
from tests.numeric.audit.foreign import Foreign

TOKENS = np.random.default_rng(0).integers(0, 29, (1, 14))


def under_autocast(model: Any, *has: str, hide: tuple[str, ...] = ()) -> Any:
    foreign = Foreign(model, torch.float32, has, hide=hide)

    def run(tokens: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return foreign(tokens)

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_the_casts_of_autocast_are_not_accused(kind: str) -> None:
    model = random_model(KINDS[kind], seed=3)
    report = audit_call(under_autocast(model), TOKENS, model)
    assert report.passed, str(report)
    assert "as under autocast" in str(report)


HIDDEN = ("q", "k", "v", "scores", "pattern", "mlp_pre", "mlp_post")


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_casts_of_steps_that_are_not_recorded_are_not_accused(kind: str) -> None:
    """The threshold of z and of what the MLP writes is measured, over steps in bfloat16."""
    model = random_model(KINDS[kind], seed=3)
    report = audit_call(under_autocast(model, hide=HIDDEN), TOKENS, model)
    assert report.passed, str(report)
    wrong = audit_call(under_autocast(model, "no_mask", hide=HIDDEN), TOKENS, model)
    assert wrong.first_failure.place == "z.0"


@pytest.mark.parametrize(
    ("kind", "bug", "place"),
    [
        ("gpt2", "unbiased", "ln1.0"),
        ("gpt2", "scale_d_model", "scores.0"),
        ("gpt2", "no_mask", "pattern.0"),
        ("llama", "scale_d_model", "scores.0"),
    ],
)
def test_mistakes_under_autocast_are_found(kind: str, bug: str, place: str) -> None:
    model = random_model(KINDS[kind], seed=3)
    report = audit_call(under_autocast(model, bug), TOKENS, model)
    assert report.first_failure is not None
    assert report.first_failure.place == place, str(report)


def test_weights_in_half_precision_are_found_in_float32_code() -> None:
    """What autocast does in code that stores float32 is a mistake."""
    model = random_model(KINDS["gpt2"], seed=3)

    def run(tokens: Any) -> Any:
        logits, places = Foreign(model, torch.float32)(tokens)
        rows = places["ln1.0"].bfloat16() @ torch.tensor(model.weights["W_V"][0]).bfloat16()
        bias = torch.tensor(model.weights["b_V"][0])[:, None]
        places["v.0"] = (rows.float() + bias).float()
        return logits, places

    assert audit_call(run, TOKENS, model).first_failure.place == "v.0"
