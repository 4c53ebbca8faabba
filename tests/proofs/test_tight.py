"""The case at which a bound is attained must satisfy everything that the bound supposes."""

import pytest
import sympy
from sympy import Identity, MatrixSymbol, Trace, Transpose

from otimes.algebra.facts import Fact
from otimes.algebra.language.linear import Family, OneHot, matmul
from otimes.proofs.checks.bounds import _tight
from otimes.proofs.claims import Bound, Entries

n, L = (sympy.Symbol(name, integer=True, positive=True) for name in "nL")
layer, i = sympy.symbols("l i", integer=True)
c = sympy.Symbol("c", positive=True)
W = Family("W", (L,), n, n)


def scaled(**tight: object) -> Bound:
    """Return 0 ≤ c x for x that is not negative, with a case in which both are zero."""
    x = MatrixSymbol("x", 1, 1)
    return Bound(
        0 * Trace(Identity(1)), c * Trace(x), (Entries(x, c),), [Fact("nonnegative", x)], tight
    )


def of_layers(values: object) -> Bound:
    """Return 0 ≤ an entry of the first of several matrices without negative entries."""
    entry = matmul(Transpose(OneHot(i, n)), W[0], OneHot(i, n))
    given = [Fact("nonnegative", W[layer])]
    return Bound(sympy.S.Zero, Trace(entry), (Entries(entry),), given, {"W": values, "i": 0})


@pytest.mark.parametrize(("value", "passed"), [(1, True), (2, True), (-1, False), (0, False)])
def test_a_value_that_its_symbol_excludes_is_refused(value: int, passed: bool) -> None:
    found = _tight(scaled(x=[[0]], c=value))
    assert found.passed is passed
    assert passed or found.seen == "the tight case has a value that its symbol excludes"


@pytest.mark.parametrize(("second", "passed"), [(3, True), (-3, False)])
def test_a_property_of_all_members_of_a_family_is_asked_of_each(second: int, passed: bool) -> None:
    found = _tight(of_layers([[[0]], [[second]]]))
    assert found.passed is passed
    assert passed or "does not satisfy" in found.seen
