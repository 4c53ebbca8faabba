"""Mistakes named that were found only: the softmax's place, one layer for all, YaRN's settings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import otimes as ot
from otimes.numeric.model import Model
from otimes.numeric.random_weights import random_model
from otimes.numeric.torch_model import TorchModel

TOKENS = [5, 1, 9, 60, 33, 2, 2, 17, 41, 8, 25, 7]


class SoftmaxFirst(TorchModel):
    def _attention(self, layer: int, rows: Tensor) -> dict[str, Tensor]:
        at, root = super()._attention(layer, rows), math.sqrt(self.config.d_head)
        hidden = torch.ones(2 * rows.shape[1:2]).triu(1) == 1
        at["pattern"] = (at["scores"] * root).masked_fill(hidden, -math.inf).softmax(-1) / root
        return {**at, "z": at["pattern"] @ at["v"]}


class OneLayer(TorchModel):
    def _block(self, layer: int, resid_pre: Tensor, recording: bool) -> tuple[dict, Tensor]:
        return super()._block(0, resid_pre, recording)


def run(model: Model, kind: type[TorchModel], *shown: str):
    module = kind.of_model(model)

    def call(tokens):
        record: dict = {}
        with torch.no_grad():
            logits = module(torch.as_tensor(np.asarray(tokens)).reshape(1, -1), record)
        return logits, {name: each for name, each in record.items() if name.startswith(shown)}

    return call


@pytest.mark.parametrize(
    ("kind", "shown", "words"),
    [
        (SoftmaxFirst, ("z", "resid_post"), "softmax before the scale"),
        (OneLayer, (), "one layer's weights for all"),
    ],
)
def test_it_is_named(kind: type[TorchModel], shown: tuple[str, ...], words: str) -> None:
    model = random_model(kind="gpt2")
    report = ot.audit(run(model, kind, *shown), TOKENS, weights=model)
    assert words in report.first_failure.diagnosis


YARN = (8.0, 0.2, 1.0, 12.0, 1.3)
OTHER = {
    "ends of the ramp not rounded": (*YARN, 0),
    "context 24 for 12": (8.0, 0.2, 1.0, 24.0, 1.3),
}


@pytest.mark.parametrize("words", OTHER)
def test_settings_of_yarn_are_named(words: str) -> None:
    model = random_model(kind="llama", rotary_stretch=YARN, rotary_base=50.0, n_layers=1)
    wrong = model.changed({}, replace(model.config, rotary_stretch=OTHER[words]))
    report = ot.audit(run(wrong, TorchModel), TOKENS, weights=model)
    assert f"YaRN's settings: {words}" in report.first_failure.diagnosis


def test_an_inverted_ramp_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    model = random_model(kind="llama", rotary_stretch=YARN, rotary_base=50.0, n_layers=1)
    from otimes.numeric import torch_model

    right = torch_model._ramped
    turned = lambda f, c: f + f / c.rotary_stretch[0] - right(f, c)  # noqa: E731
    monkeypatch.setattr(torch_model, "_ramped", turned)
    report = ot.audit(run(model, TorchModel), TOKENS, weights=model)
    assert "the ramp inverted" in report.first_failure.diagnosis
