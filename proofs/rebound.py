"""Mutants of a binding: the symbols of a claim bound to other arrays of a model than its own.

An equation that holds for all matrices holds for the wrong ones, too. That a claim is about what
its title says is seen where its expressions are compared with recorded activations: with another
layer, another head, W_K for W_Q or scores for patterns they must differ from what is recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.shapes import inspect
from otimes.numeric.binding import AXES, Run, source_of
from otimes.proofs.claims import Bound, NonIdentity, Statement
from otimes.proofs.on_models import Placed, Under, recorded_under, silent


@dataclass(frozen=True, slots=True)
class BindingEvidence:
    """How many wrong bindings of a claim differ from what is recorded, and which do not.

    `unchanged` are those that the claim explains by its `unchanged_by`, `unnoticed` the others.
    `stale` are explained although a model tells them from the right binding.
    """

    noticed: int
    unchanged: tuple[str, ...]
    unnoticed: tuple[str, ...]
    stale: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether every wrong binding is noticed, or explained."""
        return not self.unnoticed and not self.stale


def check_bindings(claim: Placed, runs: Sequence[Run]) -> BindingEvidence | None:
    """Return which wrong bindings are noticed on a model; None if nothing recorded is compared."""
    stated = with_places(claim)
    if not stated.places or not stated.on_models:
        return None
    verdicts: dict[str, bool] = {}
    for run in runs:
        if silent(claim, run):
            continue
        under = recorded_under(stated, run)
        if not any(True for _, comparisons in under(run) for _ in comparisons):
            continue
        for change, wrong in wrong_runs(stated, run):
            if not verdicts.get(change):
                found = _noticed(under, wrong, _array_of(change))
                if found is not None:
                    verdicts[change] = found
    if not verdicts:
        return None
    same = [change for change, noticed in verdicts.items() if not noticed]
    return BindingEvidence(
        len(verdicts) - len(same),
        tuple(change for change in same if change in claim.unchanged_by),
        tuple(change for change in same if change not in claim.unchanged_by),
        tuple(change for change in claim.unchanged_by if verdicts.get(change)),
    )


def with_places(claim: Placed) -> Statement:
    """Return any claim as the statement that its expressions are recorded at its places.

    The places of a definition may be names: those of its value.
    """
    if isinstance(claim, Statement):
        return claim
    subject, *others = claim.expressions
    named = claim.places
    if not isinstance(named, Mapping):
        named = dict.fromkeys(named, subject)
    other = others[0] if isinstance(claim, NonIdentity | Bound) else subject
    return Statement(
        subject,
        other,
        places=named,
        given=claim.given,
        bind=claim.bind,
        on_models=claim.on_models,
    )


def wrong_runs(stated: Statement, run: Run) -> Iterator[tuple[str, Run]]:
    """Yield the run with one array that the claim reads replaced by another, and the change."""
    for name in _arrays_read(stated, run):
        array, axes = run.arrays[name], AXES[name]
        wrong = [(f"{other} for {name}", run.arrays.get(other)) for other in AXES if other != name]
        wrong = [(change, other) for change, other in wrong if AXES[change.split()[0]] == axes]
        for axis, word in (("L", "layer"), ("H", "head")):
            if axis in axes[:-2]:
                wrong.append((f"{name} of another {word}", np.roll(array, 1, axes.index(axis))))
        wrong.append((f"{name} with its columns shifted", np.roll(array, 1, -1)))
        for change, other in wrong:
            if (
                other is not None
                and other.shape == array.shape
                and not np.array_equal(other, array)
            ):
                yield change, replace(run, arrays={**run.arrays, name: other})


def _arrays_read(stated: Statement, run: Run) -> list[str]:
    """Return the arrays to which the symbols are bound, by the first binding that the model has."""
    tensors = inspect(*stated.expressions).tensors
    for bind in stated.bind:
        sources = [source for name in tensors if (source := source_of(name, bind)) is not None]
        known = all(source.name in run.arrays for source in sources)
        if known and len(sources) == len(tensors):
            about = (source.name for source in sources if not source.example)
            return list(dict.fromkeys(about))
    return []


def _array_of(change: str) -> str:
    """Return the array that a change replaces: the last in “W_K for W_Q”, else the first."""
    return change.split(" for ")[-1].split()[0]


def _noticed(under: Under, wrong: Run, array: str) -> bool | None:
    """Return whether a comparison of what reads an array fails; None where there is no value."""
    try:
        return any(
            comparison.ratio > 1 for _, compared in under(wrong, array) for comparison in compared
        )
    except OtimesError:
        return None
