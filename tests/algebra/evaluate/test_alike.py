"""Values by classes of rows are those of the matrices written out in full."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import BlockMatrix, HadamardProduct, Identity, MatrixSymbol, OneMatrix, Trace, ZeroMatrix

from otimes.algebra.decide.alike_rows import _drawn
from otimes.algebra.evaluate.alike import ByClass, Classes, NoValue
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.intervals import bounds
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    matadd,
    matmul,
)
from otimes.algebra.language.nonlinear import (
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
)

n, m = 9, 12
h = sympy.Symbol("h", integer=True)
A, B, C = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n), MatrixSymbol("C", m, m)
U, V = MatrixSymbol("U", n, m), MatrixSymbol("V", m, n)
S, F = Family("S", (3,), n, n), Family("F", (3,), n, 4)
ONES = OneMatrix(n, n)
TOP = BlockMatrix([[Identity(4), ZeroMatrix(4, 5)]])

EXPRESSIONS = [
    A * B + 2 * B * A,
    U * V * A,
    U * OneMatrix(m, m) * V - ONES * A,
    (A + ONES / n) * (B - Identity(n)) * (ONES - 3 * B),
    HadamardProduct(A + ONES, B.T + Identity(n)),
    sympy.HadamardPower(A + ONES, 2) * U,
    Trace(A * B) * A,
    Trace(ONES * A + Identity(n)) * Identity(n),
    RowSoftmax(A * B),
    RowSoftmax(U * V),
    RowSoftmax(A + Identity(n)) * B,
    RowSoftmax(B, CausalMask(n)) * A,
    RowSoftmax(A, ONES + Identity(n)),
    CausalMask(n) * A,
    A * CausalMask(n) * B,
    HadamardProduct(CausalMask(n), A + 2 * ONES),
    Activation("relu", A - 2 * ONES),
    Activation("gelu", U),
    Activation("sigmoid", A + Identity(n)),
    RMSNorm(A + ONES, 1),
    LayerNorm(U, 1),
    LayerNorm(A * B + Identity(n), sympy.Rational(1, 2)),
    (A + 20 * Identity(n)).inv() * B,
    OneHot(7, n).T * (A + ONES),
    OneHot(7, n) * OneHot(0, n).T + A,
    A[0, 1] * B + A[8, 8] * ONES,
    HeadSum(S[h] * A * S[h].T, (h, 3)),
    StackHeads(F[h].T, (h, 3)) * A,
    ConcatHeads(F[h], (h, 3)) * C,
    LayerProduct(Identity(n) + S[h], (h, 3)) * B,
    LayerProduct(Identity(n) + S[h], (h, 3), True) * ONES,
    BlockMatrix([[A, U], [V, C]]) * OneMatrix(n + m, 1),
    BlockMatrix([[A, U], [V, C]]) * BlockMatrix([[A, U], [V, C]]),
    TOP * A * TOP.T,
    RowSoftmax(BlockMatrix([[A, U]])),
    (A - ONES) ** 3,
]


@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
@pytest.mark.parametrize("seed", range(4))
def test_values_by_classes_are_those_of_the_whole(number: int, seed: int) -> None:
    e = EXPRESSIONS[number]
    if isinstance(e, sympy.MatMul):
        e = matmul(*e.args)
    leaves: dict[Any, ByClass] = {}

    def leaf(name: str, at: tuple[int, ...], rows: Any, cols: Any) -> ByClass:
        own = random.Random(f"{seed} {name} {at}")
        leaves[name, at] = _drawn("any", rows, cols, own, seed % 2 == 1)
        return leaves[name, at]

    ((value, _),) = Classes(Assignment({}, {}), leaf).values((e, e, {}))
    arrays: dict[str, Any] = {}
    for (name, at), x in leaves.items():
        if at:
            shape = (3, sum(x.rows), sum(x.cols))
            arrays.setdefault(name, np.zeros(shape, dtype=object))[at] = whole(x)
        else:
            arrays[name] = whole(x)
    expected = tree_value(e, Assignment({}, arrays))
    known = 0
    for (i, j), entry in np.ndenumerate(whole(value)):
        if entry is not None:
            known += 1
            apart = bounds(entry) - bounds(expected[i, j])
            assert abs(apart).a == 0
            assert abs(apart).b < 1e-30
    assert known


def whole(x: ByClass) -> Any:
    """Return a matrix in full."""
    array = np.zeros((sum(x.rows), sum(x.cols)), dtype=object)
    i = 0
    for m, line in zip(x.rows, x.table, strict=True):
        for a in range(m):
            j = 0
            for k, (on, off) in zip(x.cols, line, strict=True):
                for b in range(k):
                    array[i + a, j + b] = on if m != k or a == b else off
                j += k
        i += m
    return array


def test_what_has_no_value_by_classes() -> None:
    def leaf(name: str, at: tuple[int, ...], rows: Any, cols: Any) -> ByClass:
        return _drawn("any", rows, cols, random.Random(1), False)

    for e in (
        sympy.KroneckerProduct(A, B),
        (A + ONES).inv(),
        RowSoftmax(A, ZeroMatrix(n, n)),
        RowSoftmax(A, matadd(ONES, matmul(-1, CausalMask(n)))),
        Activation("relu", CausalMask(n)),
    ):
        with pytest.raises(NoValue):
            Classes(Assignment({}, {}), leaf).values((e, e, {}))
