"""Commands that cannot do what is asked: one sentence, exit status 2, and nothing left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from otimes.algebra.errors import OtimesError
from otimes.numeric.files import check_writable
from tests.forked import otimes


def refused(*arguments: str) -> str:
    """Return the sentence with which a command ends before it has printed anything."""
    ran = otimes(*arguments)
    assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stderr.count("\n") == 1
    return ran.stderr


@pytest.fixture
def a_file(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("")
    return tmp_path / "file"


@pytest.mark.parametrize("device", ["nosuch", "cuda:99", "meta"])
def test_a_device_that_torch_cannot_use(device: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    asked = ("train", "zero_layer", "--out", str(tmp_path), "--device", device)
    assert refused(*asked).startswith(f"torch cannot compute on the device '{device}': ")


def test_a_folder_that_cannot_be_made_is_refused_before_the_training(a_file: Path) -> None:
    pytest.importorskip("torch")
    assert refused("train", "gpt2_tiny", "--out", str(a_file)).startswith(f"cannot write {a_file}")


@pytest.mark.parametrize("command", ["paths", "audit"])
def test_a_page_that_cannot_be_written_is_refused_first(command: str, a_file: Path) -> None:
    for page in (a_file / "page.html", a_file.parent, a_file.parent / "nowhere" / "page.html"):
        assert refused(command, "two_layer", "--html", str(page)).startswith(f"cannot write {page}")


@pytest.mark.parametrize("command", ["paths", "audit", "verify --model"])
def test_a_model_that_does_not_exist(command: str) -> None:
    assert refused(*command.split(), "nowhere").startswith("there is no model 'nowhere': ")


def test_writing_leaves_no_trace(tmp_path: Path, a_file: Path) -> None:
    check_writable(tmp_path / "in" / "folder", folder=True)
    check_writable(tmp_path / "page.html")
    check_writable(a_file)
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["file", "folder", "in"]
    with pytest.raises(OtimesError, match="it is a folder"):
        check_writable(tmp_path)


def children(process: int) -> list[int]:
    """Return the processes that a process has started."""
    tasks = Path(f"/proc/{process}/task")
    try:
        found = [(task / "children").read_text() for task in tasks.iterdir()]
    except OSError:
        return []
    return [int(child) for child in " ".join(found).split()]


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def until(done: object, seconds: float = 60) -> bool:
    """Wait until something is so, looking ten times a second."""
    for _ in range(int(10 * seconds)):
        if done():  # type: ignore[operator]
            return True
        time.sleep(0.1)
    return False


@pytest.fixture
def verifying() -> Iterator[subprocess.Popen[str]]:
    """`otimes verify`, which computes everything anew with several workers."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    process = subprocess.Popen(
        [sys.executable, "-m", "otimes", "verify", "--fresh", "--quick"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "XDG_CACHE_HOME": "/nonexistent"},
        # A shell starts what it puts into the background with interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_worker_is_left_over(number: int, verifying: subprocess.Popen[str]) -> None:
    assert until(lambda: children(verifying.pid))
    workers = children(verifying.pid)
    time.sleep(0.2)  # the workers are at work
    verifying.send_signal(number)
    _, errors = verifying.communicate(timeout=60)
    expected = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}
    assert verifying.returncode == expected[number], errors
    assert "Traceback" not in errors
    assert until(lambda: not any(map(alive, workers))), "workers are left over"
