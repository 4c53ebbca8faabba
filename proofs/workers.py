"""A pool of processes that end with the work, also if it fails or this process is killed."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from threading import Thread


@contextmanager
def process_pool(n_workers: int | None = None) -> Iterator[Executor]:
    """Yield an executor of processes, which end at once if the block raises, also by an interrupt.

    >>> with process_pool(2) as pool:
    ...     list(pool.map(abs, [-1, 2]))
    [1, 2]
    """
    stopped, stop = multiprocessing.Pipe(duplex=False)
    with ProcessPoolExecutor(n_workers, initializer=_begin, initargs=(stopped,)) as pool:
        try:
            yield pool
        except BaseException:
            stop.send(None)  # all workers see that there is something to receive
            raise


def _begin(stopped: Connection) -> None:
    """Let the parent handle interrupts, and watch it; look for garbage less often.

    Most of what a worker makes stays in caches, and what it was forked with stays anyhow.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, args=(stopped,), daemon=True).start()


def _end_with_parent(stopped: Connection) -> None:
    parent = multiprocessing.parent_process()
    wait([stopped, *([parent.sentinel] if parent else [])])
    os._exit(1)
