"""Claims under hypotheses: what follows is proved, what does not is refuted where they hold."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import (
    HadamardProduct,
    Identity,
    Integer,
    Inverse,
    MatrixSymbol,
    OneMatrix,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)

from otimes.algebra.decide.certificate import to_json
from otimes.algebra.decide.satisfy import satisfying
from otimes.algebra.errors import LanguageError, ShapeError, Undecided
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.algebra.language.shapes import inspect
from otimes.algebra.verdict import decide, prove
from otimes.proofs import replay

n, m, d, H = (Symbol(name, positive=True, integer=True) for name in ("n", "m", "d", "H"))
i, j, h = (Symbol(name, integer=True) for name in ("i", "j", "h"))
alpha = Symbol("alpha")
P, Q, R, S, T, N, Z = (MatrixSymbol(name, n, n) for name in "PQRSTNZ")
X, E, F = MatrixSymbol("X", n, d), MatrixSymbol("E", d, m), MatrixSymbol("F", m, d)
U, V, K, G = (
    MatrixSymbol("U", n, m),
    MatrixSymbol("V", m, n),
    MatrixSymbol("K", m, m),
    MatrixSymbol("G", m, m),
)
Y, b = MatrixSymbol("Y", n, d), MatrixSymbol("b", 1, d)
one, I_n, O_n, O_nd = OneMatrix(n, 1), Identity(n), ZeroMatrix(n, n), ZeroMatrix(n, d)
A = Family("A", (H,), n, n)
ALIKE = OneMatrix(n, d)
projection, stochastic, orthogonal = (P * P, P), (S * one, one), (Q.T * Q, I_n)
symmetric, antisymmetric, nilpotent = (S.T, S), (N.T, -N), (N**2, O_n)

PROVED: dict[str, tuple[Any, Any, list]] = {
    "one-sided inverse": (Y * E * F, Y, [(E * F, Identity(d))]),
    "under a Kronecker product": (
        kron(E, S) * kron(F, T),
        kron(Identity(d), S * T),
        [(E * F, Identity(d))],
    ),
    "projection, third power": (P**3, P, [projection]),
    "complementary projection": ((I_n - P) ** 2, I_n - P, [projection]),
    "projection transposed": (P.T * P.T, P.T, [projection]),
    "projection under Hadamard": (HadamardProduct(P * P, T), HadamardProduct(P, T), [projection]),
    "stochastic product": (S * T * one, one, [stochastic, (T * one, one)]),
    "bias through a pattern": (S * (X + one * b), S * X + one * b, [stochastic]),
    "the same in every column": (S * T * ALIKE, ALIKE, [(S * ALIKE, ALIKE), (T * ALIKE, ALIKE)]),
    "one column says it": (S * one, one, [(S * ALIKE, ALIKE)]),
    "sum of stochastic heads": (HeadSum(A[h] * one, (h, H)), H * one, [(A[h] * one, one)]),
    "rotation keeps the Gram matrix": ((Q * X).T * (Q * X), X.T * X, [orthogonal]),
    "left inverse of a square matrix": (Q * Q.T, I_n, [orthogonal]),
    "the kernel of a Gram matrix": (U * V * X, O_nd, [(U.T * U * V * X, ZeroMatrix(m, d))]),
    "a factor beside a Gram matrix": (U.T * X, U.T * Y, [(U * U.T * X, U * U.T * Y)]),
    "the kernel of a Gram matrix, transposed": (X.T * U, O_nd.T * U, [(X.T * U * U.T, O_nd.T)]),
    "a symmetric matrix of square zero": (S, O_n, [symmetric, (S * S, O_n)]),
    "a normal matrix and its transpose have one kernel": (
        Z.T * X,
        O_nd,
        [(Z.T * Z, Z * Z.T), (Z * X, O_nd)],
    ),
    "a normal nilpotent matrix": (Z, O_n, [(Z * Z, O_n), (Z.T * Z, Z * Z.T)]),
    "the kernel of the Gram matrix of each head": (
        A[h] * X,
        O_nd,
        [(A[h].T * A[h] * X, O_nd)],
    ),
    "square of a symmetric matrix": ((S * S).T, S * S, [symmetric]),
    "symmetric factors turn": ((S * T).T, T * S, [symmetric, (T.T, T)]),
    "trace of symmetric times antisymmetric": (
        Trace(S * N),
        Integer(0),
        [symmetric, antisymmetric],
    ),
    "trace of an antisymmetric matrix": (Trace(N), Integer(0), [antisymmetric]),
    "nilpotent": (N**4, O_n, [nilpotent]),
    "commuting": (S * T * S, S * S * T, [(S * T, T * S)]),
    "zero product transposed": (U.T * X, ZeroMatrix(m, d), [(X.T * U, ZeroMatrix(d, m))]),
    "a scalar stays": (alpha * P * P, alpha * P, [projection]),
    "real": (S, O_n, [(S.T * S, O_n)]),
    "uniqueness of inverses": (Z, T, [(R * Z, I_n), (T * R, I_n)]),
    "every index": (S[1, 1], Integer(1), [(S[i, i], Integer(1))]),
    "trace from entries": (Trace(S), n, [(S[i, i], Integer(1))]),
    "symmetric by entries": (S, S.T, [(S[i, j], S[j, i])]),
    "a fixed entry": (2 * S[0, 0], Integer(2), [(S[0, 0], Integer(1))]),
    "inverse": (matmul(Inverse(R), R, X), X, []),
    "inverse of a product": (Inverse(R * Z), Inverse(Z) * Inverse(R), []),
    "inverse of a transpose": (Inverse(R.T), Inverse(R).T, []),
    "inverse under ⊗": (Inverse(kron(R, K)), kron(Inverse(R), Inverse(K)), []),
    "gauge of a head": (
        matmul(U, G, Transpose(matmul(V.T, Transpose(Inverse(G))))),
        U * V,
        [],
    ),
    "push-through": (Inverse(I_n + U * V) * U, U * Inverse(Identity(m) + V * U), []),
    "Woodbury": (
        Inverse(R + U * K * V),
        Inverse(R) - Inverse(R) * U * Inverse(Inverse(K) + V * Inverse(R) * U) * V * Inverse(R),
        [],
    ),
    "resolvent": (Inverse(R) - Inverse(Z), Inverse(R) * (Z - R) * Inverse(Z), []),
    "inverse of an orthogonal matrix": (Inverse(Q), Q.T, [orthogonal]),
}

REFUTED: dict[str, tuple[Any, Any, list]] = {
    "a product with a Gram matrix": (U, ZeroMatrix(n, m), [(U.T * U * V, ZeroMatrix(m, n))]),
    "a matrix of square zero": (Z, O_n, [(Z * Z, O_n)]),
    "a right inverse is no left inverse": (F * E, Identity(m), [(E * F, Identity(d))]),
    "projections need not be symmetric": (P, P.T, [projection]),
    "nor idempotent entrywise": (HadamardProduct(P, P), P, [projection]),
    "stochastic matrices do not add": ((S + T) * one, one, [stochastic, (T * one, one)]),
    "rows that are alike": (S * one, one, [(S * ALIKE, S * S * ALIKE)]),
    "rotations move": (Q * X, X, [orthogonal]),
    "symmetric products": ((S * T).T, S * T, [symmetric, (T.T, T)]),
    "commuting is not transitive": (S * N, N * S, [(S * T, T * S), (T * N, N * T)]),
    "a scalar may vanish": (S, O_n, [(alpha * S, O_n)]),
    "and so may it in two steps": (S, O_n, [(T, alpha * S), (T, O_n)]),
    "inverses do not add": (Inverse(R + Z), Inverse(R) + Inverse(Z), []),
    "one entry is not all": (S[i, i], Integer(1), [(S[0, 0], Integer(1))]),
    "nor is it another": (S[1, 1], Integer(1), [(S[0, 0], Integer(1))]),
    "the diagonal is not everything": (S[i, j], Integer(1), [(S[i, i], Integer(1))]),
}


@pytest.mark.parametrize("name", PROVED)
def test_what_follows_is_proved(name: str) -> None:
    lhs, rhs, given = PROVED[name]
    assert decide(lhs, rhs, given).status == "proved"


@pytest.mark.parametrize("name", [name for name in PROVED if PROVED[name][2]])
def test_it_takes_the_hypotheses(name: str) -> None:
    """Without them the same claim is false: none of them is idle."""
    lhs, rhs, given = PROVED[name]
    for k in range(len(given)):
        rest = given[:k] + given[k + 1 :]
        assert decide(lhs, rhs, rest, budget=5).status in ("refuted", "undecided")


@pytest.mark.parametrize("name", REFUTED)
def test_what_does_not_follow_is_refuted(name: str) -> None:
    lhs, rhs, given = REFUTED[name]
    found = decide(lhs, rhs, given).counterexample
    assert found is not None
    numbers = Assignment(
        {s.name: v for s, v in found.sizes.items()},
        found.arrays,
        {s.name: v for s, v in found.indices.items()},
        {s.name: v for s, v in found.scalars.items()},
    )
    left, right = tree_value(lhs, numbers), tree_value(rhs, numbers)
    assert np.any(left != right)
    for one_side, other in given:
        for each in _every_index((one_side, other), numbers):
            assert np.all(tree_value(one_side, each) == tree_value(other, each))


def _every_index(pair: tuple[Any, Any], numbers: Assignment) -> list[Assignment]:
    found = [numbers]
    for name, (_, count) in inspect(*pair).indices.items():
        found = [
            Assignment(a.sizes, a.arrays, {**a.indices, name: k}, a.scalars)
            for a in found
            for k in range(a.size(count))
        ]
    return found


def test_spectral_facts_are_undecided() -> None:
    """N² = 0 gives tr N = 0, but not by equations: said to be unknown, never said to be false."""
    verdict = decide(Trace(N), Integer(0), [nilpotent], budget=3)
    assert verdict.status == "undecided"
    assert "not found among the consequences" in verdict.reason
    with pytest.raises(Undecided, match="not found"):
        prove(Trace(N), Integer(0), [nilpotent], budget=1)


def test_contradictory_hypotheses_are_said_to_be() -> None:
    verdict = decide(S, T, [(S, O_n), (S, I_n), (T, O_n)])
    assert verdict.status == "proved"
    assert "no numbers were found that satisfy the hypotheses" in verdict.reason
    nowhere = decide(Inverse(matadd(S, matmul(-1, S))), T)
    assert nowhere.status == "proved"
    assert "it may be that there are none" in nowhere.reason


def test_hypotheses_may_be_sympy_equations() -> None:
    assert decide(P**3, P, [sympy.Eq(P * P, P)]).status == "proved"


def test_bad_hypotheses_are_named() -> None:
    with pytest.raises(
        LanguageError, match=r"a hypothesis is a pair \(left, right\), a sympy.Eq or an"
    ):
        decide(P, P, [P])
    with pytest.raises(ShapeError, match="the left side is n × d, the right side n × n"):
        decide(P, P, [(X, P)])


SMALL = [P, P.T, S, S.T, Q, Q.T, I_n]
HYPOTHESES = [projection, symmetric, orthogonal, (alpha * S * P, alpha * P * S)]


def _words(draw: random.Random, count: int) -> list[Any]:
    return [
        matmul(
            draw.choice((1, 1, 2, alpha)),
            *[draw.choice(SMALL) for _ in range(draw.randint(1, 4))],
        )
        for _ in range(count)
    ]


def test_verdicts_partition_words_as_their_values_do() -> None:
    """Words are equal under the hypotheses exactly when they are at numbers that satisfy them."""
    draw = random.Random(7)
    signature = inspect(*SMALL, alpha * P)
    worlds: list[Assignment] = []
    while len(worlds) < 60:
        world = satisfying(HYPOTHESES, signature, draw, draw.choice((2, 3)), 3, {})
        if world is not None:
            worlds.append(world)
    classes: dict[tuple, list[Any]] = {}
    for word in _words(draw, 400):
        values = tuple(tuple(tree_value(word, world).flat) for world in worlds)
        classes.setdefault(values, []).append(word)
    pairs = [(members[0], other) for members in classes.values() for other in members[1:]]
    assert len(pairs) > 100
    statuses = [decide(a, b, HYPOTHESES, budget=2).status for a, b in pairs]
    # sixty worlds may be too few to tell two words apart; a counterexample is one more world
    assert statuses.count("undecided") == 0
    assert statuses.count("proved") > 0.9 * len(pairs)
    leaders = [members[0] for members in classes.values()]
    for _ in range(150):
        a, b = draw.sample(leaders, 2)
        assert decide(a, b, HYPOTHESES, budget=2).status != "proved", (a, b)


def test_equations_of_scalars_are_used() -> None:
    a, c = sympy.symbols("a c")
    assert decide(a * S + c * S, S, [(a + c, Integer(1))]).status == "proved"
    assert decide(a**2 * S, 2 * S + a * S, [(a**2 - a, Integer(2))]).status == "proved"
    assert decide(a * S, S, [(a**2, Integer(1))]).status == "refuted"
    assert decide(a * c * S, S, [(a + c, Integer(1))]).status == "refuted"


def test_hypotheses_at_fixed_sizes() -> None:
    A, B = (MatrixSymbol(name, 2, 2) for name in "AB")
    traceless = [(Trace(A), Integer(0))]
    assert decide(2 * A**2, Trace(A**2) * Identity(2), traceless).status == "proved"
    assert decide(A**2, Trace(A**2) * Identity(2), traceless).status == "refuted"
    assert decide(A * B, -B * A, [*traceless, (Trace(B), Integer(0))]).status == "refuted"
    squared = decide(Trace(A), Integer(0), [(A**2, ZeroMatrix(2, 2))])
    assert squared.status == "undecided"  # true, and no polynomial combination says so


beta = Symbol("beta")
DIVIDED: dict[str, tuple[Any, ...]] = {
    "both sides divided": ((1 / alpha) * P * R, (1 / alpha) * R * P, (P * R, R * P)),
    "divided by a sum": (P / (alpha + beta), R / (alpha + beta), (P, R)),
    "divided by a product": (P / (alpha * beta), R / (alpha * beta), (P, R)),
    "a hypothesis divided": (P, alpha * R, ((1 / alpha) * P, R)),
    "a hypothesis divided by a sum": (P, (alpha + 1) * R, (P / (alpha + 1), R)),
    "what the claim divides by is not zero": (P / alpha, O_n, (alpha * P, O_n)),
    "a root": (P / sympy.sqrt(alpha), R / sympy.sqrt(alpha), (P, R)),
}


@pytest.mark.parametrize("name", DIVIDED)
def test_what_a_claim_divides_by_is_not_zero(name: str) -> None:
    lhs, rhs, *given = DIVIDED[name]
    verdict = decide(lhs, rhs, given)
    assert verdict.status == "proved", verdict
    made = verdict.certificate
    assert made is not None
    assert "cancel" in replay.check(json.loads(to_json(made)))


def test_what_only_a_hypothesis_multiplies_by_may_be_zero() -> None:
    assert decide(P, O_n, [(alpha * P, O_n)]).status == "refuted"
    assert decide(P / beta, O_n, [(alpha * P, O_n)]).status == "refuted"
    assert decide(P, O_n, [((alpha - beta) * P, O_n)]).status == "refuted"
