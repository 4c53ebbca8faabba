"""Claims about every depth: proved by induction, refuted at some depth, or left open."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Trace, Transpose

from otimes.algebra.decide.induction import induction
from otimes.algebra.errors import RuleError, ShapeError
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.algebra.language.nonlinear import RowSoftmax
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import proof_alone

n, d, H, L, r = sympy.symbols("n d H L r", integer=True, positive=True)
l, h, i, j, k = sympy.symbols("l h i j k", integer=True)  # noqa: E741 (as on paper)
W, U = Family("W", (L,), n, n), Family("U", (L,), n, n)
B = Family("B", (L,), d, d)
A, V = Family("A", (L, H), n, n), Family("V", (L, H), d, d)
P = MatrixSymbol("P", n, n)
I_n, I_d, I_nd = Identity(n), Identity(d), Identity(n * d)
S = MatrixSymbol("M", d, d)
heads = HeadSum(kron(A[l, h], V[l, h]), (h, H))
square = Family("S", (L,), L, L)


def product(body: Any, reverse: bool = False) -> LayerProduct:
    return LayerProduct(body, (l, L), reverse)


def power(body: Any) -> LayerProduct:
    """Return the power of order k of a matrix."""
    return LayerProduct(body, (j, k))


def before(body: Any) -> LayerProduct:
    """Return the product of the layers before layer l."""
    return LayerProduct(body, (j, l))


def first(runs: Any, count: Any, reverse: bool = False) -> HeadSum:
    """Return the paths of order 0, …, runs - 1 through so many layers."""
    return HeadSum(OrderSum(W[j], (j, count), k, reverse), (k, runs))


def with_outer(index: Any) -> HeadSum:
    """Return a sum over layers in which the layers before one speak of that one."""
    return HeadSum(matmul(U[index], LayerProduct(matmul(W[j], U[index]), (j, index))), (index, L))


def ones(rows: Any, cols: Any = 1) -> Any:
    return OneMatrix(rows, cols)


stream = Family("X", (L + 1,), n, n)
TRUE: dict[str, tuple[Any, ...]] = {
    "differences beside a product": (
        matmul(HeadSum(matadd(stream[l + 1], -stream[l]), (l, L)), product(W[l])),
        matmul(matadd(stream[L], -stream[0]), product(W[l])),
    ),
    "transpose": (Transpose(product(W[l])), product(Transpose(W[l]), True)),
    "layers of a tensor product": (
        product(kron(W[l], B[l])),
        kron(product(W[l]), product(B[l])),
    ),
    "paths by order": (
        product(matadd(I_nd, heads)),
        HeadSum(OrderSum(heads, (l, L), k), (k, L + 1)),
    ),
    "paths by order, rows": (
        product(matadd(I_n, W[l]), True),
        HeadSum(OrderSum(W[l], (l, L), k, True), (k, L + 1)),
    ),
    "what each layer adds": (
        product(matadd(I_n, W[l])),
        matadd(I_n, HeadSum(matmul(W[l], before(matadd(I_n, W[j]))), (l, L))),
    ),
    "order one": (OrderSum(W[l], (l, L), 1), HeadSum(W[l], (l, L))),
    "order zero": (OrderSum(W[l], (l, L), 0), I_n),
    "a projection many times": (product(P), P, ((matmul(P, P), P),)),
    "orthogonal layers": (
        matmul(Transpose(product(W[l])), product(W[l])),
        I_n,
        ((matmul(Transpose(W[l]), W[l]), I_n),),
    ),
    "patterns all the way": (
        matmul(product(W[l]), ones(n)),
        ones(n),
        ((matmul(W[l], ones(n)), ones(n)),),
    ),
    "softmax patterns all the way": (matmul(product(RowSoftmax(W[l])), ones(n)), ones(n)),
    "what commutes with each layer": (
        matmul(product(W[l]), P),
        matmul(P, product(W[l])),
        ((matmul(W[l], P), matmul(P, W[l])),),
    ),
    "heads that read what one head at most has touched": (
        matadd(I_n, OrderSum(W[l], (l, L), 1), OrderSum(W[l], (l, L), 2)),
        matadd(
            I_n,
            HeadSum(matmul(W[l], matadd(I_n, OrderSum(W[j], (j, l), 1))), (l, L)),
        ),
    ),
    "what layers make of one order is the next": (
        OrderSum(W[j], (j, L), r),
        HeadSum(matmul(W[l], OrderSum(W[j], (j, l), r - 1)), (l, L)),
    ),
    "the replay, run after run": (
        first(r + 1, L),
        matadd(I_n, HeadSum(matmul(W[l], first(r, l)), (l, L))),
    ),
    "the replay, rows": (
        first(r + 1, L, True),
        matadd(I_n, HeadSum(matmul(first(r, l, True), W[l]), (l, L))),
    ),
    "a layer that the layers before it speak of": (
        matadd(product(W[l]), with_outer(l)),
        matadd(product(W[l]), with_outer(i)),
    ),
    "the number of paths": (
        Trace(product((1 + H) * Identity(1))),
        (1 + H) ** L,
    ),
    "all orders, each with a mark": (
        product(matadd(kron(I_n, I_d), kron(W[l], S))),
        HeadSum(kron(OrderSum(W[l], (l, L), k), power(S)), (k, L + 1)),
    ),
    "all orders, rows, the mark in front": (
        product(matadd(kron(I_d, I_n), kron(S, W[l])), True),
        HeadSum(kron(power(S), OrderSum(W[l], (l, L), k, True)), (k, L + 1)),
    ),
    "bodies in other words": (product(matadd(I_n, W[l])), product(matadd(W[l], I_n))),
}
FALSE: dict[str, tuple[Any, ...]] = {
    "order": (product(W[l]), product(W[l], True)),
    "layers of a tensor product, one reversed": (
        product(kron(W[l], B[l])),
        kron(product(W[l]), product(B[l], True)),
    ),
    "a factor too many": (
        product(matadd(2 * I_nd, heads)),
        HeadSum(OrderSum(heads, (l, L), k), (k, L + 1)),
    ),
    "one order too few": (
        product(matadd(I_n, W[l])),
        HeadSum(OrderSum(W[l], (l, L), k), (k, L)),
    ),
    "on the wrong side": (
        product(matadd(I_n, W[l])),
        matadd(I_n, HeadSum(matmul(before(matadd(I_n, W[j])), W[l]), (l, L))),
    ),
    "only first order": (product(matadd(I_n, W[l])), matadd(I_n, HeadSum(W[l], (l, L)))),
    "from layer two on": (product(P), matmul(P, P), ((matmul(P, P, P), matmul(P, P)),)),
    "layers apart": (product(matmul(W[l], U[l])), matmul(product(W[l]), product(U[l]))),
    "true for one layer": (product(W[l]), matmul(*[HeadSum(W[l], (l, L))])),
    "no layers but a depth": (L * I_n, HeadSum(Identity(n), (l, L)) + Identity(n)),
    "heads that read all that is before": (
        matadd(I_n, OrderSum(W[l], (l, L), 1), OrderSum(W[l], (l, L), 2)),
        matadd(I_n, HeadSum(matmul(W[l], before(matadd(I_n, W[j]))), (l, L))),
    ),
    "a factor that vanishes at no layer": (
        matmul(L, P, product(I_n)),
        matmul(L, Transpose(P), product(I_n)),
    ),
    "a factor that vanishes at one layer": (
        matmul(L - 1, P, product(I_n)),
        matmul(L - 1, Transpose(P), product(I_n)),
    ),
    "the same order again": (
        OrderSum(W[j], (j, L), r),
        HeadSum(matmul(W[l], OrderSum(W[j], (j, l), r)), (l, L)),
    ),
    "the next order on the wrong side": (
        OrderSum(W[j], (j, L), r),
        HeadSum(matmul(OrderSum(W[j], (j, l), r - 1), W[l]), (l, L)),
    ),
    "a replay that is one run ahead": (
        first(r + 1, L),
        matadd(I_n, HeadSum(matmul(W[l], first(r + 1, l)), (l, L))),
    ),
    "a replay that is one run behind": (
        first(r, L),
        matadd(I_n, HeadSum(matmul(W[l], first(r, l)), (l, L))),
    ),
    "first orders are not all": (first(r, L), product(matadd(I_n, W[l]))),
    "all orders, one mark too many": (
        product(matadd(kron(I_n, I_d), kron(W[l], S))),
        HeadSum(kron(OrderSum(W[l], (l, L), k), matmul(S, power(S))), (k, L + 1)),
    ),
    "all orders, marks turned": (
        product(matadd(kron(I_n, I_d), kron(W[l], S))),
        HeadSum(kron(OrderSum(W[l], (l, L), k), power(Transpose(S))), (k, L + 1)),
    ),
    "orders on the wrong side, with a mark": (
        product(matadd(kron(I_n, I_d), kron(W[l], S))),
        HeadSum(kron(OrderSum(W[l], (l, L), k, True), power(S)), (k, L + 1)),
    ),
    "all orders but one, with a mark": (
        product(matadd(kron(I_n, I_d), kron(W[l], S))),
        HeadSum(kron(OrderSum(W[l], (l, L), k), power(S)), (k, L)),
    ),
    "the number of paths, one off": (Trace(product((1 + H) * Identity(1))), (2 + H) ** L),
}
OPEN: dict[str, tuple[Any, ...]] = {
    "a depth that is a size": (product(square[l]), product(square[l])),
    "spectral": (Trace(product(P)), sympy.S.Zero, ((matmul(P, P), sympy.ZeroMatrix(n, n)),)),
}


@pytest.mark.parametrize("name", TRUE)
def test_true(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict


def test_a_body_that_speaks_of_an_outer_layer_speaks_of_the_last_one() -> None:
    """On the right l is free: with L layers before it, the last layer is not layer l.

    Were it left as it stands, the step would be true, and only few trials stand before it.
    """
    bound = HeadSum(matmul(U[l], LayerProduct(matmul(W[j], U[l]), (j, l))), (l, L))
    free = HeadSum(matmul(U[i], LayerProduct(matmul(W[j], U[l]), (j, i))), (i, L))
    claim = matadd(bound, product(W[j])), matadd(free, product(W[j]))
    assert decide(*claim).status == "refuted"
    plan = induction(*claim, (), L, lambda one, other: one == other)
    assert decide(*plan.base).status == "proved"
    assert decide(*plan.step, given=[plan.hypothesis]).status != "proved"


@pytest.mark.parametrize("name", ["index", "size"])
def test_an_order_that_may_be_none_is_open(name: str) -> None:
    """An index begins at 0, whatever its symbol says, and there OrderSum has no order below."""
    at = {"index": sympy.Symbol("at", integer=True, positive=True), "size": r - 1}[name]
    lhs = matmul(P, OrderSum(W[j], (j, L), at))
    rhs = matmul(P, HeadSum(matmul(W[l], OrderSum(W[j], (j, l), at)), (l, L)))
    sides = (lhs, rhs) if name == "size" else (HeadSum(lhs, (at, H)), HeadSum(rhs, (at, H)))
    with pytest.raises(RuleError, match=r"order .* is open|orders are at least one"):
        induction(*sides, (), L, lambda one, other: one == other)


@pytest.mark.parametrize("name", FALSE)
def test_false(name: str) -> None:
    verdict = decide(*FALSE[name])
    assert verdict.status == "refuted", verdict
    assert verdict.counterexample is not None


def test_a_spectral_truth_is_not_refuted() -> None:
    """At one layer it is true because P is nilpotent, which no equation between products says."""
    assert decide(*OPEN["spectral"]).status == "undecided"


def test_there_is_no_induction_over_a_depth_that_is_a_size() -> None:
    """What holds for all sizes and depths, holds where both are one number."""
    whole, turned = product(square[l]), product(Transpose(square[l]), True)
    proved = decide(Transpose(whole), turned)
    assert proved.status == "proved"
    assert proved.certificate is not None
    assert proved.certificate["proof"]["rule"] == "cancel"
    traced = Trace(matmul(whole, OneMatrix(L, L))), Trace(matmul(OneMatrix(L, L), whole))
    with pytest.raises(RuleError, match="L is a size"):
        induction(*traced, (), L, lambda one, other: one == other)
    assert decide(whole, turned).status != "proved"


def test_a_hypothesis_about_the_depth_is_not_carried_over() -> None:
    c = sympy.Symbol("c")
    claim = (matmul(c, product(I_n)), matmul(L, I_n), [(c, L)])
    assert decide(*claim).status != "refuted"
    false = (matmul(c, product(P)), matmul(2, P), [(c, L), (matmul(P, P), P)])
    assert decide(*false).status != "proved"


def test_the_induction_is_about_layers_that_differ() -> None:
    """Were the last layer the same as the others, this would be true."""
    verdict = decide(matmul(product(W[l]), W[0]), matmul(W[0], product(W[l])))
    assert verdict.status == "refuted"


def paths_of_order(layers: list[Any], order: int) -> Any:
    """Return the sum over choices of layers, by a loop over subsets."""
    total = np.zeros_like(layers[0])
    for chosen in combinations(layers, order):
        one = np.eye(len(layers[0]), dtype=int)
        for layer in chosen:
            one = layer @ one
        total = total + one
    return total


@pytest.mark.parametrize("order", range(5))
def test_order_sum_is_what_it_says(order: int) -> None:
    rng = np.random.default_rng(order)
    weights = rng.integers(-3, 4, size=(4, 2, 2))
    assignment = Assignment({"L": 4, "n": 2}, {"W": weights.astype(object)})
    value = tree_value(OrderSum(W[l], (l, L), order), assignment)
    assert np.array_equal(value, paths_of_order(list(weights), order))


def test_order_sum_with_numbers_is_expanded() -> None:
    X = Family("X", (3,), n, n)
    three = matmul(matadd(I_n, X[2]), matadd(I_n, X[1]), matadd(I_n, X[0]))
    by_order = [OrderSum(X[l], (l, 3), order) for order in range(4)]
    assert decide(three, matadd(*by_order)).status == "proved"
    assert decide(three, matadd(*by_order[:3])).status == "refuted"
    assert decide(OrderSum(X[l], (l, 3), 4), sympy.ZeroMatrix(n, n)).status == "proved"


def test_order_sum_refuses_what_is_no_order() -> None:
    with pytest.raises(ShapeError, match="0 or more"):
        OrderSum(W[l], (l, L), -1)
    with pytest.raises(ShapeError, match="put numbers for both"):
        OrderSum(W[l], (l, L), 2).products()


def test_an_index_that_is_bound_inside_a_layer_is_another() -> None:
    X = Family("X", (3,), n, n)
    whole = HeadSum(X[l], (l, 3))  # binds the name of the layer again
    layer = matmul(whole, X[l])
    assert decide(OrderSum(layer, (l, 3), 1), matmul(whole, whole)).status == "proved"
    three = matmul(*[matmul(whole, X[k]) for k in (2, 1, 0)])
    assert decide(LayerProduct(layer, (l, 3)), three).status == "proved"


@pytest.mark.parametrize("name", ["powers", "numbers"])
def test_an_inner_induction_does_not_use_the_matrix_of_another_depth(name: str) -> None:
    """Both are true for one layer and for M = 1, and false from two layers and M = 2 on.

    In the step from L to L + 1 layers, the product of the first L is one matrix. Its body speaks of
    M, so that it is another matrix at M + 1: an induction over M there must not mix the two.
    """
    M, c = sympy.Symbol("M", integer=True, positive=True), sympy.Symbol("c")
    others = LayerProduct(Family("V", (M,), n, n)[j], (j, M))  # M is a number of layers as well
    lhs, rhs = {
        "powers": (matmul(c, product(matmul(c**M, I_n))), matmul(c**L * c**M, I_n)),
        "numbers": (product(matmul(M, I_n)), matmul(1 + (M - 1) * L, I_n)),
    }[name]
    with proof_alone():
        assert decide(matadd(lhs, others), matadd(rhs, others), budget=0.05).status == "undecided"
