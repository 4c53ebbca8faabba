"""Commands with bad arguments, files and terminals: one sentence, status 2, and no traceback."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import otimes as ot
from tests.forked import otimes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files and model folders, each of which is wrong in one way."""
    ot.catalogue()  # imported once, before the processes fork
    found = tmp_path_factory.mktemp("bad")
    for name, content in {
        "file": b"",
        "binary.py": bytes(range(256)),
        "exits.py": b"raise SystemExit(0)",
        "claims.py": b"from otimes import theorem\n@theorem\ndef f():\n    'X.'\n    exit(0)\n",
        "a.md": b"$A = A$",
    }.items():
        (found / name).write_bytes(content)
    ot.random_model().save(found / "model")
    for name, stored_in in {"number": 3, "outside": "../model/weights.safetensors"}.items():
        (found / name).mkdir()
        (found / name / "config.json").write_text('{"model_type": "gpt2"}')
        index = found / name / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": {"wte.weight": stored_in}}))
    return found


HUGE = str(10**30)
SAID = {
    "nosuch": "No such command 'nosuch'; `otimes --help` says what it takes",
    "verify --chapter x": "'x' is not a valid integer; `otimes verify --help` says",
    "verify a.md": "'a.md' is no theorem and no Python file of theorems; `otimes check a.md`",
    "show vec_cols": "there is no theorem 'vec_cols'; similar names are ",
    "verify binary.py": "binary.py: source code string cannot contain null bytes",
    "verify exits.py": "exits.py, line 1: SystemExit: 0",
    "paths number": "says that a tensor is in 3, which is no name of a file beside it",
    "paths outside": "is in '../model/weights.safetensors', which is no name of a file beside it",
    f"paths model --tokens {HUGE}": f"token {HUGE} at position 0 is not in the vocabulary",
    f"paths model --tokens 1 --token {HUGE}": f"token {HUGE} is not in the vocabulary",
    "paths model --tokens 1 --top 0": "'--top': 0 is not in the range",
    "paths model --tokens 1 --mlp x": "'x' is not one of 'sources', 'gates'",
    "train modular_addition --seed -1": "'--seed': -1 is not in the range",
    "train modular_addition --out file": "cannot write file/modular_addition",
    "check a.md --html nowhere/page.html": "cannot write nowhere/page.html",
    "check a.md --sarif .": "cannot write .: it is a folder",
}


@pytest.mark.parametrize("command", SAID)
def test_one_sentence_and_status_2(command: str, folder: Path) -> None:
    ran = otimes(*command.split(), cwd=folder)
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    assert SAID[command] in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_theorem_that_exits_does_not_pass(folder: Path) -> None:
    """Status 0 would say that all is proved."""
    ran = otimes("verify", "claims.py", "--quick", cwd=folder)
    assert ran.returncode == 1
    assert "f cannot be stated, line 5: SystemExit: 0" in ran.stdout


PROVE = ("prove", "(A ⊗ B)(C ⊗ D) = A C ⊗ B D")


@pytest.mark.parametrize("env", [{"COLUMNS": "1"}, {"COLUMNS": "-5"}, {"TERM": "dumb"}])
def test_a_terminal_of_any_width(env: Mapping[str, str]) -> None:
    ran = otimes(*PROVE, env=env)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "proved" in ran.stdout


def test_closed_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `otimes … >&- 2>&-`, which leaves Python without them."""
    monkeypatch.setattr("tests.forked._instead", lambda number, _: os.close(number))
    assert otimes(*PROVE).returncode == 0


def test_a_refuted_equation_comes_with_the_hypotheses_that_would_do() -> None:
    asked = ("A (X + 𝟏 b) = A X + 𝟏 b", "--shapes", "A: n n, X: n d, b: 1 d")
    ran = otimes("prove", *asked)
    needs = "it holds if b is zero, or if A has rows that sum to one"
    assert (ran.returncode, ran.stdout.splitlines()[-1]) == (1, needs)


def test_a_number_1_that_was_meant_as_ones() -> None:
    for formula in ("X + 1 b", "A (1 b)", "(1 b) A"):
        with pytest.raises(ot.ShapeError, match="𝟏 is the column of ones"):
            ot.parse(formula, shapes="A: n n, X: n d, b: 1 d")
    with pytest.raises(ot.ShapeError, match="inner sizes n and d differ$"):
        ot.parse("A Y", shapes="A: n n, Y: d n")
