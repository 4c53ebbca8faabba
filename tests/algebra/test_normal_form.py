"""The normal form that people look at: its einsums, run as they stand, give the expression."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import sympy
from sympy import HadamardProduct, Identity, Inverse, MatrixSymbol, OneMatrix, Trace, symbols

from otimes.algebra.errors import LanguageError, ShapeError
from otimes.algebra.evaluate.exact import Assignment, tree_value
from otimes.algebra.language.linear import Family, HeadSum, kron, matadd, matmul
from otimes.algebra.language.nonlinear import Activation, CausalMask, RMSNorm, RowSoftmax
from otimes.algebra.normal_form import normal_form
from tests.algebra.expressions import SHAPES, TENSORS, random_expression

n, d, H = symbols("n d H")
h = symbols("h")
A, B = MatrixSymbol("A", n, n), MatrixSymbol("B", n, n)
W = MatrixSymbol("W", d, d)
P = Family("P", (H,), n, n)


def test_terms_are_counted() -> None:
    assert len(normal_form(matmul(matadd(A, B), matadd(A, B)))) == 4
    assert len(normal_form(matadd(A, -A))) == 0
    assert len(normal_form(matadd(A, A.T, A))) == 2
    ((coefficient, _),) = normal_form(matadd(A, A, A)).terms
    assert coefficient == 3
    assert normal_form(HeadSum(P[h], (h, H))).labels[0].name == "P"


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (matmul(A, B), "einsum('ac,cb->ab', A, B)"),
        (A.T, "einsum('ba->ab', A)"),
        (Trace(A), "einsum('aa->', A)"),
        (kron(A, W), "einsum('ac,bd->abcd', A, W)"),
        (matadd(A, -A), "0"),
        (n * Trace(Identity(d)), "d*n"),
        (P[1], "einsum('ab->ab', P[1])"),
        (HeadSum(P[h], (h, H)), "einsum('cab->ab', P)"),
    ],
)
def test_einsum(expression: Any, text: str) -> None:
    assert normal_form(expression).einsum() == text
    assert repr(normal_form(expression)) == f"<normal form: {text}>"


def test_einsums_compute_the_expression() -> None:
    """The text itself is run by NumPy, and compared with the tree walker."""
    draw, rng = random.Random(6), np.random.default_rng(6)
    sizes, scalars = {"n": 3, "d": 2, "H": 2}, {"a": 3, "b": 5, "s": 4}
    where = Assignment(sizes, {})
    arrays: dict[str, Any] = {}
    for name, tensor in TENSORS.items():
        shape = [where.size(k) for k in (*getattr(tensor, "counts", ()), *tensor.shape)]
        arrays[name] = rng.integers(-9, 10, shape).astype(float)
    scope = {**arrays, **sizes, **scalars, "einsum": np.einsum, "eye": np.eye, "ones": np.ones}
    scope["sqrt"] = np.sqrt
    for _ in range(250):
        e = random_expression(draw, draw.choice(SHAPES), draw.choice([1, 2, 2, 3]))
        form = normal_form(e)
        if len(form) > 40:
            continue
        for label in form.labels:  # a split leg is an axis of its own
            if label.name == "M":
                legs = [(3, 2) if len(leg) == 2 else (6,) for leg in (label.rows, label.cols)]
                scope["M"] = arrays["M"].reshape(*legs[0], *legs[1])
        value = eval(form.einsum(), scope)
        expected = np.asarray(tree_value(e, Assignment(sizes, arrays, {}, scalars, exact=False)))
        got = np.broadcast_to(np.asarray(value, dtype=float).ravel(), expected.size)
        # Sums of up to 10^4 products of a few integers below 10: 10^4 roundings of 1e-16 on
        # numbers of the size of the largest term, where an error would change the first digits.
        scale = 1.0 + abs(expected).max()
        assert np.all(abs(got.reshape(expected.shape) - expected) <= 1e-9 * scale), e


def test_index_notation() -> None:
    text = normal_form(matmul(A, B)).latex()
    assert text.startswith(r"\sum_{k}")
    assert "A_{i" in text
    assert "B_{k" in text
    assert normal_form(A)._repr_latex_() == "$\\displaystyle " + normal_form(A).latex() + "$"
    assert r"\delta_" in normal_form(Identity(n)).latex()
    assert normal_form(OneMatrix(n, n)).latex() == "1"
    assert normal_form(matadd(A, -A)).latex() == "0"
    assert r"\sum_{h" in normal_form(HeadSum(P[h], (h, H))).latex()


def test_errors_are_those_of_decide() -> None:
    with pytest.raises(ShapeError, match="inner sizes n and d differ"):
        normal_form(matmul(A, W))
    with pytest.raises(LanguageError, match="Determinant is not in the language yet"):
        normal_form(sympy.Determinant(A))
    with pytest.raises(LanguageError, match="a SymPy expression was expected and str was given"):
        normal_form("A")


def test_equal_expressions_have_equal_terms() -> None:
    """Of the same symbols met in the same order; else labels are numbered differently."""
    left = normal_form(HadamardProduct(A, B.T, evaluate=False))
    right = normal_form(sympy.Transpose(HadamardProduct(A.T, B, evaluate=False)))
    assert left.terms == right.terms


def test_many_wires_have_names_of_their_own() -> None:
    text = normal_form(A**70).einsum()
    inputs = text.split("'")[1].split("->")[0].split(",")
    assert len(set("".join(inputs))) == 71


def test_functions_are_shown_as_they_are_stated() -> None:
    eps = sympy.Symbol("epsilon", positive=True)
    X, W_Q = MatrixSymbol("X", n, d), MatrixSymbol("W_Q", d, d)
    pattern = RowSoftmax(X * W_Q * X.T, CausalMask(n))
    form = normal_form(matmul(pattern, X))
    assert form.einsum() == "einsum('cb,ac->ab', X, softmax(X W_Q Xᵀ, M_n))"
    assert r"(\operatorname{softmax}_{M_{n}}\!\left(X \, W_{Q}" in form.latex()
    assert ">softmax(X W_Q Xᵀ, M_n)<" in form._repr_svg_()
    assert normal_form(CausalMask(n)).einsum() == "einsum('ab->ab', tri(n))"
    assert normal_form(CausalMask(n)).latex() == r"(M_{n})_{i\,j}"
    assert r"\operatorname{rsqrt}" in normal_form(RMSNorm(X, eps)).latex()
    assert normal_form(matmul(Inverse(A + A.T), A)).latex().startswith(r"\sum_{k} ")


def test_a_factor_that_left_a_function_is_not_shown_in_it() -> None:
    """relu(2 W) = 2 relu(W): what stands beside the number is relu(W)."""
    shown = normal_form(Activation("relu", matmul(2, W))).einsum()
    assert shown == "(2)*einsum('ab->ab', relu(W))"
