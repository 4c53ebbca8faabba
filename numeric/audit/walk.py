"""The walk through the places: each is within its bound, said otherwise, coarser, or wrong."""

from numeric.audit.described import described
from numeric.audit.diagnose import another_setting, diagnose, known_mistake, leaning
from numeric.audit.findings import Finding, Gauge
from numeric.audit.floors import floors
from numeric.audit.judge import Judge, telling
from numeric.audit.reading import Reading
from numeric.audit.readings import confirmed, readings
from numeric.audit.readings_of_queries import read_as_turned
from numeric.audit.stream import settle_stream
from numeric.rounding.places import in_dtype

DIAGNOSED = 3
"""So many places are diagnosed; what is wrong after them is seldom of interest."""

HARDLY = 3.0
"""A place over its bound by less than this, and explained by no mistake, is called marginal."""


ROUNDED_WEIGHTS = "matches a single-precision step: weights that were rounded to float32"


def walk(judge: Judge, first_only: bool = False) -> list[Finding]:
    """Judge every place that is shown, in the order of the pass, and return what is wrong.

    With `first_only` it ends at the first fault, and asks for no diagnosis.
    """
    settle_stream(judge)
    findings: list[Finding] = []
    for place in judge.places:
        if place not in judge.prompts[0].places:
            continue  # a reading has hidden it
        if judge.remember(place) <= 1:
            said = leaning(judge, place)
            if said:
                findings.append(judge.finding(place, said))
            continue
        if _said_otherwise(judge, place):
            continue
        floor = floors(judge, place)
        if floor and judge.estimated(place) and _of_rounded_weights(judge, place):
            findings.append(judge.finding(place, ROUNDED_WEIGHTS))
            if first_only:
                break
            continue
        if floor and not _mistaken(judge, place):
            judge.notes.append(f"precision: at {place}, {floor}")
            judge.ratios[place] = 1.0
            continue
        diagnosis = diagnose(judge, place) if len(findings) < DIAGNOSED and not first_only else ""
        if not diagnosis and _marginal(judge, place):
            judge.notes.append(
                f"marginal: {place} is {judge.ratios[place]:.2g} times what rounding usually makes,"
                " and within what it can make"
            )
            continue
        if not diagnosis and not first_only and len(findings) < DIAGNOSED:
            diagnosis = described(judge, place)
        findings.append(judge.finding(place, diagnosis))
        if first_only:
            break
    return findings


def _of_rounded_weights(judge: Judge, place: str) -> bool:
    """Return whether weights that were rounded to float32 say what coarser steps only allow."""
    if judge.dtype != "float64":
        return False
    rounded = in_dtype(judge.model, "float32")
    again = Judge(rounded, judge.prompts, judge.dtype, unturned=judge.unturned)
    return again.ratio(place) <= 1


def _mistaken(judge: Judge, place: str) -> bool:
    """Return whether a mistake explains what coarser steps explain as well."""
    said = known_mistake(judge, place) or another_setting(judge, place) or leaning(judge, place)
    return bool(said)


def _said_otherwise(judge: Judge, place: str) -> bool:
    """Adopt the readings of a place that are confirmed, and return whether they explain it."""
    waiting = []
    for reading in readings(judge, place):
        if confirmed(judge, reading):
            return _adopted(judge, place, reading)
        waiting.append(reading)
    for reading in waiting:
        if _confirmed_by_a_mistake(judge, reading):
            return _adopted(judge, place, reading)
    turned = read_as_turned(judge, place)
    return turned is not None and _adopted(judge, place, turned)


def _adopted(judge: Judge, place: str, reading: Reading) -> bool:
    """Go over to a reading; a place that it puts into our coordinates is judged once more there."""
    before = judge.prompts[0].places[place]
    judge.show(reading.places)
    judge.gauges.append(Gauge(place, reading.says))
    judge.ratios[place] = 1.0
    after = judge.prompts[0].places.get(place)
    if after is None or after is before:
        return True
    return judge.remember(place) <= 1 or _said_otherwise(judge, place)


def _confirmed_by_a_mistake(judge: Judge, reading: Reading) -> bool:
    """Return whether a reader is wrong in any case, but under the reading wrong in a known way.

    Where only a reader that is right speaks against the reading: or wrong in no known way at all.
    """
    trial = judge.trial(reading.places)
    for place in judge.readers(set(reading.touches)):
        if place in trial.prompts[0].places and judge.ratio(place) > 1:
            there = bool(diagnose(trial, place))
            return there if there == reading.unless_right else not diagnose(judge, place)
    return False


def _marginal(judge: Judge, place: str) -> bool:
    """Return whether a place is above what is likely, and either hardly so or below the bound."""
    if judge.ratios[place] <= HARDLY:
        return True
    if judge.estimated(place):
        return False
    nears = judge.bounded(place)
    return all(map(telling, nears)) and judge.within(place, nears)
