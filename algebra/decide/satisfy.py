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
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import chain, product
from math import prod
from operator import mul
from typing import Any, NamedTuple

import sympy

from otimes.algebra.budget import spend
from otimes.algebra.decide.admissible import admits
from otimes.algebra.decide.admissible import special as special_scalars
from otimes.algebra.decide.congruence import congruences
from otimes.algebra.decide.congruence import solved as congruent
from otimes.algebra.decide.counterexample import draw_assignment
from otimes.algebra.decide.embedded import Embedded
from otimes.algebra.decide.matrix_families import (
    FAMILIES,
    TRIVIAL,
    Family,
    integers,
    of_small_blocks,
    orthogonal,
    permutation,
    special,
    whole,
)
from otimes.algebra.decide.rolled import is_rolled_out, last_to_be_known, rolled_out
from otimes.algebra.decide.unknown_functions import drawn_polynomial, unknown_in, with_functions
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.echelon import reduce_rows
from otimes.algebra.evaluate.exact import (
    Assignment,
    array_shape,
    exact_value,
)
from otimes.algebra.evaluate.exact_arrays import ExactArray, identity, stack, zeros
from otimes.algebra.language.linear import Family as Members
from otimes.algebra.language.logarithms import LOG2, OF_POWERS, Logarithm
from otimes.algebra.language.nonlinear import Activation, RowSoftmax
from otimes.algebra.language.roots import Number
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.signature import Signature
from otimes.algebra.language.trees import key, parts_of

Pair = tuple[sympy.Basic, sympy.Basic]
MAX_UNKNOWNS = 64
FAMILY_TRIES = 12
SPACE_TRIES = 40
HALVES = (1, Fraction(1, 2), Fraction(1, 3))  # projections and means have such entries
CANDIDATE = 30  # steps that count for an array of a kind, and for each row of one that is made
MAX_SIGNS = 4  # entries of an array of which all values are tried


class Whole:
    """The values of expressions at whole arrays."""

    def shape(self, tensor: sympy.MatrixSymbol | Members, numbers: Assignment) -> tuple[int, ...]:
        """Return the shape of the array of a tensor."""
        return array_shape(tensor, numbers)

    def sides(self, pair: Pair, numbers: Assignment) -> tuple[list[Any], list[Any]]:
        """Return the entries of both sides, for all values of the free indices."""
        left, right = list[Any](), list[Any]()
        for each in _at_every_index(pair, numbers):
            left += _flat(exact_value(pair[0], each))
            right += _flat(exact_value(pair[1], each))
        return left, right

    def value(self, e: sympy.Basic, numbers: Assignment) -> ExactArray:
        """Return the value of a matrix."""
        found: ExactArray = exact_value(e, numbers)
        return found


Evaluation = Whole | Embedded
WHOLE = Whole()


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
    return None if assignment is None else solved_for(given, signature, assignment, draw)


def solved_for(
    given: Sequence[Pair],
    signature: Signature,
    assignment: Assignment,
    draw: random.Random,
    evaluation: Evaluation = WHOLE,
) -> Assignment | None:
    """Return an assignment with other matrices, at which all hypotheses hold, or None.

    `evaluation` tells which arrays an assignment has, and what expressions are at these.
    """
    roots = signature.roots
    if draw.random() < 0.3:
        scalars = {**assignment.scalars, **special_scalars(signature, draw, roots)}
        chosen = replace(assignment, scalars=scalars)
        assignment = chosen if admits(signature, chosen) else assignment
    factors = [each for pair in given for each in _factors(*pair)]
    if factors and draw.random() < 0.3:  # where one vanishes, a hypothesis says the least
        zero = (draw.choice(factors), sympy.S.Zero)
        assignment = _with_scalar(zero, assignment, signature, draw)
    solved = [_arguments(*pair) for pair in given]  # g(A) = g(B) holds where A = B
    if solved != [*given] and draw.random() < 0.5:  # perhaps it holds elsewhere, too
        solved = [*given]
    unknown = unknown_in(side for pair in solved for side in pair)
    later = unknown != [] and draw.random() < 0.6  # the functions come after the matrices
    if later:
        solved = [pair for pair in solved if not unknown_in(pair)]
    elif unknown and draw.random() < 0.8:
        functions = {name: drawn_polynomial(draw) for name in unknown}
        assignment = replace(assignment, functions=functions)
    speaks = [(pair, _names(pair)) for pair in solved]
    for pair, names in speaks:
        if not names:
            assignment = _with_scalar(pair, assignment, signature, draw)
    solve = _Solver(solved, signature, draw, evaluation)
    order = list(signature.tensors)
    draw.shuffle(order)
    later_known = last_to_be_known(order, solved)
    made = any(name.rstrip("′").endswith("^") for name in order)  # families that stand for powers
    if later_known is not None and (made or draw.random() < 0.7):  # else other ones are solved for
        order, solve.in_order = later_known, True
    solve.of_signs = draw.random() < 0.5  # all alike: drawn in different ways, few fit each other
    powers = sorted({name for pair in solved for name in _in_powers(*pair)})
    if powers and draw.random() < 0.5:  # exp is then a power of two
        solve.of_logarithms = {*draw.sample(powers, draw.randint(1, len(powers)))}
    known: set[str] = set()
    for name in order:
        known.add(name)
        mine = [pair for pair, names in speaks if name in names and names <= known]
        array = solve(name, mine, assignment)
        if array is None:
            return None
        assignment = replace(assignment, arrays={**assignment.arrays, name: array})
    if later:
        found = with_functions(given, assignment, evaluation.sides, draw)
        if found is None:
            return None
        assignment = found
    fits = admits(signature, assignment) and holds(given, assignment, evaluation)
    return assignment if fits else None


def rolled_in(given: Sequence[Pair], assignment: Assignment) -> Assignment:
    """Return an assignment with the families that recurrences among hypotheses define computed."""
    names = [name for name in assignment.arrays if is_rolled_out(name, given)]
    for name in (last_to_be_known(names, given) if names else None) or ():
        array = rolled_out(name, given, assignment, _at_every_index, WHOLE.value)
        if array is not None:
            assignment = replace(assignment, arrays={**assignment.arrays, name: array})
    return assignment


def holds(given: Sequence[Pair], assignment: Assignment, evaluation: Evaluation = WHOLE) -> bool:
    """Return whether every hypothesis is defined and holds exactly."""
    try:
        numbers = assignment.in_exact_arrays()
        return all(_equal(pair, numbers, evaluation) for pair in given)
    except OtimesError:
        return False


def _equal(pair: Pair, numbers: Assignment, evaluation: Evaluation) -> bool:
    inner = _arguments(*pair)
    return any(
        all(x == y for x, y in zip(*evaluation.sides(each, numbers), strict=True))
        for each in dict.fromkeys((pair, inner))
    )


def _flat(value: Any) -> list[Any]:
    return value.flat if isinstance(value, ExactArray) else [value]


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
    scalars = {*_inspected(left, right).unknown}
    found = {
        part
        for side in (left, right)
        for product in parts_of(side, sympy.Mul, sympy.MatMul)
        for part in product.args
        if isinstance(part, sympy.Symbol) or (isinstance(part, sympy.Add) and part.is_polynomial())
        if {key(s) for s in part.free_symbols} & scalars
    }
    return sorted(found, key=sympy.default_sort_key)


@lru_cache(maxsize=256)
def _in_powers(left: sympy.Basic, right: sympy.Basic) -> frozenset[str]:
    """Return the names of tensors in the arguments of exp and of functions made of it."""
    functions = [e for side in (left, right) for e in parts_of(side, Activation, RowSoftmax)]
    arguments = [
        e.args[0] if isinstance(e, RowSoftmax) else e.argument
        for e in functions
        if isinstance(e, RowSoftmax) or e.name in OF_POWERS
    ]
    tensors = {t for e in arguments for t in parts_of(e, sympy.MatrixSymbol, Members)}
    return frozenset(t.name for t in tensors)


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
    names = sorted(_inspected(*pair).unknown)
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
            known = all(isinstance(x, int | Fraction) for x in (constant, slope))
            if not known or slope == 0 or rest(name, 3) != constant + 3 * slope:
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


class _Solver:
    """Solves hypotheses for one matrix, when those that are named in `given` besides are known."""

    def __init__(
        self,
        given: Sequence[Pair],
        signature: Signature,
        draw: random.Random,
        evaluation: Evaluation,
    ) -> None:
        self.signature, self.draw, self.evaluation = signature, draw, evaluation
        self.congruences = [each for pair in given for each in congruences(pair)]
        self.in_order = False  # whether families are computed by their recurrences
        self.of_signs = False
        self.of_logarithms: set[str] = set()  # the arrays that are multiples of log 2

    def __call__(self, name: str, given: Sequence[Pair], assignment: Assignment) -> Any | None:
        """Return an array for which the hypotheses `given` hold, or None."""
        draw, tensor = self.draw, self.signature.tensors[name]
        shape = self.evaluation.shape(tensor, assignment)
        if not given and name in self.signature.masks:
            return assignment.arrays[name]
        if not given:
            array = special(shape, assignment.arrays[name], draw)
            return array * LOG2 if name in self.of_logarithms else array
        first = _first_member(tensor, assignment)
        if first is not None and shape[-2] == shape[-1]:
            array = _group(shape, first, draw)
            if self.holds(given, name, array, assignment):
                return array
        if self.in_order and is_rolled_out(name, given):
            rolled = rolled_out(name, given, assignment, _at_every_index, self.evaluation.value)
            fits = rolled is not None and self.holds(given, name, rolled, assignment)
            return rolled if fits else None
        systems = [self.affine(name, pair, assignment, shape) for pair in given]
        linear = [system for system in systems if system is not None]
        space = _solutions(linear, shape) if linear else None
        if linear and space is None:
            return None
        if space is not None and len(linear) == len(given):
            square = self.with_root(name, space, given, assignment)
            return space.element(draw, 2) if square is None else square
        candidates = chain(
            self.congruent(name, shape, assignment),
            _candidates(shape, draw, self.of_signs, space),
        )
        for array in candidates:
            spend(CANDIDATE)
            if array is not None and self.holds(given, name, array, assignment):
                return array
        return None

    def holds(self, given: Sequence[Pair], name: str, array: Any, assignment: Assignment) -> bool:
        """Return whether hypotheses hold with an array in the place of another."""
        arrays = {**assignment.arrays, name: array}
        return holds(given, replace(assignment, arrays=arrays), self.evaluation)

    def with_root(
        self, name: str, space: _Space, given: Sequence[Pair], assignment: Assignment
    ) -> Any | None:
        """Return a square S² or S Sᵀ of a solution, if that is one and M in some Wᵀ M W = E."""
        if not any(
            each.middle is not None and each.middle.name == name
            for each in self.congruences
            if isinstance(each.middle, sympy.MatrixSymbol)
        ):
            return None
        root = space.element(self.draw, 1)
        square = root @ root.T if root.shape[0] == root.shape[1] else None
        if square is None or not self.holds(given, name, square, assignment):
            return None
        return square

    def congruent(
        self, name: str, shape: tuple[int, ...], assignment: Assignment
    ) -> Iterator[Any | None]:
        """Yield solutions of Wᵀ M W = E, if that is a hypothesis about the matrix W."""
        for each in self.congruences:
            if each.name != name or len(shape) != 2:
                continue
            try:
                value = self.evaluation.value(each.value, assignment)
                middle = each.middle and self.evaluation.value(each.middle, assignment)
            except (OtimesError, KeyError):  # what is not known yet has no value
                continue
            w = congruent(middle, value, shape[1 if each.by_rows else 0], self.draw)
            yield w if w is None or not each.by_rows else w.T

    def affine(
        self, name: str, pair: Pair, assignment: Assignment, shape: tuple[int, ...]
    ) -> _System | None:
        """Return the linear equations of a hypothesis that is affine in a tensor, else None."""
        if prod(shape) > MAX_UNKNOWNS:
            return None

        def rest(array: ExactArray) -> list[Number]:
            numbers = replace(assignment, arrays={**assignment.arrays, name: array})
            left, right = self.evaluation.sides(pair, numbers)
            return [x - y for x, y in zip(left, right, strict=True)]

        try:
            constant = rest(zeros(shape))
            columns = []
            for k in range(prod(shape)):
                unit = zeros(shape)
                unit.flat[k] = 1
                columns.append([x - c for x, c in zip(rest(unit), constant, strict=True)])
            matrix = [[column[k] for column in columns] for k in range(len(constant))]
            probe = integers(shape, self.draw)
            equations = zip(rest(probe), constant, matrix, strict=True)
            if not all(value == c + sum(map(mul, row, probe.flat)) for value, c, row in equations):
                return None
        except OtimesError:  # an inverse, which zero does not have
            return None
        rational = all(isinstance(x, int | Fraction) for row in matrix for x in row)
        if not rational or not all(isinstance(x, int | Fraction | Logarithm) for x in constant):
            return None  # such as log 3, which is known within an interval only
        return matrix, [-c for c in constant]


def _first_member(tensor: Any, assignment: Assignment) -> int | None:
    """Return the number of the first member of a family over relative positions, else None."""
    firsts: tuple[Any, ...] = getattr(tensor, "firsts", ())
    return assignment.size(firsts[0]) if len(firsts) == 1 and firsts[0] != 0 else None


def _group(shape: tuple[int, ...], first: int, draw: random.Random) -> Any:
    """Return the powers of an orthogonal matrix, the inverse being the transpose."""
    count, size = shape[0], shape[1]
    make = draw.choice((orthogonal, orthogonal, permutation))
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
    kinds = FAMILIES if shape[-1] < 4 else (*FAMILIES, of_small_blocks)
    families = (_members(draw.choice(kinds), shape, draw) for _ in range(FAMILY_TRIES))
    if of_signs and shape[-1] >= 4:  # all alike: these commute or anticommute
        yield from (_members(of_small_blocks, shape, draw) for _ in range(FAMILY_TRIES))
    if not of_signs:
        yield from families
    if space is not None:  # what the other hypotheses leave
        for k in range(SPACE_TRIES):
            yield space.element(draw, 1, HALVES[k % 3])
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
        spend(CANDIDATE * max(rows, cols) + max(rows, cols) ** 3 // 4)
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

    def element(self, draw: random.Random, largest: int, unit: Number = 1) -> Any:
        """Return a random solution, with coefficients up to `largest` times a unit."""
        spend(2 * len(self.basis) * len(self.point))
        flat = self.point
        for direction in self.basis:
            factor = draw.randint(-largest, largest) * unit
            flat = [x + factor * y for x, y in zip(flat, direction, strict=True)]
        return whole(ExactArray(self.shape, flat))


def _solutions(systems: Sequence[_System], shape: tuple[int, ...]) -> _Space | None:
    """Return the solution space of linear systems over the rationals, or None if it is empty."""
    rows = [
        [x if isinstance(x, int | Logarithm) else Fraction(x) for x in (*row, b)]
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
