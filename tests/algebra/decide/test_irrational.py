"""π and irrational roots: equations between intervals are refuted, and none that is true."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
import sympy
from sympy import MatrixSymbol, Rational, Symbol, sqrt

import otimes as ot
from otimes.algebra.evaluate.exact import Assignment, exact_value
from otimes.algebra.language.intervals import Interval, bounds, root
from otimes.algebra.language.latex import latex
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.verdict import decide
from otimes.algebra.written import reads_back, written
from otimes.proofs.replay import check
from tests.algebra.decide.irrational import SHAPES, TRUE, slipped

n, d = (Symbol(name, integer=True, positive=True) for name in "nd")
X = MatrixSymbol("X", n, d)
OPEN = 3  # true, and without an axiom: two forms of gelu_tanh, and sin(X + π)


def test_no_identity_of_irrational_numbers_is_refuted() -> None:
    said = [decide(left, right, shapes=SHAPES).status for left, right in TRUE]
    assert "refuted" not in said
    assert said.count("undecided") <= OPEN


def test_every_slip_in_a_constant_sign_or_factor_is_refuted() -> None:
    wrong = [pair for pair in slipped() if decide(*pair, shapes=SHAPES).status != "refuted"]
    assert not wrong
    assert len(slipped()) > 60


def test_two_spellings_of_pi_are_one_number_and_a_symbol_of_that_name_is_another() -> None:
    assert decide(sympy.pi * X, ot.pi * X).status == "proved"
    assert decide(ot.pi * X, Symbol("π") * X).status == "refuted"
    assert decide(Symbol("π", positive=True) * X, ot.pi * X).status == "refuted"


def test_what_is_proved_of_pi_has_a_certificate() -> None:
    verdict = decide(sqrt(2 / sympy.pi) * X, sqrt(2) * sqrt(sympy.pi) * X / sympy.pi)
    assert verdict.status == "proved"
    check(json.loads(json.dumps(decide(sympy.pi * X + X, (1 + ot.pi) * X).certificate)))


@pytest.mark.parametrize(
    "other", [Rational(22, 7), Rational(355, 113), sqrt(10), sqrt(2) + sqrt(3)]
)
def test_pi_is_none_of_its_approximations(other: sympy.Expr) -> None:
    found = decide(sympy.pi, other).counterexample
    assert found is not None
    assert found.scalars == {}


def test_an_inequality_with_pi_is_met() -> None:
    a = Symbol("a")
    found = decide(a * X, 4 * X, [a > sympy.pi]).counterexample
    assert found is not None
    assert found.scalars[a] > math.pi


def test_an_irrational_root_lies_in_its_interval() -> None:
    for base, power in product(("2", "3", "1/3", "5/7"), ("1/2", "-1/2", "2/3", "-5/4")):
        number, exponent = sympy.Rational(base), sympy.Rational(power)
        found = exact_value(sympy.Pow(number, exponent), Assignment({}, {}))
        with mpmath.workdps(60):
            value = (mpmath.mpf(number.p) / number.q) ** (mpmath.mpf(exponent.p) / exponent.q)
            low, high = (mpmath.mpf(end.mid) for end in (found.bounds.a, found.bounds.b))
            close = mpmath.mpf(2) ** -190  # of an interval of 200 bits
            assert low - close <= value <= high + close
            assert high - low < mpmath.mpf(2) ** -180


def test_intervals_are_ordered_where_that_is_certain() -> None:
    two = root(2, Fraction(1, 2))
    assert isinstance(two, Interval)
    assert two > 1
    assert two < 2
    assert two >= 1
    assert two <= 2
    wide = Interval(bounds(two))
    assert not two < wide
    assert not two > wide


def test_pi_is_written_and_read_back() -> None:
    equation = (sqrt(2 / ot.pi) * X, X)
    text = written(*equation)
    assert reads_back(text, *equation)
    assert unicode_text(ot.pi * X) == "π X"
    assert latex(ot.pi * X) == r"\pi \, X"
    assert latex(sympy.pi * X) == r"\pi \, X"


def test_pi_has_its_value_in_floats() -> None:
    M = MatrixSymbol("M", 2, 2)
    found = ot.evaluate(ot.pi * M, {M: np.eye(2)})
    assert found[0, 0] == math.pi
