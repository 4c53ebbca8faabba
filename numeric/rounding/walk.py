"""Arrays with running error analysis: the value on absolute values, and the number of roundings.

`otimes.algebra.evaluate.exact.tree_value` evaluates an expression tree on any objects with + and *.
On `Walked` arrays it computes the value in float64, the same expression on absolute values, and the
number of roundings m. γ_m times the second bounds the error of the first, for this order of
evaluation and, as m is an upper bound, for any other. The error of a function or an inverse is
propagated as `moved`; after it the count of roundings restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from otimes.numeric.rounding.precision import gamma, known

Array = np.ndarray


@dataclass(slots=True, eq=False)
class Walked:
    """A value, its `size` on absolute values, the error propagated from functions, the roundings.

    All arrays have the same shape; `moved` is None if there is no propagated error.
    """

    value: Array
    size: Array
    moved: Array | None = None
    roundings: int = 0

    __array_ufunc__ = None  # so that NumPy arrays defer +, * and @ to this class

    @classmethod
    def of(cls, other: Any) -> Walked:
        """Return an array or a number without roundings; a non-integer scalar counts 3."""
        if isinstance(other, Walked):
            return other
        value = np.asarray(other, dtype=np.float64)
        whole = value.ndim or float(value).is_integer()
        return cls(value, np.asarray(np.abs(value)), None, 0 if whole else 3)

    def error(self, unit: float, slack: int = 1, least: int = 0) -> Array:
        """Return the error bound for max(slack · roundings, least) roundings."""
        moved = np.zeros_like(self.size) if self.moved is None else self.moved
        growth = gamma(max(slack * self.roundings, least), unit)
        with np.errstate(invalid="ignore"):
            return known(growth * (self.size + moved) + moved)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the value."""
        return self.value.shape

    @property
    def T(self) -> Walked:
        """The transpose, which rounds nothing."""
        return self._each(np.transpose)

    def __len__(self) -> int:
        return len(self.value)

    def __getitem__(self, index: Any) -> Walked:
        return self._each(lambda array: array[index])

    def __setitem__(self, index: Any, entry: Any) -> None:
        entry = Walked.of(entry)
        self.value[index], self.size[index] = entry.value, entry.size
        if entry.moved is not None and self.moved is None:
            self.moved = np.zeros_like(self.size)
        if self.moved is not None:
            self.moved[index] = 0.0 if entry.moved is None else entry.moved
        self.roundings = max(self.roundings, entry.roundings)

    def reshape(self, *shape: Any) -> Walked:
        """Return the entries in another shape."""
        return self._each(lambda array: array.reshape(*shape))

    def __add__(self, other: Any) -> Walked:
        if isinstance(other, int) and other == 0:  # the start value of `sum`
            return self
        other = Walked.of(other)
        moved = _sum(self.moved, other.moved, self.shape, other.shape)
        count = max(self.roundings, other.roundings) + 1
        value, size = self.value + other.value, self.size + other.size
        return Walked(np.asarray(value), np.asarray(size), moved, count)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Walked:
        return _product(np.multiply, self, Walked.of(other), 0 if _is_one(other) else 1)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> Walked:
        return _dot(self, Walked.of(other))

    def __rmatmul__(self, other: Any) -> Walked:
        return _dot(Walked.of(other), self)

    def __pow__(self, exponent: float) -> Walked:
        if float(exponent).is_integer() and 0 < exponent <= 8:
            return reduce(mul, [self] * int(exponent))
        value = self.value**exponent
        # Twice the first order: the relative change of a power is |e| times that of its base.
        rest = np.zeros_like(self.size) if self.moved is None else self.moved
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = 2 * abs(exponent) * np.abs(value / self.value) * rest
            size = np.abs(value) * np.maximum(1.0, abs(exponent) * self.size / np.abs(self.value))
        kept = np.asarray(moved) if rest.any() else None
        return Walked(np.asarray(value), np.asarray(size), kept, 2 * self.roundings + 3)

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        """Implement the NumPy functions that `tree_value` calls."""
        if function is np.dot:
            return _dot(Walked.of(args[0]), Walked.of(args[1]))
        if function is np.linalg.multi_dot:
            return _multi_dot([Walked.of(array) for array in args[0]])
        if function is np.zeros_like:
            return Walked.of(np.zeros(self.shape))
        if function is np.kron:
            a, b = (Walked.of(array) for array in args)
            return _product(np.kron, a, b, 1)
        if function in (np.stack, np.concatenate):
            return _joined(function, [Walked.of(array) for array in args[0]], *args[1:], **kwargs)
        if function is np.diagonal:
            return self._each(np.diagonal)
        return NotImplemented

    def _each(self, move: Callable[[Array], Any]) -> Walked:
        moved = None if self.moved is None else np.asarray(move(self.moved))
        return Walked(
            np.asarray(move(self.value)), np.asarray(move(self.size)), moved, self.roundings
        )


def _is_one(number: Any) -> bool:
    return isinstance(number, int | float) and abs(number) == 1


def _product(times: Callable[[Array, Array], Any], a: Walked, b: Walked, count: int) -> Walked:
    value, size = np.asarray(times(a.value, b.value)), np.asarray(times(a.size, b.size))
    moved = None
    with np.errstate(invalid="ignore"):  # inf * 0
        if a.moved is not None:
            moved = np.asarray(times(a.moved, b.size if b.moved is None else b.size + b.moved))
        if b.moved is not None:
            other = np.asarray(times(a.size, b.moved))
            moved = other if moved is None else moved + other
    return Walked(value, size, moved, a.roundings + b.roundings + count)


def _dot(a: Walked, b: Walked) -> Walked:
    return _product(np.matmul, a, b, 0 if _selects(a) else a.shape[1])


def _selects(a: Walked) -> bool:
    """Return whether each row has at most one 1 and else 0: such a product rounds nothing."""
    if a.moved is not None or a.roundings:
        return False
    return bool(np.all((a.value == 0) | (a.value == 1)) and np.all(a.value.sum(axis=1) <= 1))


def _multi_dot(factors: Sequence[Walked]) -> Walked:
    """Return a product in the cheapest order; errors are propagated from left to right."""
    if len(factors) == 1:
        return factors[0]
    whole = reduce(_dot, factors) if any(f.moved is not None for f in factors) else None
    value = np.linalg.multi_dot([f.value for f in factors])
    size = np.linalg.multi_dot([f.size for f in factors])
    count = sum(f.roundings for f in factors)
    count += sum(0 if _selects(f) else f.shape[1] for f in factors[:-1])
    return Walked(value, size, None if whole is None else whole.moved, count)


def _joined(join: Callable[..., Any], parts: Sequence[Walked], *args: Any, **kwargs: Any) -> Walked:
    moved = None
    if any(part.moved is not None for part in parts):
        each = [np.zeros(p.shape) if p.moved is None else p.moved for p in parts]
        moved = join(each, *args, **kwargs)
    return Walked(
        join([part.value for part in parts], *args, **kwargs),
        join([part.size for part in parts], *args, **kwargs),
        moved,
        max(part.roundings for part in parts),
    )


def _sum(
    a: Array | None, b: Array | None, a_shape: tuple[int, ...], b_shape: tuple[int, ...]
) -> Array | None:
    if a is None and b is None:
        return None
    shape = np.broadcast_shapes(a_shape, b_shape)
    total = np.zeros(shape)
    for part in (a, b):
        if part is not None:
            total = total + part
    return total
