"""Left padding of `transformers`, with its mask and without."""

from __future__ import annotations

import pytest
import torch

import otimes as ot
from tests.peers.architectures import TOKENS, decoder
from tests.peers.makers import KINDS, gpt2

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

MASK = torch.ones_like(TOKENS)
MASK[0, :5] = 0


@pytest.mark.parametrize(
    "name", ["gemma 2", "deepseek 3", "bloom", "gpt-neo", "opt", "ministral 3", *KINDS]
)
def test_the_library_passes(name: str) -> None:
    given = {"attn_implementation": "eager"}
    module = KINDS[name](**given) if name in KINDS else decoder(name, **given)
    # In float64 the softmax, in float32, of a pad token's masked scores is NaN, and so is the rest.
    report = ot.audit_padded(module, TOKENS, MASK)
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("left_out", "named"),
    [("attention_mask", "padding without its mask"), ("position_ids", "positions that count")],
)
def test_a_fault_is_named(left_out: str, named: str) -> None:
    module = gpt2(attn_implementation="eager").double()
    run = module.forward

    def forward(ids, **options):
        return run(ids, **{key: each for key, each in options.items() if key != left_out})

    module.forward = forward
    report = ot.audit_padded(module, TOKENS, MASK)
    assert named in str(report)
