"""The value of an expression by recursion over its tree: the independent evaluator of all checks.

It does not use diagrams: it multiplies, adds and forms Kronecker products as the tree states. Each
class of expressions has one function, which calls the `Operations` for the type of numbers: exact
ones do not need NumPy, floating-point ones are plain NumPy. Simplicity comes before speed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import reduce
from math import prod
from typing import TYPE_CHECKING, Any

import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.budget import product_weight, spend
from otimes.algebra.errors import LanguageError, OtimesError
from otimes.algebra.evaluate.exact_arrays import ExactArray, as_exact, as_numpy
from otimes.algebra.evaluate.operations import EXACT, Exact, Floating, Operations, as_floats, work
from otimes.algebra.evaluate.operations import exact_inverse as exact_inverse
from otimes.algebra.evaluate.operations import on_floats as on_floats
from otimes.algebra.language.affine import AffineMember
from otimes.algebra.language.constants import PI
from otimes.algebra.language.deferred import Deferred
from otimes.algebra.language.defined import CLASSES, entrywise_power, unfolded
from otimes.algebra.language.intervals import Interval, root
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    FamilyMember,
    HeadSum,
    OneHot,
    StackHeads,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
    definition,
)
from otimes.algebra.language.positions import KINDS, Positional
from otimes.algebra.language.roots import Number
from otimes.algebra.language.trees import key
from otimes.algebra.language.unicode import short_text

if TYPE_CHECKING:
    import numpy as np
else:
    np = Deferred("numpy")

REMEMBERED = 1  # sums within which values are kept: further inside there are too many
NODE = 3  # work steps for a node of the tree, besides those for its entries
MEMBER = 20  # work steps for the place of a member at affine indices


@dataclass(frozen=True, slots=True)
class Assignment:
    """Values by name for the sizes, matrices, indices and scalars of an expression.

    `arrays[name]` has the shape of the matrix symbol, or (counts…, rows, cols) for a family.
    `exact`: integers and Fractions, in ExactArrays or in NumPy arrays of dtype object; otherwise
    floating point, or any arrays with addition and multiplication. For those, `made` creates an
    array from numbers, and `apply` evaluates functions: it is called with `SOFTMAX`, `INVERSE` or
    the name of an activation, and the arguments. `functions` are exact values of activations that
    stand for any function; by default these are polynomials (`functions.stand_in`).
    """

    sizes: Mapping[str, int]
    arrays: Mapping[str, Any]
    indices: Mapping[str, int] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    made: Callable[[Any], Any] = as_floats
    apply: Callable[[str, Sequence[Any]], Any] = on_floats
    functions: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    _known: dict[Any, Any] | None = field(default=None, init=False, compare=False, repr=False)

    def remembering(self) -> Assignment:
        """Return the assignment with exact arrays, which keeps the values of subexpressions.

        For many expressions that share parts. A copy by `dataclasses.replace` starts without them.
        """
        own = replace(self.in_exact_arrays())
        object.__setattr__(own, "_known", {})
        return own

    def size(self, dimension: sympy.Expr) -> int:
        """Return the value of a dimension."""
        if isinstance(
            dimension, int | sympy.Integer
        ):  # explicit matrices have Python ints as sizes
            return int(dimension)
        if isinstance(dimension, sympy.Symbol):
            return int(self.sizes[key(dimension)])
        return int(self._size(dimension))

    def _size(self, part: sympy.Expr) -> Number:
        """Return the value of a subexpression of a size, which may be a fraction."""
        if isinstance(part, sympy.Rational):
            return Fraction(part.p, part.q)
        if isinstance(part, sympy.Symbol):
            return self.sizes[key(part)]
        values = map(self._size, part.args)
        if isinstance(part, sympy.Pow):
            base, exponent = values
            return base ** int(exponent)
        return prod(values) if isinstance(part, sympy.Mul) else sum(values)

    @property
    def operations(self) -> Operations:
        """The operations for this type of numbers."""
        if self.exact:
            return Exact(self.functions) if self.functions else EXACT
        return Floating(self.made, self.apply)

    def in_exact_arrays(self) -> Assignment:
        """Return the assignment with every array as an ExactArray."""
        if all(type(array) is ExactArray for array in self.arrays.values()):
            return self
        return replace(self, arrays={name: as_exact(a) for name, a in self.arrays.items()})

    def in_numpy(self) -> Assignment:
        """Return the assignment with every array as a NumPy array of dtype object."""
        return replace(self, arrays={name: np.asarray(a) for name, a in self.arrays.items()})


def tree_value(expression: sympy.Basic, assignment: Assignment) -> Any:
    """Return the value of an expression: a 2-D array, or a number for a scalar.

    For exact values the array is an ExactArray if those of the assignment are, else a NumPy array.
    Raises OtimesError if a root is irrational at exact values (use perfect powers instead).
    """
    if not assignment.exact:
        return _value(expression, assignment, dict(assignment.indices))
    value = exact_value(expression, assignment)
    kinds = {type(array) for array in assignment.arrays.values()}
    return as_numpy(value) if type(value) is ExactArray and kinds != {ExactArray} else value


def exact_value(expression: sympy.Basic, assignment: Assignment) -> Any:
    """Return the exact value: an ExactArray, or a number, also if the assignment has NumPy arrays.

    Raises OtimesError as `tree_value` does.
    """
    own = assignment.in_exact_arrays()
    return _value(expression, own, dict(own.indices))


def exact_array(array: Any) -> Any:
    """Return a NumPy array of dtype object with Python integers or Fractions, without overflow."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "iu":
        return array.astype(object)
    result = np.empty(np.shape(array), dtype=object)
    for place, entry in np.ndenumerate(np.asarray(array, dtype=object)):
        result[place] = entry if isinstance(entry, Fraction) else int(entry)
    return result


def _value(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    known = a._known
    if known is None or not e.args or len(indices) > len(a.indices) + REMEMBERED:
        return _evaluated(e, a, indices)
    place = e, tuple(indices.items())
    if place not in known:
        known[place] = _evaluated(e, a, indices)
    return known[place]


def _evaluated(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    evaluate = _EVALUATORS.get(type(e))
    if evaluate is None:
        raise LanguageError(f"{type(e).__name__} has no exact value")
    value = evaluate(e, a, indices)
    if a.exact:
        spend(NODE + work(value))
    return value


def _symbol(e: sympy.Symbol, a: Assignment, indices: dict[str, int]) -> Any:
    name = key(e)
    if e == PI and name not in a.scalars:
        return a.operations.pi()
    return a.sizes[name] if name in a.sizes else a.scalars[name]


def _at(index: Any, indices: dict[str, int]) -> int:
    return int(index) if index.is_Integer else indices[key(index)]


def _zeros(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    return a.operations.zeros(*_shape(e, a))


def _shape(e: Any, a: Assignment) -> tuple[int, int]:
    rows, cols = e.shape
    return a.size(rows), a.size(cols)


def _one_hot(e: OneHot, a: Assignment, indices: dict[str, int]) -> Any:
    index, size = e.args
    column = a.operations.zeros(a.size(size), 1)
    column[_at(index, indices), 0] = 1
    return column


def _affine_member(e: AffineMember, a: Assignment, indices: dict[str, int]) -> Any:
    spend(MEMBER)
    place = e.place(a.size, lambda variable: _at(variable, indices))
    array = a.arrays[e.family.name]
    if not all(0 <= k < length for k, length in zip(place, array.shape, strict=False)):
        raise OtimesError(f"the index of {short_text(e)} is out of range at these sizes")
    return array[place]


def _positional(e: Positional, a: Assignment, indices: dict[str, int]) -> Any:
    size, (rows, cols) = a.size(e.args[0]), _shape(e, a)
    result = a.operations.zeros(rows, cols)
    for i in range(rows):
        for j in range(cols):
            if entry := e.entry(i, j, size):
                result[i, j] = entry
    return result


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
    product = a.operations.product([_value(matrix, a, indices) for matrix in matrices])
    return factor * product if numbers else product


def _apply(e: Any, column: Any, a: Assignment, indices: dict[str, int]) -> Any:
    """Return e times a column of floats; sums and Kronecker products are never formed.

    (B ⊗ C) x by the block definition of ⊗: C multiplies each block of x, then B mixes the blocks.
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
    """Return an OrderSum times a column, by recursion over layers and the number of them taken."""
    n_layers, order = (_count(number, a, indices) for number in (e.count, e.order))
    taken = [column, *[np.zeros_like(column)] * order]
    for layer in reversed(range(n_layers)) if e.reverse else range(n_layers):
        inner = {**indices, key(e.index): layer}
        moved = [_apply(e.body, taken[k], a, inner) for k in range(order)]
        taken = [column, *[taken[k + 1] + moved[k] for k in range(order)]]
    return taken[order]


def _power(e: sympy.MatPow, a: Assignment, indices: dict[str, int]) -> Any:
    base = _value(e.base, a, indices)
    a.operations.check_power(e.exp)
    if e.exp < 0:
        base = a.operations.inverse(base)
    factors = [base] * abs(int(e.exp))
    return reduce(a.operations.dot, factors) if factors else a.operations.identity(len(base))


def _power_work(base: Any, exponent: int) -> int:
    """Return the work steps of a power by repeated squaring."""
    if not isinstance(base, int | Fraction):
        return exponent
    bits = base.numerator.bit_length() + base.denominator.bit_length() - 1
    return 1 + (product_weight(bits * exponent // 2) >> 2)


def _scalar_power(e: sympy.Pow, a: Assignment, indices: dict[str, int]) -> Any:
    base = _value(e.base, a, indices)
    if not a.exact:
        base = float(base) if isinstance(base, int) else base
        return base ** float(_value(e.exp, a, indices))
    if isinstance(base, Interval) and e.exp.is_Integer:
        return base ** int(e.exp)
    if isinstance(e.exp, sympy.Rational) and not e.exp.is_Integer:
        return root(base, Fraction(int(e.exp.p), int(e.exp.q)))
    exponent = _value(e.exp, a, indices)
    if isinstance(exponent, Interval):
        raise OtimesError(f"the exponent of {short_text(e)} is not rational at these values")
    if Fraction(exponent).denominator != 1 or isinstance(base, Interval):
        return root(base, Fraction(exponent))
    exponent = int(exponent)
    a.operations.check_power(exponent)
    spend(_power_work(base, abs(exponent)))
    if exponent < 0 and base == 0:
        raise OtimesError(f"{short_text(e)} divides by zero at these values")
    return base**exponent if exponent >= 0 else Fraction(1) / base**-exponent


def _index_sum(e: sympy.Sum, a: Assignment, indices: dict[str, int]) -> Any:
    *inner, (index, _, last) = e.limits
    body = sympy.Sum(e.function, *inner) if inner else e.function
    return sum((_value(body, a, {**indices, key(index): k}) for k in range(a.size(last + 1))), 0)


def _diag_matrix(e: DiagMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    entries = _value(e.args[0], a, indices).reshape(-1)
    result = a.operations.zeros(len(entries), len(entries))
    for k, entry in enumerate(entries):
        result[k, k] = entry
    return result


def _hadamard_power(e: sympy.HadamardPower, a: Assignment, indices: dict[str, int]) -> Any:
    power = entrywise_power(e)
    if power is not e:
        return _value(power, a, indices)
    a.operations.check_power(e.args[1])
    base = _value(e.args[0], a, indices)
    if a.exact:
        spend(sum(_power_work(entry, int(e.args[1])) for entry in base.flat))
    return base ** int(e.args[1])


def _explicit(e: sympy.ImmutableDenseMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    result = a.operations.zeros(e.rows, e.cols)
    for i in range(e.rows):
        for j in range(e.cols):
            result[i, j] = _value(e[i, j], a, indices)
    return result


def _block_matrix(e: sympy.BlockMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    height, width = e.blockshape
    join = a.operations.concatenate
    lines = [
        join([_value(e.blocks[i, j], a, indices) for j in range(width)], 1) for i in range(height)
    ]
    return join(lines, 0)


def _block_diagonal(e: sympy.BlockDiagMatrix, a: Assignment, indices: dict[str, int]) -> Any:
    blocks = [_value(block, a, indices) for block in e.args]
    join, zeros = a.operations.concatenate, a.operations.zeros
    width, before, lines = sum(block.shape[1] for block in blocks), 0, []
    for block in blocks:
        rows, cols = block.shape
        after = width - before - cols
        lines.append(join([zeros(rows, before), block, zeros(rows, after)], 1))
        before += cols
    return join(lines, 0)


def _count(count: Any, a: Assignment, indices: dict[str, int]) -> int:
    """Return the number of layers, or an order; an index in it has its value."""
    if isinstance(count, sympy.Symbol):
        name = key(count)
        return indices[name] if name in indices else a.size(count)
    at = {s: indices[key(s)] for s in count.free_symbols if key(s) in indices}
    return a.size(count.xreplace(at) if at else count)


def _layers(e: LayerProduct, a: Assignment, indices: dict[str, int]) -> Any:
    order = range(_count(e.count, a, indices))
    result = a.operations.identity(a.size(e.shape[0]))
    for layer in order if e.reverse else reversed(order):
        result = a.operations.dot(result, _value(e.body, a, {**indices, key(e.index): layer}))
    return result


def _orders(e: OrderSum, a: Assignment, indices: dict[str, int]) -> Any:
    n_layers, order = (_count(number, a, indices) for number in (e.count, e.order))
    if order > n_layers:
        size = a.size(e.shape[0])
        return a.operations.zeros(size, size)
    return _orders_up_to(e, n_layers, order, a, indices)[order]


def _orders_up_to(
    e: OrderSum, n_layers: int, order: int, a: Assignment, indices: dict[str, int]
) -> list[Any]:
    """Return the sums over the paths of each order, from 0 on."""
    size = a.size(e.shape[0])
    # sums[k]: the sum of the products of k of the layers so far
    sums = [a.operations.identity(size), *[a.operations.zeros(size, size)] * order]
    for number in range(n_layers if order else 0):
        layer = _value(e.body, a, {**indices, key(e.index): number})
        for k in range(min(number + 1, order), 0, -1):
            before = sums[k - 1]
            pair = (before, layer) if e.reverse else (layer, before)
            sums[k] = sums[k] + a.operations.dot(*pair)
    return sums


def _row_softmax(e: RowSoftmax, a: Assignment, indices: dict[str, int]) -> Any:
    scores = _value(e.args[0], a, indices)
    mask = a.operations.ones(*scores.shape) if e.mask is None else _value(e.mask, a, indices)
    return a.operations.softmax(scores, mask)


def _over_heads(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    (index, count), *inner = e.limits
    body = e.body if not inner else type(e)(e.body, *inner)
    if isinstance(e, HeadSum) and isinstance(body, OrderSum) and body.order == index:
        n_layers, many = _count(body.count, a, indices), a.size(count)
        if index not in body.body.free_symbols and 0 < many <= n_layers + 1:
            return sum(_orders_up_to(body, n_layers, many - 1, a, indices), _zeros(e, a, indices))
    parts = [_value(body, a, {**indices, key(index): k}) for k in range(a.size(count))]
    if isinstance(e, HeadSum) or not parts:
        return sum(parts, _zeros(e, a, indices))
    return a.operations.concatenate(parts, 1 if isinstance(e, ConcatHeads) else 0)


_OF_VALUES: dict[type, Callable[..., Any]] = {
    sympy.Add: lambda _, *values: reduce(operator.add, values),
    sympy.MatAdd: lambda _, *values: reduce(operator.add, values),
    sympy.HadamardProduct: lambda _, *values: reduce(operator.mul, values),
    sympy.KroneckerProduct: lambda ops, *values: reduce(ops.kron, values),
    sympy.Transpose: lambda _, x: x.T,
    sympy.Adjoint: lambda _, x: x.T,
    sympy.Trace: lambda _, x: sum((x[i, i] for i in range(len(x))), 0),
    vec_rows: lambda _, x: x.reshape(-1, 1),
    vec_cols: lambda _, x: x.T.reshape(-1, 1),
    DiagonalOf: lambda ops, x: ops.diagonal(x),
    DiagonalMatrix: lambda ops, x: x * ops.identity(len(x)),
}
"""The value from the operations and the values of the arguments, where no more is needed."""


def _of_values(e: Any, a: Assignment, indices: dict[str, int]) -> Any:
    values = [_value(argument, a, indices) for argument in e.args]
    return _OF_VALUES[type(e)](a.operations, *values)


_RATIONALS = (sympy.Integer, sympy.Rational, *map(type, map(sympy.Rational, (0, 1, -1, 0.5))))
_EVALUATORS: dict[type, Callable[[Any, Assignment, dict[str, int]], Any]] = {
    **dict.fromkeys(_OF_VALUES, _of_values),
    **dict.fromkeys(_RATIONALS, lambda e, a, _: a.operations.rational(e)),
    **dict.fromkeys((sympy.Symbol, sympy.Dummy), _symbol),
    type(sympy.pi): lambda _, a, __: a.operations.pi(),
    sympy.MatrixSymbol: lambda e, a, _: a.arrays[e.name],
    FamilyMember: lambda e, a, at: a.arrays[e.family.name][tuple(_at(i, at) for i in e.indices)],
    sympy.Identity: lambda e, a, _: a.operations.identity(a.size(e.shape[0])),
    sympy.OneMatrix: lambda e, a, _: a.operations.ones(*_shape(e, a)),
    sympy.ZeroMatrix: _zeros,
    OneHot: _one_hot,
    **dict.fromkeys((sympy.MatMul, sympy.Mul), _mul),
    **dict.fromkeys((sympy.MatPow, sympy.Inverse), _power),
    sympy.Pow: _scalar_power,
    MatrixElement: lambda e, a, at: _value(e.args[0], a, at)[tuple(_at(i, at) for i in e.args[1:])],
    sympy.KroneckerDelta: lambda e, _, at: int(_at(e.args[0], at) == _at(e.args[1], at)),
    sympy.Sum: _index_sum,
    DiagMatrix: _diag_matrix,
    sympy.HadamardPower: _hadamard_power,
    sympy.ImmutableDenseMatrix: _explicit,
    sympy.BlockMatrix: _block_matrix,
    sympy.BlockDiagMatrix: _block_diagonal,
    LayerProduct: _layers,
    OrderSum: _orders,
    Activation: lambda e, a, at: a.operations.activation(e.name, _value(e.argument, a, at)),
    **dict.fromkeys(CLASSES, lambda e, a, at: _value(unfolded(e), a, at)),
    **dict.fromkeys((RMSNorm, LayerNorm), lambda e, a, at: _value(definition(e), a, at)),
    CausalMask: lambda e, a, _: a.operations.lower_triangle(a.size(e.args[0])),
    AffineMember: _affine_member,
    **dict.fromkeys(KINDS, _positional),
    RowSoftmax: _row_softmax,
    **dict.fromkeys((HeadSum, ConcatHeads, StackHeads), _over_heads),
}


def array_shape(tensor: sympy.MatrixSymbol | Family, assignment: Assignment) -> tuple[int, ...]:
    """Return the shape of the array for a matrix symbol or a family."""
    counts = tensor.counts if isinstance(tensor, Family) else ()
    return tuple(assignment.size(dimension) for dimension in (*counts, *tensor.shape))
