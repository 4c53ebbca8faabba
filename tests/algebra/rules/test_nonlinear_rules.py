"""The rules of nonlinear functions: right in numbers, decided, and caught when they are wrong."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import HadamardProduct, Identity, MatrixSymbol, OneMatrix, Transpose, ZeroMatrix
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalOf

from otimes.algebra.decide.axioms import AXIOMS
from otimes.algebra.errors import OtimesError
from otimes.algebra.evaluate.exact import Assignment, array_shape, exact_array, tree_value
from otimes.algebra.explain.derivation import Step
from otimes.algebra.explain.search import explain
from otimes.algebra.language.intervals import bounds
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import OneHot, kron, matadd, matmul, vec_cols, vec_rows
from otimes.algebra.language.nonlinear import (
    RSQRT,
    Activation,
    CausalMask,
    LayerNorm,
    RMSNorm,
    RowSoftmax,
)
from otimes.algebra.language.positions import OneHotLast, Positions, Shift
from otimes.algebra.language.shapes import inspect
from otimes.algebra.rules import RULES, Rule, nonlinear

n, m, d, k = sympy.symbols("n m d k", integer=True, positive=True)
i = sympy.Symbol("i", integer=True)
c, eps = sympy.symbols("c epsilon", positive=True)
S, T, M = (MatrixSymbol(name, n, m) for name in "STM")
X, Y, W = MatrixSymbol("X", n, d), MatrixSymbol("Y", n, d), MatrixSymbol("W", d, d)
v, u = MatrixSymbol("v", n, 1), MatrixSymbol("u", 1, m)
P, Q = MatrixSymbol("P", n, n), MatrixSymbol("Q", m, m)
row, column = Transpose(OneHot(i, n)), OneHot(i, d)
mask = CausalMask(n)
shifted_out = LayerProduct(Shift(n), (sympy.Symbol("l", integer=True), n))
shifted_back = matmul(Shift(n), Transpose(Shift(n)))
first_only = matmul(OneHot(0, n), Transpose(OneHot(0, n)))
TINY = Fraction(1, 10**30)  # the arithmetic has 200 bits; the sums here lose a few of them


def ones(rows: Any, cols: Any = 1) -> Any:
    return OneMatrix(rows, cols)


def hadamard(*factors: Any) -> Any:
    return HadamardProduct(*factors, evaluate=False)


def f(e: Any, name: str = "g") -> Activation:
    return Activation(name, e)


def selects(e: Any) -> tuple[tuple[Any, Any], ...]:
    size = e.shape[1]
    return (hadamard(e, e), e), (matmul(e, ones(size)), ones(size))


IS_MASK = ((hadamard(M, M), M),)
SQUARES = DiagMatrix(sympy.HadamardPower(u, 2))
SELECTION, COLUMNS = selects(P), selects(Transpose(Q))
PERMUTATION = (*selects(Q), COLUMNS[1])

# name of the rule -> expressions that it rewrites as a whole, and what must be given for it
WHOLE: dict[str, tuple[list[Any], tuple[Any, ...]]] = {
    "softmax_shift": (
        [
            RowSoftmax(matadd(S, matmul(v, ones(1, m)), matmul(2, ones(n, m)))),
            RowSoftmax(matadd(matmul(v, ones(1, n)), mask), mask),
            RowSoftmax(matmul(v, ones(1, n)), mask),
        ],
        (),
    ),
    "softmax_constant": ([RowSoftmax(matmul(v, ones(1, m))), RowSoftmax(ones(n, m))], ()),
    "softmax_unseen_columns": (
        [
            RowSoftmax(sympy.BlockMatrix([[S, X]]), sympy.BlockMatrix([[M, ZeroMatrix(n, d)]])),
            RowSoftmax(sympy.BlockMatrix([[X, S]]), sympy.BlockMatrix([[ZeroMatrix(n, d), M]])),
        ],
        (),
    ),
    "softmax_row": ([matmul(row, RowSoftmax(S), T.T), matmul(row, RowSoftmax(P, mask))], ()),
    "norm_row": ([matmul(row, RMSNorm(X, eps)), matmul(row, LayerNorm(X, eps), W)], ()),
    "function_stack": (
        [
            RowSoftmax(sympy.BlockMatrix([[S], [u]])),
            LayerNorm(sympy.BlockMatrix([[X], [Y]]), eps),
        ],
        (),
    ),
    "activation_row": ([matmul(row, f(X)), matmul(2, f(X), column), matmul(W, f(W), column)], ()),
    "activation_vec": ([vec_rows(f(X)), vec_cols(f(X, "exp"))], ()),
    "activation_block": ([f(sympy.BlockMatrix([[X, S], [Y, T]]))], ()),
    "activation_repeat": (
        [
            f(matmul(v, ones(1, m))),
            f(matmul(2, X, W, ones(d), ones(1, m))),
            f(matmul(3, ones(n), u)),
            f(kron(ones(k, 1), X, ones(k, k)), "exp"),
        ],
        (),
    ),
    "activation_transpose": ([f(X.T), f(Transpose(matmul(X, W)), "relu")], ()),
    "activation_zero": (
        [f(ZeroMatrix(n, d), name) for name in ("relu", "gelu", "exp", "tanh")],
        (),
    ),
    "activation_ones": (
        [f(ones(n, d), RSQRT), f(matmul(sympy.Rational(-3, 2), ones(n, d)), "relu")],
        (),
    ),
    "relu_scale": ([f(matmul(c, X), "relu"), f(matmul(-2, c, X, W), "relu")], ()),
    "rsqrt_scale": ([f(matmul(4, v), RSQRT), f(matmul(c**2, v), RSQRT)], ()),
    "norm_scale": ([RMSNorm(matmul(c, X)), LayerNorm(matmul(-3, X))], ()),
    "rms_norm_definition": ([RMSNorm(X), RMSNorm(X, eps)], ()),
    "layer_norm_definition": ([LayerNorm(X), LayerNorm(X, eps)], ()),
    "softmax_sum": (
        [
            matmul(RowSoftmax(S), ones(m)),
            matmul(T.T, RowSoftmax(P, mask), ones(n), u),
            matmul(ones(1, m), Transpose(RowSoftmax(S)), X),
        ],
        (),
    ),
    "causal_mask_is_mask": ([hadamard(mask, mask), hadamard(mask, P, mask)], ()),
    "causal_mask_diagonal": ([DiagonalOf(mask)], ()),
    "shift_entries": ([hadamard(Shift(n), Shift(n)), hadamard(P, Shift(n), Shift(n))], ()),
    "shift_back": ([matadd(shifted_back, first_only), matadd(P, shifted_back, first_only)], ()),
    "shift_power": ([shifted_out], ()),
    "shift_mask": ([matmul(Shift(n), mask), matmul(P, Shift(n), mask)], ()),
    "shift_positions": ([matmul(Shift(n), Positions(n)), matmul(P, Shift(n), Positions(n))], ()),
    "position_ends": ([matmul(Transpose(Positions(n)), OneHotLast(n))], ()),
    "position_sums": ([matmul(Transpose(Positions(n)), OneMatrix(n, 1))], ()),
    "position_counts": ([matadd(Positions(n), OneMatrix(n, 1))], ()),
    "last_position": ([DiagMatrix(OneHotLast(n))], ()),
    "causal_mask_product": (
        [
            hadamard(mask, matmul(hadamard(mask, P), hadamard(P, mask))),
            hadamard(matmul(mask, hadamard(mask, P)), P, mask),
        ],
        (),
    ),
    "causal_mask_order": ([matadd(Transpose(mask), P, mask)], ()),
    "activation_reflected": (
        [
            matadd(f(X, "gelu"), matmul(-1, f(matmul(-1, X), "gelu"))),
            matadd(f(matadd(X, Y), "silu"), Y, matmul(-1, f(matadd(-X, -Y), "silu"))),
        ],
        (),
    ),
    "activation_odd": ([f(matmul(-1, X), "tanh"), f(matmul(-2, X, W), "tanh")], ()),
    "sigmoid_reflected": ([matadd(X, f(-Y, "sigmoid"), f(Y, "sigmoid"))], ()),
    "exp_reflected": ([hadamard(f(-Y, "exp"), X, f(Y, "exp"))], ()),
    "relu_idempotent": ([f(f(matmul(X, W), "relu"), "relu")], ()),
    "relu_parts": ([hadamard(f(X, "relu"), f(-X, "relu"), Y)], ()),
    "relu_scale_columns": (
        [
            f(matmul(S, SQUARES), "relu"),
            f(matmul(P, S, SQUARES), "relu"),
        ],
        (),
    ),
    "rsqrt_square": (
        [
            hadamard(sympy.HadamardPower(f(v, RSQRT), 2), v),
            hadamard(f(v, RSQRT), v, f(v, RSQRT)),
        ],
        (),
    ),
    "softmax_exp": (
        [
            hadamard(RowSoftmax(S), matmul(f(S, "exp"), ones(m, m))),
            hadamard(
                RowSoftmax(P, mask),
                matmul(hadamard(f(P, "exp"), mask), ones(n, n)),
            ),
        ],
        (),
    ),
    "softmax_mask": ([hadamard(RowSoftmax(S, M), M), hadamard(M, T, RowSoftmax(S, M))], IS_MASK),
    "function_choose_rows": (
        [RowSoftmax(matmul(P, S)), f(matmul(P, X, W)), LayerNorm(matmul(P, X), eps)],
        SELECTION,
    ),
    "activation_choose_columns": ([f(matmul(S, Q)), f(matmul(P, S, Q), "gelu")], COLUMNS),
    "softmax_permute_columns": ([RowSoftmax(matmul(S, Q))], PERMUTATION),
}
BY_OTHER_NAMES = {  # axioms that steps name otherwise, or that let a step be made in an argument
    "inverse": "mul_inv",
    "inverse_of_square": "given_1_turned",
    "gram_zero": "given_1_null",
    "function_congruence": "given_1",
}


def instances(name: str) -> list[tuple[Any, Any, tuple[Any, ...]]]:
    whole, given = WHOLE[name]
    return [(e, new, given) for e in whole for new in RULES[name].results(e)]


def values(e: Any, new: Any, seed: int) -> Assignment:
    """Return numbers for everything: P and Q choose, M is a mask, v is positive.

    X is positive too, and no row of it constant, so that it has both norms.
    """
    draw, mixed = np.random.default_rng(seed), random.Random(seed)
    sizes = {"n": 3, "m": 4, "d": 2, "k": 2}
    a = Assignment(sizes, {}, {"i": 1}, {"c": Fraction(9, 4), "epsilon": Fraction(1, 3)})
    arrays = {}
    for name, tensor in inspect(e, new).tensors.items():
        shape = array_shape(tensor, a)
        array = draw.integers(-4, 5, shape)
        if name in "PQ":
            places = mixed.sample(range(shape[1]), shape[0])
            array = np.array([[int(j == place) for j in range(shape[1])] for place in places])
        array = (array > 0) | (np.arange(shape[1]) == 0) if name == "M" else array
        array = abs(array) + 1 + 9 * np.arange(shape[1]) if name in "vX" else array
        arrays[name] = exact_array(array * 1)
    return Assignment(a.sizes, arrays, a.indices, a.scalars)


def gap(e: Any, new: Any, seed: int = 0) -> Fraction:
    """Return an upper bound on how far two expressions are apart, over all entries."""
    a = values(e, new, seed)
    pairs = zip(*[np.ravel(tree_value(x, a)) for x in (e, new)], strict=True)
    return max(Fraction(float(abs(bounds(x) - bounds(y)).b)) for x, y in pairs)


def test_every_axiom_is_a_rule_and_says_what_the_axiom_says() -> None:
    """Those that need a sign are shown where a side has it, as log(x y) = log(x) + log(y)."""
    assert nonlinear.PREMISED
    for name, axiom in AXIOMS.items():
        said = axiom.example
        if name in ("relu_nonnegative", "relu_scale_rows", "norm_scale_rows", "squares_zero"):
            continue  # no side of the statement has the sign
        if name in ("function_injective", "product_cancel", "softmax_quotient"):
            continue  # its sides are any two matrices; it fits every softmax and is not searched
        if name == "inverse_commutes":
            continue  # a derivation has the steps of its proof
        derivation = explain(said.lhs, said.rhs, given=said.premises)
        assert derivation is not None
        assert [step.rule for step in derivation] == [BY_OTHER_NAMES.get(name, name)]
        assert derivation.check()


@pytest.mark.parametrize("name", WHOLE)
def test_what_a_rule_builds_is_decided_and_holds_in_numbers(name: str) -> None:
    found = instances(name)
    assert {e for e, _, _ in found} == set(WHOLE[name][0])
    for e, new, given in found:
        assert max(gap(e, new, seed) for seed in (0, 1)) < TINY, (e, new)
        for start, end, reverse in ((e, new, False), (new, e, True)):
            assert Step(name, (), reverse, start, end, given).check(), (start, end)


@pytest.mark.parametrize("name", WHOLE)
def test_a_wrong_result_is_not_taken_for_the_rule(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed result does not match; were the rule wrong, the judge would not prove it."""
    wrongs = [
        (e, wrong, given)
        for e, new, given in instances(name)
        for wrong in (matmul(2, new), matadd(new, OneMatrix(*new.shape)))
        if gap(e, wrong) > Fraction(1, 100)
    ]
    assert wrongs
    for e, wrong, given in wrongs:
        step = Step(name, (), False, e, wrong, given)
        assert not step.matches()
        assert not step.check()
    e, wrong, given = wrongs[0]
    liar = Rule(name, RULES[name].example, (type(e),), relate=lambda _, new: new == wrong)
    monkeypatch.setitem(RULES, name, liar)
    step = Step(name, (), False, e, wrong, given)
    assert step.matches()
    assert not step.check()


@pytest.mark.parametrize("name", nonlinear.PREMISED)
def test_a_rule_with_premises_needs_them(name: str) -> None:
    for e, new, given in instances(name):
        assert Step(name, (), False, e, new).matches()
        assert not Step(name, (), False, e, new).check()
        for k in range(len(given)):
            fewer = (*given[:k], *given[k + 1 :])
            assert not Step(name, (), False, e, new, fewer).check()


NOT = {
    "shifted along the columns": ("softmax_shift", RowSoftmax(matadd(S, matmul(ones(n), u)))),
    "masked scores have no mean": ("softmax_constant", RowSoftmax(ones(n, n), mask)),
    "a norm with eps sees the scale": ("norm_scale", LayerNorm(matmul(2, X), eps)),
    "any number": ("relu_scale", f(matmul(sympy.Symbol("a"), X), "relu")),
    "gelu": ("relu_scale", f(matmul(2, X), "gelu")),
    "gelu of columns": ("relu_scale_columns", f(matmul(S, SQUARES), "gelu")),
    "any columns": ("relu_scale_columns", f(matmul(S, DiagMatrix(u)), "relu")),
    "any function of zero": ("activation_zero", f(ZeroMatrix(n, d))),
    "rsqrt of zero": ("activation_zero", f(ZeroMatrix(n, d), RSQRT)),
    "an irrational value": ("activation_ones", f(ones(n, d), "exp")),
    "functions between ones": ("activation_repeat", f(kron(X, ones(k, k), Y))),
    "weights of columns": ("softmax_sum", matmul(ones(1, n), RowSoftmax(S))),
    "of another argument": (
        "activation_reflected",
        matadd(f(X, "gelu"), matmul(-1, f(-Y, "gelu"))),
    ),
    "of another function": (
        "activation_reflected",
        matadd(f(X, "gelu"), matmul(-1, f(-X, "silu"))),
    ),
    "a sum is no difference": ("activation_reflected", matadd(f(X, "gelu"), f(-X, "gelu"))),
    "softmax of blocks beside each other": (
        "function_stack",
        RowSoftmax(sympy.BlockMatrix([[S, S]])),
    ),
    "softmax of rows of a transpose": ("activation_transpose", RowSoftmax(S.T)),
}


@pytest.mark.parametrize(("name", "e"), NOT.values(), ids=list(NOT))
def test_where_a_rule_does_not_apply(name: str, e: Any) -> None:
    assert next(RULES[name].results(e), None) is None


def test_signs_and_brackets_are_looked_through() -> None:
    assert nonlinear.plain(matmul(-1, -X)) == nonlinear.plain(X)
    assert nonlinear.plain(matmul(matmul(2, X), W)) == nonlinear.plain(matmul(2, X, W))
    assert nonlinear.plain(matmul(-1, matadd(X, Y))) == nonlinear.plain(matadd(-Y, -X))
    assert nonlinear.plain(matmul(X, W)) != nonlinear.plain(matmul(X, Transpose(W)))
    assert nonlinear.plain(f(X)) != nonlinear.plain(f(X, "relu"))


def test_a_norm_of_nothing_has_no_value() -> None:
    with pytest.raises(OtimesError):
        tree_value(RMSNorm(X), Assignment({"n": 1, "d": 2}, {"X": exact_array([[0, 0]])}))


def test_the_identity_is_not_taken_apart() -> None:
    """(I ∘ A) 1 is the diagonal already."""
    e = matmul(hadamard(Identity(n), P), ones(n))
    assert next(RULES["hadamard_mul_ones"].results(e), None) is None
