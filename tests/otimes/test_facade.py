"""The front door hands out what it promises, and nothing of a stranger's package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import otimes as ot

ROOT = Path(ot.__file__).parent.parent


@pytest.mark.parametrize("name", ot.__all__)
def test_every_name_exists(name: str) -> None:
    assert getattr(ot, name) is getattr(ot, name)
    assert name in dir(ot)


def test_the_list_of_names_is_the_table_of_homes() -> None:
    assert sorted(ot._HOME) == sorted(ot.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'otimes' has no attribute 'prive'"):
        _ = ot.prive


def in_a_folder_with(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code with `folder` before ours on Python's path."""
    path = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(ROOT)!r}]\n"
    return subprocess.run(
        [sys.executable, "-P", "-c", path + code], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("room", "name"), [("algebra", "decide"), ("numeric", "load_model"), ("proofs", "verify")]
)
def test_a_strangers_package_is_refused_by_file(tmp_path: Path, room: str, name: str) -> None:
    (tmp_path / room).mkdir()
    stranger = tmp_path / room / "__init__.py"
    stranger.write_text("def decide(): ...\n")
    run = in_a_folder_with(
        tmp_path,
        f"import otimes\ntry:\n    otimes.{name}\nexcept ImportError as e:\n    print(e)\n",
    )
    assert str(stranger) in run.stdout
    assert "install otimes from its repository into an environment of its own" in run.stdout
    assert len(run.stdout.splitlines()) == 1


def test_a_strangers_package_is_refused_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "algebra").mkdir()
    (tmp_path / "algebra" / "__init__.py").write_text("")
    run = in_a_folder_with(
        tmp_path, "sys.argv = ['otimes', 'verify']\nfrom otimes.cli import main\nmain()"
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("otimes needs its own package 'algebra'")
    assert len(run.stderr.splitlines()) == 1
