"""Progress on long work: a bar on stderr where that is a terminal, and nothing anywhere else."""

from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

Item = TypeVar("Item")


def tracked(items: Iterable[Item], what: str) -> Iterator[Item]:
    """Yield the items; a person at a terminal sees how many are done.

    >>> sum(tracked(range(4), "adding"))
    6
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    total = len(items) if isinstance(items, Sized) else None
    yield from track(
        items, what, total, console=console, transient=True, disable=not console.is_terminal
    )
