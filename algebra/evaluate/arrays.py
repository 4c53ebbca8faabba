"""The value of an expression on arrays: NumPy or torch floats, or integers exactly.

`evaluate` is the public function. `Evaluator` reads an expression once, and can be called on many
sets of arrays; the rounding bounds are computed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from importlib import import_module
from math import pi, prod
from typing import TYPE_CHECKING, Any

import sympy

from otimes.algebra.diagrams.contract import as_object, contract, operations
from otimes.algebra.diagrams.diagram import Diagram
from otimes.algebra.diagrams.legs import Blocks, Branch, Legs
from otimes.algebra.diagrams.sums import DiagramSum
from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.evaluate.exact import Assignment, exact_array, tree_value
from otimes.algebra.evaluate.exact_arrays import ExactArray, as_exact
from otimes.algebra.language import coefficients
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.backends import is_torch
from otimes.algebra.language.binders import standardised
from otimes.algebra.language.coefficients import Coefficient
from otimes.algebra.language.constants import PI
from otimes.algebra.language.deferred import Deferred, is_installed
from otimes.algebra.language.index_arithmetic import without_arithmetic
from otimes.algebra.language.linear import Family
from otimes.algebra.language.positions import kind_of
from otimes.algebra.language.roots import exact_root
from otimes.algebra.language.shapes import inspect, with_ranges
from otimes.algebra.language.sympy_forms import in_language
from otimes.algebra.language.trees import key
from otimes.algebra.reading.constants import is_constant
from otimes.algebra.reading.opaque_functions import on_arrays
from otimes.algebra.reading.read import read

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

INT64_SAFE = 2.0**62


def evaluate(expression: Any, arrays: Mapping[Any, Any]) -> Any:
    """Return the value of an expression on arrays: a 2-D array of their type, or a number.

    `arrays` maps names or symbols to values: matrix symbols to arrays of their shape, families to
    arrays [index…, row, column]; scalars, free indices and sizes that are in no array's shape to
    numbers. Arrays are of NumPy or of torch, not mixed. Integer arrays are evaluated exactly (in
    int64 if it cannot overflow, else in Python integers). ExactArrays, and nested lists of integers
    and Fractions if NumPy is not installed, give an ExactArray, with exact inverses, and Intervals
    for irrational entries. Raises ShapeError naming an array of the wrong shape, OtimesError naming
    a missing value.

    >>> import numpy as np, sympy
    >>> n, d = sympy.symbols("n d")
    >>> A, W = sympy.MatrixSymbol("A", n, n), sympy.MatrixSymbol("W", d, d)
    >>> evaluate(sympy.KroneckerProduct(A, W), {A: np.eye(2), "W": np.ones((3, 3))}).shape
    (6, 6)
    """
    evaluator = Evaluator(expression)
    values = evaluator.values(arrays)
    rows = prod(values.size(d) for d in evaluator.shape[0])
    cols = prod(values.size(d) for d in evaluator.shape[1])
    for name in evaluator.index_names:
        if name not in values.indices:
            raise OtimesError(
                f"the expression has a free index {name}: give its value, as in {{'{name}': 0}}"
            )
    if values.are_exact or evaluator.clean.has(AffineMember):
        numbers = Assignment(
            values.sizes, values.arrays, values.indices, values.scalars, exact=values.are_exact
        )
        return tree_value(evaluator.clean, numbers)
    result = evaluator.run(values)
    for name in evaluator.index_names:
        result = result[values.indices[name]]
    if evaluator.is_scalar:
        return result if is_torch(result) else result[()]
    return result.reshape(rows, cols)


def constant_array(name: str, size: int) -> Any:
    """Return the array of a constant matrix, by its name as a tensor."""
    kind = kind_of(name)
    if kind is None:
        return np.tri(size)
    cols = size if kind.is_square_shape else 1
    return np.array([[float(kind.entry(i, j, size)) for j in range(cols)] for i in range(size)])


class Values:
    """Arrays and numbers by name, checked against a signature."""

    def __init__(self, signature: Any, given: Mapping[Any, Any]) -> None:
        named = {_name(key): value for key, value in given.items()}
        self.arrays: dict[str, Any] = {}
        self.sizes: dict[str, int] = {}
        self.indices = {n: _integer(n, named[n]) for n in signature.indices if n in named}
        missing = [name for name in (*signature.tensors, *signature.unknown) if name not in named]
        if missing:
            raise OtimesError(
                f"no value is given for {', '.join(sorted(missing))}; given were "
                f"{', '.join(sorted(named)) or 'none'}"
            )
        for name, tensor in signature.tensors.items():
            self._take(name, tensor, named[name])
        for name in signature.sizes:
            if name in named:
                self._size(name, _integer(name, named[name]), "the given size")
            elif name not in self.sizes:
                raise OtimesError(
                    f"no array has an axis of size {name}: give it, as in {{'{name}': 4}}"
                )
        for name, tensor in signature.tensors.items():
            self._check(name, tensor)
        for name, (_, count) in signature.indices.items():
            if name in self.indices and not 0 <= self.indices[name] < self.size(count):
                raise OtimesError(
                    f"the index {name} is {self.indices[name]}, but it runs from 0 to "
                    f"{self.size(count) - 1}"
                )
        for count, largest in signature.fixed.items():
            if self.size(count) <= largest:
                raise OtimesError(
                    f"the expression has the index {largest}, but {count} is {self.size(count)}"
                )
        self.scalars = {name: named[name] for name in signature.unknown}
        exact = [isinstance(array, ExactArray) for array in self.arrays.values()]
        numbers = [isinstance(value, int | Fraction) for value in self.scalars.values()]
        self.are_exact = all((*exact, *numbers)) and (any(exact) or not is_installed("numpy"))
        if any(exact) and not self.are_exact:  # one kind: what ExactArrays are among others
            self.arrays = {
                name: np.asarray(array) if isinstance(array, ExactArray) else array
                for name, array in self.arrays.items()
            }

    def size(self, dimension: sympy.Expr) -> int:
        """Return the value of a size."""
        if isinstance(dimension, sympy.Integer):
            return int(dimension)
        if isinstance(dimension, sympy.Symbol):
            return self.sizes[dimension.name]
        return int(dimension.subs({s: self.sizes[s.name] for s in dimension.free_symbols}))

    def _take(self, name: str, tensor: Any, array: Any) -> None:
        expected = _full_shape(tensor)
        if not hasattr(array, "shape"):
            array = np.asarray(array) if is_installed("numpy") else as_exact(array)
        if len(array.shape) != len(expected):
            raise ShapeError(
                f"{name} is {' × '.join(map(str, expected))}, and an array of shape "
                f"{tuple(array.shape)} was given: {len(expected)} axes are needed"
            )
        for dimension, size in zip(expected, array.shape, strict=True):
            if isinstance(dimension, sympy.Symbol):
                self._size(dimension.name, int(size), f"{name} {tuple(array.shape)}")
        self.arrays[name] = array

    def _size(self, name: str, size: int, where: str) -> None:
        known = self.sizes.setdefault(name, size)
        if known != size:
            raise ShapeError(
                f"the size {name} is {known} in one array and {size} in another ({where}): the "
                "shapes contradict each other"
            )

    def _check(self, name: str, tensor: Any) -> None:
        shape = tuple(self.arrays[name].shape)
        if tuple(self.size(dimension) for dimension in _full_shape(tensor)) != shape:
            raise ShapeError(
                f"{name} is {' × '.join(map(str, _full_shape(tensor)))}, and an array of shape "
                f"{shape} was given"
            )


class Evaluator:
    """An expression that is read once and evaluated on many sets of arrays."""

    def __init__(self, expression: Any) -> None:
        if not isinstance(expression, sympy.Basic):
            raise LanguageError(
                f"a SymPy expression was expected and {type(expression).__name__} was given"
            )
        clean, signature = without_arithmetic(self._inspected, [in_language(expression)])
        reading, [(value,)] = read(signature, [with_ranges(clean, signature)])
        self._take(signature, reading, value)
        self.is_scalar = not getattr(expression, "is_Matrix", False)

    def _inspected(self, expressions: Sequence[Any], _: Sequence[Any]) -> tuple[Any, Any]:
        """Return an expression with unique names, and its signature."""
        (self.clean,), _, self.origin = standardised(expressions)
        return self.clean, inspect(self.clean)

    @classmethod
    def of_reading(cls, signature: Any, reading: Any, value: DiagramSum) -> Evaluator:
        """Return the evaluator of a sum of diagrams that was read together with others."""
        made = cls.__new__(cls)
        made.origin = {}
        made._take(signature, reading, value)
        made.is_scalar = not (value.rows or value.cols)
        return made

    def _take(self, signature: Any, reading: Any, value: DiagramSum) -> None:
        self.signature, self.reading, self.value = signature, reading, value
        self.inverted = {name: reading.value(e) for name, (_, e) in reading.inverses.items()}
        self.applied = {known.name: known for known in reading.applied}
        self.masks = {label.name: label for label in reading.labels if is_constant(label)}
        self.index_names = tuple(sorted(self.signature.indices))
        total = self.reading.dimensions.total
        self.shape = tuple(
            [total((leg,)) for leg in legs] for legs in (self.value.rows, self.value.cols)
        )

    def values(self, given: Mapping[Any, Any]) -> Values:
        """Return the given arrays and numbers, checked against the signature."""
        own = {old: new for new, old in self.origin.items()}
        return Values(self.signature, {own.get(key, key): value for key, value in given.items()})

    def run(self, values: Values) -> Any:
        """Return the value with axes (free indices by name, row legs, column legs).

        A size that is a sum of blocks is one axis. Integers are summed exactly; inverses and
        functions are computed in floating point.
        """
        arrays: Mapping[str, Any] = values.arrays
        if self.inverted or self.applied:
            arrays = _of_one_kind({name: floating(array) for name, array in arrays.items()})
        elif _are_integers(arrays):
            arrays = self._exact(values)
        else:
            arrays = _of_one_kind(arrays)
        return self._sum(self.value, values, dict(arrays))

    def term(
        self,
        whole: DiagramSum,
        diagram: Diagram,
        operands: Sequence[Any],
        values: Values,
        like: Any,
        absolute: bool = False,
    ) -> Any:
        """Return one term of a sum of diagrams, given the arrays of its boxes; axes as in `run`.

        `whole` is the sum of the expression, or of an argument of a function or inverse in it;
        an argument has no axes for free indices. `absolute` takes the coefficient without its sign.
        """
        sizes = self._sizes(values)
        array = contract(diagram, operands, [sizes[sort] for sort in diagram.sorts], like)
        first = 0
        if whole is self.value:
            array = self._with_free_indices(array, diagram, values)
            first = len(self.index_names)
        size = self._size_in(values)
        array = put_in_blocks(array, first, whole.rows, diagram.rows, size)
        array = put_in_blocks(array, first + len(whole.rows), whole.cols, diagram.cols, size)
        return _times(array, whole.terms[diagram], values, absolute)

    def roundings(self, whole: DiagramSum, diagram: Diagram, values: Values) -> int:
        """Return the largest number of roundings between an entry of a box and a term."""
        sizes = self._sizes(values)
        selecting = self.selecting(diagram, selections(values))
        count = operations(diagram, [sizes[sort] for sort in diagram.sorts], selecting)
        coefficient = whole.terms[diagram]
        plain = not isinstance(coefficient, coefficients.Scalar) and coefficient == 1
        return (
            count if plain else count + 3
        )  # computing a coefficient such as 1/√d, rounding it, multiplying by it

    def _sizes(self, values: Values) -> list[int]:
        return [values.size(d) for d in self.reading.dimensions.expressions]

    def _size_in(self, values: Values) -> Callable[[Legs], int]:
        return lambda legs: values.size(self.reading.dimensions.total(legs))

    def arguments(self, name: str) -> list[DiagramSum]:
        """Return the arguments of a box that is an inverse or a function; none for a mask."""
        if name in self.inverted:
            return [self.inverted[name]]
        if name in self.masks:
            return []
        known = self.applied[name]
        return [DiagramSum(known.slots, known.features, terms) for terms in known.arguments]

    def made(self, name: str, arguments: Sequence[Any], values: Values, like: Any) -> Any:
        """Return the array of a mask, an inverse or a function, from the arrays of its arguments.

        An argument has an axis for each leg, or one for all row legs and one for all column legs.
        """
        if name in self.masks:
            mask = constant_array(name, self._size_in(values)(self.masks[name].rows))
            return like.new_tensor(mask) if is_torch(like) else mask.astype(like.dtype)
        if name in self.applied:
            return on_arrays(self.applied[name], arguments)
        rows = self._size_in(values)(self.inverted[name].rows)
        matrix = arguments[0].reshape(rows, rows)
        return import_module("torch").linalg.inv(matrix) if is_torch(matrix) else _inv(matrix)

    def _sum(
        self, whole: DiagramSum, values: Values, arrays: dict[str, Any], absolute: bool = False
    ) -> Any:
        """Return the array of a sum of diagrams; arrays of functions are computed and cached."""
        like: Any = next(iter(arrays.values()), np.zeros(()))
        total: Any = None
        for diagram in whole.terms:
            operands = [self._made_operand(box[0], values, arrays) for box in diagram.boxes]
            value = self.term(whole, diagram, operands, values, like, absolute)
            total = value if total is None else total + value
        return self.zeros(whole, values, like) if total is None else total

    def _made_operand(self, label: int, values: Values, arrays: dict[str, Any]) -> Any:
        name = self.reading.labels[label].name
        if name not in arrays:
            arguments = [self._sum(value, values, arrays) for value in self.arguments(name)]
            like: Any = next(iter(arrays.values()), np.zeros(()))
            arrays[name] = self.made(name, arguments, values, like)
        return self.operand(label, values, arrays[name])

    def selecting(self, diagram: Diagram, chosen: Collection[str]) -> set[int]:
        """Return the wires that are contracted with a matrix whose rows are one-hot or zero."""
        wires: set[int] = set()
        for box in diagram.boxes:
            label = self.reading.labels[box[0]]
            columns = sum(item >= 0 for item in label.col_branch)
            if label.name in chosen and columns:
                wires.update(box[-columns:])
        return wires

    def operand(self, label: int, values: Values, array: Any) -> Any:
        """Return the array of a box: at its fixed indices and block, with an axis for each leg."""
        kind, size = self.reading.labels[label], self._size_in(values)
        whole = array
        if kind.indices:
            array = array[tuple(slice(None) if i is None else i for i in kind.indices)]
        tensor = self.signature.tensors.get(kind.name)
        counts = tensor.counts if isinstance(tensor, Family) else ()
        wires = [
            size
            for size, count, index in zip(whole.shape, counts, kind.indices, strict=False)
            if index is None and count != 1
        ]
        array = array.reshape([*wires, *[size((leg,)) for leg in (*kind.rows, *kind.cols)]])
        last = len(wires) + len(kind.rows)
        array = take_block(array, last, kind.cols, kind.col_branch, size)
        return take_block(array, len(wires), kind.rows, kind.row_branch, size)

    def _with_free_indices(self, value: Any, diagram: Diagram, values: Values) -> Any:
        """Add an axis for every free index of the expression, in order of name."""
        mine: list[str] = []
        for name, _ in diagram.named:
            if "@" in name:  # a fixed index
                value = value[(slice(None),) * len(mine) + (int(name.partition("@")[0]),)]
            else:
                mine.append(name)
        if len(mine) == len(self.index_names):
            return value
        for axis, name in enumerate(self.index_names):
            if name not in mine:
                count = values.size(self.signature.indices[name][1])
                value = value[(slice(None),) * axis + (None,)]
                shape = list(value.shape)
                shape[axis] = count
                value = value.expand(shape) if is_torch(value) else np.broadcast_to(value, shape)
        return value

    def zeros(self, whole: DiagramSum, values: Values, like: Any) -> Any:
        """Return the empty sum."""
        size = self._size_in(values)
        shape = [size((leg,)) for leg in (*whole.rows, *whole.cols)]
        if whole is self.value:
            counts = [self.signature.indices[name][1] for name in self.index_names]
            shape = [*map(values.size, counts), *shape]
        return like.new_zeros(shape) if is_torch(like) else np.zeros(shape, dtype=like.dtype)

    def _exact(self, values: Values) -> dict[str, Any]:
        """Return integer arrays in a dtype that cannot overflow in this expression.

        Arithmetic on int64 is exact modulo 2^64, so only the result must fit.
        """
        numbers = {**values.sizes, **values.scalars}
        exact = np.empty((), dtype=object)
        factors = [_number(c, numbers, exact) for c in self.value.terms.values()]
        whole = all(_is_integer(x) and abs(x) < INT64_SAFE for x in factors) and all(
            _holds_integers(array) for array in values.arrays.values()
        )
        if whole:
            floats = {name: abs(np.asarray(a, dtype=float)) for name, a in values.arrays.items()}
            size = np.max(self._sum(self.value, values, floats, absolute=True), initial=0.0)
            if size < INT64_SAFE:
                return {
                    name: array if is_torch(array) else array.astype(np.int64)
                    for name, array in values.arrays.items()
                }
        if any(is_torch(array) for array in values.arrays.values()):
            raise OtimesError(
                "the value of these torch integers may not fit int64: pass NumPy integers, which "
                "are evaluated exactly at any size"
            )
        return {name: exact_array(array) for name, array in values.arrays.items()}


def take_block(
    array: Any, axis: int, legs: Legs, branch: Branch, size: Callable[[Legs], int]
) -> Any:
    """Return the block of an array at a branch; the axes of `legs` begin at `axis`."""
    if not legs or not isinstance(legs[-1], Blocks):
        return array
    before, blocks = len(legs) - 1, legs[-1]
    number, inner = -1 - branch[before], branch[before + 1 :]
    at = axis + before
    start = sum(size(block) for block in blocks[:number])
    block = blocks[number]
    array = array[(slice(None),) * at + (slice(start, start + size(block)),)]
    shape = [*array.shape[:at], *[size((leg,)) for leg in block], *array.shape[at + 1 :]]
    return take_block(array.reshape(shape), at, block, inner, size)


def put_in_blocks(
    array: Any, axis: int, legs: Legs, wires: tuple[int, ...], size: Callable[[Legs], int]
) -> Any:
    """Return an array with the given block and zeros in all others (inverse of `take_block`)."""
    if not legs or not isinstance(legs[-1], Blocks):
        return array
    before, blocks = len(legs) - 1, legs[-1]
    number, inner = -1 - wires[before], wires[before + 1 :]
    at = axis + before
    block = blocks[number]
    array = put_in_blocks(array, at, block, inner, size)
    width, whole = size(block), size((blocks,))
    shape = [*array.shape[:at], width, *array.shape[at + len(block) :]]
    array = array.reshape(shape)
    start = sum(size(other) for other in blocks[:number])
    shape[at] = whole
    result = array.new_zeros(shape) if is_torch(array) else np.zeros(shape, dtype=array.dtype)
    result[(slice(None),) * at + (slice(start, start + width),)] = array
    return result


def selections(values: Values) -> set[str]:
    """Return the names of the matrices whose rows are one-hot or zero."""
    return {name for name, array in values.arrays.items() if _selects(array)}


def _selects(array: Any) -> bool:
    if is_torch(array) or array.ndim != 2 or array.dtype.kind != "f":
        return False
    return bool(np.all((array == 0) | (array == 1)) and np.all(array.sum(axis=1) <= 1))


def _is_integer(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def _holds_integers(array: Any) -> bool:
    """Return whether every entry is an integer; arrays of dtype object may have Fractions."""
    return is_torch(array) or array.dtype.kind != "O" or all(map(_is_integer, array.flat))


def _of_one_kind(arrays: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arrays in their common floating-point dtype."""
    if not arrays:
        return arrays
    tensors = [is_torch(array) for array in arrays.values()]
    if any(tensors) and not all(tensors):
        torch, numpy = (
            [n for n, a in arrays.items() if is_torch(a) is kind] for kind in (True, False)
        )
        raise OtimesError(
            f"{', '.join(torch)} came as torch tensors and {', '.join(numpy)} as NumPy arrays: "
            "give all of one kind"
        )
    if all(tensors):
        promote = import_module("torch").promote_types
        dtype = reduce(promote, [array.dtype for array in arrays.values()])
        return {name: array.to(dtype) for name, array in arrays.items()}
    floats = {n: a.astype(float) if a.dtype.kind == "O" else a for n, a in arrays.items()}
    dtype = np.result_type(*[array.dtype for array in floats.values()])
    return {name: array.astype(dtype, copy=False) for name, array in floats.items()}


def _are_integers(arrays: Mapping[str, Any]) -> bool:
    def integral(array: Any) -> bool:
        if is_torch(array):
            return not (array.is_floating_point() or array.is_complex())
        exact = (int, np.integer, Fraction)
        return array.dtype.kind in "iub" or (
            array.dtype.kind == "O" and all(isinstance(entry, exact) for entry in array.flat)
        )

    return bool(arrays) and all(integral(array) for array in arrays.values())


def _times(array: Any, coefficient: Coefficient, values: Values, absolute: bool = False) -> Any:
    """Return an array times a coefficient, as an array."""
    if not isinstance(coefficient, coefficients.Scalar) and coefficient == 1:
        return array
    factor = _number(coefficient, {**values.sizes, **values.scalars}, array)
    array = array * (abs(factor) if absolute else factor)
    return (
        array if hasattr(array, "shape") else as_object(array)
    )  # NumPy returns 0-d objects as scalars


def _inv(matrix: Any) -> Any:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        raise OtimesError("an inverted matrix is singular at these values") from None


def floating(array: Any) -> Any:
    """Return an array of floats; integers and Fractions become float64."""
    if is_torch(array):
        return array if array.is_floating_point() else array.double()
    return array if array.dtype.kind == "f" else array.astype(float)


def _number(coefficient: Coefficient, numbers: Mapping[str, Any], like: Any) -> Any:
    exact = not is_torch(like) and like.dtype.kind in "iuO"

    def root(base: Any, exponent: Fraction) -> Any:
        return exact_root(base, exponent) if exact else float(base) ** float(exponent)

    if exact and key(PI) in coefficients.names(coefficient):
        raise OtimesError("π is irrational: evaluate this at floating-point numbers")
    value = coefficients.value_at(coefficient, {**numbers, key(PI): pi}, root)
    if isinstance(value, Fraction) and not (exact and like.dtype.kind == "O"):
        return value.numerator / value.denominator
    return value


def _full_shape(tensor: sympy.MatrixSymbol | Family) -> tuple[sympy.Expr, ...]:
    counts = tensor.counts if isinstance(tensor, Family) else ()
    return (*counts, *tensor.shape)


def _integer(name: str, value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = None
    if number is None or number != value:
        raise OtimesError(
            f"{name} is a size or an index: an integer is needed, {value!r} was given"
        )
    return number


def _name(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, sympy.MatrixSymbol | sympy.Symbol | Family):
        return str(key.name)
    raise OtimesError(f"arrays are keyed by names or symbols, and {key!r:.60} was given")
