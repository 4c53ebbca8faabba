"""Rational solutions W of Wᵀ M W = E, where M and E are symmetric: columns of given inner products.

The columns are chosen one by one, orthogonal to those before with respect to M: a small vector
whose square length is that which is asked for, up to the square of a rational number.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import sympy

from otimes.algebra.budget import spend
from otimes.algebra.decide.matrix_families import integers, whole
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact_arrays import ExactArray, identity, zeros
from otimes.algebra.language.linear import as_product
from otimes.algebra.language.roots import exact_root

TRIES = 24  # vectors that are tried for each column


class Congruence(NamedTuple):
    """A hypothesis Wᵀ M W = E, or W M Wᵀ = E if `by_rows`; M is None for the identity."""

    name: str
    middle: Any
    value: Any
    by_rows: bool


def congruences(pair: tuple[Any, Any]) -> Iterator[Congruence]:
    """Yield the readings of an equation as a congruence: at most one for each side."""
    for product, value in (pair, pair[::-1]):
        factors: Sequence[Any] = product.args if isinstance(product, sympy.MatMul) else ()
        if len(factors) < 2:
            continue
        first, between, last = factors[0], factors[1:-1], factors[-1]
        by_rows = isinstance(last, sympy.Transpose)
        w = first if by_rows else last
        other = last if by_rows else first
        if not isinstance(w, sympy.MatrixSymbol) or other != sympy.Transpose(w):
            continue
        if any(part.has(w) for part in (*between, value)):
            continue
        yield Congruence(w.name, as_product(between) if between else None, value, by_rows)


def solved(
    middle: ExactArray | None, value: ExactArray, size: int, draw: random.Random
) -> Any | None:
    """Return a rational W with `size` rows and Wᵀ M W = E, or None if none was found."""
    m = identity(size) if middle is None else middle
    pieces = _decomposed(value)
    if pieces is None or any(not isinstance(x, int | Fraction) for x in (*m.flat, *value.flat)):
        return None
    lower, lengths = pieces
    columns: list[ExactArray] = []
    for k, length in enumerate(lengths):
        found = _column(m, columns, lengths[:k], length, draw)
        if found is None:
            return None
        columns.append(found)
    w = zeros((size, len(columns)))
    for k, column in enumerate(columns):
        for i in range(size):
            w[i, k] = column[i, 0]
    return whole(w @ lower.T)


def _column(
    m: ExactArray,
    before: Sequence[ExactArray],
    lengths: Sequence[Any],
    length: Any,
    draw: random.Random,
) -> ExactArray | None:
    """Return a vector of a square length, orthogonal to others with respect to M, or None."""
    size = len(m)
    if length == 0:
        return zeros((size, 1))
    for _ in range(TRIES):
        spend(size**2 * (1 + len(before)))
        v: Any = integers((size, 1), draw)
        for w, square in zip(before, lengths, strict=True):
            if square:
                v = v - w * (Fraction((w.T @ m @ v)[0, 0]) / square)
        square = (v.T @ m @ v)[0, 0]
        ratio = Fraction(length) / square if square else Fraction(0)
        if ratio <= 0:
            continue
        try:
            scaled: ExactArray = v * exact_root(ratio, Fraction(1, 2))
        except OtimesError:  # no square of a rational number
            continue
        return scaled
    return None


def _decomposed(e: ExactArray) -> tuple[ExactArray, list[Any]] | None:
    """Return L and d with E = L diag(d) Lᵀ, L being lower triangular; None if there are none."""
    size = len(e)
    if any(e[i, j] != e[j, i] for i in range(size) for j in range(i)):
        return None
    lower, rest, lengths = identity(size), e.copy(), list[Any]()
    for k in range(size):
        pivot = rest[k, k]
        lengths.append(pivot)
        if pivot == 0:
            if any(rest[i, k] != 0 for i in range(k, size)):
                return None
            continue
        for i in range(k + 1, size):
            lower[i, k] = Fraction(rest[i, k]) / pivot
        for i in range(k + 1, size):
            for j in range(k + 1, size):
                rest[i, j] = rest[i, j] - lower[i, k] * pivot * lower[j, k]
    return lower, lengths
