"""What numeric code says that it is proved by is in the catalogue."""

from __future__ import annotations

import re

import pytest

from otimes.proofs.catalogue import find
from tests.test_imports import ROOT

NAMED = [
    (str(path.relative_to(ROOT / "numeric")), name.strip())
    for path in sorted((ROOT / "numeric").rglob("*.py"))
    for line in re.findall(r"Proved by: ([^.]*)\.", path.read_text(encoding="utf-8"))
    for name in line.split(",")
    if " " not in name.strip()
]


def test_each_rewriting_of_weights_names_its_theorem() -> None:
    assert {name for file, name in NAMED if file == "processing.py"} >= {
        "norm_gain_and_bias_fold",
        "value_biases_fold_into_output_bias",
        "key_bias_is_irrelevant",
        "centred_unembedding_keeps_probabilities",
    }
    assert sum(file == "processing.py" for file, _ in NAMED) == 9


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_it_is_there(file: str, name: str) -> None:
    assert find(name).name == name, file
