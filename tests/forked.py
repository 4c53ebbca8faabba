"""`otimes` or `pytest` in a fork of this process: a process of its own, without seconds of imports.

What depends on the start itself has tests that start Python: `otimes/test_cli.py` for the command,
`otimes/test_wheel.py` and `otimes/test_audit.py` for the plugin of pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn

import pytest

from otimes.cli import main


def otimes(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, with some environment variables; return what it printed."""
    return _forked("otimes", main, arguments, cwd, env or {})


def run_pytest(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder; return what it printed."""
    return _forked("pytest", pytest.console_main, arguments, cwd, {})


def _forked(
    name: str,
    run: Callable[[], Any],
    arguments: tuple[str, ...],
    cwd: Path | None,
    env: Mapping[str, str],
) -> subprocess.CompletedProcess[str]:
    with TemporaryFile() as out, TemporaryFile() as errors:
        with warnings.catch_warnings():  # that a process with threads forks: the child has one
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            _command([name, *arguments], run, out, errors, cwd, env)
        _, status = os.waitpid(child, 0)
        said = [_text(each) for each in (out, errors)]
    return subprocess.CompletedProcess(arguments, os.waitstatus_to_exitcode(status), *said)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _command(
    argv: list[str],
    run: Callable[[], Any],
    out: IO[bytes],
    errors: IO[bytes],
    cwd: Path | None,
    env: Mapping[str, str],
) -> NoReturn:
    status: Any = 1
    try:
        sys.stdout, sys.stderr = (_instead(k, file) for k, file in ((1, out), (2, errors)))
        warnings.resetwarnings()
        os.environ.update(env)
        os.chdir(cwd or Path.cwd())
        sys.argv = argv
        status = run()
    except SystemExit as stop:
        status = stop.code or 0
    except BaseException:  # noqa: BLE001 - as Python ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _instead(number: int, file: IO[bytes]) -> IO[str]:
    os.dup2(file.fileno(), number)
    return open(number, "w", encoding="utf-8", closefd=False)
