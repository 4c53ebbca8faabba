"""The operations of the tree evaluator, for each type of numbers.

`EXACT` works on ExactArrays, with an Interval for an entry that softmax, a norm or an activation
makes irrational. `Floating` works on NumPy arrays of floats, and on other array types that support
the NumPy functions called here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from math import pi
from typing import TYPE_CHECKING, Any

import sympy

from otimes.algebra.budget import spend, weight
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate import exact_arrays
from otimes.algebra.evaluate.echelon import reduce_rows
from otimes.algebra.evaluate.exact_arrays import ExactArray
from otimes.algebra.language import functions
from otimes.algebra.language.constants import exact_pi
from otimes.algebra.language.deferred import Deferred
from otimes.algebra.language.intervals import Interval
from otimes.algebra.language.nonlinear import INVERSE, SOFTMAX
from otimes.algebra.language.roots import HIGHEST_POWER, Number

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

FUNCTION = 60  # work steps for an irrational value of a function
MOST_ENTRIES = 1_000_000  # of one exact array: a larger one is no small example


@dataclass(frozen=True, slots=True)
class Exact:
    """Operations on integers, Fractions and Intervals, and ExactArrays of them.

    Shapes are (rows, cols). `functions` are those chosen for names that stand for any function.
    Raises OtimesError where a result would be too large, and for a singular matrix.
    """

    functions: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)

    def rational(self, number: sympy.Rational) -> Number:
        return int(number) if number.is_Integer else Fraction(int(number.p), int(number.q))

    def pi(self) -> Interval:
        return exact_pi()

    def zeros(self, rows: int, cols: int) -> ExactArray:
        return exact_arrays.zeros((rows, cols))

    def ones(self, rows: int, cols: int) -> ExactArray:
        return exact_arrays.full((rows, cols), 1)

    def identity(self, size: int) -> ExactArray:
        return exact_arrays.identity(size)

    def lower_triangle(self, size: int) -> ExactArray:
        """Return the matrix with ones on and below the diagonal."""
        return exact_arrays.lower_triangle(size)

    def dot(self, x: ExactArray, y: ExactArray) -> ExactArray:
        spend(max(work(x, y.shape[1]), work(y, x.shape[0])))
        return x @ y

    def product(self, factors: Sequence[ExactArray]) -> ExactArray:
        return reduce(self.dot, factors)

    def kron(self, x: ExactArray, y: ExactArray) -> ExactArray:
        count = len(x.flat) * len(y.flat)
        if count > MOST_ENTRIES:
            raise OtimesError(
                f"a Kronecker product has {count} entries at these sizes, and at most "
                f"{MOST_ENTRIES} are computed exactly"
            )
        spend(max(work(x, len(y.flat)), work(y, len(x.flat))))
        return exact_arrays.kron(x, y)

    def concatenate(self, parts: Sequence[ExactArray], axis: int) -> ExactArray:
        return exact_arrays.concatenate(parts, axis)

    def diagonal(self, matrix: ExactArray) -> ExactArray:
        """Return the diagonal of a square matrix as a column."""
        size = len(matrix)
        return ExactArray((size, 1), matrix.flat[:: size + 1])

    def inverse(self, matrix: ExactArray) -> ExactArray:
        return exact_inverse(matrix)

    def activation(self, name: str, matrix: ExactArray) -> ExactArray:
        spend(FUNCTION * len(matrix.flat))
        return matrix.map(lambda entry: functions.value_of(name, entry, self.functions))

    def softmax(self, scores: ExactArray, mask: ExactArray) -> ExactArray:
        """Return the softmax of each row, with exp(s) multiplied by the entries of a mask."""
        spend(FUNCTION * len(scores.flat))
        rows = []
        for row, weights_of_mask in zip(scores.rows(), mask.rows(), strict=True):
            # the softmax is unchanged by this shift, which keeps rows of equal scores rational
            weights = [
                m * functions.value_of("exp", x - row[0])
                for m, x in zip(weights_of_mask, row, strict=True)
            ]
            total = sum(weights, 0)
            if not bool(total):
                raise OtimesError("a row of a softmax has no weight at these values")
            rows.append([_share(weight, total) for weight in weights])
        return exact_arrays.from_rows(rows, scores.shape[1])

    def check_power(self, exponent: Any) -> None:
        if abs(exponent) > HIGHEST_POWER:
            raise OtimesError(
                f"a power of {exponent} is not computed exactly: {HIGHEST_POWER} is the most"
            )


EXACT = Exact()


@dataclass(frozen=True, slots=True)
class Floating:
    """The operations of `Exact` on floats.

    `made` creates an array from numbers, `apply` evaluates functions.
    """

    made: Callable[[Any], Any]
    apply: Callable[[str, Sequence[Any]], Any]

    def rational(self, number: sympy.Rational) -> float:
        return float(number)

    def pi(self) -> float:
        return pi

    def zeros(self, rows: int, cols: int) -> Any:
        return self.made(np.zeros((rows, cols)))

    def ones(self, rows: int, cols: int) -> Any:
        return self.made(np.ones((rows, cols)))

    def identity(self, size: int) -> Any:
        return self.made(np.eye(size))

    def lower_triangle(self, size: int) -> Any:
        return self.made(np.tri(size))

    def dot(self, x: Any, y: Any) -> Any:
        return x @ y

    def product(self, factors: Sequence[Any]) -> Any:
        if len(factors) == 1:
            return factors[0]
        return np.linalg.multi_dot(factors)  # the cheapest order of multiplication

    def kron(self, x: Any, y: Any) -> Any:
        (p, q), (r, s) = x.shape, y.shape
        entries = x[:, None, :, None] * y[None, :, None, :]  # ((i, k), (j, l)): x[i, j] * y[k, l]
        return entries.reshape(p * r, q * s)

    def concatenate(self, parts: Sequence[Any], axis: int) -> Any:
        return np.concatenate(parts, axis=axis)

    def diagonal(self, matrix: Any) -> Any:
        return np.diagonal(matrix).reshape(-1, 1)

    def inverse(self, matrix: Any) -> Any:
        return self.apply(INVERSE, [matrix])

    def activation(self, name: str, matrix: Any) -> Any:
        return self.apply(name, [matrix])

    def softmax(self, scores: Any, mask: Any) -> Any:
        return self.apply(SOFTMAX, [scores, mask])

    def check_power(self, exponent: Any) -> None:
        return  # all floats have the same cost


Operations = Exact | Floating


def as_floats(array: Any) -> Any:
    """Return an array of floats."""
    return np.array(array, dtype=float)


def on_floats(name: str, arguments: Sequence[Any]) -> Any:
    """Return a function of 2-D float arrays; the second argument of a softmax is its mask."""
    if name == INVERSE:
        return np.linalg.inv(arguments[0])
    if name != SOFTMAX:
        return functions.on_floats(name, arguments[0])
    scores, mask = arguments
    weights = mask * np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def exact_inverse(matrix: Any) -> ExactArray:
    """Return the inverse of a square array of integers or Fractions; OtimesError if singular."""
    matrix = exact_arrays.as_exact(matrix)
    size = len(matrix)
    rows = [
        [x if isinstance(x, int | Interval) else Fraction(x) for x in row]
        + [int(i == j) for j in range(size)]
        for i, row in enumerate(matrix.rows())
    ]
    if len(reduce_rows(rows, size)) < size:
        raise OtimesError("an inverted matrix is singular at these values")
    return exact_arrays.from_rows([row[size:] for row in rows], size)


def _share(weight: Any, total: Any) -> Any:
    if isinstance(weight, Interval) or isinstance(total, Interval):
        return 0 if weight == 0 else weight / total
    return Fraction(weight) / total


def work(value: Any, times: int = 1) -> int:
    """Return the work steps of this many operations on each entry of an exact value.

    The cost of an entry is estimated from the first, the middle and the last one.
    """
    if not isinstance(value, ExactArray):
        return times * weight(value) >> 4
    entries = value.flat
    count = len(entries)
    if not count:
        return 0
    heaviest = max(map(weight, (entries[0], entries[count >> 1], entries[-1])))
    return times * count * heaviest >> 4
