"""Reading the result of an analysis as an array, with its original dtype."""

from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError
from otimes.numeric.audit.analyses.question import Array
from otimes.numeric.audit.capture.collect import as_it_is
from otimes.numeric.rounding.precision import UNIT_ROUNDOFF

UNREAL = 64
"""The largest imaginary part that is taken for zero, in roundings of the largest number."""


def shown(value: Any, called: str) -> tuple[Array, str]:
    """Return real numbers in float64, and the name of their dtype.

    Raises: OtimesError, naming the value as `called`, unless it is an array of real numbers.

    >>> shown([[1, 2], [3, 4]], "W_Q")[0].shape
    (2, 2)
    """
    array, dtype = shown_complex(value, called)
    if array.dtype.kind == "c":
        largest = float(np.abs(array).max(initial=0.0))
        if np.abs(array.imag).max(initial=0.0) > UNREAL * UNIT_ROUNDOFF[dtype] * largest:
            raise OtimesError(f"{called} is real, got complex numbers: take the real part, .real")
    return array.real, dtype


def shown_complex(value: Any, called: str) -> tuple[Array, str]:
    """Return numbers in float64 or complex128, and the name of the dtype of their parts."""
    try:
        array, dtype = as_it_is(value)
    except ValueError:
        raise OtimesError(
            f"{called} is one array of numbers, got lists of different lengths"
        ) from None
    if array.dtype.kind not in "fiubc":
        raise OtimesError(f"{called} is an array of real numbers, got a {type(value).__name__}")
    if array.dtype.kind == "c":
        dtype = "float32" if dtype == "complex64" else "float64"
        return np.asarray(array, dtype=np.complex128), dtype
    return np.asarray(array, dtype=np.float64), dtype


def without_numbers(array: Array, claimed: Array | bool = True) -> str:
    """Return a text on non-finite entries, or ""; only entries in `claimed` count.

    >>> without_numbers(np.array([1.0, float("nan"), 3.0]))
    'has 1 of 3 entries that are no finite numbers, the first nan at [1]'
    """
    wrong = ~np.isfinite(array) & claimed
    if not wrong.any():
        return ""
    first = tuple(map(int, np.argwhere(wrong)[0]))
    where = f" at {list(first)}" if first else ""
    return (
        f"has {int(wrong.sum())} of {array.size} entries that are no finite numbers, "
        f"the first {array[first]}{where}"
    )
