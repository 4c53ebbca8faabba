"""Sums over paths of any order that are split at a layer, and the recurrences at either end."""

from __future__ import annotations

import random
from typing import Any

import pytest
import sympy
from sympy import Identity, Inverse, MatrixSymbol, Symbol, Trace, Transpose, ZeroMatrix

from otimes.algebra.decide import index_cases
from otimes.algebra.errors import LanguageError
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, matadd, matmul
from otimes.algebra.language.split_orders import joined
from otimes.algebra.verdict import decide
from otimes.proofs.replay import check
from tests.proofs.plain_values import Certified, Numbers, Plain

n, L, k, p, q = sympy.symbols("n L k p q", integer=True, positive=True)
l, s, t, i, j = sympy.symbols("l s t i j", integer=True)  # noqa: E741 (a layer)
S, c = MatrixSymbol("S", n, n), Symbol("c")
F, G, M = Family("F", (L,), n, n), Family("G", (p + q,), n, n), Family("M", (L + 1,), n, n)
O = ZeroMatrix(n, n)  # noqa: E741 (zero)


def paths(order: Any, count: Any = L, first: Any = 0, of: Any = F, reverse: bool = False) -> Any:
    """Return the sum over the paths of an order through `count` layers, from `first` on."""
    return OrderSum(of[l + first], (l, count), order, reverse)


def conjugate(order: Any, count: Any, first: Any = 0) -> Any:
    return OrderSum(Inverse(S) * F[l + first] * S, (l, count), order)


def turned(order: Any, count: Any, first: Any = 0) -> Any:
    return OrderSum(Transpose(F[l + first]), (l, count), order, True)


def split(*factors: Any, upto: Any = k) -> Any:
    """Return the sum over the number s of layers below."""
    return HeadSum(matmul(*factors), (s, upto + 1))


below, above = paths(s, i), paths(k - s, L - i, i)
TRUE: dict[str, Any] = {
    "at a layer": (paths(k), split(above, below)),
    "p and q layers": (paths(k, p + q, of=G), split(paths(k - s, q, p, G), paths(s, p, of=G))),
    "the other index": (paths(k), split(paths(s, L - i, i), paths(k - s, i))),
    "any order": (paths(j), split(paths(j - s, L - i, i), below, upto=j)),
    "rows": (
        paths(k, reverse=True),
        split(paths(s, i, reverse=True), paths(k - s, L - i, i, reverse=True)),
    ),
    "transposed": (Transpose(paths(k)), split(Transpose(below), Transpose(above))),
    "transposed layers": (Transpose(paths(k)), split(turned(s, i), turned(k - s, L - i, i))),
    "transposed products": (
        Transpose(paths(k)),
        HeadSum(Transpose(matmul(above, below)), (s, k + 1)),
    ),
    "gauge": (
        matmul(Inverse(S), paths(k), S),
        split(conjugate(k - s, L - i, i), conjugate(s, i)),
    ),
    "gauge of p + q layers": (
        matmul(Inverse(S), paths(k, p + q, of=G), S),
        OrderSum(Inverse(S) * G[l] * S, (l, p + q), k),
    ),
    "between matrices": (matmul(S, paths(k)), split(S, above, below)),
    "weighed": (matmul(c**k, paths(k)), split(c ** (k - s) * c**s, above, below)),
    "in three": (
        paths(k),
        HeadSum(
            matmul(paths(k - s - t, L - i - j, i + j), paths(t, j, i), below),
            (s, k + 1),
            (t, k - s + 1),
        ),
    ),
    "over all orders": (
        LayerProduct(Identity(n) + F[l], (l, L)),
        HeadSum(split(above, below), (k, L + 1)),
    ),
    "trace": (Trace(paths(k)), Trace(split(above, below))),
    "order two": (
        paths(2, p + q, of=G),
        matadd(paths(2, q, p, G), matmul(paths(1, q, p, G), paths(1, p, of=G)), paths(2, p, of=G)),
    ),
    "one matrix": (
        OrderSum(S, (l, p + q), k),
        split(OrderSum(S, (l, q), k - s), OrderSum(S, (l, p), s)),
    ),
    "last of L + 1": (
        paths(k, L + 1, of=M),
        matadd(paths(k, of=M), matmul(M[L], paths(k - 1, of=M))),
    ),
    "first of L + 1": (
        paths(k, L + 1, of=M),
        matadd(paths(k, L, 1, M), matmul(paths(k - 1, L, 1, M), M[0])),
    ),
    "last of L": (paths(k), matadd(paths(k, L - 1), matmul(F[L - 1], paths(k - 1, L - 1)))),
    "first of L": (paths(k), matadd(paths(k, L - 1, 1), matmul(paths(k - 1, L - 1, 1), F[0]))),
    "layer i": (paths(k, i + 1), matadd(paths(k, i), matmul(F[i], paths(k - 1, i)))),
    "more than there are": (paths(L + k), O),
    "all of them": (paths(L), LayerProduct(F[l], (l, L))),
    "last factor": (LayerProduct(F[l], (l, L)), matmul(F[L - 1], LayerProduct(F[l], (l, L - 1)))),
}
FALSE: dict[str, Any] = {
    "wrong order of the factors": (paths(k), split(below, above)),
    "one term short": (paths(k), split(above, below, upto=k - 1)),
    "another order": (paths(k + 1), split(above, below)),
    "the same layers twice": (
        paths(k, p + q, of=G),
        split(paths(k - s, q, of=G), paths(s, p, of=G)),
    ),
    "transposed in order": (Transpose(paths(k)), split(Transpose(above), Transpose(below))),
    "gauge the other way": (
        matmul(S, paths(k), Inverse(S)),
        split(conjugate(k - s, L - i, i), conjugate(s, i)),
    ),
    "weighed by less": (matmul(c**k, paths(k)), split(c**s, above, below)),
    "last on the right": (paths(k), matadd(paths(k, L - 1), matmul(paths(k - 1, L - 1), F[L - 1]))),
    "last without less": (paths(k), matadd(paths(k, L - 1), matmul(F[L - 1], paths(k, L - 1)))),
    "one more than half": (paths(L), O),
}


def values(e: Any, seed: int) -> Any:
    """Return what an expression is at random small sizes, by loops over paths."""
    draw = random.Random(seed)
    sizes = {"n": 2, "p": draw.randint(1, 3), "q": draw.randint(1, 2), "k": draw.randint(1, 3)}
    numbers = Numbers({**sizes, "L": draw.randint(2, 4)}, seed)
    empty = {key: [] for key in ("sizes", "scalars", "tensors", "indices", "given")}
    at = {j: draw.randint(0, 1), i: draw.randint(0, 1)}
    return Plain(numbers, Certified(empty, numbers)).value(e, at)


@pytest.mark.parametrize("name", TRUE)
def test_it_is_proved(name: str) -> None:
    lhs, rhs = TRUE[name]
    assert all(values(lhs, seed) == values(rhs, seed) for seed in range(4))
    verdict = decide(lhs, rhs)
    assert verdict.status == "proved", verdict
    check(verdict.certificate)


@pytest.mark.parametrize("name", FALSE)
def test_a_near_miss_is_refuted(name: str) -> None:
    lhs, rhs = FALSE[name]
    assert any(values(lhs, seed) != values(rhs, seed) for seed in range(9))
    assert decide(lhs, rhs).status == "refuted"


def test_only_the_paths_through_both_parts_are_joined() -> None:
    apart = split(paths(k - s, L - i, i), S, paths(s, i))
    assert joined(apart) is None
    assert joined(split(above, below, upto=k + 1)) is None
    assert joined(split(above, paths(s, i, reverse=True))) is None
    with_index = HeadSum(matmul(c**s, above, paths(s, i)), (s, k + 1))
    assert joined(with_index) is None
    empty = split(above, paths(s, 0))
    assert joined(empty) == paths(k, L - i, i)


def test_an_order_is_not_negative() -> None:
    with pytest.raises(LanguageError, match="may be negative"):
        decide(paths(k, p + q, of=G), split(paths(k - 1 - s, q, p, G), paths(s, p, of=G)))


def test_what_holds_from_two_layers_on_is_not_refuted_at_one() -> None:
    """A statement about L - 1 layers presupposes that there is one."""
    whole, less = HeadSum(F[l], (l, L)), HeadSum(F[l], (l, L - 1))
    (cases,) = index_cases.case_lists(whole, less, ())
    assert [(case.at, case.beyond) for case in cases] == [("L = r + 1", False), ("L = 1", True)]
