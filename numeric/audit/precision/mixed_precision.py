"""Activations in half precision: cast when they were recorded, or computed in it.

An activation in lower precision than the rest may have been cast when it was recorded, and is then
known up to one rounding. Or the step itself was computed in that dtype, which is a mistake in code
of higher precision. The next activation decides: if it is right when computed from the recorded
numbers exactly, and rounding them would have shown, it was computed from these numbers.
"""

from collections.abc import Mapping

import numpy as np

from otimes.numeric.audit.reference.comparison import Comparison
from otimes.numeric.rounding.linear import Near

HALF = ("float16", "bfloat16")
TELLS = 4
"""The factor by which rounding must widen the tolerance of the next activation to be noticed."""


def with_half_precision(compared: Comparison, coarser: Mapping[str, str]) -> Comparison:
    """Return the comparison with half-precision activations exact where they were used exactly."""
    half = [place for place, dtype in coarser.items() if dtype in HALF]
    read_by: dict[str, list[str]] = {}
    for place in half:
        for reader in compared.readers({place}):
            read_by.setdefault(reader, []).append(place)
    used = [
        place
        for reader, places in read_by.items()
        if reader not in half and _read_as_they_stand(compared, reader, places)
        for place in places
    ]
    return compared.with_places(_exactly(compared, used)) if used else compared


def _read_as_they_stand(compared: Comparison, reader: str, places: list[str]) -> bool:
    exact = compared.with_places(_exactly(compared, places))
    if not exact.ratio(reader) <= 1:
        return False
    blurred = np.sqrt(sum(_granted(near) for near in compared.expected(reader)))
    return bool(blurred > TELLS * np.sqrt(sum(_granted(near) for near in exact.expected(reader))))


def _granted(near: Near) -> float:
    error = np.asarray(near.error)
    return float((error[np.isfinite(error)] ** 2).sum())


def _exactly(compared: Comparison, places: list[str]) -> list[Mapping[str, Near]]:
    """Return the recorded activations, some of them taken as exact."""
    return [
        {**prompt.places, **{name: Near.exactly(prompt.places[name].value) for name in places}}
        for prompt in compared.prompts
    ]
