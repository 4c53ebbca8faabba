"""Coefficients against SymPy's rational functions, which are the oracle here."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest
import sympy

from otimes.algebra.errors import LanguageError
from otimes.algebra.language import coefficients

x, y = sympy.symbols("x y")
n = sympy.Symbol("n", positive=True)


def random_rational(draw: random.Random, depth: int) -> sympy.Expr:
    if depth == 0:
        return draw.choice([x, y, n, sympy.Integer(draw.randint(-3, 3)), sympy.Rational(2, 3)])
    left, right = random_rational(draw, depth - 1), random_rational(draw, depth - 1)
    made = draw.choice([left + right, left * right, left - right, left**2])
    return 1 / made if draw.random() < 0.3 and not is_zero_for_sympy(made) else made


def is_zero(value: Any) -> bool:
    return not isinstance(value, coefficients.Scalar) and value == 0


def is_zero_for_sympy(e: sympy.Expr) -> bool:
    """Expand the numerator as a polynomial; cancel(0) is not always SymPy's 0."""
    numerator = sympy.fraction(sympy.together(e))[0]
    return bool(sympy.Poly(numerator, x, y, n).is_zero)


def test_arithmetic_and_equality_are_those_of_rational_functions() -> None:
    draw = random.Random(5)
    met = {True: 0, False: 0}
    by_name = {"x": x, "y": y, "n": n}
    values = [random_rational(draw, draw.choice([1, 2, 2, 3])) for _ in range(150)]
    for a in values:
        b = draw.choice(values) if draw.random() < 0.5 else sympy.factor(sympy.together(a))
        mine, other = coefficients.from_sympy(a), coefficients.from_sympy(b)
        equal = is_zero_for_sympy(a - b)
        met[equal] += 1
        assert is_zero(mine - other) == equal, (a, b)
        for result, expected in ((mine + other, a + b), (mine * other, a * b)):
            shown = coefficients.to_sympy(result)  # names only: the assumptions are not kept
            shown = shown.subs({s: by_name[s.name] for s in shown.free_symbols})
            assert is_zero_for_sympy(shown - expected), (a, b)
    assert min(met.values()) > 30, met


def test_values_are_those_of_sympy() -> None:
    draw = random.Random(8)
    numbers = {"x": Fraction(3, 7), "y": Fraction(-5, 2), "n": 11}
    for _ in range(60):
        e = random_rational(draw, 2)
        exact = e.subs({s: sympy.Rational(numbers[s.name]) for s in (x, y, n)})
        if not exact.is_Rational:  # a division by zero at these numbers
            continue
        value = coefficients.value_at(
            coefficients.from_sympy(e), numbers, lambda *_: pytest.fail("a root")
        )
        assert Fraction(value) == Fraction(int(exact.p), int(exact.q))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1 / sympy.sqrt(n) / sympy.sqrt(n), 1 / n),
        (sympy.sqrt(2) * sympy.sqrt(3), sympy.sqrt(6)),
        (sympy.sqrt(8), 2 * sympy.sqrt(2)),
        (1 / sympy.sqrt(2), sympy.sqrt(2) / 2),
        (sympy.sqrt(sympy.Rational(2, 3)), sympy.sqrt(6) / 3),
        (sympy.sqrt(4 * n), 2 * sympy.sqrt(n)),
        (sympy.Rational(16) ** sympy.Rational(3, 4), 8),
        (n ** sympy.Rational(3, 2), n * sympy.sqrt(n)),
    ],
)
def test_roots(left: Any, right: Any) -> None:
    assert is_zero(coefficients.from_sympy(left) - coefficients.from_sympy(sympy.sympify(right)))


def test_roots_meet_in_products() -> None:
    """Products that SymPy did not get to simplify first."""
    two, three = (coefficients.from_sympy(sympy.sqrt(k)) for k in (2, 3))
    assert is_zero(two * two - 2)
    assert is_zero((1 + two) * (1 + -1 * two) + 1)
    assert is_zero((two + three) * (two + three) - (5 + 2 * two * three))
    cube = coefficients.from_sympy(sympy.cbrt(4))
    assert is_zero(cube * cube * cube - 4)
    assert not is_zero(two * three - 6)


def test_roots_that_differ() -> None:
    roots = [sympy.sqrt(n), sympy.sqrt(2), sympy.sqrt(3), 1 / sympy.sqrt(n), sympy.cbrt(n)]
    read = [coefficients.from_sympy(r) for r in roots]
    for p in range(len(read)):
        for q in range(p):
            assert not is_zero(read[p] - read[q])


def test_a_root_is_taken_apart_only_where_signs_are_known() -> None:
    """sqrt(x²) is |x|, so nothing may make it x for a symbol of any sign."""
    with pytest.raises(LanguageError, match="may be negative: declare the symbols positive"):
        coefficients.from_sympy(sympy.sqrt(x**2 * y))
    with pytest.raises(LanguageError, match="root of a negative number"):
        coefficients.from_sympy(sympy.Pow(-2, sympy.Rational(1, 2), evaluate=False))
    with pytest.raises(LanguageError, match="root of a sum"):
        coefficients.from_sympy(sympy.sqrt(x + 1))


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (sympy.E, r"the scalar E \(Exp1\) is not in the language"),
        (sympy.sin(x), "sin"),
        (2**x, "Pow"),
        (sympy.Float(0.5), "floating-point number: write it exactly"),
        (sympy.I * x, "ImaginaryUnit"),
    ],
)
def test_what_is_not_a_coefficient_is_named(expression: Any, words: str) -> None:
    with pytest.raises(LanguageError, match=words):
        coefficients.from_sympy(expression)


def test_dividing_by_zero_is_refused() -> None:
    with pytest.raises(LanguageError, match="divides by zero"):
        coefficients.power(0, -1)
    with pytest.raises(LanguageError, match="divides by zero"):
        coefficients.from_sympy(sympy.Pow(sympy.Integer(0), -1, evaluate=False))


def test_names_and_hashing() -> None:
    value = coefficients.from_sympy(sympy.sqrt(2) * x / (y + n))
    assert coefficients.names(value) == {"x", "y", "n"}
    with pytest.raises(TypeError, match="no canonical form to hash"):
        hash(value)


def test_no_symbol_is_taken_for_the_root_of_a_prime() -> None:
    with pytest.raises(LanguageError, match="names that begin with #"):
        coefficients.from_sympy(sympy.Symbol("#2"))


def test_equality_with_a_number() -> None:
    assert coefficients.from_sympy(x + 1) * coefficients.from_sympy(1 / (x + 1)) == 1
