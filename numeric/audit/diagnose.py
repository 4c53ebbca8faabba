"""Diagnosis of the verdicts: the wrong activations, and the known mistakes that explain them."""

from collections.abc import Iterable
from dataclasses import dataclass

from otimes.numeric.audit.diagnosis.explain import (
    LEANS,
    another_setting,
    explanation,
    known_mistake,
    leaning,
)
from otimes.numeric.audit.diagnosis.localise import described
from otimes.numeric.audit.findings import Finding
from otimes.numeric.audit.judge import Verdict, judge
from otimes.numeric.audit.precision.mixed_precision import HALF
from otimes.numeric.audit.reference.comparison import Comparison, bounded, compare, finding, telling
from otimes.numeric.block import OF_HEADS, kind_of
from otimes.numeric.rounding.activations import in_dtype

DIAGNOSED = 3
"""The most findings that are diagnosed; later ones mostly follow from these."""

HARDLY = 3.0
"""An unexplained activation that exceeds its bound by less than this factor is called marginal."""

ROUNDED_WEIGHTS = "matches a single-precision step: weights that were rounded to float32"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The outcome of a comparison; `compared` includes the adopted conventions.

    `ratios` is error/bound by hook point, `heads` the same for each head; `tolerated` gives hook
    points with the steps of lower precision that explain them.
    """

    compared: Comparison
    findings: tuple[Finding, ...]
    ratios: dict[str, float]
    heads: dict[str, tuple[float, ...]]
    tolerated: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def diagnose(
    compared: Comparison, verdicts: Iterable[Verdict], first_only: bool = False
) -> Diagnosis:
    """Return the diagnosis from the verdicts on a comparison.

    With `first_only` it stops at the first fault, and no mistakes are tried.
    """
    findings, tolerated, notes = list[Finding](), list[tuple[str, str]](), list[str]()
    ratios, heads = dict[str, float](), dict[str, tuple[float, ...]]()
    for verdict in verdicts:
        compared, place = verdict.compared, verdict.place
        ratios[place] = verdict.ratio
        if kind_of(place) in OF_HEADS:
            heads[place] = verdict.heads
        if verdict.unclaimed:
            notes.append(
                f"not judged: {verdict.unclaimed} entries of {place}, which rounding may undo"
            )
        if not verdict.wrong:
            if leans := _leaning(verdict):
                findings.append(_finding(verdict, leans))
            continue
        if verdict.tolerated and not _of_rounded_weights(verdict) and not _mistaken(verdict):
            ratios[place] = 1.0
            tolerated.append((place, verdict.tolerated))
            continue
        named = len(findings) < DIAGNOSED and not first_only
        says = _explanation(verdict, named)
        if not says and _marginal(verdict):
            says = f"marginal: {place} is {verdict.ratio:.2g} times what rounding usually makes,"
            notes.append(f"{says} and within what it can make")
            continue
        if named and not says:
            says = described(compared, place)
        findings.append(_finding(verdict, says))
        if first_only:
            break
    return Diagnosis(compared, tuple(findings), ratios, heads, tuple(tolerated), tuple(notes))


def judged(compared: Comparison, first_only: bool = False) -> Diagnosis:
    """Judge the activations of a comparison, and return the diagnosis."""
    return diagnose(compared, judge(compared), first_only)


def _finding(verdict: Verdict, says: str) -> Finding:
    heads = verdict.heads if kind_of(verdict.place) in OF_HEADS else ()
    return finding(verdict.compared, verdict.place, says, heads)


def _leaning(verdict: Verdict) -> str:
    """Return the diagnosis of a mistake that shows only in all entries together, or ""."""
    if verdict.rewritten or not verdict.ratio > LEANS:
        return ""
    return leaning(verdict.compared, verdict.place)


def _explanation(verdict: Verdict, named: bool) -> str:
    """Return the mistakes that explain a wrong activation; none are tried unless `named`."""
    if verdict.tolerated and _of_rounded_weights(verdict):
        return ROUNDED_WEIGHTS
    heads = verdict.heads if kind_of(verdict.place) in OF_HEADS else ()
    return explanation(verdict.compared, verdict.place, heads) if named else ""


def _of_rounded_weights(verdict: Verdict) -> bool:
    """Return whether weights rounded to float32 alone explain a wrong activation."""
    compared, place = verdict.compared, verdict.place
    if compared.dtype != "float64" or not compared.estimated(place):
        return False
    rounded = in_dtype(compared.model, "float32")
    again = compare(rounded, compared.prompts, compared.dtype, unturned=compared.unturned)
    return again.ratio(place) <= 1


def _mistaken(verdict: Verdict) -> bool:
    """Return whether a mistake also explains an activation explained by lower precision."""
    compared, place = verdict.compared, verdict.place
    found = known_mistake(compared, place)
    if "half" in found and {compared.dtype, compared.casts}.intersection(HALF):
        found = ""
    return bool(found or another_setting(compared, place) or leaning(compared, place))


def _marginal(verdict: Verdict) -> bool:
    """Return whether an error barely exceeds the likely bound, or is within the proven bound."""
    place, compared = verdict.place, verdict.compared
    if verdict.ratio <= HARDLY:
        return True
    if compared.estimated(place):
        return False
    nears = bounded(compared, place)
    return all(map(telling, nears)) and compared.within(place, nears)
