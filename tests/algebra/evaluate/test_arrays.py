"""`evaluate` against NumPy and the tree walker, on every kind of array; and how it says no."""

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
    Symbol,
    Trace,
    ZeroMatrix,
    symbols,
)

from otimes.algebra.errors import LanguageError, OtimesError, ShapeError
from otimes.algebra.evaluate.arrays import Evaluator, evaluate
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.evaluate.exact_arrays import ExactArray, as_exact
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    kron,
    matadd,
    matmul,
    vec_rows,
)
from tests.algebra.expressions import SHAPES, TENSORS, random_expression

n, m, d, H = symbols("n m d H")
h, i = symbols("h i")
c = symbols("c")
A, B, W = MatrixSymbol("A", n, m), MatrixSymbol("B", m, n), MatrixSymbol("W", d, d)
S = MatrixSymbol("S", n, n)
F = Family("F", (H,), n, n)
RNG = np.random.default_rng(3)


def integers(*shape: int) -> Any:
    return RNG.integers(-9, 10, shape)


NP_A, NP_B, NP_W, NP_S, NP_F = (
    integers(2, 3),
    integers(3, 2),
    integers(2, 2),
    integers(2, 2),
    integers(4, 2, 2),
)

CASES: dict[str, tuple[Any, dict[Any, Any], Any]] = {
    "product": (matmul(A, B), {A: NP_A, B: NP_B}, NP_A @ NP_B),
    "names as keys": (matmul(A, B), {"A": NP_A, "B": NP_B}, NP_A @ NP_B),
    "kron": (kron(A, W), {A: NP_A, W: NP_W}, np.kron(NP_A, NP_W)),
    "kron with I": (kron(Identity(n), W), {W: NP_W, n: 3}, np.kron(np.eye(3), NP_W)),
    "diagonal": (HadamardProduct(Identity(n), S), {S: NP_S}, np.diag(np.diag(NP_S))),
    "ones": (matmul(S, OneMatrix(n, m)), {S: NP_S, "m": 3}, NP_S @ np.ones((2, 3))),
    "identity": (matadd(S, Identity(n)), {S: NP_S}, NP_S + np.eye(2)),
    "nothing": (matadd(S, -S), {S: NP_S}, np.zeros((2, 2))),
    "sum over heads": (HeadSum(F[h], (h, H)), {F: NP_F}, NP_F.sum(axis=0)),
    "free index": (F[h], {F: NP_F, h: 2}, NP_F[2]),
    "fixed index": (matmul(F[1], F[3]), {F: NP_F}, NP_F[1] @ NP_F[3]),
    "free index in one term": (matadd(F[h], S), {F: NP_F, S: NP_S, "h": 1}, NP_F[1] + NP_S),
    "selected": (matmul(S, OneHot(i, n)), {S: NP_S, i: 1}, NP_S[:, 1:]),
    "scalar factor": (matmul(c, S), {S: NP_S, c: 5}, 5 * NP_S),
    "trace": (Trace(matmul(A, B)), {A: NP_A, B: NP_B}, np.trace(NP_A @ NP_B)),
    "side by side": (ConcatHeads(F[h], (h, H)), {F: NP_F}, np.hstack(list(NP_F))),
}


@pytest.mark.parametrize("dtype", [np.int64, np.int8, object, np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_numpy(name: str, dtype: Any) -> None:
    expression, given, expected = CASES[name]
    arrays = {k: v.astype(dtype) if np.ndim(v) else v for k, v in given.items()}
    value = evaluate(expression, arrays)
    assert np.shape(value) == np.shape(expected)
    assert np.all(value == expected)  # small integers are exact in float32 too
    if np.dtype(dtype).kind == "f":
        assert value.dtype == dtype


@pytest.mark.parametrize(
    "dtype",
    [
        float,
        pytest.param(
            int,
        ),
    ],
)
def test_random_expressions_agree_with_the_tree(dtype: Any) -> None:
    draw = random.Random(9)
    sizes = {"n": 3, "d": 2, "H": 2}
    scalars = {"a": 3, "b": 5, "s": 4}
    where = Assignment(sizes, {})
    arrays = {}
    for name, tensor in TENSORS.items():
        shape = [where.size(k) for k in (*getattr(tensor, "counts", ()), *tensor.shape)]
        arrays[name] = RNG.integers(-9, 10, shape)
    exact = {name: array.astype(object) for name, array in arrays.items()}
    for _ in range(300):
        e = random_expression(draw, draw.choice(SHAPES[1:]), draw.choice([1, 2, 3]))
        if not e.has(sympy.MatrixSymbol, Family):  # nothing says that it should be exact
            continue
        given: dict[str, Any] = {k: v.astype(dtype) for k, v in arrays.items()}
        value = evaluate(e, {**given, **sizes, **scalars})
        expected = tree_value(e, Assignment(sizes, exact, {}, scalars))
        assert np.shape(value) == np.shape(expected)
        # floats: at most 10^4 roundings of 1e-16, on terms of the size of the largest entry
        slack = 0 if dtype is int else 1e-9 * (1 + abs(expected).max())
        assert np.all(abs(value - expected) <= slack), e


def test_integers_that_do_not_fit_int64_are_exact() -> None:
    big = np.array([[10**9, 1], [2, 10**9]])
    value = evaluate(S**5, {S: big})
    expected = big.astype(object)
    for _ in range(4):
        expected = expected @ big.astype(object)
    assert value.dtype == object
    assert np.all(value == expected)
    assert evaluate(S**2, {S: np.array([[3, 1], [2, 1]])}).dtype == np.int64
    huge = np.array([[10**30]], dtype=object)
    assert evaluate(matadd(S, S), {S: huge})[0, 0] == 2 * 10**30


def test_fractions_appear_only_where_they_must() -> None:
    value = evaluate(S / n, {S: np.array([[1, 2], [4, 6]])})
    assert np.all(value == np.array([[Fraction(1, 2), 1], [2, 3]], dtype=object))
    value = evaluate(S / sympy.sqrt(n), {S: np.arange(16).reshape(4, 4)})
    assert value[0, 1] == Fraction(1, 2)
    with pytest.raises(OtimesError, match="is not rational"):
        evaluate(S / sympy.sqrt(n), {S: np.array([[1, 2], [4, 6]])})


def test_no_kronecker_product_is_formed() -> None:
    """64 GB if it were."""
    big = np.ones((300, 300))
    Y = MatrixSymbol("Y", n, d)
    value = evaluate(matmul(kron(S, W), vec_rows(Y)), {S: big, W: big, Y: big})
    assert np.all(value == 90_000.0)


def test_an_evaluator_is_read_once_and_run_often() -> None:
    evaluator = Evaluator(matmul(F[h], S))
    values = evaluator.values({F: NP_F, S: NP_S})
    assert np.array_equal(evaluator.run(values), NP_F @ NP_S)  # a free index left open is an axis


def test_terms_are_those_of_the_sum_with_or_without_their_signs() -> None:
    evaluator = Evaluator(matadd(S, matmul(-2, S, S)))
    values = evaluator.values({S: NP_S})
    whole, like = evaluator.value, NP_S
    for absolute, total in ((False, NP_S - 2 * NP_S @ NP_S), (True, NP_S + 2 * NP_S @ NP_S)):
        terms = [
            evaluator.term(
                whole,
                diagram,
                [evaluator.operand(box[0], values, NP_S) for box in diagram.boxes],
                values,
                like,
                absolute,
            )
            for diagram in whole.terms
        ]
        assert np.array_equal(sum(terms), total)
    roundings = [evaluator.roundings(whole, diagram, values) for diagram in whole.terms]
    assert sorted(roundings) == [0, len(NP_S) + 3]  # the longer one is -2 S S


# -- torch -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_torch(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    expression, given, expected = CASES[name]
    kind = getattr(torch, dtype)
    arrays = {k: torch.tensor(v, dtype=kind) if np.ndim(v) else v for k, v in given.items()}
    value = evaluate(expression, arrays)
    assert isinstance(value, torch.Tensor)
    assert value.dtype == kind
    assert tuple(value.shape) == np.shape(expected)
    assert np.all(value.numpy() == expected)


def test_gradients_flow_through_torch() -> None:
    torch = pytest.importorskip("torch")
    s = torch.tensor(NP_S, dtype=torch.float64, requires_grad=True)
    w = torch.tensor(NP_W, dtype=torch.float64, requires_grad=True)
    e = matadd(matmul(S, W.xreplace({d: n}), S), HadamardProduct(Identity(n), S), Identity(n))
    e = e.xreplace({MatrixSymbol("W", n, n): MatrixSymbol("V", n, n)})
    weights = torch.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=torch.float64)
    (evaluate(e, {S: s, "V": w}) * weights).sum().backward()
    got = s.grad.clone(), w.grad.clone()
    s.grad = w.grad = None
    ((s @ w @ s + torch.diag(torch.diag(s)) + torch.eye(2)) * weights).sum().backward()
    # sums of at most 6 products of small integers: exact in float64
    assert torch.equal(got[0], s.grad)
    assert torch.equal(got[1], w.grad)


def test_torch_integers_that_may_not_fit_are_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(OtimesError, match="may not fit int64: pass NumPy integers"):
        evaluate(S**5, {S: torch.full((2, 2), 10**9)})


# -- asking wrongly ----------------------------------------------------------------------------

WRONG: list[tuple[Any, dict[Any, Any], type, str]] = [
    (matmul(A, B), {A: NP_A}, OtimesError, "no value is given for B; given were A"),
    (matmul(c, A), {}, OtimesError, "no value is given for A, c; given were none"),
    (
        A,
        {A: integers(3)},
        ShapeError,
        r"A is n × m, and an array of shape \(3,\) was given: 2 axes",
    ),
    (F[0], {F: NP_S}, ShapeError, r"F is H × n × n, and an array of shape \(2, 2\).*3 axes"),
    (
        matmul(A, B),
        {A: NP_A, B: integers(4, 2)},
        ShapeError,
        r"the size m is 3 in one array and 4 in another \(B \(4, 2\)\)",
    ),
    (S, {S: NP_A}, ShapeError, "the size n is 2 in one array and 3 in another"),
    (S, {S: NP_S, n: 3}, ShapeError, "the size n is 2 in one array and 3 in another"),
    (
        MatrixSymbol("R", 2, 3),
        {"R": NP_B},
        ShapeError,
        r"R is 2 × 3, and an array of shape \(3, 2\)",
    ),
    (MatrixSymbol("R", 2 * n, n), {"R": NP_B}, ShapeError, r"R is 2\*n × n, and .* \(3, 2\)"),
    (
        Trace(Identity(n)),
        {},
        OtimesError,
        r"no array has an axis of size n: give it, as in \{'n': 4\}",
    ),
    (F[h], {F: NP_F}, OtimesError, r"has a free index h: give its value, as in \{'h': 0\}"),
    (F[h], {F: NP_F, h: 4}, OtimesError, "the index h is 4, but it runs from 0 to 3"),
    (F[h], {F: NP_F, h: -1}, OtimesError, "the index h is -1"),
    (F[h], {F: NP_F, h: 1.5}, OtimesError, "h is a size or an index: an integer is needed, 1.5"),
    (F[h], {F: NP_F, h: "x"}, OtimesError, "an integer is needed, 'x' was given"),
    (F[5], {F: NP_F}, OtimesError, "the expression has the index 5, but H is 4"),
    (S, {3: NP_S}, OtimesError, "arrays are keyed by names or symbols, and 3 was given"),
    (S, {matmul(S, S): NP_S}, OtimesError, r"keyed by names or symbols, and S\*S was given"),
    ("S", {S: NP_S}, LanguageError, "a SymPy expression was expected and str was given"),
    (sympy.Determinant(S), {S: NP_S}, LanguageError, "Determinant is not in the language yet"),
    (matmul(S, A.T), {S: NP_S, A: NP_A}, ShapeError, r"cannot multiply S \(n × n\) by Aᵀ"),
]


@pytest.mark.parametrize(("expression", "arrays", "error", "words"), WRONG)
def test_errors(expression: Any, arrays: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        evaluate(expression, arrays)


def test_lists_are_arrays_too() -> None:
    assert evaluate(matadd(S, S), {S: [[1, 2], [3, 4]]}).tolist() == [[2, 4], [6, 8]]


# -- defects known today -----------------------------------------------------------------------


@pytest.mark.parametrize("entry", [Fraction(1, 2), 0.5])
def test_object_arrays_keep_what_they_hold(entry: Any) -> None:
    value = evaluate(matadd(S, S), {S: np.array([[entry, 1], [2, 3]], dtype=object)})
    assert value[0, 0] == 1


def test_integers_and_floats_together() -> None:
    half = np.full((2, 2), 0.5)
    e = HadamardProduct(Identity(n), matmul(A.xreplace({m: n}), S))
    value = evaluate(e, {"A": np.eye(2, dtype=int), S: half})
    assert np.array_equal(value, np.diag([0.5, 0.5]))


def test_exact_scalars() -> None:
    assert evaluate(Trace(S) / 3, {S: np.array([[1, 2], [3, 4]])}) == Fraction(5, 3)


def test_exact_numbers_times_ones() -> None:
    value = evaluate(Trace(S) * OneMatrix(n, n) / 3, {S: np.array([[1, 2], [3, 4]])})
    assert np.all(value == Fraction(5, 3))


def test_a_coefficient_beyond_int64() -> None:
    assert not evaluate(10**30 * S, {S: np.zeros((2, 2), dtype=int)}).any()


def test_zero_of_no_arrays() -> None:
    assert evaluate(ZeroMatrix(n, n), {Symbol("n"): 2}).tolist() == [[0, 0], [0, 0]]


def test_exact_arrays_give_exact_arrays() -> None:
    ours = as_exact([[2, 0], [0, 4]])
    inverse = evaluate(S.I * Trace(S), {S: ours})
    assert type(inverse) is ExactArray
    assert inverse.tolist() == [[3, 0], [0, Fraction(3, 2)]]
    assert evaluate(Trace(S) / 4, {S: ours}) == Fraction(3, 2)


def test_exact_arrays_among_floats_are_floats() -> None:
    ours = as_exact([[2, 0], [0, 4]])
    halved = evaluate(matmul(S, B.T), {S: ours, "B": np.eye(2) / 2})
    assert halved.tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert evaluate(Symbol("c") * S, {S: ours, "c": 0.25}).tolist() == [[0.5, 0.0], [0.0, 1.0]]
