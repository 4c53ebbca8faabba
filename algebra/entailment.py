"""What follows from equations: claims written as sums of hypotheses in contexts.

A hypothesis L = R is a relation, a sum of diagrams that is zero, and so it is in every context. A
claim D = 0 follows when D = Σ coefficient · context[relation]. The search collects such instances,
first those that simplify (the largest diagram of the relation occurs), then all, then those that
insert an identity; exact linear algebra over the rationals finds the coefficients. The order of the
search can only cost completeness: what it finds is an equation that anybody can check.

Nothing is ever divided by what may vanish: an instance is multiplied by a monomial in the scalars,
never divided by one. Sizes are positive and may stand in denominators; so may what the claim itself
divides by, as it speaks of numbers at which both sides are defined. Denominators are cleared before
the search: the claim times all of its denominators is a sum of instances.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import sympy

from algebra import scalars
from algebra.canonical import canonical
from algebra.diagram import UNIT, Diagram
from algebra.dimensions import Dimensions, same_size
from algebra.language import matmul
from algebra.matching import Context, Pattern, insertions, matches
from algebra.scalars import Coefficient, Monomial, Number
from algebra.values import Terms, Value, difference

# How a relation is known: ("given", k) is hypothesis k, ("turned", k, j) and ("root", k) what it
# gives besides (`consequences`), ("axiom", name) an axiom, ("inverse", name, side) an equation of
# the inverse of that name.
Fact = tuple[Any, ...]
Key = tuple[int, Diagram, Monomial]  # ordered: diagrams with more boxes first
Vector = dict[Key, Number]

MAX_INSTANCES = 3_000
GROWTH = 6  # boxes that a diagram of the search may have beyond the largest of the claim


@dataclass(frozen=True, slots=True)
class Relation:
    """A sum of diagrams of one boundary that is zero by a fact, or by one pair of its blocks.

    `rows` and `cols` say where the marks of these blocks stand among the legs: 0 for each wire. The
    terms are those of the fact times `factor`, which clears denominators.
    """

    fact: Fact
    terms: tuple[tuple[Diagram, Coefficient], ...]
    rows: tuple[int, ...]
    cols: tuple[int, ...]
    factor: Coefficient = 1


@dataclass(frozen=True, slots=True)
class Use:
    """One term of a proof: coefficient/∏ divisors · context[fact], the context with its hole.

    The divisors are what the claim divides by.
    """

    relation: Relation
    coefficient: Coefficient
    context: Context
    divisors: tuple[Coefficient, ...] = ()

    @property
    def whole(self) -> Coefficient:
        """The coefficient with its divisors."""
        return prod((scalars.inverse(d) for d in self.divisors), start=self.coefficient)


def relations_of(fact: Fact, left: Value, right: Value) -> Iterator[Relation]:
    """Yield the relations that an equation states, one for each pair of blocks."""
    parts: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[Diagram, Coefficient]]] = {}
    for diagram, coefficient in difference(left.terms, right.terms).items():
        places = (_places(diagram.rows), _places(diagram.cols))
        bare = diagram._replace(rows=_wires(diagram.rows), cols=_wires(diagram.cols))
        parts.setdefault(places, []).append((bare, coefficient))
    for (rows, cols), terms in parts.items():
        yield Relation(fact, tuple(terms), rows, cols)


def consequences(
    number: int, left: sympy.Basic, right: sympy.Basic
) -> Iterator[tuple[Fact, Any, Any]]:
    """Yield what a hypothesis gives by facts that are not equational.

    Square M N = I gives N M = I (finite dimension). XᵀX = 0 gives X = 0 (the language is real).
    """
    for product, other in ((left, right), (right, left)):
        factors = _factors(product)
        if isinstance(other, sympy.Identity):
            for k in range(1, len(factors)):
                if same_size(factors[0].shape[0], factors[k].shape[0]):
                    yield ("turned", number, k), matmul(*factors[k:], *factors[:k]), other
        if isinstance(other, sympy.ZeroMatrix) and len(factors) == 2:
            x, y = factors
            if _transposes(x, y):
                whole = y if isinstance(x, sympy.Transpose) else x
                yield ("root", number), whole, sympy.ZeroMatrix(*whole.shape)


def _factors(e: Any) -> list[Any]:
    """Return the matrices of a product without scalars, flat; one expression is its own factor."""
    if isinstance(e, sympy.MatMul) and all(a.is_Matrix for a in e.args):
        return [factor for a in e.args for factor in _factors(a)]
    if isinstance(e, sympy.MatPow) and e.exp.is_Integer and e.exp > 0:
        return _factors(e.base) * int(e.exp)
    return [e]


def _transposes(x: Any, y: Any) -> bool:
    return (isinstance(x, sympy.Transpose) and x.args[0] == y) or (
        isinstance(y, sympy.Transpose) and y.args[0] == x
    )


def entail(
    claim: Terms,
    relations: Sequence[Relation],
    dimensions: Dimensions,
    sizes: Collection[str],
    deadline: float,
    simple: bool = False,
) -> tuple[Use, ...] | None:
    """Return uses of the relations whose sum is the claim, or None when none were found.

    `sizes` names the symbols that are sizes; `deadline` is a `time.thread_time()`; `simple` looks
    only where hypotheses simplify.
    """
    divisors = _denominators(claim.values(), sizes)
    nonzero = {name for d in divisors for name in scalars.names(d) if _is_monomial(d)}
    cleared = [_without_denominators(relation, sizes) for relation in relations]
    search = _Search(cleared, dimensions, sizes, nonzero | set(sizes), deadline)
    target = search.vector([(d, _cleared(c, divisors)) for d, c in claim.items()])
    for phase in (_LARGEST,) if simple else (_LARGEST, _ALL, _INSERT):
        found = search.run(target, phase)
        if found is not None:
            return tuple(replace(use, divisors=divisors) for use in found)
    return None


def _without_denominators(relation: Relation, sizes: Collection[str]) -> Relation:
    divisors = _denominators([c for _, c in relation.terms], sizes)
    if not divisors:
        return relation
    terms = tuple((d, _cleared(c, divisors)) for d, c in relation.terms)
    return replace(relation, terms=terms, factor=prod(divisors, start=1))


def _denominators(
    coefficients: Iterable[Coefficient], sizes: Collection[str]
) -> tuple[Coefficient, ...]:
    """Return sums and powers of scalars by all of which the coefficients can be cleared."""
    sums: list[Coefficient] = []
    powers: dict[str, scalars.Number] = {}
    for coefficient in coefficients:
        if not isinstance(coefficient, scalars.Scalar):
            continue
        if coefficient.denominator != {scalars.ONE: 1}:
            denominator = scalars.scalar(coefficient.denominator)
            if not any(denominator == known for known in sums):
                sums.append(denominator)
        for name, exponent in [leg for monomial in coefficient.numerator for leg in monomial]:
            if exponent < 0 and name not in sizes and not name.startswith("#"):
                powers[name] = min(powers.get(name, 0), exponent)
    return (*sums, *[scalars.scalar({((name, -e),): 1}) for name, e in powers.items()])


def _cleared(coefficient: Coefficient, divisors: Sequence[Coefficient]) -> Coefficient:
    """Return a coefficient times all of these, its own denominator among them."""
    if not divisors or not isinstance(coefficient, scalars.Scalar):
        return prod(divisors, start=coefficient)
    rest, own = list(divisors), coefficient
    if own.denominator != {scalars.ONE: 1}:
        denominator = scalars.scalar(own.denominator)
        rest.pop(next(k for k, known in enumerate(rest) if known == denominator))
    return prod(rest, start=scalars.scalar(own.numerator))


_LARGEST, _ALL, _INSERT = range(3)


@dataclass(frozen=True, slots=True)
class _Place:
    """One term of a relation, and how it is looked for: as a pattern, or else as an identity."""

    relation: Relation
    term: Diagram
    monomials: tuple[Monomial, ...]
    pattern: Pattern | None
    largest: bool  # among the terms of the relation


def _places_of(relation: Relation) -> list[_Place]:
    """Return the terms that a relation is found by."""
    most = max(len(d.boxes) for d, _ in relation.terms)
    names = {name for d, _ in relation.terms for name, _ in d.named}
    places = []
    for term, coefficient in relation.terms:
        bare = _has_bare_leg(term)
        # a term that does not fix an index of the hypothesis says nothing of where it is used
        if names <= {name for name, _ in term.named} and (bare or term.boxes):
            pattern = None if bare else Pattern.of(term)
            monomials = tuple(_polynomial(coefficient))
            places.append(_Place(relation, term, monomials, pattern, len(term.boxes) == most))
    return places


class _Search:
    def __init__(
        self,
        relations: Sequence[Relation],
        dimensions: Dimensions,
        sizes: Collection[str],
        nonzero: Collection[str],
        deadline: float,
    ) -> None:
        self.of_scalars = [r for r in relations if _is_of_scalars(r)]
        self.places = [p for r in relations if not _is_of_scalars(r) for p in _places_of(r)]
        self.dimensions = dimensions
        self.sizes = sizes
        self.nonzero = nonzero
        self.deadline = deadline
        self.pivots: dict[Key, tuple[Vector, dict[int, Number]]] = {}
        self.uses: list[Use] = []
        self.seen_uses: set[tuple[int, Diagram, Monomial]] = set()

    def vector(self, terms: Iterable[tuple[Diagram, Coefficient]]) -> Vector:
        """Return a sum of diagrams as a vector over (diagram, monomial)."""
        result: Vector = {}
        for diagram, coefficient in terms:
            for monomial, factor in _polynomial(coefficient).items():
                key = (len(diagram.boxes), diagram, monomial)
                total = result.get(key, 0) + factor
                if total:
                    result[key] = total
                else:
                    result.pop(key, None)
        return result

    def run(self, target: Vector, phase: int) -> tuple[Use, ...] | None:
        """Collect instances around the target, breadth first, until the target is their sum."""
        limit = max((key[0] for key in target), default=0) + GROWTH
        frontier, met = list(target), set(target)
        inserted = phase < _INSERT
        while frontier:
            grown: list[Key] = []
            for key in frontier:
                for relation, context, factor in self.instances(key, phase, inserted):
                    if time.thread_time() > self.deadline or len(self.uses) > MAX_INSTANCES:
                        return self.solve(target)
                    row = self.instance(relation, context, factor)
                    if row is None or max((k[0] for k in row), default=0) > limit:
                        continue
                    self.add(row, Use(relation, _coefficient(factor), context))
                    for other in row:
                        if other not in met:
                            met.add(other)
                            grown.append(other)
            solved = self.solve(target)
            if solved is not None:
                return solved
            inserted = True  # identities are inserted around the claim itself, once
            frontier = grown
        return None

    def instances(
        self, key: Key, phase: int, inserted: bool
    ) -> Iterator[tuple[Relation, Context, Monomial]]:
        """Yield the relations in contexts and monomials in which one of their terms is this key."""
        _, diagram, monomial = key
        for relation in self.of_scalars:
            yield from self.scalar_instances(key, relation)
        for place in self.places:
            if place.pattern is None:
                contexts = insertions(place.term, diagram) if not inserted else iter(())
            elif place.largest or phase != _LARGEST:
                contexts = matches(place.pattern, diagram)
            else:
                continue
            for context in contexts:
                for of_term in place.monomials:
                    factor = self.quotient(monomial, of_term)
                    if factor is not None:
                        yield place.relation, context, factor

    def scalar_instances(
        self, key: Key, relation: Relation
    ) -> Iterator[tuple[Relation, Context, Monomial]]:
        """Yield a relation of scalars beside the whole diagram, where its degree goes down."""
        _, diagram, monomial = key
        ((_, coefficient),) = relation.terms
        terms = _polynomial(coefficient)
        highest = max(map(self.degree, terms))
        for of_term in terms:
            factor = self.quotient(monomial, of_term)
            if highest > 0 and self.degree(of_term) == highest and factor is not None:
                yield relation, Context(diagram, (), (), ()), factor

    def degree(self, monomial: Monomial) -> Fraction:
        """Return the degree in what is not a size."""
        return sum(
            (Fraction(e) for name, e in monomial if name not in self.sizes), start=Fraction(0)
        )

    def quotient(self, monomial: Monomial, divisor: Monomial) -> Monomial | None:
        """Return monomial/divisor if only what is not zero is divided by, or roots of numbers."""
        exponents = dict(monomial)
        for name, exponent in divisor:
            exponents[name] = exponents.get(name, 0) - exponent
        for name, exponent in exponents.items():
            if exponent < 0 and not (name in self.nonzero or name.startswith("#")):
                return None
        return tuple(sorted((n, e) for n, e in exponents.items() if e))

    def instance(self, relation: Relation, context: Context, factor: Monomial) -> Vector | None:
        """Return factor · context[relation] as a vector, or None if it was made before."""
        mark = (id(relation), canonical(context.with_hole())[0], factor)
        if mark in self.seen_uses:
            return None
        self.seen_uses.add(mark)
        terms = []
        for filling, coefficient in relation.terms:
            form, loops = canonical(context.plug(filling))
            for sort in loops:
                coefficient = coefficient * self.dimensions.size(sort)
            terms.append((form, coefficient * _coefficient(factor)))
        return self.vector(terms)

    def add(self, row: Vector, use: Use) -> None:
        """Bring a new instance into the echelon form."""
        combination: dict[int, Number] = {len(self.uses): 1}
        self.uses.append(use)
        self.reduce(row, combination)
        if row:
            pivot = max(row)
            self.pivots[pivot] = _over(row, row[pivot]), _over(combination, row[pivot])

    def reduce(self, row: Vector, combination: dict[int, Number]) -> None:
        """Take multiples of the pivot rows off until no pivot is left in the row."""
        while True:
            pivot = max((key for key in row if key in self.pivots), default=None)
            if pivot is None:
                return
            factor = row[pivot]
            other, uses = self.pivots[pivot]
            _subtract(row, other, factor)
            _subtract(combination, uses, factor)

    def solve(self, target: Vector) -> tuple[Use, ...] | None:
        """Return the uses whose sum is the target, if it is in the span of the instances."""
        row = dict(target)
        combination: dict[int, Number] = {}
        self.reduce(row, combination)
        if row:
            return None
        found = []
        for index, factor in combination.items():
            use = self.uses[index]
            coefficient = use.coefficient * -factor * use.relation.factor
            found.append(Use(use.relation, coefficient, use.context))
        return tuple(found)


def _over(row: dict, scale: Number) -> dict:  # type: ignore[type-arg]
    """Return a row divided by a number; most are divided by ±1, and integers stay such."""
    if scale in (1, -1):
        return {key: value * scale for key, value in row.items()}
    return {key: Fraction(value) / scale for key, value in row.items()}


def _subtract(row: dict, other: dict, factor: Number) -> None:  # type: ignore[type-arg]
    for key, value in other.items():
        total = row.get(key, 0) - factor * value
        if total:
            row[key] = total
        else:
            row.pop(key, None)


def _polynomial(coefficient: Coefficient) -> dict[Monomial, Number]:
    if not isinstance(coefficient, scalars.Scalar):
        return {scalars.ONE: coefficient}
    assert coefficient.denominator == {scalars.ONE: 1}  # denominators were cleared
    return coefficient.numerator


def _is_monomial(coefficient: Coefficient) -> bool:
    return isinstance(coefficient, scalars.Scalar) and len(coefficient.numerator) == 1


def _coefficient(monomial: Monomial) -> Coefficient:
    return scalars.scalar({monomial: 1})


def _is_of_scalars(relation: Relation) -> bool:
    return [diagram for diagram, _ in relation.terms] == [UNIT]


def _has_bare_leg(diagram: Diagram) -> bool:
    """Return whether a leg touches no box: ones, or an identity."""
    touched = {wire for box in diagram.boxes for wire in box[1:]}
    return any(wire not in touched for wire in (*diagram.rows, *diagram.cols))


def _places(legs: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(min(leg, 0) for leg in legs)


def _wires(legs: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(leg for leg in legs if leg >= 0)
