"""Cached decoding of `transformers`: right caches pass, planted faults are found and named."""

from __future__ import annotations

import pytest
import torch

import otimes as ot
from tests.peers.architectures import TOKENS, decoder
from tests.peers.makers import KINDS, gpt2, llama

pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")

DECODED = (
    *("gemma 3", "gpt-oss", "mixtral", "deepseek 2", "deepseek 3", "bloom", "olmo 2"),
    *("command a", "granite, experts", "smollm 3", "exaone 4", "glm 4.5", "minimax m2"),
    *("gpt-neo", "opt", "ernie 4.5, experts", "exaone, experts", "ministral 3"),
)


@pytest.mark.parametrize("name", [*DECODED, *KINDS])
def test_the_library_passes(name: str) -> None:
    given = {"attn_implementation": "eager"}
    module = KINDS[name](**given) if name in KINDS else decoder(name, **given)
    report = ot.audit_decoding(module.double(), TOKENS, prefill=8)
    assert report.passed, str(report)


def planted(module: torch.nn.Module, fault: str) -> torch.nn.Module:
    run = module.forward

    def forward(ids, past_key_values=None, **options):
        cached = 0 if past_key_values is None else past_key_values.get_seq_length()
        if cached and fault == "positions":
            options["position_ids"] = torch.full((len(ids), 1), cached + 1)
        if cached and fault == "restart":
            options["position_ids"] = torch.full((len(ids), 1), cached - 8)
        if cached and fault == "hole":
            for layer in past_key_values.layers:
                layer.keys[:, :, 8:], layer.values[:, :, 8:] = 0, 0
        if cached and fault == "stale":
            past_key_values.crop(8 - cached) if cached > 8 else None
            options["position_ids"] = torch.full((len(ids), 1), 8 + forward.step)
            forward.step += 1
        return run(ids, past_key_values=past_key_values, **options)

    forward.step = 0
    module.forward = forward
    return module


NAMED = {
    "positions": "one too far",
    "restart": "that begin at 0 again",
    "hole": "keys and values of decoded tokens are zeros",
    "stale": "no decoded token is added",
}


@pytest.mark.parametrize("make", [gpt2, llama])
@pytest.mark.parametrize("fault", NAMED)
def test_a_fault_is_named(fault: str, make) -> None:
    module = planted(make(attn_implementation="eager").double(), fault)
    report = ot.audit_decoding(module, TOKENS, prefill=8)
    assert not report.passed
    assert NAMED[fault] in str(report), str(report)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_frequencies_that_change_with_the_length_are_named(attention: str) -> None:
    """In transformers 5.24 keys that were cached below the first context keep its frequencies."""
    module = decoder("phi 3, longrope", attn_implementation=attention)
    report = ot.audit_decoding(module, TOKENS, prefill=8)
    assert "rotary frequencies of the length at each step" in str(report), str(report)
    assert ot.audit_decoding(module, TOKENS, prefill=11).passed
