"""What each head writes, shown beside the rest: right under every gauge, judged head by head."""

import numpy as np
import pytest
import torch

from otimes.numeric.audit.audit import audit_call
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.catalogue import KINDS
from tests.numeric.audit.foreign import Foreign

TOKENS = np.random.default_rng(0).integers(0, 29, (1, 14))
MODELS = {kind: random_model(config, seed=3) for kind, config in KINDS.items()}


@pytest.mark.parametrize(
    ("kind", "words", "hide"),
    [
        ("gpt2", (), ()),
        ("gpt2", ("permuted_heads",), ()),
        ("gpt2", ("permuted_heads",), ("q", "k", "v", "scores", "pattern", "z")),
        ("gpt2", ("fold_value_bias",), ()),
        ("gpt2", ("fold_value_bias",), ("v",)),
        ("gpt2", ("fold_value_bias",), ("v", "z")),
        ("gpt2", ("basis_vo",), ()),
        ("gpt2", ("rotated", "permuted_features"), ()),
        ("gpt2", ("centre_writers", "fold", "fold_value_bias"), ()),
        ("llama", ("rotated",), ()),
        ("neox", ("permuted_heads",), ()),
    ],
)
def test_what_heads_write_is_accused_under_no_gauge(kind, words, hide) -> None:
    call = Foreign(MODELS[kind], torch.float32, (*words, "head_out"), hide=hide)
    report = audit_call(call, TOKENS, MODELS[kind])
    assert report.passed, str(report)
    assert bool(report.gauges) == bool(words)
    assert report.ratios["head_out.0"] > 0


@pytest.mark.parametrize(
    "words", [(), ("permuted_heads",), ("rotated",), ("fold_value_bias",), ("basis_vo",)]
)
def test_one_head_that_writes_something_else_is_named(words) -> None:
    right = Foreign(MODELS["gpt2"], torch.float32, (*words, "head_out"))

    def call(tokens):
        logits, places = right(tokens)
        places["head_out.1"][0, 1] *= 1.001
        return logits, places

    report = audit_call(call, TOKENS, MODELS["gpt2"])
    found = report.first_failure
    # The second head shown is our first of those in another order.
    assert (found.place, found.head) == ("head_out.1", 0 if "permuted_heads" in words else 1)


def test_a_wrong_W_O_is_named_where_each_head_writes() -> None:
    model = MODELS["gpt2"]
    transposed = [w.reshape(-1, w.shape[2]).T.reshape(w.shape) for w in model.weights["W_O"]]
    call = Foreign(model.changed({"W_O": np.array(transposed)}), torch.float64, ("head_out",))
    found = audit_call(call, TOKENS, model).first_failure
    assert found.place == "head_out.0"
    assert found.diagnosis == "matches W_O transposed (Conv1D for Linear)"
