"""How long `decide` takes over the suite of identities, nothing remembered from one to the next.

`make bench` prints the median and the slowest of each kind; every verdict is compared with what the
suite says. Times are of the processor, the least of three: those of this machine, at this moment.
"""

from __future__ import annotations

import statistics
import sys
import time
from math import inf

from rich.console import Console
from rich.table import Table
from sympy.core.cache import clear_cache

from otimes.algebra.verdict import decide
from tests.algebra.decide.suite import KINDS, SUITE, Identity

REPEATS = 3


def forget() -> None:
    """Empty SymPy's caches and ours."""
    clear_cache()
    for name, module in list(sys.modules.items()):
        if name.startswith("otimes.algebra"):
            for value in list(vars(module).values()):
                getattr(value, "cache_clear", lambda: None)()


def seconds(identity: Identity) -> float:
    least = inf
    for _ in range(REPEATS):
        forget()
        start = time.process_time()
        verdict = decide(identity.lhs, identity.rhs, identity.given)
        least = min(least, time.process_time() - start)
        assert verdict.status == ("proved" if identity.truth else "refuted"), (identity, verdict)
    return least


def main() -> None:
    """Print the table."""
    decide(SUITE[0].lhs, SUITE[0].rhs)  # what is loaded on first use is no part of the question
    times = {identity: seconds(identity) for identity in SUITE}
    table = Table("kind", "true", "false", "median", "slowest", "which")
    for name, identities in [(kind.name, kind.identities) for kind in KINDS] + [("all", SUITE)]:
        slowest = max(identities, key=lambda identity: times[identity])
        table.add_row(
            name,
            str(sum(identity.truth for identity in identities)),
            str(sum(not identity.truth for identity in identities)),
            f"{1e3 * statistics.median(times[identity] for identity in identities):.2f} ms",
            f"{1e3 * times[slowest]:.0f} ms",
            slowest.name,
        )
    Console().print(table)


if __name__ == "__main__":
    main()
