"""Verdicts: sound rewritings are proved, mistakes are refuted with numbers anybody can check."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import (
    HadamardProduct,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Rational,
    Symbol,
    Trace,
    ZeroMatrix,
    symbols,
)

from otimes.algebra.decide.decide import STRATEGIES
from otimes.algebra.errors import LanguageError, Refuted, ShapeError, Undecided
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask
from otimes.algebra.verdict import decide, prove
from tests.algebra import expressions
from tests.algebra.expressions import RULES, SHAPES, TENSORS, mutants, random_expression, rewritten
from tests.algebra.reference import random_world, values_of

n, m, d, p, H, K = symbols("n m d p H K")
h, i, j, k = symbols("h i j k")
c = symbols("c")
A, B, C = (MatrixSymbol(name, n, n) for name in "ABC")
W, V = MatrixSymbol("W", d, d), MatrixSymbol("V", d, d)
X = MatrixSymbol("X", n, d)
P, Q = Family("P", (H,), n, n), Family("Q", (H,), n, n)


def confirm(counterexample: Any, lhs: Any, rhs: Any) -> None:
    """Hold a counterexample against the tree walker and against the evaluator of the tests."""
    world = Assignment(
        {symbol.name: size for symbol, size in counterexample.sizes.items()},
        counterexample.arrays,
        {symbol.name: index for symbol, index in counterexample.indices.items()},
        {symbol.name: value for symbol, value in counterexample.scalars.items()},
    )
    values = [tree_value(side, world) for side in (lhs, rhs)]
    if counterexample.entry is not None:
        values = [value[counterexample.entry] for value in values]
    assert values == [counterexample.lhs, counterexample.rhs]
    assert values[0] != values[1]
    if not (lhs - rhs).atoms(sympy.Pow) & {x for x in (lhs - rhs).atoms(sympy.Pow) if x.exp.q > 1}:
        assert values_of(counterexample, lhs, rhs) == tuple(values)


def refuted(lhs: Any, rhs: Any) -> Any:
    verdict = decide(lhs, rhs)
    assert verdict.status == "refuted", verdict
    confirm(verdict.counterexample, lhs, rhs)
    return verdict.counterexample


# -- many --------------------------------------------------------------------------------------


def test_sound_rewritings_are_proved() -> None:
    draw = random.Random(41)
    used: dict[str, int] = {}
    for _ in range(350):
        e = random_expression(draw, draw.choice(SHAPES), draw.choice([2, 3]))
        new, rules = rewritten(draw, e, draw.randint(1, 6))
        for rule in rules:
            used[rule] = used.get(rule, 0) + 1
        assert decide(e, new).status == "proved", (rules, e, new)
    assert len(used) == len(RULES), f"never tried: { {r.__name__ for r in RULES} - used.keys() }"


def test_single_mistakes_are_refuted_or_harmless() -> None:
    draw = random.Random(43)
    worlds = [
        random_world(TENSORS, {"n": q, "d": r, "H": s}, expressions.SCALARS, 5 * q)
        for q, r, s in [(4, 3, 2), (3, 5, 4)]
    ]
    count = {"refuted": 0, "proved": 0}
    for _ in range(110):
        e = random_expression(draw, draw.choice(SHAPES), draw.choice([2, 2, 3]))
        wrong = list(mutants(e))
        for mutant in draw.sample(wrong, min(2, len(wrong))):
            verdict = decide(e, mutant)
            equal = all(np.all(w.value(e) == w.value(mutant)) for w in worlds)
            assert verdict.status == ("proved" if equal else "refuted"), (e, mutant)
            count[verdict.status] += 1
            if not equal:
                confirm(verdict.counterexample, e, mutant)
    assert count["refuted"] > 80, count
    assert count["proved"] > 10, count  # 2·0 = 0 and Iᵀ = I: harmless ones must be told apart


# -- the product of two layers --------------------------------------------------------------------


def layers(n_layers: int, n_heads: int) -> tuple[Any, list[Any]]:
    """Return ∏ (I + Σ A⊗W) with every head a symbol of its own, and the terms of its path sum."""
    heads = [
        [
            (MatrixSymbol(f"A{layer}_{q}", n, n), MatrixSymbol(f"W{layer}_{q}", d, d))
            for q in range(n_heads)
        ]
        for layer in range(n_layers)
    ]
    one = kron(Identity(n), Identity(d))
    whole = matmul(*[matadd(one, *[kron(*head) for head in row]) for row in heads])
    paths = []
    for choice in product(range(-1, n_heads), repeat=n_layers):
        taken = [heads[layer][q] for layer, q in enumerate(choice) if q >= 0]
        if not taken:
            paths.append(one)
        elif len(taken) == 1:
            paths.append(kron(*taken[0]))
        else:
            paths.append(kron(*[matmul(*factors) for factors in zip(*taken, strict=True)]))
    return whole, paths


def test_two_layers_of_sixteen_heads_are_their_289_paths() -> None:
    whole, paths = layers(2, 16)
    assert len(paths) == 289
    verdict = decide(whole, matadd(*paths))
    assert verdict.status == "proved"
    assert "289 diagrams" in verdict.reason


@pytest.mark.parametrize("dropped", [0, 7, 100, 288])
def test_a_path_left_out_is_refuted_and_numpy_agrees(dropped: int) -> None:
    whole, paths = layers(2, 16)
    path_sum = matadd(*paths[:dropped], *paths[dropped + 1 :])
    verdict = decide(whole, path_sum)
    assert verdict.status == "refuted"
    found = verdict.counterexample
    arrays = found.arrays
    assert set(arrays) == {f"{t}{layer}_{q}" for t in "AW" for layer in range(2) for q in range(16)}
    sizes = {s.name: size for s, size in found.sizes.items()}
    one = np.eye(sizes["n"] * sizes["d"], dtype=int).astype(object)
    factors = [
        one + sum(np.kron(arrays[f"A{layer}_{q}"], arrays[f"W{layer}_{q}"]) for q in range(16))
        for layer in range(2)
    ]
    left = factors[0] @ factors[1]
    terms = []
    for x, y in product(range(-1, 16), repeat=2):
        left_head = np.kron(arrays[f"A0_{x}"], arrays[f"W0_{x}"]) if x >= 0 else one
        right_head = np.kron(arrays[f"A1_{y}"], arrays[f"W1_{y}"]) if y >= 0 else one
        terms.append(left_head @ right_head)
    right = sum(terms[:dropped] + terms[dropped + 1 :])
    assert (left[found.entry], right[found.entry]) == (found.lhs, found.rhs)
    assert found.lhs != found.rhs


def test_four_layers_of_four_heads_are_625_paths() -> None:
    whole, paths = layers(4, 4)
    assert len(paths) == 625
    verdict = decide(whole, matadd(*paths))
    assert verdict.status == "proved"
    assert "625 diagrams" in verdict.reason


def test_a_symbolic_number_of_heads() -> None:
    A2, W2 = Family("A2", (K,), n, n), Family("W2", (K,), d, d)
    A1, W1 = Family("A1", (H,), n, n), Family("W1", (H,), d, d)
    one = kron(Identity(n), Identity(d))
    first = HeadSum(kron(A1[h], W1[h]), (h, H))
    second = HeadSum(kron(A2[k], W2[k]), (k, K))
    virtual = HeadSum(kron(matmul(A2[k], A1[h]), matmul(W2[k], W1[h])), (k, K), (h, H))
    paths = matadd(one, first, second, virtual)
    assert decide(matmul(matadd(one, second), matadd(one, first)), paths).status == "proved"
    refuted(matmul(matadd(one, first), matadd(one, second)), paths)
    refuted(matmul(matadd(one, second), matadd(one, first)), matadd(one, first, second))


# -- single identities -------------------------------------------------------------------------

TRUE: dict[str, tuple[Any, Any]] = {
    "a loop is a size": (Trace(Identity(n)), n),
    "ones meet ones": (matmul(OneMatrix(1, n), OneMatrix(n, 1)), n * Identity(1)),
    "a sum over heads of a constant": (HeadSum(A, (h, H)), H * A),
    "concatenated heads": (
        matmul(ConcatHeads(P[h], (h, H)), StackHeads(Q[h], (h, H))),
        HeadSum(matmul(P[h], Q[h]), (h, H)),
    ),
    "heads share an index": (
        matmul(HeadSum(P[h], (h, H)), HeadSum(Q[h], (h, H))),
        HeadSum(matmul(P[i], Q[j]), (i, H), (j, H)),
    ),
    "a one-hot selects": (HeadSum(matmul(OneHot(i, n), OneHot(i, n).T), (i, n)), Identity(n)),
    "sizes cancel": (matmul(1 / n, HeadSum(A, (i, n))), A),
    "scores": (matmul(A / sympy.sqrt(d), B / sympy.sqrt(d)), matmul(A, B) / d),
    "identities in either order": (kron(Identity(d), Identity(n)), kron(Identity(n), Identity(d))),
    "powers": (A**5, matmul(A**2, A, A**2)),
    "squares": ((A + B) ** 2, A**2 + matmul(A, B) + matmul(B, A) + B**2),
    "quotients": (matmul(1 / (c + 1), c, A) + matmul(1 / (c + 1), A), A),
    "numbers": (Rational(1, 2), Rational(2, 4)),
}

FALSE: dict[str, tuple[Any, Any]] = {
    "products do not commute": (matmul(A, B), matmul(B, A)),
    "a transpose forgotten": (matmul(A, B).T, matmul(A.T, B.T)),
    "kron does not commute": (kron(A, B), kron(B, A)),
    "kron is not distributive in pairs": (
        matadd(kron(A, B), kron(C, A)),
        kron(matadd(A, C), matadd(B, A)),
    ),
    "trace of a product": (Trace(matmul(A, B)), Trace(A) * Trace(B)),
    "a trace turned around": (Trace(matmul(A, B, C)), Trace(matmul(A, C, B))),
    "a loop forgotten": (Trace(kron(A, Identity(d))), Trace(A)),
    "a size forgotten": (HeadSum(A, (h, H)), A),
    "one head index too few": (
        matmul(HeadSum(P[h], (h, H)), HeadSum(Q[h], (h, H))),
        HeadSum(matmul(P[h], Q[h]), (h, H)),
    ),
    "hadamard is not the product": (HadamardProduct(A, B), matmul(A, B)),
    "a scale": (matmul(A / sympy.sqrt(d), B / sympy.sqrt(d)), matmul(A, B) / sympy.sqrt(d)),
    "free indices": (P[i], P[j]),
    "a fixed head is not another": (P[0], P[1]),
    "a head is not the sum": (P[0], HeadSum(P[h], (h, H))),
    "a scalar that may be zero": (c * A, A),
    "only at size 1": ((n - 1) * Trace(A), 0),
    "only at sizes 1, 2 and 3": ((n - 1) * (n - 2) * (n - 3) * A, ZeroMatrix(n, n)),
    "only for c = -1, 0, 1": (c**3 * A, c * A),
    "numbers": (1, 2),
}


@pytest.mark.parametrize("name", TRUE)
def test_true(name: str) -> None:
    assert decide(*TRUE[name]).status == "proved"
    assert decide(*reversed(TRUE[name])).status == "proved"


@pytest.mark.parametrize("name", FALSE)
def test_false(name: str) -> None:
    lhs, rhs = (sympy.sympify(side) for side in FALSE[name])
    refuted(lhs, rhs)
    refuted(rhs, lhs)


def test_a_counterexample_is_complete() -> None:
    """Sizes, indices, scalars and every matrix of both sides, cancelled ones too."""
    lhs = matadd(matmul(c, P[i], X), matmul(0, A, X), matmul(W.T.shape[0], P[i], X))
    rhs = matmul(P[0], X, V)
    found = refuted(lhs, rhs)
    assert set(found.sizes) == {n, d, H}
    assert set(found.indices) == {i}
    assert set(found.scalars) == {c}
    assert set(found.arrays) == {"P", "X", "A", "V"}
    size = {s: found.sizes[s] for s in (n, d, H)}
    assert found.arrays["P"].shape == (size[H], size[n], size[n])
    assert found.arrays["X"].shape == (size[n], size[d])
    assert found.arrays["V"].shape == (size[d], size[d])
    assert 0 <= found.indices[i] < size[H]
    for array in found.arrays.values():
        assert all(type(x) is int for x in array.ravel())


# -- traps -------------------------------------------------------------------------------------


def test_a_scalar_is_not_divided_by() -> None:
    """Trap 1: c·A = 0 does not make A = 0."""
    refuted(matmul(c, A), ZeroMatrix(n, n))
    refuted(matmul(c, A), matmul(c, B))


def test_shapes_are_ours_to_check() -> None:
    """Trap 2: SymPy accepts all of these."""
    R = MatrixSymbol("R", n, m)
    with pytest.raises(ShapeError, match=r"cannot multiply R \(n × m\) by R \(n × m\)"):
        decide(matmul(R, R), matmul(R, R))
    with pytest.raises(ShapeError, match=r"take the trace of R \(n × m\): a square matrix"):
        decide(Trace(R), Trace(R))
    with pytest.raises(ShapeError, match="a square matrix is needed"):
        decide(R**2, R**2)


def test_two_symbols_of_one_name_are_told_apart() -> None:
    """Trap 3, across the two sides as well."""
    other = Symbol("n", integer=True)
    with pytest.raises(ShapeError, match=r"n × n, the right side n′ × n′ \(n′: primes tell"):
        decide(MatrixSymbol("A", n, n), MatrixSymbol("B", other, other))
    with pytest.raises(ShapeError, match="A occurs with two shapes, n × n and d × d"):
        decide(kron(A, MatrixSymbol("A", d, d)), kron(A, W))
    with pytest.raises(LanguageError, match="A names both a matrix and a scalar"):
        decide(Symbol("A") * A, A)


def test_constructors_that_evaluate() -> None:
    """Trap 5: whatever SymPy made of them, the verdict is about what it says."""
    evaluated = sympy.KroneckerProduct(Identity(n), Identity(d))
    assert decide(evaluated, Identity(n * d)).status == "proved"
    assert decide(A * A, A**2).status == "proved"
    assert decide(sympy.MatMul(A, evaluate=False), A).status == "proved"
    assert decide(sympy.MatMul(A, 2, B, Trace(C), evaluate=False), 2 * Trace(C) * A * B).status == (
        "proved"
    )
    one_by_one = OneMatrix(1, n) * A * OneMatrix(n, 1)
    with pytest.raises(ShapeError, match=r"1 × 1.*n × n"):
        decide(matmul(one_by_one, A), matmul(A, one_by_one))
    with pytest.raises(ShapeError, match="the left side is 1 × 1, the right side scalar"):
        decide(one_by_one, Trace(A))


def commutator(x: Any, y: Any) -> Any:
    return matadd(matmul(x, y), matmul(-1, y, x))


def standard_identity(*factors: Any) -> Any:
    """Return the alternating sum of the products in every order."""
    from sympy.combinatorics import Permutation

    terms = []
    for order in sympy.utilities.iterables.permutations(range(len(factors))):
        sign = Permutation(list(order)).signature()
        terms.append(matmul(sign, *[factors[q] for q in order]))
    return matadd(*terms)


def test_identities_of_small_sizes_are_never_called_wrong() -> None:
    """Trap 8 and the limits: Cayley–Hamilton, Hall and the standard identity hold at 2×2 only."""
    E, F, G, R = (MatrixSymbol(name, 2, 2) for name in "EFGR")
    square = commutator(E, F) ** 2
    claims = [
        (2 * E**2, matadd(2 * Trace(E) * E, (Trace(E**2) - Trace(E) ** 2) * Identity(2))),
        (matmul(square, G), matmul(G, square)),
        (standard_identity(E, F, G, R), ZeroMatrix(2, 2)),
    ]
    for lhs, rhs in claims:
        verdict = decide(lhs, rhs)
        assert verdict.status != "refuted"
        assert verdict.status == "undecided" or "normal form" not in verdict.reason
    general = commutator(A, B) ** 2
    refuted(matmul(general, C), matmul(C, general))
    found = refuted(standard_identity(A, B, C, C.T), ZeroMatrix(n, n))
    assert found.sizes[n] >= 3


def test_numeric_sizes_that_are_true_or_false_outright() -> None:
    E, F = MatrixSymbol("E", 2, 2), MatrixSymbol("F", 2, 2)
    assert decide(kron(E, F) * kron(F, E), kron(E * F, F * E)).status == "proved"
    assert decide(Trace(Identity(2)), 2).status == "proved"
    assert decide(kron(Identity(2), Identity(3)), Identity(6)).status == "proved"
    refuted(E * F, F * E)
    R, S = MatrixSymbol("R", 6, 6), MatrixSymbol("S", 3, 3)
    left = matmul(R, kron(E, S), kron(F, S))
    assert decide(left, matmul(R, kron(E * F, S * S))).status == "proved"


def test_size_one_is_no_leg() -> None:
    u, v = MatrixSymbol("u", n, 1), MatrixSymbol("v", n, 1)
    assert decide(kron(u, v.T), matmul(u, v.T)).status == "proved"
    assert decide(kron(u, v), vec_rows(matmul(u, v.T))).status == "proved"
    refuted(kron(u, v), kron(v, u))


def test_an_order_of_legs_that_does_not_exist_is_undecided() -> None:
    R = MatrixSymbol("R", n * d, n * d)
    both = Trace(matmul(R, kron(A, W))) - Trace(matmul(R, kron(W, A)))
    found = decide(both, 0)
    assert found.status == "refuted"
    confirm(found.counterexample, both, sympy.Integer(0))
    true = decide(both, Trace(matmul(kron(A, W), R)) - Trace(matmul(kron(W, A), R)))
    assert true.status in ("undecided", "proved")


# -- asking wrongly ----------------------------------------------------------------------------

R23, R32 = MatrixSymbol("R", 2, 3), MatrixSymbol("T", 3, 2)

WRONG: list[tuple[Any, Any, type, str]] = [
    (A, X, ShapeError, r"the left side is n × n, the right side n × d"),
    (X, X.T, ShapeError, r"n × d, the right side d × n; did you mean the transpose of one side\?"),
    (A, Trace(A), ShapeError, "the left side is n × n, the right side scalar"),
    (
        matmul(X, A),
        A,
        ShapeError,
        r"by A \(n × n\): the inner sizes d and n differ; did you mean A before X\? \(in X A\)",
    ),
    (
        matmul(X, X),
        A,
        ShapeError,
        r"cannot multiply X \(n × d\) by X .*did you mean Transpose\(X\)",
    ),
    (
        matmul(A, W),
        A,
        ShapeError,
        r"inner sizes n and d differ; did you mean KroneckerProduct\(A, W",
    ),
    (
        matadd(X, X.T),
        X,
        ShapeError,
        r"cannot add X \(n × d\) and Xᵀ \(d × n\).*did you mean Trans",
    ),
    (HadamardProduct(A, B) * X + A, A, ShapeError, r"cannot add .*n × d.*n × n"),
    (np.eye(2), A, LanguageError, "decide was given ndarray"),
    (b"A", A, LanguageError, "decide was given bytes b'A'"),
    (A, None, LanguageError, "decide was given NoneType"),
    (True, True, LanguageError, "decide was given bool"),
    (0.5, A, LanguageError, "decide was given float"),
    (0.5 * A, A, LanguageError, "floating-point number: write it exactly"),
    (sympy.Determinant(A), 0, LanguageError, "Determinant is not in the language yet"),
    (sympy.E * A, A, LanguageError, "Exp1 is not in the language yet"),
    (P, A, LanguageError, r"the family P was given without its index: write P\[h\]"),
    (
        A.applyfunc(sympy.exp),
        A,
        LanguageError,
        "ElementwiseApplyFunction is not in the language yet",
    ),
]


@pytest.mark.parametrize(("lhs", "rhs", "error", "words"), WRONG)
def test_errors(lhs: Any, rhs: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        decide(lhs, rhs)


def test_prove_raises_what_it_found() -> None:
    assert prove(A, A).status == "proved"
    with pytest.raises(Refuted, match=r"false:\nn = 2") as refusal:
        prove(matmul(A, B), matmul(B, A))
    confirm(refusal.value.counterexample, matmul(A, B), matmul(B, A))
    by_parts = matadd(matmul(kron(A, W), kron(W, A)), matmul(kron(B, W), kron(W, A)))
    with pytest.raises(Undecided, match="read in different orders"):
        prove(matmul(kron(matadd(A, B), W), kron(W, A)), by_parts)


def test_a_delta_is_not_one() -> None:
    delta = matmul(OneHot(i, n).T, OneHot(j, n))
    assert decide(delta, Identity(1)).status == "refuted"
    assert decide(HeadSum(delta, (i, n)), Identity(1)).status == "proved"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (sympy.Dummy("h"), sympy.Dummy("h")),
        pytest.param(
            Symbol("h", integer=True),
            Symbol("h"),
        ),
    ],
    ids=["dummies", "assumptions"],
)
def test_indices_of_one_name_are_told_apart_or_refused(first: Any, second: Any) -> None:
    twice = HeadSum(kron(P[first], Q[second]), (first, H), (second, H))
    once = H * HeadSum(kron(P[k], Q[k]), (k, H))
    try:
        status = decide(twice, once).status
    except LanguageError:
        return
    assert status == "refuted"


def test_a_bound_index_is_no_size() -> None:
    inner = matmul(MatrixSymbol("Y", n, h), MatrixSymbol("Z", h, n))
    ragged = HeadSum(Family("T", (h,), n, n)[k], (k, h))
    for body in (inner, ragged):
        try:
            status = decide(HeadSum(body, (h, H)), H * body).status
        except (ShapeError, LanguageError):
            continue
        raise AssertionError(status)


def test_shrinking_steers_clear_of_poles() -> None:
    refuted(A / (n - 1), 2 * A / (n - 1))


def test_a_size_that_can_be_negative() -> None:
    Y, Z = MatrixSymbol("Y", n - 2, n - 2), MatrixSymbol("Z", n - 2, n - 2)
    refuted(matmul(Y, Z), matmul(Z, Y))


def test_a_coefficient_with_many_roots() -> None:
    factor = sympy.Mul(*[n - q for q in range(1, 8)])
    refuted(factor * Trace(A), sympy.Integer(0))


def test_identities_in_both_orders() -> None:
    lhs = Trace(matmul(kron(Identity(d), Identity(n)), kron(W, A)))
    rhs = Trace(matmul(kron(Identity(n), Identity(d)), kron(A, W)))
    assert decide(lhs, rhs).status == "proved"


def test_an_index_with_one_value() -> None:
    single = Family("S", (1,), n, n)
    assert decide(HeadSum(single[h], (h, 1)), single[0]).status == "proved"


def test_a_symbol_is_no_fixed_index() -> None:
    try:
        status = decide(A[Symbol("0@0"), 0], A[0, 0]).status
    except LanguageError:
        return
    assert status == "refuted"


def test_explicit_matrices_may_be_a_side() -> None:
    K = MatrixSymbol("K", 2, 2)
    swap = sympy.Matrix([[0, 1], [1, 0]])
    assert (
        decide(sympy.Matrix([[K[1, 0], K[1, 1]], [K[0, 0], K[0, 1]]]), swap * K).status == "proved"
    )
    assert decide(swap, sympy.eye(2)).status == "refuted"
    assert decide(K, K.T, [sympy.Eq(K, swap)]).status == "proved"


def test_explicit_matrices_meet_blocks() -> None:
    blocks = sympy.BlockMatrix([[A, 2 * A, B], [3 * A, B, A]])
    left, right = sympy.Matrix([[1, 2, 0], [3, 0, 1]]), sympy.Matrix([[0, 0, 1], [0, 1, 0]])
    assert decide(blocks, kron(left.as_immutable(), A) + kron(right.as_immutable(), B)).status == (
        "proved"
    )
    assert decide(blocks, kron(left.as_immutable(), A) + kron(left.as_immutable(), B)).status == (
        "refuted"
    )


def test_what_numbers_settle_is_settled_beside_masks_and_hypotheses_too() -> None:
    lower = sympy.Matrix([[1, 0], [1, 1]])
    assert decide(CausalMask(2), lower).status == "proved"
    assert decide(CausalMask(2), lower.T).status == "refuted"
    i, j = sympy.symbols("i j", integer=True)
    Y, Z = MatrixSymbol("Y", 2, 2), MatrixSymbol("Z", 2, 2)
    delta = sympy.KroneckerDelta(i, j)
    given = [(Z * Z, Z)]
    assert decide(delta * Y[i, j], delta * Y[j, i], given).status == "proved"
    assert decide(delta * Y[i, j], Y[j, i], given).status == "refuted"
    unit = sympy.ImmutableMatrix([[1, 0], [0, 1]])
    entry = sympy.matrices.expressions.matexpr.MatrixElement(unit, i, j)
    assert decide(delta, entry, given).status == "proved"


def test_sizes_of_a_counterexample_are_sizes() -> None:
    verdict = decide(Identity(n - 3), sympy.ZeroMatrix(n - 3, n - 3))
    assert verdict.status == "refuted"
    assert verdict.counterexample is not None
    assert verdict.counterexample.sizes == {n: 4}


def test_a_function_in_a_hypothesis_is_no_premise_of_itself() -> None:
    given = [(Activation("relu", A), Activation("relu", B))]
    assert decide(A, B, given=given).status == "refuted"


def test_a_power_with_a_symbol_is_told_by_numbers_or_by_induction() -> None:
    assert decide(2**n * A, 2**n * A).status == "proved"
    assert decide(2**n * A, A).status == "refuted"
    assert decide(2 ** (n / 2) * A, 2**n * A).status != "proved"


L = symbols("L")
R, S = Family("R", (L,), n, n), Family("S", (2,), n, n)
any_depth = LayerProduct(R[i], (i, L))
FOUND_BY = {
    "one normal form": [(A * B).T, B.T * A.T],
    "one expression": [any_depth, any_depth],
    "finite sums written out": [HeadSum(S[h], (h, 2)), matadd(S[0], S[1])],
    "the hypotheses as they are stated": [
        Activation("relu", A) * B,
        C,
        [(Activation("relu", A) * B, C)],
    ],
    "sums of hypotheses": [A * B * C, C, [(A * B, Identity(n))]],
    "one size cut in several ways": [
        Trace(matmul(kron(A, W), kron(W, A))),
        Trace(matmul(kron(W, A), kron(A, W))),
    ],
    "induction over a depth": [any_depth.T, LayerProduct(R[i].T, (i, L), True)],
    "exact trials": [A * B, B * A],
}


@pytest.mark.parametrize("strategy", FOUND_BY)
def test_a_verdict_names_the_strategy_that_found_it(strategy: str) -> None:
    assert decide(*FOUND_BY[strategy]).strategy == strategy


def test_the_other_strategies() -> None:
    others = {"the axioms about its functions", "polynomials in the entries"}
    others |= {"induction over a number of members", "the lemmas that are given"}
    others |= {"no more layers than can be multiplied", "any number of layers"}
    others |= {"induction over positions", "what is read out of a state"}
    others |= {"members in the place of rows"}
    assert {name for name, _ in STRATEGIES} == {*FOUND_BY, *others}
