"""Progress of long computations: a bar at a terminal or in a notebook, or calls of a function.

Nothing is shown where standard error is neither, nor with `OTIMES_PROGRESS=0`. A bar is drawn after
each step by the loop itself: there is no thread and no mode of the terminal, so that an interrupted
computation leaves nothing behind that still draws.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Item = TypeVar("Item")

Report = Callable[[str, int, int | None], None]
"""A function of what is done, the number of steps done, and the number of all steps, if known."""

_asked: ContextVar[Report | bool] = ContextVar("progress", default=True)

SECONDS_BETWEEN = 0.1
"""A bar is drawn at most this often."""


@contextmanager
def progress(report: Report | bool) -> Iterator[None]:
    """Report the progress of computations inside a `with` statement, or not.

    `report` is False for silence, True for the bar that is the default, or a function
    `report(what, done, total)`, which is called before the first step and after each one; `total`
    is None where the number of steps is not known. An exception that it raises, such as
    KeyboardInterrupt, ends the computation.

    >>> with progress(lambda what, done, total: print(what, done, "of", total)):
    ...     list(tracked("ab", "reading"))
    reading 0 of 2
    reading 1 of 2
    reading 2 of 2
    ['a', 'b']
    """
    token = _asked.set(report)
    try:
        yield
    finally:
        _asked.reset(token)


def tracked(items: Iterable[Item], what: str) -> Iterator[Item]:
    """Yield the items, and report the progress.

    >>> sum(tracked(range(4), "adding"))
    6
    """
    total = len(items) if isinstance(items, Sized) else None
    report = _reporter()
    if report is None:
        yield from items
        return
    report(what, 0, total)
    try:
        for done, item in enumerate(items, start=1):
            yield item
            report(what, done, total)
    finally:
        if isinstance(report, Bar):
            report.clear()


def _reporter() -> Report | None:
    """Return the function to which progress is reported, None if there is none."""
    asked = _asked.get()
    if asked is False or (asked is True and os.environ.get("OTIMES_PROGRESS") == "0"):
        return None
    if asked is not True:
        return asked
    if sys.stderr.isatty():
        return TerminalBar()
    return NotebookBar() if _in_notebook() else None


def _in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, without an import of IPython."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


class Bar:
    """A progress bar, drawn at most every tenth of a second."""

    last = -SECONDS_BETWEEN

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Draw the bar, unless it was drawn just now."""
        now = time.monotonic()
        if now - self.last >= SECONDS_BETWEEN or done == total:
            self.last = now
            self.draw(what, done, total)

    def draw(self, what: str, done: int, total: int | None) -> None:
        """Show the state."""
        raise NotImplementedError

    def clear(self) -> None:
        """Remove the bar."""
        raise NotImplementedError


class TerminalBar(Bar):
    """One line on standard error, drawn by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self.stream = sys.stderr
        self.console = Console(file=self.stream)
        self.bars = Progress(console=self.console, auto_refresh=False)  # never started: no thread
        self.task: Any = None

    def draw(self, what: str, done: int, total: int | None) -> None:
        """Write the bar over the line."""
        if self.console.is_dumb_terminal:
            return
        if self.task is None:
            self.task = self.bars.add_task(what, total=total)
        self.bars.update(self.task, completed=done)
        with self.console.capture() as drawn:
            self.console.print(self.bars.get_renderable())
        self.stream.write(f"\r\x1b[2K{drawn.get().rstrip()}")
        self.stream.flush()

    def clear(self) -> None:
        """Erase the line."""
        if not self.console.is_dumb_terminal:
            self.stream.write("\r\x1b[2K")
            self.stream.flush()


class NotebookBar(Bar):
    """An output of the cell, which is replaced by each state."""

    handle: Any = None

    def draw(self, what: str, done: int, total: int | None) -> None:
        """Show a `<progress>` element."""
        whole = f' max="{total}"' if total else ""
        value = f' value="{done}"' if total else ""
        said = f"{what} {done}" + (f" of {total}" if total else "")
        self._show(said, f"{said} <progress{value}{whole}></progress>")

    def clear(self) -> None:
        """Empty the output."""
        if self.handle is not None:
            self._show("", "")

    def _show(self, text: str, html: str) -> None:
        from IPython.display import display

        data = {"text/plain": text, "text/html": html}
        if self.handle is None:
            self.handle = display(data, raw=True, display_id=True)
        else:
            self.handle.update(data, raw=True)
