"""Activations and labels as arrays: one row for each example."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from otimes.algebra.errors import OtimesError, ShapeError


def read_rows(given: Any, what: str = "activations") -> Float[np.ndarray, "example d"]:
    """Return activations as a float64 array [example, d].

    Raises: ShapeError for another number of axes or no rows, OtimesError for non-finite entries.
    """
    try:
        rows = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise OtimesError(f"{what} must be an array of numbers [example, d]") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise ShapeError(
            f"{what} must have the shape (examples, d), got {rows.shape}; activations"
            " [prompt, pos, d] are reshaped to (-1, d)"
        )
    if not np.isfinite(rows).all():
        raise OtimesError(f"{what} must be finite, got {rows[~np.isfinite(rows)][0]}")
    return rows


def read_labels(given: Any, count: int) -> tuple[Int[np.ndarray, " example"], np.ndarray]:
    """Return labels as numbers of classes, and the classes in order.

    Raises: ShapeError unless there is one label for each example, OtimesError for one class only.
    """
    labels = np.asarray(given)
    if labels.shape != (count,):
        raise ShapeError(
            f"there are {count} examples, so labels must have the shape ({count},), got"
            f" {labels.shape}"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise OtimesError(f"labels must be finite, got {labels[~np.isfinite(labels)][0]}")
    try:
        classes, numbers = np.unique(labels, return_inverse=True)
    except TypeError:
        kinds = sorted({type(each).__name__ for each in labels})
        raise OtimesError(f"labels must be of one type, got {' and '.join(kinds)}") from None
    if len(classes) < 2:
        raise OtimesError(f"the labels must have at least two classes, got only {classes[0]}")
    return numbers.astype(np.int64), classes


def one_hot(numbers: Int[np.ndarray, " example"], count: int) -> Float[np.ndarray, "example class"]:
    """Return labels as rows of zeros and a one.

    >>> one_hot(np.array([1, 0]), 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return np.asarray(np.eye(count)[numbers])


def concept_of(given: Any, count: int) -> Float[np.ndarray, "example concept"]:
    """Return a concept as columns: numbers as they are, labels as one-hot rows.

    Integers, booleans and text [example] are labels; floats [example] or [example, concept] are
    the concept itself.
    """
    array = np.asarray(given)
    if array.ndim == 1 and array.dtype.kind != "f":
        numbers, classes = read_labels(array, count)
        return one_hot(numbers, len(classes))
    columns = read_rows(array[:, None] if array.ndim == 1 else array, "the concept")
    if len(columns) != count:
        raise ShapeError(f"the concept has {len(columns)} rows, and there are {count} examples")
    return columns
