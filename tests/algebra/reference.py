"""A third evaluator, for tests only: NumPy on integers, modulo a prime or exactly.

It shares nothing with `algebra`: it reads the SymPy tree with `numpy.kron`, `transpose` and loops,
and it keys a bound index by the symbol itself, never by its name. Modulo a large prime it is fast
enough for thousands of expressions, and two polynomials with different coefficients agree at random
values with probability about degree/PRIME.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.layers import LayerProduct
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
from tests.algebra.exact_matrices import inverse

PRIME = 2**31 - 1  # a product of two residues fits int64


class World:
    """Values for all symbols, by name: sizes, arrays and scalars. `prime=None` means exact."""

    def __init__(
        self,
        sizes: Mapping[str, int],
        arrays: Mapping[str, Any],
        scalars: Mapping[str, Any] | None = None,
        prime: int | None = PRIME,
    ) -> None:
        self.numbers = {**sizes, **(scalars or {})}
        self.arrays = arrays
        self.prime = prime
        self._sizes: dict[Any, int] = {}

    def size(self, dimension: sympy.Expr) -> int:
        dimension = sympy.sympify(dimension)
        if dimension not in self._sizes:
            values = {symbol: self.numbers[symbol.name] for symbol in dimension.free_symbols}
            self._sizes[dimension] = int(dimension.subs(values))
        return self._sizes[dimension]

    def value(self, e: Any, env: Mapping[Any, int] | None = None) -> Any:
        """Return the value of a tree: a 2-D array, or a number."""
        env = env or {}
        value = self._value(e, env)
        return value if self.prime is None else value % self.prime

    def _value(self, e: Any, env: Mapping[Any, int]) -> Any:
        def sub(argument: Any) -> Any:
            return self.value(argument, env)

        match e:
            case sympy.MatrixSymbol():
                return self.arrays[e.name]
            case FamilyMember():
                return self.arrays[e.family.name][tuple(self._at(i, env) for i in e.indices)]
            case sympy.Identity():
                return self._leaf(np.eye(self.size(e.shape[0]), dtype=int))
            case sympy.OneMatrix():
                return self._leaf(np.ones([self.size(s) for s in e.shape], dtype=int))
            case sympy.ZeroMatrix():
                return self._leaf(np.zeros([self.size(s) for s in e.shape], dtype=int))
            case OneHot():
                rows = range(self.size(e.args[1]))
                at = self._at(e.args[0], env)
                return self._leaf(np.array([[int(k == at)] for k in rows]))
            case sympy.Transpose() | sympy.Adjoint():
                return sub(e.args[0]).T
            case sympy.KroneckerProduct():
                result = sub(e.args[0])
                for factor in e.args[1:]:
                    result = self._reduce(np.kron(result, sub(factor)))
                return result
            case sympy.HadamardProduct():
                result = sub(e.args[0])
                for factor in e.args[1:]:
                    result = self._reduce(result * sub(factor))
                return result
            case sympy.MatPow():
                result = self._leaf(np.eye(self.size(e.shape[0]), dtype=int))
                base = sub(e.base) if e.exp >= 0 else inverse(sub(e.base))
                for _ in range(abs(int(e.exp))):
                    result = self._product(result, base)
                return result
            case LayerProduct():
                result = self._leaf(np.eye(self.size(e.shape[0]), dtype=int))
                for k in range(self.size(e.count)):
                    layer = self.value(e.body, {**env, e.index: k})
                    pair = (result, layer) if e.reverse else (layer, result)
                    result = self._product(*pair)
                return result
            case sympy.HadamardPower():
                result = self._leaf(np.ones([self.size(s) for s in e.shape], dtype=int))
                base = sub(e.args[0])
                for _ in range(int(e.args[1])):
                    result = self._reduce(result * base)
                return result
            case DiagMatrix():
                return np.diag(sub(e.args[0]).reshape(-1))
            case DiagonalOf():
                return np.diag(sub(e.args[0])).reshape(-1, 1)
            case DiagonalMatrix():
                return np.diag(np.diag(sub(e.args[0])))
            case sympy.BlockDiagMatrix() | sympy.BlockMatrix():
                return np.block(
                    [
                        [sub(e.blocks[i, j]) for j in range(e.blockshape[1])]
                        for i in range(e.blockshape[0])
                    ]
                )
            case sympy.ImmutableDenseMatrix():
                entries = [[sub(e[i, j]) for j in range(e.cols)] for i in range(e.rows)]
                return np.array(entries, self._dtype)
            case MatrixElement():
                row, col = (self._at(index, env) for index in e.args[1:])
                return _int(sub(e.args[0])[row, col])
            case sympy.KroneckerDelta():
                return int(self._at(e.args[0], env) == self._at(e.args[1], env))
            case sympy.Sum():
                return self._index_sum(e.function, list(e.limits), env)
            case sympy.Trace():
                array = sub(e.args[0])
                return sum((_int(array[i, i]) for i in range(array.shape[0])), 0)
            case vec_rows():
                return np.array([[x] for row in sub(e.args[0]) for x in row], self._dtype)
            case vec_cols():
                return np.array([[x] for row in sub(e.args[0]).T for x in row], self._dtype)
            case HeadSum() | ConcatHeads() | StackHeads():
                return self._over_heads(e, e.limits, env)
            case sympy.Add() | sympy.MatAdd():
                result = sub(e.args[0])
                for term in e.args[1:]:
                    result = self._reduce(result + sub(term))
                return result
            case sympy.Mul() | sympy.MatMul():
                return self._mul([sub(factor) for factor in e.args])
            case sympy.Rational():
                return self._fraction(int(e.p), int(e.q))
            case sympy.Symbol():
                return self.numbers[e.name]
            case sympy.Pow():
                return self._power(e, sub(e.base))
        raise NotImplementedError(type(e).__name__)

    def _index_sum(self, body: Any, limits: list[Any], env: Mapping[Any, int]) -> Any:
        if not limits:
            return self.value(body, env)
        *inner, (index, first, last) = limits
        values = range(self.size(first), self.size(last) + 1)
        return sum(self._index_sum(body, inner, {**env, index: k}) for k in values)

    def _over_heads(self, e: Any, limits: Any, env: Mapping[Any, int]) -> Any:
        if not limits:
            return self.value(e.body, env)
        (index, count), *inner = limits
        parts = [self._over_heads(e, inner, {**env, index: k}) for k in range(self.size(count))]
        if isinstance(e, HeadSum):
            return self._reduce(sum(parts[1:], parts[0]))
        return np.concatenate(parts, axis=1 if isinstance(e, ConcatHeads) else 0)

    def _mul(self, factors: list[Any]) -> Any:
        number: Any = 1
        matrix: Any = None
        for factor in factors:
            if not isinstance(factor, np.ndarray):
                number = self._reduce(number * factor)
            else:
                matrix = factor if matrix is None else self._product(matrix, factor)
        return number if matrix is None else self._reduce(number * matrix)

    def _product(self, a: Any, b: Any) -> Any:
        if self.prime is None:
            return np.dot(a, b)
        result = np.zeros((a.shape[0], b.shape[1]), dtype=np.int64)
        for k in range(a.shape[1]):
            result += a[:, k, None] * b[None, k, :] % self.prime
        return result % self.prime

    def _power(self, e: sympy.Pow, base: Any) -> Any:
        exponent = int(e.exp)
        if e.exp.q == 2:
            base, exponent = self.numbers[f"sqrt {e.base.name}"], int(e.exp.p)
        if self.prime is not None:
            return pow(_int(base), exponent, self.prime)
        return Fraction(base) ** exponent

    def _fraction(self, p: int, q: int) -> Any:
        if self.prime is None:
            return p if q == 1 else Fraction(p, q)
        return p * pow(q, -1, self.prime)

    @property
    def _dtype(self) -> Any:
        return object if self.prime is None else np.int64

    def _leaf(self, array: Any) -> Any:
        return array.astype(self._dtype)

    def _reduce(self, value: Any) -> Any:
        return value if self.prime is None else value % self.prime

    @staticmethod
    def _at(index: Any, env: Mapping[Any, int]) -> int:
        return int(index) if index.is_Integer else env[index]


def random_world(
    tensors: Mapping[str, Any], sizes: Mapping[str, int], scalars: list[str], seed: int
) -> World:
    """Return random residues for tensors (MatrixSymbol or Family), and for scalars with roots."""
    draw = random.Random(seed)
    numbers = {}
    for name in scalars:
        root = draw.randrange(1, PRIME)
        numbers[f"sqrt {name}"], numbers[name] = root, root * root % PRIME
    world = World(sizes, {}, numbers)
    arrays = {}
    for name, tensor in tensors.items():
        counts = tensor.counts if isinstance(tensor, Family) else ()
        shape = [world.size(size) for size in (*counts, *tensor.shape)]
        flat = [draw.randrange(PRIME) for _ in range(int(np.prod(shape)))]
        arrays[name] = np.array(flat, dtype=np.int64).reshape(shape)
    world.arrays = arrays
    return world


def world_of(counterexample: Any) -> World:
    """Return the exact world of a counterexample, free indices left to the caller."""
    sizes = {symbol.name: size for symbol, size in counterexample.sizes.items()}
    scalars = {symbol.name: value for symbol, value in counterexample.scalars.items()}
    for name, value in list(scalars.items()):
        if value >= 0 and value == (root := math.isqrt(int(value))) ** 2:
            scalars[f"sqrt {name}"] = root
    return World(sizes, counterexample.arrays, scalars, prime=None)


def values_of(counterexample: Any, lhs: Any, rhs: Any) -> tuple[Any, Any]:
    """Return what both sides are worth at the entry of a counterexample, by this evaluator."""
    world = world_of(counterexample)
    both = []
    for side in (lhs, rhs):
        value = world.value(side, dict(counterexample.indices))
        both.append(value if counterexample.entry is None else value[counterexample.entry])
    return both[0], both[1]


def _int(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value
