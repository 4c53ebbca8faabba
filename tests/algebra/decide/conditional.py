"""Random claims under hypotheses of every common kind, true ones and near-misses.

A `Kind` has the equations that are given, and exact matrices that satisfy them, made by elimination
in `exact_matrices` and not by `algebra`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from sympy import HadamardProduct, Identity, MatrixSymbol, OneMatrix, Trace, Transpose, ZeroMatrix

from otimes.algebra.language.linear import kron, matadd, matmul
from tests.algebra import exact_matrices as exact
from tests.algebra import expressions as small
from tests.algebra.decide.statements import Statements, places, replaced, terms
from tests.algebra.expressions import A, B, X, d, n, one

E = MatrixSymbol("E", d, n)
G = MatrixSymbol("G", n, d)
Arrays = dict[str, Any]
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Kind:
    """Equations that are given, and a draw of matrices (at sizes n, d) that satisfy them."""

    name: str
    given: tuple[Pair, ...]
    arrays: Callable[[random.Random, int, int], Arrays]


def _one_sided(draw: random.Random, rows: int, cols: int) -> Arrays:
    """The first d rows of an invertible matrix, and the first d columns of its inverse."""
    whole = exact.invertible(draw, rows)
    return {"E": whole[:cols], "G": exact.inverse(whole)[:, :cols]}


def _stochastic(draw: random.Random, rows: int, cols: int) -> Arrays:
    return {"A": exact.stochastic(draw, rows, rows)}


def _sums_to_one(draw: random.Random, rows: int, cols: int) -> Arrays:
    square = exact.integers(draw, rows, rows)
    square[:, 0] += 1 - square.sum(axis=1)
    return {"A": square}


def _nilpotent(draw: random.Random, rows: int, cols: int) -> Arrays:
    basis = exact.invertible(draw, rows)
    corner = exact.exact(np.zeros((rows, rows), dtype=int))
    half = rows // 2
    corner[:half, rows - half :] = exact.integers(draw, half, half)
    return {"A": basis.dot(corner).dot(exact.inverse(basis))}


def _commuting(draw: random.Random, rows: int, cols: int) -> Arrays:
    """A polynomial of the other matrix, or a multiple of the identity beside any matrix."""
    any_matrix = exact.integers(draw, rows, rows)
    p, q, r = (draw.randint(-2, 2) for _ in range(3))
    other = p * exact.eye(rows) + q * any_matrix + r * any_matrix.dot(any_matrix)
    pair = [any_matrix, draw.choice([other, p * exact.eye(rows)])]
    draw.shuffle(pair)
    return {"A": pair[0], "B": pair[1]}


def _orthogonal_columns(draw: random.Random, rows: int, cols: int) -> Arrays:
    onto = exact.symmetric_projection(draw, rows)
    return {
        "A": onto.dot(exact.integers(draw, rows, rows)),
        "B": (exact.eye(rows) - onto).dot(exact.integers(draw, rows, rows)),
    }


def _square(make: Callable[[random.Random, int], Any]) -> Callable[..., Arrays]:
    return lambda draw, rows, cols: {"A": make(draw, rows)}


NOTHING, ONE = ZeroMatrix(n, n), OneMatrix(n, 1)
KINDS = [
    Kind("one-sided inverse", ((matmul(E, G), Identity(d)),), _one_sided),
    Kind("row-stochastic", ((matmul(A, ONE), ONE),), _stochastic),
    Kind("rows sum to one", ((matmul(A, ONE), ONE),), _sums_to_one),
    Kind("projection", ((matmul(A, A), A),), _square(exact.projection)),
    Kind("orthogonal", ((matmul(Transpose(A), A), Identity(n)),), _square(exact.orthogonal)),
    Kind("symmetric", ((Transpose(A), A),), _square(exact.symmetric)),
    Kind("antisymmetric", ((Transpose(A), matmul(-1, A)),), _square(exact.antisymmetric)),
    Kind("nilpotent", ((matmul(A, A), NOTHING),), _nilpotent),
    Kind("commuting", ((matmul(A, B), matmul(B, A)),), _commuting),
    Kind("orthogonal columns", ((matmul(Transpose(A), B), NOTHING),), _orthogonal_columns),
    Kind(
        "symmetric projection",
        ((matmul(A, A), A), (Transpose(A), A)),
        _square(exact.symmetric_projection),
    ),
]


class Claims(Statements):
    """Draws of claims under one kind of hypotheses."""

    def __init__(self, kind: Kind, seed: int) -> None:
        super().__init__(seed)
        self.kind = kind

    def identity(self) -> tuple[Any, Any, list[str]]:
        while True:
            pair = list(self.draw.choice(self.kind.given))
            self.draw.shuffle(pair)
            before, after = pair
            lhs = self.around(before)
            if terms(lhs) > 12:
                continue
            rhs = self.substituted(lhs, before, after)
            if self.draw.random() < 0.5:
                rhs = self.substituted(rhs, *self.draw.choice(self.kind.given))
            rhs, rules = self.rewritten(rhs, self.draw.randint(0, 3))
            return lhs, rhs, [self.kind.name, *rules]

    def around(self, e: Any) -> Any:
        """Return the expression within one or two others."""
        for _ in range(self.draw.randint(1, 3)):
            rows, cols = e.shape

            def other(*shape: Any) -> Any:
                return self.expression(shape, self.draw.choice([0, 0, 1]))

            width = self.draw.choice([n, d, one])
            options = [
                lambda e=e, cols=cols, width=width: matmul(e, other(cols, width)),
                lambda e=e, rows=rows, width=width: matmul(other(width, rows), e),
                lambda e=e, rows=rows, cols=cols: matadd(e, other(rows, cols)),
                lambda e=e: Transpose(e),
                lambda e=e: kron(e, self.draw.choice([X, sympy.Identity(2)])),
                lambda e=e, rows=rows, cols=cols: HadamardProduct(
                    e, other(rows, cols), evaluate=False
                ),
            ]
            if not ({rows, cols} <= {n, d, one}):
                options = options[3:4]
            e = self.draw.choice(options)()
        rows, cols = e.shape
        if rows == cols and self.draw.random() < 0.3:
            return Trace(e)
        return e

    def substituted(self, e: Any, before: Any, after: Any) -> Any:
        """Return the tree with one part replaced by what is given to be equal to it."""
        found = [path for path, part in places(e) if part == before]
        return replaced(e, self.draw.choice(found), after) if found else e


def satisfying_world(kind: Kind, world: Any, draw: random.Random) -> Any:
    """Return an exact world with the matrices of a kind put in."""
    sizes = world.numbers["n"], world.numbers["d"]
    for symbol in (E, G):
        shape = [world.size(size) for size in symbol.shape]
        flat = [draw.randint(-3, 3) for _ in range(int(np.prod(shape)))]
        world.arrays[symbol.name] = np.array(flat, dtype=object).reshape(shape)
    world.arrays.update(kind.arrays(draw, *sizes))
    return world


assert small.A is A  # the alphabet is the one of `statements`
