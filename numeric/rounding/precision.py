"""The rounding error of one operation in each dtype, and of m operations.

Every product, sum and quotient of floating-point numbers is the exact one times 1 + δ, |δ| ≤ u, the
unit roundoff; where it underflows, it has an absolute error of at most `tiny` instead. The relative
error of m roundings is at most γ_m = m u / (1 - m u) (Higham 2002, §3.1).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}

# The smallest normal number, as subnormals may be flushed to zero. Not so in float16, where
# hardware rounds to the nearest subnormal: half the spacing of subnormals.
TINY = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-25, "bfloat16": 2.0**-126}


@dataclass(frozen=True, slots=True)
class Precision:
    """The precision of an implementation: unit roundoffs of stored numbers and of accumulators.

    `unit` is the roundoff of every stored number: an activation, or the result of an operation.
    `inner` is the roundoff within one operation: the partial sums of a matrix product, a mean, a
    softmax. For float16 and bfloat16 it is that of float32 in PyTorch, JAX and on tensor cores.
    `likely`: rounding errors are treated as independent, so that m of them give 6 √m u instead of
    γ_m; sharper, usually satisfied, but no bound. `sampled` (with `likely`): the size of partial
    sums is estimated from below by some of the terms, which is faster; an error within the smaller
    estimate is within the likely one.
    """

    unit: float
    inner: float
    tiny: float
    likely: bool = False
    sampled: bool = False

    def within(self, roundings: float) -> float:
        """Return the relative error of this number of roundings within one operation."""
        worst = gamma(roundings, self.inner)
        return min(worst, 6 * roundings**0.5 * self.inner) if self.likely else worst

    def stored(self, roundings: float = 1) -> float:
        """Return the relative error of this number of roundings to the stored dtype."""
        return gamma(roundings, self.unit)

    @property
    def exact(self) -> bool:
        """Whether no errors are computed."""
        return self.inner == 0

    @property
    def doubled(self) -> float:
        """The factor of a bound that allows for the rounding of the float64 reference itself."""
        return 1 + UNIT_ROUNDOFF["float64"] / self.inner

    def supposed_likely(self) -> "Precision":
        """Return the same precision with errors treated as independent."""
        return replace(self, likely=True)

    def supposed_less(self) -> "Precision":
        """Return the same precision with the sampled estimate, which is faster and smaller."""
        return replace(self, likely=True, sampled=True)


def precision(dtype: str, inner: str | None = None) -> Precision:
    """Return the precision of an implementation in a dtype; `inner` is that of its accumulators.

    >>> precision("bfloat16").inner == 2.0**-24
    True
    """
    usual = "float64" if dtype == "float64" else "float32"
    for name in (dtype, inner or usual):
        if name not in UNIT_ROUNDOFF:
            raise OtimesError(
                f"there is no rounding bound for the dtype {name}; the dtypes are"
                f" {', '.join(UNIT_ROUNDOFF)}"
            )
    return Precision(UNIT_ROUNDOFF[dtype], UNIT_ROUNDOFF[inner or usual], TINY[dtype])


VALUES_ONLY = Precision(0.0, 0.0, 0.0)
"""The precision with which operations compute values only, without bounds."""


def gamma(roundings: float, unit: float) -> float:
    """Return γ_m = m u / (1 - m u), the largest relative error of m roundings.

    It is infinite where m u ≥ 1.

    >>> gamma(1, 2.0**-53) > 2.0**-53
    True
    """
    together = roundings * unit
    return together / (1 - together) if together < 1 else float("inf")


def known(error: Any) -> np.ndarray:
    """Return a bound with NaN replaced by infinity."""
    error = np.asarray(error)
    return np.where(np.isnan(error), np.inf, error)


def stored_as(array: Any, dtype: str) -> np.ndarray:
    """Return an array rounded to a dtype (to nearest, ties to even), as float64.

    Numbers beyond the range of the dtype become infinite.

    >>> float(stored_as(1 / 3, "bfloat16"))
    0.333984375
    """
    array = np.asarray(array)
    if dtype != "bfloat16":
        with np.errstate(over="ignore"):
            return array.astype(dtype).astype(np.float64)
    # bfloat16 is the upper half of float32: round the lower half to nearest, ties to even.
    bits = array.astype(np.float32).view(np.uint32)
    bits = bits + 0x7FFF + ((bits >> 16) & 1)
    return (bits & 0xFFFF0000).view(np.float32).astype(np.float64)


def worst_ratio(actual: Any, expected: Any, bound: Any) -> float:
    """Return the largest entrywise |actual - expected| / bound; equal entries count as 0.

    A NaN counts as infinite, except where the bound is infinite.
    """
    arrays = np.broadcast_arrays(*np.atleast_1d(actual, expected, bound))
    worst, size = 0.0, arrays[0].size
    if not size:
        return worst
    # A few rows at a time, so that intermediate results stay in the CPU cache.
    rows = max(1, BLOCK * len(arrays[0]) // size)
    for start in range(0, len(arrays[0]), rows):
        worst = max(worst, _worst_ratio(*(array[start : start + rows] for array in arrays)))
    return worst


BLOCK = 2**16
"""The number of entries that are compared at a time."""


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
    """Return the smallest relative change of a factor that exceeds the bound at some entry.

    `share` is the derivative of the value with respect to the relative change.
    """
    moved = np.abs(np.asarray(share))
    if not np.any(moved):
        return float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.min(np.where(moved > 0, bound / moved, np.inf)))
