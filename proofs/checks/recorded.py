"""That what a bound, a property or a definition is about is what the forward pass records.

Its `places` are expressions in its symbols. On a model they are compared with the recorded
activations, as those of an equation are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from otimes.numeric.binding import Run
from otimes.proofs.claims import Bound, Definition, NonIdentity, Property
from otimes.proofs.on_models import ModelEvidence, at, recorded_under, silent
from otimes.proofs.rebound import with_places

Tied = Bound | Definition | NonIdentity | Property


def held_to_places(claim: Tied, run: Run, found: ModelEvidence) -> ModelEvidence:
    """Return the evidence of a claim on a model, with the comparison of its places added."""
    ratios = [*place_ratios(claim, run)] if claim.places and not silent(claim, run) else []
    if not ratios:
        return found
    worst, where = max(ratios)
    if worst > 1:
        why = f"error/bound {worst:.3g} at {where}"
        return ModelEvidence(run.model, True, False, worst, 0.0, where, why)
    if not found.applies:
        return ModelEvidence(run.model, True, True, worst, 0.0, where, recorded=True)
    return replace(found, recorded=True)


def place_ratios(claim: Tied, run: Run) -> Iterator[tuple[float, str]]:
    """Yield error/bound of each comparison with a recorded activation, and where."""
    for case, comparisons in recorded_under(with_places(claim), run)(run):
        for comparison in comparisons:
            yield comparison.ratio, at(comparison.what, case)
