"""Padded batches: a right mask passes; no mask, and positions that count padding, are named."""

from __future__ import annotations

import pytest
import torch

import otimes as ot
from otimes.numeric.random_weights import random_model
from tests.numeric.audit.test_decoding import Decoder

TOKENS = [[63, 63, 63, 60, 33, 2, 7, 2, 17, 41], [8, 8, 25, 7, 50, 3, 11, 40, 12, 6]]
MASK = [[0, 0, 0, 1, 1, 1, 1, 1, 1, 1], [1] * 10]
RIGHT_MASK = [[1] * 8 + [0] * 2, [1] * 10]


def padded(model, masked: bool = True, counted: bool = False):
    def call(tokens, mask):
        found = []
        for row, seen in zip(torch.as_tensor(tokens), torch.as_tensor(mask), strict=True):
            place = (seen.cumsum(0) - 1).clamp(min=0)
            place = torch.arange(len(row)) if counted else place
            keys = seen[None] * torch.ones(len(row), len(row)).tril() if masked else None
            keys = torch.ones(len(row), len(row)).tril() if keys is None else keys
            keys = torch.maximum(keys, torch.eye(len(row)))  # pad rows see themselves
            run = Decoder(model, at=lambda s, n, p=place: p, mask=lambda s, n, k=keys: k)
            found.append(run(row[None], None)[0])
        return torch.cat(found)

    return call


@pytest.mark.parametrize(("kind", "mask"), [("llama", MASK), ("gpt2", RIGHT_MASK)])
def test_a_right_mask_passes(kind: str, mask: list) -> None:
    model = random_model(kind=kind, n_layers=1)
    report = ot.audit_padded(padded(model), TOKENS, mask, model)
    assert report.passed, str(report)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
@pytest.mark.parametrize("counted", [True, False])
def test_padding_without_its_mask_is_named(kind: str, counted: bool) -> None:
    model = random_model(kind=kind, n_layers=1)
    report = ot.audit_padded(padded(model, False, counted), TOKENS, MASK, model)
    assert "padding without its mask" in report.first_failure.diagnosis
    assert "prompt 0: 3 pad tokens before and 0 after 7 of its own" in report.notes


def test_positions_that_count_the_padding_are_named() -> None:
    model = random_model(kind="gpt2", n_layers=1)
    report = ot.audit_padded(padded(model, True, True), TOKENS, MASK, model)
    assert "positions that count the padding" in report.first_failure.diagnosis
    model = random_model(kind="llama", n_layers=1)  # a shift of rotary positions changes nothing
    assert ot.audit_padded(padded(model, True, True), TOKENS, MASK, model).passed


def test_a_mask_that_is_none_is_refused() -> None:
    model = random_model(kind="gpt2", n_layers=1)
    with pytest.raises(
        ot.OtimesError, match=r"mask of prompt 0 is .* must be 1 at tokens that foll"
    ):
        ot.audit_padded(padded(model), TOKENS, [[0, 1, 0, *[1] * 7], [1] * 10], model)
    with pytest.raises(
        ot.ShapeError, match=r"the mask has shape \(1, 10\), and the tokens \(2, 10\)"
    ):
        ot.audit_padded(padded(model), TOKENS, MASK[:1], model)
