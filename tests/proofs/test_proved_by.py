"""What numeric code says that it is proved by is in the catalogue."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import numeric
from otimes.proofs.catalogue import find

ROOM = Path(numeric.__file__).parent
FOLDERS = [
    path
    for name in ("paths", "attribution", "behaviours")
    for path in sorted((ROOM / name).glob("*.py"))
]
FILES = [ROOM / "processing.py", ROOM / "frozen_layer.py", *FOLDERS]
NAMED = [
    (path.name, name.strip())
    for path in FILES
    for line in re.findall(r"Proved by: ([^.]*)\.", path.read_text())
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
