"""A symbol that counts the values of an index is a size, also where a sum ends at it."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import KroneckerDelta, MatrixSymbol, symbols

from otimes.algebra.errors import ShapeError
from otimes.algebra.language.index_arithmetic import elaborated
from otimes.algebra.language.linear import HeadSum
from otimes.algebra.verdict import decide

L, n = symbols("L n", integer=True, positive=True)
a, s, t = symbols("a s t", integer=True)
A = MatrixSymbol("A", n, n)
CHOSEN = HeadSum(KroneckerDelta(a, s, (0, L - 1)) * A, (s, L))


@pytest.mark.parametrize("side", [CHOSEN, HeadSum(CHOSEN, (t, L + 1))])
def test_a_count_is_no_index(side: Any) -> None:
    assert elaborated([side, A]) == ([side, A], [])


def test_what_runs_over_two_ranges_is_one_sentence() -> None:
    with pytest.raises(ShapeError, match="runs over L values, but over L \\+ 1 elsewhere"):
        decide(HeadSum(CHOSEN, (a, L + 1)), A)
