"""Proofs from equations: claims written as sums of hypotheses in contexts.

A hypothesis L = R is a relation: a sum of diagrams that is zero, also in every context. A claim D =
0 follows when D = Σ coefficient · context[relation]. The search collects such instances, first
those that simplify (the largest diagram of the relation occurs), then all, then those that insert
an identity; exact linear algebra over the rationals finds the coefficients. The order of the search
affects only completeness: the equation that it finds can be checked.

There is no division by expressions that may vanish: an instance is multiplied by a monomial in the
scalars, never divided by one. Denominators may contain sizes, which are positive, scalars that are
known to be nonzero, and the claim's own denominators, as the claim is about values at which both
sides are defined. Denominators are cleared before the search: the claim times all of its
denominators, and times sums that are known to be nonzero, is a sum of instances.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

import sympy

from otimes.algebra.budget import Exhausted, limited, spend, steps_left
from otimes.algebra.diagrams.canonical import canonical
from otimes.algebra.diagrams.diagram import DEAD, UNIT, Diagram
from otimes.algebra.diagrams.dimensions import Dimensions
from otimes.algebra.diagrams.matching import Context, Pattern, beside, insertions, matches
from otimes.algebra.diagrams.sums import DiagramSum, Terms, difference
from otimes.algebra.errors import Undecided
from otimes.algebra.evaluate.echelon import Echelon
from otimes.algebra.language import coefficients
from otimes.algebra.language.assumptions import NONE, Assumptions
from otimes.algebra.language.coefficients import Coefficient, Monomial
from otimes.algebra.language.linear import matmul
from otimes.algebra.language.roots import Number
from otimes.algebra.language.sizes import same_size
from otimes.algebra.reading.interpretation import contradicts

# How a relation is known: ("given", k) is hypothesis k, ("shifted", k, ...) the same at other
# indices, ("last", k, index, ...) at the last layer, ("turned", k, j) and ("root", k) what it gives
# besides (`consequences`), ("axiom", name) an axiom, ("inverse", name, side) an equation of the
# inverse of that name.
Fact = tuple[Any, ...]
Key = tuple[int, Diagram, Monomial]  # ordered: diagrams with more boxes first
Vector = dict[Key, Number]

MAX_INSTANCES = 3_000
COLLECTING = 0.75  # of the budget at most, so that there is some left to solve
FIRST_INSTANCES = 100
MAX_SUMS = 4  # of scalars, by which a claim is multiplied
OF_RECIPROCALS = ("reciprocal_cancel", "rsqrt_sqrt", "exp_reflected", "circle")  # products are 1
GROWTH = 6  # boxes, or factors of scalars, that the search may have beyond the largest of the claim


@dataclass(frozen=True, slots=True)
class Relation:
    """A sum of diagrams that is zero by an equation, the fact, or by one pair of its blocks.

    `rows` and `cols` have the marks of these blocks among the legs, and 0 for each wire. For a leg
    along which all terms are constant they have 1 + its sort, and the terms have no such leg. The
    terms are those of the fact times `factor`, which clears denominators.
    """

    fact: Fact
    terms: tuple[tuple[Diagram, Coefficient], ...]
    rows: tuple[int, ...]
    cols: tuple[int, ...]
    factor: Coefficient = 1


@dataclass(frozen=True, slots=True)
class Use:
    """One term of a proof: coefficient/∏ divisors · context[fact].

    The divisors are the denominators of the claim.
    """

    relation: Relation
    coefficient: Coefficient
    context: Context
    divisors: tuple[Coefficient, ...] = ()

    @property
    def whole(self) -> Coefficient:
        """The coefficient divided by the divisors."""
        return prod((coefficients.inverse(d) for d in self.divisors), start=self.coefficient)


def relations_of(fact: Fact, left: DiagramSum, right: DiagramSum) -> Iterator[Relation]:
    """Yield the relations that an equation states, one for each pair of blocks."""
    parts: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[Diagram, Coefficient]]] = {}
    for diagram, coefficient in difference(left.terms, right.terms).items():
        places = (_places(diagram.rows), _places(diagram.cols))
        bare = diagram._replace(rows=_wires(diagram.rows), cols=_wires(diagram.cols))
        parts.setdefault(places, []).append((bare, coefficient))
    for (rows, cols), terms in parts.items():
        yield _without_loose_legs(Relation(fact, tuple(terms), rows, cols))


def _without_loose_legs(relation: Relation) -> Relation:
    """Return a relation without the legs along which all its terms are constant.

    P 1 1ᵀ = 1 1ᵀ says P 1 = 1. As it is it could not be matched: such a leg is at any wire.
    """
    rows, cols = relation.rows, relation.cols
    terms = relation.terms
    for side in ("rows", "cols"):
        for number in reversed(range(len(getattr(terms[0][0], side)))):
            if all(_is_loose(d, side, number) for d, _ in terms):
                first = terms[0][0]
                sort = first.sorts[getattr(first, side)[number]]
                if side == "rows":
                    rows = _marked(rows, number, 1 + sort)
                else:
                    cols = _marked(cols, number, 1 + sort)
                terms = tuple([(_without_leg(d, side, number), c) for d, c in terms])
    return replace(relation, terms=terms, rows=rows, cols=cols)


def _is_loose(d: Diagram, side: str, number: int) -> bool:
    """Return whether a leg is a wire by itself."""
    wire = getattr(d, side)[number]
    ends = [*d.rows, *d.cols, *[w for _, w in d.named], *[w for box in d.boxes for w in box[1:]]]
    return ends.count(wire) == 1


def _without_leg(d: Diagram, side: str, number: int) -> Diagram:
    legs = getattr(d, side)
    sorts = tuple([DEAD if w == legs[number] else sort for w, sort in enumerate(d.sorts)])
    kept = legs[:number] + legs[number + 1 :]
    bare = d._replace(sorts=sorts, **{side: kept})
    return canonical(bare)[0]


def _marked(places: tuple[int, ...], number: int, mark: int) -> tuple[int, ...]:
    """Return the legs with a mark at the wire of this number."""
    wires = [k for k, place in enumerate(places) if place == 0]
    return (*places[: wires[number]], mark, *places[wires[number] + 1 :])


def consequences(
    number: int, left: sympy.Basic, right: sympy.Basic
) -> Iterator[tuple[Fact, Any, Any]]:
    """Yield those consequences of a hypothesis that are no sums of its instances.

    Square M N = I gives N M = I (finite dimension). XᵀX = 0 gives X = 0 (the language is real).
    """
    for product, other in ((left, right), (right, left)):
        factors = factors_of(product)
        if isinstance(other, sympy.Identity):
            for k in range(1, len(factors)):
                if same_size(factors[0].shape[0], factors[k].shape[0]):
                    yield ("turned", number, k), matmul(*factors[k:], *factors[:k]), other
        if isinstance(other, sympy.ZeroMatrix) and len(factors) == 2:
            x, y = factors
            if _transposes(x, y):
                whole = y if isinstance(x, sympy.Transpose) else x
                yield ("root", number), whole, sympy.ZeroMatrix(*whole.shape)


def factors_of(e: Any) -> list[Any]:
    """Return the matrix factors of a flattened product; another expression is its only factor."""
    if isinstance(e, sympy.MatMul) and all(a.is_Matrix for a in e.args):
        return [factor for a in e.args for factor in factors_of(a)]
    if isinstance(e, sympy.MatPow) and e.exp.is_Integer and e.exp > 0:
        return factors_of(e.base) * int(e.exp)
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
    simple: bool = False,
    assumed: Assumptions = NONE,
) -> tuple[Use, ...] | None:
    """Return uses of the relations whose sum is the claim, or None if none were found.

    `sizes` names the size symbols; `simple` restricts the search to simplifying instances.
    `assumed` determines the nonzero divisors. The search ends with the active budget.
    """
    try:
        return _entailed(claim, relations, dimensions, sizes, simple, assumed)
    except (Exhausted, Undecided):  # or a diagram is too symmetric to be labelled
        return None


def _entailed(
    claim: Terms,
    relations: Sequence[Relation],
    dimensions: Dimensions,
    sizes: Collection[str],
    simple: bool,
    assumed: Assumptions,
) -> tuple[Use, ...] | None:
    divisors = _denominators(claim.values(), sizes)
    nonzero = {name for d in divisors for name in coefficients.names(d) if _is_monomial(d)}
    nonzero |= assumed.named("nonzero") | set(sizes)
    cleared = [_without_denominators(relation, sizes) for relation in relations]
    units = [relation for relation in cleared if _is_unit(relation)]
    target = {d: _cleared(c, divisors) for d, c in claim.items()}
    multiples = list(_multiples(target, cleared, bool(units), assumed))
    # dividing by what is not zero can go on for ever, so each is tried for a short while first
    for limit in (FIRST_INSTANCES, MAX_INSTANCES) if len(multiples) > 1 else (MAX_INSTANCES,):
        for factors, by_units in multiples:
            search = _Search(cleared, dimensions, sizes, nonzero, limit)
            times = {d: prod(factors, start=c) for d, c in target.items()}
            found = _found(search, times, units if by_units else [], simple)
            if found is not None:
                return tuple(replace(use, divisors=(*divisors, *factors)) for use in found)
    return None


def _multiples(
    target: Terms, relations: Sequence[Relation], units: bool, assumed: Assumptions
) -> Iterator[tuple[tuple[Coefficient, ...], bool]]:
    """Yield factors of the claim for the search, and whether units are used as factors as well.

    First none, then sums that are certainly nonzero: each by itself, and all together.
    """
    yield (), False
    if units:
        yield (), True
    values = [c for relation in relations for _, c in relation.terms]
    names = set().union(*map(coefficients.names, (*values, *target.values())))
    sums = assumed.divisors([_polynomial(c) for c in values], names)
    factors = [coefficients.scalar(polynomial) for polynomial in sums[:MAX_SUMS]]
    for factor in factors:
        yield (factor,), False
    if len(factors) > 1:
        yield tuple(factors), False


def _found(
    search: _Search, target: Terms, units: Sequence[Relation], simple: bool
) -> tuple[Use, ...] | None:
    """Return uses whose sum is the target, found for its product with some units.

    If a hypothesis is α β = 1, a sum T equals α β T - (α β - 1) T, so α β T is searched for.
    """
    uses: list[Use] = []
    scale: Number = 1
    for relation in units:
        constant, monomial, factor = _unit(relation)
        for diagram, coefficient in target.items():
            coefficient = coefficient * (scale / constant) * relation.factor
            uses.append(Use(relation, coefficient, Context(diagram, (), (), ())))
        scale = scale * -factor / constant
        target = {d: c * coefficients.scalar({monomial: 1}) for d, c in target.items()}
    vector = search.vector(target.items())
    for phase in (_LARGEST,) if simple else (_LARGEST, _ALL, _INSERT):
        found = search.run(vector, phase)
        if found is not None:
            scaled = [replace(use, coefficient=use.coefficient * scale) for use in found]
            return (*uses, *scaled)
    return None


def _unit(relation: Relation) -> tuple[Fraction, Monomial, Number]:
    """Return c, m and f of a relation of scalars c + f m = 0, which implies that m is nonzero."""
    ((_, coefficient),) = relation.terms
    polynomial = dict(_polynomial(coefficient))
    constant = Fraction(polynomial.pop(coefficients.ONE))
    ((monomial, factor),) = polynomial.items()
    return constant, monomial, factor


def _is_unit(relation: Relation) -> bool:
    if not _is_of_scalars(relation):
        return False
    polynomial = _polynomial(relation.terms[0][1])
    return len(polynomial) == 2 and coefficients.ONE in polynomial


def _without_denominators(relation: Relation, sizes: Collection[str]) -> Relation:
    divisors = _denominators([c for _, c in relation.terms], sizes)
    if not divisors:
        return relation
    terms = tuple((d, _cleared(c, divisors)) for d, c in relation.terms)
    return replace(relation, terms=terms, factor=prod(divisors, start=1))


def _denominators(values: Iterable[Coefficient], sizes: Collection[str]) -> tuple[Coefficient, ...]:
    """Return sums and powers of scalars whose product clears the denominators of the values."""
    sums: list[Coefficient] = []
    powers: dict[str, Number] = {}
    for coefficient in values:
        if not isinstance(coefficient, coefficients.Scalar):
            continue
        if coefficient.denominator != {coefficients.ONE: 1}:
            denominator = coefficients.scalar(coefficient.denominator)
            if not any(denominator == known for known in sums):
                sums.append(denominator)
        for name, exponent in [leg for monomial in coefficient.numerator for leg in monomial]:
            if exponent < 0 and name not in sizes and not name.startswith("#"):
                powers[name] = min(powers.get(name, 0), exponent)
    return (*sums, *[coefficients.scalar({((name, -e),): 1}) for name, e in powers.items()])


def _cleared(coefficient: Coefficient, divisors: Sequence[Coefficient]) -> Coefficient:
    """Return a coefficient times all divisors, which include its own denominator."""
    if not divisors or not isinstance(coefficient, coefficients.Scalar):
        return prod(divisors, start=coefficient)
    rest, own = list(divisors), coefficient
    if own.denominator != {coefficients.ONE: 1}:
        denominator = coefficients.scalar(own.denominator)
        rest.pop(next(k for k, known in enumerate(rest) if known == denominator))
    return prod(rest, start=coefficients.scalar(own.numerator))


_LARGEST, _ALL, _INSERT = range(3)


@dataclass(frozen=True, slots=True)
class _Place:
    """One term of a relation, and how it is matched: as a pattern, or else as an identity."""

    relation: Relation
    term: Diagram
    monomials: tuple[Monomial, ...]
    pattern: Pattern | None
    largest: bool  # among the terms of the relation


def _inserted(place: _Place, diagram: Diagram) -> Iterator[Context]:
    if _is_of_reciprocals(place.relation, place.term):
        return beside(place.term, diagram)
    return insertions(place.term, diagram)


def _is_of_reciprocals(relation: Relation, term: Diagram) -> bool:
    """Return whether an equation says that a product is 1, so that a factor 1 is this product."""
    fact = relation.fact
    if fact[0] == "inverse":
        return term == UNIT
    return fact[0] == "axiom" and fact[1] in OF_RECIPROCALS


def _places_of(relation: Relation) -> list[_Place]:
    """Return the terms by which instances of a relation are found."""
    most = max(len(d.boxes) for d, _ in relation.terms)
    names = {name for d, _ in relation.terms for name, _ in d.named if "@" not in name}
    places = []
    for term, coefficient in relation.terms:
        one = term == UNIT and _is_of_reciprocals(relation, term)
        bare = one or _has_bare_leg(term)
        # a term that does not fix an index of the hypothesis says nothing of where it is used
        if names <= {name for name, _ in term.named} and (bare or term.boxes):
            pattern = None if bare else Pattern.of(term)
            monomials = tuple(_polynomial(coefficient))
            places.append(_Place(relation, term, monomials, pattern, len(term.boxes) == most))
    return places


_Instance = tuple[Relation, Context, Monomial]


class _Search:
    def __init__(
        self,
        relations: Sequence[Relation],
        dimensions: Dimensions,
        sizes: Collection[str],
        nonzero: Collection[str],
        limit: int,
    ) -> None:
        self.of_scalars = [r for r in relations if _is_of_scalars(r)]
        self.places = [p for r in relations if not _is_of_scalars(r) for p in _places_of(r)]
        self.dimensions = dimensions
        self.sizes = sizes
        self.nonzero = nonzero
        self.limit = limit  # of instances
        polynomials = [_polynomial(c) for relation in relations for _, c in relation.terms]
        self.powers = max((_powers(m) for p in polynomials for m in p), default=0)
        self.echelon = Echelon(cost=32)
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
        powers = max((_powers(key[2]) for key in target), default=0) + self.powers + GROWTH
        frontier, met = list(target), set(target)
        most = len(self.uses) + self.limit
        inserted = phase < _INSERT
        while frontier:
            grown: list[Key] = []
            try:
                with limited(COLLECTING * steps_left()):
                    for key in frontier:
                        for instance in self.instances(key, phase, inserted):
                            if len(self.uses) > most:
                                return self.solve(target)
                            self.collect(instance, limit, powers, met, grown)
            except Exhausted:
                return self.solve(target)
            solved = self.solve(target)
            if solved is not None:
                return solved
            inserted = True  # identities are inserted around the claim itself, once
            frontier = grown
        return None

    def collect(
        self, instance: _Instance, limit: int, powers: Number, met: set[Key], grown: list[Key]
    ) -> None:
        """Add an instance unless it is too large, and its new terms to `grown`."""
        relation, context, factor = instance
        row = self.instance(relation, context, factor)
        if row is None or max((k[0] for k in row), default=0) > limit:
            return
        if max((_powers(k[2]) for k in row), default=0) > powers:
            return
        self.echelon.add(row, {len(self.uses): 1})
        self.uses.append(Use(relation, _coefficient(factor), context))
        for other in row:
            if other not in met:
                met.add(other)
                grown.append(other)

    def instances(self, key: Key, phase: int, inserted: bool) -> Iterator[_Instance]:
        """Yield the instances of relations that contain this (diagram, monomial) as a term."""
        _, diagram, monomial = key
        spend(1 + len(self.places))
        for relation in self.of_scalars:
            yield from self.scalar_instances(key, relation)
        for place in self.places:
            if place.pattern is None:
                contexts = _inserted(place, diagram) if not inserted else iter(())
            elif place.largest or phase != _LARGEST:
                contexts = matches(place.pattern, diagram)
            else:
                continue
            for context in contexts:
                if place.relation.fact[0] == "last" and not _at_last(place.relation, context):
                    continue
                for of_term in place.monomials:
                    factor = self.quotient(monomial, of_term)
                    if factor is not None:
                        yield place.relation, context, factor

    def scalar_instances(self, key: Key, relation: Relation) -> Iterator[_Instance]:
        """Yield a relation of scalars times the whole diagram, if that decreases the degree."""
        _, diagram, monomial = key
        ((_, coefficient),) = relation.terms
        terms = _polynomial(coefficient)
        highest = max(map(self.degree, terms))
        for of_term in terms:
            factor = self.quotient(monomial, of_term)
            if highest > 0 and self.degree(of_term) == highest and factor is not None:
                yield relation, Context(diagram, (), (), ()), factor

    def degree(self, monomial: Monomial) -> Fraction:
        """Return the degree in the symbols other than sizes."""
        return sum(
            (Fraction(e) for name, e in monomial if name not in self.sizes), start=Fraction(0)
        )

    def quotient(self, monomial: Monomial, divisor: Monomial) -> Monomial | None:
        """Return monomial/divisor if the remaining denominator is nonzero, else None."""
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
            spend(5 + 2 * (len(context.diagram.boxes) + len(filling.boxes)))
            plugged = context.plug(filling)
            if plugged.named and contradicts(plugged):
                continue
            form, loops = canonical(plugged)
            for sort in loops:
                coefficient = coefficient * self.dimensions.size(sort)
            terms.append((form, coefficient * _coefficient(factor)))
        return self.vector(terms)

    def solve(self, target: Vector) -> tuple[Use, ...] | None:
        """Return the uses whose sum is the target, if it is in the span of the instances."""
        row = dict(target)
        combination: dict[int, Number] = {}
        self.echelon.reduce(row, combination)
        if row:
            return None
        found = []
        for index, factor in combination.items():
            use = self.uses[index]
            coefficient = use.coefficient * -factor * use.relation.factor
            found.append(Use(use.relation, coefficient, use.context))
        return tuple(found)


def _at_last(relation: Relation, context: Context) -> bool:
    """Return whether a fact about the last layer is used there: it is no free index."""
    last = relation.fact[2]
    return all(name != last or (last, w) in context.diagram.named for name, w in context.named)


def _polynomial(coefficient: Coefficient) -> dict[Monomial, Number]:
    if not isinstance(coefficient, coefficients.Scalar):
        return {coefficients.ONE: coefficient}
    assert coefficient.denominator == {coefficients.ONE: 1}  # denominators were cleared
    return coefficient.numerator


def _is_monomial(coefficient: Coefficient) -> bool:
    return isinstance(coefficient, coefficients.Scalar) and len(coefficient.numerator) == 1


def _coefficient(monomial: Monomial) -> Coefficient:
    return coefficients.scalar({monomial: 1})


def _powers(monomial: Monomial) -> Number:
    """Return the number of factors of a monomial, including those in its denominator."""
    total: Number = 0
    for _, exponent in monomial:
        total += exponent if exponent > 0 else -exponent
    return total


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
