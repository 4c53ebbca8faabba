"""Index arithmetic: what is true is proved with a certificate, and what is false is refuted."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import sympy

from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.arrays import evaluate
from otimes.algebra.language.latex import latex
from otimes.algebra.language.linear import HeadSum
from otimes.algebra.language.positions import Positions, Shift
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.normal_form import normal_form
from otimes.algebra.verdict import decide
from otimes.proofs import replay
from tests.algebra.decide.indices import (
    FALSE,
    TRUE,
    A,
    Family,
    K,
    L,
    M,
    R,
    S,
    X,
    Z,
    apart,
    d,
    i,
    j,
    l,
    n,
    near_misses,
    upto,
    x,
)

SEEDS = range(12)
LONG = os.environ.get("OTIMES_LONG") == "1"
PLAIN = [
    name for name, (lhs, _, *given) in TRUE.items() if not given and not lhs.has(sympy.Inverse)
]


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_is_proved_and_checked(name: str) -> None:
    lhs, rhs, *given = TRUE[name]
    verdict = decide(lhs, rhs, given=given[0] if given else ())
    assert verdict.status == "proved", verdict.reason
    assert replay.check(verdict.certificate)


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_true_holds_in_loops(name: str) -> None:
    lhs, rhs = TRUE[name][:2]
    assert max(apart(lhs, rhs, seed) for seed in SEEDS) < 1e-9


@pytest.mark.parametrize("name", FALSE)
def test_what_is_false_is_refuted(name: str) -> None:
    lhs, rhs, *given = FALSE[name]
    verdict = decide(lhs, rhs, given=given[0] if given else ())
    assert verdict.status == "refuted", verdict.reason
    assert verdict.counterexample is not None
    if not given and not lhs.has(sympy.Inverse):
        assert max(apart(lhs, rhs, seed) for seed in SEEDS) > 1e-9


@pytest.mark.parametrize("name", PLAIN)
def test_near_misses_are_decided_as_loops_have_them(name: str) -> None:
    lhs, rhs = TRUE[name][:2]
    misses = [*[(e, rhs) for e in near_misses(lhs)], *[(lhs, e) for e in near_misses(rhs)]]
    for left, right in misses if LONG else misses[::4]:
        try:
            verdict = decide(left, right)
        except OtimesError:  # an index out of range
            continue
        gap = max(apart(left, right, seed) for seed in range(20))
        assert verdict.status == ("proved" if gap < 1e-9 else "refuted"), (left, right)
        if verdict.status == "proved":
            assert replay.check(verdict.certificate)


@pytest.mark.parametrize(
    ("e", "text", "tex"),
    [
        (upto(x[j, 0]), "Σ_0≤j≤i x[j, 0]", r"\sum_{j=1}^{i} x_{j,1}"),
        (upto(x[j, 0], end=n - 1), "Σ_j x[j, 0]", r"\sum_{j=1}^{n} x_{j,1}"),
        (HeadSum(K[j] * K[j].T, (j, i)), "Σ_j≤(i - 1) ", r"\sum_{j=1}^{i - 1}"),
        (HeadSum(S[l + 1], (l, L)), "Σ_l S[l + 1]", r"\sum_{l=1}^{L} S^{l + 1}"),
        (R[j - i], "R[-i + j]", "R^{- i + j}"),
        (A[n - 1, i], "A[n - 1, i]", "A_{n,i}"),
        (Shift(n) * Positions(n), "Shift_n pos_n", r"\operatorname{Shift}_{n}"),
    ],
)
def test_they_are_printed(e: Any, text: str, tex: str) -> None:
    assert text in unicode_text(e)
    assert tex in latex(e)


def test_normal_forms_and_values_have_them() -> None:
    assert "S[1+·]" in str(normal_form(HeadSum(S[l + 1], (l, L))))
    shifted = evaluate(Shift(n) * X, {"X": np.arange(6.0).reshape(3, 2)})
    assert shifted.tolist() == [[0, 0], [0, 1], [2, 3]]
    assert evaluate(upto(x[j, 0]), {"x": np.arange(4.0).reshape(4, 1), "i": 2}) == 3
    members = np.arange(12.0).reshape(3, 2, 2)
    summed = evaluate(HeadSum(S[l + 1], (l, L)), {"S": members, "L": 2})
    assert summed.tolist() == (members[1] + members[2]).tolist()
    assert evaluate(M, {"n": 2}).tolist() == [[1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("side", "words"),
    [
        (Z[l + 1] * Z[n + 1], "the index n \\+ 1 of Z may be out of range"),
        (sympy.Sum(x[j, 0], (j, 0, i + 1)), "ends 1 away from an index"),
        (A ** (-n) * A**n, None),
        (Family("R", (n,), d, d)[i - j] * K[i] * K[j].T, "may be out of range"),
        (Family("R", (n,), d, d)[i - j] * K[j], "nothing says how many values the index i"),
        (A ** sympy.Symbol("t", integer=True, nonpositive=True), "may be 0"),
        (A ** (L / 2), "is not in the language"),
    ],
)
def test_what_is_out_of_range_is_one_sentence(side: Any, words: str | None) -> None:
    if words is None:
        assert decide(side, side).status == "proved"
        return
    with pytest.raises(OtimesError, match=words):
        decide(side, side)
