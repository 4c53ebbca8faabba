"""Numeric sizes: comparison of two expressions as polynomials in the entries of their matrices.

Some equations hold at small sizes only (Cayley–Hamilton at n = 2), so different normal forms do not
refute a claim at numeric sizes. There, both sides are polynomials in finitely many entries, which
the tree evaluator computes exactly, with a symbol for each entry. Hypotheses are polynomials that
vanish; a claim follows if its entries are sums of monomial multiples of theirs. Those are found by
linear algebra over the rationals, up to the degree of the claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Any, NamedTuple

import sympy

from otimes.algebra.budget import Exhausted, spend
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.echelon import Echelon
from otimes.algebra.evaluate.exact import Assignment, array_shape, exact_value
from otimes.algebra.evaluate.exact_arrays import ExactArray
from otimes.algebra.language import coefficients
from otimes.algebra.language.linear import FamilyMember
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.signature import Signature

MAX_MONOMIALS = 100_000
MAX_MULTIPLES = 2_000
Pair = tuple[sympy.Basic, sympy.Basic]
Place = tuple[int, ...]  # the values of indices, or a row and a column, or () for a scalar
Vector = dict[tuple[int, coefficients.Monomial], Fraction]  # by degree first
Factors = tuple[str, ...]  # names of entries, such as `A~0,1` (no symbol has a ~), and of scalars


class Multiple(NamedTuple):
    """One term of a proof: coefficient · monomial · an entry of hypothesis number `given`.

    It is a term of the entry `entry` of lhs - rhs at the values `at` of the claim's free indices;
    `given_at` and `given_entry` are those of the hypothesis.
    """

    at: Place
    entry: Place
    given: int
    given_at: Place
    given_entry: Place
    factors: Factors
    coefficient: Fraction


Combination = dict[tuple[tuple[int, Place, Place], Factors], Fraction]


def equal_as_polynomials(lhs: sympy.Basic, rhs: sympy.Basic, signature: Signature) -> bool | None:
    """Return whether both sides are the same polynomial in the entries; None if not decidable.

    None if a size is symbolic, if there is a division or a root, if there could be more than
    `MAX_MONOMIALS` monomials, or if a side is undefined because it inverts zero.
    """
    spaces = _spaces([(lhs, rhs)], signature)
    if spaces is None:
        return None
    try:
        return all(exact_value(lhs, each) == exact_value(rhs, each) for each in spaces)
    except OtimesError:
        return None


def follows_as_polynomials(
    lhs: sympy.Basic,
    rhs: sympy.Basic,
    given: Sequence[tuple[sympy.Basic, sympy.Basic, Sequence[str]]],
    indices: Sequence[str],
    signature: Signature,
) -> tuple[Multiple, ...] | None:
    """Return the entries of lhs - rhs as sums of entries of hypotheses times monomials.

    The sums are empty if all entries are zero without the hypotheses. `indices` names the free
    indices of the claim, the third item of each hypothesis its own. None if none were found: the
    search covers monomials up to the degree of the claim, at most `MAX_MULTIPLES` multiples, and
    ends with the active budget.
    """
    try:
        return _combinations(lhs, rhs, given, indices, signature)
    except (Exhausted, OtimesError):  # as above
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
    rows = Echelon(cost=48)
    for vector, source, spare in multiples:
        for degree in range(spare + 1):
            for chosen in combinations_with_replacement(names, degree):
                rows.add(_times(vector, chosen), {(source, chosen): Fraction(1)})
    found = []
    for (at, place), claim in claims.items():
        rest, uses = dict(claim), Combination()
        rows.reduce(rest, uses)
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
    """Return assignments with a symbol for each entry, at every index value; None if impossible."""
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
    numbers: Any = {name: coefficients.generator(name) for name in signature.scalars}
    ranges = [range(sizes.size(count)) for _, count in signature.indices.values()]
    return (
        Assignment({}, arrays, dict(zip(signature.indices, values, strict=True)), numbers)
        for values in product(*ranges)
    )


def _entries(left: sympy.Basic, right: sympy.Basic, at: Assignment) -> Iterator[tuple[Place, Any]]:
    """Yield the nonzero entries of a difference with their positions."""
    rest = exact_value(left, at) - exact_value(right, at)
    if not isinstance(rest, ExactArray):
        rest = ExactArray((), [rest])
    return ((p, entry) for p, entry in zip(rest.places(), rest.flat, strict=True) if entry != 0)


def _vector(polynomial: Any) -> Vector:
    terms = (
        polynomial.numerator
        if isinstance(polynomial, coefficients.Scalar)
        else {coefficients.ONE: polynomial}
    )
    return {(_total(monomial), monomial): Fraction(value) for monomial, value in terms.items()}


def _total(monomial: coefficients.Monomial) -> int:
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


def _unknowns(name: str, shape: tuple[int, ...]) -> ExactArray:
    places = list(product(*map(range, shape)))
    spend(2 * len(places))
    return ExactArray(
        shape, [coefficients.generator(f"{name}~{','.join(map(str, place))}") for place in places]
    )


def _degree(e: Any) -> int | None:
    """Return a bound on the degree in entries and scalars; None if it is not a polynomial."""
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
