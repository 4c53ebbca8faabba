"""The smallest claims that ever deceived the judge, each with where: none deceives it again.

Every false claim is judged twice, as it is and while nothing tries numbers. That it is false is
checked, too, by `tests.algebra.decide.scoped`. Refusing a claim is no mistake; a crash is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import sympy
from sympy import (
    BlockMatrix,
    Dummy,
    HadamardProduct,
    Identity,
    ImmutableMatrix,
    Inverse,
    MatrixSymbol,
    Mul,
    OneMatrix,
    Pow,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.errors import OtimesError
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask, RMSNorm, RowSoftmax
from otimes.algebra.language.trees import stated
from otimes.algebra.verdict import decide
from tests.algebra.decide.attack import (
    Claim,
    admissible,
    false_at,
    fault,
    fault_of,
    minimised,
    proof_alone,
)
from tests.algebra.decide.scoped import World, identity, scaled, value

n, L, H = sympy.symbols("n L H", integer=True, positive=True)
h, i, j, k, l, u = sympy.symbols("h i j k l u", integer=True)  # noqa: E741 (the layer)
a, b = sympy.symbols("a b")
A, B, C = (MatrixSymbol(name, n, n) for name in "ABC")
T, U = MatrixSymbol("T", 2, 2), MatrixSymbol("U", 2, 2)
F, G = Family("F", (L,), n, n), Family("G", (H,), n, n)
PAIR = Family("G", (2,), n, n)
ONE, ZERO, ONES = Identity(n), ZeroMatrix(n, n), OneMatrix(n, n)
W = LayerProduct(F[l], (l, L))
POSITIVE: Any = {"integer": True, "positive": True}
later = Symbol("k", **POSITIVE)  # an index begins at 0, whatever is assumed of it
last = Symbol("last", integer=True)


def hidden(e: Any, size: Any = H) -> Any:
    """Return an expression times what is zero at the sizes 1 to 4."""
    return matmul(*[size - q for q in range(1, 5)], e)


def beside(x: Any, y: Any) -> tuple[Any, Any]:
    """Return two sides that are hidden, beside a product over layers: proved by induction."""
    return matadd(W, hidden(x)), matadd(W, hidden(y))


def summed(body: Any, index: Any, count: Any) -> Any:
    return stated(sympy.Sum, body, sympy.Tuple(index, 0, count - 1))


def twins(**declared: Any) -> tuple[Any, Any]:
    """Return two symbols that share a name."""
    return Dummy("t", **declared), Dummy("t", **declared)


x, y = twins()
p, q = twins(**POSITIVE)
d, e = twins(integer=True)


def before(body: Any, index: Any, layer: Any, order: int = 4) -> Any:
    """Return a sum over layers of the paths of some order before each."""
    return HeadSum(OrderSum(body, (index, layer), order), (layer, L))


def around(body: Any, index: Any, layer: Any) -> Any:
    """Return a sum over layers of each layer times the product of those before it."""
    return HeadSum(matmul(F[layer], LayerProduct(body, (index, layer))), (layer, L))


def placed(order: Any) -> tuple[Any, Any]:
    """Return sums over places of an entry times the trace of paths whose order is the place."""
    paths = Trace(OrderSum(F[l], (l, L), order))
    lhs = summed(Mul(MatrixElement(A, order, order), paths, evaluate=False), order, n)
    rhs = Mul(1 / n, Trace(A), summed(paths, order, n), evaluate=False)
    return tuple(Mul(*[H - c for c in range(1, 5)], z, evaluate=False) for z in (lhs, rhs))  # type: ignore[return-value]


def known(**matrices: int) -> Callable[[World], None]:
    """Return a model in which matrices are multiples of the identity."""

    def model(world: World) -> None:
        for name, factor in matrices.items():
            one = identity(world.sizes[n])
            world.arrays[MatrixSymbol(name, n, n)] = scaled(factor, one)

    return model


def numbers(**values: int) -> Callable[[World], None]:
    def model(world: World) -> None:
        world.numbers.update({Symbol(name): value for name, value in values.items()})

    return model


def minus_one(world: World) -> None:
    world.numbers[a] = -1


def x_is_one(world: World) -> None:
    world.numbers[x] = 1


ROOT = sympy.sqrt(a**2)  # which is -a where a is negative
OPAQUE = [(MatrixSymbol(name, n, n), ZERO) for name in ("Ω_L", "Ω_L′")]
FALSE: dict[str, Claim] = {
    # dummies and other symbols of one name (scalars.from_sympy takes the name of a symbol)
    "dummy numbers": Claim(x, y),
    "dummy and symbol": Claim(matmul(x, A), matmul(Symbol("t"), A)),
    "dummy sizes": Claim(Trace(Identity(p)), Trace(Identity(q)), counts=[p, q]),
    "dummy numbers of heads": Claim(HeadSum(A, (h, p)), HeadSum(A, (h, q)), counts=[p, q]),
    "dummy depths": Claim(LayerProduct(A, (l, p)), LayerProduct(A, (l, q)), counts=[p, q]),
    "dummy in a hypothesis": Claim(matmul(y, A), A, [(x, sympy.S.One)], model=x_is_one),
    "dummy indices": Claim(
        HeadSum(matmul(F[d], F[e]), (d, L), (e, L)), HeadSum(matmul(F[d], F[d]), (d, L), (e, L))
    ),
    "dummy indices in products": Claim(
        HeadSum(LayerProduct(matadd(F[d], F[e]), (d, L)), (e, L)),
        HeadSum(LayerProduct(matadd(F[d], F[d]), (d, L)), (e, L)),
    ),
    "assumptions": Claim(a, Symbol("a", positive=True)),
    # capture of an index (induction._bodies)
    "capture by an order": Claim(*[matadd(W, z) for z in (before(F[u], u, h), before(F[u], l, h))]),
    "capture by an order, hidden": Claim(*beside(before(F[u], u, h, 1), before(F[u], l, h, 1))),
    "capture by a count": Claim(*beside(around(F[u], u, h), around(F[u], l, h))),
    "capture by the layer itself": Claim(*beside(before(F[u], u, h), before(F[u], h, h))),
    "capture of two": Claim(
        *beside(around(matmul(F[u], F[l]), u, h), around(matmul(F[u], F[u]), u, h))
    ),
    "capture in a product": Claim(
        *beside(LayerProduct(matmul(F[l], F[u]), (l, L)), LayerProduct(matmul(F[u], F[u]), (u, L)))
    ),
    # one index bound twice (induction.over_layers, interpret._written_out)
    "bound twice": Claim(*beside(HeadSum(A, (l, L), (l, H)), matmul(L, A))),
    "bound twice, other order": Claim(*beside(HeadSum(A, (l, H), (l, L)), matmul(L, A))),
    "bound twice, exchanged": Claim(
        *beside(HeadSum(F[l], (l, H), (l, L)), HeadSum(matmul(L, F[l]), (l, L)))
    ),
    "numbered, bound twice": Claim(
        HeadSum(LayerProduct(A, (u, h)), (h, 2), (h, 3)), matadd(ONE, A)
    ),
    "numbered, bound twice and open": Claim(
        HeadSum(LayerProduct(A, (u, h)), (h, H), (h, 3)),
        HeadSum(LayerProduct(A, (u, h)), (h, 3)),
    ),
    "numbered, bound twice, exchanged": Claim(
        HeadSum(LayerProduct(A, (u, h)), (h, 2), (h, 3)),
        HeadSum(LayerProduct(A, (u, h)), (h, 3), (h, 2)),
    ),
    "numbered, bound twice, of orders": Claim(
        HeadSum(OrderSum(A, (u, h), 1), (h, H), (h, 2)), A, counts=[]
    ),
    # names that a proof makes (induction.fresh)
    "names of orders are taken": Claim(
        OrderSum(F[l], (l, L), 5), ZERO, OPAQUE, model=known(**{"Ω_L": 0, "Ω_L′": 0})
    ),
    "names of orders are taken, hidden": Claim(
        hidden(OrderSum(F[l], (l, L), 5)),
        hidden(ZERO),
        OPAQUE,
        model=known(**{"Ω_L": 0, "Ω_L′": 0}),
    ),
    # a power of the depth (induction.more)
    "the base is the depth": Claim(matadd(W, matmul(Pow(L, L), A)), W),
    "the base has the depth": Claim(matadd(W, matmul(Pow(2 * L, L), A)), W),
    "the bases differ": Claim(matadd(W, matmul(Pow(L, L), A)), matadd(W, matmul(2, Pow(L, L), A))),
    "the bases differ, hidden": Claim(
        *beside(matmul(Pow(L, L), A), matmul(2, Pow(L, L), A)),
    ),
    # sums over places as binders (induction._bound_by, _positive)
    "an order that is a place": Claim(*placed(later)),
    "an order that is a place, of equal layers": Claim(
        summed(Mul(MatrixElement(A, later, later), Trace(OrderSum(B, (l, L), later))), later, n),
        Mul(1 / n, Trace(A), summed(Trace(OrderSum(B, (l, L), later)), later, n), evaluate=False),
    ),
    # names of entries (expansion._unknowns)
    "a scalar called like an entry": Claim(Trace(T), Symbol("T[0,0]") + Symbol("T[1,1]")),
    "a scalar called like an entry, as a factor": Claim(
        matmul(Symbol("T[0,1]"), U), matmul(MatrixElement(T, 0, 1), U)
    ),
    # coefficients as they are printed (inverses._new_inverse)
    "a scalar called like a product": Claim(
        Inverse(matadd(ONE, matmul(Symbol("a*b"), A))), Inverse(matadd(ONE, matmul(a * b, A)))
    ),
    "a scalar called like a sum": Claim(
        Inverse(matadd(ONE, matmul(Symbol("a + b"), A))), Inverse(matadd(ONE, matmul(a + b, A)))
    ),
    "a scalar called like a power": Claim(1 / (Symbol("a**2") + Trace(A)), 1 / (a**2 + Trace(A))),
    # names of functions (applied: SOFTMAX)
    "a function called softmax": Claim(Activation("softmax", A), ONES),
    "a function called softmax, shifted": Claim(
        Activation("softmax", matadd(A, matmul(B, ONES))), Activation("softmax", A)
    ),
    "a function called softmax, twice": Claim(
        Activation("softmax", Activation("softmax", A)), Activation("softmax", A)
    ),
    # indices that are bound again inside, out of order, or before
    "bound again beside itself": Claim(
        HeadSum(HeadSum(matmul(G[h], G[u]), (h, H)), (u, H)),
        HeadSum(HeadSum(matmul(G[h], G[h]), (h, H)), (u, H)),
    ),
    "bound again in a product": Claim(
        LayerProduct(matmul(F[l], LayerProduct(F[l], (l, L))), (l, L)),
        LayerProduct(matmul(F[u], LayerProduct(F[l], (l, L))), (l, L)),
    ),
    "the count of a product is the index outside": Claim(
        HeadSum(LayerProduct(F[u], (u, l)), (l, L)), matmul(L, ONE)
    ),
    "orders before a layer": Claim(
        HeadSum(matmul(F[l], LayerProduct(F[l], (l, l))), (l, L)),
        HeadSum(matmul(LayerProduct(F[l], (l, l)), F[l]), (l, L)),
    ),
    "columns of heads in another order": Claim(
        ConcatHeads(G[h], (h, H), (h, H)), ConcatHeads(G[h], (h, H), (u, H))
    ),
    "weights after heads": Claim(
        ConcatHeads(matmul(G[h], A), (h, H)),
        matmul(ConcatHeads(G[u], (u, H)), kron(A, Identity(H))),
    ),
    "heads below each other and side by side": Claim(
        matmul(StackHeads(G[h], (h, H)), ConcatHeads(G[h], (h, H))),
        StackHeads(ConcatHeads(matmul(G[h], G[u]), (h, H)), (u, H)),
    ),
    # claims that hold for one layer, or for two
    "one layer": Claim(W, F[0]),
    "one layer of equal ones": Claim(LayerProduct(A, (l, L)), A),
    "all orders but the last": Claim(
        HeadSum(OrderSum(F[l], (l, L), k), (k, L)), LayerProduct(matadd(ONE, F[l]), (l, L))
    ),
    "a power of a number": Claim(matmul(Pow(a, L), W), matmul(a, L, W)),
    "a power too many": Claim(matmul(Pow(a, L + 1), W), LayerProduct(matmul(a, F[l]), (l, L))),
    "the square is known": Claim(matmul(Pow(a, L), W), W, [(a**2, sympy.S.One)], model=minus_one),
    # what may vanish is divided by
    "a sum of squares and a cube": Claim(
        A, B, [(matmul(1 + a**3, A), matmul(1 + a**3, B))], model=minus_one
    ),
    "a size less one": Claim(A, B, [(matmul(n - 1, A), matmul(n - 1, B))], model=None),
    "a factor of Kronecker": Claim(A, B, [(kron(A, C), kron(B, C))], model=known(C=0)),
    "from the right": Claim(A, B, [(matmul(A, C), matmul(B, C))], model=known(C=0)),
    # what an inequality says of what stands under a root (assumptions.condition)
    "the root of a square is positive": Claim(
        Activation("relu", matmul(a, A)),
        matmul(a, Activation("relu", A)),
        [ROOT > 0],
        model=minus_one,
    ),
    "the root of a square is no -1": Claim(
        A, B, [(matmul(1 + a, A), matmul(1 + a, B)), sympy.Ne(ROOT, -1)], model=minus_one
    ),
    "the root of a fourth power": Claim(
        Activation("relu", matmul(a, A)),
        matmul(a, Activation("relu", A)),
        [Pow(Pow(a, 4), sympy.Rational(1, 4)) > 0],
        model=minus_one,
    ),
    # masks, functions and norms
    "the softmax of blocks": Claim(
        RowSoftmax(BlockMatrix([[A, B]])), BlockMatrix([[RowSoftmax(A), RowSoftmax(B)]])
    ),
    "a negative factor of a norm": Claim(RMSNorm(matmul(-2, A)), RMSNorm(A)),
    "a factor of a norm with eps": Claim(
        RMSNorm(matmul(2, A), Symbol("e", positive=True)), RMSNorm(A, Symbol("e", positive=True))
    ),
    "a norm twice, with eps": Claim(
        RMSNorm(RMSNorm(A, Symbol("e", positive=True)), Symbol("e", positive=True)),
        RMSNorm(A, Symbol("e", positive=True)),
    ),
    "a difference of positive factors": Claim(
        Activation("relu", matmul(n - 2, A)), matmul(n - 2, Activation("relu", A))
    ),
    # orders of factors
    "vec by rows as by columns": Claim(
        matmul(kron(A, B), vec_rows(C)), vec_rows(matmul(B, C, Transpose(A)))
    ),
    "blocks transposed": Claim(
        Transpose(BlockMatrix([[A, B], [C, A]])),
        BlockMatrix([[Transpose(A), Transpose(B)], [Transpose(C), Transpose(A)]]),
    ),
    "a Kronecker product of blocks": Claim(
        kron(T, BlockMatrix([[A, B]])), BlockMatrix([[kron(T, A), kron(T, B)]])
    ),
    "the inverse of blocks": Claim(
        Inverse(BlockMatrix([[A, B], [ZERO, C]])),
        BlockMatrix([[Inverse(A), B], [ZERO, Inverse(C)]]),
    ),
}
for each in FALSE.values():
    each.dims, each.counts = [n], [*each.counts, L, H]


@pytest.mark.parametrize("claim", FALSE.values(), ids=FALSE)
def test_the_claim_is_false(claim: Claim) -> None:
    assert false_at(claim, 1, many=12) is not None


LONG = os.environ.get("OTIMES_LONG") == "1"
# Quick trials refute most of these before a proof is tried, and take longest.
CASES = [(name, False) for name in FALSE]
CASES += [(name, True) for name in [*FALSE][:: 1 if LONG else 4]]


@pytest.mark.parametrize(("name", "trials"), CASES)
def test_a_false_claim_is_not_proved(name: str, trials: bool) -> None:
    claim = FALSE[name]
    with nullcontext() if trials else proof_alone():
        try:
            verdict = decide(claim.lhs, claim.rhs, claim.given, budget=2 if LONG else 0.2)
        except OtimesError:
            return
        assert verdict.status != "proved", verdict.reason
        found = verdict.counterexample
        assert found is None or fault_of(claim, found) is None


def test_factors_that_do_not_commute_are_not_exchanged() -> None:
    s, t = sympy.symbols("s t", commutative=False)
    try:
        status = decide(s * t, t * s).status
    except OtimesError:
        return
    assert status != "proved"


nonzero = Symbol("s", nonzero=True, real=True)
negative = Symbol("s", negative=True)
SAME = [(matmul(z, A), matmul(z, B)) for z in (nonzero, negative)]
NOT_REFUTED: dict[str, tuple[Any, ...]] = {
    "nonzero": (A, B, SAME[0]),
    "negative": (A, B, SAME[1]),
    "nonnegative": (
        Activation("relu", matmul(Symbol("s", nonnegative=True), A)),
        matmul(Symbol("s", nonnegative=True), Activation("relu", A)),
    ),
    "negative out of relu": (
        Activation("relu", matmul(negative, A)),
        matmul(negative, Activation("relu", matmul(-1, A)), -1),
    ),
    "square of a real number": (
        Symbol("s", nonnegative=True),
        sympy.S.One,
        (Symbol("s", nonnegative=True) ** 2, sympy.S.One),
    ),
}


@pytest.mark.parametrize("claim", NOT_REFUTED.values(), ids=NOT_REFUTED)
def test_numbers_that_are_not_admissible_refute_nothing(claim: tuple[Any, ...]) -> None:
    lhs, rhs, *given = claim
    assert decide(lhs, rhs, given, budget=2).status != "refuted"


REFUTED: dict[str, Claim] = {
    "fewer than one": Claim(HeadSum(A, (h, H - 2)), matmul(H - 1, A)),
    "a size less than one": Claim(Identity(n - 3), ZeroMatrix(n - 3, n - 3)),
    "a trace of size less than one": Claim(Trace(Identity(H - 2)), n * H),
    "a sign": Claim(matmul(negative, A), ZERO),
    "an even number": Claim(matmul(Symbol("s", even=True), A), ZERO),
    # an array of 3 - n rows grows where n shrinks (counterexample._cut)
    "a size that grows as another shrinks": Claim(
        BlockMatrix([[MatrixSymbol("P", n, 3)], [MatrixSymbol("Q", 3 - n, 3)]]),
        MatrixSymbol("R", 3, 3),
    ),
    "an explicit matrix beside such blocks": Claim(
        BlockMatrix([[MatrixSymbol("P", n, 2)], [MatrixSymbol("Q", 2 - n, 2)]]),
        ImmutableMatrix([[1, 0], [1, 1]]),
    ),
    # a mask is of zeros and ones, with a one in every row (counterexample._draw_mask)
    "any mask": Claim(HadamardProduct(RowSoftmax(A, B), B, evaluate=False), RowSoftmax(A, B)),
    "no mask": Claim(RowSoftmax(A, B), RowSoftmax(A)),
    "a mask in blocks": Claim(
        RowSoftmax(BlockMatrix([[A, B]]), BlockMatrix([[C, ZERO]])),
        BlockMatrix([[RowSoftmax(A), ZERO]]),
    ),
    "a mask for each head": Claim(RowSoftmax(A, G[h]), RowSoftmax(A)),
}


@pytest.mark.parametrize("claim", REFUTED.values(), ids=REFUTED)
def test_a_counterexample_is_admissible(claim: Claim) -> None:
    assert fault(claim, 1) is None


D = sympy.KroneckerDelta(i, j, (0, 1))
NOT_CRASHED: dict[str, tuple[Any, ...]] = {
    "a fixed mask": (CausalMask(2), ImmutableMatrix([[1, 0], [1, 1]])),
    "a fixed delta": (Mul(D, D, evaluate=False), D, (Trace(T), sympy.S.Zero)),
    "a fixed size and a hypothesis": (
        Trace(T),
        MatrixElement(T, 0, 0) + MatrixElement(T, 1, 1),
        (Trace(U), sympy.S.Zero),
    ),
    "equal functions": (A, B, (Activation("relu", A), Activation("relu", B))),
    "a singular matrix of numbers is inverted": (matmul(Inverse(OneMatrix(2, 2)), T), U),
    "a number divided by zero": (Mul(1 / Trace(ZeroMatrix(2, 2)), Trace(T)), Trace(U)),
    "a mask that is too large for memory": (Trace(CausalMask(10**6)), sympy.Integer(5)),
    "an identity that is too large for memory": (Trace(Identity(10**6)), sympy.Integer(5)),
    "a power of a root that is too long": (
        Pow(Symbol("p", positive=True), sympy.Rational(10**9, 7)),
        Symbol("p", positive=True),
    ),
}


@pytest.mark.parametrize("claim", NOT_CRASHED.values(), ids=NOT_CRASHED)
def test_a_claim_has_an_answer(claim: tuple[Any, ...]) -> None:
    lhs, rhs, *given = claim
    verdict = decide(lhs, rhs, given, budget=0.5)
    assert verdict.reason
    assert "deeply" not in verdict.reason  # of a search that does not come to an end
    assert verdict.status != "refuted" or verdict.counterexample is not None


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "three numbers in a limit": (lambda: HeadSum(A, (h, 2, H)), "counts from 0"),
    "one number in a limit": (lambda: HeadSum(A, (h,)), "limit"),
    "a limit without brackets": (lambda: StackHeads(A, h), "limit"),
    "a sum over no index": (lambda: decide(stated(sympy.Sum, a), a), "no index"),
    "no heads": (
        lambda: decide(HeadSum(LayerProduct(A, (u, h)), (h, 0)), ZERO),
        "sizes are positive",
    ),
    "no list of hypotheses": (lambda: decide(A, B, sympy.Eq(a, b)), "are a list"),
    "None as hypotheses": (lambda: decide(A, B, None), "are a list"),  # type: ignore[arg-type]
    "a root of a high degree": (
        lambda: decide(Pow(Symbol("p", positive=True), sympy.Rational(1, 10**9)), b),
        "degree",
    ),
    "what is false where another inequality holds": (
        lambda: decide(A, B, [sympy.Ne(ROOT, a), a > 0]),
        "false for all values",
    ),
}


@pytest.mark.parametrize("asked", REFUSED.values(), ids=REFUSED)
def test_what_says_nothing_is_refused(asked: tuple[Callable[[], Any], str]) -> None:
    ask, why = asked
    with pytest.raises(OtimesError, match=why):
        ask()


TRUE: dict[str, tuple[Any, ...]] = {
    "a bound index under another name": (LayerProduct(F[l], (l, L)), LayerProduct(F[u], (u, L))),
    "a hypothesis with an index called last": (
        HeadSum(matmul(W, A), (h, H)),
        matmul(H, W, A),
        (matmul(F[last], A), matmul(A, F[last])),
    ),
    "layers before a layer, in one name": (
        HeadSum(LayerProduct(PAIR[h], (h, h)), (h, 2)),
        matadd(ONE, PAIR[0]),
    ),
    "no layers": (LayerProduct(F[l], (l, 0)), ONE),
    "heads in one name": (
        ConcatHeads(ConcatHeads(A, (h, 2)), (h, H)),
        ConcatHeads(ConcatHeads(A, (u, 2)), (h, H)),
    ),
    "bound twice": (HeadSum(F[l], (l, H), (l, L)), matmul(H, HeadSum(F[l], (l, L)))),
    "the root of a square, where a sign is said": (
        matmul(ROOT, A),
        matmul(a, A),
        sympy.Ne(ROOT, b),
        a > 0,
    ),
}


@pytest.mark.parametrize("claim", TRUE.values(), ids=TRUE)
def test_a_true_claim_in_few_names_is_proved(claim: tuple[Any, ...]) -> None:
    lhs, rhs, *given = claim
    assert decide(lhs, rhs, given, budget=2).status == "proved"


def test_the_evaluator_finds_the_innermost_binder() -> None:
    """Σ_l F[l] (Σ_l F[l]) beside a free l: three indices in one name, by hand."""
    inner = HeadSum(F[l], (l, L))
    world = World({n: 1, L: 2}, 0)
    world.arrays[F] = {(0,): [[2]], (1,): [[5]]}
    world.indices[l] = 1
    assert value(HeadSum(matmul(F[l], inner), (l, L)), world) == [[49]]
    assert value(matadd(F[l], inner), world) == [[12]]
    assert value(HeadSum(LayerProduct(F[l], (l, l)), (l, L)), world) == [[3]]  # none, layer 0
    assert value(HeadSum(F[l], (l, L), (l, L)), world) == [[14]]
    assert value(OrderSum(F[l], (l, L), 2, reverse=True), world) == [[10]]


def test_assumptions_tell_numbers_apart() -> None:
    assert admissible(Symbol("s", negative=True), -1)
    assert not admissible(Symbol("s", even=True), 3)


def test_a_fault_is_made_small() -> None:
    """Of a claim that is wrong for one reason, little more than the reason is left."""
    reason = Activation("softmax", A)
    claim = Claim(matmul(2, matadd(reason, B)), matmul(2, matadd(ONES, B)), dims=[n])
    if fault(claim, 1) is not None:  # as long as it is a fault
        small = minimised(claim, 1)
        assert (small.lhs, small.rhs) == (reason, ONES)
