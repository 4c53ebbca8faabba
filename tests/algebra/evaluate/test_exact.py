"""The tree walker against explicit NumPy and loops: it is the oracle of everything else."""

from __future__ import annotations

import random
from fractions import Fraction
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
    Trace,
    ZeroMatrix,
    symbols,
)

from otimes.algebra.errors import LanguageError, OtimesError
from otimes.algebra.evaluate.exact import Assignment, exact_array, tree_value
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
    matadd,
    matmul,
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.roots import exact_root
from tests.algebra.expressions import SHAPES, TENSORS, random_expression
from tests.algebra.reference import World

n, m, H, L = symbols("n m H L")
h, i, l = symbols("h i l")  # noqa: E741 (the layer)
c = symbols("c")
A, B, S = MatrixSymbol("A", n, m), MatrixSymbol("B", m, n), MatrixSymbol("S", n, n)
F, G = Family("F", (H,), n, m), Family("G", (L, H), n, m)

RNG = np.random.default_rng(1)
SIZES = {"n": 2, "m": 3, "H": 4, "L": 2}
ARRAYS = {
    "A": RNG.integers(-9, 10, (2, 3)),
    "B": RNG.integers(-9, 10, (3, 2)),
    "S": RNG.integers(-9, 10, (2, 2)),
    "F": RNG.integers(-9, 10, (4, 2, 3)),
    "G": RNG.integers(-9, 10, (2, 4, 2, 3)),
}
NP_A, NP_B, NP_S, NP_F, NP_G = ARRAYS.values()

CASES: dict[str, tuple[Any, Any]] = {
    "symbol": (A, NP_A),
    "member": (F[3], NP_F[3]),
    "member at a free index": (F[h], NP_F[2]),
    "member of two indices": (G[1, h], NP_G[1, 2]),
    "identity": (Identity(n), np.eye(2)),
    "ones": (OneMatrix(n, m), np.ones((2, 3))),
    "zeros": (ZeroMatrix(n, m), np.zeros((2, 3))),
    "one-hot": (OneHot(i, m), np.array([[0], [1], [0]])),
    "sum": (matadd(A, A, OneMatrix(n, m)), NP_A + NP_A + 1),
    "product": (matmul(A, B), np.einsum("ij,jk->ik", NP_A, NP_B)),
    "scalar in a product": (matmul(2, A, c, B), 10 * np.einsum("ij,jk->ik", NP_A, NP_B)),
    "power": (S**3, NP_S @ NP_S @ NP_S),
    "transpose": (A.T, NP_A.T),
    "adjoint": (sympy.Adjoint(A), NP_A.T),
    "kron": (kron(A, B, S), np.kron(np.kron(NP_A, NP_B), NP_S)),
    "hadamard": (HadamardProduct(A, B.T, F[0]), NP_A * NP_B.T * NP_F[0]),
    "trace": (Trace(matmul(A, B)), np.einsum("ij,ji->", NP_A, NP_B)),
    "numbers": (Trace(S) ** 2 * Rational(1, 2) * n, Fraction(int(np.trace(NP_S)) ** 2 * 2, 2)),
    "vec_rows": (vec_rows(A), NP_A.reshape(6, 1)),
    "vec_cols": (vec_cols(A), NP_A.reshape(6, 1, order="F")),
    "head sum": (HeadSum(F[h], (h, H)), NP_F.sum(axis=0)),
    "head sum of a constant": (HeadSum(A, (h, H)), 4 * NP_A),
    "sum over layers and heads": (HeadSum(G[l, h], (l, L), (h, H)), NP_G.sum(axis=(0, 1))),
    "side by side": (ConcatHeads(F[h], (h, H)), np.hstack(list(NP_F))),
    "stacked": (StackHeads(F[h], (h, H)), np.vstack(list(NP_F))),
    "layers slow, heads fast": (
        ConcatHeads(G[l, h], (l, L), (h, H)),
        np.hstack([NP_G[p, q] for p in range(2) for q in range(4)]),
    ),
    "an inner index hides an outer one": (
        HeadSum(matmul(HeadSum(F[h], (h, H)), F[h].T), (h, H)),
        NP_F.sum(axis=0) @ NP_F.sum(axis=0).T,
    ),
}


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "float"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, exact: bool) -> None:
    expression, expected = CASES[name]
    arrays = {k: exact_array(v) if exact else v.astype(float) for k, v in ARRAYS.items()}
    world = Assignment(SIZES, arrays, {"h": 2, "i": 1}, {"c": 5}, exact=exact)
    value = tree_value(expression, world)
    assert np.shape(value) == np.shape(expected)
    assert np.all(value == expected)  # small integers: exact in floating point too
    if exact:
        entries = [value] if not np.shape(value) else value.ravel()
        assert all(type(x) in (int, Fraction) for x in entries)


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_agree_with_the_reference(seed: int) -> None:
    draw = random.Random(seed)
    sizes = {"n": 3, "d": 2, "H": 2}
    scalars: dict[str, Any] = {"a": 3, "b": 5, "s": Fraction(9, 4), "sqrt s": Fraction(3, 2)}
    world = World(sizes, {}, scalars, prime=None)
    for name, tensor in TENSORS.items():
        shape = [world.size(k) for k in (*getattr(tensor, "counts", ()), *tensor.shape)]
        flat = [draw.randint(-9, 9) for _ in range(int(np.prod(shape)))]
        world.arrays = {**world.arrays, name: np.array(flat, dtype=object).reshape(shape)}
    for _ in range(250):
        e = random_expression(draw, draw.choice(SHAPES), draw.choice([1, 2, 3]))
        assert np.all(tree_value(e, Assignment(sizes, world.arrays, {}, scalars)) == world.value(e))


def test_nothing_overflows() -> None:
    big = exact_array(np.array([[10**12, 1], [0, 10**12]]))
    value = tree_value(S**5, Assignment({"n": 2}, {"S": big}))
    assert value[0, 0] == 10**60
    assert value[0, 1] == 5 * 10**48


def test_size_zero() -> None:
    arrays = {"A": exact_array(np.zeros((2, 0))), "B": exact_array(np.zeros((0, 2)))}
    value = tree_value(matmul(A, B), Assignment({"n": 2, "m": 0}, arrays))
    assert value.tolist() == [[0, 0], [0, 0]]


def test_roots_are_exact_or_refused() -> None:
    assert exact_root(Fraction(9, 4), Fraction(1, 2)) == Fraction(3, 2)
    assert exact_root(8, Fraction(-1, 3)) == Fraction(1, 2)
    with pytest.raises(OtimesError, match=r"2\*\*\(1/2\) is not rational"):
        exact_root(2, Fraction(1, 2))
    with pytest.raises(OtimesError, match=r"-4\*\*\(1/2\) is not rational"):
        exact_root(-4, Fraction(1, 2))
    with pytest.raises(OtimesError, match="divides by zero at these values"):
        tree_value(1 / (n - 2), Assignment({"n": 2}, {}))


def test_what_has_no_value_is_named() -> None:
    with pytest.raises(LanguageError, match="Determinant has no exact value"):
        tree_value(sympy.Determinant(S), Assignment(SIZES, {"S": exact_array(NP_S)}))


def test_explicit_matrices_have_shapes_of_python_integers() -> None:
    entries = sympy.ImmutableMatrix([[1, 2], [3, c]])
    numbers = Assignment(SIZES, {}, scalars={"c": 5})
    value = tree_value(ConcatHeads(HeadSum(entries, (i, 2)), (h, H)), numbers)
    assert np.all(value == np.tile([[2, 4], [6, 10]], 4))
