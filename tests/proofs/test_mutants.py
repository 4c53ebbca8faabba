"""The mutation operators, and that the judge of mutants can say each of its words."""

import pytest
import sympy
from sympy import MatrixSymbol, Symbol, Trace, Transpose

from algebra.decide import decide
from algebra.language import HeadSum, kron, matadd, matmul, vec_cols, vec_rows
from algebra.nonlinear import Activation, CausalMask, LayerNorm, RMSNorm, RowSoftmax
from proofs.catalogue.symbols import H, alpha, h, heads
from proofs.mutants import OPERATORS, check_mutants, mutants

n = Symbol("n", positive=True, integer=True)
A, B, C = (MatrixSymbol(name, n, n) for name in "ABC")


@pytest.mark.parametrize(
    ("operator", "expression", "wrong"),
    [
        ("swap factors", matmul(A, B), matmul(B, A)),
        ("swap factors", kron(A, B), kron(B, A)),
        ("lose a factor", matmul(A, B), A),
        ("drop a transpose", Transpose(A), A),
        ("insert a transpose", A, Transpose(A)),
        ("lose a term", matadd(A, B), B),
        ("count a term twice", matadd(A, B), matadd(matmul(2, A), B)),
        ("flip a sign", matadd(A, B), matadd(A, matmul(-1, B))),
        ("invert a scale", matmul(alpha, A), matmul(1 / alpha, A)),
        ("rotate a trace", Trace(matmul(A, B, C)), Trace(matmul(B, C, A))),
        ("the other vec", vec_rows(A), vec_cols(A)),
        ("first head only", HeadSum(heads.A[h], (h, H)), heads.A[0]),
        ("another head or layer", heads.A[1], heads.A[0]),
        ("softmax over the wrong axis", RowSoftmax(A), Transpose(RowSoftmax(Transpose(A)))),
        ("lose a mask", RowSoftmax(A, CausalMask(n)), RowSoftmax(A)),
        ("lose a function", Activation("gelu", A), A),
        ("the other norm", RMSNorm(A, 1), LayerNorm(A, 1)),
        ("another eps", LayerNorm(A), LayerNorm(A, 1)),
    ],
)
def test_an_operator(operator: str, expression: sympy.Basic, wrong: sympy.Basic) -> None:
    assert wrong in list(OPERATORS[operator](expression))


def test_operators_reach_every_place() -> None:
    made = [m.lhs for m in mutants(kron(matmul(A, matadd(B, C)), A), B) if m.rhs == B]
    assert kron(matmul(A, matadd(B, Transpose(C))), A) in made
    assert kron(matmul(A, B), A) in made


def test_operators_reach_into_an_inverse() -> None:
    found = [mutant.lhs for mutant in mutants(sympy.Inverse(matmul(A, B)), C)]
    assert sympy.Inverse(matmul(B, A)) in found
    assert sympy.Inverse(A) in found


def test_operators_reach_into_functions() -> None:
    scores = RowSoftmax(matmul(A, Transpose(B)), CausalMask(n))
    made = [m.lhs for m in mutants(matmul(scores, C), A) if m.rhs == A]
    assert matmul(RowSoftmax(matmul(A, B), CausalMask(n)), C) in made
    assert matmul(RowSoftmax(matmul(Transpose(B), A), CausalMask(n)), C) in made


@pytest.mark.parametrize(
    ("lhs", "rhs", "operators"),
    [
        (
            matmul(RowSoftmax(matmul(A, Transpose(A)), CausalMask(n)), A, B),
            matmul(RowSoftmax(Transpose(matmul(A, Transpose(A))), CausalMask(n)), matmul(A, B)),
            ("softmax over the wrong axis", "lose a mask", "lose a function"),
        ),
        (RMSNorm(matmul(2, A)), RMSNorm(A), ("the other norm", "another eps")),
        (
            Activation("gelu", A),
            matadd(A, Activation("gelu", matmul(-1, A))),
            ("lose a function", "lose a factor", "insert a transpose"),
        ),
    ],
)
def test_mistakes_in_functions_are_refuted(
    lhs: sympy.Basic, rhs: sympy.Basic, operators: tuple[str, ...]
) -> None:
    assert decide(lhs, rhs).status == "proved"
    assert set(operators) <= {mutant.operator for mutant in mutants(lhs, rhs)}
    evidence = check_mutants(lhs, rhs)
    assert evidence.passed
    assert evidence.refuted >= 8


def test_a_rotated_trace_is_still_true_and_listed() -> None:
    evidence = check_mutants(Trace(matmul(A, B, C)), Trace(matmul(C, A, B)))
    assert evidence.passed
    assert any(text.startswith("rotate a trace") for text in evidence.still_true)


def test_mutants_with_unequal_sizes_are_tried_at_equal_ones() -> None:
    m = Symbol("m", positive=True, integer=True)
    P, Q = MatrixSymbol("P", n, m), MatrixSymbol("Q", m, n)
    evidence = check_mutants(Transpose(matmul(P, Q)), matmul(Transpose(Q), Transpose(P)))
    assert evidence.refuted >= 8
    assert evidence.passed


def test_a_statement_that_cannot_go_wrong_does_not_pass() -> None:
    assert not check_mutants(sympy.Identity(n), sympy.Identity(n)).passed


def test_a_mutant_that_sympy_refuses_to_build_is_none() -> None:
    """Two factors of sizes that are numbers cannot be swapped: SymPy itself says so."""
    x, w = MatrixSymbol("x", 3, 2), MatrixSymbol("w", 2, 3)
    made = [str(mutant) for mutant in mutants(matmul(x, w), matmul(x, w))]
    assert made
    relu = Activation("relu", matmul(x, w))
    assert [mutant for mutant in mutants(relu, relu) if mutant.operator == "lose a function"]


def test_mistakes_are_made_inside_blocks() -> None:
    whole = sympy.BlockMatrix([[matmul(A, B), C]])
    wrong = {mutant.lhs for mutant in mutants(whole, whole) if mutant.side == "left"}
    assert sympy.BlockMatrix([[matmul(B, A), C]]) in wrong
    assert sympy.BlockMatrix([[matmul(A, B), Transpose(C)]]) in wrong
    assert sympy.BlockMatrix([[A, C]]) in wrong
