"""The known mistakes of a forward pass: one registry of `Mistake` records.

Each entry has a description, the operations of the reference that it replaces, by hook point, and a
rank. `known_mistakes(config)` lists those that apply to a model. A mistake is the
diagnosis only if the reference with it reproduces the recorded activations within its own bound
(`diagnose`). They are tried by rank, and the first that fits is named first.

Sources: the issue trackers of the libraries that compute transformers, and the pairs of conventions
that `Config` tells apart.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from otimes.numeric.audit.mistakes import (
    embeddings,
    experts,
    half_precision,
    latents,
    linear,
    mlp,
    norm_placement,
    norms,
    patterns,
    projections,
    rotary,
    scores,
    settings,
)
from otimes.numeric.audit.reference.evaluator import Mistake
from otimes.numeric.config import Config

FAMILIES = (
    norms,
    norm_placement,
    projections,
    rotary,
    scores,
    patterns,
    settings,
    latents,
    linear,
    mlp,
    experts,
    embeddings,
    half_precision,
)


@lru_cache(maxsize=64)
def known_mistakes(config: Config) -> tuple[Mistake, ...]:
    """Return the mistakes that apply to a model of this configuration, by rank."""
    every: list[Mistake] = []
    for family in FAMILIES:
        every.extend(family.mistakes(config))
    return tuple(sorted(every, key=lambda mistake: mistake.rank))


def of_kind(mistakes: Iterable[Mistake], kinds: set[str]) -> Iterator[Mistake]:
    """Yield the mistakes at these kinds of hook points, restricted to them."""
    for mistake in mistakes:
        acts = {kind: act for kind, act in mistake.acts.items() if kind in kinds}
        if acts:
            yield replace(mistake, acts=acts)
