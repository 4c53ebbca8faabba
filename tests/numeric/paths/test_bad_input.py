"""What cannot be asked is refused in one sentence, before anything is computed or written."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import otimes as ot
from otimes.numeric.model import save_model
from otimes.numeric.paths.ensemble import paths
from tests.numeric.random_models import TINY, random_weights


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(tmp_path / "mine", TINY, random_weights(TINY), {})
    return tmp_path / "mine"


def _with_weights(change: Callable[[dict[str, np.ndarray]], object]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        weights = random_weights(TINY)
        change(weights)
        save_model(folder, TINY, weights, {})

    return spoil


def _pickled(folder: Path) -> None:
    (folder / "weights.safetensors").write_bytes(pickle.dumps({"W_E": [1.0]}))


def _cut_short(folder: Path) -> None:
    whole = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(whole[: len(whole) // 2])


def _another_width(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "d_head": 3}))


SPOILT = {
    "nan": (_with_weights(lambda w: w["W_V"].__setitem__((1, 2, 4, 1), np.nan)),
            r"model mine: W_V is not finite: its entry \(1, 2, 4, 1\) is nan"),
    "infinite": (_with_weights(lambda w: w["W_U"].__setitem__((0, 3), -np.inf)),
                 r"model mine: W_U is not finite: its entry \(0, 3\) is -inf"),
    "missing": (_with_weights(lambda w: w.pop("W_O")), "the weights lack W_O"),
    "shape": (_with_weights(lambda w: w.update(W_E=w["W_E"].T)), r"W_E has shape \(5, 11\)"),
    "config": (_another_width, r"model mine: W_Q has shape \(2, 3, 5, 2\)"),
    "pickle": (_pickled, r"weights\.safetensors is a pickle, which can run arbitrary code when it"),
    "cut short": (_cut_short, "is damaged or not a safetensors file"),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILT)
def test_a_spoilt_model_is_not_loaded(what: str, folder: Path) -> None:
    spoil, said = SPOILT[what]
    spoil(folder)
    for ask in (ot.load_model, lambda mine: ot.paths(mine, [1, 2])):
        with pytest.raises(ot.OtimesError, match=said) as refused:
            ask(folder)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        ([], "the prompt is empty"),
        (range(8), "the prompt has 8 tokens, but mine takes at most n_ctx=7"),
        ([1, 11], "token 11 at position 1 is not in the vocabulary of mine"),
        ([-1], "token -1 at position 0 is not in the vocabulary"),
        ([10**30], "token 1000000000000000000000000000000 at position 0 is not in the vocabulary"),
        ([[1, 2], [3, 4]], "a batch of 2 was given: call once for each prompt"),
        ("def f", "the prompt is text, but mine has 11 tokens and the bundled vocabulary"),
        (None, r"a prompt must be a flat list of tokens, got an array of shape \(\)"),
    ],
)
def test_a_prompt_that_cannot_be_read(folder: Path, tokens: object, said: str) -> None:
    with pytest.raises(ot.OtimesError, match=said) as refused:
        paths(folder, tokens)
    assert "\n" not in str(refused.value)


def test_other_things_that_are_no_model_type_or_direction(folder: Path) -> None:
    with pytest.raises(ot.OtimesError, match="by its name, from a folder or file, .* got 3"):
        paths(3, [1])  # type: ignore[arg-type]
    with pytest.raises(ot.OtimesError, match="in float64 or float32, not in 'x'"):
        paths(folder, [1], dtype="x")
    with pytest.raises(ot.OtimesError, match="a direction must be finite"):
        paths(folder, [1]).heads(0, np.full(5, np.nan))


@pytest.mark.parametrize("what", ["nan", "missing", "pickle"])
def test_the_command_line_says_it_once_and_writes_nothing(
    what: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from otimes.cli import main

    spoil, _ = SPOILT[what]
    spoil(folder)
    page = tmp_path / "page.html"
    asked = ["otimes", "paths", str(folder), "--tokens", "1,2", "--html", str(page), "--json"]
    monkeypatch.setattr("sys.argv", asked)
    with pytest.raises(SystemExit) as ended:
        main()
    seen = capsys.readouterr()
    assert ended.value.code == 2
    assert seen.out == ""
    assert len(seen.err.strip().splitlines()) == 1
    assert not page.exists()
