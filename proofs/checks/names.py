"""Whether each symbol that is named like a weight or an activation is bound to that array.

An equation that holds for all matrices holds with W_K in the place of W_Q, too. What a page calls
W_Q is the W_Q of the model.
"""

from __future__ import annotations

from collections.abc import Iterator

from otimes.numeric.binding import AXES
from otimes.proofs.claims import Claim

GENERIC = frozenset("qkvz")
"""Names of recorded activations that are also usual names of any vector."""


def misnamed(claim: Claim) -> str:
    """Return which symbols are bound to another array than their name says; empty if none is."""
    return "; ".join(dict.fromkeys(_misnamed(claim)))


def _misnamed(claim: Claim) -> Iterator[str]:
    for bind in getattr(claim, "bind", ()):
        for symbol, source in bind.items():
            if symbol in AXES and symbol not in GENERIC and source.name != symbol:
                yield (
                    f"the symbol {symbol} is bound to {source.name}: bind it to {symbol}, or give "
                    "it a name that no array of a model has"
                )
