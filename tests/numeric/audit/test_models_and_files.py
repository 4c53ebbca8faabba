"""What is audited besides modules and callables: models of this package, and lone files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import otimes as ot
from otimes.numeric.audit.checkpoint import audit_folder
from otimes.numeric.config import gpt2_config

TOKENS = [3, 1, 4, 1, 5, 9, 2, 6]
MODEL = ot.random_model(
    gpt2_config(n_layers=1, n_heads=2, d_model=8, d_head=4, d_mlp=8, d_vocab=11, n_ctx=8), seed=1
)


def test_a_model_whose_norms_are_folded_computes_the_same_in_other_coordinates() -> None:
    folded = MODEL.fold_norms()
    found = ot.audit(folded, TOKENS, weights=MODEL)
    assert found.passed
    assert {gauge.place for gauge in found.gauges} == {"ln1.0", "ln2.0", "ln_final"}
    without = folded.changed({"b_K": MODEL.b_K, "b_V": MODEL.b_V})
    failure = ot.audit(without, TOKENS, weights=MODEL).first_failure
    assert failure is not None
    assert failure.hook_point == "v.0"


def test_a_model_needs_weights_to_be_compared_with() -> None:
    with pytest.raises(ot.OtimesError, match="weights= is needed to audit Model"):
        ot.audit(MODEL, TOKENS)


def test_a_lone_file_with_its_configuration(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    folder = MODEL.save(tmp_path / "whole")
    lone = (folder / "weights.safetensors").rename(tmp_path / "lone.safetensors")
    settings = json.loads((folder / "config.json").read_text())
    assert audit_folder(str(lone), TOKENS, settings).passed
    with pytest.raises(ot.OtimesError, match=r"no config.json beside it: give config=, or --conf"):
        audit_folder(str(lone), TOKENS)


def test_a_list_that_should_be_a_tensor() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ot.OtimesError, match=r"give them as a tensor, torch.tensor\(\[\["):
        ot.audit(torch.nn.Embedding(11, 8), TOKENS, weights=MODEL)
