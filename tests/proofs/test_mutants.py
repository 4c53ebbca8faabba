"""Mutants of true claims are refuted, or proved and listed."""

import pytest
import sympy
from sympy import MatrixSymbol, Symbol, Trace, Transpose

from otimes.algebra.language.linear import matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, RMSNorm, RowSoftmax
from otimes.algebra.verdict import decide
from otimes.proofs.mutants import check_mutants, wrong_claims

n = Symbol("n", positive=True, integer=True)
A, B, C = (MatrixSymbol(name, n, n) for name in "ABC")


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
    assert set(operators) <= {mutant.operator for mutant in wrong_claims(lhs, rhs)}
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
