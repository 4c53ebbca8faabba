"""Judge each recorded activation: right, right in another convention, of lower precision, or wrong.

Activations are judged in the order of the forward pass. One within its bound is right. For others,
steps of lower precision that well-known code makes on purpose are tried. Then rewrites that leave
the logits unchanged are; a confirmed one is adopted for later activations.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.capture.collect import Capture
from otimes.numeric.audit.diagnosis.explain import explanation
from otimes.numeric.audit.findings import Gauge
from otimes.numeric.audit.precision.mixed_precision import with_half_precision
from otimes.numeric.audit.precision.tolerated import tolerated_steps
from otimes.numeric.audit.reference.comparison import (
    Comparison,
    compare,
    forget,
    head_ratios,
    unclaimed,
)
from otimes.numeric.audit.symmetries.candidate import Rewrite
from otimes.numeric.audit.symmetries.queries_keys import recorded_before_rotation
from otimes.numeric.audit.symmetries.residual_stream import align_stream
from otimes.numeric.audit.symmetries.search import confirmed, rewrites
from otimes.numeric.config import ENCODER
from otimes.numeric.model import Model
from otimes.numeric.progress import tracked
from otimes.numeric.rounding.activations import in_dtype
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one activation: its error/bound, and the conventions that were adopted.

    `compared` is the comparison with all conventions adopted so far; `rewritten`, whether one was
    adopted here. `ratio` is the largest error/bound, `heads` that of each head; `ratio` is 1 where
    an adopted convention explains the activation. `tolerated` names the steps of lower precision
    that explain a wrong one, and `unclaimed` counts entries without a finite bound.
    """

    place: str
    compared: Comparison
    ratio: float
    heads: tuple[float, ...]
    unclaimed: int
    rewritten: bool = False
    tolerated: str = ""

    @property
    def wrong(self) -> bool:
        """Whether the activation exceeds its bound; a NaN does."""
        return not self.ratio <= 1


def check_causal(model: Model) -> None:
    """Raise OtimesError for an encoder: what is audited is a causal pass."""
    if not model.config.causal:
        raise OtimesError(f"an audit is not for {ENCODER}")


def comparison_of(capture: Capture, model: Model) -> Comparison:
    """Return the comparison of a capture with a model whose weights have its dtype."""
    model = model if capture.own_weights else held(model, capture.dtype)
    compared = compare(model, capture.prompts, capture.dtype, capture.unturned)
    return with_half_precision(compared, capture.coarser)


def held(model: Model, dtype: str) -> Model:
    """Return the model with its weights rounded to a dtype, if they have higher precision."""
    coarser = [
        name
        for name, array in model.weights.items()
        if UNIT_ROUNDOFF.get(array.dtype.name, 0.0) < UNIT_ROUNDOFF[dtype]
    ]
    return in_dtype(model, dtype) if coarser else model


def judge(compared: Comparison) -> Iterator[Verdict]:
    """Yield the verdict on each recorded activation, in the order of the forward pass."""
    compared = align_stream(compared)
    for place in tracked(compared.places, "judging activations"):
        if place not in compared.recorded:
            continue  # an adopted rewrite treats it as not recorded
        measured = _tolerated(_measured(compared, place))
        verdict = measured if measured.tolerated else _under_rewrites(measured)
        verdict = verdict if verdict is measured else _tolerated(verdict)
        yield verdict
        compared = verdict.compared


def _measured(compared: Comparison, place: str) -> Verdict:
    """Return the verdict on an activation by its bound alone."""
    forget(compared, place)
    heads = head_ratios(compared, place)
    free = sum(unclaimed(compared.model.config, place, near) for near in compared.nearly(place))
    return Verdict(place, compared, max(heads), heads, free)


def _tolerated(verdict: Verdict) -> Verdict:
    """Return the verdict with the steps of lower precision that explain a wrong activation."""
    if not verdict.wrong:
        return verdict
    return replace(verdict, tolerated=tolerated_steps(verdict.compared, verdict.place))


def _under_rewrites(verdict: Verdict) -> Verdict:
    """Return the verdict after adopting confirmed rewrites that explain a wrong activation."""
    rewrite = _adopted(verdict.compared, verdict.place) if verdict.wrong else None
    if rewrite is None:
        return verdict
    place, before = verdict.place, verdict.compared.recorded[verdict.place]
    compared = verdict.compared.with_places(rewrite.places, Gauge(place, rewrite.says))
    after = compared.recorded.get(place)
    if after is None or after is before:
        return replace(verdict, compared=compared, ratio=1.0, rewritten=True)
    return replace(_under_rewrites(_measured(compared, place)), rewritten=True)


def _adopted(compared: Comparison, place: str) -> Rewrite | None:
    """Return a confirmed rewrite that explains a wrong activation, or None."""
    waiting = []
    for rewrite in rewrites(compared, place):
        if confirmed(compared, rewrite):
            return rewrite
        waiting.append(rewrite)
    confirmed_so = (each for each in waiting if _confirmed_by_a_mistake(compared, each))
    return next(confirmed_so, None) or recorded_before_rotation(compared, place)


def _confirmed_by_a_mistake(compared: Comparison, rewrite: Rewrite) -> bool:
    """Return whether known mistakes in a later, wrong activation confirm a rewrite.

    A mistake must explain it only under the rewrite; with `unless_right`, not only without it.
    """
    trial = compared.with_places(rewrite.places)
    for place in compared.readers(set(rewrite.touches)):
        if place in trial.recorded and compared.ratio(place) > 1:
            there = bool(explanation(trial, place))
            return there if there == rewrite.unless_right else not explanation(compared, place)
    return False
