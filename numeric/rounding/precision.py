"""What one rounding does, in each floating-point type, and how many of them add up.

Every product, sum and quotient of floating-point numbers is the exact one times 1 + δ, |δ| ≤ u, the
unit roundoff; where it underflows, an absolute error of at most `tiny` takes the place of that.
m roundings together make at most γ_m = m u / (1 - m u) (Higham 2002, §3.1).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from algebra.errors import OtimesError

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}

# The smallest normal number: what is smaller may be taken for zero. Of float16 that would be too
# much to grant, and half a unit of its last subnormal place is what hardware gives.
TINY = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-25, "bfloat16": 2.0**-126}


@dataclass(frozen=True, slots=True)
class Precision:
    """How an implementation computes: the type its places have, and the type it computes them in.

    `unit` belongs to every number that is stored: a place, or what comes between two operations.
    `inner` belongs to what happens inside one operation: the partial sums of a matrix product, of a
    mean, of a softmax. Of float16 and bfloat16, that is float32 in PyTorch, JAX and on tensor
    cores. `likely`: rounding errors are taken for independent, so that m of them make 6 √m u rather
    than γ_m; sharper, usually true, and no bound. `sampled`, of what is likely: the size of partial
    sums is taken from some of the terms, which is less than it is, at a fraction of the work; what
    is within the smaller bound is within the other.
    """

    unit: float
    inner: float
    tiny: float
    likely: bool = False
    sampled: bool = False

    def within(self, roundings: float) -> float:
        """Return the relative error that so many roundings inside an operation make together."""
        worst = gamma(roundings, self.inner)
        return min(worst, 6 * roundings**0.5 * self.inner) if self.likely else worst

    def stored(self, roundings: float = 1) -> float:
        """Return the relative error of storing a number so many times."""
        return gamma(roundings, self.unit)

    @property
    def exact(self) -> bool:
        """Whether errors are left out altogether."""
        return self.inner == 0

    @property
    def doubled(self) -> float:
        """What a bound grows by when the float64 value it is compared with was rounded as well."""
        return 1 + UNIT_ROUNDOFF["float64"] / self.inner

    def supposed_likely(self) -> "Precision":
        """Return the same precision with independent errors."""
        return replace(self, likely=True)

    def supposed_less(self) -> "Precision":
        """Return the same precision with bounds that are quickly found, and less than is likely."""
        return replace(self, likely=True, sampled=True)


def precision(dtype: str, inner: str | None = None) -> Precision:
    """Return how an implementation of a dtype computes; `inner` says in what, if not as usual.

    >>> precision("bfloat16").inner == 2.0**-24
    True
    """
    usual = "float64" if dtype == "float64" else "float32"
    for name in (dtype, inner or usual):
        if name not in UNIT_ROUNDOFF:
            raise OtimesError(
                f"there is no rounding bound for {name}; known are {', '.join(UNIT_ROUNDOFF)}"
            )
    return Precision(UNIT_ROUNDOFF[dtype], UNIT_ROUNDOFF[inner or usual], TINY[dtype])


VALUES_ONLY = Precision(0.0, 0.0, 0.0)
"""The precision with which operations compute what they should give, and no bound."""


def gamma(roundings: float, unit: float) -> float:
    """Return m u / (1 - m u), the relative error that m roundings can make together.

    It is infinite where m u reaches 1: so many roundings may leave nothing.

    >>> gamma(1, 2.0**-53) > 2.0**-53
    True
    """
    together = roundings * unit
    return together / (1 - together) if together < 1 else float("inf")


def known(error: Any) -> np.ndarray:
    """Return a bound with infinity where it came out as no number: there nothing is known."""
    error = np.asarray(error)
    return np.where(np.isnan(error), np.inf, error)


def stored_as(array: Any, dtype: str) -> np.ndarray:
    """Return the numbers of an array as a dtype holds them, rounded to nearest, in float64.

    What is larger than its largest number is infinite in it.

    >>> float(stored_as(1 / 3, "bfloat16"))
    0.333984375
    """
    array = np.asarray(array)
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return array.astype(dtype).astype(np.float64)
    # bfloat16 is the upper half of float32: round what lies below to nearest, ties to even.
    bits = array.astype(np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).view(np.float32).astype(np.float64)


def worst_ratio(actual: Any, expected: Any, bound: Any) -> float:
    """Return the largest |actual - expected| / bound, entrywise: 0 where equal.

    A NaN counts as infinitely wrong, except where the bound is infinite: nothing is claimed there.
    """
    arrays = np.broadcast_arrays(*np.atleast_1d(actual, expected, bound))
    worst, size = 0.0, arrays[0].size
    if not size:
        return worst
    # A few rows at a time: what comes between then stays in the cache.
    rows = max(1, BLOCK * len(arrays[0]) // size)
    for start in range(0, len(arrays[0]), rows):
        worst = max(worst, _worst_ratio(*(array[start : start + rows] for array in arrays)))
    return worst


BLOCK = 2**16
"""So many entries are compared at a time."""


def _worst_ratio(actual: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.abs(actual - expected)
        ratio = error / bound
        largest = float(ratio.max())
        if np.isfinite(largest):
            return largest
        ratio = np.where(error == 0, 0.0, ratio)
    ratio = np.where(np.isposinf(bound), 0.0, ratio)
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio)))


def smallest_noticed(share: Any, bound: Any) -> float:
    """Return the least relative change of a factor that would exceed the bound at some entry.

    `share` is what the value moves by when the factor grows by 100 %.
    """
    moved = np.abs(np.asarray(share))
    if not np.any(moved):
        return float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.min(np.where(moved > 0, bound / moved, np.inf)))
