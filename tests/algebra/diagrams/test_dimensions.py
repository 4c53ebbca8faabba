"""Sizes as polynomials, and how one splits."""

from __future__ import annotations

import pytest
import sympy

from otimes.algebra.diagrams.dimensions import Dimensions, Resplit
from otimes.algebra.errors import LanguageError, ShapeError, Undecided
from otimes.algebra.language.sizes import normal_size, same_size

n, d, p = sympy.symbols("n d p")


def test_equal_as_polynomials() -> None:
    assert same_size(n * (d + 1), n * d + n)
    assert not same_size(n * d, n + d)
    assert normal_size(sympy.Integer(3)) == 3


@pytest.mark.parametrize("size", [sympy.sqrt(n), n / 2, 1 / n, 2**n, sympy.Rational(1, 2)])
def test_what_is_no_size(size: sympy.Expr) -> None:
    with pytest.raises(
        LanguageError, match="is not in the language: symbols, integers, their sums"
    ):
        normal_size(size)


def test_negative_sizes() -> None:
    with pytest.raises(ShapeError, match="a size is -1: sizes are positive"):
        normal_size(sympy.Integer(-1))


def fitted(left: list[sympy.Expr], right: list[sympy.Expr]) -> list[str]:
    """Fit two lists of sizes, starting again as long as something was learned; return the legs."""
    sizes = Dimensions()
    for _ in range(20):
        legs = [tuple(leg for s in side for leg in sizes.legs(s)) for side in (left, right)]
        try:
            sizes.fit(*legs)
        except Resplit:
            continue
        assert legs[0] == legs[1]
        return [str(sizes.expressions[leg]) for leg in legs[0]]
    raise AssertionError("it never ends")


def test_splits() -> None:
    assert fitted([n * d], [n, d]) == ["n", "d"]
    assert fitted([n, d * p], [n * d, p]) == ["n", "d", "p"]
    assert fitted([sympy.Integer(12)], [sympy.Integer(3), sympy.Integer(4)]) == ["3", "4"]
    assert fitted([sympy.Integer(2), sympy.Integer(6)], [sympy.Integer(4), sympy.Integer(3)]) == [
        "2",
        "2",
        "3",
    ]
    assert fitted([n**2 + n], [n, n + 1]) == ["n", "n + 1"]
    assert fitted([sympy.Integer(1), n], [n]) == ["n"]


@pytest.mark.parametrize(
    ("left", "right"), [([n, d], [d, n]), ([n * d, n * d], [n, d, d, n])], ids=str
)
def test_orders_that_cannot_be_had(left: list[sympy.Expr], right: list[sympy.Expr]) -> None:
    with pytest.raises(Undecided, match="read in different orders"):
        fitted(left, right)
