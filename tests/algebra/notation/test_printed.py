"""What is printed is read back: the notation of `unicode_text`, over the whole catalogue."""

from __future__ import annotations

import os
from typing import Any

import pytest
import sympy
from sympy import Identity, MatrixSymbol, OneMatrix, Symbol, Transpose
from sympy.matrices.expressions.diagonal import DiagonalOf
from sympy.matrices.expressions.matexpr import MatrixElement

import otimes as ot
from otimes.algebra.language.layers import LayerProduct, OrderSum
from otimes.algebra.language.linear import (
    ConcatHeads,
    Family,
    HeadSum,
    OneHot,
    StackHeads,
    kron,
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
from otimes.algebra.language.positions import OneHotLast, Positions, Shift
from otimes.algebra.language.unicode import unicode_text
from otimes.algebra.notation.text import parse
from otimes.algebra.written import reads_back, written
from otimes.proofs.catalogue import catalogue
from otimes.proofs.claims import NonIdentity, Statement, equations

LONG = os.environ.get("OTIMES_LONG") == "1"
n, m, d, k, H, L = (Symbol(name, positive=True, integer=True) for name in "nmdkHL")
i, j, h, l = (Symbol(name, integer=True) for name in "ijhl")  # noqa: E741 (a layer)
A, X = MatrixSymbol("A", n, n), MatrixSymbol("X", n, d)
W, F, C = Family("W", (H,), d, k), Family("F", (L,), d, d), Family("C", (L, H), n, n)
eps = Symbol("eps", positive=True)
SHAPES = (
    "A: n n, X: n d, W[H]: d k, F[L]: d d, C[L, H]: n n, g: function, eps: positive, M: d d, "
    "ln1_gain: 1 d, m: size"
)

READ = [
    ("e_iᵀ A e_j", matmul(Transpose(OneHot(i, n)), A, OneHot(j, n))),
    ("A e_0", matmul(A, OneHot(0, n))),
    ("Σ_h X W[h]", HeadSum(matmul(X, W[h]), (h, H))),
    ("X W[0]", matmul(X, W[0])),
    (r"X W^{1}", matmul(X, W[0])),
    ("C[l, 0]", C[l, 0]),
    ("C[0, h][i, j]", MatrixElement(C[0, h], i, j)),
    ("A[i, 0]", MatrixElement(A, i, 0)),
    ("(A A)[n - 1, j]", MatrixElement(matmul(A, A), n - 1, j)),
    ("softmax(A, M_n)", RowSoftmax(A, CausalMask(n))),
    (r"\operatorname{softmax}_{M_n}(A)", RowSoftmax(A, CausalMask(n))),
    ("X M", matmul(X, MatrixSymbol("M", d, d))),
    ("Shift_n A", matmul(Shift(n), A)),
    ("pos_n", Positions(n)),
    ("last_(n + 1)", OneHotLast(n + 1)),
    ("g(X)", Activation("g", X)),
    ("gelu_tanh(X)", Activation("gelu_tanh", X)),
    ("RMSNorm(X)", RMSNorm(X)),
    ("LayerNorm(X, eps)", LayerNorm(X, eps)),
    (r"\operatorname{LayerNorm}_{\mathrm{eps}}(X)", LayerNorm(X, eps)),
    ("DiagonalOf(A)", DiagonalOf(A)),
    ("1/d X", matmul(1 / d, X)),
    ("1/sqrt(d) X", matmul(1 / sympy.sqrt(d), X)),
    ("2**(-L) X", matmul(2 ** (-L), X)),
    ("d**(-2) X", matmul(d**-2, X)),
    ("A^(m)", sympy.MatPow(A, m)),
    ("1_n×d", OneMatrix(n, d)),
    ("I_(d*n)", Identity(d * n)),
    ("X ln1_gainᵀ", matmul(X, Transpose(MatrixSymbol("ln1_gain", 1, d)))),
    ("[X W[h] … h<H]", ConcatHeads(matmul(X, W[h]), (h, H))),
    ("[X W[h] ⋮ h<H]", StackHeads(matmul(X, W[h]), (h, H))),
    ("∏←_l<L (I_d + F[l])", LayerProduct(matadd(Identity(d), F[l]), (l, L))),
    ("∏→_l<L F[l]", LayerProduct(F[l], (l, L), reverse=True)),
    (r"\prod_{l=L}^{1} F^{l}", LayerProduct(F[l], (l, L))),
    (r"\prod_{l=1}^{L} F^{l}", LayerProduct(F[l], (l, L), reverse=True)),
    ("Σ←_l<L^(2) F[l]", OrderSum(F[l], (l, L), 2)),
    ("(Σ_h C[0, h]) ⊗ A", kron(HeadSum(C[0, h], (h, H)), A)),
    ("Σ_h C[0, h] ⊗ A", HeadSum(kron(C[0, h], A), (h, H))),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_the_notation_of_the_printers_is_read(text: str, expected: Any) -> None:
    assert parse(text, SHAPES) == expected


@pytest.mark.parametrize("expected", [each for text, each in READ if "\\" not in text])
def test_what_is_read_is_what_is_printed(expected: Any) -> None:
    assert parse(unicode_text(expected), SHAPES) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A e_i + A X e_i", "cannot multiply X .n × d. by e_i .n × 1."),
        ("W[h] + A[h]", "a square matrix|cannot add"),
        ("softmax(A, M_d)", "the scores are n × n, and their mask d × d"),
        ("∏←_l<L X", "not square"),
        ("g(X) A", "inner sizes d and n differ"),
        ("exp(d)", "not in the language"),
    ],
)
def test_what_does_not_conform_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ot.OtimesError, match=words):
        parse(text, SHAPES)


def test_a_slash_without_space_divides_what_stands_beside_it() -> None:
    assert ot.decide("1/d X W[0] = X (1/d W[0])", shapes=SHAPES).status == "proved"
    with pytest.raises(ot.NotationError, match="not clear"):
        parse("1 / d X", SHAPES)


def test_a_sum_in_a_kronecker_product_has_brackets() -> None:
    """Without them the text of one would be that of the other, and they differ."""
    inside, outside = HeadSum(kron(C[0, h], C[0, h]), (h, H)), HeadSum(C[0, h], (h, H))
    assert unicode_text(inside) == "Σ_h C[0, h] ⊗ C[0, h]"
    assert unicode_text(kron(outside, outside)) == "(Σ_h C[0, h]) ⊗ Σ_h C[0, h]"


# -- the catalogue ---------------------------------------------------------------------------------

NOT_READ = {
    "grouped_keys_are_not_tiled": "its sides are equal in size, and in another order of axes",
    "layer_norm_derivative": "a 1 × 1 matrix among entrywise products is read as a number",
    "sources_add_up": "the sizes of two zero blocks follow from their sum only",
    "induction_model_stream": "nothing says how wide a zero block is",
    "saturated_pattern_has_no_gradient": "nothing says how long the one-hot column is",
    **dict.fromkeys(
        ("noise_ablation_mean", "uniform_code_length"), "a zero column is printed without its size"
    ),
    "graded_pass": "the exponent of a matrix is an index",
    "paths_count": "1 × 1 layers are read as numbers",
    "score_path_pairs_count": "1 × 1 layers are read as numbers",
    **dict.fromkeys(
        (
            *("qk_rank_is_not_length", "weights_lie_between_zero_and_one", "softmax_jacobian"),
            *("score_gradient", "linear_attention_is_a_gradient_step", "cross_entropy_gradient"),
            *("mean_ablation_error", "noise_ablation_variance"),
            "contrast_of_probabilities_is_another",
        ),
        "an index that the language made up is called _i",
    ),
}
"""The claims of the catalogue whose text is not read back, and why."""


def test_the_claims_of_the_catalogue_are_read_back() -> None:
    """One in four by default; none is in the list that could be read."""
    stated = {e.name: e.claim() for e in catalogue()}
    claims = {k: e for k, e in stated.items() if isinstance(e, Statement | NonIdentity)}
    assert len(NOT_READ) < len(claims) / 20
    names = list(claims) if LONG else [*list(claims)[::4], *NOT_READ]
    assert [name for name in names if name not in NOT_READ and not is_read(claims[name])] == []
    assert [name for name in NOT_READ if is_read(claims[name])] == []


def is_read(claim: Any) -> bool:
    given = list(equations(claim.given))
    try:
        return reads_back(written(claim.lhs, claim.rhs, given), claim.lhs, claim.rhs, given)
    except (ot.OtimesError, ValueError):
        return False
