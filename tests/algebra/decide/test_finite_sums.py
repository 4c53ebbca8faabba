"""Sizes that are numbers, alone and beside symbols: proved when written out, never wrongly."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from sympy import (
    Identity,
    ImmutableMatrix,
    Integer,
    MatrixSymbol,
    Symbol,
    Trace,
    Transpose,
    ZeroMatrix,
)

from otimes.algebra.decide.counterexample import draw_assignment
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.linear import Family, HeadSum, OneHot, kron, matadd, matmul
from otimes.algebra.language.shapes import inspect
from otimes.algebra.verdict import decide

n, m = Symbol("n", positive=True, integer=True), Symbol("m", positive=True, integer=True)
h, i, j = (Symbol(name, integer=True) for name in ("h", "i", "j"))
P = Family("P", (3,), n, n)
A, B = MatrixSymbol("A", n, 3), MatrixSymbol("B", 3, m)
Q, R, K = MatrixSymbol("Q", 2, 2), MatrixSymbol("R", 2, 2), MatrixSymbol("K", n, n)
c = MatrixSymbol("c", 1, 1)
HAMILTON = Q**2 - Trace(Q) * Q + (Trace(Q) ** 2 - Trace(Q**2)) / 2 * Identity(2)

PROVED = [
    (HeadSum(P[h], (h, 3)), P[0] + P[1] + P[2]),
    (HeadSum(P[h] * P[h], (h, 3)), P[0] ** 2 + P[1] ** 2 + P[2] ** 2),
    ((A * B)[i, j], A[i, 0] * B[0, j] + A[i, 1] * B[1, j] + A[i, 2] * B[2, j]),
    (HAMILTON, ZeroMatrix(2, 2)),
    (kron(HAMILTON, K), ZeroMatrix(2 * n, 2 * n)),
    (kron(ImmutableMatrix([[1, 0], [0, 1]]), K), kron(Identity(2), K)),
    (OneHot(0, 2) * OneHot(0, 2).T + OneHot(1, 2) * OneHot(1, 2).T, Identity(2)),
    (Q[i, j], Q[i, j] * (Identity(2)[i, 0] + Identity(2)[i, 1])),
    (Trace(Q), Q[0, 0] + Q[1, 1]),
    (c * c, c[0, 0] * c),
]
REFUTED = [
    (HeadSum(P[h], (h, 3)), P[0] + P[1]),
    ((A * B)[i, j], A[i, 0] * B[0, j] + A[i, 1] * B[1, j]),
    (K[0, 0], K[1, 1]),
    (K[0, 1] * R, K[1, 0] * R),
    (OneHot(0, 3) * OneHot(0, 3).T + OneHot(1, 3) * OneHot(1, 3).T, Identity(3)),
    (Identity(2)[i, j], Integer(1)),
    (Q[i, j], Q[i, j] * Identity(2)[i, 0]),
    (Trace(Q), Q[0, 0] + Q[0, 1]),
]


@pytest.mark.parametrize(("lhs", "rhs"), PROVED)
def test_proved(lhs: Any, rhs: Any) -> None:
    assert decide(lhs, rhs).status == "proved"


@pytest.mark.parametrize(("lhs", "rhs"), REFUTED)
def test_refuted(lhs: Any, rhs: Any) -> None:
    assert decide(lhs, rhs).status == "refuted"


def _random(draw: random.Random, depth: int) -> Any:
    """Draw a 2n × 2n expression of 2 × 2 matrices beside n × n ones."""
    if depth == 0:
        small = draw.choice(
            [
                Q,
                R,
                Q.T,
                Identity(2),
                matmul(Q, R),
                matmul(R, Q),
                Q**2,
                matmul(OneHot(0, 2), Transpose(OneHot(1, 2))),
            ]
        )
        return kron(small, draw.choice([K, K.T, Identity(n)]))
    kind = draw.choice(("add", "mul", "scale", "transpose"))
    first = _random(draw, depth - 1)
    if kind == "add":
        return matadd(first, _random(draw, depth - 1))
    if kind == "mul":
        return matmul(first, _random(draw, depth - 1))
    if kind == "scale":
        factor = draw.choice([2, -1, Trace(Q), Q[0, 0], Q[1, 0], Trace(matmul(Q, R))])
        return matmul(factor, first)
    return Transpose(first)


def test_verdicts_partition_expressions_as_their_values_do() -> None:
    draw = random.Random(3)
    signature = inspect(kron(Q, K), kron(R, K))
    worlds = [draw_assignment(signature, draw, largest, 99, {}) for largest in (2, 3, 3)]
    classes: dict[tuple, list[Any]] = {}
    for _ in range(500):
        e = _random(draw, draw.randint(0, 2))
        values = tuple(
            tuple(np.asarray(tree_value(e, world)).flat)
            for world in worlds
            if isinstance(world, Assignment)
        )
        classes.setdefault(values, []).append(e)
    equal = [(members[0], other) for members in classes.values() for other in members[1:]]
    assert len(equal) > 40
    assert all(decide(a, b).status == "proved" for a, b in equal)
    leaders = [members[0] for members in classes.values()]
    for _ in range(200):
        a, b = draw.sample(leaders, 2)
        assert decide(a, b).status == "refuted"
