"""Claims about nonlinear functions that are easy to get wrong: each verdict, and why it is due."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Inverse, MatrixSymbol, OneMatrix, ZeroMatrix

from otimes.algebra.errors import LanguageError
from otimes.algebra.evaluate.exact import exact_inverse
from otimes.algebra.language.intervals import Interval, bounds
from otimes.algebra.language.linear import Family, HeadSum, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from otimes.algebra.verdict import decide

n, d, H, K = sympy.symbols("n d H K", integer=True, positive=True)
h = sympy.Symbol("h", integer=True)
eps = sympy.Symbol("epsilon", positive=True)
S, X = MatrixSymbol("S", n, n), MatrixSymbol("X", n, d)
W, V = Family("W", (H,), d, d), Family("V", (K,), d, d)


@pytest.mark.parametrize("norm", [RMSNorm, LayerNorm])
def test_norms_with_different_eps_are_different_functions(norm: Any) -> None:
    assert decide(norm(X), norm(X, eps)).status == "refuted"
    assert decide(norm(X, 1), norm(X, 2)).status == "refuted"


def test_a_symbol_cannot_pass_for_the_causal_mask() -> None:
    with pytest.raises(LanguageError, match="'causal mask n' is a name of a constant matrix"):
        decide(CausalMask(n), MatrixSymbol("causal mask n", n, n))


def test_numbers_that_are_known_to_an_interval_do_not_differ_for_that() -> None:
    """cos(π/5) = (1 + √5)/4, which no axiom says and no trial can refute."""
    ones = OneMatrix(*S.shape)
    fifth = Activation("cos", matmul(sympy.pi / 5, ones))
    golden = matmul((1 + sympy.sqrt(5)) / 4, ones)
    assert decide(fifth, golden, budget=2).status == "undecided"


def test_an_inverse_eliminates_what_may_be_other_than_zero() -> None:
    tiny = Interval(bounds(Fraction(1, 10**100)) + 1) - 1  # 1e-100, and zero as far as is known
    matrix = np.array([[1, 0], [tiny, 1]], dtype=object)
    below = exact_inverse(matrix)[1, 0]
    certainly_differ = below != -Fraction(1, 10**100)
    assert not certainly_differ


@pytest.mark.parametrize(
    "e",
    [
        Activation("rsqrt", ZeroMatrix(n, d)),
        Activation("rsqrt", matmul(-1, OneMatrix(n, d))),
        RMSNorm(ZeroMatrix(n, d)),
        LayerNorm(OneMatrix(n, d)),
    ],
)
def test_what_is_defined_nowhere_is_undecided(e: Any) -> None:
    assert decide(e, OneMatrix(n, d)).status == "undecided"


def test_functions_may_stand_under_sums_that_share_the_name_of_an_index() -> None:
    """h runs over H values in one sum and over K in the other."""

    def heads(family: Family, count: Any, sign: int) -> Any:
        return HeadSum(Activation("relu", matmul(sign, X, family[h])), (h, count))

    lhs = matadd(heads(W, H, 1), heads(V, K, 1))
    rhs = matadd(heads(W, H, -1), heads(V, K, -1))
    rest = matadd(*[HeadSum(matmul(X, f[h]), (h, c)) for f, c in ((W, H), (V, K))])
    assert decide(lhs, matadd(rhs, rest)).status == "proved"
    assert decide(lhs, rhs).status == "refuted"


def test_the_inverse_of_a_pattern_is_what_it_is() -> None:
    pattern = RowSoftmax(S, CausalMask(n))
    assert decide(matmul(Inverse(pattern), OneMatrix(n, 1)), OneMatrix(n, 1)).status == "proved"
