"""Whole models in half precision, each step of a norm stored in it, as PyTorch does one by one."""

import numpy as np
import pytest
import torch

from otimes.numeric.audit.audit import audit_call
from otimes.numeric.random_weights import random_model
from otimes.numeric.rounding.functions import normalised
from otimes.numeric.rounding.linear import Near
from otimes.numeric.rounding.precision import precision, worst_ratio
from tests.numeric.audit.catalogue import KINDS
from tests.numeric.audit.foreign import Foreign

TOKENS = np.random.default_rng(0).integers(0, 29, (1, 14))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_norms_written_out_step_by_step_are_not_accused(kind: str, dtype: torch.dtype) -> None:
    for seed in (3, 4):
        model = random_model(KINDS[kind], seed=seed)
        report = audit_call(Foreign(model, dtype), TOKENS, model)
        assert report.passed, str(report)
        assert max(report.ratios.values()) <= 1


@pytest.mark.parametrize(
    ("dtype", "bug", "place"),
    [
        (torch.float16, "unbiased", "ln1.0"),
        (torch.float16, "scale_d_model", "scores.0"),
        (torch.bfloat16, "scale_d_model", "scores.0"),
        (torch.bfloat16, "no_mask", "pattern.0"),
    ],
)
def test_what_is_larger_than_those_steps_is_found(dtype: torch.dtype, bug: str, place: str) -> None:
    model = random_model(KINDS["gpt2"], seed=3)
    assert audit_call(Foreign(model, dtype, (bug,)), TOKENS, model).first_failure.place == place


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_each_step_of_a_norm_may_be_stored(kind: str, dtype: torch.dtype) -> None:
    drawn = torch.randn(2000, 24, generator=torch.Generator().manual_seed(0))
    x, gain = (drawn + 0.5).to(dtype), drawn[0].to(dtype)
    centred = x - x.mean(-1, keepdim=True) if kind == "layer" else x
    shown = centred / ((centred * centred).mean(-1, keepdim=True) + 1e-5).sqrt() * gain
    p = precision(str(dtype).removeprefix("torch.")).supposed_likely()
    rows, gains = (Near.exactly(each.double().numpy()) for each in (x, gain))
    near = normalised(rows, kind, 1e-5, gains, None, p)
    assert worst_ratio(shown.double().numpy(), near.value, near.error) <= 1
