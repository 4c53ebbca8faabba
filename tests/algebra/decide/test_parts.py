"""Masks and softmax in blocks, and sizes that are cut in two ways: true claims and near misses."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import (
    BlockDiagMatrix,
    HadamardProduct,
    Identity,
    MatrixSymbol,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
    symbols,
)

from otimes.algebra.decide.counterexample import draw_assignment
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import tree_value
from otimes.algebra.language.intervals import bounds
from otimes.algebra.language.linear import OneHot, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, RowSoftmax
from otimes.algebra.language.shapes import inspect
from otimes.algebra.verdict import decide
from otimes.proofs.replay import check

TINY = Fraction(1, 10**30)  # the arithmetic has 200 bits

a, b, c, d, n = symbols("a b c d n", integer=True, positive=True)
A, C = MatrixSymbol("A", d, d), MatrixSymbol("C", d, d)
B, D = MatrixSymbol("B", n, n), MatrixSymbol("D", n, n)
S, T = MatrixSymbol("S", n, n), MatrixSymbol("T", n + 1, n + 1)
AA, AB, BA, BB = (
    MatrixSymbol("P" + x.name + y.name, x, y) for x, y in [(a, a), (a, b), (b, a), (b, b)]
)
IN_BLOCKS = MatrixSymbol("R", a + b, a + b)
P, Q, V, W = (
    MatrixSymbol(name, *shape)
    for name, *shape in [("P", n, a), ("Q", n, b), ("V", a, d), ("W", b, d)]
)
u, v, w = MatrixSymbol("u", 1, 1), MatrixSymbol("v", 1, d), MatrixSymbol("w", d, 1)
x, y = MatrixSymbol("x", n, 1), MatrixSymbol("y", 1, n)


def blocks(*lines: Any) -> Any:
    return sympy.BlockMatrix([list(line) for line in lines])


def zero(rows: Any, cols: Any) -> Any:
    return ZeroMatrix(rows, cols)


def ones(rows: Any, cols: Any = 1) -> Any:
    return OneMatrix(rows, cols)


def unit(size: Any = n) -> Any:
    return Transpose(OneHot(0, size))


def masked(scores: Any) -> Any:
    return RowSoftmax(scores, CausalMask(scores.shape[0]))


def less(e: Any, f: Any) -> Any:
    return matadd(e, matmul(-1, f))


def had(*factors: Any) -> Any:
    return HadamardProduct(*factors, evaluate=False)


def exp(e: Any) -> Any:
    return Activation("exp", e)


TOP, BOTTOM = blocks([Identity(a), zero(a, b)]), blocks([zero(b, a), Identity(b)])
FIRST, LAST = blocks([Identity(1), zero(1, n)]), blocks([zero(1, n), Identity(1)])
CUT = blocks([AA, AB], [BA, BB])
UV, VU = blocks([u, v]), blocks([v, u])
MASK = blocks([CausalMask(a), zero(a, b)], [ones(b, a), CausalMask(b)])
PQ = blocks([P, Q])
VW = blocks([V], [W])
SUMS = matadd(matmul(exp(P), ones(a)), matmul(exp(Q), ones(b)))
KEPT_P = had(matmul(RowSoftmax(P), V), matmul(exp(P), ones(a), ones(1, d)))
KEPT_Q = had(matmul(RowSoftmax(Q), W), matmul(exp(Q), ones(b), ones(1, d)))
CENTRE = less(Identity(d + 1), matmul(1 / (d + 1), ones(d + 1, d + 1)))
TWO_CUTS = BlockDiagMatrix(u, matmul(Transpose(v), v)), BlockDiagMatrix(matmul(Transpose(v), v), u)

TRUE: dict[str, tuple[Any, Any]] = {
    # -- the mask ----------------------------------------------------------------------------------
    "a mask in two blocks": (CausalMask(a + b), MASK),
    "a mask in three blocks": (
        CausalMask(a + b + c),
        blocks(
            [CausalMask(a), zero(a, b), zero(a, c)],
            [ones(b, a), CausalMask(b), zero(b, c)],
            [ones(c, a), ones(c, b), CausalMask(c)],
        ),
    ),
    "a mask with one more position": (
        CausalMask(n + 1),
        blocks([CausalMask(n), zero(n, 1)], [ones(1, n), ones(1, 1)]),
    ),
    "a mask with one position before": (
        CausalMask(n + 1),
        blocks([ones(1, 1), zero(1, n)], [ones(n, 1), CausalMask(n)]),
    ),
    "a mask of two halves": (
        CausalMask(2 * n),
        blocks([CausalMask(n), zero(n, n)], [ones(n, n), CausalMask(n)]),
    ),
    "a mask of pairs": (
        CausalMask(n * d),
        matadd(
            kron(less(CausalMask(n), Identity(n)), ones(d, d)), kron(Identity(n), CausalMask(d))
        ),
    ),
    "the first row of a mask": (matmul(unit(), CausalMask(n)), unit()),
    "the last row of a mask": (matmul(LAST, CausalMask(n + 1)), ones(1, n + 1)),
    "the row sums of a mask in blocks": (
        matmul(CausalMask(a + b), ones(a + b)),
        blocks(
            [matmul(CausalMask(a), ones(a))],
            [matadd(matmul(a, ones(b)), matmul(CausalMask(b), ones(b)))],
        ),
    ),
    # -- softmax in blocks -------------------------------------------------------------------------
    "prefix causality": (
        matmul(TOP, masked(CUT)),
        blocks([RowSoftmax(AA, CausalMask(a)), zero(a, b)]),
    ),
    "prefix causality of uncut scores": (
        matmul(TOP, masked(IN_BLOCKS), Transpose(TOP)),
        masked(matmul(TOP, IN_BLOCKS, Transpose(TOP))),
    ),
    "prefix causality of outputs": (
        matmul(TOP, masked(CUT), VW),
        matmul(RowSoftmax(AA, CausalMask(a)), V),
    ),
    "the later rows see all before": (
        matmul(BOTTOM, masked(CUT)),
        RowSoftmax(blocks([BA, BB]), blocks([ones(b, a), CausalMask(b)])),
    ),
    "the first position attends to itself": (matmul(unit(), masked(S)), unit()),
    "the first position, in blocks": (matmul(FIRST, masked(T)), FIRST),
    "the last position has no mask": (
        matmul(LAST, masked(T)),
        RowSoftmax(matmul(LAST, T)),
    ),
    "a masked block has weight zero": (
        RowSoftmax(PQ, blocks([ones(n, a), zero(n, b)])),
        blocks([RowSoftmax(P), zero(n, b)]),
    ),
    "a mask of ones is none": (RowSoftmax(PQ, ones(n, a + b)), RowSoftmax(PQ)),
    "rows in blocks sum to one": (matmul(RowSoftmax(PQ), ones(a + b)), ones(n)),
    "masked rows in blocks sum to one": (matmul(masked(CUT), ones(a + b)), ones(a + b)),
    "a softmax of one column": (RowSoftmax(x), ones(n)),
    "a softmax of equal scores in blocks": (
        RowSoftmax(blocks([matmul(x, ones(1, a)), matmul(x, ones(1, b))])),
        matmul(1 / (a + b), ones(n, a + b)),
    ),
    "equal scores under a mask of one block": (
        RowSoftmax(zero(n, a + b), blocks([ones(n, a), zero(n, b)])),
        matmul(1 / a, blocks([ones(n, a), zero(n, b)])),
    ),
    "a shift of a row in blocks": (
        RowSoftmax(blocks([matadd(P, matmul(x, ones(1, a))), matadd(Q, matmul(x, ones(1, b)))])),
        RowSoftmax(PQ),
    ),
    "a shift of one block is one of the others": (
        RowSoftmax(blocks([matadd(P, matmul(x, ones(1, a))), Q])),
        RowSoftmax(blocks([P, less(Q, matmul(x, ones(1, b)))])),
    ),
    "blocks that are masked do not count": (
        RowSoftmax(blocks([P, Q, S]), blocks([ones(n, a), ones(n, b), zero(n, n)])),
        blocks([RowSoftmax(PQ), zero(n, n)]),
    ),
    "a position that sees itself alone": (RowSoftmax(S, Identity(n)), Identity(n)),
    "a row cut in columns, rescaled": (
        had(
            matmul(RowSoftmax(PQ), Transpose(blocks([Identity(a), zero(a, b)]))),
            matmul(SUMS, ones(1, a)),
        ),
        exp(P),
    ),
    "two passes of the online softmax": (
        had(matmul(RowSoftmax(PQ), VW), matmul(SUMS, ones(1, d))),
        matadd(KEPT_P, KEPT_Q),
    ),
    # -- two cuts of one size ----------------------------------------------------------------------
    "ones cut as d|1 and as 1|d": (matmul(UV, ones(d + 1)), matmul(VU, ones(d + 1))),
    "an identity cut in two ways": (
        BlockDiagMatrix(Identity(a), Identity(b)),
        BlockDiagMatrix(Identity(b), Identity(a)),
    ),
    "a row of ones cut in two ways": (
        blocks([ones(1, a), ones(1, b)]),
        blocks([ones(1, b), ones(1, a)]),
    ),
    "zeros cut in two ways": (
        blocks([zero(n, a), zero(n, b)]),
        blocks([zero(n, b), zero(n, a)]),
    ),
    "an identity beside a block": (
        matadd(TWO_CUTS[0], BlockDiagMatrix(Identity(d), Identity(1))),
        BlockDiagMatrix(matadd(u, Identity(1)), matadd(TWO_CUTS[1].args[0], Identity(d))),
    ),
    "two traces of an identity": (
        Trace(matmul(Identity(d + 1), TWO_CUTS[0])) + Trace(matmul(Identity(d + 1), TWO_CUTS[1])),
        2 * Trace(TWO_CUTS[0]),
    ),
    "centring from both sides": (
        matadd(matmul(UV, CENTRE, ones(d + 1)), matmul(VU, CENTRE, ones(d + 1))),
        zero(1, 1),
    ),
    "a mask cut in two ways": (
        matadd(matmul(UV, CausalMask(d + 1), ones(d + 1)), matmul(VU, ones(d + 1))),
        matadd(
            matmul(UV, blocks([ones(1, 1), zero(1, d)], [ones(d, 1), CausalMask(d)]), ones(d + 1)),
            matmul(VU, ones(d + 1)),
        ),
    ),
    "a trace of two orders": (
        Trace(matmul(kron(B, A), kron(A, B))),
        Trace(matmul(kron(A, B), kron(B, A))),
    ),
    "a trace of two orders, transposed": (
        Trace(matmul(kron(B, A), kron(A, B))),
        Trace(matmul(kron(A.T, B.T), kron(B.T, A.T))),
    ),
    "factors of one order beside one of the other": (
        matmul(kron(A, B), kron(B, A), kron(D, C)),
        matmul(kron(A, B), kron(matmul(B, D), matmul(A, C))),
    ),
    "identities of two orders": (
        matadd(matmul(kron(A, Identity(n)), kron(Identity(d), B)), kron(Identity(n), Identity(d))),
        matadd(kron(A, B), Identity(n * d)),
    ),
    "ones of two orders": (
        matadd(matmul(ones(1, n * d), kron(w, x)), matmul(ones(1, n * d), kron(x, w))),
        matmul(2, kron(matmul(ones(1, d), w), matmul(ones(1, n), x))),
    ),
}

FALSE: dict[str, tuple[Any, Any]] = {
    "a mask with ones above": (
        CausalMask(a + b),
        blocks([CausalMask(a), ones(a, b)], [ones(b, a), CausalMask(b)]),
    ),
    "a mask with its last block full": (
        CausalMask(a + b),
        blocks([CausalMask(a), zero(a, b)], [ones(b, a), ones(b, b)]),
    ),
    "a mask without what is before": (
        CausalMask(a + b),
        BlockDiagMatrix(CausalMask(a), CausalMask(b)),
    ),
    "a mask of pairs as a product": (CausalMask(n * d), kron(CausalMask(n), CausalMask(d))),
    "a mask of pairs by the first": (CausalMask(n * d), kron(CausalMask(n), ones(d, d))),
    "a first row of ones": (matmul(unit(), CausalMask(n)), ones(1, n)),
    "a last row that is the unit": (matmul(LAST, CausalMask(n + 1)), LAST),
    "a prefix without a mask": (matmul(TOP, RowSoftmax(CUT)), blocks([RowSoftmax(AA), zero(a, b)])),
    "a suffix that forgets": (
        matmul(BOTTOM, masked(CUT)),
        blocks([zero(b, a), RowSoftmax(BB, CausalMask(b))]),
    ),
    "the last position attends to itself": (matmul(LAST, masked(T)), LAST),
    "the first position without a mask": (matmul(unit(), RowSoftmax(S)), unit()),
    "every position attends to itself": (masked(S), Identity(n)),
    "blocks with weights of their own": (
        RowSoftmax(PQ),
        blocks([RowSoftmax(P), RowSoftmax(Q)]),
    ),
    "half of each block's weights": (
        RowSoftmax(PQ),
        matmul(sympy.Rational(1, 2), blocks([RowSoftmax(P), RowSoftmax(Q)])),
    ),
    "the wrong block masked": (
        RowSoftmax(PQ, blocks([zero(n, a), ones(n, b)])),
        blocks([RowSoftmax(P), zero(n, b)]),
    ),
    "a shift of one block": (
        RowSoftmax(blocks([matadd(P, matmul(x, ones(1, a))), Q])),
        RowSoftmax(PQ),
    ),
    "a shift of both in one direction": (
        RowSoftmax(blocks([matadd(P, matmul(x, ones(1, a))), Q])),
        RowSoftmax(blocks([P, matadd(Q, matmul(x, ones(1, b)))])),
    ),
    "equal scores in each block": (
        RowSoftmax(blocks([matmul(x, ones(1, a)), zero(n, b)])),
        matmul(1 / (a + b), ones(n, a + b)),
    ),
    "the mean of all columns": (
        RowSoftmax(zero(n, a + b), blocks([ones(n, a), zero(n, b)])),
        matmul(1 / (a + b), blocks([ones(n, a), zero(n, b)])),
    ),
    "a softmax of two columns": (
        RowSoftmax(blocks([x, x])),
        blocks([ones(n), zero(n, 1)]),
    ),
    "blocks of weights exchanged": (
        RowSoftmax(PQ),
        RowSoftmax(PQ, blocks([ones(n, a), zero(n, b)])),
    ),
    "rescaled by one block": (
        had(matmul(RowSoftmax(PQ), VW), matmul(SUMS, ones(1, d))),
        matadd(KEPT_P, matmul(RowSoftmax(Q), W)),
    ),
    "ones of two cuts doubled": (matmul(UV, ones(d + 1)), matmul(VU, matmul(2, ones(d + 1)))),
    "a row cut otherwise": (UV, VU),
    "a product of two cuts": (
        matmul(UV, Transpose(VU)),
        matadd(matmul(u, u), matmul(v, Transpose(v))),
    ),
    "diagonals of two cuts": (
        BlockDiagMatrix(Identity(a), matmul(2, Identity(b))),
        BlockDiagMatrix(matmul(2, Identity(b)), Identity(a)),
    ),
    "a mask between two cuts": (
        matmul(UV, CausalMask(d + 1), ones(d + 1)),
        matmul(VU, CausalMask(d + 1), ones(d + 1)),
    ),
    "ones that are doubled in one part": (
        blocks([ones(1, a), matmul(2, ones(1, b))]),
        blocks([matmul(2, ones(1, b)), ones(1, a)]),
    ),
    "factors of two orders exchanged": (kron(A, B), kron(B, A)),
    "a product of two orders exchanged": (
        matmul(kron(A, B), kron(B, A)),
        matmul(kron(B, A), kron(A, B)),
    ),
    "a trace of two orders as a product": (
        Trace(matmul(kron(B, A), kron(A, B))),
        Trace(kron(B, A)) * Trace(kron(A, B)),
    ),
    "a trace of two orders as of one": (
        Trace(matmul(kron(B, A), kron(A, B))),
        Trace(matmul(kron(B, A), kron(B, A))),
    ),
    "factors of one order in the wrong order": (
        matmul(kron(A, B), kron(B, A), kron(D, C)),
        matmul(kron(A, B), kron(matmul(D, B), matmul(A, C))),
    ),
}


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_is_proved_with_its_certificate(name: str) -> None:
    verdict = decide(*TRUE[name])
    assert verdict.status == "proved", verdict.reason
    assert check(verdict.certificate).startswith("by ")


@pytest.mark.parametrize("name", TRUE)
def test_what_is_true_holds_in_numbers(name: str) -> None:
    assert gaps(*TRUE[name]) <= TINY


@pytest.mark.parametrize("name", FALSE)
def test_a_near_miss_is_refuted(name: str) -> None:
    verdict = decide(*FALSE[name])
    assert verdict.status == "refuted", verdict.reason
    found = verdict.counterexample
    assert found is not None
    assert found.lhs != found.rhs
    assert gaps(*FALSE[name]) > TINY


def gaps(lhs: Any, rhs: Any) -> Fraction:
    """Return how far two sides are certainly apart, at most, over entries and some numbers."""
    signature, draw = inspect(lhs, rhs), random.Random(7)
    largest, drawn = Fraction(0), 0
    for attempt in range(12):
        numbers = draw_assignment(signature, draw, 1 + attempt % 3, 3, {})
        assert numbers is not None
        try:
            sides = [np.ravel(tree_value(side, numbers)).tolist() for side in (lhs, rhs)]
        except OtimesError:
            continue
        drawn += 1
        for one, other in zip(*sides, strict=True):
            apart = bounds(one) - bounds(other)
            largest = max(largest, Fraction(float(abs(apart).a)))
    assert drawn > 4
    return largest


def test_a_matrix_of_the_size_is_cut_in_one_way() -> None:
    """A matrix that is given has no parts but those of one cut: the claim is false."""
    whole = MatrixSymbol("Z", d + 1, 1)
    verdict = decide(matmul(UV, whole), matmul(VU, whole))
    assert verdict.status == "refuted"


def test_hypotheses_may_be_cut_otherwise_than_the_claim() -> None:
    given = [(matmul(UV, ones(d + 1)), zero(1, 1))]
    verdict = decide(matmul(VU, ones(d + 1)), zero(1, 1), given)
    assert verdict.status == "proved"
    assert verdict.used == (0,)
    assert "1 hypotheses" in check(verdict.certificate)
    wrong = decide(matmul(VU, CausalMask(d + 1), ones(d + 1)), zero(1, 1), given)
    assert wrong.status == "refuted"


def test_a_false_claim_about_two_orders_takes_little_work() -> None:
    """Without numbers of layers no part of the claim is asked again as it is."""
    a, stream = MatrixSymbol("A", n, n), MatrixSymbol("X", n * d, 1)
    cut_otherwise = matmul(kron(Identity(d), a), stream)
    verdict = decide(matmul(kron(a, Identity(d)), stream), cut_otherwise)
    assert verdict.status == "refuted"
    assert verdict.work < 20_000
