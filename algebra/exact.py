"""What an expression is worth, by walking its tree: the second opinion behind every check.

This evaluator knows nothing of diagrams: it multiplies, sums and takes Kronecker products as the
tree says. On object arrays of Python integers and Fractions it is exact, an entry being an Interval
where softmax, a norm or an activation makes it irrational; on floating-point arrays it is plain
NumPy. It is written to be obviously right, not fast.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from algebra import functions
from algebra.errors import LanguageError, OtimesError
from algebra.intervals import Interval
from algebra.language import (
    ConcatHeads,
    Family,
    FamilyMember,
    HeadSum,
    LayerProduct,
    OneHot,
    OrderSum,
    StackHeads,
    key,
    vec_cols,
    vec_rows,
)
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax, definition
from algebra.text import short_text

Number = int | Fraction
HIGHEST_POWER = 10_000
MOST_ENTRIES = 1_000_000  # of one exact array: what is larger is no small example of anything


def as_floats(array: Any) -> Any:
    """Return an array of floats."""
    return np.array(array, dtype=float)


def on_floats(name: str, arguments: Sequence[Any]) -> Any:
    """Return a function of 2-D arrays of floats; a softmax has its mask as second argument."""
    if name == "inverse":
        return np.linalg.inv(arguments[0])
    if name != "softmax":
        return functions.on_floats(name, arguments[0])
    scores, mask = arguments
    weights = mask * np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Numbers for everything that can vary, each by its name.

    `arrays[name]` has the shape of the matrix symbol, or (counts…, rows, cols) for a family.
    `exact`: object arrays of integers and Fractions; else floating point, or any arrays that can be
    added and multiplied. Then `made` makes one from numbers, and `apply` is what functions do: it
    is given the name, "softmax", "inverse" or that of an activation, and the arguments.
    """

    sizes: Mapping[str, int]
    arrays: Mapping[str, Any]
    indices: Mapping[str, int] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    made: Callable[[Any], Any] = as_floats
    apply: Callable[[str, Sequence[Any]], Any] = on_floats

    def size(self, dimension: sympy.Expr) -> int:
        """Return the number a dimension has."""
        if isinstance(dimension, int | sympy.Integer):  # explicit matrices count in Python's ints
            return int(dimension)
        if isinstance(dimension, sympy.Symbol):
            return int(self.sizes[key(dimension)])
        return int(self._size(dimension))

    def _size(self, part: sympy.Expr) -> Number:
        """Return the number that a part of a size has: halves may occur on the way to a whole."""
        if isinstance(part, sympy.Rational):
            return Fraction(part.p, part.q)
        if isinstance(part, sympy.Symbol):
            return self.sizes[key(part)]
        values = map(self._size, part.args)
        if isinstance(part, sympy.Pow):
            base, exponent = values
            return base ** int(exponent)
        return prod(values) if isinstance(part, sympy.Mul) else sum(values)

    def leaf(self, array: Any) -> Any:
        """Return an array of zeros and ones in the kind of numbers that is asked for."""
        return exact_array(array) if self.exact else self.made(array)


def tree_value(expression: sympy.Basic, assignment: Assignment) -> Any:
    """Return a 2-D array for a matrix, a number for a scalar.

    Raises OtimesError when a root is not rational at exact values (draw perfect powers instead).
    """
    return _value(expression, assignment, dict(assignment.indices))


def exact_array(array: Any) -> Any:
    """Return an object array of Python integers (or Fractions), so that nothing can overflow."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        return array.astype(object)
    result = np.empty(np.shape(array), dtype=object)
    for place, entry in np.ndenumerate(np.asarray(array, dtype=object)):
        result[place] = entry if isinstance(entry, Fraction) else int(entry)
    return result


def exact_root(base: Number, exponent: Fraction) -> Number:
    """Return base**exponent when it is rational, else raise OtimesError."""
    value = Fraction(base)
    if value <= 0:
        raise OtimesError(f"{base}**({exponent}) is not rational")
    parts = [sympy.integer_nthroot(part, exponent.denominator) for part in value.as_integer_ratio()]
    if not all(is_exact for _, is_exact in parts):
        raise OtimesError(f"{base}**({exponent}) is not rational")
    root = Fraction(int(parts[0][0]), int(parts[1][0])) ** exponent.numerator
    return int(root) if root.denominator == 1 else root


def exact_quotient(a: Any, b: Any) -> Any:
    """Return a / b for integers, Fractions and Intervals: an integer where it is one."""
    if isinstance(a, int) and isinstance(b, int):
        whole, rest = divmod(a, b)
        return Fraction(a, b) if rest else whole
    return a / b


def exact_inverse(matrix: Any) -> Any:
    """Return the inverse of a square array of integers or Fractions, or say that there is none."""
    size = len(matrix)
    rows = [
        [x if isinstance(x, int | Interval) else Fraction(x) for x in row]
        + [int(i == j) for j in range(size)]
        for i, row in enumerate(matrix)
    ]
    for k in range(size):
        pivot = next((i for i in range(k, size) if rows[i][k]), None)
        if pivot is None:
            raise OtimesError("a matrix that is inverted is singular at these values")
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [exact_quotient(x, rows[k][k]) for x in rows[k]]
        for i in range(size):
            if i == k or rows[i][k] == 0:  # an interval that may be zero is not equal to it
                continue
            rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    result = np.empty((size, size), dtype=object)
    for i, row in enumerate(rows):
        result[i, :] = row[size:]
    return result


def _value(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    evaluate = _EVALUATORS.get(type(e))
    if evaluate is None:
        raise LanguageError(f"{type(e).__name__} has no exact value")
    return evaluate(e, a, indices)


def _symbol(e: sympy.Symbol, a: Assignment, indices: dict[str, int]) -> Any:
    name = key(e)
    return a.sizes[name] if name in a.sizes else a.scalars[name]


def _rational(e: sympy.Rational, a: Assignment, indices: dict[str, int]) -> Number:
    if not a.exact:
        return float(e)  # type: ignore[return-value]
    return int(e) if e.is_Integer else Fraction(int(e.p), int(e.q))


def _matrix_symbol(e: sympy.MatrixSymbol, a: Assignment, indices: dict[str, int]) -> Any:
    return a.arrays[e.name]


def _at(index: Any, indices: dict[str, int]) -> int:
    return int(index) if index.is_Integer else indices[key(index)]


def _member(e: FamilyMember, a: Assignment, indices: dict[str, int]) -> Any:
    return a.arrays[e.family.name][tuple(_at(i, indices) for i in e.indices)]


def _special(fill: Callable[[int, int], Any]) -> Callable[[Any, Assignment, dict[str, int]], Any]:
    return lambda e, a, indices: a.leaf(fill(*[a.size(d) for d in e.shape]))


def _one_hot(e: OneHot, a: Assignment, indices: dict[str, int]) -> Any:
    index, size = e.args
    column = np.zeros((a.size(size), 1), dtype=int)
    column[_at(index, indices), 0] = 1
    return a.leaf(column)


def _add(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    values = [_value(argument, a, indices) for argument in e.args]
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _mul(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    matrices = [argument for argument in e.args if argument.is_Matrix]
    numbers = [_value(argument, a, indices) for argument in e.args if not argument.is_Matrix]
    factor = reduce(operator.mul, numbers, 1)
    if not matrices:
        return factor
    if not a.exact and matrices[-1].shape[1] == 1:
        column = _value(matrices[-1], a, indices)
        for matrix in reversed(matrices[:-1]):
            column = _apply(matrix, column, a, indices)
        return factor * column
    values = [_value(matrix, a, indices) for matrix in matrices]
    if len(values) > 1 and not a.exact:
        return factor * np.linalg.multi_dot(values)  # the cheapest order of the same products
    product = reduce(_dot, values)
    return factor * product if numbers else product


def _apply(e: Any, column: Any, a: Assignment, indices: dict[str, int]) -> Any:
    """Return e times a column of floats; sums and Kronecker products act part by part.

    (B ⊗ C) x, by the definition of ⊗ in blocks: C acts on each block of x, and B mixes the blocks.
    """
    if isinstance(e, sympy.MatAdd):
        return sum(_apply(term, column, a, indices) for term in e.args)
    if isinstance(e, HeadSum):
        (index, count), *inner = e.limits
        body = e.body if not inner else HeadSum(e.body, *inner)
        parts = (_apply(body, column, a, {**indices, key(index): k}) for k in range(a.size(count)))
        return sum(parts, np.zeros((a.size(e.shape[0]), 1)))
    if isinstance(e, LayerProduct):
        order = range(_count(e.count, a, indices))
        for layer in reversed(order) if e.reverse else order:
            column = _apply(e.body, column, a, {**indices, key(e.index): layer})
        return column
    if isinstance(e, OrderSum):
        return _apply_orders(e, column, a, indices)
    if isinstance(e, sympy.KroneckerProduct):
        *left, right = e.args
        mixing = reduce(np.kron, [_value(factor, a, indices) for factor in left])
        blocks = column.reshape(mixing.shape[1], -1, 1)
        moved = np.stack([_apply(right, block, a, indices)[:, 0] for block in blocks])
        return (mixing @ moved).reshape(-1, 1)
    if isinstance(e, sympy.MatMul):
        for factor in reversed(e.args):
            if factor.is_Matrix:
                column = _apply(factor, column, a, indices)
            else:
                column = column * _value(factor, a, indices)
        return column
    return _value(e, a, indices) @ column


def _apply_orders(e: OrderSum, column: Any, a: Assignment, indices: dict[str, int]) -> Any:
    """Return an OrderSum times a column: by the number of layers taken, one layer at a time."""
    n_layers, order = (_count(number, a, indices) for number in (e.count, e.order))
    taken = [column, *[np.zeros_like(column)] * order]
    for layer in reversed(range(n_layers)) if e.reverse else range(n_layers):
        inner = {**indices, key(e.index): layer}
        moved = [_apply(e.body, taken[k], a, inner) for k in range(order)]
        taken = [column, *[taken[k + 1] + moved[k] for k in range(order)]]
    return taken[order]


def _dot(x: Any, y: Any) -> Any:
    if x.shape[1] == 0:  # NumPy's dot of empty object arrays has no zero to return
        return exact_array(np.zeros((x.shape[0], y.shape[1]), dtype=int))
    return np.dot(x, y)


def _check_power(exponent: Any, a: Assignment) -> None:
    if a.exact and abs(exponent) > HIGHEST_POWER:
        raise OtimesError(
            f"a power of {exponent} is not worked out exactly: {HIGHEST_POWER} is the most"
        )


def _power(e: sympy.MatPow, a: Assignment, indices: dict[str, int]) -> Any:
    base = _value(e.base, a, indices)
    _check_power(e.exp, a)
    if e.exp < 0:
        base = exact_inverse(base) if a.exact else a.apply("inverse", [base])
    result = a.leaf(np.eye(base.shape[0], dtype=int))
    for _ in range(abs(int(e.exp))):
        result = _dot(result, base)
    return result


def _scalar_power(e: sympy.Pow, a: Assignment, indices: dict[str, int]) -> Any:
    base = _value(e.base, a, indices)
    if not a.exact:
        base = float(base) if isinstance(base, int) else base
        return base ** float(_value(e.exp, a, indices))
    if isinstance(base, Interval) and e.exp.is_Integer:
        return base ** int(e.exp)
    if isinstance(e.exp, sympy.Rational) and not e.exp.is_Integer:
        return exact_root(base, Fraction(int(e.exp.p), int(e.exp.q)))
    exponent = int(_value(e.exp, a, indices))
    _check_power(exponent, a)
    if exponent < 0 and base == 0:
        raise OtimesError(f"{short_text(e)} divides by zero at these values")
    return base**exponent if exponent >= 0 else Fraction(1) / base**-exponent


def _transpose(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    return _value(e.args[0], a, indices).T


def _kron(e: sympy.KroneckerProduct, a: Assignment, indices: dict[str, int]) -> Any:
    values = [_value(argument, a, indices) for argument in e.args]
    result = values[0]
    for value in values[1:]:  # entry ((i, k), (j, l)) = x[i, j] * y[k, l]
        (p, q), (r, s) = result.shape, value.shape
        if a.exact and p * q * r * s > MOST_ENTRIES:
            raise OtimesError(
                f"a Kronecker product has {p * q * r * s} entries at these sizes, and at most "
                f"{MOST_ENTRIES} are worked out exactly"
            )
        result = (result[:, None, :, None] * value[None, :, None, :]).reshape(p * r, q * s)
    return result


def _hadamard(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    values = [_value(argument, a, indices) for argument in e.args]
    result = values[0]
    for value in values[1:]:
        result = result * value
    return result


def _trace(e: sympy.Trace, a: Assignment, indices: dict[str, int]) -> Any:
    value = _value(e.args[0], a, indices)
    return sum((value[i, i] for i in range(value.shape[0])), 0)


def _vec_rows(e: vec_rows, a: Assignment, indices: dict[str, int]) -> Any:
    return _value(e.args[0], a, indices).reshape(-1, 1)


def _vec_cols(e: vec_cols, a: Assignment, indices: dict[str, int]) -> Any:
    return _value(e.args[0], a, indices).T.reshape(-1, 1)


def _element(e: MatrixElement, a: Assignment, indices: dict[str, int]) -> Any:
    return _value(e.args[0], a, indices)[_at(e.args[1], indices), _at(e.args[2], indices)]


def _delta(e: sympy.KroneckerDelta, a: Assignment, indices: dict[str, int]) -> int:
    return int(_at(e.args[0], indices) == _at(e.args[1], indices))


def _index_sum(e: sympy.Sum, a: Assignment, indices: dict[str, int]) -> Any:
    *inner, (index, _, last) = e.limits
    body = sympy.Sum(e.function, *inner) if inner else e.function
    return sum((_value(body, a, {**indices, key(index): k}) for k in range(a.size(last + 1))), 0)


def _diag_matrix(e: DiagMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    entries = _value(e.args[0], a, indices).reshape(-1)
    result = a.leaf(np.zeros((len(entries), len(entries)), dtype=int))
    for k, entry in enumerate(entries):
        result[k, k] = entry
    return result


def _diagonal_of(e: DiagonalOf, a: Assignment, indices: dict[str, int]) -> Any:
    return np.diagonal(_value(e.args[0], a, indices)).reshape(-1, 1)


def _diagonal_matrix(e: DiagonalMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    value = _value(e.args[0], a, indices)
    return value * a.leaf(np.eye(len(value), dtype=int))


def _hadamard_power(e: sympy.HadamardPower, a: Assignment, indices: dict[str, int]) -> Any:
    _check_power(e.args[1], a)
    return _value(e.args[0], a, indices) ** int(e.args[1])


def _explicit(e: sympy.ImmutableDenseMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    result = a.leaf(np.zeros(e.shape, dtype=int))
    for i in range(e.rows):
        for j in range(e.cols):
            result[i, j] = _value(e[i, j], a, indices)
    return result


def _block_matrix(e: sympy.BlockMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    height, width = e.blockshape
    lines = [
        np.concatenate([_value(e.blocks[i, j], a, indices) for j in range(width)], axis=1)
        for i in range(height)
    ]
    return np.concatenate(lines, axis=0)


def _block_diagonal(e: sympy.BlockDiagMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    blocks = [_value(block, a, indices) for block in e.args]
    result = a.leaf(np.zeros(np.sum([block.shape for block in blocks], axis=0), dtype=int))
    row = col = 0
    for block in blocks:
        result[row : row + block.shape[0], col : col + block.shape[1]] = block
        row, col = row + block.shape[0], col + block.shape[1]
    return result


def _count(count: Any, a: Assignment, indices: dict[str, int]) -> int:
    """Return how many layers there are; it may be an index: the layers before that one."""
    name = key(count) if isinstance(count, sympy.Symbol) else ""
    return indices[name] if name in indices else a.size(count)


def _layers(e: LayerProduct, a: Assignment, indices: dict[str, int]) -> Any:
    order = range(_count(e.count, a, indices))
    result = a.leaf(np.eye(a.size(e.shape[0]), dtype=int))
    for layer in order if e.reverse else reversed(order):
        result = _dot(result, _value(e.body, a, {**indices, key(e.index): layer}))
    return result


def _orders(e: OrderSum, a: Assignment, indices: dict[str, int]) -> Any:
    n_layers, order = (_count(number, a, indices) for number in (e.count, e.order))
    size = a.size(e.shape[0])
    layers = [_value(e.body, a, {**indices, key(e.index): k}) for k in range(n_layers)]
    total = a.leaf(np.zeros((size, size), dtype=int))
    for chosen in combinations(layers, order):
        one = a.leaf(np.eye(size, dtype=int))
        for layer in chosen:
            one = _dot(one, layer) if e.reverse else _dot(layer, one)
        total = total + one
    return total


def _activation(e: Activation, a: Assignment, indices: dict[str, int]) -> Any:
    value = _value(e.argument, a, indices)
    if not a.exact:
        return a.apply(e.name, [value])
    result = np.empty(value.shape, dtype=object)
    for place, entry in np.ndenumerate(value):
        result[place] = functions.value_of(e.name, entry)
    return result


def _norm(e: RMSNorm | LayerNorm, a: Assignment, indices: dict[str, int]) -> Any:
    return _value(definition(e), a, indices)


def _causal_mask(e: CausalMask, a: Assignment, indices: dict[str, int]) -> Any:
    return a.leaf(np.tri(a.size(e.args[0]), dtype=int))


def _row_softmax(e: RowSoftmax, a: Assignment, indices: dict[str, int]) -> Any:
    scores = _value(e.args[0], a, indices)
    mask = a.leaf(np.ones(scores.shape, dtype=int)) if e.mask is None else None
    mask = _value(e.mask, a, indices) if mask is None else mask
    if not a.exact:
        return a.apply("softmax", [scores, mask])
    result = np.empty(scores.shape, dtype=object)
    for i, row in enumerate(scores):
        # what is subtracted changes nothing, and leaves a row of equal scores rational
        weights = [
            m * functions.value_of("exp", x - row[0]) for m, x in zip(mask[i], row, strict=True)
        ]
        total = sum(weights, 0)
        if not bool(total):
            raise OtimesError("a row of a softmax has no weight at these values")
        result[i, :] = [_quotient(weight, total) for weight in weights]
    return result


def _quotient(a: Any, b: Any) -> Any:
    if isinstance(a, Interval) or isinstance(b, Interval):
        return 0 if a == 0 else a / b
    return Fraction(a) / b


def _over_heads(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    (index, count), *inner = e.limits
    rows, cols = (a.size(dimension) for dimension in e.body.shape)
    body = e.body if not inner else type(e)(e.body, *inner)
    parts = [_value(body, a, {**indices, key(index): k}) for k in range(a.size(count))]
    if isinstance(e, HeadSum):
        return sum(parts, a.leaf(np.zeros((rows, cols), dtype=int)))
    if not parts:
        shape = tuple(a.size(dimension) for dimension in e.shape)
        return a.leaf(np.zeros(shape, dtype=int))
    return np.concatenate(parts, axis=1 if isinstance(e, ConcatHeads) else 0)


_EVALUATORS: dict[type, Callable[[Any, Assignment, dict[str, int]], Any]] = {
    sympy.Symbol: _symbol,
    sympy.Dummy: _symbol,
    sympy.MatrixSymbol: _matrix_symbol,
    FamilyMember: _member,
    sympy.Identity: _special(lambda n, _: np.eye(n, dtype=int)),
    sympy.OneMatrix: _special(lambda n, m: np.ones((n, m), dtype=int)),
    sympy.ZeroMatrix: _special(lambda n, m: np.zeros((n, m), dtype=int)),
    OneHot: _one_hot,
    sympy.MatAdd: _add,
    sympy.Add: _add,
    sympy.MatMul: _mul,
    sympy.Mul: _mul,
    sympy.MatPow: _power,
    sympy.Inverse: _power,
    sympy.Pow: _scalar_power,
    sympy.Transpose: _transpose,
    sympy.Adjoint: _transpose,
    sympy.KroneckerProduct: _kron,
    sympy.HadamardProduct: _hadamard,
    sympy.Trace: _trace,
    vec_rows: _vec_rows,
    vec_cols: _vec_cols,
    MatrixElement: _element,
    sympy.KroneckerDelta: _delta,
    sympy.Sum: _index_sum,
    DiagMatrix: _diag_matrix,
    DiagonalOf: _diagonal_of,
    DiagonalMatrix: _diagonal_matrix,
    sympy.HadamardPower: _hadamard_power,
    sympy.ImmutableDenseMatrix: _explicit,
    sympy.BlockMatrix: _block_matrix,
    sympy.BlockDiagMatrix: _block_diagonal,
    LayerProduct: _layers,
    OrderSum: _orders,
    Activation: _activation,
    RMSNorm: _norm,
    LayerNorm: _norm,
    CausalMask: _causal_mask,
    RowSoftmax: _row_softmax,
    HeadSum: _over_heads,
    ConcatHeads: _over_heads,
    StackHeads: _over_heads,
}
for _kind in (
    sympy.Integer,
    sympy.Rational,
    sympy.core.numbers.Zero,
    sympy.core.numbers.One,
    sympy.core.numbers.NegativeOne,
    sympy.core.numbers.Half,
):
    _EVALUATORS[_kind] = _rational


def array_shape(tensor: sympy.MatrixSymbol | Family, assignment: Assignment) -> tuple[int, ...]:
    """Return the shape of the array that a matrix symbol or a family takes."""
    counts = tensor.counts if isinstance(tensor, Family) else ()
    return tuple(assignment.size(dimension) for dimension in (*counts, *tensor.shape))
