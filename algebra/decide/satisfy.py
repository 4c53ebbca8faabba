"""Exact assignments that satisfy hypotheses, for trials of a conditional claim.

Matrices are found one at a time. If the hypotheses about a matrix and known ones are affine in it,
a random solution over the rationals is computed. Otherwise (P² = P, QᵀQ = I) it is drawn from
families of special matrices: projections, orthogonal, symmetric, nilpotent, permutation and
diagonal ones, zero and identity; from the solutions of the affine hypotheses; or, if it is small,
from all matrices of -1, 0 and 1. The assignment is checked against every hypothesis at the end:
only this check is needed for soundness, and drawing from several families makes it generic.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import prod
from operator import mul
from typing import Any, NamedTuple

import sympy

from otimes.algebra.budget import spend
from otimes.algebra.decide.admissible import admits, special
from otimes.algebra.decide.counterexample import draw_assignment
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.echelon import reduce_rows
from otimes.algebra.evaluate.exact import (
    Assignment,
    array_shape,
    exact_inverse,
    exact_value,
)
from otimes.algebra.evaluate.exact_arrays import ExactArray, identity, stack, zeros
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.language.roots import Number
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.trees import key

Pair = tuple[sympy.Basic, sympy.Basic]
MAX_UNKNOWNS = 64
FAMILY_TRIES = 12
SPACE_TRIES = 40
ANGLES = tuple(map(Fraction, ("0", "1", "-1", "1/2", "-1/2", "2", "-1/3")))  # (half) tangents
CANDIDATE = 30  # steps that count for an array of a kind, and for each row of one that is made
MAX_SIGNS = 4  # entries of an array of which all values are tried


def satisfying(
    given: Sequence[Pair],
    signature: Signature,
    draw: random.Random,
    largest: int,
    entries: int,
    roots: dict[str, int],
) -> Assignment | None:
    """Return an assignment at which all hypotheses hold exactly, or None if none was found."""
    assignment = draw_assignment(signature, draw, largest, entries, roots)
    if assignment is None:
        return None
    if draw.random() < 0.3:
        scalars = {**assignment.scalars, **special(signature, draw, roots)}
        chosen = replace(assignment, scalars=scalars)
        assignment = chosen if admits(signature, chosen) else assignment
    factors = [each for pair in given for each in _factors(*pair)]
    if factors and draw.random() < 0.3:  # where one vanishes, a hypothesis says the least
        zero = (draw.choice(factors), sympy.S.Zero)
        assignment = _with_scalar(zero, assignment, signature, draw)
    solved = [_arguments(*pair) for pair in given]  # g(A) = g(B) holds where A = B
    if solved != [*given] and draw.random() < 0.5:  # perhaps it holds elsewhere, too
        solved = [*given]
    speaks = [(pair, _names(pair)) for pair in solved]
    for pair, names in speaks:
        if not names:
            assignment = _with_scalar(pair, assignment, signature, draw)
    order = list(signature.tensors)
    draw.shuffle(order)
    of_signs = draw.random() < 0.5  # all alike: drawn in different ways, few fit each other
    known: set[str] = set()
    for name in order:
        known.add(name)
        mine = [pair for pair, names in speaks if name in names and names <= known]
        array = _solve_for(name, mine, assignment, signature, draw, of_signs)
        if array is None:
            return None
        assignment = replace(assignment, arrays={**assignment.arrays, name: array})
    return assignment if admits(signature, assignment) and holds(given, assignment) else None


def holds(given: Sequence[Pair], assignment: Assignment) -> bool:
    """Return whether every hypothesis is defined and holds exactly."""
    try:
        numbers = assignment.in_exact_arrays()
        return all(_equal(left, right, numbers) for left, right in given)
    except OtimesError:
        return False


def _equal(left: sympy.Basic, right: sympy.Basic, assignment: Assignment) -> bool:
    inner = _arguments(left, right)
    return all(
        exact_value(left, each) == exact_value(right, each)
        or (inner != (left, right) and exact_value(inner[0], each) == exact_value(inner[1], each))
        for each in _at_every_index((left, right), assignment)
    )


def _arguments(left: sympy.Basic, right: sympy.Basic) -> Pair:
    """Return the arguments of two sides that are one function of these, else the sides."""
    while isinstance(left, Activation) and isinstance(right, Activation):
        if left.name != right.name:
            break
        left, right = left.argument, right.argument
    return left, right


def _at_every_index(pair: Pair, assignment: Assignment) -> Iterator[Assignment]:
    """Yield the assignment with every combination of values of a hypothesis's free indices."""
    indices = _inspected(*pair).indices
    ranges = [range(assignment.size(count)) for _, count in indices.values()]
    for values in product(*ranges):
        free = dict(zip(indices, values, strict=True))
        yield replace(assignment, indices={**assignment.indices, **free})


def _names(pair: Pair) -> set[str]:
    return set(_inspected(*pair).tensors)


@lru_cache(maxsize=256)
def _factors(left: sympy.Basic, right: sympy.Basic) -> list[sympy.Expr]:
    """Return the scalar factors in a hypothesis, such as a and a b - 1 in a (a b - 1) A."""
    scalars = {key(symbol) for symbol in _inspected(left, right).scalars.values()}
    found = {
        part
        for side in (left, right)
        for product in side.atoms(sympy.Mul, sympy.MatMul)
        for part in product.args
        if isinstance(part, sympy.Symbol) or (isinstance(part, sympy.Add) and part.is_polynomial())
        if {key(s) for s in part.free_symbols} & scalars
    }
    return sorted(found, key=sympy.default_sort_key)


@lru_cache(maxsize=256)
def _inspected(left: sympy.Basic, right: sympy.Basic) -> Signature:
    """Return the signature of a hypothesis (cached, as every draw needs it many times)."""
    return inspect(left, right)


def _with_scalar(
    pair: Pair, assignment: Assignment, signature: Signature, draw: random.Random
) -> Assignment:
    """Return an assignment in which an equation of scalars holds, if it is affine in one of them.

    If there is a choice, signs and inequalities hold as well. Several such equations are solved in
    turn; a later solution may violate an earlier equation, which the final check finds.
    """
    names = sorted(_inspected(*pair).scalars)
    draw.shuffle(names)

    def rest(name: str, value: Number) -> Number:
        numbers = replace(assignment, scalars={**assignment.scalars, name: value})
        left, right = exact_value(pair[0], numbers), exact_value(pair[1], numbers)
        if isinstance(left, ExactArray) or isinstance(right, ExactArray):
            raise OtimesError("an equation of matrices is not solved for a number")
        return left - right

    found: Assignment | None = None
    for name in names:
        try:
            constant, slope = rest(name, 0), rest(name, 1) - rest(name, 0)
            if slope == 0 or rest(name, 3) != constant + 3 * slope:
                continue
        except OtimesError:  # a division by zero, a root that is not rational
            continue
        value = Fraction(-constant) / slope
        scalar = int(value) if value.denominator == 1 else value
        solved = replace(assignment, scalars={**assignment.scalars, name: scalar})
        if admits(signature, solved):
            return solved
        found = found or solved
    return found or assignment


def _solve_for(
    name: str,
    given: Sequence[Pair],
    assignment: Assignment,
    signature: Signature,
    draw: random.Random,
    of_signs: bool,
) -> Any | None:
    shape = array_shape(signature.tensors[name], assignment)
    if not given and name in signature.masks:
        return assignment.arrays[name]
    if not given:
        return _special(shape, assignment.arrays[name], draw)
    first = _first_member(signature.tensors[name], assignment)
    if first is not None and shape[-2] == shape[-1]:
        array = _group(shape, first, draw)
        if holds(given, replace(assignment, arrays={**assignment.arrays, name: array})):
            return array
    systems = [_affine(name, pair, assignment, shape, draw) for pair in given]
    linear = [system for system in systems if system is not None]
    space = _solutions(linear, shape) if linear else None
    if linear and space is None:
        return None
    if space is not None and len(linear) == len(given):
        return space.element(draw, 2)
    for array in _candidates(shape, draw, of_signs, space):
        spend(CANDIDATE)
        if array is not None and holds(
            given, replace(assignment, arrays={**assignment.arrays, name: array})
        ):
            return array
    return None


def _first_member(tensor: Any, assignment: Assignment) -> int | None:
    """Return the number of the first member of a family over relative positions, else None."""
    firsts: tuple[Any, ...] = getattr(tensor, "firsts", ())
    return assignment.size(firsts[0]) if len(firsts) == 1 and firsts[0] != 0 else None


def _group(shape: tuple[int, ...], first: int, draw: random.Random) -> Any:
    """Return the powers of an orthogonal matrix, the inverse being the transpose."""
    count, size = shape[0], shape[1]
    make = draw.choice((_orthogonal, _orthogonal, _permutation))
    turn: Any = make(size, size, draw)
    members: list[Any] = []
    for power in range(first, first + count):
        made: Any = identity(size)
        for _ in range(abs(power)):
            spend(CANDIDATE)
            made = made @ (turn if power > 0 else turn.T)
        members.append(made)
    return stack(members)


def _candidates(
    shape: tuple[int, ...], draw: random.Random, of_signs: bool, space: _Space | None
) -> Iterator[Any | None]:
    """Yield arrays of common kinds; 0 and I, which satisfy too much, are rarely first."""
    trivial = [_members(make, shape, draw) for make in draw.sample(TRIVIAL, len(TRIVIAL))]
    if draw.random() < 0.1:
        yield from trivial
    families = (_members(draw.choice(FAMILIES), shape, draw) for _ in range(FAMILY_TRIES))
    if not of_signs:
        yield from families
    if space is not None:  # what the other hypotheses leave
        for _ in range(SPACE_TRIES):
            yield space.element(draw, 1)
    elif of_signs and prod(shape) <= MAX_SIGNS:
        arrays = list(product((-1, 0, 1), repeat=prod(shape)))
        draw.shuffle(arrays)
        for values in arrays:
            yield ExactArray(shape, list(values))
    yield from families
    yield from trivial


def _members(make: Family, shape: tuple[int, ...], draw: random.Random) -> Any | None:
    """Return a matrix made by `make`, or a stack of them for a tensor with more than two axes."""
    *counts, rows, cols = shape
    if not counts:
        spend(CANDIDATE * max(rows, cols))
        return make(rows, cols, draw)
    if not prod(counts):
        return zeros(shape)
    members: list[Any] = [_members(make, (*counts[1:], rows, cols), draw) for _ in range(counts[0])]
    return None if any(member is None for member in members) else stack(members)


_System = tuple[list[list[Number]], list[Number]]  # a matrix by its rows, and what it must give


class _Space(NamedTuple):
    """The solution space of linear equations: a particular solution and a basis."""

    point: list[Number]
    basis: list[list[Number]]
    shape: tuple[int, ...]

    def element(self, draw: random.Random, largest: int) -> Any:
        """Return a random solution, with integer coefficients up to `largest`."""
        spend(2 * len(self.basis) * len(self.point))
        flat = self.point
        for direction in self.basis:
            factor = draw.randint(-largest, largest)
            flat = [x + factor * y for x, y in zip(flat, direction, strict=True)]
        return _whole(ExactArray(self.shape, flat))


def _affine(
    name: str, pair: Pair, assignment: Assignment, shape: tuple[int, ...], draw: random.Random
) -> _System | None:
    """Return the linear equations of a hypothesis that is affine in a tensor, else None."""
    if prod(shape) > MAX_UNKNOWNS:
        return None

    def rest(array: ExactArray) -> list[Number]:
        numbers = replace(assignment, arrays={**assignment.arrays, name: array})
        parts = [
            exact_value(pair[0], each) - exact_value(pair[1], each)
            for each in _at_every_index(pair, numbers)
        ]
        return [x for p in parts for x in (p.flat if isinstance(p, ExactArray) else [p])]

    try:
        constant = rest(zeros(shape))
        columns = []
        for k in range(prod(shape)):
            unit = zeros(shape)
            unit.flat[k] = 1
            columns.append([x - c for x, c in zip(rest(unit), constant, strict=True)])
        matrix = [[column[k] for column in columns] for k in range(len(constant))]
        probe = _draw(shape, draw)
        equations = zip(rest(probe), constant, matrix, strict=True)
        if not all(value == c + sum(map(mul, row, probe.flat)) for value, c, row in equations):
            return None
    except OtimesError:  # an inverse, which zero does not have
        return None
    if not all(isinstance(x, int | Fraction) for row in (*matrix, constant) for x in row):
        return None  # such as log 2, which is known within an interval only
    return matrix, [-c for c in constant]


def _solutions(systems: Sequence[_System], shape: tuple[int, ...]) -> _Space | None:
    """Return the solution space of linear systems over the rationals, or None if it is empty."""
    rows = [
        [x if isinstance(x, int) else Fraction(x) for x in (*row, b)]
        for matrix, target in systems
        for row, b in zip(matrix, target, strict=True)
    ]
    width = prod(shape)
    pivots = reduce_rows(rows, width)
    if any(row[width] for row in rows[len(pivots) :]):
        return None
    point: list[Number] = [0] * width
    for k, column in enumerate(pivots):
        point[column] = rows[k][width]
    basis = []
    for free in range(width):
        if free not in pivots:
            direction: list[Number] = [0] * width
            direction[free] = 1
            for k, column in enumerate(pivots):
                direction[column] = -rows[k][free]
            basis.append(direction)
    return _Space(point, basis, shape)


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
    return generic.map(lambda x: x if draw.random() < 0.5 else 0)


# -- families of square matrices -------------------------------------------------------------------

Family = Callable[[int, int, random.Random], Any]


def _draw(shape: tuple[int, ...], draw: random.Random) -> ExactArray:
    return ExactArray(shape, [draw.randint(-2, 2) for _ in range(prod(shape))])


def _identity(rows: int, cols: int, draw: random.Random) -> ExactArray:
    return identity(max(rows, cols))[:rows, :cols]


def _zero(rows: int, cols: int, draw: random.Random) -> Any:
    return zeros((rows, cols))


def _scalar_matrix(rows: int, cols: int, draw: random.Random) -> Any:
    return _identity(rows, cols, draw) * draw.choice((-1, 2, 3))


def _diagonal(rows: int, cols: int, draw: random.Random) -> Any:
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
    return _whole(basis @ _of_both(rows, draw, values) @ exact_inverse(basis))


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


def _orthogonal(rows: int, cols: int, draw: random.Random) -> Any | None:
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
    return _whole(q[:rows, :cols])


def _orthogonal_projection(rows: int, cols: int, draw: random.Random) -> Any | None:
    """Return the projection x xᵀ / xᵀ x, or one onto columns of an orthogonal matrix."""
    x = _draw((rows, 1), draw)
    if rows != cols:
        return None
    if draw.random() < 0.5 and any(x.flat):
        return _whole(x @ x.T * Fraction(1, int((x.T @ x)[0, 0])))
    q = _orthogonal(rows, rows, draw)
    return None if q is None else _whole(q @ _of_both(rows, draw, (0, 1)) @ q.T)


def _permutation(rows: int, cols: int, draw: random.Random) -> Any | None:
    if rows != cols:
        return None
    array = zeros((rows, rows))
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
    return _whole(basis @ array @ exact_inverse(basis))


def _whole(array: Any) -> Any:
    """Return the array with integral Fractions converted to integers."""

    def whole(entry: Number) -> Number:
        return int(entry) if entry.denominator == 1 else entry

    return array.map(whole)


TRIVIAL: tuple[Family, ...] = (_identity, _zero, _scalar_matrix)
FAMILIES: tuple[Family, ...] = (
    _diagonal,
    _projection,
    _projection,
    _involution,
    _orthogonal,
    _orthogonal,
    _orthogonal_projection,
    _orthogonal_projection,
    _permutation,
    _symmetric,
    _antisymmetric,
    _nilpotent,
    _nilpotent,
)
