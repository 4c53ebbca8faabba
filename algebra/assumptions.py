"""What is known of scalars besides equations: what their symbols declare, and inequalities.

SymPy's symbols carry assumptions, and a hypothesis may be an inequality such as `Ne(a*b, 1)` or
`a > 0`. Both decide what may be divided by, which roots may be taken apart, and at which numbers a
claim is refuted, so both are collected here once. What cannot be honoured is refused, never
dropped: a claim about prime or complex numbers is another claim when these words are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import sympy
from sympy.core.facts import InconsistentAssumptions
from sympy.core.relational import Relational

from algebra import scalars
from algebra.errors import LanguageError
from algebra.language import key
from algebra.scalars import Monomial, Polynomial
from algebra.text import short_text

Kind = Literal["nonzero", "positive", "nonnegative"]
Flags = frozenset[str]
Terms = tuple[tuple[Monomial, scalars.Number], ...]

# `rational` and `algebraic` hold wherever something is refuted, and no proof uses them.
HONOURED = (
    *("positive", "negative", "nonnegative", "nonpositive", "nonzero", "integer", "even", "odd"),
    *("real", "rational", "algebraic"),
)
PARITY: Flags = frozenset({"even", "odd"})
LONGEST_FACTORED = 40  # terms of a sum of scalars
NOTHING: Flags = frozenset()
POSITIVE: Flags = frozenset({"positive", "nonnegative", "nonzero"})
NEGATIVE: Flags = frozenset({"negative", "nonpositive", "nonzero"})


@dataclass(frozen=True, slots=True)
class Condition:
    """An inequality that holds by hypothesis: `expression` is nonzero, positive or nonnegative.

    `names` are those of the symbols in it.
    """

    kind: Kind
    expression: sympy.Expr
    names: Flags


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is known of the numbers in a claim, as plain data.

    `signs` are the flags that symbols declare, by name, sizes only with their parity; `conditions`
    the inequalities among the hypotheses. `known` adds to `signs` what single inequalities say of
    one symbol (a > 1 gives that a is positive, a b ≠ 0 that both are nonzero) and the signs of
    sizes, which are positive.
    """

    signs: Mapping[str, Flags] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    known: Mapping[str, Flags] = field(default_factory=dict)

    @property
    def nonzero(self) -> list[sympy.Expr]:
        """The expressions that a hypothesis says are not zero."""
        return self._of_kind("nonzero")

    @property
    def positive(self) -> list[sympy.Expr]:
        """The expressions that a hypothesis says are positive."""
        return self._of_kind("positive")

    @property
    def nonnegative(self) -> list[sympy.Expr]:
        """The expressions that a hypothesis says are not negative."""
        return self._of_kind("nonnegative")

    def _of_kind(self, kind: Kind) -> list[sympy.Expr]:
        return [each.expression for each in self.conditions if each.kind == kind]

    def named(self, flag: str) -> set[str]:
        """Return the names of the symbols, sizes among them, that are known to be so."""
        return {name for name, flags in self.known.items() if flag in flags}

    def under(self, conditions: Sequence[Condition], roots: Iterable[str]) -> Assumptions:
        """Return these assumptions with the inequalities of hypotheses.

        `roots` names the symbols under a root. Raises LanguageError where one of them is negative.
        """
        if not conditions:
            return self
        known = dict(self.known)
        for each in conditions:
            for name, flags in _said_of_symbols(each).items():
                known[name] = _closed(known.get(name, NOTHING) | flags)
        refuse_negative_roots(known, roots)
        return replace(self, conditions=tuple(conditions), known=known)

    def sign(self, polynomial: Polynomial) -> int:
        """Return 1 or -1 for a polynomial that is certainly positive or negative, else 0.

        So it is when all its terms have one sign, and one of them is not zero.
        """
        signs = [self._sign_of_term(monomial, factor) for monomial, factor in polynomial.items()]
        one = {sign for sign, _ in signs}
        return one.pop() if len(one) == 1 and any(strict for _, strict in signs) else 0

    def _sign_of_term(self, monomial: Monomial, factor: scalars.Number) -> tuple[int, bool]:
        """Return the sign of a term, 0 if it is open, and whether the term is certainly not 0."""
        sign, strict = (1 if factor > 0 else -1), True
        for name, exponent in monomial:
            flags = POSITIVE if name.startswith("#") else self.known.get(name, NOTHING)
            strict = strict and "nonzero" in flags
            if Fraction(exponent).denominator > 1 or exponent % 2 == 0:
                continue  # a root that is defined is not negative, and an even power neither
            if "nonpositive" in flags:
                sign = -sign
            elif "nonnegative" not in flags:
                sign = 0
        return sign, strict

    def divisors(self, coefficients: Iterable[Polynomial], names: set[str]) -> list[Polynomial]:
        """Return sums that are certainly not zero: stated ones in these names, and of these.

        Factors of coefficients are among them, as in (1 + a²) b with b of no known sign.
        """
        stated = [_cleared(each) for each in self.conditions if each.kind != "nonnegative"]
        factors = [factor for each in coefficients for factor in _factors(each)]
        found: list[Polynomial] = []
        for polynomial in (*stated, *[factor for factor in factors if self.sign(factor)]):
            mine = {name for monomial in polynomial for name, _ in monomial}
            known = all(name in names or name.startswith("#") for name in mine)
            if len(polynomial) > 1 and known:
                found += [polynomial] * (not any(_proportional(polynomial, p) for p in found))
        return found


NONE = Assumptions()
FALSE = "a hypothesis is false whatever its symbols are, so that everything would follow: remove it"


def declared(
    numbers: Mapping[str, sympy.Symbol], sizes: Mapping[str, sympy.Symbol], roots: Iterable[str]
) -> Assumptions:
    """Return what the symbols of scalars and of sizes declare, by name.

    Raises LanguageError for what cannot be honoured.
    """
    signs = {name: flags for name, s in numbers.items() if (flags := flags_of(s))}
    signs |= {name: flags for name, s in sizes.items() if (flags := flags_of_size(s))}
    if not signs:
        return NONE if not sizes else Assumptions(known=dict.fromkeys(sizes, POSITIVE))
    refuse_negative_roots(signs, roots)
    return Assumptions(signs, (), {**signs, **dict.fromkeys(sizes, POSITIVE)})


def refuse_negative_roots(known: Mapping[str, Flags], roots: Iterable[str]) -> None:
    """Raise LanguageError where a symbol under a root is not positive anywhere."""
    for name in roots:
        if "nonpositive" in known.get(name, NOTHING):
            raise LanguageError(
                f"{name} stands under a root and is never positive: name what is under the root by "
                "a positive symbol"
            )


@lru_cache(maxsize=4096)
def flags_of(symbol: sympy.Symbol) -> Flags:
    """Return what a scalar symbol declares, of the flags that matter here."""
    if not symbol.is_commutative:
        return NOTHING
    closure = _closure(symbol, "a scalar is a real number", real=True)
    if closure.get("zero"):
        raise LanguageError(f"the symbol {symbol} is declared zero: write 0 instead")
    return frozenset(flag for flag in HONOURED if closure.get(flag)) - {"real"}


@lru_cache(maxsize=4096)
def flags_of_size(symbol: sympy.Symbol) -> Flags:
    """Return the parity that the symbol of a size declares; each size is an integer from 1 on."""
    wanted = "a size is an integer from 1 on"
    closure = _closure(symbol, wanted, integer=True, positive=True)
    return frozenset(flag for flag in PARITY if closure.get(flag))


@lru_cache(maxsize=4096)
def check_index(symbol: sympy.Symbol) -> None:
    """Raise LanguageError where a free index declares that it leaves out some of its values."""
    wanted = "an index takes every value from 0 on"
    closure = _closure(symbol, wanted, integer=True, nonnegative=True)
    if any(closure.get(flag) for flag in ("positive", "nonpositive", "even", "odd")):
        raise LanguageError(f"what the index {symbol} declares leaves out values: {wanted}")


def _closure(symbol: sympy.Symbol, wanted: str, **besides: bool) -> dict[str, bool]:
    """Return all that follows from what a symbol declares and the language says besides.

    Raises LanguageError where they contradict each other, or where the flags of the language do not
    say all of it.
    """
    if symbol.is_extended_real and symbol.is_real is None:
        raise LanguageError(f"the symbol {symbol} is declared extended_real: {wanted}")
    if symbol.is_complex and symbol.is_real is None:
        raise LanguageError(f"the symbol {symbol} is declared complex: {wanted}")
    said = symbol.assumptions0
    try:
        closure: dict[str, bool] = sympy.Symbol("x", **{**said, **besides}).assumptions0
        mine = {flag: True for flag in HONOURED if closure.get(flag)}
        rest = closure.items() - sympy.Symbol("x", **{**mine, **besides}).assumptions0.items()
    except InconsistentAssumptions:
        flag = _strongest(said.items() - sympy.Symbol("x").assumptions0.items())
        raise LanguageError(f"the symbol {symbol} is declared {flag}: {wanted}") from None
    if rest and not closure.get("zero"):
        raise LanguageError(
            f"the symbol {symbol} is declared {_strongest(rest)}, which the language does not have"
        )
    return closure


def _strongest(flags: Iterable[tuple[str, bool]]) -> str:
    """Return the flag that says most of several: from prime follow integer, positive and more."""

    def follows(item: tuple[str, bool]) -> tuple[int, str]:
        return len(sympy.Symbol("x", **dict([item])).assumptions0), item[0]

    name, value = max(flags, key=follows)
    return name if value else f"{name}=False"


# -- inequalities ----------------------------------------------------------------------------------


def condition(relation: Relational) -> Condition:
    """Return what an inequality between scalars says of a difference.

    Raises LanguageError where a side is not built of numbers and symbols.
    """
    left, right = relation.lhs, relation.rhs
    if isinstance(relation, sympy.StrictLessThan | sympy.LessThan):
        left, right = right, left
    strict = isinstance(relation, sympy.StrictLessThan | sympy.StrictGreaterThan)
    kind: Kind = "positive" if strict else "nonnegative"
    if isinstance(relation, sympy.Unequality):
        kind = "nonzero"
    for side in (left, right):
        if side.has(sympy.MatrixExpr):
            raise LanguageError(
                f"the hypothesis {short_text(relation.lhs)} {_SHOWN[type(relation)]} "
                f"{short_text(relation.rhs)} speaks of a matrix: inequalities are between scalars "
                "and sizes"
            )
        scalars.from_sympy(side, {s.name for s in side.free_symbols})
    if left == 0 or right.is_Rational:
        difference = left - right
    else:  # unevaluated, as a term that cancels may be one that is not defined everywhere
        difference = sympy.Add(left, sympy.Mul(-1, right, evaluate=False), evaluate=False)
    if _numerator(difference) == {} and kind != "nonnegative":
        raise LanguageError(FALSE)
    names = {key(symbol) for symbol in left.free_symbols | right.free_symbols}
    return Condition(kind, difference, frozenset(names))


_SHOWN: dict[type, str] = {
    sympy.Unequality: "≠",
    sympy.StrictGreaterThan: ">",
    sympy.GreaterThan: "≥",
    sympy.StrictLessThan: "<",
    sympy.LessThan: "≤",
}


def _said_of_symbols(each: Condition) -> dict[str, Flags]:
    """Return what an inequality says of single symbols, by name."""
    value = scalars.lift(_coefficient(each.expression))
    polynomial = value.numerator
    found: dict[str, Flags] = {}
    if each.kind != "nonnegative":  # a factor of what is not zero is not zero
        in_all = set.intersection(*[{name for name, _ in monomial} for monomial in polynomial])
        found = {name: frozenset({"nonzero"}) for name in in_all if not name.startswith("#")}
    constant = polynomial.get(scalars.ONE, 0)
    terms = [(m, factor) for m, factor in polynomial.items() if m != scalars.ONE]
    plain = value.denominator == {scalars.ONE: 1} and len(terms) == 1 and len(terms[0][0]) == 1
    if each.kind == "nonzero" or not plain or terms[0][0][0][1] != 1 or constant > 0:
        return found
    (((name, _),), factor) = terms[0]  # factor · x > -constant, and that is not negative
    strict = each.kind == "positive" or constant < 0
    side = "nonnegative" if factor > 0 else "nonpositive"
    return {name: frozenset({side, "nonzero"} if strict else {side})}


def _closed(flags: Flags) -> Flags:
    """Return flags with what follows from two of them."""
    if {"nonzero", "nonnegative"} <= flags:
        return flags | POSITIVE
    if {"nonzero", "nonpositive"} <= flags:
        return flags | NEGATIVE
    return flags


def _coefficient(expression: sympy.Expr) -> scalars.Coefficient:
    return scalars.from_sympy(expression, {s.name for s in expression.free_symbols})


def _numerator(expression: sympy.Expr) -> Polynomial:
    return scalars.lift(_coefficient(expression)).numerator


def _cleared(each: Condition) -> Polynomial:
    """Return the numerator without negative powers: not zero where what it comes from is not."""
    numerator = _numerator(each.expression)
    exponents: dict[str, scalars.Number] = {}
    for name, exponent in [leg for monomial in numerator for leg in monomial]:
        exponents[name] = min(exponents.get(name, 0), exponent)
    divided = tuple(sorted((name, -e) for name, e in exponents.items() if e))
    return scalars.lift(scalars.scalar(numerator) * scalars.scalar({divided: 1})).numerator


def _factors(polynomial: Polynomial) -> list[Polynomial]:
    """Return the factors of a sum that are sums; the sum itself where it has a root or is long."""
    exponents = [exponent for monomial in polynomial for _, exponent in monomial]
    plain = all(Fraction(e).denominator == 1 and e >= 0 for e in exponents)
    if not 1 < len(polynomial) <= LONGEST_FACTORED or not plain:
        return [polynomial]
    return [dict(factor) for factor in _factored(tuple(sorted(polynomial.items())))]


@lru_cache(maxsize=1024)
def _factored(terms: Terms) -> list[Terms]:
    names = sorted({name for monomial, _ in terms for name, _ in monomial})
    symbols = sympy.symbols(f"x:{len(names)}")
    at = {
        tuple(int(dict(monomial).get(name, 0)) for name in names): sympy.Rational(
            Fraction(factor).numerator, Fraction(factor).denominator
        )
        for monomial, factor in terms
    }
    _, factors = sympy.Poly.from_dict(at, *symbols).factor_list()
    found: list[Terms] = []
    for factor, _ in factors:
        named = [
            (
                tuple((name, e) for name, e in zip(names, powers, strict=True) if e),
                Fraction(c.p, c.q),
            )
            for powers, c in factor.terms()
        ]
        found += [tuple(named)] * (len(named) > 1)
    return found


def _proportional(a: Polynomial, b: Polynomial) -> bool:
    if a.keys() != b.keys():
        return False
    ratios = {Fraction(a[monomial]) / b[monomial] for monomial in a}
    return len(ratios) == 1


def inequalities_of(each: Any) -> list[Any] | None:
    """Return the inequalities that a SymPy truth value holds, or None for what is none.

    What SymPy has found true says nothing. Raises LanguageError for what is false, as everything
    would follow from it, and for what Python has compared: `a != 0` compares two objects.
    """
    if isinstance(each, bool):
        raise LanguageError(
            f"a hypothesis is the Python value {each}: an inequality is written as sympy.Ne(a, b) "
            "or a > b"
        )
    if each is sympy.false:
        raise LanguageError(FALSE)
    if each is sympy.true:
        return []
    if isinstance(each, sympy.And):
        parts = [inequalities_of(part) for part in sorted(each.args, key=sympy.default_sort_key)]
        return None if None in parts else [one for part in parts for one in part or []]
    inequality = isinstance(each, Relational) and not isinstance(each, sympy.Equality)
    return [each] if inequality else None
