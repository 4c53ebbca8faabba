"""Assumptions about scalars: those declared by their symbols, and inequalities.

SymPy's symbols carry assumptions, and a hypothesis may be an inequality such as `Ne(a*b, 1)` or `a
> 0`. Both determine which divisions are allowed, which roots of products are products of roots, and
which numbers may refute a claim. An unsupported assumption raises LanguageError: ignoring it would
change the claim, as with prime or complex numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import sympy
from sympy.core.facts import InconsistentAssumptions
from sympy.core.relational import Relational

from otimes.algebra.errors import LanguageError
from otimes.algebra.language import coefficients
from otimes.algebra.language.coefficients import Monomial, Polynomial
from otimes.algebra.language.constants import PI
from otimes.algebra.language.roots import Number
from otimes.algebra.language.trees import key
from otimes.algebra.language.unicode import short_text

Kind = Literal["nonzero", "positive", "nonnegative"]
Flags = frozenset[str]
Terms = tuple[tuple[Monomial, Number], ...]

# `rational` and `algebraic` hold for every counterexample, and no proof uses them.
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
    """The assumptions about the scalars in a claim, as plain data.

    `signs` are the assumptions declared by symbols, by name (of sizes only the parity);
    `conditions` are the inequalities among the hypotheses. `known` adds to `signs` the consequences
    of single inequalities (a > 1: a is positive; a b ≠ 0: both are nonzero), and that sizes are
    positive.
    """

    signs: Mapping[str, Flags] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    known: Mapping[str, Flags] = field(default_factory=dict)

    def of_kind(self, kind: Kind) -> list[sympy.Expr]:
        """Return the expressions that are nonzero, positive or nonnegative by hypothesis."""
        return [each.expression for each in self.conditions if each.kind == kind]

    def named(self, flag: str) -> set[str]:
        """Return the names of the symbols and sizes with an assumption such as "positive"."""
        return {name for name, flags in self.known.items() if flag in flags}

    def under(self, conditions: Sequence[Condition], roots: Iterable[str]) -> Assumptions:
        """Return these assumptions with the inequalities of hypotheses.

        One may depend on another: √(a²) is a only if a > 0 is also a hypothesis. `roots` names
        the symbols under a root. Raises LanguageError where one of them is negative, for a root of
        a product whose factors no inequality makes nonnegative, and for a false inequality.
        """
        if not conditions:
            return self
        read = replace(self, conditions=tuple(conditions), known=dict(self.known))
        waiting = list(conditions)
        while waiting:
            unread: list[Condition] = []
            for each in waiting:
                try:
                    said = _said_of_symbols(each, read.named("nonnegative"))
                except LanguageError as refused:
                    unread.append(each)
                    reason = refused
                    continue
                for name, flags in said.items():
                    known = read.known.get(name, NOTHING) | flags
                    read = replace(read, known={**read.known, name: _closed(known)})
            if len(unread) == len(waiting):
                raise reason
            waiting = unread
        refuse_negative_roots(read.known, roots)
        return read

    def sign(self, polynomial: Polynomial) -> int:
        """Return 1 or -1 for a polynomial that is certainly positive or negative, else 0.

        The sign is certain when all terms have the same sign and one of them is nonzero.
        """
        signs = [self._sign_of_term(monomial, factor) for monomial, factor in polynomial.items()]
        one = {sign for sign, _ in signs}
        return one.pop() if len(one) == 1 and any(strict for _, strict in signs) else 0

    def _sign_of_term(self, monomial: Monomial, factor: Number) -> tuple[int, bool]:
        """Return the sign of a term, 0 if unknown, and whether the term is certainly nonzero."""
        sign, strict = (1 if factor > 0 else -1), True
        for name, exponent in monomial:
            flags = POSITIVE if name.startswith("#") else self.known.get(name, NOTHING)
            strict = strict and "nonzero" in flags
            if Fraction(exponent).denominator > 1 or exponent % 2 == 0:
                continue  # neither a real root nor an even power is negative
            if "nonpositive" in flags:
                sign = -sign
            elif "nonnegative" not in flags:
                sign = 0
        return sign, strict

    def divisors(self, coefficients: Iterable[Polynomial], names: set[str]) -> list[Polynomial]:
        """Return sums that are certainly nonzero: by hypothesis, or factors of the coefficients.

        An example is 1 + a² in (1 + a²) b. `names` restricts the symbols.
        """
        roots = self.named("nonnegative")
        stated = [_cleared(each, roots) for each in self.conditions if each.kind != "nonnegative"]
        factors = [factor for each in coefficients for factor in _factors(each)]
        found: list[Polynomial] = []
        for polynomial in (*stated, *[factor for factor in factors if self.sign(factor)]):
            mine = {name for monomial in polynomial for name, _ in monomial}
            known = all(name in names or name.startswith("#") for name in mine)
            if len(polynomial) > 1 and known:
                found += [polynomial] * (not any(_proportional(polynomial, p) for p in found))
        return found


NONE = Assumptions()
FALSE = "a hypothesis is false for all values of its symbols and implies every claim: remove it"


def declared(
    numbers: Mapping[str, sympy.Symbol], sizes: Mapping[str, sympy.Symbol], roots: Iterable[str]
) -> Assumptions:
    """Return the assumptions declared by scalar symbols and sizes, by name.

    Raises LanguageError for an unsupported assumption.
    """
    signs = {name: flags for name, s in numbers.items() if (flags := flags_of(s))}
    signs |= {name: flags for name, s in sizes.items() if (flags := flags_of_size(s))}
    if not signs:
        return NONE if not sizes else Assumptions(known=dict.fromkeys(sizes, POSITIVE))
    refuse_negative_roots(signs, roots)
    return Assumptions(signs, (), {**signs, **dict.fromkeys(sizes, POSITIVE)})


def refuse_negative_roots(known: Mapping[str, Flags], roots: Iterable[str]) -> None:
    """Raise LanguageError if a symbol under a root can never be positive."""
    for name in roots:
        if "nonpositive" in known.get(name, NOTHING):
            raise LanguageError(
                f"{name} stands under a root and is never positive: name what is under the root by "
                "a positive symbol"
            )


@lru_cache(maxsize=4096)
def flags_of(symbol: sympy.Symbol) -> Flags:
    """Return those SymPy assumptions of a scalar symbol that the language supports."""
    if not symbol.is_commutative or _declares(symbol, _PLAIN):
        return NOTHING
    if symbol == PI:
        return POSITIVE
    closure = _closure(symbol, "a scalar is a real number", real=True)
    if closure.get("zero"):
        raise LanguageError(f"the symbol {symbol} is declared zero: write 0 instead")
    return frozenset(flag for flag in HONOURED if closure.get(flag)) - {"real"}


@lru_cache(maxsize=4096)
def flags_of_size(symbol: sympy.Symbol) -> Flags:
    """Return the parity assumptions of a size symbol; every size is a positive integer."""
    if _declares(symbol, _PLAIN, _INTEGER, _SIZE):
        return NOTHING
    closure = _closure(symbol, "a size is an integer from 1 on", integer=True, positive=True)
    return frozenset(flag for flag in PARITY if closure.get(flag))


@lru_cache(maxsize=4096)
def check_index(symbol: sympy.Symbol) -> None:
    """Raise LanguageError if the assumptions of a free index exclude some of its values."""
    if _declares(symbol, _PLAIN, _INTEGER):
        return
    wanted = "an index takes every value from 0 on"
    closure = _closure(symbol, wanted, integer=True, nonnegative=True)
    if any(closure.get(flag) for flag in ("positive", "nonpositive", "even", "odd")):
        raise LanguageError(f"what the index {symbol} declares leaves out values: {wanted}")


# What symbols that nothing else is said of declare, and imply.
_PLAIN, _INTEGER = (sympy.Symbol("x", **said).assumptions0 for said in ({}, {"integer": True}))
_SIZE = sympy.Symbol("x", integer=True, positive=True).assumptions0


def _declares(symbol: sympy.Symbol, *known: dict[str, bool]) -> bool:
    """Return whether the assumptions of a symbol are exactly one of these sets."""
    return symbol.assumptions0 in known


def _closure(symbol: sympy.Symbol, wanted: str, **besides: bool) -> dict[str, bool]:
    """Return all assumptions implied by those declared and those of the language (`wanted`).

    Raises LanguageError if they contradict each other, or one of them is not supported.
    """
    for flag in ("extended_real", "complex"):
        if getattr(symbol, f"is_{flag}") and symbol.is_real is None:
            raise LanguageError(f"the symbol {symbol} is declared {flag}: {wanted}")
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
            f"the symbol {symbol} is declared {_strongest(rest)}, which is not supported"
        )
    return closure


def _strongest(flags: Iterable[tuple[str, bool]]) -> str:
    """Return the strongest of several assumptions: prime implies integer, positive and more."""

    def follows(item: tuple[str, bool]) -> tuple[int, str]:
        return len(sympy.Symbol("x", **dict([item])).assumptions0), item[0]

    name, value = max(flags, key=follows)
    return name if value else f"{name}=False"


# -- inequalities ----------------------------------------------------------------------------------


def condition(relation: Relational) -> Condition:
    """Return an inequality between scalars as a condition on their difference.

    Raises LanguageError for a side that is not built of numbers and symbols.
    """
    kind = _KINDS[relation.rel_op]
    left, right = relation.args if kind == "nonzero" else (relation.gts, relation.lts)
    for side in (left, right):
        if side.has(sympy.MatrixExpr):
            raise LanguageError(
                f"the hypothesis {short_text(relation.lhs)} {relation.rel_op} "
                f"{short_text(relation.rhs)} is about a matrix: inequalities are between scalars "
                "and sizes"
            )
        # raises LanguageError for unsupported scalars; signs under roots are checked later
        coefficients.from_sympy(side, {s.name for s in side.free_symbols})
    if left == 0 or right.is_Rational:
        difference = left - right
    else:  # unevaluated, as a cancelled term may be undefined somewhere
        difference = sympy.Add(left, sympy.Mul(-1, right, evaluate=False), evaluate=False)
    names = {key(symbol) for symbol in left.free_symbols | right.free_symbols}
    return Condition(kind, difference, frozenset(names))


_KINDS: dict[str, Kind] = {
    "!=": "nonzero",
    ">": "positive",
    "<": "positive",
    ">=": "nonnegative",
    "<=": "nonnegative",
}


def _said_of_symbols(each: Condition, nonnegative: Collection[str]) -> dict[str, Flags]:
    """Return the assumptions on single symbols that an inequality implies, by name.

    Raises LanguageError for an inequality that is always false, and for a root of a product that
    needs further symbols in `nonnegative`.
    """
    value = coefficients.lift(coefficients.from_sympy(each.expression, nonnegative))
    polynomial = value.numerator
    if not polynomial and each.kind != "nonnegative":
        raise LanguageError(FALSE)
    found: dict[str, Flags] = {}
    if each.kind != "nonnegative":  # a factor of a nonzero product is nonzero
        in_all = set.intersection(*[{name for name, _ in monomial} for monomial in polynomial])
        found = {name: frozenset({"nonzero"}) for name in in_all if not name.startswith("#")}
    constant = polynomial.get(coefficients.ONE, 0)
    terms = [(m, factor) for m, factor in polynomial.items() if m != coefficients.ONE]
    plain = value.denominator == {coefficients.ONE: 1} and len(terms) == 1 and len(terms[0][0]) == 1
    if each.kind == "nonzero" or not plain or terms[0][0][0][1] != 1 or constant > 0:
        return found
    (((name, _),), factor) = terms[0]  # factor · x > -constant ≥ 0
    strict = each.kind == "positive" or constant < 0
    side = "nonnegative" if factor > 0 else "nonpositive"
    return {name: frozenset({side, "nonzero"} if strict else {side})}


def _closed(flags: Flags) -> Flags:
    """Return assumptions with those implied by two of them together."""
    if {"nonzero", "nonnegative"} <= flags:
        return flags | POSITIVE
    if {"nonzero", "nonpositive"} <= flags:
        return flags | NEGATIVE
    return flags


def _cleared(each: Condition, nonnegative: Collection[str]) -> Polynomial:
    """Return a polynomial that is nonzero exactly where the condition's expression is."""
    numerator = coefficients.lift(coefficients.from_sympy(each.expression, nonnegative)).numerator
    exponents: dict[str, Number] = {}
    for name, exponent in [leg for monomial in numerator for leg in monomial]:
        exponents[name] = min(exponents.get(name, 0), exponent)
    divided = tuple(sorted((name, -e) for name, e in exponents.items() if e))
    return coefficients.lift(
        coefficients.scalar(numerator) * coefficients.scalar({divided: 1})
    ).numerator


def _factors(polynomial: Polynomial) -> list[Polynomial]:
    """Return the non-monomial factors of a sum, or the sum itself if it has a root or is long."""
    exponents = [exponent for monomial in polynomial for _, exponent in monomial]
    plain = all(Fraction(e).denominator == 1 and e >= 0 for e in exponents)
    if not 1 < len(polynomial) <= LONGEST_FACTORED or not plain:
        return [polynomial]
    return [dict(factor) for factor in _factored(tuple(sorted(polynomial.items())))]


@lru_cache(maxsize=1024)
def _factored(terms: Terms) -> list[Terms]:
    names = sorted({name for monomial, _ in terms for name, _ in monomial})
    symbols = sympy.symbols(f"x:{len(names)}")
    at = {}
    for monomial, factor in terms:
        powers = dict(monomial)
        key = tuple(int(powers.get(name, 0)) for name in names)
        at[key] = sympy.Rational(factor.numerator, factor.denominator)
    _, factors = sympy.Poly.from_dict(at, *symbols).factor_list()
    found: list[Terms] = []
    for factor, _ in factors:
        named: list[tuple[Monomial, Number]] = []
        for powers, c in factor.terms():
            monomial = tuple((name, e) for name, e in zip(names, powers, strict=True) if e)
            named.append((monomial, Fraction(c.p, c.q)))
        found += [tuple(named)] * (len(named) > 1)
    return found


def _proportional(a: Polynomial, b: Polynomial) -> bool:
    if a.keys() != b.keys():
        return False
    ratios = {Fraction(a[monomial]) / b[monomial] for monomial in a}
    return len(ratios) == 1


def inequalities_of(each: Any) -> list[Any] | None:
    """Return the inequalities in a SymPy Boolean, or None for anything else.

    A relation that SymPy has evaluated to true is dropped. Raises LanguageError for false, from
    which implies every claim, and for a Python bool: `a != 0` compares two objects.
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
