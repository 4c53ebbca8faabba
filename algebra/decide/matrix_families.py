"""Random matrices of common kinds: projections, orthogonal, nilpotent, symmetric ones and others.

Each function returns a matrix with so many rows and columns, or None where there is none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

from otimes.algebra.evaluate.exact import exact_inverse
from otimes.algebra.evaluate.exact_arrays import ExactArray, identity, kron, zeros

ANGLES = tuple(map(Fraction, ("0", "1", "-1", "1/2", "-1/2", "2", "-1/3")))  # (half) tangents
ONE, SQUARE_ZERO = (1, 0, 0, 1), (0, 1, 0, 0)
SMALL = (
    *(ONE, ONE, SQUARE_ZERO, SQUARE_ZERO),
    *((0, 0, 1, 0), (0, 1, 1, 0), (0, 1, -1, 0), (1, 0, 0, -1), (1, 0, 0, 0)),
)
Family = Callable[[int, int, random.Random], Any]


def integers(shape: tuple[int, ...], draw: random.Random) -> ExactArray:
    """Return an array of small integers."""
    return ExactArray(shape, [draw.randint(-2, 2) for _ in range(prod(shape))])


def _identity(rows: int, cols: int, draw: random.Random) -> ExactArray:
    return identity(max(rows, cols))[:rows, :cols]


def _zero(rows: int, cols: int, draw: random.Random) -> Any:
    return zeros((rows, cols))


def scalar_matrix(rows: int, cols: int, draw: random.Random) -> Any:
    """Return a multiple of the identity."""
    return _identity(rows, cols, draw) * draw.choice((-1, 2, 3))


def diagonal(rows: int, cols: int, draw: random.Random) -> Any:
    """Return a diagonal matrix of small integers."""
    array = zeros((rows, cols))
    for k in range(min(rows, cols)):
        array[k, k] = draw.randint(-2, 2)
    return array


def _projection(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Return S D S⁻¹ with a diagonal 0/1 matrix D, which is a projection."""
    return _conjugated(rows, cols, draw, (0, 1))


def _involution(rows: int, cols: int, draw: random.Random) -> Any | None:
    return _conjugated(rows, cols, draw, (-1, 1))


def _conjugated(rows: int, cols: int, draw: random.Random, values: tuple[int, int]) -> Any | None:
    if rows != cols:
        return None
    basis = _unimodular(rows, draw)
    return whole(basis @ _of_both(rows, draw, values) @ exact_inverse(basis))


def _of_both(size: int, draw: random.Random, values: tuple[int, int]) -> Any:
    """Return a diagonal matrix of two values, both of which occur if the size allows."""
    array = zeros((size, size))
    chosen = [*values, *[draw.choice(values) for _ in range(size)]][:size]
    draw.shuffle(chosen)
    for k, value in enumerate(chosen):
        array[k, k] = value
    return array


def _unimodular(size: int, draw: random.Random) -> Any:
    lower, upper = identity(size), identity(size)
    for i in range(size):
        for j in range(i):
            lower[i, j], upper[j, i] = draw.randint(-1, 1), draw.randint(-1, 1)
    return lower @ upper


def orthogonal(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Return rows or columns of a random orthogonal matrix, by the Cayley transform."""
    size = max(rows, cols)
    skew = zeros((size, size))
    for i in range(size):
        for j in range(i):
            skew[i, j] = draw.choice(ANGLES)
            skew[j, i] = -skew[i, j]
    one = identity(size)
    q = (one - skew) @ exact_inverse(one + skew)
    if draw.random() < 0.5 and size:
        q.flat[:size] = [-x for x in q.flat[:size]]  # the first row
    return whole(q[:rows, :cols])


def _orthogonal_projection(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Return the projection x xᵀ / xᵀ x, or one onto columns of an orthogonal matrix."""
    x = integers((rows, 1), draw)
    if rows != cols:
        return None
    if draw.random() < 0.5 and any(x.flat):
        return whole(x @ x.T * Fraction(1, int((x.T @ x)[0, 0])))
    q = orthogonal(rows, rows, draw)
    return None if q is None else whole(q @ _of_both(rows, draw, (0, 1)) @ q.T)


def permutation(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Return a permutation matrix."""
    if rows != cols:
        return None
    array = zeros((rows, rows))
    places = list(range(rows))
    draw.shuffle(places)
    for i, j in enumerate(places):
        array[i, j] = 1
    return array


def of_small_blocks(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Return a Kronecker product of 2 × 2 matrices of few kinds, which commute or anticommute."""
    array, size = identity(1), 1
    while size < rows:
        array, size = kron(array, ExactArray((2, 2), list(draw.choice(SMALL)))), 2 * size
    return array if rows == cols == size > 1 else None


def _symmetric(rows: int, cols: int, draw: random.Random) -> Any | None:
    if rows != cols:
        return None
    half = integers((rows, cols), draw)
    return half + half.T


def _antisymmetric(rows: int, cols: int, draw: random.Random) -> Any | None:
    if rows != cols:
        return None
    half = integers((rows, cols), draw)
    return half - half.T


def nilpotent(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Return a conjugate of a strictly upper triangular matrix, half the time with square zero."""
    if rows != cols:
        return None
    array = zeros((rows, rows))
    half = max(1, rows // 2)
    square_zero = draw.random() < 0.5
    for i in range(rows):
        for j in range(i + 1, rows):
            if not square_zero or i < half <= j:
                array[i, j] = draw.randint(-2, 2)
    basis = _unimodular(rows, draw)
    return whole(basis @ array @ exact_inverse(basis))


def whole(array: Any) -> Any:
    """Return the array with integral Fractions converted to integers."""

    def reduced(entry: Any) -> Any:
        integral = isinstance(entry, Fraction) and entry.denominator == 1
        return int(entry) if integral else entry

    return array.map(reduced)


def special(shape: tuple[int, ...], generic: Any, draw: random.Random) -> Any:
    """Return a free tensor: mostly generic, sometimes special, as generic ones hide falsehoods."""
    kind = draw.random()
    if kind < 0.7 or len(shape) != 2:
        return generic
    if kind < 0.8 and shape[0] == shape[1]:
        return draw.choice((diagonal, scalar_matrix, nilpotent))(shape[0], shape[1], draw)
    if kind < 0.9:
        left, right = integers((shape[0], 1), draw), integers((1, shape[1]), draw)
        return left @ right
    return generic.map(lambda x: x if draw.random() < 0.5 else 0)


TRIVIAL: tuple[Family, ...] = (_identity, _zero, scalar_matrix)
FAMILIES: tuple[Family, ...] = (
    diagonal,
    _projection,
    _projection,
    _involution,
    orthogonal,
    orthogonal,
    _orthogonal_projection,
    _orthogonal_projection,
    permutation,
    _symmetric,
    _antisymmetric,
    nilpotent,
    nilpotent,
)
