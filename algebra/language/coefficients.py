"""Exact coefficients: rational functions of scalars and dimensions, computed without SymPy.

A coefficient is an `int`, a `Fraction`, or a `Scalar`: a quotient of two Laurent polynomials, each
a dictionary `{monomial: number}`, where a monomial is a sorted tuple of `(generator, exponent)`.
A generator is the `key` of a symbol, its name unless it is a Dummy, or `#p` for a root of the prime
p; exponents may be fractions, so that `1/sqrt(d_head)` is a monomial like any other. Two
coefficients are equal exactly if the numerator of their difference has no terms.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from math import prod
from typing import Any, TypeAlias

import sympy

from otimes.algebra.budget import spend, weight
from otimes.algebra.errors import LanguageError
from otimes.algebra.language.constants import PI
from otimes.algebra.language.roots import Number
from otimes.algebra.language.trees import key
from otimes.algebra.language.unicode import short_text

Monomial: TypeAlias = tuple[tuple[str, Number], ...]
Polynomial: TypeAlias = dict[Monomial, Number]
Coefficient: TypeAlias = "Number | Scalar"

ONE: Monomial = ()
HIGHEST_POWER = 300  # the largest exponent of a number or a sum, which is expanded
TRIAL_DIVISION = 2**15  # trial division bound for a number under a root


class Scalar:
    """A rational function that is not a plain number; always constructed by `scalar`."""

    __slots__ = ("denominator", "numerator")

    def __init__(self, numerator: Polynomial, denominator: Polynomial) -> None:
        self.numerator = numerator
        self.denominator = denominator

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, int | Fraction | Scalar):
            return NotImplemented  # NumPy then adds a Scalar to an array entry by entry
        other = lift(other)
        if self.denominator == other.denominator:
            return scalar(_plus(self.numerator, other.numerator), self.denominator)
        numerator = _plus(
            _times(self.numerator, other.denominator), _times(other.numerator, self.denominator)
        )
        return scalar(numerator, _times(self.denominator, other.denominator))

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, int | Fraction | Scalar):
            return NotImplemented
        other = lift(other)
        return scalar(
            _times(self.numerator, other.numerator), _times(self.denominator, other.denominator)
        )

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + (-1 * other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __pow__(self, exponent: int) -> Coefficient:
        return power(self, exponent)

    def __rtruediv__(self, other: Any) -> Any:
        return inverse(self) * other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Fraction | Scalar):
            return NotImplemented
        rest = self - other
        return not isinstance(rest, Scalar) and rest == 0

    def __hash__(self) -> int:
        raise TypeError("a Scalar has no canonical form to hash: compare with ==")

    def __repr__(self) -> str:
        return str(to_sympy(self))


def scalar(numerator: Polynomial, denominator: Polynomial | None = None) -> Coefficient:
    """Return numerator/denominator; an int or Fraction if it is constant."""
    if denominator is not None and len(denominator) == 1:
        ((monomial, factor),) = denominator.items()
        if monomial == ONE and factor == 1:
            denominator = None
        else:  # dividing by a monomial stays a Laurent polynomial
            inverse = tuple((name, -exponent) for name, exponent in monomial)
            numerator, denominator = _times(numerator, {inverse: Fraction(1) / factor}), None
    if denominator is None:
        if not numerator:
            return 0
        if len(numerator) == 1 and ONE in numerator:
            return numerator[ONE]
        return Scalar(numerator, {ONE: 1})
    return Scalar(numerator, denominator) if numerator else 0


def power(base: Coefficient, exponent: int) -> Coefficient:
    """Return base**exponent for an integer exponent, which must be nonnegative for base 0."""
    if exponent < 0:
        base, exponent = inverse(base), -exponent
    if isinstance(base, Scalar):
        short = len(base.numerator) == len(base.denominator) == 1
    else:
        short = base in (0, 1, -1)
    if exponent > HIGHEST_POWER and not short:
        raise LanguageError(
            f"the power {exponent} of a number or a sum is not in the language: name it by a symbol"
        )
    result: Coefficient = 1
    for digit in f"{exponent:b}":
        spend(1 + (weight(result) >> 4))
        result = result * result
        if digit == "1":
            result = result * base
    return result


def inverse(value: Coefficient) -> Coefficient:
    """Return 1/value. Any symbol may be inverted: equations hold where both sides are defined."""
    if not isinstance(value, Scalar):
        if value == 0:
            raise LanguageError("a scalar factor divides by zero: remove the division")
        return Fraction(1) / value
    return scalar(value.denominator, value.numerator)


def generator(name: str) -> Scalar:
    """Return the scalar that consists of one symbol."""
    if name.startswith("#"):
        raise LanguageError(f"a symbol is called {name}: names that begin with # are taken")
    return Scalar({((name, 1),): 1}, {ONE: 1})


def from_sympy(expression: sympy.Expr, nonnegative: Collection[str] = ()) -> Coefficient:
    """Read a SymPy scalar built of numbers, symbols, +, *, and rational powers.

    `nonnegative` names further nonnegative symbols besides those that SymPy assumes so; the root of
    a product or power is simplified only for such symbols.
    Raises LanguageError naming the first unsupported subexpression.
    """
    if isinstance(expression, sympy.Integer):
        return int(expression)
    if isinstance(expression, sympy.Rational):
        return Fraction(int(expression.p), int(expression.q))
    if isinstance(expression, sympy.Symbol):
        return generator(key(expression))
    if expression is sympy.pi:
        return generator(key(PI))
    if isinstance(expression, sympy.Add):
        return sum(from_sympy(term, nonnegative) for term in expression.args)
    if isinstance(expression, sympy.Mul):
        return prod(from_sympy(factor, nonnegative) for factor in expression.args)
    if isinstance(expression, sympy.Pow) and isinstance(expression.exp, sympy.Rational):
        base = from_sympy(expression.base, nonnegative)
        if isinstance(expression.exp, sympy.Integer):
            return power(base, int(expression.exp))
        symbols = expression.base.free_symbols
        roots = {key(s) for s in symbols if s.is_nonnegative or key(s) in nonnegative} | {key(PI)}
        return root(base, Fraction(int(expression.exp.p), int(expression.exp.q)), roots, expression)
    if isinstance(expression, sympy.Float):
        raise LanguageError(
            f"{expression} is a floating-point number: write it exactly, as sympy.Rational"
        )
    raise LanguageError(
        f"the scalar {short_text(expression)} ({type(expression).__name__}) is not in the "
        "language: numbers, symbols, sums, products and rational powers are"
    )


def to_sympy(value: Coefficient) -> sympy.Expr:
    """Return the coefficient as a SymPy expression, for printing."""
    if not isinstance(value, Scalar):
        return sympy.Rational(value.numerator, value.denominator)
    return _polynomial_to_sympy(value.numerator) / _polynomial_to_sympy(value.denominator)


def names(value: Coefficient) -> set[str]:
    """Return the names of the symbols in a coefficient."""
    value = lift(value)
    monomials = (*value.numerator, *value.denominator)
    found = {name for monomial in monomials for name, _ in monomial}
    return {name for name in found if not name.startswith("#")}


def degree(value: Coefficient) -> int:
    """Return the largest total degree of a monomial, roots and inverses counted as positive."""
    if not isinstance(value, Scalar):
        return 0
    monomials = (*value.numerator, *value.denominator)
    return 1 + int(max(sum(abs(Fraction(e)) for _, e in monomial) for monomial in monomials))


def value_at(
    value: Coefficient, values: Mapping[str, Any], root: Callable[[Any, Fraction], Any]
) -> Any:
    """Return the value of a coefficient at these values of its symbols.

    `root(base, exponent)` computes fractional powers, exactly or in floating point.
    """
    if not isinstance(value, Scalar):
        return value

    def at(polynomial: Polynomial) -> Any:
        total: Any = 0
        for monomial, factor in polynomial.items():
            product: Any = factor
            for name, exponent in monomial:
                base = int(name[1:]) if name.startswith("#") else values[name]
                if exponent.denominator != 1:
                    product = product * root(base, Fraction(exponent))
                elif exponent >= 0:
                    product = product * base ** int(exponent)
                else:
                    product = _divide(product, base ** -int(exponent))
            total = total + product
        return total

    if value.denominator == {ONE: 1}:
        return at(value.numerator)
    return _divide(at(value.numerator), at(value.denominator))


def _divide(a: Any, b: Any) -> Any:
    exact = isinstance(a, int | Fraction) and isinstance(b, int | Fraction)
    return Fraction(a) / b if exact else a / b


def lift(value: Coefficient) -> Scalar:
    """Return a coefficient, also a plain number, as a quotient of polynomials."""
    if isinstance(value, Scalar):
        return value
    return Scalar({ONE: value} if value else {}, {ONE: 1})


def _plus(a: Polynomial, b: Polynomial) -> Polynomial:
    spend(1 + (len(a) + len(b) >> 3))
    result = dict(a)
    for monomial, factor in b.items():
        total = result.get(monomial, 0) + factor
        if total:
            result[monomial] = total
        else:
            del result[monomial]
    return result


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    if len(a) == 1 and a.get(ONE) == 1:
        return b
    if len(b) == 1 and b.get(ONE) == 1:
        return a
    spend(len(a) * len(b) * (32 + max(_weight(a), _weight(b))) >> 4)
    result: Polynomial = {}
    for m1, c1 in a.items():
        for m2, c2 in b.items():
            monomial, carry = _multiply_monomials(m1, m2)
            total = result.get(monomial, 0) + c1 * c2 * carry
            if total:
                result[monomial] = total
            else:
                result.pop(monomial, None)
    return result


def _weight(a: Polynomial) -> int:
    """Return the estimated cost of a coefficient operation, from the first coefficient."""
    return weight(next(iter(a.values()), 0))


def _multiply_monomials(a: Monomial, b: Monomial) -> tuple[Monomial, Number]:
    """Return the product of two monomials, and the rational factor from roots of primes."""
    if not a:
        return b, 1
    if not b:
        return a, 1
    exponents: dict[str, Number] = dict(a)
    for name, exponent in b:
        exponents[name] = exponents.get(name, 0) + exponent
    carry: Number = 1
    for name in [name for name in exponents if name.startswith("#")]:
        whole = exponents[name].__floor__()
        carry *= Fraction(int(name[1:])) ** whole
        exponents[name] -= whole
    return tuple(sorted((n, e) for n, e in exponents.items() if e)), carry


def root(
    base: Coefficient, exponent: Fraction, nonnegative: Collection[str], shown: Any = None
) -> Coefficient:
    """Return base**exponent for a positive number, a symbol, or a product of nonnegative symbols.

    With its factors in `nonnegative`, the root of a product is the product of the roots, and the
    root of a square is its base. `shown` is the expression in error messages. Raises LanguageError
    for a root of a sum, or of a product whose factors may be negative.
    """

    def refused(why: str) -> LanguageError:
        return LanguageError(f"{short_text(base if shown is None else shown)} is a root of {why}")

    value = lift(base)
    if len(value.numerator) != 1 or value.denominator != {ONE: 1}:
        raise refused("a sum, which is not in the language")
    ((monomial, factor),) = value.numerator.items()
    lone = factor == 1 and len(monomial) == 1 and monomial[0][1] == 1
    if not lone and not all(n.startswith("#") or n in nonnegative for n, _ in monomial):
        raise refused(
            "a product whose factors may be negative: declare the symbols positive or nonnegative"
        )
    if factor < 0:
        raise refused("a negative number: the language is real")
    result: Coefficient = scalar({tuple((name, e * exponent) for name, e in monomial): 1})
    fraction = Fraction(factor)
    for whole, sign in ((fraction.numerator, 1), (fraction.denominator, -1)):
        for prime, multiplicity in sympy.factorint(whole, limit=TRIAL_DIVISION).items():
            if not sympy.isprime(prime):
                raise refused(
                    "a number that is not quickly factored, which is not in the language: name it "
                    "by a symbol"
                )
            whole_power, rest = divmod(sign * multiplicity * exponent, 1)
            root_of_prime: Monomial = ((f"#{prime}", rest),) if rest else ONE
            result = result * scalar({root_of_prime: Fraction(int(prime)) ** whole_power})
    return result


def _polynomial_to_sympy(polynomial: Polynomial) -> sympy.Expr:
    terms = []
    for monomial, factor in polynomial.items():
        term: sympy.Expr = sympy.Rational(factor.numerator, factor.denominator)
        for name, exponent in monomial:
            base = sympy.Symbol(name, positive=True)
            if name.startswith("#"):
                base = sympy.Integer(name[1:])
            term *= base ** sympy.Rational(exponent.numerator, exponent.denominator)
        terms.append(term)
    return sympy.Add(*terms)
