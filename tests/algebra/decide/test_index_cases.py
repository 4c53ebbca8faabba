"""The cases of a free index: together they are all of its values, and each has its proof."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy

import otimes as ot
from otimes.algebra.decide.index_cases import case_lists
from otimes.algebra.verdict import decide
from otimes.proofs.replay import Rejected, check
from tests.algebra.decide.attack import rejected
from tests.algebra.decide.unrolled import (
    F,
    H,
    I,
    L,
    a,
    b,
    d,
    i,
    j,
    key,
    l,
    n,
    prod,
    qq,
    s,
    t,
    tot,
    w,
    z,
)

MOST = 5
FORMS = {  # a product or sum that exists for i from the least value to L + more
    "i layers": (prod(F[l], i), 0, 0),
    "the rest": (prod(F[i + l], L - i), 0, 0),
    "up to the next state": (prod(w[l + 1], i), 0, 0),
    "and the next layer": (F[i] * prod(F[l], i), 0, -1),
    "two layers left": (F[i + 1] * prod(F[l], i), 0, -2),
    "one layer less": (F[i - 1] * prod(F[l], i), 1, 0),
}
E = ot.Family("E", (H,), n, n)
R = ot.Family("R", ((1 - n, n - 1),), d, d)
rotary = [(R[i].T * R[j], R[j - i])]


@pytest.mark.parametrize("name", FORMS)
def test_the_cases_are_all_values_of_the_index(name: str) -> None:
    e, least, more = FORMS[name]
    wanted = {(at, many) for many in range(1, MOST) for at in range(least, many + more + 1)}
    *_, cases = case_lists(a**i * b**L * e, e, ())  # the last list does not leave out members
    found = []
    for case in cases:
        numbers = [_exponent(case.lhs, base) for base in (a, b)]
        sizes = sorted(sympy.Tuple(*numbers).free_symbols, key=str)
        for values in product(range(1, MOST), repeat=len(sizes)):
            put = dict(zip(sizes, values, strict=True))
            found.append(tuple(int(number.subs(put)) for number in numbers))
    here = [one for one in found if one[1] < MOST]
    assert set(here) == wanted
    assert len(here) == len(wanted)


def _exponent(e: Any, base: Any) -> Any:
    powers = [p.exp for p in sympy.preorder_traversal(e) if p.is_Pow and p.base == base]
    return sum(powers, sympy.Integer(e.has(base) and not powers))


def claimed(which: str) -> tuple[Any, Any, list[Any]]:
    after, before = prod(F[i + l], L - i), prod(F[l], i)
    if which == "split":
        return prod(F[l]), after * before, []
    return z[L], z[i] + tot(F[i + l] * z[i + l], l, L - i), [(z[t + 1], z[t] + F[t] * z[t])]


def test_each_case_has_its_certificate_and_its_verdict() -> None:
    verdict = decide(*claimed("split"))
    assert [one.status for one in verdict.cases] == ["proved"] * 3
    made = json.loads(json.dumps(verdict.certificate))
    assert len(made["cases"]) == 3
    check(made)
    for cases in (made["cases"][1:], made["cases"][:2], [*made["cases"], made["cases"][0]]):
        with pytest.raises(Rejected, match="cases"):
            check({**made, "cases": cases})
    one = made["cases"][0]
    false = {**one["proof"], "lhs": ["MatMul", 2, ["Identity", 1]], "rhs": one["proof"]["lhs"]}
    with pytest.raises(Rejected):
        check({**made, "cases": [{**one, "proof": false}, *made["cases"][1:]]})


def test_the_members_from_the_ith_on_are_any_members() -> None:
    lists = list(case_lists(*claimed("stream")))
    assert [len(one) for one in lists] == [1, 3]
    fixed = [*claimed("stream")[2], (z[0], sympy.ZeroMatrix(*z.shape))]
    assert [len(one) for one in case_lists(*claimed("stream")[:2], fixed)] == [3]


def test_a_number_of_members_that_is_a_size_as_well_is_kept() -> None:
    square = prod(F[l], i)
    assert len(next(iter(case_lists(square, square, ())))) == 2
    assert len(next(iter(case_lists(L * square, square, ())))) == 3
    assert len(next(iter(case_lists(square, square, [sympy.Ne(L, 2)])))) == 3


def test_an_index_of_a_hypothesis_is_another_one() -> None:
    given = [(F[i].T * F[i], I)]
    assert decide(prod(F[l], i).T * prod(F[l], i), I, given).status == "proved"


def test_relative_positions_are_the_same_further_on() -> None:
    after = qq[i].T * R[i + s].T * R[j + s] * key[j]
    for first, second, status in ((i, j, "proved"), (j, i, "refuted")):
        claim = after, qq[i].T * R[first].T * R[second] * key[j], rotary
        verdict = decide(*claim)
        assert verdict.status == status
        if status == "proved":
            assert rejected(verdict) is None
            assert len(verdict.cases) == 2
    found = verdict.counterexample
    q, k = (found.arrays[name][found.indices[at]] for name, at in (("qq", i), ("key", j)))
    turned = [q.T @ found.arrays["R"][at - 1 + found.sizes[n]] @ k for at in _between(found)]
    assert (found.lhs, found.rhs) == tuple(e[0, 0] for e in turned)


def _between(found: Any) -> tuple[int, int]:
    apart = found.indices[j] - found.indices[i]
    return apart, -apart


x, X = sympy.MatrixSymbol("x", n, 1), ot.Family("X", (n,), d, d)
S, first = ot.Family("S", (n + 1,), d, d), ot.HeadSum(X[j], (j, i))
last = ot.OneHotLast(n)[j, 0]
of_last = ot.HeadSum(last * X[j], (j, i))  # 0 for i < n
AT_N = {
    "entries": (sympy.Sum(last * x[j, 0], (j, 0, i - 1)), sympy.S.Zero, []),
    "two indices": (of_last * ot.HeadSum(last * X[j], (j, l)), 0 * X[0], []),
    "a state": (S[i] + of_last, S[i], [(S[l + 1], S[l] + X[l])]),
    "beside a product": (prod(X[l], i) + of_last, prod(X[l], i), []),
}


@pytest.mark.parametrize("name", AT_N)
def test_a_sum_of_the_first_i_terms_may_be_of_all(name: str) -> None:
    found = decide(*AT_N[name], budget=2).counterexample
    assert found is not None
    assert found.indices[i] == found.sizes[n]


def test_with_a_lemma_a_sum_of_the_first_i_terms_may_be_of_all() -> None:
    lemma = (first.T, ot.HeadSum(X[j].T, (j, i)))
    assert decide((first + of_last).T, lemma[1], [], lemma=lemma).status == "refuted"
    assert decide(first.T * X[0], lemma[1] * X[0], [], lemma=lemma).status == "proved"


def test_what_is_said_of_the_first_i_terms_is_said_of_all() -> None:
    defined = [(S[i], first)]
    for claim in ((S[n], ot.HeadSum(X[j], (j, n))), (S[i + 1], S[i] + X[i]), (S[i], first)):
        verdict = decide(*claim, defined, budget=2)
        assert verdict.status == "proved"
        assert rejected(verdict) is None
    assert decide(S[i + 1], S[i] + X[0], defined, budget=2).status == "refuted"
    nothing = [(sympy.Sum(x[j, 0], (j, 0, i - 1)), sympy.S.Zero)]
    assert decide(x[i, 0], sympy.S.Zero, nothing, budget=2).status == "proved"


def test_an_index_of_other_things_has_their_values() -> None:
    assert decide(of_last * X[i], 0 * X[i]).status == "proved"
    assert decide(ot.HeadSum(last * X[j], (j, i + 1)), 0 * X[0]).status == "refuted"


def test_an_index_that_is_added_is_zero_or_a_size() -> None:
    (zero, more), *_ = case_lists(F[i + s] * F[j + s], F[j + s] * F[i + s], ())
    assert zero.lhs == F[i] * F[j]
    member, _ = more.lhs.args
    (size,) = member.indices[0].free_symbols - {i}
    assert size.is_positive
    assert (member.family.counts[0] - size).is_positive
    assert not list(case_lists(F[i + s] * F[s] * F[i], F[s], ()))  # both are alone somewhere


def test_a_case_may_have_cases_of_another_index() -> None:
    given = [(F[i].T * F[i], I), (E[t].T * E[t], I)]
    claim = prod(F[l], i).T * prod(F[l], i) * prod(E[l], j).T * prod(E[l], j), I, given
    verdict = decide(*claim)
    assert verdict.status == "proved"
    assert len(verdict.cases) > 2
    assert rejected(verdict) is None


@pytest.mark.parametrize("assumed", ["nonpositive", "even", "positive"])
def test_other_symbols_are_no_indices(assumed: str) -> None:
    symbol = sympy.Symbol("i", integer=True, **{assumed: True})
    assert not list(case_lists(prod(F[l], symbol), prod(F[l], symbol), ()))


def test_a_counterexample_to_a_case_is_one_to_the_claim() -> None:
    square, turned = prod(F[l], i), prod(F[l].T, i)
    found = decide(square, turned).counterexample
    assert (found.sizes[L], found.indices[i]) == (len(found.arrays["F"]), found.indices[i])
    assert 0 < found.indices[i] <= found.sizes[L]
    assert {*found.sizes} == {n, L}
    x, y = np.eye(found.sizes[n], dtype=object), np.eye(found.sizes[n], dtype=object)
    for layer in found.arrays["F"][: found.indices[i]]:
        x, y = layer @ x, layer.T @ y
    assert (x[found.entry], y[found.entry]) == (found.lhs, found.rhs)
