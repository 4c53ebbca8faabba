"""A bar at a terminal, and not a byte anywhere else."""

import io
import sys

import pytest

from otimes.numeric.progress import tracked


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "shown"), [(io.StringIO, False), (Terminal, True)])
def test_a_terminal_sees_what_is_done(monkeypatch, stream: type[io.StringIO], shown: bool) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    out = stream()
    monkeypatch.setattr(sys, "stderr", out)
    assert list(tracked(range(3), "counting")) == [0, 1, 2]
    assert list(tracked(iter("ab"), "of no length")) == ["a", "b"]
    assert ("counting" in out.getvalue()) is shown
    assert bool(out.getvalue()) is shown
