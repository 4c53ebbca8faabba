"""Tensors as they are stored: in one array per layer, in bfloat16, or in both ways.

A checkpoint has a tensor for each layer, and a model of this package one tensor with an axis of
layers. `StoredTensor` is this tensor without a copy: an index takes it from the arrays of the
checkpoint. NumPy has no bfloat16; such numbers are kept as they are, in two bytes, and an index
converts what it takes to float32, which is exact.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

BFLOAT16 = np.dtype("V2")
"""The dtype of an array of bfloat16 numbers; NumPy refuses to compute with it."""


class StoredTensor(np.lib.mixins.NDArrayOperatorsMixin):
    """A read-only tensor that is stored in parts along its first axis, or in bfloat16.

    An integer index reads one part only. Everything else that NumPy does with it makes a whole
    array of it first, as `np.asarray` does.

    >>> tensor = StoredTensor([np.zeros((2, 3)), np.ones((2, 3))])
    >>> tensor.shape, float(tensor[1].sum()), float((2 * tensor).sum())
    ((2, 2, 3), 6.0, 12.0)
    """

    __slots__ = ("_parts", "_stacked", "dtype", "shape")

    def __init__(self, parts: Sequence[np.ndarray], stacked: bool = True) -> None:
        """`parts` have one shape and dtype; if not `stacked`, the one part is the tensor."""
        if len({part.dtype for part in parts}) > 1:
            floats = [as_floats(part) for part in parts]
            common = np.result_type(*floats)
            parts = [part.astype(common, copy=False) for part in floats]
        first, self._parts, self._stacked = parts[0], tuple(parts), stacked
        self.shape: tuple[int, ...] = (len(parts), *first.shape) if stacked else first.shape
        self.dtype = np.dtype(np.float32) if first.dtype == BFLOAT16 else first.dtype

    @property
    def stored_dtype(self) -> str:
        """The name of the dtype in which the tensor is stored, "bfloat16" included."""
        return dtype_name(self._parts[0])

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        """The arrays that the tensor is stored in, as they are."""
        return self._parts

    def read_only(self) -> "StoredTensor":
        """Return the tensor with read-only views of its arrays."""
        views = [part.view() for part in self._parts]
        for view in views:
            view.flags.writeable = False
        return StoredTensor(views, self._stacked)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The number of bytes in which the tensor is stored."""
        return sum(part.nbytes for part in self._parts)

    @property
    def T(self) -> Any:
        """The tensor with its axes reversed."""
        if self._stacked:
            return np.asarray(self).T
        return StoredTensor([self._parts[0].T], stacked=False)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, index: Any) -> np.ndarray:
        if not self._stacked:
            return as_floats(self._parts[0][index])
        first, *rest = index if isinstance(index, tuple) and index else (index,)
        if isinstance(first, int | np.integer) and not isinstance(first, bool):
            return as_floats(self._parts[first][tuple(rest)] if rest else self._parts[first])
        return np.asarray(np.asarray(self)[index])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        parts = [as_floats(part) for part in self._parts]
        whole = np.stack(parts) if self._stacked else parts[0]
        return np.array(whole, dtype=dtype, copy=bool(copy) or None)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(each) if isinstance(each, StoredTensor) else each for each in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def astype(self, dtype: Any, copy: bool = True) -> np.ndarray:
        """Return the whole tensor in a dtype of NumPy."""
        return np.asarray(self).astype(dtype, copy=copy)

    def __repr__(self) -> str:
        return f"<tensor of shape {self.shape}, stored in {self.stored_dtype}>"


Tensor = np.ndarray | StoredTensor
"""A tensor of a model, as it is stored."""


def stack(parts: Sequence[np.ndarray]) -> StoredTensor:
    """Return the tensor whose first axis numbers the parts, without a copy of them."""
    return StoredTensor(parts)


def tensor_of(array: Any) -> Any:
    """Return an array as a tensor that NumPy can read: bfloat16 is converted when it is read."""
    if isinstance(array, np.ndarray) and array.dtype == BFLOAT16:
        return StoredTensor([array], stacked=False)
    return array


def as_floats(array: np.ndarray) -> np.ndarray:
    """Return an array, converted to float32 if it holds bfloat16 numbers: they are its upper half.

    >>> as_floats(np.array([0x3F80, 0xC000], "<u2").view(BFLOAT16))
    array([ 1., -2.], dtype=float32)
    """
    array = np.asarray(array)
    if array.dtype != BFLOAT16:
        return array
    return (array.view("<u2").astype(np.uint32) << 16).view(np.float32)


def dtype_name(tensor: Any) -> str:
    """Return the name of the dtype in which a tensor is stored, "bfloat16" included."""
    if isinstance(tensor, StoredTensor):
        return tensor.stored_dtype
    return "bfloat16" if tensor.dtype == BFLOAT16 else str(tensor.dtype)


def stored_arrays(tensor: Any) -> tuple[np.ndarray, ...]:
    """Return the arrays in which a tensor is stored; `dtype_name` says what they hold."""
    return tensor.parts if isinstance(tensor, StoredTensor) else (tensor,)
