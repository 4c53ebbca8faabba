"""Typesetting: what is printed is what was stated."""

from __future__ import annotations

from typing import Any

import pytest
from sympy import (
    HadamardProduct,
    Identity,
    MatMul,
    MatrixSymbol,
    OneMatrix,
    Trace,
    Transpose,
    symbols,
)
from sympy.matrices.expressions.matexpr import MatrixElement

from otimes.algebra.language.latex import latex
from otimes.algebra.language.layers import OrderSum
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

n, H = symbols("n H")
d_model = symbols("d_model")
h, i = symbols("h i")
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
W_O = MatrixSymbol("W_O", n, n)
F = Family("W_V", (H,), n, n)
BEFORE_HEADS = (
    r"\sum_{h=1}^{H} W_{V}^{h} \, "
    r"\sum_{i_{1} < \cdots < i_{n - 1} \leq h - 1} W_{V}^{i_{n - 1}} \cdots W_{V}^{i_{1}}"
)


@pytest.mark.parametrize(
    ("expression", "tex"),
    [
        (A, "A"),
        (W_O, "W_{O}"),
        (d_model, r"d_{\mathrm{model}}"),
        (matmul(A, B), r"A \, B"),
        (matadd(A, matmul(-1, B)), "A - B"),
        (matmul(A, matadd(A, B)), r"A \, \left(A + B\right)"),
        (matmul(A, matmul(A, B)), r"A \, \left(A \, B\right)"),
        (kron(A, matadd(A, B)), r"A \otimes \left(A + B\right)"),
        (kron(A, kron(A, B)), r"A \otimes \left(A \otimes B\right)"),
        (Transpose(matmul(A, B)), r"\left(A \, B\right)^{\top}"),
        (A.T, r"A^{\top}"),
        (F[h], "W_{V}^{h}"),
        (F[0], "W_{V}^{1}"),
        (F[h].T, r"W_{V}^{h\,\top}"),
        (HadamardProduct(A, B), r"A \circ B"),
        (Trace(A), r"\operatorname{tr}\left(A\right)"),
        (Identity(n), "I_{n}"),
        (OneMatrix(n, 1), r"\mathbf{1}_{n}"),
        (HeadSum(F[h], (h, H)), r"\sum_{h=1}^{H} W_{V}^{h}"),
        (
            matmul(HeadSum(F[h], (h, H)), A),
            r"\left(\sum_{h=1}^{H} W_{V}^{h}\right) \, A",
        ),
        (
            ConcatHeads(F[h], (h, H)),
            r"\begin{bmatrix} W_{V}^{1} & \cdots & W_{V}^{H} \end{bmatrix}",
        ),
        (
            ConcatHeads(matmul(MatrixElement(A, i, h), B), (h, A.shape[1])),
            r"\begin{bmatrix} A_{i,1} \, B & \cdots & A_{i,n} \, B \end{bmatrix}",
        ),
        (
            StackHeads(F[h], (h, H)),
            r"\begin{bmatrix} W_{V}^{1} \\ \vdots \\ W_{V}^{H} \end{bmatrix}",
        ),
        (vec_rows(A), r"\operatorname{vec}_r\!\left(A\right)"),
        (vec_cols(A), r"\operatorname{vec}_c\!\left(A\right)"),
        (OneHot(i, n), "e_{i}"),
        (
            HeadSum(matmul(F[h], OrderSum(F[i], (i, h), n - 1)), (h, H)),
            BEFORE_HEADS,
        ),
        (MatrixSymbol("Π_L′", n, n), r"\Pi_{L}'"),
        (MatrixSymbol("Ω_L", n, n), r"\Omega_{L}"),
        (
            MatMul(Trace(MatrixSymbol("C", n, n)), -1 / n, MatrixSymbol("C", n, n), evaluate=False),
            r"\operatorname{tr}\left(C\right) \, \left(- \frac{1}{n}\right) \, C",
        ),
    ],
)
def test_latex(expression: Any, tex: str) -> None:
    assert latex(expression) == tex


def test_braces_match() -> None:
    e = kron(matadd(A, HeadSum(matmul(F[h], F[h].T), (h, H))), Identity(d_model))
    text = latex(matmul(e, vec_rows(matmul(A, B))))
    assert text.count("{") == text.count("}")
    assert text.count(r"\left(") == text.count(r"\right)")
