"""Arrays of exact numbers in plain Python, so that proofs and refutations do not need NumPy.

An `ExactArray` has any number of axes, and stores integers, Fractions, Intervals or polynomials in
a flat list. Its operators are those of NumPy arrays of dtype object, except that shapes are never
broadcast, and that `==` and `!=` compare whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from operator import add, eq, index, mul, ne, sub
from typing import TYPE_CHECKING, Any

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.deferred import Deferred, is_installed

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

Shape = tuple[int, ...]
MOST_SPARSE = 10**11  # of an array that is zero almost everywhere
MOST_ENTRIES = 4_000_000  # of an array that is made at once: an identity, ones, a mask


class ExactArray:
    """An array of exact numbers; `flat` has its entries in row-major order.

    Indexing with integers and slices returns copies, never views.
    """

    __slots__ = ("flat", "shape")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: Shape, flat: list[Any]) -> None:
        self.shape = shape
        self.flat = flat

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def T(self) -> ExactArray:
        """The array with its axes in reverse order."""
        if len(self.shape) != 2:
            order = product(*[range(size) for size in self.shape[::-1]])
            return ExactArray(self.shape[::-1], [self[place[::-1]] for place in order])
        rows, cols = self.shape
        flat = self.flat
        return ExactArray((cols, rows), [x for j in range(cols) for x in flat[j::cols]])

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Yield the subarrays along the first axis, or the entries of a 1-D array."""
        return (self[k] for k in range(self.shape[0]))

    def rows(self) -> list[list[Any]]:
        """Return the rows of a matrix as lists."""
        rows, cols = self.shape
        return [self.flat[i * cols : (i + 1) * cols] for i in range(rows)]

    def places(self) -> Iterator[Shape]:
        """Yield the index tuple of every entry, in the order of `flat`."""
        return product(*[range(size) for size in self.shape])

    def tolist(self) -> Any:
        """Return the entries as nested lists, a 0-d array as a number, as NumPy does."""
        nested: list[Any] = self.flat
        for axis in range(len(self.shape) - 1, 0, -1):
            size = self.shape[axis]
            count = prod(self.shape[:axis])
            nested = [nested[k * size : (k + 1) * size] for k in range(count)]
        return list(nested) if self.shape else nested[0]

    def copy(self) -> ExactArray:
        """Return a copy."""
        return ExactArray(self.shape, self.flat.copy())

    def map(self, function: Callable[[Any], Any]) -> ExactArray:
        """Return the array with a function applied to every entry."""
        return ExactArray(self.shape, [function(x) for x in self.flat])

    def reshape(self, *shape: Any) -> ExactArray:
        """Return the array in another shape; a size of -1 is inferred."""
        sizes: Shape = shape if isinstance(shape[0], int) else tuple(shape[0])
        if -1 in sizes:
            known = -prod(sizes)
            rest = len(self.flat) // known if known else 0
            sizes = tuple([rest if size == -1 else size for size in sizes])
        if prod(sizes) != len(self.flat):
            raise ValueError(f"{len(self.flat)} entries do not fit the shape {sizes}")
        return ExactArray(sizes, self.flat.copy())

    def __getitem__(self, key: Any) -> Any:
        keys = key if type(key) is tuple else (key,)
        shape = self.shape
        if len(keys) == 2 == len(shape):
            i, j = keys
            if type(i) is type(j) is int and 0 <= i < shape[0] and 0 <= j < shape[1]:
                return self.flat[i * shape[1] + j]
        keys += (slice(None),) * (len(shape) - len(keys))
        positions, kept = [0], []
        for size, wanted in zip(shape, keys, strict=True):
            places: Any = range(size)[wanted]
            if isinstance(places, int):
                positions = [p * size + places for p in positions]
            else:
                kept.append(len(places))
                positions = [p * size + k for p in positions for k in places]
        entries = [self.flat[p] for p in positions]
        return ExactArray(tuple(kept), entries) if kept else entries[0]

    def __setitem__(self, place: Shape, entry: Any) -> None:
        position = 0
        for size, k in zip(self.shape, place, strict=True):
            position = position * size + range(size)[k]
        self.flat[position] = entry

    def __add__(self, other: ExactArray | int) -> ExactArray:
        if type(other) is int and other == 0:  # the initial value of `sum`
            return self
        return self._with(other, add)

    __radd__ = __add__

    def __sub__(self, other: ExactArray) -> ExactArray:
        return self._with(other, sub)

    def __mul__(self, other: Any) -> ExactArray:
        if isinstance(other, ExactArray):
            return self._with(other, mul)
        return ExactArray(self.shape, [other * x for x in self.flat])

    __rmul__ = __mul__

    def __matmul__(self, other: ExactArray) -> ExactArray:
        (rows, inner), (height, cols) = self.shape, other.shape
        if inner != height:
            raise ValueError(f"shapes {self.shape} and {other.shape} have no product")
        return ExactArray((rows, cols), _product(self.flat, other.flat, inner, rows, cols))

    def __neg__(self) -> ExactArray:
        return ExactArray(self.shape, [-x for x in self.flat])

    def __pow__(self, exponent: int) -> ExactArray:
        """Return the elementwise power, for a nonnegative integer exponent."""
        if exponent < 0:
            raise ValueError(f"the entries of an array are not raised to the power {exponent}")
        return ExactArray(self.shape, [x**exponent for x in self.flat])

    def __eq__(self, other: object) -> Any:
        """Return whether all entries are equal; Intervals only if they certainly are."""
        if not isinstance(other, ExactArray):
            return NotImplemented
        return self.shape == other.shape and all(map(eq, self.flat, other.flat))

    def __ne__(self, other: object) -> Any:
        """Return whether some entries differ; Intervals only if they certainly do."""
        if not isinstance(other, ExactArray):
            return NotImplemented
        return self.shape != other.shape or any(map(ne, self.flat, other.flat))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return the array as a NumPy array, by default of dtype object."""
        result = np.empty(len(self.flat), dtype=object)
        result[:] = self.flat
        result = result.reshape(self.shape)
        return result if dtype is None else result.astype(dtype)

    def __repr__(self) -> str:
        return f"ExactArray({self.tolist()})"

    def _with(self, other: Any, join: Callable[[Any, Any], Any]) -> Any:
        if not isinstance(other, ExactArray):
            return NotImplemented
        if self.shape != other.shape:
            raise ValueError(f"arrays of shapes {self.shape} and {other.shape} do not fit")
        return ExactArray(self.shape, list(map(join, self.flat, other.flat)))


def zeros(shape: Shape) -> ExactArray:
    """Return an array of zeros."""
    return full(shape, 0)


def full(shape: Shape, entry: Any) -> ExactArray:
    """Return an array filled with one value.

    Raises OtimesError for a negative size, such as n - 3 at n = 2, and for more than `MOST_ENTRIES`
    entries.
    """
    if min(shape, default=0) < 0:
        raise OtimesError(f"a size is negative at these values: {min(shape)}")
    if prod(shape) > MOST_ENTRIES:
        raise OtimesError(
            f"an array of {prod(shape)} entries is not worked out exactly: {MOST_ENTRIES} is the "
            "most"
        )
    return ExactArray(shape, [entry] * prod(shape))


def identity(size: int) -> ExactArray:
    """Return the identity matrix."""
    result = zeros((size, size))
    result.flat[:: size + 1] = [1] * size
    return result


def lower_triangle(size: int) -> ExactArray:
    """Return the matrix with ones on and below the diagonal and zeros above."""
    result = zeros((size, size))
    for i in range(size):
        result.flat[i * size : i * size + i + 1] = [1] * (i + 1)
    return result


def from_rows(rows: Sequence[Sequence[Any]], cols: int) -> ExactArray:
    """Return the matrix with these rows of `cols` entries each."""
    flat = [entry for row in rows for entry in row]
    if len(flat) != len(rows) * cols:
        raise ValueError(f"{len(rows)} rows of {cols} entries were expected")
    return ExactArray((len(rows), cols), flat)


def kron(x: ExactArray, y: ExactArray) -> ExactArray:
    """Return the Kronecker product: entry ((i, k), (j, l)) is x[i, j] · y[k, l]."""
    (p, q), (r, s) = x.shape, y.shape
    below = y.rows()
    flat = [a * b for row in x.rows() for line in below for a in row for b in line]
    return ExactArray((p * r, q * s), flat)


def concatenate(parts: Sequence[ExactArray], axis: int) -> ExactArray:
    """Return the concatenation of matrices along axis 0 or 1."""
    sizes = {part.shape[1 - axis] for part in parts}
    if len(sizes) != 1:
        raise ValueError(f"matrices of sizes {sorted(sizes)} cannot be concatenated")
    (size,) = sizes
    total = sum(part.shape[axis] for part in parts)
    if axis == 0:
        return ExactArray((total, size), [x for part in parts for x in part.flat])
    lines = zip(*[part.rows() for part in parts], strict=True)
    return ExactArray((size, total), [x for line in lines for row in line for x in row])


def stack(parts: Sequence[ExactArray]) -> ExactArray:
    """Return arrays of one shape stacked along a new first axis."""
    if any(part.shape != parts[0].shape for part in parts):
        raise ValueError("arrays of different shapes cannot be stacked")
    return ExactArray((len(parts), *parts[0].shape), [x for part in parts for x in part.flat])


def as_exact(array: Any) -> ExactArray:
    """Return a NumPy array or nested lists as an ExactArray, with Python integers.

    Raises OtimesError for ragged lists and for floats.
    """
    if isinstance(array, ExactArray):
        return array
    if hasattr(array, "tolist"):
        shape, nested = tuple(map(int, array.shape)), array.tolist()
    else:
        shape, nested = _shape_of(array), array
    return ExactArray(shape, list(_entries(nested, shape)))


def with_entries(shape: Shape, entries: Mapping[Shape, Any]) -> Any:
    """Return an array that is zero except at some places, of NumPy where it is installed."""
    if not is_installed("numpy") and prod(shape) > MOST_ENTRIES:
        raise OtimesError(f"an array of shape {shape} needs NumPy, which cannot be imported here")
    if prod(shape) > MOST_SPARSE:
        raise OtimesError(f"an array of shape {shape} is too large")
    # memory of NumPy's zeros is taken only where they are written to
    whole = all(isinstance(entry, int) for entry in entries.values())
    kind = int if whole else object
    array: Any = np.zeros(shape, dtype=kind) if is_installed("numpy") else zeros(shape)
    for place, entry in entries.items():
        array[place] = entry
    return array


def as_numpy(array: ExactArray) -> Any:
    """Return the array as a NumPy array of dtype object; unchanged if NumPy is not installed."""
    return np.asarray(array) if is_installed("numpy") else array


def _product(x: list[Any], y: list[Any], inner: int, rows: int, cols: int) -> list[Any]:
    """Return the entries of a matrix product with inner size `inner`.

    Written out for sizes up to 3, which most trials have, because a call for each entry would
    dominate. No sum starts from 0: adding an Interval to it costs as much as a multiplication.
    """
    if inner == 1:
        return [a * b for a in x for b in y]
    lines = [y[k * cols : (k + 1) * cols] for k in range(inner)]
    columns = list(zip(*lines, strict=True))
    if inner == 2:
        return [a * p + b * q for a, b in zip(x[::2], x[1::2], strict=True) for p, q in columns]
    if inner == 3:
        triples = zip(x[::3], x[1::3], x[2::3], strict=True)
        return [a * p + b * q + c * r for a, b, c in triples for p, q, r in columns]
    flat: list[Any] = []
    for i in range(rows):
        row = x[i * inner : (i + 1) * inner]
        kept = [k for k, a in enumerate(row) if type(a) is not int or a]
        if 2 * len(kept) > inner:
            for column in columns:
                terms = map(mul, row, column)
                flat.append(sum(terms, next(terms)))
        elif kept:  # many zeros, as in a Kronecker product with an identity
            total = [row[kept[0]] * b for b in lines[kept[0]]]
            for k in kept[1:]:
                a = row[k]
                total = [t + a * b for t, b in zip(total, lines[k], strict=True)]
            flat += total
        else:
            flat += [0] * cols
    return flat


def _shape_of(nested: Any) -> Shape:
    shape = []
    while isinstance(nested, list | tuple):
        shape.append(len(nested))
        nested = nested[0] if nested else None
    return tuple(shape)


def _entries(nested: Any, shape: Shape) -> Iterator[Any]:
    if not shape:
        yield _exact(nested)
        return
    if not isinstance(nested, list | tuple) or len(nested) != shape[0]:
        raise OtimesError("the nested lists of an array have different lengths")
    for part in nested:
        yield from _entries(part, shape[1:])


def _exact(entry: Any) -> Any:
    if type(entry) is int:
        return entry
    if isinstance(entry, float | complex | list | tuple):
        raise OtimesError(
            f"an exact array holds integers and Fractions, and {entry!r} was given: floating-point "
            "numbers go into NumPy arrays"
        )
    return index(entry) if hasattr(entry, "__index__") else entry
