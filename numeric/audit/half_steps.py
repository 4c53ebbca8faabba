"""Places in half precision: kept in it, or computed in it.

A place that is shown in a coarser type than the rest may have been cast to be kept, and is then
known up to one rounding. Or the step itself was made in that type, which is a mistake in code that
is more precise everywhere else. What reads the place says which: where it comes out right of the
numbers as they stand, though their rounding would show, it was computed from these numbers.
"""

from collections.abc import Mapping

import numpy as np

from numeric.audit.judge import Judge
from numeric.rounding.linear import Near

HALF = ("float16", "bfloat16")
TELLS = 4
"""So many times what is granted to a reader, the rounding of what it reads must make of it."""


def settle_types(judge: Judge, coarser: Mapping[str, str]) -> None:
    """Take places in half precision for exact if what reads them was computed from them."""
    half = [place for place, dtype in coarser.items() if dtype in HALF]
    read_by: dict[str, list[str]] = {}
    for place in half:
        for reader in judge.readers({place}):
            read_by.setdefault(reader, []).append(place)
    used = [
        place
        for reader, places in read_by.items()
        if reader not in half and _read_as_they_stand(judge, reader, places)
        for place in places
    ]
    if used:
        judge.show(_exactly(judge, used))


def _read_as_they_stand(judge: Judge, reader: str, places: list[str]) -> bool:
    exact = judge.trial(_exactly(judge, places))
    if not exact.ratio(reader) <= 1:
        return False
    blurred = np.sqrt(sum(_granted(near) for near in judge.expected(reader)))
    return bool(blurred > TELLS * np.sqrt(sum(_granted(near) for near in exact.expected(reader))))


def _granted(near: Near) -> float:
    error = np.asarray(near.error)
    return float((error[np.isfinite(error)] ** 2).sum())


def _exactly(judge: Judge, places: list[str]) -> list[Mapping[str, Near]]:
    """Return the places that are shown, some of them known as they stand."""
    return [
        {**prompt.places, **{name: Near.exactly(prompt.places[name].value) for name in places}}
        for prompt in judge.prompts
    ]
