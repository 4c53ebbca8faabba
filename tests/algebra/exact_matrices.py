"""Exact matrices for tests of facts: Fractions in object arrays, by elimination and nothing else.

Independent of `algebra`: the tree is walked here, ranks are found by Gaussian elimination, and each
property is checked by its definition.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    FamilyMember,
    HeadSum,
    OneHot,
    StackHeads,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax

Matrix = Any


def exact(rows: Any) -> Matrix:
    array = np.empty(np.shape(rows), dtype=object)
    for place, entry in np.ndenumerate(np.asarray(rows, dtype=object)):
        array[place] = Fraction(entry)
    return array


def eye(n: int) -> Matrix:
    return exact(np.eye(n, dtype=int))


def eliminated(matrix: Matrix) -> tuple[Matrix, list[int]]:
    """Return the reduced row echelon form and its pivot columns."""
    rows = [list(row) for row in matrix]
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        at = len(pivots)
        pivot = next((i for i in range(at, len(rows)) if rows[i][column] != 0), None)
        if pivot is None:
            continue
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [entry / rows[at][column] for entry in rows[at]]
        for i in range(len(rows)):
            if i != at and rows[i][column] != 0:
                factor = rows[i][column]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[at], strict=True)]
        pivots.append(column)
    return exact(rows), pivots


def rank(matrix: Matrix) -> int:
    return len(eliminated(matrix)[1])


def inverse(matrix: Matrix) -> Matrix:
    n = len(matrix)
    reduced, pivots = eliminated(np.concatenate([matrix, eye(n)], axis=1))
    assert pivots[:n] == list(range(n)), "not invertible"
    return reduced[:, n:]


def is_positive_semidefinite(matrix: Matrix) -> bool:
    """By symmetric elimination: a diagonal entry that is 0 needs a row of zeros."""
    rest = matrix
    if not (rest == rest.T).all():
        return False
    while len(rest):
        pivot = rest[0, 0]
        if pivot < 0 or (pivot == 0 and any(rest[0] != 0)):
            return False
        column = rest[1:, :1]
        rest = rest[1:, 1:] - (column.dot(column.T) / pivot if pivot else 0)
    return True


def _same(a: Matrix, b: Matrix) -> bool:
    return a.shape == b.shape and bool((a == b).all())


def _square(check: Callable[[Matrix], bool]) -> Callable[[Matrix, Any], bool]:
    return lambda a, _: a.shape[0] == a.shape[1] and check(a)


CHECKS: dict[str, Callable[[Matrix, Any], bool]] = {
    "zero": lambda a, _: bool((a == 0).all()),
    "identity": _square(lambda a: _same(a, eye(len(a)))),
    "permutation": _square(
        lambda a: all(
            sorted(line) == [0] * (len(a) - 1) + [1] for line in (*a.tolist(), *a.T.tolist())
        )
    ),
    "orthogonal": _square(lambda a: _same(a.T.dot(a), eye(len(a)))),
    "orthonormal_columns": lambda a, _: _same(a.T.dot(a), eye(a.shape[1])),
    "orthonormal_rows": lambda a, _: _same(a.dot(a.T), eye(a.shape[0])),
    "row_stochastic": lambda a, _: bool((a >= 0).all()) and all(sum(r) == 1 for r in a),
    "column_stochastic": lambda a, _: bool((a >= 0).all()) and all(sum(r) == 1 for r in a.T),
    "diagonal": _square(lambda a: all(i == j or x == 0 for (i, j), x in np.ndenumerate(a))),
    "lower_triangular": _square(lambda a: all(i >= j or x == 0 for (i, j), x in np.ndenumerate(a))),
    "upper_triangular": _square(lambda a: all(i <= j or x == 0 for (i, j), x in np.ndenumerate(a))),
    "positive_semidefinite": _square(is_positive_semidefinite),
    "projection": _square(lambda a: _same(a.dot(a), a)),
    "symmetric": _square(lambda a: _same(a, a.T)),
    "antisymmetric": _square(lambda a: _same(a, -a.T)),
    "rows_sum_to_one": lambda a, _: all(sum(r) == 1 for r in a),
    "columns_sum_to_one": lambda a, _: all(sum(r) == 1 for r in a.T),
    "rows_sum_to": lambda a, value: all(sum(r) == value for r in a),
    "columns_sum_to": lambda a, value: all(sum(r) == value for r in a.T),
    "nonnegative": lambda a, _: bool((a >= 0).all()),
    "invertible": _square(lambda a: rank(a) == len(a)),
    "rank_at_most": lambda a, value: rank(a) <= value,
}


class Numbers:
    """Numbers for every symbol, and the value of a tree at them."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        arrays: Mapping[str, Matrix],
        scalars: Mapping[str, Fraction] | None = None,
    ) -> None:
        self.arrays = arrays
        self.numbers = {**sizes, **(scalars or {})}

    def scalar(self, e: Any, at: Mapping[Any, int]) -> Fraction:
        traces = {t: sympy.Rational(self.matrix(t.arg, at).trace()) for t in e.atoms(sympy.Trace)}
        values = {
            s: sympy.Rational(self.numbers[s.name])
            for s in e.atoms(sympy.Symbol)
            if s.name in self.numbers
        }
        return Fraction(str(e.xreplace(traces).subs(values)))

    def size(self, e: Any) -> int:
        return int(self.scalar(sympy.sympify(e), {}))

    def matrix(self, e: Any, at: Mapping[Any, int] | None = None) -> Matrix:
        at = at or {}
        if isinstance(e, sympy.MatrixSymbol):
            return self.arrays[e.name]
        if isinstance(e, FamilyMember):
            where = tuple(int(i) if i.is_Integer else at[i] for i in e.indices)
            return self.arrays[e.family.name][where]
        if isinstance(e, sympy.Identity):
            return eye(self.size(e.shape[0]))
        if isinstance(e, sympy.OneMatrix | sympy.ZeroMatrix):
            fill = int(isinstance(e, sympy.OneMatrix))
            return exact(np.full([self.size(d) for d in e.shape], fill))
        if isinstance(e, OneHot):
            column = np.zeros((self.size(e.args[1]), 1), dtype=int)
            column[int(e.args[0]) if e.args[0].is_Integer else at[e.args[0]]] = 1
            return exact(column)
        if isinstance(e, sympy.ImmutableDenseMatrix):
            return exact([[Fraction(str(x)) for x in row] for row in e.tolist()])
        if isinstance(e, HeadSum | ConcatHeads | StackHeads):
            ((index, count),) = e.limits
            parts = [self.matrix(e.body, {**at, index: k}) for k in range(self.size(count))]
            if isinstance(e, HeadSum):
                return sum(parts[1:], parts[0])
            return np.concatenate(parts, axis=int(isinstance(e, ConcatHeads)))
        if isinstance(e, LayerProduct):
            parts = [self.matrix(e.body, {**at, e.index: k}) for k in range(self.size(e.count))]
            result = parts[0]
            for part in parts[1:]:
                result = result.dot(part) if e.reverse else part.dot(result)
            return result
        if isinstance(e, sympy.MatMul | sympy.Mul):
            result, factor = None, Fraction(1)
            for argument in e.args:
                if not argument.is_Matrix:
                    factor *= self.scalar(argument, at)
                    continue
                value = self.matrix(argument, at)
                result = value if result is None else result.dot(value)
            return factor * result
        if isinstance(e, sympy.Inverse):
            return inverse(self.matrix(e.args[0], at))
        if isinstance(e, sympy.MatPow):
            base = self.matrix(e.base, at)
            base = base if e.exp >= 0 else inverse(base)
            result = eye(len(base))
            for _ in range(abs(int(e.exp))):
                result = result.dot(base)
            return result
        if isinstance(e, sympy.HadamardPower):
            return self.matrix(e.args[0], at) ** int(e.args[1])
        if isinstance(e, sympy.BlockMatrix) and not isinstance(e, sympy.BlockDiagMatrix):
            grid = e.args[0]
            rows = [
                [self.matrix(grid[i, j], at) for j in range(grid.shape[1])]
                for i in range(grid.shape[0])
            ]
            return np.concatenate([np.concatenate(row, axis=1) for row in rows])
        if isinstance(e, CausalMask):
            return exact(np.tri(self.size(e.args[0]), dtype=int))
        if isinstance(e, Activation):
            value = self.matrix(e.argument, at)
            return exact([[ACTIVATIONS[e.name](x) for x in row] for row in value])
        if isinstance(e, RMSNorm | LayerNorm):
            value, eps = self.matrix(e.args[0], at), self.scalar(e.eps, at)
            if isinstance(e, LayerNorm):
                value = value - value.sum(axis=1, keepdims=True) / Fraction(value.shape[1])
            return exact([[x / (max(map(abs, row)) + eps) for x in row] for row in value])
        values = [self.matrix(argument, at) for argument in e.args]
        if isinstance(e, RowSoftmax):
            return softmax(*values)
        if isinstance(e, sympy.MatAdd | sympy.Add):
            return sum(values[1:], values[0])
        if isinstance(e, sympy.Transpose | sympy.Adjoint):
            return values[0].T
        if isinstance(e, vec_rows):
            return values[0].reshape(-1, 1)
        if isinstance(e, vec_cols):
            return values[0].T.reshape(-1, 1)
        if isinstance(e, DiagMatrix):
            return np.diag(values[0].reshape(-1)) + Fraction(0)
        if isinstance(e, DiagonalOf):
            return np.diag(values[0]).reshape(-1, 1)
        if isinstance(e, sympy.BlockDiagMatrix):
            return block_diagonal(values)
        if isinstance(e, sympy.HadamardProduct):
            join = np.multiply
        elif isinstance(e, sympy.KroneckerProduct):
            join = np.kron
        else:
            raise NotImplementedError(type(e).__name__)
        result = values[0]
        for value in values[1:]:
            result = join(result, value)
        return result


# -- functions that have rational values, and what is said of softmax, norms and activations


def softmax(scores: Matrix, mask: Matrix | None = None) -> Matrix:
    """Weights that fall with the distance from the largest score: a shift changes nothing."""
    distance = exact(scores) - exact([[max(row)] for row in scores])
    weights = 1 / (1 + distance * distance)
    weights = weights if mask is None else weights * mask
    return weights / exact(weights.sum(axis=1, keepdims=True))


def _exp(x: Fraction) -> Fraction:
    return 1 + x if x > 0 else 1 / (1 - x)  # positive, and exp(x) exp(-x) = 1


def _sigmoid(x: Fraction) -> Fraction:
    return _exp(x) / (1 + _exp(x))  # positive, and its values at x and -x add to 1


ACTIVATIONS: dict[str, Callable[[Fraction], Fraction]] = {
    "relu": lambda x: max(x, Fraction(0)),
    "gelu": lambda x: x * _sigmoid(x),
    "silu": lambda x: x * _sigmoid(2 * x),
    "tanh": lambda x: x / (1 + abs(x)),
    "sigmoid": _sigmoid,
    "exp": _exp,
    "g": lambda x: 2 - 3 * x + x * x,
}


def block_diagonal(blocks: list[Matrix]) -> Matrix:
    rows, cols = (sum(block.shape[axis] for block in blocks) for axis in (0, 1))
    result = exact(np.zeros((rows, cols), dtype=int))
    i = j = 0
    for block in blocks:
        result[i : i + block.shape[0], j : j + block.shape[1]] = block
        i, j = i + block.shape[0], j + block.shape[1]
    return result


# -- matrices that satisfy hypotheses


def integers(draw: random.Random, rows: int, cols: int, low: int = -3, high: int = 3) -> Matrix:
    return exact([[draw.randint(low, high) for _ in range(cols)] for _ in range(rows)]).reshape(
        rows, cols
    )


def invertible(draw: random.Random, n: int) -> Matrix:
    """A product of unit triangular ones."""
    lower, upper = np.tril(integers(draw, n, n), -1), np.triu(integers(draw, n, n), 1)
    return (lower + eye(n)).dot(upper + eye(n))


def orthogonal(draw: random.Random, n: int) -> Matrix:
    """Cayley: (I - N)(I + N)⁻¹, times a random permutation with signs."""
    square = integers(draw, n, n, -2, 2)
    skew = square - square.T
    signs = exact(np.diag([draw.choice([1, -1]) for _ in range(n)]))
    return (eye(n) - skew).dot(inverse(eye(n) + skew)).dot(signs).dot(permutation(draw, n))


def permutation(draw: random.Random, n: int) -> Matrix:
    order = list(range(n))
    draw.shuffle(order)
    return eye(n)[order]


def stochastic(draw: random.Random, n: int, m: int, causal: bool = False) -> Matrix:
    weights = integers(draw, n, m, 0, 4)
    weights = np.tril(weights) if causal else weights
    for i, row in enumerate(weights):
        if sum(row) == 0:
            row[draw.randint(0, min(i, m - 1))] = Fraction(1)
        weights[i] = row / sum(row)
    return weights


def projection(draw: random.Random, n: int) -> Matrix:
    basis = invertible(draw, n)
    zeros_and_ones = exact(np.diag([draw.randint(0, 1) for _ in range(n)]))
    return basis.dot(zeros_and_ones).dot(inverse(basis))


def symmetric_projection(draw: random.Random, n: int) -> Matrix:
    turn = orthogonal(draw, n)
    zeros_and_ones = exact(np.diag([draw.randint(0, 1) for _ in range(n)]))
    return turn.dot(zeros_and_ones).dot(turn.T)


def symmetric(draw: random.Random, n: int) -> Matrix:
    square = integers(draw, n, n)
    return square + square.T


def antisymmetric(draw: random.Random, n: int) -> Matrix:
    square = integers(draw, n, n)
    return square - square.T


def gram(draw: random.Random, n: int) -> Matrix:
    part = integers(draw, n, draw.randint(1, n))
    return part.dot(part.T)
