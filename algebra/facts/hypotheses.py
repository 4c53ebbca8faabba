"""Hypotheses of `facts`: declared facts, and equations recognised by their form.

An equation is recognised if lhs - rhs equals, up to normal form, sign and transposition, that of a
known form for a subexpression: `1ᵀ Aᵀ = 1ᵀ` means that the rows of A sum to one. A free index in a
hypothesis is universally quantified, as in every statement of the language.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

import sympy
from sympy.logic.boolalg import BooleanFalse, BooleanTrue

from otimes.algebra.decide.decide import decision
from otimes.algebra.diagrams.dimensions import Clash
from otimes.algebra.diagrams.sums import difference
from otimes.algebra.errors import LanguageError, OtimesError, Undecided
from otimes.algebra.facts.fact import GIVEN, Fact
from otimes.algebra.facts.normalise import normalise, product, split, times, transposed
from otimes.algebra.language.binders import substituted
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, FamilyMember, HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.sizes import same_size
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.reading.read import read

BUDGET = 0.5  # work units for one comparison of normal forms
MOST_PARTS = 16  # subexpressions of an equation that are tried as its subject

NONLINEAR = (RowSoftmax, Activation, RMSNorm, LayerNorm)
MORE = (sympy.Pow, sympy.MatPow, sympy.BlockMatrix, sympy.Function, HeadSum, LayerProduct, OrderSum)
"""Where two normal forms may be different and the expressions equal."""
MIRRORED = {
    "lower_triangular": "upper_triangular",
    "orthonormal_columns": "orthonormal_rows",
    "row_stochastic": "column_stochastic",
    "rows_sum_to_one": "columns_sum_to_one",
    "rows_sum_to": "columns_sum_to",
}
MIRRORED |= {mirrored: name for name, mirrored in MIRRORED.items()}
PAIRED = ("commutes_with", "times_is_identity")


class Hypotheses:
    """The hypotheses of one call of `facts`, indexed by their subjects."""

    def __init__(self, given: Iterable[Any]) -> None:
        self.equations: list[tuple[Any, Any]] = []
        self.scalar_equations: list[tuple[Any, Any]] = []
        self.nonnegative_scalars: list[Any] = []
        self.traces: dict[Any, Any] = {}
        self.unused: list[Any] = []
        self._about: dict[Any, list[Fact]] = {}
        self._members: dict[str, list[Fact]] = {}
        for hypothesis in given:
            self._take(hypothesis)

    def expressions(self) -> list[Any]:
        """Return every expression in the hypotheses, for checking shapes and names."""
        found = [side for equation in self.equations for side in equation]
        facts = [f for table in (self._about, self._members) for fs in table.values() for f in fs]
        found += [f.subject for f in facts if not isinstance(f.subject, Family)]
        return found + [f.value for f in facts if f.name in PAIRED]

    def about(self, e: Any) -> Iterator[Fact]:
        """Yield the given facts about a normalised expression."""
        yield from self._about.get(e, ())
        if isinstance(e, FamilyMember):
            for fact in self._members.get(e.family.name, ()):
                binding = _match(fact.subject, e)
                if binding is not None:
                    value = None if fact.value is None else substituted(fact.value, binding)
                    yield replace(fact, subject=e, value=value)

    def pair(self, name: str, a: Any, b: Any) -> Fact | None:
        """Return the given fact that relates two normalised expressions, or None."""
        facts = (f for f in self.about(a) if f.name == name and f.value == b)
        return next(facts, None)

    def add(self, fact: Fact) -> None:
        """Store a fact, and the facts that it implies for the transpose and the second matrix."""
        if isinstance(fact.subject, Family):
            self._members.setdefault(fact.subject.name, []).append(fact)
            return
        subject = normalise(fact.subject)
        fact = replace(fact, subject=subject)
        if fact.name in PAIRED:
            self._add_pair(replace(fact, value=normalise(fact.value)))
            return
        self._put(fact)
        name, rule = MIRRORED.get(fact.name, fact.name), "the transpose of a hypothesis"
        self._put(Fact(name, transposed(subject), fact.value, rule, (fact,)))

    def _add_pair(self, fact: Fact) -> None:
        name, a, b = fact.name, fact.subject, fact.value
        a_t, b_t = transposed(a), transposed(b)
        self._put(fact)
        if name == "commutes_with":
            rule = "commuting matrices have commuting transposes"
            self._put(Fact(name, b, a, "commuting is symmetric", (fact,)))
            self._put(Fact(name, a_t, b_t, rule, (fact,)))
            self._put(Fact(name, b_t, a_t, rule, (fact,)))
            return
        self._put(Fact(name, b_t, a_t, "the transpose of an identity", (fact,)))
        if same_size(*a.shape):
            rule = "a one-sided inverse of a square matrix is its inverse"
            back = Fact(name, b, a, rule, (fact,))
            self._put(back)
            self._put(Fact(name, a_t, b_t, "the transpose of an identity", (back,)))
            self._put(Fact("invertible", a, None, rule, (fact,)))
            self._put(Fact("invertible", b, None, rule, (fact,)))

    def _put(self, fact: Fact) -> None:
        if isinstance(fact.subject, FamilyMember):
            self._members.setdefault(fact.subject.family.name, []).append(fact)
        else:
            self._about.setdefault(fact.subject, []).append(fact)

    def _take(self, hypothesis: Any) -> None:
        if isinstance(hypothesis, Fact):
            if hasattr(hypothesis.subject, "shape"):
                self.add(hypothesis)
            else:
                self.nonnegative_scalars.append(hypothesis.subject)
            return
        if isinstance(hypothesis, BooleanTrue | bool) and hypothesis:
            return  # SymPy evaluates an equation with identical sides to True
        if isinstance(hypothesis, BooleanFalse | bool):
            raise OtimesError("a hypothesis is false: SymPy evaluates its sides as unequal")
        lhs, rhs = _sides(hypothesis)
        if not getattr(lhs, "is_Matrix", False):
            self.scalar_equations.append((lhs, rhs))
            for left, right in ((lhs, rhs), (rhs, lhs)):
                if isinstance(left, sympy.Trace) and not right.has(sympy.Trace):
                    self.traces[normalise(left.args[0])] = right
            return
        self.equations.append((lhs, rhs))

    def recognise(self) -> None:
        """Recognise the equations as facts; list the others in `unused`."""
        for lhs, rhs in self.equations:
            facts = recognise(lhs, rhs)
            for fact in facts:
                self.add(fact)
            if not facts:
                self.unused.append((lhs, rhs))


def _sides(hypothesis: Any) -> tuple[Any, Any]:
    if isinstance(hypothesis, sympy.Equality):
        return hypothesis.lhs, hypothesis.rhs
    if isinstance(hypothesis, tuple | list) and len(hypothesis) == 2:
        lhs, rhs = (sympy.sympify(side) for side in hypothesis)
        return lhs, rhs
    raise LanguageError(
        f"the hypothesis {hypothesis!r:.60} is neither a Fact, nor a pair (lhs, rhs), nor sympy.Eq"
    )


def _match(pattern: Any, member: FamilyMember) -> dict[Any, Any] | None:
    """Return the values of a pattern's free indices that give this member, or None."""
    if isinstance(pattern, Family):
        return {} if pattern == member.family else None
    if pattern.family != member.family:
        return None
    binding: dict[Any, Any] = {}
    for index, here in zip(pattern.indices, member.indices, strict=True):
        free = isinstance(index, sympy.Symbol)
        if (binding.setdefault(index, here) if free else index) != here:
            return None
    return binding


# -- the forms of equations ----------------------------------------------------------------------


@lru_cache(maxsize=1000)
def recognise(lhs: Any, rhs: Any) -> tuple[Fact, ...]:
    """Return the facts about subexpressions that a matrix equation states."""
    left, right = normalise(lhs), normalise(rhs)
    rule = f"{GIVEN}, {unicode_text(lhs)} = {unicode_text(rhs)}"
    found: dict[tuple[str, Any], Fact] = {}
    for x, y in ((left, right), (transposed(left), transposed(right))):
        for fact, l_form, r_form in _forms(x, y, rule):
            key = (fact.name, fact.subject)
            if key not in found and _same_equation(x, y, l_form, r_form):
                found[key] = fact
    return tuple(found.values())


def _forms(x: Any, y: Any, rule: str) -> Iterator[tuple[Fact, Any, Any]]:
    """Yield (fact, lhs, rhs) for the known forms: `lhs = rhs` states the fact."""
    rows, cols = x.shape
    for s in _parts(x, y):
        p, q = s.shape
        if same_size(p, rows):
            for value in _multiples_of_ones(x, y):
                left = matmul(s, sympy.OneMatrix(q, cols))
                right = product(value, (sympy.OneMatrix(p, cols),))
                yield Fact("rows_sum_to", s, value, rule), left, right
        if same_size(p, rows) and same_size(q, cols):
            yield Fact("zero", s, None, rule), s, sympy.ZeroMatrix(p, q)
            square = sympy.HadamardProduct(s, s, evaluate=False)
            yield Fact("nonnegative", s, None, rule), square, s  # the entries are 0 or 1
            if same_size(p, q):
                yield Fact("symmetric", s, None, rule), transposed(s), s
                yield Fact("antisymmetric", s, None, rule), transposed(s), times(-1, s)
                yield Fact("projection", s, None, rule), matmul(s, s), s
                yield Fact("identity", s, None, rule), s, sympy.Identity(p)
        if same_size(q, rows) and same_size(q, cols):
            gram = matmul(transposed(s), s)  # whose diagonal has sums of squares
            yield Fact("orthonormal_columns", s, None, rule), gram, sympy.Identity(q)
            yield Fact("zero", s, None, rule), gram, sympy.ZeroMatrix(q, q)
    for a, b in _cuts(x, y):
        if same_size(a.shape[0], b.shape[1]):
            ab = normalise(matmul(a, b))
            yield Fact("times_is_identity", a, b, rule), ab, sympy.Identity(a.shape[0])
            if same_size(*a.shape):
                yield Fact("commutes_with", a, b, rule), ab, normalise(matmul(b, a))


def _parts(x: Any, y: Any) -> list[Any]:
    """Return the subexpressions that an equation may be about, and their transposes."""
    found: list[Any] = []
    for part in chain(sympy.preorder_traversal(x), sympy.preorder_traversal(y)):
        if not getattr(part, "is_Matrix", False) or isinstance(part, _CONSTANT):
            continue
        _, factors = split(part)
        for s in (product(sympy.S.One, factors), product(sympy.S.One, factors[:-1] or factors)):
            if not isinstance(s, _CONSTANT):
                found += [s, transposed(s)]
    plain_first = sorted(dict.fromkeys(found), key=lambda s: isinstance(s, sympy.Transpose))
    return plain_first[:MOST_PARTS]


_CONSTANT = (sympy.Identity, sympy.OneMatrix, sympy.ZeroMatrix)


def _cuts(x: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every split in two of a product that is a side or a term of a side."""
    for term in _terms(x, y):
        power = isinstance(term, sympy.MatPow) and term.exp == 2
        factors = (term.base, term.base) if power else split(term)[1]
        for k in range(1, len(factors)):
            yield product(sympy.S.One, factors[:k]), product(sympy.S.One, factors[k:])


def _terms(*sides: Any) -> list[Any]:
    """Return the terms of both sides of an equation."""
    return [term for side in sides for term in sympy.MatAdd.make_args(side)]


def _multiples_of_ones(x: Any, y: Any) -> list[Any]:
    values = [sympy.S.One, sympy.S.Zero]
    for term in _terms(x, y):
        scalar, factors = split(term)
        if len(factors) == 1 and isinstance(factors[0], sympy.OneMatrix):
            values += [scalar, -scalar]
    return list(dict.fromkeys(values))


def _same_equation(a: Any, b: Any, c: Any, d: Any) -> bool:
    """Return whether a - b = ±(c - d), so that a = b and c = d are equivalent."""
    if {a, b} == {c, d}:
        return True
    rest = matadd(a, times(-1, b))
    return any(equal(rest, matadd(x, times(-1, y))) for x, y in ((c, d), (d, c)))


@lru_cache(maxsize=20_000)
def equal(x: Any, y: Any) -> bool:
    """Return whether two expressions are proved equal, by their normal forms where these decide."""
    try:
        with suppress(Clash):
            if _by_normal_forms(x, y):
                _, [(left, right)] = read(inspect(x, y), [x, y])
                return not difference(left.terms, right.terms)
        return decision(x, y, budget=BUDGET).status == "proved"
    except (LanguageError, Undecided):  # not recognised
        return False


def _by_normal_forms(x: Any, y: Any) -> bool:
    """Return whether normal forms alone are compared.

    They are for functions, whose axioms take long to search, and where they are complete: sums of
    products of matrices whose sizes are symbols.
    """
    if x.has(*NONLINEAR) or y.has(*NONLINEAR):
        return True
    return not any(e.has(*MORE) or any(k > 1 for k in e.atoms(sympy.Integer)) for e in (x, y))
