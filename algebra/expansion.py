"""Fixed sizes: two expressions compared as polynomials in all the entries of their matrices.

At fixed small sizes some equations hold that hold for no larger one (Cayley–Hamilton at n = 2), so
different normal forms do not refute. With every size a number, both sides are polynomials in
finitely many entries; the tree walker computes them with one symbol for each entry, exactly. Under
hypotheses, which are polynomials that vanish, a claim follows when its entries are sums of theirs
times monomials: linear algebra over the rationals, up to the degree of the claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Any, NamedTuple

import sympy

from algebra import scalars
from algebra.budget import Exhausted, spend, weight
from algebra.exact import Assignment, array_shape, exact_value
from algebra.exact_arrays import ExactArray
from algebra.language import FamilyMember
from algebra.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from algebra.signature import Signature

MAX_MONOMIALS = 100_000
MAX_MULTIPLES = 2_000
Pair = tuple[sympy.Basic, sympy.Basic]
Place = tuple[int, ...]  # the values of indices, or a row and a column, or () for a scalar
Vector = dict[tuple[int, scalars.Monomial], Fraction]  # by degree first
Factors = tuple[str, ...]  # names of entries, as `A~0,1` (no symbol has a ~), and of scalars


class Multiple(NamedTuple):
    """One term of a proof: coefficient · factors · one entry of hypothesis number `given`.

    It counts for the entry `entry` of lhs - rhs where the indices of the claim have the values
    `at`; `given_at` and `given_entry` say the same of the hypothesis.
    """

    at: Place
    entry: Place
    given: int
    given_at: Place
    given_entry: Place
    factors: Factors
    coefficient: Fraction


Combination = dict[tuple[tuple[int, Place, Place], Factors], Fraction]
Rows = dict[tuple[int, scalars.Monomial], tuple[Vector, Combination]]


def equal_as_polynomials(lhs: sympy.Basic, rhs: sympy.Basic, signature: Signature) -> bool | None:
    """Return whether both sides are the same polynomial in all entries; None if not decidable so.

    None when a size is a symbol, when something is divided by or a root is taken, or when there
    could be more than `MAX_MONOMIALS` monomials.
    """
    spaces = _spaces([(lhs, rhs)], signature)
    if spaces is None:
        return None
    return all(exact_value(lhs, each) == exact_value(rhs, each) for each in spaces)


def follows_as_polynomials(
    lhs: sympy.Basic,
    rhs: sympy.Basic,
    given: Sequence[tuple[sympy.Basic, sympy.Basic, Sequence[str]]],
    indices: Sequence[str],
    signature: Signature,
) -> tuple[Multiple, ...] | None:
    """Return the entries of lhs - rhs as sums of entries of hypotheses times monomials.

    The sums are empty where all entries are zero without the hypotheses. `indices` names the free
    indices of the claim, the third part of each hypothesis its own. None when nothing was found:
    the monomials go up to the degree of the claim, in at most `MAX_MULTIPLES` multiples, within the
    active budget.
    """
    try:
        return _combinations(lhs, rhs, given, indices, signature)
    except Exhausted:
        return None


def _combinations(
    lhs: sympy.Basic,
    rhs: sympy.Basic,
    given: Sequence[tuple[sympy.Basic, sympy.Basic, Sequence[str]]],
    indices: Sequence[str],
    signature: Signature,
) -> tuple[Multiple, ...] | None:
    spaces = _spaces([(lhs, rhs), *[(x, y) for x, y, _ in given]], signature)
    if spaces is None:
        return None
    claims: dict[tuple[Place, Place], Vector] = {}
    facts: dict[tuple[Any, ...], tuple[Vector, tuple[int, Place, Place]]] = {}
    for assignment in spaces:
        at = _values(assignment, indices)
        claims |= {(at, p): _vector(e) for p, e in _entries(lhs, rhs, assignment)}
        for k, (x, y, own) in enumerate(given):
            for place, entry in _entries(x, y, assignment):
                vector = _vector(entry)
                facts[tuple(sorted(vector.items()))] = vector, (k, _values(assignment, own), place)
    if not claims:
        return ()
    largest = max(max(claim)[0] for claim in claims.values())
    multiples = [
        (vector, source, largest - max(vector)[0])
        for vector, source in facts.values()
        if max(vector)[0] <= largest
    ]
    vectors = (*claims.values(), *[vector for vector, _ in facts.values()])
    names = sorted({name for v in vectors for _, m in v for name, _ in m})
    if sum(comb(len(names) + spare, spare) for *_, spare in multiples) > MAX_MULTIPLES:
        return None
    rows: Rows = {}
    for vector, source, spare in multiples:
        for degree in range(spare + 1):
            for chosen in combinations_with_replacement(names, degree):
                row, uses = _reduced(_times(vector, chosen), {(source, chosen): Fraction(1)}, rows)
                if row:
                    scale = row[max(row)]
                    scaled = {key: value / scale for key, value in row.items()}
                    rows[max(row)] = scaled, {key: value / scale for key, value in uses.items()}
    found = []
    for (at, place), claim in claims.items():
        rest, uses = _reduced(claim, {}, rows)
        if rest:
            return None
        found += [
            Multiple(at, place, *source, chosen, -factor)
            for (source, chosen), factor in uses.items()
        ]
    return tuple(found)


def _values(assignment: Assignment, indices: Sequence[str]) -> Place:
    return tuple(assignment.indices[name] for name in indices)


def _spaces(pairs: Sequence[Pair], signature: Signature) -> Iterator[Assignment] | None:
    """Return a symbol for each entry, at every value of the indices; None where not decidable."""
    if signature.sizes:
        return None
    degrees = [_degree(side) for pair in pairs for side in pair]
    if None in degrees:
        return None
    degree = max(d for d in degrees if d is not None)
    sizes = Assignment({}, {})
    shapes = {name: array_shape(tensor, sizes) for name, tensor in signature.tensors.items()}
    unknowns = sum(prod(shape) for shape in shapes.values()) + len(signature.scalars)
    if comb(unknowns + degree, degree) > MAX_MONOMIALS:
        return None
    arrays = {name: _unknowns(name, shape) for name, shape in shapes.items()}
    numbers: Any = {name: scalars.generator(name) for name in signature.scalars}
    ranges = [range(sizes.size(count)) for _, count in signature.indices.values()]
    return (
        Assignment({}, arrays, dict(zip(signature.indices, values, strict=True)), numbers)
        for values in product(*ranges)
    )


def _entries(left: sympy.Basic, right: sympy.Basic, at: Assignment) -> Iterator[tuple[Place, Any]]:
    """Yield the entries of a difference that are not zero, each with its place."""
    rest = exact_value(left, at) - exact_value(right, at)
    if not isinstance(rest, ExactArray):
        rest = ExactArray((), [rest])
    return ((p, entry) for p, entry in zip(rest.places(), rest.flat, strict=True) if entry != 0)


def _vector(polynomial: Any) -> Vector:
    terms = (
        polynomial.numerator
        if isinstance(polynomial, scalars.Scalar)
        else {scalars.ONE: polynomial}
    )
    return {(_total(monomial), monomial): Fraction(value) for monomial, value in terms.items()}


def _total(monomial: scalars.Monomial) -> int:
    return sum(int(exponent) for name, exponent in monomial if not name.startswith("#"))


def _times(vector: Vector, names: Sequence[str]) -> Vector:
    spend(3 * len(vector))
    result: Vector = {}
    for (degree, monomial), value in vector.items():
        exponents = dict(monomial)
        for name in names:
            exponents[name] = exponents.get(name, 0) + 1
        result[degree + len(names), tuple(sorted(exponents.items()))] = value
    return result


def _reduced(vector: Vector, uses: Combination, rows: Rows) -> tuple[Vector, Combination]:
    """Return what is left of a vector when multiples of the rows are taken off, and of its uses."""
    rest, left = dict(vector), dict(uses)
    while True:
        spend(1 + len(rest))
        pivot = max((key for key in rest if key in rows), default=None)
        if pivot is None:
            return rest, left
        factor = rest[pivot]
        row, others = rows[pivot]
        _subtract(rest, row, factor)
        _subtract(left, others, factor)


def _subtract(rest: dict[Any, Fraction], other: dict[Any, Fraction], factor: Fraction) -> None:
    spend(len(other) * (48 + weight(factor)) >> 4)
    for key, value in other.items():
        total = rest.get(key, Fraction(0)) - factor * value
        if total:
            rest[key] = total
        else:
            rest.pop(key, None)


def _unknowns(name: str, shape: tuple[int, ...]) -> ExactArray:
    places = list(product(*map(range, shape)))
    spend(2 * len(places))
    return ExactArray(
        shape, [scalars.generator(f"{name}~{','.join(map(str, place))}") for place in places]
    )


def _degree(e: Any) -> int | None:
    """Return a bound on the degree in entries and scalars; None when it is no polynomial."""
    if isinstance(e, sympy.MatrixSymbol | FamilyMember | sympy.Symbol):
        return 1
    if isinstance(e, sympy.Pow | sympy.MatPow | sympy.HadamardPower):
        base, exponent = _degree(e.args[0]), e.args[1]
        if base is None or not exponent.is_Integer or (exponent < 0 and base > 0):
            return None
        return base * abs(int(exponent))
    if isinstance(e, sympy.Inverse | RowSoftmax | Activation | RMSNorm | LayerNorm):
        return None
    parts = [_degree(a) for a in e.args if isinstance(a, sympy.Expr)]
    if isinstance(e, sympy.ImmutableDenseMatrix):
        parts = [_degree(entry) for entry in e]
    if None in parts:
        return None
    known = [part for part in parts if part is not None]
    if isinstance(e, sympy.Mul | sympy.MatMul | sympy.KroneckerProduct | sympy.HadamardProduct):
        return sum(known)
    return max(known, default=0)
