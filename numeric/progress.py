"""A progress bar for long computations, on stderr, only if it is a terminal."""

import sys
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")


def tracked(items: Iterable[Item], what: str) -> Iterator[Item]:
    """Yield the items, with a progress bar on a terminal.

    >>> sum(tracked(range(4), "adding"))
    6
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    total = len(items) if isinstance(items, Sized) else None
    yield from track(items, what, total, console=Console(stderr=True), transient=True)
