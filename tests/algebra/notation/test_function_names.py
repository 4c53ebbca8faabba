"""Usual names of functions in typed claims are read as what they are, or refused."""

from __future__ import annotations

import pytest

from otimes.algebra.errors import OtimesError
from otimes.algebra.verdict import decide

SHAPES = "X: n d, A: n n, B: n n, c: n 1, r: 1 d, W: d d, a: scalar"


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ("LN(X + c 1^T) = LN(X)", "proved"),
        ("LN(r + a 1ᵀ) = LN(r)", "proved"),
        (r"\mathrm{LN}(X) \mathbf{1} = 0", "proved"),
        ("LN(X) W = LN(X W)", "refuted"),
        ("rmsnorm(X) = X", "refuted"),
        ("softmax(A + c 1^T) = softmax(A)", "proved"),
        ("softmax_row(A) 1 = 1", "proved"),
        ("softmax_cols(A)^T 1 = 1", "proved"),
        ("softmax_cols(A) 1 = 1", "refuted"),
        ("trace(A B) = trace(B A)", "proved"),
        ("trace(A B) = trace(A) trace(B)", "refuted"),
        ("‖A‖_F = ‖A^T‖_F", "proved"),
        ("‖A B‖_F = ‖A‖_F ‖B‖_F", "refuted"),
        ("‖c‖ ‖c‖ = c^T c + 1", "refuted"),
        ("1^T A 1 = tr(A 1 1^T)", "proved"),
        ("1 1^T A = A 1 1^T", "refuted"),
        ("Id A = I A", "proved"),
        ("GELU(A)^T = GELU(A^T)", "proved"),
    ],
)
def test_a_usual_name_is_read(claim: str, status: str) -> None:
    assert decide(claim, shapes=SHAPES).status == status


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("FFN(A B) = FFN(B A)", "it is not declared what FFN is"),
        ("RMS(X) = X", "it is not declared what RMS is"),
        ("Attn(X) = X", "it is not declared what Attn is"),
        ("rank(A B) = rank(B A)", "rank is not in the language"),
        ("inv(A) A = I", "inv is not in the language"),
        ("transpose(A) = A", "transpose is not in the language"),
        ("‖A‖_2 = ‖A‖_2", "the norm ‖·‖_F is"),
        ("vec(A) = vec(B)", "whether vec stacks rows or columns"),
        ("E[X] = X", "an entry has two indices"),
    ],
)
def test_another_name_is_refused(claim: str, said: str) -> None:
    with pytest.raises(OtimesError, match=said):
        decide(claim, shapes=SHAPES)
