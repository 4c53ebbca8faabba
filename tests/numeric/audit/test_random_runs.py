"""Code that computes something else in each run, as with dropout in training mode."""

from typing import Any

import numpy as np
import pytest

from otimes.numeric.audit.audit import audit_call
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import KINDS

TOKENS = [5, 6, 7, 8, 5, 6]


@pytest.mark.parametrize("shown", [("logits",), ("logits", "mlp_post.0", "resid_mid.0")])
def test_two_runs_that_differ_are_told_from_a_mistake(shown: tuple[str, ...]) -> None:
    model = random_model(KINDS["gpt2"], seed=3)
    draw = np.random.default_rng(0)

    def dropping(tokens: Any) -> Any:
        places = model.forward(tokens)
        factor = draw.integers(0, 2, places["mlp_post.0"].shape) * 2.0
        changed = {"mlp_post.0": places["mlp_post.0"] * factor}
        changed["logits"] = places["logits"] * factor.mean()
        every = {name: changed.get(name, places[name]) for name in shown}
        return every.pop("logits"), every

    found = audit_call(dropping, TOKENS, model).first_failure
    assert found is not None
    assert "between two runs on the same tokens" in found.diagnosis
    assert found.place == ("mlp_post.0" if len(shown) > 1 else "logits")

    def wrong(tokens: Any) -> Any:
        return model.forward(tokens)["logits"] * 1.5

    found = audit_call(wrong, TOKENS, model).first_failure
    assert found is not None
    assert "two runs" not in found.diagnosis
