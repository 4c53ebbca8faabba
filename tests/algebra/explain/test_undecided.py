"""What an undecided claim says: what is left, why, and what would settle it."""

from __future__ import annotations

from typing import Any

import pytest
import sympy
from sympy import Identity, MatrixSymbol, Trace, ZeroMatrix, symbols

from otimes.algebra.decide.claim import Claim
from otimes.algebra.explain.undecided import obstacles
from otimes.algebra.language.layers import LayerProduct
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, LayerNorm, RowSoftmax
from otimes.algebra.verdict import decide

n, d, L = symbols("n d L", integer=True, positive=True)
i, j, k = symbols("i j k", integer=True)
A, B, X = (MatrixSymbol(name, n, n) for name in "ABX")
W = MatrixSymbol("W", d, d)
F, G = Family("F", (L,), n, n), Family("G", (L,), n, n)
ZERO = ZeroMatrix(n, n)

UNDECIDED: dict[str, tuple[Any, Any, list[Any], list[str]]] = {
    "a trace that hypotheses do not name": (
        Trace(A),
        sympy.Integer(0),
        [(matmul(A, A), ZERO)],
        [
            "left side − right side leaves tr(A)",
            "the matrices of hypothesis 1 do not occur together in this",
            "an equation that links what is left with the hypotheses, as a lemma, would settle it",
        ],
    ),
    "a root that may be of a negative number": (
        Activation("sqrt", sympy.HadamardProduct(A, B)),
        sympy.HadamardProduct(Activation("sqrt", A * X), Activation("sqrt", B)),
        [],
        ["the axiom sqrt_product would apply to sqrt(A ∘ B) if A ≥ 0"],
    ),
    "a scale that may be zero": (
        LayerNorm(sympy.Trace(Activation("abs", A)) * B),
        LayerNorm(B),
        [],
        ["the axiom norm_scale_rows would apply", "tr(abs(A)) 1_n×1 > 0"],
    ),
    "one size in two cuts": (
        sympy.BlockMatrix([[F[0]], [sympy.OneMatrix(1, n)]]) * X,
        sympy.BlockMatrix([[sympy.OneMatrix(1, n)], [F[1]]]) * X,
        [],
        ["reads an index of n + 1 values as (n | 1)", "as (1 | n)"],
    ),
    "a function of functions": (
        Activation("relu", matadd(Activation("relu", A), Activation("relu", B))),
        matadd(Activation("relu", A), Activation("relu", B)),
        [],
        [
            "leaves relu(relu(A) + relu(B)) − relu(A) − relu(B)",
        ],
    ),
    "two orders of one size": (
        matmul(kron(matadd(W, matmul(W, W)), A), kron(A, W)),
        matadd(matmul(kron(W, A), kron(A, W)), matmul(kron(matmul(W, W), A), kron(A, W))),
        [],
        ["reads an index of d*n values as (d, n), and A ⊗ W as (n, d)"],
    ),
    "layers in reverse": (
        Trace(LayerProduct(F[i], (i, L))),
        Trace(LayerProduct(F[i], (i, L), True)),
        [(F[j].T, F[j])],
        [
            "in the induction over L, with Π_L for ∏←_i<L F[i]",
            "one layer more leaves tr(F[last] Π_L) − tr(F[last] Π_L′)",
            "a lemma that makes this zero would settle it",
        ],
    ),
    "an inverse of layers": (
        matmul(sympy.Inverse(LayerProduct(F[i], (i, L))), LayerProduct(F[i], (i, L))),
        Identity(n),
        [],
        ["the induction over L fails", "the inverse of F[last]"],
    ),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_is_left_of_a_claim_is_said(name: str) -> None:
    lhs, rhs, given, said = UNDECIDED[name]
    text = "; ".join(obstacles(Claim(lhs, rhs, given)))
    for words in said:
        assert words in text
    assert text == "; ".join(obstacles(Claim(lhs, rhs, given)))


def test_an_undecided_verdict_says_what_is_left() -> None:
    lhs, rhs, given, said = UNDECIDED["a trace that hypotheses do not name"]
    reason = decide(lhs, rhs, given, budget=1).reason
    assert "not found among the consequences of the hypotheses" in reason
    for words in said:
        assert words in reason


def test_what_is_decided_is_not_explained_again() -> None:
    assert "leaves" not in decide(matmul(A, B), matmul(B, A)).reason
    assert "leaves" not in decide(matadd(A, B), matadd(B, A)).reason


def test_functions_of_two_arguments_say_when_they_are_equal() -> None:
    claim = Claim(matmul(RowSoftmax(A), X), matmul(RowSoftmax(B), X))
    assert obstacles(claim) == [
        "left side − right side leaves softmax(A) X − softmax(B) X",
        "softmax(A) and softmax(B) would be equal if A = B",
    ]
    masked = Claim(RowSoftmax(A, CausalMask(n)), RowSoftmax(B, CausalMask(n)))
    assert obstacles(masked)[1].endswith("would be equal if A = B")
    blocks = sympy.BlockMatrix([[A, B]])
    (text,) = obstacles(Claim(RowSoftmax(blocks), matmul(2, RowSoftmax(blocks))))
    assert "(in block 0)" in text
    many = Claim(HeadSum(matmul(F[i], A), (i, L)), matmul(A, HeadSum(G[j], (j, L))))
    assert obstacles(many) == ["left side − right side leaves Σ_i F[i] A − Σ_i A G[i]"]


def test_the_usual_hypotheses_are_tried_for_what_is_undecided() -> None:
    verdict = decide(Trace(A), sympy.Integer(0), [(matmul(A, A), ZERO)])
    assert verdict.status == "undecided"
    assert all(need.given for need in verdict.would_need)
