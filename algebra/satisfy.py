"""Numbers that satisfy hypotheses exactly: what a conditional claim is tried on.

Matrices are found one at a time. Where the hypotheses that speak of a matrix and of known ones are
affine in it, the solutions are computed over the rationals and a random one is taken; where they
are not (P² = P, QᵀQ = I), it is drawn from families of special matrices: projections, orthogonal,
symmetric, nilpotent, permutation and diagonal ones, zero and identity. Whatever is found is checked
against every hypothesis at the end: that check alone makes it sound, and drawing from several
kinds makes it generic.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import sympy

from algebra.errors import OtimesError
from algebra.exact import Assignment, array_shape, exact_inverse, tree_value
from algebra.refute import draw_assignment
from algebra.shapes import Signature, inspect

Pair = tuple[sympy.Basic, sympy.Basic]
MAX_UNKNOWNS = 64
FAMILY_TRIES = 12


def satisfying(
    given: Sequence[Pair],
    signature: Signature,
    draw: random.Random,
    largest: int,
    entries: int,
    roots: dict[str, int],
) -> Assignment | None:
    """Return numbers at which all hypotheses hold exactly, or None if this draw found none."""
    assignment = draw_assignment(signature, draw, largest, entries, roots)
    if assignment is None:
        return None
    if draw.random() < 0.3:
        scalars = {
            name: draw.choice((0, 1, 1, 2)) for name in signature.scalars if name not in roots
        }
        assignment = replace(assignment, scalars={**assignment.scalars, **scalars})
    speaks = [(pair, _names(pair)) for pair in given]
    order = list(signature.tensors)
    draw.shuffle(order)
    known: set[str] = set()
    for name in order:
        known.add(name)
        mine = [pair for pair, names in speaks if name in names and names <= known]
        array = _solve_for(name, mine, assignment, signature, draw)
        if array is None:
            return None
        assignment = replace(assignment, arrays={**assignment.arrays, name: array})
    return assignment if holds(given, assignment) else None


def holds(given: Sequence[Pair], assignment: Assignment) -> bool:
    """Return whether every hypothesis holds exactly; not where one is not defined."""
    try:
        return all(_equal(left, right, assignment) for left, right in given)
    except OtimesError:
        return False


def _equal(left: sympy.Basic, right: sympy.Basic, assignment: Assignment) -> bool:
    return all(
        np.all(tree_value(left, each) == tree_value(right, each))
        for each in _at_every_index((left, right), assignment)
    )


def _at_every_index(pair: Pair, assignment: Assignment) -> Iterator[Assignment]:
    """Yield the assignment at every value of the free indices of a hypothesis: it holds for all."""
    indices = inspect(*pair).indices
    ranges = [range(assignment.size(count)) for _, count in indices.values()]
    for values in product(*ranges):
        free = dict(zip(indices, values, strict=True))
        yield replace(assignment, indices={**assignment.indices, **free})


def _names(pair: Pair) -> set[str]:
    return set(inspect(*pair).tensors)


def _solve_for(
    name: str,
    given: Sequence[Pair],
    assignment: Assignment,
    signature: Signature,
    draw: random.Random,
) -> Any | None:
    shape = array_shape(signature.tensors[name], assignment)
    if not given:
        return _special(shape, assignment.arrays[name], draw)
    solved = _solve_affine(name, given, assignment, shape, draw)
    if solved is not None:
        return solved
    if len(shape) != 2:
        return None
    for _ in range(FAMILY_TRIES):
        array = draw.choice(FAMILIES)(shape[0], shape[1], draw)
        if array is not None and holds(
            given, replace(assignment, arrays={**assignment.arrays, name: array})
        ):
            return array
    return None


def _solve_affine(
    name: str,
    given: Sequence[Pair],
    assignment: Assignment,
    shape: tuple[int, ...],
    draw: random.Random,
) -> Any | None:
    """Return a random solution of hypotheses that are affine in one tensor, else None."""
    unknowns = int(np.prod(shape))
    if unknowns > MAX_UNKNOWNS:
        return None

    def rest(array: Any) -> Any:
        numbers = replace(assignment, arrays={**assignment.arrays, name: array})
        parts = [
            np.asarray(tree_value(left, each) - tree_value(right, each)).reshape(-1)
            for left, right in given
            for each in _at_every_index((left, right), numbers)
        ]
        return np.concatenate(parts)

    try:
        zero = _zeros(shape)
        constant = rest(zero)
        columns = []
        for place in np.ndindex(shape):
            unit = _zeros(shape)
            unit[place] = 1
            columns.append(rest(unit) - constant)
        matrix = np.stack(columns, axis=1) if columns else np.zeros((len(constant), 0))
        probe = _draw(shape, draw)
        if not np.all(rest(probe) == constant + matrix @ probe.reshape(-1)):
            return None  # not affine in this tensor
    except OtimesError:
        return None
    return _random_solution(matrix, -constant, shape, draw)


def _random_solution(
    matrix: Any, target: Any, shape: tuple[int, ...], draw: random.Random
) -> Any | None:
    """Return a random rational solution of matrix · x = target, or None if there is none."""
    rows = [
        [Fraction(x) for x in row] + [Fraction(b)] for row, b in zip(matrix, target, strict=True)
    ]
    width = matrix.shape[1]
    pivots: list[int] = []
    for column in range(width):
        at = next((i for i in range(len(pivots), len(rows)) if rows[i][column]), None)
        if at is None:
            continue
        k = len(pivots)
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [x / rows[k][column] for x in rows[k]]
        for i, row in enumerate(rows):
            if i != k and row[column]:
                rows[i] = [x - row[column] * y for x, y in zip(row, rows[k], strict=True)]
        pivots.append(column)
    if any(row[width] for row in rows[len(pivots) :]):
        return None
    solution = [Fraction(draw.randint(-2, 2)) for _ in range(width)]
    for k, column in enumerate(pivots):
        others = sum(rows[k][j] * solution[j] for j in range(width) if j not in pivots)
        solution[column] = rows[k][width] - others
    flat = np.empty(width, dtype=object)
    flat[:] = [int(x) if x.denominator == 1 else x for x in solution]
    return flat.reshape(shape)


def _special(shape: tuple[int, ...], generic: Any, draw: random.Random) -> Any:
    """Return a free tensor: mostly generic, sometimes special, as generic ones hide falsehoods."""
    kind = draw.random()
    if kind < 0.7 or len(shape) != 2:
        return generic
    if kind < 0.8 and shape[0] == shape[1]:
        return draw.choice((_diagonal, _scalar_matrix, _nilpotent))(shape[0], shape[1], draw)
    if kind < 0.9:
        left, right = _draw((shape[0], 1), draw), _draw((1, shape[1]), draw)
        return left @ right
    return np.vectorize(lambda x: x if draw.random() < 0.5 else 0, otypes=[object])(generic)


# -- families of square matrices -------------------------------------------------------------------

Family = Callable[[int, int, random.Random], Any]


def _zeros(shape: tuple[int, ...]) -> Any:
    array = np.empty(shape, dtype=object)
    array.fill(0)
    return array


def _draw(shape: tuple[int, ...], draw: random.Random) -> Any:
    array = np.empty(shape, dtype=object)
    for place in np.ndindex(shape):
        array[place] = draw.randint(-2, 2)
    return array


def _identity(rows: int, cols: int, draw: random.Random) -> Any:
    array = _zeros((rows, cols))
    for k in range(min(rows, cols)):
        array[k, k] = 1
    return array


def _zero(rows: int, cols: int, draw: random.Random) -> Any:
    return _zeros((rows, cols))


def _scalar_matrix(rows: int, cols: int, draw: random.Random) -> Any:
    return _identity(rows, cols, draw) * draw.choice((-1, 2, 3))


def _diagonal(rows: int, cols: int, draw: random.Random) -> Any:
    array = _zeros((rows, cols))
    for k in range(min(rows, cols)):
        array[k, k] = draw.randint(-2, 2)
    return array


def _projection(rows: int, cols: int, draw: random.Random) -> Any | None:
    """S D S⁻¹ with D of zeros and ones."""
    return _conjugated(rows, cols, draw, lambda: draw.randint(0, 1))


def _involution(rows: int, cols: int, draw: random.Random) -> Any | None:
    return _conjugated(rows, cols, draw, lambda: draw.choice((-1, 1)))


def _conjugated(rows: int, cols: int, draw: random.Random, entry: Callable[[], int]) -> Any | None:
    if rows != cols:
        return None
    basis = _unimodular(rows, draw)
    middle = _zeros((rows, rows))
    for k in range(rows):
        middle[k, k] = entry()
    return _whole(basis @ middle @ exact_inverse(basis))


def _unimodular(size: int, draw: random.Random) -> Any:
    lower, upper = _identity(size, size, draw), _identity(size, size, draw)
    for i in range(size):
        for j in range(i):
            lower[i, j], upper[j, i] = draw.randint(-1, 1), draw.randint(-1, 1)
    return lower @ upper


def _orthogonal(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Rows or columns of Q = (I - S)(I + S)⁻¹ with S antisymmetric (Cayley), a sign flipped."""
    size = max(rows, cols)
    skew = _zeros((size, size))
    for i in range(size):
        for j in range(i):
            skew[i, j] = draw.randint(-1, 1)
            skew[j, i] = -skew[i, j]
    one = _identity(size, size, draw)
    q = (one - skew) @ exact_inverse(one + skew)
    if draw.random() < 0.5 and size:
        q[0] = -q[0]
    return _whole(q[:rows, :cols])


def _orthogonal_projection(rows: int, cols: int, draw: random.Random) -> Any | None:
    if rows != cols:
        return None
    q = _orthogonal(rows, rows, draw)
    keep = _zeros((rows, rows))
    for k in range(rows):
        keep[k, k] = draw.randint(0, 1)
    return None if q is None else _whole(q @ keep @ q.T)


def _permutation(rows: int, cols: int, draw: random.Random) -> Any | None:
    if rows != cols:
        return None
    array = _zeros((rows, rows))
    places = list(range(rows))
    draw.shuffle(places)
    for i, j in enumerate(places):
        array[i, j] = 1
    return array


def _symmetric(rows: int, cols: int, draw: random.Random) -> Any | None:
    if rows != cols:
        return None
    half = _draw((rows, cols), draw)
    return half + half.T


def _antisymmetric(rows: int, cols: int, draw: random.Random) -> Any | None:
    if rows != cols:
        return None
    half = _draw((rows, cols), draw)
    return half - half.T


def _nilpotent(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Conjugated strictly upper triangular with square zero: one block of corners."""
    if rows != cols:
        return None
    array = _zeros((rows, rows))
    half = max(1, rows // 2)
    for i in range(half):
        for j in range(half, rows):
            array[i, j] = draw.randint(-2, 2)
    basis = _unimodular(rows, draw)
    return _whole(basis @ array @ exact_inverse(basis))


def _whole(array: Any) -> Any:
    """Return the array with Fractions that are integers as integers."""
    result = np.empty(array.shape, dtype=object)
    for place, entry in np.ndenumerate(array):
        value = Fraction(entry)
        result[place] = int(value) if value.denominator == 1 else value
    return result


FAMILIES: tuple[Family, ...] = (
    _identity,
    _zero,
    _scalar_matrix,
    _diagonal,
    _projection,
    _projection,
    _involution,
    _orthogonal,
    _orthogonal,
    _orthogonal_projection,
    _permutation,
    _symmetric,
    _antisymmetric,
    _nilpotent,
)
