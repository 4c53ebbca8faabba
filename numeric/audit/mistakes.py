"""The known mistakes, each written once: what people compute, and in which words to say so.

`known_mistakes(config)` lists those that such a model can suffer. A mistake replaces operations of
the reference; it is what happened only if the reference with it gives what the implementation
showed, within its own bound (`diagnose`). The order is that in which they are tried: the first that
fits is named first.

Sources: the issue trackers of the libraries that compute transformers, and the pairs of conventions
that `Config` tells apart.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from numeric.audit import (
    mistakes_ends,
    mistakes_linear,
    mistakes_mlp,
    mistakes_norm,
    mistakes_norm_order,
    mistakes_pattern,
    mistakes_projections,
    mistakes_rotary,
    mistakes_rounding,
    mistakes_scores,
)
from numeric.audit.evaluate import Mistake
from numeric.config import Config

FAMILIES = (
    mistakes_norm,
    mistakes_norm_order,
    mistakes_projections,
    mistakes_rotary,
    mistakes_scores,
    mistakes_pattern,
    mistakes_linear,
    mistakes_mlp,
    mistakes_ends,
    mistakes_rounding,
)


@lru_cache(maxsize=64)
def known_mistakes(config: Config) -> tuple[Mistake, ...]:
    """Return the mistakes that can be made in such a model, the likeliest explanations first."""
    every: list[Mistake] = []
    for family in FAMILIES:
        every.extend(family.mistakes(config))
    return tuple(sorted(every, key=lambda mistake: mistake.rank))


def of_kind(mistakes: Iterable[Mistake], kinds: set[str]) -> Iterator[Mistake]:
    """Yield the mistakes that act at one of these kinds of places, and there only."""
    for mistake in mistakes:
        acts = {kind: act for kind, act in mistake.acts.items() if kind in kinds}
        if acts:
            yield replace(mistake, acts=acts)
