"""Hypotheses in every form that people write, and which hypothesis a refuted claim lacks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Eq, Identity, MatrixSymbol, OneMatrix, Q, Symbol, ZeroMatrix

import otimes as ot
from otimes.algebra.errors import LanguageError
from otimes.algebra.facts.equations import ONE_EQUATION, stated

n, d, r = (Symbol(name, integer=True, positive=True) for name in ("n", "d", "r"))
A, B, P = (MatrixSymbol(name, n, n) for name in "ABP")
X, W = MatrixSymbol("X", n, d), MatrixSymbol("W", d, n)
ONE = OneMatrix(n, 1)
H, h = Symbol("H", integer=True, positive=True), Symbol("h", integer=True, nonnegative=True)
F = ot.Family("F", (H,), n, n)


@pytest.mark.parametrize(
    ("lhs", "rhs", "given"),
    [
        (P * P.T, Identity(n), [Q.orthogonal(P)]),
        (P * P.T, Identity(n), Q.orthogonal(P)),
        (A.T * B, A * B, [Q.symmetric(A) & Q.orthogonal(B)]),
        (A.T * B, A * B, ot.Fact("symmetric", A)),
        (P * ONE, ONE, ot.attention_pattern(P)),
        (P * ONE, ONE, [ot.attention_pattern(P, causal=False)]),
        (A * B, B * A, [Eq(A * B, B * A)]),
        (A * B, B * A, [ot.Fact("commutes_with", A, B)]),
        (A * B * B, B, [ot.Fact("projection", B), (A * B, B)]),
        (A.T, A, [ot.Fact("positive_semidefinite", A)]),
        (P.T * P, Identity(n), [ot.Fact("permutation", P), ot.Fact("orthogonal", P)]),
        (W * X * W, W, [ot.Fact("times_is_identity", W, X)]),
        (F[h] * ONE, ONE, [ot.Fact("rows_sum_to_one", F)]),
        (F[h] * ONE, ONE, ot.attention_pattern(F)),
        (A * A.inverse(), Identity(n), [Q.invertible(A)]),
    ],
)
def test_a_property_is_a_hypothesis(lhs: Any, rhs: Any, given: Any) -> None:
    verdict = ot.decide(lhs, rhs, given)
    assert verdict.status == "proved"
    if lhs != A * A.inverse():
        assert ot.decide(lhs, rhs).status == "refuted"
        assert set(verdict.used) <= set(range(9))


def test_the_hypothesis_that_is_used_is_that_of_the_user() -> None:
    given = [(B, B), ot.attention_pattern(P), Q.symmetric(A)]
    assert ot.decide(A.T, A, given).used == (2,)
    assert ot.decide(P * ONE, ONE, given).used == (1,)


def test_an_equation_is_a_claim() -> None:
    assert ot.decide(Eq(A * B, B * A)).status == "refuted"
    assert ot.decide(Eq(A * B, B * A), [(A * B, B * A)]).status == "proved"
    assert ot.decide(Eq(A * B, B * A), given=[(A * B, B * A)]).status == "proved"
    assert ot.prove(Eq(A * (B + A), A * B + A * A)).status == "proved"
    with pytest.raises(LanguageError, match=r"True alone: SymPy has evaluated the equation; write"):
        ot.decide(Eq(A, A))
    with pytest.raises(LanguageError, match="there is no right side"):
        ot.decide(A)
    with pytest.raises(LanguageError, match="an equation and another side"):
        ot.decide(Eq(A * B, B * A), A, [(A, B)])


@pytest.mark.parametrize(
    ("predicate", "says"),
    [
        (Q.unitary(A), r"the hypothesis Q\.unitary is not understood; known are Q\.symmetric"),
        (Q.prime(Symbol("x")), r"Q\.prime is not understood; known are Q\.positive"),
        (ot.Fact("nonnegative", A * B), "of a MatrixSymbol or a Family, not of a product"),
    ],
)
def test_what_is_not_understood_is_named(predicate: Any, says: str) -> None:
    with pytest.raises(LanguageError, match=says):
        ot.decide(A, B, [predicate])


def test_predicates_of_numbers() -> None:
    x = Symbol("x", real=True)
    same = (x * A, x * B)
    for said in (Q.nonzero(x), Q.positive(x), Q.negative(x)):
        assert ot.decide(A, B, [same, said]).status == "proved"
    for said in (Q.nonnegative(x), Q.real(x)):
        assert ot.decide(A, B, [same, said]).status == "refuted"
    assert ot.decide(x * A, A, [Q.real(x)]).status == "refuted"


# --- numbers without a negative entry


def numbers(found: Any, name: str) -> np.ndarray:
    return np.array(found.arrays[name].tolist(), dtype=object)


def test_a_counterexample_satisfies_what_is_no_equation() -> None:
    """Entries of a pattern are drawn; those of B are not restricted."""
    verdict = ot.decide(P.T * ONE, ONE, [ot.attention_pattern(P)])
    pattern = numbers(verdict.counterexample, "P")
    assert (pattern >= 0).all()
    assert (pattern.sum(axis=1) == 1).all()
    assert not np.triu(pattern, 1).any()
    assert any(column != 1 for column in pattern.sum(axis=0))
    found = ot.decide(F[h] * F[h], F[h], ot.attention_pattern(F)).counterexample
    family = numbers(found, "F")
    assert (family >= 0).all()
    assert all(Fraction(total) == 1 for total in family.sum(axis=-1).ravel())


def test_a_true_claim_is_not_refuted_by_negative_entries() -> None:
    """A nonnegative matrix whose entries sum to 0 is 0; it takes negative ones to refute that."""
    total = ONE.T * A * ONE
    given = [(total, ZeroMatrix(1, 1))]
    assert ot.decide(A, ZeroMatrix(n, n), given).status == "refuted"
    verdict = ot.decide(A, ZeroMatrix(n, n), [*given, ot.Fact("nonnegative", A)])
    assert verdict.status == "undecided"
    assert "only numbers with a negative entry in A" in verdict.reason
    assert verdict.counterexample is None


def test_each_property_holds_where_its_equation_does() -> None:
    """By plain NumPy: each equation at a matrix with the property, and at one without it."""
    swap, third = np.array([[0, 1], [1, 0]]), Fraction(1, 3)
    has: dict[str, Any] = {
        "zero": np.zeros((2, 2), int),
        "identity": np.eye(2, dtype=int),
        "orthogonal": swap,
        "orthonormal_columns": swap,
        "orthonormal_rows": swap,
        "diagonal": np.diag([2, 3]),
        "lower_triangular": np.array([[1, 0], [2, 3]]),
        "upper_triangular": np.array([[1, 2], [0, 3]]),
        "projection": np.array([[1, 5], [0, 0]]),
        "symmetric": np.array([[1, 2], [2, 3]]),
        "antisymmetric": np.array([[0, 2], [-2, 0]]),
        "rows_sum_to_one": np.array([[third, 1 - third], [2, -1]], dtype=object),
        "columns_sum_to_one": np.array([[third, 2], [1 - third, -1]], dtype=object),
        "rows_sum_to": np.array([[2, 3], [1, 4]]),
        "columns_sum_to": np.array([[2, 1], [3, 4]]),
        "commutes_with": np.array([[2, 3], [3, 2]]),
        "times_is_identity": swap,
        "invertible": np.array([[2, 1], [1, 1]]),
    }
    values = {"rows_sum_to": 5, "columns_sum_to": 5, "commutes_with": B, "times_is_identity": B}
    assert has.keys() == ONE_EQUATION.keys()
    for name, array in has.items():
        lhs, rhs = ONE_EQUATION[name](A, values.get(name))
        wrong = np.array([[7, 1], [4, 9]]) if name != "invertible" else None
        for entries, holds in ((array, True), (wrong, False)):
            if entries is None:
                continue
            arrays = {"A": np.array(entries, dtype=object), "B": np.array(swap, dtype=object)}
            left, right = (np.asarray(ot.evaluate(side, {**arrays, "n": 2})) for side in (lhs, rhs))
            assert bool((left == right).all()) == holds, name


# --- what would be needed


@pytest.mark.parametrize(
    ("lhs", "rhs", "given", "first"),
    [
        (A.T * B, A * B, (), "A is symmetric"),
        (P * P.T, Identity(n), (), "P is orthogonal"),
        (P * ONE, ONE, (), "P has rows that sum to one"),
        (A * A, A, (), "A is a projection"),
        (A * B, B * A, (), "A is diagonal and B is diagonal"),
        (A * B, (A * B).T, [(A.T, A), (B.T, B)], "A commutes with B"),
        (A * B * A, A, (), "A times B is the identity"),
        (X.T * X, Identity(d), (), "X has orthonormal columns"),
        (
            ot.HeadSum(F[h], (h, H)) ** 2,
            ot.HeadSum(F[h] * F[h], (h, H)),
            (),
            "H = 1: one head",
        ),
        (
            (X + ONE * MatrixSymbol("b_O", 1, d)) * W,
            X * W,
            (),
            "b_O is zero",
        ),
    ],
)
def test_the_missing_hypothesis_is_named(lhs: Any, rhs: Any, given: Any, first: str) -> None:
    needs = ot.decide(lhs, rhs, given).would_need
    assert first in [str(need) for need in needs][:2]
    for need in needs:
        assert ot.decide(need.lhs, need.rhs, [*given, *need.given]).status == "proved"


def test_nothing_is_needed_by_what_is_proved_or_hopeless() -> None:
    assert ot.decide(A * B, A * B).would_need == ()
    assert ot.decide(A, 2 * A + B).would_need == ()


def test_a_need_of_other_sizes_than_the_hypotheses_have_is_left_out() -> None:
    given = ["𝟏ᵀ P = 0"]
    found = ot.decide("(X + c 𝟏ᵀ) P", "X", given, shapes="X: n d, c: n 1, P: d d")
    assert found.status == "refuted"
    assert not any("square matrices" in str(need) for need in found.would_need)


def test_what_is_missing_is_said_wherever_a_refutation_is_shown() -> None:
    needs = "it holds if P is a projection"
    verdict = ot.decide(P * P, P)
    assert str(verdict) == f"<refuted: {verdict.reason}; {needs}>"
    assert needs in verdict._repr_html_()
    assert ot.decide(A, 2 * A + B).holds_if == ""
    assert needs not in str(ot.decide(P, P))
    with pytest.raises(ot.Refuted, match=f"\n{needs}$"):
        ot.prove(P * P, P)
    chain = ot.check_chain([P, P * P, P])
    assert str(chain).count(f"\n       {needs}\n") == 2
    assert chain._repr_html_().count(needs) == 2


def test_a_need_is_no_hypothesis_but_has_them() -> None:
    (need,) = ot.decide(P * P, P).would_need
    for given in (need, [need], (need,)):
        with pytest.raises(ot.LanguageError, match=r"given=\[\*need.given\]"):
            ot.decide(P * P, P, given)
        with pytest.raises(ot.LanguageError, match=r"given=\[\*need.given\]"):
            ot.check_chain([P * P, P], given)
    assert ot.decide(P * P, P, [*need.given]).status == "proved"
    sides = ot.HeadSum(F[h], (h, H)) ** 2, ot.HeadSum(F[h] * F[h], (h, H))
    sizes = next(need for need in ot.decide(*sides).would_need if not need.given)
    with pytest.raises(ot.LanguageError, match=r"decide\(need.lhs, need.rhs\)"):
        ot.decide(P * P, P, [sizes])


def test_a_chain_stands_under_the_same_hypotheses() -> None:
    found = ot.check_chain([P * P.T * A, A, A.T], [Q.orthogonal(P), sympy.Ne(n, 1)])
    assert [link.status for link in found] == ["proved", "refuted"]
    assert found.first_failure == 2


def test_stated_keeps_what_the_judge_reads() -> None:
    pair, inequality = (A, B), sympy.Gt(Symbol("a"), 0)
    found = stated([pair, inequality, Eq(A * B, B * A), ot.attention_pattern(P)])
    assert found.given[:3] == (pair, inequality, Eq(A * B, B * A))
    assert found.places == (0, 1, 2, 3, 3)
    assert found.nonnegative == {"P"}
