"""Each rule, on instances drawn at random and made by hand: true, and able to be wrong."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import (
    Adjoint,
    BlockDiagMatrix,
    BlockMatrix,
    HadamardPower,
    HadamardProduct,
    Identity,
    Inverse,
    KroneckerDelta,
    KroneckerProduct,
    MatPow,
    MatrixSymbol,
    OneMatrix,
    Trace,
    Transpose,
    ZeroMatrix,
)
from sympy.matrices.expressions.diagonal import DiagMatrix, DiagonalMatrix, DiagonalOf

from otimes.algebra.evaluate.exact import Assignment, exact_array, tree_value
from otimes.algebra.explain.derivation import Step
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
    vec_cols,
    vec_rows,
)
from otimes.algebra.language.nonlinear import Activation, CausalMask
from otimes.algebra.rules import RULES, Rule, defined, nonlinear
from otimes.algebra.rules.indices import entry, index_sum
from otimes.algebra.rules.rule import children, replaced
from otimes.algebra.verdict import decide
from tests.algebra.expressions import (
    SHAPES,
    TENSORS,
    A,
    B,
    H,
    P,
    Q,
    W,
    X,
    a,
    b,
    d,
    h,
    i,
    n,
    random_expression,
)

g = sympy.Symbol("g", integer=True)
SIZES = {"n": 3, "d": 2, "H": 2}
EACH = 5  # random instances of a rule, at most
LONG = os.environ.get("OTIMES_LONG") == "1"
ones = OneMatrix(n, 1)
K = BlockMatrix([[A, X], [Transpose(X), W]])
x, y = matmul(X, OneMatrix(d, 1)), matmul(Transpose(X), ones)
R = Family("R", (H, H), n, n)
P2, A2, B2 = Family("P2", (2,), n, n), MatrixSymbol("A2", 2, 2), MatrixSymbol("B2", 2, 2)
z2, b1 = MatrixSymbol("z2", 2, 1), MatrixSymbol("b1", 1, 1)
NUMERIC = {t.name: t for t in (P2, A2, B2, z2, b1)}
TENSORS = {**TENSORS, "R": R, **NUMERIC}
M2 = sympy.ImmutableDenseMatrix([[1, a], [A2[0, 1], 3]])
E2 = sympy.ImmutableDenseMatrix([[1, a], [0, b]])
N2 = sympy.ImmutableDenseMatrix([[B2[0, 0], 2], [b, -1]])
j, k = sympy.symbols("j k", integer=True)


def at(e: Any, row: Any, col: Any) -> Any:
    return entry(e, sympy.sympify(row), sympy.sympify(col))


def over(e: Any, *names: Any) -> Any:
    return index_sum(e, *[(name, n) for name in names])


def delta(e: Any, f: Any) -> Any:
    return KroneckerDelta(e, f, (0, n - 1))


def times(*factors: Any) -> Any:
    return sympy.Mul(*factors, evaluate=False)


BY_HAND: dict[str, list[Any]] = {
    "head_sum_nested": [HeadSum(HeadSum(R[g, h], (h, H)), (g, H))],
    "head_sum_last": [HeadSum(matmul(entry(CausalMask(H), g, h), Q[h]), (h, H))],
    "head_sum_comm": [HeadSum(matmul(P[g], Q[h]), (g, H), (h, H))],
    "trace_head_sum_smul": [matmul(Trace(HeadSum(P[h], (h, H))), A)],
    "concat_transpose": [Transpose(ConcatHeads(matmul(P[h], X), (h, H)))],
    "stack_transpose": [Transpose(StackHeads(Q[h], (h, H)))],
    "mul_concat": [matmul(a, A, ConcatHeads(Q[h], (h, H)))],
    "stack_mul": [matmul(a, StackHeads(Q[h], (h, H)), W)],
    "concat_stack": [ConcatHeads(StackHeads(R[g, h], (g, H)), (h, H))],
    "concat_add": [matadd(StackHeads(Q[h], (h, H)), StackHeads(X, (h, H)))],
    "concat_mul_one_kron": [matmul(ConcatHeads(Q[h], (h, H)), kron(Identity(H), W))],
    "one_kron_mul_stack": [matmul(kron(Identity(H), A), StackHeads(Q[h], (h, H)))],
    "one_hot_mul": [matmul(Transpose(OneHot(i, n)), OneHot(i, n))],
    "one_hot_one": [OneHot(i, 1)],
    "vec_rows_outer": [vec_rows(matmul(x, Transpose(y)))],
    "vec_zero": [vec_rows(ZeroMatrix(n, d)), vec_cols(ZeroMatrix(n, d))],
    "vec_column": [vec_rows(x), vec_cols(x)],
    "vec_row": [vec_rows(Transpose(x)), vec_cols(Transpose(x))],
    "vec_cols_mul": [matmul(kron(Transpose(W), A), vec_cols(X))],
    "kron_column_row": [kron(x, Transpose(y)), kron(Transpose(y), x)],
    "kron_assoc": [kron(kron(A, X), W), kron(A, kron(W, X))],
    "kron_one": [kron(Identity(1), A), kron(X, Identity(1))],
    "kron_mul_kron": [
        matmul(kron(A, B, W), kron(kron(X, A), W)),
        matmul(kron(A, y), kron(X, ones.T)),
    ],
    "smul_smul": [matmul(a, b, A)],
    "one_smul": [matmul(sympy.S.One, A)],
    "adjoint_transpose": [Adjoint(matmul(A, X))],
    "trace_cyclic": [Trace(HeadSum(matmul(P[h], A), (h, H)))],
    "trace_hadamard_one": [Trace(HadamardProduct(A, Identity(n), B))],
    "trace_hadamard_mul": [Trace(matmul(HadamardProduct(A, B), A))],
    "diagonal_mul_diagonal": [
        matmul(HadamardProduct(Identity(n), A), HadamardProduct(B, Identity(n)))
    ],
    "transpose_one_by_one": [Transpose(matmul(Transpose(ones), A, ones))],
    "one_by_one_mul": [
        matmul(Transpose(ones), a, ones, Transpose(y)),
        matmul(A, ones, Transpose(y), OneMatrix(d, 1)),
    ],
    "pow_zero": [MatPow(A, 0, evaluate=False)],
    "block_mul": [matmul(K, K), matmul(BlockMatrix([[A, X]]), BlockMatrix([[B], [Transpose(X)]]))],
    "mul_block": [
        matmul(A, BlockMatrix([[B, X]])),
        matmul(BlockMatrix([[B], [Transpose(X)]]), A),
        matmul(a, K),
    ],
    "block_add": [matadd(K, K)],
    "block_transpose": [Transpose(K)],
    "trace_block": [Trace(K)],
    "block_kron": [kron(K, A)],
    "block_diag": [BlockDiagMatrix(A, W)],
    "mul_inv": [matmul(B, A, Inverse(A))],
    "inv_mul": [matmul(Inverse(A), A, B)],
    "mul_inv_rev": [Inverse(matmul(A, B))],
    "smul_inv": [Inverse(matmul(2, A))],
    "inv_inv": [Inverse(Inverse(A))],
    "one_inv": [Inverse(Identity(n))],
    "kron_inv": [Inverse(kron(A, W))],
    "transpose_inv": [Transpose(Inverse(A))],
    "diag_hadamard": [DiagMatrix(x)],
    "diagonal_hadamard": [DiagonalMatrix(A)],
    "diagonal_of_ones": [DiagonalOf(A)],
    "diagonal_mul": [
        matmul(HadamardProduct(Identity(n), matmul(x, OneMatrix(1, n))), X),
        matmul(A, HadamardProduct(Identity(n), matmul(x, OneMatrix(1, n)))),
    ],
    "hadamard_mul_ones": [
        matmul(HadamardProduct(X, A * X), OneMatrix(d, 1)),
        matmul(a, HadamardProduct(A, B), ones, Transpose(y)),
    ],
    "hadamard_pow_succ": [HadamardPower(A, 2), HadamardPower(X, 3)],
    "one_by_one": [matmul(Transpose(x), A, x), matmul(a, ones.T, A, x)],
    "vec_dot": [
        matmul(Transpose(vec_rows(X)), vec_rows(A * X)),
        matmul(vec_cols(A).T, vec_cols(B)),
    ],
    "vec_hadamard": [vec_rows(HadamardProduct(A, B)), vec_cols(HadamardProduct(X, A * X))],
    "block_hadamard": [HadamardProduct(K, K)],
    "block_one": [BlockMatrix([[Identity(n), ZeroMatrix(n, d)], [ZeroMatrix(d, n), Identity(d)]])],
    "block_zero": [BlockMatrix([[ZeroMatrix(n, d), ZeroMatrix(n, n)]])],
    "block_ones": [BlockMatrix([[OneMatrix(n, d), ones], [OneMatrix(1, d), OneMatrix(1, 1)]])],
    "block_nested": [
        BlockMatrix([[BlockMatrix([[A, X]]), ones]]),
        BlockMatrix([[K, BlockMatrix([[ones], [y]])]]),
    ],
    "block_diag_inv": [Inverse(BlockDiagMatrix(A, W))],
    "kron_blocks": [kron(E2, X), kron(E2, A, W)],
    "pow_neg": [MatPow(A, -2, evaluate=False), MatPow(W, -1, evaluate=False)],
    "add_neg": [matadd(A, matmul(-1, B), B), matadd(matmul(2, X), matmul(-2, X))],
    "entry_mul": [at(matmul(A, X, W), i, g), at(matmul(2, A, x), i, 0), at(matmul(a, A), i, j)],
    "entry_add": [at(matadd(A, B), i, j)],
    "entry_transpose": [at(Transpose(X), g, i)],
    "entry_hadamard": [at(HadamardProduct(A, B, A), i, j)],
    "entry_one": [at(Identity(n), i, j)],
    "entry_ones": [at(OneMatrix(n, d), i, g)],
    "entry_zero": [at(ZeroMatrix(n, d), i, g)],
    "entry_one_hot": [at(OneHot(j, n), i, sympy.S.Zero)],
    "entry_head_sum": [at(HeadSum(P[h], (h, H)), i, j)],
    "trace_sum": [Trace(A), Trace(matmul(X, X.T)), Trace(matmul(x.T, x))],
    "matrix_of_entries": [A, matmul(A, X), x, Transpose(y), matmul(x.T, x)],
    "sum_add": [over(A[i, j] + B[i, j], j)],
    "sum_smul": [over(times(a, A[i, j]), j), over(times(2, B[i, i], A[i, j]), j)],
    "mul_sum": [times(a, A[i, i], over(A[i, j], j))],
    "sum_nested": [over(over(A[i, j], j), i)],
    "sum_comm": [over(times(A[i, j], B[j, k]), i, j)],
    "sum_const": [over(A[i, i], j), over(A[i, k], j, k), over(sympy.S.One, j)],
    "sum_delta": [
        over(times(delta(i, j), A[j, g]), j),
        over(times(delta(j, k), A[j, k], B[i, k]), j, k),
        over(delta(i, j), j),
    ],
    "delta_mul": [times(delta(i, j), A[j, g])],
    "sum_written_out": [
        index_sum(A2[j, 0] * B2[0, j], (j, sympy.Integer(2))),
        index_sum(times(A2[j, k], A[i, i]), (j, sympy.Integer(2)), (k, sympy.Integer(2))),
    ],
    "matrix_written_out": [A2, z2, Identity(2), OneMatrix(2, 3), ZeroMatrix(1, 2), OneHot(0, 2)],
    "explicit_mul": [matmul(M2, N2), matmul(a, N2, M2)],
    "explicit_smul": [matmul(3, b, M2)],
    "explicit_add": [matadd(M2, N2, M2)],
    "explicit_hadamard": [HadamardProduct(M2, N2)],
    "explicit_transpose": [Transpose(M2)],
    "explicit_trace": [Trace(N2)],
    "explicit_kron": [kron(M2, N2)],
    "kron_number": [kron(sympy.ImmutableDenseMatrix([[b1[0, 0]]]), A)],
    "explicit_entry": [at(M2, sympy.S.Zero, sympy.S.One)],
    "head_sum_written_out": [HeadSum(P2[h], (h, 2)), HeadSum(matmul(P2[h], P[g]), (h, 2), (g, H))],
    "concat_kron": [ConcatHeads(Q[h], (h, H)), StackHeads(matmul(P[h], A), (h, H))],
    "layers_written_out": [
        LayerProduct(matadd(Identity(n), P2[h]), (h, 2)),
        LayerProduct(P2[h], (h, 2), reverse=True),
    ],
}
PAIRS: dict[str, list[tuple[Any, Any]]] = {
    "add_comm": [(matadd(A, B, A), matadd(B, A, A))],
    "hadamard_comm": [(HadamardProduct(A, B, A), HadamardProduct(A, A, B))],
    "index_rename": [
        (HeadSum(P[h], (h, H)), HeadSum(P[g], (g, H))),
        (HeadSum(R[g, h], (g, H), (h, H)), HeadSum(R[h, g], (h, H), (g, H))),
    ],
    "scalar_arith": [
        (sympy.Mul(a + b, Trace(A), evaluate=False), a * Trace(A) + b * Trace(A)),
        ((a**2 - b**2) / (a + b), a - b),
        (
            times(over(A[i, j], j), A[0, 1] + B[i, i]),
            A[0, 1] * over(A[i, j], j) + B[i, i] * over(A[i, j], j),
        ),
    ],
    "same_normal_form": [
        (matmul(matadd(A, B), matadd(A, B)), matadd(A * A, A * B, B * A, B * B)),
        (Trace(matmul(A, B)), Trace(matmul(B, A))),
    ],
    "sum_rename": [
        (over(A[i, j], j), over(A[i, k], k)),
        (over(A[g, j], g, j), over(A[j, g], j, g)),
    ],
}


LINEAR = {
    name: rule
    for name, rule in RULES.items()
    if rule.build is None or rule.build.__module__ not in (nonlinear.__name__, defined.__name__)
}  # those of functions have a file of their own: test_rules_nonlinear


def parts(e: Any) -> Iterator[Any]:
    yield e
    for _, argument in children(e):
        yield from parts(argument)


def harvest() -> dict[str, list[Any]]:
    """Return for each rule places of random expressions where it applies."""
    draw = random.Random(4)
    found: dict[str, list[Any]] = {name: list(BY_HAND.get(name, [])) for name in LINEAR}
    for _ in range(600):
        e = random_expression(draw, draw.choice(SHAPES), 3)
        for part in parts(e):
            for name, rule in LINEAR.items():
                if len(found[name]) < EACH and next(rule.results(part), None) is not None:
                    found[name].append(part)
    return found


def instances(rule: Rule) -> list[tuple[Any, Any]]:
    """Return (before, after) for a rule, used as a whole."""
    made = [(e, result) for e in FOUND[rule.name] for result in rule.results(e)]
    return made + PAIRS.get(rule.name, [])


@cache
def values(seed: int) -> Assignment:
    """Return integers for everything in the alphabet; s is a square, so that its root is one."""
    draw = np.random.default_rng(seed)
    arrays = {}
    for name, tensor in TENSORS.items():
        counts = getattr(tensor, "counts", ())
        shape = [int(sympy.sympify(k).subs({n: 3, d: 2, H: 2})) for k in (*counts, *tensor.shape)]
        arrays[name] = exact_array(draw.integers(-4, 5, shape))
    numbers = {"a": Fraction(3), "b": Fraction(-2, 5), "s": Fraction(4)}
    return Assignment(SIZES, arrays, {"h": 1, "i": 0, "g": 0, "j": 1, "k": 0}, numbers)


def same_values(e: Any, f: Any) -> bool:
    return all(
        np.array_equal(tree_value(e, values(seed)), tree_value(f, values(seed))) for seed in (0, 1)
    )


FOUND = harvest()


def test_a_rule_has_a_name_and_a_short_reading() -> None:
    assert len(RULES) > 80
    for name, rule in RULES.items():
        assert name == rule.name
        assert name.isidentifier()
        assert 3 < len(rule.reading()) < 90, name
        assert (rule.build is None) != (rule.relate is None)
    for name in ("kron_mul_kron", "mul_add", "add_mul", "kron_add", "kron_transpose", "pow_succ"):
        assert name in RULES
    for name in ("transpose_mul", "trace_cyclic", "trace_kron", "vec_rows_mul", "vec_cols_mul"):
        assert name in RULES


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
def test_the_reading_of_a_rule_is_proved_and_a_wrong_one_is_not(rule: Rule) -> None:
    lhs, rhs = rule.equation
    assert rule.relates(lhs, rhs)
    assert decide(lhs, rhs, rule.premises).status == "proved"
    wrong = matadd(rhs, OneMatrix(*rhs.shape)) if rhs.is_Matrix else rhs + 1
    status = decide(lhs, wrong, rule.premises).status
    assert status == "refuted" if rule.name in LINEAR else status != "proved"


WRONG_READINGS = {  # what the rule might be taken to say
    "transpose_mul": (Transpose(matmul(A, B)), matmul(Transpose(A), Transpose(B))),
    "smul_add": (matmul(a, matadd(A, B)), matadd(matmul(b, A), matmul(b, B))),
    "trace_hadamard_mul": (Trace(matmul(HadamardProduct(A, B), A)), Trace(matmul(A, B, A))),
    "relu_scale": (Activation("relu", matmul(a, A)), matmul(a, Activation("relu", A))),
}


@pytest.mark.parametrize("name", WRONG_READINGS)
def test_a_wrong_reading_is_refuted(name: str) -> None:
    before, after = WRONG_READINGS[name]
    wrong = replace(RULES[name], example=before, after=after)
    assert not wrong.relates(*wrong.equation)
    assert decide(*wrong.equation, wrong.premises).status == "refuted"


def test_a_reading_ends_with_its_conditions_in_both_directions() -> None:
    assert RULES["transpose_mul"].reading(reverse=True) == "Bᵀ Aᵀ = (A B)ᵀ"
    assert RULES["relu_scale"].reading() == "relu(c A) = c relu(A) where c > 0"
    assert RULES["relu_scale"].reading(reverse=True) == "c relu(A) = relu(c A) where c > 0"
    assert RULES["softmax_mask"].reading().endswith(" where M ∘ M = M")
    assert RULES["head_sum_written_out"].reading().endswith(" where h < 2")


@pytest.mark.parametrize("rule", LINEAR.values(), ids=list(LINEAR))
def test_what_a_rule_builds_is_equal_for_all_sizes_and_in_exact_numbers(rule: Rule) -> None:
    found = instances(rule)
    assert found, "no instance: add one by hand"
    for before, after in found:
        assert rule.relates(before, after)
        assert decide(before, after).status == "proved", (before, after)
        assert same_values(before, after), (before, after)
        for reverse, (start, end) in ((False, (before, after)), (True, (after, before))):
            assert Step(rule.name, (), reverse, start, end).check()


@pytest.mark.parametrize("rule", LINEAR.values(), ids=list(LINEAR))
def test_a_wrong_result_is_not_taken_for_the_rule(rule: Rule) -> None:
    """Change what a rule gives: the step no longer matches, or it is another of its results."""
    changed = 0
    for before, after in instances(rule)[: 6 if LONG else 1]:
        for wrong in wrongs(after):
            step = Step(rule.name, (), False, before, wrong)
            assert not step.matches(), (before, wrong)
            assert not step.check()
            changed += 1
    assert changed


@pytest.mark.parametrize("rule", LINEAR.values(), ids=list(LINEAR))
def test_a_wrong_rule_is_caught(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the rule itself wrong, its steps would match, and the judge would not prove them."""
    before, wrong = next((e, w) for e, after in instances(rule) for w in wrongs(after))
    liar = Rule(rule.name, rule.example, (type(before),), relate=lambda _, new: new == wrong)
    monkeypatch.setitem(RULES, rule.name, liar)
    step = Step(rule.name, (), False, before, wrong)
    assert step.matches()
    assert not step.check()


def wrongs(e: Any) -> Iterator[Any]:
    """Yield expressions of the same shape with one mistake, that are not equal to e."""
    changed = [matadd(e, e), matadd(e, OneMatrix(*e.shape))] if e.is_Matrix else [e + 1, e + a]
    for path, part in places(e):
        if path and part.is_Matrix:
            changed.append(replaced(e, path, matmul(2, part)))
            if part.shape[0] == part.shape[1] != 1:
                changed.append(replaced(e, path, Transpose(part)))
        if type(part) is sympy.MatMul and len({x.shape for x in part.args if x.is_Matrix}) == 1:
            changed.append(replaced(e, path, matmul(*reversed(part.args))))
    return (wrong for wrong in changed if wrong != e and not same_values(e, wrong))


def places(e: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if isinstance(e, sympy.Expr) and type(e) is not sympy.ImmutableDenseMatrix:
        yield path, e
    for position, argument in children(e):
        yield from places(argument, (*path, position))


def test_a_rule_dispatches_on_the_exact_type() -> None:
    assert next(RULES["kron_transpose"].results(Adjoint(kron(A, B))), None) is None
    assert next(RULES["transpose_mul"].results(matmul(A, B)), None) is None


def test_nothing_is_evaluated_on_the_way() -> None:
    inner = kron(Identity(n), Identity(d))
    e = matmul(inner, kron(A, Transpose(Transpose(W))))
    again = replaced(e, (1, 1), Transpose(Transpose(W)))
    assert again == e
    assert type(again.args[0]) is KroneckerProduct
    (mixed,) = RULES["kron_mul_kron"].results(e)
    assert mixed == kron(matmul(Identity(n), A), matmul(Identity(d), Transpose(Transpose(W))))
