"""The data that observations of neurons read: counts of tokens, and a second model."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from otimes.numeric.corpus import Source, unigram_counts, write_unigrams
from otimes.numeric.load import load_model
from otimes.numeric.tokenizer import BUNDLED, load_tokenizer


def test_counts_are_of_the_training_text_of_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = unigram_counts()
    card = load_model("gpt2_tiny").card["data"]
    stored = json.loads((BUNDLED / "unigrams.json").read_text())
    assert (stored["sha256"], counts.sum()) == (card["sha256"], card["train_tokens"])
    write_unigrams(tmp_path / "unigrams.json", Source(("x = xx\n",), 7, "none"))
    monkeypatch.setattr("otimes.numeric.corpus.BUNDLED", tmp_path)
    found, expected = unigram_counts(), np.zeros(1024)
    for token in load_tokenizer().encode("x = xx\n"):
        expected[token] += 1
    np.testing.assert_array_equal(found, expected)


def test_the_second_model_is_of_the_recipe_that_makes_it() -> None:
    pytest.importorskip("torch")
    from otimes.numeric.training import RECIPES

    model = load_model(BUNDLED / "gpt2_twin" / "twin.safetensors")
    card = json.loads((BUNDLED / "gpt2_twin" / "card.json").read_text())
    settings = asdict(RECIPES["gpt2_twin"])
    assert model.config == RECIPES["gpt2_twin"].config
    assert card["seed"] == 1
    assert card["settings"] == {
        key: json.loads(json.dumps(value)) for key, value in settings.items() if key != "config"
    }
    assert card["train_again"] == "otimes train gpt2_twin --seed 1"
