"""What is not finite is kept apart, and said for itself: no bound and no reading is tried on it.

One infinite entry is enough to make a bound of what reads it infinite, which nothing then exceeds;
so a place that has such an entry is left out of what was shown, and its readers are judged by what
comes before it. What is not finite is a fault where the reference is finite, and where it was not
computed from what is not finite itself: the first of a row of such places is said.
"""

from collections.abc import Mapping

import numpy as np

from numeric.audit.evaluate import layer_of
from numeric.audit.findings import Finding
from numeric.audit.judge import Judge
from numeric.forward import OF_HEADS, place_names
from numeric.functions import causal_mask
from numeric.rounding.places import inputs_of, kind_of

HUGE = 2.0**250
"""What is larger is as good as infinite: its fourth power is, in float64."""


def spoilt_entries(array: np.ndarray, place: str) -> np.ndarray | None:
    """Return which entries are not finite, or as good as infinite; None if none are.

    Scores that the causal mask hides are compared nowhere, and may be anything.
    """
    with np.errstate(invalid="ignore"):
        bad = ~(np.abs(array) <= min(HUGE, float(np.finfo(array.dtype).max)))
    if kind_of(place) == "scores":
        bad &= causal_mask(array.shape[-1])
    return bad if bad.any() else None


def spoilt_findings(spoilt: Mapping[str, np.ndarray], judge: Judge) -> list[Finding]:
    """Return what is to be said of places [prompt, ...] that are not finite, in their order."""
    config, shown = judge.model.config, judge.prompts[0].places
    found, behind = [], set[str]()
    for place in place_names(config):
        read = behind & set(inputs_of(config, place))
        if place in spoilt:
            finding = None if read else _finding(place, spoilt[place], judge)
            found.extend([] if finding is None else [finding])
        if place in spoilt or (read and place not in shown):
            behind.add(place)
    return found


def _finding(place: str, shown: np.ndarray, judge: Judge) -> Finding | None:
    """Return what is to be said of a place, or None if the reference is not finite there too."""
    nears = judge.expected(place)
    for array, near in zip(shown, nears, strict=True):
        bad = spoilt_entries(array, place)
        if bad is not None:
            bad &= np.abs(near.value) <= HUGE
        if bad is None or not bad.any():
            continue
        entry = tuple(int(i) for i in np.argwhere(bad)[0])
        heads = np.flatnonzero(bad.reshape(len(bad), -1).any(axis=1))
        some = kind_of(place) in OF_HEADS and len(heads) < len(bad)
        return Finding(
            place=place,
            layer=layer_of(place),
            head=int(heads[0]) if some else None,
            error=float("inf"),
            bound=float(near.error[entry]),
            ratio=float("inf"),
            diagnosis=_said(array[bad]),
            estimated=judge.estimated(place),
            entry=entry,
        )
    return None


def _said(bad: np.ndarray) -> str:
    if np.isnan(bad).any():
        return "is not a number (NaN)"
    if np.isinf(bad).any():
        return "is infinite"
    return f"is as good as infinite ({float(bad[0]):.2g})"
