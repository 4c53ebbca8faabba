"""Symbols told apart by what they are, and indices by where they are bound.

Every false claim here was proved, or stands beside one that was. Most are false only where H or L
is five or more, so that no trial at small sizes shows it; each is decided with the quick trials and
without them, and the exact evaluator, which knows of scopes only, says first that it is false.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Dummy, Identity, MatrixSymbol, OneMatrix, Symbol, Trace, ZeroMatrix

from otimes.algebra.decide.counterexample import draw_at
from otimes.algebra.decide.induction import induction
from otimes.algebra.errors import LanguageError, RuleError, ShapeError
from otimes.algebra.evaluate.arrays import evaluate
from otimes.algebra.evaluate.exact import tree_value
from otimes.algebra.explain.search import explain
from otimes.algebra.language.binders import (
    bindings,
    free_symbols,
    fresh_name,
    names_in,
    standardised,
    substituted,
    used_as_numbers,
)
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import Activation, RMSNorm, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.normal_form import normal_form, normal_forms
from otimes.algebra.paths.ensemble import expand_paths
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import proof_alone

n, L, H, M = sympy.symbols("n L H M", integer=True, positive=True)
l, h, i, j, k, u = sympy.symbols("l h i j k u", integer=True)  # noqa: E741 (as on paper)
A, B, X = (MatrixSymbol(name, n, n) for name in "ABX")
W, F = Family("W", (L,), n, n), Family("F", (L,), n, n)
G, Q = Family("G", (H,), n, n), Family("Q", (L, L), n, n)
V = Family("V", (L, H), n, n)
I_n, O_n = Identity(n), ZeroMatrix(n, n)
DEEP = LayerProduct(W[j], (j, L))
UNTIL_FIVE = (H - 1) * (H - 2) * (H - 3) * (H - 4)

Sides = tuple[Any, ...]


def hidden(lhs: Any, rhs: Any) -> Sides:
    """Return a claim that is false from H = 5 on only, beside a product over all layers."""
    heads = HeadSum(G[i], (i, H))
    return tuple(matadd(matmul(UNTIL_FIVE, side), heads, DEEP) for side in (lhs, rhs))


def beside(lhs: Any, rhs: Any) -> Sides:
    return matadd(lhs, DEEP), matadd(rhs, DEEP)


OVER: dict[str, Callable[[Any, Any], Any]] = {
    "product": lambda body, limit: LayerProduct(body, limit),
    "reversed product": lambda body, limit: LayerProduct(body, limit, True),
    "order 2": lambda body, limit: OrderSum(body, limit, 2),
    "order 3, reversed": lambda body, limit: OrderSum(body, limit, 3, True),
    "sum": lambda body, limit: HeadSum(body, limit),
}

FALSE: dict[str, Sides] = {
    "doubled limit": hidden(HeadSum(A, (l, L), (l, H)), matmul(L, A)),
    "doubled limit, the other way": hidden(HeadSum(A, (l, H), (l, L)), matmul(H, A)),
    "doubled limit, nested": hidden(HeadSum(HeadSum(A, (l, H)), (l, L)), matmul(L, A)),
    "doubled limit of members": hidden(HeadSum(W[l], (l, H), (l, L)), HeadSum(W[l], (l, L))),
    "tripled limit": hidden(HeadSum(A, (l, L), (l, H), (l, L)), matmul(L, A)),
    "doubled limit in blocks": hidden(
        matmul(ConcatHeads(A, (l, H)), StackHeads(HeadSum(B, (l, L)), (l, H))),
        matmul(L, A, B),
    ),
    "bound and free": hidden(HeadSum(W[l], (l, L)), matmul(L, W[l])),
    "bound and free, twice": hidden(HeadSum(matmul(W[l], F[u]), (l, L)), L * W[u] * F[u]),
    "bound and a number": hidden(HeadSum(G[u], (u, H)), matmul(Symbol("u"), G[0])),
    "shadowed inside a product": hidden(
        LayerProduct(HeadSum(W[l], (l, L)), (l, L)), LayerProduct(W[l], (l, L))
    ),
    "order of five layers, u free": beside(
        HeadSum(OrderSum(F[u], (u, h), 4), (h, L)), HeadSum(OrderSum(F[u], (l, h), 4), (h, L))
    ),
    "order of five layers, u free, rows": beside(
        HeadSum(OrderSum(F[u], (u, h), 4, True), (h, L)),
        HeadSum(OrderSum(F[u], (l, h), 4, True), (h, L)),
    ),
    "order of five layers at once, u free": beside(
        OrderSum(F[u], (u, L), 5), OrderSum(F[u], (l, L), 5)
    ),
    "a function called like an index": hidden(
        LayerProduct(Activation("l", W[l]), (l, L)), LayerProduct(Activation("l", W[u]), (l, L))
    ),
    "a number called like an index": hidden(
        matmul(Symbol("l"), LayerProduct(W[l], (l, L))), LayerProduct(W[l], (l, L))
    ),
    "a dummy for the name of a matrix": hidden(
        HeadSum(matmul(X, W[Dummy("X")]), (u, L)), HeadSum(matmul(X, W[u]), (u, L))
    ),
    "a depth in the base of its power": (L**L * A, O_n),
    "a depth in a denominator": (
        matmul((L - 1) * (L - 2), DEEP) + X / (L - 2),
        X / (L - 2),
    ),
}
for kind, over in OVER.items():
    FALSE[f"{kind}: free for bound"] = hidden(over(F[u], (u, L)), over(F[u], (l, L)))
    FALSE[f"{kind}: free for bound, inside"] = hidden(
        HeadSum(over(F[u], (u, L)), (k, M)), HeadSum(over(F[u], (l, L)), (k, M))
    )
    FALSE[f"{kind}: one of two indices"] = hidden(over(Q[l, u], (l, L)), over(Q[u, u], (u, L)))
    FALSE[f"{kind}: a sum inside captures"] = hidden(
        over(HeadSum(matmul(W[l], G[h]), (h, H)), (l, L)),
        over(HeadSum(matmul(W[u], G[h]), (h, H)), (l, L)),
    )
    FALSE[f"{kind}: shadowed by a sum of as many"] = hidden(
        over(HeadSum(Q[l, u], (l, L)), (l, L)), over(HeadSum(Q[u, l], (l, L)), (l, L))
    )

TRUE: dict[str, Sides] = {
    "doubled limit": (HeadSum(A, (l, L), (l, H)), matmul(L, H, A)),
    "doubled limit of members": (HeadSum(W[l], (l, H), (l, L)), H * HeadSum(W[l], (l, L))),
    "doubled limit beside layers": beside(HeadSum(A, (l, L), (l, H)), matmul(L, H, A)),
    "doubled limit of a Sum": (
        sympy.Sum(sympy.Sum(A[k, k], (k, 0, n - 1)), (k, 0, H - 1)),
        H * Trace(A),
    ),
    "names exchanged": (
        LayerProduct(HeadSum(V[l, h], (h, H)), (l, L)),
        LayerProduct(HeadSum(V[h, l], (l, H)), (h, L)),
    ),
    "names exchanged, in blocks": (
        matmul(ConcatHeads(V[l, h], (h, H)), StackHeads(G[h], (h, H))),
        matmul(ConcatHeads(V[l, j], (j, H)), StackHeads(G[k], (k, H))),
    ),
    "one name for two ranges": (
        matmul(HeadSum(G[l], (l, H)), HeadSum(W[l], (l, L))),
        HeadSum(matmul(G[i], W[j]), (i, H), (j, L)),
    ),
    "a matrix called like an index": (
        HeadSum(matmul(A, G[Symbol("A")]), (Symbol("A"), H)),
        matmul(A, HeadSum(G[h], (h, H))),
    ),
    "a function called like an index": (
        HeadSum(Activation("u", G[u]), (u, H)),
        HeadSum(Activation("u", G[h]), (h, H)),
    ),
    "bound here, free there": (
        matmul(W[l], HeadSum(W[l], (l, L))),
        HeadSum(matmul(W[l], W[i]), (i, L)),
    ),
    "dummies for indices": (
        HeadSum(G[(a := Dummy("h"))], (a, H)),
        HeadSum(G[(b := Dummy("h"))], (b, H)),
    ),
    "two dummies of one name, nested": (
        HeadSum(HeadSum(matmul(G[(a := Dummy("h"))], G[(b := Dummy("h"))]), (a, H)), (b, H)),
        matmul(HeadSum(G[h], (h, H)), HeadSum(G[h], (h, H))),
    ),
    "dummies for sizes": (Trace(Identity(s := Dummy("s"))), s),
    "the depth of a power": (matmul(2**L, A) + HeadSum(B, (l, L)), matmul(2**L, A) + L * B),
    "no layers": (LayerProduct(W[l], (l, 0)), I_n),
    "no layers, in order": (OrderSum(W[l], (l, 0), 1), O_n),
    "a hypothesis about the last": (
        matmul(DEEP, A),
        matmul(A, DEEP),
        [(matmul(W[Symbol("last")], A), matmul(A, W[Symbol("last")]))],
    ),
    "a hypothesis that binds the index": (
        matmul(DEEP, A),
        matmul(A, DEEP),
        [(matmul(W[j], A), matmul(A, W[j])), (HeadSum(G[j], (j, H)), I_n)],
    ),
    "a hypothesis with an index of another range": (
        matmul(DEEP, A, G[l]),
        matmul(A, DEEP, G[l]),
        [(matmul(W[l], A), matmul(A, W[l]))],
    ),
}


def is_false(lhs: Any, rhs: Any) -> bool:
    """Return whether the sides differ at five or six layers and heads, by the exact evaluator."""
    signature = inspect(*standardised([lhs, rhs]).sides)
    (lhs, rhs), _, _ = standardised([lhs, rhs])
    for seed in range(4):
        sizes = {name: 6 if name == "L" else 5 if name == "H" else 1 for name in signature.sizes}
        numbers = draw_at(sizes, signature, random.Random(seed), 3, signature.roots)
        assert numbers is not None
        if np.any(tree_value(lhs, numbers) != tree_value(rhs, numbers)):
            return True
    return False


LONG = os.environ.get("OTIMES_LONG") == "1"
BUDGET = 1 if LONG else 0.1


@pytest.fixture(params=["quick trials", "no quick trials"])
def trials(request: pytest.FixtureRequest) -> Iterator[None]:
    with proof_alone() if request.param == "no quick trials" else nullcontext():
        yield


@pytest.mark.parametrize("name", FALSE)
def test_false(name: str) -> None:
    assert is_false(*FALSE[name])
    with proof_alone():
        assert decide(*FALSE[name], budget=BUDGET).status != "proved"


@pytest.mark.parametrize("name", [*FALSE][:: 1 if LONG else 4])
def test_false_with_quick_trials(name: str) -> None:
    assert decide(*FALSE[name], budget=BUDGET).status != "proved"


@pytest.mark.parametrize("name", TRUE)
def test_true(name: str, trials: None) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict


# -- symbols by identity ---------------------------------------------------------------------------


def test_two_dummies_of_one_name_are_two_symbols() -> None:
    a, b = Dummy("a"), Dummy("a")
    assert decide(a, a).status == "proved"
    verdict = decide(a, b)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    assert found is not None
    assert found.scalars.keys() == {a, b}
    assert found.scalars[a] != found.scalars[b]
    assert str(found).startswith("a = 0; a_ = 1\n")


OTHERS = {
    "dummy": Dummy("a"),
    "positive": Symbol("a", positive=True),
    "integer": Symbol("a", integer=True),
    "real": Symbol("a", real=True),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_symbol_with_other_assumptions_is_another(kind: str) -> None:
    a, other = Symbol("a"), OTHERS[kind]
    for claim in ((a, other), (a * A, other * A), (a * Trace(A), Trace(other * A))):
        verdict = decide(*claim)
        assert verdict.status == "refuted"
        assert verdict.counterexample is not None
        assert verdict.counterexample.scalars.keys() == {a, other}
    assert decide(a + other, other + a).status == "proved"
    assert decide(a * A, B, given=[(other * A, B)]).status == "refuted"
    assert decide(other * A, B, given=[(other * A, B)]).status == "proved"


def test_dummies_in_hypotheses() -> None:
    a, b = Dummy("a"), Dummy("a")
    assert decide(a * A, O_n, given=[(b * A, O_n)]).status == "refuted"
    assert decide(a * A, O_n, given=[(b * A, O_n), (a, b)]).status == "proved"


def test_dummies_for_sizes() -> None:
    s, t = Dummy("n"), Dummy("n")
    assert decide(Trace(Identity(s)), s).status == "proved"
    verdict = decide(Trace(Identity(s)), Trace(Identity(t)))
    assert verdict.status == "refuted"
    assert verdict.counterexample is not None
    assert verdict.counterexample.sizes.keys() == {s, t}
    with pytest.raises(ShapeError, match=r"n × n, the right side n′ × n′ \(n′: primes tell"):
        decide(Identity(s), Identity(t))
    Y = MatrixSymbol("Y", s, t)
    assert decide((Y * Y.T).T, Y * Y.T).status == "proved"
    with pytest.raises(ShapeError, match="Y .n × n′. by Y .n × n′."):
        decide(matmul(Y, Y), Y)


def test_dummies_for_indices() -> None:
    p, q = Dummy("i"), Dummy("i")
    verdict = decide(A[p, q], A[q, p])
    assert verdict.status == "refuted"
    assert verdict.counterexample is not None
    assert verdict.counterexample.indices.keys() == {p, q}
    assert decide(A[p, q], A.T[q, p]).status == "proved"


def test_names_are_the_same_in_every_run() -> None:
    def sides() -> list[Any]:
        a, b = Dummy("a"), Dummy("a")
        return [a + Symbol("a"), b + Symbol("a"), HeadSum(a * G[h], (h, H)), G[h]]

    first, second = standardised(sides()).sides, standardised(sides()).sides
    assert first == second
    assert {s.name for e in first for s in free_symbols(e)} >= {"a", "a′", "a′′"}


def test_what_does_not_commute_is_refused() -> None:
    x, y = sympy.symbols("x y", commutative=False)
    with pytest.raises(LanguageError, match=r"x is declared commutative=False.*MatrixSymbol"):
        decide(x * y, y * x)


def test_a_number_called_like_an_entry_is_none() -> None:
    C = MatrixSymbol("C", 2, 2)
    verdict = decide(C[0, 0], Symbol("C[0,0]"))
    assert verdict.status == "refuted"
    assert verdict.counterexample is not None
    assert verdict.counterexample.scalars.keys() == {Symbol("C[0,0]")}


def test_opaque_names_are_those_of_no_hypothesis(trials: None) -> None:
    for order in (1, 3, 5):
        given = [(MatrixSymbol(name, n, n), O_n) for name in ("Ω_L", "Ω_L′", "Ω_L′′")]
        claim = OrderSum(F[l], (l, L), order), O_n
        assert decide(*claim, given=given, budget=BUDGET).status != "proved"
    given = [(MatrixSymbol("Π_L", n, n), MatrixSymbol("Π_L′", n, n))]
    claim = hidden(LayerProduct(F[l], (l, L)), LayerProduct(F[l], (l, L), True))
    assert decide(*claim, given=given, budget=BUDGET).status != "proved"


# -- what is defined, at every depth ---------------------------------------------------------------


a, b = Family("a", (L,), 2, 1), Family("b", (L,), 1, 2)
OUTER = HeadSum(matmul(a[l], b[l]), (l, L))  # singular where L = 1
NONE = matmul((L - 1) ** 2, OneMatrix(n, n))  # zero where L = 1
MASK = HeadSum(W[l], (l, L))
UNDEFINED: dict[str, Sides] = {
    "inverse": (matmul(sympy.Inverse(OUTER), OUTER, MatrixSymbol("Y", 2, 2)), ZeroMatrix(2, 2)),
    "root": (sympy.HadamardProduct(*[Activation("rsqrt", NONE)] * 2, NONE, A), O_n),
    "norm": (RMSNorm(NONE), O_n),
    "quotient": (matmul((L - 1) / (L - 2), A), O_n),
    "mask": (RowSoftmax(A, MASK), O_n),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_a_claim_that_is_undefined_at_one_depth_is_not_carried_past_it(
    name: str, trials: None
) -> None:
    """What is not defined at L layers is no hypothesis about L + 1: anything would follow there."""
    lhs, rhs = UNDEFINED[name]
    deep = LayerProduct(Identity(lhs.shape[0]), (l, L))
    claim = matadd(lhs, deep), matadd(rhs, deep)
    with pytest.raises(RuleError, match="may be undefined for some number L"):
        induction(*claim, (), L, lambda one, other: one == other)
    assert decide(*claim, budget=BUDGET).status != "proved"


def test_a_mean_over_layers_is_defined_at_every_depth() -> None:
    mean = matmul(1 / L, HeadSum(W[l], (l, L)))
    assert decide(*beside(matmul(L, mean), HeadSum(W[l], (l, L)))).status == "proved"


def test_a_body_in_which_an_index_is_a_count_is_not_compared_as_a_size(trials: None) -> None:
    """Σ over no layer of zero matrices is none, their product the identity."""
    none = LayerProduct(O_n, (k, l))  # I at l = 0, else 0
    lhs, rhs = LayerProduct(matadd(A, none), (l, L)), LayerProduct(A, (l, L))
    assert decide(matmul(L - 1, lhs), matmul(L - 1, rhs), budget=BUDGET).status != "proved"


# -- every way in ----------------------------------------------------------------------------------

DOUBLED = HeadSum(W[l], (l, H), (l, L))


def test_normal_forms_tell_dummies_apart() -> None:
    a, b = Dummy("a"), Dummy("a")
    one, other, again = normal_forms(a * A, b * A, a * A)
    assert one.terms == again.terms
    assert one.terms != other.terms
    assert normal_form(DOUBLED).einsum() == normal_form(H * HeadSum(W[l], (l, L))).einsum()


def test_values_are_those_of_the_user() -> None:
    a, b, s = Dummy("a"), Dummy("a"), Dummy("n")
    assert evaluate(a - b, {a: 5, b: 3}) == 2
    Y = MatrixSymbol("Y", s, s)
    assert evaluate(s * Trace(Y), {"Y": np.eye(3, dtype=int)}) == 9
    layers = np.arange(8).reshape(2, 2, 2)
    value = evaluate(DOUBLED, {"W": layers, "H": 3})
    assert np.array_equal(value, 3 * layers.sum(axis=0))
    delta = sympy.KroneckerDelta(i, j) * A[i, j]
    assert evaluate(delta, {"A": np.eye(2, dtype=int), "i": 1, "j": 1}) == 1


def test_both_evaluators_let_the_inner_limit_win() -> None:
    layers = np.arange(12).reshape(3, 2, 2).astype(object)
    signature = inspect(*standardised([DOUBLED]).sides)
    numbers = draw_at({"H": 2, "L": 3, "n": 2}, signature, random.Random(0), 3, {})
    assert numbers is not None
    numbers = replace(numbers, arrays={"W": layers})
    assert np.array_equal(tree_value(DOUBLED, numbers), 2 * layers.sum(axis=0))
    blocks = ConcatHeads(W[l], (l, H), (l, L))
    assert np.array_equal(tree_value(blocks, numbers), np.hstack([*layers, *layers]))
    assert np.array_equal(evaluate(blocks, {"W": layers, "H": 2}), np.hstack([*layers, *layers]))


def test_a_chain_of_steps_and_a_certificate_for_clean_names() -> None:
    lhs, rhs = matmul(A, DOUBLED), matmul(H, A, HeadSum(W[l], (l, L)))
    verdict = decide(lhs, rhs)
    assert verdict.status == "proved"
    assert verdict.certificate is not None
    chain = explain(HeadSum(matmul(A, W[l]), (l, L)), matmul(A, HeadSum(W[u], (u, L))))
    assert chain is not None
    assert chain.steps


def test_paths_through_layers_that_bind_an_index_again() -> None:
    layer = matadd(I_n, HeadSum(V[l, l], (l, H)))
    refused = pytest.raises(ShapeError, match="index l of V runs over L values|over H")
    with refused:
        expand_paths(LayerProduct(layer, (l, 2)))
    product = LayerProduct(matadd(I_n, HeadSum(G[l], (l, 2))), (l, 3))
    with pytest.raises(ShapeError, match="runs over H values"):
        expand_paths(product)
    heads = Family("G", (2,), n, n)
    paths = expand_paths(LayerProduct(matadd(I_n, HeadSum(heads[l], (l, 2))), (l, 3)))
    assert paths.count_by_order == [1, 6, 12, 8]


# -- the table, and substitution -------------------------------------------------------------------


def test_what_binds() -> None:
    assert bindings(HeadSum(A, (l, L), (h, H))) == ((l, L), (h, H))
    assert bindings(ConcatHeads(A, (h, H))) == bindings(StackHeads(A, (h, H))) == ((h, H),)
    assert bindings(LayerProduct(A, (l, L))) == bindings(OrderSum(A, (l, L), 2)) == ((l, L),)
    assert bindings(sympy.Sum(A[i, j], (j, 0, n - 1), (i, 0, H - 1))) == ((i, H), (j, n))
    assert bindings(A) == ()


def test_what_is_free() -> None:
    assert free_symbols(A) == {n}
    assert free_symbols(OrderSum(W[l], (l, u), k)) == {L, n, u, k}
    assert free_symbols(LayerProduct(W[l], (l, l))) == {L, n, l}
    assert free_symbols(HeadSum(G[h], (l, L), (h, l))) == {L, H, n}
    assert used_as_numbers(matmul(u, W[l], LayerProduct(A, (k, i)))) == {L, n, u, i}
    assert used_as_numbers(OneHot(i, n)) == {n}


@pytest.mark.parametrize("over", OVER.values(), ids=list(OVER))
def test_nothing_is_captured(over: Callable[[Any, Any], Any]) -> None:
    e = over(Q[l, u], (l, L))
    put = substituted(e, {u: l})
    ((index, _),) = bindings(put)
    assert index not in (l, u)
    assert put == over(Q[index, l], (index, L))
    assert substituted(e, {l: u}) == e
    assert substituted(e, {u: k}) == over(Q[l, k], (l, L))


def test_substitution_evaluates_nothing() -> None:
    e = matmul(A, matadd(W[l], W[l]), Identity(n))
    assert substituted(e, {l: u}) == matmul(A, matadd(W[u], W[u]), Identity(n))
    limited = HeadSum(G[h], (h, u))
    assert substituted(limited, {u: h}).limits[0][1] == h
    assert free_symbols(substituted(limited, {u: h})) == {h, H, n}


def test_fresh_names() -> None:
    assert fresh_name("a", ["b"]) == "a"
    assert fresh_name("a", ["a", "a′"]) == "a′′"
    e = Activation("gelu", HeadSum(G[h], (h, H)) * A)
    assert names_in(e) == {"gelu", "G", "H", "A", "h", "n"}


CLEAN = [
    HeadSum(G[h], (h, H)),
    matmul(HeadSum(G[h], (h, H)), HeadSum(W[h], (h, L))),
    LayerProduct(HeadSum(V[l, h], (h, H)), (l, L)),
    sympy.Sum(A[i, j] * A[j, i], (i, 0, n - 1), (j, 0, n - 1)),
    RowSoftmax(HeadSum(G[h], (h, H))),
    sympy.BlockMatrix([[A, HeadSum(G[h], (h, H))], [A, A]]),
    sympy.ImmutableMatrix([[Trace(A), 1], [0, Symbol("a")]]),
]


@pytest.mark.parametrize("e", CLEAN, ids=unicode_text)
def test_what_is_clean_stays_the_same_object(e: Any) -> None:
    (same,), _, origin = standardised([e])
    assert same is e
    assert not origin


@pytest.mark.parametrize("name", [*TRUE, *FALSE])
def test_clean_names_are_clean(name: str) -> None:
    lhs, rhs, *given = {**FALSE, **TRUE}[name]
    once = standardised([lhs, rhs], given[0] if given else [])
    again = standardised(once.sides, once.given)
    assert once.sides == again.sides
    assert once.given == again.given
    assert not again.origin
    free = frozenset().union(*map(free_symbols, once.sides))
    names = {s.name for s in free}
    taken = names | {e.name for side in once.sides for e in side.atoms(MatrixSymbol, Family)}
    taken |= {e.name for side in once.sides for e in side.atoms(Activation)}

    def check(e: Any, outside: frozenset[str]) -> None:
        inside = outside
        for index, _ in bindings(e):
            assert type(index) is Symbol
            assert index.name not in inside | taken
            inside = inside | {index.name}
        for part in e.args:
            check(part, inside)

    for side in once.sides:
        check(side, frozenset())
