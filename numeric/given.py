"""Arguments that are arrays of numbers."""

from typing import Any

import numpy as np

from otimes.algebra.errors import OtimesError


def real_array(given: Any, what: str, finite: bool = True) -> np.ndarray:
    """Return an argument as a float64 array of any shape; `what` names it in messages.

    >>> real_array([[1, 2]], "x").shape
    (1, 2)

    Raises: OtimesError unless it is an array of real numbers, and unless its entries are finite.
    """
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "biuf":
            raise TypeError
        array = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        got = f"dtype {given.dtype}" if hasattr(given, "dtype") else type(given).__name__
        raise OtimesError(f"{what} must be an array of real numbers, got {got}") from None
    if finite and not np.isfinite(array).all():
        entry = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        where = f"its entry {entry} is {array[entry]}" if array.ndim else f"it is {array}"
        raise OtimesError(f"{what} must be finite, and {where}")
    return array


def is_whole(given: Any) -> bool:
    """Return whether an argument is an integer, and no bool.

    >>> is_whole(3), is_whole(np.int64(3)), is_whole(True), is_whole(3.0)
    (True, True, False, False)
    """
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def real_number(given: Any, what: str) -> float:
    """Return an argument as a float; `what` names it in messages.

    >>> real_number(np.float32(2), "strength")
    2.0

    Raises: OtimesError unless it is one finite real number.
    """
    try:
        array = real_array(given, what, finite=False)
    except OtimesError:
        raise OtimesError(f"{what} must be a number, got {type(given).__name__}") from None
    if array.ndim:
        raise OtimesError(f"{what} must be one number, got an array of shape {array.shape}")
    if not np.isfinite(array):
        raise OtimesError(f"{what} must be finite, got {array}")
    return float(array)


def count(given: Any, what: str) -> int:
    """Return a number of things to be listed. Raises: OtimesError if it is no integer above 0."""
    if not is_whole(given) or given < 1:
        raise OtimesError(f"{what} must be an integer of at least 1, got {given!r}")
    return int(given)
