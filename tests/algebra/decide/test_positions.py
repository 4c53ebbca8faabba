"""Recurrences at a free position, many numbered layers, and lemmas about recurrences."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import Identity, MatrixSymbol, Transpose, ZeroMatrix

from otimes.algebra.budget import STEPS, steps_done
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import Family, HeadSum, OneHot
from otimes.algebra.language.nonlinear import Activation
from otimes.algebra.verdict import decide
from otimes.proofs.replay import Rejected, check
from tests.algebra.decide.attack import proof_alone, rejected

LONG = os.environ.get("OTIMES_LONG") == "1"

n, m, d, k, H = sympy.symbols("n m d k H", integer=True, positive=True)
i, j, l, h = sympy.symbols("i j l h", integer=True)  # noqa: E741 (the layer)
a = sympy.Symbol("a", real=True)
S, Y = Family("S", (n + 1,), d, k), Family("Y", (n + 1,), d, d)
K, V, Q = Family("K", (n,), d, 1), Family("V", (n,), k, 1), Family("Q", (n,), d, 1)
W, U = MatrixSymbol("W", d, d), MatrixSymbol("U", k, d)
Z_ = Family("Z", (n + 1,), d, 1)
ADDED = (S[l + 1], S[l] + K[l] * V[l].T)
AT_I = (S[i + 1], S[i] + K[i] * V[i].T)  # of the index of the claim, and yet for all its values
EMPTY = (S[0], ZeroMatrix(d, k))
TURNED = (Y[l + 1], W * Y[l])


def before(body: Any, end: Any) -> Any:
    return HeadSum(body, (j, end))


WRITTEN = K[j] * V[j].T
KEYS, VALUES = MatrixSymbol("Keys", n, d), MatrixSymbol("Values", n, k)
DECAYED = (S[l + 1], a * S[l] + K[l] * V[l].T)


def row(matrix: Any, index: Any) -> Any:
    return OneHot(index, n).T * matrix


ROWS = (S[l + 1], S[l] + row(KEYS, l).T * row(VALUES, l))
OF_ROWS = row(KEYS, j).T * row(VALUES, j)
HIDDEN, X = MatrixSymbol("Hidden", n + 1, d), MatrixSymbol("X", n, d)
TOTAL, x = MatrixSymbol("Total", n + 1, 1), MatrixSymbol("x", n, 1)


def hidden(index: Any) -> Any:
    return OneHot(index, n + 1).T * HIDDEN


RECURRENT = [(hidden(l + 1), hidden(l) * W + row(X, l)), (hidden(0), ZeroMatrix(1, d))]
SUMMED = [(TOTAL[i, 0], sympy.Sum(x[j, 0], (j, 0, i - 1)))]
TRUE = {
    "state": (S[i], before(WRITTEN, i), [ADDED, EMPTY]),
    "state, the recurrence at i": (S[i], before(WRITTEN, i), [AT_I, EMPTY]),
    "state after": (S[i + 1], before(WRITTEN, i + 1), [ADDED, EMPTY]),
    "state from a start": (S[0] + before(WRITTEN, i), S[i], [ADDED]),
    "what is read": (Q[i].T * S[i + 1], before(Q[i].T * WRITTEN, i + 1), [ADDED, EMPTY]),
    "state of rows": (S[i], before(OF_ROWS, i), [ROWS, EMPTY]),
    "state of all rows": (S[n], KEYS.T * VALUES, [ROWS, EMPTY]),
    "what rows read": (
        row(KEYS, i) * S[i + 1],
        before(row(KEYS, i) * OF_ROWS, i + 1),
        [ROWS, EMPTY],
    ),
    "decayed state": (S[i + 1], before(a ** (i - j) * WRITTEN, i + 1), [DECAYED, EMPTY]),
    "decayed state of powers": (
        S[i + 1],
        before(W ** (i - j) * WRITTEN, i + 1),
        [(S[l + 1], W * S[l] + K[l] * V[l].T), EMPTY],
    ),
    "rows of hidden states": (hidden(i), before(row(X, j) * W ** (i - 1 - j), i), RECURRENT),
    "entries that are sums": (TOTAL[i + 1, 0] - TOTAL[i, 0], x[i, 0], SUMMED),
    "a recurrence of entries": (
        TOTAL[i, 0],
        sympy.Sum(sympy.exp(x[j, 0]), (j, 0, i - 1)),
        [(TOTAL[l + 1, 0], TOTAL[l, 0] + sympy.exp(x[l, 0])), (TOTAL[0, 0], 0)],
    ),
    "all that is read": (
        HeadSum(Q[i].T * S[i], (i, n)),
        HeadSum(Q[i].T * before(WRITTEN, i), (i, n)),
        [ADDED, EMPTY],
    ),
    "nothing new": (Y[i], W, [(Y[l + 1], Y[l]), (Y[0], W)]),
    "powers": (Y[i], W**i * Y[0], [TURNED]),
    "powers that are read": (U * Z_[i], U * W**i * Z_[0], [(Z_[l + 1], W * Z_[l])]),
    "orthogonal": (
        Y[i].T * Y[i],
        Identity(d),
        [TURNED, (W.T * W, Identity(d)), (Y[0], Identity(d))],
    ),
    "kept": (W * Y[i], Y[i] * W, [TURNED, (Y[0] * W, W * Y[0])]),
}
FALSE = {
    "rows of hidden states": (hidden(i + 1), before(row(X, j) * W ** (i - j), i), RECURRENT),
    "entries that are sums": (TOTAL[i + 1, 0] - TOTAL[i, 0], 2 * x[i, 0], SUMMED),
    "a recurrence of entries": (
        TOTAL[i, 0],
        a * sympy.Sum(x[j, 0], (j, 0, i - 1)),
        [(TOTAL[l + 1, 0], a * TOTAL[l, 0] + x[l, 0]), (TOTAL[0, 0], 0)],
    ),
    "state of all rows": (S[n], KEYS.T * VALUES, [ROWS]),
    "rows one too early": (S[i + 1], before(OF_ROWS, i), [ROWS, EMPTY]),
    "decayed once too often": (
        S[i + 1],
        before(a ** (i - j + 1) * WRITTEN, i + 1),
        [DECAYED, EMPTY],
    ),
    "state of one more": (S[i], before(WRITTEN, i + 1), [ADDED, EMPTY]),
    "state of one more, the recurrence at i": (S[i], before(WRITTEN, i + 1), [AT_I, EMPTY]),
    "state of all": (S[i], before(WRITTEN, n), [ADDED, EMPTY]),
    "state of what follows": (
        S[i],
        HeadSum(WRITTEN, (j, n)) - before(WRITTEN, i + 1),
        [ADDED, EMPTY],
    ),
    "a start forgotten": (S[i], before(WRITTEN, i), [ADDED]),
    "read too early": (Q[i].T * S[i], before(Q[i].T * WRITTEN, i + 1), [ADDED, EMPTY]),
    "the last state": (S[i], S[n], [ADDED, EMPTY]),
    "powers of one more": (Y[i], W ** (i + 1) * Y[0], [TURNED]),
    "another start": (Y[i], W, [(Y[l + 1], Y[l]), (Y[0], 2 * W)]),
    "not kept": (W * Y[i], Y[i] * W, [TURNED]),
}


@pytest.mark.parametrize("name", TRUE)
def test_a_recurrence_is_proved_at_every_position(name: str) -> None:
    verdict = decide(*TRUE[name], budget=3)
    assert verdict.status == "proved", verdict.reason
    assert rejected(verdict) is None


@pytest.mark.parametrize("name", FALSE)
def test_a_near_miss_is_refuted(name: str) -> None:
    assert decide(*FALSE[name], budget=3).status == "refuted"


@pytest.mark.parametrize("name", [*FALSE][:: 1 if LONG else 4])
def test_without_trials_a_near_miss_is_not_proved(name: str) -> None:
    with proof_alone():
        assert decide(*FALSE[name], budget=0.3).status == "undecided"


def test_a_counterexample_has_the_matrix_whose_rows_are_members_in_the_proof() -> None:
    found = decide(*FALSE["rows of hidden states"], budget=3).counterexample
    assert found is not None
    h, a, b = (np.array(found.arrays[name].tolist()) for name in ("Hidden", "W", "X"))
    assert h.shape == (found.sizes[n] + 1, found.sizes[d])
    assert not h[0].any()
    at = found.indices[i]
    for t in range(len(b)):
        assert (h[t + 1] == h[t] @ a + b[t]).all()
    powers = [np.linalg.matrix_power(a, at - t) for t in range(at)]
    wrong = sum((b[t] @ powers[t] for t in range(at)), 0 * h[0])
    assert (wrong != h[at + 1]).any()


def test_the_rows_that_a_certificate_puts_in_are_those_of_the_claim() -> None:
    made: Any = decide(*TRUE["what rows read"]).certificate
    assert check(made)
    tensors = made["proof"]["facts"][0][3]["tensors"]
    units = [tree[1][1] for tree in tensors if tree[0] == "MatMul"]
    assert [unit[0] for unit in units] == ["OneHot", "OneHot"]
    units[0][1] = 0  # always the first row
    with pytest.raises(Rejected):
        check(made)


s, r = Family("s", (n,), 1, 1), Family("r", (n + 1,), 1, 1)
z, o = Family("z", (n + 1,), 1, 1), Family("o", (n + 1,), 1, k)


def exp(e: Any) -> Any:
    return Activation("exp", e)


def test_the_sums_of_the_online_softmax() -> None:
    """r[i] is what is subtracted from the scores, as their largest so far, and may be anything."""
    new = exp(s[l] - r[l + 1])
    given = [(z[l + 1], exp(r[l] - r[l + 1]) * z[l] + new), (z[0], ZeroMatrix(1, 1))]
    verdict = decide(z[i], before(exp(s[j] - r[i]), i), given, budget=4)
    assert verdict.status == "proved"
    assert rejected(verdict) is None
    done = steps_done()
    with proof_alone():
        wrong = decide(z[i], before(exp(s[j] - r[j]), i), given, budget=0.1)
    assert wrong.status == "undecided"
    assert steps_done() - done < 0.2 * STEPS  # its cases have a share of the budget


def test_a_lemma_may_be_about_a_position() -> None:
    lhs, rhs, given = TRUE["what is read"]
    verdict = decide(lhs, rhs, given, budget=3, lemma=(S[i + 1], before(WRITTEN, i + 1)))
    assert verdict.status == "proved", verdict.reason
    assert rejected(verdict) is None
    wrong = decide(lhs, rhs, given, budget=0.5, lemma=(S[i + 1], before(WRITTEN, i)))
    assert wrong.status == "undecided"
    assert "lemma 1" in wrong.reason


def test_members_at_large_sizes_are_told_apart() -> None:
    G, X = Family("G", (4,), 40, 40), MatrixSymbol("X", 40, 40)
    zero = ZeroMatrix(40, 40)
    for given in ([(G[0] * X, zero), (G[1] * X, zero)], [(G[l + 1] * X, G[l] * X)]):
        verdict = decide(G[2] * X, zero, given, budget=1)
        assert verdict.status == "refuted"
        found = verdict.counterexample
        assert found is not None
        g, x = (np.array(found.arrays[name].tolist(), dtype=int) for name in "GX")
        products = [each @ x for each in g]
        assert products[2].any()
        if len(given) == 2:
            assert not products[0].any()
            assert not products[1].any()
        else:
            assert all((one == products[0]).all() for one in products)


F, E = Family("F", (96,), n, n), Family("E", (96,), n, n)
P, I_n = MatrixSymbol("P", n, n), Identity(n)


def layers(body: Any, count: Any = 96, reverse: bool = False) -> Any:
    return LayerProduct(body, (l, count), reverse)


def paths(count: Any) -> Any:
    return HeadSum(OrderSum(F[l], (l, 96), h), (h, count))


NUMBERED = {
    "transposed": (Transpose(layers(I_n + F[l])), layers(I_n + Transpose(F[l]), 96, True)),
    "paths": (layers(I_n + F[l]), paths(97)),
    "commuting": (P * layers(I_n + F[l]), layers(I_n + F[l]) * P, [(P * F[l], F[l] * P)]),
    "alike": (layers(I_n + F[l]), layers(I_n + E[l]), [(F[l], E[l])]),
    "a million": (
        Transpose(layers(I_n + Family("B", (10**6,), n, n)[l], 10**6)),
        layers(I_n + Transpose(Family("B", (10**6,), n, n)[l]), 10**6, True),
    ),
}
NOT_NUMBERED = {
    "in order": (Transpose(layers(I_n + F[l])), layers(I_n + Transpose(F[l]))),
    "without the longest path": (layers(I_n + F[l]), paths(96)),
    "one commutes": (P * layers(I_n + F[l]), layers(I_n + F[l]) * P),
}


@pytest.mark.parametrize("name", NUMBERED)
def test_many_numbered_layers_are_as_any_number(name: str) -> None:
    verdict = decide(*NUMBERED[name], budget=3)
    assert verdict.status == "proved", verdict.reason
    assert verdict.work < 1_000_000
    assert rejected(verdict) is None


@pytest.mark.parametrize("name", NOT_NUMBERED)
def test_a_near_miss_of_many_layers_is_refuted(name: str) -> None:
    assert decide(*NOT_NUMBERED[name], budget=3).status == "refuted"
